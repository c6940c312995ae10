// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of bridges and ports.
 *
 * STP state, port flags, ageing and snooping come from a work item of
 * switchdev's: what goes wrong there is told to nobody, so nothing there needs
 * room. What the chip can't do is refused where somebody hears it: flags before
 * they are set (atomic), vlan_filtering and its protocol, spanning trees.
 */
#include "l2.h"

/* Flags that the chip has; others that the kernel asks for are refused */
static const struct {
	unsigned long brport;
	u32 tnd;
} flag_map[] = {
	{ BR_LEARNING, TND_PORT_LEARNING },
	{ BR_FLOOD, TND_PORT_FLOOD_UC },
	{ BR_MCAST_FLOOD, TND_PORT_FLOOD_MC },
	{ BR_BCAST_FLOOD, TND_PORT_FLOOD_BC },
	{ BR_ISOLATED, TND_PORT_ISOLATED },
	{ BR_HAIRPIN_MODE, TND_PORT_HAIRPIN },
	{ BR_PORT_LOCKED, TND_PORT_LOCKED },
};

u32 l2_flags_of(unsigned long brport_flags)
{
	u32 flags = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(flag_map); i++)
		if (brport_flags & flag_map[i].brport)
			flags |= flag_map[i].tnd;
	return flags;
}

/* Whole seconds, rounded up: an ageing time of 0 means another thing */
u32 l2_ageing_s(clock_t ageing)
{
	return DIV_ROUND_UP((unsigned long)ageing, USER_HZ);
}

static bool attr_ours(struct clsw_l2 *l2, const struct clsw_port *port)
{
	return port && port->cd == l2->cd;
}

int l2_attr_pre_flags(struct clsw_l2 *l2, struct net_device *dev,
		      const struct switchdev_attr *attr, struct netlink_ext_ack *extack)
{
	unsigned long asked, known = 0;
	int i;

	if (attr->id != SWITCHDEV_ATTR_ID_PORT_PRE_BRIDGE_FLAGS || !attr_ours(l2,
									      clsw_port_of(dev)))
		return 0;
	for (i = 0; i < ARRAY_SIZE(flag_map); i++)
		known |= flag_map[i].brport;
	asked = attr->u.brport_flags.val & attr->u.brport_flags.mask & ~known;
	if (!asked)
		return 0;
	if (asked & BR_PORT_MAB)
		NL_SET_ERR_MSG_MOD(extack, "the chip has no MAC authentication bypass");
	else if (asked & BR_MULTICAST_TO_UNICAST)
		NL_SET_ERR_MSG_MOD(extack, "the chip can't turn multicast into unicast");
	else
		NL_SET_ERR_MSG_MOD(extack, "the chip has no such port flag");
	return -EINVAL;
}

static int attr_set_stp(struct clsw_l2 *l2, struct clsw_port *port, u8 state)
{
	struct l2_bridge *bridge = port->bridge ? l2_bridge_of(l2, port->bridge) : NULL;

	if (!bridge)
		return 0;
	clsw_lock(l2->cd);
	l2->port[port->index].stp = state;
	l2_port_refresh(l2, port->index);
	clsw_unlock(l2->cd);
	/*
	 * The bridge has flushed, but the chip may have learned on until now. In
	 * other states it keeps what it knows, and so does the chip.
	 */
	if (state == TND_STP_DISABLED)
		l2_learned_flush(bridge, port);
	return 0;
}

static int attr_set_flags(struct clsw_l2 *l2, struct clsw_port *port,
			  const struct switchdev_brport_flags *flags)
{
	struct l2_port *p = &l2->port[port->index];
	u32 mask = l2_flags_of(flags->mask);

	if (!port->bridge)
		return 0;
	clsw_lock(l2->cd);
	p->flags = (p->flags & ~mask) | (l2_flags_of(flags->val) & mask);
	l2_port_refresh(l2, port->index);
	clsw_unlock(l2->cd);
	return 0;
}

static int attr_bridge(struct l2_bridge *bridge, const struct switchdev_attr *attr,
		       struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = bridge->l2->cd;

	switch (attr->id) {
	case SWITCHDEV_ATTR_ID_BRIDGE_AGEING_TIME:
		clsw_lock(cd);
		bridge->ageing_s = l2_ageing_s(attr->u.ageing_time);
		l2_domains_refresh(bridge);
		clsw_unlock(cd);
		return 0;
	case SWITCHDEV_ATTR_ID_BRIDGE_MC_DISABLED:
		clsw_lock(cd);
		bridge->snooping = !attr->u.mc_disabled;
		l2_domains_refresh(bridge);
		clsw_unlock(cd);
		return 0;
	case SWITCHDEV_ATTR_ID_BRIDGE_VLAN_FILTERING:
		return l2_bridge_filtering(bridge, attr->u.vlan_filtering, extack);
	case SWITCHDEV_ATTR_ID_BRIDGE_VLAN_PROTOCOL:
		if (attr->u.vlan_protocol == ETH_P_8021Q)
			return 0;
		NL_SET_ERR_MSG_MOD(extack, "only VLAN protocol 802.1Q is supported");
		return -EINVAL;
	case SWITCHDEV_ATTR_ID_BRIDGE_MST:
		if (!attr->u.mst)
			return 0;
		NL_SET_ERR_MSG_MOD(extack, "multiple spanning trees are not supported");
		return -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

int l2_attr_set(struct clsw_l2 *l2, struct net_device *dev, const struct switchdev_attr *attr,
		struct netlink_ext_ack *extack)
{
	struct clsw_port *port = clsw_port_of(dev);
	struct l2_bridge *bridge;

	if (netif_is_bridge_master(dev)) {
		bridge = l2_bridge_of(l2, dev);
		return bridge ? attr_bridge(bridge, attr, extack) : -EOPNOTSUPP;
	}
	if (!attr_ours(l2, port))
		return -EOPNOTSUPP;
	switch (attr->id) {
	case SWITCHDEV_ATTR_ID_PORT_STP_STATE:
		return attr_set_stp(l2, port, attr->u.stp_state);
	case SWITCHDEV_ATTR_ID_PORT_BRIDGE_FLAGS:
		return attr_set_flags(l2, port, &attr->u.brport_flags);
	default:
		bridge = port->bridge ? l2_bridge_of(l2, port->bridge) : NULL;
		return bridge ? attr_bridge(bridge, attr, extack) : -EOPNOTSUPP;
	}
}
