// SPDX-License-Identifier: GPL-2.0
/* See sim.h */
#include "sim.h"

struct sim_prefix sim_prefix(const u8 *addr, u8 len)
{
	struct sim_prefix p = { .len = len };
	int i;

	for (i = 0; i < len; i++)
		p.addr[i / 8] |= addr[i / 8] & (0x80 >> i % 8);
	return p;
}

static int compare(const struct sim_prefix *a, const struct sim_prefix *b)
{
	int by_addr = memcmp(a->addr, b->addr, sizeof(a->addr));

	return by_addr ? by_addr : (int)a->len - (int)b->len;
}

int sim_table_find(const struct sim_table *t, const struct sim_prefix *p)
{
	int i;

	for (i = 0; i < t->count; i++) {
		if (!compare(&t->e[i].p, p))
			return i;
	}
	return -1;
}

void sim_table_set(struct sim_table *t, const struct sim_prefix *p, u32 answer)
{
	int i = sim_table_find(t, p);

	if (i < 0) {
		if (t->count == SIM_MAX)
			abort();
		for (i = 0; i < t->count && compare(&t->e[i].p, p) < 0; i++)
			;
		memmove(&t->e[i + 1], &t->e[i], (t->count - i) * sizeof(t->e[0]));
		t->count++;
		t->e[i].p = *p;
	}
	t->e[i].answer = answer;
}

void sim_table_del(struct sim_table *t, const struct sim_prefix *p)
{
	int i = sim_table_find(t, p);

	if (i < 0)
		return;
	t->count--;
	memmove(&t->e[i], &t->e[i + 1], (t->count - i) * sizeof(t->e[0]));
}

u32 sim_table_lookup(const struct sim_table *t, const u8 *addr)
{
	int i, best = -1;

	for (i = 0; i < t->count; i++) {
		struct sim_prefix p = sim_prefix(addr, t->e[i].p.len);

		if (!compare(&p, &t->e[i].p) && (best < 0 || p.len > t->e[best].p.len))
			best = i;
	}
	return best < 0 ? SIM_TRAP : t->e[best].answer;
}

/* ---- the driver's part ---- */

static struct sim_prefix prefix_of(const struct sim *s, const struct clsw_cover_node *n)
{
	struct sim_prefix p = { .len = n->len };

	clsw_cover_addr(&s->cover, n, p.addr);
	return p;
}

static void run(struct sim *s, enum sim_op op, const struct sim_prefix *p, u32 answer)
{
	if (s->log_count == SIM_MAX)
		abort();
	s->log[s->log_count++] = (struct sim_command){ op, *p, answer };
	if (op == SIM_DELETE)
		sim_table_del(&s->chip, p);
	else
		sim_table_set(&s->chip, p, answer);
}

static u32 content(const struct sim *s, const struct sim_prefix *p, bool forced)
{
	int i = sim_table_find(&s->kernel, p);

	return forced || i < 0 ? SIM_TRAP : s->kernel.e[i].answer;
}

static int ordinary_used(const struct sim *s)
{
	int i, used = 0;

	for (i = 0; i < s->chip.count; i++) {
		const struct sim_prefix *p = &s->chip.e[i].p;
		const struct clsw_cover_node *n = clsw_cover_find(&s->cover, p->addr, p->len);

		used += n && clsw_cover_is_installed(n);
	}
	return used;
}

static bool room(const struct sim *s)
{
	return ordinary_used(s) + s->units < s->slots;
}

static void put_in_chip(struct sim *s, struct clsw_cover_node *n, const struct sim_prefix *p)
{
	bool there = sim_table_find(&s->chip, p) >= 0;

	run(s, there ? SIM_UPDATE : SIM_CREATE, p, content(s, p, clsw_cover_starts_as_trap(n)));
	clsw_cover_installed(&s->cover, n);
}

