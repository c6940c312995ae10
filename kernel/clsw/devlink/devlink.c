// SPDX-License-Identifier: GPL-2.0
/*
 * devlink: info, reload, and the order in which the parts come and go.
 */
#include "../port/port.h"
#include "devlink.h"

#define REPLAY_MS	60000

static int dl_put_fixed(struct devlink_info_req *req, const char *name, const char *value)
{
	return *value ? devlink_info_version_fixed_put(req, name, value) : 0;
}

static int dl_info_get(struct devlink *devlink, struct devlink_info_req *req,
		       struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	const struct clsw_board *board = &cd->front->board;
	char version[32] = "";
	int err;

	err = *board->serial ? devlink_info_serial_number_put(req, board->serial) : 0;
	if (!err)
		err = dl_put_fixed(req, DEVLINK_INFO_VERSION_GENERIC_BOARD_ID, board->product);
	if (!err)
		err = dl_put_fixed(req, DEVLINK_INFO_VERSION_GENERIC_BOARD_PART_NUMBER,
				   board->part_number);
	if (!err)
		err = dl_put_fixed(req, DEVLINK_INFO_VERSION_GENERIC_BOARD_MANUFACTURE,
				   board->vendor);
	if (!err)
		err = dl_put_fixed(req, DEVLINK_INFO_VERSION_GENERIC_ASIC_ID, board->chip);
	if (!err)
		err = dl_put_fixed(req, "board.ports", board->source);
	if (err || !cd->backend->device->info || !clsw_up(cd))
		return err;
	cd->backend->device->info(cd, version, sizeof(version));
	if (!*version)
		return 0;
	return devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, version);
}

static void dl_set_state(struct clsw_device *cd, enum clsw_device_state state)
{
	clsw_lock(cd);
	WRITE_ONCE(cd->state, state);
	clsw_drain_kick(cd);
	clsw_unlock(cd);
	wake_up_all(&cd->idle_wait);
}

/*
 * The chip starts anew, Linux doesn't notice: netdevs stay, and with them
 * bridges, addresses and routes (seed 000, 5.2.6). What is wanted stays in the
 * store and is written again.
 *
 *   fw_activate     just that
 *   driver_reinit   devlink's ports and traps go and come back as well, and
 *                   what was set of traps is forgotten: so devlink wants it
 */
static int dl_reload_down(struct devlink *devlink, bool netns_change,
			  enum devlink_reload_action action, enum devlink_reload_limit limit,
			  struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);

	if (netns_change) {
		NL_SET_ERR_MSG_MOD(extack, "ports are kept, and stay in their namespace");
		return -EOPNOTSUPP;
	}
	/* a recovery that runs gives way; none begins while the state is not UP */
	cd->leaving = true;
	dl_set_state(cd, CLSW_DEV_DOWN);
	cancel_work_sync(&cd->recover_work);
	dl_set_state(cd, CLSW_DEV_DOWN);
	cd->leaving = false;
	cd->backend->device->detach(cd);
	if (action == DEVLINK_RELOAD_ACTION_DRIVER_REINIT) {
		/* a trap is reported with its port: first in, last out */
		clsw_traps_unregister(cd);
		clsw_ports_hide(cd);
	}
	return 0;
}

static int dl_reload_up(struct devlink *devlink, enum devlink_reload_action action,
			enum devlink_reload_limit limit, u32 *actions_performed,
			struct netlink_ext_ack *extack)
{
	struct clsw_device *cd = devlink_priv(devlink);
	int err;

	if (action == DEVLINK_RELOAD_ACTION_DRIVER_REINIT) {
		err = clsw_ports_show(cd);
		if (!err)
			err = clsw_traps_register(cd);
		if (err) {
			NL_SET_ERR_MSG_FMT_MOD(extack, "ports and traps can't come back (%d)",
					       err);
			goto gone;
		}
		clsw_traps_reset(cd);
	}
	err = cd->backend->device->attach(cd, CLSW_ATTACH_COLD);
	if (err) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "the chip can't be attached (%d)", err);
		goto gone;
	}
	err = clsw_replay(cd, CLSW_ATTACH_COLD);
	if (err) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "the chip can't be written (%d)", err);
		goto gone;
	}
	if (clsw_resources_apply(cd))
		NL_SET_ERR_MSG_MOD(extack, "the shares don't fit this chip: none is set aside");
	dl_set_state(cd, CLSW_DEV_UP);
	clsw_ports_resume(cd);
	err = clsw_replay_finish(cd, REPLAY_MS);
	if (err) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "the chip doesn't take its contents (%d)", err);
		goto gone;
	}
	/* addresses that it had learned are gone with its tables */
	clsw_l2_resync(cd);
	*actions_performed = BIT(action);
	return 0;
gone:
	WRITE_ONCE(cd->trouble, "reload failed");
	dl_set_state(cd, CLSW_DEV_GONE);
	clsw_health_report(cd);
	return err;
}

const struct devlink_ops clsw_devlink_ops = {
	.reload_actions			= BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT) |
					  BIT(DEVLINK_RELOAD_ACTION_FW_ACTIVATE),
	.reload_down			= dl_reload_down,
	.reload_up			= dl_reload_up,
	.info_get			= dl_info_get,
	.trap_init			= clsw_trap_init_op,
	.trap_fini			= clsw_trap_fini_op,
	.trap_action_set		= clsw_trap_action_op,
	.trap_group_init		= clsw_trap_group_init_op,
	.trap_group_set			= clsw_trap_group_set_op,
	.trap_policer_init		= clsw_trap_policer_init_op,
	.trap_policer_set		= clsw_trap_policer_set_op,
	.trap_policer_counter_get	= clsw_trap_policer_counter_op,
};

int clsw_devlink_init(struct clsw_device *cd)
{
	int err;

	err = clsw_resources_init(cd);
	if (err)
		return err;
	err = clsw_params_init(cd);
	if (err)
		goto err_resources;
	err = clsw_traps_init(cd);
	if (err)
		goto err_params;
	err = clsw_health_init(cd);
	if (err)
		goto err_traps;
	return 0;

err_traps:
	clsw_traps_exit(cd);
err_params:
	clsw_params_exit(cd);
err_resources:
	clsw_resources_exit(cd);
	return err;
}

void clsw_devlink_exit(struct clsw_device *cd)
{
	clsw_health_exit(cd);
	clsw_traps_exit(cd);
	clsw_params_exit(cd);
	clsw_resources_exit(cd);
}
