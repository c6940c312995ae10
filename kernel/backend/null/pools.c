// SPDX-License-Identifier: GPL-2.0
/*
 * Slots: pools, what a command in flight holds of them, leases.
 *
 *   post         free or lease -> in flight   (null_hold)
 *   execution    in flight -> back            (null_unhold)
 *                free or lease -> used        (null_take, null_take_exact)
 *   LEASE        free -> committed            RELEASE  committed -> free
 *
 * The exact-match memory counts for itself (struct bank): what is committed
 * there, promised_in_flight included, is backed by its stash.
 */
#include "null.h"

static const struct {
	const char *name;
	const char *unit;
} pool_names[NULL_POOLS] = {
	[NULL_P_EXACT] = { "exact-match", "slot" },
	[NULL_P_LPM4] = { "ipv4-lpm", "slot" },
	[NULL_P_LPM6] = { "ipv6-lpm", "slot" },
	[NULL_P_RIF] = { "rif", "entry" },
	[NULL_P_VRF] = { "vrf", "entry" },
	[NULL_P_VLAN] = { "vlan", "entry" },
	[NULL_P_MEMBER] = { "vlan-member", "entry" },
	[NULL_P_NEXTHOP] = { "nexthop", "entry" },
	[NULL_P_NHG] = { "nexthop-group", "entry" },
	[NULL_P_NHG_MEMBER] = { "nexthop-group-member", "member" },
};

static const struct {
	u16 cls;
	u8 family;
	const char *name;
} cost_rows[] = {
	{ TND_CLS_FDB, 0, "mac" },
	{ TND_CLS_NEIGH, TND_AF_INET, "ipv4-host" },
	{ TND_CLS_NEIGH, TND_AF_INET6, "ipv6-host" },
	{ TND_CLS_ROUTE, TND_AF_INET, "ipv4-route" },
	{ TND_CLS_ROUTE, TND_AF_INET6, "ipv6-route" },
	{ TND_CLS_RIF, 0, "rif" },
	{ TND_CLS_VRF, 0, "vrf" },
	{ TND_CLS_VLAN, 0, "vlan" },
	{ TND_CLS_VLAN_MEMBER, 0, "vlan-member" },
	{ TND_CLS_NEXTHOP, 0, "nexthop" },
	{ TND_CLS_NHG, 0, "nexthop-group" },
};

void null_pools_reset(struct null_chip *n)
{
	const struct null_profile *p = n->p;
	const u32 size[NULL_POOLS] = {
		[NULL_P_EXACT] = n->bank.g.size,
		[NULL_P_LPM4] = p->lpm4,
		[NULL_P_LPM6] = p->lpm6,
		[NULL_P_RIF] = p->rif,
		[NULL_P_VRF] = p->vrf,
		[NULL_P_VLAN] = p->vlan,
		[NULL_P_MEMBER] = p->vlan_member,
		[NULL_P_NEXTHOP] = p->nexthop,
		[NULL_P_NHG] = p->nhg,
		[NULL_P_NHG_MEMBER] = p->nhg_member,
	};
	u32 i;

	for (i = 0; i < NULL_POOLS; i++)
		n->pool[i] = (struct null_pool){ .size = size[i], .free = size[i] };
	n->promised_in_flight = 0;
	memset(n->lease, 0, sizeof(n->lease));
}

static void null_pool_mark(struct null_chip *n, u8 pool)
{
	struct null_pool *p = &n->pool[pool];
	u32 used = pool == NULL_P_EXACT ? n->bank.used : p->used;

	p->high = max(p->high, used + p->in_flight);
}

/* -------------------------------------------------------------------------
 * Execution
 */
u16 null_take(struct null_chip *n, struct null_exec *x, u8 pool, u32 slots)
{
	struct null_pool *p = &n->pool[pool];

	if (!slots)
		return TND_ST_OK;
	if (x->lease) {
		if (x->lease->left[pool] < slots)
			return TND_ST_LEASE;
		x->lease->left[pool] -= slots;
		p->committed -= slots;
	} else {
		if (p->free < slots)
			return null_full(x, pool, slots, p->free, p->size, false);
		p->free -= slots;
	}
	p->used += slots;
	null_delta(x, pool, slots);
	null_pool_mark(n, pool);
	return TND_ST_OK;
}

