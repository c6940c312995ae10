// SPDX-License-Identifier: GPL-2.0
/*
 * Refusals as people read them: table, needed, free, size. At most 79
 * characters, for extack.
 */
#include "rm_priv.h"

static const struct {
	const char *name;
	const char *display;
} names[] = {
	{ "exact-match", "exact-match" },
	{ "ipv4-lpm", "IPv4 LPM" },
	{ "ipv6-lpm", "IPv6 LPM" },
	{ "rif", "RIF" },
	{ "vrf", "VRF" },
	{ "vlan", "VLAN" },
	{ "vlan-member", "VLAN member" },
	{ "nexthop", "next hop" },
	{ "nexthop-group", "next-hop group" },
	{ "nexthop-group-member", "next-hop group member" },
	/* classes, where they are named otherwise than their pool */
	{ "mac", "MAC" },
	{ "ipv4-host", "IPv4 host" },
	{ "ipv6-host", "IPv6 host" },
	{ "ipv4-route", "IPv4 route" },
	{ "ipv6-route", "IPv6 route" },
};

const char *rm_display_name(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i].name, name))
			return names[i].display;
	}
	return name;
}

int rm_full_text(const struct rm *rm, const struct rm_verdict *v, char *buf, size_t size)
{
	bool limit = v->capped;
	const char *name = "table";

	size = min_t(size_t, size, RM_TEXT);
	/* what a reserve or others' floors keep is as good as taken: the memory is full */
	if (v->pool < rm->pool_count && v->size == rm->pools[v->pool].size)
		limit = false;
	if (limit && v->row < rm->row_count)
		name = rm_display_name(rm->rows[v->row].name);
	else if (v->pool < rm->pool_count)
		name = rm_display_name(rm->pools[v->pool].name);
	/* a name of the device's own is as long as it likes: it gives way to the numbers */
	return scnprintf(buf, size, "%.24s %s (needs %u, free %u of %u)", name,
			 limit ? "limit reached" : v->bucket ? "bucket full" : "full",
			 v->needed, v->free, v->size);
}

int rm_cpl_text(const struct rm *rm, const struct tnd_cpl *cpl, char *buf, size_t size)
{
	u16 status = le16_to_cpu(cpl->status);
	struct rm_verdict v = {
		.result = RM_FULL,
		.pool = min_t(u16, le16_to_cpu(cpl->table), RM_NONE),
		.row = RM_NONE,
		.bucket = status == TND_ST_BUCKET_FULL,
		.needed = le32_to_cpu(cpl->needed),
		.free = le32_to_cpu(cpl->free),
		.size = le32_to_cpu(cpl->size),
	};

	if (status != TND_ST_TABLE_FULL && status != TND_ST_BUCKET_FULL)
		return 0;
	return rm_full_text(rm, &v, buf, size);
}
