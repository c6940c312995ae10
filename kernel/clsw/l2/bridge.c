// SPDX-License-Identifier: GPL-2.0
/*
 * Bridges: ports that join and leave, what is on top of them, and who else is
 * in the bridge.
 *
 *   swp1 swp2      veth0          members that aren't ours ("foreign"): what
 *     +---+-- br0 --+             they should get comes through the CPU, so the
 *              + br0.10           domain copies floods to the CPU and traps
 *                                 unknown unicast; the kernel does the rest
 *
 * tx_fwd_offload is off: a frame that the CPU sends through the chip's pipeline
 * would seem to come in on a port, and teach the chip so.
 *
 * What a driver is not told (a promiscuous bridge, ARP suppression, nftables
 * chains for bridged frames) is looked at every two seconds.
 */
#include <linux/slab.h>

#include "l2.h"

#define WATCH_MS	2000

/* ---- uppers of a port ---- */

/*
 * A device that takes from the port no more than the chip gives. A VLAN device
 * is no such one if it has a MAC address of its own or is in a bridge: frames
 * to others than the port then are for it. RTNL
 */
static bool bridge_harmless_upper(struct net_device *dev, struct net_device *upper)
{
	struct net_device *above;
	struct list_head *iter;
	bool harmless = true;

	if (netif_is_l3_master(upper))
		return true;
	if (netif_is_bridge_master(upper))
		return clsw_port_of(dev);
	if (!is_vlan_dev(upper) || !ether_addr_equal(upper->dev_addr, dev->dev_addr))
		return false;
	rcu_read_lock();
	netdev_for_each_upper_dev_rcu(upper, above, iter)
		harmless = harmless && bridge_harmless_upper(upper, above);
	rcu_read_unlock();
	return harmless;
}

void l2_port_uppers(struct clsw_port *port)
{
	struct clsw_l2 *l2 = port->cd->l2;
	bool vlans = false, odd = false;
	struct net_device *upper;
	struct list_head *iter;

	ASSERT_RTNL();
	rcu_read_lock();
	netdev_for_each_upper_dev_rcu(port->netdev, upper, iter) {
		if (is_vlan_dev(upper))
			vlans = true;
		if (!bridge_harmless_upper(port->netdev, upper))
			odd = true;
	}
	rcu_read_unlock();
	clsw_lock(l2->cd);
	l2_port_trap(l2, port->index, L2_TRAP_UPPER, odd);
	l2_port_trap(l2, port->index, L2_TRAP_VLAN_UPPER, vlans && port->bridge);
	clsw_unlock(l2->cd);
}

/* ---- bridges ---- */

static u32 bridge_foreign_members(struct l2_bridge *bridge)
{
	struct net_device *dev;
	struct list_head *iter;
	u32 n = 0;

	netdev_for_each_lower_dev(bridge->dev, dev, iter) {
		struct clsw_port *port = clsw_port_of(dev);

		if (!port || port->cd != bridge->l2->cd)
			n++;
	}
	return n;
}

static void bridge_look_members(struct l2_bridge *bridge)
{
	u32 n = bridge_foreign_members(bridge);

	if (n == bridge->foreign)
		return;
	clsw_lock(bridge->l2->cd);
	bridge->foreign = n;
	l2_domains_refresh(bridge);
	clsw_unlock(bridge->l2->cd);
}

/* A chain that was emptied and removed leaves no hooks: a pointer is enough */
static bool bridge_has_bridge_chains(const struct net *net)
{
#ifdef CONFIG_NETFILTER_FAMILY_BRIDGE
	int i;

	for (i = 0; i < ARRAY_SIZE(net->nf.hooks_bridge); i++)
		if (rcu_access_pointer(net->nf.hooks_bridge[i]))
			return true;
#endif
	return false;
}

