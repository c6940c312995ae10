#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --ports 4
# timeout: 180
#
# devlink: resources and shares, parameters, traps with groups and policers, health, reload with netdevs kept.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

# ---- resources: the memories, with classes where they share one
is "exact match" 87040 "$(size exact-match)"
is "IPv4 LPM" 65536 "$(size ipv4-lpm)"
is "ports" "$(swps)" "$(occ physical_ports)"
is "ports at most" "$(swps)" "$(size physical_ports)"
devlink -j resource show "$DEV" | jq -e '[.. | objects | select(.name? == "exact-match")][0].resources | map(.name) | contains(["mac", "ipv4-host", "ipv6-host"])' >/dev/null ||
	fail "classes of the exact-match memory"

ip link set swp1 up
host_on 1 192.0.2.2/24
lpm=$(occ ipv4-lpm)
ip addr add 192.0.2.1/24 dev swp1
ip link add br0 type bridge vlan_filtering 1
ip link set br0 up
ip link set swp2 master br0
ip link set swp2 up
mac=$(occ mac)
for n in 1 2 3 4 5; do bridge fdb add "02:00:00:00:01:0$n" dev swp2 master static vlan 1; done
until_true 5 "5 addresses more" sh -c "[ \"\$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"mac\")][0].occ')\" = $((mac + 5)) ]"
until_true 5 "prefixes" sh -c "[ \"\$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"ipv4-lpm\")][0].occ')\" -gt $lpm ]"
adds_up

# ---- shares: set aside with a reload, their sum is held against the memory
devlink resource set "$DEV" path /exact-match/mac size 20000
devlink resource set "$DEV" path /exact-match/ipv6-host size 2000
refused "granularity|Granularity|multiple" devlink resource set "$DEV" path /exact-match/ipv6-host size 2001
index=$(cat /sys/class/net/swp1/ifindex)
devlink dev reload "$DEV" || fail "reload"
is "swp1 is the same netdev" "$index" "$(cat /sys/class/net/swp1/ifindex)"
is "swp1's address" 192.0.2.1 "$(ip -j -4 addr show swp1 | jq -r '.[0].addr_info[0].local')"
is "swp2's bridge" br0 "$(ip -j link show swp2 | jq -r '.[0].master')"
is "share" 20000 "$(size mac)"
until_true 10 "addresses are in the chip again" sh -c "[ \"\$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"exact-match\")][0].occ')\" -ge 5 ]"
until_true 10 "a ping" ping -q -c 1 -W 1 192.0.2.2
host "tandem show fdb --hw -j --name \$LAB_ASIC" | grep -q 02:00:00:00:01:03 || fail "the chip lacks an address after the reload"
has "devlink's port" "netdev swp1 " "$(devlink port show "$DEV/1")"
devlink resource set "$DEV" path /exact-match/ipv4-host size 80000
refused "size" devlink dev reload "$DEV"
devlink resource set "$DEV" path /exact-match/ipv4-host size 0
devlink resource set "$DEV" path /exact-match/ipv6-host size 0
devlink resource set "$DEV" path /exact-match/mac size 0
devlink dev reload "$DEV" action fw_activate || fail "reload of the chip alone"
until_true 10 "a ping" ping -q -c 1 -W 1 192.0.2.2
refused "namespace" devlink dev reload "$DEV" netns h1
until_true 10 "nothing under way" settled
adds_up

# ---- parameters, while it runs
param() { devlink -j dev param show "$DEV" name "$1" | jq -r '[.. | objects | select(has("value"))][0].value'; }
n=0
for p in lockstep prefetch predict-flat predict-model credit; do
	n=$((n + 1))
	devlink dev param set "$DEV" name policy value $p cmode runtime
	is "policy" $p "$(param policy)"
	n=$((n + 1))
	ip route add "198.51.100.$n/32" via 192.0.2.2 || fail "a route under $p"
done
refused "lockstep, prefetch, credit" devlink dev param set "$DEV" name policy value best cmode runtime
refused "bucket 1024, low_water 4096" devlink dev param set "$DEV" name low_water value 4096 cmode runtime
devlink dev param set "$DEV" name low_water value 100 cmode runtime
devlink dev param set "$DEV" name refill value 200 cmode runtime
devlink dev param set "$DEV" name bucket value 300 cmode runtime
is "bucket" 300 "$(param bucket)"
is "low_water" 100 "$(param low_water)"

# ---- traps: counted by reason; policers reach the chip
trap_rx() { devlink -j -s trap show "$DEV" trap "$1" | jq -r '[.. | objects | select(has("packets"))][0].packets'; }
before=$(trap_rx arp)
ip neigh flush dev swp1
ping -q -c 1 -W 1 192.0.2.2 >/dev/null || :
[ "$(trap_rx arp)" -gt "$before" ] || fail "ARP was not counted: $before, then $(trap_rx arp)"
has "type" "type control .*group discovery" "$(devlink trap show "$DEV" trap arp)"
has "name that the kernel has" "type exception generic true" "$(devlink trap show "$DEV" trap ttl_value_is_too_small)"
chip_trap() { page traps | jq -r "[.. | objects | select(.reason? == \"$1\")][0] | $2"; }
rate() { [ "$(chip_trap "$1" .rate_pps)" = "$2" ]; }
devlink trap policer set "$DEV" policer 4 rate 100 burst 16
devlink trap group set "$DEV" group data policer 4
until_true 5 "the policer is the chip's" rate ttl 100
devlink trap policer set "$DEV" policer 4 rate 200
until_true 5 "its new rate" rate ttl 200
until_true 5 "other groups have none" rate arp 0
devlink trap group set "$DEV" group data nopolicer
until_true 5 "no policer" rate ttl 0
devlink trap set "$DEV" trap error action drop
until_true 5 "a trap that drops lets one a second up" rate error 1
devlink trap set "$DEV" trap error action trap
until_true 5 "it traps" rate error 0
refused "trap or drop" devlink trap set "$DEV" trap error action mirror
refused "out of range|rate" devlink trap policer set "$DEV" policer 4 rate 0

# ---- health
is "trouble" 0 "$(health error)"
devlink health test "$DEV" reporter chip
until_true 15 "recovery" sh -c "[ \"\$(devlink -j health show $DEV reporter chip | jq -r '[.. | objects | select(has(\"recover\"))][0].recover')\" = 1 ]"
until_true 5 "healthy" healthy
has "dump" "devlink health test" "$(devlink health dump show "$DEV" reporter chip)"
devlink health dump clear "$DEV" reporter chip
until_true 10 "a ping" ping -q -c 1 -W 1 192.0.2.2
is "state" up "$(diagnose '[.. | objects | select(has("state"))][0].state')"
echo "all of it"
