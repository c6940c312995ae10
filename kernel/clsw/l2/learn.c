// SPDX-License-Identifier: GPL-2.0
/*
 * What the chip learns, and the bridge's part of it.
 *
 *   LEARN, MOVE --> NAPI: struct l2_fdb, then SWITCHDEV_FDB_ADD_TO_BRIDGE at once
 *   AGE ----------> NAPI: L2_FDB_AGED --> notify_work (RTNL): SWITCHDEV_FDB_DEL_TO_BRIDGE
 *   LOST ---------> dump_work (RTNL): the chip's table is read and compared
 *
 * The bridge takes additions under RCU, so they are made where the event is
 * found: the frame that taught the chip comes behind its event, and finds the
 * entry. Removals wait for RTNL: the bridge would remove an entry that somebody
 * makes static in that very moment, and needs RTNL for that. Nothing depends on
 * how soon an entry goes that nobody has used.
 *
 * Nobody's RTNL is needed for the additions, so one may cross a person's entry
 * for the same address. Therefore what the bridge was told is looked at again
 * afterwards.
 */
#include <linux/slab.h>
#include <net/netlink.h>

#include "l2.h"

#define DUMP_BYTES	(64 * 1024)
#define DUMP_PAGES	65536	/* a chip that never ends its dump */
#define NOTIFY_BURST	64

/* Not locked, RCU or RTNL */
static int learn_tell_bridge(struct net_device *dev, unsigned long what, u16 vid, const u8 *mac,
			     bool offloaded)
{
	struct switchdev_notifier_fdb_info info = {
		.addr = mac,
		.vid = vid,
		.offloaded = offloaded,
	};

	return notifier_to_errno(call_switchdev_notifiers(what, dev, &info.info, NULL));
}

/* ---- LEARN and MOVE ---- */

/* Locked. The chip has learned what is nobody's: it is to forget */
static void learn_reject(struct clsw_l2 *l2, u16 fid, const u8 *mac, u16 port)
{
	struct tnd_fdb body = {
		.struct_size = cpu_to_le16(sizeof(body)),
		.fid = cpu_to_le16(fid),
		.port = cpu_to_le16(port),
		.flags = cpu_to_le16(TND_FDB_LEARNED),
	};
	struct clsw_obj *obj;

	l2->count.rejected++;
	ether_addr_copy(body.mac, mac);
	if (!clsw_adopt(l2->cd, TND_CLS_FDB, &body, sizeof(body), NULL, NULL, &obj))
		clsw_drop(l2->cd, obj);
}

static bool learn_may_learn(struct clsw_l2 *l2, const struct l2_vlan *vlan, u16 port)
{
	u8 stp = l2->port[port].stp;

	return test_bit(port, vlan->ports) &&
	       (stp == TND_STP_LEARNING || stp == TND_STP_FORWARDING);
}

/*
 * Locked. What the chip says of an address that is known. True: the bridge is
 * to be told.
 */
static bool learn_known(struct l2_fdb *fdb, struct l2_vlan *vlan, u16 port)
{
	switch (fdb->origin) {
	case L2_FDB_CHIP:
	case L2_FDB_AGED:
	case L2_FDB_LEARNED:
		fdb->origin = L2_FDB_CHIP;
		fdb->notify &= ~L2_NOTIFY_AGED;
		return !l2_fdb_adopt(fdb, vlan, port);
	case L2_FDB_USER:
		if (!fdb->roams || fdb->port == port)
			break;
		return !l2_fdb_adopt(fdb, vlan, port);
	}
	/* learned before our entry got there, or because it didn't: ours is right */
	if (!fdb->obj || fdb->obj->state == CLSW_OBJ_FAILED)
		l2_fdb_apply(fdb);
	return false;
}

/*
 * RCU or RTNL, not locked. @count: it has taken a slot that nobody has counted.
 * What a dump has told before its event is counted already.
 */
