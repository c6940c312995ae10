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
 * refused is deleted by the kernel all the same: the FIB copy does not have it.
 *
 * A route with `from` is one of several for its destination. The chip can't
 * look at the source: the prefix traps while there is one.
 *
 * Of several routes of one metric that are no siblings (ip -6 route append of
 * another device or next-hop object) the kernel takes the one whose device the
 * packet came in by (net/ipv6/route.c, find_rr_leaf()), and tells of the first
 * alone. The others are looked for by the clock; the prefix traps.
 */
#include <net/nexthop.h>

#include "l3.h"

static void fib6_spec_of(struct l3_path *spec, const struct fib6_info *rt)
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

static struct l3_paths *fib6_paths_of(struct clsw_l3 *l3, struct fib6_info **rts,
				      unsigned int count, bool veto, char *text, int *err)
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
		fib6_spec_of(&spec[i], rts[i]);
	paths = l3_paths_get(l3, TND_AF_INET6, spec, count, veto, text, err);
	if (spec != &one)
		kfree(spec);
	return paths;
}

static u8 fib6_type_of(const struct fib6_info *rt)
{
	/* reject routes without a type of their own are unreachable */
	if (rt->fib6_flags & RTF_REJECT && rt->fib6_type == RTN_UNICAST)
		return RTN_UNREACHABLE;
	return rt->fib6_type;
}

/* Some of the kernel's routes */
struct routes {
	struct fib6_info **rts;
	unsigned int count;
};

static const struct routes none;

static bool fib6_has(const struct routes *routes, const struct fib6_info *rt)
{
	unsigned int i;

	for (i = 0; i < routes->count; i++)
		if (routes->rts[i] == rt)
			return true;
	return false;
}

static bool fib6_has_any(const struct routes *routes, const struct routes *of)
{
	unsigned int i;

	for (i = 0; i < of->count; i++)
		if (fib6_has(routes, of->rts[i]))
			return true;
	return false;
}

/* An array of what stays of @old (all but @lost) and of what comes; references for all */
static struct fib6_info **fib6_gather(const struct routes *old, const struct routes *lost,
				      const struct routes *fresh, unsigned int *count)
{
	unsigned int i, n = 0;
	struct fib6_info **rts;

	rts = kcalloc(old->count + fresh->count + 1, sizeof(*rts), GFP_ATOMIC);
	if (!rts)
		return NULL;
	for (i = 0; i < old->count; i++)
		if (!fib6_has(lost, old->rts[i]))
			rts[n++] = old->rts[i];
	for (i = 0; i < fresh->count; i++)
		rts[n++] = fresh->rts[i];
	for (i = 0; i < n; i++)
		fib6_info_hold(rts[i]);
	*count = n;
	return rts;
}

/* The alias with these routes (taken over); not @veto: ends as a trap at worst */
static int fib6_set(struct clsw_l3 *l3, struct l3_route *route, u32 tb_id, struct fib6_info **rts,
		    unsigned int count, bool veto, char *text)
{
	struct l3_alias fresh = {
		.type = fib6_type_of(rts[0]),
		.tb_id = tb_id,
		.rts = rts,
		.rt_count = count,
	};
	int err = 0;

	INIT_LIST_HEAD(&fresh.in_paths);
	if (fresh.type == RTN_UNICAST) {
		fresh.paths = fib6_paths_of(l3, rts, count, veto, text, &err);
		if (!fresh.paths && veto && err)
			goto out;
		/* the prefix traps till the kernel has said once more how it is reached */
		if (err == -ENOMEM)
			l3_degrade(l3);
		err = 0;
	}
	err = l3_alias_set(l3, route, &fresh, veto, text);
out:
	if (err)
		l3_alias_release(l3, &fresh);
	return err;
}

/* ---- flags ---- */

#define FLAG_BATCH	16

/*
 * As fib6_info_hw_flags_set() does it while nobody is to be told. That function
 * asks the sysctl by itself, and allocates and may sleep if it is on: it is for
 * the work item alone.
 */
static void fib6_set_flags(struct fib6_info *rt, u8 shown)
{
	WRITE_ONCE(rt->offload, !!(shown & L3_SHOWN_OFFLOAD));
	WRITE_ONCE(rt->trap, !!(shown & L3_SHOWN_TRAP));
	WRITE_ONCE(rt->offload_failed, !!(shown & L3_SHOWN_FAILED));
}

