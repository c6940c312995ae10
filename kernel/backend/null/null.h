/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clsw_null: a chip inside the kernel, for timing and for tests.
 *
 *   clsw -- post, kick --> queue SYNC  --+                      +--> objects, pools,
 *                          queue BULK  --+--> one firmware  ----+    leases, banks
 *   clsw_null -- read ---> one reader  --+    CPU (unit.c)      +--> completions
 *                                             write_ns, query_ns      ^
 *   clsw -- reap, want_irq -------------------------------------------+
 *
 * What it models: a chip whose firmware takes one command at a time and needs
 * write_ns for a write and query_ns for a question or lease, whoever asks;
 * SYNC goes before BULK, but nothing is interrupted. With write_batch > 1 it
 * takes up to that many writes at once, for write_ns and entry_ns for each
 * after the first.
 *
 * The chip works in time, not in code: unit.c knows when each command begins
 * and is done, and nothing runs at that instant. Whoever looks (reap, kick, a
 * reader) first brings the chip up to now. So the model takes no CPU time
 * that a real chip would not take, but for what execution itself costs, and
 * that is counted (debugfs timing, model_ns). A timer is set only if somebody
 * sleeps: that is the interrupt.
 *
 * Semantics (references, statuses, accounting, leases, resync, placement) are
 * those of asic/firmware. No packets, no learning, no activity; carrier comes
 * by LINK events.
 *
 * Lock: everything is under clsw_lock(), attach with nothing attached.
 */
#ifndef _CLSW_NULL_H
#define _CLSW_NULL_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>

#include "clsw.h"
#include "../../clsw/resource/bank.h"

#define NULL_SYNC_DEPTH		256
#define NULL_BULK_DEPTH		4096
#define NULL_LONG_BODIES	128	/* bodies longer than TND_BODY_INLINE, queued at a time */
#define NULL_BODY_MAX		(sizeof(struct tnd_nhg) + \
				 TND_NHG_MAX_MEMBERS * sizeof(struct tnd_nhg_member))
#define NULL_LEASES		64
#define NULL_FAULTS		16
#define NULL_MAX_PORTS		128
#define NULL_MAX_FID		4095
#define NULL_MAX_VID		4094
#define NULL_MAX_WEIGHT		256
#define NULL_MAX_RIF		((1U << 14) - 1)
#define NULL_NONE		U32_MAX
/* one DUMP looks at so many places, one slice of a sweep at so many objects */
#define NULL_SCAN		4096
#define NULL_SLICE		1024

/* Order and ids of SNAPSHOT, as asic/firmware has them */
enum null_pool_id {
	NULL_P_EXACT,
	NULL_P_LPM4,
	NULL_P_LPM6,
	NULL_P_RIF,
	NULL_P_VRF,
	NULL_P_VLAN,
	NULL_P_MEMBER,
	NULL_P_NEXTHOP,
	NULL_P_NHG,
	NULL_P_NHG_MEMBER,
	NULL_POOLS
};

/* Runs of places in null_chip.obj: one per table */
enum null_run {
	NULL_R_PORT,
	NULL_R_TRAP,
	NULL_R_VLAN,
	NULL_R_MEMBER,
	NULL_R_EXACT,
	NULL_R_VRF,
	NULL_R_RIF,
	NULL_R_NEXTHOP,
	NULL_R_NHG,
	NULL_R_ROUTE4,
	NULL_R_ROUTE6,
	NULL_RUNS
};

struct null_profile {
	const char *name;
	u32 banks, buckets_per_bank, slots_per_bucket, stash, max_moves;
	u8 width_mac, width_host4, width_host6;
	u32 lpm4, lpm4_cost, lpm6, lpm6_cost;
	u32 rif, vrf, vlan, vlan_member, nexthop, nhg, nhg_member;
	u32 nhg_max_members;
	u32 write_ns, query_ns;
	u16 ports, cage, lanes;
	u32 breakout, speed_mbps;
	const char *vendor, *product, *part_number, *serial;
	u8 base_mac[6];
	u16 mac_count;
};

