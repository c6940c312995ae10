// SPDX-License-Identifier: GPL-2.0
/*
 * Router interfaces: where routed packets come in and go out.
 *
 *   swpN, in no bridge ──────► RIF on the port
 *   bridge with ports of ours ► RIF on its domain (vlan_filtering: its PVID's)
 *   VLAN interface on it ─────► RIF on the VLAN's domain
 *   VLAN interface on swpN ──► RIF on (port, VID); with an egress priority map
 *                              it has none: packets go to the CPU
 *
 * An interface has one while it has addresses. What decides how it forwards
 * (addresses, sysctls, rules, netfilter) is read anew on every event and by the
 * clock: the kernel tells nobody in here about a sysctl.
 */
#include <linux/if_bridge.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <net/addrconf.h>
#include <net/l3mdev.h>

#include "l3.h"

#define VLAN_RIFS	5120	/* ids of RIFs on a port's VLANs */
#define ADDR_ROUTES	4	/* an address brings at most: itself, its prefix, two broadcasts */

struct l3_rif *l3_rif_find(struct clsw_l3 *l3, u32 ifindex)
{
	struct l3_rif *rif;

	hash_for_each_possible(l3->rifs, rif, node, ifindex)
		if (rif->ifindex == ifindex)
			return rif;
	return NULL;
}

/*
 * One that is on its way out, of the kernel or into another namespace, is in no
 * list any more, but has addresses still, and tells of each that goes.
 */
static bool rif_is_here(const struct clsw_l3 *l3, const struct net_device *dev)
{
	return dev->reg_state == NETREG_REGISTERED &&
	       __dev_get_by_index(l3->net, dev->ifindex) == dev;
}

static bool rif_id_taken(struct clsw_l3 *l3, u16 id)
{
	struct l3_rif *rif;
	int i;

	hash_for_each(l3->rifs, i, rif, node)
		if (rif->id == id)
			return true;
	return false;
}

/*
 * The id of a RIF on a port's VLAN: too many places for a number each, so a
 * place gets one when it is first used, and keeps it as others keep theirs.
 * With all given out those of places without a RIF are free again. 0: none.
 */
static u16 rif_vlan_id(struct clsw_l3 *l3, u16 port, u16 vid)
{
	unsigned long at, place = port * VLAN_N_VID + vid;
	const struct xa_limit limit = XA_LIMIT(VLAN_RIFS, l3->cd->caps.rif);
	void *there = xa_load(&l3->vlan_rif_of, place);
	bool swept = false;
	u32 id;

	ASSERT_RTNL();
	if (there)
		return xa_to_value(there);
again:
	if (xa_alloc(&l3->vlan_rifs, &id, xa_mk_value(place), limit, GFP_KERNEL)) {
		if (swept)
			return 0;
		swept = true;
		xa_for_each(&l3->vlan_rifs, at, there) {
			if (rif_id_taken(l3, at))
				continue;
			xa_erase(&l3->vlan_rif_of, xa_to_value(there));
			xa_erase(&l3->vlan_rifs, at);
		}
		goto again;
	}
	if (xa_err(xa_store(&l3->vlan_rif_of, place, xa_mk_value(id), GFP_KERNEL))) {
		xa_erase(&l3->vlan_rifs, id);
		return 0;
	}
	return id;
}

/*
 * A VLAN interface whose packets look as the chip makes them: priority 0. On a
 * port, one with a MAC address of its own makes it trap everything (l2/bridge.c).
 */
static bool rif_is_plain_vlan(const struct net_device *dev)
{
#if IS_ENABLED(CONFIG_VLAN_8021Q)
	const struct vlan_dev_priv *vlan = vlan_dev_priv(dev);

	return vlan->vlan_proto == htons(ETH_P_8021Q) && !vlan->nr_egress_mappings &&
	       vlan->flags & VLAN_FLAG_REORDER_HDR && vlan->vlan_id;
#else
	return false;
#endif
}

