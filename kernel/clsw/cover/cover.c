// SPDX-License-Identifier: GPL-2.0
/*
 * The cover rule, see cover.h and docs/cover-rule.md.
 *
 * Counts live in the nodes, so a change is a walk towards the root. Nodes whose
 * answer may have changed hang on one list by a link of their own: reporting a
 * change needs no memory.
 */
#include "trie.h"

#define STANDS		(CLSW_COVER_INSTALLED | CLSW_COVER_AGG_UP)

/* An entry that forwards unless it is forced to trap */
static bool cover_forwards(const struct clsw_cover_node *n)
{
	return (n->flags & (CLSW_COVER_INSTALLED | CLSW_COVER_TRAPS)) == CLSW_COVER_INSTALLED;
}

static u32 cover_free_units(const struct clsw_cover *c)
{
	u32 taken = c->aggregate_count + (c->units >= 2);

	return c->units > taken ? c->units - taken : 0;
}

void clsw_cover_touch(struct clsw_cover *c, struct clsw_cover_node *n)
{
	if (list_empty(&n->touched))
		list_add_tail(&n->touched, &c->touched);
}

static void cover_wish_relief(struct clsw_cover *c, struct clsw_cover_node *n)
{
	if (list_empty(&n->relief))
		list_add_tail(&n->relief, &c->relief);
}

static struct clsw_cover_node *cover_ancestor(const struct clsw_cover_node *n, u8 flags)
{
	for (n = n->up; n; n = n->up) {
		if (n->flags & flags)
			break;
	}
	return (struct clsw_cover_node *)n;
}

static bool cover_contains(const struct clsw_cover_node *outer, const struct clsw_cover_node *inner)
{
	return inner->len >= outer->len && clsw_trie_common(outer, inner) == outer->len;
}

/* ---- aggregates: where a trap of the reserve is wanted ---- */

static void cover_forget_aggregate(struct clsw_cover *c, struct clsw_cover_node *n)
{
	u32 i, kept = 0;

	for (i = 0; i < c->aggregate_count; i++) {
		if (c->aggregates[i] != n)
			c->aggregates[kept++] = c->aggregates[i];
	}
	c->aggregate_count = kept;
}

static void cover_want(struct clsw_cover *c, struct clsw_cover_node *n)
{
	if (n->flags & (CLSW_COVER_AGGREGATE | CLSW_COVER_INSTALLED) ||
	    c->aggregate_count >= CLSW_COVER_MAX_UNITS)
		return;
	n->flags |= CLSW_COVER_AGGREGATE;
	c->aggregates[c->aggregate_count++] = n;
	clsw_cover_touch(c, n);
}

static void cover_unwant(struct clsw_cover *c, struct clsw_cover_node *n)
{
	if (!(n->flags & CLSW_COVER_AGGREGATE))
		return;
	n->flags &= ~CLSW_COVER_AGGREGATE;
	cover_forget_aggregate(c, n);
	clsw_cover_touch(c, n);
}

/* ---- counting ---- */

/* Adds to uncovered from @n up to the first entry that stands */
static void cover_count(struct clsw_cover *c, struct clsw_cover_node *n, s64 by)
{
	for (; n; n = n->up) {
		s64 sum = (s64)n->uncovered + by;
		u32 now = sum > 0 ? sum : 0;
		bool turned = !n->uncovered != !now;

		n->uncovered = now;
		if (turned && n->flags & (STANDS | CLSW_COVER_AGGREGATE)) {
			clsw_cover_touch(c, n);
			if (!now)
				cover_unwant(c, n);
		}
		if (n->flags & STANDS) {
			if (by < 0 && now && cover_forwards(n) && now <= cover_free_units(c))
				cover_wish_relief(c, n);
			return;
		}
	}
}

static void cover_set_missing(struct clsw_cover *c, struct clsw_cover_node *n, bool missing)
{
	if (clsw_cover_is_missing(n) == missing)
		return;
	n->flags ^= CLSW_COVER_MISSING;
	if (missing) {
		c->missing++;
		cover_count(c, n, 1);
	} else {
		c->missing--;
		cover_count(c, n, -1);
	}
}

