// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel would do with the ways of a route now: which of them it takes,
 * and by which hash.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>

#include "l3.h"

bool l3_path_alive(struct clsw_l3 *l3, const struct l3_paths *paths, const struct l3_path *path)
{
	struct net_device *dev;
	struct in_device *in4;
	struct inet6_dev *in6;
	struct ipv6_devconf *all6;
	bool ignore = false, yes = false;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(l3->net, path->key.ifindex);
	if (dev && dev->flags & IFF_UP) {
		if (paths->family == TND_AF_INET) {
			in4 = __in_dev_get_rcu(dev);
			ignore = in4 && IN_DEV_IGNORE_ROUTES_WITH_LINKDOWN(in4);
		} else {
			in6 = __in6_dev_get(dev);
			all6 = l3->net->ipv6.devconf_all;
			ignore = in6 && (READ_ONCE(all6->ignore_routes_with_linkdown) ||
					 READ_ONCE(in6->cnf.ignore_routes_with_linkdown));
		}
		yes = !ignore || netif_carrier_ok(dev);
	}
	rcu_read_unlock();
	return yes;
}

int l3_hash_of(struct clsw_l3 *l3, u8 family)
{
	u8 policy = family == TND_AF_INET ?
		    READ_ONCE(l3->net->ipv4.sysctl_fib_multipath_hash_policy) :
		    READ_ONCE(l3->net->ipv6.sysctl.multipath_hash_policy);

	return policy == 0 ? TND_HASH_L3 : policy == 1 ? TND_HASH_L4 : -1;
}
