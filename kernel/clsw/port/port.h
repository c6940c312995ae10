/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Front-panel ports, between the board and Linux.
 *
 *   tnd_platform, TlvInfo EEPROM ─┐
 *   ACPI _DSD of the parent ──────┴─► platform.c ─► struct clsw_board
 *                                                        │ one netdev and one devlink port
 *   devlink port split ─► split.c ──── creates, removes ─┤ for every port in use
 *                                                        ▼
 *   ip, ethtool ─► netdev.c, ethtool.c ─► port->want ─► TND_CLS_PORT
 *   stack ─► tx.c ─► backend xmit            backend poll ─► rx.c ─► stack
 *
 * Locks. The set of ports changes under the devlink lock. A port's wish
 * (@want), its link and its settings are written under clsw_lock(). NAPI and
 * the transmit path find ports by number under RCU: a port is unhooked, then
 * its netdev unregistered (which waits for readers), then freed.
 */
#ifndef _CLSW_PORT_H
#define _CLSW_PORT_H

#include "../core.h"

#define CLSW_TEXT_MAX		64
/* Counters are read so often: a caller of ndo_get_stats64() may not sleep */
#define CLSW_STATS_MS		1000

/**
 * struct clsw_cage - a place on the front panel, as the board describes it
 * @index: its first port's number in all objects, from 1
 * @front_panel: number printed on the box
 * @kind: TND_CAGE_*
 * @lanes: of the unsplit port
 * @breakout: TND_BREAKOUT_*
 * @speed_mbps: of the unsplit port
 * @parts: ports that are there now: 1, 2 or 4; 0: a neighbour's split took it
 * @taken_by: with @parts 0: index of the cage that did
 */
struct clsw_cage {
	u16 index;
	u16 front_panel;
	u16 kind;
	u16 lanes;
	u32 breakout;
	u32 speed_mbps;
	u8 parts;
	u16 taken_by;
};

/* What the board says of itself; texts are empty where it says nothing */
struct clsw_board {
	struct clsw_cage cage[CLSW_MAX_PORTS];
	u16 cages;
	u8 base_mac[ETH_ALEN];
	bool has_mac;
	u16 mac_count;			/* granted from the base on, 0: not said */
	char chip[CLSW_TEXT_MAX];
	char product[CLSW_TEXT_MAX];
	char part_number[CLSW_TEXT_MAX];
	char serial[CLSW_TEXT_MAX];
	char vendor[CLSW_TEXT_MAX];
	const char *source;		/* "device" or "firmware" */
};

/* What the chip said last of a port's link; kept while there is no netdev */
struct clsw_link {
	bool up;
	u32 speed_mbps;
};

/**
 * struct clsw_front - all of port/'s own state of a device
 * @board: under the devlink lock
 * @link: by port number, under clsw_lock()
 * @stats_work: reads the chip's counters
 * @notifier: link state after proto_down
 * @napi_on: NAPI is enabled
 * @stop: no work any more
 */
struct clsw_front {
	struct clsw_device *cd;
	struct clsw_board board;
	struct clsw_link link[CLSW_MAX_PORTS + 1];
	struct delayed_work stats_work;
	struct notifier_block notifier;
	bool napi_on;
	bool stop;
};

/* ---- platform.c ---- */
/* May sleep. 0; -EINVAL or -ENODEV (said in the log) and nothing of use in @board */
int clsw_board_read(struct clsw_device *cd, struct clsw_board *board);
/* MAC address of a port number; false: the board grants none */
bool clsw_board_mac(const struct clsw_board *board, u16 index, u8 *mac);

/* ---- netdev.c ---- */
extern const struct net_device_ops clsw_netdev_ops;
/*
 * Devlink lock, RTNL not held. One netdev with its devlink port. @part: number
 * of the sub-port, or -1 for an unsplit one; @lanes and @speed_mbps are its own.
 */
struct clsw_port *clsw_port_create(struct clsw_device *cd, const struct clsw_cage *cage,
				   u16 index, int part, u16 lanes, u32 speed_mbps);
void clsw_port_destroy(struct clsw_port *port);
/*
 * Devlink lock, RTNL not held, for a reload: devlink wants all ports gone in
 * between. Netdevs stay, without their devlink ports meanwhile
 */
void clsw_ports_hide(struct clsw_device *cd);
int clsw_ports_show(struct clsw_device *cd);
/* Locked: carrier and TND_PORT_UP after a change of link, admin state or proto_down */
void clsw_port_link(struct clsw_port *port);
/* May sleep: the chip's counters of one port, 0 or -EOPNOTSUPP, -errno */
int clsw_port_refresh(struct clsw_port *port);
void clsw_port_stats_work(struct work_struct *work);

/* ---- ethtool.c ---- */
extern const struct ethtool_ops clsw_ethtool_ops;
/* Speed that the port has or will have, in Mbit/s */
u32 clsw_port_speed(const struct clsw_port *port);
void clsw_port_settings_init(struct clsw_port *port);

/* ---- tx.c ---- */
netdev_tx_t clsw_port_xmit(struct sk_buff *skb, struct net_device *dev);

/* ---- rx.c ---- */
int clsw_rx_init(struct clsw_device *cd);
void clsw_rx_exit(struct clsw_device *cd);

/* ---- split.c ---- */
extern const struct devlink_port_ops clsw_devlink_port_ops;
/* Devlink lock: ports of one cage as cage->parts says */
int clsw_cage_populate(struct clsw_device *cd, struct clsw_cage *cage);
void clsw_cage_empty(struct clsw_device *cd, struct clsw_cage *cage);
/* The cage that a port number belongs to now; NULL: none */
struct clsw_cage *clsw_cage_of(struct clsw_device *cd, u16 index);

#endif /* _CLSW_PORT_H */
