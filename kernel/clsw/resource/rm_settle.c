// SPDX-License-Identifier: GPL-2.0
/*
 * Closing tickets: what the device has really taken, what goes back; deletes.
 */
#include "rm_priv.h"

/* Ends a ticket's share of the counters; false: it is of an earlier attach */
static bool rm_close_ticket(struct rm *rm, struct rm_ticket *t, struct rm_need *need)
{
	struct rm_row *row = &rm->rows[t->row];
	struct rm_lease *l;
	u8 i;

	if (!rm_ticket_open(t))
		return false;
	if (t->gen != rm->gen) {
		memset(t, 0, sizeof(*t));
		return false;
	}
	rm_need_of(row, t->units, t->state & RM_T_MEMBERS, need);
	if (t->state & RM_T_NO_DEBIT) {
		need->count = 0;
		rm->pools[row->pool].loose -= row->cost;
	}
	for (i = 0; i < need->count; i++) {
		struct rm_pool *p = &rm->pools[need->pool[i]];

		if (t->state & RM_T_UNKNOWN)
			p->unknown -= need->slots[i];
		if (t->lease)
			p->by_lease -= need->slots[i];
	}
	if (t->lease) {
		l = &rm->leases[t->lease - 1];
		rm->spent |= !--l->tickets;
	}
	rm->pools[row->pool].open--;
	if (row->exact && t->backing == RM_BY_COUNT)
		rm->pools[row->pool].promised--;
	rm->open--;
	return true;
}

/* @slots of a pool's in-flight part go back to where the ticket has them from */
static void rm_give_back(struct rm *rm, const struct rm_ticket *t, u8 pool, u32 slots)
{
	struct rm_pool *p = &rm->pools[pool];
	struct rm_lease *l;
	u32 n;

	if (t->lease) {
		l = &rm->leases[t->lease - 1];
		p->in_flight -= slots;
		p->committed += slots;
		l->left[pool] += slots;
		if (!l->hold && !l->returning)
			p->credit += slots;
		return;
	}
	/* they may belong to a delete that is still out */
	n = min(slots, p->covered);
	p->covered -= n;
	p->leaving += n;
	p->in_flight -= slots - n;
	p->free += slots - n;
	rm_absorb(p);
}

/* The device has taken @taken of a pool for a ticket that holds @held of it */
static void rm_take(struct rm *rm, const struct rm_ticket *t, u8 pool, u32 held, u32 taken)
{
	struct rm_pool *p = &rm->pools[pool];
	u32 n = min(held, taken), tickets, more;

	p->in_flight -= n;
	p->used += n;
	rm_give_back(rm, t, pool, held - n);
	if (taken > held) {
		rm_free_to_used(p, taken - held);
		if (!(t->state & RM_T_NO_DEBIT))
			rm->stats.mismatch++;
	}
	/*
	 * Slots of a delete that is out were counted on, and the create was
	 * done without them: the device had others.
	 */
	tickets = p->in_flight - p->leaving;
	if (p->covered > tickets) {
		more = min(p->covered - tickets, p->free);
		p->covered = tickets;
		p->free -= more;
		p->in_flight += more;
		p->leaving += more;
	}
	rm_watermark(p);
}

static u32 rm_taken_of(const struct rm *rm, const struct tnd_cpl *cpl, u8 pool)
{
	u16 count = min_t(u16, le16_to_cpu(cpl->delta_count), TND_MAX_DELTAS), i;
	s64 sum = 0;

	for (i = 0; i < count; i++) {
		if (le16_to_cpu(cpl->delta[i].pool) == pool)
			sum += (s32)le32_to_cpu(cpl->delta[i].slots);
	}
	/* the device is not believed beyond what can be */
	return sum > 0 ? min_t(s64, sum, rm->pools[pool].size) : 0;
}

