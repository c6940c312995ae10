// SPDX-License-Identifier: GPL-2.0
/* See shim.h */
#include "shim.h"

bool shim_verbose;
u64 shim_now = NSEC_PER_SEC;
unsigned int shim_look_ns = 200;
unsigned int shim_atomic;
bool shim_signal;
void *system_long_wq;
static unsigned int busy;	/* turns of a thread since somebody slept */

/* The test: what happens while somebody sleeps */
void world_goes_on(void);
/* Says what it looks like when a thread never sleeps */
void world_is_stuck(void);

void shim_print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (shim_verbose)
		vfprintf(stderr, format, args);
	va_end(args);
}

void shim_pass(u64 ns)
{
	shim_now += ns;
}

void shim_sleep(u64 ns)
{
	const u64 step = NSEC_PER_SEC / HZ;
	u64 now;

	might_sleep();
	do {
		now = min(ns, step);
		ns -= now;
		shim_now += now;
		busy = 0;
		world_goes_on();
	} while (ns);
}

void *shim_alloc(size_t size, gfp_t gfp)
{
	void *p = calloc(1, size ?: 1);

	if (gfp == GFP_KERNEL)
		might_sleep();
	assert(p);
	return p;
}

void shim_resched(void)
{
	might_sleep();
	shim_now += 1000;
	if (++busy > 100000) {
		world_is_stuck();
		abort();
	}
}

/* ---- threads: real ones, of which one runs at a time ---- */

static struct task_struct *current_thread;

static void *thread(void *arg)
{
	struct task_struct *t = arg;

	sem_wait(&t->go);
	t->fn(t->arg);
	t->ended = true;
	sem_post(&t->sleeps);
	return NULL;
}

struct task_struct *shim_kthread(int (*fn)(void *arg), void *arg)
{
	struct task_struct *t = shim_alloc(sizeof(*t), GFP_KERNEL);

	t->fn = fn;
	t->arg = arg;
	sem_init(&t->go, 0, 0);
	sem_init(&t->sleeps, 0, 0);
	assert(!pthread_create(&t->thread, NULL, thread, t));
	return t;
}

void shim_thread_sleeps(void)
{
	struct task_struct *t = current_thread;

	might_sleep();
	sem_post(&t->sleeps);
	sem_wait(&t->go);
}

bool kthread_should_stop(void)
{
	return current_thread->stop;
}

void shim_run_thread(struct task_struct *t)
{
	struct task_struct *was = current_thread;

	current_thread = t;
	sem_post(&t->go);
	sem_wait(&t->sleeps);
	current_thread = was;
}

void kthread_stop(struct task_struct *t)
{
	might_sleep();
	t->stop = true;
	while (!t->ended)
		shim_run_thread(t);
	pthread_join(t->thread, NULL);
	sem_destroy(&t->go);
	sem_destroy(&t->sleeps);
	free(t);
}

bool queue_work(void *wq, struct work_struct *w)
{
	if (w->disabled || w->pending)
		return false;
	w->pending = true;
	return true;
}

void shim_run_work(struct work_struct *w)
{
	if (!w->pending || w->runs)
		return;
	w->pending = false;
	w->runs = true;
	w->fn(w);
	w->runs = false;
}

bool flush_work(struct work_struct *w)
{
	bool was = w->pending;

	might_sleep();
	shim_run_work(w);
	return was;
}

bool cancel_work_sync(struct work_struct *w)
{
	bool was = w->pending;

	might_sleep();
	w->pending = false;
	return was;
}

bool disable_work(struct work_struct *w)
{
	w->disabled++;
	w->pending = false;
	return true;
}

bool disable_work_sync(struct work_struct *w)
{
	might_sleep();
	return disable_work(w);
}

bool enable_work(struct work_struct *w)
{
	assert(w->disabled);
	return !--w->disabled;
}

struct devlink *devlink_alloc(const struct devlink_ops *ops, size_t size, struct device *dev)
{
	struct devlink *d = aligned_alloc(64, (sizeof(*d) + size + 63) & ~(size_t)63);

	assert(d);
	memset(d, 0, sizeof(*d) + size);
	return d;
}

void devlink_free(struct devlink *devlink)
{
	free(devlink);
}
