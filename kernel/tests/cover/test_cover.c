// SPDX-License-Identifier: GPL-2.0
/*
 * The cover rule against the vectors that it shares with user space, and
 * against a naive kernel: after every single command the chip's answer is the
 * kernel's of before or after the operation, or a trap; once everything fits
 * nothing traps; an allocation that fails changes nothing.
 *
 *   test_cover VECTOR.json...      COVER_CASES=N COVER_SEED=N
 */
#include <arpa/inet.h>
#include "json.h"
#include "sim.h"

static int passed, failed;
static long live, fail_in;	/* allocations; fail_in: countdown, 0 = never */

void *kzalloc(size_t size, unsigned int gfp)
{
	(void)gfp;
	if (fail_in && !--fail_in)
		return NULL;
	live++;
	return calloc(1, size);
}

void kfree(const void *p)
{
	if (p)
		live--;
	free((void *)p);
}

static void verdict(const char *name, bool ok)
{
	if (ok)
		passed++;
	else
		failed++;
	printf("%s %s\n", ok ? "ok  " : "FAIL", name);
}

static bool show_prefix(char *out, size_t size, u8 width, const struct sim_prefix *p)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(width == CLSW_COVER_V4 ? AF_INET : AF_INET6, p->addr, text, sizeof(text)))
		return false;
	return snprintf(out, size, "%s/%u", text, p->len) < (int)size;
}

static void show_command(char *out, size_t size, u8 width, const struct sim_command *c)
{
	static const char *const names[] = { "create", "update", "delete" };
	char prefix[64];

	show_prefix(prefix, sizeof(prefix), width, &c->p);
	if (c->op == SIM_DELETE)
		snprintf(out, size, "delete %s", prefix);
	else if (c->answer == SIM_TRAP)
		snprintf(out, size, "%s %s trap", names[c->op], prefix);
	else
		snprintf(out, size, "%s %s via %u", names[c->op], prefix, c->answer);
}

/* ---- vectors ---- */

static bool operation(struct sim *s, const char *op)
{
	char prefix[64], what[8] = "", *slash;
	unsigned int n = 0;
	struct sim_prefix p;
	u8 addr[16] = {};
	int words;

	if (sscanf(op, "resize %u", &n) == 1) {
		sim_resize(s, n);
		return true;
	}
	words = sscanf(op, "add %63s %7s %u", prefix, what, &n);
	if (words < 1 && sscanf(op, "remove %63s", prefix) != 1)
		return false;
	slash = strchr(prefix, '/');
	if (!slash)
		return false;
	*slash = 0;
	if (inet_pton(s->cover.width == CLSW_COVER_V4 ? AF_INET : AF_INET6, prefix, addr) != 1)
		return false;
	p = sim_prefix(addr, atoi(slash + 1));
	if (words < 1)
		sim_remove(s, &p);
	else if (!strcmp(what, "trap"))
		return sim_add(s, &p, SIM_TRAP);
	else
		return !strcmp(what, "via") && words == 3 && sim_add(s, &p, n);
	return true;
}

static long number(const struct json *doc, const char *key)
{
	const struct json *j = json_get(doc, key);

	return j && j->kind == JSON_NUMBER ? j->number : -1;
}

static bool replay(const struct json *doc)
{
	static struct sim s;
	const struct json *step, *list, *want, *op;
	long family = number(doc, "family");
	int steps = 0;
	char got[96];

	if ((family != 4 && family != 6) || number(doc, "slots") < 0 || number(doc, "units") < 0)
		return false;
	sim_init(&s, family == 4 ? CLSW_COVER_V4 : CLSW_COVER_V6, number(doc, "slots"),
		 number(doc, "units"));
	list = json_get(doc, "steps");
	for (step = list ? list->first : NULL; step; step = step->next, steps++) {
		int i = 0;

		op = json_get(step, "op");
		list = json_get(step, "commands");
		if (!op || !list || !operation(&s, op->text)) {
			printf("     what is \"%s\"?\n", op ? op->text : "");
			return false;
		}
		for (want = list->first; want || i < s.log_count; i++) {
			got[0] = 0;
			if (i < s.log_count)
				show_command(got, sizeof(got), s.cover.width, &s.log[i]);
			if (!want || strcmp(got, want->text)) {
				printf("     after \"%s\": command %d is \"%s\", wanted \"%s\"\n",
				       op->text, i, got, want ? want->text : "");
				return false;
			}
			want = want->next;
		}
	}
	clsw_cover_exit(&s.cover);
	return steps && !live;
}

