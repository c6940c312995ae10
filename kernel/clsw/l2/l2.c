// SPDX-License-Identifier: GPL-2.0
/*
 * L2's beginning and end, its notifiers, and what a port's object says.
 */
#include <linux/slab.h>

#include "l2.h"

static const char * const trap_text[] = {
	[L2_TRAP_UPPER] = "a device on top of the port wants frames of its own",
	[L2_TRAP_VLAN_UPPER] = "VLAN devices on a port of a bridge",
	[L2_TRAP_MEMBER] = "a VLAN of the port is not in hardware",
	[L2_TRAP_PROMISC] = "the bridge device is promiscuous",
	[L2_TRAP_MDB] = "multicast groups by MAC address",
	[L2_TRAP_SUPPRESS] = "the bridge answers ARP or ND for others",
	[L2_TRAP_FILTER] = "netfilter looks at bridged frames",
	[L2_TRAP_TC] = "tc, XDP or nftables look at what comes in",
	[L2_TRAP_TC_EGRESS] = "tc or nftables look at what leaves by a port of the chip",
	[L2_TRAP_SWITCHED] = "vlan_filtering is being switched",
	[L2_TRAP_VLAN_STATE] = "a VLAN has a spanning-tree state of its own",
};

struct l2_bridge *l2_bridge_of(struct clsw_l2 *l2, const struct net_device *dev)
{
	struct l2_bridge *bridge;

	list_for_each_entry(bridge, &l2->bridges, list)
		if (bridge->dev == dev)
			return bridge;
	return NULL;
}

u16 clsw_l2_fid(struct clsw_device *cd, const struct net_device *dev, u16 vid)
{
	struct l2_bridge *bridge;
	struct l2_vlan *vlan;

	if (!cd->l2 || vid >= VLAN_N_VID)
		return 0;
	bridge = l2_bridge_of(cd->l2, dev);
	if (!bridge || bridge->stateful)
		return 0;
	if (bridge->aware && !vid)
		vid = bridge->pvid;
	if (bridge->aware != !!vid)
		return 0;
	vlan = bridge->vlans[vid];
	return vlan ? vlan->fid : 0;
}

void clsw_l2_on_fid(struct clsw_device *cd, clsw_fid_fn changed)
{
	/* callers of it have either: when this returns none of them is in there */
	rtnl_lock();
	clsw_lock(cd);
	cd->l2->fid_changed = changed;
	clsw_unlock(cd);
	rtnl_unlock();
}

void l2_port_refresh(struct clsw_l2 *l2, u16 index)
{
	struct clsw_port *port = clsw_port(l2->cd, index);
	struct l2_port *p = &l2->port[index];
	u32 flags;

	if (!port)
		return;
	flags = le32_to_cpu(port->want.flags) & ~(L2_PORT_FLAGS | TND_PORT_TRAP_ALL);
	flags |= p->flags;
	if (p->traps)
		flags |= TND_PORT_TRAP_ALL;
	if (flags == le32_to_cpu(port->want.flags) && p->stp == port->want.stp_state)
		return;
	port->want.flags = cpu_to_le32(flags);
	port->want.stp_state = p->stp;
	clsw_port_update(port);
}

void l2_port_trap(struct clsw_l2 *l2, u16 index, enum l2_trap trap, bool on)
{
	struct clsw_port *port = clsw_port(l2->cd, index);
	struct l2_port *p = &l2->port[index];
	u16 was = p->traps;

	if (on)
		p->traps |= BIT(trap);
	else
		p->traps &= ~BIT(trap);
	if (p->traps == was)
		return;
	if (port && port->netdev && trap != L2_TRAP_SWITCHED && net_ratelimit()) {
		if (on)
			netdev_info(port->netdev, "all frames go to the CPU: %s\n",
				    trap_text[trap]);
		else if (!p->traps)
			netdev_info(port->netdev, "the chip forwards again\n");
	}
	l2_port_refresh(l2, index);
}

void l2_bridge_trap(struct l2_bridge *bridge, enum l2_trap trap, bool on)
{
	int port;

	for_each_set_bit(port, bridge->ports, L2_PORT_BITS)
		l2_port_trap(bridge->l2, port, trap, on);
}

/* ---- notifiers ---- */

static int l2_atomic_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l2 *l2 = container_of(nb, struct clsw_l2, atomic);
	struct switchdev_notifier_info *info = ptr;
	struct switchdev_notifier_port_attr_info *attr = ptr;

	switch (event) {
	case SWITCHDEV_PORT_ATTR_SET:
		return notifier_from_errno(l2_attr_pre_flags(l2, info->dev, attr->attr,
							     info->extack));
	case SWITCHDEV_FDB_ADD_TO_DEVICE:
	case SWITCHDEV_FDB_DEL_TO_DEVICE:
		l2_fdb_notified(l2, event == SWITCHDEV_FDB_ADD_TO_DEVICE, ptr);
		break;
	}
	return NOTIFY_DONE;
}

