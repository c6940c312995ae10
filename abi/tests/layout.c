// SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note
/*
 * Compiles only if a C compiler lays abi/tandem.h out as layout.def says and
 * puts no padding anywhere. Built by abi/rust/tests/layout.rs.
 */
#include <stddef.h>
#include "../tandem.h"

#define SIZE(type, n) \
	_Static_assert(sizeof(struct type) == (n), "size of " #type);
#define OFFSET(type, field, n) \
	_Static_assert(offsetof(struct type, field) == (n), #type "." #field);
#include "layout.def"
#undef SIZE
#undef OFFSET

_Static_assert(sizeof(struct tnd_header) <= TND_HEADER_SIZE, "header page");
_Static_assert(sizeof(struct tnd_cmd) == TND_CMD_SIZE, "command");
_Static_assert(offsetof(struct tnd_cmd, body) == 64, "head of 64 bytes");
_Static_assert(sizeof(struct tnd_cpl) == TND_CPL_SIZE, "completion");
_Static_assert(sizeof(struct tnd_event) == TND_EVENT_SIZE, "event");
_Static_assert(sizeof(struct tnd_rx) == TND_PKT_META_SIZE, "rx");
_Static_assert(sizeof(struct tnd_tx) == TND_PKT_META_SIZE, "tx");
_Static_assert(sizeof(struct tnd_ring_prod) == 64, "a line of its own");
_Static_assert(sizeof(struct tnd_ring_cons) == 64, "a line of its own");