/* Does the kernel look at bridged frames, or at those of a member? */
static bool bridge_is_filtered(struct l2_bridge *bridge)
{
	bool some = bridge_has_bridge_chains(dev_net(bridge->dev));
	struct net_device *dev;
	struct list_head *iter;

	netdev_for_each_lower_dev(bridge->dev, dev, iter) {
#ifdef CONFIG_NETFILTER_INGRESS
		some |= !!rcu_access_pointer(dev->nf_hooks_ingress);
#endif
#ifdef CONFIG_NETFILTER_EGRESS
		some |= !!rcu_access_pointer(dev->nf_hooks_egress);
#endif
	}
	return some;
}

/* RTNL, not locked. What the kernel changes without telling */
static void bridge_look(struct l2_bridge *bridge)
{
	struct clsw_device *cd = bridge->l2->cd;
	bool promisc = bridge->dev->flags & IFF_PROMISC;
	unsigned long silent = BR_NEIGH_SUPPRESS | BR_NEIGH_VLAN_SUPPRESS | BR_PROXYARP |
			       BR_PROXYARP_WIFI;
	struct net_device *dev;
	struct list_head *iter;
	bool filtered = bridge_is_filtered(bridge);
	bool suppress = false;

	netdev_for_each_lower_dev(bridge->dev, dev, iter)
		if (br_port_flag_is_set(dev, silent))
			suppress = true;
	clsw_lock(cd);
	bridge->promisc = promisc;
	l2_bridge_trap(bridge, L2_TRAP_PROMISC, promisc);
	l2_bridge_trap(bridge, L2_TRAP_SUPPRESS, suppress);
	l2_bridge_trap(bridge, L2_TRAP_FILTER, filtered);
	clsw_unlock(cd);
}

void l2_watch_work(struct work_struct *work)
{
	struct clsw_l2 *l2 = container_of(to_delayed_work(work), struct clsw_l2, watch_work);
	struct l2_bridge *bridge;

	if (!rtnl_trylock()) {
		/* whoever has it may wait for this work to end */
		queue_delayed_work(l2->wq, &l2->watch_work, HZ / 10);
		return;
	}
	list_for_each_entry(bridge, &l2->bridges, list)
		bridge_look(bridge);
	if (!list_empty(&l2->bridges))
		queue_delayed_work(l2->wq, &l2->watch_work, msecs_to_jiffies(WATCH_MS));
	rtnl_unlock();
}

static struct l2_bridge *bridge_new(struct clsw_l2 *l2, struct net_device *dev)
{
	struct l2_bridge *bridge = kvzalloc(sizeof(*bridge), GFP_KERNEL);

	if (!bridge)
		return NULL;
	bridge->l2 = l2;
	bridge->dev = dev;
	bridge->aware = br_vlan_enabled(dev);
	bridge->up = dev->flags & IFF_UP;
	bridge->snooping = br_multicast_enabled(dev);
	bridge->ageing_s = l2_ageing_s(br_get_ageing_time(dev));
	INIT_LIST_HEAD(&bridge->fdbs);
	INIT_LIST_HEAD(&bridge->groups);
	dev_hold(dev);
	clsw_lock(l2->cd);
	list_add_tail(&bridge->list, &l2->bridges);
	clsw_unlock(l2->cd);
	if (!l2_vlan_get(bridge, 0)) {
		clsw_lock(l2->cd);
		list_del(&bridge->list);
		clsw_unlock(l2->cd);
		dev_put(dev);
		kvfree(bridge);
		return NULL;
	}
	queue_delayed_work(l2->wq, &l2->watch_work, msecs_to_jiffies(WATCH_MS));
	return bridge;
}

static void bridge_free(struct l2_bridge *bridge)
{
	struct clsw_l2 *l2 = bridge->l2;
	int vid;

	for (vid = 0; vid < VLAN_N_VID; vid++) {
		if (!bridge->vlans[vid])
			continue;
		bridge->vlans[vid]->host = false;
		l2_vlan_put(bridge->vlans[vid]);
	}
	l2_fdb_flush(bridge, 0);
	clsw_lock(l2->cd);
	list_del(&bridge->list);
	clsw_unlock(l2->cd);
	/* an event that has found it is done with it: all of that is locked */
	dev_put(bridge->dev);
	kvfree(bridge);
}

