#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 150
#
# A group in hardware that is to have other members and can't: refused where somebody is told, and else the flags say that its
# routes trap, until it has them. No packet is sent.
. /host/tests/vm/lib.sh

DEV=platform/clsw_null
flag() { until_true 10 "$1: 40/8 $2" sh -c "ip route show 40.0.0.0/8 | grep -q '$2\\b'"; }
when_full() { devlink dev param set $DEV name when_full value "$1" cmode runtime; }

sysctl -qw net.ipv4.ip_forward=1
ip link set swp1 up
ip addr add 10.0.1.1/24 dev swp1
for h in 1 2 3 4 5; do
	ip neigh replace 10.0.1.1$h lladdr 02:00:00:00:00:1$h dev swp1
	ip nexthop add id $h via 10.0.1.1$h dev swp1
done
ip nexthop add id 10 group 1/2/3/4
ip route add 40.0.0.0/8 nhid 10
flag "four members" rt_offload

refused 'clsw: next-hop group member' ip nexthop replace id 10 group 1/2/3/4/5
has "the group of before" 'group 1/2/3/4( |$)' "$(ip nexthop show id 10)"
has "40/8 by the group of before" 'rt_offload' "$(ip route show 40.0.0.0/8)"

when_full trap
ip nexthop replace id 10 group 1/2/3/4/5
flag "five members, where a group has four" rt_trap
sleep 3
has "40/8 where a group of five has four, a while later" 'rt_trap' "$(ip route show 40.0.0.0/8)"
ip nexthop replace id 10 group 1/5
flag "two members" rt_offload

# one that begins too large
ip nexthop add id 11 group 5/4/3/2/1
ip route add 41.0.0.0/8 nhid 11
until_true 10 "41/8 traps" sh -c 'ip route show 41.0.0.0/8 | grep -q rt_trap'
ip nexthop replace id 11 group 5/4
until_true 10 "41/8 forwards" sh -c "ip route show 41.0.0.0/8 | grep -q 'rt_offload\\b'"
when_full refuse
ip route del 41.0.0.0/8
ip nexthop del id 11

# who writes before he answers: a group that the chip refuses once, when it loses a member, traps no longer than until it is written
CHIP=$(echo /sys/kernel/debug/clsw_null/*)
for policy in lockstep credit; do
	devlink dev param set $DEV name policy value $policy cmode runtime
	ip link set swp2 up
	ip addr replace 10.0.2.1/24 dev swp2
	ip neigh replace 10.0.2.11 lladdr 02:00:00:00:00:21 dev swp2
	ip route replace 42.0.0.0/8 nexthop via 10.0.1.11 nexthop via 10.0.2.11
	until_true 10 "42/8 by two members, $policy" sh -c "ip route show 42.0.0.0/8 | grep -q 'rt_offload\\b'"
	echo clear >"$CHIP/faults"
	echo "fail op=2 cls=9 count=1" >"$CHIP/faults"
	ip link set swp2 down
	until_true 10 "the write that is to fail, $policy" grep -q 'seen=[1-9]' "$CHIP/faults"
	# what failed is tried again when something is freed
	ip route add 43.0.0.0/8 via 10.0.1.12
	ip route del 43.0.0.0/8
	until_true 10 "42/8 by the member that is left, $policy" sh -c "ip route show 42.0.0.0/8 | grep -q 'rt_offload\\b'"
	echo clear >"$CHIP/faults"
done
