/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the driver's core calls of the kernel, in user space: one thread, a
 * clock that goes on when it is read, work and threads that run when the test
 * says so, sleeping that is caught under a spinlock. Memory is malloc's, so the
 * sanitizers see each object.
 */
#ifndef CORE_SHIM_H
#define CORE_SHIM_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s32 s32;
typedef __s64 s64;
typedef unsigned int gfp_t;
typedef s64 ktime_t;

#define U8_MAX		UINT8_MAX
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L
#define HZ		250
#define PAGE_SIZE	4096UL
#define ETH_ALEN	6
#define ETH_DATA_LEN	1500
#define MAX_ERRNO	4095
#define GENMASK(h, l)	((~0UL << (l)) & (~0UL >> (63 - (h))))
#define BIT(n)		(1UL << (n))

/* ---- compiler.h, kernel.h ---- */
#define READ_ONCE(x)		(*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define __aligned(n)		__attribute__((aligned(n)))
#ifndef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#endif
#define __acquires(x)
#define __releases(x)
#define __init
#define __exit
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define likely(x)	__builtin_expect(!!(x), 1)
#define fallthrough		__attribute__((fallthrough))
#define sizeof_field(t, f)	sizeof(((t *)0)->f)
#define struct_size(p, f, n)	(sizeof(*(p)) + sizeof((p)->f[0]) * (n))
#define container_of(p, t, f)	((t *)((char *)(p) - offsetof(t, f)))
#define lower_32_bits(n)	((u32)(n))
#define upper_32_bits(n)	((u32)((u64)(n) >> 32))
#define PTR_ALIGN(p, a)		((__typeof__(p))(((uintptr_t)(p) + (a) - 1) & ~((uintptr_t)(a) - 1)))
#define IS_ENABLED(option)	1
#define BUILD_BUG_ON_ZERO(c)	((int)sizeof(struct { int : (-!!(c)); }))
#define WARN_ON(c)		({ bool c_ = (c); assert(!c_); c_; })
#define clamp(v, lo, hi)	({ __typeof__(v) v_ = (v); v_ < (lo) ? (lo) : v_ > (hi) ? (hi) : v_; })
#define min(a, b)		({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b)		({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define cmpxchg(p, o, n)	({ __typeof__(*(p)) was_ = *(p); if (was_ == (o)) *(p) = (n); was_; })
#define get_unaligned(p)	({ __typeof__(*(p)) v_; memcpy(&v_, (p), sizeof(v_)); v_; })
#define __ffs(x)		((unsigned int)__builtin_ctzl(x))
#define __fls(x)		((unsigned int)(63 - __builtin_clzl(x)))
#define fls64(x)		((int)((x) ? 64 - __builtin_clzll(x) : 0))
#define GOLDEN_RATIO_64		0x61C8864680B583EBull
#define hash_64(v, bits)	((u32)((u64)(v) * GOLDEN_RATIO_64 >> (64 - (bits))))
#define IS_ERR(p)		((uintptr_t)(p) >= (uintptr_t)-MAX_ERRNO)
#define PTR_ERR(p)		((long)(p))
#define cpu_relax()		shim_pass(100)
#define cond_resched()		shim_resched()
void shim_resched(void);

/* ---- module.h ---- */
#define THIS_MODULE		NULL
#define EXPORT_SYMBOL_GPL(s)	extern int shim_unused
#define MODULE_LICENSE(s)	extern int shim_unused
#define MODULE_DESCRIPTION(s)	extern int shim_unused
#define MODULE_PARM_DESC(p, s)	extern int shim_unused
/* A parameter NAME of the driver is *shim_param_NAME to the test */
#define module_param(p, t, m)	__typeof__(p) *shim_param_##p = &(p)
#define module_init(f)		int (*shim_##f)(void) = f
#define module_exit(f)		void (*shim_##f)(void) = f

/* ---- printing ---- */
struct device {
	int unused;
};

extern bool shim_verbose;
void shim_print(const char *format, ...);
#define dev_dbg(d, ...)			((void)(d))
#define dev_info(d, ...)		((void)(d), shim_print(__VA_ARGS__))
#define dev_warn(d, ...)		((void)(d), shim_print(__VA_ARGS__))
#define dev_err(d, ...)			((void)(d), shim_print(__VA_ARGS__))
#define dev_warn_ratelimited(d, ...)	((void)(d), shim_print(__VA_ARGS__))

