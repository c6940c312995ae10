/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cover rule: what turns to CPU when something does not fit.
 *
 *   0.0.0.0/0   installed    would answer for 13/24: traps while anything
 *       |                    below it is uncovered
 *       +-- 10.0.0.0/8   installed    stays as it is, nothing is missing there
 *       |
 *       +-- 13.0.0.0/24  missing (table full), or an aggregate trap of the
 *                        reserve stands here, and 0/0 stays as it is
 *
 * One struct clsw_cover per VRF and family holds a trie of all kernel
 * prefixes. Hardware answers with the longest entry that stands. Each node
 * counts how many missing prefixes lie in its subtree with no standing entry
 * between (uncovered). A standing entry with a count would answer for them,
 * so it must trap. Counts change along one path towards the root, up to the
 * next standing entry: at most 33 or 129 nodes, however many are missing.
 *
 * Pure decisions: the caller programs the hardware. After each change it takes
 * the nodes off clsw_cover_next_touched(), asks clsw_cover_forced() and
 * clsw_cover_aggregate() for each, and reports what it did. docs/cover-rule.md
 * has the rule, the order of the commands and the test vectors that this
 * implementation and the one of user space share.
 *
 * Context: any, under one lock of the caller's (a spinlock will do). Nothing
 * sleeps. Only clsw_cover_get() allocates, and either succeeds or changes
 * nothing; all the rest, deletes above all, can't fail.
 */
#ifndef CLSW_COVER_H
#define CLSW_COVER_H

#include "env.h"

#define CLSW_COVER_MAX_UNITS	64	/* aggregate traps per VRF and family */
#define CLSW_COVER_MAX_RELIEF	64	/* covers looked at when units are added */

#define CLSW_COVER_V4		32	/* width: bits of an address */
#define CLSW_COVER_V6		128

/* struct clsw_cover_node.flags; for the cover alone, but good to print */
#define CLSW_COVER_KERNEL	BIT(0)	/* a prefix of the kernel's */
#define CLSW_COVER_INSTALLED	BIT(1)	/* its entry stands in hardware */
#define CLSW_COVER_MISSING	BIT(2)	/* should stand, has no space */
#define CLSW_COVER_TRAPS	BIT(3)	/* answers with a trap anyway */
#define CLSW_COVER_AGGREGATE	BIT(4)	/* an aggregate trap is wanted */
#define CLSW_COVER_AGG_UP	BIT(5)	/* the aggregate trap stands */

/**
 * struct clsw_cover_node - one prefix, or a branch without a meaning of its own
 * @up: parent, NULL for the root
 * @kid: subtrees whose next bit is 0 and 1
 * @owner: the caller's; a node with an owner stays
 * @touched: link of struct clsw_cover.touched, or empty
 * @relief: link of struct clsw_cover.relief, or empty
 * @bits: address, host order, most significant word first; IPv4 has one word
 * @uncovered: missing prefixes at or below, with no standing entry between
 * @len: prefix length
 * @flags: CLSW_COVER_*
 */
struct clsw_cover_node {
	struct clsw_cover_node *up;
	struct clsw_cover_node *kid[2];
	void *owner;
	struct list_head touched;
	struct list_head relief;
	u32 bits[4];
	u32 uncovered;
	u8 len;
	u8 flags;
};

/**
 * struct clsw_cover - the cover rule for one VRF and family
 * @root: prefix of length 0, always there
 * @touched: nodes whose answer may have changed, in the order to look at them
 * @relief: covers that may forward again if units are free for what they hide
 * @last: the node that clsw_cover_get() gave last, or one above it
 * @memory: of the nodes
 * @aggregates: where an aggregate trap is wanted
 * @aggregate_count: valid entries of @aggregates
 * @units: how many aggregate traps there may be; with two or more, one is
 *	scratch for make before break
 * @missing: number of missing prefixes
 * @nodes: allocated nodes, branches and the root included
 * @width: CLSW_COVER_V4 or CLSW_COVER_V6
 */
struct clsw_cover {
	struct clsw_cover_node root;
	struct list_head touched;
	struct list_head relief;
	struct clsw_cover_node *last;
	struct clsw_pool memory;
	struct clsw_cover_node *aggregates[CLSW_COVER_MAX_UNITS];
	u32 aggregate_count;
	u32 units;
	u32 missing;
	u32 nodes;
	u8 width;
};

void clsw_cover_init(struct clsw_cover *c, u8 width);
/* Frees every node, owned or not */
void clsw_cover_exit(struct clsw_cover *c);
/* At most CLSW_COVER_MAX_UNITS, more are cut */
void clsw_cover_set_units(struct clsw_cover *c, u32 units);

/* ---- nodes ---- */

/*
 * The node of a prefix, made if need be, with this owner. @addr is in network
 * byte order (4 or 16 bytes), bits beyond @len are ignored. NULL: no memory,
 * nothing has changed. A node that has an owner already keeps it; one that got
 * NULL and still has none gets one from the caller, or clsw_cover_put().
 */
struct clsw_cover_node *clsw_cover_get(struct clsw_cover *c, const void *addr, u8 len,
				       void *owner);
