#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --icount --ports 4
# timeout: 300
#
# An interface that moves between VRFs: nobody waits for the chip with RTNL held, whatever it takes and whatever else is on its way;
# the router interface is there again when the old one is gone, and nothing is refused by the chip. In virtual time: seconds
# are the machine's own.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

CHIP=$(echo /sys/kernel/debug/clsw_null/*)
now_ms=0 # what `now` sets
quick() { # command...: done within half a second of the machine's time
	now
	began=$now_ms
	"$@" || fail "$*"
	now
	took=$((now_ms - began))
	[ $took -lt 500 ] || fail "$* took $took ms"
}
traps_in() { # what, options of ip route show
	what=$1
	shift
	until_true 20 "$what: its prefix traps again" sh -c "ip route show $* 10.0.1.0/24 | grep -q rt_trap"
	until_true 20 "$what: its host is in hardware" sh -c \
		"[ \$(devlink -j resource show $DEV | jq '[.. | objects | select(.name? == \"ipv4-host\")][0].occ') = 1 ]"
	is "$what: commands that the chip refused" 0 "$(sed -n 's/^refused //p' "$CHIP/timing")"
}

sysctl -qw net.ipv4.ip_forward=1
for k in 1 2 3 4; do ip link set swp$k addrgenmode none; done
for v in 1 2; do
	ip link add vrf$v type vrf table 10$v
	ip link set vrf$v up
done
ip link set swp1 up
ip addr add 10.0.1.1/24 dev swp1
ip neigh replace 10.0.1.2 lladdr 02:00:00:00:00:01 dev swp1
traps_in "before"

# All of it once with a chip that answers at once: programs and modules are in memory then. What the machine reads from its
# disk is none of the chip's time.
ip link add dummy9 type dummy
ip link del dummy9
for to in 'vrf vrf1' 'vrf vrf2' nomaster; do
	# shellcheck disable=SC2086 # words
	ip link set swp1 $to
	ip neigh replace 10.0.1.2 lladdr 02:00:00:00:00:01 dev swp1
	case $to in nomaster) to=table\ main ;; esac
	traps_in "$to, at once" "$to"
done

# a chip that takes its time over the old router interface (class 6; DELETE is 3)
echo 1000 >/sys/module/clsw/parameters/silent_ms
round=0
for to in 'vrf vrf1' 'vrf vrf2' nomaster; do
	echo clear >"$CHIP/faults"
	echo "delay op=3 cls=6 ns=900000000" >"$CHIP/faults"
	# shellcheck disable=SC2086 # words
	quick ip link set swp1 $to
	quick ip link add dummy$round type dummy
	ip neigh replace 10.0.1.2 lladdr 02:00:00:00:00:01 dev swp1
	case $to in nomaster) to=table\ main ;; esac
	traps_in "$to" "$to"
	round=$((round + 1))
done
echo clear >"$CHIP/faults"

# routes that come and go all the time: there is always something on its way
ip link set swp2 up
ip addr add 10.0.2.1/24 dev swp2
i=0
while [ $i -lt 10 ]; do
	echo "route add blackhole 60.$i.0.0/16"
	i=$((i + 1))
done >/run/add
sed 's/ add / del /' /run/add >/run/del
: >/run/churn
(while [ -e /run/churn ]; do ip -batch /run/add; ip -batch /run/del; done) >/dev/null 2>&1 &
churn=$!
for to in 'vrf vrf1' 'vrf vrf2' nomaster; do
	# shellcheck disable=SC2086 # words
	quick ip link set swp1 $to
	ip neigh replace 10.0.1.2 lladdr 02:00:00:00:00:01 dev swp1
	case $to in nomaster) to=table\ main ;; esac
	traps_in "$to beside churn" "$to"
done
rm /run/churn
wait $churn || :
is "the chip's own check" ok "$(cat "$CHIP/check")"
