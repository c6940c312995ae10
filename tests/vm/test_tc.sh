#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 600
# long
#
# Filters that the chip hasn't are the kernel's to apply, to every frame: tc at a port's ingress and egress, of a kind that
# tells the driver (flower) and of one that doesn't (basic), nftables at a netdev, XDP, tcx; taken away, the chip forwards again.
. /host/tests/vm/lib.sh
routed=0 # by pings
for k in 1 2 3; do
	host_on $k 10.0.$k.2/24
	ip -n h$k route add default via 10.0.$k.1
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	# a program that drops the answers to ARP would block as well, a little later
	ip neigh replace 10.0.$k.2 lladdr 02:54:4e:00:00:0$k dev swp$k nud permanent
	ip -n h$k neigh replace 10.0.$k.1 lladdr "$(cat /sys/class/net/swp$k/address)" dev eth0 nud permanent
done
sysctl -qw net.ipv4.ip_forward=1
by_chip h1 10.0.2.2
blocked() { # what [address]
	if ip netns exec h1 ping -q -c 2 -i 0.1 -W 1 "${2:-10.0.2.2}" >/dev/null 2>&1; then fail "$1 was passed by"; fi
}
# nobody tells the driver of it, nor of anything at a bridge or a VLAN interface: it looks once a second
soon_blocked() { # what [address]
	until_true 5 "$1" sh -c "! ip netns exec h1 ping -q -c 1 -W 1 ${2:-10.0.2.2}"
	blocked "$@"
}
modprobe -a cls_flower cls_basic cls_matchall act_gact sch_ingress

tc qdisc add dev swp1 clsact
by_chip h1 10.0.2.2

# at once, without a pause
tc filter add dev swp1 ingress pref 1 protocol ip flower dst_ip 10.0.2.2 action drop
blocked "flower at the ingress"
pings h1 10.0.3.2 5
is "answers routed by the chip, echo requests not" 5 "$routed"
by_chip h2 10.0.3.2
refused 'tc filters are not offloaded' \
	tc filter add dev swp1 ingress pref 2 protocol ip flower skip_sw dst_ip 10.0.3.2 action drop
tc filter del dev swp1 ingress
by_chip h1 10.0.2.2

tc qdisc add dev swp2 clsact
tc filter add dev swp2 egress pref 1 protocol ip flower src_ip 10.0.1.2 action drop
blocked "flower at the egress"
tc filter del dev swp2 egress
by_chip h1 10.0.2.2

tc filter add dev swp1 ingress pref 1 protocol ip basic match 'u32(u32 0x0a000202 0xffffffff at 16)' action drop
soon_blocked "basic at the ingress"
tc qdisc del dev swp1 clsact
by_chip h1 10.0.2.2
nft add table netdev t
nft 'add chain netdev t c { type filter hook ingress device swp1 priority 0; }'
nft add rule netdev t c ip daddr 10.0.2.2 drop
soon_blocked "nftables at the ingress"
nft delete table netdev t
by_chip h1 10.0.2.2

# BPF programs: by XDP, and by tcx at both hooks
for hook in 'xdp swp1' 'ingress swp1' 'egress swp2'; do
	# shellcheck disable=SC2086 # a hook and a device
	python3 /host/tests/vm/bpf.py $hook >/tmp/bpf &
	until_true 20 "a program at $hook" grep -q there /tmp/bpf
	soon_blocked "$hook"
	kill $!
	wait $! || :
	: >/tmp/bpf
	by_chip h1 10.0.2.2
done

# at a VLAN interface: only what is routed there
ip link add link swp1 name swp1.10 type vlan id 10
ip link set swp1.10 up
ip addr add 10.1.10.1/24 dev swp1.10
ip -n h1 link add link eth0 name v10 type vlan id 10
ip -n h1 link set v10 up
ip -n h1 addr add 10.1.10.2/24 dev v10
ip -n h1 route replace 10.0.2.0/24 via 10.1.10.1
by_chip h2 10.1.10.2
tc qdisc add dev swp1.10 clsact
tc filter add dev swp1.10 ingress pref 1 protocol ip matchall action pass
by_cpu h2 10.1.10.2 5
by_chip h1 10.0.3.2
pings h2 10.1.10.2 5
is "echo requests routed by the chip, answers not" 5 "$routed"
tc filter add dev swp1.10 egress pref 1 protocol ip matchall action pass
by_cpu h2 10.1.10.2
tc qdisc del dev swp1.10 clsact
by_chip h2 10.1.10.2

# at a bridge: what is routed there
ip addr flush dev swp3
ip link add br0 type bridge
ip link set swp3 master br0
ip link set br0 up
ip addr add 10.0.3.1/24 dev br0
ip neigh replace 10.0.3.2 lladdr 02:54:4e:00:00:03 dev br0 nud permanent
ip -n h3 neigh replace 10.0.3.1 lladdr "$(cat /sys/class/net/br0/address)" dev eth0 nud permanent
by_chip h1 10.0.3.2
tc qdisc add dev br0 clsact
tc filter add dev br0 ingress pref 1 protocol ip matchall action pass
by_cpu h1 10.0.3.2 5
by_chip h1 10.0.2.2
pings h1 10.0.3.2 5
is "echo requests routed by the chip to the bridge, answers not" 5 "$routed"
tc filter add dev br0 egress pref 1 protocol ip matchall action pass
by_cpu h1 10.0.3.2
tc filter del dev br0 ingress
tc filter del dev br0 egress
by_chip h1 10.0.3.2
tc filter add dev br0 egress pref 1 protocol ip flower dst_ip 10.0.3.2 action drop
soon_blocked "flower at the bridge" 10.0.3.2
tc qdisc del dev br0 clsact
by_chip h1 10.0.3.2
nft add table netdev b
nft 'add chain netdev b c { type filter hook ingress device br0 priority 0; }'
nft add rule netdev b c ip daddr 10.0.1.2 drop
soon_blocked "nftables at the bridge" 10.0.3.2
nft delete table netdev b
by_chip h1 10.0.3.2
