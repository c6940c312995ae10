// SPDX-License-Identifier: GPL-2.0
/*
 * devlink resource: the chip's memories, and the classes of objects in each.
 *
 *   exact-match       size 87040  occ 12345     a memory, in its own slots
 *     mac             size 20000  occ  9000     size: set aside for the class,
 *     ipv4-host       size     0  occ  3000     the rest is for whoever comes;
 *     ipv6-host       size     0  occ   345     occ: slots it has now
 *   ipv4-lpm          size 65536  occ   400     one class: nothing to share
 *   physical_ports    size    32  occ    32
 *
 * A share is set by `devlink resource set` and takes effect with `devlink dev
 * reload`. The devlink core holds the sum of the shares against the memory.
 */
#include <linux/slab.h>

#include "../port/port.h"
#include "devlink.h"

/* Ids; 0 is devlink's top */
#define ID_POOL(i)	(1 + (i))
#define ID_CLASS(i)	(0x100 + (i))
#define ID_PORTS	0x200

struct clsw_resource {
	struct clsw_device *cd;
	unsigned int index;		/* of the pool or class in the resource manager */
	u16 pool;
	u32 size;
	u32 cost;
	u16 cls;
	u8 family;
	bool shared;			/* pool: more than one class lives there */
	char name[TND_NAME_SIZE + 1];
	char unit[TND_NAME_SIZE + 1];
};

struct clsw_resources {
	unsigned int pools;
	unsigned int classes;
	struct clsw_resource pool[RM_MAX_POOLS];
	struct clsw_resource class[RM_MAX_ROWS];
};

static u64 res_pool_occ(void *priv)
{
	struct clsw_resource *r = priv;
	struct rm_pool_state state;
	u64 occ = 0;

	clsw_lock(r->cd);
	if (rm_pool_state(r->cd->rm, r->index, &state))
		occ = (u64)state.used + state.in_flight;
	clsw_unlock(r->cd);
	return occ;
}

static u64 res_class_occ(void *priv)
{
	struct clsw_resource *r = priv;
	struct rm_class_state state;
	u64 occ = 0;

	clsw_lock(r->cd);
	if (rm_class_state(r->cd->rm, r->index, &state))
		occ = (u64)state.count * state.cost;
	clsw_unlock(r->cd);
	return occ;
}

static u64 res_ports_occ(void *priv)
{
	struct clsw_device *cd = priv;

	return cd->port_count;
}

static void res_find_pools(struct clsw_device *cd, struct clsw_resources *all)
{
	struct rm_pool_state pool;
	struct rm_class_state class;
	unsigned int i, k, living;

	lockdep_assert_held(&cd->lock);
	all->pools = min_t(unsigned int, rm_pool_count(cd->rm), RM_MAX_POOLS);
	all->classes = min_t(unsigned int, rm_class_count(cd->rm), RM_MAX_ROWS);
	for (k = 0; k < all->classes; k++) {
		struct clsw_resource *r = &all->class[k];

		if (!rm_class_state(cd->rm, k, &class))
			continue;
		r->cd = cd;
		r->index = k;
		r->pool = class.pool;
		r->cost = max(class.cost, 1U);
		r->cls = class.cls;
		r->family = class.family;
		snprintf(r->name, sizeof(r->name), "%.*s", TND_NAME_SIZE, class.name);
	}
	for (i = 0; i < all->pools; i++) {
		struct clsw_resource *r = &all->pool[i];

		if (!rm_pool_state(cd->rm, i, &pool))
			continue;
		r->cd = cd;
		r->index = i;
		r->pool = pool.pool;
		r->size = pool.size;
		snprintf(r->name, sizeof(r->name), "%.*s", TND_NAME_SIZE, pool.name);
		for (living = 0, k = 0; k < all->classes; k++)
			living += all->class[k].cd && all->class[k].pool == r->pool;
		r->shared = living > 1;
	}
}

static int res_register_one(struct clsw_device *cd, const char *name, u64 size, u64 id, u64 parent,
			    u64 min, u64 max, u64 step, devlink_resource_occ_get_t *occ, void *priv)
{
	struct devlink_resource_size_params params;
	int err;

	devlink_resource_size_params_init(&params, min, max, step, DEVLINK_RESOURCE_UNIT_ENTRY);
	err = devl_resource_register(cd->devlink, name, size, id, parent, &params);
	if (!err)
		devl_resource_occ_get_register(cd->devlink, id, occ, priv);
	return err;
}

int clsw_resources_init(struct clsw_device *cd)
{
	struct clsw_resources *all;
	unsigned int i, k;
	int err;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	clsw_lock(cd);
	res_find_pools(cd, all);
	clsw_unlock(cd);
	cd->resources = all;
	for (i = 0; i < all->pools; i++) {
		struct clsw_resource *pool = &all->pool[i];

		if (!pool->cd)
			continue;
		err = res_register_one(cd, pool->name, pool->size, ID_POOL(i),
				       DEVLINK_RESOURCE_ID_PARENT_TOP, pool->size, pool->size, 1,
				       res_pool_occ, pool);
		for (k = 0; !err && pool->shared && k < all->classes; k++) {
			struct clsw_resource *class = &all->class[k];

			if (!class->cd || class->pool != pool->pool)
				continue;
			err = res_register_one(cd, class->name, 0, ID_CLASS(k), ID_POOL(i), 0,
					       pool->size, class->cost, res_class_occ, class);
		}
		if (err)
			goto err;
	}
	return 0;
err:
	clsw_resources_exit(cd);
	return err;
}

int clsw_resources_ports(struct clsw_device *cd)
{
	/* a part of a split port takes the number of another cage: there are never more */
	u32 most = cd->front->board.cages;

	return res_register_one(cd, DEVLINK_RESOURCE_GENERIC_NAME_PORTS, most, ID_PORTS,
				DEVLINK_RESOURCE_ID_PARENT_TOP, most, most, 1, res_ports_occ, cd);
}

void clsw_resources_exit(struct clsw_device *cd)
{
	devl_resources_unregister(cd->devlink);
	kfree(cd->resources);
	cd->resources = NULL;
}

static int res_set_floor(struct clsw_device *cd, const struct clsw_resource *r, u64 slots)
{
	struct rm_class_state state;
	int err = -EINVAL;

	clsw_lock(cd);
	if (rm_class_state(cd->rm, r->index, &state))
		err = rm_set_limits(cd->rm, r->cls, r->family, div_u64(slots, r->cost),
				    state.cap);
	clsw_unlock(cd);
	return err;
}

int clsw_resources_apply(struct clsw_device *cd)
{
	struct clsw_resources *all = cd->resources;
	unsigned int k;
	int err = 0;
	u64 size;

	/* one share may grow by what another gives up: first nobody has one */
	for (k = 0; k < all->classes; k++)
		res_set_floor(cd, &all->class[k], 0);
	for (k = 0; k < all->classes && !err; k++) {
		if (all->class[k].cd &&
		    !devl_resource_size_get(cd->devlink, ID_CLASS(k), &size) && size)
			err = res_set_floor(cd, &all->class[k], size);
	}
	for (k = 0; k < all->classes && err; k++)
		res_set_floor(cd, &all->class[k], 0);
	clsw_lock(cd);
	clsw_room_came(cd);
	clsw_unlock(cd);
	return err;
}