/* ---- time: it goes on when somebody looks at it, or sleeps ---- */
extern u64 shim_now;		/* ns */
extern unsigned int shim_look_ns;	/* what a look at the clock takes */
void shim_pass(u64 ns);
#define jiffies			((unsigned long)(shim_now / (NSEC_PER_SEC / HZ)))
#define msecs_to_jiffies(ms)	((unsigned long)(ms) * HZ / 1000)
#define time_before(a, b)	((long)((a) - (b)) < 0)
#define time_after(a, b)	time_before(b, a)
#define ktime_sub(a, b)		((a) - (b))
#define ktime_add_ns(a, b)	((a) + (s64)(b))
#define ktime_to_ns(a)		(a)
#define ktime_after(a, b)	((a) > (b))
static inline ktime_t ktime_get(void)
{
	shim_pass(shim_look_ns);
	return shim_now;
}

/* ---- locks ---- */
typedef struct {
	bool held;
} spinlock_t;

extern unsigned int shim_atomic;	/* spinlocks that are held */
#define might_sleep()			assert(!shim_atomic)
#define spin_lock_init(l)		((void)((l)->held = false))
#define spin_lock_bh(l)			(assert(!(l)->held), (l)->held = true, (void)shim_atomic++)
#define spin_unlock_bh(l)		(assert((l)->held), (l)->held = false, (void)shim_atomic--)
#define lockdep_assert_held(l)		assert((l)->held)

/* ---- memory ---- */
#define GFP_KERNEL	1
#define GFP_ATOMIC	2
#define __GFP_NOWARN	0
void *shim_alloc(size_t size, gfp_t gfp);
#define kzalloc(n, gfp)			shim_alloc(n, gfp)
#define kcalloc(n, size, gfp)		shim_alloc((n) * (size), gfp)
#define kvcalloc(n, size, gfp)		shim_alloc((n) * (size), gfp)
#define vzalloc(n)			shim_alloc(n, GFP_KERNEL)
#define kfree(p)			free((void *)(p))
#define kvfree(p)			free(p)
#define vfree(p)			free(p)
#define __get_free_pages(gfp, order)	((unsigned long)shim_alloc(PAGE_SIZE << (order), gfp))
#define free_pages(p, order)		free((void *)(p))
#define strscpy(to, from, size)		((void)snprintf(to, size, "%s", from))

/* ---- list.h ---- */
struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

#define LIST_HEAD(name)	struct list_head name = { &name, &name }

static inline void INIT_LIST_HEAD(struct list_head *h)
{
	h->next = h;
	h->prev = h;
}

static inline bool list_empty(const struct list_head *h)
{
	return h->next == h;
}

/* With the checks of CONFIG_DEBUG_LIST */
static inline void list_del_init(struct list_head *n)
{
	assert(n->prev->next == n && n->next->prev == n);
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}

static inline void list_add(struct list_head *n, struct list_head *h)
{
	assert(h->next->prev == h && n != h);
	n->next = h->next;
	n->prev = h;
	h->next->prev = n;
	h->next = n;
}

static inline void list_move(struct list_head *n, struct list_head *h)
{
	list_del_init(n);
	list_add(n, h);
}

static inline void list_move_tail(struct list_head *n, struct list_head *h)
{
	list_del_init(n);
	list_add(n, h->prev);
}

static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	while (!list_empty(from))
		list_move(from->prev, to);
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *to)
{
	while (!list_empty(from))
		list_move_tail(from->next, to);
}

static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	n->pprev = &h->first;
	if (h->first)
		h->first->pprev = &n->next;
	h->first = n;
}

static inline void hlist_del(struct hlist_node *n)
{
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
	n->pprev = NULL;
}

#define list_entry(p, t, f)		container_of(p, t, f)
#define list_first_entry(h, t, f)	list_entry((h)->next, t, f)
#define list_first_entry_or_null(h, t, f)	\
	(list_empty(h) ? NULL : list_first_entry(h, t, f))
#define list_next(p, f)			list_entry((p)->f.next, __typeof__(*(p)), f)
#define list_for_each_entry(p, h, f)						\
	for (p = list_entry((h)->next, __typeof__(*p), f); &p->f != (h); p = list_next(p, f))
#define list_for_each_entry_safe(p, n, h, f)					\
	for (p = list_entry((h)->next, __typeof__(*p), f), n = list_next(p, f);	\
	     &p->f != (h); p = n, n = list_next(n, f))
