// SPDX-License-Identifier: GPL-2.0
/*
 * Admission: is there room, and what stands behind the answer.
 *
 *   a lease that is held, whatever the policy     -> BY_LEASE
 *   lockstep, prefetch, credit: none is held      -> QUERY, until the device
 *                                                    refuses even one, then:
 *   counted pool: only this driver takes from it  -> BY_COUNT, or FULL
 *   exact-match, model in step with the device:
 *       the stash has room for all that is out    -> BY_COUNT
 *       nothing is out, the model finds a place   -> BY_MODEL, write it now; or FULL
 *   exact-match otherwise                         -> BY_DEVICE: write it now
 *
 * So no policy but predict-flat leaves a slot unused that could be had.
 */
#include "rm_priv.h"

static enum rm_result rm_refuse(struct rm *rm, const struct rm_row *row, u8 pool, u32 needed,
				u32 free, struct rm_verdict *v)
{
	v->result = RM_FULL;
	v->pool = pool;
	v->row = row - rm->rows;
	v->capped = false;
	v->bucket = false;
	v->needed = needed;
	v->free = free;
	v->size = rm->pools[pool].size;
	rm->stats.refused++;
	return RM_FULL;
}

/* -------------------------------------------------------------------------
 * Caps, floors, reserve
 */
static enum rm_result rm_check_limits(struct rm *rm, const struct rm_row *row,
				      const struct rm_req *req, u32 slots, struct rm_verdict *v)
{
	const struct rm_pool *p = &rm->pools[row->pool];
	u64 kept = req->flags & RM_REQ_RESERVE ? 0 : p->reserve;
	u64 there = (u64)p->free + p->credit + p->leaving;
	u8 i;

	if (rm_count(row) >= row->cap) {
		rm_refuse(rm, row, row->pool, 1, 0, v);
		v->capped = true;
		v->size = row->cap;
		return RM_FULL;
	}
	for (i = 0; i < rm->row_count; i++) {
		const struct rm_row *other = &rm->rows[i];

		if (other != row && other->pool == row->pool && other->floor > rm_count(other))
			kept += (u64)(other->floor - rm_count(other)) * other->cost;
	}
	/* what is not there at all is not for limits to say: leases may come back */
	if (there >= kept + slots || there < slots)
		return RM_ADMITTED;
	rm_refuse(rm, row, row->pool, slots, there > kept ? there - kept : 0, v);
	v->capped = true;
	return RM_FULL;
}

/* predict-flat: a fixed share of the pool for each class that lives in it */
static u32 rm_flat_limit(const struct rm *rm, const struct rm_row *row)
{
	const struct rm_pool *p = &rm->pools[row->pool];
	u64 share = div_u64((u64)p->size * rm->params.flat_percent, 100);

	share = div_u64(share, max_t(u32, p->rows, 1));
	return max_t(u64, div_u64(share, row->cost), 1);
}

/* -------------------------------------------------------------------------
 * Tickets
 */
static enum rm_result rm_issue(struct rm *rm, struct rm_row *row, const struct rm_req *req,
			       enum rm_backing backing, u8 lease, struct rm_ticket *t,
			       struct rm_verdict *v)
{
	bool members = req->flags & RM_REQ_MEMBERS;

	t->state = RM_T_OPEN | (members ? RM_T_MEMBERS : 0);
	t->row = row - rm->rows;
	t->backing = backing;
	t->lease = lease == RM_NONE ? 0 : lease + 1;
	t->units = req->units;
	t->gen = rm->gen;
	rm->pools[row->pool].open++;
	if (row->exact && backing == RM_BY_COUNT)
		rm->pools[row->pool].promised++;
	rm->open++;
	if (!members)
		row->count++;
	rm->stats.admitted++;
	rm->stats.by[backing]++;
	v->result = RM_ADMITTED;
	/* what the model says is true as long as nothing else is written */
	v->sync = backing >= RM_BY_MODEL || rm->policy == RM_LOCKSTEP;
	return RM_ADMITTED;
}

static bool rm_lease_covers(const struct rm_lease *l, const struct rm_need *need, u16 hold)
{
	u8 i;

	if (l->state != RM_L_HELD || l->hold != hold || l->returning)
		return false;
	for (i = 0; i < need->count; i++) {
		if (l->left[need->pool[i]] < need->slots[i])
			return false;
	}
	return true;
}