/* Of a VLAN interface on a port of ours */
static bool rif_place_on_port(struct clsw_l3 *l3, struct net_device *dev, struct tnd_rif *body)
{
	struct net_device *real = vlan_dev_real_dev(dev), *master;
	struct clsw_port *port = clsw_port_of(real);
	u16 id;

	if (!port || port->cd != l3->cd || !rif_is_plain_vlan(dev))
		return false;
	/* a VRF is no bridge: its ports' VLANs are where their own masters are */
	master = netdev_master_upper_dev_get(real);
	if (master && !netif_is_l3_master(master))
		return false;
	id = rif_vlan_id(l3, port->index, vlan_dev_vlan_id(dev));
	body->kind = cpu_to_le16(TND_RIF_PORT_VLAN);
	body->port = cpu_to_le16(port->index);
	body->vid = cpu_to_le16(vlan_dev_vlan_id(dev));
	body->rif = cpu_to_le16(id);
	return id;
}

/* Where it stands in the chip; false: nowhere. RTNL */
static bool rif_place(struct clsw_l3 *l3, struct net_device *dev, struct tnd_rif *body)
{
	struct net_device *master = netdev_master_upper_dev_get(dev), *real;
	struct clsw_port *port = clsw_port_of(dev);
	u16 fid = 0;

	if (master && !netif_is_l3_master(master))
		return false;
	if (port) {
		if (port->cd != l3->cd)
			return false;
		body->kind = cpu_to_le16(TND_RIF_PORT);
		body->port = cpu_to_le16(port->index);
		body->rif = cpu_to_le16(port->index);
		return true;
	}
	if (netif_is_bridge_master(dev)) {
		fid = clsw_l2_fid(l3->cd, dev, 0);
	} else if (is_vlan_dev(dev)) {
		real = vlan_dev_real_dev(dev);
		if (clsw_port_of(real))
			return rif_place_on_port(l3, dev, body);
		if (netif_is_bridge_master(real) && br_vlan_enabled(real) && rif_is_plain_vlan(dev))
			fid = clsw_l2_fid(l3->cd, real, vlan_dev_vlan_id(dev));
	}
	if (!fid)
		return false;
	body->kind = cpu_to_le16(TND_RIF_FID);
	body->fid = cpu_to_le16(fid);
	body->rif = cpu_to_le16(CLSW_FID_RIFS + fid);
	return true;
}

static bool rif_has_addresses(struct net_device *dev)
{
	struct in_device *in4 = __in_dev_get_rtnl(dev);
	struct inet6_dev *in6 = __in6_dev_get(dev);

	return (in4 && rtnl_dereference(in4->ifa_list)) || (in6 && !list_empty(&in6->addr_list));
}

#if IS_ENABLED(CONFIG_NETFILTER)
/*
 * Security modules hook POST_ROUTING on every Debian (AppArmor, SELinux); of
 * packets that are forwarded, without a label of netfilter's own, they let all pass.
 */
static bool rif_hooked(const struct nf_hook_entries __rcu *slot)
{
	const struct nf_hook_entries *entries;
	struct nf_hook_ops **ops;
	bool found = false;
	u16 i;

	rcu_read_lock();
	entries = rcu_dereference(slot);
	if (entries) {
		ops = nf_hook_entries_get_hook_ops(entries);
		for (i = 0; i < entries->num_hook_entries && !found; i++) {
			const struct nf_hook_ops *op = READ_ONCE(ops[i]);

			found = op->hook_ops_type != NF_HOOK_OP_UNDEFINED ||
				(op->priority != NF_IP_PRI_SELINUX_FIRST &&
				 op->priority != NF_IP_PRI_SELINUX_LAST);
		}
	}
	rcu_read_unlock();
	return found;
}
#endif

/* Packets that come in are for software to judge, whatever the tables say */
static bool rif_filtered(struct clsw_l3 *l3)
{
#if IS_ENABLED(CONFIG_NETFILTER)
	static const u8 hooks[] = { NF_INET_PRE_ROUTING, NF_INET_FORWARD, NF_INET_POST_ROUTING };
	int i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (rif_hooked(l3->net->nf.hooks_ipv4[hooks[i]]) ||
		    rif_hooked(l3->net->nf.hooks_ipv6[hooks[i]]))
			return true;
#endif
	return READ_ONCE(l3->alien_rules) || READ_ONCE(l3->degraded);
}

