/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A driver and a device around the resource manager: two command queues whose
 * completions come late, a drainer that posts in any order, time-outs,
 * learning with late events. Every step is checked.
 */
#ifndef RESOURCE_WORLD_H
#define RESOURCE_WORLD_H

#include "chip.h"

#define OBJECTS		448
#define QUEUE		4096

enum state { ABSENT, ADMITTED, POSTED, THERE, LEAVING, LOST };

struct obj {
	u8 state;
	bool learned;		/* in the device, by itself */
	bool best_effort;
	struct rm_ticket ticket;
	struct thing thing;
};

enum work_kind { W_CREATE, W_DELETE, W_LEASE, W_RELEASE, W_RELEASE_OF };

struct work {
	u8 kind;
	u32 n;			/* object, lease id, or slot of a lost ask */
	u32 lease;
	bool lose;		/* its completion never comes */
	struct rm_ask ask;
	struct tnd_cpl cpl;
};

struct queue {
	struct work *w;
	u32 head, done, tail;	/* delivered, executed, posted */
};

struct event {
	u32 n;
	bool aged;
};

struct world {
	struct chip chip;
	struct rm *rm;
	struct obj obj[OBJECTS];
	struct queue sync, bulk;
	struct event event[QUEUE];
	u32 event_head, event_tail;
	bool learning;
	bool hostile;		/* the device's answers are nonsense at times: nothing may break */
	bool faults;		/* time-outs, failed writes: promises may break, counters may not */
	u32 out;		/* lost creates whose compensating delete is out */
	unsigned long steps, admitted, refused, exact_full;
	/* where decisions come from: random numbers, then bytes of a fuzzer */
	struct rnd rnd;
	const u8 *bytes;
	size_t len;
};

void world_init(struct world *w, u64 seed, u8 policy, bool learning, bool geometry, bool faults);
void world_fini(struct world *w);
u32 pick(struct world *w, u32 n);
/* One random thing happens */
void world_step(struct world *w);
/* The driver wants object @n now; true: it is admitted */
bool world_admit(struct world *w, u32 n, u8 flags);
void world_delete(struct world *w, u32 n);
/* Everything that is out completes */
void world_quiesce(struct world *w);
/* After world_quiesce(): the device and the manager agree */
void world_agree(struct world *w);
void world_check(struct world *w);

#endif
