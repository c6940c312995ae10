// SPDX-License-Identifier: GPL-2.0
/*
 * What the board's firmware says: struct tnd_platform, its ports, and an ONIE
 * TlvInfo image (seed 000, 6.1 and 6.4; ONIE's "System EEPROM format").
 */
#include <linux/crc32.h>
#include <linux/slab.h>

#include "null.h"
#include "profiles.gen.h"

#define TLV_PRODUCT	0x21
#define TLV_PART	0x22
#define TLV_SERIAL	0x23
#define TLV_BASE_MAC	0x24
#define TLV_MAC_COUNT	0x2a
#define TLV_VENDOR	0x2d
#define TLV_CRC32	0xfe
#define TLV_HEAD	11		/* "TlvInfo", NUL, version, length */
#define TLV_MAX		(TLV_HEAD + 6 * 66 + 6)

const struct null_profile *null_profile(const char *name)
{
	char all[128] = "";
	u32 i;

	for (i = 0; i < ARRAY_SIZE(null_profiles); i++) {
		if (!strcmp(null_profiles[i].name, name))
			return &null_profiles[i];
		strlcat(all, " ", sizeof(all));
		strlcat(all, null_profiles[i].name, sizeof(all));
	}
	pr_err("clsw_null: no profile %s (there are%s)\n", name, all);
	return NULL;
}

static u32 null_tlv(u8 *at, u8 kind, const void *value, u32 len)
{
	len = min(len, 64U);
	at[0] = kind;
	at[1] = len;
	memcpy(at + 2, value, len);
	return len + 2;
}

static u32 null_eeprom(const struct null_profile *p, u8 *image)
{
	__be16 macs = cpu_to_be16(p->mac_count), len;
	u32 at = TLV_HEAD;
	__be32 crc;

	memcpy(image, "TlvInfo\0\x01", 9);
	at += null_tlv(image + at, TLV_PRODUCT, p->product, strlen(p->product));
	at += null_tlv(image + at, TLV_PART, p->part_number, strlen(p->part_number));
	at += null_tlv(image + at, TLV_SERIAL, p->serial, strlen(p->serial));
	at += null_tlv(image + at, TLV_BASE_MAC, p->base_mac, sizeof(p->base_mac));
	at += null_tlv(image + at, TLV_MAC_COUNT, &macs, sizeof(macs));
	at += null_tlv(image + at, TLV_VENDOR, p->vendor, strlen(p->vendor));
	image[at++] = TLV_CRC32;
	image[at++] = sizeof(crc);
	len = cpu_to_be16(at - TLV_HEAD + sizeof(crc));
	memcpy(image + 9, &len, sizeof(len));
	crc = cpu_to_be32(~crc32_le(~0, image, at));
	memcpy(image + at, &crc, sizeof(crc));
	return at + sizeof(crc);
}

int null_platform_init(struct null_chip *n)
{
	const struct null_profile *p = n->p;
	struct tnd_platform_port *port;
	struct tnd_platform *head;
	u32 ports_size = n->ports * sizeof(*port), at, i;

	n->platform = kzalloc(sizeof(*head) + ports_size + TLV_MAX, GFP_KERNEL);
	if (!n->platform)
		return -ENOMEM;
	head = n->platform;
	at = sizeof(*head) + ports_size;
	head->struct_size = cpu_to_le16(sizeof(*head));
	head->port_count = cpu_to_le16(n->ports);
	head->ports_offset = cpu_to_le32(sizeof(*head));
	head->eeprom_offset = cpu_to_le32(at);
	strscpy(head->chip, p->name, sizeof(head->chip));
	port = n->platform + sizeof(*head);
	for (i = 0; i < n->ports; i++) {
		port[i].port = cpu_to_le16(i + 1);
		port[i].front_panel = cpu_to_le16(i + 1);
		port[i].cage = cpu_to_le16(p->cage);
		port[i].lanes = cpu_to_le16(p->lanes);
		port[i].breakout_modes = cpu_to_le32(p->breakout);
		port[i].max_speed_mbps = cpu_to_le32(p->speed_mbps);
	}
	i = null_eeprom(p, n->platform + at);
	head->eeprom_size = cpu_to_le32(i);
	n->platform_size = at + i;
	return 0;
}