void l3_fib6_show(struct clsw_l3 *l3, struct l3_route *route)
{
	const struct l3_alias *alias = l3_route_chosen(route);
	struct l3_source *source;
	int i;

	if (READ_ONCE(l3->net->ipv6.sysctl.fib_notify_on_flag_change)) {
		route->flag_at = 0;
		if (list_empty(&route->flag_list))
			list_add_tail(&route->flag_list, &l3->flag_list);
		queue_work(l3->wq, &l3->flag_work);
		return;
	}
	for (i = 0; alias && route->shown != L3_SHOWN_NEVER && i < alias->rt_count; i++)
		fib6_set_flags(alias->rts[i], route->shown);
	list_for_each_entry(source, &route->sources, list) {
		for (i = 0; !source->told && i < source->rt_count; i++)
			fib6_set_flags(source->rts[i], L3_SHOWN_TRAP);
		source->told = true;
	}
}

/* What a work item tells of in one go, with references */
struct flags {
	struct fib6_info *rts[FLAG_BATCH];
	u8 shown[FLAG_BATCH];
	unsigned int count;
};

static bool fib6_take_flag(struct flags *flags, struct fib6_info *rt, u8 shown)
{
	if (flags->count == FLAG_BATCH)
		return false;
	fib6_info_hold(rt);
	flags->rts[flags->count] = rt;
	flags->shown[flags->count++] = shown;
	return true;
}

/* False: there is more of this one */
static bool fib6_take_route(struct flags *flags, struct l3_route *route)
{
	const struct l3_alias *alias = l3_route_chosen(route);
	struct l3_source *source;
	int i;

	while (alias && route->shown != L3_SHOWN_NEVER && route->flag_at < alias->rt_count) {
		if (!fib6_take_flag(flags, alias->rts[route->flag_at], route->shown))
			return false;
		route->flag_at++;
	}
	list_for_each_entry(source, &route->sources, list) {
		if (source->told)
			continue;
		/* those that were told are told no more: the kernel compares */
		for (i = 0; i < source->rt_count; i++)
			if (!READ_ONCE(source->rts[i]->trap) &&
			    !fib6_take_flag(flags, source->rts[i], L3_SHOWN_TRAP))
				return false;
		source->told = true;
	}
	return true;
}

static void fib6_take_flags(struct clsw_l3 *l3, struct flags *flags)
{
	struct l3_route *route;

	flags->count = 0;
	while (flags->count < FLAG_BATCH && !list_empty(&l3->flag_list)) {
		route = list_first_entry(&l3->flag_list, struct l3_route, flag_list);
		if (fib6_take_route(flags, route))
			list_del_init(&route->flag_list);
	}
}

void l3_flag_work(struct work_struct *work)
{
	struct clsw_l3 *l3 = container_of(work, struct clsw_l3, flag_work);
	struct flags flags;
	unsigned int i;

	for (;;) {
		clsw_lock(l3->cd);
		fib6_take_flags(l3, &flags);
		clsw_unlock(l3->cd);
		if (!flags.count)
			break;
		for (i = 0; i < flags.count; i++) {
			fib6_info_hw_flags_set(l3->net, flags.rts[i],
					       flags.shown[i] & L3_SHOWN_OFFLOAD,
					       flags.shown[i] & L3_SHOWN_TRAP,
					       flags.shown[i] & L3_SHOWN_FAILED);
			fib6_info_release(flags.rts[i]);
		}
		cond_resched();
	}
}

/* ---- routes with `from` ---- */

static struct l3_source *fib6_source_find(struct l3_route *route, const struct fib6_info *rt)
{
	struct l3_source *source;

	list_for_each_entry(source, &route->sources, list)
		if (source->tb_id == rt->fib6_table->tb6_id &&
		    source->len == rt->fib6_src.plen &&
		    ipv6_addr_equal(&source->addr, &rt->fib6_src.addr))
			return source;
	return NULL;
}

static void fib6_release(struct fib6_info **rts, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		fib6_info_release(rts[i]);
	kfree(rts);
}

void l3_source_free(struct l3_source *source)
{
	fib6_release(source->rts, source->rt_count);
	kfree(source);
}

static void fib6_source_set(struct clsw_l3 *l3, struct l3_route *route, struct l3_source *source,
			    struct fib6_info **rts, unsigned int count)
{
	fib6_release(source->rts, source->rt_count);
	source->rts = rts;
	source->rt_count = count;
	source->told = false;
	l3_fib6_show(l3, route);
}

