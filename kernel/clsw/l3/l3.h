/* SPDX-License-Identifier: GPL-2.0 */
/*
 * L3: the kernel's FIB, next hops, neighbours and interfaces as objects of the
 * store.
 *
 *   fib4.c fib6.c        nexthop.c                neigh.c        rif.c vrf.c
 *        |                   |                       |               |
 *   struct l3_route ──► struct l3_paths ──► struct l3_nh ──► struct l3_rif
 *   one prefix, its     next hops of a      gateway on       interface
 *   local and main      route or object     an interface     with addresses
 *   routes (aliases)        |                    ▲
 *        |                  ▼               struct l3_neigh ──► TND_CLS_NEIGH
 *   TND_CLS_ROUTE      TND_CLS_NHG          what the kernel
 *                                           has resolved
 *
 * What is in the kernel's tables is remembered per prefix, so that an event
 * is judged by what stands there, not by its name: REPLACE is also how an
 * add, a promotion and a change of next hops look.
 *
 * Locks. Everything here is under clsw_lock(); RIFs and VRFs are changed under
 * RTNL as well. The kernel's own functions that may sleep are called without.
 */
#ifndef _CLSW_L3_H
#define _CLSW_L3_H

#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/rhashtable.h>
#include <linux/xarray.h>
#include <net/fib_notifier.h>
#include <net/ip_fib.h>
#include <net/ip6_fib.h>
#include <net/neighbour.h>

#include "../core.h"
#include "../cover/cover.h"
#include "claims.h"

#define L3_TICK		HZ		/* neighbours are asked for, sysctls re-read */
#define L3_RESERVE	32		/* slots for connected and local prefixes, per family */
#define L3_MAX_NH	BIT(20)

/* A gateway or neighbour: an address on an interface */
struct l3_key {
	u32 ifindex;
	u8 family;		/* TND_AF_*; 0: no gateway */
	u8 pad[3];
	u8 addr[16];
};

/**
 * struct l3_vrf - one kernel table: the main one with local, or a VRF's
 * @list: in clsw_l3.vrfs
 * @tb_id: RT_TABLE_MAIN, or the VRF's
 * @id: on the wire, while @active
 * @active: packets can come in: the main table, or an interface is in it
 * @rifs: interfaces
 * @routes: struct l3_route in both covers
 * @cover: by family: [0] IPv4, [1] IPv6
 * @obj: TND_CLS_VRF
 */
struct l3_vrf {
	struct list_head list;
	u32 tb_id;
	u16 id;
	bool active;
	u32 rifs;
	u32 routes;
	struct clsw_cover cover[2];
	struct clsw_obj *obj;
};

/**
 * struct l3_rif - an interface that routes
 * @node: in clsw_l3.rifs, by @ifindex
 * @gone: in clsw_l3.gone, after its end; then only @ifindex and @want count
 * @ifindex: of @dev
 * @dev: held
 * @vrf: whose
 * @id: on the wire
 * @want: as it was put last
 * @obj: TND_CLS_RIF
 */
struct l3_rif {
	struct hlist_node node;
	struct list_head gone;
	u32 ifindex;
	struct net_device *dev;
	netdevice_tracker tracker;
	struct l3_vrf *vrf;
	u16 id;
	struct tnd_rif want;
	struct clsw_obj *obj;
};

/**
 * struct l3_nh - a gateway that some route or next-hop object names
 * @node: in clsw_l3.nhs
 * @list: in clsw_l3.nh_list
 * @key: interface and address
 * @refs: paths
 * @id: on the wire
 * @resolved: @mac is valid
 * @tries: how often the kernel was asked to resolve it
 * @asked: jiffies of the last time
 * @obj: TND_CLS_NEXTHOP; NULL: no RIF, or no room
 */
struct l3_nh {
	struct rhash_head node;
	struct list_head list;
	struct l3_key key;
	u32 refs;
	u32 id;
	bool resolved;
	u8 tries;
	u8 mac[ETH_ALEN];
	unsigned long asked;
	struct clsw_obj *obj;
};

