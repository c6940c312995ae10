#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 200
#
# Flags of IPv6 routes. With fib_notify_on_flag_change the kernel allocates and may sleep where they are set: never with bottom
# halves off. Routes with `from`: several of one destination, of different metrics, multipath, each with its flag.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

T=/sys/kernel/tracing
[ -e $T/kprobe_events ] || mount -t tracefs tracefs $T
lines() { ip -6 route show 2001:db8:200::/48 | grep -v '^[[:space:]]*nexthop'; }
all_trap() { # how many routes: each of them traps
	[ "$(lines | grep -c rt_trap)-$(lines | grep -c .)" = "$1-$1" ]
}
trap_all() { until_true 10 "$2: $1 routes trap: $(lines)" all_trap "$1"; }
trap 'echo 0 >$T/events/kprobes/flags6/enable; echo -:flags6 >>$T/kprobe_events' EXIT

sysctl -qw net.ipv6.conf.all.forwarding=1
for k in 1 2 3; do
	ip link set swp$k up
	ip -6 addr add 2001:db8:$k::1/64 dev swp$k nodad
	ip neigh replace 2001:db8:$k::2 lladdr 02:00:00:00:00:0$k dev swp$k
done
echo 'p:flags6 fib6_info_hw_flags_set' >>$T/kprobe_events
for notify in 1 2 0; do
	sysctl -qw net.ipv6.fib_notify_on_flag_change=$notify
	ip monitor route >/run/monitor 2>&1 &
	monitor=$!
	until_true 10 "the monitor listens" grep -q "" "/proc/$monitor/net/netlink"
	: >$T/trace
	echo 1 >$T/events/kprobes/flags6/enable

	# two of one source, the better one goes and the other is promoted
	ip -6 route add 2001:db8:200::/48 from 2001:db8:1::/64 via 2001:db8:3::2 metric 10
	trap_all 1 "one source"
	ip -6 route add 2001:db8:200::/48 from 2001:db8:1::/64 via 2001:db8:2::2 metric 20
	ip -6 route del 2001:db8:200::/48 from 2001:db8:1::/64 metric 10
	trap_all 1 "a promoted one"
	# beside it one of any source, and of another one
	ip -6 route add 2001:db8:200::/48 via 2001:db8:1::2
	ip -6 route add 2001:db8:200::/48 from 2001:db8:2::/64 via 2001:db8:3::2
	trap_all 3 "three"
	ip -6 route del 2001:db8:200::/48 from 2001:db8:1::/64
	ip -6 route del 2001:db8:200::/48 from 2001:db8:2::/64
	until_true 10 "without a source it is in hardware" sh -c 'ip -6 route show 2001:db8:200::/48 | grep -q rt_offload'

	# several ways of one source: it is there until the last of them goes
	ip -6 route add 2001:db8:200::/48 from 2001:db8:1::/64 nexthop via 2001:db8:2::2 nexthop via 2001:db8:3::2
	trap_all 2 "a multipath source"
	ip -6 route del 2001:db8:200::/48 from 2001:db8:1::/64 via 2001:db8:2::2
	trap_all 2 "a multipath source that has lost one of its ways"
	ip -6 route append 2001:db8:200::/48 from 2001:db8:1::/64 via 2001:db8:1::2
	trap_all 2 "a multipath source that got another way"
	ip -6 route del 2001:db8:200::/48 from 2001:db8:1::/64
	until_true 10 "it is in hardware again" sh -c 'ip -6 route show 2001:db8:200::/48 | grep -q rt_offload'
	ip -6 route flush root 2001:db8:200::/48

	# more ways than are told in one go
	set -- add 2001:db8:201::/48
	for i in 2 3 4 5 6 7 8 9 a b c d e f 10 11 12 13 14 15; do set -- "$@" nexthop via 2001:db8:1::$i; done
	ip -6 route "$@"
	until_true 10 "many ways" sh -c 'ip -6 route show 2001:db8:201::/48 | grep -q rt_offload'
	ip -6 route flush root 2001:db8:201::/48

	echo 0 >$T/events/kprobes/flags6/enable
	kill $monitor
	grep flags6 $T/trace >/run/flags || :
	# the first letter of the third word: irqs or bottom halves are off
	awk '$3 !~ /^\./' /run/flags >/run/atomic
	[ "$notify" = 0 ] || [ ! -s /run/atomic ] || fail "flags are set where nobody may sleep: $(head -n 3 /run/atomic)"
	if [ "$notify" = 1 ]; then
		[ -s /run/flags ] || fail "no flag was set"
		grep -q 'from 2001:db8:1::/64 .*rt_trap' /run/monitor || fail "nobody was told of a source: $(cat /run/monitor)"
	fi
done
