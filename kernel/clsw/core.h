/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clsw inside: the device, its ports, and which file does what.
 *
 *   device.c   alloc, register, attach, recover, netns
 *   store.c    objects; admit.c is there room for them; drain.c their way to the
 *              backend; replay.c after an attach
 *   wait.c     busy loops, bounded
 *   caps.c     what the chip can do, and where it ends
 *   classes.c  the classes of objects, from class_rows.h
 *   rm.c       glue to resource/: pools, leases, refill kthread
 *   port/      netdevs, ethtool, packets up and down
 *   devlink/   resources, params, info, traps, health, split
 *   l2/        bridges, VLANs, FDB
 *   l3/        RIFs, next hops, neighbours, FIB, rules, VRFs
 *
 * Lock order: RTNL or the devlink lock (never both here) -> clsw_lock() ->
 * nothing. Each part keeps its state under clsw_lock() unless it says RTNL.
 */
#ifndef _CLSW_CORE_H
#define _CLSW_CORE_H

#include <linux/etherdevice.h>
#include <linux/kthread.h>
#include <linux/wait.h>
#include <net/devlink.h>

#include "clsw.h"
#include "pool.h"
#include "store.h"
#include "resource/resource.h"

/* Our own limits, and those of a chip whose backend says none: caps.c */
#define CLSW_MAX_PORTS	128
#define CLSW_FIDS	4094	/* forwarding domains, from 1 */
#define CLSW_MAX_RIF	16383
#define CLSW_FID_RIFS	1024	/* RIFs on domains have numbers behind this, those on ports below */
#define CLSW_MAX_WEIGHT	256	/* abi/tandem_objects.h: struct tnd_nhg_member */
#define CLSW_MTU_MAX	9216	/* frames that fit an entry of the packet rings, with tags */

struct clsw_l2;
struct clsw_l3;
struct clsw_traps;
struct clsw_health;
struct clsw_front;
struct clsw_resources;
struct clsw_open;

/* Counters of a port's CPU path, per CPU as netdevs have them */
struct clsw_port {
	struct clsw_device *cd;
	struct net_device *netdev;
	struct devlink_port devlink_port;
	struct tnd_platform_port platform;	/* host order copies below */
	u16 index;				/* number in all objects, from 1 */
	u16 front_panel;
	u32 speed_mbps;
	u8 lanes;
	bool registered;
	bool shown;				/* .devlink_port is registered */
	bool carrier;				/* by the chip's LINK events */
	/* port/: under clsw_lock() */
	bool open;				/* between ndo_open and ndo_stop */
	s8 part;				/* of a split port, from 0; -1: unsplit */
	u8 autoneg;				/* AUTONEG_* */
	u32 fec;				/* ETHTOOL_FEC_* as configured */
	u32 forced_mbps;			/* without autoneg; 0: none */
	u64 link_changes;
	struct clsw_port_stats stats;		/* since the netdev is there */
	struct clsw_port_stats chip;		/* as the chip said last */
	bool has_stats;
	/* L2, under RTNL and clsw_lock() for writers, either for readers */
	struct net_device *bridge;
	struct clsw_obj *obj;			/* TND_CLS_PORT */
	struct tnd_port want;			/* what .obj should say */
};

/* What one attach, or the next, did not survive */
enum clsw_device_state {
	CLSW_DEV_DOWN,		/* not attached */
	CLSW_DEV_UP,
	CLSW_DEV_TROUBLE,	/* recovery is due or running */
	CLSW_DEV_GONE,		/* recovery gave up: everything fails */
};

/* When a command counts as lost */
#define CLSW_LOST_MS		2000

/* Where a replay is */
enum clsw_resync {
	CLSW_RESYNC_NONE,
	CLSW_RESYNC_BEGIN,	/* BEGIN_RESYNC is to be posted, before anything else */
	CLSW_RESYNC_RUNS,	/* objects are written */
	CLSW_RESYNC_ENDS,	/* END_RESYNC is out */
	CLSW_RESYNC_COUNT,	/* swept; the pools are to be read once more */
};