/* A neighbour that the kernel has resolved */
struct l3_neigh {
	struct rhash_head node;
	struct list_head list;
	struct l3_key key;
	u8 mac[ETH_ALEN];
	struct clsw_obj *obj;	/* TND_CLS_NEIGH; NULL: no RIF, or not by its connected route */
};

#define L3_PATH_ENCAP	BIT(0)

/* One way of a route, as the kernel has it */
struct l3_path {
	struct l3_key key;
	u16 weight;
	u8 flags;
	struct l3_nh *nh;	/* NULL: no gateway */
	u64 told;		/* of the chip's counter, what the kernel has heard of */
};

/**
 * struct l3_paths - the ways of routes (interned), or of a next-hop object
 * @node: in clsw_l3.paths by contents, or clsw_l3.objects by @nhid
 * @list: in clsw_l3.paths_list
 * @routes: struct l3_alias.in_paths
 * @refs: aliases; and 1 while the next-hop object exists
 * @nhid: next-hop object, 0: none
 * @family: of the routes, for the hash policy; of a next-hop object: of its gateways
 * @own_hash: IPv4 routes over IPv6 gateways of a next-hop object have another hash policy
 * @drop: a next-hop object "blackhole"
 * @counted: a next-hop object with hw_stats: a group even with one path
 * @resilient: a next-hop object "type resilient"; @path is empty
 * @why: not L3_WHY_NONE: routes trap
 * @flags_shown: of a next-hop object: BIT(0) offload, BIT(1) trap
 * @group: TND_CLS_NHG, if l3_grouped()
 * @group_id: on the wire
 * @count: entries of @path
 * @path: the ways
 */
struct l3_paths {
	struct hlist_node node;
	struct list_head list;
	struct list_head routes;
	u32 refs;
	u32 nhid;
	u8 family;
	bool drop;
	bool counted;
	bool resilient;
	bool own_hash;
	u8 why;
	u8 flags_shown;
	struct clsw_obj *group;
	u32 group_id;
	u16 count;
	struct l3_path *path;
};

/* Routes name its group, not its only next hop */
static inline bool l3_grouped(const struct l3_paths *paths)
{
	return !paths->drop && (paths->count > 1 || (paths->count && paths->counted));
}

struct l3_route;

/**
 * struct l3_alias - the kernel's route for a prefix in one table
 * @route: whose
 * @in_paths: in l3_paths.routes, if @paths
 * @there: there is one
 * @type: RTN_*
 * @dscp: not 0: trap
 * @tb_id: table
 * @paths: NULL: the type needs none, or they are unknown
 * @fi: IPv4: a reference
 * @rts: IPv6: references
 * @rt_count: entries of @rts
 */
struct l3_alias {
	struct l3_route *route;
	struct list_head in_paths;
	bool there;
	u8 type;
	u8 dscp;
	u32 tb_id;
	struct l3_paths *paths;
	struct fib_info *fi;
	struct fib6_info **rts;
	u16 rt_count;
};

/**
 * struct l3_source - the kernel's IPv6 routes of a prefix for one source prefix
 * @list: in l3_route.sources
 * @addr: source
 * @len: of it
 * @tb_id: table
 * @rts: references
 * @rt_count: entries of @rts
 * @told: their flags say that they trap
 */
struct l3_source {
	struct list_head list;
	struct in6_addr addr;
	u8 len;
	u32 tb_id;
	struct fib6_info **rts;
	u16 rt_count;
	bool told;
};

#define L3_SHOWN_OFFLOAD	BIT(0)
#define L3_SHOWN_TRAP		BIT(1)
#define L3_SHOWN_FAILED		BIT(2)
#define L3_SHOWN_NEVER		BIT(7)	/* the alias is new */

/**
 * struct l3_route - one prefix
 * @node: in the cover, whose owner this is
 * @vrf: whose
 * @obj: TND_CLS_ROUTE, or NULL
 * @alias: [0] of table local, [1] of main or a VRF
 * @sources: struct l3_source
 * @flag_list: in clsw_l3.flag_list: IPv6 flags that a work item sets
 * @flag_at: how many of the chosen alias have theirs, while in that list
 * @connected: ifindex if this is a connected prefix of an interface
 * @family: TND_AF_*
 * @why: enum l3_why
 * @shown: L3_SHOWN_* of the chosen alias
 */