static u32 rif_flags_of(struct clsw_l3 *l3, struct net_device *dev)
{
	struct in_device *in4 = __in_dev_get_rtnl(dev);
	struct inet6_dev *in6 = __in6_dev_get(dev);
	u32 flags = 0;

	if (in4 && rtnl_dereference(in4->ifa_list) && IN_DEV_FORWARD(in4))
		flags |= TND_RIF_V4;
	if (in6 && READ_ONCE(l3->net->ipv6.devconf_all->forwarding) &&
	    !READ_ONCE(in6->cnf.disable_ipv6))
		flags |= TND_RIF_V6;
	if (in4 && !IN_DEV_TX_REDIRECTS(in4))
		flags |= TND_RIF_NO_REDIRECT;
	switch (in4 ? IN_DEV_RPFILTER(in4) : 0) {
	case 1:
		flags |= TND_RIF_TRAP_ALL;
		break;
	case 2:
		flags |= TND_RIF_RPF_LOOSE;
		break;
	}
	/* a VLAN interface or bridge that is down takes nothing, its port may be up */
	if (rif_filtered(l3) || clsw_dev_filters(dev, false) || l3->egress_filters ||
	    !(dev->flags & IFF_UP))
		flags |= TND_RIF_TRAP_ALL;
	return flags;
}

static bool rif_wanted(struct clsw_l3 *l3, struct net_device *dev, struct tnd_rif *body)
{
	memset(body, 0, sizeof(*body));
	body->struct_size = cpu_to_le16(sizeof(*body));
	if (!is_valid_ether_addr(dev->dev_addr) || dev->addr_len != ETH_ALEN ||
	    !rif_has_addresses(dev) || !rif_place(l3, dev, body))
		return false;
	ether_addr_copy(body->mac, dev->dev_addr);
	body->mtu = cpu_to_le32(clamp(READ_ONCE(dev->mtu), 68U, 65535U));
	body->flags = cpu_to_le32(rif_flags_of(l3, dev));
	return true;
}

static const char *rif_trouble(int err, const char *text)
{
	return text[0] ? text : err == -ENOMEM ? "no memory" : "the chip does not answer";
}

static void rif_remove(struct clsw_l3 *l3, struct l3_rif *rif)
{
	struct clsw_obj *obj = rif->obj;

	/* first what names it: next hops and hosts look for it and find none */
	clsw_lock(l3->cd);
	hash_del(&rif->node);
	l3_paths_refresh(l3, rif->ifindex);
	l3_neigh_refresh_dev(l3, rif->ifindex);
	if (obj)
		clsw_drop(l3->cd, obj);
	l3_vrf_leave(l3, rif->vrf);
	clsw_unlock(l3->cd);
	netdev_put(rif->dev, &rif->tracker);
	rif->dev = NULL;
	rif->vrf = NULL;
	rif->obj = NULL;
	if (!obj || READ_ONCE(l3->leaving)) {
		kfree(rif);
		return;
	}
	list_add(&rif->gone, &l3->gone);
	l3->gone_pause = 1;
}

/* Those of which the chip has nothing left are forgotten */
static void rif_sweep_gone(struct clsw_l3 *l3)
{
	struct l3_rif *rif, *next;
	struct clsw_obj *obj;

	clsw_lock(l3->cd);
	list_for_each_entry_safe(rif, next, &l3->gone, gone) {
		obj = clsw_find(l3->cd, TND_CLS_RIF, &rif->want);
		if (obj && !obj->wanted)
			continue;
		list_del(&rif->gone);
		kfree(rif);
	}
	clsw_unlock(l3->cd);
}

/*
 * The chip keys hosts by VRF: a RIF that has left its VRF or its place, and with
 * it its hosts, must be gone before its interface gets another, or its place.
 * Nobody waits for that with RTNL held: the interface has none until then, and
 * its packets go to the CPU. The same RIF again is updated in place.
 */
