// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for the chip in a busy loop, with two bounds: callers are notifiers, many
 * of them atomic.
 *
 *   silence     in time that this CPU spent looking      the chip is not trusted any
 *   silent_ms   without any answer                       more: the put fails
 *   wall time   of all that one put waits for,           the put is deferred: it is
 *   wait_ms     by the clock                             wanted, and decided on later
 *
 * On a virtual machine both the CPU and what emulates the chip can be off for longer
 * than the first bound, together: by the clock the first look afterwards would find no
 * answer, and the time over. A chip that answers, only not this yet, is not silent: but
 * this CPU does nothing else meanwhile, whoever was away.
 *
 * While the chip is not trusted every wait is a short one: a thousand routes are not
 * worth a thousand times silent_ms. Any answer ends that.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>

#include "core.h"

/* Longer than a look can take: the rest of it this CPU was away */
#define LOOK_NS		NSEC_PER_MSEC
/* Each wait looks for so long: a CPU that was away all the time has seen nothing */
#define LEAST_NS	(5 * NSEC_PER_MSEC)
/* Completions in one look */
#define WAIT_REAP	256

static unsigned int silent_ms = 100;
module_param(silent_ms, uint, 0644);
MODULE_PARM_DESC(silent_ms, "a chip that says nothing for so long does not answer, 10 to 1000 (emulated ones on busy hosts need more)");

static unsigned int wait_ms = 1000;
module_param(wait_ms, uint, 0644);
MODULE_PARM_DESC(wait_ms, "how long one write (a route may be several) waits for a chip that answers others, 1 to 10000: then it is decided on later");

static u64 wait_silent_ns(void)
{
	return (u64)clamp(READ_ONCE(silent_ms), 10U, 1000U) * NSEC_PER_MSEC;
}

void clsw_wait_begin(struct clsw_device *cd, struct clsw_wait *w)
{
	ktime_t now = ktime_get();

	*w = (struct clsw_wait){ .began = now, .last = now, .completed = cd->count.completed };
	/* a put may wait several times: for room, for others' writes, for its own */
	if (!cd->wait_end)
		cd->wait_end = ktime_add_ns(now, (u64)clamp(READ_ONCE(wait_ms), 1U, 10000U) *
						 NSEC_PER_MSEC);
}

int clsw_wait_over(struct clsw_device *cd, struct clsw_wait *w)
{
	ktime_t now = ktime_get();
	u64 step = min_t(u64, ktime_to_ns(ktime_sub(now, w->last)), LOOK_NS);

	lockdep_assert_held(&cd->lock);
	/* one look, at what it may have answered to others */
	if (!clsw_can(cd, CLSW_CAN_BUSY_WAIT))
		return -EAGAIN;
	w->last = now;
	w->looks++;
	w->looked_ns += step;
	w->silent_ns += step;
	if (w->completed != cd->count.completed) {
		w->completed = cd->count.completed;
		w->silent_ns = 0;
	}
	if (w->silent_ns > (cd->mistrusted ? LEAST_NS : wait_silent_ns())) {
		cd->mistrusted = true;
		return -ETIMEDOUT;
	}
	return ktime_after(now, cd->wait_end) && w->looked_ns >= LEAST_NS ? -EAGAIN : 0;
}

int clsw_wait_failed(struct clsw_device *cd, const struct clsw_wait *w, int err, const char *what)
{
	u64 silent = div_u64(w->silent_ns, NSEC_PER_MSEC);
	u64 all = div_u64(ktime_to_ns(ktime_sub(w->last, w->began)), NSEC_PER_MSEC);

	if (err == -EAGAIN)
		cd->count.deferred++;
	/* a chip that nobody may wait for in this way has not kept anybody waiting */
	if (!w->looks)
		return err;
	dev_warn_ratelimited(cd->parent,
			     "%s for %llu of %llu ms, %u looks: %s, %u commands out\n",
			     err == -EAGAIN ? "put off, no answer" : "no answer", silent, all,
			     w->looks, what, cd->in_flight);
	return err;
}

static bool wait_settled(struct clsw_device *cd, const struct clsw_obj *obj)
{
	if (!obj)
		return clsw_drain_settled(cd);
	/* answered, and to be written again: who has it pinned goes on by what is in the chip */
	if (obj->pinned && !obj->in_flight && !obj->unknown && list_empty(&obj->work))
		return true;
	return !obj->in_flight && !obj->again && !obj->unknown &&
	       (obj->state == CLSW_OBJ_SYNCED || obj->state == CLSW_OBJ_FAILED);
}

int clsw_flush_obj(struct clsw_device *cd, struct clsw_obj *obj)
{
	/* a reservation is for the caller's own puts: what has its turn meanwhile is others' */
	u16 hold = clsw_hold_rest(cd);
	struct clsw_wait wait;
	int err;

	clsw_wait_begin(cd, &wait);
	cd->posted_inline++;
	for (;;) {
		int over = clsw_wait_over(cd, &wait);

		clsw_drain_turn(cd);
		/* one answer is waited for: nothing else is worth a look before it is there */
		while (obj && obj->in_flight && !over && cd->backend->device->alive(cd)) {
			over = clsw_wait_over(cd, &wait);
			if (!cd->backend->table->reap(cd, CLSW_Q_BULK, WAIT_REAP))
				cpu_relax();
		}
		err = 0;
		if (wait_settled(cd, obj))
			break;
		err = -EIO;
		if (!clsw_up(cd) || !cd->backend->device->alive(cd))
			break;
		if (over) {
			err = clsw_wait_failed(cd, &wait, over,
					       obj ? "a write" : "all that is queued");
			break;
		}
		cpu_relax();
	}
	clsw_hold_resume(cd, hold);
	return err;
}
