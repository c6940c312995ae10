// SPDX-License-Identifier: GPL-2.0
/*
 * One prefix: which of the kernel's routes decides, what hardware should say,
 * and what the cover rule says of it.
 *
 *   alias[0] local ─┐
 *   alias[1] main  ─┴► chosen ─► route_want() ─► clsw_put() ─► cover: installed,
 *                                                        or missing: the
 *                                                        next one traps
 *
 * A route that was admitted counts as standing from the put on: objects are
 * written in the order of their puts, so nothing posted later sees the chip
 * without it. One that found no room, or does not know yet (and nobody could be
 * told) counts when its write is answered, and is written as a trap first.
 */
#include <linux/slab.h>

#include "l3.h"

static void route_changed(struct clsw_device *cd, struct clsw_obj *obj);
static int route_say_why(const struct clsw_obj *obj, char *buf, size_t size);

static const struct clsw_watch route_watch = { .changed = route_changed, .why = route_say_why };
static const struct l3_alias nothing;

static const char *route_why_text(u8 why)
{
	static const char *const texts[] = {
		[L3_WHY_NONE] = "",
		[L3_WHY_LOCAL] = "own address",
		[L3_WHY_CONNECTED] = "connected: hosts have entries of their own",
		[L3_WHY_TYPE] = "the kernel owes the sender an answer",
		[L3_WHY_DSCP] = "depends on DSCP",
		[L3_WHY_ENCAP] = "encapsulates",
		[L3_WHY_SOURCE] = "depends on the source address",
		[L3_WHY_INGRESS] = "one of several: depends on where a packet came in",
		[L3_WHY_DEVICE] = "leaves by an interface that is not offloaded",
		[L3_WHY_DEAD] = "no next hop is usable",
		[L3_WHY_MIXED] = "several next hops, one without gateway",
		[L3_WHY_MANY] = "more next hops than a group takes",
		[L3_WHY_HASH] = "multipath hash policy",
		[L3_WHY_RESILIENT] = "a resilient group: the kernel moves its buckets",
		[L3_WHY_UNKNOWN] = "its next-hop object is not offloaded",
		[L3_WHY_FULL] = "no room for its next hops",
		[L3_WHY_SHADOWED] = "below a wider route of table local",
		[L3_WHY_MEMORY] = "no memory",
	};

	return why < ARRAY_SIZE(texts) ? texts[why] : "";
}

static int route_say_why(const struct clsw_obj *obj, char *buf, size_t size)
{
	const struct l3_route *route = obj->owner;

	if (obj->forced && !route->why)
		return scnprintf(buf, size, "a more specific prefix is not in hardware");
	return scnprintf(buf, size, "%s", route_why_text(route->why));
}

/* ---- the cover rule's wishes, to the store ---- */

static void route_serve(struct clsw_l3 *l3, struct clsw_cover *c)
{
	struct clsw_cover_node *n;
	struct l3_route *route;

	if (likely(list_empty(&c->touched) && list_empty(&c->relief)))
		return;
	while ((n = clsw_cover_next_touched(c))) {
		route = n->owner;
		if (route && route->obj && clsw_cover_is_installed(n))
			clsw_force_trap(l3->cd, route->obj, clsw_cover_forced(n) > 0);
	}
}

static void route_missing(struct clsw_l3 *l3, struct l3_route *route)
{
	struct clsw_cover *c = l3_cover(route->vrf, route->family);

	clsw_cover_missing(c, route->node);
	/* once there is room it starts as a trap, until the answer is in */
	if (route->obj)
		clsw_force_trap(l3->cd, route->obj, true);
	route_serve(l3, c);
}

static void route_installed(struct clsw_l3 *l3, struct l3_route *route)
{
	struct clsw_cover *c = l3_cover(route->vrf, route->family);

	if (!clsw_cover_is_installed(route->node))
		clsw_cover_installed(c, route->node);
	clsw_force_trap(l3->cd, route->obj, clsw_cover_forced(route->node) > 0);
	route_serve(l3, c);
}

