// SPDX-License-Identifier: GPL-2.0
/*
 * Queues and the firmware's time: which command when, for how long.
 *
 *   post      head++        the command lies in memory
 *   kick      seen = head   the chip can see it, from this instant on
 *   advance   done++        what is due by now is executed, at its due time
 *   reap      tail++        its completion goes to clsw
 *
 * A unit that becomes free at T begins the first of SYNC, the reader, BULK
 * that it can see at T; else what it sees first. advance() is called before
 * anything new becomes visible, so this decides as a machine would that runs
 * all the time.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "null.h"

/* How long ->read waits: longer than any fault that is not one of the chip's end */
#define READ_NS		(2ULL * NSEC_PER_SEC)
/* ... and how long it sleeps at most without looking again */
#define READ_NAP_NS	(10ULL * NSEC_PER_MSEC)

static bool null_is_write(u16 op)
{
	return op == TND_OP_CREATE || op == TND_OP_UPDATE || op == TND_OP_DELETE ||
	       op == TND_OP_SET_TRAP;
}

static u64 null_cost_ns(u16 op)
{
	if (null_is_write(op))
		return null_write_ns;
	/* nobody waits for a release, and it reads nothing: a posted write */
	return op == TND_OP_NOP || op == TND_OP_RELEASE ? 0 : null_query_ns;
}

static struct null_slot *null_slot_at(struct null_queue *q, u32 index)
{
	return &q->slot[index & q->mask];
}

/* Can be changed at any time */
static u32 null_batch_limit(void)
{
	return max(READ_ONCE(null_write_batch), 1U);
}

static u32 null_units(void)
{
	return null_parallel ? CLSW_Q_COUNT : 1;
}

/* -------------------------------------------------------------------------
 * Beginning
 */
static u64 null_begin_slot(struct null_chip *n, struct null_slot *s)
{
	u64 extra = 0;

	s->silent = false;
	s->fault = NULL_FAULT_NONE;
	if (n->faults)
		s->fault = null_fault(n, le16_to_cpu(s->cmd.op), le16_to_cpu(s->cmd.cls), &extra);
	return null_cost_ns(le16_to_cpu(s->cmd.op)) + extra;
}

/* Writes that are taken together: those the chip can see when it begins */
static u64 null_begin_bulk(struct null_chip *n, struct null_unit *u, u64 start)
{
	struct null_queue *q = &n->queue[CLSW_Q_BULK];
	struct null_slot *s = null_slot_at(q, q->done);
	u64 cost = null_begin_slot(n, s);

	n->timing.depth = max(n->timing.depth, q->seen - q->done);
	u->batch = 1;
	if (!null_is_write(le16_to_cpu(s->cmd.op)))
		return cost;
	n->timing.batches++;
	while (u->batch < null_batch_limit() && q->done + u->batch != q->seen) {
		u64 one;

		s = null_slot_at(q, q->done + u->batch);
		if (s->at > start || !null_is_write(le16_to_cpu(s->cmd.op)))
			break;
		one = null_begin_slot(n, s);
		cost += null_entry_ns + (one - null_write_ns);
		u->batch++;
	}
	return cost;
}

static bool null_pick(struct null_chip *n, u32 index)
{
	struct null_unit *u = &n->unit[index];
	struct null_queue *sync = &n->queue[CLSW_Q_SYNC], *bulk = &n->queue[CLSW_Q_BULK];
	bool all = !null_parallel;
	u64 at = U64_MAX, cost, start;
	u8 what = NULL_IDLE;
	struct null_slot *s;

	if (!n->attached)
		return false;
	if (all || index == CLSW_Q_SYNC) {
		if (sync->done != sync->seen) {
			what = NULL_DO_SYNC;
			at = null_slot_at(sync, sync->done)->at;
		}
		if (n->reader.pending && !n->reader.done && max(n->reader.at, u->free_at) <
		    max(at, u->free_at)) {
			what = NULL_DO_READ;
			at = n->reader.at;
		}
	}
	if ((all || index == CLSW_Q_BULK) && bulk->done != bulk->seen) {
		u64 bulk_at = null_slot_at(bulk, bulk->done)->at;

		if (what == NULL_IDLE || max(bulk_at, u->free_at) < max(at, u->free_at)) {
			what = NULL_DO_BULK;
			at = bulk_at;
		}
	}
	if (what == NULL_IDLE)
		return false;
	start = max(at, u->free_at);
	u->what = what;
	u->batch = 1;
	switch (what) {
	case NULL_DO_SYNC:
		s = null_slot_at(sync, sync->done);
		cost = null_begin_slot(n, s);
		break;
	case NULL_DO_BULK:
		cost = null_begin_bulk(n, u, start);
		s = null_slot_at(bulk, bulk->done);
		break;
	default:
		cost = null_cost_ns(le16_to_cpu(n->reader.cmd->op));
		s = NULL;
	}
	if (s && s->fault == NULL_FAULT_HANG) {
		u->what = NULL_STOPPED;
		return false;
	}
	u->due = start + cost;
	n->timing.busy_ns += cost;
	return true;
}

