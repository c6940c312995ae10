/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Tandem device ABI: the contract between a switch driver and a switch ASIC.
 *
 * One shared-memory region carries everything: a header page, a directory of
 * single-producer/single-consumer rings, the rings, an arena that belongs to
 * the driver, and a read-only description of the platform. See abi/README.md
 * for a drawing of the memory map and of the life of one command.
 *
 * Conventions
 *  - All numbers are little endian. All offsets count bytes from the start of
 *    the region. Addresses (MAC, IPv4, IPv6) are in network byte order.
 *  - The frame (header, ring directory, descriptor heads) is frozen. Objects
 *    grow at the end only: struct_size says how much of a body is there, what
 *    the reader does not know is ignored, what is missing reads as zero.
 *  - Reserved fields are written as zero.
 *  - Neither side trusts the other: a descriptor is copied once, then checked.
 */
#ifndef _UAPI_LINUX_TANDEM_H
#define _UAPI_LINUX_TANDEM_H

#include <linux/types.h>

#define TND_MAGIC		0x31304d45444e4154ULL	/* "TANDEM01" */
#define TND_ABI_MAJOR		1
#define TND_ABI_MINOR		11

#define TND_HEADER_SIZE		4096
#define TND_MAX_RINGS		64
#define TND_CMD_SIZE		128	/* bytes of one command descriptor */
#define TND_CPL_SIZE		128	/* bytes of one completion */
#define TND_EVENT_SIZE		64	/* bytes of one event */
#define TND_PKT_META_SIZE	64	/* bytes before a frame in a packet ring */
#define TND_BODY_INLINE		64	/* bytes of body that a command carries */
#define TND_MAX_DELTAS		8	/* pool changes that a completion reports */
#define TND_NAME_SIZE		32

/* -------------------------------------------------------------------------
 * Frame: header page
 */

/* Feature bits: offered by the device, accepted by the driver */
#define TND_FEAT_LEASE		(1ULL << 0)	/* TND_OP_LEASE / RELEASE */
#define TND_FEAT_RESYNC		(1ULL << 1)	/* warm attach and sweep */
#define TND_FEAT_ACTIVITY	(1ULL << 2)	/* TND_OP_ACTIVITY */
#define TND_FEAT_HW_LEARNING	(1ULL << 3)	/* device learns and ages MACs */
#define TND_FEAT_DOORBELL_HINT	(1ULL << 4)	/* consumers publish TND_RING_NEED_KICK */
#define TND_FEAT_FLOWS		(1ULL << 5)	/* ports can be flow ports: TND_PORT_FLOWS (since 1.7) */
#define TND_FEAT_FLOW_MEMBERS	(1ULL << 6)	/* domains of flow ports can have members (since 1.8) */
#define TND_FEAT_FLOW_FIDS	(1ULL << 7)	/* their FID need not be the VID: TND_MEMBER_PVID (since 1.9) */
#define TND_FEAT_FLOW_CLASS	(1ULL << 8)	/* lists can classify what comes in there: TND_ACL_FLOW_CLASS (since 1.10) */
#define TND_FEAT_FLOW_EGRESS	(1ULL << 9)	/* and give what leaves a form by port: TND_ACL_FLOW_EGRESS (since 1.11) */

/* tnd_header.device_state */
enum tnd_device_state {
	TND_DEV_ABSENT		= 0,	/* nobody serves this region; wait for TND_DEV_READY */
	TND_DEV_READY		= 1,	/* waits for an attach */
	TND_DEV_ATTACHED	= 2,	/* rings are live */
	TND_DEV_FAILED		= 3,	/* rings dead, see fail_reason; attach again */
};

/* Requests that the driver writes into tnd_header.req_op */
enum tnd_request {
	TND_REQ_NONE		= 0,
	TND_REQ_ATTACH_COLD	= 1,	/* tables emptied, rings reset */
	TND_REQ_ATTACH_WARM	= 2,	/* tables kept, rings reset */
	TND_REQ_DETACH		= 3,	/* tables kept, rings dead */
	TND_REQ_RESET		= 4,	/* as ATTACH_COLD, on a live region */
};

