// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of chips that are slow, can do less, fail, lose commands or come back. test_core.c
 * has their list.
 */
#include "tests.h"

/*
 * By the clock a put waits for no longer than the parameter says, whatever it waits
 * for; then what it wants is decided on later, and its watcher hears of it
 */
void what_takes_too_long_is_deferred(void)
{
	u32 i, n, last, told;
	u64 began;

	*shim_param_wait_ms = 20;
	for (i = 0; i < 5; i++) {
		CHECK(!world_begin(base_seed + i));
		world_policy(i == 0 ? RM_LOCKSTEP : i < 3 ? RM_CREDIT : RM_MODEL);
		n = thing(C_NEXTHOP, 15);
		switch (i) {
		case 0:	/* the answer to its own write */
		case 1:	/* a lease */
			break;
		case 2:	/* a lease that is given back, of those who have more than they need */
			for (last = 0; last < 6; last++)
				CHECK(!world_put(thing(C_NHG, last), CLSW_PUT_MUST, 1 + 1));
			CHECK(world_settle());
			n = thing(C_NHG, last);
			break;
		default: /* the members of what is out, or waits in the store */
			n = thing(C_NHG, 0);
			w.answer_ns = 80 * NSEC_PER_MSEC;
			w.stuffed = i == 4;
			CHECK(!world_put(n, 0, 1 + 1));
		}
		w.answer_ns = 80 * NSEC_PER_MSEC;
		told = w.told;
		began = shim_now;
		CHECK(!world_put(n, 0, i > 2 ? 3 + 1 : 0), "way %u is refused", i);
		CHECK(shim_now - began < 40 * NSEC_PER_MSEC, "way %u: %llu ms", i,
		      (unsigned long long)(shim_now - began) / NSEC_PER_MSEC);
		CHECK(w.obj[n]->state != CLSW_OBJ_SYNCED && w.told == told);
		w.stuffed = false;
		w.answer_ns = 20000;
		CHECK(world_settle());
		CHECK(w.told > told, "way %u: nobody hears of it", i);
		CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED, "way %u: state %u", i, w.obj[n]->state);
		world_agree();
		world_end();
	}
	*shim_param_wait_ms = 1000;
}

