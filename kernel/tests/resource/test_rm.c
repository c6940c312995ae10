// SPDX-License-Identifier: GPL-2.0
/*
 * Property tests of the resource manager.
 *
 * usage: test_rm [ROUNDS [SEED]]
 */
#include "world.h"

static int passed;
static u64 base_seed = 1;
static u32 rounds = 1;

static void done(const char *name)
{
	printf("ok: %s\n", name);
	fflush(stdout);
	passed++;
}

/* Random life: identity at every step, no promise broken, no refusal in vain */
static void random_life(bool learning, bool geometry, bool faults, const char *name)
{
	unsigned long admitted = 0, refused = 0, full = 0;
	struct world w;
	struct rm_stats s;
	u32 i, k;

	for (i = 0; i < 40 * rounds; i++) {
		world_init(&w, base_seed * 1000 + i, i % RM_POLICY_COUNT, learning, geometry,
			   faults);
		for (k = 0; k < 4000; k++)
			world_step(&w);
		world_quiesce(&w);
		world_agree(&w);
		rm_stats(w.rm, &s);
		CHECK(faults || !s.mispredicted, "seed %u: %llu", i,
		      (unsigned long long)s.mispredicted);
		CHECK(faults || !s.mismatch, "seed %u: %llu", i, (unsigned long long)s.mismatch);
		admitted += w.admitted;
		refused += w.refused;
		full += w.exact_full;
		world_fini(&w);
	}
	/* a test that never fills a table tests nothing */
	CHECK(admitted > 1000 && refused > 1000 && (faults || full > 10), "%lu %lu %lu", admitted,
	      refused, full);
	done(name);
}

/* Every policy but predict-flat fills the chip to its last placeable slot */
static void fill(u8 policy, bool learning, bool geometry)
{
	struct world w;
	u32 i, n, room[CLASSES] = { 0 };
	struct rm_pool_state p;
	struct tnd_cpl cpl;
	char name[100];

	for (i = 0; i < 10 * rounds; i++) {
		world_init(&w, base_seed * 77 + i, policy, learning, geometry, false);
		for (n = 0; n < 3 * OBJECTS; n++) {
			u32 at = pick(&w, OBJECTS);

			if (w.obj[at].state == ABSENT)
				world_admit(&w, at, 0);
			if (pick(&w, 3) == 0) {
				struct rm_ask ask;

				while (rm_need_refill(w.rm, &ask)) {
					struct tnd_cpl answer;

					chip_lease(&w.chip, &ask, &answer);
					rm_lease_done(w.rm, &ask, &answer);
				}
			}
			if (pick(&w, 20) == 0)
				world_quiesce(&w);
		}
		/* a refused object is asked for once more, when nothing is out */
		for (n = 0; n < OBJECTS; n++) {
			world_quiesce(&w);
			if (w.obj[n].state == ABSENT)
				world_admit(&w, n, 0);
		}
		world_quiesce(&w);
		for (n = 0; n < OBJECTS; n++) {
			if (w.obj[n].state == THERE)
				continue;
			chip_create(&w.chip, n, 0, &cpl);
			if (policy == RM_FLAT)
				room[n % CLASSES] += !cpl.status;
			else
				CHECK(cpl.status, "%s: object %u fits still",
				      rm_policy_name(policy), n);
		}
		rm_pool_state(w.rm, P_LPM4, &p);
		CHECK(policy == RM_FLAT ? p.used == 30 : p.used == 40, "%u", p.used);
		world_fini(&w);
	}
	CHECK(policy != RM_FLAT || (room[C_ROUTE4] && room[C_MAC]));
	snprintf(name, sizeof(name), "%s fills %s%s%s", rm_policy_name(policy),
		 policy == RM_FLAT ? "to its limits" : "to the last placeable slot",
		 learning ? ", device learns" : "", geometry ? "" : ", geometry not told");
	done(name);
}

/* A full table: replace costs nothing, delete and add in one go works */
static void full_table(u8 policy)
{
	struct world w;
	u32 n, first = OBJECTS;
	char name[60];

	world_init(&w, 5, policy, false, true, false);
	for (n = C_ROUTE4; n < OBJECTS; n += CLASSES) {
		if (world_admit(&w, n, 0))
			first = min(first, n);
		else
			break;
	}
	CHECK(n < OBJECTS);
	world_quiesce(&w);
	CHECK(!world_admit(&w, n, 0));
	world_delete(&w, first);
	/* the delete is out, not done: the create behind it is admitted */
	CHECK(world_admit(&w, n, 0));
	world_quiesce(&w);
	CHECK(w.obj[n].state == THERE && w.obj[first].state == ABSENT);
	world_agree(&w);
	snprintf(name, sizeof(name), "%s: delete and add at a full table", rm_policy_name(policy));
	done(name);
	world_fini(&w);
}