struct clsw_device {
	const struct clsw_backend *backend;
	struct clsw_caps caps;
	struct device *parent;
	struct devlink *devlink;
	spinlock_t lock;		/* clsw_lock(), see clsw.h */
	enum clsw_device_state state;
	const char *trouble;		/* why, a constant */

	/* store.c, drain.c */
	struct hlist_head *objects;	/* all, by key; sized by the chip's memories */
	u8 object_bits;
	struct clsw_pool route_memory;	/* of objects of TND_CLS_ROUTE */
	struct list_head dirty[CLSW_CLASS_COUNT];	/* put, by class */
	struct list_head going[CLSW_CLASS_COUNT];	/* to delete, by class */
	u32 departing[CLSW_CLASS_COUNT];	/* clsw_obj_departs(), by class */
	struct clsw_round waiting;	/* room for them can't be decided on yet: admit.c */
	struct clsw_round failed;	/* ... has not been there: asked again when some comes */
	struct clsw_round faulted;	/* failed for another reason: tried again by the clock */
	struct list_head stuck;		/* deletes that the chip refused */
	bool retry;			/* something was freed: failed ones try again */
	bool answered;			/* something was answered: waiting ones try again */
	ktime_t wait_end;		/* of all that one put waits for; 0: nothing yet */
	bool mistrusted;		/* it was silent for too long, and has not answered since */
	u32 in_flight;
	u32 object_count;
	struct task_struct *drainer;
	wait_queue_head_t drain_wait;
	wait_queue_head_t idle_wait;	/* somebody waits for "all applied" */
	bool drain_wake;
	bool drain_due;			/* something was queued: clsw_unlock() posts it */
	u32 dirty_bits;			/* drain.c: which of .dirty and .going may have some */
	u32 posted_inline;		/* commands that a caller posted itself */
	bool in_callback;		/* a watcher runs: nothing is flushed below it */
	u8 resync;			/* enum clsw_resync */
	u8 replay;			/* number of the last replay, never 0 */
	u32 replay_left;		/* objects that it has yet to write */
	bool degraded;			/* a replay into an empty chip: see replay.c */
	struct clsw_open *open;		/* drain.c: commands in flight by cookie */
	struct clsw_open *open_free;
	struct clsw_obj *target;	/* that a route named last; NULL: look for it */
	unsigned int lost_burst;

	bool trap_when_full;		/* devlink param when_full: routes are never refused */

	/* rm.c */
	struct rm *rm;
	void *rm_memory;
	struct rm_ask *asks;		/* RM_MAX_LEASES, by slot */
	bool *ask_open;
	u64 *ask_cookie;		/* of the LEASE, for one that gets lost */
	struct tnd_cpl hold_cpl;	/* of the last reservation's lease */
	bool hold_answered;		/* ... it is there */
	bool holding;			/* a reservation waits for its answer */

	struct clsw_port *ports[CLSW_MAX_PORTS + 1];	/* by index, from 1 */
	u16 port_count;
	const struct tnd_platform *platform;
	size_t platform_size;
	u8 base_mac[ETH_ALEN];

	struct clsw_front *front;	/* port/ */

	/* packets */
	struct net_device *napi_dev;
	struct napi_struct napi;
	spinlock_t tx_lock;		/* serialises ->xmit; inside nothing */

	/* genl/ */
	struct list_head list;		/* of all devices */
	struct list_head holds;		/* committed reservations */
	u16 hold;			/* what is put now comes out of it; 0: none */
	struct list_head dumps;		/* genl.c: walks of .objects that are open */
	u32 pins;			/* genl.c: reservations under way; under its lock */

	struct clsw_l2 *l2;
	struct clsw_l3 *l3;
	struct clsw_resources *resources;	/* devlink/ */
	struct clsw_traps *traps;
	struct clsw_health *health;
	struct work_struct recover_work;
	bool leaving;			/* unregister runs: no recovery any more */

