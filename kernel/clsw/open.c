// SPDX-License-Identifier: GPL-2.0
/*
 * Commands in flight: a fixed number, each with a cookie that is void once it is over.
 */
#include <linux/slab.h>

#include "core.h"
#include "open.h"

#define OPEN_RESERVE	64	/* of CLSW_OPEN_MAX not for writes: leases come through */

__le64 clsw_open_cookie(struct clsw_device *cd, const struct clsw_open *open)
{
	return cpu_to_le64((u64)open->gen << 32 | (u32)(open - cd->open));
}

struct clsw_open *clsw_open_get(struct clsw_device *cd, u8 kind)
{
	struct clsw_open *open = cd->open_free;

	if (!open ||
	    (kind == CLSW_OPEN_WRITE && cd->in_flight >= CLSW_OPEN_MAX - OPEN_RESERVE))
		return NULL;
	cd->open_free = open->next;
	open->kind = kind;
	open->since = jiffies;
	open->obj = NULL;
	open->used = true;
	cd->in_flight++;
	return open;
}

void clsw_open_put(struct clsw_device *cd, struct clsw_open *open)
{
	open->gen++;
	open->obj = NULL;
	open->used = false;
	open->next = cd->open_free;
	cd->open_free = open;
	cd->in_flight--;
}

/* What is in flight is void: the chip was attached anew */
void clsw_drain_give_up(struct clsw_device *cd)
{
	struct clsw_open *open;

	for (open = cd->open; open && open < cd->open + CLSW_OPEN_MAX; open++)
		if (open->used)
			clsw_open_put(cd, open);
}

int clsw_open_init(struct clsw_device *cd)
{
	int i;

	cd->open = kvcalloc(CLSW_OPEN_MAX, sizeof(*cd->open), GFP_KERNEL);
	if (!cd->open)
		return -ENOMEM;
	for (i = 0; i < CLSW_OPEN_MAX; i++)
		cd->open[i].next = i + 1 < CLSW_OPEN_MAX ? &cd->open[i + 1] : NULL;
	cd->open_free = cd->open;
	return 0;
}

void clsw_open_exit(struct clsw_device *cd)
{
	kvfree(cd->open);
	cd->open = NULL;
}