void null_give(struct null_chip *n, struct null_exec *x, u8 pool, u32 slots)
{
	n->pool[pool].used -= slots;
	n->pool[pool].free += slots;
	null_delta(x, pool, -(s32)slots);
}

/* Undoes null_take() of this command: back to the lease, or to free */
void null_untake(struct null_chip *n, struct null_exec *x, u8 pool, u32 slots)
{
	null_give(n, x, pool, slots);
	if (!x->lease)
		return;
	n->pool[pool].free -= slots;
	n->pool[pool].committed += slots;
	x->lease->left[pool] += slots;
}

u16 null_take_exact(struct null_chip *n, struct null_exec *x, const struct bank_key *key, u32 i)
{
	u32 width = bank_width(&n->bank, key);
	enum bank_result r;

	if (bank_find(&n->bank, key, NULL))
		return TND_ST_EXISTS;
	if (x->lease && x->lease->left[NULL_P_EXACT] < width)
		return TND_ST_LEASE;
	r = bank_insert(&n->bank, key, i, x->lease ? BANK_PROMISED : BANK_FREE, NULL);
	if (r != BANK_OK)
		return null_full(x, NULL_P_EXACT, width, n->bank.free, n->bank.g.size,
				 r == BANK_BUCKET_FULL);
	if (x->lease)
		x->lease->left[NULL_P_EXACT] -= width;
	null_delta(x, NULL_P_EXACT, width);
	null_pool_mark(n, NULL_P_EXACT);
	return TND_ST_OK;
}

void null_give_exact(struct null_chip *n, struct null_exec *x, const struct bank_key *key)
{
	null_delta(x, NULL_P_EXACT, -(s32)bank_remove(&n->bank, key));
}

/* -------------------------------------------------------------------------
 * In flight
 */

/* Slots that an object of a class takes at worst, a group with all its members; how many pools */
u32 null_needs(struct null_chip *n, u16 cls, u8 family, u8 *pool, u32 *slots)
{
	slots[0] = 1;
	switch (cls) {
	case TND_CLS_FDB:
		pool[0] = NULL_P_EXACT;
		slots[0] = n->p->width_mac;
		return 1;
	case TND_CLS_NEIGH:
		if (family != TND_AF_INET && family != TND_AF_INET6)
			return 0;
		pool[0] = NULL_P_EXACT;
		slots[0] = family == TND_AF_INET6 ? n->p->width_host6 : n->p->width_host4;
		return 1;
	case TND_CLS_ROUTE:
		if (family != TND_AF_INET && family != TND_AF_INET6)
			return 0;
		pool[0] = family == TND_AF_INET6 ? NULL_P_LPM6 : NULL_P_LPM4;
		slots[0] = family == TND_AF_INET6 ? n->p->lpm6_cost : n->p->lpm4_cost;
		return 1;
	case TND_CLS_RIF:
		pool[0] = NULL_P_RIF;
		return 1;
	case TND_CLS_VRF:
		pool[0] = NULL_P_VRF;
		return 1;
	case TND_CLS_VLAN:
		pool[0] = NULL_P_VLAN;
		return 1;
	case TND_CLS_VLAN_MEMBER:
		pool[0] = NULL_P_MEMBER;
		return 1;
	case TND_CLS_NEXTHOP:
		pool[0] = NULL_P_NEXTHOP;
		return 1;
	case TND_CLS_NHG:
		pool[0] = NULL_P_NHG;
		pool[1] = NULL_P_NHG_MEMBER;
		slots[1] = n->p->nhg_max_members;
		return 2;
	}
	return 0;
}

static void null_pool_hold(struct null_chip *n, struct null_held *held, u8 pool, u32 slots,
			   struct null_lease *l)
{
	bool exact = pool == NULL_P_EXACT;
	struct null_pool *p = &n->pool[pool];
	u32 *free = exact ? &n->bank.free : &p->free;