	struct {
		u64 posted, completed, lost, refused, replays, recoveries, expedited, deferred;
		u64 rx, rx_dropped, tx, tx_busy, events, events_lost;
	} count;
	unsigned char priv[] __aligned(64);
};

static inline bool clsw_can(const struct clsw_device *cd, u32 what)
{
	return cd->caps.can & what;
}

/* May sleep, attached: 0 or -EINVAL, which the log explains */
int clsw_caps_init(struct clsw_device *cd);
/* May sleep, attached once more: 0; -EINVAL: it lacks something that it had, as the log says */
int clsw_caps_again(struct clsw_device *cd);

/* ---- parts: each registers itself in device.c's order, exits in reverse ---- */
void clsw_store_init(struct clsw_device *cd);
/* May sleep, after clsw_rm_start(): the table of objects, as large as the chip; 0 or -ENOMEM */
int clsw_store_start(struct clsw_device *cd);
void clsw_store_exit(struct clsw_device *cd);
int clsw_drain_start(struct clsw_device *cd);	/* drainer.c */
void clsw_drain_stop(struct clsw_device *cd);
int clsw_rm_start(struct clsw_device *cd);
void clsw_rm_stop(struct clsw_device *cd);
int clsw_ports_init(struct clsw_device *cd);	/* netdevs, RTNL not held */
void clsw_ports_exit(struct clsw_device *cd);
int clsw_devlink_init(struct clsw_device *cd);	/* before devlink_register() */
void clsw_devlink_exit(struct clsw_device *cd);
int clsw_l2_init(struct clsw_device *cd);
void clsw_l2_exit(struct clsw_device *cd);
int clsw_l3_init(struct clsw_device *cd);
void clsw_l3_exit(struct clsw_device *cd);

/* ---- classes.c ---- */
extern const u8 clsw_order[CLSW_CLASS_COUNT - 1];	/* enum tnd_class, by place */

/* The store may hold such objects */
static inline bool clsw_class_known(u16 cls)
{
	return cls < CLSW_CLASS_COUNT && clsw_classes[cls].name;
}

static inline bool clsw_class_fixed(u16 cls)
{
	return clsw_classes[cls].fixed;
}

/* ---- store.c, for the drainer ---- */
/* It is to be deleted as soon as the write that is out is answered: counted in .departing */
static inline bool clsw_obj_departs(const struct clsw_obj *obj)
{
	return !obj->wanted && obj->in_flight && obj->op != TND_OP_DELETE;
}

static inline void clsw_obj_want(struct clsw_device *cd, struct clsw_obj *obj, bool wanted)
{
	cd->departing[obj->key.cls] -= clsw_obj_departs(obj);
	obj->wanted = wanted;
	cd->departing[obj->key.cls] += clsw_obj_departs(obj);
}

/* Its command is answered, lost or void */
static inline void clsw_obj_landed(struct clsw_device *cd, struct clsw_obj *obj)
{
	cd->departing[obj->key.cls] -= clsw_obj_departs(obj);
	obj->in_flight = false;
}

void clsw_obj_free(struct clsw_device *cd, struct clsw_obj *obj);
/* May sleep: @fn, locked, for every object; it may free the one it gets */
void clsw_store_each(struct clsw_device *cd,
		     void (*fn)(struct clsw_device *cd, struct clsw_obj *obj));
void clsw_reason_set(struct clsw_reason *reason, u16 status, const struct rm_verdict *v);

/* ---- admit.c; all locked ---- */
/*
 * Room for an object that has no ticket; fills its reason if refused: -ENOSPC,
 * -EINVAL, -EIO. Waits only for callers that are owed a veto, and not for ever:
 * else 0, and obj->waits if it can't be decided on yet
 */
int clsw_admit(struct clsw_device *cd, struct clsw_obj *obj, struct rm_verdict *verdict);
/* The same for what is neither in hardware nor on its way there, with the size that @body has */
int clsw_admit_as(struct clsw_device *cd, struct clsw_obj *obj, const void *body,
		  struct rm_verdict *verdict);
