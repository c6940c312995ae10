// SPDX-License-Identifier: GPL-2.0
/*
 * Is there room for an object, and when is that asked again?
 *
 *   put, a veto is owed   yes: dirty; no: refused
 *                         what is out decides: flush, ask again; that takes too
 *                         long: deferred, from here on as a put with MUST
 *   put, NOWAIT           yes: dirty; no, or what is out decides: refused
 *                         (a group that stands and grows: written, the chip decides)
 *   put, MUST             yes: dirty; no: FAILED
 *                         what is out decides: waiting; the drainer asks again
 *   FAILED                asked again when something was freed, as a put with MUST
 *
 * Who is owed no veto waits for nothing: his caller may be a timer. And nothing
 * that the drainer does here waits, so a flush that is under way in a caller
 * never meets itself.
 */
#include "core.h"

/* Objects that are asked for again in one turn */
#define AGAIN_MOST	64

static void admit_refused(struct clsw_obj *obj, int err, const struct rm_verdict *verdict)
{
	if (err == -ENOSPC)
		clsw_reason_set(&obj->reason,
				verdict->bucket ? TND_ST_BUCKET_FULL : TND_ST_TABLE_FULL, verdict);
	else
		clsw_reason_set(&obj->reason,
				err == -EINVAL ? TND_ST_INVALID : CLSW_ST_SILENT, NULL);
}

/* -EAGAIN: for those who are owed no veto, it can't be decided on yet */
static int admit_ask(struct clsw_device *cd, struct clsw_obj *obj, const struct rm_req *req,
		     struct rm_verdict *verdict)
{
	bool was = obj->pinned;
	int err;

	if (!(cd->caps.classes & BIT(obj->key.cls))) {
		clsw_reason_set(&obj->reason, TND_ST_UNSUPPORTED, NULL);
		return -EOPNOTSUPP;
	}
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
		admit_refused(obj, err, verdict);
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
	err = admit_ask(cd, obj, &req, verdict);
	if (obj->flags & CLSW_PUT_NOWAIT || err != -EAGAIN)
		return err;
	obj->flags |= CLSW_PUT_MUST;
	obj->waits = true;
	return 0;
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

	/* as in clsw_admit(): what is asked for before the pools are counted keeps them from it */
	if (cd->resync)
		return 0;
	clsw_obj_req(cd, obj, &req);
	/*
	 * Admitted, not posted yet: its ticket is for the members that it has now. If
	 * its state is unknown its delete goes first: what it needs then is asked for then
	 */
	if (queued && (obj->unknown || more <= req.units))
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
		/* what it will have then is known then: see drain_next_op() */
		if (req.flags & RM_REQ_BEST_EFFORT)
			return 0;
		obj->pinned = true;
		err = clsw_flush_obj(cd, obj);
		obj->pinned = false;
		if (err == -EAGAIN) {
			obj->flags |= CLSW_PUT_MUST;
			/* its ticket is for fewer */
			if (!obj->in_flight && !obj->written && !obj->unknown) {
				clsw_ticket_cancel(cd, obj);
				obj->waits = true;
			}
			return 0;
		}
		if (err) {
			admit_refused(obj, -EIO, verdict);
			return -EIO;
		}
	}
	/* it came to nothing: all of it needs room, with the members that it shall have */
	if (!obj->written)
		return clsw_admit_as(cd, obj, body, verdict);
	req.flags |= RM_REQ_MEMBERS;
	if (rm_ticket_open(&obj->ticket)) {
		req.units = obj->sent_units;
		rm_cancel(cd->rm, &req, &obj->ticket);
	}
	req.units = more;
	more -= obj->hw_units;
	if (more <= 0)
		return 0;
	if (rm_too_large(cd->rm, &req, verdict)) {
		admit_refused(obj, -ENOSPC, verdict);
		return -ENOSPC;
	}
	req.units = more;
	err = admit_ask(cd, obj, &req, verdict);
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

/* A round begins; who has not had his turn in the last one goes first */
static void admit_begin(struct clsw_round *round)
{
	list_splice_tail_init(&round->rest, &round->next);
}

