// SPDX-License-Identifier: GPL-2.0
/*
 * The drainer: brings objects from the store to the chip.
 *
 *   dirty[class]   VLAN, PORT, MEMBER, VRF, RIF, NEXTHOP, NHG, NEIGH, FDB, ROUTE   --> BULK queue
 *   going[class]   the same backwards, when nothing is dirty                   --> BULK queue
 *                  (MEMBERs go before new ones come: nothing refers to them)
 *   waiting        room can't be decided on yet (admit.c)                      --> dirty
 *                                                                                    |
 *   open[cookie]   <---------------------------- clsw_complete() --------------------+
 *
 * One queue, executed in order: what is posted earlier is there for what is
 * posted later. An object has at most one command out; what changes meanwhile
 * is coalesced and looked at again when that one completes.
 *
 * A thread does it (drainer.c), in bursts under clsw_lock(). Who needs the answer
 * now (a policy that writes before it answers) does the same turns itself.
 */
#include "core.h"
#include "open.h"

#define BURST		64	/* commands posted per turn */
#define INLINE		32	/* ... by who has queued something */
#define WINDOW		256	/* writes in flight: what waits in the store can still be sorted */
#define REAP_AT		64	/* so many in flight: who queues reaps, too */
#define REAP		256	/* completions per turn */
#define LOST_BURST	16	/* commands lost in a row: the chip is in trouble */

/* A class's place in the order, as a bit of dirty_bits */
static u32 drain_place_bit(u8 cls)
{
	return BIT(clsw_classes[cls].place);
}

void clsw_drain_kick(struct clsw_device *cd)
{
	/* paired with the waiter's look at it: a wake-up costs more than a read */
	if (READ_ONCE(cd->drain_wake))
		return;
	WRITE_ONCE(cd->drain_wake, true);
	wake_up(&cd->drain_wait);
}

void clsw_wake(struct clsw_device *cd)
{
	clsw_drain_kick(cd);
}
EXPORT_SYMBOL_GPL(clsw_wake);

/* Until there may be room for it; what was no matter of room has a pace of its own */
static void drain_set_aside(struct clsw_device *cd, struct clsw_obj *obj)
{
	bool fault = obj->state == CLSW_OBJ_FAILED && clsw_status_is_fault(obj->reason.status);

	list_move_tail(&obj->work, fault ? &cd->faulted.rest : &cd->failed.rest);
}

void clsw_drain_queue(struct clsw_device *cd, struct clsw_obj *obj)
{
	/* who has it pinned queues it, or lets it go */
	if (obj->in_flight || obj->pinned)
		return;
	/* nothing to write: it is as it should be, or a trap until what it needs is there */
	if (obj->wanted && obj->state == CLSW_OBJ_SYNCED)
		return;
	/* nothing to delete; or always there, and stays as it is until somebody says otherwise */
	if (!obj->wanted && ((!obj->written && !obj->unknown) || clsw_class_fixed(obj->key.cls))) {
		clsw_obj_free(cd, obj);
		return;
	}
	if (obj->wanted && obj->state == CLSW_OBJ_FAILED && !obj->unknown)
		drain_set_aside(cd, obj);
	else if (obj->wanted && obj->waits)
		list_move_tail(&obj->work, &cd->waiting.rest);
	else if (obj->wanted)
		list_move_tail(&obj->work, &cd->dirty[obj->key.cls]);
	else
		list_move_tail(&obj->work, &cd->going[obj->key.cls]);
	cd->dirty_bits |= drain_place_bit(obj->key.cls);
	cd->drain_due = true;
}

void clsw_expedite(struct clsw_device *cd, struct clsw_obj *obj)
{
	lockdep_assert_held(&cd->lock);
	if (obj->state != CLSW_OBJ_NEW || !obj->wanted || obj->in_flight || obj->unknown ||
	    obj->waits || list_empty(&obj->work))
		return;
	list_move(&obj->work, &cd->dirty[obj->key.cls]);
	cd->dirty_bits |= drain_place_bit(obj->key.cls);
	cd->drain_due = true;
	cd->count.expedited++;
}

bool clsw_routes_queued(struct clsw_device *cd)
{
	return READ_ONCE(cd->dirty_bits) & drain_place_bit(TND_CLS_ROUTE);
}

