/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The exact-match memory in C: banks of buckets, an overflow stash, bounded
 * moves. Places every key where the device's own memory places it (same hash,
 * same order of search), if it sees the same operations in the same order.
 *
 *           hash 0        hash 1     ...  hash B-1       a key has one bucket per bank
 *         +---------+   +---------+    +---------+
 *  bank 0 | s s s s |   |         |    |         | bank B-1
 *         | s s s s |   | s s s s |    |         |   an entry takes 1, 2 or 4 slots, aligned
 *         +---------+   +---------+    +---------+
 *  no run of free slots: move up to max_moves entries out of the way (bounded search)
 *  nothing found:        stash, where any key fits; all promises stand on its free slots
 *  stash used, promised: bucket full; no slot at all: table full
 *
 * No allocation, no lock: the caller gives the memory and serializes.
 */
#ifndef _CLSW_RESOURCE_BANK_H
#define _CLSW_RESOURCE_BANK_H

#include "env.h"

struct tnd_geometry;

#define BANK_MAX_BANKS	8
#define BANK_MAX_MOVES	64
#define BANK_MAX_DEPTH	4
#define BANK_MAX_SLOTS	0x4000000U
#define BANK_MAX_FID	4095
#define BANK_NONE	U32_MAX

enum bank_kind {
	BANK_MAC	= 0,
	BANK_HOST4	= 1,
	BANK_HOST6	= 2,
	BANK_KINDS
};

/**
 * struct bank_geometry - a checked struct tnd_geometry in host order
 * @seed: of the hash
 * @banks: 1..BANK_MAX_BANKS
 * @buckets: of one bank
 * @slots: of one bucket, 4 or 8
 * @stash: slots
 * @size: slots, all of them
 * @max_moves: of one insert
 * @max_depth: of one chain of moves
 * @budget: runs of slots that one insert looks at
 * @width: slots by kind
 */
struct bank_geometry {
	u64 seed;
	u32 banks;
	u32 buckets;
	u32 slots;
	u32 stash;
	u32 size;
	u32 max_moves;
	u32 max_depth;
	u32 budget;
	u8 width[BANK_KINDS];
};

/* A key as the memory holds it */
struct bank_key {
	u64 head;	/* kind, FID or VRF, MAC or IPv4 address */
	u64 tail[2];	/* IPv6 address */
};

struct bank_cell {
	u64 word[2];	/* head and value; or the IPv6 address of the entry before */
};

struct bank_stashed {
	struct bank_key key;
	u64 value;
	u32 id;
	u32 width;
};

struct bank_move {
	u32 id;
	u32 from;
};

struct bank_pin {
	u32 bucket;
	u8 slots;
};

/* All private but the counters */
struct bank {
	struct bank_geometry g;
	u64 seed;
	u64 bank_seed[BANK_MAX_BANKS];
	/* events of their own: used + committed + free == g.size */
	u32 used;
	u32 committed;
	u32 free;
	u32 stash_used;
	u32 per_kind[BANK_KINDS];

	struct bank_cell *cells;	/* by slot */
	u32 *heads;			/* entry that starts at a slot, BANK_NONE */
	u8 *occupied;			/* by bucket, a bit per slot */
	u32 *place;			/* by entry: slot, or position | IN_STASH, or BANK_NONE */
	u32 *free_ids;
	u32 free_count;
	u32 ids;			/* entries ever numbered */
	struct bank_stashed *stash;
	u32 stash_len;
	u32 *index;			/* of the stash, by hash */
	u32 index_mask;
	u32 drain;

	u32 budget;
	u32 undo_len;
	u32 pin_len;
	struct bank_move undo[BANK_MAX_MOVES];
	struct bank_pin pins[BANK_MAX_DEPTH];
};

enum bank_result {
	BANK_OK		= 0,
	BANK_THERE	= 1,	/* the key was there: its value is new, no slot was taken */
	BANK_TABLE_FULL	= 2,
	BANK_BUCKET_FULL = 3,
};

enum bank_mode {
	BANK_FREE	= 0,	/* out of free slots */
	BANK_PROMISED	= 1,	/* out of committed slots; fails only if fewer are committed */
	BANK_FOLLOW	= 2,	/* the device has done it: promises don't matter, only space does */
};

struct bank_placed {
	u32 id;
	u32 moves;
	bool in_stash;
};

/* From the device's dump. False: one that can't be modelled (@why: which number, 80 bytes) */
bool bank_geometry(struct bank_geometry *g, const struct tnd_geometry *dev, char *why);
size_t bank_bytes(const struct bank_geometry *g);
/* @mem: bank_bytes(), aligned to 64 */
void bank_init(struct bank *b, const struct bank_geometry *g, void *mem);
/* As after bank_init() */
void bank_clear(struct bank *b);

void bank_key_mac(struct bank_key *key, u16 fid, const u8 *mac);
void bank_key_host4(struct bank_key *key, u16 vrf, const u8 *addr);
void bank_key_host6(struct bank_key *key, u16 vrf, const u8 *addr);
enum bank_kind bank_kind(const struct bank_key *key);

static inline u32 bank_width(const struct bank *b, const struct bank_key *key)
{
	return b->g.width[bank_kind(key)];
}

/* True: there. @value may be NULL */
bool bank_find(const struct bank *b, const struct bank_key *key, u64 *value);
/* @placed may be NULL */
enum bank_result bank_insert(struct bank *b, const struct bank_key *key, u64 value,
			     enum bank_mode mode, struct bank_placed *placed);
/* Is there room in the banks, as bank_insert() would make it? Nothing changes */
bool bank_room(struct bank *b, const struct bank_key *key);
/* Slots that are free now; 0: was not there */
u32 bank_remove(struct bank *b, const struct bank_key *key);

/* Only what the stash can back is promised. False: bank_stash_free() is less */
bool bank_commit(struct bank *b, u32 slots);
void bank_release(struct bank *b, u32 slots);

/* Slots of the stash that neither an entry nor a promise holds */
static inline u32 bank_stash_free(const struct bank *b)
{
	u32 held = b->stash_used + b->committed;

	return held < b->g.stash ? b->g.stash - held : 0;
}

/* Entries of a kind that fit whatever their keys are, and that fit if keys spread as usual */
u32 bank_free_guaranteed(const struct bank *b, enum bank_kind kind);
u32 bank_free_expected(const struct bank *b, enum bank_kind kind);

/* First entry at or after @cursor; gives the cursor behind it, 0: no more */
u32 bank_next(const struct bank *b, u32 cursor, struct bank_key *key, u64 *value);
/* Slot of a key, or bit 31 and its position in the stash; BANK_NONE: not there */
u32 bank_place(const struct bank *b, const struct bank_key *key);
/* Slots taken in the memory itself: must equal @used */
u32 bank_recount(const struct bank *b);
/* One number for where everything is, for comparisons */
u64 bank_digest(const struct bank *b);

#endif /* _CLSW_RESOURCE_BANK_H */
