// SPDX-License-Identifier: GPL-2.0
/*
 * A device from allocation to removal, and its way back after trouble.
 *
 *   alloc -> register: attach cold -> pools -> drainer -> ports -> L2, L3 -> devlink
 *                          ^                                                   |
 *                          |   clsw_trouble(): state TROUBLE, puts are best effort
 *                          +-- recover: attach warm, replay the store, sweep --+
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "core.h"
#include "devlink/devlink.h"

#define RECOVER_TRIES		20
#define RECOVER_PAUSE_MS	500	/* the chip may be restarting */
#define RECOVER_SWEEP_MS	60000

void clsw_lock(struct clsw_device *cd)
	__acquires(&cd->lock)
{
	spin_lock_bh(&cd->lock);
}
EXPORT_SYMBOL_GPL(clsw_lock);

void clsw_unlock(struct clsw_device *cd)
	__releases(&cd->lock)
{
	if (cd->drain_due)
		clsw_drain_inline(cd);
	spin_unlock_bh(&cd->lock);
}
EXPORT_SYMBOL_GPL(clsw_unlock);

void *clsw_priv(struct clsw_device *cd)
{
	return cd->priv;
}
EXPORT_SYMBOL_GPL(clsw_priv);

struct device *clsw_parent(struct clsw_device *cd)
{
	return cd->parent;
}
EXPORT_SYMBOL_GPL(clsw_parent);

static void device_set_state(struct clsw_device *cd, enum clsw_device_state state)
{
	clsw_lock(cd);
	WRITE_ONCE(cd->state, state);
	clsw_unlock(cd);
	clsw_drain_kick(cd);
	wake_up_all(&cd->idle_wait);
}

static bool device_idle(struct clsw_device *cd)
{
	bool yes;

	clsw_lock(cd);
	yes = clsw_drain_settled(cd) || cd->state == CLSW_DEV_GONE;
	clsw_unlock(cd);
	return yes;
}

int clsw_settle(struct clsw_device *cd, unsigned int ms)
{
	clsw_drain_kick(cd);
	if (!wait_event_timeout(cd->idle_wait, device_idle(cd), msecs_to_jiffies(ms)))
		return -ETIMEDOUT;
	return cd->state == CLSW_DEV_GONE ? -EIO : 0;
}

static int device_recover_once(struct clsw_device *cd)
{
	enum clsw_attach_mode mode = clsw_can(cd, CLSW_CAN_ATTACH_WARM) ? CLSW_ATTACH_WARM :
									  CLSW_ATTACH_COLD;
	int err = cd->backend->device->attach(cd, mode);

	if (err)
		return err;
	err = clsw_caps_again(cd);
	if (err)
		return err;
	err = clsw_replay(cd, mode);
	if (err)
		return err;
	device_set_state(cd, CLSW_DEV_UP);
	err = clsw_replay_finish(cd, RECOVER_SWEEP_MS);
	if (err)
		device_set_state(cd, CLSW_DEV_TROUBLE);
	return err;
}

static void device_recover_work(struct work_struct *work)
{
	struct clsw_device *cd = container_of(work, struct clsw_device, recover_work);
	int i, err = -EIO;

	/* queued by trouble that the last run has been through already */
	if (clsw_up(cd))
		return;
	clsw_health_report(cd);
	for (i = 0; i < RECOVER_TRIES && !READ_ONCE(cd->leaving); i++) {
		err = device_recover_once(cd);
		/* one that can do less is what it is until somebody restarts it */
		if (!err || err == -EOPNOTSUPP)
			break;
		msleep(RECOVER_PAUSE_MS);
	}
	if (!err) {
		cd->count.recoveries++;
		clsw_ports_resume(cd);
		clsw_l2_resync(cd);
		dev_info(cd->parent, "recovered: %u objects replayed\n", cd->object_count);
	} else if (!READ_ONCE(cd->leaving)) {
		/* of one that has less all has been said */
		if (err != -EOPNOTSUPP)
			dev_err(cd->parent,
				"the chip is given up (%d): devlink health recover tries again\n",
				err);
		device_set_state(cd, CLSW_DEV_GONE);
	}
	clsw_health_recovered(cd, err);
}

/* May sleep, from the health reporter: once more, by hand */
int clsw_recover(struct clsw_device *cd)
{
	if (clsw_up(cd) && !cd->resync)
		return 0;
	device_set_state(cd, CLSW_DEV_TROUBLE);
	queue_work(system_long_wq, &cd->recover_work);
	flush_work(&cd->recover_work);
	return clsw_up(cd) ? 0 : -EIO;
}

void clsw_trouble(struct clsw_device *cd, const char *why)
{
	enum clsw_device_state was = cmpxchg(&cd->state, CLSW_DEV_UP, CLSW_DEV_TROUBLE);

	/* a chip that was given up and is heard of again gets another chance */
	if (was != CLSW_DEV_UP &&
	    cmpxchg(&cd->state, CLSW_DEV_GONE, CLSW_DEV_TROUBLE) != CLSW_DEV_GONE)
		return;
	WRITE_ONCE(cd->trouble, why);
	dev_warn(cd->parent, "trouble: %s\n", why);
	/* who waits for a replay to end waits for nothing */
	wake_up_all(&cd->idle_wait);
	/* while the device is registered: before and after, there is nothing to bring back */
	queue_work(system_long_wq, &cd->recover_work);
}
EXPORT_SYMBOL_GPL(clsw_trouble);

