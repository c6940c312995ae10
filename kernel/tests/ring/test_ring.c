// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the ring library: rings, command pairs, reading, packets, events, the frame.
 *
 * usage: test_ring [-v] [ROUNDS [SEED]]
 */
#include <linux/skbuff.h>

#include "peer.h"

static u32 rounds = 1;
static u64 base_seed = 1;
static const char *only;

/* ---- ring.c: one ring ---- */

#define SLOTS	8

static struct {
	struct tnd_ring_prod prod;
	struct tnd_ring_cons cons;
	u32 entry[SLOTS][16];
} memory;

static void ring_at(struct cp_ring *r, u32 index, bool hint)
{
	const struct cp_geometry g = {
		.entry_size = sizeof(memory.entry[0]),
		.count = SLOTS,
		.doorbell = 5,
		.prod = offsetof(typeof(memory), prod),
		.cons = offsetof(typeof(memory), cons),
		.entries = offsetof(typeof(memory), entry),
	};
	struct cp_region p = { .mem = &memory };

	memset(&memory, 0, sizeof(memory));
	cp_ring_init(&p, r, &g, hint);
	r->own = index;
	r->theirs = index;
	r->rung = index;
	memory.prod.index = cpu_to_le32(index);
	memory.cons.index = cpu_to_le32(index);
}

/* Producer and consumer, both ours, on one ring whose indices pass zero */
static void indices_pass_zero(void)
{
	struct cp_ring in, out;
	struct rnd r = { base_seed };
	u32 i, pushed = 0, popped = 0;
	int room;

	ring_at(&in, -3 * SLOTS, true);
	ring_at(&out, -3 * SLOTS, true);
	for (i = 0; i < 20000 * rounds; i++) {
		if (rnd(&r) & 1) {
			room = cp_ring_room(&in);
			CHECK(room == (int)(SLOTS - (pushed - popped)), "%d", room);
			if (!room)
				continue;
			*(u32 *)cp_ring_slot(&in) = pushed++;
			cp_ring_publish(&in);
		} else {
			room = cp_ring_pending(&out);
			CHECK(room == (int)(pushed - popped), "%d", room);
			if (!room)
				continue;
			CHECK(*(u32 *)cp_ring_slot(&out) == popped);
			popped++;
			cp_ring_take(&out);
		}
	}
	CHECK(pushed > 6 * SLOTS);
}

/* The other side's index may go on by what is possible, never back */
static void impossible_indices(void)
{
	struct cp_ring r;
	u32 base = -4, i;

	ring_at(&r, base, true);
	for (i = 0; i < 3; i++)
		cp_ring_publish(&r);
	memory.cons.index = cpu_to_le32(base + 2);
	CHECK(cp_ring_room(&r) == SLOTS - 1);
	memory.cons.index = cpu_to_le32(base + 4);
	CHECK(cp_ring_room(&r) == -EIO, "took what was not published");
	memory.cons.index = cpu_to_le32(base + 1);
	CHECK(cp_ring_room(&r) == -EIO, "gave back what it had taken");
	memory.cons.index = cpu_to_le32(base + 3);
	CHECK(cp_ring_room(&r) == SLOTS);

	ring_at(&r, base, true);
	memory.prod.index = cpu_to_le32(base + SLOTS);
	CHECK(cp_ring_pending(&r) == SLOTS);
	memory.prod.index = cpu_to_le32(base + SLOTS + 1);
	CHECK(cp_ring_pending(&r) == -EIO, "more than there is room");
	memory.prod.index = cpu_to_le32(base + SLOTS - 1);
	CHECK(cp_ring_pending(&r) == -EIO, "took back what it had published");
	cp_ring_take(&r);
	memory.prod.index = cpu_to_le32(base + SLOTS + 1);
	CHECK(cp_ring_pending(&r) == SLOTS);
}

static u32 rung;

static void ring_bell(struct cp_region *p, u32 number)
{
	CHECK(number == 5, "%u", number);
	rung++;
}

