#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --icount --ports 4
# timeout: 300
#
# vlan_filtering is switched while the chip takes its time over one member: the command waits for nobody, with RTNL held, and
# the chip has all of them in the end. In virtual time: seconds are the machine's own.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

CHIP=$(echo /sys/kernel/debug/clsw_null/*)
now_ms=0 # what `now` sets
filtering() { ip link set br0 type bridge vlan_filtering "$1"; }
members() { occ vlan-member; }
have() { [ "$(members)" = "$1" ]; }
rifs() { [ "$(occ rif)" = "$1" ]; }

ip link add br0 type bridge vlan_filtering 0 mcast_snooping 0
ip link set br0 up
for k in 1 2 3; do
	ip link set swp$k up
	ip link set swp$k master br0
done
for vid in 10 20 30; do bridge vlan add vid $vid dev swp1; done
until_true 5 "one member for each port" have 3
# all of it with a chip that answers at once: what the machine reads from its disk is none of the chip's time. The bridge
# has an address, so router interfaces stand on its domains: these go first, and the chip has nothing to refuse
until_true 5 "the bridge's router interface stands" rifs 1
for on in 1 0 1 0; do
	echo >"$CHIP/timing"
	filtering $on
	until_true 5 "members for vlan_filtering $on" have $((3 + 3 * on))
	until_true 5 "and rests" settled
	until_true 5 "the bridge's router interface stands, vlan_filtering $on" rifs 1
	is "refused by vlan_filtering $on" "refused 0 refused_op 0 refused_cls 0 refused_status 0" \
		"$(grep refused "$CHIP/timing" | xargs)"
done

# class 3 is VLAN_MEMBER, 3 is DELETE, 1 CREATE
for op in 3 1; do
	for on in 1 0; do
		echo clear >"$CHIP/faults"
		echo "delay op=$op cls=3 ns=1500000000" >"$CHIP/faults"
		now
		began=$now_ms
		filtering $on || fail "vlan_filtering $on"
		now
		took=$((now_ms - began))
		echo "vlan_filtering $on, operation $op: $took ms"
		[ $took -lt 500 ] || fail "vlan_filtering $on took $took ms (operation $op)"
		until_true 10 "the chip follows" have $((3 + 3 * on))
		grep -q 'seen=[1-9]' "$CHIP/faults" || fail "vlan_filtering $on sent no member by operation $op: nothing was delayed"
		until_true 5 "and rests" settled
	done
done
is "the chip's own check" ok "$(cat "$CHIP/check")"
