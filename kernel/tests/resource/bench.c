// SPDX-License-Identifier: GPL-2.0
/*
 * What the calls cost that notifiers make, on a chip of full size.
 *
 * usage: bench [--check]     --check: fails if admission under credit is far
 *                            from what a notifier can afford (1 us)
 */
#include <time.h>
#include "chip.h"

#define COUNT	60000

static struct rm_ticket tickets[COUNT];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void refill(struct chip *c, struct rm *rm)
{
	struct rm_ask ask;
	struct tnd_cpl cpl;

	while (rm_need_refill(rm, &ask)) {
		chip_lease(c, &ask, &cpl);
		rm_lease_done(rm, &ask, &cpl);
	}
}

/* Routes, in bursts between refills as a kthread would; best of five, in ns */
static double routes(u8 policy, double *settle_ns)
{
	double best = 1e9, best_settle = 1e9;
	u32 run, i, k, n;

	for (run = 0; run < 5; run++) {
		struct chip c;
		struct rm *rm;
		struct rm_req req = { .cls = TND_CLS_ROUTE, .family = TND_AF_INET };
		struct rm_verdict v;
		struct tnd_cpl cpl = { .op = TND_OP_CREATE, .delta_count = 1,
				       .delta[0] = { .pool = P_LPM4, .slots = 1 } };
		double spent = 0, settled = 0, t;
		u32 id;

		chip_init(&c, 1, true);
		rm = chip_rm(&c, policy, false, true);
		CHECK(rm_admit(rm, &req, &tickets[0], &v) != RM_FULL);
		if (v.result == RM_QUERY) {
			chip_lease(&c, &v.ask, &cpl);
			rm_lease_done(rm, &v.ask, &cpl);
			CHECK(rm_admit(rm, &req, &tickets[0], &v) == RM_ADMITTED);
			cpl = (struct tnd_cpl){ .op = TND_OP_CREATE, .delta_count = 1,
						.delta[0] = { .pool = P_LPM4, .slots = 1 } };
		}
		for (n = 0, i = 1; i < COUNT / 2; i += 64) {
			refill(&c, rm);
			t = now();
			for (k = i; k < i + 64; k++)
				n += rm_admit(rm, &req, &tickets[k], &v) == RM_ADMITTED;
			spent += now() - t;
			/* what the device does meanwhile */
			t = now();
			for (k = i; k < i + 64; k++)
				rm_settle(rm, &req, &tickets[k], &cpl, NULL);
			settled += now() - t;
			while (rm_next_release(rm, &id)) {
				struct tnd_cpl gone = { .op = TND_OP_RELEASE };

				rm_release_lease_done(rm, id, &gone);
			}
		}
		CHECK(n == (i - 1), "%s: %u of %u", rm_policy_name(policy), n, i - 1);
		best = spent / n < best ? spent / n : best;
		best_settle = settled / n < best_settle ? settled / n : best_settle;
		free(rm);
		chip_fini(&c);
	}
	*settle_ns = best_settle;
	return best;
}

/* MAC addresses until the chip is full: the model's worst */
static void model(double *mean, double *worst)
{
	struct rm_verdict v;
	struct rm_ticket t = { 0 };
	struct tnd_cpl cpl;
	double spent = 0, one;
	struct thing thing;
	struct chip c;
	struct rm *rm;
	u32 n, done = 0;

	*worst = 0;
	chip_init(&c, 1, true);
	rm = chip_rm(&c, RM_MODEL, false, true);
	for (n = 0; n < 90000; n++) {
		thing_of(n * CLASSES + C_MAC, &thing);
		one = now();
		rm_admit(rm, &thing.req, &t, &v);
		one = now() - one;
		spent += one;
		*worst = one > *worst ? one : *worst;
		if (v.result != RM_ADMITTED)
			continue;
		chip_create(&c, n * CLASSES + C_MAC, rm_ticket_lease(rm, &t), &cpl);
		CHECK(!rm_settle(rm, &thing.req, &t, &cpl, NULL));
		done++;
	}
	CHECK(done > 86000, "%u", done);
	*mean = spent / n;
	free(rm);
	chip_fini(&c);
}

int main(int argc, char **argv)
{
	double settle, credit, predict, mean, worst;

	credit = routes(RM_CREDIT, &settle);
	printf("route, credit: admit %.0f ns, settle %.0f ns\n", credit, settle);
	predict = routes(RM_MODEL, &settle);
	printf("route, predict-model: admit %.0f ns, settle %.0f ns\n", predict, settle);
	model(&mean, &worst);
	printf("MAC, predict-model, until full and beyond: admit %.0f ns, at worst %.0f us\n", mean,
	       worst / 1000);
	if (argc > 1 && !strcmp(argv[1], "--check")) {
		CHECK(credit < 1000, "%.0f ns", credit);
		printf("ok: admission under credit is fit for a notifier\n");
	}
	return 0;
}