/* Gives the owner up: the node goes when kernel and hardware have it no more */
void clsw_cover_put(struct clsw_cover *c, struct clsw_cover_node *n);
/* Exactly this prefix, or NULL; may be a branch that means nothing */
struct clsw_cover_node *clsw_cover_find(const struct clsw_cover *c, const void *addr, u8 len);
/* The prefix as bytes, network order; writes width / 8 bytes */
void clsw_cover_addr(const struct clsw_cover *c, const struct clsw_cover_node *n, void *addr);

/* The longest kernel prefix that holds an address; NULL: none */
struct clsw_cover_node *clsw_cover_kernel_match(const struct clsw_cover *c, const void *addr);
/* The longest kernel prefix that strictly contains this one */
struct clsw_cover_node *clsw_cover_kernel_parent(const struct clsw_cover_node *n);
/* What hardware answers for an address: the longest entry that stands */
struct clsw_cover_node *clsw_cover_hardware_match(const struct clsw_cover *c, const void *addr);
/* The entry that catches this node's packets: itself, if it stands */
struct clsw_cover_node *clsw_cover_of(struct clsw_cover_node *n);
/* The entry that would catch them without it */
struct clsw_cover_node *clsw_cover_next(const struct clsw_cover_node *n);

/* Top of the subtree of a prefix; NULL if nothing is at or below it */
struct clsw_cover_node *clsw_cover_first_below(const struct clsw_cover *c, const void *addr,
					       u8 len);
/* Next of the subtree of @top in prefix order; NULL at its end */
struct clsw_cover_node *clsw_cover_next_below(const struct clsw_cover_node *top,
					      const struct clsw_cover_node *n);

/* ---- the kernel's side ---- */

/* A prefix that goes is no longer missing. May free @n if it has no owner */
void clsw_cover_set_kernel(struct clsw_cover *c, struct clsw_cover_node *n, bool has);
/* The entry by itself answers with a trap, or no longer */
void clsw_cover_set_traps(struct clsw_cover *c, struct clsw_cover_node *n, bool traps);

/* ---- the hardware's side ---- */

/* It lies between a missing prefix and its cover: install it as a trap */
bool clsw_cover_starts_as_trap(const struct clsw_cover_node *n);
/*
 * The entry stands. True: it has taken the place of an aggregate trap, which
 * was turned into it, and that unit is free again.
 */
bool clsw_cover_installed(struct clsw_cover *c, struct clsw_cover_node *n);
/*
 * The entry leaves. Call it, serve what is touched (the next cover traps),
 * then post the delete. May free @n if it has no owner.
 */
void clsw_cover_withdrawn(struct clsw_cover *c, struct clsw_cover_node *n);
/*
 * The prefix did not fit (or what stood is gone). Decides who catches its
 * packets: an aggregate trap, else the longest standing cover, else nobody,
 * because a lookup that misses traps.
 */
void clsw_cover_missing(struct clsw_cover *c, struct clsw_cover_node *n);
/* The aggregate trap is posted or stands (@up), or is gone. May free @n */
void clsw_cover_aggregate_up(struct clsw_cover *c, struct clsw_cover_node *n, bool up);
/* The aggregate trap could not be made: the cover takes over. May free @n */
void clsw_cover_aggregate_failed(struct clsw_cover *c, struct clsw_cover_node *n);
/* A new chip: nothing stands, nothing is missing. Prefixes and owners stay */
void clsw_cover_forget_hardware(struct clsw_cover *c);

/* ---- what to do ---- */

/*
 * Takes the next node off whose answer to clsw_cover_forced() or
 * clsw_cover_aggregate() may have changed; NULL: all done.
 */
struct clsw_cover_node *clsw_cover_next_touched(struct clsw_cover *c);
/* Queues a node by the caller's wish, behind those that wait */
void clsw_cover_touch(struct clsw_cover *c, struct clsw_cover_node *n);

static inline bool clsw_cover_in_kernel(const struct clsw_cover_node *n)
{
	return n->flags & CLSW_COVER_KERNEL;
}

static inline bool clsw_cover_is_installed(const struct clsw_cover_node *n)
{
	return n->flags & CLSW_COVER_INSTALLED;
}

static inline bool clsw_cover_is_missing(const struct clsw_cover_node *n)
{
	return n->flags & CLSW_COVER_MISSING;
}

/* Something answers here: an entry, or an aggregate trap */
static inline bool clsw_cover_stands(const struct clsw_cover_node *n)
{
	return n->flags & (CLSW_COVER_INSTALLED | CLSW_COVER_AGG_UP);
}

/* An entry stands and must trap: it would answer for so many missing ones */
static inline u32 clsw_cover_forced(const struct clsw_cover_node *n)
{
	return n->flags & CLSW_COVER_INSTALLED ? n->uncovered : 0;
}

/* An aggregate trap is wanted at this node */
static inline bool clsw_cover_aggregate(const struct clsw_cover_node *n)
{
	return n->flags & CLSW_COVER_AGGREGATE;
}

/* Missing prefixes at or below that nothing between covers */
static inline u32 clsw_cover_uncovered(const struct clsw_cover_node *n)
{
	return n->uncovered;
}

#endif /* CLSW_COVER_H */
