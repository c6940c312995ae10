// SPDX-License-Identifier: GPL-2.0
/*
 * Where objects are: one array, a run of places per table, one hash over all
 * keys but those of the exact-match memory, which finds its own.
 */
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "null.h"

#define VID_RIFS	((NULL_MAX_VID + 1) * sizeof(u32))

enum null_run null_run_of(u16 cls, u8 family)
{
	switch (cls) {
	case TND_CLS_PORT:
		return NULL_R_PORT;
	case TND_CLS_TRAP:
		return NULL_R_TRAP;
	case TND_CLS_VLAN:
		return NULL_R_VLAN;
	case TND_CLS_VLAN_MEMBER:
		return NULL_R_MEMBER;
	case TND_CLS_FDB:
	case TND_CLS_NEIGH:
		return NULL_R_EXACT;
	case TND_CLS_VRF:
		return NULL_R_VRF;
	case TND_CLS_RIF:
		return NULL_R_RIF;
	case TND_CLS_NEXTHOP:
		return NULL_R_NEXTHOP;
	case TND_CLS_NHG:
		return NULL_R_NHG;
	default:
		return family == TND_AF_INET6 ? NULL_R_ROUTE6 : NULL_R_ROUTE4;
	}
}

static u32 null_small_key(u16 cls, const union null_body *b)
{
	switch (cls) {
	case TND_CLS_PORT:
		return le16_to_cpu(b->port.port);
	case TND_CLS_TRAP:
		return le16_to_cpu(b->trap.reason);
	case TND_CLS_VLAN:
		return le16_to_cpu(b->vlan.fid);
	case TND_CLS_VLAN_MEMBER:
		return (u32)le16_to_cpu(b->member.port) << 16 | le16_to_cpu(b->member.vid);
	case TND_CLS_VRF:
		return le16_to_cpu(b->vrf.vrf);
	case TND_CLS_RIF:
		return le16_to_cpu(b->rif.rif);
	case TND_CLS_NEXTHOP:
		return le32_to_cpu(b->nexthop.nexthop);
	default:
		return le32_to_cpu(b->nhg.head.nhg);
	}
}

u64 null_hash(u16 cls, const union null_body *b)
{
	u64 h;

	if (cls != TND_CLS_ROUTE)
		return ((u64)cls << 32 | null_small_key(cls, b)) * GOLDEN_RATIO_64;
	/* words 2 and 3 are the address */
	h = ((u64)le16_to_cpu(b->route.vrf) << 16 | b->route.family << 8 | b->route.prefix_len) *
	    0x9fb21c651e98df25ULL;
	h = (h ^ b->word[2]) * GOLDEN_RATIO_64;
	return ((h ^ h >> 32) ^ b->word[3]) * GOLDEN_RATIO_64;
}

bool null_same_key(u16 cls, const union null_body *a, const union null_body *b)
{
	if (cls != TND_CLS_ROUTE)
		return null_small_key(cls, a) == null_small_key(cls, b);
	return a->word[2] == b->word[2] && a->word[3] == b->word[3] &&
	       a->route.vrf == b->route.vrf && a->route.family == b->route.family &&
	       a->route.prefix_len == b->route.prefix_len;
}

u32 *null_chain(struct null_chip *n, u16 cls, const union null_body *b)
{
	return &n->hash[null_hash(cls, b) >> (64 - n->hash_bits)];
}

/* Of a neighbour: needs its RIF, for the VRF */
bool null_bank_key(struct null_chip *n, u16 cls, const union null_body *b, struct bank_key *key)
{
	union null_body rif = { .rif.rif = b->neigh.rif };
	u16 vrf;
	u32 i;

	if (cls == TND_CLS_FDB) {
		bank_key_mac(key, le16_to_cpu(b->fdb.fid), b->fdb.mac);
		return le16_to_cpu(b->fdb.fid) <= NULL_MAX_FID;
	}
	i = null_find(n, TND_CLS_RIF, &rif);
	if (i == NULL_NONE)
		return false;
	vrf = le16_to_cpu(n->obj[i].b.rif.vrf);
	if (b->neigh.family == TND_AF_INET)
		bank_key_host4(key, vrf, b->neigh.addr);
	else if (b->neigh.family == TND_AF_INET6)
		bank_key_host6(key, vrf, b->neigh.addr);
	else
		return false;
	return true;
}