static void bells_are_saved(void)
{
	const struct cp_region_ops ops = { .doorbell = ring_bell };
	struct cp_region p = { .ops = &ops };
	struct cp_ring r;

	rung = 0;
	ring_at(&r, 0, true);
	cp_ring_kick(&p, &r);
	CHECK(!rung, "nothing was published");
	cp_ring_publish(&r);
	cp_ring_kick(&p, &r);
	CHECK(!rung, "the consumer is awake");
	memory.cons.flags = cpu_to_le32(TND_RING_NEED_KICK);
	cp_ring_kick(&p, &r);
	CHECK(!rung, "it has been looked at");
	cp_ring_publish(&r);
	cp_ring_publish(&r);
	cp_ring_kick(&p, &r);
	cp_ring_kick(&p, &r);
	CHECK(rung == 1, "%u bells for two entries", rung);

	/* a consumer that can't say when it sleeps */
	ring_at(&r, 0, false);
	cp_ring_publish(&r);
	cp_ring_kick(&p, &r);
	CHECK(rung == 2);

	/* and our own end, about to sleep: what came meanwhile is seen */
	ring_at(&r, 0, true);
	CHECK(!cp_ring_arm(&r));
	CHECK(memory.cons.flags == cpu_to_le32(TND_RING_NEED_KICK));
	memory.prod.index = cpu_to_le32(1);
	CHECK(cp_ring_arm(&r) == 1);
	cp_ring_disarm(&r);
	CHECK(!memory.cons.flags);
}

/* ---- a thread on the other end ---- */

#define THREAD_ENTRIES	200000

static void *taker(void *arg)
{
	struct cp_ring *r = arg;
	u32 want = 0;
	int n;

	while (want < THREAD_ENTRIES) {
		n = cp_ring_pending(r);
		CHECK(n >= 0, "%d", n);
		while (n--) {
			u32 *e = cp_ring_slot(r);

			CHECK(e[0] == want && e[15] == ~want, "%u is %u, %u", want, e[0], ~e[15]);
			cp_ring_take(r);
			want++;
		}
	}
	return NULL;
}

/* What is published is whole, also where both ends run at a time */
static void two_ends(void)
{
	struct cp_ring in, out;
	pthread_t thread;
	u32 i = 0, *e;
	int room;

	ring_at(&in, -1000, true);
	ring_at(&out, -1000, true);
	CHECK(!pthread_create(&thread, NULL, taker, &out));
	while (i < THREAD_ENTRIES) {
		room = cp_ring_room(&in);
		CHECK(room >= 0, "%d", room);
		while (room-- && i < THREAD_ENTRIES) {
			e = cp_ring_slot(&in);
			e[0] = i;
			e[15] = ~i;
			cp_ring_publish(&in);
			i++;
		}
	}
	pthread_join(thread, NULL);
}

/* ---- queue.c ---- */

static int post(u32 cookie, u32 size)
{
	static u8 body[2 * CP_BODY_MAX];
	const struct tnd_cmd cmd = {
		.op = cpu_to_le16(TND_OP_CREATE),
		.cookie = cpu_to_le64(cookie),
		.body_size = cpu_to_le32(size),
		/* what only the library says */
		.flags = cpu_to_le32(TND_CMD_ARENA),
		.seq = cpu_to_le32(~0u),
		.epoch = cpu_to_le32(~0u),
	};
	u32 i;
	int ret;

	for (i = 0; i < size && i < sizeof(body); i++)
		body[i] = cookie + i * 7 + (i >> 8);
	clsw_lock(peer.cd);
	ret = cp_queue_post(peer.cd, CLSW_Q_BULK, &cmd, body);
	clsw_unlock(peer.cd);
	/* it was copied */
	memset(body, 0xee, sizeof(body));
	return ret;
}

static int reap(int budget)
{
	int n;

	clsw_lock(peer.cd);
	n = cp_queue_reap(peer.cd, CLSW_Q_BULK, budget);
	clsw_unlock(peer.cd);
	return n;
}

/* Takes one, as it was posted; its answer */
static struct tnd_cpl take(u32 cookie, u32 size)
{
	static u8 body[CP_BODY_MAX];
	struct tnd_cmd cmd;
	u32 i;

	CHECK(peer_command(1, &cmd, body));
	CHECK(le64_to_cpu(cmd.cookie) == cookie && le32_to_cpu(cmd.body_size) == size);
	CHECK(le32_to_cpu(cmd.epoch) == EPOCH);
	CHECK(!!(cmd.flags & cpu_to_le32(TND_CMD_ARENA)) == (size > TND_BODY_INLINE));
	/* in this pair's eighth of the arena */
	if (size > TND_BODY_INLINE)
		CHECK(le32_to_cpu(cmd.body_offset) >= ARENA_SIZE / 8 &&
		      le32_to_cpu(cmd.body_offset) + size <= ARENA_SIZE / 4);
	for (i = 0; i < size; i++)
		CHECK(body[i] == (u8)(cookie + i * 7 + (i >> 8)), "%u of %u of command %u", i,
		      size, cookie);
	return peer_answer(&cmd);
}

