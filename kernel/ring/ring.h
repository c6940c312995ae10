/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clsw_ring: what backends share whose chip speaks the ring ABI (abi/tandem.h)
 * over memory that both sides map, whatever carries it.
 *
 *      clsw ops                     the carrier's doorbells, or a timer
 *   +-----v------+-----------+      +--------v---------------------------+
 *   | queue.c    | packet.c  |      | backend: who is it for?            |
 *   | commands,  | rx and tx |      |  completions -> clsw_wake()        |
 *   | reading    +-----------+      |  rx, events  -> clsw_rx_schedule() |
 *   |            | event.c   |      |  header      -> attach again       |
 *   +-----v------+-----v-----+      +--------+---------------------------+
 *   | ring.c: indices, barriers          |  region.c: begin, end, failed  |
 *   +-----+------------------------------+  frame.c: the frame, checked   |
 *         |                              +--------------------------------+
 *         v  cp_region_ops.doorbell: the one thing that a carrier adds
 *      struct tnd_header, rings, arena
 *
 * A backend finds the memory, gives and hears doorbells, and asks for the
 * attach; the words of the header that do so are its affair.
 *
 * Nothing that the other side can write is believed: the frame is copied,
 * then checked, and the copy is used; indices are checked at every look,
 * descriptors are copied once. What can't be ends the attach: clsw_trouble().
 *
 * Locks: command queues live under clsw_lock(), the tx ring under tx_lock, rx
 * and event rings under rx_lock. clsw may take its lock, and a transmit may
 * take tx_lock, below rx_lock; nothing takes rx_lock below another one.
 * read_lock is a mutex outside of all of these.
 */
#ifndef _CLSW_RING_H
#define _CLSW_RING_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "clsw.h"

/* Entries of a ring and bytes of a packet entry that are accepted */
#define CP_RING_MAX		65536
#define CP_ENTRY_MAX		65536
/* Bytes of a long body: what asicd takes */
#define CP_BODY_MAX		65536
#define CP_PLATFORM_MAX		65536

/* Words for clsw_trouble() */
#define CP_WHY_CORRUPT		"corrupt ring"

/**
 * struct cp_geometry - one ring, copied from the directory and checked
 * @entry_size: bytes
 * @count: entries, a power of two; 0: no such ring
 * @doorbell: that its producer rings
 * @prod: offset of its line
 * @cons: offset of its line
 * @entries: offset of the first entry
 */
struct cp_geometry {
	u32 entry_size;
	u32 count;
	u32 doorbell;
	u64 prod;
	u64 cons;
	u64 entries;
};

/* The frame of a region, copied and checked against the BAR */
struct cp_frame {
	u64 size;
	u64 features;
	u32 device_peer;
	u16 minor;
	struct cp_geometry cmd[CLSW_Q_COUNT];
	struct cp_geometry cpl[CLSW_Q_COUNT];
	struct cp_geometry event;
	struct cp_geometry rx;
	struct cp_geometry tx;
	u64 arena;
	u64 arena_size;
	u64 platform;
	u64 platform_size;
	char name[TND_NAME_SIZE];
};

/**
 * struct cp_ring - our end of a ring
 * @prod: the producer's line
 * @cons: the consumer's line
 * @entries: first entry
 * @entry_size: bytes
 * @count: entries, a power of two
 * @doorbell: that the producer rings
 * @own: our index: the next entry to fill, or to take
 * @theirs: the other side's, as last seen and found possible
 * @rung: producer: index up to which the consumer was told
 * @hint: the consumer says when it wants a doorbell
 * @armed: consumer: we have asked for one
 */
struct cp_ring {
	struct tnd_ring_prod *prod;
	struct tnd_ring_cons *cons;
	u8 *entries;
	u32 entry_size;
	u32 count;
	u32 doorbell;
	u32 own;
	u32 theirs;
	u32 rung;
	bool hint;
	bool armed;
};

/**
 * struct cp_slot - a command whose completion is awaited
 * @cookie: clsw's: what the device says of it is only compared
 * @arena_end: where its body ends in the queue's part of the arena
 * @ours: of cp_queue_read(), not for clsw
 */
struct cp_slot {
	u64 cookie;
	u32 arena_end;
	bool ours;
};

/**
 * struct cp_queue - a command pair
 * @cmd: commands
 * @cpl: completions
 * @slots: by sequence number
 * @mask: slots - 1
 * @seq: of the next command
 * @done: of the first command without completion
 * @arena: offset, in the arena, of the part for long bodies
 * @arena_size: its bytes
 * @head: bytes given out, free-running
 * @tail: bytes taken back
 */
struct cp_queue {
	struct cp_ring cmd;
	struct cp_ring cpl;
	struct cp_slot *slots;
	u32 mask;
	u32 seq;
	u32 done;
	u32 arena;
	u32 arena_size;
	u32 head;
	u32 tail;
};

struct cp_region;

