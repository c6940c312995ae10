#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 400
# long
#
# IPv6 multipath where there is no room for a group, or none for a route: an append is refused with nothing changed, or
# traps; a replace is never refused, as the kernel has lost the old route by then, and traps; nothing vanishes, neither from
# the kernel nor from the chip; and with room again it is in hardware.
. /host/tests/vm/lib.sh

DEV=platform/clsw_null
occ() { devlink -j resource show $DEV | jq "[.. | objects | select(.name == \"$1\")][0].occ"; }
shown() { ip -6 -j route show "$1" | jq -r '.[] | (.nexthops // [.]) | length'; } # how many ways
marks() { ip -6 route show "$1" | grep -Eo 'rt_[a-z_]+' | sort -u | tr '\n' ' '; }
traps() { # what prefix ways: it stands in the kernel, and is in the chip as a trap
	is "$1: ways of $2" "$3" "$(shown "$2")"
	until_true 5 "$1: $2 traps" sh -c "ip -6 route show $2 | grep -q rt_trap"
	has "$1: $2 is said to have failed" 'rt_offload_failed' "$(marks "$2")"
}
offloaded() { until_true 10 "$1: $2 is in hardware" sh -c "ip -6 route show $2 | grep -q 'rt_offload\\b' &&
	! ip -6 route show $2 | grep -q rt_trap"; }
lpm_is() { # what wanted
	i=50
	until [ "$(occ ipv6-lpm)" = "$2" ]; do
		i=$((i - 1))
		[ $i -gt 0 ] || fail "$1: IPv6 routes in the chip: wanted $2, got $(occ ipv6-lpm)"
		sleep 0.1
	done
}

sysctl -qw net.ipv6.conf.all.forwarding=1
for k in 1 2; do
	ip link set swp$k up
	ip -6 addr add 2001:db8:$k::1/64 dev swp$k nodad
	for h in 2 3; do ip neigh replace 2001:db8:$k::$h lladdr 02:00:00:00:0$k:0$h dev swp$k; done
done
A='nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2'
B='nexthop via 2001:db8:1::3 nexthop via 2001:db8:2::2'
C='nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::3'

# ---- no room for a third group
# shellcheck disable=SC2086 # lists of words
{
	ip -6 route add 2001:db8:a::/48 $A
	ip -6 route add 2001:db8:b::/48 $B
}
offloaded "two groups" 2001:db8:a::/48
offloaded "two groups" 2001:db8:b::/48
ip -6 route add 2001:db8:c::/48 via 2001:db8:1::2
ip -6 route add 2001:db8:d::/48 via 2001:db8:1::2
offloaded "one way" 2001:db8:c::/48
offloaded "one way" 2001:db8:d::/48
sleep 1
routes=$(occ ipv6-lpm)

# shellcheck disable=SC2086
refused 'clsw: next-hop group full \(needs 1, free 0 of 2\)' ip -6 route add 2001:db8:e::/48 $C
is "the refused add" "" "$(ip -6 route show 2001:db8:e::/48)"
lpm_is "after a refused add" "$routes"

if said=$(ip -6 route append 2001:db8:c::/48 via 2001:db8:2::3 2>&1); then
	traps "append without room for a group" 2001:db8:c::/48 2
else
	has "the refused append" 'clsw: next-hop group full \(needs 1, free 0 of 2\)' "$said"
	is "ways after a refused append" 1 "$(shown 2001:db8:c::/48)"
	offloaded "after a refused append" 2001:db8:c::/48
fi
lpm_is "after an append" "$routes"

# shellcheck disable=SC2086
ip -6 route replace 2001:db8:d::/48 $C
traps "replace without room for a group" 2001:db8:d::/48 2
lpm_is "after a replace" "$routes"
ip nexthop add id 10 via 2001:db8:1::2 dev swp1
ip nexthop add id 11 via 2001:db8:2::3 dev swp2
refused 'clsw: next-hop group full' ip nexthop add id 12 group 10/11
is "the refused group" "" "$(ip nexthop show id 12 2>/dev/null)"

# a group becomes free: whoever waited for it has it
ip -6 route del 2001:db8:a::/48
offloaded "with room again" 2001:db8:d::/48
lpm_is "with one route less" $((routes - 1))
ip nexthop flush >/dev/null 2>&1
ip -6 route del 2001:db8:c::/48

# ---- no room for a route: groups there are, and what stands changes in its place
n=0
while said=$(ip -6 route add 2001:db8:100:$n::/64 via 2001:db8:1::2 2>&1); do
	n=$((n + 1))
	[ $n -lt 64 ] || fail "64 routes fit into 32 slots"
done
has "full" 'clsw: IPv6 LPM full \(needs 1, free 0 of [0-9]+\)' "$said"
ip -6 route del 2001:db8:b::/48
ip -6 route add 2001:db8:100:$n::/64 via 2001:db8:1::2
routes=$(occ ipv6-lpm)
# shellcheck disable=SC2086
ip -6 route replace 2001:db8:100::/64 $B
offloaded "replace at a full table" 2001:db8:100::/64
is "ways of it" 2 "$(shown 2001:db8:100::/64)"
ip -6 route append 2001:db8:100:1::/64 via 2001:db8:2::3 2>/dev/null || :
until_true 5 "append at a full table" sh -c "ip -6 route show 2001:db8:100:1::/64 | grep -Eq 'rt_offload|rt_trap'"
lpm_is "in the end" "$routes"
