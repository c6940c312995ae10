#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 600
#
# Packets between hosts, routed by the chip and not by the CPU: connected hosts, a gateway, ECMP by next-hop object, IPv6,
# a VLAN-unaware bridge with an address, a VRF; and by the CPU what the chip may not do: forwarding off, rp_filter, a
# rule of netfilter, a neighbour that is not resolved, a blackhole.
. /host/tests/vm/lib.sh

host_on 1 10.0.1.2/24 2001:db8:1::2/64
host_on 2 10.0.2.2/24 10.0.2.3/24 2001:db8:2::2/64 20.0.0.1/32 2001:db8:20::1/128
host_on 3 10.0.3.2/24 30.0.0.1/32
for k in 1 2 3; do
	ip -n h$k route add default via 10.0.$k.1
	ip -n h$k -6 route add default via 2001:db8:$k::1 2>/dev/null || :
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip -6 addr add 2001:db8:$k::1/64 dev swp$k nodad
done
sysctl -qw net.ipv4.ip_forward=0
for k in 1 2; do until_true 10 "the gateway of h$k" ip netns exec h$k ping -q -c 1 -W 1 10.0.$k.1; done
if ip netns exec h1 ping -q -c 1 -W 1 10.0.2.2 >/dev/null 2>&1; then fail "routed with ip_forward=0"; fi
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
by_chip h1 10.0.2.2
by_chip h1 2001:db8:2::2

ip route add 20.0.0.0/8 via 10.0.2.2
by_chip h1 20.0.0.1
ip -6 route add 2001:db8:20::/48 via 2001:db8:2::2
by_chip h1 2001:db8:20::1
ip nexthop add id 1 via 10.0.2.2 dev swp2
ip nexthop add id 2 via 10.0.2.3 dev swp2
ip nexthop add id 10 group 1/2
ip route replace 20.0.0.0/8 nhid 10
by_chip h1 20.0.0.1

# a blackhole inside, and out again
ip route add blackhole 20.0.0.1/32
if ip netns exec h1 ping -q -c 2 -W 1 20.0.0.1 >/dev/null 2>&1; then fail "through a blackhole"; fi
ip route del blackhole 20.0.0.1/32
by_chip h1 20.0.0.1

# what makes the CPU judge
sysctl -qw net.ipv4.conf.swp1.rp_filter=1 net.ipv4.conf.swp2.rp_filter=1
by_cpu h1 20.0.0.1
sysctl -qw net.ipv4.conf.swp1.rp_filter=0 net.ipv4.conf.swp2.rp_filter=0
by_chip h1 20.0.0.1
nft add table ip t
nft 'add chain ip t f { type filter hook forward priority 0; }'
by_cpu h1 20.0.0.1
nft delete table ip t
by_chip h1 20.0.0.1

# the same in a VRF: two of its ports, the third stays outside
ip link add vrf1 type vrf table 100
ip link set vrf1 up
ip link set swp1 vrf vrf1
ip link set swp2 vrf vrf1
by_chip h1 10.0.2.2
if ip netns exec h1 ping -q -c 2 -W 1 10.0.3.2 >/dev/null 2>&1; then fail "out of the VRF"; fi
ip link set swp1 nomaster
ip link set swp2 nomaster
ip link del vrf1
by_chip h1 10.0.3.2

# a bridge with an address routes for its ports
ip addr flush dev swp2
ip link add br0 type bridge mcast_snooping 0
ip link set br0 up
ip link set swp2 master br0
ip addr add 10.0.2.1/24 dev br0
by_chip h1 10.0.2.2