/* Why the device left TND_DEV_ATTACHED by itself: tnd_header.fail_reason */
enum tnd_fail_reason {
	TND_FAIL_NONE		= 0,
	TND_FAIL_RING_INDEX	= 1,	/* producer ran ahead of the consumer by more than the ring */
	TND_FAIL_SEQUENCE	= 2,	/* a command's seq is not the expected one */
	TND_FAIL_BOUNDS		= 3,	/* an arena offset lies outside the arena */
	TND_FAIL_CPL_FULL	= 4,	/* the driver never reaps completions */
	TND_FAIL_INTERNAL	= 5,	/* the device reset itself */
};

/**
 * struct tnd_header - the first page of the region
 * @magic: TND_MAGIC; written last by the device
 * @abi_major: incompatible changes of the frame
 * @abi_minor: compatible additions
 * @header_size: TND_HEADER_SIZE
 * @region_size: bytes of the whole region
 * @features_offered: TND_FEAT_*, by the device
 * @features_accepted: subset, by the driver, before it requests an attach
 * @device_state: enum tnd_device_state, by the device
 * @fail_reason: enum tnd_fail_reason, by the device
 * @epoch: grows by one at every acknowledged attach or reset; commands and
 *	completions of an earlier epoch are void
 * @ring_count: entries in the ring directory
 * @ring_dir_offset: where the directory starts (struct tnd_ring_info)
 * @ring_dir_stride: bytes between directory entries
 * @cmd_pairs: number of command/completion pairs; pair 0 is for synchronous
 *	work, the others for bulk
 * @device_peer: where the driver's doorbells go on a carrier that addresses
 *	them (ivshmem: peer id), plus one; 0: the carrier needs no address.
 *	By the device; another device process may have another one
 * @arena_offset: driver-owned memory for long bodies and dump output
 * @arena_size: bytes
 * @platform_offset: struct tnd_platform
 * @platform_size: bytes
 * @driver_name: who attached, for the holder's name in a refusal
 * @req_op: enum tnd_request, by the driver, before @req_seq
 * @req_seq: by the driver, store-release; a new value is a new request
 * @driver_peer: where the device's doorbells go, as @device_peer; by the
 *	driver, before @req_seq
 * @ack_seq: by the device, store-release, equal to @req_seq when done
 * @ack_status: enum tnd_status of the request, by the device, before @ack_seq
 * @ack_epoch: epoch that the request began, by the device
 */
struct tnd_header {
	__le64	magic;
	__le16	abi_major;
	__le16	abi_minor;
	__le32	header_size;
	__le64	region_size;
	__le64	features_offered;
	__le64	features_accepted;
	__le32	device_state;
	__le32	fail_reason;
	__le32	epoch;
	__le32	ring_count;
	__le32	ring_dir_offset;
	__le32	ring_dir_stride;
	__le32	cmd_pairs;
	__le32	device_peer;
	__le64	arena_offset;
	__le64	arena_size;
	__le64	platform_offset;
	__le64	platform_size;
	__u8	device_name[TND_NAME_SIZE];
	__u8	driver_name[TND_NAME_SIZE];
	__u8	reserved1[88];
	/* offset 256: written by the driver */
	__le32	req_op;
	__le32	req_seq;
	__le32	driver_peer;
	__u8	reserved2[52];
	/* offset 320: written by the device */
	__le32	ack_seq;
	__le32	ack_status;
	__le32	ack_epoch;
	__u8	reserved3[52];
};

/* -------------------------------------------------------------------------
 * Frame: rings
 *
 * Free-running 32-bit indices; a ring is empty when producer == consumer and
 * full when producer - consumer == entry_count. The producer writes the
 * entry, then its index with release; the consumer loads the producer's index
 * with acquire, copies the entry, then stores its own index with release.
 *
 * Sleeping: a consumer that is about to sleep sets TND_RING_NEED_KICK in its
 * flags word, issues a full barrier and looks at the producer's index once
 * more. A producer that has published issues a full barrier and rings the
 * doorbell only if the flag is set. Only the consumer writes the flags word.
 */