/* A body in its normal form: fields that don't count are zero */
union null_body {
	__le16 struct_size;
	struct tnd_port port;
	struct tnd_vlan vlan;
	struct tnd_vlan_member member;
	struct tnd_fdb fdb;
	struct tnd_vrf vrf;
	struct tnd_rif rif;
	struct tnd_neigh neigh;
	struct tnd_nexthop nexthop;
	struct tnd_route route;
	struct tnd_trap trap;
	struct {
		struct tnd_nhg head;
		struct tnd_nhg_member *member;	/* its own; or in a command's body */
	} nhg;
	u64 word[4];
};

/**
 * struct null_obj - one object in the chip
 * @next: in the chain of its hash, or of free places
 * @refs: objects that refer to it
 * @gen: the resync that has confirmed it
 * @cls: enum tnd_class, 0: a free place
 */
struct null_obj {
	u32 next;
	u32 refs;
	u32 gen;
	u8 cls;
	union null_body b;
};

struct null_range {
	u32 first;
	u32 end;
	u32 fresh;	/* never used from here on */
	u32 free;	/* chain of places given back */
	u32 count;
};

/* used + in_flight + committed + free == size, each counted by itself */
struct null_pool {
	u32 size;
	u32 used;
	u32 in_flight;
	u32 committed;
	u32 free;
	u32 high;
};

struct null_lease {
	u64 cookie;
	u32 id;		/* 0: none */
	u32 left[NULL_POOLS];
};

/* Slots that a posted CREATE holds until it is executed */
struct null_held {
	u8 count;
	struct {
		u8 pool;
		u8 lease;	/* + 1; 0: from free slots */
		u32 lease_id;
		u32 slots;
	} part[2];
};

enum null_fault_action {
	NULL_FAULT_NONE,
	NULL_FAULT_FAIL,	/* TND_ST_FAULT, nothing written */
	NULL_FAULT_FULL,	/* TND_ST_TABLE_FULL, nothing written */
	NULL_FAULT_DELAY,	/* takes @ns longer */
	NULL_FAULT_DROP,	/* executed, its completion never comes */
	NULL_FAULT_HANG,	/* the firmware stops here, until the next attach */
	NULL_FAULT_RESET,	/* the chip resets itself: tables empty, rings dead */
	NULL_FAULT_VANISH,	/* the chip is gone */
	NULL_FAULT_COUNT
};

struct null_fault {
	u8 action;
	u16 op, cls;	/* 0: any */
	u64 ns;
	u64 after;	/* fires with the nth match, from 1 */
	u64 count;	/* so often; 0: from then on always */
	u64 seen;
};

struct null_slot {
	struct tnd_cmd cmd;
	struct tnd_cpl cpl;
	u8 *long_body;
	u64 at;			/* when the chip could see it */
	u64 extra_ns;
	u8 fault;
	bool silent;		/* no completion */
	struct null_held held;
};

/* Free-running: tail <= done <= seen <= head */
struct null_queue {
	struct null_slot *slot;
	u32 mask;
	u32 head;		/* posted */
	u32 seen;		/* kicked */
	u32 done;		/* executed */
	u32 tail;		/* reaped */
};

struct null_unit {
	u64 free_at;
	u64 due;
	u32 batch;
	u8 what;		/* enum null_work */
};

enum null_work {
	NULL_IDLE,
	NULL_DO_SYNC,
	NULL_DO_BULK,
	NULL_DO_READ,
	NULL_STOPPED,		/* NULL_FAULT_HANG */
};

/* The one command that a sleeping caller waits for (->read) */
struct null_reader {
	bool pending;
	bool done;
	u64 at;
	const struct tnd_cmd *cmd;
	const void *body;
	void *out;
	u32 out_size;
	struct tnd_cpl *cpl;
};

/* What the bench reads from debugfs */
struct null_timing {
	u64 first_ns, last_ns;		/* effective time of the first and last route */
	u64 watch_ns;			/* and of the route that is watched */
	u64 routes;
	u64 writes, queries, batches;
	u64 busy_ns;			/* of the firmware */
	u64 model_ns;			/* CPU time that execution took here (measure=1) */
	u64 irqs;
	u32 depth;			/* most commands seen waiting in BULK */
	u64 refused;			/* commands, and the last one of them */
	u16 refused_op, refused_cls, refused_status;
};

struct null_port {
	bool link;
	bool tell;			/* a LINK event is due */
	u16 members;
	bool unaware;			/* member with TND_VID_ANY */
	u32 rif;			/* place of its RIF, NULL_NONE */
	u32 *vid_rif;			/* the same by VID, of tagged frames */
	unsigned long *fids;		/* domains it is a member of */
};