/* What is uncovered below @n now stops at it, or goes on to its parent */
static void cover_shield_changed(struct clsw_cover *c, struct clsw_cover_node *n, bool before)
{
	bool now = clsw_cover_stands(n);

	if (before == now || !n->uncovered)
		return;
	clsw_cover_touch(c, n);
	cover_count(c, n->up, now ? -(s64)n->uncovered : (s64)n->uncovered);
}

/* ---- the ladder ---- */

/* The aggregate is one that a merge may take: right under this cover */
static bool cover_under(const struct clsw_cover_node *n, const struct clsw_cover_node *cover)
{
	return cover_ancestor(n, STANDS) == cover;
}

/*
 * The tightest place strictly below @cover that holds two aggregates, the new
 * one (@n) counted. It is a node already: one of the two, or the branch where
 * their ways part. NULL: there is none.
 */
static struct clsw_cover_node *cover_tightest_merge(const struct clsw_cover *c,
						    const struct clsw_cover_node *n,
						    const struct clsw_cover_node *cover)
{
	const struct clsw_cover_node *x, *y, *at = NULL;
	u32 i, j, best = cover->len;

	for (i = 0; i < c->aggregate_count; i++) {
		x = c->aggregates[i];
		if (!cover_under(x, cover))
			continue;
		/* Index aggregate_count stands for the new one */
		for (j = i + 1; j <= c->aggregate_count; j++) {
			u8 len;

			y = j < c->aggregate_count ? c->aggregates[j] : n;
			if (y != n && !cover_under(y, cover))
				continue;
			len = clsw_trie_common(x, y);
			if (len > best) {
				best = len;
				at = x;
			}
		}
	}
	return at ? clsw_trie_find(c, at->bits, best) : NULL;
}

/* Finds a place for an aggregate trap that catches @n, strictly below its cover */
static void cover_place(struct clsw_cover *c, struct clsw_cover_node *n,
			struct clsw_cover_node *cover)
{
	struct clsw_cover_node *merged;
	u32 i;

	if (cover_free_units(c)) {
		cover_want(c, n);
		return;
	}
	if (c->units < 2)
		return;
	merged = cover_tightest_merge(c, n, cover);
	if (!merged || clsw_cover_is_installed(merged))
		return;
	cover_want(c, merged);

	/* What lies below it and right under the same cover is not needed now */
	for (i = 0; i < c->aggregate_count;) {
		struct clsw_cover_node *a = c->aggregates[i];

		if (a != merged && cover_contains(merged, a) && cover_under(a, cover))
			cover_unwant(c, a);	/* the array closes up: same index again */
		else
			i++;
	}
	if (!cover_contains(merged, n) && cover_free_units(c))
		cover_want(c, n);
}

/* Lets a cover that traps for a few forward again, if units are free for those */
static void cover_relieve(struct clsw_cover *c)
{
	struct clsw_cover_node *top, *n;

	while (!list_empty(&c->relief)) {
		top = list_first_entry(&c->relief, struct clsw_cover_node, relief);
		list_del_init(&top->relief);
		if (!cover_forwards(top) || !top->uncovered || top->uncovered > cover_free_units(c))
			continue;
		n = clsw_trie_next(top, top, true);
		while (n) {
			bool open = !clsw_cover_stands(n);

			if (clsw_cover_is_missing(n) && open)
				cover_want(c, n);
			n = clsw_trie_next(top, n, n->uncovered && open);
		}
	}
}

struct clsw_cover_node *clsw_cover_next_touched(struct clsw_cover *c)
{
	struct clsw_cover_node *n;

	cover_relieve(c);
	if (list_empty(&c->touched))
		return NULL;
	n = list_first_entry(&c->touched, struct clsw_cover_node, touched);
	list_del_init(&n->touched);
	return n;
}

