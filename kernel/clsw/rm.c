// SPDX-License-Identifier: GPL-2.0
/*
 * The resource manager's surroundings: what it asks for is posted here, on the
 * SYNC queue, and waited for if a caller waits.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core.h"

/* A reservation's caller may sleep: so long, and less than until a command counts as lost */
#define HOLD_MS		(CLSW_LOST_MS / 2)
/* Rows that a device may have: more than we drive */
#define COSTS_MAX	(4 * RM_MAX_ROWS)

static int crm_post_ask(struct clsw_device *cd, const struct rm_ask *ask)
{
	struct {
		struct tnd_lease head;
		struct tnd_lease_item item[TND_LEASE_MAX_CLASSES];
	} body = {};
	struct tnd_cmd cmd = { .op = cpu_to_le16(TND_OP_LEASE) };
	int err;

	body.head.struct_size = cpu_to_le16(sizeof(body.head));
	body.head.count = cpu_to_le16(ask->count);
	memcpy(body.item, ask->item, ask->count * sizeof(ask->item[0]));
	cd->asks[ask->slot] = *ask;
	cd->ask_open[ask->slot] = true;
	err = clsw_post_other(cd, CLSW_OPEN_LEASE, &cmd, &body,
			      sizeof(body.head) + ask->count * sizeof(ask->item[0]), ask->slot);
	cd->ask_cookie[ask->slot] = le64_to_cpu(cmd.cookie);
	if (err) {
		cd->ask_open[ask->slot] = false;
		rm_lease_done(cd->rm, ask, NULL);
	}
	return err;
}

static void crm_post_releases(struct clsw_device *cd)
{
	struct tnd_cmd cmd;
	int budget = RM_MAX_LEASES;
	u32 id;
	u8 slot;

	while (budget-- && rm_next_lost(cd->rm, &slot)) {
		memset(&cmd, 0, sizeof(cmd));
		cmd.op = cpu_to_le16(TND_OP_RELEASE);
		cmd.arg = cpu_to_le64(cd->ask_cookie[slot]);
		if (clsw_post_other(cd, CLSW_OPEN_LOST, &cmd, NULL, 0, slot)) {
			rm_lost_done(cd->rm, slot, NULL);
			return;
		}
	}
	while (budget-- > 0 && rm_next_release(cd->rm, &id)) {
		memset(&cmd, 0, sizeof(cmd));
		cmd.op = cpu_to_le16(TND_OP_RELEASE);
		cmd.lease = cpu_to_le32(id);
		if (clsw_post_other(cd, CLSW_OPEN_RELEASE, &cmd, NULL, 0, id)) {
			rm_release_lease_done(cd->rm, id, NULL);
			return;
		}
	}
}

void clsw_rm_leased(struct clsw_device *cd, u32 slot, u64 cookie, const struct tnd_cpl *cpl)
{
	/* one that was given up: the slot may be another's since */
	if (slot >= RM_MAX_LEASES || !cd->ask_open[slot] || cd->ask_cookie[slot] != cookie)
		return;
	cd->ask_open[slot] = false;
	if (cd->asks[slot].hold && cpl) {
		cd->hold_cpl = *cpl;
		cd->hold_answered = true;
	}
	rm_lease_done(cd->rm, &cd->asks[slot], cpl);
}

void clsw_rm_lost_released(struct clsw_device *cd, u32 slot, const struct tnd_cpl *cpl)
{
	rm_lost_done(cd->rm, slot, cpl);
}

void clsw_rm_released(struct clsw_device *cd, u32 lease_id, const struct tnd_cpl *cpl)
{
	if (rm_release_lease_done(cd->rm, lease_id, cpl))
		clsw_room_came(cd);
}

int clsw_rm_refill(struct clsw_device *cd)
{
	struct rm_ask ask;
	int posted = 0;

	lockdep_assert_held(&cd->lock);
	crm_post_releases(cd);
	if (!rm_refill_due(cd->rm))
		return 0;
	while (posted < RM_MAX_LEASES && rm_need_refill(cd->rm, &ask)) {
		if (crm_post_ask(cd, &ask))
			break;
		posted++;
	}
	return posted;
}

