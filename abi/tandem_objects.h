/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Tandem device ABI: bodies of objects. Part of tandem.h, which includes it;
 * the conventions are those of its first comment.
 */
#ifndef _UAPI_LINUX_TANDEM_OBJECTS_H
#define _UAPI_LINUX_TANDEM_OBJECTS_H

#include <linux/types.h>

/* -------------------------------------------------------------------------
 * Objects. The first two fields of every body are struct_size and a 16-bit
 * field of the key or of flags.
 */
#define TND_AF_INET		2
#define TND_AF_INET6		10
#define TND_VID_ANY		0xffff

#define TND_PORT_UP		(1U << 0)	/* administratively up */
#define TND_PORT_LEARNING	(1U << 1)
#define TND_PORT_TRAP_ALL	(1U << 2)	/* every frame to the CPU, not forwarded */
#define TND_PORT_FLOOD_UC	(1U << 3)	/* receives flooded unknown unicast */
#define TND_PORT_FLOOD_MC	(1U << 4)
#define TND_PORT_FLOOD_BC	(1U << 5)
#define TND_PORT_ISOLATED	(1U << 6)	/* no frames between isolated ports */
#define TND_PORT_HAIRPIN	(1U << 7)	/* may send back where it came from */
#define TND_PORT_LOCKED		(1U << 8)	/* unknown source address is dropped */
#define TND_PORT_ROUTER4	(1U << 9)	/* a multicast router of IPv4 is behind it (since 1.4) */
#define TND_PORT_ROUTER6	(1U << 10)	/* the same of IPv6 */
/*
 * Since 1.7, with TND_FEAT_FLOWS: a flow port. What comes in meets the list at stage
 * TND_ACL_FLOW, then the FDB by its destination, then the miss; nothing else: every
 * address is only an address, of the other flags UP and TRAP_ALL count, of the port's
 * rest the MTU. What it forwards meets, at the port that it leaves by, UP and the MTU
 * alone. The FID of an FDB lookup: of untagged frames TND_FLOWS_FID; of others the
 * outer tag's VID, 802.1Q or 802.1ad; with VID 0 or 4095, or in a domain without
 * TND_VLAN_FLOWS, nothing is looked up, a miss. By a member of a link aggregation
 * group LACP stays the link's, and by one that takes no part every link-local address.
 * Since 1.8 members of a domain are looked up and left otherwise: TND_MEMBER_PVID.
 * UNAWARE goes before that, but for a member by TND_VID_ANY.
 * A device may be told (by an option of asicd's) to set TRAP_ALL of all flow ports once
 * their driver is gone, or one that has sent a TND_OP_NOP in its session is silent, for
 * so long. Before the next command of one that was silent it is as it was; the next
 * driver finds it set, and clears it.
 */
#define TND_PORT_FLOWS		(1U << 11)
#define TND_PORT_FLOWS_UNAWARE	(1U << 12)	/* every frame is looked up in TND_FLOWS_FID */
#define TND_PORT_FLOWS_DROP	(1U << 13)	/* a miss is dropped, else it goes to the CPU */
#define TND_PORT_FLOWS_SOURCE	(1U << 14)	/* no rule decides: a source that the FDB does not have here, to the CPU */

#define TND_FLOWS_FID		4095

enum tnd_stp_state {			/* numbers of linux/if_bridge.h */
	TND_STP_DISABLED	= 0,
	TND_STP_LISTENING	= 1,
	TND_STP_LEARNING	= 2,
	TND_STP_FORWARDING	= 3,
	TND_STP_BLOCKING	= 4,
};

/* TND_CLS_PORT: key = port. Ports exist from the start: UPDATE only */
struct tnd_port {
	__le16	struct_size;
	__le16	port;			/* from 1 */
	__le32	flags;			/* TND_PORT_* */
	__le32	mtu;			/* bytes of L3 packet */
	__u8	stp_state;		/* enum tnd_stp_state */
	__u8	reserved0;
	__u8	mac[6];
};

/*
 * TND_CLS_LED: the lamp beside a port; key = port. There from the start and
 * dark after a cold attach: UPDATE only
 */
struct tnd_led {
	__le16	struct_size;
	__le16	port;
	__u8	blink;			/* 1: "here I am" */
	__u8	reserved0[3];
};

