// SPDX-License-Identifier: GPL-2.0
/*
 * What the chip can do, as its backend says it, held against what that has handed
 * over and against our own limits. Everybody else asks cd->caps.
 */
#include "core.h"

/* Our own limits: numbers of L2 and L3, sizes of tables */
static const struct clsw_caps caps_most = {
	.fids = CLSW_FIDS,
	.rif = CLSW_MAX_RIF,
	.port = CLSW_MAX_PORTS,
	.group_weight = CLSW_MAX_WEIGHT,
	.mtu = CLSW_MTU_MAX,
	.policer_rate = 10000000,
	.policer_burst = 65536,
};

/* NULL, or which op is missing for what the chip is said to be able to do */
static const char *caps_missing(const struct clsw_backend *b, u32 can)
{
	if (can & CLSW_CAN_PACKETS && !b->packet)
		return "packet";
	if (can & CLSW_CAN_STATS && !(b->port && b->port->stats))
		return "stats";
	if (can & CLSW_CAN_IDENTIFY && !(b->port && b->port->identify))
		return "identify";
	if (can & CLSW_CAN_VERSION && !b->device->info)
		return "info";
	return NULL;
}

static u32 caps_limit(u32 said, u32 most)
{
	return said ? min(said, most) : most;
}

int clsw_caps_init(struct clsw_device *cd)
{
	struct clsw_caps *caps = &cd->caps;
	const char *missing;

	memset(caps, 0, sizeof(*caps));
	cd->backend->device->caps(cd, caps);
	missing = caps_missing(cd->backend, caps->can);
	if (missing) {
		dev_err(cd->parent, "%s says what it has no op for: %s\n", cd->backend->name,
			missing);
		return -EINVAL;
	}
	if (~caps->classes & CLSW_CLASSES_MUST) {
		dev_err(cd->parent, "%s: classes %#lx are missing\n", cd->backend->name,
			~caps->classes & CLSW_CLASSES_MUST);
		return -EINVAL;
	}
	caps->fids = caps_limit(caps->fids, caps_most.fids);
	caps->rif = caps_limit(caps->rif, caps_most.rif);
	if (caps->rif < CLSW_FID_RIFS + caps->fids) {
		dev_err(cd->parent, "%s: router interfaces up to %u: %u are needed (%u, and one for each of %u domains)\n",
			cd->backend->name, caps->rif, CLSW_FID_RIFS + caps->fids, CLSW_FID_RIFS,
			caps->fids);
		return -EINVAL;
	}
	caps->port = caps_limit(caps->port, caps_most.port);
	caps->group_weight = caps_limit(caps->group_weight, caps_most.group_weight);
	caps->mtu = caps_limit(caps->mtu, caps_most.mtu);
	caps->policer_rate = caps_limit(caps->policer_rate, caps_most.policer_rate);
	caps->policer_burst = caps_limit(caps->policer_burst, caps_most.policer_burst);
	return 0;
}
