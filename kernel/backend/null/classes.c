// SPDX-License-Identifier: GPL-2.0
/*
 * What is particular to each class, besides clsw_classes: what can't be right, what it refers
 * to, what writing and removing it does besides. As asic/firmware's objects.
 *
 *   NHG --> NEXTHOP --> RIF --> VRF     a reference keeps its target: DELETE of
 *    ^         ^         ^ `--> VLAN    the target is IN_USE, CREATE without it
 *    `- ROUTE -'       NEIGH     ^      is DEPEND
 *         `--> VRF               `-- VLAN_MEMBER, FDB
 */
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "null.h"

/* struct_size says how much is there; what is missing is zero, what is more is ignored */
bool null_parse(struct null_exec *x, union null_body *b)
{
	const union null_body *raw = (const union null_body *)x->body;
	u32 there, count;

	memset(b, 0, sizeof(*b));
	if (x->body_len < sizeof(raw->struct_size))
		return false;
	there = le16_to_cpu(raw->struct_size);
	if (there < clsw_classes[x->cls].least || there > x->body_len)
		return false;
	memcpy(b, raw, min_t(u32, there, clsw_classes[x->cls].size));
	if (x->cls == TND_CLS_NHG) {
		count = le16_to_cpu(b->nhg.head.count);
		/* without its members it is good for a key */
		if (count <= TND_NHG_MAX_MEMBERS &&
		    there + count * sizeof(struct tnd_nhg_member) <= x->body_len)
			b->nhg.member = (struct tnd_nhg_member *)(x->body + there);
	}
	b->struct_size = cpu_to_le16(clsw_classes[x->cls].size);
	return true;
}

bool null_equal(const union null_body *a, const union null_body *b, u16 cls)
{
	if (cls != TND_CLS_NHG)
		return !memcmp(a, b, clsw_classes[cls].size);
	return !memcmp(&a->nhg.head, &b->nhg.head, sizeof(a->nhg.head)) &&
	       !memcmp(a->nhg.member, b->nhg.member,
		       le16_to_cpu(a->nhg.head.count) * sizeof(*a->nhg.member));
}

/* -------------------------------------------------------------------------
 * Normal form
 */
static bool null_unicast(const u8 *mac)
{
	return !(mac[0] & 1);
}

static bool null_port_there(const struct null_chip *n, __le16 port)
{
	u16 p = le16_to_cpu(port);

	return p && p <= n->ports;
}

static bool null_mtu_ok(__le32 mtu)
{
	return le32_to_cpu(mtu) >= 68 && le32_to_cpu(mtu) <= 65535;
}

/* True: a trap's reason is one, @fallback if it is not said */
static bool null_reason_ok(u8 *reason, u8 fallback)
{
	if (!*reason)
		*reason = fallback;
	return *reason < TND_TRAP_REASON_COUNT;
}

/* Bits behind the prefix are zero */
static bool null_masked(const struct tnd_route *r)
{
	u64 high = get_unaligned_be64(r->addr), low = get_unaligned_be64(r->addr + 8);
	u8 len = r->prefix_len;

	if (len < 64)
		return !low && !(high & (U64_MAX >> len));
	return len == 128 || !(low & (U64_MAX >> (len - 64)));
}

static u16 null_normal_route(struct tnd_route *r)
{
	if (r->family != TND_AF_INET6 && r->family != TND_AF_INET)
		return TND_ST_INVALID;
	if (r->prefix_len > (r->family == TND_AF_INET ? 32 : 128) || !null_masked(r))
		return TND_ST_INVALID;
	switch (r->action) {
	case TND_ACT_FORWARD:
		if (r->target_kind != TND_RT_NEXTHOP && r->target_kind != TND_RT_NHG)
			return TND_ST_INVALID;
		r->reason = 0;
		break;
	case TND_ACT_TRAP:
		if (!null_reason_ok(&r->reason, TND_TRAP_ROUTE))
			return TND_ST_INVALID;
		break;
	case TND_ACT_DROP:
		r->reason = 0;
		break;
	default:
		return TND_ST_INVALID;
	}
	if (r->action != TND_ACT_FORWARD) {
		r->target_kind = TND_RT_NONE;
		r->target = 0;
	}
	memset(r->reserved0, 0, sizeof(r->reserved0));
	return TND_ST_OK;
}

