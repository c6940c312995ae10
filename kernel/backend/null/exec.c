// SPDX-License-Identifier: GPL-2.0
/* The command processor: one command in, one completion out */
#include "null.h"

/* Fills in the completion's numbers of a full pool */
u16 null_full(struct null_exec *x, u8 pool, u32 needed, u32 free, u32 size, bool bucket)
{
	x->cpl->table = cpu_to_le16(pool);
	x->cpl->needed = cpu_to_le32(needed);
	x->cpl->free = cpu_to_le32(free);
	x->cpl->size = cpu_to_le32(size);
	return bucket ? TND_ST_BUCKET_FULL : TND_ST_TABLE_FULL;
}

static u16 null_create(struct null_chip *n, struct null_exec *x, union null_body *b, u32 i)
{
	u16 st;

	st = null_normal(n, x, b);
	if (st)
		return st;
	if (i != NULL_NONE) {
		const union null_body *old = &n->obj[i].b;

		if (null_equal(old, b, x->cls))
			goto confirm;
		/* a station that moved while no driver was there to see it stays as it is */
		if (x->cls == TND_CLS_FDB && old->fdb.flags & cpu_to_le16(TND_FDB_LEARNED)) {
			if (n->resync && !(b->fdb.flags & cpu_to_le16(TND_FDB_STATIC)) &&
			    b->fdb.action == old->fdb.action)
				goto confirm;
		} else {
			return TND_ST_EXISTS;
		}
	} else if (clsw_classes[x->cls].fixed) {
		return TND_ST_UNSUPPORTED;
	}
	st = null_depends(n, x, b);
	if (!st)
		st = null_write(n, x, i, b);
	if (st)
		return st;
	if (i == NULL_NONE)
		return TND_ST_OK;
confirm:
	n->obj[i].gen = n->gen;
	return TND_ST_OK;
}

static u16 null_update(struct null_chip *n, struct null_exec *x, union null_body *b, u32 i)
{
	u16 st;

	if (i == NULL_NONE)
		return TND_ST_NOENT;
	st = null_normal(n, x, b);
	if (st)
		return st;
	if (!null_equal(&n->obj[i].b, b, x->cls)) {
		st = null_depends(n, x, b);
		if (!st)
			st = null_write(n, x, i, b);
		if (st)
			return st;
	}
	n->obj[i].gen = n->gen;
	return TND_ST_OK;
}

static u16 null_set_trap(struct null_chip *n, struct null_exec *x, const union null_body *asked,
			 u32 i)
{
	union null_body b;
	u16 st;

	if (i == NULL_NONE)
		return TND_ST_NOENT;
	st = null_trapped(x->cls, &n->obj[i].b, asked, &b);
	if (!st)
		st = null_write(n, x, i, &b);
	if (st)
		return st;
	n->obj[i].gen = n->gen;
	return TND_ST_OK;
}

static u16 null_operate(struct null_chip *n, struct null_exec *x)
{
	union null_body b;
	u32 i;

	if (!null_parse(x, &b))
		return TND_ST_INVALID;
	i = null_find(n, x->cls, &b);
	switch (x->op) {
	case TND_OP_CREATE:
		return null_create(n, x, &b, i);
	case TND_OP_UPDATE:
		return null_update(n, x, &b, i);
	case TND_OP_SET_TRAP:
		return null_set_trap(n, x, &b, i);
	case TND_OP_QUERY:
		return i == NULL_NONE ? TND_ST_NOENT : null_query(n, x, i);
	}
	if (clsw_classes[x->cls].fixed)
		return TND_ST_UNSUPPORTED;
	if (i == NULL_NONE)
		return x->cmd->flags & cpu_to_le32(TND_CMD_IDEMPOTENT) ? TND_ST_OK : TND_ST_NOENT;
	if (null_in_use(n, i))
		return TND_ST_IN_USE;
	null_remove(n, x, i);
	return TND_ST_OK;
}

/* -------------------------------------------------------------------------
 * Warm attach
 */

/* What goes first: who refers, then who is referred to */
static const u8 sweep_order[] = {
	NULL_R_ROUTE4, NULL_R_ROUTE6, NULL_R_EXACT, NULL_R_NHG, NULL_R_NEXTHOP, NULL_R_RIF,
	NULL_R_MEMBER, NULL_R_VLAN, NULL_R_VRF,
};

static u16 null_begin_resync(struct null_chip *n)
{
	n->gen++;
	n->resync = true;
	n->sweep_run = 0;
	n->sweep_at = 0;
	n->swept = 0;
	memset(n->sweep_delta, 0, sizeof(n->sweep_delta));
	return TND_ST_OK;
}

