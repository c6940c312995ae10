#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 2
# timeout: 200
#
# Routes while the chip behind PCI is away, refuses, is slow or forgets: every command ends soon, with yes or with no, and
# kernel and chip say the same in the end.
# shellcheck disable=SC2016 # what the host expands
. /host/tests/vm/lib.sh
. /host/tests/vm/asic.sh

DEV=$(devlink dev | sed -n '/^pci/{s/:$//;p;q;}')
policy() { devlink dev param set "$DEV" name policy value "$1" cmode runtime; }
fault() { host "tandem fault $* --name \$LAB_ASIC" >/dev/null; }
chip_routes() { host 'tandem show routes --hw --limit 100000 -j --name $LAB_ASIC' | jq -r '.. | .prefix? // empty' | sort; }
kernel_routes() { ip route show | sed -n 's/^[a-z]* *\(30\.[0-9./]*\) .*/\1/p' | sed '/\//!s,$,/32,' | sort; }
same() { [ "$(chip_routes | grep '^30\.')" = "$(kernel_routes)" ]; }
marked() { ! ip route show | grep '30\.' | grep -vEq 'rt_offload|rt_trap'; }
took() { # seconds at most, command...: how it ended is in $rc, what it said in $said
	most=$1 began=$(date +%s%N) rc=0
	shift
	said=$(timeout 60 "$@" 2>&1) || rc=$?
	ms=$((($(date +%s%N) - began) / 1000000))
	[ $ms -le $((most * 1000)) ] || fail "$* took $ms ms, more than $most s"
	echo "$* -> $rc in $ms ms $said"
}

sysctl -qw net.ipv4.ip_forward=1
for k in 1 2; do
	ip link set swp$k up
	ip addr add 10.0.$k.1/24 dev swp$k
	ip neigh replace 10.0.$k.2 lladdr 02:00:00:00:00:0$k dev swp$k
done
n=0
while [ $n -lt 500 ]; do
	echo "route add 30.$((n / 250)).$((n % 250)).0/24 via 10.0.1.2"
	n=$((n + 1))
done | ip -batch -
until_true 20 "500 routes, in chip and kernel" same
until_true 10 "all are marked" marked

# ---- asicd is killed, routes come and go, asicd is back: all from clsw's own store
asic_kill
until_true 5 "trouble is noticed" sh -c 'dmesg | grep -q "trouble: device is gone"'
for i in 1 2 3 4 5 6 7 8 9 10; do
	echo "route add 30.9.$i.0/24 via 10.0.2.2"
	echo "route del 30.0.$i.0/24"
done >/run/while-away
took 5 ip -batch /run/while-away
took 5 ip route replace 30.0.99.0/24 via 10.0.2.2
asic_start
until_true 40 "all routes are back after a kill" same
until_true 10 "all are marked again" marked

# ---- the chip fails one write
policy lockstep
fault fail --cls route
took 5 ip route add 30.20.0.0/16 via 10.0.1.2
if [ $rc != 0 ]; then
	has "refusal" 'Error: clsw: .+\.$' "$said"
	is "nothing of it in the kernel" "" "$(ip route show 30.20.0.0/16)"
fi
until_true 10 "chip and kernel agree on a failed write" same
policy credit
fault fail --cls route
took 5 ip route add 30.21.0.0/16 via 10.0.1.2
until_true 10 "what can't be vetoed any more is marked" sh -c \
	'ip route show 30.21.0.0/16 | grep -Eq "rt_offload_failed|rt_trap|rt_offload"'
ip route show 30.21.0.0/16
ip route del 30.21.0.0/16
ip route del 30.20.0.0/16 2>/dev/null || :
until_true 10 "chip and kernel agree" same

# ---- a completion is lost; the chip is slow
for p in lockstep credit; do
	policy $p
	fault drop
	took 10 ip route add "30.30.0.0/16" via 10.0.1.2
	until_true 20 "chip and kernel agree after a lost completion under $p" same
	ip route del 30.30.0.0/16 2>/dev/null || :
	until_true 20 "chip and kernel agree after its end under $p" same
	fault delay 3000
	took 10 ip route add 30.31.0.0/16 via 10.0.1.2
	took 10 ip route add 30.32.0.0/16 via 10.0.1.2
	fault clear
	until_true 40 "chip and kernel agree after a slow chip under $p" same
	until_true 10 "all are marked under $p" marked
	ip route del 30.31.0.0/16 2>/dev/null || :
	ip route del 30.32.0.0/16 2>/dev/null || :
done
until_true 20 "chip and kernel agree in the end" same
