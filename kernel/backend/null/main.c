// SPDX-License-Identifier: GPL-2.0
/* clsw_null: the module, its parameters, and clsw's ops. null.h draws it */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/platform_device.h>
#include <linux/unaligned.h>
#include <net/ip.h>

#include "null.h"

static char *profile = "spectrum-sn2700";
module_param(profile, charp, 0444);
MODULE_PARM_DESC(profile, "chip: tiny, spectrum-sn2700, arista-7500e, jericho2-large");
static ushort ports;
module_param(ports, ushort, 0444);
MODULE_PARM_DESC(ports, "front-panel ports, at most 128; 0: as the chip has");
static bool link = true;
module_param(link, bool, 0444);
MODULE_PARM_DESC(link, "ports have carrier from the start");

u32 null_write_ns = 60000;
module_param_named(write_ns, null_write_ns, uint, 0644);
MODULE_PARM_DESC(write_ns, "what a write takes (seed 002, table 1: 60 us)");
u32 null_query_ns = 35000;
module_param_named(query_ns, null_query_ns, uint, 0644);
MODULE_PARM_DESC(query_ns, "what a question or a lease takes (seed 002: 35 us)");
u32 null_release_ns;
module_param_named(release_ns, null_release_ns, uint, 0644);
MODULE_PARM_DESC(release_ns, "what giving a lease back takes: nobody waits for it, so nothing by default");
u32 null_write_batch = 1;
module_param_named(write_batch, null_write_batch, uint, 0644);
MODULE_PARM_DESC(write_batch, "writes that the chip takes at once");
u32 null_entry_ns = 5000;
module_param_named(entry_ns, null_entry_ns, uint, 0644);
MODULE_PARM_DESC(entry_ns, "what each further write of a batch takes");
u32 null_irq_ns;
module_param_named(irq_ns, null_irq_ns, uint, 0644);
MODULE_PARM_DESC(irq_ns, "interrupt moderation: it comes so long after the first completed write");
bool null_parallel;
module_param_named(parallel, null_parallel, bool, 0444);
MODULE_PARM_DESC(parallel, "each queue has a firmware CPU of its own (as asicd's latency model)");
bool null_measure;
module_param_named(measure, null_measure, bool, 0644);
MODULE_PARM_DESC(measure, "count the CPU time that the model itself takes (debugfs timing, model_ns)");

static unsigned int policer_rate;
module_param(policer_rate, uint, 0444);
MODULE_PARM_DESC(policer_rate, "largest rate of the chip's policers (packets per second, 0: no limit but the driver's)");

static struct null_chip *null_chip_of(struct clsw_device *cd)
{
	return clsw_priv(cd);
}

/* -------------------------------------------------------------------------
 * Tables
 */
static int null_op_post(struct clsw_device *cd, enum clsw_queue q, const struct tnd_cmd *cmd,
			const void *body)
{
	return null_post(null_chip_of(cd), q, cmd, body);
}

static void null_op_kick(struct clsw_device *cd, enum clsw_queue q)
{
	null_kick(null_chip_of(cd), q);
}

static int null_op_reap(struct clsw_device *cd, enum clsw_queue q, int budget)
{
	return null_reap(null_chip_of(cd), q, budget);
}

static bool null_op_want_irq(struct clsw_device *cd)
{
	return null_want_irq(null_chip_of(cd));
}

static int null_op_read(struct clsw_device *cd, const struct tnd_cmd *cmd, const void *body,
			void *out, u32 out_size, struct tnd_cpl *cpl)
{
	return null_read(null_chip_of(cd), cmd, body, out, out_size, cpl);
}

static const struct clsw_table_ops table_ops = {
	.post = null_op_post,
	.kick = null_op_kick,
	.reap = null_op_reap,
	.want_irq = null_op_want_irq,
	.read = null_op_read,
};

/* -------------------------------------------------------------------------
 * Life
 */
static void null_schedule_rx(struct null_chip *n)
{
	if (!n->rx_armed)
		return;
	n->rx_armed = false;
	clsw_rx_schedule(n->cd);
}

static int null_op_attach(struct clsw_device *cd, enum clsw_attach_mode mode)
{
	struct null_chip *n = null_chip_of(cd);
	u16 i;

	clsw_lock(cd);
	n->attached = false;
	n->alive = false;
	null_queues_reset(n);
	clsw_unlock(cd);
	hrtimer_cancel(&n->timer);
	if (n->vanished)
		return -ENODEV;
	/* posts and reads fail from here on, so this has the tables for itself */
	if (mode == CLSW_ATTACH_COLD || n->tables_lost)
		null_tables_clear(n);
	clsw_lock(cd);
	null_lease_drop_all(n);
	n->resync = false;
	n->epoch++;
	n->event_seq = 0;
	for (i = 1; i <= n->ports; i++)
		n->port[i].tell = true;
	n->alive = true;
	n->attached = true;
	null_schedule_rx(n);
	clsw_unlock(cd);
	return 0;
}

