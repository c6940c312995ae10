// SPDX-License-Identifier: GPL-2.0
/*
 * Next hops and groups.
 *
 *   route ──► struct l3_paths ──► one gateway:   TND_CLS_NEXTHOP
 *             interned by contents, several:     TND_CLS_NHG ──► NEXTHOPs
 *             or a next-hop object  none, or one that the chip can't: why
 *
 * Ten thousand routes over the same gateways share one struct l3_paths. When a
 * member comes or goes the group is updated in place; when a neighbour changes
 * one next hop is. Unresolved, it is there and traps: the kernel gets the
 * packet that makes it resolve.
 */
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/nexthop.h>

#include "l3.h"

#define RETRY		8	/* groups without room that are tried again in a tick */

static const struct rhashtable_params nh_params = {
	.key_len = sizeof(struct l3_key),
	.key_offset = offsetof(struct l3_nh, key),
	.head_offset = offsetof(struct l3_nh, node),
	.automatic_shrinking = true,
};

/* ---- gateways ---- */

static void nh_body(const struct l3_nh *nh, const struct l3_rif *rif, struct tnd_nexthop *body)
{
	memset(body, 0, sizeof(*body));
	body->rif = cpu_to_le16(rif->id);
	body->nexthop = cpu_to_le32(nh->id);
	if (nh->resolved) {
		body->action = TND_ACT_FORWARD;
		ether_addr_copy(body->mac, nh->mac);
	} else {
		body->action = TND_ACT_TRAP;
		body->reason = TND_TRAP_UNRESOLVED;
	}
}

/* Into hardware as it should be now, or out of it; 0 or -ENOSPC with @text */
static int nh_apply(struct clsw_l3 *l3, struct l3_nh *nh, u8 flags, char *text)
{
	struct l3_rif *rif = l3_rif_find(l3, nh->key.ifindex);
	struct tnd_nexthop body;
	int err;

	if (!rif || !rif->obj) {
		if (nh->obj)
			clsw_drop(l3->cd, nh->obj);
		nh->obj = NULL;
		return 0;
	}
	nh_body(nh, rif, &body);
	err = clsw_put(l3->cd, TND_CLS_NEXTHOP, &body, sizeof(body), flags, NULL, nh, &nh->obj,
		       text);
	/* whoever names it traps */
	if (err == -ENOMEM)
		l3->sleepy = true;
	return err;
}

static void nh_put(struct clsw_l3 *l3, struct l3_nh *nh)
{
	if (--nh->refs)
		return;
	if (nh->obj)
		clsw_drop(l3->cd, nh->obj);
	rhashtable_remove_fast(&l3->nhs, &nh->node, nh_params);
	list_del(&nh->list);
	ida_free(&l3->nh_ids, nh->id);
	kfree(nh);
}

static struct l3_nh *nh_get(struct clsw_l3 *l3, const struct l3_key *key, bool veto, char *text,
			    int *err)
{
	struct l3_nh *nh = rhashtable_lookup_fast(&l3->nhs, key, nh_params);
	struct l3_neigh *neigh;
	int id;

	if (nh) {
		nh->refs++;
		if (!nh->obj) {
			*err = nh_apply(l3, nh, veto ? 0 : CLSW_PUT_MUST, text);
			if (*err && veto) {
				nh_put(l3, nh);
				return NULL;
			}
		}
		return nh;
	}
	*err = -ENOMEM;
	nh = kzalloc(sizeof(*nh), GFP_ATOMIC);
	if (!nh)
		return NULL;
	id = l3_id(&l3->nh_ids, &l3->next_nh, L3_MAX_NH);
	if (id < 0)
		goto err_free;
	nh->id = id;
	nh->key = *key;
	nh->refs = 1;
	neigh = l3_neigh_find(l3, key);
	if (neigh) {
		nh->resolved = true;
		ether_addr_copy(nh->mac, neigh->mac);
	}
	if (rhashtable_insert_fast(&l3->nhs, &nh->node, nh_params))
		goto err_id;
	list_add_tail(&nh->list, &l3->nh_list);
	*err = nh_apply(l3, nh, veto ? 0 : CLSW_PUT_MUST, text);
	if (*err && veto) {
		nh_put(l3, nh);
		return NULL;
	}
	if (!nh->resolved && nh->obj && !l3->leaving)
		mod_delayed_work(l3->wq, &l3->tick_work, 0);
	return nh;

err_id:
	ida_free(&l3->nh_ids, id);
err_free:
	kfree(nh);
	return NULL;
}

