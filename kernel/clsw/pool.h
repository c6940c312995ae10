/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for things of one size that come by the ten thousand, under one lock
 * of the caller's.
 *
 *   pages ──► page ──► page          what is free hangs on one list through its
 *    free ──► thing ─► thing ...     first word
 *
 * A route takes four of them, and the slab's way to one costs as many steps as
 * half the rest of a route. What was needed once stays for the next ones and
 * goes when the last thing goes. With KASAN each thing is a slab object of its
 * own, so that a stale pointer is found.
 */
#ifndef _CLSW_POOL_H
#define _CLSW_POOL_H

#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>

/**
 * struct clsw_pool - things of one size; zeroed to begin
 * @free: the first free one
 * @pages: linked through their first word
 * @page_count: how many
 * @live: things that are given out
 */
struct clsw_pool {
	void *free;
	void *pages;
	u32 page_count;
	u32 live;
};

/* Atomic. A page more; false: no memory */
bool clsw_pool_grow(struct clsw_pool *pool, size_t size);
/* Atomic. Nothing is given out: gives all pages back but one, or with @all that, too */
void clsw_pool_trim(struct clsw_pool *pool, size_t size, bool all);

/* Atomic. Zeroed; @size is the same for all of a pool, a multiple of 8. NULL: no memory */
static __always_inline void *clsw_pool_get(struct clsw_pool *pool, const size_t size)
{
	void *thing;

	if (IS_ENABLED(CONFIG_KASAN))
		return kzalloc(size, GFP_ATOMIC | __GFP_NOWARN);
	if (unlikely(!pool->free) && !clsw_pool_grow(pool, size))
		return NULL;
	thing = pool->free;
	pool->free = *(void **)thing;
	pool->live++;
	memset(thing, 0, size);
	return thing;
}

static inline void clsw_pool_put(struct clsw_pool *pool, void *thing, size_t size)
{
	if (IS_ENABLED(CONFIG_KASAN)) {
		kfree(thing);
		return;
	}
	*(void **)thing = pool->free;
	pool->free = thing;
	if (!--pool->live && pool->page_count > 1)
		clsw_pool_trim(pool, size, false);
}

#endif /* _CLSW_POOL_H */