static void drain_release(struct clsw_device *cd, const struct clsw_obj *obj, struct rm_req *req)
{
	clsw_obj_req(cd, obj, req);
	if (obj->key.cls == TND_CLS_NHG)
		req->units = obj->hw_units - obj->left_units;
}

static void drain_members_req(struct clsw_device *cd, const struct clsw_obj *obj, u16 units,
			      struct rm_req *req)
{
	clsw_obj_req(cd, obj, req);
	req->flags |= RM_REQ_MEMBERS;
	req->units = units;
}

/* The command that an object needs next */
static void drain_next_op(struct clsw_device *cd, struct clsw_obj *obj, struct tnd_cmd *cmd)
{
	u32 lease;

	if (obj->unknown || !obj->wanted) {
		obj->op = TND_OP_DELETE;
		cmd->flags = cpu_to_le32(TND_CMD_IDEMPOTENT);
	} else {
		obj->op = obj->written ? TND_OP_UPDATE : TND_OP_CREATE;
		clsw_admit_late(cd, obj);
		/* of an update: for members that come */
		lease = rm_ticket_lease(cd->rm, &obj->ticket);
		if (lease) {
			cmd->flags = cpu_to_le32(TND_CMD_LEASE);
			cmd->lease = cpu_to_le32(lease);
		}
	}
	cmd->op = cpu_to_le16(obj->op);
}

/* 1; -EAGAIN, -ENODEV: not now; -E2BIG and others: never */
static int drain_post_obj(struct clsw_device *cd, struct clsw_obj *obj)
{
	const void *body = obj->body;
	union clsw_body copy;
	struct clsw_open *open;
	struct tnd_cmd cmd;
	bool lacks_target = false, admitted = rm_ticket_open(&obj->ticket);
	struct rm_req req;
	int err;

	/* a replay asks nobody for room: what the chip has no class for gets as far as here */
	if (obj->wanted && !(cd->caps.classes & BIT(obj->key.cls)))
		return -EOPNOTSUPP;
	/* the body goes beside it */
	memset(&cmd, 0, offsetof(struct tnd_cmd, body));
	drain_next_op(cd, obj, &cmd);
	open = clsw_open_get(cd, CLSW_OPEN_WRITE);
	if (!open) {
		err = -EAGAIN;
		goto not_now;
	}
	if (obj->op != TND_OP_DELETE)
		body = clsw_body_of(cd, obj, &copy, &lacks_target);
	cmd.cls = cpu_to_le16(obj->key.cls);
	cmd.cookie = clsw_open_cookie(cd, open);
	cmd.body_size = cpu_to_le32(obj->size);
	err = cd->backend->table->post(cd, CLSW_Q_BULK, &cmd, body);
	if (err) {
		clsw_open_put(cd, open);
		goto not_now;
	}
	cd->count.posted++;
	open->obj = obj;
	list_del_init(&obj->work);
	obj->in_flight = true;
	obj->again = false;
	obj->sent_forced = obj->forced;
	if (obj->key.cls == TND_CLS_ROUTE)
		obj->lacks_target = lacks_target;
	if (obj->key.cls == TND_CLS_NHG && obj->op != TND_OP_DELETE) {
		obj->sent_units = le16_to_cpu(((struct tnd_nhg *)obj->body)->count);
		if (obj->op == TND_OP_UPDATE && obj->sent_units < obj->hw_units) {
			drain_members_req(cd, obj, obj->hw_units - obj->sent_units, &req);
			rm_release_begin(cd->rm, &req);
		}
	}
	if (obj->op == TND_OP_DELETE && obj->written && !obj->unknown) {
		drain_release(cd, obj, &req);
		rm_release_begin(cd->rm, &req);
	}
	return 1;

not_now:
	/* what nobody was told of is asked for when it is its turn again */
	if (!admitted)
		clsw_ticket_cancel(cd, obj);
	return err;
}