void l3_nh_resolved(struct clsw_l3 *l3, const struct l3_key *key, const u8 *mac)
{
	struct l3_nh *nh = rhashtable_lookup_fast(&l3->nhs, key, nh_params);

	if (!nh || (nh->resolved == !!mac && (!mac || ether_addr_equal(nh->mac, mac))))
		return;
	nh->resolved = mac;
	nh->tries = 0;
	if (mac)
		ether_addr_copy(nh->mac, mac);
	nh_apply(l3, nh, CLSW_PUT_MUST, NULL);
}

/* ---- paths ---- */

static u8 nh_judge(struct clsw_l3 *l3, const struct l3_paths *paths, unsigned int *usable)
{
	const struct l3_path *p;
	unsigned int i;

	*usable = 0;
	if (paths->drop)
		return L3_WHY_NONE;
	if (paths->resilient)
		return L3_WHY_RESILIENT;
	if (!paths->count)
		return L3_WHY_UNKNOWN;
	if (paths->count > TND_NHG_MAX_MEMBERS ||
	    (l3_grouped(paths) && !(l3->cd->caps.classes & BIT(TND_CLS_NHG))))
		return L3_WHY_MANY;
	for (i = 0; i < paths->count; i++) {
		p = &paths->path[i];
		if (p->flags & L3_PATH_ENCAP)
			return L3_WHY_ENCAP;
		if (!p->key.family)
			return paths->count > 1 ? L3_WHY_MIXED :
			       l3_rif_find(l3, p->key.ifindex) ? L3_WHY_CONNECTED : L3_WHY_DEVICE;
		if (paths->count > 1 && !l3_path_alive(l3, paths, p))
			continue;
		if (!p->nh || !p->nh->obj)
			return l3_rif_find(l3, p->key.ifindex) ? L3_WHY_FULL : L3_WHY_DEVICE;
		++*usable;
	}
	if (!*usable)
		return L3_WHY_DEAD;
	if (paths->count > 1 && l3_hash_of(l3, paths->family) < 0)
		return L3_WHY_HASH;
	return L3_WHY_NONE;
}

static void nh_drop_group(struct clsw_l3 *l3, struct l3_paths *paths)
{
	if (!paths->group)
		return;
	clsw_drop(l3->cd, paths->group);
	ida_free(&l3->group_ids, paths->group_id);
	paths->group = NULL;
	paths->group_id = 0;
}

static void nh_group_changed(struct clsw_device *cd, struct clsw_obj *obj);

static const struct clsw_watch group_watch = { .changed = nh_group_changed };

