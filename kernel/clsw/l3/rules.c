// SPDX-License-Identifier: GPL-2.0
/*
 * Policy rules. The three defaults and the VRFs' own are what hardware does;
 * every other one is refused. One that was there before us, or that the kernel
 * would not have refused, makes all interfaces trap.
 */
#include <linux/mroute.h>
#include <linux/mroute6.h>
#include <net/fib_rules.h>

#include "l3.h"

static bool rules_is_default(const struct fib_notifier_info *info, const struct fib_rule *rule)
{
	if (rule->l3mdev)
		return true;
	switch (info->family) {
	case AF_INET:
		return fib4_rule_default(rule);
	case AF_INET6:
		return fib6_rule_default(rule);
	case RTNL_FAMILY_IPMR:
		return ipmr_rule_default(rule);
	case RTNL_FAMILY_IP6MR:
		return ip6mr_rule_default(rule);
	}
	return true;
}

int l3_rule_event(struct clsw_l3 *l3, unsigned long event, struct fib_notifier_info *info)
{
	struct fib_rule_notifier_info *rule_info =
		container_of(info, struct fib_rule_notifier_info, info);
	struct fib_rule *rule = rule_info->rule;

	/* of packets that this machine sends itself the chip sees none */
	if (rule->iifindex == LOOPBACK_IFINDEX || rules_is_default(info, rule))
		return 0;
	if (event == FIB_EVENT_RULE_ADD && info->extack) {
		NL_SET_ERR_MSG_MOD(info->extack,
				   "policy rules are not offloaded, only the default ones and l3mdev");
		return -EOPNOTSUPP;
	}
	clsw_lock(l3->cd);
	if (event == FIB_EVENT_RULE_ADD)
		l3->alien_rules++;
	else if (l3->alien_rules)
		l3->alien_rules--;
	clsw_unlock(l3->cd);
	l3_rifs_soon(l3);
	return 0;
}