/* All of a list or nothing */
static void all_or_nothing(u8 policy)
{
	struct rm_req reqs[24];
	struct rm_ticket tickets[24] = { 0 };
	struct rm_pool_state before[POOLS], after;
	struct rm_verdict v;
	struct tnd_cpl cpl;
	struct world w;
	enum rm_result r = RM_WAIT;
	struct thing t;
	char name[60];
	u32 i, k;

	world_init(&w, 9, policy, false, true, false);
	/* 16 next hops, then one too many */
	for (i = 0; i < 20; i++) {
		thing_of(i < 3 ? C_ROUTE4 + CLASSES * i : C_NEXTHOP + CLASSES * i, &t);
		reqs[i] = t.req;
	}
	for (i = 0; i < POOLS; i++)
		rm_pool_state(w.rm, i, &before[i]);
	for (k = 0; k < RM_ADMIT_ROUNDS; k++) {
		r = rm_admit_all(w.rm, reqs, 20, tickets, &v);
		world_check(&w);
		if (r == RM_QUERY) {
			chip_lease(&w.chip, &v.ask, &cpl);
			rm_lease_done(w.rm, &v.ask, &cpl);
		} else if (r == RM_WAIT) {
			world_quiesce(&w);
		} else {
			break;
		}
	}
	CHECK(r == RM_FULL && v.pool == P_NEXTHOP, "%s: %u", rm_policy_name(policy), r);
	for (i = 0; i < 20; i++)
		CHECK(!rm_ticket_open(&tickets[i]));
	for (i = 0; i < POOLS; i++) {
		rm_pool_state(w.rm, i, &after);
		CHECK(after.used == before[i].used && !after.in_flight);
	}
	for (k = 0; k < RM_ADMIT_ROUNDS; k++) {
		r = rm_admit_all(w.rm, reqs, 12, tickets, &v);
		if (r == RM_QUERY) {
			chip_lease(&w.chip, &v.ask, &cpl);
			rm_lease_done(w.rm, &v.ask, &cpl);
		} else if (r == RM_WAIT) {
			world_quiesce(&w);
		} else {
			break;
		}
	}
	CHECK(r == RM_ADMITTED, "%s: %u", rm_policy_name(policy), r);
	for (i = 0; i < 12; i++)
		rm_cancel(w.rm, &reqs[i], &tickets[i]);
	world_quiesce(&w);
	world_agree(&w);
	world_fini(&w);
	snprintf(name, sizeof(name), "%s: a list is admitted as a whole", rm_policy_name(policy));
	done(name);
}

/* A device that has few leases at a time: not a reason to refuse, or to stop asking */
static void few_leases(u8 policy)
{
	struct rm_params params = { .bucket = 2, .low_water = 1, .refill = 2, .flat_percent = 75 };
	struct rm_stats s;
	struct world w;
	char name[60];
	u32 n, got = 0;

	world_init(&w, 11, policy, false, true, false);
	CHECK(!rm_set_params(w.rm, &params));
	w.chip.max_leases = 3;
	for (n = C_ROUTE4; n < OBJECTS; n += CLASSES)
		got += world_admit(&w, n, 0);
	world_quiesce(&w);
	world_agree(&w);
	rm_stats(w.rm, &s);
	CHECK(got == 40, "%u", got);
	CHECK(s.by[RM_BY_LEASE] >= 30, "%llu", (unsigned long long)s.by[RM_BY_LEASE]);
	snprintf(name, sizeof(name), "%s with three leases at a time", rm_policy_name(policy));
	done(name);
	world_fini(&w);
}

