// SPDX-License-Identifier: GPL-2.0
/*
 * devlink health: the chip has failed, reset itself or gone.
 *
 *   clsw_trouble() ─► recover_work ─┬─► clsw_health_report ───┐
 *                                   └─► clsw_health_recovered ┴─► a work item: devlink
 *   recover by hand ─► clsw_recover() ─► recover_work, waited for
 *
 * The devlink lock is taken by our own work alone: who recovers by hand holds
 * it while it waits for recover_work. Recovery never waits for devlink; what a
 * dump shows is copied when the trouble begins.
 */
#include <linux/slab.h>

#include "devlink.h"

/* What there was to see when the trouble began */
struct picture {
	const char *why;
	u32 objects;
	u32 in_flight;
	u64 posted, completed, lost, refused, replays, recoveries;
	u64 rx, rx_dropped, tx, tx_busy, events, events_lost;
	unsigned int pools;
	struct rm_pool_state pool[RM_MAX_POOLS];
	struct rm_stats rm;
	s64 at;				/* seconds since 1970 */
};

struct clsw_health {
	struct clsw_device *cd;
	struct devlink_health_reporter *reporter;
	struct work_struct work;
	/* under clsw_lock() */
	bool live;			/* devlink is registered */
	bool reported;			/* trouble that devlink must hear of */
	bool recovered;			/* so must it of its end */
	bool by_hand;			/* the user asked for it: nothing new */
	struct picture picture;		/* of the last trouble */
};

static void health_take_picture(struct clsw_device *cd, struct picture *p)
{
	unsigned int i;

	lockdep_assert_held(&cd->lock);
	memset(p, 0, sizeof(*p));
	p->why = READ_ONCE(cd->trouble);
	p->objects = cd->object_count;
	p->in_flight = cd->in_flight;
	p->posted = cd->count.posted;
	p->completed = cd->count.completed;
	p->lost = cd->count.lost;
	p->refused = cd->count.refused;
	p->replays = cd->count.replays;
	p->recoveries = cd->count.recoveries;
	p->rx = cd->count.rx;
	p->rx_dropped = cd->count.rx_dropped;
	p->tx = cd->count.tx;
	p->tx_busy = cd->count.tx_busy;
	p->events = cd->count.events;
	p->events_lost = cd->count.events_lost;
	p->pools = min_t(unsigned int, rm_pool_count(cd->rm), RM_MAX_POOLS);
	for (i = 0; i < p->pools; i++)
		rm_pool_state(cd->rm, i, &p->pool[i]);
	rm_stats(cd->rm, &p->rm);
	p->at = ktime_get_real_seconds();
}

static const char *health_state_name(const struct clsw_device *cd)
{
	switch (READ_ONCE(cd->state)) {
	case CLSW_DEV_UP:
		return "up";
	case CLSW_DEV_TROUBLE:
		return "recovering";
	case CLSW_DEV_GONE:
		return "gone";
	default:
		return "down";
	}
}

static void health_put_picture(struct devlink_fmsg *fmsg, const struct picture *p)
{
	unsigned int i;

	devlink_fmsg_u32_pair_put(fmsg, "objects", p->objects);
	devlink_fmsg_u32_pair_put(fmsg, "in_flight", p->in_flight);
	devlink_fmsg_u64_pair_put(fmsg, "posted", p->posted);
	devlink_fmsg_u64_pair_put(fmsg, "completed", p->completed);
	devlink_fmsg_u64_pair_put(fmsg, "lost", p->lost);
	devlink_fmsg_u64_pair_put(fmsg, "refused", p->refused);
	devlink_fmsg_u64_pair_put(fmsg, "replays", p->replays);
	devlink_fmsg_u64_pair_put(fmsg, "recoveries", p->recoveries);
	devlink_fmsg_u64_pair_put(fmsg, "rx", p->rx);
	devlink_fmsg_u64_pair_put(fmsg, "rx_dropped", p->rx_dropped);
	devlink_fmsg_u64_pair_put(fmsg, "tx", p->tx);
	devlink_fmsg_u64_pair_put(fmsg, "tx_busy", p->tx_busy);
	devlink_fmsg_u64_pair_put(fmsg, "events", p->events);
	devlink_fmsg_u64_pair_put(fmsg, "events_lost", p->events_lost);
	devlink_fmsg_u64_pair_put(fmsg, "mispredicted", p->rm.mispredicted);
	devlink_fmsg_u64_pair_put(fmsg, "commands_unknown", p->rm.unknown);
	devlink_fmsg_arr_pair_nest_start(fmsg, "pools");
	for (i = 0; i < p->pools; i++) {
		const struct rm_pool_state *pool = &p->pool[i];

		devlink_fmsg_obj_nest_start(fmsg);
		devlink_fmsg_string_pair_put(fmsg, "name", pool->name);
		devlink_fmsg_u32_pair_put(fmsg, "size", pool->size);
		devlink_fmsg_u32_pair_put(fmsg, "used", pool->used);
		devlink_fmsg_u32_pair_put(fmsg, "in_flight", pool->in_flight);
		devlink_fmsg_u32_pair_put(fmsg, "committed", pool->committed);
		devlink_fmsg_u32_pair_put(fmsg, "free", pool->free);
		devlink_fmsg_u32_pair_put(fmsg, "slots_unknown", pool->unknown);
		devlink_fmsg_obj_nest_end(fmsg);
	}
	devlink_fmsg_arr_pair_nest_end(fmsg);
}

