/* SPDX-License-Identifier: GPL-2.0 */
/* Inside of the resource manager: rm.c, rm_admit.c, rm_settle.c, rm_lease.c, rm_text.c */
#ifndef _CLSW_RESOURCE_RM_PRIV_H
#define _CLSW_RESOURCE_RM_PRIV_H

#include "resource.h"
#include "bank.h"

#define RM_NONE		0xff	/* no pool, no row, no lease slot */

/*
 * One pool. used + in_flight + committed + free == size; each is a counter of
 * its own, an event names the two that it moves between.
 */
struct rm_pool {
	u32 size;
	u32 used;
	u32 in_flight;
	u32 committed;
	u32 free;

	/* parts of them */
	u32 credit;		/* of committed: in leases that anybody may draw on */
	u32 by_lease;		/* of in_flight: tickets with a lease */
	u32 leaving;		/* of in_flight: deletes out, nobody counts on them */
	u32 covered;		/* of in_flight: tickets that count on a delete that is out */
	u32 unknown;		/* of in_flight */
	u32 asked;		/* of free: lease commands that are out may get it */

	/*
	 * Events come later than completions: what the device holds more, or
	 * has given back more, than fits our counters. One of them is 0.
	 */
	u32 ahead;
	u32 behind;

	u32 open;		/* tickets and deletes that are out */
	u32 loose;		/* slots of tickets that nothing was debited for */
	u32 promised;		/* exact-match: tickets that count on the stash, without a lease */
	u32 high_watermark;
	u32 reserve;
	u32 kept;		/* the most that reserve and floors keep from a class here */
	u32 backed;		/* exact-match without a model: what leases could get */
	u8 rows;		/* classes that live here */
	bool exact;		/* a key matters: the exact-match memory */
	bool limited;		/* floors, caps or a reserve to look at */
	bool capped;		/* a class here has a cap */
	char name[TND_NAME_SIZE];
	char unit[TND_NAME_SIZE];
};

/* One class of objects */
struct rm_row {
	u16 cls;
	u8 family;
	u8 pool;
	u8 member_pool;		/* NHG: of its members; RM_NONE */
	u8 hint;		/* lease slot that served last */
	u8 asking;		/* lease commands out that name it */
	bool exact;
	bool demand;		/* somebody has wanted one: keep the bucket filled */
	bool leasable;		/* the worst case of one object is known, and fits its pools */
	bool dry;		/* even one was refused: ask again when something is freed */
	u32 cost;
	u32 member_cost;	/* worst case of one object in member_pool */
	s32 count;		/* below 0: events are late */
	u32 floor;
	u32 cap;
	u32 most;		/* objects that the next ask may name: halves when refused */
	u32 bucket;		/* objects, shrunk as the chip fills */
	u32 low;		/* refill is due below */
	char name[TND_NAME_SIZE];
};

enum rm_lease_state {
	RM_L_NONE	= 0,
	RM_L_ASKED	= 1,
	RM_L_HELD	= 2,
	RM_L_RETURNING	= 3,	/* RELEASE is out */
	RM_L_LOST	= 4,	/* its ask timed out: asked for until a RELEASE is answered */
};

struct rm_lease {
	u8 state;
	bool returning;		/* nobody draws on it any more; LOST: RELEASE is out */
	bool again;		/* a RELEASE of it was lost: the next may find nothing */
	u16 hold;
	u32 rows;		/* bit per row that it was asked for */
	bool counted;		/* these rows know of it: asking */
	u32 id;
	u32 tickets;
	u32 left[RM_MAX_POOLS];	/* HELD: not drawn; ASKED: worst case asked for */
};

