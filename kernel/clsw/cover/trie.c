// SPDX-License-Identifier: GPL-2.0
/*
 * The trie under the cover rule. Nodes are allocated by clsw_trie_ensure()
 * alone, both that an insertion may need before the first link changes.
 */
#include "trie.h"

static u32 trie_bit_at(const u32 *bits, u8 i)
{
	return bits[i / 32] >> (31 - i % 32) & 1;
}

static u32 trie_word_mask(u8 len, u32 word)
{
	u32 from = word * 32;

	if (len <= from)
		return 0;
	if (len >= from + 32)
		return ~0U;
	return ~0U << (32 - (len - from));
}

void clsw_trie_bits(const struct clsw_cover *c, struct clsw_bits *b, const void *addr, u8 len)
{
	const u8 *p = addr;
	u32 i;

	memset(b, 0, sizeof(*b));
	for (i = 0; i * 32 < c->width; i++)
		b->w[i] = get_unaligned_be32(p + 4 * i) & trie_word_mask(len, i);
}

static u8 trie_common(const u32 *a, const u32 *b, u8 most)
{
	u32 i;

	for (i = 0; i * 32 < most; i++) {
		u32 diff = a[i] ^ b[i];

		if (diff) {
			u32 at = i * 32 + 32 - fls(diff);

			return at < most ? at : most;
		}
	}
	return most;
}

u8 clsw_trie_common(const struct clsw_cover_node *a, const struct clsw_cover_node *b)
{
	return trie_common(a->bits, b->bits, a->len < b->len ? a->len : b->len);
}

/*
 * As far down from @n, which holds @bits up to its length, as the bits lead:
 * what lies there shares with them whatever anything in the trie does.
 */
static struct clsw_cover_node *trie_descend(const struct clsw_cover_node *n, const u32 *bits,
					    u8 len)
{
	const struct clsw_cover_node *kid;

	while (n->len < len) {
		kid = n->kid[trie_bit_at(bits, n->len)];
		if (!kid)
			break;
		n = kid;
	}
	return (struct clsw_cover_node *)n;
}

static u8 trie_shorter(u8 a, u8 b)
{
	return a < b ? a : b;
}

struct clsw_cover_node *clsw_trie_find(const struct clsw_cover *c, const u32 *bits, u8 len)
{
	struct clsw_cover_node *n = trie_descend(&c->root, bits, len);

	return n->len == len && trie_common(n->bits, bits, len) == len ? n : NULL;
}

struct clsw_cover_node *clsw_trie_top(const struct clsw_cover *c, const u32 *bits, u8 len)
{
	const struct clsw_cover_node *n = &c->root;

	while (n && n->len < len)
		n = n->kid[trie_bit_at(bits, n->len)];
	if (n && trie_common(n->bits, bits, len) < len)
		return NULL;
	return (struct clsw_cover_node *)n;
}

struct clsw_cover_node *clsw_trie_longest(const struct clsw_cover *c, const u32 *bits, u8 flags)
{
	const struct clsw_cover_node *n = &c->root, *best = NULL;

	while (n && trie_common(n->bits, bits, n->len) == n->len) {
		if (n->flags & flags)
			best = n;
		if (n->len >= c->width)
			break;
		n = n->kid[trie_bit_at(bits, n->len)];
	}
	return (struct clsw_cover_node *)best;
}

static struct clsw_cover_node *trie_new_node(struct clsw_cover *c, const u32 *bits, u8 len)
{
	struct clsw_cover_node *n = clsw_pool_get(&c->memory, sizeof(*n));
	u32 i;

	if (!n)
		return NULL;
	for (i = 0; i * 32 < len; i++)
		n->bits[i] = bits[i] & trie_word_mask(len, i);
	n->len = len;
	INIT_LIST_HEAD(&n->touched);
	INIT_LIST_HEAD(&n->relief);
	return n;
}

