/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Resource manager: is there room in the hardware for this object, now, and
 * who says so?
 *
 *    notifier (atomic)          refill kthread          completions
 *        | rm_admit                 | rm_need_refill        | rm_settle
 *        v                          v                       v rm_release_done
 *   +----------------------------------------------------------------------+
 *   | per pool:  used | in_flight | committed | free          == size      |
 *   |            written  admitted    leased,     nobody's                 |
 *   |                     (tickets)   no ticket                            |
 *   | leases: id at the device, slots left per pool                        |
 *   | bank:   a model of the exact-match memory, slot by slot              |
 *   +----------------------------------------------------------------------+
 *
 * Rules for callers
 *  - The caller holds the device's spinlock around every call. Nothing here
 *    sleeps, allocates, takes a lock or reads a clock; every loop is bounded.
 *  - Memory is given once: rm_size() says how much, rm_init() takes it.
 *  - An object that is in hardware already (an update in place, a replace)
 *    needs no ticket: it costs nothing. The caller's store knows.
 *  - A ticket lives in the caller's node from rm_admit() to rm_settle() or
 *    rm_cancel(). One that is never settled (time-out) is told by
 *    rm_set_unknown(): its slots stay taken until it is settled or rm_restart().
 *  - A CREATE, and an UPDATE that needs a ticket, is posted with TND_CMD_LEASE
 *    and rm_ticket_lease() if that is not 0, without a lease otherwise.
 *  - Writes go through one queue. rm_release_begin() is called when a delete
 *    is posted: what is admitted later is posted behind it and may count on
 *    its slots. rm_settle() and rm_release_done() are called in the order of
 *    completions: then the model of the exact-match memory stays in step with
 *    the device. Where that can't be kept call rm_model_lost(): the model is a
 *    hint from there on, no promise.
 */
#ifndef _CLSW_RESOURCE_H
#define _CLSW_RESOURCE_H

#include "env.h"
#ifdef __KERNEL__
#include "tandem.h"
#else
#include "../../../abi/tandem.h"
#endif

#define RM_MAX_POOLS	32
#define RM_MAX_ROWS	32	/* (class, family) pairs that cost something */
#define RM_MAX_LEASES	200	/* at a time; one stays until the last ticket on it is settled */
#define RM_MAX_BUCKET	1048576
#define RM_MAX_CLS	64	/* classes below this number */
#define RM_TEXT		80	/* longest text of rm_full_text(), NUL included */

enum rm_policy {
	RM_LOCKSTEP	= 0,	/* ask for one, write it, then answer */
	RM_PREFETCH	= 1,	/* ask for a bucket when it is empty, synchronously */
	RM_CREDIT	= 2,	/* a kthread keeps the bucket filled */
	RM_FLAT		= 3,	/* fixed limits per class, never asks */
	RM_MODEL	= 4,	/* exact placement in the model, never asks if it needn't */
	RM_POLICY_COUNT
};

/**
 * struct rm_params - how leases are asked for
 * @bucket: most objects of one class that are kept leased
 * @low_water: a refill is due below; credit only. At most @bucket
 * @refill: objects per refill; at most @bucket
 * @flat_percent: predict-flat: part of each pool that the fixed limits give out
 *
 * The bucket shrinks as the chip fills: no class keeps more than 1/8 of what
 * the device can still guarantee, and not less than one object.
 */
struct rm_params {
	u32 bucket;
	u32 low_water;
	u32 refill;
	u32 flat_percent;
};

#define RM_DEFAULT_PARAMS { .bucket = 1024, .low_water = 512, .refill = 512, .flat_percent = 75 }

/**
 * struct rm_setup - what the device said, and how to begin
 * @pools: from SNAPSHOT
 * @pool_count: entries of @pools
 * @costs: from DUMP of TND_CLS_COST
 * @cost_count: entries of @costs
 * @geometry: from DUMP of TND_CLS_GEOMETRY; NULL: the device doesn't tell, the
 *	exact-match memory is then asked, never modelled
 * @learning: the device learns MAC addresses by itself
 * @policy: enum rm_policy
 * @params: see there
 */
struct rm_setup {
	const struct tnd_pool *pools;
	const struct tnd_class_cost *costs;
	const struct tnd_geometry *geometry;
	u16 pool_count;
	u16 cost_count;
	bool learning;
	u8 policy;
	struct rm_params params;
};

struct rm;