static int l2_port_obj(struct clsw_l2 *l2, bool add, struct switchdev_notifier_port_obj_info *info)
{
	const struct switchdev_obj *obj = info->obj;
	int err;

	switch (obj->id) {
	case SWITCHDEV_OBJ_ID_PORT_VLAN:
		err = l2_vlan_obj(l2, info->info.dev, SWITCHDEV_OBJ_PORT_VLAN(obj), add,
				  info->info.extack);
		break;
	case SWITCHDEV_OBJ_ID_PORT_MDB:
	case SWITCHDEV_OBJ_ID_HOST_MDB:
		err = l2_mdb_obj(l2, info->info.dev, SWITCHDEV_OBJ_PORT_MDB(obj), add);
		break;
	default:
		return NOTIFY_DONE;
	}
	if (err == -EOPNOTSUPP)
		return NOTIFY_DONE;
	info->handled = true;
	return notifier_from_errno(err);
}

static int l2_blocking_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l2 *l2 = container_of(nb, struct clsw_l2, blocking);
	struct switchdev_notifier_port_attr_info *attr = ptr;
	int err;

	switch (event) {
	case SWITCHDEV_PORT_OBJ_ADD:
		return l2_port_obj(l2, true, ptr);
	case SWITCHDEV_PORT_OBJ_DEL:
		return l2_port_obj(l2, false, ptr);
	case SWITCHDEV_PORT_ATTR_SET:
		err = l2_attr_set(l2, attr->info.dev, attr->attr, attr->info.extack);
		if (err == -EOPNOTSUPP)
			break;
		attr->handled = true;
		return notifier_from_errno(err);
	}
	return NOTIFY_DONE;
}

/* ---- life ---- */

/* Ports that were put into a bridge before anybody listened */
static void l2_join_what_is_there(struct clsw_device *cd)
{
	struct net_device *master;
	int i;

	for (i = 1; i <= CLSW_MAX_PORTS; i++) {
		struct clsw_port *port = cd->ports[i];

		if (!port || !port->netdev)
			continue;
		master = netdev_master_upper_dev_get(port->netdev);
		if (master && netif_is_bridge_master(master) && !port->bridge &&
		    l2_port_join(port, master, NULL))
			netdev_warn(port->netdev, "can't be offloaded in %s\n", master->name);
		l2_port_uppers(port);
	}
}

int clsw_l2_init(struct clsw_device *cd)
{
	struct clsw_l2 *l2;
	int i, err = -ENOMEM;

	l2 = kvzalloc(sizeof(*l2), GFP_KERNEL);
	if (!l2)
		return -ENOMEM;
	l2->cd = cd;
	INIT_LIST_HEAD(&l2->bridges);
	INIT_LIST_HEAD(&l2->notify);
	INIT_WORK(&l2->notify_work, l2_notify_work);
	INIT_WORK(&l2->dump_work, l2_dump_work);
	INIT_DELAYED_WORK(&l2->watch_work, l2_watch_work);
	for (i = 0; i < L2_PORT_BITS; i++) {
		l2->port[i].flags = L2_PORT_DEFAULT;
		l2->port[i].stp = TND_STP_FORWARDING;
	}
	l2->wq = alloc_ordered_workqueue("clsw-l2", 0);
	if (!l2->wq)
		goto err_free;
	err = l2_fdb_init(l2);
	if (err)
		goto err_wq;
	clsw_lock(cd);
	cd->l2 = l2;
	for (i = 1; i <= CLSW_MAX_PORTS; i++)
		l2_port_refresh(l2, i);
	clsw_unlock(cd);

	err = l2_states_init(l2);
	if (err)
		goto err_fdb;
	l2->atomic.notifier_call = l2_atomic_event;
	l2->blocking.notifier_call = l2_blocking_event;
	l2->netdevice.notifier_call = l2_netdevice_event;
	err = register_switchdev_notifier(&l2->atomic);
	if (err)
		goto err_states;
	err = register_switchdev_blocking_notifier(&l2->blocking);
	if (err)
		goto err_atomic;
	err = register_netdevice_notifier(&l2->netdevice);
	if (err)
		goto err_blocking;
	rtnl_lock();
	l2_join_what_is_there(cd);
	rtnl_unlock();
	return 0;

err_blocking:
	unregister_switchdev_blocking_notifier(&l2->blocking);
err_atomic:
	unregister_switchdev_notifier(&l2->atomic);
err_states:
	l2_states_exit(l2);
err_fdb:
	clsw_lock(cd);
	cd->l2 = NULL;
	clsw_unlock(cd);
	synchronize_net();
	l2_fdb_exit(l2);
err_wq:
	destroy_workqueue(l2->wq);
err_free:
	kvfree(l2);
	return err;
}

void clsw_l2_exit(struct clsw_device *cd)
{
	struct clsw_l2 *l2 = cd->l2;
	int i;

	rtnl_lock();
	l2->leaving = true;
	for (i = 1; i <= CLSW_MAX_PORTS; i++)
		if (cd->ports[i] && cd->ports[i]->bridge)
			l2_port_leave(cd->ports[i]);
	rtnl_unlock();
	unregister_netdevice_notifier(&l2->netdevice);
	unregister_switchdev_blocking_notifier(&l2->blocking);
	unregister_switchdev_notifier(&l2->atomic);
	l2_states_exit(l2);
	clsw_lock(cd);
	cd->l2 = NULL;		/* events are nobody's from here on */
	clsw_unlock(cd);
	synchronize_net();
	cancel_delayed_work_sync(&l2->watch_work);
	cancel_work_sync(&l2->dump_work);
	cancel_work_sync(&l2->notify_work);
	destroy_workqueue(l2->wq);
	WARN_ON(!list_empty(&l2->bridges));
	l2_fdb_exit(l2);
	kvfree(l2);
}
