#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 150
#
# A full chip says no before `ip route add` returns, with the table and the numbers; a replace needs no room; what nobody
# can be told ends in hardware or as a trap; what was refused leaves nothing; and room is found again. Every policy.
. /host/tests/vm/lib.sh

DEV=platform/clsw_null
occ() { devlink -j resource show $DEV | jq "[.. | objects | select(.name == \"$1\")][0].occ"; }
# Adds 30.N.0.0/16 until one is refused; leaves the number in $n and what was said in $said
fill() { # [options]
	n=0
	while said=$(ip route add 30.$n.0.0/16 via 10.0.1.2 2>&1); do
		n=$((n + 1))
		[ $n -lt 64 ] || fail "64 routes fit into 32 slots"
	done
}

sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for k in 1 2; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
done
ip route add 0.0.0.0/0 via 10.0.2.2

# under predict-flat the class's share is full, not the table
full='IPv4 (LPM full|route limit reached)'
for policy in lockstep prefetch credit predict-flat predict-model; do
	devlink dev param set $DEV name policy value $policy cmode runtime
	fill
	has "refusal under $policy" "Error: clsw: $full \\(needs 1, free 0 of [0-9]+\\)" "$said"
	[ $n -ge 10 ] || fail "$policy: only $n routes fit"
	is "routes after the refusal" "" "$(ip route show 30.$n.0.0/16)"
	until_true 5 "all are offloaded under $policy" sh -c "! ip route show | grep '^30' | grep -vq rt_offload"

	# a replace at a full table, also by other next hops
	ip route replace 30.0.0.0/16 via 10.0.2.2
	until_true 5 "the replaced route" sh -c 'ip route show 30.0.0.0/16 | grep -q "10.0.2.2.*rt_offload"'
	ip route replace blackhole 30.1.0.0/16
	until_true 5 "the blackhole" sh -c 'ip route show 30.1.0.0/16 | grep -q "rt_offload"'

	# a worse route of the same prefix costs nothing, and is promoted in place
	ip route add 30.2.0.0/16 via 10.0.2.2 metric 50
	ip route del 30.2.0.0/16 metric 0
	until_true 5 "the promoted route" sh -c 'ip route show 30.2.0.0/16 | grep -q "10.0.2.2.*rt_offload"'

	# a connected prefix uses the reserve; nobody would hear that it failed
	ip addr add 10.0.9.1/30 dev swp2
	until_true 5 "connected prefix at a full table under $policy" sh -c 'ip route show 10.0.9.0/30 | grep -q rt_trap'
	refused "clsw: $full" ip route add 31.0.0.0/8 via 10.0.1.2
	ip addr del 10.0.9.1/30 dev swp2

	# a delete makes room for one
	ip route del 30.3.0.0/16
	until_true 5 "room for one after a delete" ip route add 31.0.0.0/8 via 10.0.1.2
	refused "clsw: $full" ip route add 32.0.0.0/8 via 10.0.1.2
	ip route flush root 30.0.0.0/8
	ip route del 31.0.0.0/8
	until_true 10 "the table is empty again" sh -c "ip route add 31.0.0.0/8 via 10.0.1.2 && ip route del 31.0.0.0/8"
done

# addresses: the reserve has an end, and the address is then refused as a whole
fill
i=0
while said=$(ip addr add 10.1.$i.1/30 dev swp2 2>&1); do
	i=$((i + 1))
	[ $i -lt 8 ] || fail "the reserve has no end"
done
has "refused address" 'clsw: IPv4 LPM full \(needs [0-9]+, free [0-9]+ of 32\)' "$said"
is "the refused address" "" "$(ip addr show dev swp2 to 10.1.$i.1)"
while [ $i -gt 0 ]; do i=$((i - 1)); ip addr del 10.1.$i.1/30 dev swp2; done
ip route flush root 30.0.0.0/8

# groups: two with eight members in all. A refused multipath leaves nothing behind
hops() { for h in "$@"; do printf 'nexthop via 10.0.%s.%s ' "${h%.*}" "${h#*.}"; done; }
pools() { echo "$(occ nexthop) $(occ nexthop-group) $(occ nexthop-group-member)"; }
pools_are() { # what wanted
	i=50
	until [ "$(pools)" = "$2" ]; do
		i=$((i - 1))
		[ $i -gt 0 ] || fail "$1: next hops, groups, members: wanted $2, got $(pools)"
		sleep 0.1
	done
}
before=$(pools)
# shellcheck disable=SC2046 # words
ip route add 40.0.0.0/8 $(hops 1.2 2.2)
# shellcheck disable=SC2046
ip route add 41.0.0.0/8 $(hops 2.2 1.2)
pools_are "two groups of two" "$((${before%% *} + 1)) 2 4"
# shellcheck disable=SC2046
refused 'clsw: next-hop group full' ip route add 42.0.0.0/8 $(hops 1.2 2.2 1.3)
is "42/8" "" "$(ip route show 42.0.0.0/8)"
pools_are "after the refusal" "$((${before%% *} + 1)) 2 4"
ip route del 40.0.0.0/8
ip route del 41.0.0.0/8
pools_are "after the deletes" "$before"

# IPv6: refused, replaced; a multipath replace is never refused: it has lost the old route before it asks
ip -6 addr add 2001:db8:1::1/64 dev swp1 nodad
ip -6 addr add 2001:db8:2::1/64 dev swp2 nodad
ip neigh replace 2001:db8:1::2 lladdr 02:00:00:00:00:01 dev swp1
ip neigh replace 2001:db8:2::2 lladdr 02:00:00:00:00:02 dev swp2
n=0
while said=$(ip -6 route add 2001:db8:100:$n::/64 via 2001:db8:1::2 2>&1); do
	n=$((n + 1))
	[ $n -lt 64 ] || fail "64 IPv6 routes fit into 32 slots"
done
has "IPv6 refusal" 'clsw: IPv6 LPM full \(needs 1, free 0 of [0-9]+\)' "$said"
is "the refused IPv6 route" "" "$(ip -6 route show 2001:db8:100:$n::/64)"
ip -6 route replace 2001:db8:100::/64 via 2001:db8:2::2
until_true 5 "replaced IPv6 route" sh -c 'ip -6 route show 2001:db8:100::/64 | grep -q "2001:db8:2::2.*rt_offload"'
ip -6 route replace 2001:db8:100:1::/64 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2
until_true 5 "multipath over it" sh -c 'ip -6 route show 2001:db8:100:1::/64 | grep -q "rt_offload"'
refused 'clsw: ' ip -6 route add 2001:db8:200::/64 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2
is "the refused multipath" "" "$(ip -6 route show 2001:db8:200::/64)"