enum tnd_storm_kind {
	TND_STORM_BROADCAST	= 1,
	TND_STORM_MULTICAST	= 2,	/* a group address that is not broadcast */
	TND_STORM_UNKNOWN_UC	= 3,	/* unicast that no FDB entry knows */
};

/*
 * TND_CLS_STORM: how much of a kind a port may bring into a bridge; key =
 * port, kind. There from the start and without limit after a cold attach:
 * UPDATE only. Where both units have a limit, a frame needs both. Draft
 */
struct tnd_storm {
	__le16	struct_size;
	__le16	port;
	__u8	kind;			/* enum tnd_storm_kind */
	__u8	reserved0[3];
	__le64	rate_packets;		/* per second; 0: no limit */
	__le64	burst_packets;		/* not 0 with a rate */
	__le64	rate_bytes;
	__le64	burst_bytes;
	__le64	dropped;		/* packets; read only */
};

#define TND_VLAN_UC_TRAP	(1U << 0)	/* unknown unicast to the CPU, not flooded */
#define TND_VLAN_MC_TRAP	(1U << 1)	/* IP multicast to the CPU, not flooded */
#define TND_VLAN_LEARNING	(1U << 2)
#define TND_VLAN_CPU_COPY	(1U << 3)	/* the bridge device is up: copies of broadcast and multicast */
/*
 * Since 1.4. With SNOOP membership messages go to the CPU and groups of TND_CLS_MDB
 * are looked up; MC_TRAP goes before all of these. Of IPv4 (MC4) and IPv6 (MC6)
 * beyond 224.0.0.0/24 and ff02::1:
 *   neither bit: flooded; MEMBERS: to the members of its group and to router
 *   ports, without a group to router ports alone; TRAP: to the CPU; both bits:
 *   to the members of its group, without a group to the CPU.
 * Multicast that is not IP: to its group's members and IPv4 router ports; without
 * a group flooded, or to the CPU with MAC_TRAP.
 */
#define TND_VLAN_SNOOP		(1U << 4)
#define TND_VLAN_MC4_MEMBERS	(1U << 5)
#define TND_VLAN_MC4_TRAP	(1U << 6)
#define TND_VLAN_MC6_MEMBERS	(1U << 7)
#define TND_VLAN_MC6_TRAP	(1U << 8)
#define TND_VLAN_MAC_TRAP	(1U << 9)
#define TND_VLAN_MC4_CPU	(1U << 10)	/* the CPU is a multicast router: copies of what MEMBERS forwards */
#define TND_VLAN_MC6_CPU	(1U << 11)
#define TND_VLAN_NO_LL_LEARN	(1U << 12)	/* link-local frames teach nothing (since 1.5) */
/*
 * Since 1.5. The CPU learns, in place of LEARNING: the first frame of a station, one
 * from another place than its entry's, and about one in each eighth of the ageing time
 * go to the CPU, which forwards them; so its entries stay young as long as their
 * stations speak.
 */
#define TND_VLAN_CPU_LEARN	(1U << 13)
/*
 * Since 1.7. Of flow ports, which look up no other domain: FDB entries may be of groups,
 * and have sets. When the bit goes these stay as they are, and no flow port asks them.
 * Flow ports keep no entry young: one without STATIC and NO_AGE goes after @ageing_s,
 * whatever is sent to it or by it, and TND_OP_ACTIVITY names none.
 */
#define TND_VLAN_FLOWS		(1U << 14)

/* TND_CLS_VLAN: a forwarding domain; key = fid */
struct tnd_vlan {
	__le16	struct_size;
	__le16	fid;			/* 1..4095 */
	__le32	flags;			/* TND_VLAN_* */
	__le32	ageing_s;		/* 0: never */
	__le32	reserved0;
};

