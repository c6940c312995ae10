// SPDX-License-Identifier: GPL-2.0
/*
 * Is there room for an object, and when is that asked again?
 *
 *   put, a veto is owed   yes: dirty; no: refused
 *                         what is out decides: flush, ask again
 *   put, MUST             yes: dirty; no: FAILED
 *                         what is out decides: waiting; the drainer asks again
 *   FAILED                asked again when something was freed
 *
 * Who is owed no veto waits for nothing: his caller may be a timer. And nothing
 * that the drainer does here waits, so a flush that is under way in a caller
 * never meets itself.
 */
#include "core.h"

/* Objects that are asked for again in one turn */
#define AGAIN_MOST	64

static void refused(struct clsw_obj *obj, int err, const struct rm_verdict *verdict)
{
	if (err == -ENOSPC)
		clsw_reason_set(&obj->reason,
				verdict->bucket ? TND_ST_BUCKET_FULL : TND_ST_TABLE_FULL, verdict);
	else
		clsw_reason_set(&obj->reason,
				err == -EINVAL ? TND_ST_INVALID : CLSW_ST_SILENT, NULL);
}

/* -EAGAIN: for those who are owed no veto, it can't be decided on yet */
static int ask(struct clsw_device *cd, struct clsw_obj *obj, const struct rm_req *req,
	       struct rm_verdict *verdict)
{
	bool was = obj->pinned;
	int err;

	/*
	 * A flush may complete what is out for this very object, and must not find
	 * it in a list: it would post it undecided, or wait for it for ever. Every
	 * put ends in clsw_drain_queue(), which puts it back.
	 */
	if (!(req->flags & RM_REQ_BEST_EFFORT))
		list_del_init(&obj->work);
	obj->pinned = true;
	err = clsw_rm_admit(cd, req, &obj->ticket, verdict, !(req->flags & RM_REQ_BEST_EFFORT));
	obj->pinned = was;
	if (err && err != -EAGAIN)
		refused(obj, err, verdict);
	return err;
}

int clsw_admit(struct clsw_device *cd, struct clsw_obj *obj, struct rm_verdict *verdict)
{
	struct rm_req req;
	int err;

	verdict->sync = false;
	obj->waits = false;
	obj->rounds = 0;
	/* in a replay room is taken when it is written: nobody is told no */
	if (!obj->needs_rm || rm_ticket_open(&obj->ticket) || cd->resync)
		return 0;
	clsw_obj_req(cd, obj, &req);
	err = ask(cd, obj, &req, verdict);
	obj->waits = err == -EAGAIN;
	return obj->waits ? 0 : err;
}

int clsw_admit_as(struct clsw_device *cd, struct clsw_obj *obj, const void *body,
		  struct rm_verdict *verdict)
{
	struct tnd_nhg *nhg = (struct tnd_nhg *)obj->body;
	bool group = obj->key.cls == TND_CLS_NHG;
	__le16 was = 0;
	int err;

	if (group) {
		was = nhg->count;
		nhg->count = ((const struct tnd_nhg *)body)->count;
	}
	err = clsw_admit(cd, obj, verdict);
	if (group)
		nhg->count = was;
	return err;
}

int clsw_admit_growth(struct clsw_device *cd, struct clsw_obj *obj, const void *body,
		      struct rm_verdict *verdict)
{
	int more = le16_to_cpu(((const struct tnd_nhg *)body)->count);
	bool queued = !obj->written && !obj->in_flight;
	struct rm_verdict again;
	struct rm_req req;
	int err;

	clsw_obj_req(cd, obj, &req);
	/*
	 * Admitted, not posted yet: its ticket is for the members that it has now. In
	 * doubt, its delete goes first: what it needs then is asked for then
	 */
	if (queued && (obj->doubt || more <= req.units))
		return 0;
	if (queued && req.flags & RM_REQ_BEST_EFFORT) {
		clsw_ticket_cancel(cd, obj);
		err = clsw_admit_as(cd, obj, body, verdict);
		/* nothing was waited for: what it had is still there */
		if (err && !(obj->flags & CLSW_PUT_MUST))
			clsw_admit(cd, obj, &again);
		return err;
	}
	if (obj->in_flight || queued) {
		/* what it will have then is known then: see next_op() */
		if (req.flags & RM_REQ_BEST_EFFORT)
			return 0;
		obj->pinned = true;
		err = clsw_flush_obj(cd, obj);
		obj->pinned = false;
		if (err)
			return err;
	}
	/* it came to nothing: all of it needs room, with the members that it shall have */
	if (!obj->written)
		return clsw_admit_as(cd, obj, body, verdict);
	req.flags |= RM_REQ_MEMBERS;
	if (rm_ticket_open(&obj->ticket)) {
		req.units = obj->sent_units;
		rm_cancel(cd->rm, &req, &obj->ticket);
	}
	more -= obj->hw_units;
	if (more <= 0)
		return 0;
	req.units = more;
	err = ask(cd, obj, &req, verdict);
	obj->sent_units = err ? 0 : more;
	/* the chip decides when it is written */
	return err == -EAGAIN ? 0 : err;
}

