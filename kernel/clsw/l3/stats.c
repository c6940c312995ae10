// SPDX-License-Identifier: GPL-2.0
/*
 * Packets per member of a next-hop group, for `ip -s -s nexthop` (hw_stats on).
 *
 *   chip: TND_CLS_NHG_STATS --> what is new since the last look --> the kernel adds it up
 *
 * What the chip sends to the CPU is counted there by the kernel, in software.
 */
#include <linux/slab.h>
#include <net/nexthop.h>

#include "l3.h"

struct group_stats {
	struct tnd_nhg_stats head;
	struct tnd_nhg_member_stats member[TND_NHG_MAX_MEMBERS];
};

/* May sleep. False: the chip doesn't count, or not this group */
static bool stats_ask(struct clsw_l3 *l3, u32 group, struct group_stats *stats)
{
	struct tnd_nhg_stats body = {
		.struct_size = cpu_to_le16(sizeof(body)),
		.nhg = cpu_to_le32(group),
	};
	struct tnd_cmd cmd = {
		.op = cpu_to_le16(TND_OP_QUERY),
		.cls = cpu_to_le16(TND_CLS_NHG_STATS),
		.body_size = cpu_to_le32(sizeof(body)),
	};
	struct tnd_cpl cpl;

	if (!clsw_up(l3->cd) ||
	    l3->cd->backend->table->read(l3->cd, &cmd, &body, stats, sizeof(*stats), &cpl) ||
	    le16_to_cpu(cpl.status) != TND_ST_OK)
		return false;
	/* a longer head would put members elsewhere */
	return le16_to_cpu(stats->head.struct_size) == sizeof(stats->head) &&
	       le16_to_cpu(stats->head.count) <= TND_NHG_MAX_MEMBERS &&
	       le32_to_cpu(cpl.out_len) >=
	       sizeof(stats->head) + le16_to_cpu(stats->head.count) * sizeof(stats->member[0]);
}

/* The chip's member that stands for a path, marked as taken: a next hop may be there twice */
static struct tnd_nhg_member_stats *stats_member_of(struct group_stats *stats,
						    const struct l3_path *path)
{
	unsigned int i;

	for (i = 0; path->nh && i < le16_to_cpu(stats->head.count); i++) {
		if (stats->member[i].reserved0 ||
		    le32_to_cpu(stats->member[i].nexthop) != path->nh->id)
			continue;
		stats->member[i].reserved0 = cpu_to_le32(1);
		return &stats->member[i];
	}
	return NULL;
}

/* Locked */
static void stats_tell(struct l3_paths *paths, struct group_stats *stats,
		       struct nh_notifier_grp_hw_stats_info *info)
{
	unsigned int i;
	u64 now;

	for (i = 0; i < le16_to_cpu(stats->head.count); i++)
		stats->member[i].reserved0 = 0;
	for (i = 0; i < paths->count; i++) {
		struct tnd_nhg_member_stats *member = stats_member_of(stats, &paths->path[i]);

		/* begins at zero when it is one again, and after a reset */
		now = member ? le64_to_cpu(member->packets) : 0;
		if (info)
			nh_grp_hw_stats_report_delta(info, i, now < paths->path[i].told ?
						     now : now - paths->path[i].told);
		paths->path[i].told = now;
	}
}

void l3_stats_read(struct clsw_l3 *l3, u32 nhid, struct nh_notifier_grp_hw_stats_info *info)
{
	struct group_stats *stats;
	struct l3_paths *paths;
	u32 group = 0;

	clsw_lock(l3->cd);
	paths = l3_paths_find(l3, nhid);
	if (paths && paths->group)
		group = paths->group_id;
	clsw_unlock(l3->cd);
	if (!group)
		return;
	stats = kzalloc(sizeof(*stats), GFP_KERNEL);
	if (!stats)
		return;	/* the next look has it */
	if (stats_ask(l3, group, stats)) {
		clsw_lock(l3->cd);
		paths = l3_paths_find(l3, nhid);
		if (paths && paths->group_id == group && (!info || info->num_nh == paths->count))
			stats_tell(paths, stats, info);
		clsw_unlock(l3->cd);
	}
	kfree(stats);
}
