// SPDX-License-Identifier: GPL-2.0
/*
 * The exact-match memory: hash, slots, stash, counters. bank_search.c makes
 * room. See bank.h.
 */
#include "bank.h"
#include "bank_priv.h"
#include "resource.h"

#define KIND_SHIFT	60
#define KIND_MAC	1ULL
#define KIND_HOST4	2ULL
#define KIND_HOST6	3ULL

/* Every input bit changes every output bit with probability one half */
static u64 bank_mix(u64 x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 29;
	x *= 0xa0761d6478bd642fULL;
	return x ^ x >> 32;
}

/* The input is mixed already: one multiplication is enough */
static u64 bank_mix_bank(u64 x)
{
	const u64 k = 0xe7037ed1a0b428dbULL;

	return rm_mul_high(x, k) ^ x * k;
}

static bool bank_wide(const struct bank_key *key)
{
	return key->head >> KIND_SHIFT == KIND_HOST6;
}

static u64 bank_key_hash(const struct bank *b, const struct bank_key *key)
{
	u64 h = bank_mix(key->head ^ b->seed);

	if (bank_wide(key))
		h = bank_mix(bank_mix(h ^ key->tail[0]) ^ rol64(key->tail[1], 17));
	return h;
}

static bool bank_key_equal(const struct bank_key *a, const struct bank_key *b)
{
	return a->head == b->head && a->tail[0] == b->tail[0] && a->tail[1] == b->tail[1];
}

void bank_key_mac(struct bank_key *key, u16 fid, const u8 *mac)
{
	u64 m = (u64)mac[0] << 40 | (u64)get_unaligned_be32(mac + 1) << 8 | mac[5];

	key->head = KIND_MAC << KIND_SHIFT | (u64)(fid & BANK_MAX_FID) << 48 | m;
	key->tail[0] = 0;
	key->tail[1] = 0;
}

void bank_key_host4(struct bank_key *key, u16 vrf, const u8 *addr)
{
	key->head = KIND_HOST4 << KIND_SHIFT | (u64)vrf << 32 | get_unaligned_be32(addr);
	key->tail[0] = 0;
	key->tail[1] = 0;
}

void bank_key_host6(struct bank_key *key, u16 vrf, const u8 *addr)
{
	key->head = KIND_HOST6 << KIND_SHIFT | vrf;
	key->tail[0] = get_unaligned_be64(addr);
	key->tail[1] = get_unaligned_be64(addr + 8);
}

enum bank_kind bank_kind(const struct bank_key *key)
{
	switch (key->head >> KIND_SHIFT) {
	case KIND_MAC:
		return BANK_MAC;
	case KIND_HOST4:
		return BANK_HOST4;
	default:
		return BANK_HOST6;
	}
}

/* -------------------------------------------------------------------------
 * Geometry and memory
 */
static bool bank_bad(char *why, const char *what, u32 is)
{
	scnprintf(why, RM_TEXT, "exact-match geometry: %s is %u", what, is);
	return false;
}

static bool bank_bad_width(u32 w, u32 slots)
{
	return (w != 1 && w != 2 && w != 4) || w * 2 > slots;
}

