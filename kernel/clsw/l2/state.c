// SPDX-License-Identifier: GPL-2.0
/*
 * Spanning-tree states of single VLANs (bridge vlan set vid 10 dev swp1 state
 * blocking). The bridge tells no driver of them unless it runs MST, but it
 * tells everybody who listens to netlink:
 *
 *   RTNLGRP_BRVLAN --> events (a socket) --> work: a state? --> dump of all VLANs
 *                                                                   |
 *      bridge->stateful --> all its ports trap, the kernel forwards <+
 *
 * The chip has one state per port, so a bridge with others is the kernel's.
 * Whoever sets a state has his answer before the chip has its, a moment later.
 *
 * The dump takes RTNL, so nobody who has it may wait for this work: it is on no
 * queue of ours, and ends in clsw_l2_exit().
 */
#include <linux/if_bridge.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/sock.h>

#include "l2.h"

/* At least one netlink message of the kernel's dumps, as they are asked for here */
#define BUFFER		16384
/* Events looked at in one go; the rest has its turn after others */
#define EVENTS		256
/* What could not be asked is asked again */
#define AGAIN		(HZ / 4)

/* Any VLAN in this message whose state isn't forwarding? */
static bool vstate_has(const struct nlmsghdr *nlh)
{
	const struct nlattr *entry;
	int rest;

	if (nlh->nlmsg_type != RTM_NEWVLAN ||
	    nlh->nlmsg_len < nlmsg_msg_size(sizeof(struct br_vlan_msg)))
		return false;
	nlmsg_for_each_attr(entry, nlh, sizeof(struct br_vlan_msg), rest) {
		const struct nlattr *state;

		if (nla_type(entry) != BRIDGE_VLANDB_ENTRY)
			continue;
		state = nla_find_nested(entry, BRIDGE_VLANDB_ENTRY_STATE);
		if (state && nla_len(state) >= sizeof(u8) &&
		    nla_get_u8(state) != BR_STATE_FORWARDING)
			return true;
	}
	return false;
}

/* ---- what there is: a dump ---- */

static int vstate_ask(struct socket *sock)
{
	struct {
		struct nlmsghdr nlh;
		struct br_vlan_msg msg;
	} request = {
		.nlh = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = RTM_GETVLAN,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.msg = { .family = PF_BRIDGE },
	};
	struct kvec vec = { &request, sizeof(request) };
	struct msghdr msg = {};
	int n = kernel_sendmsg(sock, &msg, &vec, 1, sizeof(request));

	return n < 0 ? n : 0;
}

/* Locked: whose VLAN has a state of its own */
static void vstate_note(struct clsw_l2 *l2, int ifindex)
{
	struct l2_bridge *bridge;
	int i;

	list_for_each_entry(bridge, &l2->bridges, list) {
		if (bridge->dev->ifindex == ifindex)
			bridge->seen_state = true;
		for_each_set_bit(i, bridge->ports, L2_PORT_BITS) {
			struct clsw_port *port = clsw_port(l2->cd, i);

			if (port && port->netdev && port->netdev->ifindex == ifindex)
				bridge->seen_state = true;
		}
	}
}

/* Locked: one buffer of answers. 0: more will come, 1: that was all, -errno */
static int vstate_answers(struct clsw_l2 *l2, void *buffer, int len)
{
	const struct nlmsghdr *nlh = buffer;

	for (; nlmsg_ok(nlh, len); nlh = nlmsg_next(nlh, &len)) {
		const struct br_vlan_msg *msg = nlmsg_data(nlh);

		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			return -EAGAIN;
		if (nlh->nlmsg_type == NLMSG_DONE)
			return nlmsg_len(nlh) >= sizeof(int) && *(const int *)msg < 0 ?
			       *(const int *)msg : 1;
		if (nlh->nlmsg_type == NLMSG_ERROR)
			return nlmsg_len(nlh) < sizeof(struct nlmsgerr) ? -EPROTO :
			       ((const struct nlmsgerr *)nlmsg_data(nlh))->error ?: -EPROTO;
		if (vstate_has(nlh))
			vstate_note(l2, msg->ifindex);
	}
	return 0;
}

/* Not locked, no RTNL: seen_state of all bridges, as it is now */
static int vstate_look(struct clsw_l2 *l2, void *buffer)
{
	struct l2_bridge *bridge;
	struct socket *sock;
	int err;

	err = sock_create_kern(devlink_net(l2->cd->devlink), AF_NETLINK, SOCK_RAW,
			       NETLINK_ROUTE, &sock);
	if (err)
		return err;
	sock->sk->sk_rcvtimeo = HZ;
	clsw_lock(l2->cd);
	list_for_each_entry(bridge, &l2->bridges, list)
		bridge->seen_state = false;
	clsw_unlock(l2->cd);
	err = vstate_ask(sock);
	while (!err) {
		struct kvec vec = { buffer, BUFFER };
		struct msghdr msg = {};

		err = kernel_recvmsg(sock, &msg, &vec, 1, BUFFER, 0);
		if (err < 0)
			break;
		if (msg.msg_flags & MSG_TRUNC) {
			err = -EMSGSIZE;
			break;
		}
		clsw_lock(l2->cd);
		err = vstate_answers(l2, buffer, err);
		clsw_unlock(l2->cd);
	}
	sock_release(sock);
	return min(err, 0);
}