/* Out of hardware; whoever answers next traps before the delete is posted */
static void route_withdraw(struct clsw_l3 *l3, struct l3_route *route)
{
	struct clsw_cover *c = l3_cover(route->vrf, route->family);
	struct clsw_obj *obj = route->obj;

	clsw_cover_set_kernel(c, route->node, false);
	if (clsw_cover_is_installed(route->node))
		clsw_cover_withdrawn(c, route->node);
	route_serve(l3, c);
	route->obj = NULL;
	if (obj)
		clsw_drop(l3->cd, obj);
}

/* ---- flags ---- */

static void route_show(struct clsw_l3 *l3, struct l3_route *route)
{
	struct l3_alias *alias = l3_route_chosen(route);
	const struct clsw_obj *obj = route->obj;
	const struct tnd_route *body;
	u8 shown = 0;

	if (!alias || !(alias->fi || alias->rt_count))
		return;
	if (!obj) {
		/* omitted: the CPU gets its packets anyway */
		if (route->why != L3_WHY_MEMORY)
			return;
		shown = L3_SHOWN_FAILED;
	} else if (obj->state == CLSW_OBJ_SYNCED) {
		body = (const void *)obj->body;
		if (obj->lacks_target)
			shown = L3_SHOWN_TRAP | L3_SHOWN_FAILED;
		else if (obj->forced || body->action == TND_ACT_TRAP)
			shown = L3_SHOWN_TRAP;
		else
			shown = L3_SHOWN_OFFLOAD;
		if (route->why == L3_WHY_FULL || route->why == L3_WHY_MEMORY)
			shown |= L3_SHOWN_FAILED;
	} else if (obj->state == CLSW_OBJ_FAILED) {
		shown = L3_SHOWN_FAILED;
	} else {
		return;		/* the answer is on its way */
	}
	if (shown == route->shown)
		return;
	route->shown = shown;
	if (shown != L3_SHOWN_OFFLOAD)
		dev_dbg(l3->cd->parent, "table %u, %08x:%08x:%08x:%08x/%u: %s%s, %s\n",
			alias->tb_id, route->node->bits[0], route->node->bits[1],
			route->node->bits[2], route->node->bits[3], route->node->len,
			shown & L3_SHOWN_TRAP ? "traps" : "",
			shown & L3_SHOWN_FAILED ? " for want of room" : "",
			route_why_text(route->why));
	if (route->family == TND_AF_INET)
		l3_fib4_flags(l3, route, alias, shown);
	else
		l3_fib6_show(l3, route);
}

static void route_changed(struct clsw_device *cd, struct clsw_obj *obj)
{
	struct l3_route *route = obj->owner;
	struct clsw_l3 *l3 = cd->l3;

	if (!l3 || route->obj != obj)
		return;
	if (obj->state == CLSW_OBJ_SYNCED)
		route_installed(l3, route);
	else if (obj->state == CLSW_OBJ_FAILED && !obj->written)
		route_missing(l3, route);
	route_show(l3, route);
}

/* ---- what hardware should say ---- */

struct l3_alias *l3_route_chosen(struct l3_route *route)
{
	if (route->alias[0].there)
		return &route->alias[0];
	if (route->alias[1].there)
		return &route->alias[1];
	return NULL;
}

/* The parser sends these to the CPU before any lookup */
static bool route_omitted(const struct l3_route *route)
{
	const struct clsw_cover_node *n = route->node;

	if (route->family == TND_AF_INET6)
		return (n->len >= 8 && n->bits[0] >> 24 == 0xff) ||
		       (n->len >= 10 && n->bits[0] >> 22 == 0xfe80 >> 6) ||
		       (n->len == 128 && !n->bits[0] && !n->bits[1] && !n->bits[2] &&
			n->bits[3] == 1);
	/* 127/8 is one entry, what lies in it says the same */
	return (n->len >= 4 && n->bits[0] >> 28 == 0xe) || (n->len > 8 && n->bits[0] >> 24 == 127);
}

