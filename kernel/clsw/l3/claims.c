// SPDX-License-Identifier: GPL-2.0
/*
 * Prefixes for which more than the ways of one route decides: the chip looks at
 * neither source nor type of service, and has one table where the kernel has two.
 * Those trap.
 *
 * The chip refuses packets that claim to be from an own address, and knows own
 * addresses by the reason for which they trap. So what may be one keeps that
 * reason, whatever else decides about it.
 */
#include "../core.h"
#include "claims.h"

u8 l3_claims_trap(const struct l3_claims *claims, u8 *reason)
{
	u8 why = L3_WHY_NONE;

	*reason = claims->own ? TND_TRAP_LOCAL : TND_TRAP_ROUTE;
	if (claims->by_source)
		why = L3_WHY_SOURCE;
	else if (claims->by_dscp)
		why = L3_WHY_DSCP;
	/* whatever is in table main, the wider one answers */
	if (claims->below_local) {
		*reason = TND_TRAP_LOCAL;
		why = L3_WHY_SHADOWED;
	}
	return why;
}
