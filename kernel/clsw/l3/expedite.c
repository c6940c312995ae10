// SPDX-License-Identifier: GPL-2.0
/*
 * The routes that traffic is waiting for, first.
 *
 *   packet, trapped for want of an entry ─► kernel's longest match ─► its object
 *   is still to be written ─► to the head of the queue
 *
 * The order of puts is what the cover rule counts on: an entry never answers
 * for a longer one that is still to come. So a route with something below it
 * that is not in hardware yet keeps its place; a route with nothing below it
 * may go first.
 */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "l3.h"

#define BELOW	16	/* prefixes below it that are looked at */

/* Where the packet goes, network order; its data begins at the Ethernet header. 0: not IP */
static u8 expedite_destination(const struct sk_buff *skb, struct in6_addr *addr)
{
	unsigned int at = ETH_HLEN;
	struct vlan_hdr vlan_copy;
	struct ipv6hdr ip6_copy;
	struct iphdr ip_copy;
	const struct vlan_hdr *vlan;
	const struct ipv6hdr *ip6;
	const struct iphdr *ip;
	__be16 proto = ((const struct ethhdr *)skb->data)->h_proto;

	if (proto == htons(ETH_P_8021Q)) {
		vlan = skb_header_pointer(skb, at, sizeof(*vlan), &vlan_copy);
		if (!vlan)
			return 0;
		proto = vlan->h_vlan_encapsulated_proto;
		at += VLAN_HLEN;
	}
	if (proto == htons(ETH_P_IP)) {
		ip = skb_header_pointer(skb, at, sizeof(*ip), &ip_copy);
		if (!ip)
			return 0;
		addr->s6_addr32[0] = ip->daddr;
		return TND_AF_INET;
	}
	if (proto == htons(ETH_P_IPV6)) {
		ip6 = skb_header_pointer(skb, at, sizeof(*ip6), &ip6_copy);
		if (!ip6)
			return 0;
		*addr = ip6->daddr;
		return TND_AF_INET6;
	}
	return 0;
}

static bool expedite_to_come(const struct clsw_cover_node *n)
{
	const struct l3_route *route = n->owner;

	return route && route->obj && !clsw_obj_written(route->obj);
}

static bool expedite_may_go_first(const struct clsw_cover_node *top)
{
	const struct clsw_cover_node *n = top;
	unsigned int seen = 0;

	while ((n = clsw_cover_next_below(top, n))) {
		if (++seen > BELOW || expedite_to_come(n))
			return false;
	}
	return true;
}

static struct l3_vrf *expedite_vrf_of(struct clsw_l3 *l3, const struct clsw_port *port)
{
	struct l3_rif *rif = l3_rif_find(l3, port->netdev->ifindex);

	if (!rif && port->bridge)
		rif = l3_rif_find(l3, port->bridge->ifindex);
	return rif ? rif->vrf : l3->main;
}

void clsw_l3_waits(struct clsw_device *cd, const struct clsw_port *port, const struct sk_buff *skb)
{
	struct clsw_cover_node *n;
	struct in6_addr addr;
	struct l3_vrf *vrf;
	u8 family;

	if (!clsw_routes_queued(cd))
		return;
	family = expedite_destination(skb, &addr);
	if (!family)
		return;
	clsw_lock(cd);
	vrf = cd->l3 ? expedite_vrf_of(cd->l3, port) : NULL;
	n = vrf ? clsw_cover_kernel_match(l3_cover(vrf, family), &addr) : NULL;
	if (n && expedite_to_come(n) && expedite_may_go_first(n))
		clsw_expedite(cd, ((struct l3_route *)n->owner)->obj);
	clsw_unlock(cd);
}
