// SPDX-License-Identifier: GPL-2.0
/*
 * Making room in the exact-match memory: a bounded search for entries that can
 * step aside. Entries move while the search goes on and move back if it fails;
 * runs of slots that are being cleared are pinned, so that nothing moves in.
 *
 * The order in which places are tried is the device's; who changes it here
 * must change it there (asic/tables), the cross-check test tells.
 */
#include "bank_priv.h"

static u8 bank_pinned(const struct bank *b, u32 bucket)
{
	u8 m = 0;
	u32 i;

	for (i = 0; i < b->pin_len; i++) {
		if (b->pins[i].bucket == bucket)
			m |= b->pins[i].slots;
	}
	return m;
}

/*
 * The tightest run: full buckets first, then the run whose neighbours are
 * taken, so that wide entries find whole runs later.
 */
u32 bank_free_run(const struct bank *b, const u32 *buckets, u32 width, bool with_pins)
{
	u32 best = BANK_NONE, best_score = 0, i, at;

	for (i = 0; i < b->g.banks; i++) {
		u8 taken = b->occupied[buckets[i]];

		if (with_pins)
			taken |= bank_pinned(b, buckets[i]);
		for (at = 0; at < b->g.slots; at += width) {
			u8 pair = bank_run(at & ~1U, 2), quad = bank_run(at & ~3U, 4);
			u32 score;

			if (taken & bank_run(at, width))
				continue;
			score = (taken & pair ? 32 : 0) + hweight8(taken & quad) * 4 +
				min_t(u32, hweight8(taken), 3);
			if (best == BANK_NONE || score > best_score) {
				best = buckets[i] * b->g.slots + at;
				best_score = score;
			}
		}
	}
	return best;
}

void bank_undo_moves(struct bank *b, u32 mark)
{
	while (b->undo_len > mark) {
		b->undo_len--;
		bank_move_entry(b, b->undo[b->undo_len].id, b->undo[b->undo_len].from);
	}
}

static u32 bank_clear_run(struct bank *b, const u32 *buckets, u32 width, u32 depth);

static bool bank_step_aside(struct bank *b, u32 id, u32 depth)
{
	u32 buckets[BANK_MAX_BANKS];
	struct bank_key key;
	u32 width, to;

	if (b->undo_len >= b->g.max_moves || !bank_read(b, id, &key, &width))
		return false;
	bank_buckets(b, &key, buckets);
	to = bank_free_run(b, buckets, width, true);
	if (to == BANK_NONE && depth > 1)
		to = bank_clear_run(b, buckets, width, depth - 1);
	/* clearing may have used up the moves that were left */
	if (to == BANK_NONE || b->undo_len >= b->g.max_moves)
		return false;
	b->undo[b->undo_len].id = id;
	b->undo[b->undo_len].from = b->place[id];
	b->undo_len++;
	bank_move_entry(b, id, to);
	return true;
}

/* Moves everything out of one run, or nothing */
static bool bank_try_run(struct bank *b, u32 bucket, u32 at, u32 width, u32 depth)
{
	u8 run = bank_run(at, width), covered = 0;
	u32 ids[8], count = 0, mark = b->undo_len, i;
	struct bank_key key;
	bool ok = true;
	u32 w;

	/* entries that reach into the run, and the slots they take */
	for (i = 0; i < b->g.slots; i++) {
		u32 id = b->heads[bucket * b->g.slots + i];

		if (id == BANK_NONE || !bank_read(b, id, &key, &w) || !(bank_run(i, w) & run))
			continue;
		ids[count++] = id;
		covered |= bank_run(i, w);
	}
	if (bank_pinned(b, bucket) & (run | covered) || mark + count > b->g.max_moves ||
	    b->pin_len >= BANK_MAX_DEPTH)
		return false;
	b->pins[b->pin_len].bucket = bucket;
	b->pins[b->pin_len].slots = run | covered;
	b->pin_len++;
	for (i = 0; ok && i < count; i++)
		ok = bank_step_aside(b, ids[i], depth);
	b->pin_len--;
	if (!ok)
		bank_undo_moves(b, mark);
	return ok;
}

static u32 bank_clear_run(struct bank *b, const u32 *buckets, u32 width, u32 depth)
{
	u32 order[BANK_MAX_BANKS];
	u32 i, k, at;

	/* emptiest first; among equals the order of the banks */
	for (i = 0; i < b->g.banks; i++) {
		u32 n = hweight8(b->occupied[buckets[i]]);

		for (k = i; k && hweight8(b->occupied[order[k - 1]]) > n; k--)
			order[k] = order[k - 1];
		order[k] = buckets[i];
	}
	for (i = 0; i < b->g.banks; i++) {
		for (at = 0; at < b->g.slots; at += width) {
			if (!b->budget)
				return BANK_NONE;
			b->budget--;
			if (bank_try_run(b, order[i], at, width, depth))
				return order[i] * b->g.slots + at;
		}
	}
	return BANK_NONE;
}

u32 bank_find_room(struct bank *b, const struct bank_key *key, u32 width, u32 *moves)
{
	u32 buckets[BANK_MAX_BANKS];
	u32 slot, depth;

	b->undo_len = 0;
	b->pin_len = 0;
	*moves = 0;
	bank_buckets(b, key, buckets);
	slot = bank_free_run(b, buckets, width, false);
	if (slot != BANK_NONE)
		return slot;
	b->budget = b->g.budget;
	for (depth = 1; depth <= b->g.max_depth && slot == BANK_NONE; depth++) {
		slot = bank_clear_run(b, buckets, width, depth);
		if (!b->budget)
			break;
	}
	*moves = b->undo_len;
	return slot;
}