static int health_dump(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
		       void *priv_ctx, struct netlink_ext_ack *extack)
{
	struct clsw_health *h = devlink_health_reporter_priv(reporter);
	struct picture *p = kmalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	clsw_lock(h->cd);
	if (!h->picture.at)	/* asked for without any trouble */
		health_take_picture(h->cd, &h->picture);
	*p = h->picture;
	clsw_unlock(h->cd);
	devlink_fmsg_string_pair_put(fmsg, "trouble", p->why ?: "none");
	devlink_fmsg_u64_pair_put(fmsg, "time", p->at);
	health_put_picture(fmsg, p);
	kfree(p);
	return 0;
}

static int health_diagnose(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			   struct netlink_ext_ack *extack)
{
	struct clsw_health *h = devlink_health_reporter_priv(reporter);
	struct picture *p = kmalloc(sizeof(*p), GFP_KERNEL);
	unsigned int i;

	if (!p)
		return -ENOMEM;
	clsw_lock(h->cd);
	health_take_picture(h->cd, p);
	clsw_unlock(h->cd);
	devlink_fmsg_string_pair_put(fmsg, "state", health_state_name(h->cd));
	health_put_picture(fmsg, p);
	kfree(p);
	devlink_fmsg_pair_nest_start(fmsg, "policed");
	devlink_fmsg_obj_nest_start(fmsg);
	for (i = 0; i < CLSW_TRAP_CLASSES; i++)
		devlink_fmsg_u64_pair_put(fmsg, clsw_trap_class_name(i),
					  clsw_trap_policed_total(h->cd, i));
	devlink_fmsg_obj_nest_end(fmsg);
	devlink_fmsg_pair_nest_end(fmsg);
	return 0;
}

/* @priv_ctx: from a report, recover_work is at it already */
static int health_recover(struct devlink_health_reporter *reporter, void *priv_ctx,
			  struct netlink_ext_ack *extack)
{
	struct clsw_health *h = devlink_health_reporter_priv(reporter);
	int err;

	if (priv_ctx)
		return -EINPROGRESS;
	clsw_lock(h->cd);
	h->by_hand = true;
	clsw_unlock(h->cd);
	err = clsw_recover(h->cd);
	clsw_lock(h->cd);
	h->by_hand = false;
	clsw_unlock(h->cd);
	if (err)
		NL_SET_ERR_MSG_MOD(extack, "the chip did not come back: the kernel's log says why");
	return err;
}

/* Trouble as if the chip had failed, without any harm to it */
static int health_test(struct devlink_health_reporter *reporter, struct netlink_ext_ack *extack)
{
	struct clsw_health *h = devlink_health_reporter_priv(reporter);

	if (!clsw_up(h->cd)) {
		NL_SET_ERR_MSG_MOD(extack, "the chip is in trouble already");
		return -EBUSY;
	}
	clsw_trouble(h->cd, "devlink health test");
	return 0;
}

static const struct devlink_health_reporter_ops reporter_ops = {
	.name = "chip",
	.recover = health_recover,
	.dump = health_dump,
	.diagnose = health_diagnose,
	.test = health_test,
};

static void health_work(struct work_struct *work)
{
	struct clsw_health *h = container_of(work, struct clsw_health, work);
	const char *why = NULL;
	bool recovered;

	clsw_lock(h->cd);
	if (h->reported)
		why = h->picture.why ?: "unknown";
	recovered = h->recovered;
	h->reported = false;
	h->recovered = false;
	clsw_unlock(h->cd);
	if (why)
		devlink_health_report(h->reporter, why, h);
	if (recovered) {
		devlink_health_reporter_recovery_done(h->reporter);
		devlink_health_reporter_state_update(h->reporter,
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
	}
}

void clsw_health_report(struct clsw_device *cd)
{
	struct clsw_health *h = cd->health;

	if (!h)
		return;
	clsw_lock(cd);
	if (!h->by_hand) {
		health_take_picture(cd, &h->picture);
		h->reported = true;
		if (h->live)
			schedule_work(&h->work);
	}
	clsw_unlock(cd);
}

void clsw_health_recovered(struct clsw_device *cd, int err)
{
	struct clsw_health *h = cd->health;

	if (!h || err)
		return;
	clsw_lock(cd);
	if (!h->by_hand) {
		h->recovered = true;
		if (h->live)
			schedule_work(&h->work);
	}
	clsw_unlock(cd);
}

void clsw_health_live(struct clsw_device *cd, bool on)
{
	struct clsw_health *h = cd->health;

	clsw_lock(cd);
	h->live = on;
	if (on && (h->reported || h->recovered))
		schedule_work(&h->work);
	clsw_unlock(cd);
	if (!on)
		cancel_work_sync(&h->work);
}

int clsw_health_init(struct clsw_device *cd)
{
	struct clsw_health *h = kzalloc(sizeof(*h), GFP_KERNEL);

	if (!h)
		return -ENOMEM;
	h->cd = cd;
	INIT_WORK(&h->work, health_work);
	h->reporter = devl_health_reporter_create(cd->devlink, &reporter_ops, 0, h);
	if (IS_ERR(h->reporter)) {
		int err = PTR_ERR(h->reporter);

		kfree(h);
		return err;
	}
	clsw_lock(cd);
	cd->health = h;
	clsw_unlock(cd);
	return 0;
}

void clsw_health_exit(struct clsw_device *cd)
{
	struct clsw_health *h = cd->health;

	clsw_lock(cd);
	cd->health = NULL;
	clsw_unlock(cd);
	devl_health_reporter_destroy(h->reporter);
	kfree(h);
}