#define TND_MEMBER_UNTAGGED	(1U << 0)	/* tag is removed at egress */
#define TND_MEMBER_PVID		(1U << 1)	/* untagged frames belong here */
/*
 * Since 1.8, with TND_FEAT_FLOW_MEMBERS: of flow ports, in a domain with TND_VLAN_FLOWS
 * whose FID is the VID. In one that has members a member with PVID has its untagged
 * frames looked up there, and no others; one without, those with the VLAN's tag. Of
 * other ports frames with that tag are a miss. What the FDB forwards leaves by a member
 * with UNTAGGED without the tag, by another member with the VLAN's, 802.1Q, priority 0
 * if it had none; by no other port. What rules forward leaves as before. A domain
 * without members is as in 1.7, and so are untagged frames of a port without a PVID.
 *
 * Since 1.9, with TND_FEAT_FLOW_FIDS, the FID is the member's, whatever its VID: frames
 * with the VLAN's tag, or without one, are looked up there and leave with that VID. A
 * member by TND_VID_ANY has all frames of its port looked up there, UNAWARE or not, and
 * gets them as they came. TND_FLOWS_FID is a domain like another: while it has members,
 * frames of no member are a miss, and all of an UNAWARE port that is none by TND_VID_ANY.
 * So front ends share a chip by a domain each. Of a device without the feature do not ask for a FID that is not the VID.
 */

/*
 * TND_CLS_VLAN_MEMBER: (port, vid) belongs to fid; key = port, vid.
 * vid TND_VID_ANY is a VLAN-unaware port: every frame, tags left alone.
 */
struct tnd_vlan_member {
	__le16	struct_size;
	__le16	fid;
	__le16	port;
	__le16	vid;
	__le32	flags;			/* TND_MEMBER_* */
	__le32	reserved0;
};

enum tnd_action {
	TND_ACT_FORWARD		= 0,
	TND_ACT_TRAP		= 1,
	TND_ACT_DROP		= 2,
};

#define TND_FDB_STATIC		(1U << 0)	/* neither ages nor moves */
#define TND_FDB_LEARNED		(1U << 1)	/* by the device: in dumps */
#define TND_FDB_STICKY		(1U << 2)	/* does not move, may age */
#define TND_FDB_NO_AGE		(1U << 3)	/* does not age, may move */

/*
 * TND_CLS_FDB: key = fid, mac. Normal form, which DUMP and QUERY give: with @set also
 * TND_FDB_STATIC, with TRAP and DROP neither @port nor @set
 */
struct tnd_fdb {
	__le16	struct_size;
	__le16	fid;
	__u8	mac[6];
	__le16	port;			/* with TND_ACT_FORWARD */
	__le16	flags;			/* TND_FDB_* */
	__u8	action;			/* enum tnd_action */
	__u8	reserved0;
	__le16	set;			/* FORWARD, port 0, domain with TND_VLAN_FLOWS: tnd_port_set (since 1.7) */
	__u8	reserved1[2];
};

#define TND_PORT_SET_BYTES	32	/* bit n % 8 of byte n / 8 is port n, 1..255 */

/*
 * TND_CLS_PORT_SET (since 1.7): ports that FDB entries of flow ports send to; key =
 * set. UPDATE swaps them in one step. Nothing goes back to where it came from. Takes
 * of the pool of multicast groups. Sets and rules that send to the port of a link
 * aggregation group keep the group
 */
struct tnd_port_set {
	__le16	struct_size;
	__le16	set;			/* id, chosen by the driver, not 0 */
	__le32	reserved0;
	__u8	ports[TND_PORT_SET_BYTES];
};

#define TND_MDB_CPU_COPY	(1U << 0)	/* the bridge device is a member: a copy to the CPU */

#define TND_MDB_MAX_PORTS	256

struct tnd_mdb_port {
	__le16	port;			/* may not be in the domain: then it gets nothing */
	__le16	reserved0;
};

/*
 * TND_CLS_MDB: who gets the frames of a multicast group; key = fid, family, addr,
 * source (since 1.4). Ports follow the struct and are swapped by one command. A
 * source's own entry goes before that of all sources. Looked up with
 * TND_VLAN_SNOOP; router ports get the frames as well, FLOOD_MC does not count.
 * Draft
 */
struct tnd_mdb {
	__le16	struct_size;		/* of this struct, without ports */
	__le16	fid;
	__u8	family;			/* TND_AF_*, 0: frames that are not IP, by MAC address */
	__u8	action;			/* enum tnd_action; not DROP */
	__le16	flags;			/* TND_MDB_* */
	__le16	count;			/* ports, may be 0 */
	__u8	reserved0[6];
	__u8	addr[16];		/* IPv4 in the first four bytes, MAC in the first six */
	__u8	source[16];		/* IP address; zero: any */
};

/* TND_CLS_VRF: key = vrf; 0 is there from the start */
struct tnd_vrf {
	__le16	struct_size;
	__le16	vrf;
	__le32	flags;
};

