#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --ports 4 --acpi tests/vm/board.asl
# timeout: 60
#
# The board's firmware describes the front panel (ACPI _DSD): its cages, numbers and MAC addresses win over the chip's.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

is "ports" "swp11 swp12 swp13" "$(cd /sys/class/net && echo swp*)"
is "MAC of swp11" 02:54:4e:ac:00:01 "$(cat /sys/class/net/swp11/address)"
is "MAC of swp13" 02:54:4e:ac:00:03 "$(cat /sys/class/net/swp13/address)"
has "whose ports" "board.ports firmware" "$(devlink dev info "$DEV")"
has "swp11" "port 11 splittable true lanes 4" "$(devlink port show "$DEV/1")"
has "swp12" "port 12 splittable false lanes 4" "$(devlink port show "$DEV/2")"
all=$(ethtool swp11)
has "modes" "40000baseCR4/Full" "$all"
printf '%s\n' "$all" | grep -q 100000baseCR4 && fail "faster than the board says"
all=$(ethtool swp13)
has "an SFP" "10000baseCR/Full" "$all"
printf '%s\n' "$all" | grep -q 25000 && fail "faster than the board says"
ip link set swp13 up
until_true 5 "carrier" carrier swp13 1
host_on 3 192.0.2.2/24
ip addr add 192.0.2.1/24 dev swp13
until_true 10 "a ping" ping -q -c 1 -W 1 192.0.2.2
refused "can't be split into 4" devlink port split "$DEV/1" count 4
devlink port split "$DEV/1" count 2 || fail "split"
is "ports" "swp11s0 swp11s1 swp13" "$(cd /sys/class/net && echo swp*)"
echo "all of it"
