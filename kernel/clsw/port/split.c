// SPDX-License-Identifier: GPL-2.0
/*
 * devlink port split and unsplit (seed 000, 6.2).
 *
 * A part of a split port needs a port number of its own, and the chip has one
 * per cage. So a split into n takes the numbers, and the lanes, of n cages in
 * a row: the neighbours are disabled until the unsplit.
 *
 *   cages     1      2      3      4          split swp1 into 2
 *   before    swp1   swp2   swp3   swp4
 *   after     swp1s0        swp3   swp4       cage 2: parts 0, taken by 1
 *             swp1s1
 *
 * The rows begin at multiples of n, as lanes are wired to the chip in blocks.
 */
#include "port.h"

/* Number of a part: that of the cage so many places on */
static u16 split_part_number(struct clsw_device *cd, const struct clsw_cage *cage, int part)
{
	struct clsw_board *board = &cd->front->board;
	unsigned int at = cage - board->cage + part;

	return at < board->cages ? board->cage[at].index : 0;
}

struct clsw_cage *clsw_cage_of(struct clsw_device *cd, u16 index)
{
	struct clsw_board *board = &cd->front->board;
	unsigned int i, part;

	for (i = 0; i < board->cages; i++) {
		struct clsw_cage *cage = &board->cage[i];

		for (part = 0; part < cage->parts; part++) {
			if (split_part_number(cd, cage, part) == index)
				return cage;
		}
	}
	return NULL;
}

void clsw_cage_empty(struct clsw_device *cd, struct clsw_cage *cage)
{
	unsigned int part;

	for (part = 0; part < cage->parts; part++) {
		struct clsw_port *port = clsw_port(cd, split_part_number(cd, cage, part));

		if (port)
			clsw_port_destroy(port);
	}
}

int clsw_cage_populate(struct clsw_device *cd, struct clsw_cage *cage)
{
	unsigned int part, parts = cage->parts;
	struct clsw_port *port;

	for (part = 0; part < parts; part++) {
		port = clsw_port_create(cd, cage, split_part_number(cd, cage, part),
					parts > 1 ? (int)part : -1, cage->lanes / parts,
					cage->speed_mbps / parts);
		if (IS_ERR(port)) {
			clsw_cage_empty(cd, cage);
			return PTR_ERR(port);
		}
	}
	return 0;
}

/* Makes @count parts of a cage and its neighbours, or one each: all or what was before */
static int split_repartition(struct clsw_device *cd, struct clsw_cage *cage, unsigned int count)
{
	unsigned int i, before = cage->parts, width = max(before, count);
	int err = 0;

	for (i = 0; i < width; i++)
		clsw_cage_empty(cd, &cage[i]);
again:
	for (i = 0; i < width; i++) {
		cage[i].parts = count > 1 ? (i ? 0 : count) : 1;
		cage[i].taken_by = cage[i].parts ? 0 : cage->index;
	}
	for (i = 0; i < width; i++) {
		int e = clsw_cage_populate(cd, &cage[i]);

		if (!e)
			continue;
		if (err) {		/* on the way back: the rest may still come */
			dev_err(cd->parent, "swp%u is lost (%d): reload brings it back\n",
				cage[i].front_panel, e);
			continue;
		}
		err = e;
		while (i--)
			clsw_cage_empty(cd, &cage[i]);
		count = before;
		goto again;
	}
	return err;
}

static int split_port(struct devlink *devlink, struct devlink_port *dp, unsigned int count,
		      struct netlink_ext_ack *extack)
{
	struct clsw_port *port = container_of(dp, struct clsw_port, devlink_port);
	struct clsw_device *cd = devlink_priv(devlink);
	struct clsw_board *board = &cd->front->board;
	struct clsw_cage *cage = clsw_cage_of(cd, port->index);
	unsigned int at, i;
	int err;

	if (WARN_ON_ONCE(!cage))
		return -EINVAL;
	if (!(cage->breakout & (count == 2 ? TND_BREAKOUT_2 : count == 4 ? TND_BREAKOUT_4 : 0))) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "swp%u can't be split into %u", cage->front_panel,
				       count);
		return -EINVAL;
	}
	at = cage - board->cage;
	if (at % count || at + count > board->cages) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "a split into %u begins at swp%u, not swp%u", count,
				       board->cage[at - at % count].front_panel,
				       cage->front_panel);
		return -EINVAL;
	}
	for (i = 1; i < count; i++) {
		if (cage[i].parts == 1)
			continue;
		NL_SET_ERR_MSG_FMT_MOD(extack, "swp%u is needed and split itself: unsplit it first",
				       cage[i].front_panel);
		return -EBUSY;
	}
	/* from here on @dp is gone */
	err = split_repartition(cd, cage, count);
	if (err) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "the parts of swp%u can't be made (%d)",
				       cage->front_panel, err);
		return err;
	}
	dev_info(cd->parent, "swp%u is split into %u; its lanes take swp%u..%u\n",
		 cage->front_panel, count, cage[1].front_panel, cage[count - 1].front_panel);
	return 0;
}

static int split_undo(struct devlink *devlink, struct devlink_port *dp,
		      struct netlink_ext_ack *extack)
{
	struct clsw_port *port = container_of(dp, struct clsw_port, devlink_port);
	struct clsw_device *cd = devlink_priv(devlink);
	struct clsw_cage *cage = clsw_cage_of(cd, port->index);
	int err;

	if (WARN_ON_ONCE(!cage))
		return -EINVAL;
	if (cage->parts < 2) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "swp%u is not split", cage->front_panel);
		return -EINVAL;
	}
	/* from here on @dp is gone */
	err = split_repartition(cd, cage, 1);
	if (err)
		NL_SET_ERR_MSG_FMT_MOD(extack, "swp%u can't be made (%d)", cage->front_panel, err);
	return err;
}

const struct devlink_port_ops clsw_devlink_port_ops = {
	.port_split	= split_port,
	.port_unsplit	= split_undo,
};