static u8 rm_find_lease(const struct rm *rm, struct rm_row *row, const struct rm_need *need,
			u16 hold)
{
	u8 i, at;

	if (row->hint != RM_NONE && rm_lease_covers(&rm->leases[row->hint], need, hold))
		return row->hint;
	/* nothing to look for: the usual case when a bucket is empty */
	if (!hold && rm->pools[need->pool[0]].credit < need->slots[0])
		return RM_NONE;
	/* leases are drawn up one after the other: the next one is behind the last */
	at = row->hint == RM_NONE ? 0 : row->hint;
	for (i = 0; i < RM_MAX_LEASES; i++) {
		if (rm_lease_covers(&rm->leases[at], need, hold)) {
			row->hint = at;
			return at;
		}
		at = at + 1 == RM_MAX_LEASES ? 0 : at + 1;
	}
	return RM_NONE;
}

static void rm_draw(struct rm *rm, u8 slot, const struct rm_need *need)
{
	struct rm_lease *l = &rm->leases[slot];
	u8 i;

	for (i = 0; i < need->count; i++) {
		struct rm_pool *p = &rm->pools[need->pool[i]];
		u32 n = need->slots[i];

		l->left[need->pool[i]] -= n;
		p->committed -= n;
		if (!l->hold)
			p->credit -= n;
		p->in_flight += n;
		p->by_lease += n;
		rm_watermark(p);
	}
	l->tickets++;
}

/* Free slots, or those of deletes that are out: the create is posted behind them */
static void rm_debit(struct rm *rm, const struct rm_need *need)
{
	u8 i;

	for (i = 0; i < need->count; i++) {
		struct rm_pool *p = &rm->pools[need->pool[i]];
		u32 n = min(need->slots[i], p->free), rest = need->slots[i] - n;

		p->free -= n;
		p->in_flight += n;
		p->leaving -= rest;
		p->covered += rest;
		rm_watermark(p);
	}
}

/* -------------------------------------------------------------------------
 * Without a lease
 */
static enum rm_result rm_wait(struct rm *rm, struct rm_verdict *v)
{
	v->result = RM_WAIT;
	v->post_release = rm->reclaim;
	rm->stats.waits++;
	return RM_WAIT;
}

static enum rm_result rm_by_count(struct rm *rm, struct rm_row *row, const struct rm_req *req,
				  const struct rm_need *need, struct rm_ticket *t,
				  struct rm_verdict *v)
{
	u8 i;

	for (i = 0; i < need->count; i++) {
		const struct rm_pool *p = &rm->pools[need->pool[i]];
		u32 n = need->slots[i];

		if (rm_unasked(p) >= n || (!p->asked && p->free + p->leaving >= n))
			continue;
		/* a lease command that is out may get them first */
		if (p->free + p->leaving >= n || rm_reclaim(rm, need))
			return rm_wait(rm, v);
		return rm_refuse(rm, row, need->pool[i], n, p->free, v);
	}
	rm_debit(rm, need);
	return rm_issue(rm, row, req, RM_BY_COUNT, RM_NONE, t, v);
}

static enum rm_result rm_ask_device(struct rm *rm, struct rm_row *row, const struct rm_req *req,
				    const struct rm_need *need, struct rm_ticket *t,
				    struct rm_verdict *v)
{
	bool best_effort = req->flags & RM_REQ_BEST_EFFORT;
	bool there = rm_unasked(&rm->pools[row->pool]) >= row->cost;

	/* written out of order it could take the place in the stash of one that counts on it */
	if (rm->pools[row->pool].promised)
		return rm_wait(rm, v);
	if (there)
		rm_debit(rm, need);
	rm_issue(rm, row, req, best_effort ? RM_BY_NOTHING : RM_BY_DEVICE, RM_NONE, t, v);
	if (!there) {
		t->state |= RM_T_NO_DEBIT;
		rm->pools[row->pool].loose += row->cost;
	}
	return RM_ADMITTED;
}

/* The exact-match memory: the key decides */
static enum rm_result rm_by_model(struct rm *rm, struct rm_row *row, const struct rm_req *req,
				  const struct rm_need *need, struct rm_ticket *t,
				  struct rm_verdict *v)
{
	struct rm_pool *p = &rm->pools[row->pool];
	struct bank_key key;

	if (!rm_model_exact(rm) || !rm_key_of(rm, req, &key))
		return rm_ask_device(rm, row, req, need, t, v);
	if (rm_unasked(p) >= row->cost) {
		/* whatever is out may end in the stash, in any order: this one fits beside it */
		if (rm_stash_left(rm) >= row->cost) {
			rm_debit(rm, need);
			return rm_issue(rm, row, req, RM_BY_COUNT, RM_NONE, t, v);
		}
		if (p->open)
			return rm_ask_device(rm, row, req, need, t, v);
		if (bank_room(&rm->bank, &key)) {
			bool told = !(req->flags & RM_REQ_BEST_EFFORT);

			rm_debit(rm, need);
			return rm_issue(rm, row, req, told ? RM_BY_MODEL : RM_BY_NOTHING, RM_NONE,
					t, v);
		}
	} else if (p->leaving || p->asked) {
		return rm_ask_device(rm, row, req, need, t, v);
	}
	if (rm_reclaim(rm, need))
		return rm_wait(rm, v);
	rm_refuse(rm, row, row->pool, row->cost, p->free, v);
	v->bucket = p->free >= row->cost;
	return RM_FULL;
}