enum tnd_ring_kind {
	TND_RING_CMD		= 1,	/* driver to device, struct tnd_cmd */
	TND_RING_CPL		= 2,	/* device to driver, struct tnd_cpl */
	TND_RING_EVENT		= 3,	/* device to driver, struct tnd_event */
	TND_RING_RX		= 4,	/* device to driver, struct tnd_rx + frame */
	TND_RING_TX		= 5,	/* driver to device, struct tnd_tx + frame */
};

#define TND_RING_NEED_KICK	(1U << 0)

/**
 * struct tnd_ring_info - one entry of the ring directory
 * @kind: enum tnd_ring_kind
 * @pair: number of the command pair; 0 for the other kinds
 * @entry_size: bytes between entries, a multiple of 64
 * @entry_count: a power of two
 * @doorbell: number of the doorbell that the producer rings. A carrier
 *	supplies one signal per number and direction
 * @prod_offset: struct tnd_ring_prod
 * @cons_offset: struct tnd_ring_cons
 * @entries_offset: first entry
 */
struct tnd_ring_info {
	__le16	kind;
	__le16	pair;
	__le32	entry_size;
	__le32	entry_count;
	__le32	doorbell;
	__le64	prod_offset;
	__le64	cons_offset;
	__le64	entries_offset;
	__u8	reserved[24];
};

/* Each index has a 64-byte line of its own and one writer */
struct tnd_ring_prod {
	__le32	index;
	__u8	reserved[60];
};

struct tnd_ring_cons {
	__le32	index;
	__le32	flags;		/* TND_RING_NEED_KICK */
	__u8	reserved[56];
};

/* -------------------------------------------------------------------------
 * Frame: commands and completions
 */
enum tnd_op {
	/* completes in order; a barrier with TND_CMD_BARRIER; a sign that its driver is there */
	TND_OP_NOP		= 0,
	TND_OP_CREATE		= 1,	/* an equal object succeeds; another one is TND_ST_EXISTS */
	TND_OP_UPDATE		= 2,	/* atomic, in place; absent is TND_ST_NOENT */
	TND_OP_DELETE		= 3,	/* absent is TND_ST_NOENT unless TND_CMD_IDEMPOTENT */
	TND_OP_SET_TRAP		= 4,	/* route, neighbour, FDB, next hop: to the CPU; needs no space */
	TND_OP_QUERY		= 5,	/* body = key; object written at out_offset */
	TND_OP_DUMP		= 6,	/* objects of cls from cursor arg on, at out_offset */
	TND_OP_ACTIVITY		= 7,	/* read and clear: keys of cls used since the last call */
	TND_OP_LEASE		= 8,	/* body = struct tnd_lease; result = lease id */
	TND_OP_RELEASE		= 9,	/* give back what is left of @lease, or of the one @arg names */
	TND_OP_BEGIN_RESYNC	= 10,	/* every object becomes "not confirmed" */
	TND_OP_END_RESYNC	= 11,	/* sweep what was not confirmed; result = number swept */
	TND_OP_SNAPSHOT		= 12,	/* all pools of one instant at out_offset: struct tnd_pool[] */
};