enum tnd_rif_kind {
	TND_RIF_PORT		= 1,	/* untagged frames of a port */
	TND_RIF_FID		= 2,	/* a bridge's own interface */
	TND_RIF_PORT_VLAN	= 3,	/* frames of a port with an 802.1Q tag, which goes out with priority 0 */
};

#define TND_RIF_V4		(1U << 0)	/* forwards IPv4 that comes in here */
#define TND_RIF_V6		(1U << 1)
#define TND_RIF_TRAP_ALL	(1U << 2)	/* routed packets that come in here go to the CPU */
#define TND_RIF_NO_REDIRECT	(1U << 3)	/* same-interface forwarding needs no CPU */
#define TND_RIF_RPF_LOOSE	(1U << 4)	/* source must match a usable entry, else to the CPU */

/* TND_CLS_RIF: a router interface; key = rif */
struct tnd_rif {
	__le16	struct_size;
	__le16	rif;
	__le16	vrf;
	__le16	kind;			/* enum tnd_rif_kind */
	__le16	port;			/* TND_RIF_PORT, TND_RIF_PORT_VLAN */
	__le16	fid;			/* TND_RIF_FID */
	__le16	vid;			/* TND_RIF_PORT_VLAN: 1..4094 */
	__u8	mac[6];			/* router MAC */
	__le32	flags;			/* TND_RIF_* */
	__le32	mtu;			/* bytes of L3 packet */
	__le32	reserved0;
};

/* TND_CLS_NEIGH: a host entry; key = rif, family, addr */
struct tnd_neigh {
	__le16	struct_size;
	__le16	rif;
	__u8	family;			/* TND_AF_* */
	__u8	action;			/* enum tnd_action */
	__u8	mac[6];
	__u8	addr[16];		/* IPv4 in the first four bytes */
	__le32	reserved0;
};

/* TND_CLS_NEXTHOP: key = nexthop */
struct tnd_nexthop {
	__le16	struct_size;
	__le16	rif;
	__le32	nexthop;		/* id, chosen by the driver */
	__u8	action;			/* enum tnd_action */
	__u8	reason;			/* with TRAP: enum tnd_trap_reason */
	__u8	mac[6];
};

struct tnd_nhg_member {
	__le32	nexthop;
	__le32	weight;			/* 1..256 */
};

#define TND_NHG_MAX_MEMBERS	256

/* TND_HASH_*: fields of the multipath hash: tnd_nhg.hash */
#define TND_HASH_L3		0	/* addresses (and v6 flow label) */
#define TND_HASH_L4		1	/* five-tuple */

/* TND_CLS_NHG: a next-hop group; key = nhg; members follow the struct */
struct tnd_nhg {
	__le16	struct_size;		/* of this struct, without members */
	__le16	count;			/* members */
	__le32	nhg;			/* id, chosen by the driver */
	__le32	hash;			/* TND_HASH_* */
	__le32	reserved0;
};

enum tnd_route_target {
	TND_RT_NONE		= 0,	/* with TRAP and DROP */
	TND_RT_NEXTHOP		= 1,
	TND_RT_NHG		= 2,
};

/* TND_CLS_ROUTE: key = vrf, family, addr, prefix_len */
struct tnd_route {
	__le16	struct_size;
	__le16	vrf;
	__u8	family;			/* TND_AF_* */
	__u8	prefix_len;
	__u8	action;			/* enum tnd_action */
	__u8	reason;			/* with TRAP: enum tnd_trap_reason */
	__u8	target_kind;		/* enum tnd_route_target */
	__u8	reserved0[3];
	__le32	target;			/* next hop or group id */
	__u8	addr[16];		/* bits beyond prefix_len are zero */
};

/* TND_CLS_TRAP: class and policer of one reason; key = reason. UPDATE only */
struct tnd_trap {
	__le16	struct_size;
	__le16	reason;			/* enum tnd_trap_reason */
	__le16	trap_class;		/* enum tnd_trap_class */
	__le16	reserved0;
	__le32	rate_pps;		/* most that the reason gets, 0 = what its class lets through */
	__le32	burst;			/* packets */
};

/* -------------------------------------------------------------------------
 * Link aggregation (draft). A group is used like a port in all other objects:
 * its port number is tnd_platform.port_count plus @lag, and its PORT object is
 * there as long as it is. While a port is a member, what is configured for the
 * port itself (domains, router interfaces, lists) sleeps; MTU and up count.
 */
