/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store: what should be in hardware, and what is.
 *
 *    fib, neigh, fdb, bridge ...            (any context)
 *        |  clsw_put(), clsw_drop()         under clsw_lock()
 *        v
 *    struct clsw_obj, one per (class, key): wanted body
 *        |  embedded dirty link: a drop allocates nothing
 *        v
 *    drainer (kthread, or the caller itself under lockstep)
 *        |  creates and updates by class upwards, then deletes downwards
 *        v
 *    backend->post ... clsw_complete() -> state, RM settle, owner's callback
 *
 * An object's life:
 *
 *   wanted  written  state
 *   yes     no       NEW      admitted (or @waits to be), not in hardware yet
 *   yes     yes      SYNCED   hardware has the wanted body
 *   yes     yes      STALE    hardware has an older body: update pending
 *   yes     no       FAILED   hardware has refused it, or admission did (MUST)
 *   yes     yes      FAILED   hardware has refused the update: it has an older body
 *   no      yes      GOING    delete pending
 *   any     ?        UNKNOWN  a command timed out: a delete is out, slots stay
 *
 * All of it under clsw_lock(): callers are atomic (FIB notifiers).
 */
#ifndef _CLSW_STORE_H
#define _CLSW_STORE_H

#include <linux/list.h>

#include "clsw.h"
#include "resource/resource.h"

struct clsw_obj;

/*
 * Objects that are asked about again and again, a few in each turn of the
 * drainer. A round asks each of them once.
 *
 * @next: still to be asked in this round
 * @rest: asked, or come since it began
 */
struct clsw_round {
	struct list_head next;
	struct list_head rest;
};

static inline bool clsw_round_empty(const struct clsw_round *round)
{
	return list_empty(&round->next) && list_empty(&round->rest);
}

#define CLSW_KEY_MAX	40

/*
 * Key of an object: the key fields of its ABI body, in their ABI layout and
 * order (abi/tandem.h names them per class), zero padded: it is hashed and
 * compared word by word, as many as the class has (struct clsw_class).
 */
struct clsw_key {
	union {
		struct {
			u16 cls;
			u8 bytes[CLSW_KEY_MAX];
		};
		u64 word[6];
	};
};

enum clsw_obj_state {
	CLSW_OBJ_NEW,
	CLSW_OBJ_SYNCED,
	CLSW_OBJ_STALE,
	CLSW_OBJ_FAILED,
	CLSW_OBJ_GOING,
	CLSW_OBJ_UNKNOWN,
};

/* No status of the chip's: it has not answered in time */
#define CLSW_ST_SILENT		U16_MAX
/* ... its queues don't take a body of this size */
#define CLSW_ST_TOO_LONG	(U16_MAX - 1)

/**
 * struct clsw_reason - why an object is not in hardware
 * @status: enum tnd_status, or CLSW_ST_*; 0: no reason
 * @pool: with TABLE_FULL and BUCKET_FULL
 * @capped: by the class's cap, not by the memory
 * @needed: slots
 * @free: slots
 * @size: slots
 */
struct clsw_reason {
	u16 status;
	u8 pool;
	u8 row;
	bool capped;
	u32 needed;
	u32 free;
	u32 size;
};

/**
 * struct clsw_watch - told of what becomes of an object
 * @changed: locked, atomic. A wanted object has become SYNCED or FAILED, or
 *	@lacks_target has changed. Must not put or drop the same object; others are
 *	fine. After clsw_drop() nobody is told any more
 * @why: locked. In words why the object doesn't forward, if the store has no
 *	reason: its length, or 0. Optional
 */
struct clsw_watch {
	void (*changed)(struct clsw_device *cd, struct clsw_obj *obj);
	int (*why)(const struct clsw_obj *obj, char *buf, size_t size);
};

/**
 * struct clsw_obj - one hardware object
 * @node: in a bucket of clsw_device.objects
 * @work: in one of clsw_device's lists (dirty, going, waiting, failed, stuck), or
 *	empty
 * @key: class and key
 * @watch: who is told; NULL nobody
 * @owner: the watcher's
 * @ticket: what admission took; closed when it is settled
 * @reason: why it is not in hardware (needs/free), for explain and extack
 * @state: enum clsw_obj_state
 * @wanted: it should be there
 * @written: hardware has it, in some version
 * @in_flight: a command is out; its completion looks at the object again
 * @forced: hardware must trap instead of what the body says (cover rule)
 * @sent_forced: what the command in flight, or hardware, says of that
 * @lacks_target: written as a trap because what it refers to has failed, or is not there yet
 * @again: it changed while a command was in flight
 * @unknown: a command was lost: a delete goes out before anything else
 * @delete_lost: one of the commands lost was a delete
 * @needs_rm: its class takes slots
 * @waits: nobody can say yet whether there is room: it is in clsw_device.waiting
 * @missed: some route lacks it (@lacks_target)
 * @pinned: its admission is under way, and may wait: it is not freed, and nobody
 *	else queues or admits it. In .failed, where what is answered meanwhile may
 *	put it, it is passed over; the put that has pinned it ends in
 *	clsw_drain_queue(), which knows where it belongs
 * @rounds: how often it waited although nothing was out, or its lease was not the chip's
 * @replay: clsw_device.replay of the one that has yet to write it; 0: none
 * @flags: CLSW_PUT_* of the last put
 * @hw_units: NHG: members that are accounted as written
 * @sent_units: NHG: members in the command in flight
 * @left_units: NHG: of @hw_units: an update that was lost has taken them away
 * @op: enum tnd_op of the command in flight
 * @size: bytes of @body
 * @room: bytes that @body may grow to
 * @body: as the ABI has it; writable through clsw_put() alone
 */