/* Classes: bodies are in tandem_objects.h; some are only numbered yet */
enum tnd_class {
	TND_CLS_NONE		= 0,
	TND_CLS_PORT		= 1,
	TND_CLS_VLAN		= 2,	/* a forwarding domain (FID) */
	TND_CLS_VLAN_MEMBER	= 3,
	TND_CLS_FDB		= 4,
	TND_CLS_VRF		= 5,
	TND_CLS_RIF		= 6,
	TND_CLS_NEIGH		= 7,
	TND_CLS_NEXTHOP		= 8,
	TND_CLS_NHG		= 9,
	TND_CLS_ROUTE		= 10,
	TND_CLS_TRAP		= 11,
	TND_CLS_LAG		= 12,
	TND_CLS_MDB		= 13,
	TND_CLS_ACL_TABLE	= 14,
	TND_CLS_ACL_ENTRY	= 15,
	TND_CLS_ACL_COUNTER	= 16,
	TND_CLS_ACL_RANGE	= 17,	/* since 1.6 */
	TND_CLS_POLICER		= 18,
	TND_CLS_MIRROR		= 19,
	TND_CLS_QUEUE		= 20,
	TND_CLS_ACL_BIND	= 21,
	TND_CLS_STORM		= 22,
	TND_CLS_PORT_SET	= 23,	/* since 1.7 */
	TND_CLS_COST		= 32,	/* DUMP only: struct tnd_class_cost */
	TND_CLS_GEOMETRY	= 33,	/* DUMP only: struct tnd_geometry; a device may not tell */
	TND_CLS_PORT_STATS	= 34,	/* DUMP only: struct tnd_port_stats; the cursor is the port */
	TND_CLS_LED		= 35,
	TND_CLS_NHG_STATS	= 36,	/* DUMP, QUERY: struct tnd_nhg_stats; a device may not tell */
};

#define TND_CMD_IDEMPOTENT	(1U << 0)	/* DELETE of an absent object succeeds */
#define TND_CMD_LEASE		(1U << 1)	/* take slots from @lease before free ones */
#define TND_CMD_BARRIER		(1U << 2)	/* start when all earlier commands of this ring are done */
#define TND_CMD_WAIT		(1U << 3)	/* start when ring @wait_pair has completed @wait_seq */
#define TND_CMD_ARENA		(1U << 4)	/* body lies at @body_offset in the arena */

/**
 * struct tnd_cmd - one command, 128 bytes: a head of 64, a body of 64
 * @op: enum tnd_op
 * @cls: enum tnd_class
 * @flags: TND_CMD_*
 * @cookie: returned unchanged in the completion
 * @seq: grows by one per command of a ring, from 0 at attach
 * @lease: lease id, with TND_CMD_LEASE or for RELEASE
 * @wait_pair: command pair, with TND_CMD_WAIT
 * @body_size: bytes of body, inline or in the arena
 * @wait_seq: with TND_CMD_WAIT
 * @body_offset: from the start of the arena, with TND_CMD_ARENA
 * @out_offset: from the start of the arena: where results go
 * @out_size: bytes available there
 * @arg: DUMP: cursor, 0 first; RELEASE with @lease 0: the cookie of a LEASE
 *	whose completion was lost, TND_ST_LEASE if it was not granted; else zero
 * @epoch: the driver's epoch; another one is TND_ST_STALE
 */
struct tnd_cmd {
	__le16	op;
	__le16	cls;
	__le32	flags;
	__le64	cookie;
	__le32	seq;
	__le32	lease;
	__le16	wait_pair;
	__le16	reserved0;
	__le32	body_size;
	__le32	wait_seq;
	__le32	body_offset;
	__le32	out_offset;
	__le32	out_size;
	__le64	arg;
	__le32	epoch;
	__le32	reserved1;
	__u8	body[TND_BODY_INLINE];
};

enum tnd_status {
	TND_ST_OK		= 0,
	TND_ST_TABLE_FULL	= 1,	/* @table has no free slots: @needed, @free, @size */
	TND_ST_BUCKET_FULL	= 2,	/* @table has free slots, but not for this key */
	TND_ST_EXISTS		= 3,
	TND_ST_NOENT		= 4,
	TND_ST_IN_USE		= 5,	/* another object refers to it */
	TND_ST_DEPEND		= 6,	/* it refers to an object that is not there */
	TND_ST_INVALID		= 7,
	TND_ST_UNSUPPORTED	= 8,	/* op or cls not known to this device */
	TND_ST_LEASE		= 9,	/* no such lease, or it is used up */
	TND_ST_FAULT		= 10,	/* the hardware failed the write */
	TND_ST_STALE		= 11,	/* wrong epoch */
	TND_ST_NO_OUTPUT	= 12,	/* out_size too small for one record */
	TND_ST_BUSY		= 13,	/* attach: another driver holds the chip */
};

