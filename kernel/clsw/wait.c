// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for the chip in a busy loop, with a bound: callers are notifiers, many
 * of them atomic.
 *
 * What counts is silence, in time that this CPU spent looking. On a virtual
 * machine both the CPU and what emulates the chip can be off for longer than the
 * bound, together: the first look afterwards would find no answer, and the time
 * over. A chip that answers, only not this yet, is not silent: there is a longer
 * bound for all of it.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>

#include "core.h"

/* Longer than a look can take: the rest of it this CPU was away */
#define LOOK_NS		NSEC_PER_MSEC
/* In all, if it is more than what silence may take */
#define ALL_NS		NSEC_PER_SEC

static unsigned int silent_ms = 100;
module_param(silent_ms, uint, 0644);
MODULE_PARM_DESC(silent_ms, "a chip that says nothing for so long does not answer, 10 to 1000 (emulated ones on busy hosts need more)");

void clsw_wait_begin(struct clsw_device *cd, struct clsw_wait *w)
{
	*w = (struct clsw_wait){ .last = ktime_get(), .completed = cd->count.completed };
}

bool clsw_wait_over(struct clsw_device *cd, struct clsw_wait *w)
{
	ktime_t now = ktime_get();
	u64 step = min_t(u64, ktime_to_ns(ktime_sub(now, w->last)), LOOK_NS);
	u64 most = (u64)clamp(READ_ONCE(silent_ms), 10U, 1000U) * NSEC_PER_MSEC;

	lockdep_assert_held(&cd->lock);
	w->last = now;
	w->looks++;
	w->all_ns += step;
	w->silent_ns += step;
	if (w->completed != cd->count.completed) {
		w->completed = cd->count.completed;
		w->silent_ns = 0;
	}
	return w->silent_ns > most || w->all_ns > max_t(u64, most, ALL_NS);
}

int clsw_wait_failed(struct clsw_device *cd, const struct clsw_wait *w, const char *what)
{
	u64 silent = div_u64(w->silent_ns, NSEC_PER_MSEC), all = div_u64(w->all_ns, NSEC_PER_MSEC);

	dev_warn_ratelimited(cd->parent,
			     "no answer for %llu of %llu ms, %u looks: %s, %u commands out\n",
			     silent, all, w->looks, what, cd->in_flight);
	return -ETIMEDOUT;
}