static u16 null_normal_nhg(struct null_chip *n, struct null_exec *x, union null_body *b)
{
	u32 count = le16_to_cpu(b->nhg.head.count), i;

	b->nhg.head.reserved0 = 0;
	if (!b->nhg.member || !count || le32_to_cpu(b->nhg.head.hash) > TND_HASH_L4)
		return TND_ST_INVALID;
	for (i = 0; i < count; i++) {
		u32 weight = le32_to_cpu(b->nhg.member[i].weight);

		if (!weight || weight > NULL_MAX_WEIGHT)
			return TND_ST_INVALID;
	}
	if (count > n->p->nhg_max_members)
		return null_full(x, NULL_P_NHG_MEMBER, count, n->p->nhg_max_members,
				 n->p->nhg_max_members, false);
	return TND_ST_OK;
}

static u16 null_normal_rif(struct null_chip *n, struct tnd_rif *r)
{
	switch (le16_to_cpu(r->kind)) {
	case TND_RIF_PORT:
		if (!null_port_there(n, r->port))
			return TND_ST_INVALID;
		r->fid = 0;
		r->vid = 0;
		break;
	case TND_RIF_FID:
		r->port = 0;
		r->vid = 0;
		break;
	case TND_RIF_PORT_VLAN:
		if (!null_port_there(n, r->port) || !r->vid || le16_to_cpu(r->vid) > NULL_MAX_VID)
			return TND_ST_INVALID;
		r->fid = 0;
		break;
	default:
		return TND_ST_INVALID;
	}
	r->reserved0 = 0;
	if (le16_to_cpu(r->rif) > NULL_MAX_RIF || !null_unicast(r->mac) || !null_mtu_ok(r->mtu))
		return TND_ST_INVALID;
	return TND_ST_OK;
}

static u16 null_normal_member(struct null_chip *n, struct tnd_vlan_member *m)
{
	u32 known = TND_MEMBER_PVID | TND_MEMBER_UNTAGGED;
	u16 vid = le16_to_cpu(m->vid);

	if (!null_port_there(n, m->port) || !vid || (vid > NULL_MAX_VID && vid != TND_VID_ANY))
		return TND_ST_INVALID;
	/* a VLAN-unaware port takes and leaves everything: its flags say so */
	m->flags = vid == TND_VID_ANY ? cpu_to_le32(known) : m->flags & cpu_to_le32(known);
	m->reserved0 = 0;
	return TND_ST_OK;
}

static u16 null_normal_fdb(struct null_chip *n, struct tnd_fdb *f)
{
	static const u8 zero[6];

	if (f->action > TND_ACT_DROP || !null_unicast(f->mac) || !memcmp(f->mac, zero,
									 sizeof(zero)) ||
	    (f->action == TND_ACT_FORWARD && !null_port_there(n, f->port)))
		return TND_ST_INVALID;
	if (f->action != TND_ACT_FORWARD)
		f->port = 0;
	f->flags &= cpu_to_le16(TND_FDB_STATIC | TND_FDB_LEARNED | TND_FDB_STICKY);
	f->reserved0 = 0;
	f->set = 0; /* it has no flow ports */
	memset(f->reserved1, 0, sizeof(f->reserved1));
	return TND_ST_OK;
}