/* Members that a group of @body has more than before need room, too: the update's ticket */
int clsw_admit_growth(struct clsw_device *cd, struct clsw_obj *obj, const void *body,
		      struct rm_verdict *verdict);
/*
 * For obj->op, about to be posted: room for what nobody was asked about, as in a
 * replay, what aged, members of a group that was in flight
 */
void clsw_admit_late(struct clsw_device *cd, struct clsw_obj *obj);
void clsw_ticket_cancel(struct clsw_device *cd, struct clsw_obj *obj);
/*
 * From the drainer, some in each turn. Those that wait are asked again when
 * something was answered: how many were decided on
 */
int clsw_admit_waiting(struct clsw_device *cd);
/* What has failed, when something was freed or came to be: how many fit now */
int clsw_retry_failed(struct clsw_device *cd);
/* From the clock: what has failed for another reason than room has its turn, too */
void clsw_retry_faulted(struct clsw_device *cd);
/* Room came, or may have, without an answer of the chip's: who has none asks again */
static inline void clsw_room_came(struct clsw_device *cd)
{
	cd->retry = true;
	cd->answered = true;
	cd->drain_due = true;
}

/* Some have not had their turn yet */
static inline bool clsw_admit_left(const struct clsw_device *cd)
{
	return !list_empty(&cd->failed.next) || !list_empty(&cd->faulted.next) ||
	       !list_empty(&cd->waiting.next);
}

/* ---- body.c ---- */
union clsw_body {
	struct tnd_route route;
	u8 bytes[U8_MAX];	/* of a class that may be degraded: as many as it has */
};

/* Locked: @obj is a route, and what it names is not in hardware before what is posted now */
bool clsw_target_lacks(struct clsw_device *cd, const struct clsw_obj *obj);
/* Locked: what the chip gets for @obj, maybe in @copy; *@lacks_target: clsw_target_lacks() */
const void *clsw_body_of(struct clsw_device *cd, const struct clsw_obj *obj,
			 union clsw_body *copy, bool *lacks_target);

/* ---- drain.c ---- */
/* These say nothing of room: nobody has to free any before it is tried again */
static inline bool clsw_status_is_fault(u16 status)
{
	return status == TND_ST_LEASE || status == TND_ST_FAULT;
}

/* Locked: something is dirty */
void clsw_drain_kick(struct clsw_device *cd);
/* Any context: a route may be waiting for its turn */
bool clsw_routes_queued(struct clsw_device *cd);
/* Locked, from clsw_unlock(): posts what the caller has queued */
void clsw_drain_inline(struct clsw_device *cd);
/* Locked: queues an object for what it needs; nothing if it needs nothing */
void clsw_drain_queue(struct clsw_device *cd, struct clsw_obj *obj);
/* Locked: its watcher hears of its state */
void clsw_tell(struct clsw_device *cd, struct clsw_obj *obj);
/* Locked: nothing is queued for the chip or out; some may wait for admission */
bool clsw_drain_quiet(struct clsw_device *cd);
/* Locked: reaps and posts once; how much was done */
int clsw_drain_turn(struct clsw_device *cd);
/* Locked, now and then: commands that nobody answers are lost, refused deletes go out again */
void clsw_drain_look(struct clsw_device *cd);
/* May sleep: commands in flight; 0 or -ENOMEM */
int clsw_open_init(struct clsw_device *cd);
void clsw_open_exit(struct clsw_device *cd);
enum clsw_open_kind {
	CLSW_OPEN_WRITE,
	CLSW_OPEN_LEASE,
	CLSW_OPEN_RELEASE,
	CLSW_OPEN_LOST,		/* RELEASE of a lease whose LEASE was lost */
	CLSW_OPEN_RESYNC,
};

/* Locked: posts a command that is no object's write; -EAGAIN, -ENODEV */
int clsw_post_other(struct clsw_device *cd, enum clsw_open_kind kind, struct tnd_cmd *cmd,
		    const void *body, u32 size, u32 tag);
