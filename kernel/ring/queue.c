// SPDX-License-Identifier: GPL-2.0
/*
 * Command pairs: posting from atomic context, reaping, and reading with
 * results.
 *
 * Every command has a slot, by its sequence number, that says whose it is and
 * which part of the arena its body takes. Completions come in the order of
 * commands; one that is missing between two others was lost, and whoever
 * waits for it has a deadline. A completion of no open command is a corrupt
 * ring.
 *
 *   arena:  | bodies of pair 0 | bodies of pair 1 | results of cp_queue_read() |
 *            1/8                1/8                 the rest
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "ring.h"

/* cp_queue_read() gives up, spins, sleeps between two looks */
#define CP_READ_MS		2000
#define CP_READ_SPIN_US		50
#define CP_READ_SLEEP_US	50

/*
 * A zeroed queue for rings that an attach has just emptied. May sleep: the
 * slots; those of an earlier attach are taken over if they fit.
 */
int cp_queue_init(struct cp_region *p, struct cp_queue *q,
		  const struct cp_frame *f, unsigned int pair)
{
	u32 count = min(f->cmd[pair].count, f->cpl[pair].count);
	u32 part = rounddown_pow_of_two((u32)f->arena_size / 8);

	if (!q->slots || q->mask + 1 != count) {
		struct cp_slot *slots;

		slots = kvcalloc(count, sizeof(*slots), GFP_KERNEL);
		if (!slots)
			return -ENOMEM;
		kvfree(q->slots);
		q->slots = slots;
	}
	cp_ring_init(p, &q->cmd, &f->cmd[pair],
		     f->features & TND_FEAT_DOORBELL_HINT);
	cp_ring_init(p, &q->cpl, &f->cpl[pair], true);
	q->mask = count - 1;
	q->seq = 0;
	q->done = 0;
	q->arena = pair * part;
	q->arena_size = part;
	q->head = 0;
	q->tail = 0;
	p->read_at = CLSW_Q_COUNT * part;
	p->read_size = (u32)f->arena_size - p->read_at;
	return 0;
}

void cp_queue_exit(struct cp_queue *q)
{
	kvfree(q->slots);
	q->slots = NULL;
}

/*
 * Room for a long body: its offset within the queue's part, or -EAGAIN. Bodies
 * are taken back in order, so the part is a ring of bytes; one that doesn't
 * fit before the end begins at the start, and the rest is given out with it.
 */
static int cp_queue_body_room(struct cp_queue *q, u32 size, u32 *end)
{
	u32 at = q->head & (q->arena_size - 1);
	u32 need = round_up(size, 64);
	u32 skip = at + need > q->arena_size ? q->arena_size - at : 0;

	if (q->head - q->tail + skip + need > q->arena_size)
		return -EAGAIN;
	*end = q->head + skip + need;
	return skip ? 0 : at;
}

/* Locked */
static int cp_queue_put(struct cp_region *p, struct cp_queue *q,
			const struct tnd_cmd *cmd, const void *body, bool ours)
{
	u32 size = le32_to_cpu(cmd->body_size);
	struct cp_slot *slot;
	struct tnd_cmd *to;
	u32 end = q->head;
	__le32 flags = cmd->flags & ~cpu_to_le32(TND_CMD_ARENA);
	__le32 offset = 0;
	int at;

	if (!p->live || READ_ONCE(p->failed))
		return -ENODEV;
	if (size > CP_BODY_MAX || size > q->arena_size / 2)
		return -E2BIG;
	if (q->seq - q->done > q->mask)
		return -EAGAIN;
	at = cp_ring_room(&q->cmd);
	if (at < 0) {
		cp_region_fail(p, CP_WHY_CORRUPT);
		return -ENODEV;
	}
	if (!at)
		return -EAGAIN;
	if (size > TND_BODY_INLINE) {
		at = cp_queue_body_room(q, size, &end);
		if (at < 0)
			return at;
		memcpy(p->arena + q->arena + at, body, size);
		flags |= cpu_to_le32(TND_CMD_ARENA);
		offset = cpu_to_le32(q->arena + at);
	}
	slot = &q->slots[q->seq & q->mask];
	slot->cookie = le64_to_cpu(cmd->cookie);
	slot->arena_end = end;
	slot->ours = ours;

	to = cp_ring_slot(&q->cmd);
	memcpy(to, cmd, offsetof(struct tnd_cmd, body));
	to->flags = flags;
	to->seq = cpu_to_le32(q->seq);
	to->body_offset = offset;
	to->epoch = cpu_to_le32(p->epoch);
	if (size && size <= TND_BODY_INLINE)
		memcpy(to->body, body, size);
	q->head = end;
	q->seq++;
	cp_ring_publish(&q->cmd);
	return 0;
}

int cp_queue_post(struct clsw_device *cd, enum clsw_queue q,
		  const struct tnd_cmd *cmd, const void *body)
{
	struct cp_region *p = clsw_priv(cd);

	return cp_queue_put(p, &p->queue[q], cmd, body, false);
}
EXPORT_SYMBOL_GPL(cp_queue_post);

void cp_queue_kick(struct clsw_device *cd, enum clsw_queue q)
{
	struct cp_region *p = clsw_priv(cd);

	if (p->live)
		cp_ring_kick(p, &p->queue[q].cmd);
}
EXPORT_SYMBOL_GPL(cp_queue_kick);

/*
 * Locked. Closes the command that @cpl answers, and with it those before it
 * whose completions are missing. False: it answers none.
 */