/**
 * struct cp_region_ops - what the carrier does
 * @doorbell: any context. Rings doorbell @number at the device: what was written
 *	before is seen by whoever hears it
 */
struct cp_region_ops {
	void (*doorbell)(struct cp_region *p, u32 number);
};

/**
 * struct cp_region - the memory between driver and chip, and our ends of its
 *	rings. The first member of a backend's clsw_priv(): clsw's ops get here by it
 * @cd: clsw's
 * @dev: for messages
 * @ops: the carrier's
 * @mem: the region, mapped write-back
 * @mem_size: bytes of it
 * @bells: doorbells that the carrier lets us hear: 0 to one below this
 * @frame: of the present attach
 * @epoch: of the present attach
 * @serving: clsw has attached and not detached: it may be called
 * @failed: this attach is over; set by anybody, cleared by cp_region_start()
 * @live: queues may be used; under clsw_lock()
 * @queue: command pairs; under clsw_lock()
 * @arena: the driver's memory in the region
 * @read_lock: one cp_queue_read() at a time
 * @read_at: offset in the arena of the results
 * @read_size: bytes there
 * @read_cpl: the completion that cp_queue_read() waits for
 * @read_done: it is there; under clsw_lock()
 * @tx_lock: protects @tx, @tx_live
 * @tx_timer: looks for room in the tx ring, which rings no bell
 * @rx_lock: protects @rx, @event, @rx_live, @event_seq
 * @event_seq: of the next event
 * @count: what went wrong on the wire
 */
struct cp_region {
	struct clsw_device *cd;
	struct device *dev;
	const struct cp_region_ops *ops;
	void *mem;
	size_t mem_size;
	u32 bells;
	struct cp_frame frame;
	u32 epoch;
	bool serving;
	bool failed;

	bool live;
	struct cp_queue queue[CLSW_Q_COUNT];
	u8 *arena;
	struct mutex read_lock;		/* one question at a time */
	u32 read_at;
	u32 read_size;
	struct tnd_cpl read_cpl;
	bool read_done;

	spinlock_t tx_lock;		/* tx, tx_live */
	bool tx_live;
	struct cp_ring tx;
	struct hrtimer tx_timer;

	spinlock_t rx_lock;		/* rx, event, rx_live, event_seq */
	bool rx_live;
	struct cp_ring rx;
	struct cp_ring event;
	u32 event_seq;

	struct {
		u64 lost, rx_bad, rx_nomem, tx_full;
	} count;
};

static inline struct tnd_header *cp_region_header(const struct cp_region *p)
{
	return p->mem;
}

/* ---- region.c ---- */
void cp_region_init(struct cp_region *p, struct clsw_device *cd, struct device *dev,
		    const struct cp_region_ops *ops);
int cp_region_start(struct cp_region *p, u32 epoch);
void cp_region_stop(struct cp_region *p);
void cp_region_fail(struct cp_region *p, const char *why);
void cp_region_exit(struct cp_region *p);

/* ---- frame.c ---- */
int cp_frame_read(struct cp_region *p, struct cp_frame *f);
struct tnd_platform *cp_frame_platform(struct cp_region *p, const struct cp_frame *f);

/* ---- ring.c ---- */
void cp_ring_init(struct cp_region *p, struct cp_ring *r,
		  const struct cp_geometry *g, bool hint);
int cp_ring_room(struct cp_ring *r);
void *cp_ring_slot(const struct cp_ring *r);
void cp_ring_publish(struct cp_ring *r);
void cp_ring_kick(struct cp_region *p, struct cp_ring *r);
int cp_ring_pending(struct cp_ring *r);
void cp_ring_take(struct cp_ring *r);
int cp_ring_arm(struct cp_ring *r);
void cp_ring_disarm(struct cp_ring *r);

/* ---- queue.c ---- */
int cp_queue_init(struct cp_region *p, struct cp_queue *q,
		  const struct cp_frame *f, unsigned int pair);
void cp_queue_exit(struct cp_queue *q);
/* clsw_table_ops */
int cp_queue_post(struct clsw_device *cd, enum clsw_queue q,
		  const struct tnd_cmd *cmd, const void *body);
void cp_queue_kick(struct clsw_device *cd, enum clsw_queue q);
int cp_queue_reap(struct clsw_device *cd, enum clsw_queue q, int budget);
bool cp_queue_want_irq(struct clsw_device *cd);
int cp_queue_read(struct clsw_device *cd, const struct tnd_cmd *cmd,
		  const void *body, void *out, u32 out_size, struct tnd_cpl *cpl);

/* ---- packet.c, event.c ---- */
void cp_packet_init(struct cp_region *p);
/* clsw_packet_ops */
int cp_packet_xmit(struct clsw_device *cd, const struct tnd_tx *meta,
		   struct sk_buff *skb);
int cp_packet_poll(struct clsw_device *cd, int budget);
bool cp_packet_arm(struct clsw_device *cd);
int cp_event_take(struct cp_region *p, int budget, const u32 *before);

#endif /* _CLSW_RING_H */