int clsw_post_other(struct clsw_device *cd, enum clsw_open_kind kind, struct tnd_cmd *cmd,
		    const void *body, u32 size, u32 tag)
{
	enum clsw_queue q = kind == CLSW_OPEN_RESYNC ? CLSW_Q_BULK : CLSW_Q_SYNC;
	struct clsw_open *open;
	int err;

	lockdep_assert_held(&cd->lock);
	open = clsw_open_get(cd, kind);
	if (!open)
		return -EAGAIN;
	open->tag = tag;
	cmd->cookie = clsw_open_cookie(cd, open);
	cmd->body_size = cpu_to_le32(size);
	err = cd->backend->table->post(cd, q, cmd, body);
	if (err) {
		clsw_open_put(cd, open);
		return err;
	}
	cd->count.posted++;
	cd->backend->table->kick(cd, q);
	return 0;
}

void clsw_tell(struct clsw_device *cd, struct clsw_obj *obj)
{
	bool was = cd->in_callback;

	if (!obj->watch || !obj->watch->changed)
		return;
	cd->in_callback = true;
	obj->watch->changed(cd, obj);
	cd->in_callback = was;
}

static void drain_refused(struct clsw_device *cd, struct clsw_obj *obj, u16 status,
			  const struct rm_verdict *verdict)
{
	obj->state = CLSW_OBJ_FAILED;
	dev_dbg(cd->parent, "op %u of class %u, key %*ph: status %u\n", obj->op,
		obj->key.cls, CLSW_KEY_MAX, obj->key.bytes, status);
	clsw_reason_set(&obj->reason, status, verdict);
	cd->count.refused++;
}

/*
 * A route that was written behind what it names, and that has come to nothing: it
 * traps. An older version of it would go on forwarding.
 */
static bool drain_must_trap(struct clsw_device *cd, struct clsw_obj *obj, u16 status)
{
	if (status != TND_ST_DEPEND || obj->lacks_target || !clsw_target_lacks(cd, obj))
		return false;
	obj->state = obj->written ? CLSW_OBJ_STALE : CLSW_OBJ_NEW;
	obj->again = true;
	cd->count.refused++;
	return true;
}

/*
 * The lease that it came out of is none of the chip's: the manager gives it up, and
 * there may be room without. A chip that says so again and again has had its turns
 */
static bool drain_another_lease(struct clsw_obj *obj, u16 status)
{
	if (status != TND_ST_LEASE || ++obj->rounds >= RM_ADMIT_ROUNDS)
		return false;
	obj->state = obj->written ? CLSW_OBJ_STALE : CLSW_OBJ_NEW;
	obj->again = true;
	return true;
}

/*
 * In a replay the chip has another version of it, from before: the sweep takes what
 * nothing has confirmed. It waits for this one, or is on its way already
 */
static void drain_unconfirmed(struct clsw_device *cd, struct clsw_obj *obj)
{
	if (cd->resync == CLSW_RESYNC_ENDS) {
		obj->written = false;
		obj->hw_units = 0;
		obj->state = CLSW_OBJ_NEW;
	} else if (cd->resync == CLSW_RESYNC_RUNS && !obj->replay) {
		obj->replay = cd->replay;
		cd->replay_left++;
	}
}

static void drain_created(struct clsw_device *cd, struct clsw_obj *obj, const struct tnd_cpl *cpl)
{
	bool admitted = rm_ticket_open(&obj->ticket);
	u16 status = le16_to_cpu(cpl->status);
	struct rm_verdict verdict;
	struct rm_req req;
	int err = 0;

	clsw_obj_req(cd, obj, &req);
	if (obj->key.cls == TND_CLS_NHG)
		req.units = obj->sent_units;
	if (admitted)
		err = rm_settle(cd->rm, &req, &obj->ticket, cpl, &verdict);
	else if (obj->needs_rm)
		/* nothing was admitted for it, as in a replay: what it took counts all the same */
		rm_note(cd->rm, cpl);
	/* ... and what it has not found a lease may hold: that is asked about as usual */
	if (!admitted && !cd->resync &&
	    (status == TND_ST_TABLE_FULL || status == TND_ST_BUCKET_FULL))
		cd->retry = true;
	switch (status) {
	case TND_ST_OK:
		obj->written = true;
		obj->rounds = 0;
		obj->hw_units = obj->sent_units;
		if (!obj->again)
			obj->state = CLSW_OBJ_SYNCED;
		break;
	case TND_ST_EXISTS:
		/* the chip learned it by itself: take it over */
		obj->written = true;
		obj->hw_units = obj->sent_units;
		obj->state = CLSW_OBJ_STALE;
		obj->again = true;
		drain_unconfirmed(cd, obj);
		break;
	default:
		if (drain_must_trap(cd, obj, status) || drain_another_lease(obj, status))
			break;
		drain_refused(cd, obj, status, err == -ENOSPC ? &verdict : NULL);
		break;
	}
}