/* Commands with bodies of all lengths, in order; full is -EAGAIN and nothing more */
static void commands_arrive(void)
{
	u32 posted = 0, taken = 0, answered = 0, reaped = 0, full = 0;
	struct tnd_cpl cpl[CMD_COUNT];
	struct rnd r = { base_seed };
	u32 size[CMD_COUNT];
	u32 i, want;
	int ret;

	peer_begin(TND_FEAT_DOORBELL_HINT);
	for (i = 0; i < 20000 * rounds; i++) {
		switch (below(&r, 4)) {
		case 0:
			want = below(&r, below(&r, 4) ? 2 * TND_BODY_INLINE : ARENA_SIZE / 16);
			ret = post(posted, want);
			CHECK(ret == 0 || ret == -EAGAIN, "%d", ret);
			if (ret)
				full++;
			else
				size[posted++ % CMD_COUNT] = want;
			CHECK(ret || posted - reaped <= CMD_COUNT);
			break;
		case 1:
			if (taken < posted) {
				cpl[taken % CMD_COUNT] = take(taken, size[taken % CMD_COUNT]);
				taken++;
			}
			break;
		case 2:
			if (answered < taken) {
				peer_put(CPL1, &cpl[answered % CMD_COUNT], sizeof(cpl[0]));
				answered++;
			}
			break;
		default:
			ret = reap(below(&r, 4));
			while (ret--) {
				CHECK(le64_to_cpu(peer.seen.cpl[reaped % 64].cookie) == reaped);
				reaped++;
			}
		}
		CHECK(peer.seen.cpls == reaped && reaped <= answered);
	}
	CHECK(full > 100 && posted > 1000, "%u full, %u posted", full, posted);
	CHECK(!peer.seen.troubles && !peer.p->count.lost);
	peer_end();
}

static void bodies_have_an_end(void)
{
	u32 most = ARENA_SIZE / 16, i;

	peer_begin(0);
	CHECK(post(0, CP_BODY_MAX + 1) == -E2BIG);
	CHECK(post(0, most + 1) == -E2BIG);
	/* two of them fill the part of the arena; the ring has room yet */
	CHECK(!post(0, most) && !post(1, most));
	CHECK(post(2, TND_BODY_INLINE + 1) == -EAGAIN);
	CHECK(!post(2, TND_BODY_INLINE));
	for (i = 0; i < 2; i++) {
		struct tnd_cpl cpl = take(i, most);

		CHECK(post(3, most) == -EAGAIN, "the body before is looked at yet");
		peer_put(CPL1, &cpl, sizeof(cpl));
		CHECK(reap(64) == 1);
		CHECK(!post(3 + i, most));
	}
	peer_end();
}

/* A completion that is missing between two others was lost; it is nobody else's */
static void lost_completions(void)
{
	struct tnd_cpl cpl[6];
	u32 i;

	peer_begin(0);
	for (i = 0; i < 6; i++)
		CHECK(!post(i, 8));
	for (i = 0; i < 6; i++)
		cpl[i] = take(i, 8);
	peer_put(CPL1, &cpl[1], sizeof(cpl[0]));
	peer_put(CPL1, &cpl[4], sizeof(cpl[0]));
	CHECK(reap(64) == 2 && peer.p->count.lost == 3);
	CHECK(peer.seen.cpl[1].cookie == cpu_to_le64(4));
	/* one that came late after all */
	peer_put(CPL1, &cpl[2], sizeof(cpl[0]));
	CHECK(!reap(64) && peer.seen.troubles == 1 && !strcmp(peer.seen.why, CP_WHY_CORRUPT));
	CHECK(post(6, 8) == -ENODEV && !reap(64));
	peer_end();
}

