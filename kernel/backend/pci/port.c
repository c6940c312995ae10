// SPDX-License-Identifier: GPL-2.0
/*
 * Front-panel ports: counters and lamps, by questions.
 */
#include "chip.h"

/* May sleep. 0, or why there is no good answer */
static int cp_question(struct clsw_device *cd, const struct tnd_cmd *cmd,
		       const void *body, void *out, u32 out_size)
{
	struct tnd_cpl cpl;
	int ret;

	ret = cp_queue_read(cd, cmd, body, out, out_size, &cpl);
	if (ret)
		return ret;
	switch (le16_to_cpu(cpl.status)) {
	case TND_ST_OK:
		return le32_to_cpu(cpl.out_len) < out_size ? -EPROTO : 0;
	case TND_ST_UNSUPPORTED:
		return -EOPNOTSUPP;
	}
	return -EIO;
}

static int cp_port_stats(struct clsw_device *cd, u16 port,
			 struct clsw_port_stats *stats)
{
	const struct tnd_cmd cmd = {
		.op = cpu_to_le16(TND_OP_DUMP),
		.cls = cpu_to_le16(TND_CLS_PORT_STATS),
		.arg = cpu_to_le64(port),
	};
	struct tnd_port_stats row;
	int ret;

	ret = cp_question(cd, &cmd, NULL, &row, sizeof(row));
	if (ret)
		return ret;
	if (le16_to_cpu(row.port) != port)
		return -ENODEV;
	stats->rx_packets = le64_to_cpu(row.rx_packets);
	stats->rx_bytes = le64_to_cpu(row.rx_bytes);
	stats->rx_dropped = le64_to_cpu(row.rx_dropped);
	stats->tx_packets = le64_to_cpu(row.tx_packets);
	stats->tx_bytes = le64_to_cpu(row.tx_bytes);
	stats->tx_dropped = le64_to_cpu(row.tx_dropped);
	return 0;
}

static int cp_port_identify(struct clsw_device *cd, u16 port, bool on)
{
	const struct tnd_led led = {
		.struct_size = cpu_to_le16(sizeof(led)),
		.port = cpu_to_le16(port),
		.blink = on,
	};
	const struct tnd_cmd cmd = {
		.op = cpu_to_le16(TND_OP_UPDATE),
		.cls = cpu_to_le16(TND_CLS_LED),
		.body_size = cpu_to_le32(sizeof(led)),
	};

	return cp_question(cd, &cmd, &led, NULL, 0);
}

const struct clsw_port_ops cp_port_ops = {
	.stats = cp_port_stats,
	.identify = cp_port_identify,
};