static bool rif_in_the_way(struct clsw_l3 *l3, u32 ifindex, u32 tb_id, const struct tnd_rif *body)
{
	const struct l3_vrf *vrf;
	const struct l3_rif *rif;
	bool yes = false;

	if (likely(list_empty(&l3->gone)))
		return false;
	rif_sweep_gone(l3);
	clsw_lock(l3->cd);
	vrf = l3_vrf_find(l3, tb_id);
	list_for_each_entry(rif, &l3->gone, gone) {
		bool same_place = rif->want.rif == body->rif;

		if (rif->ifindex != ifindex && !same_place)
			continue;
		if (rif->ifindex != ifindex || !same_place || !vrf || !vrf->active ||
		    rif->want.vrf != cpu_to_le16(vrf->id))
			yes = true;
	}
	clsw_unlock(l3->cd);
	if (yes && !READ_ONCE(l3->leaving)) {
		queue_delayed_work(l3->wq, &l3->refresh_work, l3->gone_pause);
		l3->gone_pause = min_t(unsigned long, l3->gone_pause * 2, L3_TICK);
	}
	return yes;
}

static struct l3_rif *rif_create(struct clsw_l3 *l3, struct net_device *dev, u32 tb_id,
				 char *text, int *err)
{
	struct l3_rif *rif = kzalloc(sizeof(*rif), GFP_KERNEL);

	*err = -ENOMEM;
	if (!rif)
		return NULL;
	rif->dev = dev;
	rif->ifindex = dev->ifindex;
	clsw_lock(l3->cd);
	rif->vrf = l3_vrf_get(l3, tb_id);
	if (rif->vrf) {
		*err = l3_vrf_join(l3, rif->vrf, text);
		if (*err)
			l3_vrf_put(l3, rif->vrf);
		else
			hash_add(l3->rifs, &rif->node, dev->ifindex);
	}
	clsw_unlock(l3->cd);
	if (!*err) {
		netdev_hold(dev, &rif->tracker, GFP_KERNEL);
		return rif;
	}
	kfree(rif);
	return NULL;
}

/* Refused after its put had returned: the kernel was told yes */
static void rif_changed(struct clsw_device *cd, struct clsw_obj *obj)
{
	struct l3_rif *rif = obj->owner;
	char text[CLSW_TEXT];

	if (obj->state != CLSW_OBJ_FAILED || obj->written || rif->obj != obj || !net_ratelimit())
		return;
	if (!clsw_obj_reason(cd, obj, text, sizeof(text)))
		text[0] = 0;
	netdev_warn(rif->dev, "not offloaded, routed packets go to the CPU: %s\n",
		    rif_trouble(-ENOSPC, text));
}

static const struct clsw_watch rif_watch = { .changed = rif_changed };

static int rif_refresh(struct clsw_l3 *l3, struct net_device *dev, struct netlink_ext_ack *extack,
		       bool soon)
{
	struct l3_rif *rif = l3_rif_find(l3, dev->ifindex);
	char text[CLSW_TEXT] = "";
	u32 tb_id = l3mdev_fib_table(dev);
	struct tnd_rif body;
	bool fresh = false;
	int err = 0;

	if (!tb_id)
		tb_id = RT_TABLE_MAIN;
	if (!rif_is_here(l3, dev) || (!rif_wanted(l3, dev, &body) && !(soon && rif_place(l3, dev,
											 &body)))) {
		if (rif)
			rif_remove(l3, rif);
		return 0;
	}
	if (soon && !rif) {
		/* an address is about to come: everything but the flags is known */
		ether_addr_copy(body.mac, dev->dev_addr);
		body.mtu = cpu_to_le32(clamp(READ_ONCE(dev->mtu), 68U, 65535U));
	}
	if (rif && (rif->vrf->tb_id != tb_id || rif->want.rif != body.rif)) {
		rif_remove(l3, rif);
		rif = NULL;
	}
	if (!rif && rif_in_the_way(l3, dev->ifindex, tb_id, &body))
		return 0;
	if (!rif) {
		rif = rif_create(l3, dev, tb_id, text, &err);
		fresh = true;
	}
	if (!rif)
		goto out;
	body.vrf = cpu_to_le16(rif->vrf->id);
	rif->id = le16_to_cpu(body.rif);
	if (rif->obj && !memcmp(&rif->want, &body, sizeof(body)))
		return 0;
	clsw_lock(l3->cd);
	/* since the flags were read: see l3_rifs_trap() */
	if (l3->degraded)
		body.flags |= cpu_to_le32(TND_RIF_TRAP_ALL);
	err = clsw_put(l3->cd, TND_CLS_RIF, &body, sizeof(body), rif->obj ? CLSW_PUT_MUST : 0,
		       &rif_watch, rif, &rif->obj, text);
	if (!err) {
		rif->want = body;
		if (fresh) {
			l3_paths_refresh(l3, dev->ifindex);
			l3_neigh_refresh_dev(l3, dev->ifindex);
		}
	}
	clsw_unlock(l3->cd);
	if (err && fresh)
		rif_remove(l3, rif);
out:
	if (err && extack)
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s", rif_trouble(err, text));
	else if (err && net_ratelimit())
		netdev_warn(dev, "not offloaded, routed packets go to the CPU: %s\n",
			    rif_trouble(err, text));
	return err;
}

