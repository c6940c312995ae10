// SPDX-License-Identifier: GPL-2.0
/*
 * devlink trap: why packets come to the CPU.
 *
 *   trap      one per enum tnd_trap_reason: packets and bytes counted
 *   group     one per enum tnd_trap_class, the chip's queue to the CPU
 *   policer   bound to a group it becomes the own policer of each of its
 *             traps (TND_CLS_TRAP); its drop counter is what the class's last
 *             policer in the chip has dropped (TND_EV_TRAP_DROP)
 *
 * All but one trap are control packets, or exceptions that the kernel must see
 * to give the right answer: devlink lets nobody drop those. "error" can be
 * dropped: the driver does it, and the chip lets one packet a second through.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>

#include "devlink.h"

enum {
	GROUP_LINK = DEVLINK_TRAP_GROUP_GENERIC_ID_MAX + 1,
	GROUP_CONTROL,
	GROUP_UNRESOLVED,
	GROUP_DATA,
	GROUP_DISCOVERY,
};

#define POLICERS	CLSW_TRAP_CLASSES

/**
 * struct clsw_traps - state of all traps; written under the devlink lock
 * @ctx: of devlink, by reason
 * @drop: the user wants it dropped, by reason
 * @policer: id of the policer of a class's group, 0: none
 * @rate: of a policer, packets per second; index is its id - 1
 * @burst: of a policer, packets
 * @policed: by trap class, under clsw_lock()
 * @closing: devlink lets go of the traps: the chip keeps its settings
 * @registered: devlink has them
 * @policers: within what the chip can
 */
struct clsw_traps {
	void *ctx[CLSW_TRAP_REASONS];
	bool drop[CLSW_TRAP_REASONS];
	u32 policer[CLSW_TRAP_CLASSES];
	u32 rate[POLICERS];
	u32 burst[POLICERS];
	u64 policed[CLSW_TRAP_CLASSES];
	bool closing;
	bool registered;
	struct devlink_trap_policer policers[POLICERS];
};

static const char * const class_names[CLSW_TRAP_CLASSES] = {
	[TND_TC_LINK] = "link",
	[TND_TC_CONTROL] = "control",
	[TND_TC_UNRESOLVED] = "unresolved",
	[TND_TC_DATA] = "data",
	[TND_TC_DISCOVERY] = "discovery",
};

const char *clsw_trap_class_name(u32 trap_class)
{
	return trap_class < CLSW_TRAP_CLASSES ? class_names[trap_class] : "unknown";
}

