// SPDX-License-Identifier: GPL-2.0
/*
 * One attach: rings from zero when it begins, nobody at them when it is over.
 */
#include <linux/slab.h>

#include "ring.h"

/* Once, before anything else. @p is zeroed */
void cp_region_init(struct cp_region *p, struct clsw_device *cd, struct device *dev,
		    const struct cp_region_ops *ops)
{
	p->cd = cd;
	p->dev = dev;
	p->ops = ops;
	mutex_init(&p->read_lock);
	cp_packet_init(p);
}
EXPORT_SYMBOL_GPL(cp_region_init);

/* May sleep. The device has emptied the rings of @p->frame and calls this attach @epoch */
int cp_region_start(struct cp_region *p, u32 epoch)
{
	struct cp_frame *f = &p->frame;
	bool hint = f->features & TND_FEAT_DOORBELL_HINT;
	int i, ret;

	for (i = 0; i < CLSW_Q_COUNT; i++) {
		ret = cp_queue_init(p, &p->queue[i], f, i);
		if (ret)
			return ret;
	}
	p->arena = p->mem + f->arena;
	WRITE_ONCE(p->epoch, epoch);
	WRITE_ONCE(p->failed, false);
	spin_lock_bh(&p->rx_lock);
	cp_ring_init(p, &p->rx, &f->rx, true);
	cp_ring_init(p, &p->event, &f->event, true);
	p->event_seq = 0;
	p->rx_live = true;
	spin_unlock_bh(&p->rx_lock);
	spin_lock_bh(&p->tx_lock);
	cp_ring_init(p, &p->tx, &f->tx, hint);
	p->tx_live = true;
	spin_unlock_bh(&p->tx_lock);
	clsw_lock(p->cd);
	p->live = true;
	clsw_unlock(p->cd);
	return 0;
}
EXPORT_SYMBOL_GPL(cp_region_start);

/* Nobody uses a ring after this */
void cp_region_stop(struct cp_region *p)
{
	clsw_lock(p->cd);
	p->live = false;
	clsw_unlock(p->cd);
	spin_lock_bh(&p->tx_lock);
	p->tx_live = false;
	spin_unlock_bh(&p->tx_lock);
	spin_lock_bh(&p->rx_lock);
	p->rx_live = false;
	spin_unlock_bh(&p->rx_lock);
}
EXPORT_SYMBOL_GPL(cp_region_stop);

/* Any context: this attach is over. @why is a constant */
void cp_region_fail(struct cp_region *p, const char *why)
{
	if (xchg(&p->failed, true))
		return;
	if (READ_ONCE(p->serving))
		clsw_trouble(p->cd, why);
}
EXPORT_SYMBOL_GPL(cp_region_fail);

/* May sleep. No op of clsw's and no doorbell comes any more */
void cp_region_exit(struct cp_region *p)
{
	int i;

	hrtimer_cancel(&p->tx_timer);
	for (i = 0; i < CLSW_Q_COUNT; i++)
		cp_queue_exit(&p->queue[i]);
}
EXPORT_SYMBOL_GPL(cp_region_exit);

MODULE_DESCRIPTION("clsw: rings in memory that driver and chip share, for the backends that have them");
MODULE_LICENSE("GPL");
