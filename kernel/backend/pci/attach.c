// SPDX-License-Identifier: GPL-2.0
/*
 * Attach, detach, and noticing that either is needed.
 *
 *   header's state   ABSENT      READY, FAILED, ATTACHED (by somebody before)
 *                      |  wait      |
 *                      +----------->| copy and check the frame
 *                                   | features, name, driver_peer
 *                                   | req_op, req_seq, doorbell 0
 *                                   v
 *                              wait for ack_seq ---> STALE: once more
 *                                   | OK
 *                                   v
 *                              rings from zero, live
 *
 * Every wait has an end. While asicd is away the state says ABSENT; when it
 * is back its frame may be another one, so it is read before every attach.
 */
#include <linux/delay.h>
#include <linux/if_vlan.h>
#include <linux/slab.h>

#include "chip.h"

static unsigned int wait_ms = 10000;
module_param(wait_ms, uint, 0644);
MODULE_PARM_DESC(wait_ms, "how long the first attach waits for a device to be there (ms, default 10000)");

static unsigned int answer_ms = 5000;
module_param(answer_ms, uint, 0644);
MODULE_PARM_DESC(answer_ms, "how long the device may take to attach or detach (ms, default 5000)");

/* Once attached, somebody tries again: no attempt needs to wait long */
#define CP_BACK_MS	1000
/* The words are looked at so often even if no doorbell is heard */
#define CP_SLICE_MS	10

static const char *cp_reason(u32 reason)
{
	switch (reason) {
	case TND_FAIL_RING_INDEX:
		return "device: corrupt ring index";
	case TND_FAIL_SEQUENCE:
		return "device: command sequence broken";
	case TND_FAIL_BOUNDS:
		return "device: arena offset out of bounds";
	case TND_FAIL_CPL_FULL:
		return "device: completions not reaped";
	case TND_FAIL_INTERNAL:
		return "device reset itself";
	}
	return "device failed";
}

static u32 cp_state(const struct cp_device *p)
{
	/* what the device wrote before its state is seen after it */
	return le32_to_cpu(virt_load_acquire(&cp_region_header(&p->region)->device_state));
}

/* NULL: the attach stands */
static const char *cp_trouble(const struct cp_device *p)
{
	const struct tnd_header *h = cp_region_header(&p->region);

	switch (cp_state(p)) {
	case TND_DEV_ATTACHED:
		if (le32_to_cpu(READ_ONCE(h->epoch)) == READ_ONCE(p->region.epoch))
			return NULL;
		return "device has another epoch";
	case TND_DEV_ABSENT:
		return "device is gone";
	case TND_DEV_FAILED:
		return cp_reason(le32_to_cpu(READ_ONCE(h->fail_reason)));
	}
	return "device was restarted";
}

/*
 * Any context: the header may have changed. An attach that stands and doesn't
 * any more is trouble; so is, for a driver that gave up, a device that is back.
 */
void cp_look(struct cp_device *p)
{
	const char *why;

	wake_up(&p->wait);
	if (!READ_ONCE(p->region.serving) || READ_ONCE(p->busy))
		return;
	if (!READ_ONCE(p->region.failed)) {
		why = cp_trouble(p);
		if (why)
			cp_region_fail(&p->region, why);
	} else if (cp_state(p) != TND_DEV_ABSENT) {
		clsw_trouble(p->region.cd, "device is back");
	}
}

bool cp_alive(struct clsw_device *cd)
{
	struct cp_device *p = clsw_priv(cd);

	if (!p->region.live || READ_ONCE(p->region.failed))
		return false;
	if (!cp_trouble(p))
		return true;
	cp_region_fail(&p->region, cp_trouble(p) ?: "device failed");
	return false;
}

/* May sleep. A frame to work with: 0, -ETIMEDOUT, -ENODEV, -EPROTO */
static int cp_await_frame(struct cp_device *p)
{
	unsigned int wait = p->platform ? CP_BACK_MS : READ_ONCE(wait_ms);
	unsigned long end = jiffies + msecs_to_jiffies(wait);
	int ret;

	for (;;) {
		ret = -EAGAIN;
		if (cp_state(p) != TND_DEV_ABSENT)
			ret = cp_frame_read(&p->region, &p->region.frame);
		if (!ret)
			return 0;
		if (ret != -EAGAIN && !p->platform)
			return ret;
		if (time_after(jiffies, end))
			return ret == -EAGAIN ? -ETIMEDOUT : ret;
		/* it was there once: the device mends it when it is told */
		if (ret != -EAGAIN || cp_state(p) != TND_DEV_ABSENT)
			cp_doorbell(&p->region, 0);
		msleep(CP_SLICE_MS);
	}
}

