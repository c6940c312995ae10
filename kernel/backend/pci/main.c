// SPDX-License-Identifier: GPL-2.0
/*
 * Probe, remove, interrupts.
 */
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/module.h>

#include "chip.h"

#define CP_VENDOR	0x1af4
#define CP_DEVICE	0x1110
#define CP_REVISION	1	/* with doorbells; 0 is ivshmem of old */

void cp_doorbell(struct cp_region *region, u32 number)
{
	struct cp_device *p = container_of(region, struct cp_device, region);

	writel(p->bell_peer | number, p->regs + CP_REG_DOORBELL);
}

static const struct cp_region_ops cp_region_ops = {
	.doorbell = cp_doorbell,
};

/* Vector = doorbell number. A spurious one costs a look */
static irqreturn_t cp_irq(int irq, void *data)
{
	struct cp_vector *v = data;
	struct cp_device *p = v->p;
	const struct cp_frame *f = &p->region.frame;

	if (!v->number)
		cp_look(p);
	if (!READ_ONCE(p->region.serving) || READ_ONCE(p->busy))
		return IRQ_HANDLED;
	if (v->number == f->rx.doorbell || v->number == f->event.doorbell)
		clsw_rx_schedule(p->region.cd);
	if (v->number == f->cpl[CLSW_Q_SYNC].doorbell ||
	    v->number == f->cpl[CLSW_Q_BULK].doorbell)
		clsw_wake(p->region.cd);
	return IRQ_HANDLED;
}

/* Once a second: whatever a lost doorbell would have said */
static void cp_heartbeat(struct timer_list *timer)
{
	struct cp_device *p = from_timer(p, timer, heartbeat);

	cp_look(p);
	if (READ_ONCE(p->region.serving)) {
		clsw_wake(p->region.cd);
		clsw_rx_schedule(p->region.cd);
		mod_timer(&p->heartbeat, jiffies + HZ);
	}
}

static const struct clsw_device_ops cp_device_ops = {
	.attach = cp_attach,
	.detach = cp_detach,
	.alive = cp_alive,
	.caps = cp_caps,
	.platform = cp_platform,
	.info = cp_info,
};

static const struct clsw_table_ops cp_table_ops = {
	.post = cp_queue_post,
	.kick = cp_queue_kick,
	.reap = cp_queue_reap,
	.want_irq = cp_queue_want_irq,
	.read = cp_queue_read,
};

static const struct clsw_packet_ops cp_packet_ops = {
	.xmit = cp_packet_xmit,
	.poll = cp_packet_poll,
	.arm = cp_packet_arm,
};

static const struct clsw_backend cp_backend = {
	.name = "pci",
	.owner = THIS_MODULE,
	.device = &cp_device_ops,
	.table = &cp_table_ops,
	.packet = &cp_packet_ops,
	.port = &cp_port_ops,
	.priv_size = sizeof(struct cp_device),
};

static int cp_map(struct pci_dev *pdev, struct cp_device *p)
{
	u32 peer;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	if (pci_resource_len(pdev, 0) < CP_REG_DOORBELL + 4 ||
	    pci_resource_len(pdev, 2) < 2 * TND_HEADER_SIZE) {
		pci_err(pdev, "BAR0 of %pa and BAR2 of %pa bytes can't be a chip\n",
			&pdev->resource[0].end, &pdev->resource[2].end);
		return -ENODEV;
	}
	ret = pcim_request_all_regions(pdev, KBUILD_MODNAME);
	if (ret)
		return ret;
	p->regs = pcim_iomap(pdev, 0, 0);
	if (!p->regs)
		return -ENOMEM;
	p->region.mem_size = pci_resource_len(pdev, 2);
	p->region.mem = devm_memremap(&pdev->dev, pci_resource_start(pdev, 2),
				      p->region.mem_size, MEMREMAP_WB);
	if (IS_ERR(p->region.mem))
		return PTR_ERR(p->region.mem);
	peer = readl(p->regs + CP_REG_POSITION);
	if (peer > U16_MAX) {
		pci_err(pdev, "no ivshmem identity (%d): is the server running?\n",
			(int)peer);
		return -ENODEV;
	}
	p->peer = peer;
	/* goes on where a driver before us has stopped */
	p->req_seq = le32_to_cpu(READ_ONCE(cp_region_header(&p->region)->req_seq));
	return 0;
}