	if (l) {
		if (l->left[pool] < slots)
			return;
		l->left[pool] -= slots;
		/* the stash goes on backing it */
		if (exact)
			n->promised_in_flight += slots;
		else
			p->committed -= slots;
	} else {
		if (*free < slots)
			return;
		*free -= slots;
	}
	p->in_flight += slots;
	null_pool_mark(n, pool);
	held->part[held->count].pool = pool;
	held->part[held->count].slots = slots;
	held->part[held->count].lease = l ? l - n->lease + 1 : 0;
	held->part[held->count].lease_id = l ? l->id : 0;
	held->count++;
}

/* Nothing is held if it is not there: the command will say so when it is executed */
void null_hold(struct null_chip *n, const struct tnd_cmd *cmd, const u8 *body,
	       struct null_held *held)
{
	u32 len = le32_to_cpu(cmd->body_size), slots[2], count, i;
	struct null_lease *l = NULL;
	u8 pool[2];

	held->count = 0;
	if (cmd->op != cpu_to_le16(TND_OP_CREATE) || len < 8)
		return;
	if (cmd->flags & cpu_to_le32(TND_CMD_LEASE)) {
		l = null_lease_of(n, le32_to_cpu(cmd->lease));
		if (!l)
			return;
	}
	if (cmd->cls == cpu_to_le16(TND_CLS_ROUTE)) {
		bool v6 = body[4] == TND_AF_INET6;

		if (v6 || body[4] == TND_AF_INET)
			null_pool_hold(n, held, v6 ? NULL_P_LPM6 : NULL_P_LPM4,
				       v6 ? n->p->lpm6_cost : n->p->lpm4_cost, l);
		return;
	}
	count = null_needs(n, le16_to_cpu(cmd->cls), body[4], pool, slots);
	if (cmd->cls == cpu_to_le16(TND_CLS_NHG))
		slots[1] = min_t(u32, le16_to_cpu(((const struct tnd_nhg *)body)->count),
				 n->p->nhg_max_members);
	for (i = 0; i < count; i++)
		null_pool_hold(n, held, pool[i], slots[i], l);
}

void null_unhold(struct null_chip *n, const struct null_held *held)
{
	u32 i;

	for (i = 0; i < held->count; i++) {
		u8 pool = held->part[i].pool;
		u32 slots = held->part[i].slots;
		struct null_pool *p = &n->pool[pool];
		bool exact = pool == NULL_P_EXACT;
		struct null_lease *l = NULL;

		p->in_flight -= slots;
		if (!held->part[i].lease) {
			*(exact ? &n->bank.free : &p->free) += slots;
			continue;
		}
		l = &n->lease[held->part[i].lease - 1];
		if (exact)
			n->promised_in_flight -= slots;
		else
			p->committed += slots;
		if (l->id == held->part[i].lease_id) {
			l->left[pool] += slots;
		} else if (exact) {
			/* released meanwhile */
			bank_release(&n->bank, slots);
		} else {
			p->committed -= slots;
			p->free += slots;
		}
	}
}

/* -------------------------------------------------------------------------
 * Leases
 */
struct null_lease *null_lease_of(struct null_chip *n, u32 id)
{
	struct null_lease *l = &n->lease[id % NULL_LEASES];

	return id && l->id == id ? l : NULL;
}

static void null_pool_uncommit(struct null_chip *n, u8 pool, u32 slots)
{
	if (pool == NULL_P_EXACT) {
		bank_release(&n->bank, slots);
		return;
	}
	n->pool[pool].committed -= slots;
	n->pool[pool].free += slots;
}

/* TND_ST_OK, or the completion says which pool lacks what */
static u16 null_pool_commit(struct null_chip *n, struct null_exec *x, u8 pool, u32 slots)
{
	struct null_pool *p = &n->pool[pool];

	if (pool == NULL_P_EXACT) {
		if (bank_commit(&n->bank, slots))
			return TND_ST_OK;
		return null_full(x, pool, slots, min(bank_stash_free(&n->bank), n->bank.free),
				 n->bank.g.size, false);
	}
	if (p->free < slots)
		return null_full(x, pool, slots, p->free, p->size, false);
	p->free -= slots;
	p->committed += slots;
	return TND_ST_OK;
}