static void drain_updated(struct clsw_device *cd, struct clsw_obj *obj, const struct tnd_cpl *cpl)
{
	u16 status = le16_to_cpu(cpl->status);
	struct rm_verdict verdict;
	struct rm_req req;
	int err = 0;

	if (obj->key.cls == TND_CLS_NHG) {
		clsw_obj_req(cd, obj, &req);
		req.flags |= RM_REQ_MEMBERS;
		if (rm_ticket_open(&obj->ticket)) {
			req.units = obj->sent_units - obj->hw_units;
			err = rm_settle(cd->rm, &req, &obj->ticket, cpl, &verdict);
		} else if (obj->sent_units < obj->hw_units) {
			req.units = obj->hw_units - obj->sent_units;
			rm_release_done(cd->rm, &req, cpl);
		} else {
			/* nothing was admitted for it: what it took counts all the same */
			rm_note(cd->rm, cpl);
		}
	}
	switch (status) {
	case TND_ST_OK:
		obj->rounds = 0;
		obj->hw_units = obj->sent_units;
		if (!obj->again)
			obj->state = CLSW_OBJ_SYNCED;
		break;
	case TND_ST_NOENT:
		if (clsw_class_fixed(obj->key.cls)) {
			drain_refused(cd, obj, status, NULL);
			break;
		}
		/* aged or swept: it is made anew, with what room there is */
		obj->written = false;
		obj->state = CLSW_OBJ_NEW;
		obj->again = true;
		break;
	default:
		if (drain_must_trap(cd, obj, status) || drain_another_lease(obj, status))
			break;
		drain_refused(cd, obj, status, err == -ENOSPC ? &verdict : NULL);
		break;
	}
}

static void drain_deleted(struct clsw_device *cd, struct clsw_obj *obj, const struct tnd_cpl *cpl)
{
	u16 status = le16_to_cpu(cpl->status);
	bool gone = status == TND_ST_OK || status == TND_ST_NOENT;
	struct rm_req req;

	drain_release(cd, obj, &req);
	if (obj->delete_lost)
		req.flags |= RM_REQ_AGAIN;
	/* what is unknown keeps its slots until it is known to be gone */
	if (gone && obj->unknown && rm_ticket_open(&obj->ticket))
		rm_settle(cd->rm, &req, &obj->ticket, cpl, NULL);
	if (obj->written && (gone || !obj->unknown))
		rm_release_done(cd->rm, &req, cpl);
	if (gone && obj->left_units) {
		drain_members_req(cd, obj, obj->left_units, &req);
		rm_release_done(cd->rm, &req, cpl);
	}
	if (gone) {
		obj->unknown = false;
		obj->delete_lost = false;
		obj->written = false;
		obj->hw_units = 0;
		obj->left_units = 0;
		obj->again = true;
		cd->retry = true;
		return;
	}
	/* wanted again meanwhile, and still there: it needs no room */
	if (!obj->unknown) {
		clsw_ticket_cancel(cd, obj);
		obj->waits = false;
	}
	if (obj->wanted && !obj->unknown) {
		obj->state = CLSW_OBJ_STALE;
		obj->again = true;
		/* who names it has been told that it goes */
		cd->retry = true;
		return;
	}
	/*
	 * Refused: something still refers to it, or the write failed. Again, but
	 * not at once: clsw_drain_look() has a pace. What the chip still refers to
	 * of it may go only with the sweep at a replay's end: that doesn't wait.
	 */
	obj->again = false;
	clsw_replayed(cd, obj);
	list_move_tail(&obj->work, &cd->stuck);
}