/* ---- life of a cover, nodes ---- */

void clsw_cover_init(struct clsw_cover *c, u8 width)
{
	memset(c, 0, sizeof(*c));
	INIT_LIST_HEAD(&c->touched);
	INIT_LIST_HEAD(&c->relief);
	c->width = width;
	clsw_trie_init(c);
}

void clsw_cover_exit(struct clsw_cover *c)
{
	u8 width = c->width;

	clsw_trie_exit(c);
	clsw_cover_init(c, width);
}

void clsw_cover_set_units(struct clsw_cover *c, u32 units)
{
	struct clsw_cover_node *n = &c->root;
	u32 seen = 0;

	if (units > CLSW_COVER_MAX_UNITS)
		units = CLSW_COVER_MAX_UNITS;
	if (units > c->units && c->missing) {
		for (; n && seen < CLSW_COVER_MAX_RELIEF; n = clsw_trie_next(&c->root, n, true)) {
			if (cover_forwards(n) && n->uncovered) {
				cover_wish_relief(c, n);
				seen++;
			}
		}
	}
	c->units = units;
}

struct clsw_cover_node *clsw_cover_get(struct clsw_cover *c, const void *addr, u8 len,
				       void *owner)
{
	struct clsw_cover_node *n;
	struct clsw_bits b;

	if (len > c->width)
		len = c->width;
	clsw_trie_bits(c, &b, addr, len);
	n = clsw_trie_ensure(c, b.w, len);
	if (n && !n->owner)
		n->owner = owner;
	return n;
}

void clsw_cover_put(struct clsw_cover *c, struct clsw_cover_node *n)
{
	n->owner = NULL;
	clsw_trie_prune(c, n);
}

struct clsw_cover_node *clsw_cover_find(const struct clsw_cover *c, const void *addr, u8 len)
{
	struct clsw_bits b;

	if (len > c->width)
		return NULL;
	clsw_trie_bits(c, &b, addr, len);
	return clsw_trie_find(c, b.w, len);
}

void clsw_cover_addr(const struct clsw_cover *c, const struct clsw_cover_node *n, void *addr)
{
	u32 i;

	for (i = 0; i * 32 < c->width; i++)
		put_unaligned_be32(n->bits[i], (u8 *)addr + 4 * i);
}

struct clsw_cover_node *clsw_cover_kernel_match(const struct clsw_cover *c, const void *addr)
{
	struct clsw_bits b;

	clsw_trie_bits(c, &b, addr, c->width);
	return clsw_trie_longest(c, b.w, CLSW_COVER_KERNEL);
}

struct clsw_cover_node *clsw_cover_kernel_parent(const struct clsw_cover_node *n)
{
	return cover_ancestor(n, CLSW_COVER_KERNEL);
}

struct clsw_cover_node *clsw_cover_hardware_match(const struct clsw_cover *c, const void *addr)
{
	struct clsw_bits b;

	clsw_trie_bits(c, &b, addr, c->width);
	return clsw_trie_longest(c, b.w, STANDS);
}

struct clsw_cover_node *clsw_cover_of(struct clsw_cover_node *n)
{
	return clsw_cover_stands(n) ? n : cover_ancestor(n, STANDS);
}

struct clsw_cover_node *clsw_cover_next(const struct clsw_cover_node *n)
{
	return cover_ancestor(n, STANDS);
}

struct clsw_cover_node *clsw_cover_first_below(const struct clsw_cover *c, const void *addr, u8 len)
{
	struct clsw_bits b;

	if (len > c->width)
		len = c->width;
	clsw_trie_bits(c, &b, addr, len);
	return clsw_trie_top(c, b.w, len);
}

struct clsw_cover_node *clsw_cover_next_below(const struct clsw_cover_node *top,
					      const struct clsw_cover_node *n)
{
	return clsw_trie_next(top, n, true);
}

/* ---- the kernel's side ---- */