static int nh_put_group(struct clsw_l3 *l3, struct l3_paths *paths, unsigned int usable, u8 flags,
			char *text)
{
	struct {
		struct tnd_nhg head;
		struct tnd_nhg_member member[TND_NHG_MAX_MEMBERS];
	} *body;
	bool fresh = !paths->group;
	unsigned int i, n = 0;
	int err = -ENOMEM;
	u16 *weight;

	body = kzalloc(struct_size(body, member, 0) + usable * sizeof(body->member[0]), GFP_ATOMIC);
	weight = kmalloc_array(max(usable, 1U), sizeof(*weight), GFP_ATOMIC);
	if (!body || !weight)
		goto out;
	if (fresh) {
		int id = l3_id(&l3->group_ids, &l3->next_group, L3_MAX_NH);

		if (id < 0)
			goto out;
		paths->group_id = id;
	}
	body->head.struct_size = cpu_to_le16(sizeof(body->head));
	body->head.nhg = cpu_to_le32(paths->group_id);
	/* one path takes all, whatever the policy */
	body->head.hash = cpu_to_le32(max(l3_hash_of(l3, paths->family), TND_HASH_L3));
	for (i = 0; i < paths->count && n < usable; i++) {
		if (paths->count > 1 && !l3_path_alive(l3, paths, &paths->path[i]))
			continue;
		body->member[n].nexthop = cpu_to_le32(paths->path[i].nh->id);
		weight[n++] = paths->path[i].weight;
	}
	l3_fit_weights(body->member, n, weight, l3->cd->caps.group_weight);
	body->head.count = cpu_to_le16(n);
	err = clsw_put(l3->cd, TND_CLS_NHG, body, sizeof(body->head) + n * sizeof(body->member[0]),
		       flags, &group_watch, paths, &paths->group, text);
	if (err && fresh) {
		ida_free(&l3->group_ids, paths->group_id);
		paths->group_id = 0;
		paths->group = NULL;
	}
out:
	kfree(weight);
	kfree(body);
	return err;
}

static void nh_show_object(struct clsw_l3 *l3, struct l3_paths *paths)
{
	bool failed = paths->group && paths->group->state == CLSW_OBJ_FAILED;
	u8 shown = failed || (paths->why && paths->why != L3_WHY_CONNECTED) ? BIT(1) : BIT(0);

	if (!paths->nhid || paths->flags_shown == shown)
		return;
	paths->flags_shown = shown;
	nexthop_set_hw_flags(l3->net, paths->nhid, shown & BIT(0), shown & BIT(1));
}

/*
 * What the paths come to now; the group follows. With @veto 0 or an error and
 * nothing changed. Without it never an error, and nothing is waited for but
 * under lockstep: a new group for which room can't be decided on at once is
 * tried again by the clock; one that stands is written, and the chip decides.
 */
static int nh_settle(struct clsw_l3 *l3, struct l3_paths *paths, bool veto, char *text)
{
	unsigned int usable;
	u8 why = nh_judge(l3, paths, &usable);
	int err = 0;

	if (!why && l3_grouped(paths)) {
		err = nh_put_group(l3, paths, usable, veto ? 0 : CLSW_PUT_NOWAIT, text);
		if (err && veto)
			return err;
		if (err)	/* it stays as it was, nobody is sent there */
			why = L3_WHY_FULL;
		if (err == -ENOMEM)
			l3->sleepy = true;
		/* it was refused before the put returned, or has the members of before still */
		if (!err && paths->group->written && paths->group->state == CLSW_OBJ_FAILED)
			why = L3_WHY_FULL;
	}
	if (why == L3_WHY_FULL)
		l3->crowded = true;
	paths->why = why;
	paths->own_hash = l3_hash_of(l3, TND_AF_INET) != l3_hash_of(l3, TND_AF_INET6);
	nh_show_object(l3, paths);
	return 0;
}

static void nh_reapply_routes(struct clsw_l3 *l3, struct l3_paths *paths)
{
	u16 hold = clsw_hold_rest(l3->cd);
	struct l3_alias *alias, *next;

	list_for_each_entry_safe(alias, next, &paths->routes, in_paths)
		l3_route_apply(l3, alias->route, false, NULL);
	clsw_hold_resume(l3->cd, hold);
}

/*
 * The chip has refused an update: it forwards to the members of before, so the
 * routes trap. A group that is not there at all makes them trap by itself.
 */
static void nh_group_changed(struct clsw_device *cd, struct clsw_obj *obj)
{
	bool failed = obj->state == CLSW_OBJ_FAILED && obj->written;
	struct l3_paths *paths = obj->owner;
	struct clsw_l3 *l3 = cd->l3;

	if (!l3 || paths->group != obj)
		return;
	if (failed && !paths->why) {
		paths->why = L3_WHY_FULL;
		l3->crowded = true;
		nh_reapply_routes(l3, paths);
	} else if (obj->state == CLSW_OBJ_SYNCED && paths->why == L3_WHY_FULL) {
		paths->why = L3_WHY_NONE;
		nh_reapply_routes(l3, paths);
	}
	nh_show_object(l3, paths);
}