bool clsw_rm_lockstep(struct clsw_device *cd)
{
	return rm_policy(cd->rm) == RM_LOCKSTEP;
}

/*
 * Until the lease is answered: the caller of a notifier waits for it, so with bounds. 0, -EIO;
 * -EAGAIN: it is still out, and may be answered
 */
static int crm_wait_ask(struct clsw_device *cd, u32 slot)
{
	struct clsw_wait wait;

	clsw_wait_begin(cd, &wait);
	while (cd->ask_open[slot]) {
		int over = clsw_wait_over(cd, &wait);

		cd->backend->table->reap(cd, CLSW_Q_SYNC, 64);
		if (!cd->ask_open[slot])
			break;
		if (over)
			clsw_wait_failed(cd, &wait, over, "room for a write");
		if (over == -EAGAIN && cd->backend->device->alive(cd))
			return over;
		if (over || !cd->backend->device->alive(cd)) {
			clsw_rm_leased(cd, slot, cd->ask_cookie[slot], NULL);
			return -EIO;
		}
		cpu_relax();
	}
	return 0;
}

/*
 * May sleep, with the lock let go meanwhile: for a chip that must not be waited for in a
 * busy loop. 0; -EAGAIN: it is being recovered, or was; -ENODEV: it leaves; -EINTR: a
 * signal; -EIO
 */
static int crm_sleep_ask(struct clsw_device *cd, const struct rm_ask *ask)
{
	unsigned long end = jiffies + msecs_to_jiffies(HOLD_MS);
	u64 cookie = cd->ask_cookie[ask->slot];
	u8 slot = ask->slot;
	int err;

	for (;;) {
		if (!clsw_up(cd) || cd->resync)
			return -EAGAIN;
		cd->backend->table->reap(cd, CLSW_Q_SYNC, 64);
		/* a replay has begun with nothing asked for, and the slot may be another's since */
		if (!cd->ask_open[slot] || cd->ask_cookie[slot] != cookie)
			return cd->hold_answered ? 0 : -EAGAIN;
		err = READ_ONCE(cd->leaving) ? -ENODEV : signal_pending(current) ? -EINTR :
		      time_after(jiffies, end) ? -EIO : 0;
		if (err) {
			/* whatever becomes of it is given back */
			clsw_rm_leased(cd, slot, cookie, NULL);
			clsw_drain_kick(cd);
			return err;
		}
		clsw_unlock(cd);
		usleep_range(200, 400);
		clsw_lock(cd);
	}
}

/* The caller hears that the chip does not answer, the log why that is thought */
static int crm_gave_up(struct clsw_device *cd, const char *what, int err)
{
	dev_warn_ratelimited(cd->parent, "no room was asked for or given: %s (%d), %u commands out\n",
			     what, err, cd->in_flight);
	return -EIO;
}

int clsw_rm_admit(struct clsw_device *cd, const struct rm_req *req, struct rm_ticket *ticket,
		  struct rm_verdict *verdict, bool wait)
{
	int round, err;

	lockdep_assert_held(&cd->lock);
	for (round = 0; round < RM_ADMIT_ROUNDS; round++) {
		switch (rm_admit(cd->rm, req, ticket, verdict)) {
		case RM_ADMITTED:
			if (verdict->post_release)
				crm_post_releases(cd);
			if (!rm_refill_due(cd->rm))
				return 0;
			/* who writes by himself gives used leases back by himself */
			if (clsw_rm_lockstep(cd))
				crm_post_releases(cd);
			else
				clsw_drain_kick(cd);
			return 0;
		case RM_QUERY:
			err = crm_post_ask(cd, &verdict->ask);
			if (!err)
				err = crm_wait_ask(cd, verdict->ask.slot);
			if (err)
				return err == -EAGAIN ? err : crm_gave_up(cd, "a lease", err);
			break;
		case RM_WAIT:
			/* what it waits for is given back by the drainer */
			clsw_drain_kick(cd);
			if (!wait)
				return -EAGAIN;
			/* what is outstanding decides; a watcher's turn can't wait for itself */
			if (cd->in_callback)
				return crm_gave_up(cd, "a watcher can't wait for others", -EBUSY);
			err = clsw_flush_obj(cd, NULL);
			if (err)
				return err == -EAGAIN ? err :
							crm_gave_up(cd, "others' writes", err);
			break;
		case RM_FULL:
			return -ENOSPC;
		case RM_BAD:
			return -EINVAL;
		}
	}
	*verdict = (struct rm_verdict){ .result = RM_FULL };
	return -ENOSPC;
}