#define TND_LAG_HASH_L2		0	/* MAC addresses, VLAN id, ethertype */
#define TND_LAG_HASH_L3		1	/* the same and IP addresses */
#define TND_LAG_HASH_L4		2	/* IP addresses, protocol, transport ports */

#define TND_LAG_MAX_MEMBERS	64

#define TND_LAG_ACTIVE		(1U << 0)	/* collects and distributes */

struct tnd_lag_member {
	__le16	port;			/* front-panel port, of no other group */
	__le16	flags;			/* TND_LAG_ACTIVE */
};

/* TND_CLS_LAG: key = lag; members follow the struct, swapped by one command */
struct tnd_lag {
	__le16	struct_size;		/* of this struct, without members */
	__le16	lag;			/* from 1 */
	__le16	count;			/* members, may be 0 */
	__le16	hash;			/* TND_LAG_HASH_* */
};

/* -------------------------------------------------------------------------
 * Access control lists (draft: no second front end has used them)
 *
 * A table has rules by priority. It does something once it is bound
 * to a port and a stage. The first rule that matches decides; no match, and
 * no binding, is PERMIT.
 */
enum tnd_acl_stage {
	TND_ACL_PORT		= 1,	/* a frame comes in; before it is classified */
	TND_ACL_INGRESS		= 2,	/* the chip has decided to forward it; before it is changed */
	TND_ACL_EGRESS		= 3,	/* for each port that it would leave by, as it would leave */
	TND_ACL_FLOW		= 4,	/* a frame comes in at a flow port; before its lookup in the FDB (since 1.7) */
	TND_ACL_FLOW_CLASS	= 5,	/* the same, before FLOW: what the frame is classified as (since 1.10, TND_FEAT_FLOW_CLASS) */
	TND_ACL_FLOW_EGRESS	= 6,	/* it would leave by this port: in which form (since 1.11, TND_FEAT_FLOW_EGRESS) */
};

/* TND_CLS_ACL_TABLE: key = table */
struct tnd_acl_table {
	__le16	struct_size;
	__le16	stage;			/* enum tnd_acl_stage: what it may be bound to */
	__le32	table;			/* id, chosen by the driver, not 0 */
};

/* The table has not all of its rules: every frame that it would see goes to the CPU */
#define TND_ACL_BIND_TRAP_ALL	(1U << 0)

/*
 * TND_CLS_ACL_BIND: key = port, stage. All are there from the start, without
 * table; CREATE and UPDATE write, DELETE clears, SET_TRAP sets TRAP_ALL. Takes
 * no slots: none of these can fail for space.
 */
struct tnd_acl_bind {
	__le16	struct_size;
	__le16	port;
	__le16	stage;			/* enum tnd_acl_stage */
	__le16	flags;			/* TND_ACL_BIND_* */
	__le32	table;			/* 0: none */
	__le32	reserved0;
};

/* tnd_acl_key.tag: the outer tag */
#define TND_ACL_UNTAGGED	0
#define TND_ACL_TAG_8021Q	1
#define TND_ACL_TAG_8021AD	2

/* tnd_acl_key.fragment */
#define TND_ACL_FRAGMENT	(1U << 0)	/* of more than one piece */
#define TND_ACL_FRAGMENT_FIRST	(1U << 1)	/* and the first of them */

/*
 * Fields of a frame, or the bits of them that count. What is behind the outer
 * tag is IPv4 or IPv6 if @ethertype says so with all of its bits in the mask;
 * other rules must leave the IP and transport fields alone. A piece of a
 * fragmented packet has no transport ports, the first one neither.
 */
struct tnd_acl_key {
	__u8	dst_mac[6];
	__u8	src_mac[6];
	__u8	dst_ip[16];		/* IPv4 in the first four bytes */
	__u8	src_ip[16];
	__le16	ethertype;		/* behind the outer tag */
	__le16	tci;			/* of the outer tag; 0 without one */
	__le16	port;			/* ingress port */
	__le16	src_port;		/* TCP, UDP, SCTP; ICMP and ICMPv6: type */
	__le16	dst_port;		/* ICMP and ICMPv6: code */
	__u8	tag;			/* TND_ACL_UNTAGGED, TND_ACL_TAG_* */
	__u8	protocol;		/* behind IPv6 extension headers */
	__u8	tos;			/* or traffic class */
	__u8	ttl;			/* or hop limit */
	__u8	tcp_flags;		/* the low eight */
	__u8	fragment;		/* TND_ACL_FRAGMENT* */
	__u8	group;			/* that FLOW_CLASS has put it into; stage FLOW only (since 1.10, TND_FEAT_FLOW_CLASS) */
	__u8	reserved1[3];
};