static void answers_that_are_none(void)
{
	u32 i;

	for (i = 0; i < 6; i++) {
		struct tnd_cpl cpl;

		peer_begin(0);
		CHECK(!post(3, 8));
		cpl = take(3, 8);
		switch (i) {
		case 0:
			cpl.seq = cpu_to_le32(1);
			break;
		case 1:
			cpl.seq = cpu_to_le32(-1);
			break;
		case 2:
			cpl.cookie = cpu_to_le64(4);
			break;
		case 3:
			cpl.epoch = cpu_to_le32(EPOCH - 1);
			break;
		case 4:
			cpl.delta_count = cpu_to_le16(TND_MAX_DELTAS + 1);
			break;
		}
		peer_put(CPL1, &cpl, sizeof(cpl));
		if (i == 5)
			peer_prod(CPL1)->index = cpu_to_le32(CMD_COUNT + 1);
		CHECK(!reap(64) && !peer.seen.cpls, "%u", i);
		CHECK(peer.seen.troubles == 1, "%u", i);
		reap(64);
		CHECK(peer.seen.troubles == 1, "said once");
		peer_end();
	}
}

/* ---- cp_queue_read() ---- */

static struct tnd_cmd asked[2];
static u32 questions;

static void remember(void)
{
	static u8 body[CP_BODY_MAX];
	struct tnd_cmd cmd;

	while (peer_command(0, &cmd, body))
		asked[questions++ & 1] = cmd;
}

static void answer_question(const struct tnd_cmd *cmd, const char *text, u32 len)
{
	struct tnd_cpl cpl = peer_answer(cmd);

	memcpy(peer.p->arena + le32_to_cpu(cmd->out_offset), text, strlen(text));
	cpl.out_len = cpu_to_le32(len);
	peer_put(CPL0, &cpl, sizeof(cpl));
}

static void answer_at_once(void)
{
	u32 before = questions;

	remember();
	if (questions != before)
		answer_question(&asked[(questions - 1) & 1], "tables", 1000000);
}

/* The first question's answer comes after the second one was asked */
static void answer_late(void)
{
	u32 before = questions;

	remember();
	if (questions != 2)
		return;
	if (before == 1)
		answer_question(&asked[0], "stale", 5);
	else if (asked[1].op)
		answer_question(&asked[1], "fresh", 5);
	if (before == 2)
		asked[1].op = 0;
}

static void another_attach(void)
{
	remember();
	if (questions == 1)
		peer.p->epoch = EPOCH + 1;
}

static void reading(void)
{
	const struct tnd_cmd cmd = { .op = cpu_to_le16(TND_OP_DUMP), .cookie = cpu_to_le64(9) };
	char out[8] = "", rest[8] = "untouch";
	struct tnd_cpl cpl;

	peer_begin(TND_FEAT_DOORBELL_HINT);
	questions = 0;
	peer.meanwhile = answer_at_once;
	CHECK(!cp_queue_read(peer.cd, &cmd, NULL, out, 6, &cpl));
	/* not more than was asked for, whatever it says of the length */
	CHECK(!memcmp(out, "tables\0", 8) && le32_to_cpu(cpl.out_len) == 6);
	CHECK(le64_to_cpu(cpl.cookie) == 9 && peer.seen.wakes == 1 && !peer.seen.cpls);
	CHECK(le32_to_cpu(asked[0].out_size) == 6);
	/* bodies of commands lie elsewhere */
	CHECK(le32_to_cpu(asked[0].out_offset) >= CLSW_Q_COUNT * ARENA_SIZE / 8);

	questions = 0;
	peer.meanwhile = answer_late;
	CHECK(cp_queue_read(peer.cd, &cmd, NULL, rest, 5, &cpl) == -ETIMEDOUT);
	CHECK(!strcmp(rest, "untouch"));
	CHECK(!cp_queue_read(peer.cd, &cmd, NULL, out, 5, &cpl));
	CHECK(!memcmp(out, "fresh", 5), "%.5s", out);

	questions = 0;
	peer.meanwhile = another_attach;
	CHECK(cp_queue_read(peer.cd, &cmd, NULL, out, 5, &cpl) == -ENODEV);
	peer_end();
}

/* ---- packet.c, event.c ---- */

