// SPDX-License-Identifier: GPL-2.0
/*
 * VLANs: which domain of the chip a port's frames belong to.
 *
 *   bridge vlan add vid 10 dev swp1 --> (swp1, 10) --> l2_vlan 10 --> domain (FID)
 *
 * A domain is there while ports of ours are in it. Its number follows from what
 * it is (the bridge's interface index, or the VID), counted on where that is
 * taken: a driver that is loaded again gives the same ones.
 *
 * An add is in hardware when it returns, or it is refused: a user who was told
 * yes must not lose frames after that. What fails later (no veto is owed then)
 * makes the port trap everything until it is there.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "l2.h"

#define MEMBER_WAIT_US	2000000
#define TRAP_MS		100

static const struct clsw_watch domain_watch = {};

static bool vlan_has_domain(const struct l2_vlan *vlan)
{
	return vlan->bridge->aware ? vlan->vid : !vlan->vid;
}

struct l2_vlan *l2_vlan_of_fdb(struct l2_bridge *bridge, u16 vid)
{
	struct l2_vlan *vlan;

	if (vid >= VLAN_N_VID || bridge->aware != !!vid)
		return NULL;
	vlan = bridge->vlans[vid];
	return vlan && vlan->fid ? vlan : NULL;
}

/* Locked: 0 or -ENOMEM, which a domain that is there already never is */
static int vlan_put_domain(struct l2_vlan *vlan)
{
	struct l2_bridge *bridge = vlan->bridge;
	struct tnd_vlan body = { .struct_size = cpu_to_le16(sizeof(body)) };
	bool copy = bridge->foreign || (bridge->up && (!vlan->vid || vlan->host));
	u32 flags = 0;

	if (bridge->foreign || vlan->missing)
		flags |= TND_VLAN_UC_TRAP;
	if (bridge->snooping)
		flags |= TND_VLAN_MC_TRAP;
	if (bridge->ageing_s && clsw_can(bridge->l2->cd, CLSW_CAN_LEARN))
		flags |= TND_VLAN_LEARNING;
	if (copy)
		flags |= TND_VLAN_CPU_COPY;
	body.fid = cpu_to_le16(vlan->fid);
	body.flags = cpu_to_le32(flags);
	/* a bridge that doesn't learn forgets; 0 would be never */
	body.ageing_s = cpu_to_le32(bridge->ageing_s ?: 1);
	return clsw_put(bridge->l2->cd, TND_CLS_VLAN, &body, sizeof(body), CLSW_PUT_MUST,
			&domain_watch, vlan, &vlan->obj, NULL);
}

void l2_domain_refresh(struct l2_vlan *vlan)
{
	if (vlan->fid)
		vlan_put_domain(vlan);
}

void l2_domains_refresh(struct l2_bridge *bridge)
{
	int vid;

	for (vid = 0; vid < VLAN_N_VID; vid++)
		if (bridge->vlans[vid])
			l2_domain_refresh(bridge->vlans[vid]);
}

/*
 * One that is on its way out of hardware is taken last: it would be changed in
 * place, and keep what the chip has learned in it
 */
static u16 vlan_free_fid(struct clsw_l2 *l2, const struct l2_vlan *vlan)
{
	u32 first = vlan->vid ?: vlan->bridge->dev->ifindex;
	u32 fids = l2->cd->caps.fids;
	struct tnd_vlan probe = {};
	u16 going = 0;
	u32 i;

	for (i = 0; i < fids; i++) {
		u16 fid = (first - 1 + i) % fids + 1;
		bool there;

		if (l2->domain[fid])
			continue;
		probe.fid = cpu_to_le16(fid);
		clsw_lock(l2->cd);
		there = clsw_find(l2->cd, TND_CLS_VLAN, &probe);
		clsw_unlock(l2->cd);
		if (!there)
			return fid;
		going = going ?: fid;
	}
	return going;
}

static void vlan_fid_changed(struct l2_vlan *vlan, u16 gone)
{
	struct clsw_l2 *l2 = vlan->bridge->l2;

	if (l2->fid_changed)
		l2->fid_changed(l2->cd, gone);
}