/* Table local is asked before main, whatever the lengths (unless it is one trie with it) */
static bool route_shadowed(const struct l3_route *route, const struct clsw_cover_node *n)
{
	const struct l3_route *above;

	if (route->alias[0].there || route->vrf->tb_id != RT_TABLE_MAIN)
		return false;
	for (; n; n = clsw_cover_kernel_parent(n)) {
		above = n->owner;
		if (above && above->alias[0].there && above->alias[0].type != RTN_THROW)
			return true;
	}
	return false;
}

static void route_as_trap(struct tnd_route *body, struct l3_route *route, u8 why, u8 reason)
{
	body->action = TND_ACT_TRAP;
	body->reason = reason;
	route->why = why;
}

static void route_want_unicast(struct l3_route *route, struct l3_alias *alias,
			       struct tnd_route *body)
{
	const struct l3_paths *paths = alias->paths;

	if (!paths) {
		route_as_trap(body, route, L3_WHY_UNKNOWN, TND_TRAP_ROUTE);
		return;
	}
	if (route->family == TND_AF_INET6 && l3_fib6_choice(alias)) {
		route_as_trap(body, route, L3_WHY_INGRESS, TND_TRAP_ROUTE);
		return;
	}
	if (paths->drop) {
		body->action = TND_ACT_DROP;
		return;
	}
	if (paths->why == L3_WHY_CONNECTED)
		route->connected = paths->path[0].key.ifindex;
	if (paths->why) {
		route_as_trap(body, route, paths->why,
			      paths->why == L3_WHY_CONNECTED ? TND_TRAP_CONNECTED : TND_TRAP_ROUTE);
		return;
	}
	/* a group has one policy */
	if (paths->count > 1 && paths->family != route->family && paths->own_hash) {
		route_as_trap(body, route, L3_WHY_HASH, TND_TRAP_ROUTE);
		return;
	}
	body->action = TND_ACT_FORWARD;
	if (l3_grouped(paths)) {
		body->target_kind = TND_RT_NHG;
		body->target = cpu_to_le32(paths->group_id);
	} else {
		body->target_kind = TND_RT_NEXTHOP;
		body->target = cpu_to_le32(paths->path[0].nh->id);
	}
}

static bool route_is_own(const struct l3_alias *alias)
{
	return alias->there && (alias->type == RTN_LOCAL || alias->type == RTN_BROADCAST ||
				alias->type == RTN_ANYCAST);
}

/* It may use the slots that are kept for local and connected prefixes */
static bool route_is_reserved(const struct l3_alias *alias)
{
	return route_is_own(alias) || (alias->type == RTN_UNICAST && alias->paths &&
				       alias->paths->why == L3_WHY_CONNECTED);
}

static void route_claims(const struct l3_route *route, const struct l3_alias *alias,
			 const struct clsw_cover_node *parent, struct l3_claims *claims)
{
	claims->own = route_is_own(&route->alias[0]) || route_is_own(&route->alias[1]);
	claims->below_local = route_shadowed(route, parent);
	claims->by_source = !list_empty(&route->sources);
	claims->by_dscp = alias && alias->dscp;
}

/*
 * False: no entry. *@reserve: it may use the slots kept for such. @parent: the
 * next wider prefix of the kernel's
 */
static bool route_want(struct l3_route *route, const struct clsw_cover_node *parent,
		       struct tnd_route *body, bool *reserve)
{
	struct l3_alias *alias = l3_route_chosen(route);
	struct l3_claims claims;
	u8 why, reason;

