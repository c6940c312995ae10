/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPDK's rte_fib as a peer of the IPv4 LPM: reads the same prefixes and
 * addresses as ours and prints million lookups per second.
 *
 * File: u32 prefixes, u32 addresses, then prefixes x { u32 addr, u32 length,
 * u32 next hop }, then addresses x u32; host byte order throughout.
 *
 * Usage: rte_fib FILE SECONDS [huge]: memory in large pages, which the
 * system must have
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_memory.h>

#define BULK 64

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static uint32_t *read_words(FILE *f, size_t count)
{
	uint32_t *w = malloc(count * sizeof(*w));

	if (w && fread(w, sizeof(*w), count, f) == count)
		return w;
	fprintf(stderr, "rte_fib: file is too short\n");
	exit(1);
}

int main(int argc, char **argv)
{
	char *eal[] = { argv[0], "--no-pci", "--no-huge", "-m", "1536", "-l", "0",
			"--no-telemetry", "--no-shconf", NULL };
	char *in_huge[] = { argv[0], "--no-pci", "--in-memory", "-m", "1536", "-l",
			    "0", "--no-telemetry", NULL };
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = 0,
		.max_routes = 1 << 20,
		/* 250 values: one byte of it holds 127 */
		.dir24_8 = { .nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = 1 << 14 },
	};
	uint32_t *head, *prefixes, *addrs;
	uint64_t nh[BULK], sum = 0, done = 0;
	struct rte_fib *fib;
	double limit, start, t;
	FILE *f;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: rte_fib FILE SECONDS [huge]\n");
		return 2;
	}
	f = fopen(argv[1], "rb");
	if (!f) {
		perror(argv[1]);
		return 1;
	}
	head = read_words(f, 2);
	prefixes = read_words(f, 3 * (size_t)head[0]);
	addrs = read_words(f, head[1]);
	fclose(f);
	limit = atof(argv[2]);

	if (rte_eal_init(argc == 4 ? 8 : 9, argc == 4 ? in_huge : eal) < 0) {
		fprintf(stderr, "rte_fib: EAL: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	fib = rte_fib_create("peer", SOCKET_ID_ANY, &conf);
	if (!fib) {
		fprintf(stderr, "rte_fib: create: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	for (uint32_t i = 0; i < head[0]; i++) {
		int ret = rte_fib_add(fib, prefixes[3 * i], prefixes[3 * i + 1],
				      prefixes[3 * i + 2]);

		if (ret) {
			fprintf(stderr, "rte_fib: add %u of %u: %d\n", i, head[0], ret);
			return 1;
		}
	}
	/* One round warms the caches; the sum keeps the lookups alive and is the digest */
	for (int round = 0; round < 2; round++) {
		sum = 0;
		for (uint32_t i = 0; i + BULK <= head[1]; i += BULK) {
			rte_fib_lookup_bulk(fib, addrs + i, nh, BULK);
			for (int j = 0; j < BULK; j++)
				sum += nh[j];
		}
	}
	start = now();
	do {
		for (uint32_t i = 0; i + BULK <= head[1]; i += BULK)
			rte_fib_lookup_bulk(fib, addrs + i, nh, BULK);
		done += head[1] / BULK * BULK;
		t = now() - start;
	} while (t < limit);
	printf("%.3f %llu\n", done / t / 1e6, (unsigned long long)sum);
	return 0;
}
