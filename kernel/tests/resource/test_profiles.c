// SPDX-License-Identifier: GPL-2.0
/*
 * Fill, drain and fill again on chips of real size: no object that was admitted
 * fails later, none is refused that would fit, whatever the policy.
 *
 * usage: test_profiles [--quick] [PROFILE...]   default: all but the largest;
 *	--quick: large chips under two policies only
 */
#include <time.h>
#include "chip.h"

/* The numbers are made from profiles/: the header names more than is needed here */
struct null_profile {
	const char *name;
	u32 banks, buckets_per_bank, slots_per_bucket, stash, max_moves;
	u8 width_mac, width_host4, width_host6;
	u32 lpm4, lpm4_cost, lpm6, lpm6_cost;
	u32 rif, vrf, vlan, vlan_member, nexthop, nhg, nhg_member, nhg_max_members;
	u32 write_ns, query_ns;
	u16 ports, cage, lanes;
	u32 breakout, speed_mbps;
	const char *vendor, *product, *part_number, *serial;
	u8 base_mac[6];
	u16 mac_count;
};

#include "../../backend/null/profiles.gen.h"

#define LAG	300	/* writes that are out */
#define ENOUGH	2000	/* refusals of a class in a row: it is full */

struct item {
	struct rm_ticket ticket;
	u8 there;
};

struct fill {
	struct chip chip;
	struct rm *rm;
	struct item *item;
	u32 objects;
	u32 out[LAG];		/* admitted, not written yet; any order */
	u32 out_count;
	u32 there, refused, checked;
	struct rnd rnd;
};

static void write_one(struct fill *f, u32 at)
{
	u32 n = f->out[at];
	struct item *it = &f->item[n];
	struct tnd_cpl cpl;
	struct thing t;

	f->out[at] = f->out[--f->out_count];
	thing_of(n, &t);
	chip_create(&f->chip, n, rm_ticket_lease(f->rm, &it->ticket), &cpl);
	if (!rm_settle(f->rm, &t.req, &it->ticket, &cpl, NULL)) {
		it->there = 1;
		f->there++;
	}
}

static void leases(struct fill *f)
{
	struct rm_ask ask;
	struct tnd_cpl cpl;
	u32 id;

	while (rm_next_release(f->rm, &id)) {
		chip_release(&f->chip, id, &cpl);
		rm_release_lease_done(f->rm, id, &cpl);
	}
	while (rm_need_refill(f->rm, &ask)) {
		chip_lease(&f->chip, &ask, &cpl);
		rm_lease_done(f->rm, &ask, &cpl);
	}
}

static void flush(struct fill *f)
{
	while (f->out_count)
		write_one(f, 0);
	leases(f);
}

static enum rm_result admit(struct fill *f, u32 n)
{
	struct rm_verdict v;
	struct tnd_cpl cpl;
	struct thing t;
	u32 round;

	thing_of(n, &t);
	for (round = 0; round < RM_ADMIT_ROUNDS; round++) {
		rm_admit(f->rm, &t.req, &f->item[n].ticket, &v);
		if (v.result == RM_QUERY) {
			chip_lease(&f->chip, &v.ask, &cpl);
			rm_lease_done(f->rm, &v.ask, &cpl);
		} else if (v.result == RM_WAIT) {
			flush(f);
		} else {
			break;
		}
	}
	if (v.result != RM_ADMITTED)
		return v.result;
	f->out[f->out_count++] = n;
	if (v.sync)
		write_one(f, f->out_count - 1);
	while (f->out_count > below(&f->rnd, LAG - 1))
		write_one(f, below(&f->rnd, f->out_count));
	return RM_ADMITTED;
}

/* Refused: it must not fit now either, with nothing out */
static void check_refused(struct fill *f, u32 n)
{
	struct rm_stats st;
	struct tnd_cpl cpl;

	flush(f);
	if (admit(f, n) == RM_ADMITTED)
		return;
	rm_stats(f->rm, &st);
	leases(f);
	chip_create(&f->chip, n, 0, &cpl);
	CHECK(cpl.status, "%s: object %u (class %u) was refused and fits",
	      rm_policy_name(rm_policy(f->rm)), n, n % CLASSES);
	f->checked++;
}

static void agree(struct fill *f)
{
	struct tnd_pool dev[POOLS];
	struct rm_pool_state p;
	struct rm_stats st;
	u32 i;

	flush(f);
	rm_stats(f->rm, &st);
	CHECK(!st.mispredicted && !st.mismatch && !rm_check(f->rm), "%llu %llu",
	      (unsigned long long)st.mispredicted, (unsigned long long)st.mismatch);
	chip_snapshot(&f->chip, dev);
	for (i = 0; i < POOLS; i++) {
		rm_pool_state(f->rm, i, &p);
		CHECK(p.used == dev[i].used && p.committed == dev[i].committed && !p.in_flight,
		      "%s: used %u/%u committed %u/%u", p.name, p.used, dev[i].used, p.committed,
		      dev[i].committed);
	}
}

