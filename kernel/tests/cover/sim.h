/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cover rule on a chip that answers at once, between a naive kernel table
 * and a chip with a fixed number of slots. Operations in, hardware commands
 * out; the same as switch/cover/tests/sim/mod.rs, which wrote the test vectors.
 */
#ifndef COVER_SIM_H
#define COVER_SIM_H

#include "../../clsw/cover/cover.h"

#define SIM_MAX		512	/* prefixes, entries, commands of one operation */
#define SIM_TRAP	0	/* answers: a trap, or a next hop from 1 */

struct sim_prefix {
	u8 addr[16];
	u8 len;
};

struct sim_entry {
	struct sim_prefix p;
	u32 answer;
};

/* Sorted by address, then length */
struct sim_table {
	struct sim_entry e[SIM_MAX];
	int count;
};

enum sim_op { SIM_CREATE, SIM_UPDATE, SIM_DELETE };

struct sim_command {
	enum sim_op op;
	struct sim_prefix p;
	u32 answer;
};

struct sim {
	struct clsw_cover cover;
	struct sim_table kernel, chip;
	int slots, units;
	struct sim_prefix waiting[SIM_MAX];
	int waiting_count;
	struct sim_command log[SIM_MAX];
	int log_count;
};

/* Bits beyond the length are cleared */
struct sim_prefix sim_prefix(const u8 *addr, u8 len);
int sim_table_find(const struct sim_table *t, const struct sim_prefix *p);
void sim_table_set(struct sim_table *t, const struct sim_prefix *p, u32 answer);
void sim_table_del(struct sim_table *t, const struct sim_prefix *p);
/* Longest match; SIM_TRAP on a miss */
u32 sim_table_lookup(const struct sim_table *t, const u8 *addr);

void sim_init(struct sim *s, u8 width, int slots, int units);
/* Each leaves its commands in log. False: no memory, and nothing has changed */
bool sim_add(struct sim *s, const struct sim_prefix *p, u32 answer);
void sim_remove(struct sim *s, const struct sim_prefix *p);
void sim_resize(struct sim *s, int slots);
void sim_forget_hardware(struct sim *s);

#endif
