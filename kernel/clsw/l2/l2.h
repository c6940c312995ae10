/* SPDX-License-Identifier: GPL-2.0 */
/*
 * L2: bridges, VLANs, addresses; between switchdev and the store.
 *
 *   netdevice notifier --> bridge.c   join, leave, uppers, members that aren't ours
 *   switchdev, may sleep > vlan.c     VLANs of ports and of the bridge, vlan_filtering
 *                        > attr.c     STP, port flags, ageing, snooping
 *                        > mdb.c      multicast groups by MAC address
 *   netlink -------------> state.c    STP of single VLANs
 *   switchdev, atomic ---> fdb.c      what the bridge knows --+
 *   chip's events, NAPI -> learn.c    what the chip knows ----+ struct l2_fdb, one per
 *                              ^                              | (bridge, VLAN, address)
 *                              +-- notify: work item, RTNL <--+
 *
 *   struct l2_bridge -- vlans[0]    no vlan_filtering: one domain, members (port, ANY)
 *                    +- vlans[vid]  vlan_filtering: a domain per VLAN, members (port, vid)
 *
 * VLANs of a bridge without vlan_filtering are remembered and have no domain.
 *
 * Locks. RTNL and clsw_lock() for writers of bridges, VLANs and ports, either
 * for readers. The FDB (entries, counts of missing ones) is under clsw_lock()
 * alone. The bridge calls the atomic notifier with its own FDB lock held, so
 * the bridge is never called with clsw_lock() held.
 */
#ifndef _CLSW_L2_H
#define _CLSW_L2_H

#include <linux/if_bridge.h>
#include <linux/if_vlan.h>
#include <linux/rhashtable.h>
#include <net/switchdev.h>

#include "../core.h"

#define L2_PORT_BITS	(CLSW_MAX_PORTS + 1)

struct l2_bridge;

/**
 * struct l2_vlan - a VLAN of a bridge, or the bridge as a whole (vid 0)
 * @bridge: whose
 * @vid: 0: every frame of a bridge without vlan_filtering
 * @fid: its forwarding domain; 0: it has none now
 * @host: the bridge device itself belongs to it
 * @ports: ours that belong to it
 * @untagged: of @ports
 * @failed: of @ports: those whose member entry is not in hardware
 * @pending: of @ports: since vlan_filtering was switched, not known yet
 * @missing: addresses the bridge knows and the chip does not
 * @obj: TND_CLS_VLAN, with @fid
 */
struct l2_vlan {
	struct l2_bridge *bridge;
	u16 vid;
	u16 fid;
	bool host;
	DECLARE_BITMAP(ports, L2_PORT_BITS);
	DECLARE_BITMAP(untagged, L2_PORT_BITS);
	DECLARE_BITMAP(failed, L2_PORT_BITS);
	DECLARE_BITMAP(pending, L2_PORT_BITS);
	u32 missing;
	struct clsw_obj *obj;
};

/**
 * struct l2_bridge - a bridge that ports of ours belong to
 * @list: in clsw_l2.bridges
 * @l2: ours
 * @dev: the bridge
 * @aware: vlan_filtering
 * @up: the bridge device is up
 * @snooping: mcast_snooping
 * @promisc: the bridge device receives everything
 * @stateful: a VLAN of it has a spanning-tree state of its own
 * @seen_state: the same, as far as a look has come (state.c)
 * @pvid: of the bridge device itself
 * @ageing_s: seconds; 0: it doesn't learn
 * @foreign: members that aren't ports of ours
 * @groups: by MAC address, mdb.c's; RTNL alone
 * @groups_lost: there was no memory for one
 * @switching: vlan_filtering was switched, and members of @pending are on their way
 * @pending: of all its VLANs
 * @ports: ours
 * @fdbs: struct l2_fdb
 * @vlans: by VID; [0] is there always
 */