static int fib6_source_come(struct clsw_l3 *l3, struct l3_route *route, const struct routes *fresh,
			    bool append, bool veto, char *text)
{
	struct fib6_info *rt = fresh->rts[0], **rts;
	struct l3_source *source = fib6_source_find(route, rt);
	struct routes old = {};
	unsigned int count;
	int err;

	if (source && append)
		old = (struct routes){ source->rts, source->rt_count };
	rts = fib6_gather(&old, &none, fresh, &count);
	if (!rts)
		return -ENOMEM;
	/* the same ends as before: a trap, and no object of their own */
	if (source) {
		fib6_source_set(l3, route, source, rts, count);
		return 0;
	}
	source = kzalloc(sizeof(*source), GFP_ATOMIC);
	if (!source) {
		fib6_release(rts, count);
		return -ENOMEM;
	}
	source->addr = rt->fib6_src.addr;
	source->len = rt->fib6_src.plen;
	source->tb_id = rt->fib6_table->tb6_id;
	list_add(&source->list, &route->sources);
	err = l3_route_apply(l3, route, veto, text);
	if (err) {
		list_del(&source->list);
		fib6_release(rts, count);
		kfree(source);
		return err;
	}
	fib6_source_set(l3, route, source, rts, count);
	return 0;
}

static void fib6_source_gone(struct clsw_l3 *l3, struct l3_route *route, const struct routes *lost)
{
	struct l3_source *source = fib6_source_find(route, lost->rts[0]);
	struct fib6_info **rts;
	unsigned int count;
	struct routes old;

	if (!source)
		return;
	old = (struct routes){ source->rts, source->rt_count };
	if (!fib6_has_any(&old, lost))
		return;
	rts = fib6_gather(&old, lost, &none, &count);
	if (rts && count) {
		fib6_source_set(l3, route, source, rts, count);
		return;
	}
	/* which are left can't be remembered: the kernel says it once more */
	if (!rts && source->rt_count > lost->count) {
		l3_degrade(l3);
		return;
	}
	kfree(rts);
	list_del(&source->list);
	l3_source_free(source);
	l3_route_apply(l3, route, false, NULL);
	l3_route_put(l3, route);
}

/* ---- events ---- */

static int fib6_come(struct clsw_l3 *l3, const struct routes *fresh, bool append, bool veto,
		     char *text)
{
	struct fib6_info *rt = fresh->rts[0], **rts;
	u32 tb_id = rt->fib6_table->tb6_id;
	bool multipath = fresh->count > 1;
	struct l3_alias *old;
	struct l3_route *route;
	struct routes now = {};
	unsigned int count;
	int err;

	route = l3_route_get(l3, tb_id, TND_AF_INET6, &rt->fib6_dst.addr, rt->fib6_dst.plen);
	if (!route) {
		if (!veto)
			l3_degrade(l3);
		return -ENOMEM;
	}
	/* the old one is gone already: see above */
	if (rt->fib6_src.plen) {
		if (!append && multipath && fib6_source_find(route, rt))
			veto = false;
		err = fib6_source_come(l3, route, fresh, append, veto, text);
		goto out;
	}
	old = &route->alias[l3_alias_of(tb_id)];
	if (old->there && !append && multipath)
		veto = false;
	if (old->there && append)
		now = (struct routes){ old->rts, old->rt_count };
	rts = fib6_gather(&now, &none, fresh, &count);
	clsw_hold_begin(l3->cd, tb_id, AF_INET6, rt->fib6_dst.plen, &rt->fib6_dst.addr);
	err = rts ? fib6_set(l3, route, tb_id, rts, count, veto, text) : -ENOMEM;
	clsw_hold_end(l3->cd);
out:
	if (err)
		l3_route_put(l3, route);
	/* the kernel has it, and nobody can be told */
	if (err && !veto)
		l3_degrade(l3);
	return veto ? err : 0;
}

