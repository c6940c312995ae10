/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A path-compressed binary trie of prefixes (PATRICIA with prefixes in inner
 * nodes). Private to the cover rule.
 */
#ifndef CLSW_COVER_TRIE_H
#define CLSW_COVER_TRIE_H

#include "cover.h"

/* An address as in struct clsw_cover_node.bits */
struct clsw_bits {
	u32 w[4];
};

void clsw_trie_bits(const struct clsw_cover *c, struct clsw_bits *b, const void *addr, u8 len);
/* Leading bits that two prefixes share, at most the shorter length */
u8 clsw_trie_common(const struct clsw_cover_node *a, const struct clsw_cover_node *b);
/* Bits beyond @len do not count */
struct clsw_cover_node *clsw_trie_find(const struct clsw_cover *c, const u32 *bits, u8 len);
/* The shallowest node at or below a prefix */
struct clsw_cover_node *clsw_trie_top(const struct clsw_cover *c, const u32 *bits, u8 len);
struct clsw_cover_node *clsw_trie_ensure(struct clsw_cover *c, const u32 *bits, u8 len);
/* Removes the node, and branches above it, that mean nothing any more */
void clsw_trie_prune(struct clsw_cover *c, struct clsw_cover_node *n);
/* With @down false the subtree of @n itself is left out */
struct clsw_cover_node *clsw_trie_next(const struct clsw_cover_node *top,
				       const struct clsw_cover_node *n, bool down);
/* Longest node that holds @bits and has one of @flags */
struct clsw_cover_node *clsw_trie_longest(const struct clsw_cover *c, const u32 *bits, u8 flags);
void clsw_trie_init(struct clsw_cover *c);
void clsw_trie_exit(struct clsw_cover *c);

#endif /* CLSW_COVER_TRIE_H */