/*
 * May sleep. An admission that the chip didn't answer in the time of a caller
 * that must not sleep: this one may, and asks again. False: @err is the answer
 */
static bool vlan_slow_chip(int err, ktime_t end)
{
	if (err != -EIO || ktime_after(ktime_get(), end))
		return false;
	usleep_range(10000, 20000);
	return true;
}

static int vlan_no_domain(struct clsw_device *cd, struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG_FMT_MOD(extack, "domains full (needs 1, free 0 of %u)", cd->caps.fids);
	return -ENOSPC;
}

/* RTNL, not locked. The domain is @vlan's from here on */
static void vlan_domain_made(struct l2_vlan *vlan)
{
	if (!list_empty(&vlan->bridge->fdbs))
		l2_fdb_each(vlan->bridge, l2_fdb_vid(vlan), l2_fdb_apply);
	vlan_fid_changed(vlan, 0);
}

/* RTNL, not locked. No veto is owed: it may be in hardware later, or never */
static int vlan_domain_want(struct l2_vlan *vlan, struct netlink_ext_ack *extack)
{
	struct clsw_l2 *l2 = vlan->bridge->l2;
	u16 fid = vlan_free_fid(l2, vlan);
	int err;

	if (!fid)
		return vlan_no_domain(l2->cd, extack);
	clsw_lock(l2->cd);
	l2->domain[fid] = vlan;
	vlan->fid = fid;
	vlan->missing = 0;
	err = vlan_put_domain(vlan);
	if (err) {
		l2->domain[fid] = NULL;
		vlan->fid = 0;
	}
	clsw_unlock(l2->cd);
	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "no memory for a VLAN");
		return err;
	}
	vlan_domain_made(vlan);
	return 0;
}

int l2_domain_get(struct l2_vlan *vlan, struct netlink_ext_ack *extack)
{
	struct clsw_l2 *l2 = vlan->bridge->l2;
	struct tnd_vlan body = { .struct_size = cpu_to_le16(sizeof(body)) };
	char text[CLSW_TEXT];
	ktime_t end;
	u16 fid;
	int err;

	ASSERT_RTNL();
	if (vlan->fid)
		return 0;
	fid = vlan_free_fid(l2, vlan);
	if (!fid)
		return vlan_no_domain(l2->cd, extack);
	body.fid = cpu_to_le16(fid);
	body.ageing_s = cpu_to_le32(1);
	end = ktime_add_us(ktime_get(), MEMBER_WAIT_US);
	do {
		text[0] = '\0';
		clsw_lock(l2->cd);
		err = clsw_put(l2->cd, TND_CLS_VLAN, &body, sizeof(body), 0, &domain_watch, vlan,
			       &vlan->obj, text);
		if (!err) {
			l2->domain[fid] = vlan;
			vlan->fid = fid;
			vlan->missing = 0;
			vlan_put_domain(vlan);
		}
		clsw_unlock(l2->cd);
	} while (vlan_slow_chip(err, end));
	if (err) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s", text[0] ? text : "no memory for a VLAN");
		return err;
	}
	vlan_domain_made(vlan);
	return 0;
}

/* RTNL, not locked */
static void vlan_domain_drop(struct l2_vlan *vlan)
{
	struct clsw_l2 *l2 = vlan->bridge->l2;
	u16 fid = vlan->fid;

	if (!fid)
		return;
	/* the chip refuses to delete what a router interface stands on */
	vlan_fid_changed(vlan, fid);
	clsw_lock(l2->cd);
	l2->domain[fid] = NULL;	/* what the chip learns from here on is nobody's */
	vlan->fid = 0;
	clsw_unlock(l2->cd);
	l2_fdb_each(vlan->bridge, l2_fdb_vid(vlan), l2_fdb_withdraw);
	clsw_lock(l2->cd);
	clsw_drop(l2->cd, vlan->obj);
	vlan->obj = NULL;
	vlan->missing = 0;
	clsw_unlock(l2->cd);
}