/* Settles anew, and tells the routes if what they should say has changed */
static void nh_refresh(struct clsw_l3 *l3, struct l3_paths *paths)
{
	struct clsw_obj *group = paths->group;
	bool own_hash = paths->own_hash;
	u8 was = paths->why;

	nh_settle(l3, paths, false, NULL);
	if (was != paths->why || group != paths->group || own_hash != paths->own_hash)
		nh_reapply_routes(l3, paths);
	/* a group that nobody names holds members for nothing */
	if (paths->why)
		nh_drop_group(l3, paths);
}

void l3_paths_refresh(struct clsw_l3 *l3, u32 ifindex)
{
	struct l3_paths *paths, *next;
	struct l3_nh *nh;
	unsigned int i;

	list_for_each_entry(nh, &l3->nh_list, list)
		if (!ifindex || nh->key.ifindex == ifindex)
			nh_apply(l3, nh, CLSW_PUT_MUST, NULL);
	list_for_each_entry_safe(paths, next, &l3->paths_list, list) {
		for (i = 0; ifindex && i < paths->count; i++)
			if (paths->path[i].key.ifindex == ifindex)
				break;
		if (!ifindex || i < paths->count)
			nh_refresh(l3, paths);
	}
}

/* Groups without room of which nobody could be told: is there some now? A few at a time, in turn */
void l3_paths_retry(struct clsw_l3 *l3)
{
	struct l3_paths *paths, *next;
	unsigned int tried = 0;
	LIST_HEAD(done);

	l3->crowded = false;
	list_for_each_entry_safe(paths, next, &l3->paths_list, list) {
		if (paths->why != L3_WHY_FULL)
			continue;
		if (tried++ == RETRY) {
			l3->crowded = true;
			break;
		}
		list_move_tail(&paths->list, &done);
		/* what it has in the chip holds room for nothing */
		if (paths->group && paths->group->state == CLSW_OBJ_FAILED)
			nh_drop_group(l3, paths);
		nh_refresh(l3, paths);
	}
	list_splice_tail(&done, &l3->paths_list);
}

static void nh_paths_clear(struct clsw_l3 *l3, struct l3_path *path, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (path[i].nh)
			nh_put(l3, path[i].nh);
	kfree(path);
}

/* References to every gateway; NULL: *@err, and nothing is held */
static struct l3_path *nh_resolve(struct clsw_l3 *l3, const struct l3_path *spec,
				  unsigned int count, bool veto, char *text, int *err)
{
	struct l3_path *path = kcalloc(count, sizeof(*path), GFP_ATOMIC);
	unsigned int i;

	*err = -ENOMEM;
	if (!path)
		return NULL;
	for (i = 0; i < count; i++) {
		path[i] = spec[i];
		path[i].nh = NULL;
		if (!spec[i].key.family || spec[i].flags & L3_PATH_ENCAP)
			continue;
		path[i].nh = nh_get(l3, &spec[i].key, veto, text, err);
		if (!path[i].nh) {
			nh_paths_clear(l3, path, i);
			return NULL;
		}
	}
	return path;
}

static struct l3_paths *nh_new_paths(struct clsw_l3 *l3, u8 family)
{
	struct l3_paths *paths = kzalloc(sizeof(*paths), GFP_ATOMIC);

	if (!paths)
		return NULL;
	paths->family = family;
	paths->refs = 1;
	INIT_HLIST_NODE(&paths->node);
	INIT_LIST_HEAD(&paths->routes);
	list_add_tail(&paths->list, &l3->paths_list);
	return paths;
}

static void nh_free_paths(struct clsw_l3 *l3, struct l3_paths *paths)
{
	hash_del(&paths->node);
	list_del(&paths->list);
	nh_drop_group(l3, paths);
	nh_paths_clear(l3, paths->path, paths->count);
	kfree(paths);
}

