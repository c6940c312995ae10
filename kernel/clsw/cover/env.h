/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the cover rule needs beyond ../resource/env.h: lists and allocation.
 * Outside the kernel a test decides which allocation fails.
 */
#ifndef CLSW_COVER_ENV_H
#define CLSW_COVER_ENV_H

#include "../resource/env.h"

#ifdef __KERNEL__

#include <linux/list.h>
#include <linux/slab.h>

#include "../pool.h"

#else /* user space */

#include <stdlib.h>

struct list_head {
	struct list_head *next, *prev;
};

#define GFP_ATOMIC	0U

/* Supplied by the test */
void *kzalloc(size_t size, unsigned int gfp);
void kfree(const void *p);

/* Each node by itself: a test finds one that is used after it was freed */
struct clsw_pool {
	char none;
};

static inline void *clsw_pool_get(struct clsw_pool *pool, size_t size)
{
	(void)pool;
	return kzalloc(size, GFP_ATOMIC);
}

static inline void clsw_pool_put(struct clsw_pool *pool, void *thing, size_t size)
{
	(void)pool;
	(void)size;
	kfree(thing);
}

static inline void clsw_pool_trim(struct clsw_pool *pool, size_t size, bool all)
{
	(void)pool;
	(void)size;
	(void)all;
}

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	INIT_LIST_HEAD(entry);
}

#define list_del	list_del_init
#define list_first_entry(head, type, member) \
	((type *)((char *)(head)->next - offsetof(type, member)))

/* Number of the highest bit set, from 1; 0: none */
static inline int fls(unsigned int x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

#endif
#endif /* CLSW_COVER_ENV_H */
