#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --append ipv6.disable=1
#
# The driver in a kernel that was booted without IPv6: it loads, IPv4 is routed by the chip, a bridge is bridged by it, and
# it can be unloaded.
. /host/tests/vm/lib.sh

[ ! -e /proc/sys/net/ipv6 ] || fail "this kernel has IPv6"
host_on 1 10.0.1.2/24
host_on 2 10.0.2.2/24 20.0.0.1/32
for k in 1 2; do
	ip -n h$k route add default via 10.0.$k.1
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
done
sysctl -qw net.ipv4.ip_forward=1
by_chip h1 10.0.2.2
ip nexthop add id 1 via 10.0.2.2 dev swp2
ip route add 20.0.0.0/8 nhid 1
by_chip h1 20.0.0.1
refused '' ip -6 route add 2001:db8::/48 dev swp2

ip route del 20.0.0.0/8
for k in 1 2; do ip addr flush dev swp$k; done
ip link add br0 up type bridge
for k in 1 2; do ip link set swp$k master br0; done
ip -n h1 addr add 10.0.2.3/24 dev eth0
ip -n h1 route flush default
until_true 20 "h1 to reach h2 through the bridge" ip netns exec h1 ping -q -c 1 -W 1 -I 10.0.2.3 10.0.2.2