#define hlist_empty(h)			(!(h)->first)
#define hlist_entry(n, t, f)		({ struct hlist_node *n_ = (n); n_ ? container_of(n_, t, f) : NULL; })
#define hlist_for_each_entry(p, h, f)						\
	for (p = hlist_entry((h)->first, __typeof__(*p), f); p;			\
	     p = hlist_entry(p->f.next, __typeof__(*p), f))
#define hlist_for_each_entry_safe(p, n, h, f)					\
	for (p = hlist_entry((h)->first, __typeof__(*p), f); p && ({ n = p->f.next; 1; });	\
	     p = hlist_entry(n, __typeof__(*p), f))

/* ---- wait.h: while somebody sleeps, the test's world goes on ---- */
typedef struct {
	int unused;
} wait_queue_head_t;

void shim_sleep(u64 ns);
extern bool shim_signal;	/* somebody wants the sleeper to end */
#define current			NULL
#define signal_pending(t)	((void)(t), shim_signal)
#define init_waitqueue_head(q)	((void)(q))
#define wake_up(q)		((void)(q))
#define wake_up_all(q)		((void)(q))
#define wq_has_sleeper(q)	((void)(q), true)
#define msleep(ms)		shim_sleep((u64)(ms) * NSEC_PER_MSEC)
#define usleep_range(a, b)	shim_sleep((u64)(b) * (NSEC_PER_MSEC / 1000))
#define wait_event_timeout(q, cond, timeout) ({					\
	unsigned long end_ = jiffies + (timeout);				\
	long left_;								\
	(void)(q);								\
	might_sleep();								\
	while (!(cond) && time_before(jiffies, end_))				\
		shim_sleep(NSEC_PER_MSEC);					\
	left_ = (cond) ? max((long)(end_ - jiffies), 1L) : 0;			\
	left_; })
/* A thread has its turn whenever somebody sleeps: it looks whether it is awake */
#define wait_event_interruptible_timeout(q, cond, timeout) ({			\
	unsigned long end_ = jiffies + (timeout);				\
	(void)(q);								\
	while (!(cond) && time_before(jiffies, end_))				\
		shim_thread_sleeps(); })

/* ---- kthread.h: one that runs until it would sleep, when the test says so ---- */
struct task_struct {
	int (*fn)(void *arg);
	void *arg;
	pthread_t thread;
	sem_t go, sleeps;
	bool stop, ended;
};

struct task_struct *shim_kthread(int (*fn)(void *arg), void *arg);
void shim_thread_sleeps(void);
void shim_run_thread(struct task_struct *t);
bool kthread_should_stop(void);
void kthread_stop(struct task_struct *t);
#define kthread_run(fn, arg, name)	((void)(name), shim_kthread(fn, arg))

/* ---- workqueue.h ---- */
struct work_struct {
	void (*fn)(struct work_struct *work);
	bool pending;
	bool runs;
	unsigned int disabled;
};

extern void *system_long_wq;
#define INIT_WORK(w, f)	(*(w) = (struct work_struct){ .fn = (f) })
bool queue_work(void *wq, struct work_struct *w);
bool flush_work(struct work_struct *w);
bool cancel_work_sync(struct work_struct *w);
bool disable_work(struct work_struct *w);
bool disable_work_sync(struct work_struct *w);
bool enable_work(struct work_struct *w);
/* The test: what is queued runs now */
void shim_run_work(struct work_struct *w);

/* ---- netdevice.h, devlink.h, etherdevice.h: what the core's structs hold ---- */
enum tc_setup_type { TC_SETUP_BLOCK };
enum devlink_trap_action { DEVLINK_TRAP_ACTION_DROP };
struct devlink_trap;
struct devlink_trap_group;
struct devlink_trap_policer;
struct netlink_ext_ack;
struct net_device;
struct sk_buff;
struct module;

struct napi_struct {
	int unused;
};

struct devlink_port {
	int unused;
};

struct devlink_ops {
	int unused;
};

struct devlink {
	void *memory;
	unsigned int locked;
	u64 priv[] __aligned(64);
};

struct devlink *devlink_alloc(const struct devlink_ops *ops, size_t size, struct device *dev);
void devlink_free(struct devlink *devlink);
#define devlink_priv(d)		((void *)(d)->priv)
#define devlink_register(d)	((void)(d))
#define devlink_unregister(d)	((void)(d))
#define devl_lock(d)		(assert(!(d)->locked), (void)(d)->locked++)
#define devl_unlock(d)		(assert((d)->locked), (void)(d)->locked--)

#define div_u64(a, b)		((u64)(a) / (u32)(b))

#endif
