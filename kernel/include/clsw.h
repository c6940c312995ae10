/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clsw, the common layer for switchdev drivers: what a backend author reads.
 *
 *        ip  bridge  devlink  ethtool
 *             |  notifiers, netdev and devlink ops
 *      +------v-------------------------------+
 *      | clsw: ports, L2, L3, resources       |   clsw.ko
 *      |   store (what should be there)       |
 *      |   drainer (makes it so)              |
 *      +------+----------------^--------------+
 *        ops  |                | clsw_complete(), clsw_event(),
 *             v                | clsw_receive(), clsw_trouble()
 *      +----------------------------------------+
 *      | backend: null, pci, ...                |
 *      +----------------------------------------+
 *
 * A backend never sees a notifier, a bridge or a netdev. It moves commands,
 * events and packets, all of them laid out by abi/tandem.h, between clsw and
 * one chip. Numbers in commands are little endian, as the ABI has them; a
 * backend for other hardware translates.
 *
 * Locks. Each device has one spinlock, taken with bottom halves off by
 * clsw_lock(). It protects clsw's store and the backend's command queues. Ops
 * marked *locked* are called with it held; ops marked *may sleep* without it.
 * Nothing else of clsw's is taken below it. A backend that needs a lock of its
 * own takes it inside.
 *
 * Waiting. Whoever is owed a refusal (a route's FIB notifier) waits for the chip
 * in a busy loop below that spinlock, so with bottom halves off: @reap again and
 * again, with two bounds. A chip that answers nothing for clsw.silent_ms of time
 * spent looking is not trusted any more (a virtual machine loses its processors:
 * what it did not look at does not count), and what was asked fails. A put
 * that has waited for clsw.wait_ms by the clock waits no more: what it wants is
 * deferred, written or refused later, and its watcher is told. One route may be
 * several puts: its next hops, their group, itself.
 */
#ifndef _CLSW_H
#define _CLSW_H

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/types.h>

#include "tandem.h"

struct clsw_device;

/* Commands of one queue are executed and completed in order */
enum clsw_queue {
	CLSW_Q_SYNC	= 0,	/* leases and questions: a caller waits */
	CLSW_Q_BULK	= 1,	/* writes */
	CLSW_Q_COUNT
};

/**
 * struct clsw_table_ops - the chip's tables; all mandatory
 * @post: locked. Queue one command. The backend fills in seq and epoch; the
 *	rest of the head is clsw's. @body is copied before it returns, whatever
 *	@cmd says of arenas; le32 cmd->body_size is its length. 0, -EAGAIN
 *	(queue full: reap and try again), -E2BIG (body longer than the device
 *	takes) or -ENODEV
 * @kick: locked. Everything posted so far should be looked at now
 * @reap: locked. Call clsw_complete() for finished commands of a queue, at
 *	most @budget; returns how many. Must be callable in a busy loop with
 *	interrupts on and bottom halves off
 * @want_irq: locked. The caller is about to sleep: call clsw_wake() when a
 *	completion comes. True: there is one already, don't sleep
 * @read: may sleep. One command with results in @out (DUMP, SNAPSHOT,
 *	ACTIVITY, QUERY); @cpl is its completion. 0, -ETIMEDOUT or -ENODEV
 */
struct clsw_table_ops {
	int (*post)(struct clsw_device *cd, enum clsw_queue q,
		    const struct tnd_cmd *cmd, const void *body);
	void (*kick)(struct clsw_device *cd, enum clsw_queue q);
	int (*reap)(struct clsw_device *cd, enum clsw_queue q, int budget);
	bool (*want_irq)(struct clsw_device *cd);
	int (*read)(struct clsw_device *cd, const struct tnd_cmd *cmd,
		    const void *body, void *out, u32 out_size,
		    struct tnd_cpl *cpl);
};

/* What a chip and its backend can do: clsw_caps.can */
#define CLSW_CAN_PACKETS	BIT(0)	/* packets go up and down: clsw_backend.packet */
#define CLSW_CAN_STATS		BIT(1)	/* clsw_port_ops.stats */
#define CLSW_CAN_IDENTIFY	BIT(2)	/* clsw_port_ops.identify */
#define CLSW_CAN_VERSION	BIT(3)	/* clsw_device_ops.info */
/* Learns stations by itself: FDB entries come and go without a command */
#define CLSW_CAN_LEARN		BIT(4)
/* Keeps its tables over an attach, and sweeps what a replay has not confirmed (*_RESYNC) */
#define CLSW_CAN_ATTACH_WARM	BIT(5)
/*
 * Answers within microseconds: a put may wait for it with bottom halves off. Without,
 * each put that would is deferred at once, and the policy lockstep is refused
 */
#define CLSW_CAN_BUSY_WAIT	BIT(6)

/**
 * struct clsw_caps - what a chip can do, and where it ends. What is beyond clsw's
 *	own limits is not used; 0 where there is no limit but those
 * @can: CLSW_CAN_*
 * @classes: bits 1 << enum tnd_class: objects of others are never posted.
 *	CLSW_CLASSES_MUST are mandatory
 * @fids: forwarding domains, numbered from 1
 * @rif: highest number of a router interface; mandatory: 1024 + @fids, or more. Those on
 *	a port's VLANs have numbers from 5120 on: without any their packets go to the CPU
 * @port: highest number of a front-panel port
 * @group_weight: of a member of a next-hop group (how many it takes: tnd_geometry)
 * @mtu: of a port, bytes behind the Ethernet header
 * @policer_rate: packets per second
 * @policer_burst: packets
 */
struct clsw_caps {
	u32 can;
	u32 classes;
	u16 fids;
	u16 rif;
	u16 port;
	u16 group_weight;
	u32 mtu;
	u32 policer_rate;
	u32 policer_burst;
};

/* What a chip of this ABI has from the start */
#define CLSW_CLASSES_L2		(BIT(TND_CLS_PORT) | BIT(TND_CLS_TRAP) | BIT(TND_CLS_VLAN) | \
				 BIT(TND_CLS_VLAN_MEMBER) | BIT(TND_CLS_FDB))
