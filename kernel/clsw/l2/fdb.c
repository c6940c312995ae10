// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses: what the bridge knows, in hardware.
 *
 *   origin     who said so                        in the chip
 *   CHIP       the chip learned it                as it is; it ages, it moves
 *   LOCAL      the bridge's or a port's own       trap, static
 *   FOREIGN    behind a member that isn't ours    trap, static
 *   USER       somebody, on a port of ours        forward; doesn't age. It moves as the bridge
 *                                                 would move it, unless it is sticky
 *   LEARNED    the bridge, from a trapped frame   forward; may move, and age before the bridge's
 *   AGED       the chip forgot it                 not there; the bridge is being told
 *
 * The bridge doesn't say in a notification whether an entry is sticky: until the
 * work item has asked, it doesn't move.
 *
 * An address that the bridge knows and the chip has no room for makes its domain
 * trap unknown unicast: the chip would flood what the bridge would not.
 */
#include <linux/slab.h>

#include "l2.h"

#define FLUSH_BURST	256	/* entries per turn under the lock */

static const struct rhashtable_params fdb_params = {
	.key_len = sizeof(struct l2_fdb_key),
	.key_offset = offsetof(struct l2_fdb, key),
	.head_offset = offsetof(struct l2_fdb, node),
	.automatic_shrinking = true,
};

static void fdb_make_key(struct l2_fdb_key *key, struct l2_bridge *bridge, u16 vid, const u8 *mac)
{
	memset(key, 0, sizeof(*key));
	key->bridge = bridge;
	key->vid = vid;
	ether_addr_copy(key->mac, mac);
}

struct l2_fdb *l2_fdb_find(struct l2_bridge *bridge, u16 vid, const u8 *mac)
{
	struct l2_fdb_key key;

	fdb_make_key(&key, bridge, vid, mac);
	return rhashtable_lookup_fast(&bridge->l2->fdb, &key, fdb_params);
}

struct l2_fdb *l2_fdb_new(struct l2_bridge *bridge, u16 vid, const u8 *mac)
{
	struct l2_fdb *fdb = kzalloc(sizeof(*fdb), GFP_ATOMIC | __GFP_NOWARN);

	if (!fdb)
		return NULL;
	fdb_make_key(&fdb->key, bridge, vid, mac);
	INIT_LIST_HEAD(&fdb->notify_list);
	if (rhashtable_insert_fast(&bridge->l2->fdb, &fdb->node, fdb_params)) {
		kfree(fdb);
		return NULL;
	}
	list_add_tail(&fdb->list, &bridge->fdbs);
	return fdb;
}

static void fdb_free(struct l2_fdb *fdb)
{
	list_del_init(&fdb->notify_list);
	list_del(&fdb->list);
	rhashtable_remove_fast(&fdb->key.bridge->l2->fdb, &fdb->node, fdb_params);
	kfree_rcu(fdb, rcu);
}

void l2_fdb_notify(struct l2_fdb *fdb, u8 notify)
{
	struct clsw_l2 *l2 = fdb->key.bridge->l2;

	fdb->notify |= notify;
	if (list_empty(&fdb->notify_list))
		list_add_tail(&fdb->notify_list, &l2->notify);
	queue_work(l2->wq, &l2->notify_work);
}

static void fdb_set_missing(struct l2_fdb *fdb, bool missing)
{
	struct l2_vlan *vlan = l2_vlan_of_fdb(fdb->key.bridge, fdb->key.vid);
	u32 was;

	if (fdb->missing == missing || !vlan)
		return;
	fdb->missing = missing;
	was = vlan->missing;
	vlan->missing += missing ? 1 : -1;
	if (!was != !vlan->missing)
		l2_domain_refresh(vlan);
}

static void fdb_changed(struct clsw_device *cd, struct clsw_obj *obj)
{
	struct l2_fdb *fdb = obj->owner;

	fdb_set_missing(fdb, obj->state == CLSW_OBJ_FAILED);
	if (fdb->port)
		l2_fdb_notify(fdb, L2_NOTIFY_FLAG);
}

static const struct clsw_watch fdb_watch = {
	.changed = fdb_changed,
};

static void fdb_make_body(const struct l2_fdb *fdb, const struct l2_vlan *vlan,
			  struct tnd_fdb *body)
{
	u16 flags = TND_FDB_STATIC;