bool bank_geometry(struct bank_geometry *g, const struct tnd_geometry *dev, char *why)
{
	u64 size;

	memset(g, 0, sizeof(*g));
	g->seed = le64_to_cpu(dev->seed);
	g->banks = le32_to_cpu(dev->banks);
	g->buckets = le32_to_cpu(dev->buckets_per_bank);
	g->slots = le32_to_cpu(dev->slots_per_bucket);
	g->stash = le32_to_cpu(dev->stash);
	g->max_moves = le32_to_cpu(dev->max_moves);
	g->max_depth = le32_to_cpu(dev->max_depth);
	g->budget = le32_to_cpu(dev->search_budget);
	g->width[BANK_MAC] = dev->width_mac;
	g->width[BANK_HOST4] = dev->width_host4;
	g->width[BANK_HOST6] = dev->width_host6;
	if (le32_to_cpu(dev->hash) != TND_EXACT_HASH_MIX64)
		return bank_bad(why, "hash function", le32_to_cpu(dev->hash));
	if (!g->banks || g->banks > BANK_MAX_BANKS)
		return bank_bad(why, "banks", g->banks);
	if (g->slots != 4 && g->slots != 8)
		return bank_bad(why, "slots_per_bucket", g->slots);
	if (!g->buckets || g->buckets > BANK_MAX_SLOTS)
		return bank_bad(why, "buckets_per_bank", g->buckets);
	if (g->stash > BANK_MAX_SLOTS)
		return bank_bad(why, "stash", g->stash);
	size = (u64)g->banks * g->buckets * g->slots + g->stash;
	if (size > BANK_MAX_SLOTS)
		return bank_bad(why, "size", min_t(u64, size, U32_MAX));
	g->size = size;
	if (g->max_moves > BANK_MAX_MOVES)
		return bank_bad(why, "max_moves", g->max_moves);
	if (g->max_depth > BANK_MAX_DEPTH)
		return bank_bad(why, "max_depth", g->max_depth);
	if (g->budget > 1U << 16)
		return bank_bad(why, "search_budget", g->budget);
	if (bank_bad_width(g->width[BANK_MAC], g->slots))
		return bank_bad(why, "width_mac", g->width[BANK_MAC]);
	if (bank_bad_width(g->width[BANK_HOST4], g->slots))
		return bank_bad(why, "width_host4", g->width[BANK_HOST4]);
	if (bank_bad_width(g->width[BANK_HOST6], g->slots) || g->width[BANK_HOST6] == 1)
		return bank_bad(why, "width_host6", g->width[BANK_HOST6]);
	return true;
}

static u32 bank_index_cells(const struct bank_geometry *g)
{
	u32 n = 8;

	/* at most half full */
	while (n < g->stash * 2)
		n *= 2;
	return n;
}

static u32 bank_slots(const struct bank_geometry *g)
{
	return g->banks * g->buckets * g->slots;
}

/* Walks the parts of the memory; NULL base: only the size counts */
struct carve {
	u8 *base;
	size_t at;
};

static void *bank_carve(struct carve *c, size_t count, size_t each)
{
	size_t at = c->at;

	c->at = ALIGN(at + count * each, (size_t)64);
	return c->base ? c->base + at : NULL;
}

static size_t bank_lay_out(struct bank *b, const struct bank_geometry *g, void *mem)
{
	u32 slots = bank_slots(g);
	struct carve c = { .base = mem };

	b->cells = bank_carve(&c, slots, sizeof(*b->cells));
	b->heads = bank_carve(&c, slots, sizeof(*b->heads));
	b->occupied = bank_carve(&c, g->banks * g->buckets, sizeof(*b->occupied));
	b->place = bank_carve(&c, g->size, sizeof(*b->place));
	b->free_ids = bank_carve(&c, g->size, sizeof(*b->free_ids));
	b->stash = bank_carve(&c, g->stash, sizeof(*b->stash));
	b->index = bank_carve(&c, bank_index_cells(g), sizeof(*b->index));
	return c.at;
}

size_t bank_bytes(const struct bank_geometry *g)
{
	struct bank b;

	return bank_lay_out(&b, g, NULL);
}

void bank_init(struct bank *b, const struct bank_geometry *g, void *mem)
{
	u32 i;

	memset(b, 0, sizeof(*b));
	b->g = *g;
	bank_lay_out(b, g, mem);
	b->index_mask = bank_index_cells(g) - 1;
	for (i = 0; i < BANK_MAX_BANKS; i++)
		b->bank_seed[i] = bank_mix(g->seed + 0x9e3779b97f4a7c15ULL * (i + 1));
	b->seed = bank_mix(g->seed ^ 0x5851f42d4c957f2dULL);
	bank_clear(b);
}

void bank_clear(struct bank *b)
{
	u32 slots = bank_slots(&b->g);

	memset(b->cells, 0, slots * sizeof(*b->cells));
	memset(b->heads, 0xff, slots * sizeof(*b->heads));
	memset(b->occupied, 0, b->g.banks * b->g.buckets);
	memset(b->index, 0xff, ((size_t)b->index_mask + 1) * sizeof(*b->index));
	memset(b->per_kind, 0, sizeof(b->per_kind));
	b->free_count = 0;
	b->ids = 0;
	b->stash_len = 0;
	b->stash_used = 0;
	b->drain = 0;
	b->used = 0;
	b->committed = 0;
	b->free = b->g.size;
}

