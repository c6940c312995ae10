// SPDX-License-Identifier: GPL-2.0
/*
 * Resource manager: setup, policy and limits, what the device does by itself,
 * snapshots. rm_admit.c decides, rm_settle.c closes tickets, rm_lease.c deals
 * with leases. See resource.h.
 */
#include "rm_priv.h"

static const char * const policy_names[] = {
	[RM_LOCKSTEP] = "lockstep",
	[RM_PREFETCH] = "prefetch",
	[RM_CREDIT] = "credit",
	[RM_FLAT] = "predict-flat",
	[RM_MODEL] = "predict-model",
};

const char *rm_policy_name(enum rm_policy policy)
{
	return (unsigned int)policy < RM_POLICY_COUNT ? policy_names[policy] : "unknown";
}

static bool rm_params_ok(const struct rm_params *p)
{
	return p->bucket && p->bucket <= RM_MAX_BUCKET &&
	       p->refill && p->refill <= p->bucket && p->low_water <= p->bucket &&
	       p->flat_percent && p->flat_percent <= 100;
}

/* -------------------------------------------------------------------------
 * Setup
 */
static size_t rm_fail(char *why, const char *what, u32 is)
{
	scnprintf(why, RM_TEXT, "resources: %s is %u", what, is);
	return 0;
}

static size_t rm_bank_at(void)
{
	return ALIGN(sizeof(struct rm), (size_t)64);
}

static bool rm_family_ok(u8 family)
{
	return !family || family == TND_AF_INET || family == TND_AF_INET6;
}

size_t rm_size(const struct rm_setup *setup, char *why)
{
	struct bank_geometry g;
	u32 seen = 0;
	u16 i, pool;

	if (!setup->pool_count || setup->pool_count > RM_MAX_POOLS)
		return rm_fail(why, "number of pools", setup->pool_count);
	if (setup->cost_count > RM_MAX_ROWS)
		return rm_fail(why, "number of classes", setup->cost_count);
	for (i = 0; i < setup->pool_count; i++) {
		const struct tnd_pool *p = &setup->pools[i];
		u64 sum = (u64)le32_to_cpu(p->used) + le32_to_cpu(p->in_flight) +
			  le32_to_cpu(p->committed) + le32_to_cpu(p->free);

		pool = le16_to_cpu(p->pool);
		if (pool >= setup->pool_count || seen & BIT(pool))
			return rm_fail(why, "pool id", pool);
		seen |= BIT(pool);
		if (sum != le32_to_cpu(p->size))
			return rm_fail(why, "sum of a pool's counters", min_t(u64, sum, U32_MAX));
	}
	for (i = 0; i < setup->cost_count; i++) {
		const struct tnd_class_cost *c = &setup->costs[i];

		if (le16_to_cpu(c->pool) >= setup->pool_count)
			return rm_fail(why, "pool of a class", le16_to_cpu(c->pool));
		if (le16_to_cpu(c->cls) >= RM_MAX_CLS || !rm_family_ok(c->family))
			return rm_fail(why, "class", le16_to_cpu(c->cls));
		if (!c->cost || le32_to_cpu(c->cost) > U16_MAX)
			return rm_fail(why, "cost of a class", le32_to_cpu(c->cost));
	}
	if (!rm_params_ok(&setup->params))
		return rm_fail(why, "bucket", setup->params.bucket);
	if (setup->policy >= RM_POLICY_COUNT)
		return rm_fail(why, "policy", setup->policy);
	if (!setup->geometry)
		return rm_bank_at();
	if (!bank_geometry(&g, setup->geometry, why))
		return 0;
	pool = le16_to_cpu(setup->geometry->exact_pool);
	if (pool >= setup->pool_count)
		return rm_fail(why, "pool of the exact-match memory", pool);
	for (i = 0; i < setup->pool_count; i++) {
		if (le16_to_cpu(setup->pools[i].pool) == pool &&
		    le32_to_cpu(setup->pools[i].size) != g.size)
			return rm_fail(why, "size of the exact-match memory", g.size);
	}
	pool = le16_to_cpu(setup->geometry->nhg_member_pool);
	if (pool >= setup->pool_count)
		return rm_fail(why, "pool of group members", pool);
	return rm_bank_at() + bank_bytes(&g);
}

static void rm_load_pool(struct rm_pool *p, const struct tnd_pool *dev)
{
	p->size = le32_to_cpu(dev->size);
	p->used = le32_to_cpu(dev->used);
	/* whatever was in flight or leased belonged to an earlier attach */
	p->free = p->size - min(p->used, p->size);
	p->used = p->size - p->free;
	p->high_watermark = p->used;
}