static u16 null_normal_nexthop(struct tnd_nexthop *h)
{
	if (h->action > TND_ACT_DROP || le16_to_cpu(h->rif) > NULL_MAX_RIF || !null_unicast(h->mac))
		return TND_ST_INVALID;
	if (h->action != TND_ACT_TRAP)
		h->reason = 0;
	else if (!null_reason_ok(&h->reason, TND_TRAP_UNRESOLVED))
		return TND_ST_INVALID;
	return TND_ST_OK;
}

static u16 null_normal_neigh(struct tnd_neigh *e)
{
	if (e->action > TND_ACT_DROP || !null_unicast(e->mac))
		return TND_ST_INVALID;
	if (e->family == TND_AF_INET)
		memset(e->addr + 4, 0, sizeof(e->addr) - 4);
	else if (e->family != TND_AF_INET6)
		return TND_ST_INVALID;
	e->reserved0 = 0;
	return TND_ST_OK;
}

u16 null_normal(struct null_chip *n, struct null_exec *x, union null_body *b)
{
	u16 fid;

	switch (x->cls) {
	case TND_CLS_PORT:
		b->port.reserved0 = 0;
		/* without flow ports it would be a bridge's, in silence */
		if (b->port.flags & cpu_to_le32(TND_PORT_FLOWS))
			return TND_ST_UNSUPPORTED;
		return b->port.stp_state > TND_STP_BLOCKING || !null_mtu_ok(b->port.mtu) ||
		       !null_unicast(b->port.mac) ? TND_ST_INVALID : TND_ST_OK;
	case TND_CLS_VLAN:
		fid = le16_to_cpu(b->vlan.fid);
		b->vlan.reserved0 = 0;
		return !fid || fid > NULL_MAX_FID ? TND_ST_INVALID : TND_ST_OK;
	case TND_CLS_VLAN_MEMBER:
		return null_normal_member(n, &b->member);
	case TND_CLS_FDB:
		return null_normal_fdb(n, &b->fdb);
	case TND_CLS_VRF:
		/* no flag is defined yet: one that a driver sets would be lost in silence */
		return b->vrf.flags ? TND_ST_INVALID : TND_ST_OK;
	case TND_CLS_RIF:
		return null_normal_rif(n, &b->rif);
	case TND_CLS_NEIGH:
		return null_normal_neigh(&b->neigh);
	case TND_CLS_NEXTHOP:
		return null_normal_nexthop(&b->nexthop);
	case TND_CLS_NHG:
		return null_normal_nhg(n, x, b);
	case TND_CLS_ROUTE:
		return null_normal_route(&b->route);
	default:
		b->trap.reserved0 = 0;
		return le16_to_cpu(b->trap.trap_class) >= TND_TC_COUNT ? TND_ST_INVALID : TND_ST_OK;
	}
}

/* -------------------------------------------------------------------------
 * References
 */
static u32 null_find_vlan(struct null_chip *n, __le16 fid)
{
	union null_body b = { .vlan.fid = fid };

	return null_find(n, TND_CLS_VLAN, &b);
}

static u32 null_find_vrf(struct null_chip *n, __le16 vrf)
{
	union null_body b = { .vrf.vrf = vrf };

	return null_find(n, TND_CLS_VRF, &b);
}

static u32 null_find_rif(struct null_chip *n, __le16 rif)
{
	union null_body b = { .rif.rif = rif };

	return null_find(n, TND_CLS_RIF, &b);
}

static u32 null_find_nexthop(struct null_chip *n, __le32 id)
{
	union null_body b = { .nexthop.nexthop = id };

	return null_find(n, TND_CLS_NEXTHOP, &b);
}

static u32 null_find_target(struct null_chip *n, const struct tnd_route *r)
{
	union null_body b = {};

	if (r->target_kind == TND_RT_NEXTHOP)
		return null_find_nexthop(n, r->target);
	b.nhg.head.nhg = r->target;
	return null_find(n, TND_CLS_NHG, &b);
}

static void null_refer(struct null_chip *n, u32 i, int by)
{
	if (i != NULL_NONE)
		n->obj[i].refs += by;
}