static enum rm_result rm_decide(struct rm *rm, struct rm_row *row, const struct rm_req *req,
				const struct rm_need *need, struct rm_ticket *t,
				struct rm_verdict *v)
{
	if (row->exact)
		return rm_by_model(rm, row, req, need, t, v);
	return rm_by_count(rm, row, req, need, t, v);
}

/* -------------------------------------------------------------------------
 * The policies
 */
static bool rm_asks(const struct rm *rm)
{
	return rm->policy == RM_LOCKSTEP || rm->policy == RM_PREFETCH || rm->policy == RM_CREDIT;
}

/* Who fills up by himself needs no thread: it would be woken for every object */
static bool rm_refills(const struct rm *rm)
{
	return rm->policy != RM_LOCKSTEP && rm->policy != RM_PREFETCH;
}

static bool rm_below(const struct rm *rm, const struct rm_row *row)
{
	/* without a division where there is one pool: this is every route's way */
	if (row->member_pool == RM_NONE)
		return rm->pools[row->pool].credit < (u64)row->low * row->cost;
	return rm_credit(rm, row) < row->low;
}

bool rm_too_large(struct rm *rm, const struct rm_req *req, struct rm_verdict *v)
{
	u8 index = rm_row_index(rm, req->cls, req->family);
	const struct rm_row *row = &rm->rows[index];

	if (index == RM_NONE || !row->member_cost || req->units <= row->member_cost)
		return false;
	/* in the device's own words */
	rm_refuse(rm, row, row->member_pool, req->units, row->member_cost, v);
	v->size = row->member_cost;
	return true;
}

/* QUERY without an ask: the callers below know how much to ask for */
static enum rm_result rm_admit_one(struct rm *rm, const struct rm_req *req, struct rm_ticket *t,
				   struct rm_verdict *v)
{
	u8 index = rm_row_index(rm, req->cls, req->family), slot;
	struct rm_need need;
	struct rm_row *row;

	v->sync = false;
	v->post_release = false;
	if (index == RM_NONE || (req->cls == TND_CLS_FDB && req->space > BANK_MAX_FID)) {
		v->result = RM_BAD;
		return RM_BAD;
	}
	row = &rm->rows[index];
	row->demand = true;
	rm_need_of(row, req->units, req->flags & RM_REQ_MEMBERS, &need);
	if (!need.count)
		return rm_issue(rm, row, req, RM_BY_COUNT, RM_NONE, t, v);
	if (rm_too_large(rm, req, v))
		return RM_FULL;
	if (rm->pools[row->pool].limited && !(req->flags & RM_REQ_MEMBERS) &&
	    rm_check_limits(rm, row, req, row->cost, v) == RM_FULL)
		return RM_FULL;
	/* connected and local prefixes: nobody hears that a share is used up */
	if (rm->policy == RM_FLAT && !(req->flags & (RM_REQ_MEMBERS | RM_REQ_RESERVE)) &&
	    rm_count(row) >= rm_flat_limit(rm, row)) {
		rm_refuse(rm, row, row->pool, 1, 0, v);
		v->capped = true;
		v->size = rm_flat_limit(rm, row);
		return RM_FULL;
	}
	slot = req->hold ? rm_find_lease(rm, row, &need, req->hold) : RM_NONE;
	if (slot == RM_NONE)
		slot = rm_find_lease(rm, row, &need, 0);
	if (slot != RM_NONE) {
		rm_draw(rm, slot, &need);
		if (rm_refills(rm) && !row->dry && !row->asking && rm_below(rm, row))
			rm->due = true;
		return rm_issue(rm, row, req, RM_BY_LEASE, slot, t, v);
	}
	if (rm_asks(rm) && !row->dry && !(req->flags & RM_REQ_BEST_EFFORT) &&
	    rm_askable(rm, row, NULL)) {
		v->result = RM_QUERY;
		return RM_QUERY;
	}
	/* a policy that holds no bucket of counted slots has nothing to refill */
	if (rm->policy == RM_CREDIT || row->exact)
		rm->due = true;
	return rm_decide(rm, row, req, &need, t, v);
}

