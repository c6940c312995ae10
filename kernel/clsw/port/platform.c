// SPDX-License-Identifier: GPL-2.0
/*
 * What the board is: its cages, and the base MAC address.
 *
 *   the chip's struct tnd_platform  cages, EEPROM image     (always)
 *   firmware nodes of the parent    cages, EEPROM or MAC    (if they are there they win)
 *
 * Firmware nodes are ACPI _DSD packages or a device tree: a child node per
 * cage, see docs/ports.md. The EEPROM is ONIE's TlvInfo format (Open Network
 * Install Environment design document, "ONIE System EEPROM format").
 *
 * Everything here was written by somebody else: it is copied once, then
 * checked, and what can't be is refused with a line in the log.
 */
#include <linux/crc32.h>
#include <linux/etherdevice.h>
#include <linux/property.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "port.h"

#define TLV_MAGIC		"TlvInfo"	/* with its NUL */
#define TLV_HEADER		11		/* magic, version, length of the records */
#define TLV_PRODUCT		0x21
#define TLV_PART_NUMBER		0x22
#define TLV_SERIAL		0x23
#define TLV_BASE_MAC		0x24
#define TLV_MAC_COUNT		0x2a
#define TLV_VENDOR		0x2d
#define TLV_CRC32		0xfe
#define TLV_MAX			2048		/* the document's largest image */

#define LANES_MAX		8

static void board_text(char *to, const u8 *value, u8 len)
{
	unsigned int i, n = min_t(unsigned int, len, CLSW_TEXT_MAX - 1);

	for (i = 0; i < n; i++)
		to[i] = value[i] >= 0x20 && value[i] < 0x7f ? value[i] : '?';
	to[n] = 0;
}

/* Returns what is wrong with the image; NULL: nothing, @board has its contents */
static const char *board_read_tlv(struct clsw_board *board, const u8 *image, size_t size)
{
	size_t at = TLV_HEADER, end;
	u8 mac[ETH_ALEN] = {};

	if (size < TLV_HEADER)
		return "too short";
	if (memcmp(image, TLV_MAGIC, sizeof(TLV_MAGIC)))
		return "no TlvInfo image";
	end = TLV_HEADER + get_unaligned_be16(image + TLV_HEADER - 2);
	if (end > size || end > TLV_MAX)
		return "records longer than the image";

	while (at + 2 <= end) {
		u8 type = image[at], len = image[at + 1];
		const u8 *value = image + at + 2;

		if (at + 2 + len > end)
			return "record cut off";
		switch (type) {
		case TLV_PRODUCT:
			board_text(board->product, value, len);
			break;
		case TLV_PART_NUMBER:
			board_text(board->part_number, value, len);
			break;
		case TLV_SERIAL:
			board_text(board->serial, value, len);
			break;
		case TLV_VENDOR:
			board_text(board->vendor, value, len);
			break;
		case TLV_BASE_MAC:
			if (len == ETH_ALEN)
				ether_addr_copy(mac, value);
			break;
		case TLV_MAC_COUNT:
			if (len == 2)
				board->mac_count = get_unaligned_be16(value);
			break;
		case TLV_CRC32:
			/* over everything before it, its own type and length included */
			if (len != 4 ||
			    get_unaligned_be32(value) != (crc32_le(~0, image, at + 2) ^ ~0U))
				return "checksum is wrong";
			if (!is_valid_ether_addr(mac))
				return "no usable base MAC address";
			ether_addr_copy(board->base_mac, mac);
			board->has_mac = true;
			return NULL;
		}
		at += 2 + len;
	}
	return "no checksum";
}

static void board_read_eeprom(struct clsw_device *cd, struct clsw_board *board, const u8 *image,
			      size_t size)
{
	const char *why = board_read_tlv(board, image, size);

	if (!why)
		return;
	/* nothing of an image that is wrong is believed */
	board->mac_count = 0;
	board->product[0] = 0;
	board->part_number[0] = 0;
	board->serial[0] = 0;
	board->vendor[0] = 0;
	dev_warn(cd->parent, "EEPROM: %s: ports get random MAC addresses\n", why);
}