#define CLSW_CLASSES_L3		(BIT(TND_CLS_VRF) | BIT(TND_CLS_RIF) | BIT(TND_CLS_NEIGH) | \
				 BIT(TND_CLS_NEXTHOP) | BIT(TND_CLS_NHG) | BIT(TND_CLS_ROUTE))

/* Without groups multipath routes trap; without any of the others there is no router */
#define CLSW_CLASSES_MUST	((CLSW_CLASSES_L2 | CLSW_CLASSES_L3) & ~BIT(TND_CLS_NHG))

/* Classes of objects that clsw writes: 1 to one below this */
#define CLSW_CLASS_COUNT	(TND_CLS_TRAP + 1)

/**
 * struct clsw_class - a class of objects
 * @name: for people
 * @size: bytes of the body's struct
 * @least: bytes of it without which there is no key
 * @place: in the order in which they are written, from 0: what is referred to
 *	before what refers to it. They are deleted backwards
 * @fixed: always there: UPDATE alone
 * @named_by: classes whose objects refer to one of this: BIT(TND_CLS_...). A DELETE of
 *	one waits while a write of such is out that shall go as well
 * @key_words: of the store's key, in words of 8 bytes, the class's own number included
 * @degraded_at: offset of a le32 of flags in the body
 * @degraded: bits of it by which the chip gives to the CPU what it has not got yet: set
 *	while a replay fills a chip that began empty; 0: none
 * @members: most that may follow the body; 0: none do
 * @member_size: bytes of one
 * @key: where its key lies in the body: pieces, up to one of length 0
 */
struct clsw_class {
	const char *name;
	u8 size;
	u8 least;
	u8 place;
	bool fixed;
	u8 key_words;
	u8 degraded_at;
	u16 members;
	u16 member_size;
	u32 degraded;
	u32 named_by;
	struct {
		u8 offset;
		u8 len;
	} key[4];
};

/* By enum tnd_class; a row without a name is no class */
extern const struct clsw_class clsw_classes[CLSW_CLASS_COUNT];

enum clsw_attach_mode {
	CLSW_ATTACH_COLD,	/* tables emptied */
	CLSW_ATTACH_WARM,	/* tables kept, clsw replays and sweeps */
};

/**
 * struct clsw_device_ops - life of the chip
 * @attach: mandatory, may sleep. Afterwards queues are empty and live, and
 *	whatever was posted before is void. Bounded: 0, -ETIMEDOUT, -EBUSY
 *	(another driver holds the chip), -ENODEV, -ECONNREFUSED (it said no)
 * @detach: mandatory, may sleep. Tables stay as they are; afterwards the
 *	backend calls nothing of clsw's
 * @alive: mandatory, locked. False once the chip has reset itself, failed
 *	the rings or gone; until the next @attach
 * @caps: mandatory, may sleep, after each @attach. Fills in *@caps, which is all zero.
 *	What it says first is what clsw goes by: a chip that has less later is not taken,
 *	and not attached again before the backend calls clsw_trouble() once more
 * @platform: mandatory, may sleep. The chip's struct tnd_platform with all it
 *	points to; *@size bytes, valid until the device is unregistered
 * @info: with CLSW_CAN_VERSION, may sleep. Firmware version for devlink and ethtool, at
 *	most @size bytes with NUL
 */
