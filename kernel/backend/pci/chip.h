/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clsw_pci: a chip that asicd models, behind QEMU's ivshmem-doorbell. The rings in
 * its memory, and the ops of clsw that use them, are kernel/ring; here is what carries
 * them.
 *
 *      clsw ops                            interrupts (MSI-X vector = doorbell number)
 *   +-----v-------------------+      +--------v---------------------------+
 *   | kernel/ring (ring.h)    |      | main.c: who is it for?             |
 *   |                         |      |  0 header: state, acknowledgements |
 *   |                         |      |  completions -> clsw_wake()        |
 *   |                         |      |  rx, events  -> clsw_rx_schedule() |
 *   |                         |      +------------------------------------+
 *   |                         |      |  attach.c: requests                |
 *   +-----v-----------v-------+      +--------v---------------------------+
 *      BAR2: region   BAR0 +12: doorbell   BAR2: struct tnd_header
 *
 * Locks: those of struct cp_region; attach_lock is a mutex outside of all of them.
 */
#ifndef _CLSW_PCI_H
#define _CLSW_PCI_H

#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/timer.h>
#include <linux/wait.h>

#include "ring.h"

/* BAR0 of ivshmem: QEMU's docs/specs/ivshmem-spec */
#define CP_REG_POSITION		8
#define CP_REG_DOORBELL		12

/* Vectors asked for; a device with more rings that ring is refused */
#define CP_VECTORS		32
/* What an interrupt handler is given */
struct cp_vector {
	struct cp_device *p;
	u32 number;
};

/**
 * struct cp_device - one chip, clsw_priv()
 * @region: BAR2 and its rings
 * @pdev: PCI device
 * @regs: BAR0
 * @peer: our ivshmem identity
 * @vectors: MSI-X vectors
 * @vector: their handlers' data
 * @attach_lock: one attach or detach at a time
 * @wait: acknowledgements and changes of state
 * @req_seq: of the last request
 * @bell_peer: where doorbells go, shifted
 * @last_error: of the last attach: said once
 * @busy: an attach is under way, changes of state are its affair
 * @heartbeat: looks at the header once a second
 * @platform: copy, checked; lives as long as the device
 * @platform_size: bytes
 */
struct cp_device {
	struct cp_region region;	/* first: clsw_priv() is one for kernel/ring */
	struct pci_dev *pdev;
	void __iomem *regs;
	u16 peer;
	int vectors;
	struct cp_vector vector[CP_VECTORS];

	struct mutex attach_lock;	/* one attach or detach at a time */
	wait_queue_head_t wait;
	u32 req_seq;
	u32 bell_peer;
	int last_error;
	bool busy;

	struct timer_list heartbeat;

	struct tnd_platform *platform;
	size_t platform_size;
};

static_assert(!offsetof(struct cp_device, region));

/* ---- attach.c ---- */
int cp_attach(struct clsw_device *cd, enum clsw_attach_mode mode);
void cp_detach(struct clsw_device *cd);
bool cp_alive(struct clsw_device *cd);
void cp_caps(struct clsw_device *cd, struct clsw_caps *caps);
const struct tnd_platform *cp_platform(struct clsw_device *cd, size_t *size);
void cp_info(struct clsw_device *cd, char *version, size_t size);
void cp_look(struct cp_device *p);
void cp_attach_exit(struct cp_device *p);

/* ---- main.c ---- */
void cp_doorbell(struct cp_region *region, u32 number);

/* ---- port.c ---- */
extern const struct clsw_port_ops cp_port_ops;

#endif /* _CLSW_PCI_H */
