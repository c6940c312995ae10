// SPDX-License-Identifier: GPL-2.0
/*
 * The frame of the region: header, ring directory, platform description. All
 * of it is copied once and then checked; only the copy is used.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "ring.h"

static bool cp_frame_inside(const struct cp_frame *f, u64 at, u64 bytes, u64 align)
{
	return !(at & (align - 1)) && at <= f->size && bytes <= f->size - at;
}

static int cp_frame_bad(struct cp_region *p, const char *what, u64 have, u64 want)
{
	dev_err_ratelimited(p->dev,
			    "region header: %s: %llu (expected %llu)\n",
			    what, have, want);
	return -EPROTO;
}

/* Which of our rings an entry of the directory describes; NULL: none of them */
static struct cp_geometry *cp_frame_place(struct cp_frame *f, u16 kind, u16 pair,
					  u32 *least)
{
	switch (kind) {
	case TND_RING_CMD:
		*least = TND_CMD_SIZE;
		return pair < CLSW_Q_COUNT ? &f->cmd[pair] : NULL;
	case TND_RING_CPL:
		*least = TND_CPL_SIZE;
		return pair < CLSW_Q_COUNT ? &f->cpl[pair] : NULL;
	case TND_RING_EVENT:
		*least = TND_EVENT_SIZE;
		return &f->event;
	case TND_RING_RX:
		*least = TND_PKT_META_SIZE + 64;
		return &f->rx;
	case TND_RING_TX:
		*least = TND_PKT_META_SIZE + 64;
		return &f->tx;
	}
	return NULL;	/* of a later ABI: skipped */
}

static int cp_frame_ring(struct cp_region *p, struct cp_frame *f,
			 const struct tnd_ring_info *info)
{
	struct cp_geometry *g;
	u32 least = 0;

	g = cp_frame_place(f, le16_to_cpu(info->kind), le16_to_cpu(info->pair),
			   &least);
	if (!g)
		return 0;
	g->entry_size = le32_to_cpu(info->entry_size);
	g->count = le32_to_cpu(info->entry_count);
	g->doorbell = le32_to_cpu(info->doorbell);
	g->prod = le64_to_cpu(info->prod_offset);
	g->cons = le64_to_cpu(info->cons_offset);
	g->entries = le64_to_cpu(info->entries_offset);

	if (!is_power_of_2(g->count) || g->count > CP_RING_MAX)
		return cp_frame_bad(p, "entries of a ring", g->count, CP_RING_MAX);
	if (g->entry_size < least || g->entry_size > CP_ENTRY_MAX ||
	    g->entry_size % 64)
		return cp_frame_bad(p, "bytes of an entry", g->entry_size, least);
	if (g->doorbell > U16_MAX)
		return cp_frame_bad(p, "doorbell", g->doorbell, U16_MAX);
	if (!cp_frame_inside(f, g->prod, 64, 64) || !cp_frame_inside(f, g->cons, 64, 64))
		return cp_frame_bad(p, "index line", g->prod, f->size);
	if (!cp_frame_inside(f, g->entries, (u64)g->entry_size * g->count, 64))
		return cp_frame_bad(p, "ring entries", g->entries, f->size);
	return 0;
}

/* Bells that we must be able to hear */
static int cp_frame_bells(struct cp_region *p, const struct cp_frame *f)
{
	const struct cp_geometry *heard[] = {
		&f->cpl[CLSW_Q_SYNC], &f->cpl[CLSW_Q_BULK], &f->event, &f->rx,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(heard); i++)
		if (heard[i]->doorbell >= p->bells)
			return cp_frame_bad(p, "doorbell that can't be heard",
					    heard[i]->doorbell, p->bells - 1);
	return 0;
}

/*
 * -EAGAIN: there is no frame (yet); -ENODEV: something else lies there;
 * -EPROTO, after a message: a frame that can't be.
 */