	memset(body, 0, sizeof(*body));
	body->struct_size = cpu_to_le16(sizeof(*body));
	body->fid = cpu_to_le16(vlan->fid);
	ether_addr_copy(body->mac, fdb->key.mac);
	body->action = TND_ACT_FORWARD;
	body->port = cpu_to_le16(fdb->port);
	switch (fdb->origin) {
	case L2_FDB_CHIP:
		flags = TND_FDB_LEARNED;
		break;
	case L2_FDB_LEARNED:
		flags = 0;
		break;
	case L2_FDB_USER:
		if (fdb->roams)
			flags = TND_FDB_NO_AGE;
		break;
	default:
		body->action = TND_ACT_TRAP;
		body->port = 0;
		break;
	}
	body->flags = cpu_to_le16(flags);
}

void l2_fdb_apply(struct l2_fdb *fdb)
{
	struct l2_bridge *bridge = fdb->key.bridge;
	struct l2_vlan *vlan = l2_vlan_of_fdb(bridge, fdb->key.vid);
	struct tnd_fdb body;
	int err;

	if (!vlan || fdb->origin == L2_FDB_AGED) {
		l2_fdb_withdraw(fdb);
		return;
	}
	fdb_make_body(fdb, vlan, &body);
	err = clsw_put(bridge->l2->cd, TND_CLS_FDB, &body, sizeof(body), CLSW_PUT_MUST,
		       &fdb_watch, fdb, &fdb->obj, NULL);
	if (err)
		fdb_set_missing(fdb, true);
	else if (fdb->obj->state == CLSW_OBJ_FAILED || fdb->obj->waits)
		fdb_set_missing(fdb, true);
	else if (fdb->obj->state == CLSW_OBJ_SYNCED)
		fdb_changed(bridge->l2->cd, fdb->obj);
}

int l2_fdb_adopt(struct l2_fdb *fdb, struct l2_vlan *vlan, u16 port)
{
	struct l2_bridge *bridge = fdb->key.bridge;
	struct tnd_fdb body;
	int err;

	fdb->port = port;
	fdb->seen = true;
	fdb_make_body(fdb, vlan, &body);
	err = clsw_adopt(bridge->l2->cd, TND_CLS_FDB, &body, sizeof(body), &fdb_watch, fdb,
			 &fdb->obj);
	/* a command for this address is under way: say what should be there, order does the rest */
	if (err == -EBUSY)
		err = clsw_put(bridge->l2->cd, TND_CLS_FDB, &body, sizeof(body), CLSW_PUT_MUST,
			       &fdb_watch, fdb, &fdb->obj, NULL);
	if (!err)
		fdb_set_missing(fdb, fdb->obj->state == CLSW_OBJ_FAILED || fdb->obj->waits);
	return err;
}

static void fdb_drop_obj(struct l2_fdb *fdb)
{
	if (fdb->obj)
		clsw_drop(fdb->key.bridge->l2->cd, fdb->obj);
	fdb->obj = NULL;
}

void l2_fdb_withdraw(struct l2_fdb *fdb)
{
	fdb_drop_obj(fdb);
	fdb_set_missing(fdb, false);
	fdb->missing = false;
	if (fdb->origin == L2_FDB_CHIP) {
		fdb->origin = L2_FDB_AGED;
		l2_fdb_notify(fdb, L2_NOTIFY_AGED);
	}
}

void l2_fdb_del(struct l2_fdb *fdb)
{
	fdb_drop_obj(fdb);
	fdb_set_missing(fdb, false);
	fdb_free(fdb);
}

void l2_fdb_abandon(struct l2_fdb *fdb)
{
	if (fdb->obj)
		clsw_abandon(fdb->key.bridge->l2->cd, fdb->obj);
	fdb->obj = NULL;
	fdb_set_missing(fdb, false);
}

/* ---- what the bridge says ---- */

static void fdb_add(struct l2_bridge *bridge, u16 port,
		    const struct switchdev_notifier_fdb_info *info)
{
	struct l2_fdb *fdb = l2_fdb_find(bridge, info->vid, info->addr);
	u8 origin = L2_FDB_LEARNED;

	if (info->is_local)
		origin = L2_FDB_LOCAL;
	else if (!port)
		origin = L2_FDB_FOREIGN;
	else if (info->added_by_user)
		origin = L2_FDB_USER;
	/* the chip's own, said again: a move by the bridge begins with a removal */
	if (fdb && fdb->origin == L2_FDB_CHIP && origin == L2_FDB_LEARNED)
		return;
	if (!fdb)
		fdb = l2_fdb_new(bridge, info->vid, info->addr);
	if (!fdb) {
		struct l2_vlan *vlan = l2_vlan_of_fdb(bridge, info->vid);

		/* no memory: it is missing for as long as its domain is there */
		if (vlan && !vlan->missing++)
			l2_domain_refresh(vlan);
		return;
	}
	if (fdb->origin == L2_FDB_AGED && fdb->notify & L2_NOTIFY_AGED)
		fdb->notify &= ~L2_NOTIFY_AGED;
	fdb->origin = origin;
	fdb->port = origin == L2_FDB_LOCAL ? 0 : port;
	fdb->roams = false;
	l2_fdb_apply(fdb);
	if (origin == L2_FDB_USER)
		l2_fdb_notify(fdb, L2_NOTIFY_LOOK);
}

