// SPDX-License-Identifier: GPL-2.0
/*
 * devlink param: how the resource manager asks the chip, while it runs.
 *
 *   policy        lockstep, prefetch, credit, predict-flat, predict-model
 *   bucket        most objects of one class that are kept leased
 *   low_water     credit: a refill is due below
 *   refill        objects per refill
 *   flat_percent  predict-flat: part of each memory that is given out
 *   when_full     refuse: ip route add fails; trap: the route is taken, its packets go to the
 *                 CPU, and it says rt_offload_failed (for daemons that follow these flags)
 */
#include "devlink.h"

enum {
	PARAM_POLICY = DEVLINK_PARAM_GENERIC_ID_MAX + 1,
	PARAM_BUCKET,
	PARAM_LOW_WATER,
	PARAM_REFILL,
	PARAM_FLAT_PERCENT,
	PARAM_WHEN_FULL,
};

static int param_policy_of(const char *name)
{
	int i;

	for (i = 0; i < RM_POLICY_COUNT; i++) {
		if (!strcmp(name, rm_policy_name(i)))
			return i;
	}
	return -EINVAL;
}

static int param_policy_get(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx)
{
	struct clsw_device *cd = devlink_priv(devlink);

	clsw_lock(cd);
	strscpy(ctx->val.vstr, rm_policy_name(rm_policy(cd->rm)), sizeof(ctx->val.vstr));
	clsw_unlock(cd);
	return 0;
}

static int param_policy_validate(struct devlink *devlink, u32 id, union devlink_param_value val,
				 struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	int policy = param_policy_of(val.vstr);

	if (policy == RM_LOCKSTEP && !clsw_can(cd, CLSW_CAN_BUSY_WAIT)) {
		NL_SET_ERR_MSG_MOD(extack, "this chip is too slow to be waited for at each write");
		return -EOPNOTSUPP;
	}
	if (policy >= 0)
		return 0;
	NL_SET_ERR_MSG_MOD(extack,
			   "lockstep, prefetch, credit, predict-flat or predict-model");
	return -EINVAL;
}

static int param_policy_set(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
			    struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	int err = param_policy_of(ctx->val.vstr);

	if (err < 0)
		return err;
	clsw_lock(cd);
	err = rm_set_policy(cd->rm, err);
	/* leases that the new policy doesn't want go back, those it wants are asked for */
	clsw_room_came(cd);
	clsw_drain_kick(cd);
	clsw_unlock(cd);
	if (err)
		NL_SET_ERR_MSG_FMT_MOD(extack, "%s can't be used with this chip (%d)",
				       ctx->val.vstr, err);
	return err;
}

static u32 *param_field_of(struct rm_params *params, u32 id)
{
	switch (id) {
	case PARAM_BUCKET:
		return &params->bucket;
	case PARAM_LOW_WATER:
		return &params->low_water;
	case PARAM_REFILL:
		return &params->refill;
	default:
		return &params->flat_percent;
	}
}

static int param_number_get(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx)
{
	struct clsw_device *cd = devlink_priv(devlink);
	struct rm_params params;

	clsw_lock(cd);
	rm_get_params(cd->rm, &params);
	clsw_unlock(cd);
	ctx->val.vu32 = *param_field_of(&params, id);
	return 0;
}

static int param_number_set(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
			    struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	struct rm_params params;
	int err;

	clsw_lock(cd);
	rm_get_params(cd->rm, &params);
	*param_field_of(&params, id) = ctx->val.vu32;
	err = rm_set_params(cd->rm, &params);
	clsw_room_came(cd);
	clsw_drain_kick(cd);
	clsw_unlock(cd);
	if (!err)
		return 0;
	if (id == PARAM_FLAT_PERCENT)
		NL_SET_ERR_MSG_MOD(extack, "flat_percent must be 1 to 100");
	else
		NL_SET_ERR_MSG_FMT_MOD(extack,
				       "bucket %u, low_water %u, refill %u: none above the bucket, none 0",
				       params.bucket, params.low_water, params.refill);
	return err;
}

static int param_when_full_get(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx)
{
	struct clsw_device *cd = devlink_priv(devlink);

	strscpy(ctx->val.vstr, READ_ONCE(cd->trap_when_full) ? "trap" : "refuse",
		sizeof(ctx->val.vstr));
	return 0;
}

static int param_when_full_validate(struct devlink *devlink, u32 id, union devlink_param_value val,
				    struct netlink_ext_ack *extack)
{
	if (!strcmp(val.vstr, "trap") || !strcmp(val.vstr, "refuse"))
		return 0;
	NL_SET_ERR_MSG_MOD(extack, "refuse or trap");
	return -EINVAL;
}

static int param_when_full_set(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
			       struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);

	WRITE_ONCE(cd->trap_when_full, !strcmp(ctx->val.vstr, "trap"));
	return 0;
}

#define RUNTIME	BIT(DEVLINK_PARAM_CMODE_RUNTIME)
#define NUMBER(id, name) \
	DEVLINK_PARAM_DRIVER(id, name, DEVLINK_PARAM_TYPE_U32, RUNTIME, \
			     param_number_get, param_number_set, NULL)

static const struct devlink_param params[] = {
	DEVLINK_PARAM_DRIVER(PARAM_POLICY, "policy", DEVLINK_PARAM_TYPE_STRING, RUNTIME,
			     param_policy_get, param_policy_set, param_policy_validate),
	NUMBER(PARAM_BUCKET, "bucket"),
	NUMBER(PARAM_LOW_WATER, "low_water"),
	NUMBER(PARAM_REFILL, "refill"),
	NUMBER(PARAM_FLAT_PERCENT, "flat_percent"),
	DEVLINK_PARAM_DRIVER(PARAM_WHEN_FULL, "when_full", DEVLINK_PARAM_TYPE_STRING, RUNTIME,
			     param_when_full_get, param_when_full_set, param_when_full_validate),
};

int clsw_params_init(struct clsw_device *cd)
{
	return devl_params_register(cd->devlink, params, ARRAY_SIZE(params));
}

void clsw_params_exit(struct clsw_device *cd)
{
	devl_params_unregister(cd->devlink, params, ARRAY_SIZE(params));
}
