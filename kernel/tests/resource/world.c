// SPDX-License-Identifier: GPL-2.0
/* See world.h */
#include "world.h"

u32 pick(struct world *w, u32 n)
{
	if (!w->bytes)
		return below(&w->rnd, n);
	if (w->len < 2) {
		w->len = 0;
		return 0;
	}
	w->bytes += 2;
	w->len -= 2;
	return (w->bytes[-2] | (u32)w->bytes[-1] << 8) % n;
}

void world_init(struct world *w, u64 seed, u8 policy, bool learning, bool geometry, bool faults)
{
	struct rm_params params = { .bucket = 8, .low_water = 4, .refill = 4, .flat_percent = 75 };
	u32 n;

	memset(w, 0, sizeof(*w));
	w->rnd.s = seed;
	w->learning = learning;
	w->faults = faults;
	chip_init(&w->chip, OBJECTS, false);
	w->rm = chip_rm(&w->chip, policy, learning, geometry);
	CHECK(!rm_set_params(w->rm, &params));
	for (n = 0; n < OBJECTS; n++)
		thing_of(n, &w->obj[n].thing);
	w->sync.w = calloc(QUEUE, sizeof(struct work));
	w->bulk.w = calloc(QUEUE, sizeof(struct work));
	CHECK(w->sync.w && w->bulk.w);
}

void world_fini(struct world *w)
{
	free(w->sync.w);
	free(w->bulk.w);
	free(w->rm);
	chip_fini(&w->chip);
}

static struct work *post(struct queue *q, u8 kind, u32 n)
{
	struct work *k = &q->w[q->tail++ % QUEUE];

	CHECK(q->tail - q->head < QUEUE);
	memset(k, 0, sizeof(*k));
	k->kind = kind;
	k->n = n;
	return k;
}

/* The device does the next command of a queue */
static bool execute(struct world *w, struct queue *q)
{
	struct work *k = &q->w[q->done % QUEUE];

	if (q->done == q->tail)
		return false;
	q->done++;
	if (k->kind == W_LEASE)
		chip_lease(&w->chip, &k->ask, &k->cpl);
	else if (k->kind == W_RELEASE)
		chip_release(&w->chip, k->n, &k->cpl);
	else if (k->kind == W_RELEASE_OF)
		chip_release_of(&w->chip, k->n, &k->cpl);
	else if (k->kind == W_DELETE)
		chip_delete(&w->chip, k->n, &k->cpl);
	else
		chip_create(&w->chip, k->n, k->lease, &k->cpl);
	if (k->kind >= W_LEASE)
		return true;
	/* whatever the driver writes is no longer the device's own */
	if (k->cpl.status == TND_ST_OK)
		w->obj[k->n].learned = false;
	return true;
}

static void settled(struct world *w, struct obj *o, struct work *k)
{
	struct rm_verdict v = { 0 };
	u8 backing = o->ticket.backing;
	char text[RM_TEXT];
	int r;

	if (o->state == LOST && k->kind == W_CREATE) {
		/* the late completion of a command that timed out: the delete closes the ticket */
		return;
	}
	r = rm_settle(w->rm, &o->thing.req, &o->ticket, &k->cpl, &v);
	CHECK(!rm_ticket_open(&o->ticket));
	CHECK(v.result != RM_FULL || rm_full_text(w->rm, &v, text, sizeof(text)) < RM_TEXT);
	if (k->kind == W_DELETE) {
		o->state = ABSENT;
		w->out--;
		return;
	}
	if (!r) {
		o->state = THERE;
		return;
	}
	o->state = ABSENT;
	if (r == -ENOSPC) {
		CHECK(v.result == RM_FULL);
		CHECK(w->faults || backing == RM_BY_NOTHING || backing == RM_BY_DEVICE,
		      "step %lu: object %lu (class %u) was promised by %u and refused", w->steps,
		      (unsigned long)(o - w->obj), o->thing.cls, backing);
	}
}

