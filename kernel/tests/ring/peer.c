// SPDX-License-Identifier: GPL-2.0
/* See peer.h */
#include "peer.h"

struct clsw_device {
	spinlock_t lock;	/* clsw_lock() */
	struct cp_region region;
};

struct peer peer;
bool shim_no_skb;

void world_goes_on(void)
{
	if (peer.meanwhile)
		peer.meanwhile();
}

void world_is_stuck(void)
{
}

/* ---- clsw ---- */

void *clsw_priv(struct clsw_device *cd)
{
	return &cd->region;
}

void clsw_lock(struct clsw_device *cd)
{
	spin_lock_bh(&cd->lock);
}

void clsw_unlock(struct clsw_device *cd)
{
	spin_unlock_bh(&cd->lock);
}

void clsw_complete(struct clsw_device *cd, const struct tnd_cpl *cpl)
{
	assert(cd->lock.held);
	peer.seen.cpl[peer.seen.cpls++ % ARRAY_SIZE(peer.seen.cpl)] = *cpl;
}

void clsw_wake(struct clsw_device *cd)
{
	peer.seen.wakes++;
}

void clsw_event(struct clsw_device *cd, const struct tnd_event *e)
{
	peer.seen.events[peer.seen.event_count++ % ARRAY_SIZE(peer.seen.events)] =
		le32_to_cpu(e->seq);
}

void clsw_receive(struct clsw_device *cd, const struct tnd_rx *meta, struct sk_buff *skb)
{
	u32 i = peer.seen.packets++ % ARRAY_SIZE(peer.seen.skb);

	/* the stack may do anything */
	assert(!shim_atomic);
	kfree(peer.seen.skb[i]);
	peer.seen.skb[i] = skb;
	peer.seen.meta[i] = *meta;
	peer.seen.event_before[i] = peer.seen.event_count;
}

void clsw_tx_wake(struct clsw_device *cd)
{
	peer.seen.tx_wakes++;
}

void clsw_trouble(struct clsw_device *cd, const char *why)
{
	peer.seen.why = why;
	peer.seen.troubles++;
}

static void bell(struct cp_region *p, u32 number)
{
	assert(number < ARRAY_SIZE(peer.seen.bells));
	peer.seen.bells[number]++;
}

static const struct cp_region_ops ops = {
	.doorbell = bell,
};

/* ---- the region ---- */

struct tnd_header *peer_header(void)
{
	return (struct tnd_header *)peer.mem;
}

struct tnd_ring_info *peer_info(enum peer_ring ring)
{
	return (struct tnd_ring_info *)(peer.mem + TND_HEADER_SIZE) + ring;
}

struct tnd_ring_prod *peer_prod(enum peer_ring ring)
{
	return (struct tnd_ring_prod *)(peer.mem + 2 * TND_HEADER_SIZE) + 2 * ring;
}

struct tnd_ring_cons *peer_cons(enum peer_ring ring)
{
	return (struct tnd_ring_cons *)(peer_prod(ring) + 1);
}

void peer_make(u64 features)
{
	static const struct {
		u32 kind, pair, size, count;
	} rings[PEER_RINGS] = {
		[CMD0] = { TND_RING_CMD, 0, TND_CMD_SIZE, CMD_COUNT },
		[CPL0] = { TND_RING_CPL, 0, TND_CPL_SIZE, CMD_COUNT },
		[CMD1] = { TND_RING_CMD, 1, TND_CMD_SIZE, CMD_COUNT },
		[CPL1] = { TND_RING_CPL, 1, TND_CPL_SIZE, CMD_COUNT },
		[EVENT] = { TND_RING_EVENT, 0, TND_EVENT_SIZE, EVENT_COUNT },
		[RX] = { TND_RING_RX, 0, PACKET_SIZE, PACKET_COUNT },
		[TX] = { TND_RING_TX, 0, PACKET_SIZE, PACKET_COUNT },
	};
	struct tnd_platform *platform;
	struct tnd_header *h;
	u64 at = 3 * TND_HEADER_SIZE;
	int i;

	peer = (struct peer){};
	for (i = 0; i < PEER_RINGS; i++) {
		peer.at[i] = at;
		at += (u64)rings[i].size * rings[i].count;
	}
	peer.size = at + sizeof(*platform) + ARENA_SIZE;
	/* as long as it is: a sanitizer sees the byte behind it */
	peer.mem = shim_alloc(peer.size, GFP_KERNEL);
	h = peer_header();
	*h = (struct tnd_header){
		.magic = cpu_to_le64(TND_MAGIC),
		.abi_major = cpu_to_le16(TND_ABI_MAJOR),
		.header_size = cpu_to_le32(TND_HEADER_SIZE),
		.region_size = cpu_to_le64(peer.size),
		.features_offered = cpu_to_le64(features),
		.ring_count = cpu_to_le32(PEER_RINGS),
		.ring_dir_offset = cpu_to_le32(TND_HEADER_SIZE),
		.ring_dir_stride = cpu_to_le32(sizeof(struct tnd_ring_info)),
		.device_peer = cpu_to_le32(3),
		.platform_offset = cpu_to_le64(at),
		.platform_size = cpu_to_le64(sizeof(*platform)),
		.arena_offset = cpu_to_le64(at + sizeof(*platform)),
		.arena_size = cpu_to_le64(ARENA_SIZE),
	};
	platform = (struct tnd_platform *)(peer.mem + at);
	platform->struct_size = cpu_to_le16(sizeof(*platform));
	for (i = 0; i < PEER_RINGS; i++)
		*peer_info(i) = (struct tnd_ring_info){
			.kind = cpu_to_le16(rings[i].kind),
			.pair = cpu_to_le16(rings[i].pair),
			.entry_size = cpu_to_le32(rings[i].size),
			.entry_count = cpu_to_le32(rings[i].count),
			.doorbell = cpu_to_le32(1 + i),
			.prod_offset = cpu_to_le64((u8 *)peer_prod(i) - peer.mem),
			.cons_offset = cpu_to_le64((u8 *)peer_cons(i) - peer.mem),
			.entries_offset = cpu_to_le64(peer.at[i]),
		};
	peer.cd = shim_alloc(sizeof(*peer.cd), GFP_KERNEL);
	peer.p = &peer.cd->region;
	cp_region_init(peer.p, peer.cd, NULL, &ops);
	peer.p->mem = peer.mem;
	peer.p->mem_size = peer.size;
	peer.p->bells = 8;
}