/* A chip that says nothing is waited for once, not once for each put; any answer mends that */
void silence_ends_the_trust(void)
{
	u64 began, first, rest;
	u32 i;

	CHECK(!world_begin(base_seed));
	world_policy(RM_LOCKSTEP);
	w.answer_ns = 700 * NSEC_PER_MSEC;
	began = shim_now;
	CHECK(world_put(thing(C_NEXTHOP, 0), 0, 0) == -EIO);
	first = shim_now - began;
	CHECK(first > 90 * NSEC_PER_MSEC && first < 150 * NSEC_PER_MSEC, "%llu us",
	      (unsigned long long)first / 1000);
	began = shim_now;
	for (i = 1; i < 11; i++)
		CHECK(world_put(thing(C_NEXTHOP, i), 0, 0) == -EIO);
	rest = shim_now - began;
	CHECK(rest < first, "ten more took %llu ms", (unsigned long long)rest / NSEC_PER_MSEC);
	w.answer_ns = 20000;
	CHECK(world_settle());
	shim_sleep(2 * NSEC_PER_SEC);
	CHECK(!w.cd->mistrusted, "it has answered");
	w.answer_ns = 50 * NSEC_PER_MSEC;
	CHECK(!world_put(thing(C_NEXTHOP, 12), 0, 0), "it is silent for a moment, no more");
	w.answer_ns = 20000;
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* ---- chips that can do less ---- */

/* Nobody looks for an answer in a busy loop: whatever would be waited for is deferred */
void a_slow_chip_is_not_waited_for(void)
{
	u32 i, k;

	for (i = 0; i < 3; i++) {
		CHECK(!world_begin_without(base_seed + i, CLSW_CAN_BUSY_WAIT, 0));
		world_policy(i ? RM_CREDIT : RM_PREFETCH);
		w.answer_ns = 3 * NSEC_PER_MSEC;
		for (k = 0; k < 200; k++) {
			u32 n = below(&w.rnd, THINGS);
			u64 began = shim_now;

			if (!usable(n))
				continue;
			if (below(&w.rnd, 3) == 0)
				world_drop(n);
			else
				world_put(n, 0, variant(n));
			CHECK(shim_now - began < NSEC_PER_MSEC / 2, "a put took %llu us",
			      (unsigned long long)(shim_now - began) / 1000);
			if (below(&w.rnd, 10) == 0)
				shim_sleep(NSEC_PER_MSEC);
		}
		w.answer_ns = 20000;
		CHECK(world_settle());
		for (k = 0; k < 40; k++)
			shim_sleep(NSEC_PER_SEC / 4);
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

static void recovers(struct world *world)
{
	world->meanwhile = NULL;
	world->busy = false;
	clsw_trouble(world->cd, "tried");
	shim_run_work(&world->cd->recover_work);
	world->busy = true;
}

/* Who reserves may sleep, and so hears what the chip says, whenever it does */
void a_slow_chip_takes_reservations(void)
{
	struct tnd_lease_item item = {
		.cls = TND_CLS_ROUTE, .family = TND_AF_INET, .count = 4,
	};
	char text[CLSW_TEXT] = "";
	u16 hold = 0, other = 0;

	CHECK(!world_begin_without(base_seed, CLSW_CAN_BUSY_WAIT, 0));
	w.answer_ns = 3 * NSEC_PER_MSEC;
	CHECK(!clsw_rm_hold(w.cd, &item, 1, &hold, text), "%s", text);
	CHECK(hold);
	item.count = w.chip.size[P_LPM4];
	CHECK(clsw_rm_hold(w.cd, &item, 1, &other, text) == -ENOSPC);
	CHECK(text[0]);
	clsw_lock(w.cd);
	rm_drop_hold(w.cd->rm, hold);
	clsw_unlock(w.cd);
	CHECK(world_settle());
	item.count = 4;
	/* the slot is free then, and whoever asks next has it: that answer is not this one's */
	w.meanwhile = recovers;
	CHECK(clsw_rm_hold(w.cd, &item, 1, &hold, text) == -EAGAIN);
	CHECK(world_settle());
	w.lose_percent = 100;
	CHECK(clsw_rm_hold(w.cd, &item, 1, &hold, text) == -EIO);
	w.lose_percent = 0;
	shim_sleep(4 * NSEC_PER_SEC);
	CHECK(world_settle());
	world_agree();
	/* all that was asked for has come back */
	item.count = w.chip.size[P_LPM4] - 4;
	CHECK(!clsw_rm_hold(w.cd, &item, 1, &hold, text), "%s", text);
	world_end();
}

/* Those on domains have numbers behind 1024 */
void too_few_router_interfaces(void)
{
	CHECK(world_begin_rifs(base_seed, CLSW_FID_RIFS + CLSW_FIDS - 1) == -EINVAL);
	world_free();
	CHECK(!world_begin_rifs(base_seed, CLSW_FID_RIFS + CLSW_FIDS));
	world_end();
}

/* It is emptied, and everything is written: nothing to begin, nothing to sweep */
void without_warm_attach(void)
{
	u32 n;

	CHECK(!world_begin_without(base_seed, CLSW_CAN_ATTACH_WARM, 0));
	for (n = 0; n < 6; n++)
		CHECK(!world_put(thing(C_NEXTHOP, n), 0, 0));
	CHECK(world_settle());
	w.alive = false;
	clsw_trouble(w.cd, "test");
	world_drop(thing(C_NEXTHOP, 3));
	shim_run_work(&w.cd->recover_work);
	CHECK(clsw_up(w.cd) && w.cd->count.recoveries == 1 && !w.cd->resync, "state %u",
	      w.cd->state);
	CHECK(!w.resyncs && !w.sweeps, "%lu, %lu", w.resyncs, w.sweeps);
	CHECK(world_settle());
	world_agree();
	world_end();
}

void a_class_that_it_lacks(void)
{
	u32 group = thing(C_NHG, 0), route = thing(C_ROUTE4, 0);
	unsigned long before;

	CHECK(!world_begin_without(base_seed, 0, BIT(TND_CLS_NHG)));
	before = w.writes;
	CHECK(world_put(group, 0, 2 + 1) == -EOPNOTSUPP);
	CHECK(!world_put(group, CLSW_PUT_MUST, 2 + 1));
	CHECK(world_settle());
	CHECK(w.obj[group]->state == CLSW_OBJ_FAILED &&
	      w.obj[group]->reason.status == TND_ST_UNSUPPORTED && w.writes == before);
	/* what names it traps */
	w.target[route] = group;
	CHECK(!world_put(route, 0, 0));
	shim_sleep(NSEC_PER_SEC);
	CHECK(world_settle());
	CHECK(w.obj[route]->state == CLSW_OBJ_SYNCED && w.obj[route]->lacks_target &&
	      !w.way[route]);
	CHECK(w.writes == before + 1, "%lu writes", w.writes - before);
	world_agree();
	/* nor in a replay, which asks for no room */
	w.cls_writes[TND_CLS_NHG] = 0;
	clsw_trouble(w.cd, "a test");
	CHECK(world_settle());
	CHECK(w.sweeps && !w.cls_writes[TND_CLS_NHG], "%lu groups were posted",
	      w.cls_writes[TND_CLS_NHG]);
	CHECK(w.obj[group]->state == CLSW_OBJ_FAILED &&
	      w.obj[group]->reason.status == TND_ST_UNSUPPORTED, "status %u",
	      w.obj[group]->reason.status);
	world_end();
	/* without these there is no switch, and no router */
	CHECK(world_begin_without(base_seed, 0, BIT(TND_CLS_FDB)) == -EINVAL);
	world_free();
	CHECK(world_begin_without(base_seed, 0, BIT(TND_CLS_ROUTE)) == -EINVAL);
	world_free();
}

/* ---- what says nothing of room is tried again without any that is freed ---- */

void a_wrong_lease_is_given_up(void)
{
	u32 i, n;

	for (i = 0; i < 3; i++) {
		CHECK(!world_begin(base_seed + i));
		n = thing(i ? C_NHG : C_NEXTHOP, 0);
		CHECK(!world_put(thing(C_NEXTHOP, 1), 0, 0));
		CHECK(!world_put(thing(C_NHG, 1), 0, 1 + 1));
		if (i == 2)	/* members that an update brings */
			CHECK(!world_put(n, 0, 1 + 1));
		CHECK(world_settle());
		shim_sleep(NSEC_PER_SEC / 10);
		w.wrong_leases = 1;
		CHECK(!world_put(n, 0, i ? 3 + 1 : 0));
		CHECK(world_settle());
		CHECK(!w.wrong_leases, "no lease was used");
		CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED, "way %u: state %u, status %u", i,
		      w.obj[n]->state, w.obj[n]->reason.status);
		world_agree();
		world_end();
	}
}

/* A second veto put of a group that is on its way, and must be written again */
void a_group_on_its_way_is_put_again(void)
{
	u32 n = thing(C_NHG, 0);

	CHECK(!world_begin(base_seed));
	CHECK(!world_put(thing(C_NEXTHOP, 1), 0, 0));
	CHECK(!world_put(thing(C_NHG, 1), 0, 1 + 1));
	CHECK(world_settle());
	shim_sleep(NSEC_PER_SEC / 10);
	w.answer_ns = NSEC_PER_MSEC;
	w.wrong_leases = 1;
	CHECK(!world_put(n, 0, 1 + 1));
	CHECK(w.obj[n]->in_flight, "it was not on its way");
	CHECK(!world_put(n, 0, 3 + 1));
	CHECK(!w.wrong_leases && !w.cd->mistrusted, "the chip that answered is called silent");
	w.answer_ns = 20000;
	CHECK(world_settle());
	CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED && w.obj[n]->hw_units == 3);
	world_agree();
	world_end();
}

void a_failed_write_is_tried_again(void)
{
	static const u16 statuses[] = { TND_ST_FAULT, TND_ST_LEASE };
	u32 n = thing(C_NEXTHOP, 0), i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++) {
		CHECK(!world_begin(base_seed));
		w.refuse_percent = 100;
		w.refuse_status = statuses[i];
		CHECK(!world_put(n, CLSW_PUT_MUST, 0));
		CHECK(world_settle());
		CHECK(w.obj[n]->state == CLSW_OBJ_FAILED && w.writes < 20, "%lu writes", w.writes);
		w.refuse_percent = 0;
		shim_sleep(NSEC_PER_SEC);
		CHECK(world_settle());
		CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED, "nothing was freed, and nobody asked");
		world_agree();
		world_end();
	}
}

