// SPDX-License-Identifier: GPL-2.0
/*
 * Reading: QUERY, DUMP by cursor, ACTIVITY, SNAPSHOT. A cursor is a place in
 * null_chip.obj: good whatever comes and goes in between. A call ends when the
 * output is full or after NULL_SCAN places; cursor 0 in the completion is the end.
 */
#include "null.h"

/* False: no room, nothing written */
static bool null_dump_put(struct null_exec *x, const void *data, u32 len)
{
	if (x->room - x->len < len)
		return false;
	memcpy(x->out + x->len, data, len);
	x->len += len;
	return true;
}

static bool null_dump_object(struct null_exec *x, const struct null_obj *o)
{
	u32 before = x->len, members;

	if (!null_dump_put(x, &o->b, clsw_classes[o->cls].size))
		return false;
	if (o->cls == TND_CLS_NHG) {
		members = le16_to_cpu(o->b.nhg.head.count) * sizeof(*o->b.nhg.member);
		if (!null_dump_put(x, o->b.nhg.member, members)) {
			x->len = before;
			return false;
		}
	}
	x->records++;
	return true;
}

u16 null_query(struct null_chip *n, struct null_exec *x, u32 i)
{
	return null_dump_object(x, &n->obj[i]) ? TND_ST_OK : TND_ST_NO_OUTPUT;
}

/* The cursor behind what was written; NULL_NONE: not even one record fits */
static u32 null_dump_run(struct null_exec *x, struct null_chip *n, enum null_run run, u32 from)
{
	const struct null_range *r = &n->run[run];
	u32 i = max(from, r->first), end = min(r->fresh, i + NULL_SCAN);

	for (; i < end; i++) {
		if (n->obj[i].cls == x->cls && !null_dump_object(x, &n->obj[i]))
			return x->records ? i : NULL_NONE;
	}
	return i < r->fresh ? i : 0;
}

void null_geometry(const struct null_chip *n, struct tnd_geometry *g)
{
	const struct null_profile *p = n->p;

	*g = (struct tnd_geometry){
		.struct_size = cpu_to_le16(sizeof(*g)),
		.exact_pool = cpu_to_le16(NULL_P_EXACT),
		.hash = cpu_to_le32(TND_EXACT_HASH_MIX64),
		/* these four as asic/ has them */
		.seed = cpu_to_le64(0x74616e64656dULL),
		.max_depth = cpu_to_le32(3),
		.search_budget = cpu_to_le32(768),
		.max_moves = cpu_to_le32(p->max_moves),
		.banks = cpu_to_le32(p->banks),
		.buckets_per_bank = cpu_to_le32(p->buckets_per_bank),
		.slots_per_bucket = cpu_to_le32(p->slots_per_bucket),
		.stash = cpu_to_le32(p->stash),
		.width_mac = p->width_mac,
		.width_host4 = p->width_host4,
		.width_host6 = p->width_host6,
		.nhg_member_pool = cpu_to_le16(NULL_P_NHG_MEMBER),
		.nhg_max_members = cpu_to_le32(p->nhg_max_members),
	};
}

static u32 null_dump_costs(struct null_exec *x, struct null_chip *n, u32 from)
{
	struct tnd_class_cost row;
	u32 i;

	for (i = from; i < null_cost_rows(); i++) {
		null_cost_row(n, i, &row);
		if (!null_dump_put(x, &row, sizeof(row)))
			return x->records ? i : NULL_NONE;
		x->records++;
	}
	return 0;
}

u16 null_dump(struct null_chip *n, struct null_exec *x)
{
	struct tnd_geometry g;
	u32 next, from;

	if (le64_to_cpu(x->cmd->arg) > U32_MAX)
		return TND_ST_INVALID;
	from = le64_to_cpu(x->cmd->arg);
	if (x->cls == TND_CLS_COST) {
		next = null_dump_costs(x, n, from);
	} else if (x->cls == TND_CLS_GEOMETRY) {
		null_geometry(n, &g);
		next = 0;
		if (!from && null_dump_put(x, &g, sizeof(g)))
			x->records = 1;
		else if (!from)
			next = NULL_NONE;
	} else if (x->cls == TND_CLS_ROUTE) {
		next = 0;
		if (from < n->run[NULL_R_ROUTE4].end)
			next = null_dump_run(x, n, NULL_R_ROUTE4, from);
		/* the other family follows; its first place is a cursor too */
		if (!next && from < n->run[NULL_R_ROUTE6].first && x->records)
			next = n->run[NULL_R_ROUTE6].first;
		else if (!next)
			next = null_dump_run(x, n, NULL_R_ROUTE6, from);
	} else if (x->cls >= TND_CLS_PORT && x->cls <= TND_CLS_TRAP) {
		next = null_dump_run(x, n, null_run_of(x->cls, 0), from);
	} else {
		return TND_ST_UNSUPPORTED;
	}
	if (next == NULL_NONE)
		return TND_ST_NO_OUTPUT;
	x->cpl->result = cpu_to_le64(next);
	return TND_ST_OK;
}

/* No packets, no activity */
u16 null_activity(struct null_chip *n, struct null_exec *x)
{
	switch (x->cls) {
	case TND_CLS_FDB:
	case TND_CLS_NEIGH:
	case TND_CLS_NEXTHOP:
	case TND_CLS_ROUTE:
		return TND_ST_OK;
	}
	return TND_ST_UNSUPPORTED;
}

u16 null_snapshot(struct null_chip *n, struct null_exec *x)
{
	struct tnd_pool row;
	u32 i;

	for (i = 0; i < NULL_POOLS; i++) {
		null_pool_row(n, i, &row);
		if (!null_dump_put(x, &row, sizeof(row)))
			return TND_ST_NO_OUTPUT;
		x->records++;
	}
	return TND_ST_OK;
}