struct null_chip {
	struct clsw_device *cd;
	const struct null_profile *p;
	u16 ports;

	bool attached;
	bool alive;
	bool vanished;
	bool tables_lost;		/* reset: the next attach finds nothing */
	u32 epoch;
	struct null_queue queue[CLSW_Q_COUNT];
	u32 seq[CLSW_Q_COUNT];
	struct null_unit unit[CLSW_Q_COUNT];
	u8 *long_mem;
	u8 **long_free;
	u32 long_count;
	struct hrtimer timer;
	unsigned long irq_wanted;
	struct mutex read_lock;		/* one reader at a time */
	struct null_reader reader;

	struct null_obj *obj;
	u32 *hash;
	u32 hash_bits;
	struct null_range run[NULL_RUNS];
	u32 last_vrf, last_target;	/* places that the last route referred to */
	struct bank bank;
	void *bank_mem;
	u32 promised_in_flight;		/* exact match: part of bank.committed */
	struct null_pool pool[NULL_POOLS];
	struct null_lease lease[NULL_LEASES];
	u32 lease_gen;
	u32 fid_rif[NULL_MAX_FID + 1];
	u32 fid_learned[NULL_MAX_FID + 1];
	u32 gen;
	bool resync;
	u32 sweep_run, sweep_at;
	u64 swept;
	s32 sweep_delta[NULL_POOLS];
	u64 resets;

	struct null_fault fault[NULL_FAULTS];
	u32 faults;

	struct null_port port[NULL_MAX_PORTS + 1];
	bool rx_armed;
	u32 event_seq;
	bool packet;			/* one came in, debugfs packet */
	u16 packet_port;
	u8 packet_dst[4];

	struct null_timing timing;
	bool watching;
	struct tnd_route watch;
	struct dentry *debugfs;
	void *platform;
	size_t platform_size;
	struct {
		u64 tx, events, forwarded;
	} count;
};

/* One command while it is executed */
struct null_exec {
	const struct tnd_cmd *cmd;
	const u8 *body;
	u32 body_len;
	u16 op;
	u16 cls;
	struct null_lease *lease;
	u8 *out;
	u32 room;
	struct tnd_cpl *cpl;
	u32 len;
	u32 records;
	u32 ref[2];			/* null_depends(): VRF and target of a route */
	u32 changed;			/* pools, a bit each */
	s32 delta[NULL_POOLS];
};

static inline void null_delta(struct null_exec *x, u8 pool, s32 slots)
{
	x->delta[pool] += slots;
	x->changed |= BIT(pool);
}

/* parameters, main.c */
extern u32 null_write_ns, null_query_ns, null_release_ns, null_entry_ns, null_irq_ns;
extern u32 null_write_batch;
extern bool null_parallel, null_measure;

/* unit.c: all locked */
int null_queues_init(struct null_chip *n);
void null_queues_exit(struct null_chip *n);
void null_queues_reset(struct null_chip *n);
void null_advance(struct null_chip *n, u64 now);
int null_post(struct null_chip *n, enum clsw_queue q, const struct tnd_cmd *cmd,
	      const void *body);
void null_kick(struct null_chip *n, enum clsw_queue q);
int null_reap(struct null_chip *n, enum clsw_queue q, int budget);
bool null_want_irq(struct null_chip *n);
u64 null_next_due(const struct null_chip *n);
/* may sleep */
int null_read(struct null_chip *n, const struct tnd_cmd *cmd, const void *body, void *out,
	      u32 out_size, struct tnd_cpl *cpl);
/* the chip fails: rings dead from now on */
void null_fail(struct null_chip *n, const char *why);

/* exec.c */
/* False: a slice of a long command is done, call again */
bool null_execute(struct null_chip *n, const struct tnd_cmd *cmd, const u8 *body, u8 *out, u32 room,
		  u8 fault, struct tnd_cpl *cpl);
u16 null_full(struct null_exec *x, u8 pool, u32 needed, u32 free, u32 size, bool bucket);

