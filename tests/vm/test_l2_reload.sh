#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null
# timeout: 900
#
# Bridges come and go under the driver, the driver under bridges; in the end nothing is taken, nothing leaked.
# Two hundred times with --long.

set -eu
if [ -n "${TANDEM_LONG:-}" ]; then reloads=200; else reloads=6; fi
dev() { devlink dev | head -n 1; }
taken() { # pools of L2 that something is in
	devlink -j resource show "$(dev)" | jq -c '[.. | objects | select(.name? == "vlan" or .name? == "vlan-member" or .name? == "exact-match") | select(.occ > 0) | {name, occ}]'
}
empty() {
	i=0
	until [ "$(taken)" = '[]' ]; do
		i=$((i + 1))
		[ $i -lt 100 ] || { echo "still taken: $(taken)"; exit 1; }
		sleep 0.1
	done
}
build() { # vlan_filtering
	ip link add br0 type bridge vlan_filtering "$1" mcast_snooping 0
	for p in 1 2 3; do ip link set swp$p master br0; ip link set swp$p up; done
	ip link set br0 up
	bridge vlan add vid 10-30 dev swp1
	bridge vlan add vid 10 dev swp2 pvid untagged
	bridge fdb add 02:00:00:00:00:01 dev swp1 master static
	bridge fdb add 02:00:00:00:00:02 dev swp2 master extern_learn
}

empty
n=0
while [ $n -lt 10 ]; do
	n=$((n + 1))
	build $((n % 2))
	ip link set br0 type bridge vlan_filtering $((1 - n % 2))
	[ "$(taken)" != '[]' ] || { echo "nothing is in the chip"; exit 1; }
	ip link set swp2 nomaster
	ip link del br0
done
empty
echo "ok: bridges come and go"

memory() { awk '/^Slab:|^Percpu:/ { s += $2 } END { print s }' /proc/meminfo; }
n=0
while [ $n -lt "$reloads" ]; do
	n=$((n + 1))
	build $((n % 2))
	modprobe -r clsw_null
	modprobe -r clsw 2>/dev/null || :
	! lsmod | grep -q '^clsw ' || { echo "clsw stays loaded: $(lsmod | grep '^clsw ')"; exit 1; }
	ip link del br0
	modprobe clsw_null ports="${LAB_PORTS:-4}"
	empty
	[ $n != 5 ] || first=$(memory)
done
echo "ok: $reloads reloads under a bridge; slab $first kB after 5, $(memory) kB after $reloads"
[ $(($(memory) - first)) -lt $((4096 + reloads * 40)) ] || { echo "memory grows"; exit 1; }