static bool vector(const char *path)
{
	const char *where;
	static char text[65536];
	struct json *doc;
	FILE *f = fopen(path, "r");
	bool ok;

	if (!f) {
		perror(path);
		return false;
	}
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	doc = json_parse(text, &where);
	if (!doc) {
		printf("     %s: no JSON at byte %td\n", path, where - text);
		return false;
	}
	ok = replay(doc);
	json_free(doc);
	return ok;
}

/* ---- properties ---- */

static u64 seed;

static u32 chance(u32 below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 32) % below;
}

/* From a small space, so that prefixes nest and repeat */
static struct sim_prefix random_prefix(u8 width)
{
	static const u8 lens[] = { 0, 1, 2, 3, 4, 5, 6, 8, 10, 16, 24, 32 };
	u8 len = lens[chance(ARRAY_SIZE(lens))];
	u32 x = chance(64);
	u8 addr[16] = { x << 2, 0, x & 7, x & 3 };

	if (width == CLSW_COVER_V6) {
		memcpy(addr + 12, addr, 4);
		if (chance(4) == 0)
			len += 96;
	}
	return sim_prefix(addr, len);
}

/* Counts as the definition says, and as the nodes carry them */
static bool counts_hold(const struct clsw_cover_node *n)
{
	u32 sum = clsw_cover_is_missing(n);
	int i;

	for (i = 0; i < 2; i++) {
		const struct clsw_cover_node *k = n->kid[i];

		if (!k)
			continue;
		if (k->up != n || !counts_hold(k))
			return false;
		if (!clsw_cover_stands(k))
			sum += k->uncovered;
	}
	return sum == n->uncovered;
}

/* A sum over all that a failed allocation must leave alone */
static u64 fingerprint(const struct clsw_cover *c)
{
	const struct clsw_cover_node *n;
	u64 h = 14695981039346656037ULL ^ c->missing ^ c->aggregate_count;

	for (n = &c->root; n; n = clsw_cover_next_below(&c->root, n)) {
		u32 words[] = { n->bits[0], n->bits[1], n->bits[2], n->bits[3], n->uncovered,
				n->len, n->flags, !!n->owner };
		size_t i;

		for (i = 0; i < ARRAY_SIZE(words); i++)
			h = (h ^ words[i]) * 1099511628211ULL;
	}
	return h;
}

static void ends_of(const struct sim_table *t, u8 width, u8 (*addrs)[16], int *count)
{
	int i, bit;

	for (i = 0; i < t->count && *count < 4 * SIM_MAX - 1; i++) {
		memcpy(addrs[(*count)++], t->e[i].p.addr, 16);
		memcpy(addrs[*count], t->e[i].p.addr, 16);
		for (bit = t->e[i].p.len; bit < width; bit++)
			addrs[*count][bit / 8] |= 0x80 >> bit % 8;
		(*count)++;
	}
}

/* One command on a chip of our own; false: the command makes no sense there */
static bool obey(struct sim_table *chip, const struct sim_command *c)
{
	bool there = sim_table_find(chip, &c->p) >= 0, creates = c->op == SIM_CREATE;

	if (there == creates)
		return false;
	if (c->op == SIM_DELETE)
		sim_table_del(chip, &c->p);
	else
		sim_table_set(chip, &c->p, c->answer);
	return true;
}

static bool same(const struct sim_table *a, const struct sim_table *b)
{
	int i;

	for (i = 0; i < a->count && i < b->count; i++) {
		if (memcmp(&a->e[i].p, &b->e[i].p, sizeof(a->e[i].p)) ||
		    a->e[i].answer != b->e[i].answer)
			return false;
	}
	return a->count == b->count;
}