void l2_domain_put(struct l2_vlan *vlan)
{
	if (bitmap_empty(vlan->ports, L2_PORT_BITS))
		vlan_domain_drop(vlan);
}

/* ---- members ---- */

static void vlan_member_body(const struct l2_vlan *vlan, u16 port, struct tnd_vlan_member *body)
{
	const struct l2_port *p = &vlan->bridge->l2->port[port];
	u32 flags = 0;

	if (!vlan->vid || test_bit(port, vlan->untagged))
		flags |= TND_MEMBER_UNTAGGED;
	if (!vlan->vid || p->pvid == vlan->vid)
		flags |= TND_MEMBER_PVID;
	memset(body, 0, sizeof(*body));
	body->struct_size = cpu_to_le16(sizeof(*body));
	body->fid = cpu_to_le16(vlan->fid);
	body->port = cpu_to_le16(port);
	body->vid = cpu_to_le16(vlan->vid ?: TND_VID_ANY);
	body->flags = cpu_to_le32(flags);
}

static struct clsw_obj *vlan_member_obj(const struct l2_vlan *vlan, u16 port)
{
	struct tnd_vlan_member body;

	vlan_member_body(vlan, port, &body);
	return clsw_find(vlan->bridge->l2->cd, TND_CLS_VLAN_MEMBER, &body);
}

static void vlan_member_failed(struct l2_vlan *vlan, u16 port, bool failed)
{
	struct clsw_l2 *l2 = vlan->bridge->l2;
	struct l2_port *p = &l2->port[port];

	if (test_bit(port, vlan->failed) == failed)
		return;
	__change_bit(port, vlan->failed);
	p->failed += failed ? 1 : -1;
	l2_port_trap(l2, port, L2_TRAP_MEMBER, p->failed);
}

/* Locked. vlan_filtering was switched: the chip forwards again when all members are known */
static void vlan_switched(struct l2_bridge *bridge)
{
	if (!bridge->switching || bridge->pending)
		return;
	bridge->switching = false;
	l2_bridge_trap(bridge, L2_TRAP_SWITCHED, false);
}

/* Locked. It is in hardware, or why it is not is known, or it is wanted no more */
static void vlan_member_known(struct l2_vlan *vlan, u16 port)
{
	if (!__test_and_clear_bit(port, vlan->pending))
		return;
	vlan->bridge->pending--;
	vlan_switched(vlan->bridge);
}

static void vlan_member_changed(struct clsw_device *cd, struct clsw_obj *obj)
{
	const struct tnd_vlan_member *body = (const void *)obj->body;
	u16 port = le16_to_cpu(body->port);

	vlan_member_failed(obj->owner, port, obj->state == CLSW_OBJ_FAILED);
	vlan_member_known(obj->owner, port);
}

const struct clsw_watch l2_member_watch = {
	.changed = vlan_member_changed,
};

static int vlan_member_put(struct l2_vlan *vlan, u16 port, u8 flags, char *text)
{
	struct clsw_device *cd = vlan->bridge->l2->cd;
	struct tnd_vlan_member body;
	struct clsw_obj *obj;
	int err;

	vlan_member_body(vlan, port, &body);
	err = clsw_put(cd, TND_CLS_VLAN_MEMBER, &body, sizeof(body), flags, &l2_member_watch, vlan,
		       &obj, text);
	if (err && flags & CLSW_PUT_MUST)
		vlan_member_failed(vlan, port, true);	/* no memory */
	else if (!err)
		vlan_member_failed(vlan, port, obj->state == CLSW_OBJ_FAILED);
	if (err || obj->state == CLSW_OBJ_FAILED || obj->state == CLSW_OBJ_SYNCED)
		vlan_member_known(vlan, port);
	return err;
}

/* Locked. The PVID has moved: the entries of both VLANs say so */
static void vlan_pvid_set(struct l2_bridge *bridge, u16 port, u16 pvid)
{
	struct l2_port *p = &bridge->l2->port[port];
	struct l2_vlan *old = p->pvid ? bridge->vlans[p->pvid] : NULL;

	if (p->pvid == pvid)
		return;
	p->pvid = pvid;
	if (old && old->fid && test_bit(port, old->ports))
		vlan_member_put(old, port, CLSW_PUT_MUST, NULL);
}