struct clsw_device_ops {
	int (*attach)(struct clsw_device *cd, enum clsw_attach_mode mode);
	void (*detach)(struct clsw_device *cd);
	bool (*alive)(struct clsw_device *cd);
	void (*caps)(struct clsw_device *cd, struct clsw_caps *caps);
	const struct tnd_platform *(*platform)(struct clsw_device *cd,
					       size_t *size);
	void (*info)(struct clsw_device *cd, char *version, size_t size);
};

/**
 * struct clsw_packet_ops - packets between the CPU and the chip, with
 *	CLSW_CAN_PACKETS; without, ports carry none
 * @xmit: mandatory, softirq or process, not locked but serialised by clsw.
 *	@skb is linear, 60 bytes or longer, checksums done; the backend
 *	copies it and leaves it to clsw. 0; -EBUSY (queue full: clsw stops
 *	the ports until clsw_tx_wake()); others: dropped, clsw counts it
 * @poll: mandatory, NAPI context. Call clsw_event() and clsw_receive() in the
 *	order of the ABI (events below a packet's event_seq first); at most
 *	@budget packets; returns how many
 * @arm: mandatory, NAPI context. @poll did less than its budget: signal the
 *	next packet or event by clsw_rx_schedule(). True: there is one already
 */
struct clsw_packet_ops {
	int (*xmit)(struct clsw_device *cd, const struct tnd_tx *meta,
		    struct sk_buff *skb);
	int (*poll)(struct clsw_device *cd, int budget);
	bool (*arm)(struct clsw_device *cd);
};

/* Counters of one front-panel port, as the chip has them */
struct clsw_port_stats {
	u64 rx_packets;
	u64 rx_bytes;
	u64 rx_dropped;
	u64 tx_packets;
	u64 tx_bytes;
	u64 tx_dropped;
};

/**
 * struct clsw_port_ops - front-panel ports; all may sleep
 * @stats: with CLSW_CAN_STATS: counters of port @port since the chip's start
 * @identify: with CLSW_CAN_IDENTIFY: LED on or off
 */
struct clsw_port_ops {
	int (*stats)(struct clsw_device *cd, u16 port,
		     struct clsw_port_stats *stats);
	int (*identify)(struct clsw_device *cd, u16 port, bool on);
};

/**
 * struct clsw_backend - what a backend hands over
 * @name: short: "pci", "null"
 * @owner: THIS_MODULE
 * @device: mandatory
 * @table: mandatory
 * @packet: with CLSW_CAN_PACKETS
 * @port: with CLSW_CAN_STATS or CLSW_CAN_IDENTIFY
 * @priv_size: bytes of clsw_priv()
 */
struct clsw_backend {
	const char *name;
	struct module *owner;
	const struct clsw_device_ops *device;
	const struct clsw_table_ops *table;
	const struct clsw_packet_ops *packet;
	const struct clsw_port_ops *port;
	size_t priv_size;
};

/* ---- what a backend calls ---- */

/* May sleep. @parent: the PCI or platform device. NULL: no memory */
struct clsw_device *clsw_device_alloc(const struct clsw_backend *backend,
				      struct device *parent);
/*
 * May sleep. Attaches cold, asks for pools and costs, makes netdevs, joins
 * the notifiers. Ops are called from here on until unregister returns.
 */
int clsw_device_register(struct clsw_device *cd);
void clsw_device_unregister(struct clsw_device *cd);
void clsw_device_free(struct clsw_device *cd);

/* Memory of priv_size bytes, zeroed */
void *clsw_priv(struct clsw_device *cd);
struct device *clsw_parent(struct clsw_device *cd);

void clsw_lock(struct clsw_device *cd);
void clsw_unlock(struct clsw_device *cd);

/* Locked, from @reap alone */
void clsw_complete(struct clsw_device *cd, const struct tnd_cpl *cpl);
/* Any context: completions wait (after @want_irq) */
void clsw_wake(struct clsw_device *cd);
/* Any context: packets or events wait (after @arm) */
void clsw_rx_schedule(struct clsw_device *cd);
/* NAPI context, from @poll alone */
void clsw_event(struct clsw_device *cd, const struct tnd_event *event);
/* NAPI context, from @poll alone; takes @skb (the frame, tag included) */
void clsw_receive(struct clsw_device *cd, const struct tnd_rx *meta,
		  struct sk_buff *skb);
/* Any context: room in the transmit queue again */
void clsw_tx_wake(struct clsw_device *cd);
/*
 * Any context: the chip has failed, reset itself or vanished; @alive says
 * false from now on. @why is a constant string, for the health report. clsw
 * attaches again from a work item and replays its store.
 */
void clsw_trouble(struct clsw_device *cd, const char *why);

#endif /* _CLSW_H */