static const char *check_commands(struct sim *s, struct sim_table *chip,
				  const struct sim_table *before)
{
	static u8 addrs[4 * SIM_MAX][16];
	static char text[160];
	int i, j, count = 0;
	char command[96];

	ends_of(before, s->cover.width, addrs, &count);
	ends_of(&s->kernel, s->cover.width, addrs, &count);
	ends_of(chip, s->cover.width, addrs, &count);
	for (i = 0; i < s->log_count; i++) {
		show_command(command, sizeof(command), s->cover.width, &s->log[i]);
		if (!obey(chip, &s->log[i])) {
			snprintf(text, sizeof(text), "\"%s\" finds the chip otherwise", command);
			return text;
		}
		for (j = 0; j < count; j++) {
			u32 hw = sim_table_lookup(chip, addrs[j]);

			if (hw != SIM_TRAP && hw != sim_table_lookup(before, addrs[j]) &&
			    hw != sim_table_lookup(&s->kernel, addrs[j])) {
				snprintf(text, sizeof(text), "after \"%s\" a packet goes via %u",
					 command, hw);
				return text;
			}
		}
	}
	for (j = 0; j < count; j++) {
		u32 hw = sim_table_lookup(chip, addrs[j]);

		if (hw != SIM_TRAP && hw != sim_table_lookup(&s->kernel, addrs[j]))
			return "settled, and still another answer than the kernel's";
	}
	return NULL;
}

static const char *check_state(const struct sim *s, const struct sim_table *chip)
{
	int i, foreign = 0;

	if (!same(chip, &s->chip))
		return "commands and chip differ";
	if (!counts_hold(&s->cover.root))
		return "a count is not what the definition says";
	for (i = 0; i < chip->count; i++)
		foreign += sim_table_find(&s->kernel, &chip->e[i].p) < 0;
	if (foreign > s->units)
		return "more aggregate traps than units";
	if ((u32)live + 1 != s->cover.nodes)
		return "nodes and allocations differ";
	return NULL;
}

/* One random operation */
static const char *one(struct sim *s, struct sim_table *chip)
{
	static struct sim_table before;
	u32 dice = chance(16);
	struct sim_prefix p;
	u64 print;

	before = s->kernel;
	p = random_prefix(s->cover.width);
	if (dice < 9) {
		print = fingerprint(&s->cover);
		fail_in = chance(6) == 0 ? 1 + chance(2) : 0;
		if (!sim_add(s, &p, dice == 8 ? SIM_TRAP : 1 + chance(4))) {
			if (print != fingerprint(&s->cover) || !same(&before, &s->kernel))
				return "an allocation failed, and something has changed";
		}
		fail_in = 0;
	} else if (dice < 14) {
		if (!s->kernel.count)
			return NULL;
		p = s->kernel.e[chance(s->kernel.count)].p;
		fail_in = 1;	/* a delete allocates nothing */
		sim_remove(s, &p);
		if (!fail_in)
			return "a delete asked for memory";
		fail_in = 0;
	} else if (dice == 14) {
		sim_resize(s, s->units + 3 + chance(11));
	} else if (chance(4) == 0) {
		sim_forget_hardware(s);
		chip->count = 0;
		/* What the chip said before it was lost does not count */
		before = s->kernel;
	} else {
		s->log_count = 0;
	}
	return check_commands(s, chip, &before);
}

static const char *one_case(u8 width)
{
	static struct sim s;
	static struct sim_table chip;
	int ops = 1 + chance(60), units = chance(5);
	const char *wrong = NULL;

	chip.count = 0;
	sim_init(&s, width, units + 3 + chance(9), units);
	while (ops-- && !wrong) {
		wrong = one(&s, &chip);
		if (!wrong)
			wrong = check_state(&s, &chip);
	}
	if (!wrong) {
		sim_resize(&s, SIM_MAX);
		if (!same(&s.chip, &s.kernel) || s.cover.missing)
			wrong = "room for everything, and something still traps or is missing";
	}
	while (!wrong && s.kernel.count) {
		struct sim_prefix p = s.kernel.e[chance(s.kernel.count)].p;

		sim_remove(&s, &p);
	}
	if (!wrong && (s.chip.count || s.cover.nodes != 1 || live))
		wrong = "all is removed, and something is left";
	clsw_cover_exit(&s.cover);
	if (!wrong && live)
		wrong = "memory leaked";
	return wrong;
}

static bool property(u8 width, long cases, u64 first)
{
	long i;

	for (i = 0; i < cases; i++) {
		u64 start = (first + i + 1) * 0x9e3779b97f4a7c15ULL;
		const char *wrong;

		seed = start ? start : 1;
		wrong = one_case(width);
		if (wrong) {
			printf("     COVER_SEED=%llu COVER_CASES=1: %s\n",
			       (unsigned long long)(first + i), wrong);
			return false;
		}
	}
	return true;
}