/* RTNL, not locked. Until the entry is in hardware; 0, or why it isn't */
static int vlan_member_wait(struct l2_vlan *vlan, u16 port, char *text)
{
	struct clsw_device *cd = vlan->bridge->l2->cd;
	ktime_t end = ktime_add_us(ktime_get(), MEMBER_WAIT_US);
	struct clsw_obj *obj;
	int err = -EAGAIN;

	while (err == -EAGAIN) {
		clsw_lock(cd);
		obj = vlan_member_obj(vlan, port);
		if (!obj || !clsw_up(cd)) {
			err = 0;	/* a replay writes it */
		} else if (obj->state == CLSW_OBJ_SYNCED) {
			err = 0;
		} else if (obj->state == CLSW_OBJ_FAILED) {
			err = obj->reason.status == TND_ST_TABLE_FULL ? -ENOSPC : -EIO;
			clsw_obj_reason(cd, obj, text, CLSW_TEXT);
		} else if (ktime_after(ktime_get(), end)) {
			err = -EIO;
			strscpy(text, "the chip does not answer", CLSW_TEXT);
		}
		clsw_unlock(cd);
		if (err == -EAGAIN)
			usleep_range(20, 60);
	}
	return err;
}

int l2_member_add(struct l2_vlan *vlan, u16 port, bool untagged, bool pvid,
		  struct netlink_ext_ack *extack)
{
	struct l2_bridge *bridge = vlan->bridge;
	struct clsw_l2 *l2 = bridge->l2;
	bool hw = vlan_has_domain(vlan);
	bool was, was_untagged;
	char text[CLSW_TEXT];
	u16 was_pvid;
	ktime_t end;
	int err;

	if (hw) {
		err = l2_domain_get(vlan, extack);
		if (err)
			return err;
	}
	text[0] = '\0';
	clsw_lock(l2->cd);
	was = test_bit(port, vlan->ports);
	was_untagged = test_bit(port, vlan->untagged);
	was_pvid = l2->port[port].pvid;
	__set_bit(port, vlan->ports);
	__assign_bit(port, vlan->untagged, untagged);
	if (vlan->vid && pvid)
		vlan_pvid_set(bridge, port, vlan->vid);
	else if (vlan->vid && was_pvid == vlan->vid)
		l2->port[port].pvid = 0;
	clsw_unlock(l2->cd);
	err = 0;
	end = ktime_add_us(ktime_get(), MEMBER_WAIT_US);
	do {
		if (!hw)
			break;
		text[0] = '\0';
		clsw_lock(l2->cd);
		err = vlan_member_put(vlan, port, 0, text);
		clsw_unlock(l2->cd);
	} while (vlan_slow_chip(err, end));
	if (hw && !err)
		err = vlan_member_wait(vlan, port, text);
	if (!err)
		return 0;

	NL_SET_ERR_MSG_FMT_MOD(extack, "%s", text[0] ? text : "no memory for a VLAN");
	clsw_lock(l2->cd);
	vlan_pvid_set(bridge, port, was_pvid);
	if (was) {
		__assign_bit(port, vlan->untagged, was_untagged);
		vlan_member_put(vlan, port, CLSW_PUT_MUST, NULL);
	} else {
		l2_member_del(vlan, port);
	}
	if (was_pvid && was_pvid != vlan->vid && bridge->vlans[was_pvid] &&
	    bridge->vlans[was_pvid]->fid)
		vlan_member_put(bridge->vlans[was_pvid], port, CLSW_PUT_MUST, NULL);
	clsw_unlock(l2->cd);
	l2_domain_put(vlan);
	return err;
}

void l2_member_del(struct l2_vlan *vlan, u16 port)
{
	struct clsw_l2 *l2 = vlan->bridge->l2;
	struct clsw_obj *obj;

	if (!test_bit(port, vlan->ports))
		return;
	obj = vlan->fid ? vlan_member_obj(vlan, port) : NULL;
	if (obj && obj->owner == vlan)
		clsw_drop(l2->cd, obj);
	__clear_bit(port, vlan->ports);
	__clear_bit(port, vlan->untagged);
	vlan_member_failed(vlan, port, false);
	vlan_member_known(vlan, port);
	if (vlan->vid && l2->port[port].pvid == vlan->vid)
		l2->port[port].pvid = 0;
}

