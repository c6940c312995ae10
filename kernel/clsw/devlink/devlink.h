/* SPDX-License-Identifier: GPL-2.0 */
/*
 * devlink: what an operator sees of the chip beside its ports.
 *
 *   resource.c   memories and their classes, shares set aside
 *   param.c      policy of the resource manager, bucket, low water, refill
 *   trap.c       why packets come to the CPU: counters, groups, policers
 *   health.c     trouble: dump, diagnose, recover
 *   devlink.c    info, reload
 *
 * All ops are called with the devlink lock, without RTNL, and may sleep.
 */
#ifndef _CLSW_DEVLINK_H
#define _CLSW_DEVLINK_H

#include "../core.h"

extern const struct devlink_ops clsw_devlink_ops;

/* ---- resource.c, devlink lock ---- */
int clsw_resources_init(struct clsw_device *cd);
/* When the board is known: how many ports there may be */
int clsw_resources_ports(struct clsw_device *cd);
void clsw_resources_exit(struct clsw_device *cd);
/* Shares as the user has set them; 0 or -ENOSPC, then nothing is set aside */
int clsw_resources_apply(struct clsw_device *cd);

/* ---- param.c, devlink lock ---- */
int clsw_params_init(struct clsw_device *cd);
void clsw_params_exit(struct clsw_device *cd);

/* ---- trap.c ---- */
/* classes and reasons are below; those of flow ports are behind: this driver makes none */
#define CLSW_TRAP_CLASSES	TND_TC_FLOW
#define CLSW_TRAP_REASONS	TND_TRAP_FLOW

int clsw_traps_init(struct clsw_device *cd);		/* devlink lock */
void clsw_traps_exit(struct clsw_device *cd);
/* Devlink lock: for a reload, what the user has set is then forgotten */
int clsw_traps_register(struct clsw_device *cd);
void clsw_traps_unregister(struct clsw_device *cd);
int clsw_traps_reset(struct clsw_device *cd);
/* NAPI; @skb begins with its Ethernet header. False: the user wants it dropped */
bool clsw_trap_report(struct clsw_device *cd, struct clsw_port *port, u16 reason,
		      struct sk_buff *skb);
/* NAPI: a class's last policer dropped so many packets */
void clsw_trap_policed(struct clsw_device *cd, u32 trap_class, u64 count);
/* Any context: so many since the device is there */
u64 clsw_trap_policed_total(struct clsw_device *cd, u32 trap_class);
const char *clsw_trap_class_name(u32 trap_class);
int clsw_trap_init_op(struct devlink *devlink, const struct devlink_trap *trap, void *ctx);
void clsw_trap_fini_op(struct devlink *devlink, const struct devlink_trap *trap, void *ctx);
int clsw_trap_action_op(struct devlink *devlink, const struct devlink_trap *trap,
			enum devlink_trap_action action, struct netlink_ext_ack *extack);
int clsw_trap_group_init_op(struct devlink *devlink, const struct devlink_trap_group *group);
int clsw_trap_group_set_op(struct devlink *devlink, const struct devlink_trap_group *group,
			   const struct devlink_trap_policer *policer,
			   struct netlink_ext_ack *extack);
int clsw_trap_policer_init_op(struct devlink *devlink, const struct devlink_trap_policer *policer);
int clsw_trap_policer_set_op(struct devlink *devlink, const struct devlink_trap_policer *policer,
			     u64 rate, u64 burst, struct netlink_ext_ack *extack);
int clsw_trap_policer_counter_op(struct devlink *devlink,
				 const struct devlink_trap_policer *policer, u64 *drops);

/* ---- health.c ---- */
int clsw_health_init(struct clsw_device *cd);		/* devlink lock */
void clsw_health_exit(struct clsw_device *cd);
/*
 * May sleep, no locks: whether devlink may be told. On after devlink_register(),
 * off before devlink_unregister()
 */
void clsw_health_live(struct clsw_device *cd, bool on);
/* Any process context: trouble is there (cd->trouble says which), a recovery begins */
void clsw_health_report(struct clsw_device *cd);
/* Any process context: the recovery ended, 0 or -errno */
void clsw_health_recovered(struct clsw_device *cd, int err);

#endif /* _CLSW_DEVLINK_H */
