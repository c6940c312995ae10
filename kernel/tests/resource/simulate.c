// SPDX-License-Identifier: GPL-2.0
/*
 * Simulator: the real resource manager in virtual time. A user adds routes as
 * fast as a rate or the kernel allows, a device answers questions and does
 * writes one after the other, each on a processor of its own, a kthread
 * refills. What does a bucket of which size cost the user?
 *
 *   user      |--48 us--|--48 us--|--48 us-- ...          kernel's own work per route
 *   refill              |--wake--|----query----|          lease
 *   writes              |--60 us--|--60 us--|-- ...       last one done: end of the outage
 *
 * usage: simulate              the sweep, as CSV
 *        simulate POLICY BUCKET QUERY_US ROUTES_PER_S [ROUTES]    one line of it
 */
#include "chip.h"

#define KERNEL_NS	48000	/* seed 002: 10,000 routes in 480 ms */
#define WRITE_NS	60000	/* seed 002, table 1 */
#define WAKE_NS		20000	/* until a kthread that was woken runs */
#define ROUTES		10000
#define FOREVER		(~0ULL)

struct route {
	struct rm_req req;
	struct rm_ticket ticket;
	u64 done;	/* when its write is done */
};

struct ask {
	struct rm_ask ask;
	u64 done;
};

struct sim {
	struct chip chip;
	struct rm *rm;
	u64 now;
	u64 sync_free, bulk_free;	/* when the device's two processors are idle */
	u64 wake;			/* when the kthread runs, FOREVER: it sleeps */
	struct ask asks[RM_MAX_LEASES];
	u32 ask_head, ask_tail;
	struct route *route;
	u32 count, posted, settled;
	u64 stalled;
};

static void completed(struct sim *s, struct route *r, struct tnd_cpl *cpl)
{
	CHECK(!rm_settle(s->rm, &r->req, &r->ticket, cpl, NULL), "a promise broke");
}

static void post_ask(struct sim *s, const struct rm_ask *ask, u64 query_ns)
{
	struct ask *a = &s->asks[s->ask_tail++ % RM_MAX_LEASES];

	a->ask = *ask;
	s->sync_free = max(s->sync_free, s->now) + query_ns;
	a->done = s->sync_free;
}

static void kthread(struct sim *s, u64 query_ns)
{
	struct tnd_cpl cpl;
	struct rm_ask ask;
	u32 id;

	s->wake = FOREVER;
	while (rm_next_release(s->rm, &id)) {
		chip_release(&s->chip, id, &cpl);
		rm_release_lease_done(s->rm, id, &cpl);
	}
	while (rm_need_refill(s->rm, &ask))
		post_ask(s, &ask, query_ns);
}

/* Everything that happens until @until; false: nothing is left to happen */
static bool run(struct sim *s, u64 until, u64 query_ns)
{
	for (;;) {
		struct ask *a = &s->asks[s->ask_head % RM_MAX_LEASES];
		u64 lease = s->ask_head == s->ask_tail ? FOREVER : a->done;
		u64 write = s->settled == s->posted ? FOREVER : s->route[s->settled].done;
		u64 next = min(min(lease, write), s->wake);
		struct tnd_cpl cpl;

		if (next > until || next == FOREVER) {
			if (until != FOREVER)
				s->now = max(s->now, until);
			return next != FOREVER;
		}
		s->now = max(s->now, next);
		if (next == lease) {
			s->ask_head++;
			chip_lease(&s->chip, &a->ask, &cpl);
			rm_lease_done(s->rm, &a->ask, &cpl);
		} else if (next == write) {
			struct route *r = &s->route[s->settled];

			chip_create(&s->chip, s->settled * CLASSES + C_ROUTE4,
				    rm_ticket_lease(s->rm, &r->ticket), &cpl);
			completed(s, r, &cpl);
			s->settled++;
		} else {
			kthread(s, query_ns);
		}
		if (rm_refill_due(s->rm) && s->wake == FOREVER)
			s->wake = s->now + WAKE_NS;
	}
}