void l3_rif_refresh(struct clsw_l3 *l3, struct net_device *dev)
{
	rif_refresh(l3, dev, NULL, false);
}

/* The rest of it comes with the next refresh, under RTNL */
void l3_rifs_trap(struct clsw_l3 *l3)
{
	struct l3_rif *rif;
	int i;

	hash_for_each(l3->rifs, i, rif, node) {
		if (!rif->obj)
			continue;
		rif->want.flags |= cpu_to_le32(TND_RIF_TRAP_ALL);
		clsw_put(l3->cd, TND_CLS_RIF, &rif->want, sizeof(rif->want), CLSW_PUT_MUST,
			 &rif_watch, rif, &rif->obj, NULL);
	}
}

void l3_rifs_refresh(struct clsw_l3 *l3)
{
	bool egress = false;
	struct net_device *dev;
	struct l3_rif *rif;
	int i;

	ASSERT_RTNL();
	rif_sweep_gone(l3);
	hash_for_each(l3->rifs, i, rif, node)
		egress = egress || clsw_dev_filters(rif->dev, true);
	l3->egress_filters = egress;
	for_each_netdev(l3->net, dev)
		rif_refresh(l3, dev, NULL, false);
}

void l3_rif_gone(struct clsw_l3 *l3, struct net_device *dev)
{
	struct l3_rif *rif = l3_rif_find(l3, dev->ifindex);

	if (rif)
		rif_remove(l3, rif);
}

/* RTNL, not locked. A domain is about to go: what stands on it goes first */
void l3_rifs_leave(struct clsw_l3 *l3, u16 fid)
{
	const struct tnd_rif probe = { .rif = cpu_to_le16(CLSW_FID_RIFS + fid) };
	struct l3_rif *rif = NULL;
	struct clsw_obj *obj;

	ASSERT_RTNL();
	/* its number says where it stands, and what is in the store has its owner */
	clsw_lock(l3->cd);
	obj = clsw_find(l3->cd, TND_CLS_RIF, &probe);
	if (obj && obj->wanted)
		rif = obj->owner;
	clsw_unlock(l3->cd);
	if (rif)
		rif_remove(l3, rif);
}

void l3_rifs_free(struct clsw_l3 *l3)
{
	struct l3_rif *rif, *after;
	struct hlist_node *next;
	int i;

	hash_for_each_safe(l3->rifs, i, next, rif, node)
		rif_remove(l3, rif);
	list_for_each_entry_safe(rif, after, &l3->gone, gone)
		kfree(rif);
	INIT_LIST_HEAD(&l3->gone);
}

/* ---- events ---- */

/*
 * An interface that routes is about to come into a VRF. Nobody could be told
 * afterwards that the chip has no room for one more.
 */