void l3_paths_put(struct clsw_l3 *l3, struct l3_paths *paths)
{
	if (!--paths->refs)
		nh_free_paths(l3, paths);
}

static u32 nh_spec_hash(u8 family, const struct l3_path *spec, unsigned int count)
{
	u32 hash = jhash_2words(family, count, 0);
	unsigned int i;

	for (i = 0; i < count; i++)
		hash = jhash(&spec[i].key, sizeof(spec[i].key),
			     hash ^ spec[i].weight ^ spec[i].flags << 16);
	return hash;
}

static bool nh_same(const struct l3_paths *paths, u8 family, const struct l3_path *spec,
		    unsigned int count)
{
	unsigned int i;

	if (paths->family != family || paths->count != count)
		return false;
	for (i = 0; i < count; i++)
		if (memcmp(&paths->path[i].key, &spec[i].key, sizeof(spec[i].key)) ||
		    paths->path[i].weight != spec[i].weight ||
		    paths->path[i].flags != spec[i].flags)
			return false;
	return true;
}

struct l3_paths *l3_paths_get(struct clsw_l3 *l3, u8 family, const struct l3_path *spec,
			      unsigned int count, bool veto, char *text, int *err)
{
	u32 hash = nh_spec_hash(family, spec, count);
	struct l3_paths *paths;

	hash_for_each_possible(l3->paths, paths, node, hash) {
		if (!nh_same(paths, family, spec, count))
			continue;
		/* traps for want of room: perhaps there is some now, else the caller is told */
		if (paths->why == L3_WHY_FULL || (paths->why == L3_WHY_DEAD && !paths->group)) {
			*err = nh_settle(l3, paths, veto, text);
			if (*err)
				return NULL;
			nh_reapply_routes(l3, paths);
		}
		paths->refs++;
		return paths;
	}
	*err = -ENOMEM;
	paths = nh_new_paths(l3, family);
	if (!paths)
		return NULL;
	paths->path = nh_resolve(l3, spec, count, veto, text, err);
	if (!paths->path)
		goto err;
	paths->count = count;
	*err = nh_settle(l3, paths, veto, text);
	if (*err)
		goto err;
	hash_add(l3->paths, &paths->node, hash);
	return paths;

err:
	nh_free_paths(l3, paths);
	return NULL;
}

/* ---- next-hop objects ---- */

struct l3_paths *l3_paths_find(struct clsw_l3 *l3, u32 nhid)
{
	struct l3_paths *paths;

	hash_for_each_possible(l3->objects, paths, node, nhid)
		if (paths->nhid == nhid)
			return paths;
	return NULL;
}

struct l3_paths *l3_paths_of_object(struct clsw_l3 *l3, u32 nhid)
{
	struct l3_paths *paths = l3_paths_find(l3, nhid);

	if (paths)
		paths->refs++;
	return paths;
}

static void nh_spec_of(struct l3_path *spec, const struct nh_notifier_single_info *nh, u16 weight)
{
	memset(spec, 0, sizeof(*spec));
	spec->weight = weight;
	if (nh->dev)
		spec->key.ifindex = nh->dev->ifindex;
	if (nh->has_encap)
		spec->flags |= L3_PATH_ENCAP;
	spec->key.family = nh->gw_family;
	if (nh->gw_family == AF_INET)
		memcpy(spec->key.addr, &nh->ipv4, sizeof(nh->ipv4));
	else if (nh->gw_family == AF_INET6)
		memcpy(spec->key.addr, &nh->ipv6, sizeof(nh->ipv6));
}

/* What a next-hop object is to be */
struct object_spec {
	struct l3_path *path;
	unsigned int count;
	bool drop;
	bool counted;
	bool resilient;
};