int cp_frame_read(struct cp_region *p, struct cp_frame *f)
{
	struct tnd_ring_info info;
	struct tnd_header h;
	u32 i, count, stride;
	u64 dir;
	int ret;

	memset(f, 0, sizeof(*f));
	memcpy(&h, p->mem, sizeof(h));
	barrier();
	if (!h.magic)
		return -EAGAIN;
	if (h.magic != cpu_to_le64(TND_MAGIC))
		return -ENODEV;
	/* what was read after the magic was written after it: look again */
	virt_rmb();
	memcpy(&h, p->mem, sizeof(h));
	barrier();
	if (h.magic != cpu_to_le64(TND_MAGIC))
		return -EAGAIN;
	if (le16_to_cpu(h.abi_major) != TND_ABI_MAJOR)
		return cp_frame_bad(p, "ABI version", le16_to_cpu(h.abi_major),
				    TND_ABI_MAJOR);
	f->minor = le16_to_cpu(h.abi_minor);
	f->size = le64_to_cpu(h.region_size);
	if (f->size > p->mem_size || f->size < TND_HEADER_SIZE)
		return cp_frame_bad(p, "bytes of the region", f->size, p->mem_size);
	f->features = le64_to_cpu(h.features_offered);
	f->device_peer = le32_to_cpu(h.device_peer);
	if (!f->device_peer || f->device_peer > U16_MAX + 1)
		return cp_frame_bad(p, "device's peer", f->device_peer, U16_MAX + 1);
	f->device_peer--;
	memcpy(f->name, h.device_name, sizeof(f->name));
	f->name[sizeof(f->name) - 1] = 0;

	count = le32_to_cpu(h.ring_count);
	stride = le32_to_cpu(h.ring_dir_stride);
	dir = le32_to_cpu(h.ring_dir_offset);
	if (count > TND_MAX_RINGS)
		return cp_frame_bad(p, "rings", count, TND_MAX_RINGS);
	if (stride < sizeof(info) ||
	    !cp_frame_inside(f, dir, (u64)count * stride, 8))
		return cp_frame_bad(p, "ring directory", dir, f->size);
	for (i = 0; i < count; i++) {
		memcpy(&info, p->mem + dir + (u64)i * stride, sizeof(info));
		barrier();
		ret = cp_frame_ring(p, f, &info);
		if (ret)
			return ret;
	}
	for (i = 0; i < CLSW_Q_COUNT; i++)
		if (!f->cmd[i].count || !f->cpl[i].count)
			return cp_frame_bad(p, "no command pair", i, CLSW_Q_COUNT);
	if (!f->event.count || !f->rx.count || !f->tx.count)
		return cp_frame_bad(p, "no event or packet ring", count, 7);
	ret = cp_frame_bells(p, f);
	if (ret)
		return ret;

	f->arena = le64_to_cpu(h.arena_offset);
	f->arena_size = le64_to_cpu(h.arena_size);
	if (f->arena_size > U32_MAX ||
	    !cp_frame_inside(f, f->arena, f->arena_size, 8))
		return cp_frame_bad(p, "arena", f->arena_size, f->size);
	if (f->arena_size < 4 * CP_BODY_MAX)
		return cp_frame_bad(p, "bytes of arena", f->arena_size,
				    4 * CP_BODY_MAX);
	f->platform = le64_to_cpu(h.platform_offset);
	f->platform_size = le64_to_cpu(h.platform_size);
	if (f->platform_size > CP_PLATFORM_MAX ||
	    f->platform_size < sizeof(struct tnd_platform) ||
	    !cp_frame_inside(f, f->platform, f->platform_size, 8))
		return cp_frame_bad(p, "platform", f->platform_size, f->size);
	return 0;
}
EXPORT_SYMBOL_GPL(cp_frame_read);

/* May sleep. A copy whose ports and EEPROM lie inside, or an error pointer */
struct tnd_platform *cp_frame_platform(struct cp_region *p,
				       const struct cp_frame *f)
{
	struct tnd_platform *copy;
	u64 ports, eeprom;
	int ret;

	copy = kmemdup(p->mem + f->platform, f->platform_size, GFP_KERNEL);
	if (!copy)
		return ERR_PTR(-ENOMEM);
	ports = (u64)le16_to_cpu(copy->port_count) *
		sizeof(struct tnd_platform_port);
	eeprom = le32_to_cpu(copy->eeprom_size);
	if (le16_to_cpu(copy->struct_size) < sizeof(*copy))
		ret = cp_frame_bad(p, "platform's size",
				   le16_to_cpu(copy->struct_size), sizeof(*copy));
	else if (le32_to_cpu(copy->ports_offset) % 4 ||
		 le32_to_cpu(copy->ports_offset) + ports > f->platform_size)
		ret = cp_frame_bad(p, "platform's ports", ports, f->platform_size);
	else if (le32_to_cpu(copy->eeprom_offset) + eeprom > f->platform_size)
		ret = cp_frame_bad(p, "platform's EEPROM", eeprom, f->platform_size);
	else
		ret = 0;
	if (ret) {
		kfree(copy);
		return ERR_PTR(ret);
	}
	copy->chip[sizeof(copy->chip) - 1] = 0;
	return copy;
}
EXPORT_SYMBOL_GPL(cp_frame_platform);
