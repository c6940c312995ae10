/* SPDX-License-Identifier: GPL-2.0 */
/* Reservations; see hold.c. */
#ifndef _CLSW_HOLD_H
#define _CLSW_HOLD_H

#include "../core.h"
#include "uapi/clsw.h"

/**
 * struct clsw_hold - one socket's reservation
 * @list: in clsw_device.holds, while committed
 * @cd: while committed
 * @keys: sorted once committed
 * @count: of them
 * @room: allocated
 * @id: the resource manager's, 0 while only a list
 */
struct clsw_hold {
	struct list_head list;
	struct clsw_device *cd;
	struct clsw_route_key *keys;
	u32 count;
	u32 room;
	u16 id;
};

/* May sleep, one caller at a time. -EINVAL, -E2BIG, -ENOMEM, -EBUSY: committed already */
int clsw_hold_add(struct clsw_hold *hold, const struct clsw_route_key *keys, u32 count);
/* May sleep, as clsw_rm_hold() says. Not 0: nothing is taken */
int clsw_hold_commit(struct clsw_device *cd, struct clsw_hold *hold, u32 nexthops, u32 groups,
		     u32 members, char *text);
/* May sleep. What was not used goes back; the hold is as new */
void clsw_hold_drop(struct clsw_hold *hold);

#endif /* _CLSW_HOLD_H */