struct l2_bridge {
	struct list_head list;
	struct clsw_l2 *l2;
	struct net_device *dev;
	bool aware;
	bool up;
	bool snooping;
	bool promisc;
	bool stateful;
	bool seen_state;
	u16 pvid;
	u32 ageing_s;
	u32 foreign;
	struct list_head groups;
	bool groups_lost;
	bool switching;
	u32 pending;
	DECLARE_BITMAP(ports, L2_PORT_BITS);
	struct list_head fdbs;
	struct l2_vlan *vlans[VLAN_N_VID];
};

/* Why a port's frames all go to the CPU */
enum l2_trap {
	L2_TRAP_UPPER,		/* a device on top of the port wants frames of its own */
	L2_TRAP_VLAN_UPPER,	/* a bridged port with VLAN devices on it */
	L2_TRAP_MEMBER,		/* a VLAN of it is not in hardware */
	L2_TRAP_PROMISC,	/* the bridge device receives everything */
	L2_TRAP_MDB,		/* multicast groups by MAC address */
	L2_TRAP_SUPPRESS,	/* the bridge answers ARP and ND for others */
	L2_TRAP_FILTER,		/* nftables or iptables look at bridged frames */
	L2_TRAP_TC,		/* tc, BPF, XDP or nftables see what comes in here */
	L2_TRAP_TC_EGRESS,	/* ... or what goes out of some port */
	L2_TRAP_SWITCHED,	/* vlan_filtering is being switched */
	L2_TRAP_VLAN_STATE,	/* a VLAN of the bridge has a spanning-tree state of its own */
	L2_TRAP_COUNT
};

/**
 * struct l2_port - what L2 knows of a port
 * @pvid: 0: none
 * @traps: bits of enum l2_trap
 * @flags: TND_PORT_*, those of l2_port_flags
 * @stp: enum tnd_stp_state
 * @failed: its member entries that are not in hardware
 */
struct l2_port {
	u16 pvid;
	u16 traps;
	u32 flags;
	u8 stp;
	u32 failed;
};

enum l2_origin {
	L2_FDB_CHIP,		/* the chip learned it */
	L2_FDB_LOCAL,		/* an address of the bridge or of a port */
	L2_FDB_FOREIGN,		/* behind a member that isn't ours */
	L2_FDB_USER,		/* added by somebody, on a port of ours */
	L2_FDB_LEARNED,		/* the bridge learned it on a port of ours */
	L2_FDB_AGED,		/* the chip has forgotten it, the bridge is to be told */
};

struct l2_fdb_key {
	struct l2_bridge *bridge;
	u16 vid;
	u8 mac[ETH_ALEN];
};

/* What the work item is to do with an entry: struct l2_fdb.notify */
#define L2_NOTIFY_FLAG	BIT(0)	/* tell the bridge whether it is in hardware */
#define L2_NOTIFY_LOOK	BIT(1)	/* ask the bridge whether it is sticky */
#define L2_NOTIFY_AGED	BIT(2)	/* remove it from the bridge */

/**
 * struct l2_fdb - an address
 * @node: in clsw_l2.fdb
 * @list: in l2_bridge.fdbs
 * @notify_list: in clsw_l2.notify, if @notify isn't 0
 * @key: bridge, VLAN (0 without vlan_filtering), address
 * @obj: TND_CLS_FDB; NULL: its VLAN has no domain
 * @port: ours, or 0
 * @origin: enum l2_origin
 * @notify: L2_NOTIFY_*
 * @roams: added by somebody, but the station may move
 * @missing: counted in its VLAN's @missing
 * @seen: in the last dump
 */
struct l2_fdb {
	struct rhash_head node;
	struct list_head list;
	struct list_head notify_list;
	struct l2_fdb_key key;
	struct clsw_obj *obj;
	u16 port;
	u8 origin;
	u8 notify;
	bool roams;
	bool missing;
	bool seen;
	struct rcu_head rcu;
};

