// SPDX-License-Identifier: GPL-2.0
/*
 * Leases: how much to ask for and when, what an answer means, giving back.
 *
 *   NONE --ask--> ASKED --granted--> HELD --release--> RETURNING --> NONE
 *                   |  \--refused--> NONE       ^          |
 *                   |      less next time       \-timed out-/  once more
 *                   \--timed out---> LOST --release by cookie--> NONE
 *
 * What timed out may be granted, or given back, or not: its slots stay asked
 * for, or committed, until a RELEASE has been answered.
 */
#include "rm_priv.h"

static u8 rm_free_slot(struct rm *rm)
{
	u8 i;

	if (rm->lease_count >= rm->lease_limit)
		return RM_NONE;
	/* the first: who looks for leases finds them all at the front */
	for (i = 0; i < RM_MAX_LEASES; i++) {
		if (rm->leases[i].state == RM_L_NONE)
			return i;
	}
	return RM_NONE;
}

static u32 rm_pool_askable(const struct rm *rm, u8 pool, const u32 *asked)
{
	const struct rm_pool *p = &rm->pools[pool];
	u32 room = rm_unasked(p);

	if (p->exact) {
		if (rm_model_exact(rm))
			room = min(room, rm_stash_left(rm));
		else if (p->promised)
			room = 0;
		else if (rm->learning)
			room = p->size;	/* the device knows better than late events */
	}
	if (asked)
		room -= min(room, asked[pool]);
	return room;
}

u32 rm_askable(const struct rm *rm, const struct rm_row *row, const u32 *asked)
{
	u32 n = rm_pool_askable(rm, row->pool, asked) / row->cost;

	if (!row->leasable)
		return 0;
	if (row->member_pool != RM_NONE)
		n = min(n, rm_pool_askable(rm, row->member_pool, asked) / row->member_cost);
	return n;
}

static void rm_add_worst(const struct rm_row *row, u32 count, u32 *slots)
{
	slots[row->pool] += count * row->cost;
	if (row->member_pool != RM_NONE)
		slots[row->member_pool] += count * row->member_cost;
}

bool rm_ask(struct rm *rm, u32 mask, const u32 *counts, u16 hold, struct rm_ask *ask)
{
	u32 worst[RM_MAX_POOLS] = { 0 };
	u8 slot = rm_free_slot(rm), i;
	struct rm_lease *l;

	if (slot == RM_NONE || !mask)
		return false;
	l = &rm->leases[slot];
	memset(l, 0, sizeof(*l));
	memset(ask, 0, sizeof(*ask));
	for (i = 0; i < rm->row_count; i++) {
		struct rm_row *row = &rm->rows[i];
		u32 count = min(counts[i], rm_askable(rm, row, worst));

		if (!(mask & BIT(i)) || !count || ask->count == TND_LEASE_MAX_CLASSES)
			continue;
		rm_add_worst(row, count, worst);
		ask->item[ask->count].cls = cpu_to_le16(row->cls);
		ask->item[ask->count].family = row->family;
		ask->item[ask->count].count = cpu_to_le32(count);
		ask->count++;
		l->rows |= BIT(i);
		row->asking++;
	}
	if (!ask->count)
		return false;
	for (i = 0; i < rm->pool_count; i++) {
		l->left[i] = worst[i];
		rm->pools[i].asked += worst[i];
	}
	l->state = RM_L_ASKED;
	l->counted = true;
	rm->lease_count++;
	l->hold = hold;
	ask->slot = slot;
	ask->hold = hold;
	ask->gen = rm->gen;
	return true;
}

u32 rm_ask_size(const struct rm *rm, const struct rm_row *row)
{
	u32 have = rm_credit(rm, row), want;

	if (rm->policy == RM_LOCKSTEP)
		want = 1;
	else if (rm->policy == RM_PREFETCH)
		want = row->bucket;
	else
		want = min(rm->params.refill, row->bucket > have ? row->bucket - have : 1);
	return min(want, row->most);
}

/* -------------------------------------------------------------------------
 * The kthread's side
 */