static int cp_irqs(struct pci_dev *pdev, struct cp_device *p)
{
	int i, ret;

	ret = pci_alloc_irq_vectors(pdev, 1, CP_VECTORS, PCI_IRQ_MSIX);
	if (ret < 0) {
		pci_err(pdev, "no MSI-X vectors (%d): QEMU's device needs vectors=8\n",
			ret);
		return ret;
	}
	p->vectors = ret;
	p->region.bells = ret;
	for (i = 0; i < p->vectors; i++) {
		p->vector[i].p = p;
		p->vector[i].number = i;
		ret = pci_request_irq(pdev, i, cp_irq, NULL, &p->vector[i],
				      "clsw_pci-%d:%s", i, pci_name(pdev));
		if (ret)
			goto err_irqs;
	}
	/* MSI-X messages are writes of the device to memory */
	pci_set_master(pdev);
	return 0;

err_irqs:
	while (i--)
		pci_free_irq(pdev, i, &p->vector[i]);
	pci_free_irq_vectors(pdev);
	return ret;
}

static void cp_irqs_exit(struct pci_dev *pdev, struct cp_device *p)
{
	int i;

	pci_clear_master(pdev);
	for (i = 0; i < p->vectors; i++)
		pci_free_irq(pdev, i, &p->vector[i]);
	pci_free_irq_vectors(pdev);
}

static int cp_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct clsw_device *cd;
	struct cp_device *p;
	int ret;

	if (pdev->revision != CP_REVISION) {
		pci_info(pdev, "ivshmem revision %d, need %d\n",
			 pdev->revision, CP_REVISION);
		return -ENODEV;
	}
	cd = clsw_device_alloc(&cp_backend, &pdev->dev);
	if (!cd)
		return -ENOMEM;
	p = clsw_priv(cd);
	cp_region_init(&p->region, cd, &pdev->dev, &cp_region_ops);
	p->pdev = pdev;
	mutex_init(&p->attach_lock);
	init_waitqueue_head(&p->wait);
	timer_setup(&p->heartbeat, cp_heartbeat, 0);
	pci_set_drvdata(pdev, p);

	ret = cp_map(pdev, p);
	if (ret)
		goto err_free;
	ret = cp_irqs(pdev, p);
	if (ret)
		goto err_free;
	ret = clsw_device_register(cd);
	if (ret)
		goto err_irqs;
	return 0;

err_irqs:
	WRITE_ONCE(p->region.serving, false);
	timer_shutdown_sync(&p->heartbeat);
	cp_irqs_exit(pdev, p);
	cp_attach_exit(p);
err_free:
	clsw_device_free(cd);
	return ret;
}

static void cp_remove(struct pci_dev *pdev)
{
	struct cp_device *p = pci_get_drvdata(pdev);
	struct clsw_device *cd = p->region.cd;

	clsw_device_unregister(cd);
	timer_shutdown_sync(&p->heartbeat);
	cp_irqs_exit(pdev, p);
	cp_attach_exit(p);
	clsw_device_free(cd);
}

static const struct pci_device_id cp_ids[] = {
	{ PCI_DEVICE(CP_VENDOR, CP_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, cp_ids);

static struct pci_driver cp_driver = {
	.name = KBUILD_MODNAME,
	.id_table = cp_ids,
	.probe = cp_probe,
	.remove = cp_remove,
};
module_pci_driver(cp_driver);

MODULE_DESCRIPTION("clsw backend: a switch chip behind shared memory and doorbells (ivshmem)");
MODULE_LICENSE("GPL");
