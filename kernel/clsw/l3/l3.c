// SPDX-License-Identifier: GPL-2.0
/*
 * L3 from start to end, and what happens by the clock.
 *
 *   start: netdevices, addresses ─► RIFs ─► next-hop objects ─► neighbours ─► FIB
 *
 * Next hops before routes: a route names them. Neighbours have no replay and
 * are walked. Registering with the FIB fails under churn: it is tried again.
 */
#include <linux/delay.h>
#include <linux/inetdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/netevent.h>
#include <net/nexthop.h>

#include "l3.h"

#define FIB_TRIES	10
#define EYES_MOST	200	/* times HZ / 20 */

/* Of all devices: one lock, inside it at most one device's */
static LIST_HEAD(all);
static DEFINE_SPINLOCK(all_lock);

void l3_others(struct clsw_l3 *l3, void (*fn)(struct clsw_l3 *other, void *arg), void *arg)
{
	struct clsw_l3 *other;

	spin_lock_bh(&all_lock);
	list_for_each_entry(other, &all, all) {
		if (other == l3 || !net_eq(other->net, l3->net))
			continue;
		clsw_lock(other->cd);
		fn(other, arg);
		clsw_unlock(other->cd);
	}
	spin_unlock_bh(&all_lock);
}

static int l3_fib_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, fib_nb);
	struct fib_notifier_info *info = ptr;
	int err = 0;

	switch (event) {
	case FIB_EVENT_RULE_ADD:
	case FIB_EVENT_RULE_DEL:
		err = l3_rule_event(l3, event, info);
		break;
	default:
		if (info->family == AF_INET)
			err = l3_fib4_event(l3, event, info);
		else if (info->family == AF_INET6)
			err = l3_fib6_event(l3, event, info);
		break;
	}
	/* a replay must go on whatever happens to one route */
	return notifier_from_errno(info->extack ? err : 0);
}

static void l3_forget_routes(struct clsw_l3 *l3)
{
	clsw_lock(l3->cd);
	l3_routes_free(l3);
	l3->alien_rules = 0;
	clsw_unlock(l3->cd);
}

/* The dump was cut short by a change: what it told is void */
static void l3_fib_again(struct notifier_block *nb)
{
	l3_forget_routes(container_of(nb, struct clsw_l3, fib_nb));
}

static int l3_fib_register(struct clsw_l3 *l3)
{
	int i, err = -EBUSY;

	for (i = 0; i < FIB_TRIES; i++) {
		err = register_fib_notifier(l3->net, &l3->fib_nb, l3_fib_again, NULL);
		if (err != -EBUSY)
			break;
		l3_forget_routes(l3);
		msleep(20 << min(i, 5));
	}
	return err;
}

/* ---- by the clock ---- */

void l3_rifs_soon(struct clsw_l3 *l3)
{
	mod_delayed_work(l3->wq, &l3->refresh_work, 0);
}

static void l3_refresh_work(struct work_struct *work)
{
	struct clsw_l3 *l3 = container_of(work, struct clsw_l3, refresh_work.work);

	rtnl_lock();
	if (!l3->leaving)
		l3_rifs_refresh(l3);
	rtnl_unlock();
}

/* What failed for want of memory, once more */
static void l3_wake_up_again(struct clsw_l3 *l3)
{
	struct l3_vrf *vrf;

	clsw_lock(l3->cd);
	l3->sleepy = false;
	l3_paths_refresh(l3, 0);
	list_for_each_entry(vrf, &l3->vrfs, list)
		l3_routes_apply(l3, vrf);
	l3_neigh_refresh(l3, NULL);
	clsw_unlock(l3->cd);
	if (l3_neigh_walk(l3))
		WRITE_ONCE(l3->sleepy, true);
}

void l3_degrade(struct clsw_l3 *l3)
{
	lockdep_assert_held(&l3->cd->lock);
	l3->told = false;
	if (!l3->degraded++)
		dev_warn(l3->cd->parent, "no memory for a route: routed packets go to the CPU until there is some\n");
	l3_rifs_trap(l3);
}

/* Next-hop objects, neighbours and the FIB tell all they have */
static int l3_listen(struct clsw_l3 *l3)
{
	int err = register_nexthop_notifier(l3->net, &l3->nexthop_nb, NULL);

	if (err)
		return err;
	err = l3_fib_register(l3);
	if (err)
		unregister_nexthop_notifier(l3->net, &l3->nexthop_nb);
	return err;
}

static void l3_deaf(struct clsw_l3 *l3)
{
	unregister_fib_notifier(l3->net, &l3->fib_nb);
	unregister_nexthop_notifier(l3->net, &l3->nexthop_nb);
}

/* Everything from the start; while it is told, and if that fails again, RIFs trap */
static void l3_see_again(struct clsw_l3 *l3)
{
	u32 was = READ_ONCE(l3->degraded);

	if (l3->listens)
		l3_deaf(l3);
	l3_forget_routes(l3);
	l3->listens = !l3_listen(l3);
	if (l3_neigh_walk(l3))
		WRITE_ONCE(l3->sleepy, true);
	clsw_lock(l3->cd);
	l3->told = l3->listens && l3->degraded == was;
	clsw_unlock(l3->cd);
}