static void rm_name_copy(char *to, const __u8 *from)
{
	memcpy(to, from, TND_NAME_SIZE);
	to[TND_NAME_SIZE - 1] = 0;
}

static void rm_add_row(struct rm *rm, const struct tnd_class_cost *dev)
{
	u8 index = rm->row_count++;
	struct rm_row *row = &rm->rows[index];

	row->cls = le16_to_cpu(dev->cls);
	row->family = dev->family;
	row->pool = le16_to_cpu(dev->pool);
	row->cost = le32_to_cpu(dev->cost);
	row->member_pool = RM_NONE;
	row->cap = U32_MAX;
	row->hint = RM_NONE;
	row->exact = row->cls == TND_CLS_FDB || row->cls == TND_CLS_NEIGH;
	rm_name_copy(row->name, dev->name);
	rm->row_of[row->cls][rm_family_index(row->family)] = index;
	rm->pools[row->pool].rows++;
	if (row->exact) {
		rm->exact_pool = row->pool;
		rm->pools[row->pool].exact = true;
		rm->pools[row->pool].backed = max(rm->pools[row->pool].backed,
						  le32_to_cpu(dev->free_guaranteed) * row->cost);
	}
}

static void rm_set_leasable(struct rm *rm)
{
	u8 i;

	for (i = 0; i < rm->row_count; i++) {
		struct rm_row *row = &rm->rows[i];

		row->leasable = row->cost <= rm->pools[row->pool].size;
		if (row->member_pool != RM_NONE)
			row->leasable &= row->member_cost &&
					 row->member_cost <= rm->pools[row->member_pool].size;
	}
}

static void rm_find_members(struct rm *rm, const struct tnd_geometry *g)
{
	u8 index = rm_row_index(rm, TND_CLS_NHG, 0), i;

	if (index == RM_NONE)
		return;
	if (g) {
		rm->rows[index].member_pool = le16_to_cpu(g->nhg_member_pool);
		rm->rows[index].member_cost = le32_to_cpu(g->nhg_max_members);
		return;
	}
	for (i = 0; i < rm->pool_count; i++) {
		/* how many the device would set aside for one group it doesn't tell */
		if (!strcmp(rm->pools[i].name, "nexthop-group-member"))
			rm->rows[index].member_pool = i;
	}
}

struct rm *rm_init(void *mem, const struct rm_setup *setup)
{
	struct rm *rm = mem;
	struct bank_geometry g;
	char why[RM_TEXT];
	u16 i;

	memset(rm, 0, sizeof(*rm));
	rm->policy = setup->policy;
	rm->params = setup->params;
	rm->learning = setup->learning;
	rm->exact_pool = RM_NONE;
	rm->lease_limit = RM_MAX_LEASES;
	rm->gen = 1;
	memset(rm->row_of, RM_NONE, sizeof(rm->row_of));
	for (i = 0; i < setup->pool_count; i++) {
		struct rm_pool *p = &rm->pools[le16_to_cpu(setup->pools[i].pool)];

		rm_load_pool(p, &setup->pools[i]);
		rm_name_copy(p->name, setup->pools[i].name);
		rm_name_copy(p->unit, setup->pools[i].unit);
		rm->pool_count++;
	}
	for (i = 0; i < setup->cost_count; i++)
		rm_add_row(rm, &setup->costs[i]);
	rm_find_members(rm, setup->geometry);
	rm_set_leasable(rm);
	if (setup->geometry && rm->exact_pool != RM_NONE &&
	    bank_geometry(&g, setup->geometry, why)) {
		bank_init(&rm->bank, &g, (u8 *)mem + rm_bank_at());
		rm->has_bank = true;
		/* entries that are there already have places that nobody told */
		rm->in_step = !rm->pools[rm->exact_pool].used;
	}
	for (i = 0; i < rm->row_count; i++) {
		rm->rows[i].most = U32_MAX;
		rm_shrink(rm, &rm->rows[i]);
	}
	return rm;
}

u32 rm_fini(const struct rm *rm)
{
	u32 n = rm->open, i;

	for (i = 0; i < RM_MAX_LEASES; i++)
		n += rm->leases[i].state == RM_L_ASKED || rm->leases[i].state == RM_L_HELD;
	return n;
}

/* -------------------------------------------------------------------------
 * Policy, parameters, limits
 */
static void rm_shrink_all(struct rm *rm)
{
	u8 i;

	for (i = 0; i < rm->row_count; i++) {
		rm->rows[i].most = U32_MAX;
		rm->rows[i].dry = false;
		rm_shrink(rm, &rm->rows[i]);
	}
	rm->due = true;
}

