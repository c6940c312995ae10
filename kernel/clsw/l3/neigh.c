// SPDX-License-Identifier: GPL-2.0
/*
 * Neighbours: what the kernel resolves, hardware forwards to, and the kernel
 * never sees used.
 *
 *   netevent ──► struct l3_neigh ──► TND_CLS_NEIGH, while the longest match of
 *                     │              its address is the connected route of its
 *                     │              interface
 *                     └────────────► the next hop of the same address
 *
 *   tick, 1 s    unresolved gateways are asked for: after 1, 2, 4 ... 30 s
 *   tick, 2 s    hit bits: what was used and is stale is confirmed, as a packet
 *                would; what is not used is forgotten by the kernel's own rules
 */
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <net/arp.h>
#include <net/ndisc.h>
#include <net/netevent.h>

#include "l3.h"

#define ASK_MOST	256	/* gateways asked for per tick */
#define ASK_PAUSE_MAX	30	/* seconds */
#define ACTIVITY_BYTES	SZ_64K
#define ACTIVITY_ROUNDS	256	/* of ACTIVITY_BYTES */

static const struct rhashtable_params neigh_params = {
	.key_len = sizeof(struct l3_key),
	.key_offset = offsetof(struct l3_neigh, key),
	.head_offset = offsetof(struct l3_neigh, node),
	.automatic_shrinking = true,
};

struct l3_neigh *l3_neigh_find(struct clsw_l3 *l3, const struct l3_key *key)
{
	return rhashtable_lookup_fast(&l3->neighs, key, neigh_params);
}

static bool nbr_is_link_local(const struct l3_key *key)
{
	return key->family == TND_AF_INET6 &&
	       ipv6_addr_type((const struct in6_addr *)key->addr) & IPV6_ADDR_LINKLOCAL;
}

/* Its host entry into hardware as it should be now, or out of it */
static void nbr_apply(struct clsw_l3 *l3, struct l3_neigh *neigh)
{
	struct l3_rif *rif = l3_rif_find(l3, neigh->key.ifindex);
	struct clsw_cover_node *n = NULL;
	const struct l3_route *route;
	struct tnd_neigh body = {};

	/* link-local destinations go to the CPU before any lookup */
	if (rif && rif->obj && !nbr_is_link_local(&neigh->key))
		n = clsw_cover_kernel_match(l3_cover(rif->vrf, neigh->key.family),
					    neigh->key.addr);
	route = n ? n->owner : NULL;
	if (!route || route->connected != neigh->key.ifindex) {
		if (neigh->obj)
			clsw_drop(l3->cd, neigh->obj);
		neigh->obj = NULL;
		return;
	}
	body.rif = cpu_to_le16(rif->id);
	body.family = neigh->key.family;
	body.action = TND_ACT_FORWARD;
	ether_addr_copy(body.mac, neigh->mac);
	memcpy(body.addr, neigh->key.addr, sizeof(body.addr));
	/* one of another RIF can't be updated into this: the key has the RIF in it */
	if (neigh->obj && ((struct tnd_neigh *)neigh->obj->body)->rif != body.rif) {
		clsw_drop(l3->cd, neigh->obj);
		neigh->obj = NULL;
	}
	if (clsw_put(l3->cd, TND_CLS_NEIGH, &body, sizeof(body), CLSW_PUT_MUST, NULL, neigh,
		     &neigh->obj, NULL))
		l3->sleepy = true;
}

static void nbr_forget(struct clsw_l3 *l3, struct l3_neigh *neigh)
{
	if (neigh->obj)
		clsw_drop(l3->cd, neigh->obj);
	rhashtable_remove_fast(&l3->neighs, &neigh->node, neigh_params);
	list_del(&neigh->list);
	kfree(neigh);
}

static void nbr_learn(struct clsw_l3 *l3, const struct l3_key *key, const u8 *mac)
{
	struct l3_neigh *neigh = l3_neigh_find(l3, key);

	if (!neigh) {
		neigh = kzalloc(sizeof(*neigh), GFP_ATOMIC);
		if (!neigh)
			goto no_memory;
		neigh->key = *key;
		if (rhashtable_insert_fast(&l3->neighs, &neigh->node, neigh_params)) {
			kfree(neigh);
			goto no_memory;
		}
		list_add_tail(&neigh->list, &l3->neigh_list);
	}
	ether_addr_copy(neigh->mac, mac);
	nbr_apply(l3, neigh);
	return;

no_memory:
	/* the CPU has its packets; the table is walked once more */
	l3->sleepy = true;
}

static void nbr_key_of(struct l3_key *key, const struct neighbour *n, u8 family)
{
	memset(key, 0, sizeof(*key));
	key->ifindex = n->dev->ifindex;
	key->family = family;
	memcpy(key->addr, n->primary_key, family == TND_AF_INET ? 4 : 16);
}