/* A whole tree goes at once, without recursion and without a leak */
static bool exit_frees_all(void)
{
	struct clsw_cover c;
	u32 i;

	clsw_cover_init(&c, CLSW_COVER_V4);
	seed = 88172645463325252ULL;
	for (i = 0; i < 20000; i++) {
		u8 addr[4] = { chance(256), chance(256), chance(256), chance(256) };
		struct clsw_cover_node *n = clsw_cover_get(&c, addr, 8 + chance(25), &c);

		clsw_cover_set_kernel(&c, n, true);
		if (i % 3 == 0)
			clsw_cover_missing(&c, n);
	}
	if ((u32)live + 1 != c.nodes)
		return false;
	clsw_cover_exit(&c);
	return !live && c.nodes == 1;
}

/* Lookups of the trie against the obvious ones */
static bool lookups_hold(void)
{
	static struct sim s;
	int i, round;
	bool ok = true;

	seed = 1234567;
	sim_init(&s, CLSW_COVER_V6, SIM_MAX, 0);
	for (i = 0; i < 40; i++) {
		struct sim_prefix p = random_prefix(CLSW_COVER_V6);

		sim_add(&s, &p, 1 + i);
	}
	for (round = 0; round < 2000 && ok; round++) {
		struct sim_prefix p = random_prefix(CLSW_COVER_V6), q;
		const struct clsw_cover_node *n, *top;
		int below = 0, walked = 0;

		n = clsw_cover_kernel_match(&s.cover, p.addr);
		q.len = n ? n->len : 0;
		if (n) {
			clsw_cover_addr(&s.cover, n, q.addr);
			i = sim_table_find(&s.kernel, &q);
			ok = i >= 0 && s.kernel.e[i].answer == sim_table_lookup(&s.kernel, p.addr);
		} else {
			ok = sim_table_lookup(&s.kernel, p.addr) == SIM_TRAP;
		}
		for (i = 0; i < s.kernel.count; i++) {
			q = sim_prefix(s.kernel.e[i].p.addr, p.len);
			below += s.kernel.e[i].p.len >= p.len && !memcmp(q.addr, p.addr, 16);
		}
		top = clsw_cover_first_below(&s.cover, p.addr, p.len);
		for (n = top; n; n = clsw_cover_next_below(top, n))
			walked += clsw_cover_in_kernel(n);
		ok = ok && below == walked;
	}
	clsw_cover_exit(&s.cover);
	return ok;
}

/* ---- decisions, one by one: what the simulated driver never gets to ---- */

/* A prefix of the kernel's, in hardware or without room there; aggregates that are wanted stand */
static struct clsw_cover_node *kernels(struct clsw_cover *c, u8 a, u8 b, u8 len, bool installed)
{
	u8 addr[4] = { a, b };
	struct clsw_cover_node *n = clsw_cover_get(c, addr, len, c);
	u32 i;

	clsw_cover_set_kernel(c, n, true);
	if (installed)
		clsw_cover_installed(c, n);
	else
		clsw_cover_missing(c, n);
	for (i = 0; i < c->aggregate_count; i++)
		clsw_cover_aggregate_up(c, c->aggregates[i], true);
	return n;
}

static bool aggregate_at(struct clsw_cover *c, u8 a, u8 b, u8 len)
{
	u8 addr[4] = { a, b };
	struct clsw_cover_node *n = clsw_cover_find(c, addr, len);

	return n && clsw_cover_aggregate(n);
}

/* Reliefs that are due happen when somebody asks what was touched */
static void look(struct clsw_cover *c)
{
	while (clsw_cover_next_touched(c))
		;
}

static bool begins_as_a_trap(void)
{
	struct clsw_cover_node *n;
	struct clsw_cover c;
	u8 net[4] = { 10 };
	bool ok;

	clsw_cover_init(&c, CLSW_COVER_V4);
	n = kernels(&c, 10, 1, 16, false);
	ok = !clsw_cover_starts_as_trap(n);
	n = clsw_cover_get(&c, net, 8, &c);
	clsw_cover_set_kernel(&c, n, true);
	ok = ok && clsw_cover_starts_as_trap(n);
	clsw_cover_exit(&c);
	return ok;
}

