// SPDX-License-Identifier: GPL-2.0
/* See chip.h */
#include "chip.h"

static const struct {
	u16 cls;
	u8 family;
	u8 pool;
	const char *name;
} classes[CLASSES] = {
	[C_MAC] = { TND_CLS_FDB, 0, P_EXACT, "mac" },
	[C_HOST4] = { TND_CLS_NEIGH, TND_AF_INET, P_EXACT, "ipv4-host" },
	[C_HOST6] = { TND_CLS_NEIGH, TND_AF_INET6, P_EXACT, "ipv6-host" },
	[C_ROUTE4] = { TND_CLS_ROUTE, TND_AF_INET, P_LPM4, "ipv4-route" },
	[C_ROUTE6] = { TND_CLS_ROUTE, TND_AF_INET6, P_LPM6, "ipv6-route" },
	[C_NEXTHOP] = { TND_CLS_NEXTHOP, 0, P_NEXTHOP, "nexthop" },
	[C_NHG] = { TND_CLS_NHG, 0, P_NHG, "nexthop-group" },
};

static const char * const pool_names[POOLS] = {
	"exact-match", "ipv4-lpm", "ipv6-lpm", "nexthop", "nexthop-group", "nexthop-group-member",
};

void chip_make(struct chip *c, u32 objects)
{
	struct bank_geometry g;
	char why[RM_TEXT];

	c->geometry.struct_size = sizeof(c->geometry);
	c->geometry.exact_pool = P_EXACT;
	c->geometry.nhg_member_pool = P_MEMBER;
	c->geometry.hash = TND_EXACT_HASH_MIX64;
	c->geometry.seed = 0x74616e64656d;
	c->geometry.max_depth = 3;
	c->geometry.search_budget = 768;
	CHECK(bank_geometry(&g, &c->geometry, why), "%s", why);
	c->memory = aligned_alloc(64, bank_bytes(&g));
	CHECK(c->memory);
	bank_init(&c->bank, &g, c->memory);
	c->size[P_EXACT] = g.size;
	c->cost[C_MAC] = g.width[BANK_MAC];
	c->cost[C_HOST4] = g.width[BANK_HOST4];
	c->cost[C_HOST6] = g.width[BANK_HOST6];
	c->next_lease = 1;
	c->max_leases = CHIP_LEASES;
	c->objects = objects;
	c->there = calloc(objects, 1);
	CHECK(c->there);
}

void chip_init(struct chip *c, u32 objects, bool large)
{
	u32 i;

	memset(c, 0, sizeof(*c));
	c->geometry.banks = large ? 4 : 2;
	c->geometry.buckets_per_bank = large ? 5100 : 9;
	c->geometry.slots_per_bucket = 4;
	c->geometry.stash = large ? 5440 : 12;
	c->geometry.max_moves = large ? 16 : 4;
	c->geometry.width_mac = 1;
	c->geometry.width_host4 = 1;
	c->geometry.width_host6 = 2;
	c->geometry.nhg_max_members = CHIP_MEMBERS;
	c->size[P_LPM4] = large ? 65536 : 40;
	c->size[P_LPM6] = large ? 28672 : 38;
	c->size[P_NEXTHOP] = large ? 16384 : 16;
	c->size[P_NHG] = large ? 4096 : 7;
	c->size[P_MEMBER] = large ? 81920 : 30;
	for (i = 0; i < CLASSES; i++)
		c->cost[i] = i == C_ROUTE6 ? 4 : 1;
	chip_make(c, objects);
}

void chip_fini(struct chip *c)
{
	free(c->memory);
	free(c->there);
}

void thing_of(u32 n, struct thing *t)
{
	struct rnd r = { n + 1 };
	u64 a = rnd(&r), b = rnd(&r);

	memset(t, 0, sizeof(*t));
	t->cls = n % CLASSES;
	t->units = t->cls == C_NHG ? 1 + a % CHIP_MEMBERS : 0;
	t->req.cls = classes[t->cls].cls;
	t->req.family = classes[t->cls].family;
	t->req.units = t->units;
	t->req.space = t->cls == C_MAC ? 1 + n % 3 : n % 4;
	memcpy(t->req.addr, &a, 8);
	memcpy(t->req.addr + 8, &b, 8);
	if (t->cls == C_MAC)
		memset(t->req.addr + 6, 0, 10);
	if (t->cls == C_HOST4)
		memset(t->req.addr + 4, 0, 12);
}