/* Everything that an object keeps in place, and no longer */
static void null_references(struct null_chip *n, u16 cls, const union null_body *b, int by)
{
	u32 i;

	switch (cls) {
	case TND_CLS_VLAN_MEMBER:
		null_refer(n, null_find_vlan(n, b->member.fid), by);
		break;
	case TND_CLS_FDB:
		if (b->fdb.flags & cpu_to_le16(TND_FDB_LEARNED))
			n->fid_learned[le16_to_cpu(b->fdb.fid)] += by;
		else
			null_refer(n, null_find_vlan(n, b->fdb.fid), by);
		break;
	case TND_CLS_RIF:
		null_refer(n, null_find_vrf(n, b->rif.vrf), by);
		if (b->rif.kind == cpu_to_le16(TND_RIF_FID))
			null_refer(n, null_find_vlan(n, b->rif.fid), by);
		break;
	case TND_CLS_NEIGH:
		null_refer(n, null_find_rif(n, b->neigh.rif), by);
		break;
	case TND_CLS_NEXTHOP:
		/* a trap may stand for a way out that the chip has not */
		if (b->nexthop.action == TND_ACT_FORWARD)
			null_refer(n, null_find_rif(n, b->nexthop.rif), by);
		break;
	case TND_CLS_NHG:
		for (i = 0; i < le16_to_cpu(b->nhg.head.count); i++)
			null_refer(n, null_find_nexthop(n, b->nhg.member[i].nexthop), by);
		break;
	case TND_CLS_ROUTE:
		null_refer(n, null_find_vrf(n, b->route.vrf), by);
		if (b->route.target_kind != TND_RT_NONE)
			null_refer(n, null_find_target(n, &b->route), by);
		break;
	}
}

static u32 *null_rif_at(struct null_chip *n, const struct tnd_rif *r)
{
	if (r->kind == cpu_to_le16(TND_RIF_PORT))
		return &n->port[le16_to_cpu(r->port)].rif;
	if (r->kind == cpu_to_le16(TND_RIF_PORT_VLAN))
		return &n->port[le16_to_cpu(r->port)].vid_rif[le16_to_cpu(r->vid)];
	return &n->fid_rif[min_t(u16, le16_to_cpu(r->fid), NULL_MAX_FID)];
}

static u16 null_depends_rif(struct null_chip *n, const struct tnd_rif *r)
{
	u32 there;

	if (null_find_vrf(n, r->vrf) == NULL_NONE)
		return TND_ST_DEPEND;
	if (r->kind == cpu_to_le16(TND_RIF_FID) && null_find_vlan(n, r->fid) == NULL_NONE)
		return TND_ST_DEPEND;
	there = *null_rif_at(n, r);
	return there != NULL_NONE && n->obj[there].b.rif.rif != r->rif ? TND_ST_EXISTS : TND_ST_OK;
}

/* A port is VLAN-aware or not, and has one VID in a domain: another entry must go first */
static u16 null_depends_member(struct null_chip *n, const union null_body *b)
{
	const struct null_port *p = &n->port[le16_to_cpu(b->member.port)];
	u32 i = null_find(n, TND_CLS_VLAN_MEMBER, b), others = p->members - (i != NULL_NONE);
	bool any = b->member.vid == cpu_to_le16(TND_VID_ANY);

	if (null_find_vlan(n, b->member.fid) == NULL_NONE)
		return TND_ST_DEPEND;
	if (others && (any || p->unaware))
		return TND_ST_EXISTS;
	if (i != NULL_NONE && n->obj[i].b.member.fid == b->member.fid)
		return TND_ST_OK;
	return test_bit(le16_to_cpu(b->member.fid), p->fids) ? TND_ST_EXISTS : TND_ST_OK;
}