static bool rm_wants(const struct rm *rm, const struct rm_row *row)
{
	if (!row->demand || row->dry || row->asking || !rm_askable(rm, row, NULL))
		return false;
	/* the models ask only where others take slots behind their back */
	if (rm->policy == RM_MODEL || rm->policy == RM_FLAT)
		return row->exact && !rm_model_exact(rm) && rm_credit(rm, row) < row->low;
	return rm->policy == RM_CREDIT && rm_credit(rm, row) < row->low;
}

bool rm_need_refill(struct rm *rm, struct rm_ask *ask)
{
	u32 counts[RM_MAX_ROWS] = { 0 };
	u32 mask = 0;
	u8 i;

	for (i = 0; i < rm->row_count; i++) {
		struct rm_row *row = &rm->rows[i];

		if (!rm_wants(rm, row))
			continue;
		rm_shrink(rm, row);
		if (!rm_wants(rm, row))
			continue;
		counts[i] = rm_ask_size(rm, row);
		if (!counts[i])
			continue;
		/* one that was refused before goes alone: it must not sink the others */
		if (row->most < rm->params.refill) {
			if (mask)
				continue;
			mask = BIT(i);
			break;
		}
		mask |= BIT(i);
		if (hweight32(mask) == TND_LEASE_MAX_CLASSES)
			break;
	}
	if (mask && rm_ask(rm, mask, counts, 0, ask)) {
		rm->stats.refills++;
		return true;
	}
	/* without a lease slot: the next release wakes it again */
	rm->due = false;
	return false;
}

bool rm_refill_due(const struct rm *rm)
{
	return rm->due || rm->reclaim;
}

static void rm_forget(struct rm *rm, struct rm_lease *l)
{
	u8 i;

	for (i = 0; i < rm->row_count && l->counted; i++) {
		if (l->rows & BIT(i) && rm->rows[i].asking)
			rm->rows[i].asking--;
	}
	l->counted = false;
}

/* Refused: ask for what the device has, or half */
static void rm_lease_refused(struct rm *rm, const struct rm_ask *ask, const struct tnd_cpl *cpl)
{
	bool full = le16_to_cpu(cpl->status) == TND_ST_TABLE_FULL;
	u16 pool = le16_to_cpu(cpl->table);
	u32 there = le32_to_cpu(cpl->free), i;

	rm->stats.lease_refused++;
	if (full && pool < rm->pool_count && rm->pools[pool].exact)
		rm->pools[pool].backed = there;
	for (i = 0; i < ask->count && i < TND_LEASE_MAX_CLASSES; i++) {
		u32 asked = le32_to_cpu(ask->item[i].count), fit = asked / 2;
		u8 index = rm_row_index(rm, le16_to_cpu(ask->item[i].cls), ask->item[i].family);
		struct rm_row *row;

		if (index == RM_NONE)
			continue;
		row = &rm->rows[index];
		if (full && pool != row->pool && pool != row->member_pool)
			continue;
		if (full && pool == row->pool)
			fit = min(there / row->cost, asked / 2 + (ask->count == 1) * asked);
		else if (full)
			fit = min(there / max(row->member_cost, 1U), asked / 2 + 1);
		row->most = fit < asked ? fit : asked / 2;
		row->dry = !row->most;
	}
}

void rm_give_up(struct rm *rm, u8 slot)
{
	struct rm_lease *l = &rm->leases[slot];
	u8 i;

	if (l->returning)
		return;
	l->returning = true;
	rm->reclaim = true;
	rm->spent = true;
	for (i = 0; i < rm->pool_count && !l->hold; i++)
		rm->pools[i].credit -= l->left[i];
}

