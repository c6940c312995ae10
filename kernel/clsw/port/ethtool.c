// SPDX-License-Identifier: GPL-2.0
/*
 * ethtool of front-panel ports.
 *
 * What a port can do follows from its cage: kind, lanes, speed. What it does
 * is said by the chip's LINK events.
 */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>

#include "port.h"

/* A way to drive a port; the last one that fits is the best */
struct mode {
	u32 speed;
	u8 lanes;
	u8 cages;		/* BIT(TND_CAGE_*) */
	u8 bit;			/* ETHTOOL_LINK_MODE_*_BIT */
	u8 fec;			/* ETHTOOL_FEC_* that it may run with; the last bit is the best */
};

#define RJ45	BIT(TND_CAGE_RJ45)
#define SFP	BIT(TND_CAGE_SFP)
#define QSFP	BIT(TND_CAGE_QSFP)
#define BASER	ETHTOOL_FEC_BASER
#define OFF	ETHTOOL_FEC_OFF
#define RS	ETHTOOL_FEC_RS

/* IEEE 802.3: clauses 74 (BASE-R FEC) and 91, 108, 134 (RS-FEC) say which goes with which */
static const struct mode modes[] = {
	{ 10, 1, RJ45, ETHTOOL_LINK_MODE_10baseT_Full_BIT, 0 },
	{ 100, 1, RJ45, ETHTOOL_LINK_MODE_100baseT_Full_BIT, 0 },
	{ 1000, 1, RJ45, ETHTOOL_LINK_MODE_1000baseT_Full_BIT, 0 },
	{ 1000, 1, SFP | QSFP, ETHTOOL_LINK_MODE_1000baseX_Full_BIT, 0 },
	{ 2500, 1, RJ45, ETHTOOL_LINK_MODE_2500baseT_Full_BIT, 0 },
	{ 5000, 1, RJ45, ETHTOOL_LINK_MODE_5000baseT_Full_BIT, 0 },
	{ 10000, 1, RJ45, ETHTOOL_LINK_MODE_10000baseT_Full_BIT, 0 },
	{ 10000, 1, SFP | QSFP, ETHTOOL_LINK_MODE_10000baseCR_Full_BIT, OFF | BASER },
	{ 25000, 1, SFP | QSFP, ETHTOOL_LINK_MODE_25000baseCR_Full_BIT, OFF | BASER | RS },
	{ 40000, 4, QSFP, ETHTOOL_LINK_MODE_40000baseCR4_Full_BIT, OFF | BASER },
	{ 50000, 1, SFP | QSFP, ETHTOOL_LINK_MODE_50000baseCR_Full_BIT, RS },
	{ 50000, 2, QSFP, ETHTOOL_LINK_MODE_50000baseCR2_Full_BIT, OFF | BASER | RS },
	{ 100000, 2, QSFP, ETHTOOL_LINK_MODE_100000baseCR2_Full_BIT, RS },
	{ 100000, 4, QSFP, ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT, OFF | RS },
	{ 200000, 4, QSFP, ETHTOOL_LINK_MODE_200000baseCR4_Full_BIT, RS },
};

static u32 et_max_speed(const struct clsw_port *port)
{
	return le32_to_cpu(port->platform.max_speed_mbps);
}

static bool et_fits(const struct clsw_port *port, const struct mode *mode)
{
	return mode->cages & BIT(le16_to_cpu(port->platform.cage)) &&
	       mode->lanes <= port->lanes && mode->speed <= et_max_speed(port);
}

static const struct mode *et_mode_of(const struct clsw_port *port, u32 speed)
{
	int i = ARRAY_SIZE(modes);

	while (i--) {
		if (modes[i].speed == speed && et_fits(port, &modes[i]))
			return &modes[i];
	}
	return NULL;
}

/* FEC modes that the port may be told to use, over all of its speeds */
static u32 et_fec_of(const struct clsw_port *port)
{
	unsigned int i;
	u32 fec = 0;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		if (et_fits(port, &modes[i]))
			fec |= modes[i].fec;
	}
	return fec;
}

void clsw_port_settings_init(struct clsw_port *port)
{
	port->autoneg = AUTONEG_ENABLE;
	port->fec = ETHTOOL_FEC_AUTO;
	port->forced_mbps = 0;
}

/* What the chip says; a chip that doesn't say runs at what was asked for, or its best */
u32 clsw_port_speed(const struct clsw_port *port)
{
	return port->speed_mbps ?: port->forced_mbps ?: et_max_speed(port);
}