/* An answer that no device should give */
static void corrupt(struct world *w, struct tnd_cpl *cpl)
{
	u32 i;

	switch (pick(w, 4)) {
	case 0:
		cpl->status = pick(w, 16);
		break;
	case 1:
		cpl->table = pick(w, 2) ? pick(w, 20) : 0xffff;
		cpl->needed = pick(w, 65536) << 16;
		cpl->free = pick(w, 65536) << 16;
		break;
	case 2:
		cpl->result = pick(w, 5);
		break;
	default:
		cpl->delta_count = pick(w, 2) ? pick(w, 9) : 0xffff;
		for (i = 0; i < TND_MAX_DELTAS; i++) {
			cpl->delta[i].pool = pick(w, 8);
			cpl->delta[i].slots = pick(w, 2) ? pick(w, 20) - 10 : pick(w, 65536) << 16;
		}
	}
}

/* The driver hears of the next completion of a queue */
static bool deliver(struct world *w, struct queue *q)
{
	struct work *k = &q->w[q->head % QUEUE];
	struct obj *o;

	if (q->head == q->done)
		return false;
	q->head++;
	if (w->hostile && !pick(w, 4))
		corrupt(w, &k->cpl);
	switch (k->kind) {
	case W_LEASE:
		rm_lease_done(w->rm, &k->ask, k->lose ? NULL : &k->cpl);
		if (k->lose && pick(w, 2))
			rm_lease_done(w->rm, &k->ask, &k->cpl);
		break;
	case W_RELEASE:
		rm_release_lease_done(w->rm, k->n, k->lose ? NULL : &k->cpl);
		break;
	case W_RELEASE_OF:
		rm_lost_done(w->rm, k->n, k->lose ? NULL : &k->cpl);
		break;
	case W_CREATE:
		o = &w->obj[k->n];
		if (k->lose) {
			rm_set_unknown(w->rm, &o->ticket);
			o->state = LOST;
			w->out++;
			post(&w->bulk, W_DELETE, k->n);
			break;
		}
		settled(w, o, k);
		break;
	default:
		o = &w->obj[k->n];
		if (o->state == LOST) {
			settled(w, o, k);
			break;
		}
		rm_release_done(w->rm, &o->thing.req, &k->cpl);
		o->state = k->cpl.status ? THERE : ABSENT;
	}
	return true;
}

static bool hear(struct world *w)
{
	struct event *e = &w->event[w->event_head % QUEUE];
	struct rm_req *req;

	if (w->event_head == w->event_tail)
		return false;
	w->event_head++;
	req = &w->obj[e->n].thing.req;
	if (e->aged)
		rm_aged(w->rm, req->space, req->addr);
	else
		rm_learned(w->rm, req->space, req->addr);
	return true;
}

static void release_leases(struct world *w)
{
	struct work *k;
	u32 id;
	u8 slot;

	while (rm_next_lost(w->rm, &slot)) {
		k = post(&w->sync, W_RELEASE_OF, slot);
		k->lose = w->faults && pick(w, 10) == 1;
	}
	while (rm_next_release(w->rm, &id)) {
		k = post(&w->sync, W_RELEASE, id);
		k->lose = w->faults && pick(w, 10) == 1;
	}
}

static void post_create(struct world *w, u32 n)
{
	struct obj *o = &w->obj[n];
	struct work *k = post(&w->bulk, W_CREATE, n);

	k->lease = rm_ticket_lease(w->rm, &o->ticket);
	k->lose = w->faults && !pick(w, 40);
	o->state = POSTED;
}

static void post_all(struct world *w)
{
	u32 n;

	for (n = 0; n < OBJECTS; n++) {
		if (w->obj[n].state == ADMITTED)
			post_create(w, n);
	}
}

void world_quiesce(struct world *w)
{
	post_all(w);
	do {
		release_leases(w);
		while (execute(w, &w->sync) || execute(w, &w->bulk) || deliver(w, &w->sync) ||
		       deliver(w, &w->bulk) || hear(w))
			;
		/* what came back may be to be given back */
		release_leases(w);
	} while (w->bulk.head != w->bulk.tail || w->sync.head != w->sync.tail);
	world_check(w);
}

