// SPDX-License-Identifier: GPL-2.0
/*
 * IPv4 FIB events. Atomic (RCU), RTNL held, or in a replay without it.
 *
 *   REPLACE  add, replace, promotion of the next best route: what stands at
 *            the prefix in the FIB copy says which
 *   DEL      the last one has gone
 *   NH_ADD, NH_DEL  a next hop of a multipath route lives, or is dead
 *
 * extack is there exactly when somebody hears the answer: then room may be
 * refused. Promotions, connected and local routes have none.
 */
#include <net/nexthop.h>

#include "l3.h"

void l3_fib4_flags(struct clsw_l3 *l3, struct l3_route *route, struct l3_alias *alias, u8 shown)
{
	struct fib_rt_info fri = {
		.fi = alias->fi,
		.tb_id = alias->tb_id,
		.dst = cpu_to_be32(route->node->bits[0]),
		.dst_len = route->node->len,
		.dscp = inet_dsfield_to_dscp(alias->dscp),
		.type = alias->type,
		.offload = !!(shown & L3_SHOWN_OFFLOAD),
		.trap = !!(shown & L3_SHOWN_TRAP),
		.offload_failed = !!(shown & L3_SHOWN_FAILED),
	};

	fib_alias_hw_flags_set(l3->net, &fri);
}

static void fib4_spec_of(struct l3_path *spec, const struct fib_nh_common *nhc)
{
	spec->weight = nhc->nhc_weight ? nhc->nhc_weight : 1;
	if (nhc->nhc_dev)
		spec->key.ifindex = nhc->nhc_dev->ifindex;
	if (nhc->nhc_lwtstate)
		spec->flags |= L3_PATH_ENCAP;
	spec->key.family = nhc->nhc_gw_family;
	if (nhc->nhc_gw_family == AF_INET)
		memcpy(spec->key.addr, &nhc->nhc_gw.ipv4, sizeof(nhc->nhc_gw.ipv4));
	else if (nhc->nhc_gw_family == AF_INET6)
		memcpy(spec->key.addr, &nhc->nhc_gw.ipv6, sizeof(nhc->nhc_gw.ipv6));
}

static struct l3_paths *fib4_paths_of(struct clsw_l3 *l3, struct fib_info *fi, bool veto,
				      char *text, int *err)
{
	struct l3_path one = {}, *spec = &one;
	struct l3_paths *paths;
	int i, count;

	*err = 0;
	if (fi->nh)
		return l3_paths_of_object(l3, fi->nh->id);
	/* the kernel has one fib_info for all routes of the same ways */
	if (fi == l3->last_fi && !l3->last_paths->why) {
		l3->last_paths->refs++;
		return l3->last_paths;
	}
	count = fib_info_num_path(fi);
	if (count > 1) {
		spec = kcalloc(count, sizeof(*spec), GFP_ATOMIC);
		if (!spec) {
			*err = -ENOMEM;
			return NULL;
		}
	}
	for (i = 0; i < count; i++)
		fib4_spec_of(&spec[i], fib_info_nhc(fi, i));
	paths = l3_paths_get(l3, TND_AF_INET, spec, count, veto, text, err);
	if (spec != &one)
		kfree(spec);
	return paths;
}

