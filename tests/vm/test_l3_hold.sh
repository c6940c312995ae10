#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 200
#
# A reservation holds next hops as well as routes: those of a list take what was reserved for them, not as much again.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

list() { # family count: routes over that many gateways
	i=0
	while [ $i -lt "$2" ]; do
		i=$((i + 1))
		if [ "$1" = 4 ]; then
			echo "route add 101.0.$i.0/24 via 10.9.0.1$i"
		else
			echo "route add 2001:db8:$i::/48 via 2001:db8:9::1$i"
		fi
	done >/tmp/list
}

ip link set swp1 up
ip addr add 10.9.0.1/24 dev swp1
ip -6 addr add 2001:db8:9::1/64 dev swp1 nodad
until_true 10 "a router interface" sh -c "ip route show 10.9.0.0/24 | grep -q rt_trap"
is "next hops of the chip" 6 "$(size nexthop)"
for family in 4 6; do
	# more than half: a second one for each does not fit beside the reservation
	list $family 5
	tandem batch /tmp/list >/tmp/said 2>&1 || fail "IPv$family: $(cat /tmp/said)"
	is "IPv$family: routes over reserved next hops" 5 "$(ip -$family route show | grep -c '^101\.\|^2001:db8:[1-5]::/48')"
	until_true 10 "IPv$family: they are in the chip" sh -c \
		"[ \$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"nexthop\")][0].occ') = 5 ]"
	sed 's/ add / del /' /tmp/list >/tmp/unlist
	ip -$family -batch /tmp/unlist
done
until_true 10 "all is given back" settled
adds_up
