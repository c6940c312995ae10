// SPDX-License-Identifier: GPL-2.0
/*
 * Front-panel ports as netdevs: life, link state, counters.
 */
#include <linux/delay.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "../devlink/devlink.h"
#include "port.h"

bool clsw_port_is(const struct net_device *dev)
{
	return dev->netdev_ops == &clsw_netdev_ops;
}

struct clsw_port *clsw_port_of(const struct net_device *dev)
{
	return clsw_port_is(dev) ? *(struct clsw_port **)netdev_priv(dev) : NULL;
}

int clsw_port_update(struct clsw_port *port)
{
	lockdep_assert_held(&port->cd->lock);
	return clsw_put(port->cd, TND_CLS_PORT, &port->want, sizeof(port->want), CLSW_PUT_MUST,
			NULL, NULL, &port->obj, NULL);
}

static bool port_all_settled(struct clsw_device *cd)
{
	bool yes = true;
	unsigned int i;

	/* a split may take one away */
	rcu_read_lock();
	clsw_lock(cd);
	for (i = 1; i <= CLSW_MAX_PORTS && yes; i++) {
		const struct clsw_port *port = READ_ONCE(cd->ports[i]);
		const struct clsw_obj *obj = port ? port->obj : NULL;

		yes = !obj || (!obj->in_flight && (obj->state == CLSW_OBJ_SYNCED ||
						   obj->state == CLSW_OBJ_FAILED));
	}
	/* a replay writes what they should be */
	yes |= !clsw_up(cd);
	clsw_unlock(cd);
	rcu_read_unlock();
	return yes;
}

int clsw_ports_settle(struct clsw_device *cd, unsigned int ms)
{
	ktime_t end = ktime_add_ms(ktime_get(), ms);

	while (!port_all_settled(cd)) {
		if (ktime_after(ktime_get(), end))
			return -ETIMEDOUT;
		usleep_range(50, 150);
	}
	return 0;
}

void clsw_port_link(struct clsw_port *port)
{
	bool up = port->open && !READ_ONCE(port->netdev->proto_down);
	__le32 flags = port->want.flags;

	lockdep_assert_held(&port->cd->lock);
	if (up)
		flags |= cpu_to_le32(TND_PORT_UP);
	else
		flags &= ~cpu_to_le32(TND_PORT_UP);
	if (flags != port->want.flags) {
		port->want.flags = flags;
		clsw_port_update(port);
	}
	/* a netdev that is closed may be on its way out: nobody touches its carrier */
	if (!port->open)
		return;
	if (up && port->carrier)
		netif_carrier_on(port->netdev);
	else
		netif_carrier_off(port->netdev);
}

static int port_open(struct net_device *dev)
{
	struct clsw_port *port = clsw_port_of(dev);
	int err;

	clsw_lock(port->cd);
	err = port->obj ? 0 : clsw_port_update(port);
	if (!err) {
		port->open = true;
		clsw_port_link(port);
	}
	clsw_unlock(port->cd);
	if (!err)
		netif_start_queue(dev);
	return err;
}

static int port_stop(struct net_device *dev)
{
	struct clsw_port *port = clsw_port_of(dev);

	netif_stop_queue(dev);
	clsw_lock(port->cd);
	port->open = false;
	clsw_port_link(port);
	clsw_unlock(port->cd);
	netif_carrier_off(dev);
	return 0;
}

static int port_set_mac(struct net_device *dev, void *p)
{
	struct clsw_port *port = clsw_port_of(dev);
	struct sockaddr *addr = p;
	int err;

	err = eth_prepare_mac_addr_change(dev, p);
	if (err)
		return err;
	clsw_lock(port->cd);
	ether_addr_copy(port->want.mac, addr->sa_data);
	err = clsw_port_update(port);
	if (err)
		ether_addr_copy(port->want.mac, dev->dev_addr);
	clsw_unlock(port->cd);
	if (!err)
		eth_commit_mac_addr_change(dev, p);
	return err;
}

static int port_change_mtu(struct net_device *dev, int mtu)
{
	struct clsw_port *port = clsw_port_of(dev);
	int err;

	clsw_lock(port->cd);
	port->want.mtu = cpu_to_le32(mtu);
	err = clsw_port_update(port);
	if (err)
		port->want.mtu = cpu_to_le32(dev->mtu);
	clsw_unlock(port->cd);
	if (!err)
		WRITE_ONCE(dev->mtu, mtu);
	return err;
}

