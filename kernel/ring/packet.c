// SPDX-License-Identifier: GPL-2.0
/*
 * Packets between the CPU and the chip.
 */
#include <linux/if_ether.h>
#include <linux/skbuff.h>

#include "ring.h"

/* Events in one poll, beside those that packets ask for */
#define CP_EVENT_BUDGET		256
/* Looks for room in a full tx ring */
#define CP_TX_LOOK		ns_to_ktime(100 * NSEC_PER_USEC)

/*
 * Tx: the device takes entries and rings no bell for that, so a full ring is
 * looked at by a timer.
 */
static enum hrtimer_restart cp_packet_tx_timer(struct hrtimer *timer)
{
	struct cp_region *p = container_of(timer, struct cp_region, tx_timer);
	bool again;

	spin_lock(&p->tx_lock);
	again = p->tx_live && !cp_ring_room(&p->tx);
	/* cp_packet_xmit() starts it under the lock, even while this runs: left alone if queued */
	if (again && hrtimer_is_queued(timer)) {
		spin_unlock(&p->tx_lock);
		return HRTIMER_NORESTART;
	}
	if (again)
		hrtimer_forward_now(timer, CP_TX_LOOK);
	spin_unlock(&p->tx_lock);
	if (again)
		return HRTIMER_RESTART;
	if (READ_ONCE(p->serving))
		clsw_tx_wake(p->cd);
	return HRTIMER_NORESTART;
}

void cp_packet_init(struct cp_region *p)
{
	spin_lock_init(&p->tx_lock);
	spin_lock_init(&p->rx_lock);
	hrtimer_init(&p->tx_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	p->tx_timer.function = cp_packet_tx_timer;
}

int cp_packet_xmit(struct clsw_device *cd, const struct tnd_tx *meta,
		   struct sk_buff *skb)
{
	struct cp_region *p = clsw_priv(cd);
	struct tnd_tx *to;
	int room, ret = 0;

	spin_lock_bh(&p->tx_lock);
	/* dropped, and counted as that, while there is no chip */
	if (!p->tx_live || READ_ONCE(p->failed)) {
		ret = -ENODEV;
		goto out;
	}
	if (skb->len > p->tx.entry_size - TND_PKT_META_SIZE) {
		ret = -EMSGSIZE;
		goto out;
	}
	room = cp_ring_room(&p->tx);
	if (room < 0) {
		cp_region_fail(p, CP_WHY_CORRUPT);
		ret = -ENODEV;
		goto out;
	}
	if (!room) {
		p->count.tx_full++;
		cp_ring_kick(p, &p->tx);
		hrtimer_start(&p->tx_timer, CP_TX_LOOK,
			      HRTIMER_MODE_REL_SOFT);
		ret = -EBUSY;
		goto out;
	}
	to = cp_ring_slot(&p->tx);
	memcpy(to, meta, sizeof(*to));
	to->len = cpu_to_le32(skb->len);
	to->epoch = cpu_to_le32(READ_ONCE(p->epoch));
	skb_copy_bits(skb, 0, (u8 *)to + TND_PKT_META_SIZE, skb->len);
	cp_ring_publish(&p->tx);
	cp_ring_kick(p, &p->tx);
out:
	spin_unlock_bh(&p->tx_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(cp_packet_xmit);

/* rx_lock held. One entry: a packet, or NULL when it was not worth one */
static struct sk_buff *cp_packet_take(struct cp_region *p, struct tnd_rx *meta)
{
	u8 *slot = cp_ring_slot(&p->rx);
	u32 len = le32_to_cpu(meta->len);
	struct sk_buff *skb = NULL;

	if (len < ETH_HLEN || len > p->rx.entry_size - TND_PKT_META_SIZE ||
	    le32_to_cpu(meta->epoch) != READ_ONCE(p->epoch)) {
		p->count.rx_bad++;
	} else {
		skb = __netdev_alloc_skb_ip_align(NULL, len,
						  GFP_ATOMIC | __GFP_NOWARN);
		if (skb)
			skb_put_data(skb, slot + TND_PKT_META_SIZE, len);
		else
			p->count.rx_nomem++;
	}
	cp_ring_take(&p->rx);
	return skb;
}

/* rx_lock held. 1: an entry was taken, *@skb may be NULL all the same; 0: none; -EIO: corrupt */
static int cp_packet_next(struct cp_region *p, struct tnd_rx *meta, struct sk_buff **skb)
{
	int pending;
	u32 before;

	if (!p->rx_live || READ_ONCE(p->failed))
		return 0;
	pending = cp_ring_pending(&p->rx);
	if (pending <= 0)
		return pending < 0 ? -EIO : 0;
	memcpy(meta, cp_ring_slot(&p->rx), sizeof(*meta));
	barrier();
	before = le32_to_cpu(meta->event_seq);
	/* as many as the ring holds, no more */
	if (cp_event_take(p, p->event.count, &before) < 0)
		return -EIO;
	*skb = cp_packet_take(p, meta);
	return 1;
}

/* rx_lock held. Events without packets: how many, or -EIO */
static int cp_packet_rest(struct cp_region *p)
{
	int events = 0;

	if (p->rx_live && !READ_ONCE(p->failed))
		events = cp_event_take(p, CP_EVENT_BUDGET, NULL);
	return events < 0 ? -EIO : events;
}

int cp_packet_poll(struct clsw_device *cd, int budget)
{
	struct cp_region *p = clsw_priv(cd);
	struct sk_buff *skb;
	struct tnd_rx meta;
	int n, got = 0;

	spin_lock(&p->rx_lock);
	if (p->rx_live && !READ_ONCE(p->failed)) {
		cp_ring_disarm(&p->rx);
		cp_ring_disarm(&p->event);
	}
	for (n = 0; n < budget; n++) {
		skb = NULL;
		got = cp_packet_next(p, &meta, &skb);
		if (got <= 0)
			break;
		if (!skb)
			continue;
		/* the stack may do anything, so not under a lock */
		spin_unlock(&p->rx_lock);
		clsw_receive(cd, &meta, skb);
		spin_lock(&p->rx_lock);
	}
	if (got >= 0)
		got = cp_packet_rest(p);
	if (got < 0)
		cp_region_fail(p, CP_WHY_CORRUPT);
	else if (got == CP_EVENT_BUDGET)
		n = budget;	/* not done: to be polled again */
	spin_unlock(&p->rx_lock);
	return n;
}
EXPORT_SYMBOL_GPL(cp_packet_poll);

bool cp_packet_arm(struct clsw_device *cd)
{
	struct cp_region *p = clsw_priv(cd);
	bool more = false;

	spin_lock(&p->rx_lock);
	if (p->rx_live && !READ_ONCE(p->failed))
		more = cp_ring_arm(&p->rx) > 0 || cp_ring_arm(&p->event) > 0;
	spin_unlock(&p->rx_lock);
	return more;
}
EXPORT_SYMBOL_GPL(cp_packet_arm);
