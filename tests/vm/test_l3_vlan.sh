#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 420
#
# VLAN interfaces on ports: routed by the chip with the tag of the interface they leave by, to an untagged port, from one
# VLAN of a port to another, over a gateway, in IPv6 and in a VRF. By the CPU: what the chip can't make look as the kernel
# would (priorities, a MAC address of its own, a bridge on top), and nothing at all while the interface is down.
. /host/tests/vm/lib.sh

# hosts in VLANs 10 and 20 of port 1, and untagged ones on all ports
host_on 1 10.0.1.2/24
host_on 2 10.0.2.2/24 2001:db8:2::2/64
host_on 3 10.0.3.2/24
for v in 10 20; do
	ip netns add "h1v$v"
	ip -n h1 link add link eth0 name "v$v" type vlan id "$v"
	ip -n h1 link set "v$v" netns "h1v$v" name eth0
	ip -n "h1v$v" link set lo up
	ip -n "h1v$v" link set eth0 up
	ip -n "h1v$v" addr add "10.1.$v.2/24" dev eth0
	ip -n "h1v$v" addr add "2001:db8:1$v::2/64" dev eth0 nodad
	ip -n "h1v$v" route add default via "10.1.$v.1"
	ip -n "h1v$v" -6 route add default via "2001:db8:1$v::1"
done
ip -n h1v10 addr add 20.0.0.1/32 dev lo
for k in 1 2 3; do
	ip -n h$k route add default via 10.0.$k.1
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
done
ip -n h2 -6 route add default via 2001:db8:2::1
ip -6 addr add 2001:db8:2::1/64 dev swp2 nodad
vlan() { # id: on port 1, with its addresses
	ip link add link swp1 name "swp1.$1" type vlan id "$1"
	ip link set "swp1.$1" up
	ip addr add "10.1.$1.1/24" dev "swp1.$1"
	ip -6 addr add "2001:db8:1$1::1/64" dev "swp1.$1" nodad
}
vlan 10
vlan 20
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
sleep 2
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
before=$(bytes)
ip netns exec h2 ping -q -c 10 -s 1000 -i 0.1 10.1.10.2 >/dev/null
sleep 1.5
[ $(($(bytes) - before)) -ge $((10 * (1000 + 8 + 20 + 14 + 4))) ] || fail "swp1 sent $(($(bytes) - before)) bytes"

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
sleep 2
by_cpu h2 10.1.20.2
ip link del swp1.20
vlan 20
by_chip h2 10.1.20.2

# a MAC address of its own: frames to it are not the port's
ip link set swp1.20 address 02:00:00:00:20:01
sleep 1
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

# a VRF of its own, its port stays where it is
ip link add vrf1 type vrf table 100
ip link set vrf1 up
ip link set swp1.10 vrf vrf1
ip -6 addr replace 2001:db8:110::1/64 dev swp1.10 nodad
ip link set swp3 vrf vrf1
by_chip h1v10 10.0.3.2
by_chip h1 10.0.2.2
if ip netns exec h1v10 ping -q -c 2 -W 1 10.0.2.2 >/dev/null 2>&1; then fail "out of the VRF"; fi
ip link del vrf1
ip link del swp1.10
ip link del swp1.20
until_true 5 "no router interface of a VLAN is left" \
	sh -c ". /host/tests/vm/lib.sh; ! asic -j show rifs | grep -q port_vlan"
