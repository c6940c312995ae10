#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 600
# long
#
# A VLAN interface on a port in a VRF, its port outside, three times: each move finds what the last one has left behind.
. /host/tests/vm/lib.sh
# shellcheck disable=SC1091 # the machine's
. /host/tests/vm/vlan.sh

by_chip h1v10 10.0.3.2
by_chip h1 10.0.2.2

n=0
while [ $n -lt 3 ]; do
	n=$((n + 1))
	# the hosts know their gateways in one round, have to ask in the next
	[ $n != 2 ] || { ip -n h3 neigh flush all; ip -n h1v10 neigh flush all; }
	# a VRF of its own, its port stays where it is
	ip link add vrf1 type vrf table 100
	ip link set vrf1 up
	ip link set swp1.10 vrf vrf1
	ip -6 addr replace 2001:db8:110::1/64 dev swp1.10 nodad
	ip link set swp3 vrf vrf1
	by_chip h1v10 10.0.3.2
	by_chip h1 10.0.2.2
	if ip netns exec h1v10 ping -q -c 2 -i 0.1 -W 1 10.0.2.2 >/dev/null 2>&1; then fail "out of the VRF"; fi
	ip link del vrf1
	by_chip h1v10 10.0.2.2
done
ip link del swp1.10
ip link del swp1.20
until_true 5 "no router interface of a VLAN is left" \
	sh -c ". /host/tests/vm/lib.sh; ! asic -j show rifs | grep -q port_vlan"