/* Sums what the items take at worst; saturates, as nothing is that large */
static bool null_pool_wanted(struct null_chip *n, const struct null_exec *x, u32 *left)
{
	const struct tnd_lease *head = (const struct tnd_lease *)x->body;
	const struct tnd_lease_item *item;
	u32 at, count, i, k;

	if (x->body_len < sizeof(*head))
		return false;
	at = le16_to_cpu(head->struct_size);
	count = le16_to_cpu(head->count);
	if (at < 4 || !count || count > TND_LEASE_MAX_CLASSES ||
	    at + count * sizeof(*item) > x->body_len)
		return false;
	for (i = 0; i < count; i++) {
		u32 slots[2], pools;
		u8 pool[2];

		item = (const struct tnd_lease_item *)(x->body + at) + i;
		pools = null_needs(n, le16_to_cpu(item->cls), item->family, pool, slots);
		if (!pools)
			return false;
		for (k = 0; k < pools; k++) {
			u64 sum = left[pool[k]] + (u64)slots[k] * le32_to_cpu(item->count);

			left[pool[k]] = min_t(u64, sum, U32_MAX);
		}
	}
	return true;
}

u16 null_lease_grant(struct null_chip *n, struct null_exec *x)
{
	u32 left[NULL_POOLS] = {}, i, k;
	struct null_lease *l = NULL;
	u16 st;

	if (!null_pool_wanted(n, x, left))
		return TND_ST_INVALID;
	/* an id is used again after 2^26 leases */
	for (i = 0; i < NULL_LEASES && !l; i++) {
		n->lease_gen++;
		if (n->lease_gen && !n->lease[n->lease_gen % NULL_LEASES].id)
			l = &n->lease[n->lease_gen % NULL_LEASES];
	}
	if (!l)
		return TND_ST_LEASE;
	for (i = 0; i < NULL_POOLS; i++) {
		st = left[i] ? null_pool_commit(n, x, i, left[i]) : TND_ST_OK;
		if (!st)
			continue;
		for (k = 0; k < i; k++) {
			if (left[k])
				null_pool_uncommit(n, k, left[k]);
		}
		return st;
	}
	l->id = n->lease_gen;
	l->cookie = le64_to_cpu(x->cmd->cookie);
	memcpy(l->left, left, sizeof(left));
	x->cpl->result = cpu_to_le64(l->id);
	return TND_ST_OK;
}

u16 null_lease_drop(struct null_chip *n, u32 id)
{
	struct null_lease *l = null_lease_of(n, id);
	u32 i;

	if (!l)
		return TND_ST_LEASE;
	for (i = 0; i < NULL_POOLS; i++) {
		if (l->left[i])
			null_pool_uncommit(n, i, l->left[i]);
	}
	memset(l, 0, sizeof(*l));
	return TND_ST_OK;
}

u16 null_lease_drop_of(struct null_chip *n, u64 cookie)
{
	u32 i;

	for (i = 0; i < NULL_LEASES; i++) {
		if (n->lease[i].id && n->lease[i].cookie == cookie)
			return null_lease_drop(n, n->lease[i].id);
	}
	return TND_ST_LEASE;
}

/* A driver attaches: what the last one had leased is given back */
void null_lease_drop_all(struct null_chip *n)
{
	u32 i;

	for (i = 0; i < NULL_LEASES; i++) {
		if (n->lease[i].id)
			null_lease_drop(n, n->lease[i].id);
	}
}

/* -------------------------------------------------------------------------
 * Looking
 */
void null_pool_row(struct null_chip *n, u32 id, struct tnd_pool *row)
{
	const struct null_pool *p = &n->pool[id];
	bool exact = id == NULL_P_EXACT;

	memset(row, 0, sizeof(*row));
	row->pool = cpu_to_le16(id);
	row->size = cpu_to_le32(p->size);
	row->used = cpu_to_le32(exact ? n->bank.used : p->used);
	row->in_flight = cpu_to_le32(p->in_flight);
	row->committed = cpu_to_le32(exact ? n->bank.committed - n->promised_in_flight :
				     p->committed);
	row->free = cpu_to_le32(exact ? n->bank.free : p->free);
	row->high_watermark = cpu_to_le32(p->high);
	strscpy(row->name, pool_names[id].name, sizeof(row->name));
	strscpy(row->unit, pool_names[id].unit, sizeof(row->unit));
}

u32 null_cost_rows(void)
{
	return ARRAY_SIZE(cost_rows);
}