/* A change of one pool. @slots > 0: taken, < 0: given back */
struct tnd_delta {
	__le16	pool;
	__le16	reserved;
	__le32	slots;		/* two's complement */
};

/**
 * struct tnd_cpl - one completion, 128 bytes
 * @op: of the command
 * @cls: of the command
 * @status: enum tnd_status
 * @delta_count: valid entries of @delta
 * @cookie: of the command
 * @seq: of the command
 * @epoch: of the attach
 * @table: pool id, with TABLE_FULL and BUCKET_FULL
 * @needed: slots wanted
 * @free: slots free in @table when it was tried
 * @size: slots of @table
 * @cost_ns: what the write or query cost in the latency model
 * @result: LEASE: lease id; DUMP: next cursor, 0 = end; END_RESYNC: swept
 * @out_len: bytes written at out_offset
 * @out_count: records written at out_offset
 * @delta: how the pools changed
 */
struct tnd_cpl {
	__le16	op;
	__le16	cls;
	__le16	status;
	__le16	delta_count;
	__le64	cookie;
	__le32	seq;
	__le32	epoch;
	__le16	table;
	__le16	reserved0;
	__le32	needed;
	__le32	free;
	__le32	size;
	__le64	cost_ns;
	__le64	result;
	__le32	out_len;
	__le32	out_count;
	struct tnd_delta delta[TND_MAX_DELTAS];
};

/* -------------------------------------------------------------------------
 * Frame: events
 */
enum tnd_event_kind {
	TND_EV_LOST		= 1,	/* events were lost: re-dump class @cls */
	TND_EV_LEARN		= 2,	/* new (fid, mac) on port */
	TND_EV_MOVE		= 3,	/* (fid, mac) went from old_port to port */
	TND_EV_AGE		= 4,	/* (fid, mac) not seen for the ageing time, removed */
	TND_EV_LINK		= 5,	/* port went up or down */
	TND_EV_TRAP_DROP	= 6,	/* class's last policer dropped @count packets since the last event */
};

/**
 * struct tnd_event - one event, 64 bytes
 * @kind: enum tnd_event_kind
 * @cls: with LOST: enum tnd_class
 * @seq: grows by one per event, from 0 at attach
 * @epoch: of the attach
 * @fid: forwarding domain
 * @port: front-panel port, from 1
 * @old_port: with MOVE
 * @up: with LINK: 1 = carrier
 * @speed_mbps: with LINK
 * @trap_class: with TRAP_DROP: enum tnd_trap_class
 * @mac: with LEARN, MOVE, AGE
 * @count: with TRAP_DROP and LOST
 */
struct tnd_event {
	__le16	kind;
	__le16	cls;
	__le32	seq;
	__le32	epoch;
	__le16	fid;
	__le16	port;
	__le16	old_port;
	__le16	up;
	__le32	speed_mbps;
	__le32	trap_class;
	__u8	mac[6];
	__u8	reserved0[6];
	__le64	count;
	__u8	reserved1[16];
};

/* -------------------------------------------------------------------------
 * Frame: packets between the CPU and the chip
 */

/* The ASIC has already done this to the packet: what offload_fwd_mark says */
#define TND_RX_L2_FORWARDED	(1U << 0)	/* flooded or bridged; the CPU gets a copy */
#define TND_RX_L3_FORWARDED	(1U << 1)	/* routed; the CPU gets a copy */
#define TND_RX_TAGGED		(1U << 2)	/* tpid/tci are those of the frame's outer tag */