void rm_lease_done(struct rm *rm, const struct rm_ask *ask, const struct tnd_cpl *cpl)
{
	struct rm_lease *l;
	bool ok, less = false;
	u8 i;

	if (ask->gen != rm->gen || ask->slot >= RM_MAX_LEASES)
		return;
	l = &rm->leases[ask->slot];
	if (l->state != RM_L_ASKED && l->state != RM_L_LOST)
		return;
	if (!cpl) {
		if (l->state == RM_L_ASKED)
			rm_forget(rm, l);
		l->state = RM_L_LOST;
		rm->reclaim = true;
		rm->stats.unknown++;
		return;
	}
	/* too late: its RELEASE is out */
	if (l->returning)
		return;
	ok = le16_to_cpu(cpl->status) == TND_ST_OK && (u32)le64_to_cpu(cpl->result);
	rm_forget(rm, l);
	for (i = 0; i < rm->pool_count; i++) {
		struct rm_pool *p = &rm->pools[i];
		u32 n = min(l->left[i], p->free);

		p->asked -= l->left[i];
		if (!ok)
			continue;
		/* late events: the slots that it is about are not where we think they are */
		less |= n < l->left[i];
		l->left[i] = n;
		p->free -= n;
		p->committed += n;
		if (!l->hold)
			p->credit += n;
		if (p->exact)
			p->backed -= min(p->backed, n);
	}
	if (ok) {
		l->state = RM_L_HELD;
		rm->spent = true;
		l->id = le64_to_cpu(cpl->result);
		/* part of it could never be drawn */
		if (less)
			rm_give_up(rm, ask->slot);
	} else {
		rm->lease_count--;
		/* one lease too many, not too few slots: ask again when one is back */
		if (le16_to_cpu(cpl->status) == TND_ST_LEASE && rm->lease_count)
			rm->lease_limit = rm->lease_count;
		else if (!l->hold)
			rm_lease_refused(rm, ask, cpl);
		memset(l, 0, sizeof(*l));
	}
	for (i = 0; i < rm->row_count; i++)
		rm_shrink(rm, &rm->rows[i]);
	rm->due = true;
}

/* -------------------------------------------------------------------------
 * Giving back
 */
bool rm_reclaim(struct rm *rm, const struct rm_need *need)
{
	bool found = false;
	u8 i, k;

	for (i = 0; i < RM_MAX_LEASES; i++) {
		struct rm_lease *l = &rm->leases[i];
		bool useful = false;

		for (k = 0; k < need->count; k++)
			useful |= l->left[need->pool[k]] > 0;
		if (!useful)
			continue;
		if (l->state == RM_L_HELD && !l->hold) {
			rm_give_up(rm, i);
			found = true;
		}
		found |= l->state == RM_L_RETURNING;
	}
	return found;
}

/* Not one object of what it was asked for fits any more: of a group perhaps members are left */
static bool rm_drawn(const struct rm *rm, const struct rm_lease *l)
{
	struct rm_need need;
	u8 i, k;

	for (i = 0; i < rm->row_count; i++) {
		if (!(l->rows & BIT(i)))
			continue;
		rm_need_of(&rm->rows[i], 1, false, &need);
		for (k = 0; k < need.count; k++) {
			if (l->left[need.pool[k]] < need.slots[k])
				break;
		}
		if (k == need.count)
			return false;
	}
	return true;
}

bool rm_next_release(struct rm *rm, u32 *lease_id)
{
	u8 i, seen = 0;

	for (i = 0; rm->spent && i < RM_MAX_LEASES && seen < rm->lease_count; i++) {
		struct rm_lease *l = &rm->leases[i];

		seen += l->state != RM_L_NONE;
		if (l->state != RM_L_HELD || l->tickets)
			continue;
		/* a reservation stays until its owner drops it */
		if (!l->returning && (l->hold || !rm_drawn(rm, l)))
			continue;
		rm_give_up(rm, i);
		l->state = RM_L_RETURNING;
		*lease_id = l->id;
		return true;
	}
	rm->reclaim = false;
	rm->spent = false;
	return false;
}

bool rm_next_lost(struct rm *rm, u8 *slot)
{
	u8 i, seen = 0;

	for (i = 0; i < RM_MAX_LEASES && seen < rm->lease_count; i++) {
		seen += rm->leases[i].state != RM_L_NONE;
		if (rm->leases[i].state != RM_L_LOST || rm->leases[i].returning)
			continue;
		rm->leases[i].returning = true;
		*slot = i;
		return true;
	}
	return false;
}