static void drain_unstick(struct clsw_device *cd)
{
	struct clsw_obj *obj, *next;
	LIST_HEAD(stuck);

	list_splice_init(&cd->stuck, &stuck);
	list_for_each_entry_safe(obj, next, &stuck, work)
		clsw_drain_queue(cd, obj);
}

/* What nearly every completion is: made as it was wanted, with what was promised */
static bool drain_plainly_created(struct clsw_device *cd, struct clsw_obj *obj,
				  const struct tnd_cpl *cpl)
{
	if (obj->op != TND_OP_CREATE || obj->again || !obj->wanted || obj->lacks_target ||
	    obj->key.cls != TND_CLS_ROUTE || !rm_settle_promised(cd->rm, &obj->ticket, cpl))
		return false;
	obj->written = true;
	obj->rounds = 0;
	obj->state = CLSW_OBJ_SYNCED;
	clsw_tell(cd, obj);
	cd->retry = true;
	if (unlikely(obj->again || !obj->wanted)) {
		obj->again = false;
		clsw_drain_queue(cd, obj);
	}
	return true;
}

static void drain_written(struct clsw_device *cd, struct clsw_obj *obj, const struct tnd_cpl *cpl)
{
	clsw_obj_landed(cd, obj);
	cd->answered = true;
	if (!cpl->status)
		clsw_replayed(cd, obj);
	if (drain_plainly_created(cd, obj, cpl))
		return;
	switch (obj->op) {
	case TND_OP_CREATE:
		drain_created(cd, obj, cpl);
		break;
	case TND_OP_UPDATE:
		drain_updated(cd, obj, cpl);
		break;
	case TND_OP_DELETE:
		drain_deleted(cd, obj, cpl);
		if (obj->again)
			clsw_drain_queue(cd, obj);
		return;
	}
	if (obj->state == CLSW_OBJ_FAILED) {
		/* another version of it is there, not confirmed: the sweep takes it */
		if (cd->resync && obj->replay == cd->replay && !clsw_class_fixed(obj->key.cls)) {
			obj->written = false;
			obj->hw_units = 0;
		}
		clsw_replayed(cd, obj);
	}
	if (obj->wanted && (obj->state == CLSW_OBJ_SYNCED || obj->state == CLSW_OBJ_FAILED)) {
		/* traps in its place until what it refers to can be written */
		if (obj->state == CLSW_OBJ_FAILED || obj->lacks_target)
			drain_set_aside(cd, obj);
		clsw_tell(cd, obj);
		/* what could not be written for want of it may be, now */
		if (obj->state == CLSW_OBJ_SYNCED && (obj->missed || obj->op == TND_OP_CREATE)) {
			obj->missed = false;
			cd->retry = true;
		}
	}
	if (obj->again || !obj->wanted) {
		obj->again = false;
		clsw_drain_queue(cd, obj);
	}
}

void clsw_complete(struct clsw_device *cd, const struct tnd_cpl *cpl)
{
	u64 cookie = le64_to_cpu(cpl->cookie);
	u32 index = lower_32_bits(cookie);
	struct clsw_open *open;
	struct clsw_obj *obj;
	u32 tag;
	u8 kind;

	lockdep_assert_held(&cd->lock);
	if (index >= CLSW_OPEN_MAX)
		return;
	open = &cd->open[index];
	if (!open->used || open->gen != upper_32_bits(cookie))
		return;	/* given up long ago, or never ours */
	obj = open->obj;
	kind = open->kind;
	tag = open->tag;
	clsw_open_put(cd, open);
	cd->count.completed++;
	cd->lost_burst = 0;
	cd->mistrusted = false;
	switch (kind) {
	case CLSW_OPEN_WRITE:
		if (obj)
			drain_written(cd, obj, cpl);
		break;
	case CLSW_OPEN_LEASE:
		cd->answered = true;
		clsw_rm_leased(cd, tag, cookie, cpl);
		break;
	case CLSW_OPEN_RELEASE:
		cd->answered = true;
		clsw_rm_released(cd, tag, cpl);
		break;
	case CLSW_OPEN_LOST:
		cd->answered = true;
		clsw_rm_lost_released(cd, tag, cpl);
		break;
	case CLSW_OPEN_RESYNC:
		clsw_resync_done(cd, cpl);
		break;
	}
	if (!cd->in_flight && wq_has_sleeper(&cd->idle_wait))
		wake_up(&cd->idle_wait);
}
EXPORT_SYMBOL_GPL(clsw_complete);