struct l3_route {
	struct clsw_cover_node *node;
	struct l3_vrf *vrf;
	struct clsw_obj *obj;
	struct l3_alias alias[2];
	struct list_head sources;
	struct list_head flag_list;
	u32 connected;
	u16 flag_at;
	u8 family;
	u8 why;
	u8 shown;
};

struct clsw_l3 {
	struct list_head all;	/* of all devices */
	struct clsw_device *cd;
	struct net *net;
	struct list_head vrfs;
	struct l3_vrf *main;
	DECLARE_HASHTABLE(rifs, 8);
	struct list_head gone;	/* RIFs that the chip still has something of; RTNL */
	unsigned long gone_pause;	/* jiffies until they are looked for once more */
	struct rhashtable nhs;
	struct list_head nh_list;
	struct rhashtable neighs;
	struct list_head neigh_list;
	DECLARE_HASHTABLE(paths, 10);
	DECLARE_HASHTABLE(objects, 10);
	struct list_head paths_list;
	struct list_head flag_list;
	struct xarray vlan_rifs;	/* RIF ids of ports' VLANs -> place; RTNL */
	struct xarray vlan_rif_of;	/* the other way */
	struct clsw_pool memory;	/* of routes */
	struct ida vrf_ids;
	struct ida nh_ids;
	struct ida group_ids;
	u32 next_nh, next_group;
	/* IPv4: what was told last, for the next route of the same ways; NULL: nothing */
	const struct fib_info *last_fi;
	struct l3_paths *last_paths;	/* its; some alias holds both */
	u32 alien_rules;	/* at the start, or accepted: they can't be offloaded */
	bool egress_filters;	/* somebody looks at what leaves by one of our interfaces; RTNL */
	bool sleepy;		/* an allocation failed: everything is looked at again */
	bool crowded;		/* a group found no room: it is tried again */
	u32 degraded;		/* how often for what the kernel has told: l3_degrade() */
	u8 waited;		/* ... and for the chip to have it */
	bool told;		/* while degraded: the kernel has told all once more */
	bool listens;		/* to the FIB and to next-hop objects */
	bool leaving;

	struct notifier_block fib_nb;
	struct notifier_block nexthop_nb;
	struct notifier_block netevent_nb;
	struct notifier_block netdev_nb;
	struct notifier_block inetaddr_nb;
	struct notifier_block inet6addr_nb;
	struct notifier_block inetaddr_valid_nb;
	struct notifier_block inet6addr_valid_nb;
	struct workqueue_struct *wq;
	struct delayed_work refresh_work;	/* RTNL: RIFs */
	struct work_struct flag_work;		/* IPv6 route flags */
	u32 looked;				/* buckets that l3_fib6_look() has looked at */
	struct delayed_work tick_work;
	unsigned int ticks;
};

/*
 * A number that nobody has, round and round: one that has just been given up
 * may still be named by what is on its way to the chip.
 */
static inline int l3_id(struct ida *ida, u32 *next, u32 max)
{
	int id;

	if (*next < 1 || *next > max)
		*next = 1;
	id = ida_alloc_range(ida, *next, max, GFP_ATOMIC);
	if (id == -ENOSPC)
		id = ida_alloc_range(ida, 1, max, GFP_ATOMIC);
	if (id > 0)
		*next = id + 1;
	return id;
}

static inline int l3_width(u8 family)
{
	return family == TND_AF_INET ? CLSW_COVER_V4 : CLSW_COVER_V6;
}

static inline struct clsw_cover *l3_cover(struct l3_vrf *vrf, u8 family)
{
	return &vrf->cover[family == TND_AF_INET6];
}

/* ---- l3.c ---- */
/*
 * Locked, atomic, can't fail. The kernel has told of something that could not be
 * remembered: all that comes in traps until it has told everything once more
 */
void l3_degrade(struct clsw_l3 *l3);
/*
 * Not locked, atomic. What this device has refused others may have taken: the
 * kernel asks one after the other and tells nobody that one has said no. @fn is
 * called with each of them locked
 */