static int et_get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *ks)
{
	struct clsw_port *port = clsw_port_of(dev);
	u32 fec = et_fec_of(port);
	const struct mode *mode;
	unsigned int i;

	ethtool_link_ksettings_zero_link_mode(ks, supported);
	ethtool_link_ksettings_zero_link_mode(ks, advertising);
	ethtool_link_ksettings_zero_link_mode(ks, lp_advertising);
	__set_bit(ETHTOOL_LINK_MODE_Autoneg_BIT, ks->link_modes.supported);
	switch (le16_to_cpu(port->platform.cage)) {
	case TND_CAGE_RJ45:
		ethtool_link_ksettings_add_link_mode(ks, supported, TP);
		ks->base.port = PORT_TP;
		break;
	default:
		ethtool_link_ksettings_add_link_mode(ks, supported, FIBRE);
		ks->base.port = PORT_DA;
	}
	clsw_lock(port->cd);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!et_fits(port, &modes[i]))
			continue;
		__set_bit(modes[i].bit, ks->link_modes.supported);
		if (port->autoneg)
			__set_bit(modes[i].bit, ks->link_modes.advertising);
	}
	if (fec & ETHTOOL_FEC_OFF)
		ethtool_link_ksettings_add_link_mode(ks, supported, FEC_NONE);
	if (fec & ETHTOOL_FEC_BASER)
		ethtool_link_ksettings_add_link_mode(ks, supported, FEC_BASER);
	if (fec & ETHTOOL_FEC_RS)
		ethtool_link_ksettings_add_link_mode(ks, supported, FEC_RS);
	if (port->autoneg)
		__set_bit(ETHTOOL_LINK_MODE_Autoneg_BIT, ks->link_modes.advertising);

	ks->base.autoneg = port->autoneg;
	ks->base.speed = SPEED_UNKNOWN;
	ks->base.duplex = DUPLEX_UNKNOWN;
	if (netif_carrier_ok(dev)) {
		ks->base.speed = clsw_port_speed(port);
		ks->base.duplex = DUPLEX_FULL;
	} else if (!port->autoneg) {
		ks->base.speed = port->forced_mbps;
		ks->base.duplex = DUPLEX_FULL;
	}
	mode = et_mode_of(port, ks->base.speed);
	ks->lanes = mode ? mode->lanes : 0;
	clsw_unlock(port->cd);
	return 0;
}

/* May it come out as what the port does? What isn't said, or no speed at all, may */
static bool et_advertises(const struct clsw_port *port, const struct ethtool_link_ksettings *ks)
{
	u32 speed = clsw_port_speed(port);
	bool any = false;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!test_bit(modes[i].bit, ks->link_modes.advertising))
			continue;
		any = true;
		if (modes[i].speed == speed)
			return true;
	}
	return !any;
}

/*
 * The chip has no serdes to program: whatever is accepted here must be what
 * the port does anyway. With autoneg on that is everything that it supports.
 */
static int et_set_link_ksettings(struct net_device *dev, const struct ethtool_link_ksettings *ks)
{
	struct clsw_port *port = clsw_port_of(dev);
	u32 speed = ks->base.speed;

	if (ks->base.autoneg != AUTONEG_DISABLE) {
		if (!et_advertises(port, ks))
			return -EOPNOTSUPP;
		clsw_lock(port->cd);
		port->autoneg = AUTONEG_ENABLE;
		port->forced_mbps = 0;
		clsw_unlock(port->cd);
		return 0;
	}
	if (ks->base.duplex != DUPLEX_FULL && ks->base.duplex != DUPLEX_UNKNOWN)
		return -EINVAL;		/* nobody makes half duplex at these speeds */
	if (speed == (u32)SPEED_UNKNOWN || !speed)
		speed = clsw_port_speed(port);
	if (!et_mode_of(port, speed))
		return -EINVAL;
	if (speed != clsw_port_speed(port))
		return -EOPNOTSUPP;
	clsw_lock(port->cd);
	port->autoneg = AUTONEG_DISABLE;
	port->forced_mbps = speed;
	clsw_unlock(port->cd);
	return 0;
}

static int et_get_fecparam(struct net_device *dev, struct ethtool_fecparam *fec)
{
	struct clsw_port *port = clsw_port_of(dev);
	const struct mode *mode;

	if (!et_fec_of(port)) {
		fec->fec = ETHTOOL_FEC_NONE;
		fec->active_fec = ETHTOOL_FEC_NONE;
		return 0;
	}
	clsw_lock(port->cd);
	fec->fec = port->fec;
	fec->active_fec = ETHTOOL_FEC_OFF;
	mode = et_mode_of(port, clsw_port_speed(port));
	if (netif_carrier_ok(dev) && mode && mode->fec) {
		u32 may = mode->fec & port->fec;

		/* automatic, or nothing of what was asked for goes with this speed */
		if (!may)
			may = mode->fec;
		fec->active_fec = BIT(fls(may) - 1);
	}
	clsw_unlock(port->cd);
	return 0;
}