/* ---- what happens: events ---- */

/* Is a look due after these events? Also when some were lost */
static bool vstate_events(struct clsw_l2 *l2, void *buffer, bool *more)
{
	bool due = false;
	int i;

	for (i = 0; i < EVENTS; i++) {
		struct kvec vec = { buffer, BUFFER };
		struct msghdr msg = {};
		const struct nlmsghdr *nlh = buffer;
		int len = kernel_recvmsg(l2->states, &msg, &vec, 1, BUFFER, MSG_DONTWAIT);

		if (len == -EAGAIN)
			return due;
		if (len < 0 || msg.msg_flags & MSG_TRUNC)
			due = true;
		for (; !due && nlmsg_ok(nlh, len); nlh = nlmsg_next(nlh, &len))
			due = vstate_has(nlh);
	}
	*more = true;
	return due;
}

/* Routed packets into a VLAN are the kernel's as well: it knows which ports may send them */
static void vstate_apply(struct clsw_l2 *l2)
{
	struct clsw_device *cd = l2->cd;
	struct l2_bridge *bridge;

	clsw_lock(cd);
	l2->stateful = false;
	list_for_each_entry(bridge, &l2->bridges, list) {
		/* without vlan_filtering the kernel has the states and does not look at them */
		bool on = bridge->aware && bridge->seen_state;

		l2->stateful |= bridge->seen_state;
		if (bridge->stateful == on)
			continue;
		bridge->stateful = on;
		l2_bridge_trap(bridge, L2_TRAP_VLAN_STATE, on);
		if (l2->fid_changed)
			l2->fid_changed(cd, 0);
	}
	clsw_unlock(cd);
}

static void vstate_work(struct work_struct *work)
{
	struct clsw_l2 *l2 = container_of(to_delayed_work(work), struct clsw_l2, states_work);
	void *buffer = kmalloc(BUFFER, GFP_KERNEL);
	bool more = false, due;
	int err = -ENOMEM;

	if (buffer) {
		/* asked for, or a state may have gone: setting one back is an event, too */
		due = test_and_clear_bit(0, &l2->look_due);
		due |= vstate_events(l2, buffer, &more) || l2->stateful;
		err = due ? vstate_look(l2, buffer) : 0;
		/* no bridge in this kernel, or none with VLANs */
		if (err == -EOPNOTSUPP)
			err = 0;
		if (due && !err)
			vstate_apply(l2);
		kfree(buffer);
	}
	if (err) {
		/* changed while it was read, or RTNL is taken for long */
		if (err != -EAGAIN)
			dev_warn_ratelimited(l2->cd->parent,
					     "can't read the states of VLANs (%d)\n", err);
		l2_states_look(l2, AGAIN);
	} else if (more) {
		mod_delayed_work(system_unbound_wq, &l2->states_work, 0);
	}
}

void l2_states_look(struct clsw_l2 *l2, unsigned long delay)
{
	set_bit(0, &l2->look_due);
	if (l2->states)
		mod_delayed_work(system_unbound_wq, &l2->states_work, delay);
}

/* Any context */
static void vstate_data_ready(struct sock *sk)
{
	struct clsw_l2 *l2;

	read_lock_bh(&sk->sk_callback_lock);
	l2 = sk->sk_user_data;
	if (l2)
		mod_delayed_work(system_unbound_wq, &l2->states_work, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

int l2_states_init(struct clsw_l2 *l2)
{
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	int group = RTNLGRP_BRVLAN;
	struct socket *sock;
	struct sock *sk;
	int err;

	INIT_DELAYED_WORK(&l2->states_work, vstate_work);
	err = sock_create_kern(devlink_net(l2->cd->devlink), AF_NETLINK, SOCK_RAW,
			       NETLINK_ROUTE, &sock);
	if (err)
		return err;
	sk = sock->sk;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = l2;
	sk->sk_data_ready = vstate_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	l2->states = sock;
	/* without a port number of its own it would be the kernel: it is not told what it says */
	err = kernel_bind(sock, (struct sockaddr *)&any, sizeof(any));
	if (!err)
		err = sock->ops->setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
					    KERNEL_SOCKPTR(&group), sizeof(group));
	if (err)
		l2_states_exit(l2);
	return err;
}

void l2_states_exit(struct clsw_l2 *l2)
{
	struct socket *sock = l2->states;

	write_lock_bh(&sock->sk->sk_callback_lock);
	sock->sk->sk_user_data = NULL;
	write_unlock_bh(&sock->sk->sk_callback_lock);
	cancel_delayed_work_sync(&l2->states_work);
	l2->states = NULL;
	sock_release(sock);
}