/* -------------------------------------------------------------------------
 * Ending
 */
static void null_free_body(struct null_chip *n, struct null_slot *s)
{
	if (s->long_body)
		n->long_free[n->long_count++] = s->long_body;
	s->long_body = NULL;
}

static void null_count(struct null_chip *n, const struct tnd_cmd *cmd, const u8 *body,
		       const struct tnd_cpl *cpl, u64 at)
{
	if (cpl->status) {
		n->timing.refused++;
		n->timing.refused_op = le16_to_cpu(cmd->op);
		n->timing.refused_cls = le16_to_cpu(cmd->cls);
		n->timing.refused_status = le16_to_cpu(cpl->status);
	}
	if (!null_is_write(le16_to_cpu(cmd->op))) {
		n->timing.queries++;
		return;
	}
	n->timing.writes++;
	if (cmd->cls == cpu_to_le16(TND_CLS_ROUTE) && cpl->status == cpu_to_le16(TND_ST_OK) &&
	    cmd->op != cpu_to_le16(TND_OP_DELETE))
		null_note_route(n, (const struct tnd_route *)body, at);
}

/* False: the command goes on for another slice */
static bool null_finish_slot(struct null_chip *n, struct null_queue *q, u64 at)
{
	struct null_slot *s = null_slot_at(q, q->done);
	const u8 *body = s->long_body ?: s->cmd.body;

	null_unhold(n, &s->held);
	s->held.count = 0;
	if (!null_execute(n, &s->cmd, body, NULL, 0, s->fault, &s->cpl))
		return false;
	s->cpl.cost_ns = cpu_to_le64(null_cost_ns(le16_to_cpu(s->cmd.op)));
	null_count(n, &s->cmd, body, &s->cpl, at);
	null_free_body(n, s);
	if (s->fault == NULL_FAULT_DROP)
		s->silent = true;
	if (s->fault == NULL_FAULT_VANISH)
		n->vanished = true;
	q->done++;
	if (s->fault == NULL_FAULT_RESET || s->fault == NULL_FAULT_VANISH)
		null_fail(n, s->fault == NULL_FAULT_RESET ? "the chip reset itself" :
			  "the chip is gone");
	return true;
}

static void null_finish(struct null_chip *n, struct null_unit *u)
{
	u64 began = null_measure ? ktime_get_ns() : 0;
	struct null_reader *r = &n->reader;
	struct null_queue *q;
	bool done = true;
	u32 i;

	if (u->what == NULL_DO_READ) {
		if (r->pending && !r->done) {
			done = null_execute(n, r->cmd, r->body, r->out, r->out_size,
					    NULL_FAULT_NONE, r->cpl);
			r->done = done;
			r->cpl->cost_ns = cpu_to_le64(null_cost_ns(le16_to_cpu(r->cmd->op)));
			n->timing.queries += done;
		}
	} else {
		q = &n->queue[u->what == NULL_DO_SYNC ? CLSW_Q_SYNC : CLSW_Q_BULK];
		for (i = 0; i < u->batch && n->attached && done; i++)
			done = null_finish_slot(n, q, u->due);
	}
	if (null_measure)
		n->timing.model_ns += ktime_get_ns() - began;
	if (!done) {
		u->due += null_query_ns;
		n->timing.busy_ns += null_query_ns;
		return;
	}
	if (u->what != NULL_STOPPED)
		u->what = NULL_IDLE;
	u->free_at = u->due;
}

/* The unit has begun with something that takes longer than until @now */
static bool null_runs(const struct null_unit *u, u64 now)
{
	return u->what != NULL_IDLE && u->what != NULL_STOPPED && u->due > now;
}