/* False: there is more */
static bool null_sweep(struct null_chip *n, struct null_exec *x)
{
	u32 budget = NULL_SLICE, i;

	while (n->sweep_run < ARRAY_SIZE(sweep_order)) {
		struct null_range *r = &n->run[sweep_order[n->sweep_run]];

		while (n->sweep_at < r->fresh - r->first) {
			struct null_obj *o;

			if (!budget--)
				goto more;
			i = r->first + n->sweep_at++;
			o = &n->obj[i];
			if (!o->cls || o->gen == n->gen || null_in_use(n, i))
				continue;
			if (o->cls == TND_CLS_FDB && o->b.fdb.flags & cpu_to_le16(TND_FDB_LEARNED))
				continue;
			x->cls = o->cls;
			null_remove(n, x, i);
			n->swept++;
		}
		n->sweep_run++;
		n->sweep_at = 0;
	}
	n->resync = false;
more:
	for (i = 0; i < NULL_POOLS; i++) {
		n->sweep_delta[i] += x->delta[i];
		x->delta[i] = n->resync ? 0 : n->sweep_delta[i];
	}
	x->changed = BIT(NULL_POOLS) - 1;
	return !n->resync;
}

/* ------------------------------------------------------------------------- */

static u16 null_dispatch(struct null_chip *n, struct null_exec *x)
{
	u16 st;

	if (x->cmd->flags & cpu_to_le32(TND_CMD_WAIT))
		return TND_ST_UNSUPPORTED;
	if (x->cmd->flags & cpu_to_le32(TND_CMD_LEASE)) {
		x->lease = null_lease_of(n, le32_to_cpu(x->cmd->lease));
		if (!x->lease)
			return TND_ST_LEASE;
	}
	switch (x->op) {
	case TND_OP_NOP:
		return TND_ST_OK;
	case TND_OP_CREATE:
	case TND_OP_UPDATE:
	case TND_OP_DELETE:
	case TND_OP_SET_TRAP:
	case TND_OP_QUERY:
		if (x->cls < TND_CLS_PORT || x->cls > TND_CLS_TRAP)
			return TND_ST_UNSUPPORTED;
		return null_operate(n, x);
	case TND_OP_DUMP:
		return null_dump(n, x);
	case TND_OP_ACTIVITY:
		return null_activity(n, x);
	case TND_OP_LEASE:
		return null_lease_grant(n, x);
	case TND_OP_RELEASE:
		return x->cmd->lease ? null_lease_drop(n, le32_to_cpu(x->cmd->lease)) :
				       null_lease_drop_of(n, le64_to_cpu(x->cmd->arg));
	case TND_OP_BEGIN_RESYNC:
		return null_begin_resync(n);
	case TND_OP_END_RESYNC:
		if (!n->resync)
			return TND_ST_INVALID;
		st = null_sweep(n, x) ? TND_ST_OK : TND_ST_BUSY;
		x->cpl->result = cpu_to_le64(n->swept);
		return st;
	case TND_OP_SNAPSHOT:
		return null_snapshot(n, x);
	}
	return TND_ST_UNSUPPORTED;
}

static u16 null_injected(struct null_chip *n, struct null_exec *x, u8 fault)
{
	u32 slots[2] = {};
	u8 pool[2] = {};

	if (fault == NULL_FAULT_FULL &&
	    null_needs(n, x->cls, x->body_len > 4 ? x->body[4] : 0, pool, slots)) {
		struct tnd_pool row;

		null_pool_row(n, pool[0], &row);
		return null_full(x, pool[0], slots[0], le32_to_cpu(row.free),
				 le32_to_cpu(row.size), false);
	}
	return TND_ST_FAULT;
}

bool null_execute(struct null_chip *n, const struct tnd_cmd *cmd, const u8 *body, u8 *out, u32 room,
		  u8 fault, struct tnd_cpl *cpl)
{
	struct null_exec x;
	u32 deltas = 0, i;
	unsigned long changed;
	u16 st;

	memset(cpl, 0, sizeof(*cpl));
	cpl->op = cmd->op;
	cpl->cls = cmd->cls;
	cpl->cookie = cmd->cookie;
	cpl->seq = cmd->seq;
	cpl->epoch = cpu_to_le32(n->epoch);
	if (!fault && null_quick_route(n, cmd, body, cpl))
		return true;
	x = (struct null_exec){
		.cmd = cmd,
		.body = body,
		.body_len = le32_to_cpu(cmd->body_size),
		.op = le16_to_cpu(cmd->op),
		.cls = le16_to_cpu(cmd->cls),
		.out = out,
		.room = room,
		.cpl = cpl,
	};
	switch (fault) {
	case NULL_FAULT_FAIL:
	case NULL_FAULT_FULL:
	case NULL_FAULT_RESET:
	case NULL_FAULT_VANISH:
		st = null_injected(n, &x, fault);
		break;
	default:
		st = null_dispatch(n, &x);
	}
	/* no status of a command, so it can stand for: the sweep goes on */
	if (st == TND_ST_BUSY)
		return false;
	cpl->status = cpu_to_le16(st);
	if (st) {
		cpl->result = 0;
		return true;
	}
	for (changed = x.changed; changed; changed &= changed - 1) {
		i = __ffs(changed);
		if (!x.delta[i] || deltas == TND_MAX_DELTAS)
			continue;
		cpl->delta[deltas].pool = cpu_to_le16(i);
		cpl->delta[deltas++].slots = cpu_to_le32(x.delta[i]);
	}
	cpl->delta_count = cpu_to_le16(deltas);
	cpl->out_len = cpu_to_le32(x.len);
	cpl->out_count = cpu_to_le32(x.records);
	return true;
}
