// SPDX-License-Identifier: GPL-2.0
/*
 * What waits for what, whose answer an answer is, and what a chip must be able to do:
 * tests of the driver's core, see world.h.
 */
#include "tests.h"
#include "l3/claims.h"

/* ---- a DELETE behind that of what refers to it ---- */

/* Its write is still out when it is dropped, so its own DELETE comes after that */
void a_domain_goes_after_its_interface(void)
{
	struct clsw_obj *domain, *rif;
	u32 i;

	for (i = 0; i < 3; i++) {
		CHECK(!world_begin(base_seed));
		world_policy(RM_MODEL);
		domain = world_put_domain();
		rif = world_put_rif(1);
		CHECK(world_settle() && w.has_domain && w.has_rif);
		w.answer_ns = NSEC_PER_MSEC;
		rif = world_put_rif(2);
		CHECK(rif->in_flight, "it was not on its way");
		world_drop_obj(rif);
		if (i == 1) {
			/* wanted again, and not again: it counts once */
			rif = world_put_rif(3);
			world_drop_obj(rif);
		}
		if (i == 2)
			w.lose_percent = 100;
		world_drop_obj(domain);
		if (i == 2) {
			/* what nobody has answered is not waited for */
			shim_sleep(CLSW_LOST_MS * NSEC_PER_MSEC + NSEC_PER_SEC / 2);
			w.lose_percent = 0;
		}
		CHECK(world_settle());
		CHECK(!w.in_use, "the domain's DELETE came before the interface's");
		shim_sleep(NSEC_PER_SEC);
		CHECK(world_settle());
		CHECK(!w.has_domain && !w.has_rif);
		world_agree();
		/* the next ones are waited for by nobody */
		world_put_domain();
		CHECK(world_settle() && w.has_domain);
		world_end();
	}
}

/* ---- leases ---- */

/* The slot of one that was lost is another's by the time that it counts as lost */
void a_lost_lease_is_that_lease(void)
{
	const struct tnd_lease_item item = {
		.cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 4,
	};
	char text[CLSW_TEXT] = "";
	struct rm_stats stats;
	u16 hold = 0;
	u64 began;

	CHECK(!world_begin_without(base_seed, CLSW_CAN_BUSY_WAIT, 0));
	began = shim_now;
	w.lose_percent = 100;
	CHECK(clsw_rm_hold(w.cd, &item, 1, &hold, text) == -EIO);
	w.lose_percent = 0;
	/* its RELEASE is answered, and its slot is free */
	shim_sleep(NSEC_PER_SEC / 2);
	shim_sleep(began + CLSW_LOST_MS * NSEC_PER_MSEC - NSEC_PER_SEC / 10 - shim_now);
	w.answer_ns = NSEC_PER_SEC * 3 / 4;
	CHECK(!clsw_rm_hold(w.cd, &item, 1, &hold, text), "%s", text);
	CHECK(w.cd->count.lost == 1);
	clsw_lock(w.cd);
	rm_stats(w.cd->rm, &stats);
	CHECK(stats.unknown == 1, "%llu leases count as lost, one was",
	      (unsigned long long)stats.unknown);
	clsw_unlock(w.cd);
	w.answer_ns = 20000;
	CHECK(world_settle());
	world_agree();
	world_end();
}

static void signals(struct world *world)
{
	shim_signal = true;
}

void a_reservation_ends_with_a_signal(void)
{
	struct tnd_lease_item item = {
		.cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 4,
	};
	char text[CLSW_TEXT] = "";
	u16 hold = 0;
	u64 began;

	CHECK(!world_begin_without(base_seed, CLSW_CAN_BUSY_WAIT, 0));
	w.answer_ns = NSEC_PER_SEC / 2;
	w.meanwhile = signals;
	began = shim_now;
	CHECK(clsw_rm_hold(w.cd, &item, 1, &hold, text) == -EINTR);
	CHECK(shim_now - began < NSEC_PER_SEC / 10, "it slept on for %llu ms",
	      (unsigned long long)(shim_now - began) / NSEC_PER_MSEC);
	w.meanwhile = NULL;
	shim_signal = false;
	w.answer_ns = 20000;
	/* what the chip has granted meanwhile comes back */
	shim_sleep(2 * NSEC_PER_SEC);
	CHECK(world_settle());
	item.count = w.chip.size[P_LPM4];
	CHECK(!clsw_rm_hold(w.cd, &item, 1, &hold, text), "%s", text);
	world_end();
}