/* Nothing is out: a refusal must be true now, of the very device */
static void check_refusal(struct world *w, u32 n, const struct rm_verdict *v)
{
	struct thing *t = &w->obj[n].thing;
	struct rm_stats s;
	struct tnd_cpl cpl;
	char text[RM_TEXT];
	u32 i;

	CHECK(rm_full_text(w->rm, v, text, sizeof(text)) < RM_TEXT && strlen(text) < RM_TEXT);
	rm_stats(w->rm, &s);
	if (v->capped || w->faults || w->event_head != w->event_tail)
		return;
	for (i = 0; i < OBJECTS; i++) {
		if (w->obj[i].state == ADMITTED || w->obj[i].state == POSTED ||
		    w->obj[i].state == LEAVING)
			return;
	}
	if (w->sync.head != w->sync.tail || w->bulk.head != w->bulk.tail)
		return;
	/* leases that nobody draws on are free slots, too */
	for (i = 0; i < CHIP_LEASES; i++)
		CHECK(t->cls == C_NHG || !w->chip.lease[i].id || t->cls > C_HOST6 ||
		      !w->chip.lease[i].left[P_EXACT],
		      "step %lu: refused beside a lease", w->steps);
	chip_create(&w->chip, n, 0, &cpl);
	CHECK(cpl.status == TND_ST_TABLE_FULL || cpl.status == TND_ST_BUCKET_FULL,
	      "step %lu: object %u (class %u) was refused and fits: %s", w->steps, n, t->cls, text);
	CHECK(cpl.table == v->pool && cpl.size == v->size, "step %lu: %s", w->steps, text);
	w->exact_full++;
}

bool world_admit(struct world *w, u32 n, u8 flags)
{
	struct obj *o = &w->obj[n];
	struct rm_req req = o->thing.req;
	struct rm_verdict v;
	enum rm_result r;
	struct work *k;
	int round;

	req.flags = flags;
	for (round = 0; round < RM_ADMIT_ROUNDS; round++) {
		r = rm_admit(w->rm, &req, &o->ticket, &v);
		CHECK(r == v.result);
		CHECK((r == RM_ADMITTED) == rm_ticket_open(&o->ticket));
		world_check(w);
		if (r == RM_QUERY) {
			k = post(&w->sync, W_LEASE, 0);
			k->ask = v.ask;
			k->lose = w->faults && !pick(w, 30);
			while (execute(w, &w->sync) || deliver(w, &w->sync))
				;
		} else if (r == RM_WAIT) {
			world_quiesce(w);
		} else {
			break;
		}
	}
	if (r == RM_FULL)
		check_refusal(w, n, &v);
	CHECK(w->faults || r == RM_ADMITTED || r == RM_FULL, "step %lu: %u after %d rounds",
	      w->steps, r, round);
	if (r != RM_ADMITTED) {
		w->refused++;
		return false;
	}
	w->admitted++;
	o->state = ADMITTED;
	o->best_effort = flags & RM_REQ_BEST_EFFORT;
	if (v.sync) {
		post_create(w, n);
		while (o->state == POSTED || o->state == LOST) {
			bool more = execute(w, &w->bulk);

			CHECK(deliver(w, &w->bulk) || more);
		}
		return o->state == THERE;
	}
	return true;
}

void world_delete(struct world *w, u32 n)
{
	struct obj *o = &w->obj[n];

	rm_release_begin(w->rm, &o->thing.req);
	o->state = LEAVING;
	post(&w->bulk, W_DELETE, n);
}

static void learn(struct world *w)
{
	u32 n = pick(w, OBJECTS / CLASSES) * CLASSES + C_MAC;
	struct obj *o = &w->obj[n];
	struct event *e = &w->event[w->event_tail % QUEUE];
	struct tnd_cpl cpl;

	if (w->event_tail - w->event_head > QUEUE / 2)
		return;
	if (o->learned) {
		chip_delete(&w->chip, n, &cpl);
	} else {
		if (chip_has(&w->chip, n))
			return;
		chip_create(&w->chip, n, 0, &cpl);
		if (cpl.status)
			return;
	}
	e->n = n;
	e->aged = o->learned;
	o->learned = !o->learned;
	w->event_tail++;
}

static void restart(struct world *w)
{
	struct tnd_pool pools[POOLS];
	bool cold = pick(w, 2);
	u32 n;

	world_quiesce(w);
	chip_restart(&w->chip, cold);
	chip_snapshot(&w->chip, pools);
	rm_restart(w->rm, pools, POOLS, cold);
	for (n = 0; n < OBJECTS && cold; n++) {
		w->obj[n].state = ABSENT;
		w->obj[n].learned = false;
	}
	world_agree(w);
}