void l3_others(struct clsw_l3 *l3, void (*fn)(struct clsw_l3 *other, void *arg), void *arg);

/* ---- vrf.c ---- */
/* Locked. Of a kernel table, made if need be; NULL: no memory, or never offloaded */
struct l3_vrf *l3_vrf_get(struct clsw_l3 *l3, u32 tb_id);
/* Locked. As it is; NULL: none */
struct l3_vrf *l3_vrf_find(struct clsw_l3 *l3, u32 tb_id);
/* Locked: frees it if nothing is in it */
void l3_vrf_put(struct clsw_l3 *l3, struct l3_vrf *vrf);
/* Locked: an interface has come or gone; 0 or -ENOSPC with @text */
int l3_vrf_join(struct clsw_l3 *l3, struct l3_vrf *vrf, char *text);
void l3_vrf_leave(struct clsw_l3 *l3, struct l3_vrf *vrf);
void l3_routes_free(struct clsw_l3 *l3);
void l3_vrfs_free(struct clsw_l3 *l3);

/* ---- route.c; locked ---- */
/* The node of a prefix, made if need be; NULL: no memory */
struct l3_route *l3_route_get(struct clsw_l3 *l3, u32 tb_id, u8 family, const void *addr, u8 len);
struct l3_route *l3_route_find(struct clsw_l3 *l3, u32 tb_id, u8 family, const void *addr, u8 len);
/* Frees it if the kernel has nothing there any more */
void l3_route_put(struct clsw_l3 *l3, struct l3_route *route);
/* The store is told what hardware should have; with @veto 0 or -ENOSPC ... and nothing changed */
int l3_route_apply(struct clsw_l3 *l3, struct l3_route *route, bool veto, char *text);
/* Every route of a table, longest prefix first */
void l3_routes_apply(struct clsw_l3 *l3, struct l3_vrf *vrf);
/* A route of table local that is wider than one address has come or gone */
void l3_route_local_changed(struct clsw_l3 *l3, struct l3_route *route);
/*
 * The alias of a table becomes @fresh (taken over; its paths not linked yet).
 * With @veto nothing has changed if it fails.
 */
int l3_alias_set(struct clsw_l3 *l3, struct l3_route *route, const struct l3_alias *fresh,
		 bool veto, char *text);
void l3_alias_clear(struct clsw_l3 *l3, struct l3_route *route, int which);
struct l3_alias *l3_route_chosen(struct l3_route *route);
void l3_alias_release(struct clsw_l3 *l3, struct l3_alias *alias);
/* Flags of IPv6 routes: of the chosen alias as .shown says, and of sources not told yet */
void l3_fib6_show(struct clsw_l3 *l3, struct l3_route *route);
void l3_source_free(struct l3_source *source);
/* There are others of its prefix and metric that are no siblings of it */
bool l3_fib6_choice(const struct l3_alias *alias);
/* May sleep, once a tick: some prefixes are looked at for that, in turn */
void l3_fib6_look(struct clsw_l3 *l3);
void l3_flag_work(struct work_struct *work);

static inline int l3_alias_of(u32 tb_id)
{
	return tb_id != RT_TABLE_LOCAL;
}

/* ---- fib4.c, fib6.c, rules.c: atomic ---- */
int l3_fib4_event(struct clsw_l3 *l3, unsigned long event, struct fib_notifier_info *info);
int l3_fib6_event(struct clsw_l3 *l3, unsigned long event, struct fib_notifier_info *info);
int l3_rule_event(struct clsw_l3 *l3, unsigned long event, struct fib_notifier_info *info);
/* Locked: the flags of the routes behind an alias */
void l3_fib4_flags(struct clsw_l3 *l3, struct l3_route *route, struct l3_alias *alias, u8 shown);

/* ---- way.c; any context ---- */
/* The kernel sends packets that way */
bool l3_path_alive(struct clsw_l3 *l3, const struct l3_paths *paths, const struct l3_path *path);
/* TND_HASH_*; negative: a policy that the chip lacks */
int l3_hash_of(struct clsw_l3 *l3, u8 family);