/* -------------------------------------------------------------------------
 * Slots
 */
void bank_buckets(const struct bank *b, const struct bank_key *key, u32 *out)
{
	u64 h = bank_key_hash(b, key);
	u32 i;

	for (i = 0; i < b->g.banks; i++) {
		u64 x = bank_mix_bank(h ^ b->bank_seed[i]);

		out[i] = i * b->g.buckets + (u32)((x >> 32) * b->g.buckets >> 32);
	}
}

bool bank_read(const struct bank *b, u32 id, struct bank_key *key, u32 *width)
{
	u32 place = id < b->ids ? b->place[id] : BANK_NONE;

	if (place == BANK_NONE || place & BANK_IN_STASH)
		return false;
	key->head = b->cells[place].word[0];
	key->tail[0] = 0;
	key->tail[1] = 0;
	if (bank_wide(key))
		memcpy(key->tail, b->cells[place + 1].word, sizeof(key->tail));
	*width = bank_width(b, key);
	return true;
}

static void bank_write_slots(struct bank *b, u32 slot, u32 width, u32 id,
			     const struct bank_key *key, u64 value)
{
	b->cells[slot].word[0] = key->head;
	b->cells[slot].word[1] = value;
	if (bank_wide(key))
		memcpy(b->cells[slot + 1].word, key->tail, sizeof(key->tail));
	b->heads[slot] = id;
	b->occupied[slot / b->g.slots] |= bank_run(slot % b->g.slots, width);
}

static void bank_clear_slots(struct bank *b, u32 slot, u32 width)
{
	memset(&b->cells[slot], 0, width * sizeof(*b->cells));
	b->heads[slot] = BANK_NONE;
	b->occupied[slot / b->g.slots] &= ~bank_run(slot % b->g.slots, width);
}

void bank_move_entry(struct bank *b, u32 id, u32 to)
{
	u32 from = b->place[id], width;
	struct bank_key key;
	u64 value;

	if (!bank_read(b, id, &key, &width))
		return;
	value = b->cells[from].word[1];
	bank_clear_slots(b, from, width);
	bank_write_slots(b, to, width, id, &key, value);
	b->place[id] = to;
}

/* -------------------------------------------------------------------------
 * Stash: an array, and an index by hash with linear probing
 */
static u64 bank_stash_hash(const struct bank *b, u32 pos)
{
	return bank_key_hash(b, &b->stash[pos].key);
}

static void bank_index_add(struct bank *b, u64 hash, u32 pos)
{
	u32 i = hash & b->index_mask;

	while (b->index[i] != BANK_NONE)
		i = (i + 1) & b->index_mask;
	b->index[i] = pos;
}

static void bank_index_del(struct bank *b, u64 hash, u32 pos)
{
	u32 mask = b->index_mask, hole = hash & mask, i;

	while (b->index[hole] != pos) {
		if (b->index[hole] == BANK_NONE)
			return;
		hole = (hole + 1) & mask;
	}
	i = hole;
	for (;;) {
		u32 home;

		i = (i + 1) & mask;
		if (b->index[i] == BANK_NONE)
			break;
		home = bank_stash_hash(b, b->index[i]) & mask;
		/* may fill the hole unless its home lies between the hole and itself */
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			b->index[hole] = b->index[i];
			hole = i;
		}
	}
	b->index[hole] = BANK_NONE;
}

static u32 bank_find_stash(const struct bank *b, const struct bank_key *key, u64 hash)
{
	u32 i = hash & b->index_mask;

	for (; b->index[i] != BANK_NONE; i = (i + 1) & b->index_mask) {
		if (bank_key_equal(&b->stash[b->index[i]].key, key))
			return b->index[i];
	}
	return BANK_NONE;
}

static void bank_push_stashed(struct bank *b, const struct bank_key *key, u64 value, u32 id,
			      u32 width)
{
	struct bank_stashed *s = &b->stash[b->stash_len];

	bank_index_add(b, bank_key_hash(b, key), b->stash_len);
	s->key = *key;
	s->value = value;
	s->id = id;
	s->width = width;
	b->place[id] = BANK_IN_STASH | b->stash_len;
	b->stash_len++;
	b->stash_used += width;
}

