// SPDX-License-Identifier: GPL-2.0
/*
 * Our ends of the rings: indices, barriers, doorbells (abi/README.md).
 *
 * Each side keeps its own index here, in private memory, and only publishes
 * it. The other side's is checked at every look: a producer is ahead by at
 * most the ring, a consumer by at most what was published, neither goes back.
 *
 * Barriers are virtio's: the other side is a process of the host, so they are
 * needed on a uniprocessor kernel too (virt_*).
 */
#include "ring.h"

/* For rings that an attach has just emptied: indices start at zero */
void cp_ring_init(struct cp_region *p, struct cp_ring *r,
		  const struct cp_geometry *g, bool hint)
{
	*r = (struct cp_ring) {
		.prod = p->mem + g->prod,
		.cons = p->mem + g->cons,
		.entries = p->mem + g->entries,
		.entry_size = g->entry_size,
		.count = g->count,
		.doorbell = g->doorbell,
		.hint = hint,
	};
}

/* Producer: free entries, or -EIO when the consumer's index is impossible */
int cp_ring_room(struct cp_ring *r)
{
	/* the consumer has copied what it gives back */
	u32 theirs = le32_to_cpu(virt_load_acquire(&r->cons->index));

	if (theirs - r->theirs > r->own - r->theirs)
		return -EIO;
	r->theirs = theirs;
	return r->count - (r->own - theirs);
}

/* The entry at our index */
void *cp_ring_slot(const struct cp_ring *r)
{
	return r->entries + (size_t)(r->own & (r->count - 1)) * r->entry_size;
}

/* Producer: the entry is written, let the consumer have it */
void cp_ring_publish(struct cp_ring *r)
{
	r->own++;
	/* the entry before the index */
	virt_store_release(&r->prod->index, cpu_to_le32(r->own));
}

/* Producer: the doorbell, if the consumer sleeps and has not been told */
void cp_ring_kick(struct cp_region *p, struct cp_ring *r)
{
	if (r->rung == r->own)
		return;
	r->rung = r->own;
	/* index first, then the flag: pairs with the consumer's barrier */
	virt_mb();
	if (!r->hint || (READ_ONCE(r->cons->flags) &
			 cpu_to_le32(TND_RING_NEED_KICK)))
		p->ops->doorbell(p, r->doorbell);
}

/* Consumer: entries that wait, or -EIO when the producer's index can't be */
int cp_ring_pending(struct cp_ring *r)
{
	/* the index before the entry */
	u32 theirs = le32_to_cpu(virt_load_acquire(&r->prod->index));
	u32 filled = theirs - r->own;

	if (filled > r->count || filled < r->theirs - r->own)
		return -EIO;
	r->theirs = theirs;
	return filled;
}

/* Consumer: the entry was copied, the producer may have it back */
void cp_ring_take(struct cp_ring *r)
{
	r->own++;
	/* our copy before the index that gives the entry back */
	virt_store_release(&r->cons->index, cpu_to_le32(r->own));
}

/* Consumer, about to sleep: 0: asked for a doorbell, sleep; else as pending */
int cp_ring_arm(struct cp_ring *r)
{
	if (!r->armed) {
		WRITE_ONCE(r->cons->flags, cpu_to_le32(TND_RING_NEED_KICK));
		r->armed = true;
	}
	/* flag first, then the index: pairs with the producer's barrier */
	virt_mb();
	return cp_ring_pending(r);
}

/* Consumer, polling: saves the producer its doorbells */
void cp_ring_disarm(struct cp_ring *r)
{
	if (r->armed) {
		WRITE_ONCE(r->cons->flags, 0);
		r->armed = false;
	}
}
