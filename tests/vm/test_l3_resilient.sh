#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 200
#
# Resilient next-hop groups: the kernel's buckets are not followed here, so routes over them trap and say so. Nothing is
# refused, on ports or elsewhere, and one that was there before the driver doesn't keep it from loading.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

shows() { # wanted, options of ip... prefix
	want=$1
	shift
	n=$((50 * SLOW))
	while :; do
		got=$(ip "$@" | grep -o 'rt_[a-z_]*' | sort -u | tr '\n' ' ' | sed 's/ $//')
		[ "$got" != "$want" ] || return 0
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$*: wanted '$want', got '$got': $(ip "$@")"
		sleep 0.1
	done
}
ports() {
	for k in 1 2 3; do
		ip link set swp$k up
		ip addr add 10.0.$k.1/24 dev swp$k
		ip -6 addr add 2001:db8:$k::1/64 dev swp$k nodad
		ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
		ip neigh replace 2001:db8:$k::2 lladdr 02:00:00:00:00:0$k dev swp$k
	done
}
buckets_of() { ip -j nexthop bucket show id 10 nhid "$1" | jq length; }

sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
# on an interface that is no port: none of our business, at a start or later
ip link add dummy0 type dummy
ip link set dummy0 up
ip addr add 10.8.0.1/24 dev dummy0
ip nexthop add id 81 via 10.8.0.2 dev dummy0
ip nexthop add id 82 via 10.8.0.3 dev dummy0
ip nexthop add id 80 group 81/82 type resilient buckets 8
ip route add 80.0.0.0/8 nhid 80
modprobe -r clsw_null
modprobe clsw_null ports=4
[ -e /sys/class/net/swp1 ] || fail "no ports beside a resilient group: $(dmesg | tail -n 3)"
ports
shows rt_trap route show 80.0.0.0/8
ip nexthop del id 80
ip nexthop add id 80 group 81/82 type resilient buckets 8
ip route add 80.0.0.0/8 nhid 80
shows rt_trap route show 80.0.0.0/8

# on ports: the CPU has its packets
ip nexthop add id 1 via 10.0.1.2 dev swp1
ip nexthop add id 2 via 10.0.2.2 dev swp2
ip nexthop add id 3 via 10.0.3.2 dev swp3
ip nexthop add id 10 group 1/2 type resilient buckets 8 idle_timer 0
ip route add 20.0.0.0/8 nhid 10
shows rt_trap route show 20.0.0.0/8
has "flags of the group" '\<trap\>' "$(ip -d nexthop show id 10)"
explained() { tandem -j explain route 20.0.0.0/8 | jq -r .reason | grep -q 'resilient'; }
until_true 10 "it says why" explained
is "buckets of the first" 4 "$(buckets_of 1)"
# members come and go, weights change, a member is replaced: the kernel moves its buckets
ip nexthop replace id 10 group 1,3/2,1 type resilient
has_buckets() { [ "$(ip -j nexthop bucket show id 10 ${2:+nhid "$2"} | jq length)" = "$1" ]; }
until_true 20 "the kernel moves buckets" has_buckets 6 1
ip nexthop replace id 10 group 1/2/3 type resilient
ip nexthop replace id 1 via 10.0.3.9 dev swp3
ip nexthop del id 3
until_true 20 "its buckets go to the others" has_buckets 8
shows rt_trap route show 20.0.0.0/8
# beside it the same gateways by an ordinary group are in hardware
ip nexthop add id 11 group 1/2
ip route add 21.0.0.0/8 nhid 11
shows rt_offload route show 21.0.0.0/8
# a route changes between the two
ip route replace 20.0.0.0/8 nhid 11
shows rt_offload route show 20.0.0.0/8
ip route replace 20.0.0.0/8 nhid 10
shows rt_trap route show 20.0.0.0/8
ip nexthop add id 61 via 2001:db8:1::2 dev swp1
ip nexthop add id 62 via 2001:db8:2::2 dev swp2
ip nexthop add id 60 group 61/62 type resilient buckets 8
ip -6 route add 2001:db8:100::/48 nhid 60
shows rt_trap -6 route show 2001:db8:100::/48
ip nexthop del id 10
is "its routes go with it" "" "$(ip route show 20.0.0.0/8)"
shows rt_offload route show 21.0.0.0/8
# the last member goes, and the group with it
ip nexthop del id 61
ip nexthop del id 62
is "the group goes with its last member" "" "$(ip nexthop show id 60 2>/dev/null)"
is "groups in the chip" 1 "$(occ nexthop-group)"

# and again from the start
ip nexthop add id 10 group 1/2 type resilient buckets 8
ip route add 20.0.0.0/8 nhid 10
modprobe -r clsw_null
modprobe clsw_null ports=4
[ -e /sys/class/net/swp1 ] || fail "no ports: $(dmesg | tail -n 3)"
