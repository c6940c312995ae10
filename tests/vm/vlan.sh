# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For tests of VLAN interfaces on ports: `. /host/tests/vm/vlan.sh`, behind lib.sh.

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