int rm_set_policy(struct rm *rm, enum rm_policy policy)
{
	if ((unsigned int)policy >= RM_POLICY_COUNT)
		return -EINVAL;
	/* leases are drawn on under every policy: nothing to convert */
	rm->policy = policy;
	rm_shrink_all(rm);
	return 0;
}

enum rm_policy rm_policy(const struct rm *rm)
{
	return rm->policy;
}

int rm_set_params(struct rm *rm, const struct rm_params *params)
{
	if (!rm_params_ok(params))
		return -EINVAL;
	rm->params = *params;
	rm_shrink_all(rm);
	return 0;
}

void rm_get_params(const struct rm *rm, struct rm_params *params)
{
	*params = rm->params;
}

void rm_set_learning(struct rm *rm, bool on)
{
	/* what it has learned until now is placed in an order that nobody knows */
	if (rm->learning)
		rm->in_step = false;
	rm->learning = on;
}

static void rm_set_limited(struct rm *rm, u8 pool)
{
	struct rm_pool *p = &rm->pools[pool];
	u8 i;

	p->kept = p->reserve;
	p->capped = false;
	for (i = 0; i < rm->row_count; i++) {
		const struct rm_row *row = &rm->rows[i];

		if (row->pool != pool)
			continue;
		/* floors of a pool are no more than the pool, and the reserve no more */
		p->kept += row->floor * row->cost;
		p->capped |= row->cap != U32_MAX;
	}
	p->limited = p->kept || p->capped;
}

int rm_set_limits(struct rm *rm, u16 cls, u8 family, u32 floor, u32 cap)
{
	u8 index = rm_row_index(rm, cls, family), i;
	struct rm_row *row;
	u64 floors;

	if (index == RM_NONE || floor > cap)
		return -EINVAL;
	row = &rm->rows[index];
	floors = (u64)floor * row->cost;
	for (i = 0; i < rm->row_count; i++) {
		if (i != index && rm->rows[i].pool == row->pool)
			floors += (u64)rm->rows[i].floor * rm->rows[i].cost;
	}
	if (floors > rm->pools[row->pool].size)
		return -ENOSPC;
	row->floor = floor;
	row->cap = cap;
	rm_set_limited(rm, row->pool);
	return 0;
}

int rm_set_reserve(struct rm *rm, u16 cls, u8 family, u32 slots)
{
	u8 index = rm_row_index(rm, cls, family);

	if (index == RM_NONE)
		return -EINVAL;
	if (slots > rm->pools[rm->rows[index].pool].size)
		return -ENOSPC;
	rm->pools[rm->rows[index].pool].reserve = slots;
	rm_set_limited(rm, rm->rows[index].pool);
	return 0;
}

/* -------------------------------------------------------------------------
 * Slots
 */
void rm_free_to_used(struct rm_pool *p, u32 slots)
{
	u32 n = min(slots, p->behind);

	p->behind -= n;
	slots -= n;
	n = min(slots, p->free);
	p->free -= n;
	p->used += n;
	/* the device has taken what a ticket without a lease was to have */
	p->ahead += slots - n;
	rm_watermark(p);
}

void rm_absorb(struct rm_pool *p)
{
	u32 n = min(p->ahead, p->free);

	p->ahead -= n;
	p->free -= n;
	p->used += n;
	rm_watermark(p);
}

void rm_used_to_free(struct rm_pool *p, u32 slots)
{
	u32 n = min(slots, p->ahead);

	p->ahead -= n;
	slots -= n;
	n = min(slots, p->used);
	p->used -= n;
	p->free += n;
	p->behind += slots - n;
}

void rm_need_of(const struct rm_row *row, u16 units, bool members, struct rm_need *need)
{
	need->count = 0;
	if (!members) {
		need->pool[0] = row->pool;
		need->slots[0] = row->cost;
		need->count = 1;
	}
	if (row->member_pool != RM_NONE && units) {
		need->pool[need->count] = row->member_pool;
		need->slots[need->count] = units;
		need->count++;
	}
}

bool rm_key_of(const struct rm *rm, const struct rm_req *req, struct bank_key *key)
{
	if (!rm->has_bank)
		return false;
	if (req->cls == TND_CLS_FDB)
		bank_key_mac(key, req->space, req->addr);
	else if (req->cls == TND_CLS_NEIGH && req->family == TND_AF_INET)
		bank_key_host4(key, req->space, req->addr);
	else if (req->cls == TND_CLS_NEIGH && req->family == TND_AF_INET6)
		bank_key_host6(key, req->space, req->addr);
	else
		return false;
	return true;
}