u16 null_depends(struct null_chip *n, struct null_exec *x, const union null_body *b)
{
	u32 i;

	switch (x->cls) {
	case TND_CLS_VLAN_MEMBER:
		return null_depends_member(n, b);
	case TND_CLS_FDB:
		return null_find_vlan(n, b->fdb.fid) == NULL_NONE ? TND_ST_DEPEND : TND_ST_OK;
	case TND_CLS_RIF:
		return null_depends_rif(n, &b->rif);
	case TND_CLS_NEIGH:
		return null_find_rif(n, b->neigh.rif) == NULL_NONE ? TND_ST_DEPEND : TND_ST_OK;
	case TND_CLS_NEXTHOP:
		return b->nexthop.action == TND_ACT_FORWARD &&
		       null_find_rif(n, b->nexthop.rif) == NULL_NONE ? TND_ST_DEPEND : TND_ST_OK;
	case TND_CLS_NHG:
		for (i = 0; i < le16_to_cpu(b->nhg.head.count); i++) {
			if (null_find_nexthop(n, b->nhg.member[i].nexthop) == NULL_NONE)
				return TND_ST_DEPEND;
		}
		return TND_ST_OK;
	case TND_CLS_ROUTE:
		x->ref[0] = null_find_vrf(n, b->route.vrf);
		x->ref[1] = b->route.target_kind == TND_RT_NONE ? NULL_NONE :
			    null_find_target(n, &b->route);
		if (b->route.target_kind != TND_RT_NONE && x->ref[1] == NULL_NONE)
			return TND_ST_DEPEND;
		return x->ref[0] == NULL_NONE ? TND_ST_DEPEND : TND_ST_OK;
	}
	return TND_ST_OK;
}

/* -------------------------------------------------------------------------
 * Writing
 */

/* Slots of a new object; those of the exact-match memory come with its place */
static u16 null_take_refs(struct null_chip *n, struct null_exec *x, const union null_body *b)
{
	bool v6 = b->route.family == TND_AF_INET6;
	u16 st;

	switch (x->cls) {
	case TND_CLS_ROUTE:
		return null_take(n, x, v6 ? NULL_P_LPM6 : NULL_P_LPM4,
				 v6 ? n->p->lpm6_cost : n->p->lpm4_cost);
	case TND_CLS_VLAN:
		return null_take(n, x, NULL_P_VLAN, 1);
	case TND_CLS_VLAN_MEMBER:
		return null_take(n, x, NULL_P_MEMBER, 1);
	case TND_CLS_VRF:
		return null_take(n, x, NULL_P_VRF, 1);
	case TND_CLS_RIF:
		return null_take(n, x, NULL_P_RIF, 1);
	case TND_CLS_NEXTHOP:
		return null_take(n, x, NULL_P_NEXTHOP, 1);
	case TND_CLS_NHG:
		st = null_take(n, x, NULL_P_NHG, 1);
		if (st)
			return st;
		st = null_take(n, x, NULL_P_NHG_MEMBER, le16_to_cpu(b->nhg.head.count));
		if (st)
			null_untake(n, x, NULL_P_NHG, 1);
		return st;
	}
	return TND_ST_OK;
}

static void null_give_refs(struct null_chip *n, struct null_exec *x, const union null_body *b)
{
	bool v6 = b->route.family == TND_AF_INET6;

	switch (x->cls) {
	case TND_CLS_ROUTE:
		null_give(n, x, v6 ? NULL_P_LPM6 : NULL_P_LPM4,
			  v6 ? n->p->lpm6_cost : n->p->lpm4_cost);
		break;
	case TND_CLS_VLAN:
		null_give(n, x, NULL_P_VLAN, 1);
		break;
	case TND_CLS_VLAN_MEMBER:
		null_give(n, x, NULL_P_MEMBER, 1);
		break;
	case TND_CLS_VRF:
		null_give(n, x, NULL_P_VRF, 1);
		break;
	case TND_CLS_RIF:
		null_give(n, x, NULL_P_RIF, 1);
		break;
	case TND_CLS_NEXTHOP:
		null_give(n, x, NULL_P_NEXTHOP, 1);
		break;
	case TND_CLS_NHG:
		null_give(n, x, NULL_P_NHG, 1);
		null_give(n, x, NULL_P_NHG_MEMBER, le16_to_cpu(b->nhg.head.count));
		break;
	}
}

