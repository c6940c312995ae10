// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for the chip in a busy loop, with a bound: callers are notifiers, many
 * of them atomic.
 *
 * What counts is silence, in time that this CPU spent looking. On a virtual
 * machine both the CPU and what emulates the chip can be off for longer than the
 * bound, together: the first look afterwards would find no answer, and the time
 * over. A chip that answers, only not this yet, is not silent: there is a longer
 * bound for all that one put waits for, and that one is by the clock: this CPU
 * does nothing else meanwhile, whoever was away.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>

#include "core.h"

/* Longer than a look can take: the rest of it this CPU was away */
#define LOOK_NS		NSEC_PER_MSEC
/* In all, by the clock: everything that one put waits for */
#define ALL_NS		NSEC_PER_SEC
/* ... but each wait looks for so long: a CPU that was away all the time has seen nothing */
#define LEAST_NS	(5 * NSEC_PER_MSEC)

static unsigned int silent_ms = 100;
module_param(silent_ms, uint, 0644);
MODULE_PARM_DESC(silent_ms, "a chip that says nothing for so long does not answer, 10 to 1000 (emulated ones on busy hosts need more)");

static u64 silent_ns(void)
{
	return (u64)clamp(READ_ONCE(silent_ms), 10U, 1000U) * NSEC_PER_MSEC;
}

void clsw_wait_begin(struct clsw_device *cd, struct clsw_wait *w)
{
	ktime_t now = ktime_get();

	*w = (struct clsw_wait){ .began = now, .last = now, .completed = cd->count.completed };
	/* a put may wait several times: for room, for others' writes, for its own */
	if (!cd->wait_end)
		cd->wait_end = ktime_add_ns(now, max_t(u64, silent_ns(), ALL_NS));
}

bool clsw_wait_over(struct clsw_device *cd, struct clsw_wait *w)
{
	ktime_t now = ktime_get();
	u64 step = min_t(u64, ktime_to_ns(ktime_sub(now, w->last)), LOOK_NS);

	lockdep_assert_held(&cd->lock);
	w->last = now;
	w->looks++;
	w->looked_ns += step;
	w->silent_ns += step;
	if (w->completed != cd->count.completed) {
		w->completed = cd->count.completed;
		w->silent_ns = 0;
	}
	return w->silent_ns > silent_ns() ||
	       (ktime_after(now, cd->wait_end) && w->looked_ns >= LEAST_NS);
}

int clsw_wait_failed(struct clsw_device *cd, const struct clsw_wait *w, const char *what)
{
	u64 silent = div_u64(w->silent_ns, NSEC_PER_MSEC);
	u64 all = div_u64(ktime_to_ns(ktime_sub(w->last, w->began)), NSEC_PER_MSEC);

	dev_warn_ratelimited(cd->parent,
			     "no answer for %llu of %llu ms, %u looks: %s, %u commands out\n",
			     silent, all, w->looks, what, cd->in_flight);
	return -ETIMEDOUT;
}