void clsw_cover_set_kernel(struct clsw_cover *c, struct clsw_cover_node *n, bool has)
{
	if (has) {
		n->flags |= CLSW_COVER_KERNEL;
		return;
	}
	cover_set_missing(c, n, false);
	n->flags &= ~(CLSW_COVER_KERNEL | CLSW_COVER_TRAPS);
	clsw_trie_prune(c, n);
}

void clsw_cover_set_traps(struct clsw_cover *c, struct clsw_cover_node *n, bool traps)
{
	bool was = n->flags & CLSW_COVER_TRAPS;

	if (traps) {
		n->flags |= CLSW_COVER_TRAPS;
		return;
	}
	n->flags &= ~CLSW_COVER_TRAPS;
	if (was && clsw_cover_forced(n))
		cover_wish_relief(c, n);
}

/* ---- the hardware's side ---- */

bool clsw_cover_starts_as_trap(const struct clsw_cover_node *n)
{
	return n->uncovered > clsw_cover_is_missing(n);
}

bool clsw_cover_installed(struct clsw_cover *c, struct clsw_cover_node *n)
{
	bool before, was_aggregate;

	cover_set_missing(c, n, false);
	before = clsw_cover_stands(n);
	was_aggregate = n->flags & CLSW_COVER_AGG_UP;
	n->flags &= ~(CLSW_COVER_AGGREGATE | CLSW_COVER_AGG_UP);
	n->flags |= CLSW_COVER_INSTALLED;
	cover_forget_aggregate(c, n);
	cover_shield_changed(c, n, before);
	return was_aggregate;
}

void clsw_cover_withdrawn(struct clsw_cover *c, struct clsw_cover_node *n)
{
	bool before = clsw_cover_stands(n);

	n->flags &= ~CLSW_COVER_INSTALLED;
	cover_shield_changed(c, n, before);
	clsw_trie_prune(c, n);
}

void clsw_cover_missing(struct clsw_cover *c, struct clsw_cover_node *n)
{
	struct clsw_cover_node *cover;

	if (clsw_cover_is_missing(n))
		return;
	/* First: a prefix of the kernel's stays whatever leaves the hardware */
	n->flags |= CLSW_COVER_KERNEL;
	if (clsw_cover_is_installed(n))
		clsw_cover_withdrawn(c, n);
	cover = clsw_cover_of(n);
	/* Somebody answers for it who does not trap as it is */
	if (cover && !(cover->flags & (CLSW_COVER_AGG_UP | CLSW_COVER_TRAPS)) && !cover->uncovered)
		cover_place(c, n, cover);
	cover_set_missing(c, n, true);
}

void clsw_cover_aggregate_up(struct clsw_cover *c, struct clsw_cover_node *n, bool up)
{
	bool before = clsw_cover_stands(n);

	if (up)
		n->flags |= CLSW_COVER_AGG_UP;
	else
		n->flags &= ~CLSW_COVER_AGG_UP;
	cover_shield_changed(c, n, before);
	if (!up)
		clsw_trie_prune(c, n);
}

void clsw_cover_aggregate_failed(struct clsw_cover *c, struct clsw_cover_node *n)
{
	cover_unwant(c, n);
	clsw_cover_aggregate_up(c, n, false);
}

void clsw_cover_forget_hardware(struct clsw_cover *c)
{
	struct clsw_cover_node *n, *next;

	c->aggregate_count = 0;
	c->missing = 0;
	for (n = &c->root; n; n = clsw_trie_next(&c->root, n, true)) {
		list_del_init(&n->touched);
		list_del_init(&n->relief);
		n->flags &= CLSW_COVER_KERNEL | CLSW_COVER_TRAPS;
		n->uncovered = 0;
	}
	/*
	 * Leaves and one-armed branches go. Pruning @n may take its parents
	 * along, never what comes after it in prefix order.
	 */
	for (n = &c->root; n; n = next) {
		next = clsw_trie_next(&c->root, n, true);
		clsw_trie_prune(c, n);
	}
}