u32 null_find(struct null_chip *n, u16 cls, const union null_body *b)
{
	struct bank_key key;
	u64 value;
	u32 i;

	if (cls == TND_CLS_FDB || cls == TND_CLS_NEIGH) {
		if (!null_bank_key(n, cls, b, &key) || !bank_find(&n->bank, &key, &value))
			return NULL_NONE;
		/* the same address on another RIF is another object */
		if (cls == TND_CLS_NEIGH && n->obj[value].b.neigh.rif != b->neigh.rif)
			return NULL_NONE;
		return value;
	}
	for (i = *null_chain(n, cls, b); i != NULL_NONE; i = n->obj[i].next) {
		if (n->obj[i].cls == cls && null_same_key(cls, &n->obj[i].b, b))
			break;
	}
	return i;
}

/* A place is there: pools are never larger than runs */
u32 null_add(struct null_chip *n, enum null_run run, u16 cls, const union null_body *b)
{
	return null_add_at(n, run, cls, b,
			   run == NULL_R_EXACT ? NULL : null_chain(n, cls, b));
}

u32 null_add_at(struct null_chip *n, enum null_run run, u16 cls, const union null_body *b,
		u32 *head)
{
	struct null_range *r = &n->run[run];
	struct null_obj *o;
	u32 i = r->free;

	if (i != NULL_NONE)
		r->free = n->obj[i].next;
	else if (r->fresh < r->end)
		i = r->fresh++;
	else
		return NULL_NONE;
	r->count++;
	o = &n->obj[i];
	o->b = *b;
	o->cls = cls;
	o->refs = 0;
	o->gen = n->gen;
	o->next = NULL_NONE;
	if (head) {
		o->next = *head;
		*head = i;
	}
	return i;
}

void null_del(struct null_chip *n, u32 i)
{
	struct null_obj *o = &n->obj[i];
	enum null_run run = null_run_of(o->cls, o->b.route.family);
	u32 *at;

	if (run != NULL_R_EXACT) {
		at = null_chain(n, o->cls, &o->b);
		while (*at != i)
			at = &n->obj[*at].next;
		*at = o->next;
	}
	if (o->cls == TND_CLS_NHG)
		kfree(o->b.nhg.member);
	o->cls = 0;
	o->next = n->run[run].free;
	n->run[run].free = i;
	n->run[run].count--;
}

/* -------------------------------------------------------------------------
 * All of it
 */
static u16 null_default_trap_class(u16 reason)
{
	switch (reason) {
	case TND_TRAP_LINK_PROTO:
		return TND_TC_LINK;
	case TND_TRAP_ARP:
	case TND_TRAP_ND:
	case TND_TRAP_IGMP_MLD:
		return TND_TC_DISCOVERY;
	case TND_TRAP_ROUTING:
	case TND_TRAP_LOCAL:
		return TND_TC_CONTROL;
	case TND_TRAP_UNRESOLVED:
	case TND_TRAP_CONNECTED:
		return TND_TC_UNRESOLVED;
	case TND_TRAP_FLOW:
	case TND_TRAP_FLOW_MISS:
		return TND_TC_FLOW;
	default:
		return TND_TC_DATA;
	}
}

/* What a chip has after power-on: ports, traps, VRF 0 */
static void null_add_fixed(struct null_chip *n)
{
	union null_body b;
	u16 i;

	for (i = 1; i <= n->ports; i++) {
		memset(&b, 0, sizeof(b));
		b.port.struct_size = cpu_to_le16(sizeof(b.port));
		b.port.port = cpu_to_le16(i);
		b.port.flags = cpu_to_le32(TND_PORT_LEARNING | TND_PORT_FLOOD_UC |
					   TND_PORT_FLOOD_MC | TND_PORT_FLOOD_BC);
		b.port.mtu = cpu_to_le32(1500);
		b.port.stp_state = TND_STP_FORWARDING;
		null_add(n, NULL_R_PORT, TND_CLS_PORT, &b);
	}
	for (i = 1; i < TND_TRAP_REASON_COUNT; i++) {
		memset(&b, 0, sizeof(b));
		b.trap.struct_size = cpu_to_le16(sizeof(b.trap));
		b.trap.reason = cpu_to_le16(i);
		b.trap.trap_class = cpu_to_le16(null_default_trap_class(i));
		null_add(n, NULL_R_TRAP, TND_CLS_TRAP, &b);
	}
	memset(&b, 0, sizeof(b));
	b.vrf.struct_size = cpu_to_le16(sizeof(b.vrf));
	null_add(n, NULL_R_VRF, TND_CLS_VRF, &b);
}

