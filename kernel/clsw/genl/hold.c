// SPDX-License-Identifier: GPL-2.0
/*
 * Reservations: capacity for a list of routes, all or nothing (seed 002, loop 1).
 *
 *   RESERVE_ADD ... RESERVE_ADD      keys of the list, in this socket's hold
 *   RESERVE_COMMIT                   one lease for all of them      --> chip
 *   ip route add (rtnetlink)         key is in a hold: its slots come out of the lease
 *   RESERVE_DROP, or close()         the rest goes back
 *
 * A notifier doesn't say who sends a route, so the key is what tells: while the
 * hold lives, a route of its list takes from it, whoever installs it.
 */
#include <linux/bsearch.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "../core.h"
#include "hold.h"

static int hold_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct clsw_route_key));
}

int clsw_hold_add(struct clsw_hold *hold, const struct clsw_route_key *keys, u32 count)
{
	struct clsw_route_key *grown;
	u32 i;

	if (hold->id)
		return -EBUSY;
	for (i = 0; i < count; i++) {
		u8 width = keys[i].family == AF_INET ? 32 : keys[i].family == AF_INET6 ? 128 : 0;

		if (!width || keys[i].prefix_len > width || keys[i].reserved[0] ||
		    keys[i].reserved[1])
			return -EINVAL;
	}
	if (count > CLSW_RESERVE_MAX - hold->count)
		return -E2BIG;
	if (hold->count + count > hold->room) {
		u32 room = min(max(hold->room * 2, hold->count + count), CLSW_RESERVE_MAX);

		grown = kvmalloc_array(room, sizeof(*grown), GFP_KERNEL_ACCOUNT);
		if (!grown)
			return -ENOMEM;
		if (hold->count)
			memcpy(grown, hold->keys, hold->count * sizeof(*grown));
		kvfree(hold->keys);
		hold->keys = grown;
		hold->room = room;
	}
	memcpy(hold->keys + hold->count, keys, count * sizeof(*keys));
	hold->count += count;
	return 0;
}

static void hold_add_item(struct tnd_lease_item *items, unsigned int *count, u16 cls, u8 family,
			  u32 n)
{
	if (!n)
		return;
	items[*count] = (struct tnd_lease_item) {
		.cls = cpu_to_le16(cls),
		.family = family,
		.count = cpu_to_le32(n),
	};
	(*count)++;
}

static void hold_fill_items(const struct clsw_hold *hold, u32 nexthops, u32 groups, u32 members,
			    struct tnd_lease_item *items, unsigned int *count)
{
	u32 v4 = 0, i;

	for (i = 0; i < hold->count; i++)
		v4 += hold->keys[i].family == AF_INET;
	*count = 0;
	hold_add_item(items, count, TND_CLS_ROUTE, TND_AF_INET, v4);
	hold_add_item(items, count, TND_CLS_ROUTE, TND_AF_INET6, hold->count - v4);
	hold_add_item(items, count, TND_CLS_NEXTHOP, 0, nexthops);
	/* what a group costs counts its members: the lease's worst case is per member */
	hold_add_item(items, count, TND_CLS_NHG, 0, max(groups, members));
}

int clsw_hold_commit(struct clsw_device *cd, struct clsw_hold *hold, u32 nexthops, u32 groups,
		     u32 members, char *text)
{
	struct tnd_lease_item items[4];
	unsigned int count;
	u32 i, unique = 0;
	int err;

	text[0] = 0;
	if (hold->id) {
		strscpy(text, "this socket's reservation is made: drop it first", CLSW_TEXT);
		return -EBUSY;
	}
	sort(hold->keys, hold->count, sizeof(*hold->keys), hold_compare, NULL);
	for (i = 0; i < hold->count; i++)
		if (!i || hold_compare(&hold->keys[i], &hold->keys[i - 1]))
			hold->keys[unique++] = hold->keys[i];
	hold->count = unique;
	hold_fill_items(hold, nexthops, groups, members, items, &count);
	if (!count) {
		strscpy(text, "nothing to reserve: list routes first", CLSW_TEXT);
		return -EINVAL;
	}
	err = clsw_rm_hold(cd, items, count, &hold->id, text);
	if (err)
		return err;
	clsw_lock(cd);
	hold->cd = cd;
	list_add_tail(&hold->list, &cd->holds);
	clsw_unlock(cd);
	return 0;
}

void clsw_hold_drop(struct clsw_hold *hold)
{
	struct clsw_device *cd = hold->cd;

	if (hold->id && cd) {
		clsw_lock(cd);
		list_del_init(&hold->list);
		rm_drop_hold(cd->rm, hold->id);
		clsw_unlock(cd);
		clsw_drain_kick(cd);
	}
	kvfree(hold->keys);
	memset(hold, 0, sizeof(*hold));
	INIT_LIST_HEAD(&hold->list);
}

void clsw_hold_look(struct clsw_device *cd, u32 table, u8 family, u8 prefix_len, const void *addr)
{
	struct clsw_route_key key = {
		.table = table, .family = family, .prefix_len = prefix_len,
	};
	struct clsw_hold *hold;

	lockdep_assert_held(&cd->lock);
	memcpy(key.addr, addr, family == AF_INET ? 4 : 16);
	list_for_each_entry(hold, &cd->holds, list) {
		if (bsearch(&key, hold->keys, hold->count, sizeof(key), hold_compare)) {
			cd->hold = hold->id;
			return;
		}
	}
}