static void settings(struct world *w)
{
	struct rm_params p;
	struct thing t;

	switch (pick(w, 4)) {
	case 0:
		CHECK(!rm_set_policy(w->rm, pick(w, RM_POLICY_COUNT)));
		break;
	case 1:
		p.bucket = 1 + pick(w, 20);
		p.refill = 1 + pick(w, p.bucket);
		p.low_water = pick(w, p.bucket + 1);
		p.flat_percent = 50 + pick(w, 51);
		CHECK(!rm_set_params(w->rm, &p));
		p.refill = p.bucket + 1;
		CHECK(rm_set_params(w->rm, &p) == -EINVAL);
		break;
	case 2:
		thing_of(pick(w, CLASSES), &t);
		if (pick(w, 2))
			rm_set_limits(w->rm, t.req.cls, t.req.family, 0, U32_MAX);
		else
			rm_set_limits(w->rm, t.req.cls, t.req.family, pick(w, 5), 5 + pick(w, 40));
		break;
	default:
		thing_of(C_ROUTE4, &t);
		rm_set_reserve(w->rm, t.req.cls, t.req.family, pick(w, 2) * pick(w, 5));
	}
}

void world_step(struct world *w)
{
	u32 n = pick(w, OBJECTS), what = pick(w, 100);
	struct obj *o = &w->obj[n];
	struct work *k;
	struct rm_ask ask;

	w->steps++;
	if (what < 34) {
		if (o->state == ABSENT)
			world_admit(w, n, pick(w, 4) ? 0 : RM_REQ_BEST_EFFORT);
		else if (o->state == ADMITTED)
			post_create(w, n);
	} else if (what < 42) {
		for (; n < OBJECTS && w->obj[n].state != THERE; n++)
			;
		if (n < OBJECTS)
			world_delete(w, n);
	} else if (what < 46) {
		if (o->state == ADMITTED) {
			rm_cancel(w->rm, &o->thing.req, &o->ticket);
			o->state = ABSENT;
		}
	} else if (what < 54) {
		post_all(w);
	} else if (what < 66) {
		execute(w, &w->bulk);
	} else if (what < 78) {
		deliver(w, &w->bulk);
	} else if (what < 84) {
		while (rm_need_refill(w->rm, &ask)) {
			k = post(&w->sync, W_LEASE, 0);
			k->ask = ask;
			k->lose = w->faults && !pick(w, 30);
		}
		release_leases(w);
	} else if (what < 90) {
		execute(w, &w->sync);
	} else if (what < 96) {
		deliver(w, &w->sync);
	} else if (what < 97) {
		world_quiesce(w);
		world_agree(w);
	} else if (what < 98) {
		settings(w);
	} else if (w->learning) {
		learn(w);
		if (pick(w, 2))
			hear(w);
	}
	if (!pick(w, 4000))
		restart(w);
	world_check(w);
}

void world_check(struct world *w)
{
	struct rm_pool_state p;
	struct rm_class_state c;
	unsigned int i, bad = rm_check(w->rm);

	CHECK(!bad, "step %lu: pool %u", w->steps, bad - 1);
	for (i = 0; rm_pool_state(w->rm, i, &p); i++)
		CHECK((u64)p.used + p.in_flight + p.committed + p.free == p.size,
		      "step %lu: %s: used %u + in flight %u + committed %u + free %u of %u",
		      w->steps, p.name, p.used, p.in_flight, p.committed, p.free, p.size);
	for (i = 0; rm_class_state(w->rm, i, &c); i++)
		CHECK(c.free_guaranteed <= c.free_expected, "step %lu: %s", w->steps, c.name);
}

void world_agree(struct world *w)
{
	struct tnd_pool dev[POOLS];
	struct rm_pool_state p;
	u32 i;

	/* whatever was lost is found again; only lies are not */
	if (w->hostile)
		return;
	chip_snapshot(&w->chip, dev);
	for (i = 0; i < POOLS; i++) {
		CHECK(rm_pool_state(w->rm, i, &p));
		CHECK(p.committed == dev[i].committed, "step %lu: %s: committed %u/%u", w->steps,
		      p.name, p.committed, dev[i].committed);
		/* who made a station that is learned while its write is lost, nobody knows */
		if (w->faults && w->learning)
			continue;
		CHECK(p.used == dev[i].used && p.committed == dev[i].committed &&
		      p.free == dev[i].free && !p.in_flight,
		      "step %lu: %s: used %u/%u committed %u/%u free %u/%u in flight %u", w->steps,
		      p.name, p.used, dev[i].used, p.committed, dev[i].committed, p.free,
		      dev[i].free, p.in_flight);
	}
}
