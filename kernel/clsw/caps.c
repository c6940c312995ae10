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

/* As the backend says, with our own limits where its are larger, or it has none */
static void caps_read(struct clsw_device *cd, struct clsw_caps *caps)
{
	memset(caps, 0, sizeof(*caps));
	cd->backend->device->caps(cd, caps);
	caps->fids = caps_limit(caps->fids, caps_most.fids);
	caps->rif = caps_limit(caps->rif, caps_most.rif);
	caps->port = caps_limit(caps->port, caps_most.port);
	caps->group_weight = caps_limit(caps->group_weight, caps_most.group_weight);
	caps->mtu = caps_limit(caps->mtu, caps_most.mtu);
	caps->policer_rate = caps_limit(caps->policer_rate, caps_most.policer_rate);
	caps->policer_burst = caps_limit(caps->policer_burst, caps_most.policer_burst);
}

int clsw_caps_init(struct clsw_device *cd)
{
	struct clsw_caps *caps = &cd->caps;
	const char *missing;

	caps_read(cd, caps);
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
	if (caps->rif < CLSW_FID_RIFS + caps->fids) {
		dev_err(cd->parent, "%s: router interfaces up to %u: %u are needed (%u, and one for each of %u domains)\n",
			cd->backend->name, caps->rif, CLSW_FID_RIFS + caps->fids, CLSW_FID_RIFS,
			caps->fids);
		return -EINVAL;
	}
	/* what a netdev begins with, and who is connected to it expects */
	if (caps->mtu < ETH_DATA_LEN) {
		dev_err(cd->parent, "%s: packets of up to %u bytes to and from the CPU: %u are needed\n",
			cd->backend->name, caps->mtu, ETH_DATA_LEN);
		return -EINVAL;
	}
	return 0;
}

int clsw_caps_again(struct clsw_device *cd)
{
	const struct clsw_caps *was = &cd->caps;
	const char *less = NULL;
	struct clsw_caps now;

	caps_read(cd, &now);
	if (was->can & ~now.can)
		less = "what it can do";
	else if (was->classes & ~now.classes)
		less = "classes";
	else if (now.fids < was->fids || now.rif < was->rif || now.port < was->port)
		less = "numbers of domains, router interfaces or ports";
	else if (now.group_weight < was->group_weight)
		less = "weight of a group";
	else if (now.mtu < was->mtu)
		less = "bytes of a packet";
	else if (now.policer_rate < was->policer_rate || now.policer_burst < was->policer_burst)
		less = "rate of a policer";
	if (!less)
		return 0;
	dev_err(cd->parent, "%s: the chip has come back with less than it had (%s): load the driver again\n",
		cd->backend->name, less);
	return -EOPNOTSUPP;
}