/* More units relieve a cover that forwards, if they suffice for all that is missing below it */
static bool units_relieve(bool traps, int missing, u32 units, bool relieved)
{
	struct clsw_cover_node *root;
	struct clsw_cover c;
	bool ok;
	int i;

	clsw_cover_init(&c, CLSW_COVER_V4);
	root = kernels(&c, 0, 0, 0, true);
	clsw_cover_set_traps(&c, root, traps);
	for (i = 0; i < missing; i++)
		kernels(&c, 10 + 16 * i, 0, 8, false);
	look(&c);
	clsw_cover_set_units(&c, units);
	look(&c);
	ok = c.aggregate_count == (relieved ? (u32)missing : 0);
	/* below one that traps anyway no unit is spent */
	kernels(&c, 200, 0, 8, false);
	ok = ok && (relieved || !c.aggregate_count);
	clsw_cover_exit(&c);
	return ok;
}

/* Where no unit is free but the last, two become one: the tightest, and no more specific cover's */
static bool merges(void)
{
	struct clsw_cover c;
	bool ok;

	clsw_cover_init(&c, CLSW_COVER_V4);
	clsw_cover_set_units(&c, 2);
	kernels(&c, 0, 0, 0, true);
	kernels(&c, 10, 0, 8, false);
	kernels(&c, 11, 0, 8, false);
	ok = aggregate_at(&c, 10, 0, 7) && !aggregate_at(&c, 10, 0, 8) &&
	     !aggregate_at(&c, 11, 0, 8);
	clsw_cover_exit(&c);

	clsw_cover_init(&c, CLSW_COVER_V4);
	clsw_cover_set_units(&c, 3);
	kernels(&c, 0, 0, 0, true);
	kernels(&c, 10, 0, 16, false);
	kernels(&c, 10, 64, 16, false);
	kernels(&c, 10, 1, 16, false);
	ok = ok && aggregate_at(&c, 10, 0, 15) && aggregate_at(&c, 10, 64, 16);
	clsw_cover_exit(&c);

	clsw_cover_init(&c, CLSW_COVER_V4);
	clsw_cover_set_units(&c, 3);
	kernels(&c, 0, 0, 0, true);
	kernels(&c, 10, 0, 12, true);
	kernels(&c, 10, 1, 16, false);
	kernels(&c, 10, 32, 16, false);
	kernels(&c, 10, 64, 16, false);
	ok = ok && aggregate_at(&c, 10, 0, 9) && aggregate_at(&c, 10, 1, 16);
	clsw_cover_exit(&c);
	return ok;
}

static bool routes_leave_no_nodes(void)
{
	struct clsw_cover_node *n;
	u8 net[4] = { 10, 1 };
	struct clsw_cover c;
	bool ok;

	clsw_cover_init(&c, CLSW_COVER_V4);
	n = clsw_cover_get(&c, net, 16, NULL);
	clsw_cover_set_kernel(&c, n, true);
	clsw_cover_set_kernel(&c, n, false);
	ok = c.nodes == 1 && !live;
	clsw_cover_exit(&c);
	return ok;
}

static long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	long cases = setting("COVER_CASES", 4000), first = setting("COVER_SEED", 1);
	int i;

	for (i = 1; i < argc; i++) {
		const char *name = strrchr(argv[i], '/');

		verdict(name ? name + 1 : argv[i], vector(argv[i]));
	}
	verdict("never another answer, IPv4", property(CLSW_COVER_V4, cases, first));
	verdict("never another answer, IPv6", property(CLSW_COVER_V6, cases / 2 + 1, first));
	verdict("lookups are the obvious ones", lookups_hold());
	verdict("exit frees every node", exit_frees_all());
	verdict("a cover of what is missing begins as a trap", begins_as_a_trap());
	verdict("units relieve who forwards", units_relieve(false, 2, 3, true));
	verdict("units that suffice for some relieve nobody", units_relieve(false, 3, 3, false));
	verdict("who traps anyway needs no relief", units_relieve(true, 2, 3, false));
	verdict("two aggregates become one", merges());
	verdict("routes that are gone leave no nodes", routes_leave_no_nodes());
	printf("cover: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