/* Can the chip do what this bridge does? */
static int bridge_check(struct net_device *dev, struct netlink_ext_ack *extack)
{
	u16 proto;

	if (br_vlan_enabled(dev) && !br_vlan_get_proto(dev, &proto) && proto != ETH_P_8021Q) {
		NL_SET_ERR_MSG_MOD(extack, "only VLAN protocol 802.1Q is supported");
		return -EOPNOTSUPP;
	}
	if (br_mst_enabled(dev)) {
		NL_SET_ERR_MSG_MOD(extack, "multiple spanning trees are not supported");
		return -EOPNOTSUPP;
	}
	return 0;
}

static void bridge_port_reset(struct clsw_l2 *l2, u16 index)
{
	struct l2_port *p = &l2->port[index];

	p->pvid = 0;
	p->failed = 0;
	p->flags = L2_PORT_DEFAULT;
	p->stp = TND_STP_FORWARDING;
	/* what does not hang on the bridge stays */
	p->traps &= BIT(L2_TRAP_UPPER) | BIT(L2_TRAP_TC) | BIT(L2_TRAP_TC_EGRESS);
	l2_port_refresh(l2, index);
}

int l2_port_join(struct clsw_port *port, struct net_device *dev, struct netlink_ext_ack *extack)
{
	struct clsw_l2 *l2 = port->cd->l2;
	struct l2_bridge *bridge = l2_bridge_of(l2, dev);
	bool first = !bridge;
	int err;

	ASSERT_RTNL();
	/* all bridges have been let go */
	if (l2->leaving)
		return -ENODEV;
	err = bridge_check(dev, extack);
	if (err)
		return err;
	if (first) {
		bridge = bridge_new(l2, dev);
		if (!bridge)
			return -ENOMEM;
	}
	clsw_lock(l2->cd);
	port->bridge = dev;
	__set_bit(port->index, bridge->ports);
	l2->port[port->index].flags = l2_flags_of(BR_LEARNING | BR_FLOOD | BR_MCAST_FLOOD |
						  BR_BCAST_FLOOD);
	/* the bridge says when it may forward */
	l2->port[port->index].stp = br_port_get_stp_state(port->netdev);
	l2_port_refresh(l2, port->index);
	clsw_unlock(l2->cd);

	err = l2_member_add(bridge->vlans[0], port->index, true, true, extack);
	if (err)
		goto err_port;
	/* what the bridge knows already is said again; what is known here stays as it is */
	err = switchdev_bridge_port_offload(port->netdev, port->netdev, NULL, &l2->atomic,
					    &l2->blocking, false, extack);
	if (err)
		goto err_member;
	bridge_look_members(bridge);
	bridge_look(bridge);
	l2_port_uppers(port);
	clsw_lock(l2->cd);
	if (l2_mdb_some(bridge))
		l2_port_trap(l2, port->index, L2_TRAP_MDB, true);
	if (bridge->stateful)
		l2_port_trap(l2, port->index, L2_TRAP_VLAN_STATE, true);
	clsw_unlock(l2->cd);
	if (first)
		l2_states_look(l2, 0);
	return 0;

err_member:
	clsw_lock(l2->cd);
	l2_member_del(bridge->vlans[0], port->index);
	clsw_unlock(l2->cd);
	l2_domain_put(bridge->vlans[0]);
err_port:
	l2_mdb_flush(bridge, port->index);
	clsw_lock(l2->cd);
	__clear_bit(port->index, bridge->ports);
	port->bridge = NULL;
	bridge_port_reset(l2, port->index);
	clsw_unlock(l2->cd);
	if (first)
		bridge_free(bridge);
	return err;
}

