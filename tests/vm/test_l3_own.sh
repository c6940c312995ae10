#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --profile tiny --ports 3
# timeout: 120
#
# Own prefixes keep the reason by which the chip knows them, so that what claims to be from there is refused: with a type of
# service, and in a wider prefix of table local.
. /host/tests/vm/lib.sh

reason() { # prefix
	host "tandem show routes --hw --limit 1000 -j --name \$LAB_ASIC" | jq -c --arg p "$1" '.. | select(.prefix? == $p)'
}
traps_as() { # reason, prefix
	n=$((50 * SLOW))
	until reason "$2" | grep -q "$1"; do
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$2: wanted '$1', got '$(reason "$2")'"
		sleep 0.2
	done
}

sysctl -qw net.ipv4.ip_forward=1
for k in 1 2; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
done

ip route add local 10.3.0.0/25 dev lo tos 0x10
traps_as local 10.3.0.0/25
ip route add 10.4.0.0/16 tos 0x10 via 10.0.1.2
traps_as route 10.4.0.0/16

# table local is asked first, whatever main has below
ip route add 10.5.64.0/18 via 10.0.1.2
ip route add unreachable 10.5.192.0/18
ip addr add 10.5.1.1/24 dev swp2
traps_as connected 10.5.1.0/24
traps_as route 10.5.192.0/18
ip route add local 10.5.0.0/16 dev lo
for prefix in 10.5.64.0/18 10.5.192.0/18 10.5.1.0/24; do
	traps_as local $prefix
done
ip route del local 10.5.0.0/16 dev lo
traps_as connected 10.5.1.0/24
traps_as route 10.5.192.0/18