#define GROUP(_class, _id) \
	[TND_TC_##_class] = { .name = _id, .id = GROUP_##_class }

static const struct devlink_trap_group groups[CLSW_TRAP_CLASSES] = {
	GROUP(LINK, "link"),
	GROUP(CONTROL, "control"),
	GROUP(UNRESOLVED, "unresolved"),
	GROUP(DATA, "data"),
	GROUP(DISCOVERY, "discovery"),
};

/* At the beginning: packets per second, burst */
static const u32 defaults[POLICERS][2] = {
	{ 4096, 1024 }, { 16384, 4096 }, { 2048, 512 }, { 4096, 1024 }, { 4096, 1024 },
};

static void trap_fill_policers(struct clsw_device *cd)
{
	u64 rate = cd->caps.policer_rate, burst = cd->caps.policer_burst;
	unsigned int i;

	for (i = 0; i < POLICERS; i++)
		cd->traps->policers[i] = (struct devlink_trap_policer)
			DEVLINK_TRAP_POLICER(i + 1, min_t(u64, defaults[i][0], rate),
					     min_t(u64, defaults[i][1], burst), rate, 1, burst, 1);
}

#define IN_PORT	DEVLINK_TRAP_METADATA_TYPE_F_IN_PORT
#define OWN(_type, _reason, _name, _group) \
	[TND_TRAP_##_reason - 1] = \
		DEVLINK_TRAP_DRIVER(_type, TRAP, \
				    DEVLINK_TRAP_GENERIC_ID_MAX + TND_TRAP_##_reason, _name, \
				    GROUP_##_group, IN_PORT)
/* where the kernel has a name for exactly this */
#define GENERIC(_type, _reason, _id, _group) \
	[TND_TRAP_##_reason - 1] = DEVLINK_TRAP_GENERIC(_type, TRAP, _id, GROUP_##_group, IN_PORT)

/* By reason - 1; classes as the chip has them from the start */
static const struct devlink_trap traps[CLSW_TRAP_REASONS - 1] = {
	OWN(CONTROL, LINK_PROTO, "link_proto", LINK),
	OWN(CONTROL, ARP, "arp", DISCOVERY),
	OWN(CONTROL, ND, "nd", DISCOVERY),
	OWN(CONTROL, IGMP_MLD, "igmp_mld", DISCOVERY),
	OWN(CONTROL, ROUTING, "routing", CONTROL),
	OWN(CONTROL, LOCAL, "local", CONTROL),
	OWN(CONTROL, L2_LOCAL, "l2_local", DATA),
	OWN(CONTROL, BROADCAST, "broadcast", DATA),
	GENERIC(EXCEPTION, UNRESOLVED, UNRESOLVED_NEIGH, UNRESOLVED),
	GENERIC(EXCEPTION, TTL, TTL_ERROR, DATA),
	GENERIC(EXCEPTION, MTU, MTU_ERROR, DATA),
	OWN(EXCEPTION, OPTIONS, "options", DATA),
	OWN(EXCEPTION, LPM_MISS, "lpm_miss", DATA),
	OWN(EXCEPTION, ROUTE, "route", DATA),
	OWN(EXCEPTION, FDB_INCOMPLETE, "fdb_incomplete", DATA),
	OWN(EXCEPTION, UNSUPPORTED, "unsupported", DATA),
	OWN(EXCEPTION, L2_MULTICAST, "l2_multicast", DATA),
	OWN(EXCEPTION, REDIRECT, "redirect", DATA),
	OWN(EXCEPTION, CONNECTED, "connected", UNRESOLVED),
	OWN(DROP, ERROR, "error", DATA),
	OWN(CONTROL, ACL, "acl", DATA),
	OWN(EXCEPTION, ACL_INCOMPLETE, "acl_incomplete", DATA),
	OWN(CONTROL, SAMPLE, "sample", DATA),
};

static u32 trap_reason_of(const struct devlink_trap *trap)
{
	return trap - traps + 1;
}

static u32 trap_class_of(u32 reason)
{
	return traps[reason - 1].init_group_id - GROUP_LINK;
}

/* Tells the chip class and policer of a reason */
static int trap_write(struct clsw_device *cd, u32 reason)
{
	struct clsw_traps *t = cd->traps;
	u32 id = t->policer[trap_class_of(reason)];
	struct tnd_trap body = {
		.struct_size = cpu_to_le16(sizeof(body)),
		.reason = cpu_to_le16(reason),
		.trap_class = cpu_to_le16(trap_class_of(reason)),
	};
	int err;

	if (t->drop[reason]) {
		body.rate_pps = cpu_to_le32(1);
		body.burst = cpu_to_le32(1);
	} else if (id) {
		body.rate_pps = cpu_to_le32(t->rate[id - 1]);
		body.burst = cpu_to_le32(t->burst[id - 1]);
	}
	clsw_lock(cd);
	err = clsw_put(cd, TND_CLS_TRAP, &body, sizeof(body), CLSW_PUT_MUST, NULL, NULL, NULL,
		       NULL);
	clsw_unlock(cd);
	return err;
}

static int trap_write_class(struct clsw_device *cd, u32 trap_class)
{
	u32 reason;
	int err = 0;

	for (reason = 1; reason < CLSW_TRAP_REASONS && !err; reason++) {
		if (trap_class_of(reason) == trap_class)
			err = trap_write(cd, reason);
	}
	return err;
}

int clsw_trap_init_op(struct devlink *devlink, const struct devlink_trap *trap, void *ctx)
{
	struct clsw_device *cd = devlink_priv(devlink);

	WRITE_ONCE(cd->traps->ctx[trap_reason_of(trap)], ctx);
	return 0;
}

void clsw_trap_fini_op(struct devlink *devlink, const struct devlink_trap *trap, void *ctx)
{
	struct clsw_device *cd = devlink_priv(devlink);

	WRITE_ONCE(cd->traps->ctx[trap_reason_of(trap)], NULL);
}

int clsw_trap_action_op(struct devlink *devlink, const struct devlink_trap *trap,
			enum devlink_trap_action action, struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	u32 reason = trap_reason_of(trap);

	if (cd->traps->closing) {
		/* the core waits for NAPI before it frees the context */
		WRITE_ONCE(cd->traps->ctx[reason], NULL);
		return 0;
	}
	if (action == DEVLINK_TRAP_ACTION_MIRROR) {
		NL_SET_ERR_MSG_MOD(extack, "the chip can't forward and trap: trap or drop");
		return -EOPNOTSUPP;
	}
	WRITE_ONCE(cd->traps->drop[reason], action == DEVLINK_TRAP_ACTION_DROP);
	return trap_write(cd, reason);
}

int clsw_trap_group_init_op(struct devlink *devlink, const struct devlink_trap_group *group)
{
	return 0;
}

int clsw_trap_group_set_op(struct devlink *devlink, const struct devlink_trap_group *group,
			   const struct devlink_trap_policer *policer,
			   struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	u32 trap_class = group - groups, before = cd->traps->policer[trap_class];
	int err;

	cd->traps->policer[trap_class] = policer ? policer->id : 0;
	err = trap_write_class(cd, trap_class);
	if (err)
		cd->traps->policer[trap_class] = before;
	return err;
}

int clsw_trap_policer_init_op(struct devlink *devlink, const struct devlink_trap_policer *policer)
{
	struct clsw_device *cd = devlink_priv(devlink);

	cd->traps->rate[policer->id - 1] = policer->init_rate;
	cd->traps->burst[policer->id - 1] = policer->init_burst;
	return 0;
}

int clsw_trap_policer_set_op(struct devlink *devlink, const struct devlink_trap_policer *policer,
			     u64 rate, u64 burst, struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	u32 trap_class;
	int err = 0;

	/* the core has held them against the policer's limits */
	cd->traps->rate[policer->id - 1] = rate;
	cd->traps->burst[policer->id - 1] = burst;
	for (trap_class = 0; trap_class < CLSW_TRAP_CLASSES && !err; trap_class++) {
		if (cd->traps->policer[trap_class] == policer->id)
			err = trap_write_class(cd, trap_class);
	}
	return err;
}

int clsw_trap_policer_counter_op(struct devlink *devlink,
				 const struct devlink_trap_policer *policer, u64 *drops)
{
	*drops = clsw_trap_policed_total(devlink_priv(devlink), policer->id - 1);
	return 0;
}

bool clsw_trap_report(struct clsw_device *cd, struct clsw_port *port, u16 reason,
		      struct sk_buff *skb)
{
	void *ctx;

	/* a reason that this driver doesn't know is no reason to lose the packet */
	if (!reason || reason >= CLSW_TRAP_REASONS)
		return true;
	ctx = READ_ONCE(cd->traps->ctx[reason]);
	if (ctx)
		devlink_trap_report(cd->devlink, skb, ctx, &port->devlink_port, NULL);
	return !READ_ONCE(cd->traps->drop[reason]);
}

void clsw_trap_policed(struct clsw_device *cd, u32 trap_class, u64 count)
{
	if (trap_class >= CLSW_TRAP_CLASSES)
		return;
	clsw_lock(cd);
	cd->traps->policed[trap_class] += count;
	clsw_unlock(cd);
}

u64 clsw_trap_policed_total(struct clsw_device *cd, u32 trap_class)
{
	u64 count = 0;

	if (trap_class >= CLSW_TRAP_CLASSES)
		return 0;
	clsw_lock(cd);
	count = cd->traps->policed[trap_class];
	clsw_unlock(cd);
	return count;
}

int clsw_traps_register(struct clsw_device *cd)
{
	int err;

	cd->traps->closing = false;
	trap_fill_policers(cd);
	err = devl_trap_policers_register(cd->devlink, cd->traps->policers, POLICERS);
	if (err)
		return err;
	err = devl_trap_groups_register(cd->devlink, groups, ARRAY_SIZE(groups));
	if (err)
		goto err_policers;
	err = devl_traps_register(cd->devlink, traps, ARRAY_SIZE(traps), cd);
	if (err)
		goto err_groups;
	cd->traps->registered = true;
	return 0;

err_groups:
	devl_trap_groups_unregister(cd->devlink, groups, ARRAY_SIZE(groups));
err_policers:
	devl_trap_policers_unregister(cd->devlink, cd->traps->policers, POLICERS);
	return err;
}

void clsw_traps_unregister(struct clsw_device *cd)
{
	if (!cd->traps->registered)
		return;
	cd->traps->closing = true;
	cd->traps->registered = false;
	devl_traps_unregister(cd->devlink, traps, ARRAY_SIZE(traps));
	devl_trap_groups_unregister(cd->devlink, groups, ARRAY_SIZE(groups));
	devl_trap_policers_unregister(cd->devlink, cd->traps->policers, POLICERS);
}

/* What the user had set is forgotten by devlink, and then by the chip */
int clsw_traps_reset(struct clsw_device *cd)
{
	u32 reason;
	int err = 0;

	memset(cd->traps->drop, 0, sizeof(cd->traps->drop));
	memset(cd->traps->policer, 0, sizeof(cd->traps->policer));
	for (reason = 1; reason < CLSW_TRAP_REASONS && !err; reason++)
		err = trap_write(cd, reason);
	return err;
}

int clsw_traps_init(struct clsw_device *cd)
{
	int err;

	cd->traps = kzalloc(sizeof(*cd->traps), GFP_KERNEL);
	if (!cd->traps)
		return -ENOMEM;
	err = clsw_traps_register(cd);
	if (err) {
		kfree(cd->traps);
		cd->traps = NULL;
	}
	return err;
}

void clsw_traps_exit(struct clsw_device *cd)
{
	clsw_traps_unregister(cd);
	kfree(cd->traps);
	cd->traps = NULL;
}