/*
 * The way of nearly every route: a lease in hand covers one object of a class
 * that lives in one pool, and no limit is near. As rm_admit_one() would decide.
 */
static bool rm_in_hand(struct rm *rm, const struct rm_req *req, struct rm_ticket *t,
		       struct rm_verdict *v)
{
	u8 index = rm_row_index(rm, req->cls, req->family);
	struct rm_lease *l;
	struct rm_pool *p;
	struct rm_row *row;

	if (index == RM_NONE || rm->policy == RM_FLAT || req->hold || req->flags & RM_REQ_MEMBERS)
		return false;
	row = &rm->rows[index];
	if (row->hint == RM_NONE || row->exact || row->member_pool != RM_NONE)
		return false;
	l = &rm->leases[row->hint];
	p = &rm->pools[row->pool];
	if (l->state != RM_L_HELD || l->hold || l->returning || l->left[row->pool] < row->cost)
		return false;
	if (p->limited &&
	    (p->capped || (u64)p->free + p->credit + p->leaving < (u64)p->kept + row->cost))
		return false;
	row->demand = true;
	l->left[row->pool] -= row->cost;
	l->tickets++;
	p->committed -= row->cost;
	p->credit -= row->cost;
	p->in_flight += row->cost;
	p->by_lease += row->cost;
	rm_watermark(p);
	if (rm_refills(rm) && !row->dry && !row->asking && rm_below(rm, row))
		rm->due = true;
	v->post_release = false;
	rm_issue(rm, row, req, RM_BY_LEASE, row->hint, t, v);
	return true;
}

/* Asks for the rows of what is still to be admitted, enough of each */
static enum rm_result rm_query(struct rm *rm, const struct rm_req *reqs, unsigned int count,
			       struct rm_verdict *v)
{
	u32 counts[RM_MAX_ROWS] = { 0 };
	u32 mask = 0;
	unsigned int i;
	u8 index;

	for (i = 0; i < count; i++) {
		index = rm_row_index(rm, reqs[i].cls, reqs[i].family);
		if (index == RM_NONE || rm->rows[index].dry || reqs[i].flags & RM_REQ_BEST_EFFORT)
			continue;
		if (!counts[index] && hweight32(mask) == TND_LEASE_MAX_CLASSES)
			break;
		mask |= BIT(index);
		counts[index]++;
	}
	for (i = 0; i < rm->row_count; i++) {
		if (counts[i] && rm->policy != RM_LOCKSTEP)
			counts[i] = max(counts[i], rm_ask_size(rm, &rm->rows[i]));
		/* what was refused as a whole is not asked for again */
		counts[i] = min(counts[i], max(rm->rows[i].most, 1U));
	}
	if (rm_ask(rm, mask, counts, 0, &v->ask)) {
		rm->stats.queries++;
		v->result = RM_QUERY;
		return RM_QUERY;
	}
	return rm_wait(rm, v);
}

enum rm_result rm_admit(struct rm *rm, const struct rm_req *req, struct rm_ticket *ticket,
			struct rm_verdict *verdict)
{
	enum rm_result r;

	if (likely(rm_in_hand(rm, req, ticket, verdict)))
		return RM_ADMITTED;
	r = rm_admit_one(rm, req, ticket, verdict);
	return likely(r != RM_QUERY) ? r : rm_query(rm, req, 1, verdict);
}

enum rm_result rm_admit_all(struct rm *rm, const struct rm_req *reqs, unsigned int count,
			    struct rm_ticket *tickets, struct rm_verdict *verdict)
{
	enum rm_result r = RM_ADMITTED;
	bool sync = false;
	unsigned int i, k;

	verdict->result = RM_ADMITTED;
	verdict->post_release = false;
	for (i = 0; i < count; i++) {
		r = rm_admit_one(rm, &reqs[i], &tickets[i], verdict);
		if (r != RM_ADMITTED)
			break;
		sync |= verdict->sync;
	}
	verdict->sync = sync;
	if (r == RM_ADMITTED)
		return r;
	for (k = i; k > 0; k--)
		rm_cancel(rm, &reqs[k - 1], &tickets[k - 1]);
	/* what was just given back serves the first again: ask for the rest */
	return r == RM_QUERY ? rm_query(rm, reqs + i, count - i, verdict) : r;
}

u32 rm_ticket_lease(const struct rm *rm, const struct rm_ticket *ticket)
{
	if (!rm_ticket_open(ticket) || ticket->gen != rm->gen || !ticket->lease)
		return 0;
	return rm->leases[ticket->lease - 1].id;
}