u32 rm_stash_left(const struct rm *rm)
{
	const struct rm_pool *p = &rm->pools[rm->exact_pool];
	u64 held = (u64)rm->bank.stash_used + p->committed + p->in_flight + p->loose + p->asked;

	return held < rm->bank.g.stash ? rm->bank.g.stash - held : 0;
}

u32 rm_guaranteed(const struct rm *rm, const struct rm_row *row)
{
	const struct rm_pool *p = &rm->pools[row->pool];
	u32 n = p->free;

	if (p->exact)
		n = min(n, rm->has_bank ? rm_stash_left(rm) : p->backed);
	n = (n + p->credit) / row->cost;
	if (row->member_pool != RM_NONE) {
		const struct rm_pool *m = &rm->pools[row->member_pool];

		n = min(n, (m->free + m->credit) / max(row->member_cost, 1U));
	}
	return n;
}

u32 rm_credit(const struct rm *rm, const struct rm_row *row)
{
	u32 n = rm->pools[row->pool].credit / row->cost;

	if (row->member_pool != RM_NONE)
		n = min(n, rm->pools[row->member_pool].credit / max(row->member_cost, 1U));
	return n;
}

void rm_shrink(struct rm *rm, struct rm_row *row)
{
	u32 part = rm_guaranteed(rm, row) / 8;

	row->bucket = max(min(rm->params.bucket, part), 1U);
	row->low = min(rm->params.low_water, (row->bucket + 1) / 2);
}

void rm_freed(struct rm *rm, u8 pool)
{
	u8 i;

	for (i = 0; i < rm->row_count; i++) {
		struct rm_row *row = &rm->rows[i];

		if (row->pool != pool && row->member_pool != pool)
			continue;
		/* grows back as it shrank: a full chip is not asked for much at every delete */
		if (row->most < rm->params.bucket)
			row->most = row->most ? row->most * 2 : 1;
		if (row->dry) {
			row->dry = false;
			rm->due = true;
		}
	}
}

/* -------------------------------------------------------------------------
 * What the device does by itself
 */
/*
 * Whatever the order in which events and completions come, the sum of what they
 * say is what the device holds. The model keeps keys and is a hint from the
 * first event on.
 */
void rm_learned(struct rm *rm, u16 fid, const u8 *mac)
{
	u8 index = rm_row_index(rm, TND_CLS_FDB, 0);

	if (index == RM_NONE || fid > BANK_MAX_FID)
		return;
	rm->in_step = false;
	rm_seen(rm, fid, mac);
	rm_free_to_used(&rm->pools[rm->rows[index].pool], rm->rows[index].cost);
	rm->rows[index].count++;
}

void rm_aged(struct rm *rm, u16 fid, const u8 *mac)
{
	u8 index = rm_row_index(rm, TND_CLS_FDB, 0);
	struct bank_key key;

	if (index == RM_NONE || fid > BANK_MAX_FID)
		return;
	rm->in_step = false;
	if (rm->has_bank) {
		bank_key_mac(&key, fid, mac);
		bank_remove(&rm->bank, &key);
	}
	rm_used_to_free(&rm->pools[rm->rows[index].pool], rm->rows[index].cost);
	rm->rows[index].count--;
	rm_freed(rm, rm->rows[index].pool);
}

void rm_seen(struct rm *rm, u16 fid, const u8 *mac)
{
	struct bank_key key;

	if (!rm->has_bank || fid > BANK_MAX_FID)
		return;
	bank_key_mac(&key, fid, mac);
	bank_insert(&rm->bank, &key, 0, BANK_FOLLOW, NULL);
}

void rm_model_lost(struct rm *rm)
{
	rm->in_step = false;
}

void rm_reconcile(struct rm *rm, const struct tnd_pool *pools, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		u16 id = le16_to_cpu(pools[i].pool);
		u32 used = le32_to_cpu(pools[i].used);
		struct rm_pool *p = &rm->pools[id];

		/* what is out may or may not be in the device's numbers */
		if (id >= rm->pool_count || p->open || p->asked || p->in_flight ||
		    used > p->size - p->committed)
			continue;
		p->used = used;
		p->free = p->size - p->committed - used;
		p->ahead = 0;
		p->behind = 0;
		rm_watermark(p);
		rm_freed(rm, id);
	}
}