static const char *board_check_cage(const struct clsw_board *board, const struct clsw_cage *cage,
				    u16 most)
{
	unsigned int i;

	if (!cage->index || cage->index > most)
		return "number out of range";
	if (!cage->front_panel)
		return "no front-panel number";
	if (!cage->lanes || cage->lanes > LANES_MAX)
		return "impossible number of lanes";
	if (cage->kind < TND_CAGE_RJ45 || cage->kind > TND_CAGE_QSFP)
		return "unknown kind of cage";
	for (i = 0; i < board->cages; i++)
		if (board->cage[i].index == cage->index ||
		    board->cage[i].front_panel == cage->front_panel)
			return "there twice";
	return NULL;
}

static int board_add_cage(struct clsw_device *cd, struct clsw_board *board, struct clsw_cage *cage)
{
	const char *why;

	cage->parts = 1;
	cage->breakout |= TND_BREAKOUT_NONE;
	why = board->cages < CLSW_MAX_PORTS ? board_check_cage(board, cage, cd->caps.port) :
					      "too many ports";
	if (why) {
		dev_err(cd->parent, "%s: port %u (front panel %u): %s\n", board->source,
			cage->index, cage->front_panel, why);
		return -EINVAL;
	}
	board->cage[board->cages++] = *cage;
	return 0;
}