/* Which of the items doesn't fit: the manager said no without asking the chip */
static void crm_hold_text(struct clsw_device *cd, const struct tnd_lease_item *items,
			  unsigned int count, char *text)
{
	struct rm_verdict v = { .result = RM_FULL };
	struct rm_class_state class;
	struct rm_pool_state pool;
	unsigned int i, row;

	for (i = 0; i < count; i++) {
		u32 n = le32_to_cpu(items[i].count);

		for (row = 0; rm_class_state(cd->rm, row, &class); row++) {
			if (class.cls != le16_to_cpu(items[i].cls) ||
			    class.family != items[i].family || n <= class.free_guaranteed ||
			    class.pool >= RM_MAX_POOLS ||
			    !rm_pool_state(cd->rm, class.pool, &pool))
				continue;
			v.pool = class.pool;
			v.row = row;
			v.needed = n * class.cost;
			v.free = pool.free;
			v.size = pool.size;
			rm_full_text(cd->rm, &v, text, CLSW_TEXT);
			return;
		}
	}
}

/* Why the manager said no without asking the chip */
static void crm_hold_refused(struct clsw_device *cd, const struct tnd_lease_item *items,
			     unsigned int count, int err, char *text)
{
	if (err == -ENOSPC)
		crm_hold_text(cd, items, count, text);
	else if (err == -EBUSY)
		strscpy(text, "what is free is being given back, or too many wait: try again",
			CLSW_TEXT);
	else
		strscpy(text, "this chip has a class whose room can't be reserved", CLSW_TEXT);
}

/* The lock may be let go meanwhile */
static int crm_ask_hold(struct clsw_device *cd, const struct rm_ask *ask, char *text)
{
	int err;

	cd->hold_cpl.status = cpu_to_le16(TND_ST_FAULT);
	cd->hold_answered = false;
	err = crm_post_ask(cd, ask);
	if (err) {
		err = -EIO;
	} else if (!clsw_can(cd, CLSW_CAN_BUSY_WAIT)) {
		err = crm_sleep_ask(cd, ask);
	} else {
		err = crm_wait_ask(cd, ask->slot);
		/* nobody would come for it later */
		if (err == -EAGAIN) {
			clsw_rm_leased(cd, ask->slot, cd->ask_cookie[ask->slot], NULL);
			err = -EIO;
		}
	}
	if (err == -EIO)
		strscpy(text, "the chip does not answer", CLSW_TEXT);
	if (err || le16_to_cpu(cd->hold_cpl.status) == TND_ST_OK)
		return err;
	rm_cpl_text(cd->rm, &cd->hold_cpl, text, CLSW_TEXT);
	return -ENOSPC;
}

int clsw_rm_hold(struct clsw_device *cd, const struct tnd_lease_item *items, unsigned int count,
		 u16 *hold, char *text)
{
	struct rm_ask ask;
	int err;

	clsw_lock(cd);
	cd->wait_end = 0;
	if (!clsw_up(cd) || cd->resync) {
		clsw_unlock(cd);
		return -EAGAIN;
	}
	/* one at a time: the other one may sleep */
	if (cd->holding) {
		clsw_unlock(cd);
		strscpy(text, "another reservation is being made: try again", CLSW_TEXT);
		return -EBUSY;
	}
	err = rm_ask_hold(cd->rm, items, count, &ask);
	if (err) {
		crm_hold_refused(cd, items, count, err, text);
	} else {
		cd->holding = true;
		err = crm_ask_hold(cd, &ask, text);
		cd->holding = false;
		if (!err)
			*hold = ask.hold;
		else
			rm_drop_hold(cd->rm, ask.hold);
	}
	clsw_unlock(cd);
	return err;
}