/* What else a place in the chip knows of an object that it has, or had */
static void null_note_write(struct null_chip *n, u16 cls, const union null_body *b, u32 i,
			    bool there)
{
	struct null_port *p;

	if (cls == TND_CLS_RIF) {
		*null_rif_at(n, &b->rif) = there ? i : NULL_NONE;
	} else if (cls == TND_CLS_VLAN_MEMBER) {
		p = &n->port[le16_to_cpu(b->member.port)];
		p->members += there ? 1 : -1;
		if (b->member.vid == cpu_to_le16(TND_VID_ANY))
			p->unaware = there;
		__assign_bit(le16_to_cpu(b->member.fid), p->fids, there);
	}
}

static struct tnd_nhg_member *null_copy_members(const union null_body *b)
{
	return kmemdup(b->nhg.member, le16_to_cpu(b->nhg.head.count) * sizeof(*b->nhg.member),
		       GFP_ATOMIC);
}

static u16 null_write_new(struct null_chip *n, struct null_exec *x, const union null_body *b)
{
	union null_body own = *b;
	struct bank_key key;
	u16 st;
	u32 i;

	if (x->cls == TND_CLS_NHG) {
		own.nhg.member = null_copy_members(b);
		if (!own.nhg.member)
			return TND_ST_FAULT;
	}
	st = null_take_refs(n, x, b);
	if (st)
		goto free_members;
	i = null_add(n, null_run_of(x->cls, b->route.family), x->cls, &own);
	if (i == NULL_NONE) {
		null_give_refs(n, x, b);
		st = TND_ST_FAULT;
		goto free_members;
	}
	if (x->cls == TND_CLS_FDB || x->cls == TND_CLS_NEIGH) {
		st = TND_ST_DEPEND;
		if (null_bank_key(n, x->cls, b, &key))
			st = null_take_exact(n, x, &key, i);
		if (st) {
			null_del(n, i);
			return st;
		}
	}
	if (x->cls == TND_CLS_ROUTE) {
		/* found already: the one write that there are a million of */
		null_refer(n, x->ref[0], 1);
		null_refer(n, x->ref[1], 1);
	} else {
		null_references(n, x->cls, &own, 1);
		null_note_write(n, x->cls, &own, i, true);
	}
	return TND_ST_OK;
free_members:
	if (x->cls == TND_CLS_NHG)
		kfree(own.nhg.member);
	return st;
}

/* A place known from last time is still what @cls and @b say; else NULL_NONE */
static u32 null_same_as_last(struct null_chip *n, u32 i, u16 cls, const union null_body *b)
{
	return n->obj[i].cls == cls && null_same_key(cls, &n->obj[i].b, b) ? i : NULL_NONE;
}

static bool null_plain_route(const struct tnd_cmd *cmd, const struct tnd_route *r)
{
	return cmd->op == cpu_to_le16(TND_OP_CREATE) &&
	       cmd->cls == cpu_to_le16(TND_CLS_ROUTE) &&
	       cmd->body_size == cpu_to_le32(sizeof(*r)) &&
	       !(cmd->flags & ~cpu_to_le32(TND_CMD_LEASE)) &&
	       r->struct_size == cpu_to_le16(sizeof(*r)) && r->action == TND_ACT_FORWARD &&
	       !(r->reason | r->reserved0[0] | r->reserved0[1] | r->reserved0[2]) &&
	       (r->target_kind == TND_RT_NEXTHOP || r->target_kind == TND_RT_NHG) &&
	       ((r->family == TND_AF_INET && r->prefix_len <= 32) ||
		(r->family == TND_AF_INET6 && r->prefix_len <= 128)) && null_masked(r);
}