/* Whose turn it is, or NULL; it has had its turn then. Whoever admits may change the lists */
static struct clsw_obj *admit_turn(struct clsw_round *round)
{
	struct clsw_obj *obj = list_first_entry_or_null(&round->next, struct clsw_obj, work);

	if (obj)
		list_move_tail(&obj->work, &round->rest);
	return obj;
}

/* True: it has found room. Else it has none, or waits, or needs none and is written */
static bool admit_retry(struct clsw_device *cd, struct clsw_obj *obj)
{
	bool room = false;
	struct rm_verdict verdict;
	struct rm_req req;
	int err;

	/* what it would be written as is there */
	if (obj->state == CLSW_OBJ_SYNCED && clsw_target_lacks(cd, obj))
		return false;
	obj->flags |= CLSW_PUT_MUST;
	if (!obj->written && !cd->resync && obj->needs_rm && !rm_ticket_open(&obj->ticket)) {
		clsw_obj_req(cd, obj, &req);
		err = admit_ask(cd, obj, &req, &verdict);
		if (err && err != -EAGAIN) {
			/* among those who wait for what stopped it now, and not what did before */
			clsw_drain_queue(cd, obj);
			return false;
		}
		room = !err;
		obj->waits = !room;
		obj->rounds = 0;
	}
	obj->state = obj->written ? CLSW_OBJ_STALE : CLSW_OBJ_NEW;
	clsw_drain_queue(cd, obj);
	return room;
}

/* Oldest first; the rest has its turn in the drainer's next ones */
static int admit_round(struct clsw_device *cd, struct clsw_round *round)
{
	struct clsw_obj *obj;
	int n, found = 0;

	for (n = 0; n < AGAIN_MOST; n++) {
		obj = admit_turn(round);
		if (!obj)
			break;
		if (!obj->pinned)
			found += admit_retry(cd, obj);
	}
	return found;
}

int clsw_retry_failed(struct clsw_device *cd)
{
	if (cd->retry) {
		cd->retry = false;
		admit_begin(&cd->failed);
	}
	return admit_round(cd, &cd->failed) + admit_round(cd, &cd->faulted);
}

void clsw_retry_faulted(struct clsw_device *cd)
{
	admit_begin(&cd->faulted);
}

/* True: it waits no more, there is room or there is none */
static bool admit_decide(struct clsw_device *cd, struct clsw_obj *obj, bool quiet)
{
	struct rm_verdict verdict;
	struct rm_req req;
	int err = 0;

	if (!cd->resync && !obj->written && !rm_ticket_open(&obj->ticket)) {
		/* whoever has put the same once more was told yes */
		obj->flags |= CLSW_PUT_MUST;
		clsw_obj_req(cd, obj, &req);
		err = admit_ask(cd, obj, &req, &verdict);
	}
	/* nothing is out that could still decide, again and again: there is no room */
	if (err == -EAGAIN && quiet && ++obj->rounds >= RM_ADMIT_ROUNDS) {
		verdict = (struct rm_verdict){ .result = RM_FULL };
		err = -ENOSPC;
		admit_refused(obj, err, &verdict);
	}
	if (err == -EAGAIN)
		return false;
	obj->waits = false;
	if (err)
		obj->state = CLSW_OBJ_FAILED;
	clsw_drain_queue(cd, obj);
	if (err)
		clsw_tell(cd, obj);
	return true;
}

int clsw_admit_waiting(struct clsw_device *cd)
{
	struct clsw_obj *obj;
	int n, decided = 0;
	bool quiet;

	if (clsw_round_empty(&cd->waiting))
		return 0;
	quiet = clsw_drain_quiet(cd);
	if (list_empty(&cd->waiting.next) && (cd->answered || quiet)) {
		cd->answered = false;
		admit_begin(&cd->waiting);
	}
	for (n = 0; n < AGAIN_MOST; n++) {
		obj = admit_turn(&cd->waiting);
		if (!obj)
			break;
		if (!obj->pinned)
			decided += admit_decide(cd, obj, quiet);
	}
	return decided;
}