void peer_begin(u64 features)
{
	peer_make(features);
	CHECK(!cp_frame_read(peer.p, &peer.p->frame));
	CHECK(!cp_region_start(peer.p, EPOCH));
	peer.p->serving = true;
}

void peer_end(void)
{
	u32 i;

	cp_region_stop(peer.p);
	cp_region_exit(peer.p);
	for (i = 0; i < ARRAY_SIZE(peer.seen.skb); i++)
		kfree(peer.seen.skb[i]);
	kfree(peer.cd);
	kfree(peer.mem);
}

/* ---- what a device does ---- */

bool peer_command(unsigned int pair, struct tnd_cmd *cmd, u8 *body)
{
	enum peer_ring ring = pair ? CMD1 : CMD0;
	u32 size;

	/* the index before the entry */
	if (virt_load_acquire(&peer_prod(ring)->index) == cpu_to_le32(peer.own[ring]))
		return false;
	memcpy(cmd, peer.mem + peer.at[ring] + peer.own[ring] % CMD_COUNT * TND_CMD_SIZE,
	       sizeof(*cmd));
	size = le32_to_cpu(cmd->body_size);
	if (cmd->flags & cpu_to_le32(TND_CMD_ARENA))
		memcpy(body, peer.mem + le64_to_cpu(peer_header()->arena_offset) +
			     le32_to_cpu(cmd->body_offset), size);
	else
		memcpy(body, cmd->body, size);
	/* the copy before the index that gives the entry back */
	virt_store_release(&peer_cons(ring)->index, cpu_to_le32(++peer.own[ring]));
	return true;
}

struct tnd_cpl peer_answer(const struct tnd_cmd *cmd)
{
	return (struct tnd_cpl){
		.op = cmd->op,
		.cls = cmd->cls,
		.cookie = cmd->cookie,
		.seq = cmd->seq,
		.epoch = cmd->epoch,
	};
}

void peer_put(enum peer_ring ring, const void *entry, size_t size)
{
	u32 each = le32_to_cpu(peer_info(ring)->entry_size);
	u32 count = le32_to_cpu(peer_info(ring)->entry_count);

	memcpy(peer.mem + peer.at[ring] + peer.own[ring] % count * each, entry, size);
	/* the entry before its index */
	virt_store_release(&peer_prod(ring)->index, cpu_to_le32(++peer.own[ring]));
}

void peer_event(u32 seq, u32 epoch)
{
	const struct tnd_event e = {
		.kind = cpu_to_le16(TND_EV_LEARN),
		.seq = cpu_to_le32(seq),
		.epoch = cpu_to_le32(epoch),
	};

	peer_put(EVENT, &e, sizeof(e));
}

void peer_packet(u32 len, u32 event_seq, u32 epoch)
{
	struct {
		struct tnd_rx meta;
		u8 data[PACKET_SIZE - TND_PKT_META_SIZE];
	} packet = {
		.meta.len = cpu_to_le32(len),
		.meta.event_seq = cpu_to_le32(event_seq),
		.meta.epoch = cpu_to_le32(epoch),
	};
	u32 i;

	for (i = 0; i < sizeof(packet.data); i++)
		packet.data[i] = i + len;
	peer_put(RX, &packet, sizeof(packet));
}

void peer_tick(void)
{
	struct hrtimer *t = &peer.p->tx_timer;

	if (!t->queued)
		return;
	t->queued = false;
	if (t->function(t) == HRTIMER_RESTART)
		t->queued = true;
}