/* Bytes that rm_init() wants; 0: the setup can't be (names why in @why, RM_TEXT bytes) */
size_t rm_size(const struct rm_setup *setup, char *why);
/* @mem: zeroed or not, aligned to 64, rm_size() bytes */
struct rm *rm_init(void *mem, const struct rm_setup *setup);
/* Tickets and leases that are still open: 0 unless something leaked */
u32 rm_fini(const struct rm *rm);

/* -------------------------------------------------------------------------
 * Policy, parameters, limits: at any time
 */
int rm_set_policy(struct rm *rm, enum rm_policy policy);
enum rm_policy rm_policy(const struct rm *rm);
const char *rm_policy_name(enum rm_policy policy);
/* -EINVAL and nothing changed if @params contradict each other */
int rm_set_params(struct rm *rm, const struct rm_params *params);
void rm_get_params(const struct rm *rm, struct rm_params *params);
/* Learning was switched in the device */
void rm_set_learning(struct rm *rm, bool on);
/*
 * Objects of a class that others can't take (@floor) and that it can't pass
 * (@cap, U32_MAX: none). -EINVAL: no such class; -ENOSPC: the floors of a pool
 * would be more than the pool. Between the driver's own classes; the device's
 * learning obeys leases only.
 */
int rm_set_limits(struct rm *rm, u16 cls, u8 family, u32 floor, u32 cap);
/* Slots of a class's first pool that only requests with RM_REQ_RESERVE take */
int rm_set_reserve(struct rm *rm, u16 cls, u8 family, u32 slots);

/* -------------------------------------------------------------------------
 * Admission
 */
#define RM_REQ_RESERVE		BIT(0)	/* connected and local prefixes: may use the reserve */
#define RM_REQ_BEST_EFFORT	BIT(1)	/* nobody can be told no: a later refusal is handled */
#define RM_REQ_MEMBERS		BIT(2)	/* an NHG that stands gets, or loses, @units members */
#define RM_REQ_AGAIN		BIT(3)	/* the answer to an earlier delete of it was lost */

/**
 * struct rm_req - one object
 * @cls: enum tnd_class
 * @family: TND_AF_*, 0 where the class has none
 * @flags: RM_REQ_*
 * @hold: id of a reservation that it comes out of (rm_ask_hold), 0 = none
 * @units: NHG: members; else 0 or 1
 * @space: FDB: fid; NEIGH: vrf (of its RIF)
 * @addr: FDB: MAC address; NEIGH: address, IPv4 in the first four bytes
 */
struct rm_req {
	u16 cls;
	u8 family;
	u8 flags;
	u16 hold;
	u16 units;
	u16 space;
	u8 addr[16];
};

enum rm_backing {
	RM_BY_NOTHING	= 0,	/* best effort */
	RM_BY_LEASE	= 1,	/* the device promised the slots */
	RM_BY_COUNT	= 2,	/* nobody else takes from this pool */
	RM_BY_MODEL	= 3,	/* the model has a place for this very key, if it is written now */
	RM_BY_DEVICE	= 4,	/* write it now: the device's answer is the answer */
};

/* Lives in the caller's node. All zero: no ticket */
struct rm_ticket {
	u8 state;		/* private */
	u8 row;			/* private */
	u8 backing;		/* enum rm_backing */
	u8 lease;		/* private: lease table slot + 1 */
	u16 units;		/* private */
	u16 gen;		/* private */
};

/**
 * struct rm_ask - a TND_OP_LEASE to post
 * @slot: lease table slot, for rm_lease_done()
 * @count: entries of @item
 * @hold: not 0: asked for by rm_ask_hold()
 * @gen: private
 * @item: as the command's body wants them, behind its struct tnd_lease
 */
struct rm_ask {
	u8 slot;
	u8 count;
	u16 hold;
	u16 gen;
	struct tnd_lease_item item[TND_LEASE_MAX_CLASSES];
};

enum rm_result {
	RM_ADMITTED	= 0,	/* a ticket was written; see @sync */
	RM_QUERY	= 1,	/* post @ask, wait for it, rm_lease_done(), admit again */
	RM_WAIT		= 2,	/* something outstanding decides: poll completions, admit again */
	RM_FULL		= 3,	/* no: @pool, @needed, @free, @size */
	RM_BAD		= 4,	/* class or key that can't be: a bug of the caller */
};

/**
 * struct rm_verdict - the answer
 * @result: enum rm_result
 * @sync: ADMITTED: create it in hardware before you answer the user, then
 *	rm_settle(); if that says -ENOSPC its verdict is the user's answer
 * @post_release: also post what rm_next_release() gives
 * @pool: FULL: which one
 * @row: FULL: class row that was refused, for caps
 * @capped: FULL: by the class's cap or others' floors, not by the memory
 * @bucket: FULL: free slots, but none for this key
 * @needed: FULL: slots
 * @free: FULL: slots this request could have had
 * @size: FULL: slots of the pool, or of the cap
 * @ask: QUERY
 */
