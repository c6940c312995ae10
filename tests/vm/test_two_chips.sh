#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 2
# timeout: 200
#
# Two chips in one kernel. It asks one after the other, and when the second says no it tells the first nothing: still both
# have in the end what the kernel has. The first is large (behind PCI), the second tiny (in the kernel).
# shellcheck disable=SC2016 # what the host expands
. /host/tests/vm/lib.sh

chip_routes() { host 'tandem show routes --hw --limit 100000 -j --name $LAB_ASIC'; }
chip_has() { chip_routes | jq -r '.. | .prefix? // empty' | sort | grep "$1" || :; }
kernel_has() { ip route show | sed -n 's/^[a-z]* *\(30\.[0-9./]*\) .*/\1/p' | sort; }
same() { [ "$(chip_has '^30\.')" = "$(kernel_has)" ]; }

sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for k in 1 2; do ip link set swp$k down; ip link set swp$k name big$k; done
modprobe clsw_null profile=tiny ports=4
for k in 1 2; do
	ip link set big$k up
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev big$k
	ip addr add 10.9.$k.1/24 dev swp$k
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev big$k
	ip neigh replace 10.9.$k.2 lladdr 02:00:00:00:09:0$k dev swp$k
done

# a route that the tiny chip has no room for
n=0
while said=$(ip route add 30.$n.0.0/16 via 10.0.1.2 2>&1); do
	n=$((n + 1))
	[ $n -lt 64 ] || fail "64 routes fit into 32 slots"
done
has "the tiny chip refuses" 'IPv4 LPM full \(needs 1, free 0 of 32\)' "$said"
until_true 20 "the large chip has what the kernel has" same

# one that it has no room for a group of: what was there before stays, in both
for p in 10 11; do
	ip route replace 30.$((p - 10)).0.0/16 nexthop via 10.9.1.2 weight $p nexthop via 10.9.2.2
done
refused 'next-hop group' ip route replace 30.2.0.0/16 nexthop via 10.9.1.2 weight 99 nexthop via 10.9.2.2
has "the route of before" 'via 10.0.1.2' "$(ip route show 30.2.0.0/16)"
forwards() { chip_routes | jq -e '[.. | objects | select(.prefix? == "30.2.0.0/16")][0] | tostring | test("nexthop|forward"; "i")'; }
until_true 30 "the large chip forwards by the route of before" forwards
until_true 20 "the large chip has what the kernel has" same

# next-hop objects: a group that the tiny chip refuses is no group of the large one's either
before=$(host 'tandem show resources -j --name $LAB_ASIC' | jq -c '[.. | objects | select(.name? == "nexthop-group") | .used] | .[0]')
ip nexthop add id 1 via 10.9.1.2 dev swp1
ip nexthop add id 2 via 10.9.2.2 dev swp2
refused 'clsw: ' ip nexthop add id 3 group 1,7/2
is "the refused object" "" "$(ip nexthop show id 3 2>/dev/null)"
until_true 10 "the large chip's groups" sh -c \
	"[ \"\$(host 'tandem show resources -j --name \$LAB_ASIC' | jq -c '[.. | objects | select(.name? == \"nexthop-group\") | .used] | .[0]')\" = '$before' ]"

# IPv6
for k in 1 2; do
	ip -6 addr add 2001:db8:$k::1/64 dev big$k nodad
	ip neigh replace 2001:db8:$k::2 lladdr 02:00:00:00:00:0$k dev big$k
done
n=0
while said=$(ip -6 route add 2001:db8:100:$n::/64 via 2001:db8:1::2 2>&1); do
	n=$((n + 1))
	[ $n -lt 64 ] || fail "64 IPv6 routes fit into 32 slots"
done
has "the tiny chip refuses" 'IPv6 LPM full' "$said"
six() { [ "$(chip_has '^2001:db8:100:')" = "$(ip -6 route show | sed -n 's/^\(2001:db8:100:[0-9a-f:]*\/64\) .*/\1/p' | sort)" ]; }
until_true 20 "the large chip has what the kernel has, IPv6" six
modprobe -r clsw_null
until_true 20 "with one chip less" same
for k in 1 2; do ip link set big$k down; ip link set big$k name swp$k; done