static void trie_link_node(struct clsw_cover *c, struct clsw_cover_node *up,
			   struct clsw_cover_node *n)
{
	n->up = up;
	up->kid[trie_bit_at(n->bits, up->len)] = n;
	c->nodes++;
}

struct clsw_cover_node *clsw_trie_ensure(struct clsw_cover *c, const u32 *bits, u8 len)
{
	struct clsw_cover_node *n = c->last, *kid, *mid, *leaf;
	u8 shared;

	/* prefixes come in order more often than not: from the last one on */
	shared = trie_common(n->bits, bits, trie_shorter(n->len, len));
	while (n->len > shared)
		n = n->up;
	n = trie_descend(n, bits, len);
	shared = trie_common(n->bits, bits, trie_shorter(n->len, len));
	kid = NULL;
	while (n->len > shared) {
		kid = n;
		n = n->up;
	}
	if (n->len == len) {
		c->last = n;
		return n;
	}
	if (!kid) {
		leaf = trie_new_node(c, bits, len);
		if (leaf) {
			trie_link_node(c, n, leaf);
			c->last = leaf;
		}
		return leaf;
	}

	/* kid moves below a new node, which is the prefix itself or a branch */
	mid = trie_new_node(c, bits, shared);
	if (!mid)
		return NULL;
	leaf = NULL;
	if (shared < len) {
		leaf = trie_new_node(c, bits, len);
		if (!leaf) {
			clsw_pool_put(&c->memory, mid, sizeof(*mid));
			return NULL;
		}
	}
	mid->uncovered = clsw_cover_stands(kid) ? 0 : kid->uncovered;
	trie_link_node(c, n, mid);
	mid->kid[trie_bit_at(kid->bits, shared)] = kid;
	kid->up = mid;
	if (leaf)
		trie_link_node(c, mid, leaf);
	c->last = leaf ?: mid;
	return c->last;
}

void clsw_trie_prune(struct clsw_cover *c, struct clsw_cover_node *n)
{
	struct clsw_cover_node *up, *kid;

	while (n != &c->root && !n->flags && !n->owner && !(n->kid[0] && n->kid[1])) {
		kid = n->kid[0] ? n->kid[0] : n->kid[1];
		up = n->up;
		up->kid[trie_bit_at(n->bits, up->len)] = kid;
		if (kid)
			kid->up = up;
		list_del(&n->touched);
		list_del(&n->relief);
		if (c->last == n)
			c->last = up;
		clsw_pool_put(&c->memory, n, sizeof(*n));
		c->nodes--;
		n = up;
	}
}

struct clsw_cover_node *clsw_trie_next(const struct clsw_cover_node *top,
				       const struct clsw_cover_node *n, bool down)
{
	if (down) {
		if (n->kid[0])
			return n->kid[0];
		if (n->kid[1])
			return n->kid[1];
	}
	for (; n != top && n->up; n = n->up) {
		if (n->up->kid[0] == n && n->up->kid[1])
			return n->up->kid[1];
	}
	return NULL;
}

void clsw_trie_init(struct clsw_cover *c)
{
	memset(&c->root, 0, sizeof(c->root));
	INIT_LIST_HEAD(&c->root.touched);
	INIT_LIST_HEAD(&c->root.relief);
	c->last = &c->root;
	c->nodes = 1;
}

void clsw_trie_exit(struct clsw_cover *c)
{
	struct clsw_cover_node *n = &c->root, *up;

	/* Down to a leaf, free it, on from its parent: no recursion */
	for (;;) {
		while (n->kid[0] || n->kid[1])
			n = n->kid[!n->kid[0]];
		if (n == &c->root)
			break;
		up = n->up;
		up->kid[up->kid[1] == n] = NULL;
		clsw_pool_put(&c->memory, n, sizeof(*n));
		n = up;
	}
	clsw_pool_trim(&c->memory, sizeof(*n), true);
	clsw_trie_init(c);
}