struct rm_verdict {
	u8 result;
	bool sync;
	bool post_release;
	u8 pool;
	u8 row;
	bool capped;
	bool bucket;
	u32 needed;
	u32 free;
	u32 size;
	struct rm_ask ask;
};

/*
 * Asks for room. The answer is verdict->result, also returned. Changes nothing
 * unless it is ADMITTED (ticket written) or QUERY (an ask is outstanding).
 *
 * A caller loops: at most RM_ADMIT_ROUNDS times QUERY/WAIT, then it treats the
 * object as refused.
 */
#define RM_ADMIT_ROUNDS	8
enum rm_result rm_admit(struct rm *rm, const struct rm_req *req, struct rm_ticket *ticket,
			struct rm_verdict *verdict);
/* All of @count objects or none; tickets[i] belongs to reqs[i] */
enum rm_result rm_admit_all(struct rm *rm, const struct rm_req *reqs, unsigned int count,
			    struct rm_ticket *tickets, struct rm_verdict *verdict);

/* No group of this chip has as many members as @req has units: @verdict is FULL */
bool rm_too_large(struct rm *rm, const struct rm_req *req, struct rm_verdict *verdict);

/* Lease id for the CREATE of a ticket; 0: no lease */
u32 rm_ticket_lease(const struct rm *rm, const struct rm_ticket *ticket);
static inline bool rm_ticket_open(const struct rm_ticket *ticket)
{
	return ticket->state != 0;
}

/*
 * The CREATE completed. Worst case minus what was really taken goes back.
 * 0: it stands. -ENOSPC: the device has refused it (with a promise behind it:
 * counted as mispredicted); @verdict, if not NULL, is FULL with the device's
 * numbers. -EIO: any other failure; nothing was taken.
 */
int rm_settle(struct rm *rm, const struct rm_req *req, struct rm_ticket *ticket,
	      const struct tnd_cpl *cpl, struct rm_verdict *verdict);
/*
 * The usual end: a lease had promised the slots of one pool, and the device has
 * taken just those. False, and nothing is done: rm_settle() knows what to do.
 */
bool rm_settle_promised(struct rm *rm, struct rm_ticket *ticket, const struct tnd_cpl *cpl);
/*
 * After a time-out the completion of the compensating DELETE closes the ticket
 * as well: what was unknown is free again.
 *
 * rm_note(): an UPDATE for which there is no ticket has completed: what it
 * took or gave back by itself.
 */
void rm_note(struct rm *rm, const struct tnd_cpl *cpl);
/* The CREATE was never posted */
void rm_cancel(struct rm *rm, const struct rm_req *req, struct rm_ticket *ticket);
/* The CREATE timed out: unknown, stays accounted. A late rm_settle() is fine */
void rm_set_unknown(struct rm *rm, struct rm_ticket *ticket);

/*
 * A DELETE of an object that stands is posted (begin) and has completed (done).
 * Between the two its slots are in flight, and creates of counted objects
 * posted behind it may count on them. NHG that shrinks by an UPDATE: the same
 * with that, with RM_REQ_MEMBERS and the members that go. @cpl as the
 * device gave it; NULL in rm_release_done(): timed out, the slots stay taken
 * until another delete of the same object completes (call rm_release_done()
 * alone then).
 */
void rm_release_begin(struct rm *rm, const struct rm_req *req);
void rm_release_done(struct rm *rm, const struct rm_req *req, const struct tnd_cpl *cpl);

/* -------------------------------------------------------------------------
 * Leases
 */
/* True: post @ask (TND_OP_LEASE) from the kthread. Call again until false */
bool rm_need_refill(struct rm *rm, struct rm_ask *ask);
/* Cheap enough after every admit: wake the kthread? */
bool rm_refill_due(const struct rm *rm);
/* The answer to an ask. @cpl NULL: timed out; a late answer counts until rm_next_lost() */
void rm_lease_done(struct rm *rm, const struct rm_ask *ask, const struct tnd_cpl *cpl);
/* True: post TND_OP_RELEASE of @lease_id, then rm_release_lease_done() */
bool rm_next_release(struct rm *rm, u32 *lease_id);
/*
 * @cpl NULL: timed out, or not posted; rm_next_release() names it again. True: a
 * reservation has ended, what was left of it is anybody's
 */
