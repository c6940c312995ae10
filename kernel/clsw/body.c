// SPDX-License-Identifier: GPL-2.0
/*
 * What the chip gets for an object: its body as the store has it, or a copy
 * that sends to the CPU what the chip can't or mustn't do yet.
 *
 *   route   its next hop is not there, or it is forced --> trap
 *   RIF     degraded: the chip is being filled         --> traps everything
 *   VLAN    degraded                                   --> unknown unicast to the CPU
 */
#include <linux/unaligned.h>

#include "core.h"

/* Next hop or group by its number; most routes name the one that the last one did */
static struct clsw_obj *body_target_of(struct clsw_device *cd, u16 cls, __le32 id)
{
	union {
		struct tnd_nexthop nexthop;
		struct tnd_nhg nhg;
	} probe = {};
	__le32 *key = cls == TND_CLS_NHG ? &probe.nhg.nhg : &probe.nexthop.nexthop;

	if (cd->target && cd->target->key.cls == cls &&
	    get_unaligned((__le32 *)cd->target->key.bytes) == id)
		return cd->target;
	*key = id;
	cd->target = clsw_find(cd, cls, &probe);
	return cd->target;
}

/*
 * The chip has it when it executes what is posted next. Not so if it waits for
 * room, or if its delete is out: it is made once more, but behind that.
 */
static bool body_comes_before(const struct clsw_obj *obj)
{
	if (obj->unknown || obj->state == CLSW_OBJ_FAILED)
		return false;
	return obj->in_flight ? obj->op != TND_OP_DELETE : obj->written;
}

bool clsw_target_lacks(struct clsw_device *cd, const struct clsw_obj *obj)
{
	const struct tnd_route *route = (const void *)obj->body;
	struct clsw_obj *target = NULL;

	if (obj->key.cls != TND_CLS_ROUTE)
		return false;
	switch (route->target_kind) {
	case TND_RT_NEXTHOP:
		target = body_target_of(cd, TND_CLS_NEXTHOP, route->target);
		break;
	case TND_RT_NHG:
		target = body_target_of(cd, TND_CLS_NHG, route->target);
		break;
	default:
		return false;
	}
	if (target && body_comes_before(target))
		return false;
	if (target)
		target->missed = true;
	return true;
}

static void body_as_trap(struct tnd_route *route)
{
	route->action = TND_ACT_TRAP;
	route->reason = TND_TRAP_ROUTE;
	route->target_kind = TND_RT_NONE;
	route->target = 0;
}

const void *clsw_body_of(struct clsw_device *cd, const struct clsw_obj *obj,
			 union clsw_body *copy, bool *lacks_target)
{
	const struct clsw_class *class = &clsw_classes[obj->key.cls];
	__le32 *flags;

	if (obj->key.cls == TND_CLS_ROUTE) {
		*lacks_target = clsw_target_lacks(cd, obj);
		if (!*lacks_target && !obj->forced)
			return obj->body;
		memcpy(&copy->route, obj->body, sizeof(copy->route));
		body_as_trap(&copy->route);
		return copy;
	}
	/* the chip has begun empty: until it has everything, what misses in it is for the CPU */
	if (!cd->degraded || !class->degraded)
		return obj->body;
	memcpy(copy->bytes, obj->body, class->size);
	flags = (__le32 *)(copy->bytes + class->degraded_at);
	*flags |= cpu_to_le32(class->degraded);
	return copy;
}
