// SPDX-License-Identifier: GPL-2.0
/*
 * Who else looks at a device's frames: tc filters and BPF programs at its
 * ingress and egress, XDP, nftables' netdev hooks. The chip has none of them
 * (yet), so what they would see goes through the kernel:
 *
 *   at a port's ingress ──► that port traps everything
 *   at a port's egress ───► all ports do: any may send there
 *   at a VLAN interface, a bridge … ──► routed packets trap (l3/rif.c)
 *
 * Flower and its like say so through a block, at once. Other classifiers, BPF
 * links and nftables tell nobody: looked at once a second.
 */
#include <linux/bpf_mprog.h>
#include <net/flow_offload.h>
#include <net/pkt_cls.h>
#include <net/tcx.h>

#include "l2.h"

/* A filter waits so long for the traps of its ports, and for nothing else */
#define APPLY_MS	100

static LIST_HEAD(ingress_blocks);
static LIST_HEAD(egress_blocks);

#ifdef CONFIG_NET_XGRESS
static bool filter_classified(const struct bpf_mprog_entry __rcu *slot)
{
	/* the entry is part of a pair in one allocation: a const is nobody's */
	struct bpf_mprog_entry *entry = (struct bpf_mprog_entry *)rcu_dereference_rtnl(slot);

	return entry && (tcx_entry(entry)->bundle.count ||
			 rcu_access_pointer(tcx_entry(entry)->miniq));
}
#endif

bool clsw_dev_filters(const struct net_device *dev, bool egress)
{
	bool some = false;

	ASSERT_RTNL();
#ifdef CONFIG_NET_XGRESS
	some |= filter_classified(egress ? dev->tcx_egress : dev->tcx_ingress);
#endif
#ifdef CONFIG_NETFILTER_INGRESS
	some |= !egress && rcu_access_pointer(dev->nf_hooks_ingress);
#endif
#ifdef CONFIG_NETFILTER_EGRESS
	some |= egress && rcu_access_pointer(dev->nf_hooks_egress);
#endif
	return some || (!egress && rcu_access_pointer(dev->xdp_prog));
}

void clsw_l2_filters(struct clsw_device *cd)
{
	DECLARE_BITMAP(in, L2_PORT_BITS) = {};
	bool out = false;
	int i;

	ASSERT_RTNL();
	if (!cd->l2)
		return;
	/* a split may take a port away; it waits for readers before it frees it */
	rcu_read_lock();
	for (i = 1; i <= CLSW_MAX_PORTS; i++) {
		struct clsw_port *port = READ_ONCE(cd->ports[i]);

		if (!port || !port->netdev)
			continue;
		__assign_bit(i, in, clsw_dev_filters(port->netdev, false));
		out = out || clsw_dev_filters(port->netdev, true);
	}
	rcu_read_unlock();
	clsw_lock(cd);
	for (i = 1; i <= CLSW_MAX_PORTS; i++) {
		if (!cd->ports[i])
			continue;
		l2_port_trap(cd->l2, i, L2_TRAP_TC, test_bit(i, in));
		l2_port_trap(cd->l2, i, L2_TRAP_TC_EGRESS, out);
	}
	clsw_unlock(cd);
}

/* RTNL, may sleep: a filter comes (it is in its list already) or goes (the clock will see) */
static int filter_block_cb(enum tc_setup_type type, void *type_data, void *priv)
{
	struct flow_cls_common_offload *common = type_data;
	struct clsw_port *port = priv;

	clsw_l2_filters(port->cd);
	clsw_ports_settle(port->cd, APPLY_MS);
	/* all types that come here begin with it */
	NL_SET_ERR_MSG_MOD(common->extack,
			   "tc filters are not offloaded: the kernel applies them, to all frames");
	return -EOPNOTSUPP;
}

int clsw_port_setup_tc(struct net_device *dev, enum tc_setup_type type, void *type_data)
{
	struct flow_block_offload *block = type_data;
	struct clsw_port *port = clsw_port_of(dev);

	if (type != TC_SETUP_BLOCK)
		return -EOPNOTSUPP;
	switch (block->binder_type) {
	case FLOW_BLOCK_BINDER_TYPE_CLSACT_INGRESS:
		return flow_block_cb_setup_simple(block, &ingress_blocks, filter_block_cb, port,
						  port, true);
	case FLOW_BLOCK_BINDER_TYPE_CLSACT_EGRESS:
		return flow_block_cb_setup_simple(block, &egress_blocks, filter_block_cb, port,
						  port, false);
	default:
		return -EOPNOTSUPP;
	}
}