void rm_restart(struct rm *rm, const struct tnd_pool *pools, unsigned int count, bool cold)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		u16 id = le16_to_cpu(pools[i].pool);
		struct rm_pool *p = &rm->pools[id];

		if (id >= rm->pool_count)
			continue;
		p->in_flight = 0;
		p->committed = 0;
		p->credit = 0;
		p->by_lease = 0;
		p->leaving = 0;
		p->covered = 0;
		p->unknown = 0;
		p->asked = 0;
		p->ahead = 0;
		p->behind = 0;
		p->open = 0;
		p->promised = 0;
		p->loose = 0;
		rm_load_pool(p, &pools[i]);
	}
	memset(rm->leases, 0, sizeof(rm->leases));
	rm->lease_count = 0;
	rm->lease_limit = RM_MAX_LEASES;
	for (i = 0; i < rm->row_count; i++) {
		rm->rows[i].count = 0;
		rm->rows[i].asking = 0;
		rm->rows[i].hint = RM_NONE;
	}
	rm->open = 0;
	rm->reclaim = false;
	if (!++rm->gen)
		rm->gen = 1;
	if (rm->has_bank) {
		bank_clear(&rm->bank);
		rm->in_step = cold && !rm->pools[rm->exact_pool].used;
	}
	rm_shrink_all(rm);
}

/* -------------------------------------------------------------------------
 * Looking
 */
unsigned int rm_pool_count(const struct rm *rm)
{
	return rm->pool_count;
}

unsigned int rm_class_count(const struct rm *rm)
{
	return rm->row_count;
}

bool rm_pool_state(const struct rm *rm, unsigned int i, struct rm_pool_state *out)
{
	const struct rm_pool *p = &rm->pools[i];

	if (i >= rm->pool_count)
		return false;
	out->pool = i;
	out->size = p->size;
	out->used = p->used;
	out->in_flight = p->in_flight;
	out->committed = p->committed;
	out->free = p->free;
	out->high_watermark = p->high_watermark;
	out->unknown = p->unknown;
	out->reserve = p->reserve;
	memcpy(out->name, p->name, sizeof(out->name));
	memcpy(out->unit, p->unit, sizeof(out->unit));
	return true;
}

bool rm_class_state(const struct rm *rm, unsigned int i, struct rm_class_state *out)
{
	const struct rm_row *row = &rm->rows[i];
	const struct rm_pool *p;

	if (i >= rm->row_count)
		return false;
	p = &rm->pools[row->pool];
	out->cls = row->cls;
	out->family = row->family;
	out->pool = row->pool;
	out->cost = row->cost;
	out->count = rm_count(row);
	out->floor = row->floor;
	out->cap = row->cap;
	out->credit = rm_credit(rm, row);
	out->bucket = row->bucket;
	out->free_guaranteed = rm_guaranteed(rm, row);
	out->free_expected = (p->free + p->credit) / row->cost;
	if (row->exact && rm->has_bank) {
		/* as the device reckons: the search leaves some slots behind */
		u32 behind = (rm->bank.g.size - rm->bank.g.stash) / 256 * row->cost;
		u32 all = p->free + p->credit;

		out->free_expected = all > behind ? (all - behind) / row->cost : 0;
	} else if (row->member_pool != RM_NONE) {
		/* a usual group has two members */
		const struct rm_pool *m = &rm->pools[row->member_pool];

		out->free_expected = min(out->free_expected, (m->free + m->credit) / 2);
	}
	out->free_expected = max(out->free_expected, out->free_guaranteed);
	memcpy(out->name, row->name, sizeof(out->name));
	return true;
}

void rm_stats(const struct rm *rm, struct rm_stats *out)
{
	*out = rm->stats;
	out->model = rm->has_bank;
	out->model_in_step = rm_model_exact(rm);
}

unsigned int rm_check(const struct rm *rm)
{
	unsigned int i, k;

	for (i = 0; i < rm->pool_count; i++) {
		const struct rm_pool *p = &rm->pools[i];
		u64 left = 0, credit = 0, asked = 0;

		for (k = 0; k < RM_MAX_LEASES; k++) {
			const struct rm_lease *l = &rm->leases[k];

			if (l->state == RM_L_HELD || l->state == RM_L_RETURNING)
				left += l->left[i];
			if (l->state == RM_L_HELD && !l->hold && !l->returning)
				credit += l->left[i];
			if (l->state == RM_L_ASKED || l->state == RM_L_LOST)
				asked += l->left[i];
		}
		if ((u64)p->used + p->in_flight + p->committed + p->free != p->size ||
		    p->committed != left || p->credit != credit || p->asked != asked ||
		    p->by_lease > p->in_flight || p->unknown > p->in_flight ||
		    (u64)p->leaving + p->covered > p->in_flight ||
		    p->high_watermark > p->size || p->high_watermark < p->used + p->in_flight)
			return i + 1;
	}
	if (rm->has_bank && (bank_recount(&rm->bank) != rm->bank.used))
		return RM_MAX_POOLS + 1;
	return 0;
}