void clsw_admit_late(struct clsw_device *cd, struct clsw_obj *obj)
{
	struct rm_verdict verdict;
	struct rm_req req;

	if (!obj->needs_rm || rm_ticket_open(&obj->ticket))
		return;
	clsw_obj_req(cd, obj, &req);
	req.flags |= RM_REQ_BEST_EFFORT;
	if (obj->op == TND_OP_UPDATE) {
		if (obj->key.cls != TND_CLS_NHG || req.units <= obj->hw_units)
			return;
		req.flags |= RM_REQ_MEMBERS;
		req.units -= obj->hw_units;
	}
	/* whatever it says: it is written, and the chip decides */
	rm_admit(cd->rm, &req, &obj->ticket, &verdict);
}

void clsw_ticket_cancel(struct clsw_device *cd, struct clsw_obj *obj)
{
	struct rm_req req;

	if (!rm_ticket_open(&obj->ticket))
		return;
	clsw_obj_req(cd, obj, &req);
	rm_cancel(cd->rm, &req, &obj->ticket);
}

/* Moves at most @most of @list to @to, in order: whoever admits may change the list */
static void take(struct list_head *list, struct list_head *to, int most)
{
	while (most-- && !list_empty(list))
		list_move_tail(list->next, to);
}

void clsw_retry_failed(struct clsw_device *cd)
{
	struct rm_verdict verdict;
	struct clsw_obj *obj;
	struct rm_req req;
	LIST_HEAD(these);
	int err;

	/* oldest first; the rest has its turn at the next chance */
	take(&cd->failed, &these, AGAIN_MOST);
	while (!list_empty(&these)) {
		obj = list_first_entry(&these, struct clsw_obj, work);
		list_move_tail(&obj->work, &cd->failed);
		if (obj->pinned)
			continue;
		obj->flags |= CLSW_PUT_MUST;
		if (!obj->written && !cd->resync && obj->needs_rm &&
		    !rm_ticket_open(&obj->ticket)) {
			clsw_obj_req(cd, obj, &req);
			err = ask(cd, obj, &req, &verdict);
			if (err)
				continue;
		}
		obj->state = obj->written ? CLSW_OBJ_STALE : CLSW_OBJ_NEW;
		clsw_drain_queue(cd, obj);
	}
}

void clsw_admit_waiting(struct clsw_device *cd)
{
	bool quiet = clsw_drain_quiet(cd);
	struct rm_verdict verdict;
	struct clsw_obj *obj;
	struct rm_req req;
	LIST_HEAD(these);
	int err;

	if (list_empty(&cd->waiting) || (!cd->news && !quiet))
		return;
	cd->news = false;
	take(&cd->waiting, &these, AGAIN_MOST);
	while (!list_empty(&these)) {
		obj = list_first_entry(&these, struct clsw_obj, work);
		list_move_tail(&obj->work, &cd->waiting);
		if (obj->pinned)
			continue;
		err = 0;
		if (!cd->resync && !obj->written && !rm_ticket_open(&obj->ticket)) {
			clsw_obj_req(cd, obj, &req);
			err = ask(cd, obj, &req, &verdict);
		}
		/* nothing is out that could still decide, again and again: there is no room */
		if (err == -EAGAIN && quiet && ++obj->rounds >= RM_ADMIT_ROUNDS) {
			verdict = (struct rm_verdict){ .result = RM_FULL };
			err = -ENOSPC;
			refused(obj, err, &verdict);
		}
		if (err == -EAGAIN)
			continue;
		obj->waits = false;
		if (err)
			obj->state = CLSW_OBJ_FAILED;
		clsw_drain_queue(cd, obj);
		if (err)
			clsw_tell(cd, obj);
	}
}
