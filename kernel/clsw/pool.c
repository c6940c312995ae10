// SPDX-License-Identifier: GPL-2.0
/* Memory for things of one size; pool.h draws it */
#include <linux/gfp.h>

#include "pool.h"

#define ORDER	1
#define HEAD	sizeof(void *)	/* where the next page is */

static void pool_carve(struct clsw_pool *pool, void *page, size_t size)
{
	size_t at = (PAGE_SIZE << ORDER) - size;

	/* from the end: the first is given out first */
	for (; at >= HEAD && at < PAGE_SIZE << ORDER; at -= size) {
		*(void **)(page + at) = pool->free;
		pool->free = page + at;
	}
}

bool clsw_pool_grow(struct clsw_pool *pool, size_t size)
{
	void *page = (void *)__get_free_pages(GFP_ATOMIC | __GFP_NOWARN, ORDER);

	if (!page)
		return false;
	*(void **)page = pool->pages;
	pool->pages = page;
	pool->page_count++;
	pool_carve(pool, page, size);
	return true;
}

void clsw_pool_trim(struct clsw_pool *pool, size_t size, bool all)
{
	void *page = pool->pages, *next;

	if (pool->live)
		return;
	pool->free = NULL;
	pool->pages = NULL;
	pool->page_count = 0;
	for (; page; page = next) {
		next = *(void **)page;
		if (all || pool->pages) {
			free_pages((unsigned long)page, ORDER);
			continue;
		}
		*(void **)page = NULL;
		pool->pages = page;
		pool->page_count = 1;
		pool_carve(pool, page, size);
	}
}