static void learn_new(struct clsw_l2 *l2, u16 fid, const u8 *mac, u16 index, bool count)
{
	struct clsw_port *port;
	struct l2_bridge *bridge;
	struct net_device *dev;
	struct l2_vlan *vlan;
	struct l2_fdb *fdb;
	bool tell = true;
	u16 vid;

	clsw_lock(l2->cd);
	vlan = fid && fid <= l2->cd->caps.fids ? l2->domain[fid] : NULL;
	fdb = vlan ? l2_fdb_find(vlan->bridge, l2_fdb_vid(vlan), mac) : NULL;
	if (count && !(fdb && fdb->origin == L2_FDB_CHIP))
		rm_learned(l2->cd->rm, fid, mac);
	port = clsw_port(l2->cd, index);
	if (!vlan || !port || !learn_may_learn(l2, vlan, index)) {
		/* a domain that is not there has taken its addresses along */
		if (vlan)
			learn_reject(l2, fid, mac, index);
		clsw_unlock(l2->cd);
		return;
	}
	bridge = vlan->bridge;
	vid = l2_fdb_vid(vlan);
	dev = port->netdev;
	if (fdb) {
		tell = learn_known(fdb, vlan, index);
	} else {
		fdb = l2_fdb_new(bridge, vid, mac);
		if (!fdb) {
			learn_reject(l2, fid, mac, index);
			tell = false;
		} else {
			fdb->origin = L2_FDB_CHIP;
			if (l2_fdb_adopt(fdb, vlan, index)) {
				l2_fdb_del(fdb);
				learn_reject(l2, fid, mac, index);
				tell = false;
			}
		}
	}
	clsw_unlock(l2->cd);
	if (!tell)
		return;
	if (learn_tell_bridge(dev, SWITCHDEV_FDB_ADD_TO_BRIDGE, vid, mac, true)) {
		/* the bridge has a limit, or no memory: the chip must not know better */
		clsw_lock(l2->cd);
		vlan = l2->domain[fid];
		fdb = vlan ? l2_fdb_find(vlan->bridge, vid, mac) : NULL;
		if (fdb && fdb->origin == L2_FDB_CHIP)
			l2_fdb_del(fdb);
		clsw_unlock(l2->cd);
		return;
	}
	/* did somebody say otherwise meanwhile? */
	clsw_lock(l2->cd);
	vlan = l2->domain[fid];
	fdb = vlan && vlan->bridge == bridge ? l2_fdb_find(bridge, vid, mac) : NULL;
	port = fdb && fdb->port && fdb->port != index ? clsw_port(l2->cd, fdb->port) : NULL;
	dev = port ? port->netdev : NULL;
	clsw_unlock(l2->cd);
	if (dev)
		learn_tell_bridge(dev, SWITCHDEV_FDB_ADD_TO_BRIDGE, vid, mac, true);
}

/* ---- AGE ---- */

static void learn_aged(struct clsw_l2 *l2, u16 fid, const u8 *mac)
{
	struct l2_vlan *vlan;
	struct l2_fdb *fdb;

	clsw_lock(l2->cd);
	rm_aged(l2->cd->rm, fid, mac);
	clsw_room_came(l2->cd);
	vlan = fid && fid <= l2->cd->caps.fids ? l2->domain[fid] : NULL;
	fdb = vlan ? l2_fdb_find(vlan->bridge, l2_fdb_vid(vlan), mac) : NULL;
	if (!fdb)
		goto out;
	l2_fdb_abandon(fdb);
	if (fdb->origin == L2_FDB_CHIP) {
		fdb->origin = L2_FDB_AGED;
		l2_fdb_notify(fdb, L2_NOTIFY_AGED);
	} else {
		/* the bridge has it still, with an age of its own */
		l2_fdb_apply(fdb);
	}
out:
	clsw_unlock(l2->cd);
}

void clsw_l2_event(struct clsw_device *cd, const struct tnd_event *event)
{
	struct clsw_l2 *l2;
	u16 fid = le16_to_cpu(event->fid);

	rcu_read_lock();
	l2 = READ_ONCE(cd->l2);
	if (!l2)
		goto out;
	switch (le16_to_cpu(event->kind)) {
	case TND_EV_LEARN:
		l2->count.learned++;
		learn_new(l2, fid, event->mac, le16_to_cpu(event->port), true);
		break;
	case TND_EV_MOVE:
		l2->count.moved++;
		learn_new(l2, fid, event->mac, le16_to_cpu(event->port), false);
		break;
	case TND_EV_AGE:
		l2->count.aged++;
		learn_aged(l2, fid, event->mac);
		break;
	case TND_EV_LOST:
		queue_work(l2->wq, &l2->dump_work);
		break;
	}
out:
	rcu_read_unlock();
}