static void events_before_packets(void)
{
	peer_begin(0);
	peer_event(0, EPOCH);
	peer_event(1, EPOCH);
	peer_event(2, EPOCH);
	peer_packet(60, 2, EPOCH);
	peer_packet(100, 2, EPOCH);
	CHECK(cp_packet_poll(peer.cd, 1) == 1);
	CHECK(peer.seen.packets == 1);
	CHECK(peer.seen.event_before[0] == 2, "%u", peer.seen.event_before[0]);
	CHECK(peer.seen.skb[0]->len == 60 && peer.seen.skb[0]->data[1] == 61);
	CHECK(peer.seen.event_count == 3, "the rest comes behind the packets");
	CHECK(cp_packet_poll(peer.cd, 64) == 1 && peer.seen.skb[1]->len == 100);
	CHECK(!cp_packet_arm(peer.cd));
	CHECK(peer_cons(RX)->flags && peer_cons(EVENT)->flags);
	peer_event(3, EPOCH);
	CHECK(cp_packet_arm(peer.cd), "an event came while it was armed");
	CHECK(!cp_packet_poll(peer.cd, 64) && peer.seen.event_count == 4);
	CHECK(!peer_cons(RX)->flags && !peer_cons(EVENT)->flags);
	peer_end();
}

static void packets_that_are_none(void)
{
	u32 most = PACKET_SIZE - TND_PKT_META_SIZE;

	peer_begin(0);
	peer_packet(13, 0, EPOCH);
	peer_packet(most + 1, 0, EPOCH);
	peer_packet(60, 0, EPOCH - 1);
	peer_packet(most, 0, EPOCH);
	cp_packet_poll(peer.cd, 64);
	CHECK(peer.seen.packets == 1 && peer.seen.skb[0]->len == most && peer.p->count.rx_bad == 3);
	shim_no_skb = true;
	peer_packet(60, 0, EPOCH);
	cp_packet_poll(peer.cd, 64);
	shim_no_skb = false;
	CHECK(peer.seen.packets == 1 && peer.p->count.rx_nomem == 1);
	/* all of them were given back */
	CHECK(le32_to_cpu(peer_cons(RX)->index) == 5);
	/* events of an earlier attach are nobody's */
	peer_event(0, EPOCH - 1);
	peer_event(1, EPOCH);
	cp_packet_poll(peer.cd, 64);
	CHECK(peer.seen.event_count == 1 && peer.seen.events[0] == 1);
	CHECK(!peer.seen.troubles);
	peer_prod(RX)->index = cpu_to_le32(100);
	cp_packet_poll(peer.cd, 64);
	CHECK(peer.seen.troubles == 1);
	peer_end();
}

static int send(u32 len)
{
	const struct tnd_tx meta = { .port = cpu_to_le16(2), .epoch = cpu_to_le32(~0u) };
	struct sk_buff *skb = shim_alloc(sizeof(*skb) + len, GFP_KERNEL);
	int ret;

	skb->len = len;
	memset(skb->data, len, len);
	ret = cp_packet_xmit(peer.cd, &meta, skb);
	kfree(skb);
	return ret;
}

static void sending(void)
{
	struct tnd_tx *tx;
	u32 i;

	peer_begin(TND_FEAT_DOORBELL_HINT);
	tx = (struct tnd_tx *)(peer.mem + peer.at[TX]);
	peer_cons(TX)->flags = cpu_to_le32(TND_RING_NEED_KICK);
	CHECK(send(PACKET_SIZE - TND_PKT_META_SIZE + 1) == -EMSGSIZE);
	CHECK(!send(PACKET_SIZE - TND_PKT_META_SIZE));
	CHECK(le32_to_cpu(tx->len) == PACKET_SIZE - TND_PKT_META_SIZE);
	CHECK(tx->port == cpu_to_le16(2) && le32_to_cpu(tx->epoch) == EPOCH);
	CHECK(*((u8 *)tx + PACKET_SIZE - 1) == PACKET_SIZE - TND_PKT_META_SIZE);
	CHECK(peer.seen.bells[1 + TX] == 1);
	for (i = 1; i < PACKET_COUNT; i++)
		CHECK(!send(60));
	CHECK(send(60) == -EBUSY && peer.p->count.tx_full == 1);
	peer_tick();
	CHECK(!peer.seen.tx_wakes && peer.p->tx_timer.queued, "no room, and it looks on");
	peer_cons(TX)->index = cpu_to_le32(1);
	peer_tick();
	CHECK(peer.seen.tx_wakes == 1 && !peer.p->tx_timer.queued);
	CHECK(!send(60));
	peer_cons(TX)->index = cpu_to_le32(0);
	CHECK(send(60) == -ENODEV && peer.seen.troubles == 1);
	peer_end();
}