	route->why = L3_WHY_NONE;
	route->connected = 0;
	*reserve = false;
	if ((!alias && list_empty(&route->sources)) || route_omitted(route))
		return false;
	memset(body, 0, sizeof(*body));
	body->struct_size = cpu_to_le16(sizeof(*body));
	body->vrf = cpu_to_le16(route->vrf->id);
	body->family = route->family;
	body->prefix_len = route->node->len;
	clsw_cover_addr(l3_cover(route->vrf, route->family), route->node, body->addr);
	route_claims(route, alias, parent, &claims);
	why = l3_claims_trap(&claims, &reason);
	if (why) {
		/* what asked for a reserved slot goes on asking for it */
		*reserve = alias && route_is_reserved(alias);
		route_as_trap(body, route, why, reason);
		body->target_kind = TND_RT_NONE;
		return true;
	}
	switch (alias->type) {
	case RTN_UNICAST:
		route_want_unicast(route, alias, body);
		break;
	case RTN_BLACKHOLE:
		body->action = TND_ACT_DROP;
		break;
	case RTN_LOCAL:
	case RTN_BROADCAST:
	case RTN_ANYCAST:
		route_as_trap(body, route, L3_WHY_LOCAL, TND_TRAP_LOCAL);
		break;
	default:
		route_as_trap(body, route, L3_WHY_TYPE, TND_TRAP_ROUTE);
		break;
	}
	*reserve = route_is_reserved(alias);
	if (body->action == TND_ACT_TRAP) {
		body->target_kind = TND_RT_NONE;
		body->target = 0;
	}
	return true;
}

static bool route_is_connected(const struct clsw_cover_node *n)
{
	const struct l3_route *route = n ? n->owner : NULL;

	return route && route->connected;
}

static int route_put(struct clsw_l3 *l3, struct l3_route *route, const struct tnd_route *body,
		     u8 flags, bool veto, char *text)
{
	struct clsw_cover_node *n = route->node;
	bool fresh = !route->obj;
	int err;

	if (fresh && clsw_cover_starts_as_trap(n))
		flags |= CLSW_PUT_TRAP;
	/* nobody to tell: nothing is waited for */
	if (!veto)
		flags |= CLSW_PUT_MUST;
	err = clsw_put(l3->cd, TND_CLS_ROUTE, body, sizeof(*body), flags, &route_watch, route,
		       &route->obj, text);
	if (err && fresh)
		route->obj = NULL;
	if (!err || !veto || fresh || err != -ENOSPC)
		return err;
	/* a route that was missing already is replaced */
	flags |= CLSW_PUT_MUST;
	return clsw_put(l3->cd, TND_CLS_ROUTE, body, sizeof(*body), flags, &route_watch, route,
			&route->obj, NULL);
}

int l3_route_apply(struct clsw_l3 *l3, struct l3_route *route, bool veto, char *text)
{
	struct clsw_cover *c = l3_cover(route->vrf, route->family);
	const struct clsw_cover_node *parent = clsw_cover_kernel_parent(route->node);
	u32 was_connected = route->connected;
	u8 was_why = route->why;
	struct tnd_route body;
	bool reserve, known;
	int err;

	known = route_want(route, parent, &body, &reserve);
	if (known && route->vrf->active) {
		bool was = clsw_cover_in_kernel(route->node);

		clsw_cover_set_kernel(c, route->node, true);
		err = route_put(l3, route, &body, reserve ? CLSW_PUT_RESERVE : 0, veto, text);
		if (err && veto) {
			if (!was)
				clsw_cover_set_kernel(c, route->node, false);
			route->connected = was_connected;
			route->why = was_why;
			return err;
		}
		clsw_cover_set_traps(c, route->node, body.action == TND_ACT_TRAP);
		if (err) {
			/* no memory for the object: its cover traps, and it is tried again */
			route->why = L3_WHY_MEMORY;
			l3->sleepy = true;
			route_missing(l3, route);
		} else if (!route->obj->written && (route->obj->waits ||
						    route->obj->state == CLSW_OBJ_FAILED)) {
			route_missing(l3, route);
		} else {
			route_installed(l3, route);
		}
	} else {
		route_withdraw(l3, route);
		if (known)	/* a prefix, but in a table that no packet asks */
			clsw_cover_set_kernel(c, route->node, true);
	}
	if (was_connected || route->connected || route_is_connected(parent))
		l3_neigh_refresh(l3, route);
	route_show(l3, route);
	return 0;
}