static void null_op_detach(struct clsw_device *cd)
{
	struct null_chip *n = null_chip_of(cd);

	clsw_lock(cd);
	n->attached = false;
	n->alive = false;
	n->rx_armed = false;
	null_queues_reset(n);
	clsw_unlock(cd);
	hrtimer_cancel(&n->timer);
}

static bool null_op_alive(struct clsw_device *cd)
{
	return null_chip_of(cd)->alive;
}

static const struct tnd_platform *null_op_platform(struct clsw_device *cd, size_t *size)
{
	*size = null_chip_of(cd)->platform_size;
	return null_chip_of(cd)->platform;
}

static void null_op_info(struct clsw_device *cd, char *version, size_t size)
{
	strscpy(version, "null 1.0", size);
}

static void null_op_caps(struct clsw_device *cd, struct clsw_caps *caps)
{
	/* it learns nothing, but stands for chips that do: nobody may count on it */
	caps->can = CLSW_CAN_PACKETS | CLSW_CAN_VERSION | CLSW_CAN_LEARN | CLSW_CAN_ATTACH_WARM |
		    CLSW_CAN_BUSY_WAIT;
	caps->classes = CLSW_CLASSES_L2 | CLSW_CLASSES_L3;
	caps->fids = NULL_MAX_FID;
	caps->rif = NULL_MAX_RIF;
	caps->port = NULL_MAX_PORTS;
	caps->group_weight = NULL_MAX_WEIGHT;
	caps->policer_rate = policer_rate;
}

static const struct clsw_device_ops device_ops = {
	.attach = null_op_attach,
	.detach = null_op_detach,
	.alive = null_op_alive,
	.caps = null_op_caps,
	.platform = null_op_platform,
	.info = null_op_info,
};

/* -------------------------------------------------------------------------
 * Packets: those that debugfs makes; events tell of carrier
 */
static int null_op_xmit(struct clsw_device *cd, const struct tnd_tx *meta, struct sk_buff *skb)
{
	null_chip_of(cd)->count.tx++;
	return 0;
}

static bool null_has_route(struct null_chip *n, const u8 *dst)
{
	union null_body b;
	int len;

	for (len = 32; len >= 0; len--) {
		memset(&b, 0, sizeof(b));
		b.route.family = TND_AF_INET;
		b.route.prefix_len = len;
		put_unaligned_be32(len ? get_unaligned_be32(dst) & ~0U << (32 - len) : 0,
				   b.route.addr);
		if (null_find(n, TND_CLS_ROUTE, &b) != NULL_NONE)
			return true;
	}
	return false;
}

static struct sk_buff *null_packet_to(const u8 *dst)
{
	static const u8 mac[ETH_ALEN] = { 0x02, 0, 0, 0, 0, 0x03 };
	struct sk_buff *skb = netdev_alloc_skb(NULL, ETH_ZLEN);
	struct ethhdr *eth;
	struct iphdr *ip;

	if (!skb)
		return NULL;
	eth = skb_put_zero(skb, ETH_ZLEN);
	ip = (struct iphdr *)(eth + 1);
	eth_broadcast_addr(eth->h_dest);
	ether_addr_copy(eth->h_source, mac);
	eth->h_proto = htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->tot_len = htons(ETH_ZLEN - ETH_HLEN);
	memcpy(&ip->daddr, dst, sizeof(ip->daddr));
	ip->check = ip_fast_csum(ip, ip->ihl);
	return skb;
}

/* One at most; how many came up */
static int null_poll_packet(struct null_chip *n)
{
	struct tnd_rx meta = {
		.reason = cpu_to_le16(TND_TRAP_LPM_MISS),
		.trap_class = cpu_to_le16(TND_TC_DATA),
	};
	struct sk_buff *skb;
	u8 dst[4];
	bool up;

	clsw_lock(n->cd);
	null_advance(n, ktime_get_ns());
	up = n->packet && n->attached && !null_has_route(n, n->packet_dst);
	n->count.forwarded += n->packet && !up;
	n->packet = false;
	meta.port = cpu_to_le16(n->packet_port);
	meta.epoch = cpu_to_le32(n->epoch);
	memcpy(dst, n->packet_dst, sizeof(dst));
	clsw_unlock(n->cd);
	skb = up ? null_packet_to(dst) : NULL;
	if (!skb)
		return 0;
	meta.len = cpu_to_le32(skb->len);
	clsw_receive(n->cd, &meta, skb);
	return 1;
}