/* What the kernel says of it now */
static void nbr_look(struct clsw_l3 *l3, struct neighbour *n, u8 family)
{
	struct l3_neigh *neigh;
	struct l3_key key;
	u8 mac[ETH_ALEN];
	bool valid;

	if (n->dev->addr_len != ETH_ALEN || n->dev->flags & IFF_LOOPBACK)
		return;
	nbr_key_of(&key, n, family);
	/* the state is read under our lock: the last look is the latest state */
	clsw_lock(l3->cd);
	read_lock(&n->lock);
	memcpy(mac, n->ha, ETH_ALEN);
	valid = n->nud_state & NUD_VALID && !n->dead && is_valid_ether_addr(mac);
	read_unlock(&n->lock);
	if (valid) {
		nbr_learn(l3, &key, mac);
	} else {
		neigh = l3_neigh_find(l3, &key);
		if (neigh)
			nbr_forget(l3, neigh);
	}
	l3_nh_resolved(l3, &key, valid ? mac : NULL);
	clsw_unlock(l3->cd);
}

int l3_netevent(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct clsw_l3 *l3 = container_of(nb, struct clsw_l3, netevent_nb);
	struct neighbour *n = ptr;

	switch (event) {
	case NETEVENT_NEIGH_UPDATE:
		if (!net_eq(dev_net(n->dev), l3->net))
			break;
		if (n->tbl->family == AF_INET)
			nbr_look(l3, n, TND_AF_INET);
		else if (n->tbl->family == AF_INET6)
			nbr_look(l3, n, TND_AF_INET6);
		break;
	case NETEVENT_IPV4_MPATH_HASH_UPDATE:
	case NETEVENT_IPV6_MPATH_HASH_UPDATE:
		if (!net_eq(ptr, l3->net))
			break;
		clsw_lock(l3->cd);
		l3_paths_refresh(l3, 0);
		clsw_unlock(l3->cd);
		break;
	}
	return NOTIFY_DONE;
}

static bool nbr_holds(const struct l3_route *route, const struct l3_key *key)
{
	const struct clsw_cover *c = l3_cover(route->vrf, route->family);
	u8 addr[16];
	int bits = route->node->len;

	if (key->family != route->family)
		return false;
	clsw_cover_addr(c, route->node, addr);
	if (memcmp(addr, key->addr, bits / 8))
		return false;
	return !(bits % 8) || !((addr[bits / 8] ^ key->addr[bits / 8]) >> (8 - bits % 8));
}

void l3_neigh_refresh(struct clsw_l3 *l3, struct l3_route *route)
{
	u16 hold = clsw_hold_rest(l3->cd);
	struct l3_neigh *neigh;

	list_for_each_entry(neigh, &l3->neigh_list, list)
		if (!route || nbr_holds(route, &neigh->key))
			nbr_apply(l3, neigh);
	clsw_hold_resume(l3->cd, hold);
}

void l3_neigh_refresh_dev(struct clsw_l3 *l3, u32 ifindex)
{
	struct l3_neigh *neigh;

	list_for_each_entry(neigh, &l3->neigh_list, list)
		if (neigh->key.ifindex == ifindex)
			nbr_apply(l3, neigh);
}

/* ---- at the start ---- */

struct walk {
	struct clsw_l3 *l3;
	struct neighbour **found;
	unsigned int count, room;
};

static void nbr_collect(struct neighbour *n, void *cookie)
{
	struct walk *walk = cookie;

	if (walk->count < walk->room && n->nud_state & NUD_VALID &&
	    net_eq(dev_net(n->dev), walk->l3->net)) {
		neigh_hold(n);
		walk->found[walk->count++] = n;
	}
}

static int nbr_walk_table(struct clsw_l3 *l3, struct neigh_table *tbl, u8 family)
{
	struct walk walk = { .l3 = l3 };
	unsigned int i;

	/* the table's lock is held in there: no lock of ours */
	walk.room = atomic_read(&tbl->entries) + 64;
	walk.found = kvcalloc(walk.room, sizeof(*walk.found), GFP_KERNEL);
	if (!walk.found)
		return -ENOMEM;
	neigh_for_each(tbl, nbr_collect, &walk);
	for (i = 0; i < walk.count; i++) {
		nbr_look(l3, walk.found[i], family);
		neigh_release(walk.found[i]);
	}
	kvfree(walk.found);
	return 0;
}

int l3_neigh_walk(struct clsw_l3 *l3)
{
	int err = nbr_walk_table(l3, &arp_tbl, TND_AF_INET);

#if IS_ENABLED(CONFIG_IPV6)
	/* booted with ipv6.disable=1, that table was never made */
	if (!err && ipv6_mod_enabled())
		err = nbr_walk_table(l3, &nd_tbl, TND_AF_INET6);
#endif
	return err;
}

/* ---- by the clock ---- */