void l2_fdb_notified(struct clsw_l2 *l2, bool add,
		     const struct switchdev_notifier_fdb_info *info)
{
	struct net_device *dev = info->info.dev;
	const struct net_device *master = dev;
	struct clsw_port *port = NULL;
	struct l2_bridge *bridge;
	struct l2_fdb *fdb;

	if (!is_unicast_ether_addr(info->addr) || is_zero_ether_addr(info->addr))
		return;
	rcu_read_lock();
	if (!netif_is_bridge_master(dev)) {
		master = netdev_master_upper_dev_get_rcu(dev);
		port = clsw_port_of(dev);
	}
	clsw_lock(l2->cd);
	bridge = master ? l2_bridge_of(l2, master) : NULL;
	if (!bridge)
		goto out;
	if (port && (port->cd != l2->cd || port->bridge != master))
		port = NULL;
	if (add) {
		fdb_add(bridge, port ? port->index : 0, info);
		goto out;
	}
	fdb = l2_fdb_find(bridge, info->vid, info->addr);
	if (fdb)
		l2_fdb_del(fdb);
out:
	clsw_unlock(l2->cd);
	rcu_read_unlock();
}

/* ---- many at a time ---- */

static void fdb_each(struct l2_bridge *bridge, bool (*which)(struct l2_fdb *fdb, int arg), int arg,
		     void (*what)(struct l2_fdb *fdb))
{
	struct clsw_device *cd = bridge->l2->cd;
	LIST_HEAD(cursor);
	bool more = true;
	int n;

	/* one walker at a time: the cursor is no entry */
	ASSERT_RTNL();
	clsw_lock(cd);
	list_add(&cursor, &bridge->fdbs);
	while (more) {
		for (n = 0; n < FLUSH_BURST && !list_is_last(&cursor, &bridge->fdbs); n++) {
			struct l2_fdb *fdb = list_entry(cursor.next, struct l2_fdb, list);

			list_move(&cursor, &fdb->list);
			if (which(fdb, arg))
				what(fdb);
		}
		more = !list_is_last(&cursor, &bridge->fdbs);
		if (more) {
			clsw_unlock(cd);
			cond_resched();
			clsw_lock(cd);
		}
	}
	list_del(&cursor);
	clsw_unlock(cd);
}

static bool fdb_has_vid(struct l2_fdb *fdb, int vid)
{
	return vid < 0 || fdb->key.vid == vid;
}

static bool fdb_has_port(struct l2_fdb *fdb, int port)
{
	return !port || fdb->port == port;
}

void l2_fdb_each(struct l2_bridge *bridge, int vid, void (*what)(struct l2_fdb *fdb))
{
	fdb_each(bridge, fdb_has_vid, vid, what);
}

void l2_fdb_flush(struct l2_bridge *bridge, u16 port)
{
	fdb_each(bridge, fdb_has_port, port, l2_fdb_del);
}

static bool fdb_not_seen(struct l2_fdb *fdb, int arg)
{
	bool seen = fdb->seen;

	fdb->seen = false;
	return !seen && fdb->origin == L2_FDB_CHIP;
}

static void fdb_nothing(struct l2_fdb *fdb)
{
}

void l2_fdb_unsee(struct l2_bridge *bridge)
{
	fdb_each(bridge, fdb_not_seen, 0, fdb_nothing);
}

/* What the chip did not name in its last dump goes from both sides */
void l2_fdb_sweep(struct l2_bridge *bridge)
{
	fdb_each(bridge, fdb_not_seen, 0, l2_fdb_withdraw);
}

int l2_fdb_init(struct clsw_l2 *l2)
{
	return rhashtable_init(&l2->fdb, &fdb_params);
}

void l2_fdb_exit(struct clsw_l2 *l2)
{
	rhashtable_destroy(&l2->fdb);
}