static u32 rm_given_of(const struct rm *rm, const struct tnd_cpl *cpl, u8 pool)
{
	u16 count = min_t(u16, le16_to_cpu(cpl->delta_count), TND_MAX_DELTAS), i;
	s64 sum = 0;

	for (i = 0; i < count; i++) {
		if (le16_to_cpu(cpl->delta[i].pool) == pool)
			sum -= (s32)le32_to_cpu(cpl->delta[i].slots);
	}
	return sum > 0 ? min_t(s64, sum, rm->pools[pool].size) : 0;
}

/* The model does what the device has done */
static void rm_follow_create(struct rm *rm, const struct rm_req *req, bool taken)
{
	struct bank_key key;
	bool there;

	if (!rm_key_of(rm, req, &key))
		return;
	there = bank_find(&rm->bank, &key, NULL);
	/* else: learned or aged in the device, and the event is on its way */
	if (there == taken)
		rm->in_step = false;
	if (!there && bank_insert(&rm->bank, &key, 0, BANK_FOLLOW, NULL) != BANK_OK)
		rm->in_step = false;
}

static void rm_create_refused(struct rm *rm, const struct rm_ticket *t, const struct tnd_cpl *cpl,
			      struct rm_verdict *v)
{
	u16 pool = le16_to_cpu(cpl->table);

	if (t->backing != RM_BY_NOTHING && t->backing != RM_BY_DEVICE)
		rm->stats.mispredicted++;
	rm->stats.refused++;
	if (!v)
		return;
	v->result = RM_FULL;
	v->sync = false;
	v->post_release = false;
	v->pool = pool < rm->pool_count ? pool : rm->rows[t->row].pool;
	v->row = t->row;
	v->capped = false;
	v->bucket = le16_to_cpu(cpl->status) == TND_ST_BUCKET_FULL;
	v->needed = le32_to_cpu(cpl->needed);
	v->free = le32_to_cpu(cpl->free);
	v->size = le32_to_cpu(cpl->size);
}

/*
 * A create timed out and its compensating delete has completed: nothing is
 * there. What the create took from a lease, the delete has made free.
 */
static void rm_compensated(struct rm *rm, const struct rm_req *req, const struct rm_ticket *t,
			   const struct rm_need *need, const struct tnd_cpl *cpl)
{
	/* if it was never unknown its create was not posted, and the delete was another's */
	bool drawn = t->lease && t->state & RM_T_UNKNOWN;
	struct bank_key key;
	u8 i;

	/* what it had drawn an answer has told that was lost: the chip knows when it has it back */
	if (drawn && req->flags & RM_REQ_AGAIN)
		rm_give_up(rm, t->lease - 1);
	for (i = 0; i < need->count; i++) {
		struct rm_pool *p = &rm->pools[need->pool[i]];
		u32 given = drawn ? rm_given_of(rm, cpl, need->pool[i]) : 0, n;

		/* of a group that was to grow the members that it had are not the ticket's */
		if (t->state & RM_T_MEMBERS)
			given -= min_t(u32, given, req->units);
		n = min(need->slots[i], given);
		p->in_flight -= n;
		p->free += n;
		rm_absorb(p);
		rm_give_back(rm, t, need->pool[i], need->slots[i] - n);
		rm_freed(rm, need->pool[i]);
	}
	if (rm_key_of(rm, req, &key))
		bank_remove(&rm->bank, &key);
}

/* As rm_settle() would close it */
bool rm_settle_promised(struct rm *rm, struct rm_ticket *t, const struct tnd_cpl *cpl)
{
	const struct rm_row *row = &rm->rows[t->row];
	struct rm_pool *p = &rm->pools[row->pool];

	if (t->state != RM_T_OPEN || t->gen != rm->gen || !t->lease || row->exact ||
	    row->member_pool != RM_NONE || p->covered || cpl->status ||
	    cpl->op == cpu_to_le16(TND_OP_DELETE) || cpl->delta_count != cpu_to_le16(1) ||
	    le16_to_cpu(cpl->delta[0].pool) != row->pool ||
	    le32_to_cpu(cpl->delta[0].slots) != row->cost)
		return false;
	rm->spent |= !--rm->leases[t->lease - 1].tickets;
	p->open--;
	p->by_lease -= row->cost;
	p->in_flight -= row->cost;
	p->used += row->cost;
	rm->open--;
	memset(t, 0, sizeof(*t));
	return true;
}