/* The object's new ways, in place: routes that name it follow without an event */
static int nh_object_set(struct clsw_l3 *l3, u32 nhid, const struct object_spec *spec, bool veto,
			 char *text)
{
	unsigned int count = spec->drop ? 0 : spec->count;
	struct l3_paths *paths = l3_paths_find(l3, nhid);
	bool fresh = !paths, was_drop, was_counted, was_resilient;
	struct l3_path *old_path, *path;
	unsigned int old_count;
	u8 family = TND_AF_INET;
	int err;

	if (count && spec->path[0].key.family)
		family = spec->path[0].key.family;
	if (fresh) {
		paths = nh_new_paths(l3, family);
		if (!paths)
			return -ENOMEM;
	}
	path = nh_resolve(l3, spec->path, count, veto, text, &err);
	if (!path && count) {
		if (fresh)
			nh_free_paths(l3, paths);
		return err;
	}
	old_path = paths->path;
	old_count = paths->count;
	was_drop = paths->drop;
	was_counted = paths->counted;
	was_resilient = paths->resilient;
	paths->path = path;
	paths->count = count;
	paths->drop = spec->drop;
	paths->counted = spec->counted;
	paths->resilient = spec->resilient;
	paths->nhid = nhid;
	err = nh_settle(l3, paths, veto, text);
	if (err) {
		paths->path = old_path;
		paths->count = old_count;
		paths->drop = was_drop;
		paths->counted = was_counted;
		paths->resilient = was_resilient;
		nh_paths_clear(l3, path, count);
		if (fresh)
			nh_free_paths(l3, paths);
		return err;
	}
	if (fresh) {
		hash_add(l3->objects, &paths->node, nhid);
	} else {
		/* routes leave the old gateways before those go */
		nh_reapply_routes(l3, paths);
		if (paths->why || !l3_grouped(paths))
			nh_drop_group(l3, paths);
		nh_paths_clear(l3, old_path, old_count);
	}
	return 0;
}

/* Routes that name it are removed by the kernel after this event; till then they trap */
static void nh_object_del(struct clsw_l3 *l3, u32 nhid)
{
	struct l3_paths *paths = l3_paths_find(l3, nhid);
	struct l3_path *path;
	unsigned int count;

	if (!paths)
		return;
	path = paths->path;
	count = paths->count;
	paths->path = NULL;
	paths->count = 0;
	paths->drop = false;
	paths->resilient = false;
	paths->nhid = 0;
	paths->why = L3_WHY_UNKNOWN;
	hash_del(&paths->node);
	INIT_HLIST_NODE(&paths->node);
	nh_reapply_routes(l3, paths);
	nh_drop_group(l3, paths);
	nh_paths_clear(l3, path, count);
	l3_paths_put(l3, paths);
}

/*
 * A replace has failed. One by a person is undone; one by the kernel, which takes
 * members out of groups whatever we answer, is not: which it was is not told.
 */
static void nh_object_unknown(struct clsw_l3 *l3, u32 nhid, bool veto)
{
	clsw_lock(l3->cd);
	if (!veto || l3_paths_find(l3, nhid)) {
		nh_object_del(l3, nhid);
		l3_degrade(l3);
	}
	clsw_unlock(l3->cd);
}

/* A device has refused what @l3 has taken. One of before: the kernel says how it was */
struct refused {
	u32 id;
	bool replaces;
};

static void nh_undo(struct clsw_l3 *l3, void *arg)
{
	const struct refused *refused = arg;

	nh_object_del(l3, refused->id);
	if (refused->replaces)
		l3_degrade(l3);
}

