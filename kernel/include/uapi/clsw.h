/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Generic netlink family "clsw": what no other interface of the kernel's has.
 *
 *  - Reservations: capacity for a list of routes, all or nothing (seed 002,
 *    loop 1). The routes themselves come by rtnetlink afterwards and take what
 *    is reserved for them. A reservation ends with the socket that made it.
 *  - Objects: what clsw wants of the chip, what is there, and why not.
 *  - Resources: the chip's memories, and what fits into them.
 */
#ifndef _UAPI_LINUX_CLSW_H
#define _UAPI_LINUX_CLSW_H

#include <linux/types.h>

#define CLSW_GENL_NAME		"clsw"
#define CLSW_GENL_VERSION	1

/* Most routes of one reservation */
#define CLSW_RESERVE_MAX	1048576

enum clsw_cmd {
	CLSW_CMD_UNSPEC,
	/* DEVICE, ROUTES: adds to the list of this socket; repeat as needed */
	CLSW_CMD_RESERVE_ADD,
	/* DEVICE, NEXTHOPS, GROUPS, MEMBERS: leases capacity for the list, or -ENOSPC */
	CLSW_CMD_RESERVE_COMMIT,
	/* Gives back what was not used, and forgets the list */
	CLSW_CMD_RESERVE_DROP,
	/* Dump: DEVICE, CLASS (optional) -> CLASS, BODY, STATE, REASON */
	CLSW_CMD_OBJECTS,
	/* Dump: DEVICE -> POOL or COST, one each message: first all pools */
	CLSW_CMD_RESOURCES,
};

enum clsw_attr {
	CLSW_ATTR_UNSPEC,
	CLSW_ATTR_DEVICE,	/* string: bus/name, as devlink has it; none: the only one */
	CLSW_ATTR_ROUTES,	/* binary: struct clsw_route_key[] */
	CLSW_ATTR_NEXTHOPS,	/* u32: next hops that the list names */
	CLSW_ATTR_GROUPS,	/* u32: next-hop groups */
	CLSW_ATTR_MEMBERS,	/* u32: members of these, together */
	CLSW_ATTR_CLASS,	/* u16: enum tnd_class */
	CLSW_ATTR_BODY,		/* binary: the object as abi/tandem.h has it */
	CLSW_ATTR_STATE,	/* u8: enum clsw_object_state */
	CLSW_ATTR_REASON,	/* string: why it is not in hardware, or is there as a trap */
	CLSW_ATTR_POOL,		/* binary: struct tnd_pool */
	CLSW_ATTR_COST,		/* binary: struct tnd_class_cost */
	__CLSW_ATTR_MAX,
};

#define CLSW_ATTR_MAX	(__CLSW_ATTR_MAX - 1)

/* CLSW_ATTR_STATE */
enum clsw_object_state {
	CLSW_OBJECT_PENDING	= 0,	/* to be written */
	CLSW_OBJECT_HARDWARE	= 1,	/* as wanted */
	CLSW_OBJECT_UPDATING	= 2,	/* an older body is in hardware */
	CLSW_OBJECT_FAILED	= 3,	/* not in hardware, see REASON */
	CLSW_OBJECT_LEAVING	= 4,
	CLSW_OBJECT_UNKNOWN	= 5,	/* the chip did not answer */
	CLSW_OBJECT_TRAP	= 6,	/* in hardware as a trap: its packets go to the CPU */
};

/* One prefix; bits of @addr beyond @prefix_len are zero */
struct clsw_route_key {
	__u32 table;		/* RT_TABLE_* */
	__u8 family;		/* AF_INET, AF_INET6 */
	__u8 prefix_len;
	__u8 reserved[2];	/* zero */
	__u8 addr[16];		/* network order, IPv4 in the first four bytes */
};

#endif /* _UAPI_LINUX_CLSW_H */