int rm_settle(struct rm *rm, const struct rm_req *req, struct rm_ticket *t,
	      const struct tnd_cpl *cpl, struct rm_verdict *verdict)
{
	u16 status = le16_to_cpu(cpl->status);
	struct rm_need need, all;
	struct rm_row *row;
	bool taken = false;
	u8 i;

	if (rm_settle_promised(rm, t, cpl))
		return 0;
	if (!rm_close_ticket(rm, t, &need))
		return status ? -EIO : 0;
	row = &rm->rows[t->row];
	if (status == TND_ST_OK && le16_to_cpu(cpl->op) == TND_OP_DELETE) {
		rm_compensated(rm, req, t, &need, cpl);
		if (!(t->state & RM_T_MEMBERS))
			row->count--;
		memset(t, 0, sizeof(*t));
		return 0;
	}
	if (status == TND_ST_OK) {
		/* pools of a ticket without a debit count all the same */
		rm_need_of(row, t->units, t->state & RM_T_MEMBERS, &all);
		for (i = 0; i < all.count; i++) {
			u32 n = rm_taken_of(rm, cpl, all.pool[i]);

			taken |= n > 0;
			rm_take(rm, t, all.pool[i], need.count ? need.slots[i] : 0, n);
		}
		if (row->exact)
			rm_follow_create(rm, req, taken);
		memset(t, 0, sizeof(*t));
		return 0;
	}
	for (i = 0; i < need.count; i++)
		rm_give_back(rm, t, need.pool[i], need.slots[i]);
	if (!(t->state & RM_T_MEMBERS))
		row->count--;
	if (status != TND_ST_TABLE_FULL && status != TND_ST_BUCKET_FULL) {
		/* the device counts this lease otherwise than we do: no more of it */
		if (status == TND_ST_LEASE && t->lease) {
			rm_give_up(rm, t->lease - 1);
			rm->stats.mismatch++;
		}
		memset(t, 0, sizeof(*t));
		return -EIO;
	}
	rm_create_refused(rm, t, cpl, verdict);
	memset(t, 0, sizeof(*t));
	return -ENOSPC;
}

void rm_cancel(struct rm *rm, const struct rm_req *req, struct rm_ticket *t)
{
	struct rm_row *row = &rm->rows[t->row];
	struct rm_need need;
	u8 i;

	if (!rm_close_ticket(rm, t, &need))
		return;
	for (i = 0; i < need.count; i++) {
		rm_give_back(rm, t, need.pool[i], need.slots[i]);
		rm_freed(rm, need.pool[i]);
	}
	if (!(t->state & RM_T_MEMBERS))
		row->count--;
	memset(t, 0, sizeof(*t));
}

void rm_set_unknown(struct rm *rm, struct rm_ticket *t)
{
	struct rm_need need;
	u8 i;

	if (!rm_ticket_open(t) || t->gen != rm->gen || t->state & RM_T_UNKNOWN)
		return;
	rm_need_of(&rm->rows[t->row], t->units, t->state & RM_T_MEMBERS, &need);
	if (t->state & RM_T_NO_DEBIT)
		need.count = 0;
	for (i = 0; i < need.count; i++)
		rm->pools[need.pool[i]].unknown += need.slots[i];
	t->state |= RM_T_UNKNOWN;
	/* nobody knows whether the device has placed it */
	if (rm->rows[t->row].exact)
		rm->in_step = false;
	rm->stats.unknown++;
}