static void key_of(const struct thing *t, struct bank_key *key)
{
	if (t->cls == C_MAC)
		bank_key_mac(key, t->req.space, t->req.addr);
	else if (t->cls == C_HOST4)
		bank_key_host4(key, t->req.space, t->req.addr);
	else
		bank_key_host6(key, t->req.space, t->req.addr);
}

u32 chip_free(const struct chip *c, u32 pool)
{
	return pool == P_EXACT ? c->bank.free : c->size[pool] - c->used[pool] - c->committed[pool];
}

static u32 used(const struct chip *c, u32 pool)
{
	return pool == P_EXACT ? c->bank.used : c->used[pool];
}

static u32 committed(const struct chip *c, u32 pool)
{
	return pool == P_EXACT ? c->bank.committed : c->committed[pool];
}

void chip_snapshot(const struct chip *c, struct tnd_pool *pools)
{
	u32 i;

	memset(pools, 0, sizeof(*pools) * POOLS);
	for (i = 0; i < POOLS; i++) {
		pools[i].pool = i;
		pools[i].size = c->size[i];
		pools[i].used = used(c, i);
		pools[i].committed = committed(c, i);
		pools[i].free = chip_free(c, i);
		memcpy(pools[i].name, pool_names[i], strlen(pool_names[i]));
		memcpy(pools[i].unit, "slot", 4);
	}
}

void chip_costs(const struct chip *c, struct tnd_class_cost *costs)
{
	u32 i;

	memset(costs, 0, sizeof(*costs) * CLASSES);
	for (i = 0; i < CLASSES; i++) {
		u32 room = classes[i].pool == P_EXACT ? bank_stash_free(&c->bank) :
			   chip_free(c, classes[i].pool);

		costs[i].struct_size = sizeof(*costs);
		costs[i].cls = classes[i].cls;
		costs[i].family = classes[i].family;
		costs[i].pool = classes[i].pool;
		costs[i].cost = c->cost[i];
		costs[i].free_guaranteed = room / c->cost[i];
		memcpy(costs[i].name, classes[i].name, strlen(classes[i].name));
	}
}

struct rm *chip_rm(const struct chip *c, u8 policy, bool learning, bool with_geometry)
{
	struct tnd_pool pools[POOLS];
	struct tnd_class_cost costs[CLASSES];
	struct rm_setup s = {
		.pools = pools, .pool_count = POOLS,
		.costs = costs, .cost_count = CLASSES,
		.geometry = with_geometry ? &c->geometry : NULL,
		.learning = learning,
		.policy = policy,
		.params = RM_DEFAULT_PARAMS,
	};
	char why[RM_TEXT] = "";
	size_t size;
	void *mem;

	chip_snapshot(c, pools);
	chip_costs(c, costs);
	size = rm_size(&s, why);
	CHECK(size, "%s", why);
	mem = aligned_alloc(64, ALIGN(size, (size_t)64));
	CHECK(mem);
	memset(mem, 0xa5, size);
	return rm_init(mem, &s);
}

static void full(const struct chip *c, struct tnd_cpl *cpl, u32 status, u32 pool, u32 needed,
		 u32 free)
{
	cpl->status = status;
	cpl->table = pool;
	cpl->needed = needed;
	cpl->free = free;
	cpl->size = c->size[pool];
}

static void delta(struct tnd_cpl *cpl, u32 pool, s32 slots)
{
	cpl->delta[cpl->delta_count].pool = pool;
	cpl->delta[cpl->delta_count++].slots = (u32)slots;
}

static struct chip_lease *find_lease(struct chip *c, u32 id)
{
	u32 i;

	for (i = 0; i < CHIP_LEASES && id; i++) {
		if (c->lease[i].id == id)
			return &c->lease[i];
	}
	return NULL;
}

static bool commit(struct chip *c, u32 pool, u32 slots)
{
	if (pool == P_EXACT)
		return bank_commit(&c->bank, slots);
	if (chip_free(c, pool) < slots)
		return false;
	c->committed[pool] += slots;
	return true;
}