/* Locked: nothing is waiting, dirty or in flight */
bool clsw_drain_settled(struct clsw_device *cd);
/* Locked: what is in flight is void, the chip was attached anew */
void clsw_drain_give_up(struct clsw_device *cd);
/* May sleep: until everything wanted is applied or @ms are over; 0 or -ETIMEDOUT */
int clsw_settle(struct clsw_device *cd, unsigned int ms);
/* May sleep: marks everything for replay after an attach, RM restarted */
int clsw_replay(struct clsw_device *cd, enum clsw_attach_mode mode);
/* May sleep: until a replay has swept the rest; 0, -ETIMEDOUT, -EIO */
int clsw_replay_finish(struct clsw_device *cd, unsigned int ms);
/* Locked, from the drainer: its beginning or end is posted when that is due; 1: it was */
int clsw_resync_turn(struct clsw_device *cd);
/* Locked: that is answered */
void clsw_resync_done(struct clsw_device *cd, const struct tnd_cpl *cpl);
/* Locked: the replay need not wait for this one any more */
static inline void clsw_replayed(struct clsw_device *cd, struct clsw_obj *obj)
{
	if (obj->replay && obj->replay == cd->replay)
		cd->replay_left--;
	obj->replay = 0;
}

/* ---- wait.c: busy loops; all locked ---- */
struct clsw_wait {
	ktime_t began;
	ktime_t last;		/* the last look */
	u64 completed;		/* completions at that time */
	u64 silent_ns;		/* of looking, without any answer */
	u64 looked_ns;
	u32 looks;
};

void clsw_wait_begin(struct clsw_device *cd, struct clsw_wait *w);
/*
 * Before each look. Not 0: it is the last one, whatever it finds. -ETIMEDOUT: the
 * chip is silent, and not trusted until it answers something; -EAGAIN: it took too
 * long by the clock
 */
int clsw_wait_over(struct clsw_device *cd, struct clsw_wait *w);
/* Says it in the log, in words for @what; returns @err, which clsw_wait_over() has said */
int clsw_wait_failed(struct clsw_device *cd, const struct clsw_wait *w, int err,
		     const char *what);

/* Until @obj is settled (NULL: everything). 0, -EIO, or as clsw_wait_over() says */
int clsw_flush_obj(struct clsw_device *cd, struct clsw_obj *obj);

/* ---- rm.c: admission with all that a policy asks for; locked ---- */
/* @wait: for what is out, if that decides, and for so long as may be waited; else -EAGAIN */
int clsw_rm_admit(struct clsw_device *cd, const struct rm_req *req,
		  struct rm_ticket *ticket, struct rm_verdict *verdict, bool wait);
bool clsw_rm_lockstep(struct clsw_device *cd);
/* Locked: a lease (its slot, its command's cookie) or release (lease id) completed; NULL: lost */
void clsw_rm_leased(struct clsw_device *cd, u32 slot, u64 cookie, const struct tnd_cpl *cpl);
void clsw_rm_released(struct clsw_device *cd, u32 lease_id, const struct tnd_cpl *cpl);
void clsw_rm_lost_released(struct clsw_device *cd, u32 slot, const struct tnd_cpl *cpl);
/* Locked, from the drainer: asks for what the bucket lacks; how many were posted */
int clsw_rm_refill(struct clsw_device *cd);
/* May sleep: pools of this instant, at most RM_MAX_POOLS; count or -errno */
int clsw_rm_read_pools(struct clsw_device *cd, struct tnd_pool *pools);
/* Locked: what admission wants to know of an object */
void clsw_obj_req(struct clsw_device *cd, const struct clsw_obj *obj, struct rm_req *req);

/* ---- l3/expedite.c ---- */
/*
 * NAPI, not locked. A packet of @port, its data at the Ethernet header, came up
 * because the chip has no entry for it: if one is queued it is written next
 */
void clsw_l3_waits(struct clsw_device *cd, const struct clsw_port *port,
		   const struct sk_buff *skb);

/* ---- device.c ---- */
/* May sleep: attaches and replays; 0 or -EIO */
int clsw_recover(struct clsw_device *cd);