void clsw_l2_resync(struct clsw_device *cd)
{
	struct clsw_l2 *l2;

	rcu_read_lock();
	l2 = READ_ONCE(cd->l2);
	if (l2) {
		set_bit(0, &l2->attached);
		queue_work(l2->wq, &l2->dump_work);
	}
	rcu_read_unlock();
}

void l2_learned_flush(struct l2_bridge *bridge, struct clsw_port *port)
{
	struct switchdev_notifier_fdb_info info = {};

	/* the bridge removes what isn't static and says so, address by address */
	if (netif_is_bridge_port(port->netdev))
		call_switchdev_notifiers(SWITCHDEV_FDB_FLUSH_TO_BRIDGE, port->netdev, &info.info,
					 NULL);
}

/* ---- what the bridge is told ---- */

/* RTNL, not locked. Is an entry of the bridge sticky? */
static bool learn_is_sticky(struct net_device *bridge, u16 vid, const u8 *mac)
{
	struct nlattr *tb[NDA_MAX + 1] = {};
	struct netlink_ext_ack extack = {};
	bool sticky = true;	/* what is not known doesn't move */
	struct nlmsghdr *nlh;
	struct sk_buff *skb;

	if (!bridge->netdev_ops->ndo_fdb_get)
		return true;
	skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return true;
	if (!bridge->netdev_ops->ndo_fdb_get(skb, tb, bridge, mac, vid, 0, 0, &extack) &&
	    skb->len >= nlmsg_total_size(sizeof(struct ndmsg))) {
		nlh = nlmsg_hdr(skb);
		sticky = ((struct ndmsg *)nlmsg_data(nlh))->ndm_flags & NTF_STICKY;
	}
	kfree_skb(skb);
	return sticky;
}

struct notice {
	struct l2_bridge *bridge;
	struct net_device *dev;	/* the port's */
	u16 vid;
	u8 mac[ETH_ALEN];
	u8 what;
	bool offloaded;
};

/* Locked */
static bool learn_next_notice(struct clsw_l2 *l2, struct notice *notice)
{
	struct clsw_port *port;
	struct l2_fdb *fdb;

	fdb = list_first_entry_or_null(&l2->notify, struct l2_fdb, notify_list);
	if (!fdb)
		return false;
	list_del_init(&fdb->notify_list);
	port = clsw_port(l2->cd, fdb->port);
	notice->bridge = fdb->key.bridge;
	notice->dev = port ? port->netdev : NULL;
	notice->vid = fdb->key.vid;
	ether_addr_copy(notice->mac, fdb->key.mac);
	notice->what = fdb->notify;
	notice->offloaded = fdb->obj && fdb->obj->state == CLSW_OBJ_SYNCED;
	fdb->notify = 0;
	if (notice->what & L2_NOTIFY_AGED)
		l2_fdb_del(fdb);
	return true;
}

static void learn_tell_aged(struct clsw_l2 *l2, const struct notice *notice)
{
	struct clsw_port *port;
	struct l2_fdb *fdb;
	struct net_device *dev = NULL;

	learn_tell_bridge(notice->dev, SWITCHDEV_FDB_DEL_TO_BRIDGE, notice->vid, notice->mac,
			  false);
	/* learned again between the two: the bridge has lost it */
	clsw_lock(l2->cd);
	fdb = l2_fdb_find(notice->bridge, notice->vid, notice->mac);
	port = fdb && fdb->origin == L2_FDB_CHIP ? clsw_port(l2->cd, fdb->port) : NULL;
	if (port)
		dev = port->netdev;
	clsw_unlock(l2->cd);
	if (dev)
		learn_tell_bridge(dev, SWITCHDEV_FDB_ADD_TO_BRIDGE, notice->vid, notice->mac,
				  true);
}

static void learn_look(struct clsw_l2 *l2, const struct notice *notice)
{
	bool sticky = learn_is_sticky(notice->bridge->dev, notice->vid, notice->mac);
	struct l2_fdb *fdb;

	if (sticky)
		return;
	clsw_lock(l2->cd);
	fdb = l2_fdb_find(notice->bridge, notice->vid, notice->mac);
	/* said anew meanwhile: that will be looked at, too */
	if (fdb && fdb->origin == L2_FDB_USER && !(fdb->notify & L2_NOTIFY_LOOK) && !fdb->roams) {
		fdb->roams = true;
		l2_fdb_apply(fdb);
	}
	clsw_unlock(l2->cd);
}

