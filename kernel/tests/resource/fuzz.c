// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: the bytes decide what happens in a small world of driver and
 * device; a third of the worlds has a device that answers nonsense. Counters
 * must add up after every step, and with an honest device no promise breaks.
 *
 *   clang -fsanitize=fuzzer,address,undefined      a libFuzzer target
 *   cc -DFUZZ_MAIN, fuzz ROUNDS [SEED]             random bytes, no library
 *   cc -DFUZZ_MAIN, fuzz FILE...                   replays what was found
 */
#include "world.h"

/* The library's name for it */
int fuzz_one(const u8 *data, size_t len) __asm__("LLVMFuzzerTestOneInput");

int fuzz_one(const u8 *data, size_t len)
{
	struct world w;
	u8 how;

	if (len < 2)
		return 0;
	how = data[0];
	world_init(&w, 0, data[1] % RM_POLICY_COUNT, how & 1, how & 2, how & 4);
	w.hostile = w.faults && how & 8;
	w.bytes = data + 2;
	w.len = len - 2;
	while (w.len)
		world_step(&w);
	world_quiesce(&w);
	if (!w.hostile)
		world_agree(&w);
	world_fini(&w);
	return 0;
}

#ifdef FUZZ_MAIN
static u8 bytes[1 << 14];

int main(int argc, char **argv)
{
	struct rnd r = { argc > 2 ? strtoull(argv[2], NULL, 0) : 1 };
	u32 n = argc > 1 ? atoi(argv[1]) : 200, i;
	size_t k, len;

	if (argc > 1 && !n) {
		for (i = 1; i < (u32)argc; i++) {
			FILE *f = fopen(argv[i], "rb");

			CHECK(f, "%s", argv[i]);
			len = fread(bytes, 1, sizeof(bytes), f);
			fclose(f);
			fuzz_one(bytes, len);
		}
		return 0;
	}
	for (i = 0; i < n; i++) {
		len = 2 + below(&r, sizeof(bytes) - 2);
		for (k = 0; k < len; k++)
			bytes[k] = rnd(&r);
		fuzz_one(bytes, len);
	}
	printf("ok: fuzz, %u inputs\n", n);
	return 0;
}
#endif