static void null_free_members(struct null_chip *n)
{
	struct null_range *r = &n->run[NULL_R_NHG];
	u32 i;

	for (i = r->first; i < r->fresh; i++) {
		if (n->obj[i].cls == TND_CLS_NHG)
			kfree(n->obj[i].b.nhg.member);
	}
}

/* May sleep, nothing attached: as after power-on */
void null_tables_clear(struct null_chip *n)
{
	u32 i;

	null_free_members(n);
	for (i = 0; i < NULL_RUNS; i++) {
		struct null_range *r = &n->run[i];

		memset(&n->obj[r->first], 0, (r->fresh - r->first) * sizeof(*n->obj));
		r->fresh = r->first;
		r->free = NULL_NONE;
		r->count = 0;
		cond_resched();
	}
	memset(n->hash, 0xff, sizeof(*n->hash) << n->hash_bits);
	memset(n->fid_rif, 0xff, sizeof(n->fid_rif));
	memset(n->fid_learned, 0, sizeof(n->fid_learned));
	for (i = 1; i <= n->ports; i++) {
		n->port[i].members = 0;
		n->port[i].unaware = false;
		n->port[i].rif = NULL_NONE;
		memset(n->port[i].vid_rif, 0xff, VID_RIFS);
		bitmap_zero(n->port[i].fids, NULL_MAX_FID + 1);
	}
	bank_clear(&n->bank);
	null_pools_reset(n);
	n->resync = false;
	n->tables_lost = false;
	null_add_fixed(n);
}

int null_tables_init(struct null_chip *n)
{
	const struct null_profile *p = n->p;
	struct tnd_geometry geo;
	struct bank_geometry g;
	char why[80];
	u32 i, at = 0;
	const u32 size[NULL_RUNS] = {
		[NULL_R_PORT] = n->ports,
		[NULL_R_TRAP] = TND_TRAP_REASON_COUNT - 1,
		[NULL_R_VLAN] = p->vlan,
		[NULL_R_MEMBER] = p->vlan_member,
		/* and one for who finds out that there is no room */
		[NULL_R_EXACT] = p->banks * p->buckets_per_bank * p->slots_per_bucket + p->stash +
				 1,
		[NULL_R_VRF] = p->vrf + 1, /* VRF 0 costs nothing */
		[NULL_R_RIF] = p->rif,
		[NULL_R_NEXTHOP] = p->nexthop,
		[NULL_R_NHG] = p->nhg,
		[NULL_R_ROUTE4] = p->lpm4 / p->lpm4_cost,
		[NULL_R_ROUTE6] = p->lpm6 / p->lpm6_cost,
	};

	null_geometry(n, &geo);
	if (!bank_geometry(&g, &geo, why)) {
		dev_err(clsw_parent(n->cd), "%s\n", why);
		return -EINVAL;
	}
	for (i = 0; i < NULL_RUNS; i++) {
		n->run[i].first = at;
		n->run[i].fresh = at;
		at += size[i];
		n->run[i].end = at;
	}
	n->hash_bits = max_t(u32, fls(at), 4);
	n->obj = vzalloc(array_size(at, sizeof(*n->obj)));
	n->hash = vmalloc(sizeof(*n->hash) << n->hash_bits);
	n->bank_mem = vmalloc(bank_bytes(&g));
	if (!n->obj || !n->hash || !n->bank_mem)
		return -ENOMEM;
	for (i = 1; i <= n->ports; i++) {
		n->port[i].fids = bitmap_zalloc(NULL_MAX_FID + 1, GFP_KERNEL);
		n->port[i].vid_rif = vmalloc(VID_RIFS);
		if (!n->port[i].fids || !n->port[i].vid_rif)
			return -ENOMEM;
	}
	bank_init(&n->bank, &g, n->bank_mem);
	null_tables_clear(n);
	return 0;
}

void null_tables_exit(struct null_chip *n)
{
	u32 i;

	if (n->obj)
		null_free_members(n);
	for (i = 1; i <= n->ports; i++) {
		bitmap_free(n->port[i].fids);
		vfree(n->port[i].vid_rif);
	}
	vfree(n->bank_mem);
	vfree(n->hash);
	vfree(n->obj);
}