/* A reservation for a batch serves the batch alone */
static void holds(void)
{
	struct tnd_lease_item items[2] = {
		{ .cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 30 },
		{ .cls = TND_CLS_NEXTHOP, .count = 4 },
	};
	struct rm_ticket tickets[41] = { 0 };
	struct rm_verdict v;
	struct tnd_cpl cpl;
	struct rm_ask ask;
	struct world w;
	struct thing t;
	u32 i, n = 0;

	world_init(&w, 3, RM_MODEL, false, true, false);
	items[0].count = 41;
	CHECK(rm_ask_hold(w.rm, items, 2, &ask) == -ENOSPC);
	items[0].count = 30;
	CHECK(!rm_ask_hold(w.rm, items, 2, &ask));
	chip_lease(&w.chip, &ask, &cpl);
	CHECK(!cpl.status);
	rm_lease_done(w.rm, &ask, &cpl);
	/* others get what is left over */
	for (i = 0; i < 12; i++) {
		thing_of(C_ROUTE4 + CLASSES * i, &t);
		n += rm_admit(w.rm, &t.req, &tickets[i], &v) == RM_ADMITTED;
	}
	CHECK(n == 10, "%u", n);
	for (i = 12; i < 41; i++) {
		thing_of(C_ROUTE4 + CLASSES * i, &t);
		t.req.hold = ask.hold;
		CHECK(rm_admit(w.rm, &t.req, &tickets[i], &v) == RM_ADMITTED, "%u", i);
		CHECK(tickets[i].backing == RM_BY_LEASE);
	}
	world_check(&w);
	for (i = 0; i < 41; i++) {
		thing_of(C_ROUTE4 + CLASSES * i, &t);
		rm_cancel(w.rm, &t.req, &tickets[i]);
	}
	rm_drop_hold(w.rm, ask.hold);
	world_quiesce(&w);
	world_agree(&w);
	CHECK(!rm_fini(w.rm));
	done("a reservation serves its batch alone, and is given back");
	world_fini(&w);
}

/* Floors, caps, and the reserve of connected prefixes */
static void limits(void)
{
	struct rm_pool_state p;
	struct world w;
	u32 n, got;

	world_init(&w, 4, RM_MODEL, false, true, false);
	CHECK(rm_set_limits(w.rm, TND_CLS_NEIGH, TND_AF_INET6, 100, U32_MAX) == -ENOSPC);
	CHECK(rm_set_limits(w.rm, 63, 0, 0, 1) == -EINVAL);
	CHECK(!rm_set_limits(w.rm, TND_CLS_NEIGH, TND_AF_INET6, 20, U32_MAX));
	CHECK(!rm_set_limits(w.rm, TND_CLS_NEIGH, TND_AF_INET, 0, 11));
	for (n = C_HOST4, got = 0; n < OBJECTS; n += CLASSES)
		got += world_admit(&w, n, 0);
	CHECK(got == 11, "%u", got);
	for (n = C_MAC, got = 0; n < OBJECTS; n += CLASSES)
		got += world_admit(&w, n, 0);
	/* 84 slots, 11 of them hosts, 40 kept for IPv6 hosts */
	CHECK(got == 84 - 11 - 40, "%u", got);
	for (n = C_HOST6, got = 0; n < OBJECTS; n += CLASSES)
		got += world_admit(&w, n, 0);
	CHECK(got >= 16, "%u", got);
	CHECK(!rm_set_reserve(w.rm, TND_CLS_ROUTE, TND_AF_INET, 6));
	for (n = C_ROUTE4, got = 0; n < OBJECTS / 2; n += CLASSES)
		got += world_admit(&w, n, 0);
	world_quiesce(&w);
	rm_pool_state(w.rm, P_LPM4, &p);
	CHECK(p.used == min(got, 34U), "%u", p.used);
	for (n = OBJECTS / 2 / CLASSES * CLASSES + C_ROUTE4, got = 0; n < OBJECTS; n += CLASSES)
		got += world_admit(&w, n, 0);
	CHECK(world_admit(&w, n - 2 * CLASSES, RM_REQ_RESERVE));
	world_quiesce(&w);
	rm_pool_state(w.rm, P_LPM4, &p);
	CHECK(p.used == 35, "%u", p.used);
	done("floors, caps and the reserve");
	world_fini(&w);
}

static void bucket_shrinks(void)
{
	struct rm_params params = { .bucket = 16, .low_water = 8, .refill = 8, .flat_percent = 75 };
	struct rm_class_state c;
	struct world w;
	u32 n, last = U32_MAX, shrunk = 0;
	struct rm_ask ask;
	struct tnd_cpl cpl;

	world_init(&w, 6, RM_CREDIT, false, true, false);
	CHECK(!rm_set_params(w.rm, &params));
	for (n = C_ROUTE4; n < OBJECTS; n += CLASSES) {
		if (!world_admit(&w, n, 0))
			break;
		while (rm_need_refill(w.rm, &ask)) {
			chip_lease(&w.chip, &ask, &cpl);
			rm_lease_done(w.rm, &ask, &cpl);
		}
		rm_class_state(w.rm, C_ROUTE4, &c);
		CHECK(c.bucket <= last && c.credit <= 16, "%u", c.bucket);
		shrunk += c.bucket < last;
		last = c.bucket;
	}
	CHECK(last == 1 && shrunk >= 4, "%u %u", last, shrunk);
	done("the bucket shrinks as the chip fills");
	world_fini(&w);
}