/* All that the kernel has told is in the chip: RIFs may forward. False: not yet */
static bool l3_open_eyes(struct clsw_l3 *l3)
{
	bool done;

	clsw_lock(l3->cd);
	/* where routes come without a break nothing is ever settled; those of before are written */
	done = l3->told && (clsw_drain_settled(l3->cd) || ++l3->waited > EYES_MOST);
	if (done) {
		l3->degraded = 0;
		l3->waited = 0;
	}
	clsw_unlock(l3->cd);
	if (done)
		l3_rifs_soon(l3);
	return done;
}

static void l3_tick_work(struct work_struct *work)
{
	struct clsw_l3 *l3 = container_of(work, struct clsw_l3, tick_work.work);
	unsigned long pause = L3_TICK;

	if (l3->leaving)
		return;
	l3->ticks++;
	/* sysctls and netfilter's hooks change without a word to us */
	if (rtnl_trylock()) {
		clsw_l2_filters(l3->cd);
		l3_rifs_refresh(l3);
		rtnl_unlock();
	}
	if (READ_ONCE(l3->degraded)) {
		if (!READ_ONCE(l3->told))
			l3_see_again(l3);
		if (!l3_open_eyes(l3))
			pause = HZ / 20;
	}
	if (READ_ONCE(l3->sleepy))
		l3_wake_up_again(l3);
	if (READ_ONCE(l3->crowded)) {
		clsw_lock(l3->cd);
		l3_paths_retry(l3);
		clsw_unlock(l3->cd);
	}
	l3_fib6_look(l3);
	l3_neigh_tick(l3, l3->ticks % 2 == 0);
	queue_delayed_work(l3->wq, &l3->tick_work, pause);
}

static void l3_fid_changed(struct clsw_device *cd, u16 gone)
{
	if (!cd->l3)
		return;
	if (gone)
		l3_rifs_leave(cd->l3, gone);
	/* RTNL or locked, perhaps both: from a work item neither */
	l3_rifs_soon(cd->l3);
}

/* Slots that only connected and local prefixes take: nobody hears that those failed */
static void l3_set_reserve(struct clsw_l3 *l3)
{
	struct rm_class_state state;
	struct rm_pool_state pool;
	unsigned int i;

	clsw_lock(l3->cd);
	for (i = 0; rm_class_state(l3->cd->rm, i, &state); i++) {
		if (state.cls != TND_CLS_ROUTE || !rm_pool_state(l3->cd->rm, state.pool, &pool))
			continue;
		rm_set_reserve(l3->cd->rm, state.cls, state.family,
			       min_t(u32, L3_RESERVE * state.cost, pool.size / 8));
	}
	clsw_unlock(l3->cd);
}

/* Interfaces and tables; routes are gone */
static void l3_free_all(struct clsw_l3 *l3)
{
	rtnl_lock();
	l3_rifs_free(l3);
	rtnl_unlock();
	clsw_lock(l3->cd);
	l3_vrfs_free(l3);
	l3->cd->l3 = NULL;
	clsw_unlock(l3->cd);
	xa_destroy(&l3->vlan_rifs);
	xa_destroy(&l3->vlan_rif_of);
	ida_destroy(&l3->vrf_ids);
}

/*
 * What one file initialises has one class for lockdep. These are taken under RTNL
 * with soft interrupts on, never inside each other; vrf_ids under clsw_lock().
 */
static struct lock_class_key vlan_rif_lock;

