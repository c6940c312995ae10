// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups that the chip can't tell apart: those by MAC address. It would
 * flood them, so while there is one the bridge is the kernel's. IP groups reach
 * the CPU by themselves while the bridge snoops.
 *
 * A group is what the bridge says it is: added again (bridge mdb replace) it is
 * still one, and goes once. One that the bridge device itself belongs to is told
 * for every port.
 */
#include <linux/slab.h>

#include "l2.h"

/**
 * struct group - one port in one group
 * @list: in l2_bridge.groups
 * @port: ours
 * @vid: its VLAN; 0: the bridge does not filter
 * @host: told of the port, but the bridge device belongs to it
 * @mac: the group's address
 */
struct group {
	struct list_head list;
	u16 port;
	u16 vid;
	bool host;
	u8 mac[ETH_ALEN];
};

static struct group *mdb_find(struct l2_bridge *bridge, const struct group *like)
{
	struct group *group;

	list_for_each_entry(group, &bridge->groups, list)
		if (group->port == like->port && group->vid == like->vid &&
		    group->host == like->host && ether_addr_equal(group->mac, like->mac))
			return group;
	return NULL;
}

static void mdb_apply(struct l2_bridge *bridge)
{
	clsw_lock(bridge->l2->cd);
	l2_bridge_trap(bridge, L2_TRAP_MDB, l2_mdb_some(bridge));
	clsw_unlock(bridge->l2->cd);
}

int l2_mdb_obj(struct clsw_l2 *l2, struct net_device *dev, const struct switchdev_obj_port_mdb *mdb,
	       bool add)
{
	struct clsw_port *port = clsw_port_of(dev);
	struct l2_bridge *bridge;
	struct group like = {
		.vid = mdb->vid,
		.host = mdb->obj.id == SWITCHDEV_OBJ_ID_HOST_MDB,
	};
	struct group *group;

	ASSERT_RTNL();
	if (!port || port->cd != l2->cd)
		return -EOPNOTSUPP;
	if (ether_addr_is_ipv4_mcast(mdb->addr) || ether_addr_is_ipv6_mcast(mdb->addr))
		return -EOPNOTSUPP;
	bridge = port->bridge ? l2_bridge_of(l2, port->bridge) : NULL;
	if (!bridge)
		return -EOPNOTSUPP;
	like.port = port->index;
	ether_addr_copy(like.mac, mdb->addr);
	group = mdb_find(bridge, &like);
	if (add && !group) {
		group = kmemdup(&like, sizeof(like), GFP_KERNEL);
		if (group)
			list_add(&group->list, &bridge->groups);
		else	/* nobody knows any more when the last one goes */
			bridge->groups_lost = true;
	} else if (!add && group) {
		list_del(&group->list);
		kfree(group);
	}
	mdb_apply(bridge);
	/* the bridge is not told that anybody forwards for it */
	return -EOPNOTSUPP;
}

void l2_mdb_flush(struct l2_bridge *bridge, u16 port)
{
	struct group *group, *next;

	ASSERT_RTNL();
	list_for_each_entry_safe(group, next, &bridge->groups, list) {
		if (group->port != port)
			continue;
		list_del(&group->list);
		kfree(group);
	}
	mdb_apply(bridge);
}