/* Makes the kernel look: resolve it, or confirm it if it is stale */
static void nbr_prod(struct clsw_l3 *l3, const struct l3_key *key)
{
	struct neigh_table *tbl = &arp_tbl;
	struct net_device *dev;
	struct neighbour *n;

#if IS_ENABLED(CONFIG_IPV6)
	if (key->family == TND_AF_INET6)
		tbl = &nd_tbl;
#endif
	dev = dev_get_by_index(l3->net, key->ifindex);
	if (!dev)
		return;
	if (dev->flags & IFF_UP) {
		n = neigh_lookup(tbl, key->addr, dev);
		if (!n)
			n = neigh_create(tbl, key->addr, dev);
		if (!IS_ERR(n)) {
			neigh_event_send(n, NULL);
			neigh_release(n);
		}
	}
	dev_put(dev);
}

static void nbr_ask(struct clsw_l3 *l3, struct l3_key *keys)
{
	unsigned int count = 0, i;
	struct l3_nh *nh;

	clsw_lock(l3->cd);
	list_for_each_entry(nh, &l3->nh_list, list) {
		unsigned long pause = min(1UL << min_t(u8, nh->tries, 5), ASK_PAUSE_MAX + 0UL) * HZ;

		if (nh->resolved || !nh->obj || count == ASK_MOST ||
		    (nh->tries && time_before(jiffies, nh->asked + pause)))
			continue;
		nh->asked = jiffies;
		nh->tries = min(nh->tries + 1, 6);
		keys[count++] = nh->key;
	}
	clsw_unlock(l3->cd);
	for (i = 0; i < count; i++)
		nbr_prod(l3, &keys[i]);
}

static bool nbr_used_nexthop(struct clsw_l3 *l3, const void *record, struct l3_key *key)
{
	struct clsw_obj *obj = clsw_find(l3->cd, TND_CLS_NEXTHOP, record);

	if (!obj || !obj->wanted || !obj->owner)
		return false;
	*key = ((struct l3_nh *)obj->owner)->key;
	return true;
}

static bool nbr_used_neigh(struct clsw_l3 *l3, const void *record, struct l3_key *key)
{
	struct clsw_obj *obj = clsw_find(l3->cd, TND_CLS_NEIGH, record);

	if (!obj || !obj->wanted || !obj->owner)
		return false;
	*key = ((struct l3_neigh *)obj->owner)->key;
	return true;
}

static void nbr_confirm(struct clsw_l3 *l3, u16 cls, u32 size, const void *records, u32 count)
{
	struct l3_key key;
	bool found;
	u32 i;

	for (i = 0; i < count; i++) {
		clsw_lock(l3->cd);
		if (cls == TND_CLS_NEXTHOP)
			found = nbr_used_nexthop(l3, records + i * size, &key);
		else
			found = nbr_used_neigh(l3, records + i * size, &key);
		clsw_unlock(l3->cd);
		if (found)
			nbr_prod(l3, &key);
		cond_resched();
	}
}

static void nbr_activity(struct clsw_l3 *l3, u16 cls, u32 size, void *out)
{
	struct tnd_cmd cmd = {
		.op = cpu_to_le16(TND_OP_ACTIVITY),
		.cls = cpu_to_le16(cls),
	};
	struct tnd_cpl cpl;
	int round;

	for (round = 0; round < ACTIVITY_ROUNDS && clsw_up(l3->cd); round++) {
		if (l3->cd->backend->table->read(l3->cd, &cmd, NULL, out, ACTIVITY_BYTES, &cpl) ||
		    le16_to_cpu(cpl.status) != TND_ST_OK)
			return;
		nbr_confirm(l3, cls, size, out,
			    min_t(u32, le32_to_cpu(cpl.out_count), ACTIVITY_BYTES / size));
		cmd.arg = cpl.result;
		if (!cmd.arg)
			return;
	}
}

void l3_neigh_tick(struct clsw_l3 *l3, bool used)
{
	void *buf = kvmalloc(ACTIVITY_BYTES, GFP_KERNEL);

	BUILD_BUG_ON(ASK_MOST * sizeof(struct l3_key) > ACTIVITY_BYTES);
	if (!buf)
		return;
	nbr_ask(l3, buf);
	if (used) {
		nbr_activity(l3, TND_CLS_NEXTHOP, sizeof(struct tnd_nexthop), buf);
		nbr_activity(l3, TND_CLS_NEIGH, sizeof(struct tnd_neigh), buf);
	}
	kvfree(buf);
}

int l3_neigh_init(struct clsw_l3 *l3)
{
	INIT_LIST_HEAD(&l3->neigh_list);
	return rhashtable_init(&l3->neighs, &neigh_params);
}

void l3_neigh_exit(struct clsw_l3 *l3)
{
	struct l3_neigh *neigh, *next;

	clsw_lock(l3->cd);
	list_for_each_entry_safe(neigh, next, &l3->neigh_list, list)
		nbr_forget(l3, neigh);
	clsw_unlock(l3->cd);
	rhashtable_destroy(&l3->neighs);
}