/* ---- VLANs ---- */

struct l2_vlan *l2_vlan_get(struct l2_bridge *bridge, u16 vid)
{
	struct l2_vlan *vlan = bridge->vlans[vid];

	if (vlan)
		return vlan;
	vlan = kzalloc(sizeof(*vlan), GFP_KERNEL);
	if (!vlan)
		return NULL;
	vlan->bridge = bridge;
	vlan->vid = vid;
	clsw_lock(bridge->l2->cd);
	bridge->vlans[vid] = vlan;
	clsw_unlock(bridge->l2->cd);
	return vlan;
}

void l2_vlan_put(struct l2_vlan *vlan)
{
	struct clsw_device *cd = vlan->bridge->l2->cd;

	l2_domain_put(vlan);
	if (vlan->host || !bitmap_empty(vlan->ports, L2_PORT_BITS))
		return;
	clsw_lock(cd);
	vlan->bridge->vlans[vlan->vid] = NULL;
	clsw_unlock(cd);
	kfree(vlan);
}

static int vlan_host(struct l2_bridge *bridge, const struct switchdev_obj_port_vlan *obj, bool add)
{
	struct clsw_device *cd = bridge->l2->cd;
	bool pvid = add && obj->flags & BRIDGE_VLAN_INFO_PVID;
	u16 was = bridge->pvid;
	struct l2_vlan *vlan;

	vlan = add ? l2_vlan_get(bridge, obj->vid) : bridge->vlans[obj->vid];
	if (!vlan)
		return add ? -ENOMEM : 0;
	clsw_lock(cd);
	vlan->host = add;
	if (pvid)
		bridge->pvid = obj->vid;
	else if (was == obj->vid)
		bridge->pvid = 0;
	l2_domain_refresh(vlan);
	clsw_unlock(cd);
	/* the bridge's own interface may be in another domain now */
	if (bridge->aware && was != bridge->pvid && bridge->l2->fid_changed)
		bridge->l2->fid_changed(cd, 0);
	if (!add)
		l2_vlan_put(vlan);
	return 0;
}

int l2_vlan_obj(struct clsw_l2 *l2, struct net_device *dev,
		const struct switchdev_obj_port_vlan *obj, bool add,
		struct netlink_ext_ack *extack)
{
	struct clsw_port *port = clsw_port_of(dev);
	struct l2_bridge *bridge;
	struct l2_vlan *vlan;
	int err;

	if (!obj->vid || obj->vid >= VLAN_N_VID - 1)
		return -EINVAL;
	if (netif_is_bridge_master(dev)) {
		bridge = l2_bridge_of(l2, dev);
		return bridge ? vlan_host(bridge, obj, add) : -EOPNOTSUPP;
	}
	if (!port || port->cd != l2->cd || !port->bridge)
		return -EOPNOTSUPP;
	bridge = l2_bridge_of(l2, port->bridge);
	if (!bridge)
		return -EOPNOTSUPP;
	vlan = add ? l2_vlan_get(bridge, obj->vid) : bridge->vlans[obj->vid];
	if (!vlan)
		return add ? -ENOMEM : 0;
	if (add) {
		err = l2_member_add(vlan, port->index, obj->flags & BRIDGE_VLAN_INFO_UNTAGGED,
				    obj->flags & BRIDGE_VLAN_INFO_PVID, extack);
		if (err)
			l2_vlan_put(vlan);
		return err;
	}
	clsw_lock(l2->cd);
	l2_member_del(vlan, port->index);
	clsw_unlock(l2->cd);
	l2_vlan_put(vlan);
	return 0;
}

/* ---- vlan_filtering is switched ---- */