struct clsw_l2 {
	struct clsw_device *cd;
	struct list_head bridges;
	struct l2_vlan *domain[CLSW_FIDS + 1];	/* by fid */
	struct l2_port port[L2_PORT_BITS];
	struct rhashtable fdb;
	struct list_head notify;
	struct workqueue_struct *wq;
	struct work_struct notify_work;
	struct work_struct dump_work;
	struct delayed_work watch_work;
	struct socket *states;		/* state.c: events of VLANs */
	struct delayed_work states_work;
	unsigned long look_due;		/* bit 0: states are to be read, whatever the events say */
	bool stateful;			/* states_work alone: some VLAN had one */
	unsigned long attached;		/* bit 0: since the last dump */
	bool leaving;			/* under RTNL: no port joins a bridge any more */
	clsw_fid_fn fid_changed;
	struct notifier_block netdevice;
	struct notifier_block atomic;
	struct notifier_block blocking;
	struct {
		u64 learned, moved, aged, rejected, dumps;
	} count;
};

#define L2_PORT_FLAGS	(TND_PORT_LEARNING | TND_PORT_FLOOD_UC | TND_PORT_FLOOD_MC | \
			 TND_PORT_FLOOD_BC | TND_PORT_ISOLATED | TND_PORT_HAIRPIN | \
			 TND_PORT_LOCKED)
/* Of a port that is in no bridge, or has just joined one */
#define L2_PORT_DEFAULT	(TND_PORT_LEARNING | TND_PORT_FLOOD_UC | TND_PORT_FLOOD_MC | \
			 TND_PORT_FLOOD_BC)

/* ---- l2.c ---- */
/* RTNL or locked; NULL: none of our ports is in it */
struct l2_bridge *l2_bridge_of(struct clsw_l2 *l2, const struct net_device *dev);
/* Locked: the port's flags, state and traps, as they should be now, to the store */
void l2_port_refresh(struct clsw_l2 *l2, u16 port);
/* Locked: one trap of a port; says so in the log if that changes what the port does */
void l2_port_trap(struct clsw_l2 *l2, u16 port, enum l2_trap trap, bool on);
/* Locked: the same for all ports of a bridge */
void l2_bridge_trap(struct l2_bridge *bridge, enum l2_trap trap, bool on);

/* ---- vlan.c ---- */
extern const struct clsw_watch l2_member_watch;
/* RTNL, not locked. A domain for a VLAN that has none; 0, -ENOSPC, -EIO, -ENOMEM */
int l2_domain_get(struct l2_vlan *vlan, struct netlink_ext_ack *extack);
/* RTNL, not locked: the domain goes if nobody is in it */
void l2_domain_put(struct l2_vlan *vlan);
/* Locked: flags and ageing of a domain, as they should be now, to the store */
void l2_domain_refresh(struct l2_vlan *vlan);
void l2_domains_refresh(struct l2_bridge *bridge);
/* RTNL, not locked: (port, VLAN) into hardware, waits until it is there */
int l2_member_add(struct l2_vlan *vlan, u16 port, bool untagged, bool pvid,
		  struct netlink_ext_ack *extack);
/* Locked */
void l2_member_del(struct l2_vlan *vlan, u16 port);
/* RTNL; NULL: no memory */
struct l2_vlan *l2_vlan_get(struct l2_bridge *bridge, u16 vid);
/* RTNL, not locked: frees a VLAN that nobody is in */
void l2_vlan_put(struct l2_vlan *vlan);
/* Locked: by VID as the bridge's FDB has it; NULL: none that has a domain */
struct l2_vlan *l2_vlan_of_fdb(struct l2_bridge *bridge, u16 vid);
int l2_vlan_obj(struct clsw_l2 *l2, struct net_device *dev,
		const struct switchdev_obj_port_vlan *obj, bool add,
		struct netlink_ext_ack *extack);
/* RTNL: vlan_filtering was switched */
int l2_bridge_filtering(struct l2_bridge *bridge, bool on, struct netlink_ext_ack *extack);

/* ---- bridge.c ---- */
int l2_netdevice_event(struct notifier_block *nb, unsigned long event, void *ptr);
/* RTNL */
int l2_port_join(struct clsw_port *port, struct net_device *bridge,
		 struct netlink_ext_ack *extack);