void rm_lost_done(struct rm *rm, u8 slot, const struct tnd_cpl *cpl)
{
	struct rm_lease *l = &rm->leases[slot];
	u8 i;

	if (slot >= RM_MAX_LEASES || l->state != RM_L_LOST || !l->returning)
		return;
	if (!cpl) {
		l->returning = false;
		rm->reclaim = true;
		return;
	}
	/* granted and given back, or never granted: the same to us */
	for (i = 0; i < rm->pool_count; i++) {
		rm->pools[i].asked -= l->left[i];
		if (l->left[i])
			rm_freed(rm, i);
	}
	memset(l, 0, sizeof(*l));
	rm->lease_count--;
	rm->due = true;
}

bool rm_release_lease_done(struct rm *rm, u32 lease_id, const struct tnd_cpl *cpl)
{
	bool reserved;
	u8 i, k;

	for (i = 0; i < RM_MAX_LEASES; i++) {
		struct rm_lease *l = &rm->leases[i];

		if (l->state != RM_L_RETURNING || l->id != lease_id)
			continue;
		if (!cpl) {
			/* unknown: its slots stay taken, and it is released once more */
			l->state = RM_L_HELD;
			l->again = true;
			rm->reclaim = true;
			rm->spent = true;
			return false;
		}
		if (le16_to_cpu(cpl->status) != TND_ST_OK && !l->again)
			rm->stats.mismatch++;
		for (k = 0; k < rm->pool_count; k++) {
			struct rm_pool *p = &rm->pools[k];

			p->committed -= l->left[k];
			p->free += l->left[k];
			if (p->exact)
				p->backed += l->left[k];
			if (l->left[k])
				rm_freed(rm, k);
			rm_absorb(p);
		}
		reserved = l->hold;
		memset(l, 0, sizeof(*l));
		rm->lease_count--;
		rm->due = true;
		return reserved;
	}
	return false;
}

/* -------------------------------------------------------------------------
 * Reservations for batches
 */
int rm_ask_hold(struct rm *rm, const struct tnd_lease_item *items, unsigned int count,
		struct rm_ask *ask)
{
	struct rm_need all = { .count = 0 };
	u32 worst[RM_MAX_POOLS] = { 0 };
	u32 counts[RM_MAX_ROWS] = { 0 };
	bool later = false;
	u32 mask = 0;
	unsigned int i;

	if (!count || count > TND_LEASE_MAX_CLASSES)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		u8 index = rm_row_index(rm, le16_to_cpu(items[i].cls), items[i].family);
		u32 n = le32_to_cpu(items[i].count);
		struct rm_row *row;

		if (index == RM_NONE || mask & BIT(index) || !n)
			return -EINVAL;
		row = &rm->rows[index];
		if (!row->leasable)
			return -EOPNOTSUPP;
		/* more than the memory has, or than is free now and here */
		if (n > rm->pools[row->pool].size / row->cost)
			return -ENOSPC;
		if (n > rm_askable(rm, row, worst)) {
			rm_need_of(row, row->member_pool == RM_NONE ? 0 : 1, false, &all);
			later |= rm_reclaim(rm, &all) || rm->pools[row->pool].open ||
				 rm->pools[row->pool].asked;
			if (!later)
				return -ENOSPC;
			continue;
		}
		mask |= BIT(index);
		counts[index] = n;
		rm_add_worst(row, n, worst);
	}
	if (later)
		return -EBUSY;
	if (!++rm->next_hold)
		rm->next_hold = 1;
	return rm_ask(rm, mask, counts, rm->next_hold, ask) ? 0 : -EBUSY;
}

void rm_drop_hold(struct rm *rm, u16 hold)
{
	u8 i;

	for (i = 0; i < RM_MAX_LEASES && hold; i++) {
		if (rm->leases[i].state == RM_L_HELD && rm->leases[i].hold == hold) {
			rm->leases[i].returning = true;
			rm->reclaim = true;
			rm->spent = true;
		}
	}
}