/* Callers may be atomic: what the chip said at most a second ago */
static void port_stats64(struct net_device *dev, struct rtnl_link_stats64 *s)
{
	struct clsw_port *port = clsw_port_of(dev);

	dev_fetch_sw_netstats(s, dev->tstats);
	clsw_lock(port->cd);
	if (port->has_stats) {
		s->rx_packets = port->stats.rx_packets;
		s->rx_bytes = port->stats.rx_bytes;
		s->rx_dropped = port->stats.rx_dropped;
		s->tx_packets = port->stats.tx_packets;
		s->tx_bytes = port->stats.tx_bytes;
		s->tx_dropped = port->stats.tx_dropped;
	}
	clsw_unlock(port->cd);
}

/* What went through the CPU, beside what the chip forwarded: ip -s -s link, "cpu_hit" */
static bool port_has_offload_stats(const struct net_device *dev, int attr_id)
{
	return attr_id == IFLA_OFFLOAD_XSTATS_CPU_HIT;
}

static int port_offload_stats(int attr_id, const struct net_device *dev, void *p)
{
	if (attr_id != IFLA_OFFLOAD_XSTATS_CPU_HIT)
		return -EINVAL;
	memset(p, 0, sizeof(struct rtnl_link_stats64));
	dev_fetch_sw_netstats(p, dev->tstats);
	return 0;
}

const struct net_device_ops clsw_netdev_ops = {
	.ndo_open		= port_open,
	.ndo_stop		= port_stop,
	.ndo_start_xmit		= clsw_port_xmit,
	.ndo_set_mac_address	= port_set_mac,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_change_mtu		= port_change_mtu,
	.ndo_get_stats64	= port_stats64,
	.ndo_has_offload_stats	= port_has_offload_stats,
	.ndo_get_offload_stats	= port_offload_stats,
	.ndo_setup_tc		= clsw_port_setup_tc,
};

/* A counter that went back has been reset with the chip */
static void port_add_delta(u64 *sum, u64 now, u64 *last)
{
	*sum += now >= *last ? now - *last : now;
	*last = now;
}

int clsw_port_refresh(struct clsw_port *port)
{
	struct clsw_port_stats now = {};
	int err;

	if (!clsw_can(port->cd, CLSW_CAN_STATS))
		return -EOPNOTSUPP;
	if (!clsw_up(port->cd))
		return -EIO;
	err = port->cd->backend->port->stats(port->cd, port->index, &now);
	if (err)
		return err;
	clsw_lock(port->cd);
	if (!port->has_stats) {
		port->chip = now;
		port->has_stats = true;
	}
	port_add_delta(&port->stats.rx_packets, now.rx_packets, &port->chip.rx_packets);
	port_add_delta(&port->stats.rx_bytes, now.rx_bytes, &port->chip.rx_bytes);
	port_add_delta(&port->stats.rx_dropped, now.rx_dropped, &port->chip.rx_dropped);
	port_add_delta(&port->stats.tx_packets, now.tx_packets, &port->chip.tx_packets);
	port_add_delta(&port->stats.tx_bytes, now.tx_bytes, &port->chip.tx_bytes);
	port_add_delta(&port->stats.tx_dropped, now.tx_dropped, &port->chip.tx_dropped);
	clsw_unlock(port->cd);
	return 0;
}

void clsw_port_stats_work(struct work_struct *work)
{
	struct clsw_front *front = container_of(work, struct clsw_front, stats_work.work);
	struct clsw_device *cd = front->cd;
	unsigned int i;

	/* the set of ports changes under this lock; whoever changes it may take long */
	if (devl_trylock(cd->devlink)) {
		for (i = 1; i <= CLSW_MAX_PORTS; i++) {
			if (cd->ports[i] && cd->ports[i]->open)
				clsw_port_refresh(cd->ports[i]);
		}
		devl_unlock(cd->devlink);
	}
	if (!READ_ONCE(front->stop))
		schedule_delayed_work(&front->stats_work, msecs_to_jiffies(CLSW_STATS_MS));
}

static void port_set_attrs(struct clsw_port *port, const struct clsw_cage *cage)
{
	struct clsw_device *cd = port->cd;
	struct devlink_port_attrs attrs = {
		.flavour = DEVLINK_PORT_FLAVOUR_PHYSICAL,
		.lanes = port->lanes,
		.split = port->part >= 0,
		.splittable = port->part < 0 &&
			      cage->breakout & (TND_BREAKOUT_2 | TND_BREAKOUT_4),
		.phys.port_number = port->front_panel,
		.phys.split_subport_number = max_t(int, port->part, 0),
		.switch_id.id_len = ETH_ALEN,
	};

	ether_addr_copy(attrs.switch_id.id, cd->base_mac);
	devlink_port_attrs_set(&port->devlink_port, &attrs);
}