static void uncommit(struct chip *c, u32 pool, u32 slots)
{
	if (pool == P_EXACT)
		bank_release(&c->bank, slots);
	else
		c->committed[pool] -= slots;
}

void chip_lease(struct chip *c, const struct rm_ask *ask, struct tnd_cpl *cpl)
{
	u32 want[POOLS] = { 0 }, i, k;
	struct chip_lease *l = NULL;

	memset(cpl, 0, sizeof(*cpl));
	cpl->op = TND_OP_LEASE;
	for (i = 0; i < ask->count; i++) {
		for (k = 0; k < CLASSES; k++) {
			if (classes[k].cls != ask->item[i].cls ||
			    classes[k].family != ask->item[i].family)
				continue;
			want[classes[k].pool] += ask->item[i].count * c->cost[k];
			if (k == C_NHG)
				want[P_MEMBER] += ask->item[i].count * c->geometry.nhg_max_members;
		}
	}
	for (i = 0; i < c->max_leases && !l; i++) {
		if (!c->lease[i].id)
			l = &c->lease[i];
	}
	if (!l) {
		cpl->status = TND_ST_LEASE;
		return;
	}
	for (i = 0; i < POOLS; i++) {
		if (commit(c, i, want[i]))
			continue;
		full(c, cpl, TND_ST_TABLE_FULL, i, want[i],
		     i == P_EXACT ? bank_stash_free(&c->bank) : chip_free(c, i));
		while (i--)
			uncommit(c, i, want[i]);
		return;
	}
	l->id = c->next_lease++;
	l->slot = ask->slot;
	memcpy(l->left, want, sizeof(want));
	cpl->result = l->id;
}

void chip_release(struct chip *c, u32 id, struct tnd_cpl *cpl)
{
	struct chip_lease *l = find_lease(c, id);
	u32 i;

	memset(cpl, 0, sizeof(*cpl));
	cpl->op = TND_OP_RELEASE;
	if (!l) {
		cpl->status = TND_ST_LEASE;
		return;
	}
	for (i = 0; i < POOLS; i++)
		uncommit(c, i, l->left[i]);
	memset(l, 0, sizeof(*l));
}

void chip_release_of(struct chip *c, u8 slot, struct tnd_cpl *cpl)
{
	u32 i, id = 0;

	for (i = 0; i < CHIP_LEASES; i++) {
		if (c->lease[i].id && c->lease[i].slot == slot)
			id = c->lease[i].id;
	}
	chip_release(c, id, cpl);
}

/* Takes slots of a counted pool; false: @cpl says why */
static bool take(struct chip *c, u32 pool, u32 slots, struct chip_lease *l, struct tnd_cpl *cpl)
{
	if (l) {
		if (l->left[pool] < slots) {
			cpl->status = TND_ST_LEASE;
			return false;
		}
		l->left[pool] -= slots;
		c->committed[pool] -= slots;
	} else if (chip_free(c, pool) < slots) {
		full(c, cpl, TND_ST_TABLE_FULL, pool, slots, chip_free(c, pool));
		return false;
	}
	c->used[pool] += slots;
	delta(cpl, pool, slots);
	return true;
}

static void create_exact(struct chip *c, const struct thing *t, struct chip_lease *l,
			 struct tnd_cpl *cpl)
{
	u32 width = c->cost[t->cls], free = c->bank.free;
	struct bank_key key;
	enum bank_result r;

	key_of(t, &key);
	if (bank_find(&c->bank, &key, NULL))
		return;
	if (l && l->left[P_EXACT] < width) {
		cpl->status = TND_ST_LEASE;
		return;
	}
	r = bank_insert(&c->bank, &key, 0, l ? BANK_PROMISED : BANK_FREE, NULL);
	if (r == BANK_OK) {
		if (l)
			l->left[P_EXACT] -= width;
		delta(cpl, P_EXACT, width);
	} else {
		full(c, cpl, r == BANK_TABLE_FULL ? TND_ST_TABLE_FULL : TND_ST_BUCKET_FULL, P_EXACT,
		     width, free);
	}
}

