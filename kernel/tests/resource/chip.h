/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device to test against: it does what the ABI says of LEASE, RELEASE,
 * CREATE and DELETE, at once and by the simplest means. Objects are bits in
 * arrays; only the exact-match memory is the real one (bank.c, which replay.c
 * holds against the device's own).
 */
#ifndef RESOURCE_CHIP_H
#define RESOURCE_CHIP_H

#include "check.h"
#include "../../clsw/resource/resource.h"
#include "../../clsw/resource/bank.h"

enum { P_EXACT, P_LPM4, P_LPM6, P_NEXTHOP, P_NHG, P_MEMBER, POOLS };
enum { C_MAC, C_HOST4, C_HOST6, C_ROUTE4, C_ROUTE6, C_NEXTHOP, C_NHG, CLASSES };

#define CHIP_LEASES	1024
#define CHIP_MEMBERS	8	/* of one group at most */

struct chip_lease {
	u32 id;
	u8 slot;		/* of the ask: stands for its cookie */
	u32 left[POOLS];
};

struct chip {
	struct tnd_geometry geometry;
	struct bank bank;
	void *memory;
	u32 size[POOLS];
	u32 used[POOLS];	/* but for P_EXACT: the bank has it */
	u32 committed[POOLS];
	struct chip_lease lease[CHIP_LEASES];
	u32 cost[CLASSES];
	u32 next_lease;
	u32 max_leases;		/* at a time */
	u8 *there;		/* counted objects: members + 1, or 0 */
	u32 objects;
};

/* One object of the tests: a number, its class and its key follow from it */
struct thing {
	u8 cls;			/* C_* */
	u16 units;
	struct rm_req req;
};

/* A small one, or one as large as a Spectrum */
void chip_init(struct chip *c, u32 objects, bool large);
/* @c->geometry, @c->size of counted pools and @c->cost are filled in */
void chip_make(struct chip *c, u32 objects);
void chip_fini(struct chip *c);
void chip_snapshot(const struct chip *c, struct tnd_pool *pools);
void chip_costs(const struct chip *c, struct tnd_class_cost *costs);
/* @with_geometry: tell it; else the driver can't model */
struct rm *chip_rm(const struct chip *c, u8 policy, bool learning, bool with_geometry);

void thing_of(u32 n, struct thing *t);
u32 chip_free(const struct chip *c, u32 pool);

/* Each fills in a completion */
void chip_lease(struct chip *c, const struct rm_ask *ask, struct tnd_cpl *cpl);
void chip_release(struct chip *c, u32 id, struct tnd_cpl *cpl);
/* ... of the lease that the ask in @slot got */
void chip_release_of(struct chip *c, u8 slot, struct tnd_cpl *cpl);
void chip_create(struct chip *c, u32 n, u32 lease, struct tnd_cpl *cpl);
/* A group with another number of members than the thing has; one that stands gets that number */
void chip_create_group(struct chip *c, u32 n, u32 units, u32 lease, struct tnd_cpl *cpl);
void chip_update_group(struct chip *c, u32 n, u32 units, u32 lease, struct tnd_cpl *cpl);
void chip_delete(struct chip *c, u32 n, struct tnd_cpl *cpl);
bool chip_has(const struct chip *c, u32 n);
/* Members of a group that is there */
u32 chip_units(const struct chip *c, u32 n);
/* The device forgets leases (attach), or everything (cold) */
void chip_restart(struct chip *c, bool cold);

#endif