/* Why a packet came to the CPU: tnd_rx.reason, and the key of TND_CLS_TRAP */
enum tnd_trap_reason {
	TND_TRAP_LINK_PROTO	= 1,	/* 01:80:c2:00:00:0X */
	TND_TRAP_ARP		= 2,
	TND_TRAP_ND		= 3,	/* ICMPv6 133..137 */
	TND_TRAP_IGMP_MLD	= 4,
	TND_TRAP_ROUTING	= 5,	/* to an own address or a routing protocol's group */
	TND_TRAP_LOCAL		= 6,	/* to an own address: the rest */
	TND_TRAP_L2_LOCAL	= 7,	/* FDB entry says CPU */
	TND_TRAP_BROADCAST	= 8,	/* copy of a flooded broadcast or multicast */
	TND_TRAP_UNRESOLVED	= 9,	/* route is there, its next hop is not resolved */
	TND_TRAP_TTL		= 10,	/* TTL or hop limit expires here */
	TND_TRAP_MTU		= 11,	/* longer than the egress RIF's MTU */
	TND_TRAP_OPTIONS	= 12,	/* IPv4 options, IPv6 hop-by-hop */
	TND_TRAP_LPM_MISS	= 13,	/* no route in hardware */
	TND_TRAP_ROUTE		= 14,	/* entry set to trap: what it stands for did not fit */
	TND_TRAP_FDB_INCOMPLETE	= 15,	/* FDB entry missing, or its port out of the FID */
	TND_TRAP_UNSUPPORTED	= 16,	/* the interface has a feature the chip can't do */
	TND_TRAP_L2_MULTICAST	= 17,	/* multicast the CPU must forward (snooping) */
	TND_TRAP_REDIRECT	= 18,	/* leaves by the interface it came in on (RFC 792) */
	TND_TRAP_CONNECTED	= 19,	/* connected route, neighbour not resolved */
	TND_TRAP_ERROR		= 20,	/* the kernel owes an answer or a counter: bad source, checksum */
	TND_TRAP_ACL		= 21,	/* a rule says so */
	TND_TRAP_ACL_INCOMPLETE	= 22,	/* a list that has not all of its rules in hardware */
	TND_TRAP_SAMPLE		= 23,	/* copy of a frame, by a mirror session */
	/* flow port: a rule, an entry, TRAP_ALL, or an incomplete list; what rules can't do or tell (since 1.7) */
	TND_TRAP_FLOW		= 24,
	TND_TRAP_FLOW_MISS	= 25,	/* flow port: nothing there knows the frame, or its source */
	TND_TRAP_REASON_COUNT	= 26,
};

/*
 * Queues to the CPU, each with a last policer, of which every reason in it has
 * a share of its own. Strict order: LINK, CONTROL, DISCOVERY, UNRESOLVED, DATA,
 * FLOW; numbers are in the order in which the classes were added
 */
enum tnd_trap_class {
	TND_TC_LINK		= 0,	/* link protocols: LACP, BPDU, LLDP */
	TND_TC_CONTROL		= 1,	/* routing protocols, own addresses */
	TND_TC_UNRESOLVED	= 2,	/* packets that make the kernel resolve */
	TND_TC_DATA		= 3,	/* data fallback: what did not fit */
	TND_TC_DISCOVERY	= 4,	/* ARP, ND, IGMP, MLD (since 1.5) */
	TND_TC_FLOW		= 5,	/* what flow ports don't answer (since 1.7) */
	TND_TC_COUNT		= 6,
};

/**
 * struct tnd_rx - before a frame in the RX ring; the frame follows at
 *	TND_PKT_META_SIZE, as it was on the wire, without FCS, tag included
 * @len: bytes of frame
 * @port: ingress port, from 1
 * @reason: enum tnd_trap_reason
 * @trap_class: enum tnd_trap_class
 * @flags: TND_RX_*
 * @fid: forwarding domain it was classified into, 0 = none
 * @tpid: of the outer tag
 * @tci: of the outer tag
 * @event_seq: events posted before this packet; handle those below first
 * @epoch: of the attach
 * @time_ns: device clock at ingress
 */
struct tnd_rx {
	__le32	len;
	__le16	port;
	__le16	reason;
	__le16	trap_class;
	__le16	flags;
	__le16	fid;
	__le16	tpid;
	__le16	tci;
	__le16	reserved0;
	__le32	event_seq;
	__le32	epoch;
	__le32	reserved1;
	__le64	time_ns;
	__u8	reserved2[24];
};

