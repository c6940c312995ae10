#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --ports 4
# timeout: 600
#
# 1,000 link flaps, of the cable and of the netdev, leave nothing behind, no memory either, and lose nothing.
# shellcheck disable=SC2016 # what the host expands
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

ip link set swp1 up
ip addr add 192.0.2.1/24 dev swp1
host_on 1 192.0.2.2/24
until_true 10 "a ping" ping -q -c 1 -W 1 192.0.2.2
until_true 10 "nothing under way" settled
objects=$(diagnose .objects 2>/dev/null || diagnose '.. | objects | .objects? // empty')
lpm=$(occ ipv4-lpm) rif=$(occ rif)
links=$(ip -o link show | wc -l)
before=$(stat swp1 link_changes)
n=0
while [ $n -lt 5 ]; do
	[ $n != 1 ] || held=$(memory) # the first round has filled what is kept for the next
	n=$((n + 1))
	host 'n=0; while [ $n -lt 150 ]; do ip -n $LAB_NS link set p1 down; ip -n $LAB_NS link set p1 up; n=$((n + 1)); done'
	ip -batch - <<-BATCH
	$(i=0; while [ $i -lt 50 ]; do echo "link set swp1 down"; echo "link set swp1 up"; i=$((i + 1)); done)
	BATCH
done
until_true 10 "carrier" carrier swp1 1
[ $(($(stat swp1 link_changes) - before)) -ge 2 ] || fail "the driver heard of no flap"
until_true 10 "a ping" ping -q -c 1 -W 1 192.0.2.2
until_true 10 "nothing under way" settled
adds_up
is "objects" "$objects" "$(diagnose .objects 2>/dev/null || diagnose '.. | objects | .objects? // empty')"
is "prefixes" "$lpm" "$(occ ipv4-lpm)"
is "router interfaces" "$rif" "$(occ rif)"
is "trouble" 0 "$(health error)"
is "netdevs" "$links" "$(ip -o link show | wc -l)"
grown=$(($(memory) - held))
echo "memory after the last 800 flaps: $grown kB"
[ $grown -lt 1024 ] || fail "800 flaps left $grown kB"
echo "$(($(stat swp1 link_changes) - before)) changes of the link were heard of"
