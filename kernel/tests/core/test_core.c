// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the store, the drainer, admission, replay and a device's life.
 *
 * usage: test_core [-v] [ROUNDS [SEED]]
 */
#include "tests.h"

static u32 rounds = 1;
u64 base_seed = 1;
static const char *only;

/* ---- what is equal is not written ---- */

static void equal_puts_write_nothing(void)
{
	unsigned long before;
	u32 i;

	CHECK(!world_begin(base_seed));
	for (i = 0; i < 8; i++)
		CHECK(!world_put(thing(C_NEXTHOP, i), 0, 0));
	CHECK(world_settle());
	before = w.writes;
	for (i = 0; i < 8; i++)
		CHECK(!world_put(thing(C_NEXTHOP, i), i & 1 ? CLSW_PUT_MUST : 0, 0));
	CHECK(world_settle());
	CHECK(w.writes == before, "%lu writes for 8 equal puts", w.writes - before);
	for (i = 0; i < 8; i++)
		CHECK(!world_put(thing(C_NEXTHOP, i), 0, 1));
	CHECK(world_settle());
	CHECK(w.writes == before + 8, "%lu writes for 8 others", w.writes - before);
	world_agree();
	world_end();
}

/* ---- nearly full, everything late, everything changes its mind ---- */

static void random_life(u8 policy, u32 lose, u32 refuse)
{
	u32 i, k, n;

	for (i = 0; i < 12 * rounds; i++) {
		CHECK(!world_begin(base_seed * 1000 + i));
		world_policy(policy);
		w.answer_ns = 1000 + below(&w.rnd, 60000);
		w.lose_percent = lose;
		w.refuse_percent = refuse;
		for (k = 0; k < 3000; k++) {
			do {
				n = below(&w.rnd, THINGS);
			} while (!usable(n));
			switch (below(&w.rnd, 10)) {
			case 0 ... 3:
				world_put(n, CLSW_PUT_MUST, variant(n));
				break;
			case 4 ... 6:
				world_put(n, 0, variant(n));
				break;
			case 7 ... 8:
				world_drop(n);
				break;
			default:
				shim_sleep(below(&w.rnd, 3) * 40000);
			}
		}
		w.lose_percent = 0;
		w.refuse_percent = 0;
		CHECK(world_settle(), "seed %u: not settled", i);
		/* what failed has its turn again, and leases that are not used go back */
		for (k = 0; k < 40; k++)
			shim_sleep(NSEC_PER_SEC / 4);
		CHECK(world_settle(), "seed %u: not settled", i);
		world_agree();
		world_full();
		world_end();
	}
}

static void life_credit(void)
{
	random_life(RM_CREDIT, 0, 0);
}

static void life_prefetch(void)
{
	random_life(RM_PREFETCH, 0, 3);
}

static void life_lockstep(void)
{
	random_life(RM_LOCKSTEP, 0, 3);
}

static void life_model(void)
{
	random_life(RM_MODEL, 0, 3);
}

static void life_faults(void)
{
	random_life(RM_CREDIT, 1, 10);
}

/* ---- who is owed no veto waits for nothing ---- */

static void must_puts_do_not_wait(void)
{
	u64 worst = 0, all = 0;
	u32 i, k;

	for (i = 0; i < 40; i++) {
		CHECK(!world_begin(base_seed + i));
		/* lockstep writes before it answers, whoever asks */
		world_policy(RM_PREFETCH + i % (RM_POLICY_COUNT - RM_PREFETCH));
		w.answer_ns = 5 * NSEC_PER_MSEC;
		for (k = 0; k < 300; k++) {
			u32 n = below(&w.rnd, THINGS);
			u64 began = shim_now;

			if (!usable(n))
				continue;
			if (below(&w.rnd, 3) == 0)
				world_drop(n);
			else
				world_put(n, CLSW_PUT_MUST, 0);
			worst = max(worst, shim_now - began);
			all += shim_now - began;
			if (below(&w.rnd, 20) == 0)
				shim_sleep(NSEC_PER_MSEC);
		}
		w.answer_ns = 20000;
		CHECK(world_settle());
		world_end();
	}
	CHECK(worst < NSEC_PER_MSEC / 2, "one took %llu us with bottom halves off",
	      (unsigned long long)worst / 1000);
}