#define TND_TX_PIPELINE		(1U << 0)	/* through the pipeline, as if it came in on @port */

/**
 * struct tnd_tx - before a frame in the TX ring
 * @len: bytes of frame
 * @port: egress port, from 1; ingress port with TND_TX_PIPELINE
 * @flags: TND_TX_*
 * @epoch: of the attach
 */
struct tnd_tx {
	__le32	len;
	__le16	port;
	__le16	flags;
	__le32	epoch;
	__u8	reserved[52];
};

/* Bodies of objects: ports, forwarding domains, routes, rules, ... */
#include "tandem_objects.h"

/* -------------------------------------------------------------------------
 * Resources
 */

/**
 * struct tnd_pool - one physical pool in a SNAPSHOT.
 *	used + in_flight + committed + free == size, each counted by itself
 * @pool: id; ids are dense, discovered by SNAPSHOT
 * @flags: zero
 * @size: slots
 * @used: by objects that are written
 * @in_flight: by commands accepted and not completed yet
 * @committed: by leases
 * @free: by nobody
 * @high_watermark: largest used + in_flight since reset
 * @name: "exact-match", "ipv4-lpm", …, NUL terminated
 * @unit: what a slot is, "entry", "member", …
 */
struct tnd_pool {
	__le16	pool;
	__le16	flags;
	__le32	size;
	__le32	used;
	__le32	in_flight;
	__le32	committed;
	__le32	free;
	__le32	high_watermark;
	__le32	reserved0;
	__u8	name[TND_NAME_SIZE];
	__u8	unit[TND_NAME_SIZE];
};

/**
 * struct tnd_class_cost - what one object of a class takes (DUMP of TND_CLS_COST)
 * @cls: enum tnd_class
 * @family: TND_AF_*, 0 = any
 * @pool: where it lives
 * @cost: slots of one object
 * @free_guaranteed: objects that fit whatever their keys are
 * @free_expected: objects that fit if keys spread as usual
 * @name: "mac", "ipv4-host", "ipv4-route", …
 */
struct tnd_class_cost {
	__le16	struct_size;
	__le16	cls;
	__u8	family;
	__u8	reserved0;
	__le16	pool;
	__le32	cost;
	__le32	free_guaranteed;
	__le32	free_expected;
	__le32	reserved1;
	__u8	name[TND_NAME_SIZE];
};

/* How the exact-match memory finds a key's buckets: tnd_geometry.hash; abi/README.md */
#define TND_EXACT_HASH_MIX64	1

/**
 * struct tnd_geometry - how the tables are built (DUMP of TND_CLS_GEOMETRY, one
 *	record): enough to place an entry in a model exactly as the device does
 * @exact_pool: pool id of the exact-match memory
 * @hash: TND_EXACT_HASH_*
 * @seed: of the hash
 * @banks: a key has one bucket in each
 * @buckets_per_bank: need not be a power of two
 * @slots_per_bucket: 4 or 8
 * @stash: slots of the overflow stash; guarantees stand on it
 * @max_moves: entries that one insert may move
 * @max_depth: entries in one chain of moves
 * @search_budget: runs of slots that one insert looks at
 * @width_mac: slots of a MAC address
 * @width_host4: slots of an IPv4 host
 * @width_host6: slots of an IPv6 host
 * @nhg_member_pool: pool id of the members of next-hop groups
 * @nhg_max_members: of one group
 */
struct tnd_geometry {
	__le16	struct_size;
	__le16	exact_pool;
	__le32	hash;
	__le64	seed;
	__le32	banks;
	__le32	buckets_per_bank;
	__le32	slots_per_bucket;
	__le32	stash;
	__le32	max_moves;
	__le32	max_depth;
	__le32	search_budget;
	__u8	width_mac;
	__u8	width_host4;
	__u8	width_host6;
	__u8	reserved0;
	__le16	nhg_member_pool;
	__le16	reserved1;
	__le32	nhg_max_members;
};