enum tnd_acl_action {
	TND_ACL_PERMIT		= 0,	/* on its way */
	TND_ACL_DROP		= 1,
	/* to the CPU, as it came in, with reason TND_TRAP_ACL; FLOW: TND_TRAP_FLOW, no count, no mirror */
	TND_ACL_TRAP		= 2,
	TND_ACL_REDIRECT_PORT	= 3,	/* out of port @target as it is; stages PORT, FLOW */
	TND_ACL_REDIRECT_NEXTHOP = 4,	/* if it is routed: over next hop @target; stage PORT only */
	TND_ACL_REDIRECT_PORTS	= 5,	/* out of @ports; stage FLOW only (since 1.7) */
};

/*
 * Stage FLOW: the outer tag that it has, on its way out (the FDB is looked up with the
 * one that it came with); what has no tag goes to the CPU.
 *
 * Stage FLOW_CLASS, whose rules PERMIT (or TRAP) and name no counter, policer or mirror:
 * the VLAN id, the priority and the DSCP that the frame is classified with, and a group, 0
 * where no rule says another. Rules of stage FLOW see this VLAN id and this priority, the
 * kind of tag that it came with, and the group; the FDB is looked up in the domain of this
 * VLAN id. So it leaves: with a tag of this VLAN id, of type 802.1Q if it came without one
 * and then with priority 0 where none is set; without one if @vid is TND_ACL_VID_NONE, as
 * which it is also looked up; a priority alone is written into the tag that it has, a DSCP
 * into IPv4 and IPv6. The form of a domain's member goes before that. The CPU gets it as it
 * came.
 *
 * Stage FLOW_EGRESS, bound to the port that what came in at a flow port leaves by, be it
 * by a rule or by the FDB; not what the driver sends to a port. Rules ask for the ingress
 * port, for the VLAN id and the priority that the frame is classified with or that a rule
 * of stage FLOW has written (no other bit of @tci), or with @tag, all of its bits, for a
 * frame without (TND_ACL_UNTAGGED alone), and whether the destination is a group or
 * broadcast, where the device has that. They PERMIT (or TRAP) and name nothing: the form
 * of this copy is that with the rule's VLAN id and priority, as FLOW_CLASS has it, and
 * goes before the form of a domain's member; a rule without either leaves it as it is. If
 * a rule or a binding of one of its ports traps, the frame goes to the CPU as it came, and
 * to no port. What other ports get is nothing to a copy.
 */
#define TND_ACL_SET_VID		(1U << 0)	/* classify as if tagged with @vid; stages PORT, FLOW* */
#define TND_ACL_SET_PCP		(1U << 1)	/* priority @pcp in the tag that it leaves with; stages PORT, FLOW* */
#define TND_ACL_TRAP_CLASS	(1U << 2)	/* with TRAP: @trap_class, not the reason's own */
#define TND_ACL_SET_DSCP	(1U << 3)	/* @dscp; stage FLOW_CLASS only (since 1.10) */

/* tnd_acl_entry.vid at stages FLOW_CLASS, FLOW_EGRESS: without a tag */
#define TND_ACL_VID_NONE	4095

/* tnd_class_cost.family and tnd_lease_item.family of a rule: 0, TND_AF_*, or this */
#define TND_ACL_WIDTH_FULL	255	/* MAC addresses together with IP */

/*
 * TND_CLS_ACL_ENTRY: a rule; key = table, priority. UPDATE replaces the rule
 * in one step. The width of its key, and so its slots, follows from the fields
 * it looks at (docs/acl.md): DUMP of TND_CLS_COST has a line per width.
 *
 * A range of ports is an object of its own since 1.6: @src_range, @dst_range. A
 * port has a key, a range that is written out here, or one that is named: one of
 * the three. What is written out takes a range checker as an object does.
 *
 * Stage FLOW: a redirect does not send back to the port that the frame came in by. A
 * device whose keys or actions there can't do a rule answers TND_ST_UNSUPPORTED. To the
 * CPU, with TND_TRAP_FLOW, goes also what a rule can't do: write without a tag, a copy
 * out of a port with a list at stage EGRESS; and, wherever a list is bound, be it empty,
 * what has headers that rules can't tell: of IP with a wrong version or checksum, of
 * TCP, UDP, SCTP or ICMP that end early, of IPv6 with an authentication header or more
 * than seven extensions. What the policer of such a rule drops is counted at it.
 */
