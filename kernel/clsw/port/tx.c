// SPDX-License-Identifier: GPL-2.0
/*
 * What goes down to the chip. The transmit queue is one for all ports; a port
 * whose packet finds it full stops, and goes on with clsw_tx_wake().
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "port.h"

/* What the backend may rely on: linear, checksums done, long enough. NULL: freed */
static struct sk_buff *tx_prepare(struct sk_buff *skb)
{
	if (skb_vlan_tag_present(skb)) {
		skb = __vlan_hwaccel_push_inside(skb);
		if (!skb)
			return NULL;
	}
	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))
		goto drop;
	if (skb_linearize(skb))
		goto drop;
	if (skb_put_padto(skb, ETH_ZLEN))
		return NULL;		/* it frees what it can't pad */
	return skb;
drop:
	dev_kfree_skb_any(skb);
	return NULL;
}

static int tx_send(struct clsw_device *cd, const struct tnd_tx *meta, struct sk_buff *skb)
{
	int err;

	spin_lock_bh(&cd->tx_lock);
	err = cd->backend->packet->xmit(cd, meta, skb);
	if (!err)
		cd->count.tx++;
	else if (err == -EBUSY)
		cd->count.tx_busy++;
	spin_unlock_bh(&cd->tx_lock);
	return err;
}

netdev_tx_t clsw_port_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct clsw_port *port = clsw_port_of(dev);
	struct clsw_device *cd = port->cd;
	struct tnd_tx meta = {};
	unsigned int len;
	int err;

	if (!clsw_can(cd, CLSW_CAN_PACKETS) || !clsw_up(cd)) {
		dev_kfree_skb_any(skb);
		goto dropped;
	}
	skb = tx_prepare(skb);
	if (!skb)
		goto dropped;
	len = skb->len;
	meta.len = cpu_to_le32(len);
	meta.port = cpu_to_le16(port->index);
	err = tx_send(cd, &meta, skb);
	if (err == -EBUSY) {
		netif_stop_queue(dev);
		/* stopped, then tried: room that comes finds the packet or a queue to wake */
		smp_mb__after_atomic();
		err = tx_send(cd, &meta, skb);
		if (err == -EBUSY)
			return NETDEV_TX_BUSY;
		netif_start_queue(dev);
	}
	if (err) {
		dev_kfree_skb_any(skb);
		goto dropped;
	}
	/* sent: nobody who looks for drops wants to see it */
	dev_consume_skb_any(skb);
	dev_sw_netstats_tx_add(dev, 1, len);
	return NETDEV_TX_OK;
dropped:
	dev_core_stats_tx_dropped_inc(dev);
	return NETDEV_TX_OK;
}

void clsw_tx_wake(struct clsw_device *cd)
{
	struct clsw_port *port;
	unsigned int i;

	rcu_read_lock();
	for (i = 1; i <= CLSW_MAX_PORTS; i++) {
		port = READ_ONCE(cd->ports[i]);
		if (port && netif_running(port->netdev) && netif_queue_stopped(port->netdev))
			netif_wake_queue(port->netdev);
	}
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(clsw_tx_wake);

void clsw_ports_resume(struct clsw_device *cd)
{
	clsw_tx_wake(cd);
	clsw_rx_schedule(cd);
}