static bool cp_acked(const struct cp_device *p)
{
	/* status and epoch were written before ack_seq */
	return le32_to_cpu(virt_load_acquire(&cp_region_header(&p->region)->ack_seq)) ==
	       p->req_seq;
}

/* May sleep. enum tnd_status of the answer, or -ETIMEDOUT, -ENODEV */
static int cp_request(struct cp_device *p, u32 op, u32 *epoch)
{
	unsigned long end = jiffies + msecs_to_jiffies(READ_ONCE(answer_ms));
	struct tnd_header *h = cp_region_header(&p->region);

	p->req_seq++;
	WRITE_ONCE(h->driver_peer, cpu_to_le32(p->peer + 1));
	WRITE_ONCE(h->req_op, cpu_to_le32(op));
	/* who asks, for what, before the number that makes it a request */
	virt_store_release(&h->req_seq, cpu_to_le32(p->req_seq));
	/* and the number before the doorbell */
	virt_mb();
	cp_doorbell(&p->region, 0);
	while (!cp_acked(p)) {
		if (cp_state(p) == TND_DEV_ABSENT)
			return -ENODEV;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		wait_event_timeout(p->wait, cp_acked(p),
				   msecs_to_jiffies(CP_SLICE_MS));
	}
	*epoch = le32_to_cpu(READ_ONCE(h->ack_epoch));
	return le32_to_cpu(READ_ONCE(h->ack_status));
}

/* The board may not change under netdevs that were made of it */
static int cp_same_platform(struct cp_device *p)
{
	struct tnd_platform *copy = cp_frame_platform(&p->region, &p->region.frame);

	if (IS_ERR(copy))
		return PTR_ERR(copy);
	if (!p->platform) {
		p->platform_size = p->region.frame.platform_size;
		p->platform = copy;
		return 0;
	}
	if (p->platform_size == p->region.frame.platform_size &&
	    !memcmp(copy, p->platform, p->platform_size)) {
		kfree(copy);
		return 0;
	}
	if (p->last_error != -EUCLEAN)
		pci_err(p->pdev, "chip was %s, is %s now with other ports: load the driver again\n",
			p->platform->chip, copy->chip);
	kfree(copy);
	return -EUCLEAN;
}

/* One attempt. -EAGAIN: the device was replaced meanwhile */
static int cp_try(struct cp_device *p, u32 op)
{
	struct tnd_header *h = cp_region_header(&p->region);
	u64 known = TND_FEAT_LEASE | TND_FEAT_RESYNC | TND_FEAT_ACTIVITY |
		    TND_FEAT_HW_LEARNING | TND_FEAT_DOORBELL_HINT;
	u32 epoch = 0;
	int ret;

	ret = cp_await_frame(p);
	if (ret)
		return ret;
	ret = cp_same_platform(p);
	if (ret)
		return ret;
	p->region.frame.features &= known;
	p->bell_peer = p->region.frame.device_peer << 16;
	h->features_accepted = cpu_to_le64(p->region.frame.features);
	memset(h->driver_name, 0, sizeof(h->driver_name));
	memcpy(h->driver_name, KBUILD_MODNAME, sizeof(KBUILD_MODNAME));
	ret = cp_request(p, op, &epoch);
	switch (ret) {
	case TND_ST_OK:
		return cp_region_start(&p->region, epoch);
	case -ENODEV:
	case TND_ST_STALE:
		return -EAGAIN;
	case TND_ST_BUSY:
		return -EBUSY;
	}
	if (ret > 0) {
		if (p->last_error != -ECONNREFUSED)
			pci_err(p->pdev, "the device refused to attach (status %d)\n", ret);
		return -ECONNREFUSED;
	}
	return ret;
}