/* A command that nobody answered: what became of its object is unknown */
static void drain_lose(struct clsw_device *cd, struct clsw_open *open)
{
	struct clsw_obj *obj = open->obj;
	u64 cookie = le64_to_cpu(clsw_open_cookie(cd, open));
	u8 kind = open->kind;
	u32 tag = open->tag;

	clsw_open_put(cd, open);
	cd->count.lost++;
	cd->lost_burst++;
	cd->answered = true;
	if (kind == CLSW_OPEN_LEASE) {
		clsw_rm_leased(cd, tag, cookie, NULL);
		return;
	}
	if (kind == CLSW_OPEN_RELEASE) {
		clsw_rm_released(cd, tag, NULL);
		return;
	}
	if (kind == CLSW_OPEN_LOST) {
		clsw_rm_lost_released(cd, tag, NULL);
		return;
	}
	/* asked once more: nothing is written until the sweep is over */
	if (kind == CLSW_OPEN_RESYNC && cd->resync == CLSW_RESYNC_ENDS)
		cd->resync = CLSW_RESYNC_RUNS;
	if (!obj)
		return;
	clsw_obj_landed(cd, obj);
	obj->delete_lost |= obj->op == TND_OP_DELETE;
	if (obj->op == TND_OP_DELETE && obj->written && !obj->unknown) {
		struct rm_req req;

		drain_release(cd, obj, &req);
		rm_release_done(cd->rm, &req, NULL);
	} else {
		if (rm_ticket_open(&obj->ticket))
			rm_set_unknown(cd->rm, &obj->ticket);
		/* members that an update has taken away go with the delete that follows */
		if (obj->key.cls == TND_CLS_NHG && obj->op == TND_OP_UPDATE &&
		    obj->sent_units < obj->hw_units)
			obj->left_units = obj->hw_units - obj->sent_units;
		/* it is deleted and made anew: in flight until that is answered */
		if (obj->op == TND_OP_UPDATE && obj->written && !obj->unknown &&
		    !clsw_class_fixed(obj->key.cls)) {
			struct rm_req req;

			drain_release(cd, obj, &req);
			rm_release_begin(cd->rm, &req);
		}
	}
	if (!clsw_class_fixed(obj->key.cls))
		obj->unknown = true;
	if (obj->wanted)
		obj->state = CLSW_OBJ_UNKNOWN;
	clsw_drain_queue(cd, obj);
}

static void drain_look_for_lost(struct clsw_device *cd)
{
	unsigned long limit = msecs_to_jiffies(CLSW_LOST_MS);
	struct clsw_open *open;

	if (!cd->in_flight)
		return;
	for (open = cd->open; open < cd->open + CLSW_OPEN_MAX; open++)
		if (open->used && !time_before(jiffies, open->since + limit))
			drain_lose(cd, open);
	if (cd->lost_burst >= LOST_BURST)
		clsw_trouble(cd, "commands get no answer");
}

/* Something that may name one of them is on its way, and goes itself when that is answered */
static bool drain_is_named(const struct clsw_device *cd, u8 cls)
{
	unsigned long by = clsw_classes[cls].named_by;

	for (; by; by &= by - 1)
		if (cd->departing[__ffs(by)])
			return true;
	return false;
}

static struct clsw_obj *drain_next_dirty(struct clsw_device *cd)
{
	unsigned long bits = cd->dirty_bits;
	struct list_head *list;
	unsigned int at;

	for (; bits; bits &= bits - 1) {
		at = __ffs(bits);
		/* a port's entries for all VLANs and for one exclude each other */
		list = &cd->going[TND_CLS_VLAN_MEMBER];
		if (clsw_order[at] == TND_CLS_VLAN_MEMBER && !list_empty(list))
			return list_first_entry(list, struct clsw_obj, work);
		list = &cd->dirty[clsw_order[at]];
		if (!list_empty(list))
			return list_first_entry(list, struct clsw_obj, work);
		if (list_empty(&cd->going[clsw_order[at]]))
			cd->dirty_bits &= ~BIT(at);
	}
	for (bits = cd->dirty_bits; bits; bits &= ~BIT(at)) {
		at = __fls(bits);
		list = &cd->going[clsw_order[at]];
		if (list_empty(list))
			cd->dirty_bits &= ~BIT(at);
		else if (!drain_is_named(cd, clsw_order[at]))
			return list_first_entry(list, struct clsw_obj, work);
	}
	return NULL;
}