/* ---- what a put may wait, by the clock ---- */

static void a_second_is_a_second(void)
{
	u32 i, last = 0;
	u64 began;

	for (i = 0; i < 4; i++) {
		CHECK(!world_begin(base_seed + i));
		world_policy(i & 1 ? RM_LOCKSTEP : RM_CREDIT);
		for (last = 0; last < 14; last++)
			CHECK(!world_put(thing(C_NEXTHOP, last), 0, 0));
		for (last = 0; last < 38; last++)
			CHECK(!world_put(thing(C_ROUTE4, last), 0, 0));
		CHECK(world_settle());
		/* others are answered one by one for five seconds: never silent for long */
		world_policy(RM_CREDIT);
		w.answer_ns = 100 * NSEC_PER_MSEC;
		for (last = 0; last < 14; last++)
			CHECK(!world_put(thing(C_NEXTHOP, last), 0, 1));
		for (last = 0; last < 38; last++)
			CHECK(!world_put(thing(C_ROUTE4, last), 0, 1));
		/* and this processor is away more often than not */
		shim_look_ns = 7 * NSEC_PER_MSEC;
		world_policy(RM_LOCKSTEP);
		began = shim_now;
		CHECK(!world_put(thing(C_NEXTHOP, 14), 0, 0));
		CHECK(w.cd->count.deferred && w.obj[thing(C_NEXTHOP, 14)]->wanted);
		CHECK(shim_now - began < 1500 * NSEC_PER_MSEC, "waited for %llu ms",
		      (unsigned long long)(shim_now - began) / NSEC_PER_MSEC);
		CHECK(shim_now - began > 900 * NSEC_PER_MSEC, "gave up after %llu ms",
		      (unsigned long long)(shim_now - began) / NSEC_PER_MSEC);
		shim_look_ns = 200;
		w.answer_ns = 20000;
		CHECK(world_settle());
		CHECK(w.obj[thing(C_NEXTHOP, 14)]->state == CLSW_OBJ_SYNCED);
		world_agree();
		world_end();
	}
}