/**
 * struct tnd_port_stats - counters of a port since the device's start (DUMP of
 *	TND_CLS_PORT_STATS; ask with cursor = port and room for one record)
 * @port: from 1
 * @rx_packets: came in, dropped ones included
 * @rx_bytes: without FCS
 * @rx_multicast: to a group, broadcast apart
 * @rx_broadcast: to all
 * @rx_dropped: came in here and were dropped, for whatever reason
 * @rx_cpu: came in here and went to the CPU, instead or as a copy
 * @tx_packets: went out
 * @tx_bytes: without FCS
 * @tx_multicast: as @rx_multicast
 * @tx_broadcast: as @rx_broadcast
 * @tx_dropped: the egress queue had no room
 */
struct tnd_port_stats {
	__le16	struct_size;
	__le16	port;
	__le32	reserved0;
	__le64	rx_packets;
	__le64	rx_bytes;
	__le64	rx_multicast;
	__le64	rx_broadcast;
	__le64	rx_dropped;
	__le64	rx_cpu;
	__le64	tx_packets;
	__le64	tx_bytes;
	__le64	tx_multicast;
	__le64	tx_broadcast;
	__le64	tx_dropped;
};

/**
 * struct tnd_nhg_member_stats - counter of one member
 * @nexthop: as in tnd_nhg_member
 * @packets: sent to it by routes over this group, since it is a member
 */
struct tnd_nhg_member_stats {
	__le32	nexthop;
	__le32	reserved0;
	__le64	packets;
};

/**
 * struct tnd_nhg_stats - counters of a group's members, in their order, which
 *	follow the struct (DUMP and QUERY of TND_CLS_NHG_STATS, since 1.3). What
 *	the device sends to the CPU is not counted: the CPU does that. A member
 *	that stays when the group is swapped keeps its count
 * @count: members
 * @nhg: as in tnd_nhg; the key of a QUERY
 */
struct tnd_nhg_stats {
	__le16	struct_size;
	__le16	count;
	__le32	nhg;
};

#define TND_LEASE_MAX_CLASSES	8

/* One line of a lease: room for @count objects of a class, whatever their keys */
struct tnd_lease_item {
	__le16	cls;
	__u8	family;
	__u8	reserved0;
	__le32	count;
};

/* Body of TND_OP_LEASE: items follow the struct */
struct tnd_lease {
	__le16	struct_size;		/* of this struct, without items */
	__le16	count;			/* items, at most TND_LEASE_MAX_CLASSES */
	__le32	reserved0;
};

/* -------------------------------------------------------------------------
 * Platform information: what a board's firmware says (seed 000, 6.1 and 6.4)
 */
#define TND_CAGE_RJ45		1
#define TND_CAGE_SFP		2
#define TND_CAGE_QSFP		3

#define TND_BREAKOUT_NONE	(1U << 0)	/* 1 port */
#define TND_BREAKOUT_2		(1U << 1)	/* 2 ports */
#define TND_BREAKOUT_4		(1U << 2)	/* 4 ports */

struct tnd_platform_port {
	__le16	port;			/* number in all objects, from 1 */
	__le16	front_panel;		/* number printed on the box, from 1 */
	__le16	cage;			/* TND_CAGE_* */
	__le16	lanes;
	__le32	breakout_modes;		/* TND_BREAKOUT_* */
	__le32	max_speed_mbps;
};

/**
 * struct tnd_platform - at platform_offset
 * @port_count: entries of struct tnd_platform_port at @ports_offset
 * @ports_offset: from the start of this struct
 * @eeprom_offset: an ONIE TlvInfo image, from the start of this struct
 * @eeprom_size: bytes
 * @chip: profile's name, NUL terminated
 */
struct tnd_platform {
	__le16	struct_size;
	__le16	port_count;
	__le32	ports_offset;
	__le32	eeprom_offset;
	__le32	eeprom_size;
	__u8	chip[TND_NAME_SIZE];
};

#endif /* _UAPI_LINUX_TANDEM_H */