/* The backend will never take it: as if the chip had refused it, and others have their turn */
static void drain_unpostable(struct clsw_device *cd, struct clsw_obj *obj, int err)
{
	clsw_ticket_cancel(cd, obj);
	clsw_replayed(cd, obj);
	if (!obj->wanted || obj->unknown) {
		/* a delete: it stays in hardware until somebody takes it */
		list_move_tail(&obj->work, &cd->stuck);
		return;
	}
	drain_refused(cd, obj, err == -E2BIG ? CLSW_ST_TOO_LONG :
			 err == -EOPNOTSUPP ? TND_ST_UNSUPPORTED : TND_ST_INVALID, NULL);
	drain_set_aside(cd, obj);
	clsw_tell(cd, obj);
}

/* How many were posted, at most @budget; negative: something is left that can't be now */
static int drain_post_dirty(struct clsw_device *cd, int budget)
{
	struct clsw_obj *obj;
	int posted = 0, err = 0;

	/* from the end of a replay until everything is counted nothing is written: see replay.c */
	if (cd->resync > CLSW_RESYNC_RUNS)
		return 0;
	while (posted < budget && cd->in_flight < WINDOW) {
		obj = drain_next_dirty(cd);
		if (!obj)
			break;
		err = drain_post_obj(cd, obj);
		if (err == -EAGAIN || err == -ENODEV)
			break;
		if (err < 0) {
			drain_unpostable(cd, obj, err);
			budget--;
			continue;
		}
		posted++;
	}
	if (posted)
		cd->backend->table->kick(cd, CLSW_Q_BULK);
	return posted ?: err;
}

/*
 * Whoever queued something posts it: waking the thread for every route costs
 * more than the route. The thread takes over what is too much.
 */
void clsw_drain_inline(struct clsw_device *cd)
{
	int posted;

	cd->drain_due = false;
	if (!cd->drainer)
		return;
	if (!clsw_up(cd) || cd->resync) {
		clsw_drain_kick(cd);
		return;
	}
	/* in bunches: the thread does the rest when it looks */
	if (cd->in_flight >= REAP_AT)
		cd->backend->table->reap(cd, CLSW_Q_BULK, REAP_AT);
	posted = drain_post_dirty(cd, INLINE);
	if (posted > 0)
		cd->posted_inline += posted;
	/* a completion's watchers may have queued more */
	cd->drain_due = false;
	if ((cd->dirty_bits && cd->in_flight < WINDOW) ||
	    (cd->retry && !clsw_round_empty(&cd->failed)) || !clsw_round_empty(&cd->waiting))
		clsw_drain_kick(cd);
}

int clsw_drain_turn(struct clsw_device *cd)
{
	const struct clsw_table_ops *table = cd->backend->table;
	int done, posted = 0;

	lockdep_assert_held(&cd->lock);
	if (!clsw_up(cd))
		return 0;
	done = table->reap(cd, CLSW_Q_SYNC, REAP);
	done += table->reap(cd, CLSW_Q_BULK, REAP);
	done += clsw_resync_turn(cd);
	done += clsw_retry_failed(cd);
	if (!cd->resync)
		done += clsw_rm_refill(cd);
	done += clsw_admit_waiting(cd);
	cd->drain_due = false;
	posted = max(drain_post_dirty(cd, BURST), 0);
	return done + posted;
}

bool clsw_drain_quiet(struct clsw_device *cd)
{
	return !cd->in_flight && !drain_next_dirty(cd);
}

bool clsw_drain_settled(struct clsw_device *cd)
{
	return clsw_drain_quiet(cd) && clsw_round_empty(&cd->waiting);
}

void clsw_drain_look(struct clsw_device *cd)
{
	drain_look_for_lost(cd);
	drain_unstick(cd);
	clsw_retry_faulted(cd);
}
