// SPDX-License-Identifier: GPL-2.0
/*
 * The drainer's thread: turns of drain.c as long as they do something, then sleep
 * until the chip or a caller has something.
 */
#include "core.h"

#define NAP		max(HZ / 64, 1)

/*
 * Callers post by themselves, and reap what they find: while they do, an
 * interrupt for every completion would only cost. The thread looks now and then:
 * each look costs as many steps as twenty completions.
 */
static bool drainer_nap(struct clsw_device *cd, u32 *seen, unsigned long *slept)
{
	bool busy = cd->posted_inline != *seen && time_before(jiffies, *slept + NAP + 1);

	*seen = cd->posted_inline;
	*slept = jiffies;
	return busy;
}

static int drainer_thread(void *arg)
{
	struct clsw_device *cd = arg;
	unsigned long looked = jiffies, slept = jiffies;
	u32 seen = 0;

	while (!kthread_should_stop()) {
		bool naps = false, rest = false;
		int done;

		WRITE_ONCE(cd->drain_wake, false);
		do {
			clsw_lock(cd);
			done = clsw_drain_turn(cd);
			if (time_after(jiffies, looked + HZ / 4)) {
				looked = jiffies;
				if (clsw_up(cd))
					clsw_drain_look(cd);
			}
			if (!done && clsw_up(cd)) {
				naps = drainer_nap(cd, &seen, &slept);
				if (!naps)
					done = cd->backend->table->want_irq(cd);
				/* of many that are to be asked whether they fit: a few a turn */
				rest = clsw_admit_left(cd);
			}
			clsw_unlock(cd);
			cond_resched();
		} while (done && !kthread_should_stop());
		wait_event_interruptible_timeout(cd->drain_wait,
						 READ_ONCE(cd->drain_wake) || kthread_should_stop(),
						 naps || rest ? NAP : HZ / 4);
	}
	return 0;
}

int clsw_drain_start(struct clsw_device *cd)
{
	int err = clsw_open_init(cd);

	if (err)
		return err;
	cd->drainer = kthread_run(drainer_thread, cd, "clsw-drain");
	if (IS_ERR(cd->drainer)) {
		err = PTR_ERR(cd->drainer);
		cd->drainer = NULL;
		clsw_open_exit(cd);
	}
	return err;
}

void clsw_drain_stop(struct clsw_device *cd)
{
	kthread_stop(cd->drainer);
	cd->drainer = NULL;
	clsw_open_exit(cd);
}
