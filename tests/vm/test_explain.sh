#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 300
#
# tandem show and explain without a daemon: they ask the driver what is in hardware, what is not, and why.
. /host/tests/vm/lib.sh

why() { tandem -j explain route "$1" | jq -r '"\(.state): \(.reason)"'; }
row() { tandem -j show routes | jq -c ".[] | select(.prefix == \"$1\" and .vrf == 0)"; }
explained() { # prefix, extended pattern
	n=50
	until why "$1" | grep -Eq -- "$2"; do
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$1: wanted /$2/, got '$(why "$1")'"
		sleep 0.1
	done
}

modprobe dummy
sysctl -qw net.ipv4.ip_forward=1
for k in 1 2; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
done
ip link add link swp1 name swp1.10 type vlan id 10
ip link set swp1.10 up
ip addr add 10.1.10.1/24 dev swp1.10
ip neigh replace 10.1.10.2 lladdr 02:00:00:00:00:0a dev swp1.10
ip link add dummy0 type dummy
ip link set dummy0 up
ip addr add 10.9.0.1/24 dev dummy0

ip route add 20.0.0.0/8 via 10.0.1.2
ip route add 21.0.0.0/8 via 10.1.10.2
ip route add 22.0.0.0/8 via 10.0.2.99
ip route add 23.0.0.0/8 nexthop via 10.0.1.2 weight 3 nexthop via 10.0.2.2
ip route add unreachable 24.0.0.0/8
ip route add 25.0.0.0/8 via 10.9.0.2
ip route add blackhole 26.0.0.0/8
explained 20.0.0.0/8 '^offloaded: null$'
explained 21.0.0.0/8 '^offloaded: null$'
explained 22.0.0.0/8 '^trap: no next hop is resolved$'
explained 23.0.0.0/8 '^offloaded: null$'
explained 24.0.0.0/8 '^trap: the kernel owes the sender an answer$'
explained 25.0.0.0/8 '^trap: leaves by an interface that is not offloaded$'
explained 26.0.0.0/8 '^offloaded: null$'
explained 10.0.1.0/24 '^trap: connected: hosts have entries of their own$'
explained 10.0.1.1 '^trap: own address$'

# the longest prefix answers for an address; for what nobody has nothing does
is "what answers for 20.1.2.3" "20.0.0.0/8" "$(tandem -j explain route 20.1.2.3 | jq -r '.object | split(" ")[0]')"
if tandem explain route 99.0.0.0/8 >/tmp/said; then fail "99.0.0.0/8 was explained: $(cat /tmp/said)"; fi
has "nothing" 'state +absent' "$(cat /tmp/said)"
refused 'neither a prefix nor an address' tandem explain route nonsense

# for people, and as JSON
has "explain" 'in hardware +yes' "$(tandem explain route 21.0.0.0/8)"
has "where it leads" '02:00:00:00:00:0a by RIF [0-9]+ \(port 1 VLAN 10\)' "$(tandem explain route 21.0.0.0/8)"
has "the group's row" '"desired":"group [0-9]+: .* weight 3, .* weight 1"' "$(row 23.0.0.0/8)"
has "the table" '^24\.0\.0\.0/8 .*trap .*the kernel owes' "$(tandem show routes)"
has "one family" '^0$' "$(tandem -j show routes --family 6 | jq '[.[] | select(.family == "ipv4")] | length')"
is "a neighbour" offloaded "$(tandem -j explain neighbour 10.0.1.2 | jq -r .state)"
refused 'no swp1: ask for 10.0.1.2 alone' tandem explain neighbour 10.0.1.2@swp1
refused 'no br0: ask for 02:00:00:00:00:01 alone' tandem explain mac 02:00:00:00:00:01@br0
has "router interfaces" 'port 1 VLAN 10' "$(tandem show rifs)"

# the resources are devlink's, and nothing is lost
tandem -j show resources >/tmp/resources
is "used + in flight + committed + free - size, where it is not 0" "" \
	"$(jq -r '.items[] | select(.used + .in_flight + .committed + .free != .size) | .name' /tmp/resources)"
occ=$(devlink -j resource show platform/clsw_null | jq '[.. | objects | select(.name == "ipv4-lpm")][0].occ')
is "ipv4-lpm" "$occ" "$(jq '.items[] | select(.name == "ipv4-lpm") | .used + .in_flight' /tmp/resources)"
has "as a table" '^ipv4-route +ipv4-lpm +1 ' "$(tandem show resources)"

# hosts for which there is no room: which memory, what was needed, what was free
i=2
while [ $i -lt 200 ]; do
	i=$((i + 1))
	echo "neigh add 10.0.1.$i lladdr 02:00:00:00:01:$(printf %02x $i) dev swp1"
done >/tmp/hosts
ip -batch /tmp/hosts
failed() { tandem -j show neighbours | jq -r '[.[] | select(.state == "failed")][0].reason // empty'; }
until_true 5 "a host that found no room" sh -c 'tandem -j show neighbours | grep -q "\"failed\""'
has "why a host is not there" 'full \(needs [0-9]+, free [0-9]+ of [0-9]+' "$(failed)"
explained 10.0.1.0/24 '^trap: '