/* ---- region.c: an attach ends, the next one begins at zero ---- */

static void the_next_attach(void)
{
	struct tnd_cpl old;
	u32 i;

	peer_begin(0);
	for (i = 0; i < 3; i++)
		peer_event(i, EPOCH);
	CHECK(!cp_packet_poll(peer.cd, 64) && peer.seen.event_count == 3);
	CHECK(!post(1, 8));
	old = take(1, 8);
	cp_region_fail(peer.p, "tried");
	CHECK(peer.seen.troubles == 1 && post(2, 8) == -ENODEV);
	cp_region_stop(peer.p);
	CHECK(post(2, 8) == -ENODEV && send(60) == -ENODEV && !cp_packet_poll(peer.cd, 64));
	peer_put(CPL1, &old, sizeof(old));
	CHECK(!reap(64) && !peer.seen.cpls);
	/* the device empties its rings */
	for (i = 0; i < PEER_RINGS; i++) {
		*peer_prod(i) = (struct tnd_ring_prod){};
		*peer_cons(i) = (struct tnd_ring_cons){};
		peer.own[i] = 0;
	}
	CHECK(!cp_frame_read(peer.p, &peer.p->frame));
	CHECK(!cp_region_start(peer.p, EPOCH));
	CHECK(!post(3, 200));
	old = take(3, 200);
	CHECK(!old.seq);
	peer_put(CPL1, &old, sizeof(old));
	CHECK(reap(64) == 1);
	/* events are counted anew: this packet's come before it */
	peer_event(0, EPOCH);
	peer_event(1, EPOCH);
	peer_packet(60, 2, EPOCH);
	CHECK(cp_packet_poll(peer.cd, 1) == 1 && peer.seen.packets == 1);
	CHECK(peer.seen.event_before[0] == 5, "%u", peer.seen.event_before[0]);
	peer_end();
}

/* ---- frame.c ---- */

static int frame(void)
{
	struct cp_frame f;

	return cp_frame_read(peer.p, &f);
}

static void a_frame_is_checked(void)
{
	struct tnd_header good, *h;
	struct tnd_ring_info info;
	u32 i;

	peer_make(~0ull);
	h = peer_header();
	good = *h;
	CHECK(!frame());
#define WITH(field, value, want) do {						\
		(field) = (value);						\
		CHECK(frame() == (want), #field);				\
		*h = good;							\
	} while (0)
	WITH(h->magic, 0, -EAGAIN);
	WITH(h->magic, cpu_to_le64(1), -ENODEV);
	WITH(h->abi_major, cpu_to_le16(TND_ABI_MAJOR + 1), -EPROTO);
	WITH(h->region_size, cpu_to_le64(peer.size + 1), -EPROTO);
	WITH(h->region_size, cpu_to_le64(TND_HEADER_SIZE - 1), -EPROTO);
	WITH(h->device_peer, 0, -EPROTO);
	WITH(h->device_peer, cpu_to_le32(U16_MAX + 2), -EPROTO);
	WITH(h->ring_count, cpu_to_le32(TND_MAX_RINGS + 1), -EPROTO);
	WITH(h->ring_count, cpu_to_le32(PEER_RINGS - 1), -EPROTO);
	WITH(h->ring_count, 0, -EPROTO);
	WITH(h->ring_dir_stride, cpu_to_le32(sizeof(info) - 1), -EPROTO);
	WITH(h->ring_dir_stride, cpu_to_le32(U32_MAX), -EPROTO);
	WITH(h->ring_dir_offset, cpu_to_le32(peer.size - 8), -EPROTO);
	WITH(h->ring_dir_offset, cpu_to_le32(4), -EPROTO);
	WITH(h->arena_offset, cpu_to_le64(peer.size - ARENA_SIZE + 8), -EPROTO);
	WITH(h->arena_offset, cpu_to_le64(-8ull), -EPROTO);
	WITH(h->arena_size, cpu_to_le64(ARENA_SIZE - 1), -EPROTO);
	WITH(h->arena_size, cpu_to_le64(-8ull), -EPROTO);
	WITH(h->platform_offset, cpu_to_le64(peer.size), -EPROTO);
	WITH(h->platform_size, cpu_to_le64(CP_PLATFORM_MAX + 8), -EPROTO);
	WITH(h->platform_size, cpu_to_le64(sizeof(struct tnd_platform) - 1), -EPROTO);

	for (i = 0; i < PEER_RINGS; i++) {
		struct tnd_ring_info *there = peer_info(i);

		info = *there;
#define RING_WITH(field, value) do {						\
		(field) = (value);						\
		CHECK(frame() == -EPROTO, "ring %u: " #field, i);		\
		*there = info;							\
	} while (0)
		RING_WITH(there->entry_count, cpu_to_le32(3));
		RING_WITH(there->entry_count, 0);
		RING_WITH(there->entry_count, cpu_to_le32(2 * CP_RING_MAX));
		RING_WITH(there->entry_size, cpu_to_le32(64 - 8));
		RING_WITH(there->entry_size, cpu_to_le32(PACKET_SIZE + 8));
		RING_WITH(there->entry_size, cpu_to_le32(CP_ENTRY_MAX + 64));
		RING_WITH(there->prod_offset, cpu_to_le64(peer.size - 63));
		RING_WITH(there->prod_offset, cpu_to_le64(peer.size));
		RING_WITH(there->cons_offset, cpu_to_le64(info.cons_offset + 4));
		RING_WITH(there->entries_offset, cpu_to_le64(peer.size - 64));
		RING_WITH(there->entries_offset, cpu_to_le64(-64ull));
		RING_WITH(there->doorbell, cpu_to_le32(U16_MAX + 1));
		/* of a later ABI: as if it were not there, and each is asked for */
		RING_WITH(there->kind, cpu_to_le16(99));
		if (i == CMD0 || i == CMD1 || i == TX)
			continue;
		/* one that we hear */
		RING_WITH(there->doorbell, cpu_to_le32(8));
	}
	peer_end();
}