/* objects.c */
int null_tables_init(struct null_chip *n);
void null_tables_exit(struct null_chip *n);
void null_tables_clear(struct null_chip *n);
u32 null_find(struct null_chip *n, u16 cls, const union null_body *b);
u32 null_add(struct null_chip *n, enum null_run run, u16 cls, const union null_body *b);
/* Where a key's chain begins; a new place at its head */
u32 *null_chain(struct null_chip *n, u16 cls, const union null_body *b);
u32 null_add_at(struct null_chip *n, enum null_run run, u16 cls, const union null_body *b,
		u32 *head);
void null_del(struct null_chip *n, u32 i);
enum null_run null_run_of(u16 cls, u8 family);
u64 null_hash(u16 cls, const union null_body *b);
bool null_same_key(u16 cls, const union null_body *a, const union null_body *b);
bool null_bank_key(struct null_chip *n, u16 cls, const union null_body *b, struct bank_key *key);

/* classes.c: what is particular to each class */
bool null_parse(struct null_exec *x, union null_body *b);
u16 null_normal(struct null_chip *n, struct null_exec *x, union null_body *b);
bool null_equal(const union null_body *a, const union null_body *b, u16 cls);
u16 null_depends(struct null_chip *n, struct null_exec *x, const union null_body *b);
/* CREATE in a free place (@i NULL_NONE) or in place of what is there */
u16 null_write(struct null_chip *n, struct null_exec *x, u32 i, const union null_body *b);
bool null_in_use(struct null_chip *n, u32 i);
/* CREATE of a route that forwards, in few steps; false: go the long way */
bool null_quick_route(struct null_chip *n, const struct tnd_cmd *cmd, const u8 *body,
		      struct tnd_cpl *cpl);
void null_remove(struct null_chip *n, struct null_exec *x, u32 i);
u16 null_trapped(u16 cls, const union null_body *old, const union null_body *asked,
		 union null_body *out);

/* pools.c */
void null_pools_reset(struct null_chip *n);
u16 null_take(struct null_chip *n, struct null_exec *x, u8 pool, u32 slots);
void null_give(struct null_chip *n, struct null_exec *x, u8 pool, u32 slots);
void null_untake(struct null_chip *n, struct null_exec *x, u8 pool, u32 slots);
u16 null_take_exact(struct null_chip *n, struct null_exec *x, const struct bank_key *key, u32 i);
void null_give_exact(struct null_chip *n, struct null_exec *x, const struct bank_key *key);
u32 null_needs(struct null_chip *n, u16 cls, u8 family, u8 *pool, u32 *slots);
void null_hold(struct null_chip *n, const struct tnd_cmd *cmd, const u8 *body,
	       struct null_held *held);
void null_unhold(struct null_chip *n, const struct null_held *held);
struct null_lease *null_lease_of(struct null_chip *n, u32 id);
u16 null_lease_grant(struct null_chip *n, struct null_exec *x);
u16 null_lease_drop(struct null_chip *n, u32 id);
/* By the cookie of the LEASE that it was granted to */
u16 null_lease_drop_of(struct null_chip *n, u64 cookie);
void null_lease_drop_all(struct null_chip *n);
void null_pool_row(struct null_chip *n, u32 id, struct tnd_pool *row);
void null_cost_row(struct null_chip *n, u32 i, struct tnd_class_cost *row);
u32 null_cost_rows(void);
/* Holds counters against tables: NULL, or what differs */
const char *null_check(struct null_chip *n);

/* dump.c */
u16 null_dump(struct null_chip *n, struct null_exec *x);
u16 null_activity(struct null_chip *n, struct null_exec *x);
u16 null_snapshot(struct null_chip *n, struct null_exec *x);
u16 null_query(struct null_chip *n, struct null_exec *x, u32 i);
void null_geometry(const struct null_chip *n, struct tnd_geometry *g);

/* platform.c */
const struct null_profile *null_profile(const char *name);
int null_platform_init(struct null_chip *n);

/* debug.c */
u8 null_fault(struct null_chip *n, u16 op, u16 cls, u64 *ns);
void null_note_route(struct null_chip *n, const struct tnd_route *r, u64 at);
void null_debug_init(struct null_chip *n, const char *name);
void null_debug_exit(struct null_chip *n);
/* main.c */
void null_link_set(struct null_chip *n, u16 port, bool up);
/* An IPv4 packet to @dst comes in; it goes to the CPU if no route of VRF 0 is there for it */
void null_packet(struct null_chip *n, u16 port, const u8 *dst);

#endif /* _CLSW_NULL_H */