static void bank_remove_stashed(struct bank *b, u32 pos)
{
	u32 last = b->stash_len - 1;

	b->stash_used -= b->stash[pos].width;
	bank_index_del(b, bank_stash_hash(b, pos), pos);
	if (pos != last) {
		u64 hash = bank_stash_hash(b, last);

		/* the last one takes the gap */
		bank_index_del(b, hash, last);
		bank_index_add(b, hash, pos);
		b->place[b->stash[last].id] = BANK_IN_STASH | pos;
		b->stash[pos] = b->stash[last];
	}
	b->stash_len = last;
}

/*
 * Slots became free in the banks: two entries of the stash try their buckets
 * again, so that the stash recovers with normal churn.
 */
static void bank_drain_stash(struct bank *b)
{
	u32 buckets[BANK_MAX_BANKS];
	struct bank_stashed s;
	u32 i, slot;

	for (i = 0; i < 2 && b->stash_len; i++) {
		b->drain = (b->drain + 1) % b->stash_len;
		s = b->stash[b->drain];
		bank_buckets(b, &s.key, buckets);
		slot = bank_free_run(b, buckets, s.width, false);
		if (slot == BANK_NONE)
			continue;
		bank_remove_stashed(b, b->drain);
		bank_write_slots(b, slot, s.width, s.id, &s.key, s.value);
		b->place[s.id] = slot;
	}
}

/* -------------------------------------------------------------------------
 * Entries
 */
static u32 bank_find_at(const struct bank *b, const struct bank_key *key)
{
	u32 buckets[BANK_MAX_BANKS];
	u32 i, k, pos;

	bank_buckets(b, key, buckets);
	for (i = 0; i < b->g.banks; i++) {
		for (k = 0; k < b->g.slots; k++) {
			u32 slot = buckets[i] * b->g.slots + k;

			/* an IPv6 address can look like a key word: heads tells */
			if (b->cells[slot].word[0] != key->head || b->heads[slot] == BANK_NONE)
				continue;
			if (!bank_wide(key) ||
			    (b->cells[slot + 1].word[0] == key->tail[0] &&
			     b->cells[slot + 1].word[1] == key->tail[1]))
				return b->heads[slot];
		}
	}
	if (!b->stash_len)
		return BANK_NONE;
	pos = bank_find_stash(b, key, bank_key_hash(b, key));
	return pos == BANK_NONE ? BANK_NONE : b->stash[pos].id;
}

static u64 *bank_value_of(const struct bank *b, u32 id)
{
	u32 place = b->place[id];

	if (place & BANK_IN_STASH)
		return &b->stash[place & ~BANK_IN_STASH].value;
	return &b->cells[place].word[1];
}

bool bank_find(const struct bank *b, const struct bank_key *key, u64 *value)
{
	u32 id = bank_find_at(b, key);

	if (id == BANK_NONE)
		return false;
	if (value)
		*value = *bank_value_of(b, id);
	return true;
}

static u32 bank_new_id(struct bank *b)
{
	/* never more entries than slots: both arrays have one element per slot */
	return b->free_count ? b->free_ids[--b->free_count] : b->ids++;
}

static enum bank_result bank_place_at(struct bank *b, const struct bank_key *key, u64 value,
				      enum bank_mode mode, struct bank_placed *placed)
{
	u32 width = bank_width(b, key), slot, stash;

	if (b->free < width)
		return BANK_TABLE_FULL;
	stash = mode == BANK_FOLLOW ? b->g.stash - b->stash_used : bank_stash_free(b);
	slot = bank_find_room(b, key, width, &placed->moves);
	if (slot != BANK_NONE) {
		placed->id = bank_new_id(b);
		b->place[placed->id] = slot;
		bank_write_slots(b, slot, width, placed->id, key, value);
	} else if (stash >= width) {
		placed->id = bank_new_id(b);
		placed->in_stash = true;
		bank_push_stashed(b, key, value, placed->id, width);
	} else {
		return BANK_BUCKET_FULL;
	}
	b->free -= width;
	b->used += width;
	b->per_kind[bank_kind(key)]++;
	return BANK_OK;
}

enum bank_result bank_insert(struct bank *b, const struct bank_key *key, u64 value,
			     enum bank_mode mode, struct bank_placed *placed)
{
	struct bank_placed out = { .id = bank_find_at(b, key) };
	u32 width = bank_width(b, key);
	enum bank_result r;