static bool cp_queue_close(struct cp_region *p, struct cp_queue *q,
			   struct tnd_cpl *cpl)
{
	u32 seq = le32_to_cpu(cpl->seq);
	struct cp_slot *slot;

	if (seq - q->done >= q->seq - q->done)
		return false;
	slot = &q->slots[seq & q->mask];
	if (le64_to_cpu(cpl->cookie) != slot->cookie ||
	    le32_to_cpu(cpl->epoch) != p->epoch ||
	    le16_to_cpu(cpl->delta_count) > TND_MAX_DELTAS)
		return false;
	p->count.lost += seq - q->done;
	q->done = seq + 1;
	q->tail = slot->arena_end;
	return true;
}

int cp_queue_reap(struct clsw_device *cd, enum clsw_queue which, int budget)
{
	struct cp_region *p = clsw_priv(cd);
	struct cp_queue *q = &p->queue[which];
	struct tnd_cpl cpl;
	int n = 0;

	if (!p->live || READ_ONCE(p->failed))
		return 0;
	cp_ring_disarm(&q->cpl);
	while (n < budget) {
		int pending = cp_ring_pending(&q->cpl);

		if (!pending)
			break;
		if (pending > 0) {
			memcpy(&cpl, cp_ring_slot(&q->cpl), sizeof(cpl));
			barrier();
			cp_ring_take(&q->cpl);
		}
		if (pending < 0 || !cp_queue_close(p, q, &cpl)) {
			cp_region_fail(p, CP_WHY_CORRUPT);
			break;
		}
		n++;
		if (q->slots[le32_to_cpu(cpl.seq) & q->mask].ours) {
			p->read_cpl = cpl;
			p->read_done = true;
		} else {
			clsw_complete(cd, &cpl);
		}
	}
	return n;
}
EXPORT_SYMBOL_GPL(cp_queue_reap);

bool cp_queue_want_irq(struct clsw_device *cd)
{
	struct cp_region *p = clsw_priv(cd);
	int i;

	if (!p->live || READ_ONCE(p->failed))
		return true;
	for (i = 0; i < CLSW_Q_COUNT; i++)
		if (cp_ring_arm(&p->queue[i].cpl))
			return true;
	return false;
}
EXPORT_SYMBOL_GPL(cp_queue_want_irq);

/* Posts the question; *@seq is its number. As cp_queue_put() */
static int cp_queue_ask(struct cp_region *p, const struct tnd_cmd *cmd,
			const void *body, u32 out_size, u32 *seq)
{
	struct cp_queue *q = &p->queue[CLSW_Q_SYNC];
	struct tnd_cmd ask = *cmd;
	int ret;

	clsw_lock(p->cd);
	ask.out_offset = cpu_to_le32(p->read_at);
	ask.out_size = cpu_to_le32(min(out_size, p->read_size));
	p->read_done = false;
	*seq = q->seq;
	ret = cp_queue_put(p, q, &ask, body, true);
	if (!ret)
		cp_ring_kick(p, &q->cmd);
	clsw_unlock(p->cd);
	return ret;
}

/* One look: 1 the answer is there, 0 not yet, -ENODEV */
static int cp_queue_answered(struct cp_region *p, u32 epoch, u32 seq,
			     struct tnd_cpl *cpl)
{
	int ret = 0;

	clsw_lock(p->cd);
	cp_queue_reap(p->cd, CLSW_Q_SYNC, 64);
	if (!p->live || READ_ONCE(p->failed) || p->epoch != epoch) {
		ret = -ENODEV;
	} else if (p->read_done && le32_to_cpu(p->read_cpl.seq) == seq) {
		/* not that of an earlier question that timed out */
		*cpl = p->read_cpl;
		ret = 1;
	}
	clsw_unlock(p->cd);
	return ret;
}

int cp_queue_read(struct clsw_device *cd, const struct tnd_cmd *cmd,
		  const void *body, void *out, u32 out_size, struct tnd_cpl *cpl)
{
	struct cp_region *p = clsw_priv(cd);
	unsigned long end = jiffies + msecs_to_jiffies(CP_READ_MS);
	u32 epoch, seq, len;
	ktime_t spin;
	int ret;

	mutex_lock(&p->read_lock);
	epoch = READ_ONCE(p->epoch);
	while ((ret = cp_queue_ask(p, cmd, body, out_size, &seq)) == -EAGAIN) {
		clsw_lock(cd);
		cp_queue_reap(cd, CLSW_Q_SYNC, 64);
		clsw_unlock(cd);
		if (time_after(jiffies, end)) {
			ret = -ETIMEDOUT;
			break;
		}
		usleep_range(CP_READ_SLEEP_US, 2 * CP_READ_SLEEP_US);
	}
	if (ret)
		goto out;
	spin = ktime_add_us(ktime_get(), CP_READ_SPIN_US);
	while (!(ret = cp_queue_answered(p, epoch, seq, cpl))) {
		if (time_after(jiffies, end)) {
			ret = -ETIMEDOUT;
			break;
		}
		if (ktime_before(ktime_get(), spin))
			cpu_relax();
		else
			usleep_range(CP_READ_SLEEP_US, 2 * CP_READ_SLEEP_US);
	}
	if (ret > 0) {
		len = min3(le32_to_cpu(cpl->out_len), out_size, p->read_size);
		if (len)
			memcpy(out, p->arena + p->read_at, len);
		cpl->cookie = cmd->cookie;
		cpl->out_len = cpu_to_le32(len);
		ret = 0;
	}
	/* others' completions may have come by the way */
	clsw_wake(cd);
out:
	mutex_unlock(&p->read_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(cp_queue_read);