static int et_set_fecparam(struct net_device *dev, struct ethtool_fecparam *fec)
{
	struct clsw_port *port = clsw_port_of(dev);
	u32 can = et_fec_of(port);
	const struct mode *mode;

	if (!can)
		return -EOPNOTSUPP;
	if (fec->fec != ETHTOOL_FEC_AUTO && (hweight32(fec->fec) != 1 || !(fec->fec & can)))
		return -EINVAL;
	/* as with the speed: only what it does by itself */
	mode = et_mode_of(port, clsw_port_speed(port));
	if (fec->fec != ETHTOOL_FEC_AUTO &&
	    (!mode || !mode->fec || fec->fec != BIT(fls(mode->fec) - 1)))
		return -EOPNOTSUPP;
	clsw_lock(port->cd);
	port->fec = fec->fec;
	clsw_unlock(port->cd);
	return 0;
}

static void et_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct clsw_device *cd = clsw_port_of(dev)->cd;

	strscpy(info->driver, dev_driver_string(cd->parent));
	strscpy(info->bus_info, dev_name(cd->parent));
	if (clsw_can(cd, CLSW_CAN_VERSION) && clsw_up(cd))
		cd->backend->device->info(cd, info->fw_version, sizeof(info->fw_version));
}

static const char stat_names[][ETH_GSTRING_LEN] = {
	"hw_rx_packets", "hw_rx_bytes", "hw_rx_dropped",
	"hw_tx_packets", "hw_tx_bytes", "hw_tx_dropped",
	"cpu_rx_packets", "cpu_rx_bytes", "cpu_tx_packets", "cpu_tx_bytes",
	"link_changes",
};

static int et_get_sset_count(struct net_device *dev, int sset)
{
	return sset == ETH_SS_STATS ? ARRAY_SIZE(stat_names) : -EOPNOTSUPP;
}

static void et_get_strings(struct net_device *dev, u32 sset, u8 *data)
{
	if (sset == ETH_SS_STATS)
		memcpy(data, stat_names, sizeof(stat_names));
}

static void et_get_ethtool_stats(struct net_device *dev, struct ethtool_stats *unused, u64 *data)
{
	struct clsw_port *port = clsw_port_of(dev);
	struct rtnl_link_stats64 cpu = {};

	/* this caller may sleep: what the chip has now, not a second ago */
	clsw_port_refresh(port);
	dev_fetch_sw_netstats(&cpu, dev->tstats);
	clsw_lock(port->cd);
	*data++ = port->stats.rx_packets;
	*data++ = port->stats.rx_bytes;
	*data++ = port->stats.rx_dropped;
	*data++ = port->stats.tx_packets;
	*data++ = port->stats.tx_bytes;
	*data++ = port->stats.tx_dropped;
	*data++ = cpu.rx_packets;
	*data++ = cpu.rx_bytes;
	*data++ = cpu.tx_packets;
	*data++ = cpu.tx_bytes;
	*data++ = port->link_changes;
	clsw_unlock(port->cd);
}

static int et_set_phys_id(struct net_device *dev, enum ethtool_phys_id_state state)
{
	struct clsw_port *port = clsw_port_of(dev);
	const struct clsw_port_ops *ops = port->cd->backend->port;

	if (!clsw_can(port->cd, CLSW_CAN_IDENTIFY))
		return -EOPNOTSUPP;
	if (!clsw_up(port->cd))
		return -EIO;
	switch (state) {
	case ETHTOOL_ID_ACTIVE:
		return 1;	/* on and off once a second, by us */
	case ETHTOOL_ID_ON:
		return ops->identify(port->cd, port->index, true);
	case ETHTOOL_ID_OFF:
	case ETHTOOL_ID_INACTIVE:
		return ops->identify(port->cd, port->index, false);
	}
	return -EINVAL;
}

const struct ethtool_ops clsw_ethtool_ops = {
	.get_drvinfo		= et_get_drvinfo,
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= et_get_link_ksettings,
	.set_link_ksettings	= et_set_link_ksettings,
	.get_fecparam		= et_get_fecparam,
	.set_fecparam		= et_set_fecparam,
	.get_sset_count		= et_get_sset_count,
	.get_strings		= et_get_strings,
	.get_ethtool_stats	= et_get_ethtool_stats,
	.set_phys_id		= et_set_phys_id,
};