/* A CPU that was away longer than that has not looked: the answer is there when it comes back */
static void away_is_not_silent(void)
{
	CHECK(!world_begin(base_seed));
	world_policy(RM_LOCKSTEP);
	w.answer_ns = NSEC_PER_MSEC;
	shim_look_ns = 3 * NSEC_PER_SEC;
	CHECK(!world_put(thing(C_NEXTHOP, 0), 0, 0));
	shim_look_ns = 200;
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* ---- a reservation is for its list alone ---- */

static int put_held(u32 n, u16 hold)
{
	int err;

	clsw_lock(w.cd);
	w.cd->hold = hold;
	clsw_unlock(w.cd);
	err = world_put(n, 0, 0);
	clsw_lock(w.cd);
	CHECK(w.cd->hold == hold, "the put has lost its reservation");
	w.cd->hold = 0;
	clsw_unlock(w.cd);
	return err;
}

static void a_reservation_is_its_lists(void)
{
	struct tnd_lease_item item = {
		.cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 4,
	};
	char text[CLSW_TEXT] = "";
	u32 i, others;
	u16 hold = 0;

	CHECK(!world_begin(base_seed));
	world_policy(RM_LOCKSTEP);
	CHECK(!clsw_rm_hold(w.cd, &item, 1, &hold, text), "%s", text);
	/* the rest is taken, and three more wait for room that comes: what is reserved is none */
	others = w.chip.size[P_LPM4] - 4;
	for (i = 0; i < others; i++)
		CHECK(!world_put(thing(C_ROUTE4, i), 0, 0));
	for (; i < others + 3; i++) {
		CHECK(!world_put(thing(C_ROUTE4, i), CLSW_PUT_MUST, 0));
		CHECK(w.obj[thing(C_ROUTE4, i)]->state == CLSW_OBJ_FAILED);
	}
	/* each waits until it is written, and others have their turn meanwhile */
	for (; i < others + 7; i++)
		CHECK(!put_held(thing(C_ROUTE4, i), hold), "%u of 4 reserved routes found room",
		      i - others - 3);
	CHECK(world_settle());
	for (i = others; i < others + 3; i++)
		CHECK(w.obj[thing(C_ROUTE4, i)]->state == CLSW_OBJ_FAILED);
	clsw_lock(w.cd);
	rm_drop_hold(w.cd->rm, hold);
	clsw_unlock(w.cd);
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* ---- who did not fit is asked again, the longest waiting first ---- */

static void freed_room_is_given_away(void)
{
	u32 i, size;

	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	size = w.chip.size[P_LPM4];
	for (i = 0; i < size + 2; i++)
		CHECK(!world_put(thing(C_ROUTE4, i), CLSW_PUT_MUST, 0));
	CHECK(world_settle());
	CHECK(w.obj[thing(C_ROUTE4, size)]->state == CLSW_OBJ_FAILED);
	world_drop(thing(C_ROUTE4, 0));
	CHECK(world_settle());
	CHECK(w.obj[thing(C_ROUTE4, size)]->state == CLSW_OBJ_SYNCED,
	      "a slot is free, and nobody asked");
	CHECK(w.obj[thing(C_ROUTE4, size + 1)]->state == CLSW_OBJ_FAILED);
	world_agree();
	world_end();
}

/* ---- what is touched while its write is out is written once more ---- */

static void a_touch_is_not_lost(void)
{
	u32 n = thing(C_NEXTHOP, 0);
	unsigned long before;

	CHECK(!world_begin(base_seed));
	w.answer_ns = NSEC_PER_MSEC;
	before = w.writes;
	CHECK(!world_put(n, CLSW_PUT_MUST, 0));
	CHECK(w.obj[n]->in_flight);
	clsw_lock(w.cd);
	clsw_touch(w.cd, w.obj[n]);
	clsw_unlock(w.cd);
	CHECK(world_settle());
	CHECK(w.writes == before + 2, "%lu writes", w.writes - before);
	world_agree();
	world_end();
}

/* ---- a group that grows is asked for with the members that it shall have ---- */

/* Of the members' pool only @left are free; how many groups that took */
static u32 fill_members(u32 left)
{
	u32 i, rest = w.chip.size[P_MEMBER] - left, n;

	for (i = 0; rest; i++, rest -= n) {
		n = min(rest, CHIP_MEMBERS);
		CHECK(!world_put(thing(C_NHG, i), 0, n + 1));
	}
	CHECK(world_settle());
	return i;
}

static void growth_is_asked_for(void)
{
	u32 i, n;
	int err;

	for (i = 0; i < 4; i++) {
		CHECK(!world_begin(base_seed));
		/* counted, without leases */
		world_policy(RM_MODEL);
		n = thing(C_NHG, fill_members(2));
		if (i & 1) {
			/* its create is out, and comes to nothing */
			w.refuse_percent = 100;
			CHECK(!world_put(n, 0, 2 + 1));
		} else {
			/* admitted, and still in the queue */
			w.stuffed = true;
			CHECK(!world_put(n, 0, 1 + 1));
			w.stuffed = false;
		}
		CHECK(w.obj[n]->in_flight == (i & 1) && !w.obj[n]->written);
		if (i < 2) {
			err = world_put(n, 0, 3 + 1);
			CHECK(err == -ENOSPC, "three members where two are free: %d", err);
		} else {
			CHECK(!world_put(n, CLSW_PUT_MUST, 3 + 1));
		}
		w.refuse_percent = 0;
		for (err = 0; err < 8; err++)
			shim_sleep(NSEC_PER_SEC / 4);
		CHECK(world_settle());
		CHECK(i < 2 || w.obj[n]->state == CLSW_OBJ_FAILED);
		world_agree();
		CHECK(!world_put(n, 0, 2 + 1));
		CHECK(world_settle());
		CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED);
		world_agree();
		world_end();
	}
}

static void growth_ends_at_the_largest_group(void)
{
	u32 n = thing(C_NHG, 0);
	int err;

	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	CHECK(!world_put(n, 0, CHIP_MEMBERS + 1));
	CHECK(world_settle());
	err = world_put(n, 0, CHIP_MEMBERS + 2);
	CHECK(err == -ENOSPC, "%u members where a group has %u at most: %d", CHIP_MEMBERS + 1,
	      CHIP_MEMBERS, err);
	CHECK(world_settle());
	CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED);
	world_agree();
	world_end();
}