/* The memory may say anything at any time: nothing outside is touched, nobody turns for ever */
static void scribble(void)
{
	struct tnd_cmd cmd = { .op = cpu_to_le16(TND_OP_DUMP) };
	struct rnd r = { base_seed };
	struct tnd_cpl cpl;
	char out[64];
	u32 i, k, at;

	for (i = 0; i < 400 * rounds; i++) {
		u32 words = TND_HEADER_SIZE * 3 / 4;

		peer_begin(below(&r, 2) ? TND_FEAT_DOORBELL_HINT : 0);
		for (k = 0; k < 40; k++) {
			at = below(&r, words);
			/* mostly the indices */
			if (below(&r, 3))
				at = 2 * TND_HEADER_SIZE / 4 + below(&r, 2 * PEER_RINGS * 16);
			((u32 *)peer.mem)[at] = below(&r, 2) ? below(&r, 40) : rnd(&r);
			switch (below(&r, 6)) {
			case 0:
				post(k, below(&r, 5000));
				break;
			case 1:
				reap(below(&r, 64));
				break;
			case 2:
				cp_packet_poll(peer.cd, 64);
				cp_packet_arm(peer.cd);
				break;
			case 3:
				send(60);
				peer_tick();
				break;
			case 4:
				if (!below(&r, 8))
					cp_queue_read(peer.cd, &cmd, NULL, out, sizeof(out), &cpl);
				break;
			default:
				cp_region_stop(peer.p);
				if (!cp_frame_read(peer.p, &peer.p->frame))
					CHECK(!cp_region_start(peer.p, EPOCH + k));
			}
		}
		peer_end();
	}
}

#define TEST(name) { #name, name }
static const struct {
	const char *name;
	void (*test)(void);
} tests[] = {
	TEST(indices_pass_zero),
	TEST(impossible_indices),
	TEST(bells_are_saved),
	TEST(two_ends),
	TEST(commands_arrive),
	TEST(bodies_have_an_end),
	TEST(lost_completions),
	TEST(answers_that_are_none),
	TEST(reading),
	TEST(events_before_packets),
	TEST(packets_that_are_none),
	TEST(sending),
	TEST(the_next_attach),
	TEST(a_frame_is_checked),
	TEST(scribble),
};

int main(int argc, char **argv)
{
	u32 i;

	if (argc > 1 && !strcmp(argv[1], "-v")) {
		shim_verbose = true;
		argc--;
		argv++;
	}
	if (argc > 1)
		rounds = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		base_seed = strtoull(argv[2], NULL, 10);
	only = getenv("ONLY");
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (only && !strstr(tests[i].name, only))
			continue;
		tests[i].test();
		printf("ok: %s\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
