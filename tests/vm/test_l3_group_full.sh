#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 150
#
# A group in hardware that is to have more members than the chip gives one: refused where somebody is told, and else its
# routes trap. They never go on by the members of before, whatever the kernel was told.
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
flag "still four members" rt_offload

when_full trap
ip nexthop replace id 10 group 1/2/3/4/5
flag "five members, where a group has four" rt_trap
sleep 3
flag "five members, where a group has four, a while later" rt_trap
ip nexthop replace id 10 group 1/5
flag "two members" rt_offload

# one that begins too large
ip nexthop add id 11 group 5/4/3/2/1
ip route add 41.0.0.0/8 nhid 11
until_true 10 "41/8 traps" sh -c 'ip route show 41.0.0.0/8 | grep -q rt_trap'
ip nexthop replace id 11 group 5/4
until_true 10 "41/8 forwards" sh -c "ip route show 41.0.0.0/8 | grep -q 'rt_offload\\b'"
when_full refuse