void null_advance(struct null_chip *n, u64 now)
{
	if (!null_parallel && null_runs(&n->unit[0], now))
		return;
	for (;;) {
		struct null_unit *next = NULL;
		u32 i;

		for (i = 0; i < null_units(); i++) {
			struct null_unit *u = &n->unit[i];

			if (u->what == NULL_STOPPED || (u->what == NULL_IDLE && !null_pick(n, i)))
				continue;
			if (!next || u->due < next->due)
				next = u;
		}
		if (!next || next->due > now)
			return;
		null_finish(n, next);
	}
}

u64 null_next_due(const struct null_chip *n)
{
	u64 due = U64_MAX;
	u32 i;

	for (i = 0; i < null_units(); i++) {
		if (n->unit[i].what != NULL_IDLE && n->unit[i].what != NULL_STOPPED)
			due = min(due, n->unit[i].due);
	}
	return due;
}

/* -------------------------------------------------------------------------
 * The interrupt
 */
static enum hrtimer_restart null_timer_fires(struct hrtimer *t)
{
	struct null_chip *n = container_of(t, struct null_chip, timer);

	if (test_and_clear_bit(0, &n->irq_wanted)) {
		n->timing.irqs++;
		clsw_wake(n->cd);
	}
	return HRTIMER_NORESTART;
}

/*
 * When the interrupt comes: at a completion of SYNC; for BULK null_irq_ns after
 * the first one. A question behind a write that runs: when it will be answered.
 */
static u64 null_irq_at(const struct null_chip *n)
{
	const struct null_queue *sync = &n->queue[CLSW_Q_SYNC];
	u64 due = null_next_due(n);

	if (due == U64_MAX || null_parallel || n->unit[0].what != NULL_DO_BULK)
		return due;
	return due + (sync->done != sync->seen ? null_query_ns : null_irq_ns);
}

static void null_arm(struct null_chip *n)
{
	u64 at;

	if (!test_bit(0, &n->irq_wanted))
		return;
	at = null_irq_at(n);
	if (at == U64_MAX)
		return;
	if (hrtimer_active(&n->timer) && ktime_to_ns(hrtimer_get_expires(&n->timer)) <= at)
		return;
	hrtimer_start(&n->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_HARD);
}

bool null_want_irq(struct null_chip *n)
{
	u32 i;

	null_advance(n, ktime_get_ns());
	for (i = 0; i < CLSW_Q_COUNT; i++) {
		if (n->queue[i].tail != n->queue[i].done)
			return true;
	}
	set_bit(0, &n->irq_wanted);
	null_arm(n);
	return false;
}

/* -------------------------------------------------------------------------
 * Posting, reaping
 */
int null_post(struct null_chip *n, enum clsw_queue which, const struct tnd_cmd *cmd,
	      const void *body)
{
	struct null_queue *q = &n->queue[which];
	u32 len = le32_to_cpu(cmd->body_size);
	struct null_slot *s;

	if (!n->attached)
		return -ENODEV;
	if (len > NULL_BODY_MAX)
		return -E2BIG;
	if (q->head - q->tail > q->mask)
		return -EAGAIN;
	s = null_slot_at(q, q->head);
	s->long_body = NULL;
	if (len > TND_BODY_INLINE) {
		if (!n->long_count)
			return -EAGAIN;
		s->long_body = n->long_free[--n->long_count];
		memcpy(s->long_body, body, len);
	}
	memcpy(&s->cmd, cmd, offsetof(struct tnd_cmd, body));
	if (!s->long_body)
		memcpy(s->cmd.body, body, len);
	s->cmd.seq = cpu_to_le32(n->seq[which]++);
	s->cmd.epoch = cpu_to_le32(n->epoch);
	s->held.count = 0;
	null_hold(n, &s->cmd, s->long_body ?: s->cmd.body, &s->held);
	q->head++;
	return 0;
}

void null_kick(struct null_chip *n, enum clsw_queue which)
{
	struct null_queue *q = &n->queue[which];
	u64 now = ktime_get_ns();

	null_advance(n, now);
	while (q->seen != q->head)
		null_slot_at(q, q->seen++)->at = now;
	if (!test_bit(0, &n->irq_wanted))
		return;
	/* what begins now decides when the interrupt comes; else whoever looks next finds it so */
	null_advance(n, now);
	null_arm(n);
}

