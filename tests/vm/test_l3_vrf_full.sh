#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 200
#
# More VRFs than the chip has: an interface that routes is refused by its new master, one that does not yet is refused its
# address, both in words. The last interface of a VRF makes room for another one.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

sysctl -qw net.ipv4.ip_forward=1
for k in 1 2 3 4; do ip link set swp$k addrgenmode none; done
for v in 1 2 3 4 5 6; do
	ip link add vrf$v type vrf table 10$v
	ip link set vrf$v up
done
is "VRFs of the chip" 4 "$(size vrf)"
for k in 1 2 3; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
done
ip link set swp1 vrf vrf1
k=2
for v in 2 3 4; do
	ip link add link swp2 name swp2.$v type vlan id $v
	ip link set swp2.$v addrgenmode none up
	ip link set swp2.$v vrf vrf$v
	ip addr add 10.2.$v.1/24 dev swp2.$v
	until_true 20 "VRF $k" sh -c \
		"[ \$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"vrf\")][0].occ') = $k ]"
	k=$((k + 1))
done
refused 'VRF.* full \(needs 1, free 0 of 4\)' ip link set swp3 vrf vrf5
is "its master" "" "$(ip -j link show swp3 | jq -r '.[0].master // empty')"
ip link set swp4 vrf vrf5
refused 'VRF.* full \(needs 1, free 0 of 4\)' ip addr add 10.0.4.1/24 dev swp4
# into one that is there already, and one that makes room for another
ip link set swp3 vrf vrf1
ip link set swp3 nomaster
ip link set swp1 vrf vrf6
until_true 20 "its prefix traps there" sh -c 'ip route show vrf vrf6 10.0.1.0/24 | grep -q rt_trap'
is "VRFs" 4 "$(occ vrf)"
adds_up