/* Brings the chip's entry for one node in line with what the rule asks */
static void step(struct sim *s, struct clsw_cover_node *n)
{
	struct sim_prefix p = prefix_of(s, n), next;
	int at = sim_table_find(&s->chip, &p);
	struct clsw_cover_node *cover;
	u32 want;

	if (clsw_cover_in_kernel(n) && clsw_cover_is_installed(n)) {
		want = content(s, &p, clsw_cover_forced(n) > 0);
		if (at < 0 || s->chip.e[at].answer != want)
			run(s, SIM_UPDATE, &p, want);
		return;
	}
	if (clsw_cover_in_kernel(n) && !clsw_cover_is_missing(n)) {
		if (room(s)) {
			put_in_chip(s, n, &p);
		} else {
			s->waiting[s->waiting_count++] = p;
			clsw_cover_missing(&s->cover, n);
		}
		return;
	}
	if (clsw_cover_aggregate(n)) {
		if (at < 0 && s->chip.count < s->slots) {
			clsw_cover_aggregate_up(&s->cover, n, true);
			run(s, SIM_CREATE, &p, SIM_TRAP);
		} else if (at >= 0) {
			if (s->chip.e[at].answer != SIM_TRAP)
				run(s, SIM_UPDATE, &p, SIM_TRAP);
			clsw_cover_aggregate_up(&s->cover, n, true);
		}
		return;
	}
	if (at < 0) {
		if (!clsw_cover_in_kernel(n))
			clsw_cover_put(&s->cover, n);
		return;
	}
	/* It goes: first whoever answers next must trap, if anything is uncovered */
	cover = clsw_cover_next(n);
	if (clsw_cover_uncovered(n) && cover) {
		next = prefix_of(s, cover);
		at = sim_table_find(&s->chip, &next);
		if (at < 0 || s->chip.e[at].answer != SIM_TRAP)
			run(s, SIM_UPDATE, &next, SIM_TRAP);
	}
	run(s, SIM_DELETE, &p, SIM_TRAP);
	if (clsw_cover_is_installed(n))
		clsw_cover_withdrawn(&s->cover, n);
	else
		clsw_cover_aggregate_up(&s->cover, n, false);
	/* It may have gone by that */
	n = clsw_cover_find(&s->cover, p.addr, p.len);
	if (n && !clsw_cover_in_kernel(n))
		clsw_cover_put(&s->cover, n);
}

static bool retry(struct sim *s)
{
	struct clsw_cover_node *n;
	struct sim_prefix p;

	if (!s->waiting_count || !room(s))
		return false;
	p = s->waiting[0];
	s->waiting_count--;
	memmove(s->waiting, s->waiting + 1, s->waiting_count * sizeof(p));
	n = clsw_cover_find(&s->cover, p.addr, p.len);
	if (!n)
		abort();
	clsw_cover_touch(&s->cover, n);
	put_in_chip(s, n, &p);
	return true;
}

static void settle(struct sim *s)
{
	struct clsw_cover_node *n;

	do {
		while ((n = clsw_cover_next_touched(&s->cover)))
			step(s, n);
	} while (retry(s));
}

void sim_init(struct sim *s, u8 width, int slots, int units)
{
	memset(s, 0, sizeof(*s));
	clsw_cover_init(&s->cover, width);
	clsw_cover_set_units(&s->cover, units);
	s->slots = slots;
	s->units = units;
}

bool sim_add(struct sim *s, const struct sim_prefix *p, u32 answer)
{
	struct clsw_cover_node *n = clsw_cover_get(&s->cover, p->addr, p->len, s);

	s->log_count = 0;
	if (!n)
		return false;
	sim_table_set(&s->kernel, p, answer);
	clsw_cover_set_kernel(&s->cover, n, true);
	clsw_cover_set_traps(&s->cover, n, answer == SIM_TRAP);
	clsw_cover_touch(&s->cover, n);
	settle(s);
	return true;
}

void sim_remove(struct sim *s, const struct sim_prefix *p)
{
	struct clsw_cover_node *n = clsw_cover_find(&s->cover, p->addr, p->len);
	int i, kept = 0;

	s->log_count = 0;
	if (!n || sim_table_find(&s->kernel, p) < 0)
		return;
	sim_table_del(&s->kernel, p);
	for (i = 0; i < s->waiting_count; i++) {
		if (compare(&s->waiting[i], p))
			s->waiting[kept++] = s->waiting[i];
	}
	s->waiting_count = kept;
	clsw_cover_touch(&s->cover, n);
	clsw_cover_set_kernel(&s->cover, n, false);
	settle(s);
}

void sim_resize(struct sim *s, int slots)
{
	s->log_count = 0;
	s->slots = slots;
	settle(s);
}

void sim_forget_hardware(struct sim *s)
{
	struct clsw_cover_node *n;
	int i, len;

	s->log_count = 0;
	s->chip.count = 0;
	s->waiting_count = 0;
	clsw_cover_forget_hardware(&s->cover);
	/* Longest first: no entry answers for a more specific one still to come */
	for (len = s->cover.width; len >= 0; len--) {
		for (i = 0; i < s->kernel.count; i++) {
			const struct sim_prefix *p = &s->kernel.e[i].p;

			if (p->len == len)
				clsw_cover_touch(&s->cover,
						 clsw_cover_find(&s->cover, p->addr, p->len));
		}
	}
	/* What only an aggregate trap kept is given up */
	for (n = &s->cover.root; n; n = clsw_cover_next_below(&s->cover.root, n)) {
		if (n->owner && !clsw_cover_in_kernel(n))
			clsw_cover_touch(&s->cover, n);
	}
	settle(s);
}