int cp_attach(struct clsw_device *cd, enum clsw_attach_mode mode)
{
	struct cp_device *p = clsw_priv(cd);
	u32 op = mode == CLSW_ATTACH_WARM ? TND_REQ_ATTACH_WARM :
					    TND_REQ_ATTACH_COLD;
	int tries = 5;
	int ret;

	mutex_lock(&p->attach_lock);
	WRITE_ONCE(p->busy, true);
	cp_region_stop(&p->region);
	do {
		ret = cp_try(p, op);
	} while (ret == -EAGAIN && --tries);
	if (ret) {
		WRITE_ONCE(p->region.failed, true);
		/* once: whoever attaches tries again and again; these two have had their words */
		if (ret != p->last_error && ret != -ECONNREFUSED && ret != -EUCLEAN)
			pci_err(p->pdev, "attach: %s (%d)\n",
				ret == -ETIMEDOUT ? "no answer from the device" :
				ret == -EAGAIN ? "the device comes and goes" :
				"no device to work with", ret);
		p->last_error = ret;
		if (ret == -EAGAIN)
			ret = -ETIMEDOUT;
	} else {
		p->last_error = 0;
		pci_info(p->pdev, "attached %s to %s, epoch %u\n",
			 op == TND_REQ_ATTACH_WARM ? "warm" : "cold",
			 p->region.frame.name, p->region.epoch);
	}
	/* from here on changes are told; those missed are found by looking */
	if (!ret)
		WRITE_ONCE(p->region.serving, true);
	WRITE_ONCE(p->busy, false);
	if (p->region.serving)
		mod_timer(&p->heartbeat, jiffies + HZ);
	mutex_unlock(&p->attach_lock);
	return ret;
}

void cp_detach(struct clsw_device *cd)
{
	struct cp_device *p = clsw_priv(cd);
	u32 epoch;
	int i, ret = 0;

	mutex_lock(&p->attach_lock);
	WRITE_ONCE(p->busy, true);
	WRITE_ONCE(p->region.serving, false);
	timer_delete_sync(&p->heartbeat);
	for (i = 0; i < p->vectors; i++)
		synchronize_irq(pci_irq_vector(p->pdev, i));
	hrtimer_cancel(&p->region.tx_timer);
	cp_region_stop(&p->region);
	if (!p->region.failed && !cp_trouble(p))
		ret = cp_request(p, TND_REQ_DETACH, &epoch);
	if (ret)
		pci_warn(p->pdev, "detach: no good answer (%d)\n", ret);
	WRITE_ONCE(p->region.failed, true);
	WRITE_ONCE(p->busy, false);
	mutex_unlock(&p->attach_lock);
}

void cp_caps(struct clsw_device *cd, struct clsw_caps *caps)
{
	struct cp_device *p = clsw_priv(cd);
	const struct cp_frame *f = &p->region.frame;

	caps->can = CLSW_CAN_PACKETS | CLSW_CAN_STATS | CLSW_CAN_IDENTIFY | CLSW_CAN_VERSION |
		    CLSW_CAN_BUSY_WAIT;
	if (f->features & TND_FEAT_HW_LEARNING)
		caps->can |= CLSW_CAN_LEARN;
	if (f->features & TND_FEAT_RESYNC)
		caps->can |= CLSW_CAN_ATTACH_WARM;
	caps->classes = CLSW_CLASSES_L2 | CLSW_CLASSES_L3;
	/* what fits an entry both ways, with its header and two tags */
	caps->mtu = min(f->rx.entry_size, f->tx.entry_size) - TND_PKT_META_SIZE - ETH_HLEN -
		    2 * VLAN_HLEN;
}

const struct tnd_platform *cp_platform(struct clsw_device *cd, size_t *size)
{
	struct cp_device *p = clsw_priv(cd);

	*size = p->platform_size;
	return p->platform;
}

void cp_info(struct clsw_device *cd, char *version, size_t size)
{
	struct cp_device *p = clsw_priv(cd);

	snprintf(version, size, "%u.%u", TND_ABI_MAJOR, p->region.frame.minor);
}

void cp_attach_exit(struct cp_device *p)
{
	cp_region_exit(&p->region);
	kfree(p->platform);
	p->platform = NULL;
}
