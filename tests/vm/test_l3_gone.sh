#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 200
#
# An interface that goes takes its router interface with it, whatever addresses it still has while it goes: removed, removed
# with what it stands on, or moved to another network namespace.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

rifs() { occ rif; }
rifs_are() { [ "$(devlink -j resource show "$DEV" | jq '[.. | objects | select(.name? == "rif")][0].occ')" = "$1" ]; }
addressed() { # interface: an address of each family
	ip addr add 10.0.10.1/24 dev "$1"
	ip -6 addr add 2001:db8:10::1/64 dev "$1" nodad
	until_true 10 "$1 has a router interface" rifs_are $((before + 1))
}
gone() { # what: it has none, and a look by the clock later still none
	until_true 20 "no router interface is left of $1 ($(rifs), $before before)" rifs_are "$before"
	ip link add clock0 type dummy && ip link del clock0
	is "router interfaces after $1" "$before" "$(rifs)"
}

sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
# no addresses of their own: they have no router interfaces
for k in 1 2; do ip link set swp$k addrgenmode none; done
ip link add br0 type bridge vlan_filtering 1
ip link set br0 addrgenmode none
ip link set swp1 master br0
ip link set swp1 up
ip link set br0 up
bridge vlan add vid 10 dev br0 self
bridge vlan add vid 10 dev swp1
ip link set swp2 up
before=$(rifs)
for keep in 0 1; do
	sysctl -qw net.ipv6.conf.all.keep_addr_on_down=$keep net.ipv6.conf.default.keep_addr_on_down=$keep
	# never up, and up; IPv4 addresses go first, and the IPv6 ones are there still
	for state in down up; do
		ip link add link br0 name br0.10 type vlan id 10
		ip link set br0.10 $state
		addressed br0.10
		ip link del br0.10
		gone "a VLAN interface of a bridge, $state, keep_addr_on_down $keep"
		ip link add link swp2 name swp2.10 type vlan id 10
		ip link set swp2.10 $state
		addressed swp2.10
		ip link del swp2.10
		gone "a VLAN interface of a port, $state, keep_addr_on_down $keep"
	done
done

# with what it stands on
ip link add link br0 name br0.10 type vlan id 10
addressed br0.10
ip link del br0
gone "a VLAN interface whose bridge goes"

# to another namespace: the interface lives on, and is none of ours
ip netns add other
ip link add link swp2 name swp2.10 type vlan id 10
addressed swp2.10
ip link set swp2.10 netns other
gone "a VLAN interface that was moved away"
ip -n other link del swp2.10
ip netns del other