int clsw_l3_init(struct clsw_device *cd)
{
	struct clsw_l3 *l3 = kzalloc(sizeof(*l3), GFP_KERNEL);
	int err = -ENOMEM;

	if (!l3)
		return -ENOMEM;
	l3->cd = cd;
	l3->net = devlink_net(cd->devlink);
	INIT_LIST_HEAD(&l3->vrfs);
	INIT_LIST_HEAD(&l3->gone);
	INIT_LIST_HEAD(&l3->flag_list);
	hash_init(l3->rifs);
	xa_init_flags(&l3->vlan_rifs, XA_FLAGS_ALLOC);
	xa_init(&l3->vlan_rif_of);
	ida_init(&l3->vrf_ids);
	lockdep_set_class(&l3->vlan_rifs.xa_lock, &vlan_rif_lock);
	lockdep_set_class(&l3->vlan_rif_of.xa_lock, &vlan_rif_lock);
	INIT_DELAYED_WORK(&l3->refresh_work, l3_refresh_work);
	INIT_WORK(&l3->flag_work, l3_flag_work);
	INIT_DELAYED_WORK(&l3->tick_work, l3_tick_work);
	l3->fib_nb.notifier_call = l3_fib_event;
	l3->nexthop_nb.notifier_call = l3_nexthop_event;
	l3->netevent_nb.notifier_call = l3_netevent;
	l3->netdev_nb.notifier_call = l3_netdev_event;
	l3->inetaddr_nb.notifier_call = l3_inetaddr_event;
	l3->inet6addr_nb.notifier_call = l3_inet6addr_event;
	l3->inetaddr_valid_nb.notifier_call = l3_inetaddr_valid;
	l3->inet6addr_valid_nb.notifier_call = l3_inet6addr_valid;
	l3->wq = alloc_ordered_workqueue("clsw-l3", 0);
	if (!l3->wq)
		goto err_free;
	err = l3_nexthop_init(l3);
	if (err)
		goto err_wq;
	err = l3_neigh_init(l3);
	if (err)
		goto err_nexthop;
	l3_set_reserve(l3);
	clsw_lock(cd);
	l3->main = l3_vrf_get(l3, RT_TABLE_MAIN);
	clsw_unlock(cd);
	err = -ENOMEM;
	if (!l3->main)
		goto err_neigh;
	cd->l3 = l3;
	clsw_l2_on_fid(cd, l3_fid_changed);

	err = register_netdevice_notifier_net(l3->net, &l3->netdev_nb);
	if (err)
		goto err_l3;
	err = register_inetaddr_validator_notifier(&l3->inetaddr_valid_nb);
	if (err)
		goto err_netdev;
	err = register_inet6addr_validator_notifier(&l3->inet6addr_valid_nb);
	if (err)
		goto err_valid;
	err = register_inetaddr_notifier(&l3->inetaddr_nb);
	if (err)
		goto err_valid6;
	err = register_inet6addr_notifier(&l3->inet6addr_nb);
	if (err)
		goto err_inetaddr;
	/* nothing is forwarded by half a table */
	l3->degraded = 1;
	spin_lock_bh(&all_lock);
	list_add(&l3->all, &all);
	spin_unlock_bh(&all_lock);
	rtnl_lock();
	l3_rifs_refresh(l3);
	rtnl_unlock();
	err = register_netevent_notifier(&l3->netevent_nb);
	if (err)
		goto err_inet6addr;
	err = l3_neigh_walk(l3);
	if (err)
		goto err_netevent;
	err = l3_listen(l3);
	if (err)
		goto err_netevent;
	l3->listens = true;
	clsw_lock(cd);
	l3->told = l3->degraded == 1;
	clsw_unlock(cd);
	queue_delayed_work(l3->wq, &l3->tick_work, 0);
	return 0;

err_netevent:
	unregister_netevent_notifier(&l3->netevent_nb);
err_inet6addr:
	spin_lock_bh(&all_lock);
	list_del(&l3->all);
	spin_unlock_bh(&all_lock);
	unregister_inet6addr_notifier(&l3->inet6addr_nb);
err_inetaddr:
	unregister_inetaddr_notifier(&l3->inetaddr_nb);
err_valid6:
	unregister_inet6addr_validator_notifier(&l3->inet6addr_valid_nb);
err_valid:
	unregister_inetaddr_validator_notifier(&l3->inetaddr_valid_nb);
err_netdev:
	unregister_netdevice_notifier_net(l3->net, &l3->netdev_nb);
err_l3:
	clsw_l2_on_fid(cd, NULL);
	l3->leaving = true;
	cancel_delayed_work_sync(&l3->tick_work);
	cancel_delayed_work_sync(&l3->refresh_work);
	l3_free_all(l3);
err_neigh:
	l3_neigh_exit(l3);
err_nexthop:
	l3_nexthop_exit(l3);
err_wq:
	destroy_workqueue(l3->wq);
err_free:
	kfree(l3);
	return err;
}

void clsw_l3_exit(struct clsw_device *cd)
{
	struct clsw_l3 *l3 = cd->l3;

	WRITE_ONCE(l3->leaving, true);
	spin_lock_bh(&all_lock);
	list_del(&l3->all);
	spin_unlock_bh(&all_lock);
	clsw_l2_on_fid(cd, NULL);
	/* it may be about to listen anew */
	cancel_delayed_work_sync(&l3->tick_work);
	unregister_netevent_notifier(&l3->netevent_nb);
	if (l3->listens)
		l3_deaf(l3);
	unregister_inet6addr_notifier(&l3->inet6addr_nb);
	unregister_inetaddr_notifier(&l3->inetaddr_nb);
	unregister_inet6addr_validator_notifier(&l3->inet6addr_valid_nb);
	unregister_inetaddr_validator_notifier(&l3->inetaddr_valid_nb);
	unregister_netdevice_notifier_net(l3->net, &l3->netdev_nb);
	cancel_delayed_work_sync(&l3->tick_work);
	cancel_delayed_work_sync(&l3->refresh_work);
	cancel_work_sync(&l3->flag_work);
	/* routes, their paths, then what is left: nobody watches any more */
	clsw_lock(cd);
	l3_routes_free(l3);
	clsw_unlock(cd);
	l3_free_all(l3);
	l3_neigh_exit(l3);
	l3_nexthop_exit(l3);
	destroy_workqueue(l3->wq);
	kfree(l3);
}
