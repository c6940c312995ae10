// SPDX-License-Identifier: GPL-2.0
/*
 * Replays a trace that the device's own table wrote (asic/tables, example
 * exact_trace) and holds bank.c against it, answer by answer and, at the end,
 * entry by entry.
 *
 * usage: replay FILE...
 */
#include "check.h"
#include "../../clsw/resource/bank.h"
#include "../../clsw/resource/resource.h"

static struct bank bank;
static void *memory;
static unsigned long lines, placed;

static void start(const char *args)
{
	struct tnd_geometry dev = { .hash = TND_EXACT_HASH_MIX64 };
	struct bank_geometry g;
	unsigned int v[11];
	unsigned long long seed;
	char why[RM_TEXT];

	CHECK(sscanf(args, "%u %u %u %u %u %u %u %llu %u %u %u", v, v + 1, v + 2, v + 3, v + 4,
		     v + 5, v + 6, &seed, v + 7, v + 8, v + 9) == 11, "line %lu", lines);
	dev.banks = v[0];
	dev.buckets_per_bank = v[1];
	dev.slots_per_bucket = v[2];
	dev.stash = v[3];
	dev.max_moves = v[4];
	dev.max_depth = v[5];
	dev.search_budget = v[6];
	dev.seed = seed;
	dev.width_mac = v[7];
	dev.width_host4 = v[8];
	dev.width_host6 = v[9];
	CHECK(bank_geometry(&g, &dev, why), "%s", why);
	free(memory);
	memory = aligned_alloc(64, bank_bytes(&g));
	CHECK(memory);
	memset(memory, 0x5a, bank_bytes(&g));
	bank_init(&bank, &g, memory);
}

static void read_key(const char *text, struct bank_key *key, int *used)
{
	unsigned int kind, space, i, n;
	char hex[33];
	u8 addr[16];

	CHECK(sscanf(text, "%u %u %32[0-9a-f]%n", &kind, &space, hex, used) == 3,
	      "line %lu", lines);
	n = strlen(hex) / 2;
	for (i = 0; i < n; i++)
		sscanf(hex + 2 * i, "%2hhx", addr + i);
	if (kind == BANK_MAC)
		bank_key_mac(key, space, addr);
	else if (kind == BANK_HOST4)
		bank_key_host4(key, space, addr);
	else
		bank_key_host6(key, space, addr);
	CHECK(bank_kind(key) == kind, "line %lu", lines);
}

/* Of small tables only: it looks at every slot */
static u64 digest(void)
{
	return bank.g.size < 4096 ? bank_digest(&bank) : 0;
}

static void insert(const char *args, bool promised)
{
	unsigned int status, moves, stash;
	struct bank_placed p;
	struct bank_key key;
	enum bank_result r;
	bool room, there;
	u32 width, free;
	u64 before;
	int at;

	read_key(args, &key, &at);
	CHECK(sscanf(args + at, " = %u %u %u", &status, &moves, &stash) == 3, "line %lu", lines);
	before = digest();
	room = bank_room(&bank, &key);
	CHECK(before == digest(), "line %lu: a look changed something", lines);
	there = bank_find(&bank, &key, NULL);
	width = bank_width(&bank, &key);
	free = bank.free;
	r = bank_insert(&bank, &key, lines, promised ? BANK_PROMISED : BANK_FREE, &p);
	CHECK(r == status, "line %lu: %u", lines, r);
	CHECK(there == (r == BANK_THERE), "line %lu", lines);
	if (r == BANK_OK)
		CHECK(room == !p.in_stash, "line %lu: a look said %d", lines, room);
	if (r == BANK_BUCKET_FULL)
		CHECK(!room && free >= width, "line %lu: a look said %d", lines, room);
	CHECK(r >= BANK_TABLE_FULL || (p.moves == moves && p.in_stash == stash),
	      "line %lu: %u moves, stash %d", lines, p.moves, p.in_stash);
	placed += r == BANK_OK;
}

static void line(const char *text)
{
	unsigned int a, b, c, d, place;
	struct bank_key key;
	int at = 0;

	switch (text[0]) {
	case 'g':
		start(text + 2);
		return;
	case 'i':
	case 'I':
		insert(text + 2, text[0] == 'I');
		break;
	case 'd':
		read_key(text + 2, &key, &at);
		CHECK(sscanf(text + 2 + at, " = %u", &a) == 1, "line %lu", lines);
		b = bank_remove(&bank, &key);
		CHECK(a == b, "line %lu: %u slots", lines, b);
		CHECK(!bank_find(&bank, &key, NULL), "line %lu", lines);
		break;
	case 'c':
		CHECK(sscanf(text + 2, "%u = %u", &a, &b) == 2, "line %lu", lines);
		CHECK(bank_commit(&bank, a) == !b, "line %lu", lines);
		break;
	case 'r':
		CHECK(sscanf(text + 2, "%u", &a) == 1, "line %lu", lines);
		bank_release(&bank, a);
		break;
	case 'u':
		CHECK(sscanf(text + 2, "%u %u %u %u", &a, &b, &c, &d) == 4, "line %lu", lines);
		CHECK(a == bank.used && b == bank.committed && c == bank.free &&
		      d == bank.stash_used, "line %lu: %u %u %u %u", lines, bank.used,
		      bank.committed, bank.free, bank.stash_used);
		CHECK(bank_recount(&bank) == bank.used, "line %lu", lines);
		break;
	case 'p':
		read_key(text + 2, &key, &at);
		CHECK(sscanf(text + 2 + at, " %u", &place) == 1, "line %lu", lines);
		CHECK(bank_place(&bank, &key) == place, "line %lu: is at %x", lines,
		      bank_place(&bank, &key));
		break;
	case 'e':
		CHECK(sscanf(text + 2, "%u", &a) == 1, "line %lu", lines);
		CHECK(bank.per_kind[0] + bank.per_kind[1] + bank.per_kind[2] == a,
		      "line %lu", lines);
		for (b = 0, c = 0; (c = bank_next(&bank, c, &key, &(u64){ 0 }));)
			b++;
		CHECK(a == b, "line %lu: %u by cursor", lines, b);
		break;
	default:
		CHECK(false, "line %lu: %s", lines, text);
	}
}

int main(int argc, char **argv)
{
	char text[256];
	int i;

	CHECK(argc > 1, "usage: replay FILE...");
	for (i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "r");

		CHECK(f, "%s", argv[i]);
		for (lines = 1; fgets(text, sizeof(text), f); lines++)
			line(text);
		fclose(f);
		CHECK(placed, "%s places nothing", argv[i]);
		printf("ok: %s, %lu lines, %lu entries placed as the device does\n", argv[i],
		       lines - 1, placed);
	}
	free(memory);
	return 0;
}
