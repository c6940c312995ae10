// SPDX-License-Identifier: GPL-2.0
/*
 * IPv6 FIB events. Atomic (RCU, mostly with the table's lock), or in a replay.
 *
 *   REPLACE  add, replace, promotion; with siblings, the whole multipath route
 *   APPEND   siblings come to the first route of a prefix
 *   DEL      siblings go; the route goes with the last of them
 *
 * A multipath replace has lost the old route before it is told: a refusal
 * would leave nothing. It is accepted, and what finds no room traps. What was
 * refused is deleted by the kernel all the same: the shadow table knows it not.
 *
 * A route with `from` is one of several for its destination. The chip can't
 * look at the source: the prefix traps while there is one.
 */
#include <net/nexthop.h>

#include "l3.h"

static void spec_of(struct l3_path *spec, const struct fib6_info *rt)
{
	const struct fib_nh_common *nhc = &rt->fib6_nh->nh_common;

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

static struct l3_paths *paths_of(struct clsw_l3 *l3, struct fib6_info **rts, unsigned int count,
				 bool veto, char *text, int *err)
{
	struct l3_path one = {}, *spec = &one;
	struct l3_paths *paths;
	unsigned int i;

	*err = 0;
	if (rts[0]->nh)
		return l3_paths_of_object(l3, rts[0]->nh->id);
	if (count > 1) {
		spec = kcalloc(count, sizeof(*spec), GFP_ATOMIC);
		if (!spec) {
			*err = -ENOMEM;
			return NULL;
		}
	}
	for (i = 0; i < count; i++)
		spec_of(&spec[i], rts[i]);
	paths = l3_paths_get(l3, TND_AF_INET6, spec, count, veto, text, err);
	if (spec != &one)
		kfree(spec);
	return paths;
}

static u8 type_of(const struct fib6_info *rt)
{
	/* reject routes without a type of their own are unreachable */
	if (rt->fib6_flags & RTF_REJECT && rt->fib6_type == RTN_UNICAST)
		return RTN_UNREACHABLE;
	return rt->fib6_type;
}

/* An array of what stays of @old (all but @gone) and of what comes; references for all */
static struct fib6_info **gather(const struct l3_alias *old, struct fib6_info **gone,
				 unsigned int gone_count, struct fib6_info **come,
				 unsigned int come_count, unsigned int *count)
{
	unsigned int i, j, n = 0;
	struct fib6_info **rts;

	rts = kcalloc((old ? old->rt_count : 0) + come_count + 1, sizeof(*rts), GFP_ATOMIC);
	if (!rts)
		return NULL;
	for (i = 0; old && i < old->rt_count; i++) {
		for (j = 0; j < gone_count && gone[j] != old->rts[i]; j++)
			;
		if (j == gone_count)
			rts[n++] = old->rts[i];
	}
	for (j = 0; j < come_count; j++)
		rts[n++] = come[j];
	for (i = 0; i < n; i++)
		fib6_info_hold(rts[i]);
	*count = n;
	return rts;
}

/* The alias with these routes (taken over); not @veto: ends as a trap at worst */
static int set(struct clsw_l3 *l3, struct l3_route *route, u32 tb_id, struct fib6_info **rts,
	       unsigned int count, bool veto, char *text)
{
	struct l3_alias fresh = {
		.type = type_of(rts[0]),
		.tb_id = tb_id,
		.rts = rts,
		.rt_count = count,
	};
	int err = 0;

	INIT_LIST_HEAD(&fresh.in_paths);
	if (fresh.type == RTN_UNICAST) {
		fresh.paths = paths_of(l3, rts, count, veto, text, &err);
		if (!fresh.paths && veto && err)
			goto out;
		/* the prefix traps till the kernel has said once more how it is reached */
		if (err == -ENOMEM)
			l3_blind(l3);
		err = 0;
	}
	err = l3_alias_set(l3, route, &fresh, veto, text);
out:
	if (err)
		l3_alias_release(l3, &fresh);
	return err;
}

/* ---- routes with `from` ---- */

static struct l3_source *source_find(struct l3_route *route, const struct fib6_info *rt)
{
	struct l3_source *source;

	list_for_each_entry(source, &route->sources, list)
		if (source->tb_id == rt->fib6_table->tb6_id &&
		    source->len == rt->fib6_src.plen &&
		    ipv6_addr_equal(&source->addr, &rt->fib6_src.addr))
			return source;
	return NULL;
}

static int source_add(struct clsw_l3 *l3, struct l3_route *route, struct fib6_info *rt, bool veto,
		      char *text)
{
	struct l3_source *source;
	int err;

	/* the same ends as before: a trap, and no object of their own */
	if (source_find(route, rt)) {
		fib6_info_hw_flags_set(l3->net, rt, false, true, false);
		return 0;
	}
	source = kzalloc(sizeof(*source), GFP_ATOMIC);
	if (!source)
		return -ENOMEM;
	source->addr = rt->fib6_src.addr;
	source->len = rt->fib6_src.plen;
	source->tb_id = rt->fib6_table->tb6_id;
	list_add(&source->list, &route->sources);
	err = l3_route_apply(l3, route, veto, text);
	if (err) {
		list_del(&source->list);
		kfree(source);
	} else if (!READ_ONCE(l3->net->ipv6.sysctl.fib_notify_on_flag_change)) {
		fib6_info_hw_flags_set(l3->net, rt, false, true, false);
	}
	return err;
}

static void source_del(struct clsw_l3 *l3, struct l3_route *route, struct fib6_info *rt)
{
	struct l3_source *source = source_find(route, rt);

	if (!source)
		return;
	list_del(&source->list);
	kfree(source);
	l3_route_apply(l3, route, false, NULL);
	l3_route_put(l3, route);
}

/* ---- events ---- */

static int come(struct clsw_l3 *l3, struct fib6_info **come_rts, unsigned int come_count,
		bool append, bool veto, char *text)
{
	struct fib6_info *rt = come_rts[0], **rts;
	u32 tb_id = rt->fib6_table->tb6_id;
	struct l3_alias *old;
	struct l3_route *route;
	unsigned int count;
	int err;

	route = l3_route_get(l3, tb_id, TND_AF_INET6, &rt->fib6_dst.addr, rt->fib6_dst.plen);
	if (!route) {
		if (!veto)
			l3_blind(l3);
		return -ENOMEM;
	}
	if (rt->fib6_src.plen) {
		err = source_add(l3, route, rt, veto, text);
		goto out;
	}
	old = &route->alias[l3_alias_of(tb_id)];
	/* the old one is gone already: see above */
	if (old->there && !append && come_count > 1)
		veto = false;
	rts = gather(append && old->there ? old : NULL, NULL, 0, come_rts, come_count, &count);
	clsw_hold_begin(l3->cd, tb_id, AF_INET6, rt->fib6_dst.plen, &rt->fib6_dst.addr);
	err = rts ? set(l3, route, tb_id, rts, count, veto, text) : -ENOMEM;
	clsw_hold_end(l3->cd);
out:
	if (err)
		l3_route_put(l3, route);
	/* the kernel has it, and nobody can be told */
	if (err && !veto)
		l3_blind(l3);
	return veto ? err : 0;
}

static void gone(struct clsw_l3 *l3, struct fib6_info **gone_rts, unsigned int gone_count)
{
	struct fib6_info *rt = gone_rts[0], **rts;
	u32 tb_id = rt->fib6_table->tb6_id;
	int which = l3_alias_of(tb_id);
	struct l3_alias *old;
	struct l3_route *route;
	unsigned int count, i, j;
	bool ours = false;

	route = l3_route_find(l3, tb_id, TND_AF_INET6, &rt->fib6_dst.addr, rt->fib6_dst.plen);
	if (!route)
		return;
	if (rt->fib6_src.plen) {
		source_del(l3, route, rt);
		return;
	}
	old = &route->alias[which];
	for (i = 0; i < old->rt_count; i++)
		for (j = 0; j < gone_count; j++)
			ours |= old->rts[i] == gone_rts[j];
	if (!ours)
		return;
	rts = gather(old, gone_rts, gone_count, NULL, 0, &count);
	if (rts && count) {
		set(l3, route, tb_id, rts, count, false, NULL);
		return;
	}
	/* no memory: the whole prefix goes to the CPU rather than to a dead way */
	if (!rts && old->rt_count > gone_count) {
		l3_blind(l3);
		if (old->paths) {
			list_del_init(&old->in_paths);
			l3_paths_put(l3, old->paths);
			old->paths = NULL;
		}
		l3_route_apply(l3, route, false, NULL);
		return;
	}
	kfree(rts);
	l3_alias_clear(l3, route, which);
}

/* A device has refused what @l3 has taken. A route of before: the kernel says which */
struct refused {
	struct fib6_info **rts;
	unsigned int count;
	bool replaces;
};

static bool known(struct clsw_l3 *l3, const struct fib6_info *rt, const struct fib6_info *which)
{
	u32 tb_id = rt->fib6_table->tb6_id;
	const struct l3_alias *alias;
	struct l3_route *route;
	unsigned int i;

	route = l3_route_find(l3, tb_id, TND_AF_INET6, &rt->fib6_dst.addr, rt->fib6_dst.plen);
	if (!route)
		return false;
	alias = &route->alias[l3_alias_of(tb_id)];
	for (i = 0; which && i < alias->rt_count && alias->rts[i] != which; i++)
		;
	return alias->there && (!which || i < alias->rt_count);
}

static void undo(struct clsw_l3 *l3, void *arg)
{
	const struct refused *refused = arg;

	if (!refused->replaces)
		gone(l3, refused->rts, refused->count);
	else if (known(l3, refused->rts[0], refused->rts[0]))
		l3_blind(l3);
}

int l3_fib6_event(struct clsw_l3 *l3, unsigned long event, struct fib_notifier_info *info)
{
	struct fib6_entry_notifier_info *six;
	struct fib6_info *one, **rts = &one, *rt, *iter;
	struct refused refused = {};
	bool veto = info->extack;
	char text[CLSW_TEXT] = "";
	unsigned int n = 1;
	int err = 0;

	if (event != FIB_EVENT_ENTRY_REPLACE && event != FIB_EVENT_ENTRY_APPEND &&
	    event != FIB_EVENT_ENTRY_DEL)
		return 0;
	six = container_of(info, struct fib6_entry_notifier_info, info);
	rt = six->rt;
	if (rt->fib6_table->tb6_id == RT_TABLE_DEFAULT)
		return 0;
	if (six->nsiblings) {
		rts = kcalloc(six->nsiblings + 1, sizeof(*rts), GFP_ATOMIC);
		if (!rts) {
			/* an add is undone by the kernel; a replace or delete has happened */
			clsw_lock(l3->cd);
			if (!veto || event == FIB_EVENT_ENTRY_REPLACE)
				l3_blind(l3);
			clsw_unlock(l3->cd);
			return -ENOMEM;
		}
		list_for_each_entry(iter, &rt->fib6_siblings, fib6_siblings) {
			if (n > six->nsiblings)
				break;
			rts[n++] = iter;
		}
	}
	rts[0] = rt;
	clsw_lock(l3->cd);
	if (event == FIB_EVENT_ENTRY_DEL)
		gone(l3, rts, n);
	else
		err = come(l3, rts, n, event == FIB_EVENT_ENTRY_APPEND, veto, text);
	/* what is appended goes again by itself */
	if (err && event == FIB_EVENT_ENTRY_REPLACE)
		refused.replaces = known(l3, rt, NULL);
	clsw_unlock(l3->cd);
	if (err && veto) {
		refused.rts = rts;
		refused.count = n;
		l3_others(l3, undo, &refused);
	}
	if (rts != &one)
		kfree(rts);
	if (err && text[0])
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "%s", text);
	return err;
}
