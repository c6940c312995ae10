/* SPDX-License-Identifier: GPL-2.0 */
/* Who else claims a prefix; see claims.c. Also built for user space */
#ifndef _CLSW_L3_CLAIMS_H
#define _CLSW_L3_CLAIMS_H

/* Why an entry is a trap, or is not there */
enum l3_why {
	L3_WHY_NONE,		/* in hardware as the kernel has it */
	L3_WHY_LOCAL,		/* own address */
	L3_WHY_CONNECTED,	/* hosts have entries of their own */
	L3_WHY_TYPE,		/* unreachable, prohibit, throw: the kernel answers */
	L3_WHY_DSCP,
	L3_WHY_ENCAP,
	L3_WHY_SOURCE,		/* depends on the source address */
	L3_WHY_INGRESS,		/* several of a metric: depends on where a packet came in */
	L3_WHY_DEVICE,		/* leaves by an interface that has no RIF */
	L3_WHY_DEAD,		/* no next hop is usable */
	L3_WHY_MIXED,		/* several next hops, one without gateway */
	L3_WHY_MANY,		/* more next hops than a group takes */
	L3_WHY_HASH,		/* a hash policy that the chip lacks */
	L3_WHY_RESILIENT,	/* a resilient group: the kernel moves its buckets */
	L3_WHY_UNKNOWN,		/* a next-hop object that was refused or deleted */
	L3_WHY_FULL,		/* its group or next hop found no room */
	L3_WHY_SHADOWED,	/* below a wider route of the local table */
	L3_WHY_MEMORY,
};

/**
 * struct l3_claims - what of a prefix's routes the chip can't tell apart
 * @own: one of them is for an own address: local, broadcast or anycast
 * @below_local: table local has a wider prefix, and none of them is in that table
 * @by_source: some are for packets from a source prefix alone
 * @by_dscp: the one that decides is for packets of one type of service
 */
struct l3_claims {
	bool own;
	bool below_local;
	bool by_source;
	bool by_dscp;
};

/* L3_WHY_NONE: its route alone decides. Else the prefix traps, for *@reason: TND_TRAP_* */
u8 l3_claims_trap(const struct l3_claims *claims, u8 *reason);

#endif /* _CLSW_L3_CLAIMS_H */