void chip_create(struct chip *c, u32 n, u32 lease, struct tnd_cpl *cpl)
{
	struct thing t;

	thing_of(n, &t);
	chip_create_group(c, n, t.units, lease, cpl);
}

void chip_create_group(struct chip *c, u32 n, u32 units, u32 lease, struct tnd_cpl *cpl)
{
	struct chip_lease *l = find_lease(c, lease);
	struct thing t;

	thing_of(n, &t);
	t.units = units;
	memset(cpl, 0, sizeof(*cpl));
	cpl->op = TND_OP_CREATE;
	cpl->cls = t.req.cls;
	if (lease && !l) {
		cpl->status = TND_ST_LEASE;
		return;
	}
	if (classes[t.cls].pool == P_EXACT) {
		create_exact(c, &t, l, cpl);
		return;
	}
	if (c->there[n])
		return;
	if (t.units > c->geometry.nhg_max_members) {
		full(c, cpl, TND_ST_TABLE_FULL, P_MEMBER, t.units, c->geometry.nhg_max_members);
		return;
	}
	if (!take(c, classes[t.cls].pool, c->cost[t.cls], l, cpl))
		return;
	if (t.units && !take(c, P_MEMBER, t.units, l, cpl)) {
		c->used[P_NHG]--;
		if (l) {
			l->left[P_NHG]++;
			c->committed[P_NHG]++;
		}
		cpl->delta_count = 0;
		return;
	}
	c->there[n] = t.units + 1;
}

void chip_update_group(struct chip *c, u32 n, u32 units, u32 lease, struct tnd_cpl *cpl)
{
	struct chip_lease *l = find_lease(c, lease);
	u32 was = c->there[n] - 1;

	if (lease && !l)
		cpl->status = TND_ST_LEASE;
	else if (units > c->geometry.nhg_max_members)
		full(c, cpl, TND_ST_TABLE_FULL, P_MEMBER, units, c->geometry.nhg_max_members);
	else if (units > was && !take(c, P_MEMBER, units - was, l, cpl))
		return;
	if (cpl->status)
		return;
	if (units < was) {
		c->used[P_MEMBER] -= was - units;
		delta(cpl, P_MEMBER, (s32)units - (s32)was);
	}
	c->there[n] = units + 1;
}

void chip_delete(struct chip *c, u32 n, struct tnd_cpl *cpl)
{
	struct bank_key key;
	struct thing t;
	u32 slots;

	thing_of(n, &t);
	memset(cpl, 0, sizeof(*cpl));
	cpl->op = TND_OP_DELETE;
	cpl->cls = t.req.cls;
	if (classes[t.cls].pool == P_EXACT) {
		key_of(&t, &key);
		slots = bank_remove(&c->bank, &key);
		if (slots)
			delta(cpl, P_EXACT, -(s32)slots);
		return;
	}
	if (!c->there[n])
		return;
	t.units = c->there[n] - 1;
	c->there[n] = 0;
	c->used[classes[t.cls].pool] -= c->cost[t.cls];
	delta(cpl, classes[t.cls].pool, -(s32)c->cost[t.cls]);
	if (t.units) {
		c->used[P_MEMBER] -= t.units;
		delta(cpl, P_MEMBER, -(s32)t.units);
	}
}

u32 chip_units(const struct chip *c, u32 n)
{
	return c->there[n] - 1;
}

bool chip_has(const struct chip *c, u32 n)
{
	struct bank_key key;
	struct thing t;

	thing_of(n, &t);
	if (classes[t.cls].pool != P_EXACT)
		return c->there[n];
	key_of(&t, &key);
	return bank_find(&c->bank, &key, NULL);
}

void chip_restart(struct chip *c, bool cold)
{
	u32 i, k;

	for (i = 0; i < CHIP_LEASES; i++) {
		for (k = 0; k < POOLS && c->lease[i].id; k++)
			uncommit(c, k, c->lease[i].left[k]);
	}
	memset(c->lease, 0, sizeof(c->lease));
	if (!cold)
		return;
	bank_clear(&c->bank);
	memset(c->used, 0, sizeof(c->used));
	memset(c->there, 0, c->objects);
}