void a_reservation_without_answer_says_so(void)
{
	const struct tnd_lease_item item = {
		.cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 4,
	};
	char text[CLSW_TEXT];
	u16 hold = 0;
	u32 i;

	for (i = 0; i < 2; i++) {
		CHECK(!world_begin_without(base_seed, i ? CLSW_CAN_BUSY_WAIT : 0, 0));
		text[0] = 0;
		w.lose_percent = 100;
		CHECK(clsw_rm_hold(w.cd, &item, 1, &hold, text) == -EIO);
		CHECK(strstr(text, "does not answer"), "\"%s\"", text);
		w.lose_percent = 0;
		shim_sleep(4 * NSEC_PER_SEC);
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

static int second_err;
static char second_text[CLSW_TEXT];

static void reserves_too(struct world *world)
{
	const struct tnd_lease_item item = {
		.cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 4,
	};
	u16 hold;

	if (!world->cd->holding)
		return;
	world->meanwhile = NULL;
	second_err = clsw_rm_hold(world->cd, &item, 1, &hold, second_text);
}

void a_reservation_that_can_not_be_says_why(void)
{
	struct tnd_lease_item item = {
		.cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 4,
	};
	char text[CLSW_TEXT] = "";
	u16 hold = 0;
	int err;

	CHECK(!world_begin_without(base_seed, CLSW_CAN_BUSY_WAIT, 0));
	second_text[0] = 0;
	w.answer_ns = 3 * NSEC_PER_MSEC;
	w.meanwhile = reserves_too;
	CHECK(!clsw_rm_hold(w.cd, &item, 1, &hold, text), "%s", text);
	CHECK(second_err == -EBUSY && strstr(second_text, "another reservation"), "%d, \"%s\"",
	      second_err, second_text);
	/* what another had is on its way back */
	CHECK(world_settle());
	clsw_lock(w.cd);
	rm_drop_hold(w.cd->rm, hold);
	clsw_unlock(w.cd);
	clsw_drain_kick(w.cd);
	shim_sleep(NSEC_PER_MSEC);
	item.count = w.chip.size[P_LPM4];
	err = clsw_rm_hold(w.cd, &item, 1, &hold, text);
	CHECK(err == -EBUSY && strstr(text, "given back"), "%d, \"%s\"", err, text);
	CHECK(world_settle());
	/* of a class that isn't leased */
	item.cls = TND_CLS_PORT;
	item.family = 0;
	CHECK(clsw_rm_hold(w.cd, &item, 1, &hold, text) == -EINVAL);
	CHECK(strstr(text, "can't be reserved"), "\"%s\"", text);
	world_agree();
	world_end();
}

/* ---- what fails for another reason than room ---- */

void one_broken_object_asks_for_nobody(void)
{
	struct rm_stats before, after;
	u32 i, size, asked;

	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	size = w.chip.size[P_NEXTHOP];
	for (i = 0; i < size + 20 && thing(C_NEXTHOP, i) < THINGS; i++)
		CHECK(!world_put(thing(C_NEXTHOP, i), CLSW_PUT_MUST, 0));
	CHECK(world_settle());
	CHECK(w.obj[thing(C_NEXTHOP, size)]->state == CLSW_OBJ_FAILED);
	w.broken = thing(C_ROUTE4, 1);
	CHECK(!world_put(w.broken, CLSW_PUT_MUST, 0));
	CHECK(world_settle());
	clsw_lock(w.cd);
	rm_stats(w.cd->rm, &before);
	clsw_unlock(w.cd);
	shim_sleep(4 * NSEC_PER_SEC);
	clsw_lock(w.cd);
	rm_stats(w.cd->rm, &after);
	clsw_unlock(w.cd);
	asked = after.refused - before.refused;
	CHECK(w.obj[w.broken]->state == CLSW_OBJ_FAILED);
	CHECK(!asked, "%u times somebody was asked who has no room", asked);
	CHECK(after.admitted - before.admitted >= 8, "it was not tried again");
	i = w.broken;
	w.broken = 0;
	shim_sleep(NSEC_PER_SEC);
	CHECK(world_settle() && w.obj[i]->state == CLSW_OBJ_SYNCED);
	world_agree();
	world_end();
}

/* It has failed to be written, and then there is no room: it waits for room as others do */
void a_fault_without_room_waits_for_room(void)
{
	u32 i, size, broken = thing(C_NEXTHOP, 1);
	struct rm_stats before, after;

	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	size = w.chip.size[P_NEXTHOP];
	w.broken = broken;
	CHECK(!world_put(broken, CLSW_PUT_MUST, 0));
	CHECK(world_settle());
	CHECK(clsw_status_is_fault(w.obj[broken]->reason.status));
	for (i = 2; i < size + 20 && thing(C_NEXTHOP, i) < THINGS; i++)
		CHECK(!world_put(thing(C_NEXTHOP, i), CLSW_PUT_MUST, 0));
	CHECK(world_settle());
	w.broken = 0;
	shim_sleep(NSEC_PER_SEC);
	CHECK(w.obj[broken]->state == CLSW_OBJ_FAILED);
	CHECK(w.obj[broken]->reason.status == TND_ST_TABLE_FULL);
	clsw_lock(w.cd);
	rm_stats(w.cd->rm, &before);
	clsw_unlock(w.cd);
	shim_sleep(4 * NSEC_PER_SEC);
	clsw_lock(w.cd);
	rm_stats(w.cd->rm, &after);
	clsw_unlock(w.cd);
	CHECK(after.refused == before.refused, "%u times it was asked, and no room had come",
	      (unsigned int)(after.refused - before.refused));
	world_agree();
	world_end();
}

/* ---- what a chip must be able to do ---- */

/* The kernel's first packet has 1,500 bytes */
void packets_that_are_too_small(void)
{
	CHECK(world_begin_mtu(base_seed, 1499) == -EINVAL);
	world_free();
	CHECK(!world_begin_mtu(base_seed, 1500));
	CHECK(w.cd->caps.mtu == 1500);
	world_end();
}

void a_chip_that_comes_back_with_less(void)
{
	u32 i;

	for (i = 0; i < 4; i++) {
		CHECK(!world_begin_mtu(base_seed, i == 3 ? 2000 : 0));
		CHECK(!world_put(thing(C_NEXTHOP, 1), 0, 0));
		CHECK(world_settle());
		w.alive = false;
		if (i == 0)
			w.cannot = CLSW_CAN_LEARN;
		else if (i == 1)
			w.cannot_hold = BIT(TND_CLS_NHG);
		else if (i == 2)
			w.mtu = 2000;
		else	/* more than before is as before */
			w.rif = CLSW_MAX_RIF;
		if (i == 3)
			w.mtu = CLSW_MTU_MAX;
		clsw_trouble(w.cd, "test");
		shim_run_work(&w.cd->recover_work);
		CHECK(clsw_up(w.cd) == (i == 3), "way %u: state %u", i, w.cd->state);
		CHECK(i == 3 || !w.resyncs, "way %u: it was replayed to", i);
		/* it won't have more when it is asked once more */
		CHECK(w.attaches == 2, "way %u: attached %u times", i, w.attaches - 1);
		if (i < 3) {
			/* it is heard of again: one more chance, and by hand another */
			clsw_trouble(w.cd, "test");
			shim_run_work(&w.cd->recover_work);
			CHECK(clsw_recover(w.cd) && w.attaches == 4, "way %u: attached %u times", i,
			      w.attaches - 1);
		}
		w.cannot = 0;
		w.cannot_hold = 0;
		w.mtu = 0;
		if (i < 3)
			CHECK(!clsw_recover(w.cd), "way %u: it has all of it again", i);
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

/* ---- a replay into a chip that begins empty ---- */

static void count_degraded(struct world *world)
{
	CHECK(!world->plain || !world->resync, "the chip forwards by half of what it shall have");
}

void a_replay_hides_what_is_missing(void)
{
	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	CHECK(!world_put(thing(C_ROUTE4, 0), 0, 0));
	world_put_domain();
	world_put_rif(1);
	CHECK(world_settle());
	CHECK(w.plain == 2 && !w.degraded, "%u degraded, %u not", w.degraded, w.plain);
	chip_restart(&w.chip, true);
	w.has_domain = false;
	w.has_rif = false;
	w.plain = 0;
	w.alive = false;
	w.answer_ns = 3 * NSEC_PER_MSEC;
	w.meanwhile = count_degraded;
	clsw_trouble(w.cd, "test");
	shim_run_work(&w.cd->recover_work);
	CHECK(clsw_up(w.cd) && w.degraded == 2, "%u degraded", w.degraded);
	w.meanwhile = NULL;
	CHECK(world_settle());
	CHECK(w.degraded == 2 && w.plain == 2, "%u degraded, %u not", w.degraded, w.plain);
	world_agree();
	/* one that kept its tables goes on forwarding */
	w.alive = false;
	clsw_trouble(w.cd, "test");
	shim_run_work(&w.cd->recover_work);
	CHECK(world_settle());
	CHECK(w.degraded == 2, "a chip that has all of it is degraded");
	world_end();
}

/* ---- l3/claims.c ---- */

void who_claims_a_prefix(void)
{
	u32 i;

	for (i = 0; i < 16; i++) {
		const struct l3_claims c = {
			.own = i & 1, .below_local = i & 2, .by_source = i & 4, .by_dscp = i & 8,
		};
		u8 reason = 0, why = l3_claims_trap(&c, &reason);

		CHECK((why != L3_WHY_NONE) == (i >= 2), "%u: %u", i, why);
		if (why == L3_WHY_NONE)
			continue;
		CHECK(reason == (i & 3 ? TND_TRAP_LOCAL : TND_TRAP_ROUTE),
		      "%u: what claims to be from an own address is forwarded", i);
		CHECK(why == (i & 2 ? L3_WHY_SHADOWED : i & 4 ? L3_WHY_SOURCE : L3_WHY_DSCP));
	}
}