static void texts(void)
{
	struct rm_verdict v = { .result = RM_FULL, .pool = P_LPM4, .needed = 1, .size = 65536 };
	struct tnd_cpl cpl = { .status = TND_ST_BUCKET_FULL, .table = P_EXACT, .needed = 2,
			       .free = 7, .size = 84 };
	char text[RM_TEXT];
	struct world w;

	world_init(&w, 1, RM_MODEL, false, true, false);
	rm_full_text(w.rm, &v, text, sizeof(text));
	CHECK(!strcmp(text, "IPv4 LPM full (needs 1, free 0 of 65536)"), "%s", text);
	CHECK(rm_cpl_text(w.rm, &cpl, text, sizeof(text)) == (int)strlen(text));
	CHECK(!strcmp(text, "exact-match bucket full (needs 2, free 7 of 84)"), "%s", text);
	v.capped = true;
	v.row = C_HOST6;
	v.size = U32_MAX;
	v.needed = U32_MAX;
	v.free = U32_MAX;
	CHECK(rm_full_text(w.rm, &v, text, sizeof(text)) < RM_TEXT);
	CHECK(!strncmp(text, "IPv6 host limit reached (needs 4294967295", 41), "%s", text);
	cpl.status = TND_ST_FAULT;
	CHECK(!rm_cpl_text(w.rm, &cpl, text, sizeof(text)));
	done("refusals as text");
	world_fini(&w);
}

/* Numbers that a device could not have are refused, not believed */
static void bad_setups(void)
{
	struct tnd_pool pools[POOLS];
	struct tnd_class_cost costs[CLASSES];
	struct tnd_geometry g;
	struct rm_setup s = {
		.pools = pools, .pool_count = POOLS, .costs = costs, .cost_count = CLASSES,
		.geometry = &g, .params = RM_DEFAULT_PARAMS,
	};
	char why[RM_TEXT];
	struct chip c;
	u32 i;

	chip_init(&c, OBJECTS, false);
	for (i = 0; i < 14; i++) {
		chip_snapshot(&c, pools);
		chip_costs(&c, costs);
		g = c.geometry;
		s.pool_count = POOLS;
		why[0] = 0;
		switch (i) {
		case 0: pools[2].pool = 1; break;
		case 1: pools[2].pool = 99; break;
		case 2: pools[2].free++; break;
		case 3: costs[3].pool = POOLS; break;
		case 4: costs[3].cost = 0; break;
		case 5: costs[3].cls = 999; break;
		case 6: s.pool_count = 0; break;
		case 7: g.banks = 9; break;
		case 8: g.slots_per_bucket = 5; break;
		case 9: g.buckets_per_bank = U32_MAX; break;
		case 10: g.width_host6 = 1; break;
		case 11: g.hash = 2; break;
		case 12: g.stash = 11; break;
		default: g.exact_pool = POOLS; break;
		}
		CHECK(!rm_size(&s, why) && why[0], "%u", i);
	}
	chip_snapshot(&c, pools);
	g = c.geometry;
	s.pool_count = POOLS;
	CHECK(rm_size(&s, why));
	chip_fini(&c);
	done("setups that can't be are refused");
}

int main(int argc, char **argv)
{
	u32 i;

	if (argc > 1)
		rounds = atoi(argv[1]);
	if (argc > 2)
		base_seed = strtoull(argv[2], NULL, 0);
	texts();
	bad_setups();
	limits();
	holds();
	bucket_shrinks();
	few_leases(RM_LOCKSTEP);
	few_leases(RM_CREDIT);
	for (i = 0; i < RM_POLICY_COUNT; i++) {
		fill(i, false, true);
		if (i != RM_FLAT) {
			full_table(i);
			all_or_nothing(i);
			fill(i, true, true);
			fill(i, false, false);
		}
	}
	random_life(false, true, false, "random life");
	random_life(true, true, false, "random life, device learns");
	random_life(false, false, false, "random life, geometry not told");
	random_life(true, true, true, "random life, time-outs and lost leases");
	printf("%d tests\n", passed);
	return 0;
}