void l2_port_leave(struct clsw_port *port)
{
	struct clsw_l2 *l2 = port->cd->l2;
	struct l2_bridge *bridge = l2_bridge_of(l2, port->bridge);
	int vid;

	ASSERT_RTNL();
	if (!bridge)
		return;
	switchdev_bridge_port_unoffload(port->netdev, NULL, NULL, NULL);
	for (vid = 0; vid < VLAN_N_VID; vid++) {
		struct l2_vlan *vlan = bridge->vlans[vid];

		if (!vlan || !test_bit(port->index, vlan->ports))
			continue;
		clsw_lock(l2->cd);
		l2_member_del(vlan, port->index);
		clsw_unlock(l2->cd);
		if (vid)
			l2_vlan_put(vlan);
		else
			l2_domain_put(vlan);
	}
	clsw_lock(l2->cd);
	__clear_bit(port->index, bridge->ports);
	port->bridge = NULL;
	clsw_unlock(l2->cd);
	l2_mdb_flush(bridge, port->index);
	l2_learned_flush(bridge, port);
	l2_fdb_flush(bridge, port->index);
	clsw_lock(l2->cd);
	bridge_port_reset(l2, port->index);
	clsw_unlock(l2->cd);
	if (bitmap_empty(bridge->ports, L2_PORT_BITS))
		bridge_free(bridge);
	else
		bridge_look_members(bridge);
}

/* ---- netdevice events ---- */

static int bridge_port_event(struct clsw_l2 *l2, struct clsw_port *port, unsigned long event,
			     struct netdev_notifier_changeupper_info *info)
{
	struct netlink_ext_ack *extack = netdev_notifier_info_to_extack(&info->info);
	struct net_device *upper = info->upper_dev;
	int err = 0;

	if (event == NETDEV_PRECHANGEUPPER) {
		if (info->linking && netif_is_bridge_master(upper))
			return bridge_check(upper, extack);
		return 0;
	}
	if (netif_is_bridge_master(upper)) {
		if (!info->linking && port->bridge == upper)
			l2_port_leave(port);
		else if (info->linking && !port->bridge)
			err = l2_port_join(port, upper, extack);
	} else if (info->linking && !bridge_harmless_upper(port->netdev, upper)) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s: all frames of %s go to the CPU", upper->name,
				       port->netdev->name);
	}
	l2_port_uppers(port);
	return err;
}

int l2_netdevice_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l2 *l2 = container_of(nb, struct clsw_l2, netdevice);
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct netdev_notifier_changeupper_info *upper = ptr;
	struct clsw_port *port = clsw_port_of(dev);
	struct l2_bridge *bridge;

	if (is_vlan_dev(dev) && (event == NETDEV_CHANGEUPPER || event == NETDEV_CHANGEADDR)) {
		port = clsw_port_of(vlan_dev_real_dev(dev));
		if (port && port->cd == l2->cd)
			l2_port_uppers(port);
		port = NULL;
	}
	switch (event) {
	case NETDEV_PRECHANGEUPPER:
	case NETDEV_CHANGEUPPER:
		if (port && port->cd == l2->cd)
			return notifier_from_errno(bridge_port_event(l2, port, event, upper));
		bridge = l2_bridge_of(l2, upper->upper_dev);
		if (bridge && event == NETDEV_CHANGEUPPER)
			bridge_look_members(bridge);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
		if (port && port->cd == l2->cd) {
			/* made anew by a split, perhaps */
			clsw_lock(l2->cd);
			l2_port_refresh(l2, port->index);
			clsw_unlock(l2->cd);
			break;
		}
		bridge = l2_bridge_of(l2, dev);
		if (!bridge)
			break;
		clsw_lock(l2->cd);
		bridge->up = event == NETDEV_UP;
		l2_domains_refresh(bridge);
		clsw_unlock(l2->cd);
		bridge_look(bridge);
		break;
	case NETDEV_CHANGEADDR:
		if (port && port->cd == l2->cd)
			l2_port_uppers(port);
		break;
	case NETDEV_CHANGE:
		bridge = l2_bridge_of(l2, dev);
		if (bridge)
			bridge_look(bridge);
		break;
	}
	return NOTIFY_DONE;
}
