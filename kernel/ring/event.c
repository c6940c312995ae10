// SPDX-License-Identifier: GPL-2.0
/*
 * Events: learned addresses, link changes, losses. They and packets come by
 * the same NAPI, because a packet says which events go before it.
 */
#include "ring.h"

/*
 * NAPI, rx_lock held. Hands at most @budget events to clsw; with @before only
 * those whose number is below *@before. How many; -EIO: corrupt.
 */
int cp_event_take(struct cp_region *p, int budget, const u32 *before)
{
	struct tnd_event e;
	int n, pending;

	for (n = 0; n < budget; n++) {
		if (before && (s32)(*before - p->event_seq) <= 0)
			break;
		pending = cp_ring_pending(&p->event);
		if (pending < 0)
			return pending;
		if (!pending)
			break;
		memcpy(&e, cp_ring_slot(&p->event), sizeof(e));
		barrier();
		cp_ring_take(&p->event);
		p->event_seq = le32_to_cpu(e.seq) + 1;
		if (le32_to_cpu(e.epoch) == READ_ONCE(p->epoch))
			clsw_event(p->cd, &e);
	}
	return n;
}