/*
 * As null_parse(), null_normal(), null_depends(), null_take() and null_write()
 * would do it, for the one write that there are a million of: a new route in
 * its normal form that forwards, with all that it needs. Whatever else it is,
 * nothing has changed and it goes the long way.
 */
bool null_quick_route(struct null_chip *n, const struct tnd_cmd *cmd, const u8 *body,
		      struct tnd_cpl *cpl)
{
	const union null_body *b = (const union null_body *)body;
	const struct tnd_route *r = &b->route;
	u32 i, vrf, target, slots, *head;
	struct null_lease *l = NULL;
	union null_body own, probe;
	struct null_pool *p;
	bool v6;
	u16 cls;
	u8 pool;

	if (!null_plain_route(cmd, r))
		return false;
	v6 = r->family == TND_AF_INET6;
	head = null_chain(n, TND_CLS_ROUTE, b);
	for (i = *head; i != NULL_NONE; i = n->obj[i].next) {
		if (n->obj[i].cls == TND_CLS_ROUTE && null_same_key(TND_CLS_ROUTE, &n->obj[i].b, b))
			return false;
	}
	probe.vrf.vrf = r->vrf;
	vrf = null_same_as_last(n, n->last_vrf, TND_CLS_VRF, &probe);
	cls = r->target_kind == TND_RT_NEXTHOP ? TND_CLS_NEXTHOP : TND_CLS_NHG;
	if (cls == TND_CLS_NEXTHOP)
		probe.nexthop.nexthop = r->target;
	else
		probe.nhg.head.nhg = r->target;
	target = null_same_as_last(n, n->last_target, cls, &probe);
	if (vrf == NULL_NONE)
		vrf = null_find_vrf(n, r->vrf);
	if (target == NULL_NONE)
		target = null_find_target(n, r);
	if (vrf == NULL_NONE || target == NULL_NONE)
		return false;
	n->last_vrf = vrf;
	n->last_target = target;
	pool = v6 ? NULL_P_LPM6 : NULL_P_LPM4;
	slots = v6 ? n->p->lpm6_cost : n->p->lpm4_cost;
	p = &n->pool[pool];
	if (cmd->flags) {
		l = null_lease_of(n, le32_to_cpu(cmd->lease));
		if (!l || l->left[pool] < slots)
			return false;
	} else if (p->free < slots) {
		return false;
	}
	own.route = *r;
	i = null_add_at(n, v6 ? NULL_R_ROUTE6 : NULL_R_ROUTE4, TND_CLS_ROUTE, &own, head);
	if (i == NULL_NONE)
		return false;
	if (l) {
		l->left[pool] -= slots;
		p->committed -= slots;
	} else {
		p->free -= slots;
	}
	p->used += slots;
	p->high = max(p->high, p->used + p->in_flight);
	n->obj[vrf].refs++;
	n->obj[target].refs++;
	cpl->delta[0].pool = cpu_to_le16(pool);
	cpl->delta[0].slots = cpu_to_le32(slots);
	cpl->delta_count = cpu_to_le16(1);
	return true;
}

