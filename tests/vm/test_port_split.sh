#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --ports 4
# timeout: 180
#
# devlink port split and unsplit: parts come, the neighbour whose lanes they take goes, and comes back (seed 000 6.2).
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

there() { [ -e "/sys/class/net/$1" ]; }
gone() { ! there "$1"; }

all=$(swps)
ip link add br0 type bridge
ip link set swp2 master br0
ip link set swp2 up
ip addr add 203.0.113.1/24 dev swp1
devlink port split "$DEV/1" count 2
for p in swp1s0 swp1s1; do there $p || fail "$p is not there"; done
for p in swp1 swp2; do gone $p || fail "$p is still there"; done
is "swp2 left its bridge" "" "$(ls /sys/class/net/br0/brif)"
is "name" p1s1 "$(cat /sys/class/net/swp1s1/phys_port_name)"
has "lanes" "split_group 1 .*lanes 2" "$(devlink port show "$DEV/2")"
is "ports" "$all" "$(swps)"
has "modes of a part" "50000baseCR2/Full" "$(ethtool swp1s1)"
ethtool swp1s1 | grep -q 100000baseCR4 && fail "a part claims all lanes"

# the second part is driven by the neighbour's number: its cable is the neighbour's
host_on 2 198.51.100.2/24
ip link set swp1s1 up
until_true 5 "carrier of a part" carrier swp1s1 1
ip addr add 198.51.100.1/24 dev swp1s1
until_true 10 "a ping through a part" ping -q -c 1 -W 1 198.51.100.2

refused "split further" devlink port split "$DEV/2" count 2
refused "begins at swp1" devlink port split "$DEV/3" count 4
refused "can't be split|Invalid split count" devlink port split "$DEV/3" count 8
refused "not split" devlink port unsplit "$DEV/3"

# all of it again while the chip is restarted
devlink dev reload "$DEV" || fail "reload with parts"
there swp1s1 || fail "a part is lost in a reload"
until_true 10 "a ping through a part after a reload" ping -q -c 1 -W 1 198.51.100.2

devlink port unsplit "$DEV/2"
for p in swp1 swp2; do there $p || fail "$p is not back"; done
for p in swp1s0 swp1s1; do gone $p || fail "$p is still there"; done
ip link set swp2 up
until_true 5 "carrier of the neighbour" carrier swp2 1
ip addr add 198.51.100.1/24 dev swp2
until_true 10 "a ping through the neighbour" ping -q -c 1 -W 1 198.51.100.2

devlink port split "$DEV/5" count 4
for n in 0 1 2 3; do there swp5s$n || fail "swp5s$n is not there"; done
for n in 5 6 7 8; do gone swp$n || fail "swp$n is still there"; done
refused "needed and split itself|split further" devlink port split "$DEV/7" count 2
devlink port unsplit "$DEV/8"
is "ports" "$all" "$(swps)"

n=0
while [ $n -lt 20 ]; do
	n=$((n + 1))
	devlink port split "$DEV/3" count 2
	ip link set swp3s0 up
	devlink port unsplit "$DEV/3"
done
is "ports after 20 rounds" "$all" "$(swps)"
is "devlink's ports" "$all" "$(devlink -j port show | jq '.port | length')"
until_true 10 "nothing under way" settled
adds_up
is "trouble" 0 "$(health error)"
echo "all of it"