void rm_note(struct rm *rm, const struct tnd_cpl *cpl)
{
	u8 i;

	if (le16_to_cpu(cpl->status) != TND_ST_OK)
		return;
	for (i = 0; i < rm->pool_count; i++) {
		u32 given = rm_given_of(rm, cpl, i);

		rm_free_to_used(&rm->pools[i], rm_taken_of(rm, cpl, i));
		if (!given)
			continue;
		rm_used_to_free(&rm->pools[i], given);
		rm_freed(rm, i);
	}
}

/* -------------------------------------------------------------------------
 * Deletes
 */
void rm_release_begin(struct rm *rm, const struct rm_req *req)
{
	u8 index = rm_row_index(rm, req->cls, req->family), i;
	struct rm_need need;
	struct rm_row *row;

	if (index == RM_NONE)
		return;
	row = &rm->rows[index];
	rm_need_of(row, req->units, req->flags & RM_REQ_MEMBERS, &need);
	for (i = 0; i < need.count; i++) {
		struct rm_pool *p = &rm->pools[need.pool[i]];
		u32 n = min(need.slots[i], p->used);

		p->used -= n;
		p->in_flight += n;
		p->leaving += n;
		p->behind += need.slots[i] - n;
		rm_freed(rm, need.pool[i]);
	}
	rm->pools[row->pool].open++;
	if (!(req->flags & RM_REQ_MEMBERS))
		row->count--;
}

/*
 * @slots of a delete are gone. Deletes complete in order, so the first one is
 * what the first ticket counts on: its own from now on.
 */
static void rm_left(struct rm_pool *p, u32 slots)
{
	u32 n = min(slots, p->covered);

	p->covered -= n;
	n = min(slots - n, p->leaving);
	p->leaving -= n;
	p->in_flight -= n;
	p->free += n;
	rm_absorb(p);
}

/* @slots that were leaving have stayed */
static void rm_stayed(struct rm_pool *p, u32 slots)
{
	u32 n = min(slots, p->leaving);

	p->leaving -= n;
	p->in_flight -= n;
	p->used += n;
	slots -= n;
	n = min(slots, p->behind);
	p->behind -= n;
	slots -= n;
	/* a ticket counts on the rest: the device will refuse it */
	n = min(slots, p->covered);
	p->covered -= n;
	p->ahead += n;
}

static void rm_follow_delete(struct rm *rm, const struct rm_req *req)
{
	struct bank_key key;

	if (rm_key_of(rm, req, &key) && !bank_remove(&rm->bank, &key))
		rm->in_step = false;
}

void rm_release_done(struct rm *rm, const struct rm_req *req, const struct tnd_cpl *cpl)
{
	u8 index = rm_row_index(rm, req->cls, req->family), i;
	struct rm_need need;
	struct rm_row *row;
	u16 status;
	bool gone;

	if (index == RM_NONE)
		return;
	row = &rm->rows[index];
	if (!cpl) {
		if (row->exact)
			rm->in_step = false;
		rm->stats.unknown++;
		return;
	}
	status = le16_to_cpu(cpl->status);
	rm_need_of(row, req->units, req->flags & RM_REQ_MEMBERS, &need);
	gone = status == TND_ST_OK || status == TND_ST_NOENT;
	if (gone && row->exact) {
		rm_follow_delete(rm, req);
		/*
		 * Aged in the device: the event that is on its way gives the slots
		 * back. Unless the delete before this one did, and nobody heard
		 */
		if (rm->learning && req->cls == TND_CLS_FDB && !(req->flags & RM_REQ_AGAIN) &&
		    !rm_given_of(rm, cpl, row->pool))
			gone = false;
	}
	for (i = 0; i < need.count; i++) {
		if (gone)
			rm_left(&rm->pools[need.pool[i]], need.slots[i]);
		else
			rm_stayed(&rm->pools[need.pool[i]], need.slots[i]);
		rm_freed(rm, need.pool[i]);
	}
	if (rm->pools[row->pool].open)
		rm->pools[row->pool].open--;
	if (!gone && !(req->flags & RM_REQ_MEMBERS))
		row->count++;
}