struct rm {
	u8 policy;
	u8 pool_count;
	u8 row_count;
	u8 exact_pool;		/* RM_NONE */
	u8 lease_count;		/* slots in use */
	u8 lease_limit;		/* more the device has refused */
	bool learning;
	bool has_bank;
	bool in_step;
	bool reclaim;		/* leases are to be given back: somebody needs the slots */
	bool spent;		/* a lease may have nothing left to draw and nobody drawing */
	bool due;		/* a refill is due */
	u16 gen;		/* tickets of another attach are void */
	u16 next_hold;
	u32 open;		/* tickets */
	struct rm_params params;
	u8 row_of[RM_MAX_CLS][3];	/* by class and family: any, IPv4, IPv6 */
	struct rm_pool pools[RM_MAX_POOLS];
	struct rm_row rows[RM_MAX_ROWS];
	struct rm_lease leases[RM_MAX_LEASES];
	struct rm_stats stats;
	struct bank bank;
};

/* What a request takes at most: the second pool is that of members */
struct rm_need {
	u8 count;
	u8 pool[2];
	u32 slots[2];
};

#define RM_T_OPEN	BIT(0)
#define RM_T_UNKNOWN	BIT(1)
#define RM_T_MEMBERS	BIT(2)
#define RM_T_NO_DEBIT	BIT(3)	/* nothing was there to debit: the device decides */

static inline u8 rm_family_index(u8 family)
{
	return family == TND_AF_INET ? 1 : family == TND_AF_INET6 ? 2 : 0;
}

static inline u8 rm_row_index(const struct rm *rm, u16 cls, u8 family)
{
	return cls < RM_MAX_CLS ? rm->row_of[cls][rm_family_index(family)] : RM_NONE;
}

static inline void rm_watermark(struct rm_pool *p)
{
	if (p->used + p->in_flight > p->high_watermark)
		p->high_watermark = p->used + p->in_flight;
}

static inline u32 rm_count(const struct rm_row *row)
{
	return row->count > 0 ? row->count : 0;
}

static inline u32 rm_unasked(const struct rm_pool *p)
{
	return p->free > p->asked ? p->free - p->asked : 0;
}

/* The model places as the device does, now */
static inline bool rm_model_exact(const struct rm *rm)
{
	return rm->has_bank && rm->in_step && !rm->learning;
}

void rm_need_of(const struct rm_row *row, u16 units, bool members, struct rm_need *need);
bool rm_key_of(const struct rm *rm, const struct rm_req *req, struct bank_key *key);
/* Exact-match: slots of the stash that nothing that is out or leased may come to need */
u32 rm_stash_left(const struct rm *rm);
/* Objects of a row that can still be had, whatever their keys are; leases included */
u32 rm_guaranteed(const struct rm *rm, const struct rm_row *row);
/* Objects that fit into the leases that anybody may draw on */
u32 rm_credit(const struct rm *rm, const struct rm_row *row);
/* Bucket and low-water mark for how full the chip is */
void rm_shrink(struct rm *rm, struct rm_row *row);
/* Slots of a pool became free: what was refused may be asked for again */
void rm_freed(struct rm *rm, u8 pool);
void rm_free_to_used(struct rm_pool *p, u32 slots);
void rm_used_to_free(struct rm_pool *p, u32 slots);
/* Free slots that the device holds already */
void rm_absorb(struct rm_pool *p);
/*
 * Objects of a row that may be asked for, besides slots that @asked (by pool,
 * may be NULL) names already: never what a ticket counts on without a lease
 */
u32 rm_askable(const struct rm *rm, const struct rm_row *row, const u32 *asked);
/* An ask for @count objects of each row in @mask; false: no lease slot */
bool rm_ask(struct rm *rm, u32 mask, const u32 *counts, u16 hold, struct rm_ask *ask);
/* Objects that the next ask for a row names, 0: nothing to ask for */
u32 rm_ask_size(const struct rm *rm, const struct rm_row *row);
/* Nobody draws on a lease any more: it is released when its tickets are closed */
void rm_give_up(struct rm *rm, u8 slot);
/* Can leases that are held for nobody be given back now? Marks them if so */
bool rm_reclaim(struct rm *rm, const struct rm_need *need);

#endif