static int null_op_poll(struct clsw_device *cd, int budget)
{
	struct null_chip *n = null_chip_of(cd);
	u16 i;

	for (i = 1; i <= n->ports; i++) {
		struct tnd_event e = {
			.kind = cpu_to_le16(TND_EV_LINK),
			.port = cpu_to_le16(i),
			.speed_mbps = cpu_to_le32(n->p->speed_mbps),
		};
		bool tell;

		clsw_lock(cd);
		tell = n->port[i].tell && n->attached;
		n->port[i].tell = false;
		e.up = cpu_to_le16(n->port[i].link);
		e.epoch = cpu_to_le32(n->epoch);
		if (tell)
			e.seq = cpu_to_le32(n->event_seq++);
		clsw_unlock(cd);
		if (tell)
			clsw_event(cd, &e);
	}
	return null_poll_packet(n);
}

static bool null_op_arm(struct clsw_device *cd)
{
	struct null_chip *n = null_chip_of(cd);
	bool waits;
	u16 i;

	clsw_lock(cd);
	waits = n->packet && n->attached;
	for (i = 1; i <= n->ports; i++)
		waits |= n->port[i].tell && n->attached;
	n->rx_armed = !waits;
	clsw_unlock(cd);
	return waits;
}

static const struct clsw_packet_ops packet_ops = {
	.xmit = null_op_xmit,
	.poll = null_op_poll,
	.arm = null_op_arm,
};

void null_link_set(struct null_chip *n, u16 port, bool up)
{
	clsw_lock(n->cd);
	if (n->port[port].link != up) {
		n->port[port].link = up;
		n->port[port].tell = true;
		null_schedule_rx(n);
	}
	clsw_unlock(n->cd);
}

void null_packet(struct null_chip *n, u16 port, const u8 *dst)
{
	clsw_lock(n->cd);
	n->packet = true;
	n->packet_port = port;
	memcpy(n->packet_dst, dst, sizeof(n->packet_dst));
	null_schedule_rx(n);
	clsw_unlock(n->cd);
}

/* ------------------------------------------------------------------------- */

static const struct clsw_backend backend = {
	.name = "null",
	.owner = THIS_MODULE,
	.device = &device_ops,
	.table = &table_ops,
	.packet = &packet_ops,
	.priv_size = sizeof(struct null_chip),
};

static void null_chip_free(struct null_chip *n)
{
	kfree(n->platform);
	null_tables_exit(n);
	null_queues_exit(n);
}

static int null_probe(struct platform_device *pdev)
{
	const struct null_profile *p = null_profile(profile);
	struct clsw_device *cd;
	struct null_chip *n;
	int err;
	u16 i;

	if (!p)
		return -EINVAL;
	if (ports > NULL_MAX_PORTS) {
		dev_err(&pdev->dev, "ports=%u, at most %u\n", ports, NULL_MAX_PORTS);
		return -EINVAL;
	}
	cd = clsw_device_alloc(&backend, &pdev->dev);
	if (!cd)
		return -ENOMEM;
	n = null_chip_of(cd);
	n->cd = cd;
	n->p = p;
	n->ports = ports ?: p->ports;
	for (i = 1; i <= n->ports; i++)
		n->port[i].link = link;
	err = null_queues_init(n);
	if (!err)
		err = null_tables_init(n);
	if (!err)
		err = null_platform_init(n);
	if (err)
		goto err_free;
	platform_set_drvdata(pdev, n);
	err = clsw_device_register(cd);
	if (err)
		goto err_free;
	null_debug_init(n, dev_name(&pdev->dev));
	return 0;

err_free:
	null_chip_free(n);
	clsw_device_free(cd);
	return err;
}

static void null_remove_device(struct platform_device *pdev)
{
	struct null_chip *n = platform_get_drvdata(pdev);

	null_debug_exit(n);
	clsw_device_unregister(n->cd);
	null_chip_free(n);
	clsw_device_free(n->cd);
}

static struct platform_driver null_driver = {
	.probe = null_probe,
	.remove_new = null_remove_device,
	.driver = { .name = "clsw_null" },
};

static struct platform_device *null_device;

static int __init null_init(void)
{
	int err = platform_driver_register(&null_driver);

	if (err)
		return err;
	null_device = platform_device_register_simple("clsw_null", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(null_device)) {
		err = PTR_ERR(null_device);
	} else if (!platform_get_drvdata(null_device)) {
		/* why is in the log */
		platform_device_unregister(null_device);
		err = -ENODEV;
	}
	if (err)
		platform_driver_unregister(&null_driver);
	return err;
}
module_init(null_init);

static void __exit null_exit(void)
{
	platform_device_unregister(null_device);
	platform_driver_unregister(&null_driver);
}
module_exit(null_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A switch chip inside the kernel, for timing and tests of clsw");