bool rm_release_lease_done(struct rm *rm, u32 lease_id, const struct tnd_cpl *cpl);
/*
 * True: the ask in @slot timed out. Post TND_OP_RELEASE with the cookie of that
 * LEASE, on the same queue, then rm_lost_done(), NULL as above
 */
bool rm_next_lost(struct rm *rm, u8 *slot);
void rm_lost_done(struct rm *rm, u8 slot, const struct tnd_cpl *cpl);

/*
 * A reservation for a batch: @items objects of (cls, family), all or nothing.
 * Post @ask; granted if rm_lease_done() was OK, then rm_req.hold = ask->hold
 * takes from it. rm_drop_hold() gives back what was not used. -EBUSY: flush,
 * rm_next_release(), and ask again; -ENOSPC: more than a pool has; -EOPNOTSUPP: a class whose worst
 * case the device doesn't tell.
 */
int rm_ask_hold(struct rm *rm, const struct tnd_lease_item *items, unsigned int count,
		struct rm_ask *ask);
void rm_drop_hold(struct rm *rm, u16 hold);

/* -------------------------------------------------------------------------
 * What the device does by itself
 */
void rm_learned(struct rm *rm, u16 fid, const u8 *mac);
void rm_aged(struct rm *rm, u16 fid, const u8 *mac);
/* After a warm attach: this station is in the device, and counted already */
void rm_seen(struct rm *rm, u16 fid, const u8 *mac);
/* The model can't follow any more: order not kept, events lost */
void rm_model_lost(struct rm *rm);
/*
 * Events were lost, and nothing is in the queues: @pools, read just now, is the
 * truth for pools that have nothing outstanding.
 */
void rm_reconcile(struct rm *rm, const struct tnd_pool *pools, unsigned int count);
/*
 * The device was attached anew: leases and tickets are void (their settle,
 * cancel and set_unknown do nothing), counters are what @pools says. With @cold the
 * device is empty and the model starts in step.
 */
void rm_restart(struct rm *rm, const struct tnd_pool *pools, unsigned int count, bool cold);

/* -------------------------------------------------------------------------
 * Looking
 */
struct rm_pool_state {
	u16 pool;
	u32 size;
	u32 used;		/* written */
	u32 in_flight;		/* tickets and deletes not complete, unknown ones too */
	u32 committed;		/* leases, no ticket on them */
	u32 free;
	u32 high_watermark;	/* largest used + in_flight */
	u32 unknown;		/* part of in_flight */
	u32 reserve;
	char name[TND_NAME_SIZE];
	char unit[TND_NAME_SIZE];
};

struct rm_class_state {
	u16 cls;
	u8 family;
	u16 pool;
	u32 cost;		/* slots of one object in @pool */
	u32 count;		/* objects written or admitted */
	u32 floor;
	u32 cap;
	u32 credit;		/* objects that fit into held leases now */
	u32 bucket;		/* shrunk as the chip fills */
	u32 free_guaranteed;	/* whatever their keys are */
	u32 free_expected;	/* if keys spread as usual */
	char name[TND_NAME_SIZE];
};

struct rm_stats {
	u64 admitted;
	u64 by[5];		/* by enum rm_backing */
	u64 refused;
	u64 queries;		/* asked on behalf of a waiting user */
	u64 refills;		/* asked by the kthread */
	u64 lease_refused;
	u64 waits;
	u64 mispredicted;	/* promised, and the device refused: must be 0 */
	u64 mismatch;		/* the device's numbers contradict themselves */
	u64 unknown;
	bool model;		/* there is one */
	bool model_in_step;
};

unsigned int rm_pool_count(const struct rm *rm);
unsigned int rm_class_count(const struct rm *rm);
/* false: no such index */
bool rm_pool_state(const struct rm *rm, unsigned int i, struct rm_pool_state *out);
bool rm_class_state(const struct rm *rm, unsigned int i, struct rm_class_state *out);
void rm_stats(const struct rm *rm, struct rm_stats *out);
/* Holds the counters against each other and against leases: 0, or the pool + 1 */
unsigned int rm_check(const struct rm *rm);

/* "ipv4-lpm" -> "IPv4 LPM": the names that people read */
const char *rm_display_name(const char *pool_name);
/* "IPv4 LPM full (needs 1, free 0 of 65536)", at most RM_TEXT - 1 characters */
int rm_full_text(const struct rm *rm, const struct rm_verdict *verdict, char *buf, size_t size);
/* The same from a completion with TABLE_FULL or BUCKET_FULL; 0: it is neither */
int rm_cpl_text(const struct rm *rm, const struct tnd_cpl *cpl, char *buf, size_t size);

#endif /* _CLSW_RESOURCE_H */
