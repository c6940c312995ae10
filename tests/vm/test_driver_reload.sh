#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 1500
# long
#
# The driver is loaded and unloaded 200 times, and the chip reloaded 200 times under a configuration: nothing leaks.
. /host/tests/vm/lib.sh

ROUNDS=${ROUNDS:-200}
# few processes: each costs as much as loading the driver
configure() {
	ip -batch - <<-BATCH
	link add br0 type bridge vlan_filtering 1
	link set swp1 master br0
	link set swp1 up
	link set br0 up
	link set swp2 up
	addr add 192.0.2.1/24 dev swp2
	neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev swp2
	route add 198.51.100.0/24 via 192.0.2.2
	BATCH
	bridge fdb add 02:00:00:00:01:01 dev swp1 master static vlan 1
}

modprobe -r clsw_null
round() {
	modprobe clsw_null ports=2
	configure
	modprobe -r clsw_null || fail "the driver can't be unloaded"
	ip link del br0
	ip route show | grep -q 198.51.100 && fail "a route without its netdev"
	for d in /sys/class/net/swp* /sys/class/devlink/*clsw* /sys/bus/platform/devices/clsw*; do
		[ ! -e "$d" ] || fail "left behind by load $n: $d"
	done
	[ $((n % 20)) != 0 ] || [ -z "$(devlink dev show; devlink port show)" ] || fail "devlink still shows: $(devlink port show)"
}
n=0
while [ $n -lt $((ROUNDS / 10)) ]; do n=$((n + 1)); round; done
before=$(memory)
while [ $n -lt "$ROUNDS" ]; do
	n=$((n + 1))
	round
	[ $((n % 50)) != 0 ] || echo "$n loads after $(cut -d. -f1 /proc/uptime) s"
done
grown=$(($(memory) - before))
echo "memory after the other $((ROUNDS - ROUNDS / 10)): $grown kB"
[ $grown -lt 2048 ] || fail "loads of the driver left $grown kB"

modprobe clsw_null ports=2
. /host/tests/vm/ports.sh
configure
until_true 10 "nothing under way" settled
index=$(cat /sys/class/net/swp1/ifindex)
mac=$(occ mac) lpm=$(occ ipv4-lpm)
devlink dev reload "$DEV" >/dev/null
before=$(memory) n=0
while [ $n -lt "$ROUNDS" ]; do
	n=$((n + 1))
	devlink dev reload "$DEV" >/dev/null || fail "reload $n"
done
grown=$(($(memory) - before))
echo "memory after $ROUNDS reloads: $grown kB"
[ $grown -lt 2048 ] || fail "$ROUNDS reloads left $grown kB"
is "swp1 is the same netdev" "$index" "$(cat /sys/class/net/swp1/ifindex)"
until_true 10 "nothing under way" settled
adds_up
is "addresses" "$mac" "$(occ mac)"
is "prefixes" "$lpm" "$(occ ipv4-lpm)"
is "devlink's ports" 2 "$(devlink -j port show | jq '.port | length')"