void l2_port_leave(struct clsw_port *port);
void l2_port_uppers(struct clsw_port *port);
/* Looks at what the kernel changes without a word */
void l2_watch_work(struct work_struct *work);

/* ---- state.c ---- */
/* May sleep, before the first bridge; 0 or -errno */
int l2_states_init(struct clsw_l2 *l2);
/* May sleep, no RTNL */
void l2_states_exit(struct clsw_l2 *l2);
/* Any context: reads all states, after @delay jiffies */
void l2_states_look(struct clsw_l2 *l2, unsigned long delay);

/* ---- attr.c ---- */
/* -EOPNOTSUPP: not ours */
int l2_attr_set(struct clsw_l2 *l2, struct net_device *dev, const struct switchdev_attr *attr,
		struct netlink_ext_ack *extack);
/* Atomic: may these port flags be set? */
int l2_attr_pre_flags(struct clsw_l2 *l2, struct net_device *dev,
		      const struct switchdev_attr *attr, struct netlink_ext_ack *extack);
u32 l2_ageing_s(clock_t ageing);
u32 l2_flags_of(unsigned long brport_flags);

/* ---- mdb.c: RTNL, not locked ---- */
int l2_mdb_obj(struct clsw_l2 *l2, struct net_device *dev, const struct switchdev_obj_port_mdb *mdb,
	       bool add);
/* What a port belongs to is forgotten: it leaves */
void l2_mdb_flush(struct l2_bridge *bridge, u16 port);
static inline bool l2_mdb_some(const struct l2_bridge *bridge)
{
	return bridge->groups_lost || !list_empty(&bridge->groups);
}

/* ---- fdb.c ---- */
int l2_fdb_init(struct clsw_l2 *l2);
void l2_fdb_exit(struct clsw_l2 *l2);
/* Locked */
struct l2_fdb *l2_fdb_find(struct l2_bridge *bridge, u16 vid, const u8 *mac);
struct l2_fdb *l2_fdb_new(struct l2_bridge *bridge, u16 vid, const u8 *mac);
/* Locked: the entry into hardware as it should be there now, or out of it */
void l2_fdb_apply(struct l2_fdb *fdb);
/* Locked: the entry as the chip has it by itself, without a command */
int l2_fdb_adopt(struct l2_fdb *fdb, struct l2_vlan *vlan, u16 port);
/* Locked: out of hardware, and forgotten */
void l2_fdb_del(struct l2_fdb *fdb);
/* Locked: forgotten without a command: the chip has done so itself */
void l2_fdb_abandon(struct l2_fdb *fdb);
/* Locked: not in hardware any more; its VLAN's domain is going or has changed */
void l2_fdb_withdraw(struct l2_fdb *fdb);
void l2_fdb_notify(struct l2_fdb *fdb, u8 notify);
/* Atomic notifier: SWITCHDEV_FDB_{ADD,DEL}_TO_DEVICE */
void l2_fdb_notified(struct clsw_l2 *l2, bool add,
		     const struct switchdev_notifier_fdb_info *info);
/* RTNL, not locked: every entry of a bridge (@port 0), or those behind a port */
void l2_fdb_flush(struct l2_bridge *bridge, u16 port);
/* RTNL, not locked: entries of one VLAN (by FDB VID), or all: l2_fdb_apply() or withdraw */
void l2_fdb_each(struct l2_bridge *bridge, int vid, void (*what)(struct l2_fdb *fdb));
/* RTNL, not locked: before and after a dump of the chip's table */
void l2_fdb_unsee(struct l2_bridge *bridge);
void l2_fdb_sweep(struct l2_bridge *bridge);

/* ---- learn.c ---- */
void l2_notify_work(struct work_struct *work);
void l2_dump_work(struct work_struct *work);
/* RTNL, not locked: what was learned behind a port is forgotten, by the bridge and the chip */
void l2_learned_flush(struct l2_bridge *bridge, struct clsw_port *port);

static inline u16 l2_fdb_vid(const struct l2_vlan *vlan)
{
	return vlan->bridge->aware ? vlan->vid : 0;
}

#endif /* _CLSW_L2_H */