struct clsw_obj {
	struct hlist_node node;
	struct list_head work;
	struct clsw_key key;
	const struct clsw_watch *watch;
	void *owner;
	struct rm_ticket ticket;
	struct clsw_reason reason;
	u8 state;
	bool wanted;
	bool written;
	bool in_flight;
	bool forced;
	bool sent_forced;
	bool lacks_target;
	bool again;
	bool unknown;
	bool delete_lost;
	bool needs_rm;
	bool waits;
	bool missed;
	bool pinned;
	u8 rounds;
	u8 replay;
	u8 flags;
	u8 op;
	u16 hw_units;
	u16 sent_units;
	u16 left_units;
	u16 size;
	u16 room;
	u8 body[] __aligned(8);
};

#define CLSW_PUT_MUST		BIT(0)	/* no veto is owed: never refused, FAILED instead */
#define CLSW_PUT_RESERVE	BIT(1)	/* connected and local prefixes: may use the reserve */
#define CLSW_PUT_TRAP		BIT(2)	/* new: clsw_force_trap() from its first write on */
#define CLSW_PUT_NOWAIT		BIT(3)	/* a veto is owed, now: -EAGAIN if it is undecided */

/* Longest refusal for extack, NUL included */
#define CLSW_TEXT	RM_TEXT

/*
 * Locked, atomic. Makes (class, key of @body) wanted with this body. @cls
 * bodies start with struct_size (filled in here); NHG members follow it.
 * *@objp: the object, if not NULL. 0; or, nothing changed: -ENOSPC with the
 * reason in @text (CLSW_TEXT bytes, may be NULL), -ENOMEM, -EINVAL, -EOPNOTSUPP
 * (the chip has no such class), -EIO (it doesn't answer). With CLSW_PUT_MUST
 * only -ENOMEM and -EINVAL, with CLSW_PUT_NOWAIT -EAGAIN as well: what is out
 * decides (of a group that is in the chip and grows, the chip does, when it is
 * written).
 *
 * Under lockstep the object has been written, or refused, on return; under
 * other policies it is written soon, see obj->state. What takes longer than may
 * be waited with bottom halves off (wait.c) is deferred: 0, and the watcher hears
 * what becomes of it, as with CLSW_PUT_MUST. A put over an object
 * that is there is an update in place and needs no room (but for NHG members);
 * one with the same body writes nothing. With CLSW_PUT_MUST, and during a
 * replay, nothing is waited for: whether there is room may be decided later.
 */
int clsw_put(struct clsw_device *cd, u16 cls, const void *body, u32 size,
	     u8 flags, const struct clsw_watch *watch, void *owner,
	     struct clsw_obj **objp, char *text);
/* Locked, atomic, can't fail. The watcher hears when it is gone */
void clsw_drop(struct clsw_device *cd, struct clsw_obj *obj);
/*
 * Locked, atomic. The chip has made this object by itself (a learned address),
 * or changed it: the store has it as written, and posts nothing. From here on it
 * is an object like any other: put, dropped, replayed. -EBUSY: a command for
 * this key is under way, or due; put it then
 */
int clsw_adopt(struct clsw_device *cd, u16 cls, const void *body, u32 size,
	       const struct clsw_watch *watch, void *owner, struct clsw_obj **objp);
/* Locked, atomic, can't fail. The chip has removed it by itself: nothing is posted */
void clsw_abandon(struct clsw_device *cd, struct clsw_obj *obj);
/* Locked. Exactly this key, taken from the key fields of @body; NULL: none */
struct clsw_obj *clsw_find(struct clsw_device *cd, u16 cls, const void *body);
/**
 * struct clsw_walk - where a walk over all objects is; zeroed to begin
 * @bucket: of clsw_device.objects
 * @at: objects of it that were shown
 *
 * Between two steps the lock may be given up: an object may then be shown
 * twice, or missed if another one of its bucket went meanwhile.
 */
struct clsw_walk {
	u32 bucket;
	u32 at;
};

/* Not locked: on to a bucket that has some; false: that was the last one */
bool clsw_walk_more(struct clsw_device *cd, struct clsw_walk *walk);
/* Locked. The next one of the bucket; NULL: on to the next bucket */
struct clsw_obj *clsw_walk_next(struct clsw_device *cd, struct clsw_walk *walk);
/* Locked. Trap in place of what the body says, or no longer; needs no room */
void clsw_force_trap(struct clsw_device *cd, struct clsw_obj *obj, bool on);
/* Locked. It is looked at anew: what it refers to has changed its state */
void clsw_touch(struct clsw_device *cd, struct clsw_obj *obj);
/*
 * Locked. Before the others of its class: traffic waits for it. The caller
 * knows that nothing that is still to come counts on the order of puts.
 */
void clsw_expedite(struct clsw_device *cd, struct clsw_obj *obj);
/* What hardware has: SYNCED or STALE or GOING */
static inline bool clsw_obj_written(const struct clsw_obj *obj)
{
	return obj->written;
}

/* Why it is not there, as text: at most CLSW_TEXT - 1 characters; 0: no reason */
int clsw_obj_reason(struct clsw_device *cd, const struct clsw_obj *obj,
		    char *buf, size_t size);

#endif /* _CLSW_STORE_H */