void l3_routes_apply(struct clsw_l3 *l3, struct l3_vrf *vrf)
{
	struct clsw_cover_node *n;
	DECLARE_BITMAP(lens, 129);
	struct clsw_cover *c;
	int i, len;

	for (i = 0; i < 2; i++) {
		c = &vrf->cover[i];
		bitmap_zero(lens, 129);
		for (n = &c->root; n; n = clsw_cover_next_below(&c->root, n))
			if (n->owner)
				__set_bit(n->len, lens);
		/* an entry never answers for a longer one that is still to come */
		for (len = c->width; len >= 0; len--) {
			if (!test_bit(len, lens))
				continue;
			for (n = &c->root; n; n = clsw_cover_next_below(&c->root, n))
				if (n->owner && n->len == len)
					l3_route_apply(l3, n->owner, false, NULL);
		}
	}
}

void l3_route_local_changed(struct clsw_l3 *l3, struct l3_route *route)
{
	u16 hold = clsw_hold_rest(l3->cd);
	struct clsw_cover_node *n;

	for (n = route->node; n; n = clsw_cover_next_below(route->node, n)) {
		if (n->owner && n->owner != route)
			l3_route_apply(l3, n->owner, false, NULL);
	}
	clsw_hold_resume(l3->cd, hold);
}

/* ---- prefixes and their aliases ---- */

struct l3_route *l3_route_find(struct clsw_l3 *l3, u32 tb_id, u8 family, const void *addr, u8 len)
{
	struct l3_vrf *vrf = l3_vrf_get(l3, tb_id);
	struct clsw_cover_node *n;
	struct l3_route *route;

	if (!vrf)
		return NULL;
	n = clsw_cover_find(l3_cover(vrf, family), addr, len);
	route = n ? n->owner : NULL;
	l3_vrf_put(l3, vrf);
	return route;
}

struct l3_route *l3_route_get(struct clsw_l3 *l3, u32 tb_id, u8 family, const void *addr, u8 len)
{
	struct l3_vrf *vrf = l3_vrf_get(l3, tb_id);
	struct clsw_cover_node *n;
	struct l3_route *route;
	int i;

	if (!vrf)
		return NULL;
	n = clsw_cover_get(l3_cover(vrf, family), addr, len, NULL);
	if (!n)
		goto err;
	if (n->owner)
		return n->owner;
	route = clsw_pool_get(&l3->memory, sizeof(*route));
	if (!route) {
		clsw_cover_put(l3_cover(vrf, family), n);
		goto err;
	}
	n->owner = route;
	route->node = n;
	route->vrf = vrf;
	route->family = family;
	route->shown = L3_SHOWN_NEVER;
	INIT_LIST_HEAD(&route->sources);
	INIT_LIST_HEAD(&route->flag_list);
	for (i = 0; i < 2; i++) {
		route->alias[i].route = route;
		INIT_LIST_HEAD(&route->alias[i].in_paths);
	}
	vrf->routes++;
	return route;

err:
	l3_vrf_put(l3, vrf);
	return NULL;
}

void l3_route_put(struct clsw_l3 *l3, struct l3_route *route)
{
	struct l3_vrf *vrf = route->vrf;

	if (l3_route_chosen(route) || !list_empty(&route->sources))
		return;
	route_withdraw(l3, route);
	list_del(&route->flag_list);
	clsw_cover_put(l3_cover(vrf, route->family), route->node);
	clsw_pool_put(&l3->memory, route, sizeof(*route));
	vrf->routes--;
	l3_vrf_put(l3, vrf);
}