static int board_read_device(struct clsw_device *cd, struct clsw_board *board)
{
	const struct tnd_platform_port *map;
	u32 ports_at, eeprom_at, eeprom_size;
	size_t size = cd->platform_size;
	struct tnd_platform *p;
	u16 count, i;
	int err = 0;

	if (size < sizeof(*p)) {
		dev_err(cd->parent, "platform description: %zu bytes are too short\n", size);
		return -EINVAL;
	}
	/* the chip could still write to it */
	p = kmemdup(cd->platform, size, GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	count = le16_to_cpu(p->port_count);
	ports_at = le32_to_cpu(p->ports_offset);
	eeprom_at = le32_to_cpu(p->eeprom_offset);
	eeprom_size = le32_to_cpu(p->eeprom_size);
	board->source = "device";
	board_text(board->chip, p->chip, strnlen(p->chip, sizeof(p->chip)));

	if (!count || ports_at > size || count > (size - ports_at) / sizeof(*map)) {
		dev_err(cd->parent, "platform description: the map of %u ports lies outside\n",
			count);
		err = -EINVAL;
		goto out;
	}
	map = (void *)p + ports_at;
	for (i = 0; i < count && !err; i++) {
		struct clsw_cage cage = {
			.index = get_unaligned_le16(&map[i].port),
			.front_panel = get_unaligned_le16(&map[i].front_panel),
			.kind = get_unaligned_le16(&map[i].cage),
			.lanes = get_unaligned_le16(&map[i].lanes),
			.breakout = get_unaligned_le32(&map[i].breakout_modes),
			.speed_mbps = get_unaligned_le32(&map[i].max_speed_mbps),
		};

		err = board_add_cage(cd, board, &cage);
	}
	if (err)
		goto out;
	if (eeprom_at > size || eeprom_size > size - eeprom_at)
		dev_warn(cd->parent, "EEPROM: the image lies outside\n");
	else
		board_read_eeprom(cd, board, (void *)p + eeprom_at, eeprom_size);
out:
	kfree(p);
	return err;
}

/* A cage kind by its name */
static u16 board_cage_kind(const char *name)
{
	static const char * const names[] = { "", "rj45", "sfp", "qsfp" };
	int i = match_string(names, ARRAY_SIZE(names), name);

	return i > 0 ? i : 0;
}

static int board_read_node(struct clsw_device *cd, struct clsw_board *board,
			   const struct clsw_board *chip, const struct fwnode_handle *node)
{
	u32 reg, panel, lanes = 1, speed = 0, modes[3];
	struct clsw_cage cage = {};
	const char *kind = "";
	int i, count;

	if (fwnode_property_read_u32(node, "reg", &reg))
		return -ENOENT;		/* another kind of node */
	panel = reg;
	fwnode_property_read_u32(node, "tandem,front-panel", &panel);
	fwnode_property_read_string(node, "tandem,cage", &kind);
	fwnode_property_read_u32(node, "tandem,lanes", &lanes);
	fwnode_property_read_u32(node, "tandem,max-speed-mbps", &speed);
	for (i = 0; i < chip->cages && chip->cage[i].index != reg; i++)
		;
	if (i == chip->cages) {
		dev_err(cd->parent, "firmware: port %u: the chip has %u ports\n", reg, chip->cages);
		return -EINVAL;
	}
	cage.index = reg;
	cage.front_panel = min_t(u32, panel, U16_MAX);
	cage.kind = board_cage_kind(kind);
	cage.lanes = min_t(u32, lanes, U16_MAX);
	cage.speed_mbps = speed ?: chip->cage[i].speed_mbps;
	count = fwnode_property_count_u32(node, "tandem,breakout");
	if (count > 0 && count <= ARRAY_SIZE(modes) &&
	    !fwnode_property_read_u32_array(node, "tandem,breakout", modes, count)) {
		while (count--)
			cage.breakout |= modes[count] == 2 ? TND_BREAKOUT_2 :
					 modes[count] == 4 ? TND_BREAKOUT_4 : 0;
	}
	return board_add_cage(cd, board, &cage);
}

/* True: the firmware describes the board, @board is its; @chip is the chip's own */
static bool board_read_firmware(struct clsw_device *cd, struct clsw_board *board,
				const struct clsw_board *chip)
{
	struct fwnode_handle *node;
	u8 *image;
	int size;

	board->source = "firmware";
	strscpy(board->chip, chip->chip);
	device_for_each_child_node(cd->parent, node) {
		int err = board_read_node(cd, board, chip, node);

		if (err && err != -ENOENT) {
			fwnode_handle_put(node);
			return false;
		}
	}
	if (!board->cages)
		return false;
	size = device_property_count_u8(cd->parent, "tandem,eeprom");
	if (size > 0 && size <= TLV_MAX) {
		image = kmalloc(size, GFP_KERNEL);
		if (image &&
		    !device_property_read_u8_array(cd->parent, "tandem,eeprom", image, size))
			board_read_eeprom(cd, board, image, size);
		kfree(image);
	} else if (!device_get_mac_address(cd->parent, board->base_mac)) {
		board->has_mac = true;
	} else if (chip->has_mac) {
		ether_addr_copy(board->base_mac, chip->base_mac);
		board->has_mac = true;
		board->mac_count = chip->mac_count;
	}
	return true;
}

int clsw_board_read(struct clsw_device *cd, struct clsw_board *board)
{
	struct clsw_board *firmware;
	int err;

	memset(board, 0, sizeof(*board));
	err = board_read_device(cd, board);
	if (err)
		return err;
	firmware = kzalloc(sizeof(*firmware), GFP_KERNEL);
	if (!firmware)
		return -ENOMEM;
	if (board_read_firmware(cd, firmware, board))
		*board = *firmware;
	kfree(firmware);
	dev_dbg(cd->parent, "%u cages by the %s, base MAC %pM\n", board->cages, board->source,
		board->base_mac);
	return 0;
}

/* The base itself is the box's (its management port): ports begin one above it */
bool clsw_board_mac(const struct clsw_board *board, u16 index, u8 *mac)
{
	if (!board->has_mac || (board->mac_count && index >= board->mac_count))
		return false;
	u64_to_ether_addr(ether_addr_to_u64(board->base_mac) + index, mac);
	return is_valid_ether_addr(mac);
}