static int rif_may_join(struct clsw_l3 *l3, const struct net_device *dev,
			const struct netdev_notifier_changeupper_info *info)
{
	const struct l3_rif *rif = l3_rif_find(l3, dev->ifindex);
	struct netlink_ext_ack *extack = info->info.extack;
	struct rm_class_state state;
	struct rm_pool_state pool;
	const struct l3_vrf *vrf;
	unsigned int i;
	int err = 0;

	if (!rif || !info->linking || !netif_is_l3_master(info->upper_dev))
		return 0;
	clsw_lock(l3->cd);
	vrf = l3_vrf_find(l3, l3mdev_fib_table(info->upper_dev));
	/* the last one to leave a VRF makes room for another */
	if ((vrf && vrf->active) || (rif->vrf != l3->main && rif->vrf->rifs == 1))
		goto out;
	for (i = 0; rm_class_state(l3->cd->rm, i, &state); i++) {
		if (state.cls != TND_CLS_VRF || state.free_expected ||
		    !rm_pool_state(l3->cd->rm, state.pool, &pool))
			continue;
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s full (needs %u, free %u of %u)",
				       rm_display_name(pool.name), state.cost, pool.free,
				       pool.size);
		err = -ENOSPC;
		break;
	}
out:
	clsw_unlock(l3->cd);
	return err;
}

int l3_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, netdev_nb);
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	if (!net_eq(dev_net(dev), l3->net))
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_PRECHANGEUPPER:
		return notifier_from_errno(rif_may_join(l3, dev, ptr));
	case NETDEV_UNREGISTER:
		l3_rif_gone(l3, dev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		l3_rif_refresh(l3, dev);
		clsw_lock(l3->cd);
		l3_paths_refresh(l3, dev->ifindex);
		clsw_unlock(l3->cd);
		break;
	case NETDEV_CHANGEADDR:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEUPPER:
		l3_rif_refresh(l3, dev);
		break;
	}
	return NOTIFY_DONE;
}

int l3_inetaddr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, inetaddr_nb);
	struct in_ifaddr *ifa = ptr;
	struct net_device *dev = ifa->ifa_dev->dev;

	if (net_eq(dev_net(dev), l3->net))
		l3_rif_refresh(l3, dev);
	return NOTIFY_DONE;
}

/* Atomic, and not always under RTNL */
int l3_inet6addr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, inet6addr_nb);

	l3_rifs_soon(l3);
	return NOTIFY_DONE;
}

/*
 * The kernel adds an address's routes without asking anybody: whether they and
 * the RIF fit is asked here, where "no" reaches the user.
 */
static int rif_validate(struct clsw_l3 *l3, struct net_device *dev, u8 family, u32 routes,
			struct netlink_ext_ack *extack)
{
	struct rm_class_state state;
	struct rm_pool_state pool;
	struct tnd_rif body = {};
	unsigned int i;
	int err = 0;

	ASSERT_RTNL();
	if (!net_eq(dev_net(dev), l3->net) || !rif_place(l3, dev, &body))
		return 0;
	clsw_lock(l3->cd);
	for (i = 0; rm_class_state(l3->cd->rm, i, &state); i++) {
		if (state.cls != TND_CLS_ROUTE || state.family != family ||
		    state.free_expected >= routes || !rm_pool_state(l3->cd->rm, state.pool, &pool))
			continue;
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s full (needs %u, free %u of %u)",
				       rm_display_name(pool.name), routes * state.cost,
				       state.free_expected * state.cost, pool.size);
		err = -ENOSPC;
		break;
	}
	clsw_unlock(l3->cd);
	if (!err && !l3_rif_find(l3, dev->ifindex))
		err = rif_refresh(l3, dev, extack, true);
	return err;
}

int l3_inetaddr_valid(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, inetaddr_valid_nb);
	struct in_validator_info *info = ptr;

	if (event != NETDEV_UP)
		return NOTIFY_DONE;
	return notifier_from_errno(rif_validate(l3, info->ivi_dev->dev, TND_AF_INET, ADDR_ROUTES,
						info->extack));
}

int l3_inet6addr_valid(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, inet6addr_valid_nb);
	struct in6_validator_info *info = ptr;

	if (event != NETDEV_UP || ipv6_addr_type(&info->i6vi_addr) & IPV6_ADDR_LINKLOCAL)
		return NOTIFY_DONE;
	return notifier_from_errno(rif_validate(l3, info->i6vi_dev->dev, TND_AF_INET6,
						ADDR_ROUTES - 1, info->extack));
}