static int crm_dump(struct clsw_device *cd, u16 op, u16 cls, void *out, u32 size)
{
	struct tnd_cmd cmd = {
		.op = cpu_to_le16(op),
		.cls = cpu_to_le16(cls),
	};
	struct tnd_cpl cpl;
	int err;

	memset(out, 0, size);
	err = cd->backend->table->read(cd, &cmd, NULL, out, size, &cpl);
	if (err)
		return err;
	if (le16_to_cpu(cpl.status) == TND_ST_UNSUPPORTED)
		return -EOPNOTSUPP;
	if (le16_to_cpu(cpl.status) != TND_ST_OK)
		return -EIO;
	return min_t(u32, le32_to_cpu(cpl.out_count), size);
}

int clsw_rm_read_pools(struct clsw_device *cd, struct tnd_pool *pools)
{
	int count = crm_dump(cd, TND_OP_SNAPSHOT, 0, pools, RM_MAX_POOLS * sizeof(*pools));

	return count < 0 ? count : min(count, RM_MAX_POOLS);
}

/*
 * Leaves the rows of classes that the store can hold; how many. A chip may have
 * others: rules, for one, and those of a later ABI.
 */
static int crm_known_costs(struct tnd_class_cost *costs, int count)
{
	int i, n = 0;

	for (i = 0; i < count; i++)
		if (clsw_class_known(le16_to_cpu(costs[i].cls)))
			costs[n++] = costs[i];
	return n;
}

int clsw_rm_start(struct clsw_device *cd)
{
	struct rm_setup setup = {
		.policy = RM_CREDIT,
		.params = RM_DEFAULT_PARAMS,
		.learning = clsw_can(cd, CLSW_CAN_LEARN),
	};
	struct tnd_geometry *geometry;
	struct tnd_class_cost *costs;
	struct tnd_pool *pools;
	char why[RM_TEXT] = "";
	int count, err = -ENOMEM;
	size_t size;

	pools = kcalloc(RM_MAX_POOLS, sizeof(*pools), GFP_KERNEL);
	costs = kcalloc(COSTS_MAX, sizeof(*costs), GFP_KERNEL);
	geometry = kzalloc(sizeof(*geometry), GFP_KERNEL);
	cd->asks = kcalloc(RM_MAX_LEASES, sizeof(*cd->asks), GFP_KERNEL);
	cd->ask_open = kcalloc(RM_MAX_LEASES, sizeof(*cd->ask_open), GFP_KERNEL);
	cd->ask_cookie = kcalloc(RM_MAX_LEASES, sizeof(*cd->ask_cookie), GFP_KERNEL);
	if (!pools || !costs || !geometry || !cd->asks || !cd->ask_open ||
	    !cd->ask_cookie)
		goto out;

	count = clsw_rm_read_pools(cd, pools);
	if (count < 0) {
		err = count;
		goto out;
	}
	setup.pools = pools;
	setup.pool_count = count;
	count = crm_dump(cd, TND_OP_DUMP, TND_CLS_COST, costs, COSTS_MAX * sizeof(*costs));
	if (count < 0) {
		err = count;
		goto out;
	}
	setup.costs = costs;
	setup.cost_count = crm_known_costs(costs, min(count, COSTS_MAX));
	/* optional: without it the exact-match memory is asked, not modelled */
	if (crm_dump(cd, TND_OP_DUMP, TND_CLS_GEOMETRY, geometry, sizeof(*geometry)) > 0)
		setup.geometry = geometry;

	size = rm_size(&setup, why);
	if (!size) {
		dev_err(cd->parent, "resources: %s\n", why);
		err = -EPROTO;
		goto out;
	}
	cd->rm_memory = vzalloc(size + 64);
	if (!cd->rm_memory)
		goto out;
	cd->rm = rm_init(PTR_ALIGN(cd->rm_memory, 64), &setup);
	err = cd->rm ? 0 : -EPROTO;
out:
	kfree(pools);
	kfree(costs);
	kfree(geometry);
	if (err)
		clsw_rm_stop(cd);
	return err;
}

void clsw_rm_stop(struct clsw_device *cd)
{
	vfree(cd->rm_memory);
	cd->rm_memory = NULL;
	cd->rm = NULL;
	kfree(cd->asks);
	kfree(cd->ask_open);
	kfree(cd->ask_cookie);
	cd->asks = NULL;
	cd->ask_open = NULL;
	cd->ask_cookie = NULL;
}
