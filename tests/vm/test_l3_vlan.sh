#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 600
#
# VLAN interfaces on ports: routed by the chip with the tag of the interface they leave by, to an untagged port, from one
# VLAN of a port to another, over a gateway and in IPv6 (in a VRF: test_l3_vlan_vrf.sh). By the CPU: what the chip can't
# make look as the kernel would (priorities, a MAC address of its own, a bridge on top), and nothing at all while the
# interface is down.
. /host/tests/vm/lib.sh
# shellcheck disable=SC1091 # the machine's
. /host/tests/vm/vlan.sh

by_chip h1v10 10.0.2.2
by_chip h1v10 2001:db8:2::2
by_chip h1v10 10.1.20.2
by_chip h1 10.1.20.2
by_chip h2 10.1.10.2
is "router interfaces" "port 3, port_vlan 2" "$(asic -j show rifs |
	jq -r '[.[].kind] | group_by(.) | map("\(.[0]) \(length)") | join(", ")')"

# over a gateway in the VLAN, and the flag that says so
ip route add 20.0.0.0/8 via 10.1.10.2
by_chip h2 20.0.0.1
has "the route's flag" rt_offload "$(ip route show 20.0.0.0/8)"

# what is on the wire: the interface's VLAN, priority 0, whatever came in
ip netns exec h1 tcpdump -i eth0 -c 1 -enn 'vlan 10 and icmp' >/tmp/dump 2>/dev/null &
dump=$!
sleep 1
ip netns exec h2 ping -q -c 3 -Q 0xe0 10.1.10.2 >/dev/null
wait $dump
has "the tag" 'vlan 10, p 0,' "$(cat /tmp/dump)"

# the counters are those of the port, with the bytes of the tag
bytes() { ip -s -j link show swp1 | jq '.[0].stats64.tx.bytes'; }
sent() { [ $(($(bytes) - before)) -ge $((10 * (1000 + 8 + 20 + 14 + 4))) ]; }
before=$(bytes)
ip netns exec h2 ping -q -c 10 -s 1000 -i 0.1 10.1.10.2 >/dev/null
until_true 5 "the bytes of ten packets, with their tags" sent

# nobody has VLAN 30
ip -n h1 link add link eth0 name v30 type vlan id 30
ip -n h1 link set v30 up
ip -n h1 addr add 10.1.30.2/24 dev v30
ip -n h1 neigh add 10.1.30.1 lladdr "$(cat /sys/class/net/swp1/address)" dev v30
ip -n h1 route add 10.0.3.0/24 via 10.1.30.1
if ip netns exec h1 ping -q -c 2 -W 1 10.0.3.2 >/dev/null 2>&1; then fail "out of VLAN 30"; fi
ip -n h1 link del v30

# an interface that is down takes nothing, though its port is up
ip link set swp1.20 down
before=$(counter l3_forwarded)
if ip netns exec h1v20 ping -q -c 2 -W 1 10.0.2.2 >/dev/null 2>&1; then fail "through an interface that is down"; fi
is "routed meanwhile" "$before" "$(counter l3_forwarded)"
ip link set swp1.20 up
ip -6 addr replace 2001:db8:120::1/64 dev swp1.20 nodad
by_chip h1v20 10.0.2.2

# priorities
ip link set swp1.20 type vlan egress 0:5
by_cpu h2 10.1.20.2
ip link del swp1.20
vlan 20
by_chip h2 10.1.20.2

# a MAC address of its own: frames to it are not the port's
ip link set swp1.20 address 02:00:00:00:20:01
ip netns exec h1v20 ping -q -c 1 -W 3 10.0.2.2 >/dev/null 2>&1 || :
# what comes in at that port; the answers the chip can do
by_cpu h1v20 10.0.2.2 5
by_cpu h1 10.0.2.2 5
ip link set swp1.20 address "$(cat /sys/class/net/swp1/address)"
ip -n h1v20 neigh flush dev eth0
by_chip h1v20 10.0.2.2

# a bridge on top of the VLAN interface: frames to anybody
ip addr flush dev swp1.20
ip link add br0 type bridge mcast_snooping 0
ip link set br0 up
ip link set swp1.20 master br0
ip addr add 10.1.20.1/24 dev br0
ip -n h1v20 neigh flush dev eth0
ip netns exec h1v20 ping -q -c 2 -W 3 10.0.2.2 >/dev/null 2>&1 || :
by_cpu h1v20 10.0.2.2
ip link del br0
by_chip h1 10.0.2.2

ip link del swp1.10
ip link del swp1.20
until_true 5 "no router interface of a VLAN is left" \
	sh -c ". /host/tests/vm/lib.sh; ! asic -j show rifs | grep -q port_vlan"
