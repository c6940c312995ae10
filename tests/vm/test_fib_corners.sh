#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 200
#
# Corners of the FIB's events that no other test goes through (docs/kernel-l3.md lists them all): flags in the first message,
# encapsulation, link-down next hops, hash policy, multicast rules, autoconfigured addresses, VRFs without an interface,
# and a driver that is loaded while routes come and go.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

CHIP=$(echo /sys/kernel/debug/clsw_null/*)
shown() { ip route show "$1" | grep -o 'rt_[a-z_]*' | sort | tr '\n' ' ' | sed 's/ $//'; }
shows() { # wanted prefix
	until_true 10 "$2 shows '$1' (it shows '$(shown "$2")')" sh -c \
		"[ \"\$(ip route show $2 | grep -o 'rt_[a-z_]*' | sort | tr '\\n' ' ' | sed 's/ \$//')\" = '$1' ]"
}

sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for k in 1 2; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
done

# who waits for the chip has its answer in the first message of a route: nobody has to wait for a second one
devlink dev param set "$DEV" name policy value lockstep cmode runtime
ip monitor route >/run/monitor 2>&1 &
monitor=$!
sleep 1
ip route add 20.0.0.0/8 via 10.0.1.2
sleep 1
kill $monitor
has "first message" '^20.0.0.0/8 .*rt_offload' "$(grep '^20.0.0.0/8' /run/monitor | head -n 1)"
devlink dev param set "$DEV" name policy value credit cmode runtime

# encapsulation (lwtunnel)
ip route add 21.0.0.0/8 encap ip id 7 dst 10.0.1.2 via 10.0.1.2 dev swp1
shows rt_trap 21.0.0.0/8

# a next hop whose link is down is dead where the sysctl says so, and only there
ip route add 22.0.0.0/8 nexthop via 10.0.1.2 nexthop via 10.0.2.2
shows rt_offload 22.0.0.0/8
members() { occ nexthop-group-member; }
is "members of the group" 2 "$(members)"
sysctl -qw net.ipv4.conf.swp2.ignore_routes_with_linkdown=1
echo "2 0" >"$CHIP/link"
until_true 10 "a member less" sh -c "[ \$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"nexthop-group-member\")][0].occ') = 1 ]"
shows rt_offload 22.0.0.0/8
echo "2 1" >"$CHIP/link"
until_true 10 "and back" sh -c "[ \$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"nexthop-group-member\")][0].occ') = 2 ]"

# a hash policy that the chip lacks: groups trap, single ways don't
sysctl -qw net.ipv4.fib_multipath_hash_policy=2
shows rt_trap 22.0.0.0/8
shows rt_offload 20.0.0.0/8
sysctl -qw net.ipv4.fib_multipath_hash_policy=1
shows rt_offload 22.0.0.0/8
# by fields of one's own choice: the flow label is one of them
ip -6 addr add 2001:db8:1::1/64 dev swp1 nodad
ip -6 addr add 2001:db8:2::1/64 dev swp2 nodad
ip -6 route add 2001:db8:22::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:2::2
shows6() { until_true 10 "2001:db8:22::/48 shows $1" sh -c "ip -6 route show 2001:db8:22::/48 | grep -q $1"; }
shows6 rt_offload
sysctl -qw net.ipv6.fib_multipath_hash_fields=0x0008
shows6 rt_offload
sysctl -qw net.ipv6.fib_multipath_hash_policy=3
shows6 rt_trap
sysctl -qw net.ipv4.fib_multipath_hash_policy=3
shows rt_trap 22.0.0.0/8
sysctl -qw net.ipv6.fib_multipath_hash_policy=0 net.ipv4.fib_multipath_hash_policy=0
shows6 rt_offload
shows rt_offload 22.0.0.0/8
# the policy is the route's, not its gateways': IPv4 over IPv6 gateways that both families use
ip nexthop add id 61 via 2001:db8:1::2 dev swp1
ip nexthop add id 62 via 2001:db8:2::2 dev swp2
ip nexthop add id 60 group 61/62
ip route add 23.0.0.0/8 nhid 60
ip -6 route replace 2001:db8:22::/48 nhid 60
shows rt_offload 23.0.0.0/8
sysctl -qw net.ipv4.fib_multipath_hash_policy=1
shows rt_trap 23.0.0.0/8
shows6 rt_offload
sysctl -qw net.ipv6.fib_multipath_hash_policy=1
shows rt_offload 23.0.0.0/8
sysctl -qw net.ipv4.fib_multipath_hash_policy=0 net.ipv6.fib_multipath_hash_policy=0
shows rt_offload 23.0.0.0/8
ip nexthop flush
ip route del 22.0.0.0/8

# multicast routing has rules of its own
refused 'policy rules are not offloaded' ip mrule add iif swp1 table 100

# a VRF costs nothing before an interface is in it
before=$(occ vrf)-$(occ ipv4-lpm)
ip link add vrf1 type vrf table 100
ip link set vrf1 up
ip route add blackhole 40.0.0.0/8 table 100
ip route add blackhole 40.1.0.0/16 table 100
is "VRFs and prefixes" "$before" "$(occ vrf)-$(occ ipv4-lpm)"
ip link del vrf1
ip route flush table 100

# an address that nobody asked for: autoconfigured, from a router's advertisement in softirq
ip link add br0 type bridge
ip link set swp3 master br0
ip link set swp3 up
ip netns add router
ip link add veth0 type veth peer name veth1 netns router
ip link set veth0 master br0
sysctl -qw net.ipv6.conf.br0.accept_ra=2 net.ipv6.conf.br0.accept_dad=0
ip link set veth0 up
ip -n router link set veth1 up
ip link set br0 up
before=$(occ ipv6-lpm)
cat >/run/advertise.py <<'PY'
import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("veth1"))
prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 3600, 0) + socket.inet_pton(socket.AF_INET6, "2001:db8:5aac::")
s.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix, ("ff02::1", 0))
PY
until_true 20 "an autoconfigured address" sh -c \
	'ip netns exec router python3 /run/advertise.py; sleep 0.5; ip -6 addr show dev br0 | grep -q 2001:db8:5aac:'
until_true 10 "its prefix traps" sh -c 'ip -6 route show 2001:db8:5aac::/64 | grep -q rt_trap'
until_true 10 "the chip has its prefixes" sh -c \
	"[ \$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"ipv6-lpm\")][0].occ') -ge $((before + 2)) ]"
ip link del br0
ip netns del router

# the driver is loaded while routes come and go: the kernel's replay is cut short, and told once more
ip link add dummy0 type dummy
ip link set dummy0 up
i=0
while [ $i -lt 400 ]; do echo "route add 60.$((i / 200)).$((i % 200)).0/24 dev dummy0"; i=$((i + 1)); done >/run/add
sed 's/ add / del /' /run/add >/run/del
ip route add 61.0.0.0/8 dev dummy0
: >/run/churn
(while [ -e /run/churn ]; do ip -batch /run/add; ip -batch /run/del; done) >/dev/null 2>&1 &
churn=$!
n=0
while [ $n -lt 3 ]; do
	n=$((n + 1))
	modprobe -r clsw_null
	until_true 20 "the driver comes in beside churn" modprobe clsw_null ports=4
	[ -e /sys/class/net/swp1 ] || fail "no ports beside churn"
done
rm /run/churn
wait $churn || :
until_true 20 "what stood all the time is there" sh -c 'ip route show 61.0.0.0/8 | grep -q rt_trap'
until_true 20 "and nothing of what is gone" sh -c \
	"[ \$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"ipv4-lpm\")][0].occ') = \$(ip route show table all | grep -vc '^f\|^2001\|::\|local 127\.0\.0\.1\|broadcast 127') ]"
ip link del dummy0
