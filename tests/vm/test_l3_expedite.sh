#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 180
#
# A chip that needs 5 ms a write, 1,000 routes in its queue: the route that a packet waits for is written before those that
# came earlier, unless something below it is still to come.
. /host/tests/vm/lib.sh

CHIP=$(echo /sys/kernel/debug/clsw_null/*)
in_chip() { ip route show "$1" | grep -q 'rt_offload'; }
wait_for() { # prefix
	n=$((300 * ${SLOW:-1}))
	until in_chip "$1"; do
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$1 is not in hardware"
		sleep 0.05
	done
}

sysctl -qw net.ipv4.ip_forward=1
ip link set swp1 up
ip addr add 192.0.2.1/24 dev swp1
ip neigh replace 192.0.2.2 lladdr 02:00:00:00:00:02 dev swp1 nud permanent
ip route add 10.255.0.0/16 via 192.0.2.2
wait_for 10.255.0.0/16
echo 5000000 >/sys/module/clsw_null/parameters/write_ns
i=0
while [ $i -lt 1000 ]; do
	echo "route add 10.$((i / 256)).$((i % 256)).0/24 via 192.0.2.2"
	i=$((i + 1))
done >/tmp/routes
{
	cat /tmp/routes
	echo 'route add 30.0.1.0/24 via 192.0.2.2'
	echo 'route add 30.0.0.0/16 via 192.0.2.2'
} >/tmp/batch
ip -batch /tmp/batch

# 10.3.231.0/24 is the 1,000th; at most 256 go before it
echo '1 10.3.231.1' >"$CHIP/packet"
# the /16 has a /24 below it that is not written: it keeps its place
echo '1 30.0.9.9' >"$CHIP/packet"
wait_for 10.3.231.0/24
# a debug kernel takes longer to make a route, and to show one, than this chip to write it: no queue, no order
if [ "$SLOW" = 1 ] && in_chip 10.3.200.0/24; then
	fail "the route that a packet waits for was not written before those that came earlier"
fi
wait_for 30.0.0.0/16
in_chip 30.0.1.0/24 || fail "30.0.0.0/16 was written before 30.0.1.0/24, which lies in it"
wait_for 10.3.230.0/24
is "routes in hardware" 1003 "$(ip route show | grep -c 'via 192.0.2.2.*rt_offload')"
is "the chip's accounts" ok "$(cat "$CHIP/check")"