/* ---- port/ ---- */
struct clsw_port *clsw_port_of(const struct net_device *dev);	/* NULL: not ours */
bool clsw_port_is(const struct net_device *dev);
/* Locked: sends port->want to the store */
int clsw_port_update(struct clsw_port *port);
/* May sleep, RTNL: until the ports' own objects are applied, at most @ms; 0 or -ETIMEDOUT */
int clsw_ports_settle(struct clsw_device *cd, unsigned int ms);
/* Any context: after an attach: queues that had stopped go on, packets are looked for */
void clsw_ports_resume(struct clsw_device *cd);

/* ---- genl/ ---- */
int clsw_genl_init(void);
void clsw_genl_exit(void);
void clsw_genl_add(struct clsw_device *cd);
void clsw_genl_remove(struct clsw_device *cd);
/*
 * Locked, around the puts of one route (its next hops, too): if the prefix is
 * on a reservation's list, they take from it. @table as rtnetlink has it.
 */
void clsw_hold_look(struct clsw_device *cd, u32 table, u8 family, u8 prefix_len,
		    const void *addr);
static inline void clsw_hold_begin(struct clsw_device *cd, u32 table, u8 family, u8 prefix_len,
				   const void *addr)
{
	cd->hold = 0;
	if (unlikely(!list_empty(&cd->holds)))
		clsw_hold_look(cd, table, family, prefix_len, addr);
}

static inline void clsw_hold_end(struct clsw_device *cd)
{
	cd->hold = 0;
}

/* Locked, around puts of others that follow from this route's: they take nothing from it */
static inline u16 clsw_hold_rest(struct clsw_device *cd)
{
	u16 hold = cd->hold;

	cd->hold = 0;
	return hold;
}

static inline void clsw_hold_resume(struct clsw_device *cd, u16 hold)
{
	cd->hold = hold;
}

/*
 * May sleep: a lease for @items, all or nothing. -ENOSPC, -EIO with @text (CLSW_TEXT bytes);
 * -EAGAIN: the chip is being recovered; -EBUSY: others are asked for; -EINTR; -ENODEV
 */
int clsw_rm_hold(struct clsw_device *cd, const struct tnd_lease_item *items, unsigned int count,
		 u16 *hold, char *text);

/* ---- l2/: hooks that others call ---- */
/* NAPI: LEARN, MOVE, AGE and LOST of the chip */
void clsw_l2_event(struct clsw_device *cd, const struct tnd_event *event);
/* May sleep: the chip was attached anew, its addresses are read and compared */
void clsw_l2_resync(struct clsw_device *cd);
/*
 * FID of a bridge and VLAN, 0: none; locked or RTNL. @vid 0 is the bridge device
 * itself: with vlan_filtering the domain of its PVID
 */
u16 clsw_l2_fid(struct clsw_device *cd, const struct net_device *bridge, u16 vid);
/*
 * Told when that changes. @gone: this domain is about to go, under RTNL and not locked:
 * what refers to it is dropped when this returns; 0: another one is meant now, under
 * RTNL or locked. One listener; NULL: none
 */
typedef void (*clsw_fid_fn)(struct clsw_device *cd, u16 gone);
/* May sleep, no RTNL */
void clsw_l2_on_fid(struct clsw_device *cd, clsw_fid_fn changed);

/* RTNL: does somebody look at a device's frames whom the chip can't stand for? */
bool clsw_dev_filters(const struct net_device *dev, bool egress);
/* RTNL, not locked: the same for all ports; those traps follow */
void clsw_l2_filters(struct clsw_device *cd);
int clsw_port_setup_tc(struct net_device *dev, enum tc_setup_type type, void *type_data);

static inline struct clsw_port *clsw_port(struct clsw_device *cd, u16 index)
{
	return index && index <= cd->caps.port ? cd->ports[index] : NULL;
}

static inline bool clsw_up(const struct clsw_device *cd)
{
	return READ_ONCE(cd->state) == CLSW_DEV_UP;
}

#endif /* _CLSW_CORE_H */