/* What a group gets by an update out of a lease has gone from the lease in the chip, too */
static void growth_comes_out_of_a_lease(void)
{
	u32 n = thing(C_NHG, 0);

	CHECK(!world_begin(base_seed));
	CHECK(!world_put(n, 0, 1 + 1));
	CHECK(world_settle());
	shim_sleep(NSEC_PER_SEC / 10);
	CHECK(w.chip.committed[P_MEMBER], "no lease");
	CHECK(!world_put(n, 0, 3 + 1));
	CHECK(world_settle());
	world_agree();
	world_end();
}

static void a_lost_update_gives_its_members_back(void)
{
	struct tnd_lease_item item = { .cls = TND_CLS_NHG };
	u32 n = thing(C_NHG, 0), i;
	char text[CLSW_TEXT];
	u16 hold;

	for (i = 0; i < 4; i++) {
		CHECK(!world_begin(base_seed));
		world_policy(i & 1 ? RM_CREDIT : RM_MODEL);
		CHECK(!world_put(n, 0, (i & 2 ? 2 : 6) + 1));
		CHECK(world_settle());
		w.lose_percent = 100;
		CHECK(!world_put(n, 0, (i & 2 ? 6 : 2) + 1));
		shim_sleep(CLSW_LOST_MS * NSEC_PER_MSEC + NSEC_PER_SEC);
		w.lose_percent = 0;
		CHECK(w.cd->count.lost);
		shim_sleep(4 * NSEC_PER_SEC);
		CHECK(world_settle());
		CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED, "way %u: state %u, reason %u", i,
		      w.obj[n]->state, w.obj[n]->reason.status);
		world_agree();
		/* nothing is out: all of them are too many, now and later */
		item.count = w.chip.size[P_NHG];
		CHECK(i & 1 || clsw_rm_hold(w.cd, &item, 1, &hold, text) == -ENOSPC,
		      "way %u: something of a group is still out", i);
		world_end();
	}
}