	if (out.id != BANK_NONE) {
		*bank_value_of(b, out.id) = value;
		out.in_stash = b->place[out.id] & BANK_IN_STASH;
		r = BANK_THERE;
	} else if (mode == BANK_PROMISED && b->committed < width) {
		r = BANK_TABLE_FULL;
	} else {
		if (mode == BANK_PROMISED)
			bank_release(b, width);
		r = bank_place_at(b, key, value, mode, &out);
		if (r != BANK_OK && mode == BANK_PROMISED)
			bank_commit(b, width);
	}
	if (placed)
		*placed = out;
	return r;
}

bool bank_room(struct bank *b, const struct bank_key *key)
{
	u32 moves;

	if (bank_find_room(b, key, bank_width(b, key), &moves) == BANK_NONE)
		return false;
	bank_undo_moves(b, 0);
	return true;
}

static u32 bank_take_out(struct bank *b, const struct bank_key *key, bool *from_bank)
{
	u32 id = bank_find_at(b, key), width = bank_width(b, key);

	if (id == BANK_NONE)
		return 0;
	*from_bank = !(b->place[id] & BANK_IN_STASH);
	if (*from_bank)
		bank_clear_slots(b, b->place[id], width);
	else
		bank_remove_stashed(b, b->place[id] & ~BANK_IN_STASH);
	b->place[id] = BANK_NONE;
	b->free_ids[b->free_count++] = id;
	b->per_kind[bank_kind(key)]--;
	b->used -= width;
	b->free += width;
	return width;
}

u32 bank_remove(struct bank *b, const struct bank_key *key)
{
	bool from_bank = false;
	u32 width = bank_take_out(b, key, &from_bank);

	if (width && from_bank)
		bank_drain_stash(b);
	return width;
}

bool bank_commit(struct bank *b, u32 slots)
{
	if (bank_stash_free(b) < slots || b->free < slots)
		return false;
	b->free -= slots;
	b->committed += slots;
	return true;
}

void bank_release(struct bank *b, u32 slots)
{
	slots = min(slots, b->committed);
	b->committed -= slots;
	b->free += slots;
}

u32 bank_free_guaranteed(const struct bank *b, enum bank_kind kind)
{
	return min(bank_stash_free(b), b->free) / b->g.width[kind];
}

u32 bank_free_expected(const struct bank *b, enum bank_kind kind)
{
	/* the search leaves up to 1/256 of the banks behind for single slots, more for wide ones */
	u32 w = b->g.width[kind];
	u32 behind = (b->g.size - b->g.stash) / 256 * w;
	u32 n = b->free > behind ? (b->free - behind) / w : 0;

	return max(n, bank_free_guaranteed(b, kind));
}

u32 bank_next(const struct bank *b, u32 cursor, struct bank_key *key, u64 *value)
{
	u32 id, width;

	for (id = cursor; id < b->ids; id++) {
		if (b->place[id] == BANK_NONE)
			continue;
		if (b->place[id] & BANK_IN_STASH)
			*key = b->stash[b->place[id] & ~BANK_IN_STASH].key;
		else
			bank_read(b, id, key, &width);
		*value = *bank_value_of(b, id);
		return id + 1;
	}
	return 0;
}

u32 bank_place(const struct bank *b, const struct bank_key *key)
{
	u32 id = bank_find_at(b, key);

	return id == BANK_NONE ? BANK_NONE : b->place[id];
}

u32 bank_recount(const struct bank *b)
{
	u32 i, n = 0;

	for (i = 0; i < b->g.banks * b->g.buckets; i++)
		n += hweight8(b->occupied[i]);
	for (i = 0; i < b->stash_len; i++)
		n += b->stash[i].width;
	return n;
}

u64 bank_digest(const struct bank *b)
{
	u32 slots = bank_slots(&b->g), i;
	u64 d = 0;

	for (i = 0; i < slots; i++) {
		if (b->heads[i] != BANK_NONE)
			d = bank_mix(d ^ b->cells[i].word[0]) + i;
	}
	for (i = 0; i < b->stash_len; i++)
		d = bank_mix(d ^ bank_key_hash(b, &b->stash[i].key)) + i;
	return d;
}