int null_reap(struct null_chip *n, enum clsw_queue which, int budget)
{
	struct null_queue *q = &n->queue[which];
	int reaped = 0;

	null_advance(n, ktime_get_ns());
	while (reaped < budget && q->tail != q->done) {
		struct null_slot *s = null_slot_at(q, q->tail);

		/* its place is taken again only when tail has passed it */
		if (!s->silent) {
			clsw_complete(n->cd, &s->cpl);
			reaped++;
		}
		q->tail++;
	}
	return reaped;
}

int null_read(struct null_chip *n, const struct tnd_cmd *cmd, const void *body, void *out,
	      u32 out_size, struct tnd_cpl *cpl)
{
	struct null_reader *r = &n->reader;
	u64 now, until;
	int err = 0;

	mutex_lock(&n->read_lock);
	clsw_lock(n->cd);
	now = ktime_get_ns();
	until = now + READ_NS;
	null_advance(n, now);
	*r = (struct null_reader){
		.pending = true, .at = now, .cmd = cmd, .body = body, .out = out,
		.out_size = out_size, .cpl = cpl,
	};
	for (;;) {
		ktime_t nap;

		null_advance(n, now);
		if (r->done)
			break;
		if (!n->attached)
			err = -ENODEV;
		else if (now >= until)
			err = -ETIMEDOUT;
		if (err)
			break;
		nap = ns_to_ktime(min(null_next_due(n), now + READ_NAP_NS));
		clsw_unlock(n->cd);
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule_hrtimeout_range(&nap, 0, HRTIMER_MODE_ABS);
		clsw_lock(n->cd);
		now = ktime_get_ns();
	}
	r->pending = false;
	clsw_unlock(n->cd);
	mutex_unlock(&n->read_lock);
	return err;
}

void null_fail(struct null_chip *n, const char *why)
{
	n->alive = false;
	n->attached = false;
	n->tables_lost = true;
	clsw_trouble(n->cd, why);
	/* whoever waits for a completion looks now */
	clear_bit(0, &n->irq_wanted);
	clsw_wake(n->cd);
}

/* -------------------------------------------------------------------------
 * Memory
 */
void null_queues_reset(struct null_chip *n)
{
	u32 i, k;

	for (i = 0; i < CLSW_Q_COUNT; i++) {
		struct null_queue *q = &n->queue[i];

		for (k = q->done; k != q->head; k++) {
			null_unhold(n, &null_slot_at(q, k)->held);
			null_slot_at(q, k)->held.count = 0;
			null_free_body(n, null_slot_at(q, k));
		}
		q->head = 0;
		q->seen = 0;
		q->done = 0;
		q->tail = 0;
		n->seq[i] = 0;
		memset(&n->unit[i], 0, sizeof(n->unit[i]));
	}
	clear_bit(0, &n->irq_wanted);
}

int null_queues_init(struct null_chip *n)
{
	static const u32 depth[CLSW_Q_COUNT] = { NULL_SYNC_DEPTH, NULL_BULK_DEPTH };
	u32 i;

	mutex_init(&n->read_lock);
	hrtimer_init(&n->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	n->timer.function = null_timer_fires;
	n->long_mem = vmalloc(NULL_LONG_BODIES * NULL_BODY_MAX);
	n->long_free = kcalloc(NULL_LONG_BODIES, sizeof(*n->long_free), GFP_KERNEL);
	if (!n->long_mem || !n->long_free)
		return -ENOMEM;
	for (i = 0; i < NULL_LONG_BODIES; i++)
		n->long_free[n->long_count++] = n->long_mem + i * NULL_BODY_MAX;
	for (i = 0; i < CLSW_Q_COUNT; i++) {
		n->queue[i].mask = depth[i] - 1;
		n->queue[i].slot = kvcalloc(depth[i], sizeof(*n->queue[i].slot), GFP_KERNEL);
		if (!n->queue[i].slot)
			return -ENOMEM;
	}
	return 0;
}

void null_queues_exit(struct null_chip *n)
{
	u32 i;

	hrtimer_cancel(&n->timer);
	for (i = 0; i < CLSW_Q_COUNT; i++)
		kvfree(n->queue[i].slot);
	kfree(n->long_free);
	vfree(n->long_mem);
}
