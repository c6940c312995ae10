/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The driver's core on a device of the test's: the resource manager's test
 * device (kernel/tests/resource/chip.h) behind two queues that answer in order
 * and take their time, or don't answer at all.
 *
 *   put, drop -> store, drain, rm -> post -> queue -(due)-> chip -> reap -> clsw_complete
 */
#ifndef CORE_WORLD_H
#define CORE_WORLD_H

#include "core.h"
#include "../resource/chip.h"

#define THINGS		448
#define OUT_MOST	512

struct posted {
	struct tnd_cmd cmd;
	u8 body[512];
	u64 due;
};

struct line {
	struct posted p[OUT_MOST];
	u32 head, tail;
	u64 last_due;
};

struct world {
	struct chip chip;
	struct clsw_device *cd;
	struct line line[CLSW_Q_COUNT];
	struct clsw_obj *obj[THINGS];	/* of what is wanted */
	u8 gen[THINGS], gen_now;
	u64 answer_ns;			/* from a post to its answer, in order */
	u64 lease_of[4096];		/* cookie of each lease, by its id */
	bool alive;
	u32 lose_percent;
	u32 refuse_percent;
	u16 refuse_cls;			/* 0: of any class */
	u16 refuse_status;		/* ... with this */
	u32 wrong_leases;		/* so many leased writes are of no lease it knows */
	u32 begin_errors, end_errors;	/* so many BEGIN_RESYNCs, END_RESYNCs fail */
	u32 too_long;			/* bodies from here on are refused with -E2BIG */
	bool stuffed;			/* the queues take nothing now */
	bool armed;			/* the drainer sleeps until something is answered */
	u32 target[THINGS];		/* of a route: next hop or group that its puts name, or 0 */
	u32 way[THINGS];		/* of one in the chip: what it forwards by; 0: it traps */
	unsigned long depends;		/* writes refused: what they name is not there */
	void (*meanwhile)(struct world *w);	/* while somebody sleeps, or looks for answers */
	bool busy;
	struct rnd rnd;
	bool resync;			/* between BEGIN_RESYNC and END_RESYNC */
	unsigned long cls_writes[CLSW_CLASS_COUNT];
	unsigned long writes, deletes, told, sweeps, swept, resyncs;
	u16 told_of[THINGS];
	u64 turn_ns;			/* the longest that the drainer did not sleep */
	bool strict;			/* NOENT for an idempotent DELETE, too */
	u32 cannot;			/* CLSW_CAN_* that the chip lacks */
	u32 cannot_hold;		/* classes that it lacks, a bit each */
	u16 rif;			/* its highest number of a router interface; 0: ours */
	u16 mtu;			/* its longest packet; 0: as long as ours */
	u32 broken;			/* this thing it always fails to write; 0: none */
	bool has_domain, has_rif;	/* domain 1, and a router interface on it */
	u32 degraded, plain;		/* writes of these that hide what is missing, or not */
	unsigned long in_use;		/* deletes of the domain refused: the interface is on it */
	unsigned int attaches;		/* so many there were */
	bool trouble;			/* the chip fails when L2 begins */
	int l3_err;			/* what L3's beginning returns */
};

extern struct world w;
extern unsigned int *shim_param_wait_ms;	/* wait.c's parameter */

/* Registers a device: 0 or what clsw_device_register() says. NHGs have 1 to CHIP_MEMBERS members */
int world_begin(u64 seed);
/* The same with a chip that fails on the way, and L3 that returns @l3_err */
int world_begin_with(u64 seed, int l3_err);
/* The same with a chip that lacks something */
int world_begin_without(u64 seed, u32 cannot, u32 cannot_hold);
/* The same with a chip that has router interfaces up to @rif */
int world_begin_rifs(u64 seed, u16 rif);
/* The same with a chip whose packets have up to @mtu bytes */
int world_begin_mtu(u64 seed, u16 mtu);
/* After a registration that failed; world_end() does it by itself */
void world_free(void);
void world_policy(u8 policy);
void world_end(void);
/*
 * Puts thing @n; what clsw_put() says. @variant: another body of the same key; of
 * a group, from 2 on: one with @variant - 1 members
 */
int world_put(u32 n, u8 flags, u8 variant);
void world_drop(u32 n);
/* Puts the domain, or the router interface on it (@variant: another MAC address) */
struct clsw_obj *world_put_domain(void);
struct clsw_obj *world_put_rif(u8 variant);
void world_drop_obj(struct clsw_obj *obj);
/* The drainer runs, and time goes on, until nothing is out; false: not within 60 s */
bool world_settle(void);
/* After world_settle(): store, resource manager and chip agree */
void world_agree(void);
/* After that: what has found no room, of a class that is counted, has none */
void world_full(void);
/* Things of one class: the @i-th */
static inline u32 thing(u32 class, u32 i)
{
	return class + i * CLASSES;
}

#endif
