/* SPDX-License-Identifier: GPL-2.0 */
/* What kernel/ring calls of the kernel beside what the driver's core calls (kernel/tests/core/shim) */
#ifndef RING_SHIM_H
#define RING_SHIM_H

#include "shim.h"
#include "resource/env.h"

#define U32_MAX		UINT32_MAX
#define U16_MAX		UINT16_MAX
#define NSEC_PER_USEC	1000L
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#ifndef min3
#define min3(a, b, c)	min(min(a, b), c)
#endif
#define round_up(n, to)	(((n) + (to) - 1) / (to) * (to))

/* ---- barriers: those of the machine; the peer may be another thread ---- */
#define barrier()		__atomic_signal_fence(__ATOMIC_SEQ_CST)
#define virt_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define virt_rmb()		__atomic_thread_fence(__ATOMIC_ACQUIRE)
#define virt_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define virt_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define xchg(p, v)		__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)

/* ---- log2.h, err.h ---- */
#define is_power_of_2(n)	((n) && !((n) & ((n) - 1)))
#define rounddown_pow_of_two(n)	(1u << (31 - __builtin_clz(n)))
#define ERR_PTR(e)		((void *)(long)(e))

/* ---- locks ---- */
struct mutex {
	bool held;
};

#define mutex_init(m)		((void)((m)->held = false))
#define mutex_lock(m)		(assert(!(m)->held), might_sleep(), (void)((m)->held = true))
#define mutex_unlock(m)		(assert((m)->held), (void)((m)->held = false))
#define spin_lock(l)		spin_lock_bh(l)
#define spin_unlock(l)		spin_unlock_bh(l)

/* ---- time ---- */
#define ns_to_ktime(ns)		((ktime_t)(ns))
#define ktime_add_us(t, us)	((t) + (us) * NSEC_PER_USEC)
#define ktime_before(a, b)	((a) < (b))

enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };

/* One that the test fires */
struct hrtimer {
	enum hrtimer_restart (*function)(struct hrtimer *timer);
	bool queued;
};

#define CLOCK_MONOTONIC		1
#define HRTIMER_MODE_REL_SOFT	1
#define hrtimer_init(t, clock, mode)	((void)((t)->queued = false))
#define hrtimer_start(t, after, mode)	((void)((t)->queued = true))
#define hrtimer_cancel(t)	((void)((t)->queued = false))
#define hrtimer_is_queued(t)	((t)->queued)
#define hrtimer_forward_now(t, after)	((void)(t))

/* ---- memory, messages ---- */
#define kmemdup(p, size, gfp)	memcpy(shim_alloc(size, gfp), p, size)
#define dev_err_ratelimited(d, ...)	((void)(d), shim_print(__VA_ARGS__))

/* ---- skbuff.h: a frame ---- */
struct sk_buff {
	u32 len;
	u8 data[];
};

extern bool shim_no_skb;	/* the next one finds no memory */
#define __netdev_alloc_skb_ip_align(dev, size, gfp)	\
	(shim_no_skb ? NULL : (struct sk_buff *)shim_alloc(sizeof(struct sk_buff) + (size), gfp))
#define skb_put_data(skb, from, size)	((skb)->len = (size), (void)memcpy((skb)->data, from, size))
#define skb_copy_bits(skb, at, to, size)	memcpy(to, (skb)->data + (at), size)

#endif
