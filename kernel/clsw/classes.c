// SPDX-License-Identifier: GPL-2.0
/*
 * The table of classes: class_rows.h, for the store, the drainer, the replay and
 * backends.
 */
#include "core.h"

#define END(type, field)	(offsetof(struct type, field) + sizeof_field(struct type, field))
#define LEN(type, field)	sizeof_field(struct type, field)
#define PIECE(type, field)	{ offsetof(struct type, field), LEN(type, field) }
#define WORDS(len)	\
	((sizeof(u16) + (len) + 7) / 8 + BUILD_BUG_ON_ZERO((len) > CLSW_KEY_MAX))

#define KEY1(type, a)							\
	.least = END(type, a), .key_words = WORDS(LEN(type, a)),	\
	.key = { PIECE(type, a) }
#define KEY2(type, a, b)						\
	.least = END(type, b), .key_words = WORDS(LEN(type, a) + LEN(type, b)), \
	.key = { PIECE(type, a), PIECE(type, b) }
#define KEY3(type, a, b, c)						\
	.least = END(type, c),						\
	.key_words = WORDS(LEN(type, a) + LEN(type, b) + LEN(type, c)),	\
	.key = { PIECE(type, a), PIECE(type, b), PIECE(type, c) }
#define KEY4(type, a, b, c, d)						\
	.least = END(type, d),						\
	.key_words = WORDS(LEN(type, a) + LEN(type, b) + LEN(type, c) + LEN(type, d)), \
	.key = { PIECE(type, a), PIECE(type, b), PIECE(type, c), PIECE(type, d) }
#define MANY(most, type)						\
	.members = (most), .member_size = sizeof(struct type)
#define TRAPS(type, field, bits)						\
	.degraded_at = offsetof(struct type, field), .degraded = (bits)
#define BY(whom)	.named_by = (BY_##whom)
#define BY_RIF		BIT(TND_CLS_RIF)
#define BY_HOPS		(BIT(TND_CLS_NEXTHOP) | BIT(TND_CLS_NEIGH))
#define BY_NHG		BIT(TND_CLS_NHG)

/* The place of each in the order */
#define ROW(id, ...)	PLACE_##id,
enum place {
#include "class_rows.h"
	place_count
};

#undef ROW

#define ROW(id, type, text, ...)					\
	[TND_CLS_##id] = { .name = text, .size = sizeof(struct type), .place = PLACE_##id, \
			   __VA_ARGS__ },
const struct clsw_class clsw_classes[] = {
#include "class_rows.h"
};
EXPORT_SYMBOL_GPL(clsw_classes);
#undef ROW

#define ROW(id, ...)	TND_CLS_##id,
const u8 clsw_order[] = {
#include "class_rows.h"
};

#undef ROW

/* No class is twice in it, or there were two such places: so each is in it */
static_assert(place_count == CLSW_CLASS_COUNT - 1);
static_assert(ARRAY_SIZE(clsw_classes) == CLSW_CLASS_COUNT);
static_assert(GENMASK(CLSW_CLASS_COUNT - 1, 1) == (CLSW_CLASSES_L2 | CLSW_CLASSES_L3));