static void fill(struct fill *f)
{
	u32 start = below(&f->rnd, f->objects), i, row[CLASSES] = { 0 };
	enum rm_result r;

	for (i = 0; i < f->objects; i++) {
		/* each once, in an order of no meaning; objects is a multiple of no large prime */
		u32 n = (start + (u64)i * 1000003) % f->objects;

		if (f->item[n].there || rm_ticket_open(&f->item[n].ticket) ||
		    row[n % CLASSES] == ENOUGH)
			continue;
		r = admit(f, n);
		CHECK(r == RM_ADMITTED || r == RM_FULL);
		row[n % CLASSES] = r == RM_FULL ? row[n % CLASSES] + 1 : 0;
		if (r == RM_FULL && f->refused++ % 101 == 0)
			check_refused(f, n);
		if (i % 97 == 0)
			leases(f);
	}
	agree(f);
}

static void drain(struct fill *f, u32 percent)
{
	struct tnd_cpl cpl;
	struct thing t;
	u32 n;

	for (n = 0; n < f->objects; n++) {
		if (!f->item[n].there || below(&f->rnd, 100) >= percent)
			continue;
		thing_of(n, &t);
		rm_release_begin(f->rm, &t.req);
		chip_delete(&f->chip, n, &cpl);
		rm_release_done(f->rm, &t.req, &cpl);
		f->item[n].there = 0;
		f->there--;
	}
	agree(f);
}

static void one(const struct null_profile *p, u8 policy)
{
	struct rm_params params = RM_DEFAULT_PARAMS;
	struct fill f = { .rnd.s = policy + 1 };
	struct timespec a, b;
	u32 most, full, i;

	clock_gettime(CLOCK_MONOTONIC, &a);
	f.chip.geometry.banks = p->banks;
	f.chip.geometry.buckets_per_bank = p->buckets_per_bank;
	f.chip.geometry.slots_per_bucket = p->slots_per_bucket;
	f.chip.geometry.stash = p->stash;
	f.chip.geometry.max_moves = p->max_moves;
	f.chip.geometry.width_mac = p->width_mac;
	f.chip.geometry.width_host4 = p->width_host4;
	f.chip.geometry.width_host6 = p->width_host6;
	f.chip.geometry.nhg_max_members = p->nhg_max_members;
	f.chip.size[P_LPM4] = p->lpm4;
	f.chip.size[P_LPM6] = p->lpm6;
	f.chip.size[P_NEXTHOP] = p->nexthop;
	f.chip.size[P_NHG] = p->nhg;
	f.chip.size[P_MEMBER] = p->nhg_member;
	for (i = 0; i < CLASSES; i++)
		f.chip.cost[i] = 1;
	f.chip.cost[C_ROUTE4] = p->lpm4_cost;
	f.chip.cost[C_ROUTE6] = p->lpm6_cost;
	/* a tenth more than the largest pools take, of each class */
	most = max(p->lpm4 / p->lpm4_cost,
		   (p->banks * p->buckets_per_bank * p->slots_per_bucket + p->stash) / 3);
	f.objects = (most / 10 * 11 + 16) * CLASSES;
	chip_make(&f.chip, f.objects);
	f.rm = chip_rm(&f.chip, policy, false, true);
	if (most < 1000) {
		params.bucket = 8;
		params.refill = 4;
		params.low_water = 4;
	}
	CHECK(!rm_set_params(f.rm, &params));
	f.item = calloc(f.objects, sizeof(*f.item));
	CHECK(f.item);

	fill(&f);
	full = f.there;
	drain(&f, 40);
	CHECK(!rm_set_policy(f.rm, (policy + 1) % RM_POLICY_COUNT) && !rm_set_policy(f.rm, policy));
	fill(&f);
	CHECK(f.there > full / 100 * 98, "%u then %u", full, f.there);
	drain(&f, 100);
	CHECK(!f.there && !f.chip.bank.used);
	CHECK(f.checked > 0 || f.objects < 2000);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("ok: %s under %s: %u objects; %u refused, %u of them checked (%.1f s)\n",
	       p->name, rm_policy_name(policy), full, f.refused, f.checked,
	       b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9);
	fflush(stdout);
	free(f.item);
	free(f.rm);
	chip_fini(&f.chip);
}

int main(int argc, char **argv)
{
	bool quick = argc > 1 && !strcmp(argv[1], "--quick");
	u32 i, k, policy;

	for (i = 0; i < ARRAY_SIZE(null_profiles); i++) {
		bool wanted = argc < 2 && null_profiles[i].lpm4 < 1000000;

		for (k = 1; k < (u32)argc; k++)
			wanted |= !strcmp(argv[k], null_profiles[i].name);
		for (policy = 0; wanted && policy < RM_POLICY_COUNT; policy++) {
			if (policy != RM_FLAT &&
			    (!quick || null_profiles[i].lpm4 < 1000 || policy == RM_CREDIT ||
			     policy == RM_MODEL))
				one(&null_profiles[i], policy);
		}
	}
	return 0;
}