void l3_alias_release(struct clsw_l3 *l3, struct l3_alias *alias)
{
	int i;

	list_del_init(&alias->in_paths);
	if (alias->paths)
		l3_paths_put(l3, alias->paths);
	if (alias->fi && alias->fi == l3->last_fi)
		l3->last_fi = NULL;
	if (alias->fi)
		fib_info_put(alias->fi);
	for (i = 0; i < alias->rt_count; i++)
		fib6_info_release(alias->rts[i]);
	kfree(alias->rts);
	alias->paths = NULL;
	alias->fi = NULL;
	alias->rts = NULL;
	alias->rt_count = 0;
	alias->there = false;
}

/* The contents of an alias move; lists follow */
static void route_move(struct l3_alias *to, struct l3_alias *from)
{
	struct l3_route *route = to->route;

	list_del_init(&to->in_paths);
	list_del_init(&from->in_paths);
	*to = *from;
	to->route = route;
	INIT_LIST_HEAD(&to->in_paths);
	if (to->paths)
		list_add(&to->in_paths, &to->paths->routes);
}

/* What the kernel has, into an alias that is in no list */
static void route_fill(struct l3_alias *to, const struct l3_alias *from)
{
	to->type = from->type;
	to->dscp = from->dscp;
	to->tb_id = from->tb_id;
	to->fi = from->fi;
	to->rts = from->rts;
	to->rt_count = from->rt_count;
	to->paths = from->paths;
}

int l3_alias_set(struct clsw_l3 *l3, struct l3_route *route, const struct l3_alias *fresh,
		 bool veto, char *text)
{
	struct l3_alias *alias = &route->alias[l3_alias_of(fresh->tb_id)];
	bool had = alias->there;
	u8 shown = route->shown;
	struct l3_alias old;
	u8 why;
	int err;

	if (had) {
		old = nothing;
		INIT_LIST_HEAD(&old.in_paths);
		route_move(&old, alias);
		/* old stays out of its paths' list: nobody else may apply it */
		list_del_init(&old.in_paths);
	}
	route_fill(alias, fresh);
	alias->there = true;
	why = alias->paths ? alias->paths->why : L3_WHY_NONE;
	route->shown = L3_SHOWN_NEVER;
	err = l3_route_apply(l3, route, veto, text);
	if (err) {
		if (had) {
			route_move(alias, &old);
		} else {
			route_fill(alias, &nothing);
			alias->there = false;
		}
		route->shown = shown;
		return err;
	}
	/*
	 * Not in the list before: what the put waited for may have told those who are in it to
	 * apply themselves, and this one's object would have been asked for twice
	 */
	if (alias->paths) {
		list_add(&alias->in_paths, &alias->paths->routes);
		if (alias->paths->why != why)
			l3_route_apply(l3, route, false, NULL);
	}
	if (alias == &route->alias[0] && !had && route->node->len < l3_width(route->family))
		l3_route_local_changed(l3, route);
	if (had)
		l3_alias_release(l3, &old);
	return 0;
}

void l3_alias_clear(struct clsw_l3 *l3, struct l3_route *route, int which)
{
	struct l3_alias old = {};

	INIT_LIST_HEAD(&old.in_paths);
	route_move(&old, &route->alias[which]);
	list_del_init(&old.in_paths);
	memset(&route->alias[which], 0, sizeof(route->alias[which]));
	route->alias[which].route = route;
	INIT_LIST_HEAD(&route->alias[which].in_paths);
	route->shown = L3_SHOWN_NEVER;
	l3_route_apply(l3, route, false, NULL);
	if (!which && route->node->len < l3_width(route->family))
		l3_route_local_changed(l3, route);
	/* paths, and with them groups, go after the route that named them */
	l3_alias_release(l3, &old);
	l3_route_put(l3, route);
}