/* There may be no udev to name ports after what is printed on the box */
static void port_set_name(struct net_device *dev, const struct clsw_port *port)
{
	char name[IFNAMSIZ];

	if (port->part < 0)
		snprintf(name, sizeof(name), "swp%u", port->front_panel);
	else
		snprintf(name, sizeof(name), "swp%us%u", port->front_panel, port->part);
	/* another switch in this machine has it: the attributes tell them apart */
	if (__dev_get_by_name(dev_net(dev), name))
		return;
	strscpy(dev->name, name);
	dev->name_assign_type = NET_NAME_PREDICTABLE;
}

static struct net_device *port_make_netdev(struct clsw_port *port)
{
	struct clsw_device *cd = port->cd;
	struct net_device *dev;
	u8 mac[ETH_ALEN];

	dev = alloc_etherdev(sizeof(struct clsw_port *));
	if (!dev)
		return NULL;
	*(struct clsw_port **)netdev_priv(dev) = port;
	SET_NETDEV_DEV(dev, cd->parent);
	dev_net_set(dev, devlink_net(cd->devlink));
	dev->netdev_ops = &clsw_netdev_ops;
	dev->ethtool_ops = &clsw_ethtool_ops;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = cd->caps.mtu;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	dev->change_proto_down = true;
	/* routes, bridges and the chip are of one namespace */
	dev->netns_immutable = true;
	if (clsw_board_mac(&cd->front->board, port->index, mac))
		eth_hw_addr_set(dev, mac);
	else
		eth_hw_addr_random(dev);
	netif_carrier_off(dev);
	return dev;
}

struct clsw_port *clsw_port_create(struct clsw_device *cd, const struct clsw_cage *cage,
				   u16 index, int part, u16 lanes, u32 speed_mbps)
{
	struct clsw_port *port;
	struct net_device *dev;
	int err = -ENOMEM;

	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return ERR_PTR(-ENOMEM);
	port->cd = cd;
	port->index = index;
	port->part = part;
	port->front_panel = cage->front_panel;
	port->lanes = lanes;
	port->platform.port = cpu_to_le16(index);
	port->platform.front_panel = cpu_to_le16(cage->front_panel);
	port->platform.cage = cpu_to_le16(cage->kind);
	port->platform.lanes = cpu_to_le16(lanes);
	port->platform.breakout_modes = cpu_to_le32(cage->breakout);
	port->platform.max_speed_mbps = cpu_to_le32(speed_mbps);
	clsw_port_settings_init(port);

	port_set_attrs(port, cage);
	err = devl_port_register_with_ops(cd->devlink, &port->devlink_port, index,
					  &clsw_devlink_port_ops);
	if (err)
		goto err_free;
	dev = port_make_netdev(port);
	if (!dev) {
		err = -ENOMEM;
		goto err_port;
	}
	port->netdev = dev;
	SET_NETDEV_DEVLINK_PORT(dev, &port->devlink_port);

	port->want.struct_size = cpu_to_le16(sizeof(port->want));
	port->want.port = cpu_to_le16(index);
	/* a bridge's defaults: without a VLAN the chip neither floods nor learns */
	port->want.flags = cpu_to_le32(TND_PORT_LEARNING | TND_PORT_FLOOD_UC | TND_PORT_FLOOD_MC |
				       TND_PORT_FLOOD_BC);
	port->want.mtu = cpu_to_le32(dev->mtu);
	port->want.stp_state = TND_STP_FORWARDING;
	ether_addr_copy(port->want.mac, dev->dev_addr);

	clsw_lock(cd);
	port->carrier = cd->front->link[index].up;
	port->speed_mbps = cd->front->link[index].speed_mbps;
	err = clsw_port_update(port);
	if (!err)
		WRITE_ONCE(cd->ports[index], port);
	clsw_unlock(cd);
	if (err)
		goto err_netdev;

	rtnl_lock();
	port_set_name(dev, port);
	err = register_netdevice(dev);
	rtnl_unlock();
	if (err)
		goto err_unhook;
	port->registered = true;
	port->shown = true;
	cd->port_count++;
	return port;

err_unhook:
	clsw_lock(cd);
	WRITE_ONCE(cd->ports[index], NULL);
	clsw_unlock(cd);
	synchronize_net();
err_netdev:
	free_netdev(dev);
err_port:
	devl_port_unregister(&port->devlink_port);
err_free:
	kfree(port);
	return ERR_PTR(err);
}

void clsw_port_destroy(struct clsw_port *port)
{
	struct clsw_device *cd = port->cd;

	/* closes it first: the chip's port goes down, its carrier is left alone from then on */
	unregister_netdev(port->netdev);
	clsw_lock(cd);
	WRITE_ONCE(cd->ports[port->index], NULL);
	clsw_unlock(cd);
	cd->port_count--;
	/* NAPI may still hold it */
	synchronize_net();
	if (port->shown)
		devl_port_unregister(&port->devlink_port);
	free_netdev(port->netdev);
	kfree(port);
}

