// SPDX-License-Identifier: GPL-2.0
/*
 * After an attach: the whole store is written anew, the rest is swept.
 *
 *   clsw_replay()   BEGIN --> RUNS: every object CREATEd --> ENDS: END_RESYNC --> COUNT
 *   clsw_replay_finish() waits for COUNT, reads the pools once more --> NONE
 *
 * ENDS is due when every object that was there at the beginning is written, or
 * refused: what is put meanwhile goes on being written before, and would keep it
 * off for ever. From ENDS on until the pools are read nothing is written, so
 * that they can be: what is put then waits in the store, for as long as a sweep
 * takes.
 *
 * Until then everything is admitted as best effort: the kernel has it already.
 *
 * A chip that begins empty would answer from half a table: a wider route for a
 * longer one that is still to come. So RIFs trap all, and unknown unicast goes to
 * the CPU, until everything is there (degraded); at the end both are written as
 * they should be. One that kept its tables goes on forwarding.
 */
#include <linux/slab.h>

#include "core.h"

int clsw_resync_turn(struct clsw_device *cd)
{
	struct tnd_cmd cmd = {};

	/* it was emptied: there is nothing to confirm, and nothing to sweep */
	if (!clsw_can(cd, CLSW_CAN_ATTACH_WARM)) {
		if (cd->resync != CLSW_RESYNC_BEGIN &&
		    (cd->resync != CLSW_RESYNC_RUNS || cd->replay_left))
			return 0;
		cd->resync = cd->resync == CLSW_RESYNC_BEGIN ? CLSW_RESYNC_RUNS :
							       CLSW_RESYNC_COUNT;
		wake_up(&cd->idle_wait);
		return 1;
	}
	if (cd->resync == CLSW_RESYNC_BEGIN)
		cmd.op = cpu_to_le16(TND_OP_BEGIN_RESYNC);
	else if (cd->resync == CLSW_RESYNC_RUNS && !cd->replay_left)
		cmd.op = cpu_to_le16(TND_OP_END_RESYNC);
	else
		return 0;
	if (clsw_post_other(cd, CLSW_OPEN_RESYNC, &cmd, NULL, 0, 0))
		return 0;
	cd->resync++;
	return 1;
}

/*
 * Without a beginning nothing can be swept, and what an END_RESYNC has not swept is
 * in the chip without anybody knowing: all of it once more, from the attach on
 */
void clsw_resync_done(struct clsw_device *cd, const struct tnd_cpl *cpl)
{
	if (le16_to_cpu(cpl->status) != TND_ST_OK)
		clsw_trouble(cd, "the chip refused a resync");
	else if (cd->resync == CLSW_RESYNC_ENDS)
		cd->resync = CLSW_RESYNC_COUNT;
}

/* The chip was attached: what it has is not known, everything is written anew */
static void replay_forget(struct clsw_device *cd, struct clsw_obj *obj)
{
	/* void already, or taken since the attach */
	clsw_ticket_cancel(cd, obj);
	memset(&obj->ticket, 0, sizeof(obj->ticket));
	clsw_obj_landed(cd, obj);
	obj->again = false;
	obj->unknown = false;
	obj->delete_lost = false;
	obj->written = clsw_class_fixed(obj->key.cls);
	obj->waits = false;
	obj->hw_units = 0;
	obj->left_units = 0;
	if (obj->wanted) {
		obj->state = CLSW_OBJ_NEW;
		obj->replay = cd->replay;
		cd->replay_left++;
	}
	list_del_init(&obj->work);
	clsw_drain_queue(cd, obj);
}

static bool replay_nothing_out(struct clsw_device *cd)
{
	bool yes;

	clsw_lock(cd);
	yes = !cd->in_flight || !clsw_up(cd);
	clsw_unlock(cd);
	return yes;
}

/*
 * Every pool as the chip has it. @swept: at the end of a replay, when objects are
 * counted by class already; else leases and tickets of before are void
 */
static int replay_recount(struct clsw_device *cd, bool cold, bool swept)
{
	struct tnd_pool *pools;
	int count;

	pools = kcalloc(RM_MAX_POOLS, sizeof(*pools), GFP_KERNEL);
	if (!pools)
		return -ENOMEM;
	/* what was lost is noticed within that time */
	if (swept && !wait_event_timeout(cd->idle_wait, replay_nothing_out(cd),
					 msecs_to_jiffies(2 * CLSW_LOST_MS))) {
		kfree(pools);
		return -ETIMEDOUT;
	}
	count = clsw_rm_read_pools(cd, pools);
	if (count >= 0) {
		clsw_lock(cd);
		if (swept) {
			rm_reconcile(cd->rm, pools, count);
		} else {
			rm_restart(cd->rm, pools, count, cold);
			memset(cd->ask_open, 0, RM_MAX_LEASES * sizeof(*cd->ask_open));
		}
		clsw_unlock(cd);
	}
	kfree(pools);
	return min(count, 0);
}

/* Locked, after rm_restart() */
static bool replay_chip_is_empty(struct clsw_device *cd)
{
	struct rm_class_state class;
	struct rm_pool_state pool;
	unsigned int i;

	for (i = 0; rm_class_state(cd->rm, i, &class); i++) {
		if (class.cls == TND_CLS_ROUTE && rm_pool_state(cd->rm, class.pool, &pool) &&
		    pool.used)
			return false;
	}
	return true;
}

static void replay_restore(struct clsw_device *cd, struct clsw_obj *obj)
{
	if (clsw_classes[obj->key.cls].degraded)
		clsw_touch(cd, obj);
}

int clsw_replay(struct clsw_device *cd, enum clsw_attach_mode mode)
{
	int err;

	clsw_lock(cd);
	clsw_drain_give_up(cd);
	cd->lost_burst = 0;
	cd->resync = CLSW_RESYNC_BEGIN;
	/* objects of an earlier one are told by its number */
	cd->replay = cd->replay == U8_MAX ? 1 : cd->replay + 1;
	cd->replay_left = 0;
	cd->count.replays++;
	clsw_unlock(cd);

	err = replay_recount(cd, mode == CLSW_ATTACH_COLD, false);
	if (err)
		return err;
	clsw_lock(cd);
	cd->degraded = replay_chip_is_empty(cd);
	clsw_unlock(cd);
	clsw_store_each(cd, replay_forget);
	return 0;
}

/* May sleep, after clsw_replay() and with the device up: until the sweep is over */
int clsw_replay_finish(struct clsw_device *cd, unsigned int ms)
{
	long left = wait_event_timeout(cd->idle_wait,
				       READ_ONCE(cd->resync) == CLSW_RESYNC_COUNT || !clsw_up(cd),
				       msecs_to_jiffies(ms));
	bool degraded;
	int err;

	if (!left)
		return -ETIMEDOUT;
	if (!clsw_up(cd))
		return -EIO;
	/* what was swept is told by nobody: count once more, before credit is taken */
	err = replay_recount(cd, false, true);
	clsw_lock(cd);
	cd->resync = CLSW_RESYNC_NONE;
	/* what has failed meanwhile was asked of nobody but the chip */
	clsw_room_came(cd);
	degraded = cd->degraded;
	cd->degraded = false;
	clsw_unlock(cd);
	if (degraded)
		clsw_store_each(cd, replay_restore);
	clsw_drain_kick(cd);
	return err;
}