static u32 vlan_domains_needed(struct l2_bridge *bridge, bool aware)
{
	u32 n = 0;
	int vid;

	if (!aware)
		return 1;
	for (vid = 1; vid < VLAN_N_VID; vid++)
		if (bridge->vlans[vid] && !bitmap_empty(bridge->vlans[vid]->ports, L2_PORT_BITS))
			n++;
	return n;
}

static u32 vlan_domains_free(struct l2_bridge *bridge)
{
	u32 n = 0;
	int fid;

	for (fid = 1; fid <= bridge->l2->cd->caps.fids; fid++)
		if (!bridge->l2->domain[fid] || bridge->l2->domain[fid]->bridge == bridge)
			n++;
	return n;
}

/* Everything of the present mode out of hardware; who is in which VLAN stays */
static void vlan_take_down(struct l2_bridge *bridge)
{
	struct clsw_l2 *l2 = bridge->l2;
	int vid, port;

	for (vid = 0; vid < VLAN_N_VID; vid++) {
		struct l2_vlan *vlan = bridge->vlans[vid];

		if (!vlan || !vlan->fid)
			continue;
		clsw_lock(l2->cd);
		for_each_set_bit(port, vlan->ports, L2_PORT_BITS) {
			struct clsw_obj *obj = vlan_member_obj(vlan, port);

			if (obj && obj->owner == vlan)
				clsw_drop(l2->cd, obj);
			vlan_member_failed(vlan, port, false);
			vlan_member_known(vlan, port);
		}
		clsw_unlock(l2->cd);
		vlan_domain_drop(vlan);
	}
}

static void vlan_bring_up(struct l2_bridge *bridge, struct netlink_ext_ack *extack)
{
	struct clsw_l2 *l2 = bridge->l2;
	int vid, port;

	for (vid = 0; vid < VLAN_N_VID; vid++) {
		struct l2_vlan *vlan = bridge->vlans[vid];

		if (!vlan || !vlan_has_domain(vlan) || bitmap_empty(vlan->ports, L2_PORT_BITS))
			continue;
		/* without a number its ports trap; without room, until there is */
		if (vlan_domain_want(vlan, extack)) {
			clsw_lock(l2->cd);
			for_each_set_bit(port, vlan->ports, L2_PORT_BITS)
				vlan_member_failed(vlan, port, true);
			clsw_unlock(l2->cd);
			continue;
		}
		clsw_lock(l2->cd);
		for_each_set_bit(port, vlan->ports, L2_PORT_BITS) {
			__set_bit(port, vlan->pending);
			bridge->pending++;
			vlan_member_put(vlan, port, CLSW_PUT_MUST, NULL);
		}
		clsw_unlock(l2->cd);
	}
}

/*
 * A port is VLAN-aware in the chip or not, so the old entries go before the new
 * ones come: the drainer sees to that. Meanwhile the CPU forwards, until the last
 * of the new ones is known; nobody waits for it here, where RTNL is held.
 */
int l2_bridge_filtering(struct l2_bridge *bridge, bool on, struct netlink_ext_ack *extack)
{
	struct clsw_l2 *l2 = bridge->l2;
	u32 needs, has;

	ASSERT_RTNL();
	if (bridge->aware == on)
		return 0;
	needs = vlan_domains_needed(bridge, on);
	has = vlan_domains_free(bridge);
	if (needs > has) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "domains full (needs %u, free %u of %u)", needs, has,
				       l2->cd->caps.fids);
		return -ENOSPC;
	}
	clsw_lock(l2->cd);
	bridge->switching = false;
	l2_bridge_trap(bridge, L2_TRAP_SWITCHED, true);
	clsw_unlock(l2->cd);
	/* a few commands; if the chip is silent nothing of this reaches it anyway */
	clsw_ports_settle(l2->cd, TRAP_MS);
	vlan_take_down(bridge);
	clsw_lock(l2->cd);
	bridge->aware = on;
	clsw_unlock(l2->cd);
	vlan_bring_up(bridge, extack);
	clsw_lock(l2->cd);
	bridge->switching = true;
	vlan_switched(bridge);
	clsw_unlock(l2->cd);
	l2_states_look(l2, 0);
	return 0;
}
