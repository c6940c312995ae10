#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 120
#
# Which routes are in hardware, which trap, and that they say so: gateways, connected and local prefixes, types without
# a gateway, DSCP, encapsulation, next-hop objects, IPv6, and what the kernel promotes when the best of a prefix goes.
. /host/tests/vm/lib.sh

flags() { # route... -> offload, trap, failed, none
	ip -d "$@" | grep -o 'rt_[a-z_]*' | sort | tr '\n' ' ' | sed 's/ $//'
}
shows() { # wanted "prefix [selector]" [options of ip]
	want=$1 what=$2
	shift 2
	n=30
	while [ $n -gt 0 ]; do
		# shellcheck disable=SC2086 # words
		got=$(flags "$@" route show table all exact $what)
		[ "$got" = "$want" ] && return 0
		n=$((n - 1))
		sleep 0.1
	done
	# shellcheck disable=SC2086
	fail "$what: wanted '$want', got '$got': $(ip "$@" route show table all exact $what)"
}

sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for k in 1 2 3; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip -6 addr add 2001:db8:$k::1/64 dev swp$k nodad
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
	ip neigh replace 2001:db8:$k::2 lladdr 02:00:00:00:00:0$k dev swp$k
done

# what hardware can do, and what it leaves to the CPU
ip route add 20.0.0.0/8 via 10.0.1.2
shows rt_offload 20.0.0.0/8
shows rt_trap 10.0.1.0/24
shows rt_trap 10.0.1.1/32
ip route add blackhole 21.0.0.0/8
shows rt_offload 21.0.0.0/8
for type in unreachable prohibit throw; do
	ip route add $type 22.0.0.0/8
	shows rt_trap 22.0.0.0/8
	ip route del $type 22.0.0.0/8
done
ip link add dummy0 type dummy
ip link set dummy0 up
ip route add 23.0.0.0/8 dev dummy0
shows rt_trap 23.0.0.0/8
ip route add 24.0.0.0/8 encap mpls 100 via inet 10.0.1.2 2>/dev/null && shows rt_trap 24.0.0.0/8

# DSCP: the chip can't look at it, and only the best of a prefix is told
ip route add 25.0.0.0/8 via 10.0.1.2
shows rt_offload 25.0.0.0/8
ip route add 25.0.0.0/8 tos 0x10 via 10.0.2.2
shows rt_trap "25.0.0.0/8 tos 0x10"
ip route del 25.0.0.0/8 tos 0x10
shows rt_offload 25.0.0.0/8

# a better metric takes over, and the worse is promoted when it goes
ip route add 26.0.0.0/8 via 10.0.1.2 metric 20
ip route add blackhole 26.0.0.0/8 metric 10
shows rt_offload "26.0.0.0/8 metric 10"
ip route del 26.0.0.0/8 metric 10
shows rt_offload "26.0.0.0/8 metric 20"
ip route del 26.0.0.0/8 metric 20
is "26/8 after both are gone" "" "$(ip route show 26.0.0.0/8)"

# the same prefix in local and main: local decides, and main's comes back
ip route add 27.0.0.1/32 via 10.0.1.2
shows rt_offload 27.0.0.1/32
ip route add local 27.0.0.1/32 dev lo table local
has "local route" rt_trap "$(ip route show table local 27.0.0.1)"
ip route del local 27.0.0.1/32 dev lo table local
shows rt_offload 27.0.0.1/32

# multipath, weights, and a member whose link goes down
ip route add 28.0.0.0/8 nexthop via 10.0.1.2 weight 2 nexthop via 10.0.2.2
shows rt_offload 28.0.0.0/8
ip link set swp2 down
shows rt_offload 28.0.0.0/8
ip link set swp2 up
ip neigh replace 10.0.2.2 lladdr 02:00:00:00:00:02 dev swp2
ip route replace 28.0.0.0/8 via 10.0.3.2
shows rt_offload 28.0.0.0/8