static u16 null_write_over(struct null_chip *n, struct null_exec *x, u32 i,
			   const union null_body *b)
{
	struct null_obj *o = &n->obj[i];
	union null_body own = *b, old = o->b;
	u32 had, has;
	u16 st;

	/* hosts are keyed by VRF: a RIF that has some can't change it under them */
	if (x->cls == TND_CLS_RIF && old.rif.vrf != b->rif.vrf && o->refs)
		return TND_ST_IN_USE;
	if (x->cls == TND_CLS_NHG) {
		had = le16_to_cpu(old.nhg.head.count);
		has = le16_to_cpu(b->nhg.head.count);
		own.nhg.member = null_copy_members(b);
		if (!own.nhg.member)
			return TND_ST_FAULT;
		st = has > had ? null_take(n, x, NULL_P_NHG_MEMBER, has - had) : TND_ST_OK;
		if (st) {
			kfree(own.nhg.member);
			return st;
		}
		if (had > has)
			null_give(n, x, NULL_P_NHG_MEMBER, had - has);
	}
	null_references(n, x->cls, &own, 1);
	null_references(n, x->cls, &old, -1);
	null_note_write(n, x->cls, &old, i, false);
	null_note_write(n, x->cls, &own, i, true);
	o->b = own;
	if (x->cls == TND_CLS_NHG)
		kfree(old.nhg.member);
	return TND_ST_OK;
}

u16 null_write(struct null_chip *n, struct null_exec *x, u32 i, const union null_body *b)
{
	return i == NULL_NONE ? null_write_new(n, x, b) : null_write_over(n, x, i, b);
}

/* -------------------------------------------------------------------------
 * Removing, trapping
 */
bool null_in_use(struct null_chip *n, u32 i)
{
	const struct null_obj *o = &n->obj[i];

	if (clsw_classes[o->cls].fixed || (o->cls == TND_CLS_VRF && !o->b.vrf.vrf))
		return true;
	return o->refs;
}

/* Learned addresses go with their domain */
static void null_remove_learned(struct null_chip *n, struct null_exec *x, u16 fid)
{
	struct null_range *r = &n->run[NULL_R_EXACT];
	u32 i;

	for (i = r->first; i < r->fresh && n->fid_learned[fid]; i++) {
		if (n->obj[i].cls == TND_CLS_FDB && le16_to_cpu(n->obj[i].b.fdb.fid) == fid)
			null_remove(n, x, i);
	}
}

void null_remove(struct null_chip *n, struct null_exec *x, u32 i)
{
	struct null_obj *o = &n->obj[i];
	u16 cls = x->cls;
	struct bank_key key;

	x->cls = o->cls;
	if (o->cls == TND_CLS_VLAN)
		null_remove_learned(n, x, le16_to_cpu(o->b.vlan.fid));
	x->cls = o->cls;
	if ((o->cls == TND_CLS_FDB || o->cls == TND_CLS_NEIGH) &&
	    null_bank_key(n, o->cls, &o->b, &key))
		null_give_exact(n, x, &key);
	null_give_refs(n, x, &o->b);
	null_references(n, o->cls, &o->b, -1);
	null_note_write(n, o->cls, &o->b, i, false);
	null_del(n, i);
	x->cls = cls;
}

/* To the CPU, in place: needs no room */
u16 null_trapped(u16 cls, const union null_body *old, const union null_body *asked,
		 union null_body *out)
{
	*out = *old;
	switch (cls) {
	case TND_CLS_ROUTE:
		out->route.action = TND_ACT_TRAP;
		out->route.reason = asked->route.reason;
		if (!out->route.reason || out->route.reason >= TND_TRAP_REASON_COUNT)
			out->route.reason = TND_TRAP_ROUTE;
		out->route.target_kind = TND_RT_NONE;
		out->route.target = 0;
		return TND_ST_OK;
	case TND_CLS_NEIGH:
		out->neigh.action = TND_ACT_TRAP;
		return TND_ST_OK;
	case TND_CLS_FDB:
		out->fdb.action = TND_ACT_TRAP;
		out->fdb.port = 0;
		return TND_ST_OK;
	case TND_CLS_NEXTHOP:
		out->nexthop.action = TND_ACT_TRAP;
		out->nexthop.reason = asked->nexthop.reason;
		if (!out->nexthop.reason || out->nexthop.reason >= TND_TRAP_REASON_COUNT)
			out->nexthop.reason = TND_TRAP_UNRESOLVED;
		return TND_ST_OK;
	}
	return TND_ST_UNSUPPORTED;
}