/* ---- a replay has ended when the chip has swept, and said so ---- */

void a_refused_resync_is_no_end(void)
{
	u32 i, n;

	for (i = 0; i < 3; i++) {
		CHECK(!world_begin(base_seed));
		for (n = 0; n < 6; n++)
			CHECK(!world_put(thing(C_NEXTHOP, n), 0, 0));
		CHECK(world_settle());
		/* one goes while nobody can tell the chip */
		w.alive = false;
		clsw_trouble(w.cd, "test");
		world_drop(thing(C_NEXTHOP, 3));
		w.begin_errors = i == 0 ? 2 : i == 2 ? U32_MAX : 0;
		w.end_errors = i == 1 ? 2 : 0;
		shim_run_work(&w.cd->recover_work);
		if (i == 2) {
			CHECK(!clsw_up(w.cd), "a chip that never begins is taken for replayed");
			w.begin_errors = 0;
			CHECK(!clsw_recover(w.cd));
		}
		CHECK(clsw_up(w.cd) && w.cd->count.recoveries == 1, "way %u: state %u", i,
		      w.cd->state);
		CHECK(w.sweeps == 1 && (i == 2 || w.resyncs == 3), "%lu sweeps, %lu replays",
		      w.sweeps, w.resyncs);
		/* trouble on the way is over with it */
		shim_run_work(&w.cd->recover_work);
		CHECK(w.sweeps == 1, "it was replayed once more");
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

/* ---- what a lost command may have done ---- */

static void lose_what(void (*what)(u32 n), u32 n)
{
	w.lose_percent = 100;
	what(n);
	shim_sleep(CLSW_LOST_MS * NSEC_PER_MSEC + NSEC_PER_SEC / 2);
	w.lose_percent = 0;
	CHECK(w.cd->count.lost);
}

static void put_it(u32 n)
{
	CHECK(!world_put(n, CLSW_PUT_MUST, 0));
}

static void put_another(u32 n)
{
	CHECK(!world_put(n, CLSW_PUT_MUST, 1));
}

/* With a lease that is still held, and without: the chip has taken what nobody was told of */
void a_lost_create_is_made_anew(void)
{
	u32 i, n;

	for (i = 0; i < 2 * CLASSES; i++) {
		n = thing(i / 2, 4);
		CHECK(!world_begin(base_seed));
		world_policy(i & 1 ? RM_CREDIT : RM_MODEL);
		CHECK(!world_put(thing(i / 2, 8), 0, 0));
		CHECK(world_settle());
		shim_sleep(NSEC_PER_SEC / 10);
		lose_what(put_it, n);
		CHECK(w.obj[n]->unknown || !w.cd->lost_burst);
		for (;;) {
			shim_sleep(NSEC_PER_SEC / 50);
			if (w.obj[n]->state == CLSW_OBJ_SYNCED && !w.cd->in_flight)
				break;
		}
		CHECK(w.deletes, "what it may have done was not undone");
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

/* Of the answer to a command that was given up nothing follows for the next one */
void a_late_answer_is_none(void)
{
	u32 n = thing(C_NEXTHOP, 0), i;

	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	w.answer_ns = 3 * NSEC_PER_SEC;
	CHECK(!world_put(n, CLSW_PUT_MUST, 0));
	shim_sleep(CLSW_LOST_MS * NSEC_PER_MSEC + NSEC_PER_SEC / 2);
	CHECK(w.cd->count.lost == 1);
	w.answer_ns = NSEC_PER_SEC;
	for (i = 0; i < 100; i++) {
		shim_sleep(NSEC_PER_SEC / 20);
		CHECK(w.obj[n]->state != CLSW_OBJ_SYNCED || chip_has(&w.chip, n),
		      "it counts as there, and is not");
	}
	w.answer_ns = 20000;
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* What may be gone from the chip needs room when it is wanted again, and has it then */
void unknown_needs_room(void)
{
	u32 n = thing(C_ROUTE4, 0), i, size;

	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	size = w.chip.size[P_LPM4];
	for (i = 0; i < size; i++)
		CHECK(!world_put(thing(C_ROUTE4, i), 0, 0));
	CHECK(world_settle());
	/* its update is lost, and the delete that follows is not out yet */
	w.lose_percent = 100;
	put_another(n);
	w.stuffed = true;
	shim_sleep(CLSW_LOST_MS * NSEC_PER_MSEC + NSEC_PER_SEC / 2);
	w.lose_percent = 0;
	CHECK(w.obj[n]->unknown && !w.obj[n]->in_flight);
	world_drop(n);
	CHECK(!world_put(n, CLSW_PUT_MUST, 0));
	CHECK(!world_put(thing(C_ROUTE4, size), CLSW_PUT_MUST, 0));
	w.stuffed = false;
	CHECK(world_settle());
	CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED, "who came later has its room");
	world_agree();
	world_end();
}

/* With a lease in hand, too, an operator's limit is one */
void a_limit_holds_with_a_lease(void)
{
	u32 i;

	CHECK(!world_begin(base_seed));
	for (i = 0; i < 3; i++) {
		CHECK(!world_put(thing(C_ROUTE4, i), 0, 0));
		CHECK(world_settle());
		shim_sleep(NSEC_PER_SEC / 10);
	}
	CHECK(w.chip.committed[P_LPM4] > 1, "no lease");
	clsw_lock(w.cd);
	CHECK(!rm_set_limits(w.cd->rm, TND_CLS_ROUTE, TND_AF_INET, 0, 3));
	clsw_unlock(w.cd);
	CHECK(world_put(thing(C_ROUTE4, 3), 0, 0) == -ENOSPC, "one more than the limit");
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* ---- what the chip has done by itself ---- */

void what_aged_is_made_anew(void)
{
	u32 n = thing(C_NEXTHOP, 0);
	struct tnd_cpl cpl;

	CHECK(!world_begin(base_seed));
	CHECK(!world_put(n, 0, 0));
	CHECK(world_settle());
	chip_delete(&w.chip, n, &cpl);
	CHECK(!world_put(n, 0, 1));
	CHECK(world_settle(), "it is updated again and again");
	CHECK(chip_has(&w.chip, n) && w.obj[n]->state == CLSW_OBJ_SYNCED);
	/* and once more, when it is to go: a chip that says so has none */
	w.strict = true;
	chip_delete(&w.chip, n, &cpl);
	world_drop(n);
	CHECK(world_settle());
	CHECK(!w.cd->object_count, "it is deleted for ever");
	world_end();
}

/* ---- who has failed is asked in the drainer's turn, which waits for nobody ---- */

void a_retry_does_not_wait(void)
{
	u32 n = thing(C_NEXTHOP, 0);

	CHECK(!world_begin(base_seed));
	world_policy(RM_MODEL);
	w.refuse_percent = 100;
	CHECK(!world_put(n, 0, 0));
	CHECK(world_settle());
	CHECK(w.obj[n]->state == CLSW_OBJ_FAILED);
	/* each needs a lease now, and one takes its time */
	world_policy(RM_LOCKSTEP);
	w.refuse_percent = 0;
	w.answer_ns = 50 * NSEC_PER_MSEC;
	w.turn_ns = 0;
	shim_sleep(NSEC_PER_SEC);
	CHECK(w.turn_ns < 5 * NSEC_PER_MSEC, "the drainer waited for %llu us",
	      (unsigned long long)w.turn_ns / 1000);
	w.answer_ns = 20000;
	CHECK(world_settle());
	world_agree();
	world_end();
}

/* Who waited for room, and got none, hears of it */
void who_waits_is_told(void)
{
	u32 i, k, n, waited = 0;
	bool waits[24];

	for (k = 0; k < 8; k++) {
		CHECK(!world_begin(base_seed + k));
		world_policy(RM_CREDIT);
		CHECK(!world_put(thing(C_NEXTHOP, 0), CLSW_PUT_MUST, 0));
		CHECK(world_settle());
		w.answer_ns = (1 + k) * NSEC_PER_MSEC;
		for (i = 1; i < ARRAY_SIZE(waits); i++) {
			n = thing(C_NEXTHOP, i);
			CHECK(!world_put(n, CLSW_PUT_MUST, 0));
			waits[i] = w.obj[n]->waits;
			w.told_of[n] = 0;
			if (i % 4 == k % 4)
				shim_sleep(100000);
		}
		CHECK(world_settle());
		for (i = 1; i < ARRAY_SIZE(waits); i++) {
			n = thing(C_NEXTHOP, i);
			waited += waits[i] && w.obj[n]->state == CLSW_OBJ_FAILED;
			CHECK(!waits[i] || w.told_of[n], "%u waited, and heard nothing", i);
		}
		world_agree();
		world_end();
	}
	CHECK(waited, "nobody waited for room that never came");
}

/* ---- a replay ---- */

void a_replay_sweeps_nothing_that_is_wanted(void)
{
	u32 i, n, all = 0;

	for (i = 0; i < 2; i++) {
		CHECK(!world_begin(base_seed));
		for (n = 0; n < 38; n++)
			CHECK(!world_put(thing(C_ROUTE4, n), 0, 0));
		for (n = 0; n < 14; n++)
			CHECK(!world_put(thing(C_NEXTHOP, n), 0, 0));
		for (n = 0; n < 20; n++)
			CHECK(!world_put(thing(C_MAC, n), CLSW_PUT_MUST, 0));
		CHECK(world_settle());
		if (i) {
			/* one is unknown: whatever it was, the attach has ended that */
			lose_what(put_another, thing(C_NEXTHOP, 3));
			CHECK(w.obj[thing(C_NEXTHOP, 3)]->unknown);
			all = w.deletes;
		}
		w.alive = false;
		clsw_trouble(w.cd, "test");
		shim_run_work(&w.cd->recover_work);
		CHECK(clsw_up(w.cd) && w.resyncs == 1 && w.sweeps == 1);
		CHECK(!w.swept, "%lu that are wanted were swept", w.swept);
		CHECK(!i || w.deletes == all, "%lu that are wanted were deleted", w.deletes - all);
		CHECK(world_settle());
		world_agree();
		world_end();
	}
}

/* It has been changed while the chip was away, which has another version of it */
void another_version_is_updated(void)
{
	u32 n = thing(C_NHG, 0);

	CHECK(!world_begin(base_seed));
	CHECK(!world_put(n, 0, 3 + 1));
	CHECK(world_settle());
	w.alive = false;
	clsw_trouble(w.cd, "test");
	CHECK(!world_put(n, 0, 5 + 1));
	shim_run_work(&w.cd->recover_work);
	CHECK(clsw_up(w.cd) && w.resyncs == 1 && !w.swept);
	CHECK(world_settle());
	CHECK(w.obj[n]->state == CLSW_OBJ_SYNCED && chip_units(&w.chip, n) == 5);
	world_agree();
	world_end();
}

/* Degraded is a chip that begins empty, and while it is filled */
void degraded_until_all_is_there(void)
{
	CHECK(!world_begin(base_seed));
	CHECK(!world_put(thing(C_ROUTE4, 0), 0, 0));
	CHECK(world_settle());
	chip_restart(&w.chip, true);
	w.alive = false;
	clsw_trouble(w.cd, "test");
	shim_run_work(&w.cd->recover_work);
	CHECK(clsw_up(w.cd) && w.cd->count.recoveries == 1);
	CHECK(!w.cd->degraded, "what is routed goes on to the CPU");
	CHECK(world_settle());
	world_agree();
	world_end();
}