struct clsw_device *clsw_device_alloc(const struct clsw_backend *backend, struct device *parent)
{
	struct devlink *devlink;
	struct clsw_device *cd;

	if (WARN_ON(!backend->device || !backend->device->caps || !backend->table))
		return NULL;
	devlink = devlink_alloc(&clsw_devlink_ops, sizeof(*cd) + backend->priv_size, parent);
	if (!devlink)
		return NULL;
	cd = devlink_priv(devlink);
	cd->devlink = devlink;
	cd->backend = backend;
	cd->parent = parent;
	spin_lock_init(&cd->lock);
	spin_lock_init(&cd->tx_lock);
	init_waitqueue_head(&cd->drain_wait);
	init_waitqueue_head(&cd->idle_wait);
	INIT_LIST_HEAD(&cd->list);
	INIT_LIST_HEAD(&cd->holds);
	INIT_LIST_HEAD(&cd->dumps);
	INIT_WORK(&cd->recover_work, device_recover_work);
	/* until everything that it touches is there; disabled, it can't be queued either */
	disable_work(&cd->recover_work);
	return cd;
}
EXPORT_SYMBOL_GPL(clsw_device_alloc);

int clsw_device_register(struct clsw_device *cd)
{
	const struct clsw_device_ops *ops = cd->backend->device;
	int err;

	clsw_store_init(cd);
	err = ops->attach(cd, CLSW_ATTACH_COLD);
	if (err)
		return err;
	err = clsw_caps_init(cd);
	if (err)
		goto err_attach;
	cd->platform = ops->platform(cd, &cd->platform_size);
	if (!cd->platform) {
		err = -ENODEV;
		goto err_attach;
	}
	err = clsw_rm_start(cd);
	if (err)
		goto err_attach;
	err = clsw_store_start(cd);
	if (err)
		goto err_rm;
	cd->state = CLSW_DEV_UP;
	err = clsw_drain_start(cd);
	if (err)
		goto err_store;

	devl_lock(cd->devlink);
	err = clsw_devlink_init(cd);
	if (err)
		goto err_drain;
	err = clsw_ports_init(cd);
	if (err)
		goto err_devlink;
	devl_unlock(cd->devlink);

	err = clsw_l2_init(cd);
	if (err)
		goto err_ports;
	err = clsw_l3_init(cd);
	if (err)
		goto err_l2;
	devlink_register(cd->devlink);
	clsw_health_live(cd, true);
	clsw_genl_add(cd);
	enable_work(&cd->recover_work);
	/* trouble that came meanwhile */
	if (!clsw_up(cd))
		queue_work(system_long_wq, &cd->recover_work);
	dev_info(cd->parent, "%s: %u ports\n", cd->backend->name, cd->port_count);
	return 0;

err_l2:
	clsw_l2_exit(cd);
err_ports:
	devl_lock(cd->devlink);
	clsw_ports_exit(cd);
err_devlink:
	clsw_devlink_exit(cd);
err_drain:
	devl_unlock(cd->devlink);
	clsw_drain_stop(cd);
err_store:
	clsw_store_exit(cd);
err_rm:
	clsw_rm_stop(cd);
err_attach:
	ops->detach(cd);
	return err;
}
EXPORT_SYMBOL_GPL(clsw_device_register);

void clsw_device_unregister(struct clsw_device *cd)
{
	WRITE_ONCE(cd->leaving, true);
	/* whoever is in trouble from here on, be it with what is told to go, stays there */
	disable_work_sync(&cd->recover_work);
	clsw_genl_remove(cd);
	clsw_health_live(cd, false);
	devlink_unregister(cd->devlink);
	clsw_l3_exit(cd);
	clsw_l2_exit(cd);
	devl_lock(cd->devlink);
	clsw_ports_exit(cd);
	clsw_devlink_exit(cd);
	devl_unlock(cd->devlink);
	/* the chip keeps its tables; what leaves now was told to go */
	if (clsw_up(cd))
		clsw_settle(cd, CLSW_LOST_MS);
	clsw_drain_stop(cd);
	cd->backend->device->detach(cd);
	clsw_rm_stop(cd);
	clsw_store_exit(cd);
}
EXPORT_SYMBOL_GPL(clsw_device_unregister);

void clsw_device_free(struct clsw_device *cd)
{
	devlink_free(cd->devlink);
}
EXPORT_SYMBOL_GPL(clsw_device_free);

static int __init clsw_init(void)
{
	return clsw_genl_init();
}
module_init(clsw_init);

static void __exit clsw_exit(void)
{
	clsw_genl_exit();
}
module_exit(clsw_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Common layer for switchdev drivers");