/* ---- weight.c ---- */
/* The kernel's weights, up to 65536, as the chip can have them */
void l3_fit_weights(struct tnd_nhg_member *member, unsigned int count, const u16 *weight,
		    u32 most);

/* ---- nexthop.c ---- */
int l3_nexthop_init(struct clsw_l3 *l3);
/* May sleep, not locked */
void l3_nexthop_exit(struct clsw_l3 *l3);
/*
 * Locked. Interned paths with a reference for the caller, made if need be.
 * NULL: -ENOSPC (@text says of what) or -ENOMEM in *@err. Without @veto room is
 * no reason to fail: what finds none traps.
 */
struct l3_paths *l3_paths_get(struct clsw_l3 *l3, u8 family, const struct l3_path *spec,
			      unsigned int count, bool veto, char *text, int *err);
/* Locked. Of a next-hop object, with a reference; NULL: not known */
struct l3_paths *l3_paths_find(struct clsw_l3 *l3, u32 nhid);
struct l3_paths *l3_paths_of_object(struct clsw_l3 *l3, u32 nhid);
void l3_paths_put(struct clsw_l3 *l3, struct l3_paths *paths);
/* Locked. Everything that leaves by an interface (0: all) is looked at anew */
void l3_paths_refresh(struct clsw_l3 *l3, u32 ifindex);
/* Locked, once a tick while l3->crowded: groups that found no room */
void l3_paths_retry(struct clsw_l3 *l3);
/* Locked. The neighbour of a gateway has changed; NULL: it is unresolved */
void l3_nh_resolved(struct clsw_l3 *l3, const struct l3_key *key, const u8 *mac);
struct nh_notifier_grp_hw_stats_info;
/*
 * May sleep, RTNL. Counters of a next-hop object that is a group; @info NULL:
 * what was counted up to now is nobody's
 */
void l3_stats_read(struct clsw_l3 *l3, u32 nhid, struct nh_notifier_grp_hw_stats_info *info);
int l3_nexthop_event(struct notifier_block *nb, unsigned long event, void *ptr);

/* ---- neigh.c ---- */
int l3_neigh_init(struct clsw_l3 *l3);
void l3_neigh_exit(struct clsw_l3 *l3);
/* Locked. NULL: not resolved */
struct l3_neigh *l3_neigh_find(struct clsw_l3 *l3, const struct l3_key *key);
/* Locked. What lies in a prefix is looked at anew; NULL: everything */
void l3_neigh_refresh(struct clsw_l3 *l3, struct l3_route *route);
void l3_neigh_refresh_dev(struct clsw_l3 *l3, u32 ifindex);
int l3_netevent(struct notifier_block *nb, unsigned long event, void *ptr);
/* May sleep: asks for gateways, confirms what hardware uses */
void l3_neigh_tick(struct clsw_l3 *l3, bool activity);
/* May sleep: what the kernel has already; -ENOMEM: not all of it */
int l3_neigh_walk(struct clsw_l3 *l3);

/* ---- rif.c ---- */
/* Locked or RTNL; NULL: none */
struct l3_rif *l3_rif_find(struct clsw_l3 *l3, u32 ifindex);
/* Locked, atomic: what they are to do may have changed; takes no memory */
void l3_rifs_trap(struct clsw_l3 *l3);
/* Atomic, any lock: all of them are looked at by a work item, at once */
void l3_rifs_soon(struct clsw_l3 *l3);
/* RTNL, not locked */
void l3_rif_refresh(struct clsw_l3 *l3, struct net_device *dev);
void l3_rifs_refresh(struct clsw_l3 *l3);
void l3_rif_gone(struct clsw_l3 *l3, struct net_device *dev);
void l3_rifs_leave(struct clsw_l3 *l3, u16 fid);
void l3_rifs_free(struct clsw_l3 *l3);
int l3_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr);
int l3_inetaddr_event(struct notifier_block *nb, unsigned long event, void *ptr);
int l3_inet6addr_event(struct notifier_block *nb, unsigned long event, void *ptr);
int l3_inetaddr_valid(struct notifier_block *nb, unsigned long event, void *ptr);
int l3_inet6addr_valid(struct notifier_block *nb, unsigned long event, void *ptr);

#endif /* _CLSW_L3_H */
