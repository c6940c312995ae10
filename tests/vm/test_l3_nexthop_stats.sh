#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 400
# long
#
# Packets that the chip has sent to each member of a next-hop group, as `ip -s -s nexthop` shows them: by the chip what the
# chip forwards, by the kernel what traps, none twice; a group of one member counts, too; a replace begins anew.
. /host/tests/vm/lib.sh

# What the kernel shows of a member: packets (all) or packets_hw (the chip's)
stat() { ip -j -s -s nexthop show id "$1" | jq ".[0].group_stats[] | select(.id == $2) | .$3"; }
flow() { # packets of one size from h1 to the address
	ip netns exec h1 ping -q -c "$2" -i 0.05 -W 2 "$1" >/tmp/ping 2>&1 || fail "h1 -> $1: $(tail -n 2 /tmp/ping)"
}
counts() { # what group member packets: that many more by the chip since $base, or up to three that trapped
	i=50
	while :; do
		hw=$(stat "$2" "$3" packets_hw) all=$(stat "$2" "$3" packets)
		[ "$all" -lt "$4" ] || break
		i=$((i - 1))
		[ $i -gt 0 ] || fail "$1: member $3 of $2: wanted $4 packets, the kernel shows $all, $hw of them by the chip"
		sleep 0.1
	done
	[ "$all" -le $(($4 + 3)) ] || fail "$1: member $3 of $2: $4 packets were sent, $all are counted, $hw by the chip"
	[ "$hw" -ge $(($4 - 3)) ] || fail "$1: member $3 of $2: $4 packets were sent, the chip counts $hw"
}

host_on 1 10.0.1.2/24 2001:db8:1::2/64
host_on 2 10.0.2.2/24 2001:db8:2::2/64
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for k in 1 2 3; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip -6 addr add 2001:db8:$k::1/64 dev swp$k nodad
done
for k in 1 2; do
	ip -n h$k route add default via 10.0.$k.1
	ip -n h$k -6 route add default via 2001:db8:$k::1
done
ip -n h2 addr add 10.9.0.2/32 dev lo
ip -n h2 -6 addr add 2001:db8:9::2/128 dev lo

ip nexthop add id 1 via 10.0.2.2 dev swp2
ip nexthop add id 2 via 10.0.3.9 dev swp3 # nobody there
ip nexthop add id 6 via 2001:db8:2::2 dev swp2
ip nexthop add id 10 group 1 hw_stats on
ip nexthop add id 16 group 6 hw_stats on
ip route add 10.9.0.0/24 nhid 10
ip -6 route add 2001:db8:9::/64 nhid 16
is "the chip counts" true "$(ip -j -s -d nexthop show id 10 | jq '.[0].hw_stats.enabled')"
flow 10.9.0.2 2
by_chip h1 10.9.0.2
before=$(stat 10 1 packets)
flow 10.9.0.2 40
counts "IPv4, one member" 10 1 $((before + 40))
is "the driver says so" true "$(ip -j -s -s -d nexthop show id 10 | jq '.[0].hw_stats.used')"

flow 2001:db8:9::2 2
by_chip h1 2001:db8:9::2
before=$(stat 16 6 packets)
flow 2001:db8:9::2 40
counts "IPv6, one member" 16 6 $((before + 40))
before=$(stat 16 6 packets)
flow 10.9.0.2 5
is "IPv4 adds nothing to the IPv6 group" "$before" "$(stat 16 6 packets)"

# as the chip has it
chip=$(host 'python3 tests/vm/chip.py /v1/table/nhgs' | jq '[.items[].members[].packets] | add')
[ "$chip" -ge 80 ] || fail "the chip's own counters say $chip"

# nothing is counted anew, nothing twice: two looks without a packet between them are the same
before=$(stat 10 1 packets_hw)
is "a second look" "$before" "$(stat 10 1 packets_hw)"

# a replace begins anew, with the chip's counter going on
ip nexthop replace id 10 group 1 hw_stats on
is "after a replace" 0 "$(stat 10 1 packets_hw)"
flow 10.9.0.2 20
counts "after a replace" 10 1 20

# two members, of which one is unresolved: its flows trap and are the kernel's; the other's are the chip's
ip nexthop replace id 10 group 1/2 hw_stats on
[ "$(stat 10 2 packets_hw)" = 0 ] || fail "a member that nobody resolves has packets by the chip: $(stat 10 2 packets_hw)"
ip nexthop replace id 10 group 1 hw_stats off
is "switched off" false "$(ip -j -s -d nexthop show id 10 | jq '.[0].hw_stats.enabled')"
by_chip h1 10.9.0.2