/* One route, as `ip route add` sees it */
static void add(struct sim *s, u32 i, u64 query_ns)
{
	struct route *r = &s->route[i];
	u64 asked = s->now;
	struct rm_verdict v;
	u32 round, mine;

	for (round = 0; round < RM_ADMIT_ROUNDS; round++) {
		enum rm_result res = rm_admit(s->rm, &r->req, &r->ticket, &v);

		if (rm_refill_due(s->rm) && s->wake == FOREVER)
			s->wake = s->now + WAKE_NS;
		if (res == RM_QUERY) {
			post_ask(s, &v.ask, query_ns);
			for (mine = s->ask_tail; (s32)(s->ask_head - mine) < 0;)
				run(s, s->asks[s->ask_head % RM_MAX_LEASES].done, query_ns);
		} else if (res == RM_WAIT) {
			kthread(s, query_ns);
			run(s, s->now + WAKE_NS, query_ns);
		} else {
			CHECK(res == RM_ADMITTED, "%u", res);
			break;
		}
	}
	CHECK(rm_ticket_open(&r->ticket));
	s->stalled += s->now - asked;
	s->bulk_free = max(s->bulk_free, s->now) + WRITE_NS;
	r->done = s->bulk_free;
	s->posted = i + 1;
	if (v.sync)
		run(s, r->done, query_ns);
}

static void simulate(u8 policy, u32 bucket, u32 query_us, u32 rate, u32 count)
{
	struct rm_params params = {
		.bucket = bucket, .low_water = (bucket + 1) / 2, .refill = (bucket + 1) / 2,
		.flat_percent = 75,
	};
	u64 query_ns = query_us * 1000ULL, user, floor = 0;
	struct rm_stats st;
	struct sim s = { .wake = FOREVER };
	u32 i;

	chip_init(&s.chip, count * CLASSES + CLASSES, true);
	s.rm = chip_rm(&s.chip, policy, false, true);
	CHECK(!rm_set_params(s.rm, &params));
	s.route = calloc(count, sizeof(*s.route));
	s.count = count;
	for (i = 0; i < count; i++) {
		u64 arrival = rate ? 1000000000ULL * i / rate : 0;
		struct thing t;

		thing_of(i * CLASSES + C_ROUTE4, &t);
		s.route[i].req = t.req;
		floor = max(floor, arrival) + KERNEL_NS;
		run(&s, max(s.now, arrival) + KERNEL_NS, query_ns);
		add(&s, i, query_ns);
	}
	user = s.now;
	while (s.settled < count)
		run(&s, s.route[s.settled].done, query_ns);
	rm_stats(s.rm, &st);
	CHECK(!rm_check(s.rm) && !st.mispredicted);
	printf("%s,%u,%u,%u,%u,%.1f,%.1f,%.1f,%.1f,%llu,%llu\n", rm_policy_name(policy), bucket,
	       query_us, rate, count, floor / 1e6, user / 1e6, s.route[count - 1].done / 1e6,
	       s.stalled / 1e6, (unsigned long long)st.queries, (unsigned long long)st.refills);
	free(s.route);
	free(s.rm);
	chip_fini(&s.chip);
}

int main(int argc, char **argv)
{
	static const u32 buckets[] = { 1, 4, 16, 64, 256, 1024, 4096 };
	static const u32 queries[] = { 35, 100, 350, 1000, 3500 };
	static const u32 rates[] = { 5000, 10000, 15000, 0 };
	static const u8 policies[] = { RM_PREFETCH, RM_CREDIT };
	u32 b, q, r, p;

	fputs("policy,bucket,query_us,rate,routes,", stdout);
	puts("floor_ms,user_ms,outage_ms,stalled_ms,queries,refills");
	if (argc > 4) {
		for (p = 0; p < RM_POLICY_COUNT && strcmp(argv[1], rm_policy_name(p)); p++)
			;
		CHECK(p < RM_POLICY_COUNT, "no policy %s", argv[1]);
		simulate(p, atoi(argv[2]), atoi(argv[3]), atoi(argv[4]),
			 argc > 5 ? atoi(argv[5]) : ROUTES);
		return 0;
	}
	for (r = 0; r < ARRAY_SIZE(rates); r++) {
		for (q = 0; q < ARRAY_SIZE(queries); q++) {
			simulate(RM_LOCKSTEP, 1, queries[q], rates[r], ROUTES);
			simulate(RM_MODEL, 1, queries[q], rates[r], ROUTES);
			for (p = 0; p < ARRAY_SIZE(policies); p++) {
				for (b = 0; b < ARRAY_SIZE(buckets); b++)
					simulate(policies[p], buckets[b], queries[q], rates[r],
						 ROUTES);
			}
		}
	}
	return 0;
}