/* Of each class; what the chip learns and forgets by itself is counted otherwise */
static void a_lost_delete_gives_its_slots_back(void)
{
	u32 i, n;

	for (i = 0; i < CLASSES; i++) {
		n = thing(i, 4);
		CHECK(!world_begin(base_seed));
		CHECK(!world_put(n, 0, 0));
		CHECK(world_settle());
		w.lose_percent = 100;
		world_drop(n);
		shim_sleep(CLSW_LOST_MS * NSEC_PER_MSEC + NSEC_PER_SEC);
		w.lose_percent = 0;
		CHECK(w.cd->count.lost);
		shim_sleep(4 * NSEC_PER_SEC);
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

/* ---- what a route names comes first ---- */

/* Its delete is out, and it is wanted once more */
static void target_goes_and_comes(u32 group)
{
	w.answer_ns = 5 * NSEC_PER_MSEC;
	world_drop(group);
	CHECK(!world_put(group, CLSW_PUT_MUST, 3 + 1));
	CHECK(w.obj[group]->in_flight);
}

/* A lease that is out may be for what is left */
static void target_waits(u32 group)
{
	u32 i;

	for (i = 1; i < w.chip.size[P_NHG] - 1; i++)
		CHECK(!world_put(thing(C_NHG, i), 0, 1 + 1));
	CHECK(world_settle());
	shim_sleep(NSEC_PER_SEC / 10);
	w.answer_ns = 5 * NSEC_PER_MSEC;
	CHECK(!world_put(thing(C_NHG, i), 0, 1 + 1));
	shim_sleep(1000);
	CHECK(!world_put(group, CLSW_PUT_MUST, 1 + 1));
	CHECK(w.obj[group]->waits, "state %u", w.obj[group]->state);
}

static void a_route_traps_until_its_target_is_there(void)
{
	u32 old = thing(C_NEXTHOP, 1), group = thing(C_NHG, 0), route = thing(C_ROUTE4, 0), i;

	for (i = 0; i < 2; i++) {
		CHECK(!world_begin(base_seed));
		world_policy(i ? RM_CREDIT : RM_MODEL);
		CHECK(!world_put(old, 0, 0));
		w.target[route] = old;
		CHECK(!world_put(route, 0, 0));
		if (!i)
			CHECK(!world_put(group, 0, 3 + 1));
		CHECK(world_settle());
		CHECK(w.way[route] == old);
		if (i)
			target_waits(group);
		else
			target_goes_and_comes(group);
		w.target[route] = group;
		CHECK(!world_put(route, CLSW_PUT_MUST, 1));
		CHECK(world_settle());
		CHECK(!w.depends, "%lu writes before what they name", w.depends);
		CHECK(w.way[route] == group && !w.obj[route]->lacks_target);
		world_agree();
		world_end();
	}
}

static void a_route_traps_whose_target_came_to_nothing(void)
{
	u32 old = thing(C_NEXTHOP, 1), group = thing(C_NHG, 0), route = thing(C_ROUTE4, 0);

	CHECK(!world_begin(base_seed));
	CHECK(!world_put(old, 0, 0));
	w.target[route] = old;
	CHECK(!world_put(route, 0, 0));
	CHECK(world_settle());
	w.refuse_percent = 100;
	w.refuse_cls = TND_CLS_NHG;
	w.target[route] = group;
	CHECK(!world_put(group, CLSW_PUT_MUST, 3 + 1));
	CHECK(!world_put(route, CLSW_PUT_MUST, 1));
	CHECK(world_settle());
	CHECK(w.obj[group]->state == CLSW_OBJ_FAILED);
	CHECK(!w.way[route], "it goes on by the next hop of before");
	CHECK(w.obj[route]->lacks_target && w.obj[route]->state == CLSW_OBJ_SYNCED);
	/* it is there with the next chance, which comes by the clock */
	w.refuse_percent = 0;
	shim_sleep(NSEC_PER_SEC);
	CHECK(world_settle());
	CHECK(w.way[route] == group);
	world_agree();
	world_end();
}

/* ---- room is used when it comes ---- */

static void room_that_comes_is_used(void)
{
	u32 i, k, last;

	for (i = 0; i < 3; i++) {
		CHECK(!world_begin(base_seed));
		world_policy(i == 2 ? RM_FLAT : RM_MODEL);
		/* many that have failed before */
		for (k = 0; i == 1 && k < 64; k++) {
			CHECK(!world_put(thing(C_NEXTHOP, k), CLSW_PUT_MUST, 0));
			CHECK(!world_put(thing(C_ROUTE6, k), CLSW_PUT_MUST, 0));
		}
		for (last = 0; last < w.chip.size[P_LPM4] - 1 - (i == 2); last++)
			CHECK(!world_put(thing(C_ROUTE4, last), CLSW_PUT_MUST, 0));
		CHECK(world_settle());
		w.stuffed = true;
		CHECK(!world_put(thing(C_ROUTE4, last), CLSW_PUT_MUST, 0));
		CHECK(!world_put(thing(C_ROUTE4, last + 1), CLSW_PUT_MUST, 0));
		CHECK(w.obj[thing(C_ROUTE4, last + 1)]->state == CLSW_OBJ_FAILED);
		shim_sleep(NSEC_PER_SEC / 10);
		w.stuffed = false;
		switch (i) {
		case 0:	/* admitted, and never written */
			world_drop(thing(C_ROUTE4, last));
			break;
		case 1:	/* one that stands goes */
			world_drop(thing(C_ROUTE4, 0));
			break;
		default: /* as another policy would have it */
			clsw_lock(w.cd);
			CHECK(!rm_set_policy(w.cd->rm, RM_MODEL));
			clsw_room_came(w.cd);
			clsw_unlock(w.cd);
		}
		shim_sleep(NSEC_PER_SEC / 5);
		CHECK(w.obj[thing(C_ROUTE4, last + 1)]->state == CLSW_OBJ_SYNCED, "way %u", i);
		CHECK(world_settle());
		world_agree();
		world_full();
		world_end();
	}
}

/* ---- what the queues never take holds nobody up ---- */

static void too_long_blocks_nobody(void)
{
	u32 big = 0, i, small = 0;
	struct thing t;

	CHECK(!world_begin(base_seed));
	for (i = 0; i < THINGS / CLASSES; i++) {
		thing_of(thing(C_NHG, i), &t);
		if (t.units > 6 && !big)
			big = thing(C_NHG, i);
		if (t.units == 1 && !small)
			small = thing(C_NHG, i);
	}
	CHECK(big && small);
	w.too_long = sizeof(struct tnd_nhg) + 6 * sizeof(struct tnd_nhg_member);
	CHECK(!world_put(big, CLSW_PUT_MUST, 0));
	CHECK(!world_put(small, CLSW_PUT_MUST, 0));
	CHECK(!world_put(thing(C_ROUTE4, 0), CLSW_PUT_MUST, 0));
	CHECK(world_settle(), "held up");
	CHECK(w.obj[big]->state == CLSW_OBJ_FAILED && w.obj[small]->state == CLSW_OBJ_SYNCED &&
	      w.obj[thing(C_ROUTE4, 0)]->state == CLSW_OBJ_SYNCED);
	CHECK(w.obj[big]->reason.status == CLSW_ST_TOO_LONG);
	world_agree();
	world_drop(big);
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* ---- trouble before and after the device is there ---- */

static void trouble_while_it_registers(void)
{
	/* what comes after it fails: everything is unwound, and nothing of it may be looked at */
	CHECK(world_begin_with(base_seed, -ENOMEM) == -ENOMEM);
	CHECK(!w.cd->recover_work.pending, "recovery is due for what is unwound");
	clsw_trouble(w.cd, "late");
	CHECK(!w.cd->recover_work.pending, "recovery is due for what is unwound");
	world_free();

	/* it goes on: recovery waits until all is there */
	CHECK(!world_begin_with(base_seed, 0));
	CHECK(w.cd->recover_work.pending, "the trouble is forgotten");
	shim_run_work(&w.cd->recover_work);
	CHECK(clsw_up(w.cd) && w.cd->count.recoveries == 1);
	CHECK(!world_put(thing(C_NEXTHOP, 1), 0, 0));
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* ---- recovery under churn ---- */

static void churn(struct world *world)
{
	u32 i, n;

	for (i = 0; i < 6; i++) {
		do {
			n = below(&w.rnd, THINGS);
		} while (!usable(n));
		if (below(&w.rnd, 3))
			world_put(n, CLSW_PUT_MUST, variant(n));
		else
			world_drop(n);
	}
}

static void recovers_under_churn(void)
{
	u32 i, k;

	for (i = 0; i < 10 * rounds; i++) {
		u64 began;

		CHECK(!world_begin(base_seed * 31 + i));
		world_policy(i % RM_POLICY_COUNT);
		w.answer_ns = 300000;
		for (k = 0; k < 60; k++)
			churn(&w);
		CHECK(world_settle());
		/* somebody else's: to be swept */
		w.meanwhile = churn;
		w.alive = i & 1;
		began = shim_now;
		clsw_trouble(w.cd, "test");
		CHECK(w.cd->recover_work.pending);
		shim_run_work(&w.cd->recover_work);
		CHECK(clsw_up(w.cd) && !w.cd->resync && w.cd->count.recoveries == 1,
		      "state %u after %llu ms and %lu replays", w.cd->state,
		      (unsigned long long)(shim_now - began) / NSEC_PER_MSEC, w.resyncs);
		CHECK(w.resyncs == 1 && w.sweeps == 1, "%lu replays", w.resyncs);
		CHECK(shim_now - began < 5 * NSEC_PER_SEC, "%llu ms",
		      (unsigned long long)(shim_now - began) / NSEC_PER_MSEC);
		w.meanwhile = NULL;
		CHECK(world_settle());
		for (k = 0; k < 40; k++)
			shim_sleep(NSEC_PER_SEC / 4);
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "equal puts write nothing", equal_puts_write_nothing },
	{ "random life, credit", life_credit },
	{ "random life, prefetch", life_prefetch },
	{ "random life, lockstep", life_lockstep },
	{ "random life, predict-model", life_model },
	{ "random life, lost commands and failed writes", life_faults },
	{ "puts that must do not wait", must_puts_do_not_wait },
	{ "room that is given back is given away", freed_room_is_given_away },
	{ "a touch while a write is out", a_touch_is_not_lost },
	{ "all waits of a put: a second by the clock", a_second_is_a_second },
	{ "a processor that was away", away_is_not_silent },
	{ "what takes too long is deferred", what_takes_too_long_is_deferred },
	{ "silence ends the trust", silence_ends_the_trust },
	{ "a slow chip is not waited for", a_slow_chip_is_not_waited_for },
	{ "without warm attach", without_warm_attach },
	{ "a class that it lacks", a_class_that_it_lacks },
	{ "a slow chip takes reservations", a_slow_chip_takes_reservations },
	{ "too few router interfaces", too_few_router_interfaces },
	{ "a wrong lease is given up", a_wrong_lease_is_given_up },
	{ "a group on its way is put again", a_group_on_its_way_is_put_again },
	{ "a failed write is tried again", a_failed_write_is_tried_again },
	{ "a refused resync is no end", a_refused_resync_is_no_end },
	{ "a reservation is its list's", a_reservation_is_its_lists },
	{ "growth is asked for as it shall be", growth_is_asked_for },
	{ "growth ends at the largest group", growth_ends_at_the_largest_group },
	{ "growth comes out of a lease", growth_comes_out_of_a_lease },
	{ "a lost update gives its members back", a_lost_update_gives_its_members_back },
	{ "a lost delete gives its slots back", a_lost_delete_gives_its_slots_back },
	{ "a route traps until its target is there", a_route_traps_until_its_target_is_there },
	{ "a route traps whose target came to nothing",
	  a_route_traps_whose_target_came_to_nothing },
	{ "room that comes is used", room_that_comes_is_used },
	{ "a body that is too long blocks nobody", too_long_blocks_nobody },
	{ "a lost create is made anew", a_lost_create_is_made_anew },
	{ "a late answer is none", a_late_answer_is_none },
	{ "what is unknown needs room", unknown_needs_room },
	{ "a limit holds with a lease", a_limit_holds_with_a_lease },
	{ "what aged is made anew", what_aged_is_made_anew },
	{ "a retry does not wait", a_retry_does_not_wait },
	{ "who waits is told", who_waits_is_told },
	{ "a replay sweeps nothing that is wanted", a_replay_sweeps_nothing_that_is_wanted },
	{ "another version is updated", another_version_is_updated },
	{ "degraded until all is there", degraded_until_all_is_there },
	{ "a domain goes after its interface", a_domain_goes_after_its_interface },
	{ "a lost lease is that lease", a_lost_lease_is_that_lease },
	{ "a reservation ends with a signal", a_reservation_ends_with_a_signal },
	{ "a reservation without an answer says so", a_reservation_without_answer_says_so },
	{ "a reservation that can not be says why", a_reservation_that_can_not_be_says_why },
	{ "one broken object asks for nobody", one_broken_object_asks_for_nobody },
	{ "packets that are too small", packets_that_are_too_small },
	{ "a fault without room waits for room", a_fault_without_room_waits_for_room },
	{ "a chip that comes back with less", a_chip_that_comes_back_with_less },
	{ "a replay hides what is missing", a_replay_hides_what_is_missing },
	{ "who claims a prefix", who_claims_a_prefix },
	{ "trouble while a device registers", trouble_while_it_registers },
	{ "recovery under churn", recovers_under_churn },
};

int main(int argc, char **argv)
{
	unsigned int i;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1 && !strcmp(argv[1], "-v")) {
		shim_verbose = true;
		argc--;
		argv++;
	}
	if (argc > 1)
		rounds = max(atoi(argv[1]), 1);
	if (argc > 2)
		base_seed = strtoull(argv[2], NULL, 0);
	only = getenv("ONLY");
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (only && !strstr(tests[i].name, only))
			continue;
		tests[i].run();
		printf("ok: %s\n", tests[i].name);
	}
	return 0;
}