static int fib4_replaced(struct clsw_l3 *l3, const struct fib_entry_notifier_info *info, char *text)
{
	__be32 dst = htonl(info->dst);
	bool veto = info->info.extack;
	struct l3_alias fresh = {
		.type = info->type,
		.dscp = inet_dscp_to_dsfield(info->dscp),
		.tb_id = info->tb_id,
	};
	struct l3_route *route;
	int err = 0;

	if (info->tb_id == RT_TABLE_DEFAULT)
		return 0;
	route = l3_route_get(l3, info->tb_id, TND_AF_INET, &dst, info->dst_len);
	if (!route) {
		if (!veto)
			l3_degrade(l3);
		return -ENOMEM;
	}
	/* a list that was reserved for has its next hops in it, too */
	clsw_hold_begin(l3->cd, info->tb_id, AF_INET, info->dst_len, &dst);
	if (info->type == RTN_UNICAST) {
		fresh.paths = fib4_paths_of(l3, info->fi, veto, text, &err);
		if (!fresh.paths && veto && err)
			goto out;
		/* the prefix traps till the kernel has said once more how it is reached */
		if (err == -ENOMEM)
			l3_degrade(l3);
		err = 0;
	}
	fib_info_hold(info->fi);
	fresh.fi = info->fi;
	INIT_LIST_HEAD(&fresh.in_paths);
	err = l3_alias_set(l3, route, &fresh, veto, text);
	if (err) {
		l3_alias_release(l3, &fresh);
	} else if (fresh.paths && !info->fi->nh) {
		l3->last_fi = info->fi;
		l3->last_paths = fresh.paths;
	}
out:
	clsw_hold_end(l3->cd);
	if (err)
		l3_route_put(l3, route);
	return err;
}

static void fib4_deleted(struct clsw_l3 *l3, const struct fib_entry_notifier_info *info)
{
	__be32 dst = htonl(info->dst);
	int which = l3_alias_of(info->tb_id);
	struct l3_route *route;

	route = l3_route_find(l3, info->tb_id, TND_AF_INET, &dst, info->dst_len);
	/* what was refused is not ours; what has taken its place stays */
	if (!route || !route->alias[which].there || route->alias[which].fi != info->fi)
		return;
	l3_alias_clear(l3, route, which);
}

/* A device has refused what @l3 has taken. A route of before: the kernel says which */
struct refused {
	const struct fib_entry_notifier_info *info;
	bool replaces;
};

static void fib4_undo(struct clsw_l3 *l3, void *arg)
{
	const struct refused *refused = arg;
	const struct fib_entry_notifier_info *info = refused->info;
	__be32 dst = htonl(info->dst);
	struct l3_route *route;

	if (!refused->replaces) {
		fib4_deleted(l3, info);
		return;
	}
	route = l3_route_find(l3, info->tb_id, TND_AF_INET, &dst, info->dst_len);
	if (route && route->alias[l3_alias_of(info->tb_id)].fi == info->fi)
		l3_degrade(l3);
}

static bool fib4_known(struct clsw_l3 *l3, const struct fib_entry_notifier_info *info)
{
	__be32 dst = htonl(info->dst);
	struct l3_route *route;

	route = l3_route_find(l3, info->tb_id, TND_AF_INET, &dst, info->dst_len);
	return route && route->alias[l3_alias_of(info->tb_id)].there;
}

int l3_fib4_event(struct clsw_l3 *l3, unsigned long event, struct fib_notifier_info *info)
{
	struct fib_nh_notifier_info *nh_info;
	struct refused refused = {};
	char text[CLSW_TEXT];
	int err = 0;

	text[0] = 0;

	clsw_lock(l3->cd);
	switch (event) {
	case FIB_EVENT_ENTRY_REPLACE:
		refused.info = container_of(info, struct fib_entry_notifier_info, info);
		err = fib4_replaced(l3, refused.info, text);
		if (err)
			refused.replaces = fib4_known(l3, refused.info);
		break;
	case FIB_EVENT_ENTRY_DEL:
		fib4_deleted(l3, container_of(info, struct fib_entry_notifier_info, info));
		break;
	case FIB_EVENT_NH_ADD:
	case FIB_EVENT_NH_DEL:
		nh_info = container_of(info, struct fib_nh_notifier_info, info);
		if (nh_info->fib_nh->fib_nh_dev)
			l3_paths_refresh(l3, nh_info->fib_nh->fib_nh_dev->ifindex);
		break;
	}
	clsw_unlock(l3->cd);
	if (err && info->extack)
		l3_others(l3, fib4_undo, &refused);
	if (err && text[0])
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "%s", text);
	return err;
}