/* Bridges and ports stay while RTNL is held */
void l2_notify_work(struct work_struct *work)
{
	struct clsw_l2 *l2 = container_of(work, struct clsw_l2, notify_work);
	struct notice notice;
	int n = 0;
	bool some;

	rtnl_lock();
	for (;;) {
		clsw_lock(l2->cd);
		some = n < NOTIFY_BURST && learn_next_notice(l2, &notice);
		clsw_unlock(l2->cd);
		if (!some)
			break;
		n++;
		if (!notice.dev || !netif_is_bridge_port(notice.dev))
			continue;
		if (notice.what & L2_NOTIFY_AGED) {
			learn_tell_aged(l2, &notice);
			continue;
		}
		if (notice.what & L2_NOTIFY_LOOK)
			learn_look(l2, &notice);
		if (notice.what & L2_NOTIFY_FLAG)
			learn_tell_bridge(notice.dev, SWITCHDEV_FDB_OFFLOADED, notice.vid,
					  notice.mac, notice.offloaded);
	}
	rtnl_unlock();
	/* others want RTNL, too */
	if (n == NOTIFY_BURST)
		queue_work(l2->wq, &l2->notify_work);
}

/* ---- LOST ---- */

static void learn_seen(struct clsw_l2 *l2, const struct tnd_fdb *body, bool count)
{
	u16 fid = le16_to_cpu(body->fid);
	u16 port = le16_to_cpu(body->port);
	struct l2_vlan *vlan;
	struct l2_fdb *fdb;

	if (!(le16_to_cpu(body->flags) & TND_FDB_LEARNED))
		return;
	clsw_lock(l2->cd);
	vlan = fid && fid <= l2->cd->caps.fids ? l2->domain[fid] : NULL;
	fdb = vlan ? l2_fdb_find(vlan->bridge, l2_fdb_vid(vlan), body->mac) : NULL;
	if (fdb && fdb->port == port && fdb->origin != L2_FDB_AGED) {
		fdb->seen = true;
		clsw_unlock(l2->cd);
		return;
	}
	clsw_unlock(l2->cd);
	learn_new(l2, fid, body->mac, port, count);
}

static int learn_dump(struct clsw_l2 *l2, u8 *page, bool count)
{
	struct tnd_cmd cmd = {
		.op = cpu_to_le16(TND_OP_DUMP),
		.cls = cpu_to_le16(TND_CLS_FDB),
	};
	struct tnd_cpl cpl;
	int err, pages;

	for (pages = 0; pages < DUMP_PAGES; pages++) {
		u32 at = 0, len;

		err = l2->cd->backend->table->read(l2->cd, &cmd, NULL, page, DUMP_BYTES, &cpl);
		if (err)
			return err;
		if (cpl.status)
			return -EIO;
		len = min_t(u32, le32_to_cpu(cpl.out_len), DUMP_BYTES);
		while (at + sizeof(struct tnd_fdb) <= len) {
			struct tnd_fdb body;
			u16 size;

			memcpy(&body, page + at, sizeof(body));
			size = le16_to_cpu(body.struct_size);
			if (size < sizeof(body))
				return -EIO;
			learn_seen(l2, &body, count);
			at += size;
		}
		cond_resched();
		if (!cpl.result)
			return 0;
		cmd.arg = cpl.result;
	}
	return -EIO;
}

void l2_dump_work(struct work_struct *work)
{
	struct clsw_l2 *l2 = container_of(work, struct clsw_l2, dump_work);
	/* an attach has counted all that is there */
	bool count = !test_and_clear_bit(0, &l2->attached);
	struct l2_bridge *bridge;
	u8 *page;
	int err;

	if (!clsw_up(l2->cd))
		return;	/* a recovery ends with another one */
	page = kvmalloc(DUMP_BYTES, GFP_KERNEL);
	if (!page)
		return;
	rtnl_lock();
	l2->count.dumps++;
	list_for_each_entry(bridge, &l2->bridges, list)
		l2_fdb_unsee(bridge);
	err = learn_dump(l2, page, count);
	if (!err)
		list_for_each_entry(bridge, &l2->bridges, list)
			l2_fdb_sweep(bridge);
	rtnl_unlock();
	if (err)
		dev_warn(l2->cd->parent, "can't read the chip's addresses (%d)\n", err);
	kvfree(page);
}