static int nh_object_event(struct clsw_l3 *l3, struct nh_notifier_info *info)
{
	struct object_spec spec = {};
	struct refused refused = {};
	bool veto = info->extack;
	char text[CLSW_TEXT] = "";
	unsigned int i;
	int err;

	switch (info->type) {
	case NH_NOTIFIER_INFO_TYPE_SINGLE:
		if (info->nh->is_fdb)
			return 0;
		spec.count = !info->nh->is_reject;
		spec.drop = info->nh->is_reject;
		break;
	case NH_NOTIFIER_INFO_TYPE_GRP:
		if (info->nh_grp->is_fdb)
			return 0;
		spec.count = info->nh_grp->num_nh;
		spec.counted = info->nh_grp->hw_stats;
		break;
	case NH_NOTIFIER_INFO_TYPE_RES_TABLE:
		/* which bucket is idle only who forwards knows: that stays the kernel */
		spec.resilient = true;
		break;
	default:
		NL_SET_ERR_MSG_MOD(info->extack, "next-hop objects of this kind are not known");
		return -EOPNOTSUPP;
	}
	spec.path = kcalloc(max(spec.count, 1U), sizeof(*spec.path), GFP_KERNEL);
	if (!spec.path) {
		nh_object_unknown(l3, info->id, veto);
		return -ENOMEM;
	}
	if (info->type == NH_NOTIFIER_INFO_TYPE_SINGLE) {
		if (spec.count)
			nh_spec_of(spec.path, info->nh, 1);
	} else if (info->type == NH_NOTIFIER_INFO_TYPE_GRP) {
		for (i = 0; i < spec.count; i++) {
			nh_spec_of(&spec.path[i], &info->nh_grp->nh_entries[i].nh,
				   info->nh_grp->nh_entries[i].weight);
			/* a group of one that drops is the same as its member */
			if (info->nh_grp->nh_entries[i].nh.is_reject)
				spec.drop = true;
		}
	}
	clsw_lock(l3->cd);
	err = nh_object_set(l3, info->id, &spec, veto, text);
	clsw_unlock(l3->cd);
	/* the kernel's counters begin anew, the chip's go on */
	if (!err && spec.counted)
		l3_stats_read(l3, info->id, NULL);
	if (err && (!veto || err != -ENOSPC))
		nh_object_unknown(l3, info->id, veto);
	if (err && veto) {
		refused.id = info->id;
		clsw_lock(l3->cd);
		refused.replaces = l3_paths_find(l3, info->id);
		clsw_unlock(l3->cd);
		l3_others(l3, nh_undo, &refused);
	}
	kfree(spec.path);
	if (err == -ENOSPC || err == -EIO)
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "%s", text);
	return veto ? err : 0;
}

int l3_nexthop_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, nexthop_nb);
	struct nh_notifier_info *info = ptr;
	int err = 0;

	switch (event) {
	case NEXTHOP_EVENT_REPLACE:
		err = nh_object_event(l3, info);
		break;
	case NEXTHOP_EVENT_RES_TABLE_PRE_REPLACE:
	case NEXTHOP_EVENT_BUCKET_REPLACE:
		/* a resilient group traps, whatever is in its buckets */
		break;
	case NEXTHOP_EVENT_HW_STATS_REPORT_DELTA:
		if (info->type == NH_NOTIFIER_INFO_TYPE_GRP_HW_STATS)
			l3_stats_read(l3, info->id, info->nh_grp_hw_stats);
		break;
	case NEXTHOP_EVENT_DEL:
		clsw_lock(l3->cd);
		nh_object_del(l3, info->id);
		clsw_unlock(l3->cd);
		break;
	}
	return notifier_from_errno(err);
}

int l3_nexthop_init(struct clsw_l3 *l3)
{
	INIT_LIST_HEAD(&l3->nh_list);
	INIT_LIST_HEAD(&l3->paths_list);
	hash_init(l3->paths);
	hash_init(l3->objects);
	ida_init(&l3->nh_ids);
	ida_init(&l3->group_ids);
	return rhashtable_init(&l3->nhs, &nh_params);
}

void l3_nexthop_exit(struct clsw_l3 *l3)
{
	struct l3_paths *paths, *next;

	/* routes are gone; what is left are next-hop objects */
	clsw_lock(l3->cd);
	list_for_each_entry_safe(paths, next, &l3->paths_list, list)
		nh_free_paths(l3, paths);
	clsw_unlock(l3->cd);
	rhashtable_destroy(&l3->nhs);
	ida_destroy(&l3->nh_ids);
	ida_destroy(&l3->group_ids);
}