struct tnd_acl_entry {
	__le16	struct_size;
	__le16	action;			/* enum tnd_acl_action */
	__le32	table;
	__le32	priority;		/* the lower goes first */
	__le32	flags;			/* TND_ACL_SET_*, TND_ACL_TRAP_CLASS */
	struct tnd_acl_key key;		/* zero where the mask is */
	struct tnd_acl_key mask;
	__le16	src_port_min;		/* min..max; both zero: as the key says */
	__le16	src_port_max;
	__le16	dst_port_min;
	__le16	dst_port_max;
	__le32	counter;		/* tnd_acl_counter, 0: none */
	__le32	policer;		/* tnd_policer: what exceeds it is dropped; 0: none */
	__le32	target;			/* REDIRECT_*: port or next hop */
	__le16	mirror;			/* tnd_mirror: a copy there; 0: none */
	__le16	vid;			/* with SET_VID: 1..4094, or TND_ACL_VID_NONE */
	__le16	trap_class;		/* with TRAP_CLASS: enum tnd_trap_class */
	__u8	pcp;			/* with SET_PCP: 0..7 */
	__u8	dscp;			/* with SET_DSCP: 0..63 */
	__u8	group;			/* stage FLOW_CLASS: that rules of stage FLOW ask for; else 0 */
	__u8	reserved1[3];
	__le32	src_range;		/* tnd_acl_range of the source port, 0: none */
	__le32	dst_range;		/* of the destination port */
	__u8	ports[TND_PORT_SET_BYTES];	/* REDIRECT_PORTS: as in tnd_port_set */
};

enum tnd_acl_range_field {
	TND_ACL_RANGE_SRC	= 1,	/* source port */
	TND_ACL_RANGE_DST	= 2,	/* destination port */
};

/*
 * TND_CLS_ACL_RANGE (since 1.6): a comparator of ports, which rules share; key =
 * range. It can't be changed: rules have been written with it. A packet without
 * ports has port 0, as in tnd_acl_key.
 */
struct tnd_acl_range {
	__le16	struct_size;
	__le16	field;			/* enum tnd_acl_range_field */
	__le32	range;			/* id, chosen by the driver, not 0 */
	__le16	min;			/* min < max, both belong to it */
	__le16	max;
	__le32	reserved0;
};

/* TND_CLS_ACL_COUNTER: key = counter. Counts are read only and zero at CREATE */
struct tnd_acl_counter {
	__le16	struct_size;
	__le16	reserved0;
	__le32	counter;		/* id, chosen by the driver, not 0 */
	__le64	packets;		/* hits whose frame the chip has dealt with itself */
	__le64	bytes;			/* without FCS */
	__le64	used_ns;		/* of the last one, device clock; 0: never */
};

#define TND_POLICER_PACKETS	(1U << 0)	/* rate and burst are packets, else bytes */

/* TND_CLS_POLICER: a token bucket; key = policer. Counts are read only */
struct tnd_policer {
	__le16	struct_size;
	__le16	flags;			/* TND_POLICER_* */
	__le32	policer;		/* id, chosen by the driver, not 0 */
	__le64	rate;			/* per second, not 0 */
	__le64	burst;			/* not 0 */
	__le64	passed;			/* packets */
	__le64	dropped;
};

/* TND_CLS_MIRROR: a session; key = mirror. The count is read only */
struct tnd_mirror {
	__le16	struct_size;
	__le16	mirror;			/* id, not 0 */
	__le16	port;			/* analyser port; 0: the CPU, reason TND_TRAP_SAMPLE */
	__le16	reserved0;
	__le32	truncate;		/* bytes of each copy, 0: all */
	__le32	rate;			/* one of so many frames; 0 and 1: each */
	__le64	packets;		/* copies sent */
};

#endif /* _UAPI_LINUX_TANDEM_OBJECTS_H */