/* Objects that still fit: whatever their keys are, and if keys spread as usual */
static void null_pool_room(struct null_chip *n, u16 cls, u8 family, u32 *guaranteed, u32 *expected)
{
	u32 slots[2], count, i;
	enum bank_kind kind;
	u8 pool[2];

	if (cls == TND_CLS_FDB || cls == TND_CLS_NEIGH) {
		kind = cls == TND_CLS_FDB ? BANK_MAC :
		       family == TND_AF_INET ? BANK_HOST4 : BANK_HOST6;
		*guaranteed = bank_free_guaranteed(&n->bank, kind);
		*expected = bank_free_expected(&n->bank, kind);
		return;
	}
	*guaranteed = U32_MAX;
	*expected = U32_MAX;
	count = null_needs(n, cls, family, pool, slots);
	for (i = 0; i < count; i++) {
		u32 free = n->pool[pool[i]].free;

		*guaranteed = min(*guaranteed, free / slots[i]);
		/* a usual group has two members, not the most that a group may have */
		if (pool[i] == NULL_P_NHG_MEMBER)
			slots[i] = min(slots[i], 2U);
		*expected = min(*expected, free / slots[i]);
	}
}

void null_cost_row(struct null_chip *n, u32 i, struct tnd_class_cost *row)
{
	u32 slots[2] = {}, guaranteed, expected;
	u16 cls = cost_rows[i].cls;
	u8 family = cost_rows[i].family;
	u8 pool[2] = {};

	null_needs(n, cls, family, pool, slots);
	null_pool_room(n, cls, family, &guaranteed, &expected);
	memset(row, 0, sizeof(*row));
	row->struct_size = cpu_to_le16(sizeof(*row));
	row->cls = cpu_to_le16(cls);
	row->family = family;
	row->pool = cpu_to_le16(pool[0]);
	row->cost = cpu_to_le32(slots[0]);
	row->free_guaranteed = cpu_to_le32(guaranteed);
	row->free_expected = cpu_to_le32(max(guaranteed, expected));
	strscpy(row->name, cost_rows[i].name, sizeof(row->name));
}

const char *null_check(struct null_chip *n)
{
	const struct null_range *r = n->run;
	u32 members = 0, leased[NULL_POOLS] = {}, i, k;
	const u32 counted[NULL_POOLS] = {
		[NULL_P_EXACT] = bank_recount(&n->bank),
		[NULL_P_LPM4] = r[NULL_R_ROUTE4].count * n->p->lpm4_cost,
		[NULL_P_LPM6] = r[NULL_R_ROUTE6].count * n->p->lpm6_cost,
		[NULL_P_RIF] = r[NULL_R_RIF].count,
		[NULL_P_VRF] = r[NULL_R_VRF].count - 1,
		[NULL_P_VLAN] = r[NULL_R_VLAN].count,
		[NULL_P_MEMBER] = r[NULL_R_MEMBER].count,
		[NULL_P_NEXTHOP] = r[NULL_R_NEXTHOP].count,
		[NULL_P_NHG] = r[NULL_R_NHG].count,
	};

	for (i = r[NULL_R_NHG].first; i < r[NULL_R_NHG].fresh; i++) {
		if (n->obj[i].cls)
			members += le16_to_cpu(n->obj[i].b.nhg.head.count);
	}
	for (i = 0; i < NULL_LEASES; i++) {
		for (k = 0; k < NULL_POOLS; k++)
			leased[k] += n->lease[i].left[k];
	}
	for (i = 0; i < NULL_POOLS; i++) {
		struct tnd_pool row;
		u32 used, committed;

		null_pool_row(n, i, &row);
		used = le32_to_cpu(row.used);
		committed = le32_to_cpu(row.committed);
		if (used + le32_to_cpu(row.in_flight) + committed + le32_to_cpu(row.free) !=
		    le32_to_cpu(row.size))
			return pool_names[i].name;
		if (used != (i == NULL_P_NHG_MEMBER ? members : counted[i]))
			return pool_names[i].name;
		/* a lease released with a command of its in flight gives back when that is done */
		if (committed < leased[i])
			return pool_names[i].name;
	}
	return NULL;
}
