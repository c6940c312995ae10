#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 400
#
# Answers that never come: of LEASE, RELEASE, CREATE, UPDATE and DELETE. What is not known is known within seconds,
# without an attach: driver and chip have the same accounts again, and the chip takes as many routes as before.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

CHIP=$(echo /sys/kernel/debug/clsw_null/*)
chip_accounts() { sort "$CHIP/pools"; }
our_accounts() { diagnose '.. | objects | select(has("committed")) | "\(.name) \(.size) \(.used) \(.in_flight) \(.committed) \(.free)"' | sort; }
agree() { ours=$(our_accounts) theirs=$(chip_accounts); [ "$ours" = "$theirs" ]; }
agreed() { # what
	n=$((150 * SLOW))
	until agree; do
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$1: ours:
$ours
the chip's:
$theirs"
		sleep 0.1
	done
}
fill() { n=0; while ip route add 30.$n.0.0/16 via 10.0.1.2 2>/tmp/said; do n=$((n + 1)); [ $n -lt 64 ] || fail "64 routes fit"; done; }

# What is asked here is what a silent chip costs. The bound by the clock would come first where this machine gets less than half of
# a processor, and the put would be deferred: kernel/tests/core has that one.
echo 10000 >/sys/module/clsw/parameters/wait_ms
sysctl -qw net.ipv4.ip_forward=1
for k in 1 2; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
done
agreed "before anything is lost"
fill
room=$n
ip route flush root 30.0.0.0/8
replays=$(diagnose .replays)
for policy in lockstep prefetch credit predict-model; do
	devlink dev param set "$DEV" name policy value $policy cmode runtime
	ops='8 9'
	[ $policy != credit ] || ops='8 9 1 2 3'
	for op in $ops; do
		echo clear >"$CHIP/faults"
		echo "drop op=$op count=1" >"$CHIP/faults"
		i=0
		while [ $i -lt 3 ]; do
			ip route add 31.$i.0.0/16 via 10.0.1.2 2>>/tmp/errors || :
			ip route replace 31.$i.0.0/16 via 10.0.2.2 2>>/tmp/errors || :
			i=$((i + 1))
		done
		ip route flush root 31.0.0.0/8
		agreed "$policy, op $op"
		echo "$policy, op $op: $(diagnose .lost) lost, $(cut -d' ' -f1 /proc/uptime) s"
	done
	echo clear >"$CHIP/faults"
	fill
	has "what a full chip says under $policy" 'IPv4 LPM full \(needs 1, free 0 of 32\)' "$(cat /tmp/said)"
	is "routes that fit under $policy" "$room" "$n"
	ip route flush root 30.0.0.0/8
done
is "what was said when no answer came" "Error: clsw: the chip does not answer." "$(sort -u /tmp/errors)"
has "what the log says of it" 'no answer for (500|501) of [0-9]+ ms, [0-9]+ looks: (a write|room for a write)' "$(dmesg)"
[ "$(diagnose .lost)" -ge 8 ] || fail "nothing was lost"
is "attaches" "$replays" "$(diagnose .replays)"
is "the chip's own check" ok "$(cat "$CHIP/check")"