# next-hop objects and groups; a group's replace is followed by no event of its routes
ip nexthop add id 1 via 10.0.1.2 dev swp1
ip nexthop add id 2 via 10.0.3.2 dev swp3
ip nexthop add id 10 group 1,3/2
ip route add 29.0.0.0/8 nhid 10
shows rt_offload 29.0.0.0/8
has "flags of the group" offload "$(ip -d nexthop show id 10)"
# a chip without counters per member, as this one, says that it doesn't count, and the kernel shows its own
ip nexthop add id 13 group 1/2 hw_stats on
is "packets per next hop" '{"enabled":true,"used":false}' "$(ip -j -s -s -d nexthop show id 13 | jq -c '.[0].hw_stats')"
ip nexthop del id 13
ip nexthop replace id 1 via 10.0.3.3 dev swp3
shows rt_offload 29.0.0.0/8
ip nexthop add id 11 group 1/2 type resilient buckets 8
ip route add 31.0.0.0/8 nhid 11
shows rt_trap 31.0.0.0/8
ip nexthop add id 12 blackhole
ip route add 30.0.0.0/8 nhid 12
shows rt_offload 30.0.0.0/8
ip nexthop del id 10
is "29/8 after its group is gone" "" "$(ip route show 29.0.0.0/8)"

# IPv6
ip -6 route add 2001:db8:100::/48 via 2001:db8:1::2
shows rt_offload 2001:db8:100::/48 -6
shows rt_trap 2001:db8:1::/64 -6
ip -6 route append 2001:db8:100::/48 via 2001:db8:3::2
shows "rt_offload" 2001:db8:100::/48 -6
ip -6 route del 2001:db8:100::/48 via 2001:db8:1::2
shows rt_offload 2001:db8:100::/48 -6
ip -6 route add 2001:db8:101::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:3::2 weight 3
shows rt_offload 2001:db8:101::/48 -6
ip -6 route replace 2001:db8:101::/48 nexthop via 2001:db8:1::3 nexthop via 2001:db8:3::3
shows rt_offload 2001:db8:101::/48 -6
ip -6 route add 2001:db8:102::/48 from 2001:db8:1::/64 via 2001:db8:3::2
shows rt_trap 2001:db8:102::/48 -6
ip -6 route add 2001:db8:102::/48 via 2001:db8:3::2
ip -6 route del 2001:db8:102::/48 from 2001:db8:1::/64
ip -6 route add unreachable 2001:db8:103::/48
shows rt_trap 2001:db8:103::/48 -6
ip -6 route add blackhole 2001:db8:104::/48
shows rt_offload 2001:db8:104::/48 -6
# two of one metric that are no multipath route: which one is taken hangs on where a packet came in. The kernel tells the
# driver of the first alone
ip nexthop add id 21 via 2001:db8:1::2 dev swp1
ip nexthop add id 22 via 2001:db8:3::2 dev swp3
ip -6 route add 2001:db8:105::/48 nhid 21
shows rt_offload 2001:db8:105::/48 -6
ip -6 route append 2001:db8:105::/48 nhid 22
until_true 30 "one of two routes traps" sh -c 'ip -6 route show 2001:db8:105::/48 | grep "nhid 21 " | grep -q rt_trap'
ip -6 route del 2001:db8:105::/48 nhid 22
until_true 30 "the only one forwards" sh -c 'ip -6 route show 2001:db8:105::/48 | grep "nhid 21 " | grep -q rt_offload'

# rules: the default ones may move, others are refused
refused 'policy rules are not offloaded' ip rule add from 10.0.0.0/8 table 100
refused 'policy rules are not offloaded' ip -6 rule add from 2001:db8::/32 table 100
ip rule add pref 32765 table local
ip rule del pref 0
ip rule add pref 0 table local
ip rule del pref 32765

# a VRF's routes wait for an interface, then they are there
ip link add vrf1 type vrf table 100
ip link set vrf1 up
ip route add 40.0.0.0/8 via 10.0.3.2 vrf vrf1 onlink dev swp3 2>/dev/null || :
ip link set swp3 vrf vrf1
until_true 5 "connected route of the VRF" sh -c 'ip route show vrf vrf1 10.0.3.0/24 | grep -q rt_trap'
ip neigh replace 10.0.3.2 lladdr 02:00:00:00:00:03 dev swp3
ip route add 40.0.0.0/8 via 10.0.3.2 vrf vrf1
until_true 5 "route of the VRF" sh -c 'ip route show vrf vrf1 40.0.0.0/8 | grep -q rt_offload'
ip link set swp3 nomaster
ip link del vrf1