/*
 * A devlink port for a netdev that is there already. The core fills in the
 * netdev when it is registered; here it has to be there from the start, so
 * that whoever listens hears of the two together.
 */
static int port_show(struct clsw_port *port)
{
	struct devlink_port *dp = &port->devlink_port;
	struct net_device *dev = port->netdev;
	int err;

	rtnl_lock();
	dp->type = DEVLINK_PORT_TYPE_ETH;
	dp->type_eth.netdev = dev;
	dp->type_eth.ifindex = dev->ifindex;
	strscpy(dp->type_eth.ifname, dev->name);
	err = devl_port_register_with_ops(port->cd->devlink, dp, port->index,
					  &clsw_devlink_port_ops);
	if (err)
		dp->type = DEVLINK_PORT_TYPE_NOTSET;
	else
		dev->devlink_port = dp;
	rtnl_unlock();
	/* the core waits for a type to be set */
	if (!err)
		cancel_delayed_work_sync(&dp->type_warn_dw);
	port->shown = !err;
	return err;
}

void clsw_ports_hide(struct clsw_device *cd)
{
	struct clsw_port *port;
	unsigned int i;

	for (i = 1; i <= CLSW_MAX_PORTS; i++) {
		port = cd->ports[i];
		if (!port || !port->shown)
			continue;
		rtnl_lock();
		port->netdev->devlink_port = NULL;
		devlink_port_type_clear(&port->devlink_port);
		rtnl_unlock();
		port->shown = false;
		devl_port_unregister(&port->devlink_port);
	}
}

int clsw_ports_show(struct clsw_device *cd)
{
	struct clsw_port *port;
	unsigned int i;
	int err;

	for (i = 1; i <= CLSW_MAX_PORTS; i++) {
		port = cd->ports[i];
		if (!port || port->shown)
			continue;
		err = port_show(port);
		if (err)
			return err;
	}
	return 0;
}

static int port_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_front *front = container_of(nb, struct clsw_front, notifier);
	struct clsw_port *port = clsw_port_of(netdev_notifier_info_to_dev(ptr));

	/* proto_down switches the carrier by itself, whatever the link says */
	if (event == NETDEV_CHANGE && port && port->cd == front->cd && port->registered) {
		clsw_lock(port->cd);
		if (port->open)
			clsw_port_link(port);
		clsw_unlock(port->cd);
	}
	return NOTIFY_DONE;
}

int clsw_ports_init(struct clsw_device *cd)
{
	struct clsw_front *front;
	unsigned int i;
	int err;

	front = kvzalloc(sizeof(*front), GFP_KERNEL);
	if (!front)
		return -ENOMEM;
	front->cd = cd;
	INIT_DELAYED_WORK(&front->stats_work, clsw_port_stats_work);
	front->notifier.notifier_call = port_netdev_event;
	err = clsw_board_read(cd, &front->board);
	if (err)
		goto err_front;
	cd->front = front;
	if (front->board.has_mac)
		ether_addr_copy(cd->base_mac, front->board.base_mac);
	else
		eth_random_addr(cd->base_mac);
	err = clsw_rx_init(cd);
	if (err)
		goto err_cd;
	for (i = 0; i < front->board.cages; i++) {
		err = clsw_cage_populate(cd, &front->board.cage[i]);
		if (err)
			goto err_ports;
	}
	err = clsw_resources_ports(cd);
	if (err)
		goto err_ports;
	err = register_netdevice_notifier(&front->notifier);
	if (err)
		goto err_ports;
	clsw_ports_resume(cd);
	if (clsw_can(cd, CLSW_CAN_STATS))
		schedule_delayed_work(&front->stats_work, msecs_to_jiffies(CLSW_STATS_MS));
	return 0;

err_ports:
	clsw_rx_exit(cd);
	while (i--)
		clsw_cage_empty(cd, &front->board.cage[i]);
err_cd:
	cd->front = NULL;
err_front:
	kvfree(front);
	return err;
}

void clsw_ports_exit(struct clsw_device *cd)
{
	struct clsw_front *front = cd->front;
	unsigned int i;

	WRITE_ONCE(front->stop, true);
	cancel_delayed_work_sync(&front->stats_work);
	unregister_netdevice_notifier(&front->notifier);
	for (i = 0; i < front->board.cages; i++)
		clsw_cage_empty(cd, &front->board.cage[i]);
	clsw_rx_exit(cd);
	cd->front = NULL;
	kvfree(front);
}
