// SPDX-License-Identifier: GPL-2.0
/*
 * What comes up from the chip: events and packets, through one NAPI instance.
 *
 *   backend signal ─► clsw_rx_schedule ─► NAPI: backend->poll
 *                                           │ clsw_event    link ─► carrier
 *                                           │               learn, move, age ─► l2/
 *                                           │               policed ─► devlink/
 *                                           ▼ clsw_receive  stray tag off, marks on,
 *                                                           trap report, GRO, stack
 *
 * Events come before the packets that they belong to: an address is known to
 * the bridge before the frame it was learned from.
 */
#include <linux/if_vlan.h>

#include "../devlink/devlink.h"
#include "port.h"

/*
 * A tag that was not on the wire: some chips put the port's default VLAN into
 * what they send to the CPU (seed 000, 5.2.5). The ABI says which tags are
 * real, so that a real priority tag stays.
 */
static bool rx_strip_stray_tag(struct sk_buff *skb, u16 flags)
{
	const struct vlan_ethhdr *veth;

	if (flags & TND_RX_TAGGED || skb_headlen(skb) < VLAN_ETH_HLEN)
		return false;
	veth = (const void *)skb->data;
	if (veth->h_vlan_proto != htons(ETH_P_8021Q))
		return false;
	memmove(skb->data + VLAN_HLEN, skb->data, 2 * ETH_ALEN);
	__skb_pull(skb, VLAN_HLEN);
	return true;
}

static void rx_drop(struct clsw_device *cd, struct sk_buff *skb)
{
	cd->count.rx_dropped++;
	dev_kfree_skb_any(skb);
}

void clsw_receive(struct clsw_device *cd, const struct tnd_rx *meta, struct sk_buff *skb)
{
	u16 flags = le16_to_cpu(meta->flags), index = le16_to_cpu(meta->port);
	struct clsw_port *port = NULL;

	if (index && index <= CLSW_MAX_PORTS)
		port = READ_ONCE(cd->ports[index]);
	/* the netdev may be down while the chip still has packets of it */
	if (!port || !netif_running(port->netdev) || skb->len < ETH_HLEN ||
	    !pskb_may_pull(skb, ETH_HLEN)) {
		rx_drop(cd, skb);
		return;
	}
	rx_strip_stray_tag(skb, flags);
	dev_sw_netstats_rx_add(port->netdev, skb->len);
	cd->count.rx++;
	skb->protocol = eth_type_trans(skb, port->netdev);
	/* a report has the protocol, and counts the frame from its Ethernet header on */
	__skb_push(skb, ETH_HLEN);
	if (!clsw_trap_report(cd, port, le16_to_cpu(meta->reason), skb)) {
		rx_drop(cd, skb);
		return;
	}
	if (meta->reason == cpu_to_le16(TND_TRAP_LPM_MISS) ||
	    meta->reason == cpu_to_le16(TND_TRAP_ROUTE))
		clsw_l3_waits(cd, port, skb);
	__skb_pull(skb, ETH_HLEN);
	if (!(flags & (TND_RX_L2_FORWARDED | TND_RX_L3_FORWARDED))) {
		napi_gro_receive(&cd->napi, skb);
		return;
	}
	/* what the chip has forwarded is not forwarded again; GRO would mix it with the rest */
	skb->offload_fwd_mark = !!(flags & TND_RX_L2_FORWARDED);
	skb->offload_l3_fwd_mark = !!(flags & TND_RX_L3_FORWARDED);
	netif_receive_skb(skb);
}
EXPORT_SYMBOL_GPL(clsw_receive);

static void rx_link_event(struct clsw_device *cd, const struct tnd_event *event)
{
	u16 index = le16_to_cpu(event->port);
	struct clsw_link *link;
	struct clsw_port *port;
	bool up = event->up;

	if (!index || index > cd->caps.port)
		return;
	clsw_lock(cd);
	link = &cd->front->link[index];
	link->up = up;
	link->speed_mbps = le32_to_cpu(event->speed_mbps);
	port = cd->ports[index];
	if (port) {
		port->link_changes += port->carrier != up;
		port->carrier = up;
		port->speed_mbps = link->speed_mbps;
		clsw_port_link(port);
	}
	clsw_unlock(cd);
}

void clsw_event(struct clsw_device *cd, const struct tnd_event *event)
{
	cd->count.events++;
	switch (le16_to_cpu(event->kind)) {
	case TND_EV_LINK:
		rx_link_event(cd, event);
		break;
	case TND_EV_LOST:
		cd->count.events_lost += le64_to_cpu(event->count);
		fallthrough;
	case TND_EV_LEARN:
	case TND_EV_MOVE:
	case TND_EV_AGE:
		clsw_l2_event(cd, event);
		break;
	case TND_EV_TRAP_DROP:
		clsw_trap_policed(cd, le32_to_cpu(event->trap_class), le64_to_cpu(event->count));
		break;
	}
}
EXPORT_SYMBOL_GPL(clsw_event);

void clsw_rx_schedule(struct clsw_device *cd)
{
	if (!READ_ONCE(cd->napi_dev))
		return;
	if (in_hardirq() || irqs_disabled()) {
		napi_schedule_irqoff(&cd->napi);
		return;
	}
	/* from a task the softirq runs when bottom halves come on again */
	local_bh_disable();
	napi_schedule(&cd->napi);
	local_bh_enable();
}
EXPORT_SYMBOL_GPL(clsw_rx_schedule);

static int rx_poll(struct napi_struct *napi, int budget)
{
	struct clsw_device *cd = container_of(napi, struct clsw_device, napi);
	const struct clsw_packet_ops *ops = cd->backend->packet;
	int done;

	if (!budget)
		return 0;
	done = ops->poll(cd, budget);
	if (done < budget && napi_complete_done(napi, done) && ops->arm(cd))
		napi_schedule(napi);
	return min(done, budget);
}

int clsw_rx_init(struct clsw_device *cd)
{
	struct net_device *dev;

	if (!clsw_can(cd, CLSW_CAN_PACKETS))
		return 0;
	dev = alloc_netdev_dummy(0);
	if (!dev)
		return -ENOMEM;
	netif_napi_add(dev, &cd->napi, rx_poll);
	napi_enable(&cd->napi);
	WRITE_ONCE(cd->napi_dev, dev);
	return 0;
}

void clsw_rx_exit(struct clsw_device *cd)
{
	struct net_device *dev = cd->napi_dev;

	if (!dev)
		return;
	WRITE_ONCE(cd->napi_dev, NULL);
	napi_disable(&cd->napi);
	/* whoever has looked at napi_dev before has scheduled by now */
	synchronize_net();
	netif_napi_del(&cd->napi);
	free_netdev(dev);
}
