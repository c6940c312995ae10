/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The other side of the rings, and clsw above ours: memory that begins as a device
 * lays it out, and what a device does with it, well or badly.
 *
 *   test -> cp_queue_post() ... -> region.mem <- peer_command() ... <- test
 *              clsw_complete(), clsw_event() -> seen
 */
#ifndef RING_PEER_H
#define RING_PEER_H

#include "ring.h"
#include "check.h"

#define EPOCH		7
#define CMD_COUNT	8
#define EVENT_COUNT	8
#define PACKET_COUNT	4
#define PACKET_SIZE	256
#define ARENA_SIZE	(4 * CP_BODY_MAX)

enum peer_ring { CMD0, CPL0, CMD1, CPL1, EVENT, RX, TX, PEER_RINGS };

struct seen {
	struct tnd_cpl cpl[64];
	u32 cpls;
	u32 events[256], event_count;	/* their numbers */
	u32 event_before[64];		/* how many events had come when this packet did */
	struct sk_buff *skb[64];
	struct tnd_rx meta[64];
	u32 packets;
	u32 bells[16];
	const char *why;
	u32 troubles, wakes, tx_wakes;
};

/* All of a test: our side, theirs, and what clsw was told */
struct peer {
	struct clsw_device *cd;
	struct cp_region *p;
	u8 *mem;
	size_t size;
	u64 at[PEER_RINGS];		/* of the entries */
	u32 own[PEER_RINGS];		/* the peer's index */
	struct seen seen;
	void (*meanwhile)(void);	/* while somebody sleeps */
};

extern struct peer peer;

/* The region as a device makes it; our side is not begun */
void peer_make(u64 features);
/* ... and it is: attached */
void peer_begin(u64 features);
void peer_end(void);
struct tnd_header *peer_header(void);
struct tnd_ring_info *peer_info(enum peer_ring ring);
struct tnd_ring_prod *peer_prod(enum peer_ring ring);
struct tnd_ring_cons *peer_cons(enum peer_ring ring);
/* Takes a command: false: there is none. @body: as many bytes as it says */
bool peer_command(unsigned int pair, struct tnd_cmd *cmd, u8 *body);
/* Whatever @cmd is, it succeeded; more of it is the caller's to fill in */
struct tnd_cpl peer_answer(const struct tnd_cmd *cmd);
/* Puts an entry into a ring of the device's, without looking for room */
void peer_put(enum peer_ring ring, const void *entry, size_t size);
void peer_event(u32 seq, u32 epoch);
void peer_packet(u32 len, u32 event_seq, u32 epoch);
/* The tx timer, if it is set */
void peer_tick(void);

#endif