static void fib6_gone(struct clsw_l3 *l3, const struct routes *lost)
{
	struct fib6_info *rt = lost->rts[0], **rts;
	u32 tb_id = rt->fib6_table->tb6_id;
	int which = l3_alias_of(tb_id);
	struct l3_alias *old;
	struct l3_route *route;
	struct routes now;
	unsigned int count;

	route = l3_route_find(l3, tb_id, TND_AF_INET6, &rt->fib6_dst.addr, rt->fib6_dst.plen);
	if (!route)
		return;
	if (rt->fib6_src.plen) {
		fib6_source_gone(l3, route, lost);
		return;
	}
	old = &route->alias[which];
	now = (struct routes){ old->rts, old->rt_count };
	if (!fib6_has_any(&now, lost))
		return;
	rts = fib6_gather(&now, lost, &none, &count);
	if (rts && count) {
		fib6_set(l3, route, tb_id, rts, count, false, NULL);
		return;
	}
	/* no memory: the whole prefix goes to the CPU rather than to a dead way */
	if (!rts && old->rt_count > lost->count) {
		l3_degrade(l3);
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

/* ---- several of a metric ---- */

#define LOOK_BUCKETS	16384U	/* of the table of objects in a tick */

bool l3_fib6_choice(const struct l3_alias *alias)
{
	const struct routes ours = { alias->rts, alias->rt_count };
	const struct fib6_info *rt, *next;
	bool yes = false;

	if (!ours.count)
		return false;
	rt = ours.rts[0];
	rcu_read_lock();
	/* one that is in no table any more says nothing of those behind it */
	next = rcu_access_pointer(rt->fib6_node) ? rcu_dereference(rt->fib6_next) : NULL;
	for (; next && next->fib6_metric == rt->fib6_metric && !yes;
	     next = rcu_dereference(next->fib6_next))
		yes = !fib6_has(&ours, next);
	rcu_read_unlock();
	return yes;
}

static void fib6_look_at(struct clsw_l3 *l3, struct clsw_obj *obj)
{
	struct l3_route *route = obj->owner;
	struct l3_alias *alias;
	bool traps;

	if (obj->key.cls != TND_CLS_ROUTE || !obj->wanted || !route ||
	    route->family != TND_AF_INET6 || !list_empty(&route->sources))
		return;
	alias = l3_route_chosen(route);
	traps = route->why == L3_WHY_INGRESS;
	if (alias && alias->type == RTN_UNICAST && alias->paths && l3_fib6_choice(alias) != traps)
		l3_route_apply(l3, route, false, NULL);
}

void l3_fib6_look(struct clsw_l3 *l3)
{
	struct clsw_device *cd = l3->cd;
	u32 buckets = BIT(cd->object_bits), i;
	struct clsw_walk walk = {};
	struct clsw_obj *obj;

	for (i = 0; i < min(buckets, LOOK_BUCKETS); i++) {
		walk.bucket = l3->looked++ % buckets;
		walk.at = 0;
		if (hlist_empty(&cd->objects[walk.bucket]))
			continue;
		clsw_lock(cd);
		while ((obj = clsw_walk_next(cd, &walk)))
			fib6_look_at(l3, obj);
		clsw_unlock(cd);
		cond_resched();
	}
}

/* A device has refused what @l3 has taken. A route of before: the kernel says which */
struct refused {
	struct routes routes;
	bool replaces;
};

/* What stands where @rt would: of its prefix, and of its source prefix */
static struct routes fib6_present(struct clsw_l3 *l3, const struct fib6_info *rt)
{
	u32 tb_id = rt->fib6_table->tb6_id;
	const struct l3_source *source;
	const struct l3_alias *alias;
	struct l3_route *route;

	route = l3_route_find(l3, tb_id, TND_AF_INET6, &rt->fib6_dst.addr, rt->fib6_dst.plen);
	if (!route)
		return none;
	if (rt->fib6_src.plen) {
		source = fib6_source_find(route, rt);
		return source ? (struct routes){ source->rts, source->rt_count } : none;
	}
	alias = &route->alias[l3_alias_of(tb_id)];
	return (struct routes){ alias->rts, alias->rt_count };
}

static void fib6_undo(struct clsw_l3 *l3, void *arg)
{
	const struct refused *refused = arg;
	const struct fib6_info *rt = refused->routes.rts[0];
	struct routes now = fib6_present(l3, rt);

	if (!refused->replaces)
		fib6_gone(l3, &refused->routes);
	else if (fib6_has(&now, rt))
		l3_degrade(l3);
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
				l3_degrade(l3);
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
	refused.routes = (struct routes){ rts, n };
	clsw_lock(l3->cd);
	if (event == FIB_EVENT_ENTRY_DEL)
		fib6_gone(l3, &refused.routes);
	else
		err = fib6_come(l3, &refused.routes, event == FIB_EVENT_ENTRY_APPEND, veto, text);
	/* what is appended goes again by itself */
	if (err && event == FIB_EVENT_ENTRY_REPLACE)
		refused.replaces = fib6_present(l3, rt).count;
	clsw_unlock(l3->cd);
	if (err && veto)
		l3_others(l3, fib6_undo, &refused);
	if (rts != &one)
		kfree(rts);
	if (err && text[0])
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "%s", text);
	return err;
}
