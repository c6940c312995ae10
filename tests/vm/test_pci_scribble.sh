#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 200
# long
#
# A device that writes rubbish all over the shared region while the driver works: nothing may crash, hang or warn
# (lab/run sees to the last), and when it stops, everything is back by itself. Inside the virtual machine, by
# lab/run --backend pci; arguments: seconds (20) and a seed.
# shellcheck disable=SC2016,SC2317 # what the host expands; what `within` calls

set -u
seconds=${1:-20} seed=${2:-1}
failed=0
no() { failed=1; echo "NOT OK: $*"; dmesg | grep clsw | tail -n 5; }
within() { # seconds command...
	until=$(($(date +%s) + $1)); shift
	until "$@" >/dev/null 2>&1; do
		if [ "$(date +%s)" -ge "$until" ]; then return 1; fi
		sleep 0.2
	done
}
state() { devlink -j health show | jq -r '[.. | objects | select(has("state"))][0].state'; }
pings() { ip netns exec h1 ping -q -c 2 -i 0.2 -W 1 10.9.0.2; }
chip_has() { host "tandem show fdb --hw -j --name \$LAB_ASIC" | grep -q "$1"; }
back() { [ "$(state)" = healthy ] && pings && chip_has 02:00:00:00:00:77; }

ip link add br0 type bridge vlan_filtering 1
for n in 1 2; do
	ip link set "swp$n" master br0
	ip link set "swp$n" up
	ip netns add "h$n"
	ip link set "p$n" netns "h$n"
	ip -n "h$n" addr add "10.9.0.$n/24" dev "p$n"
	ip -n "h$n" link set "p$n" up
done
ip link set br0 up
bridge fdb add 02:00:00:00:00:77 dev swp2 master static vlan 1
within 15 back || { no "no way through the chip to begin with"; exit 1; }

host "setsid python3 tests/vm/region.py scribble $seconds $seed >\$TANDEM_RUN/scribble.log 2>&1 </dev/null &"
end=$(($(date +%s) + seconds)) n=0 slowest=0
while [ "$(date +%s)" -lt $end ]; do
	n=$((n + 1))
	began=$(date +%s%N)
	timeout 30 bridge fdb replace "02:00:00:00:02:$(printf %02x $((n % 256)))" dev swp2 master static vlan 1 2>/dev/null
	timeout 30 bridge fdb del "02:00:00:00:02:$(printf %02x $((n % 256)))" dev swp2 master vlan 1 2>/dev/null
	timeout 30 ethtool -S swp1 >/dev/null 2>&1
	timeout 30 devlink resource show "$(devlink dev | sed -n '/^pci/{s/:$//;p;q;}')" >/dev/null 2>&1
	took=$((($(date +%s%N) - began) / 1000000))
	[ $took -le $slowest ] || slowest=$took
	ip netns exec h1 ping -q -c 1 -W 1 10.9.0.2 >/dev/null 2>&1
	ip link set swp3 mtu $((1500 + n % 2)) 2>/dev/null
done
host 'sleep 1; cat $TANDEM_RUN/scribble.log'
if within 60 back; then
	echo "ok: $n rounds of work while it happened, the slowest $slowest ms; recovered $(devlink -j health show |
		jq -r '[.. | objects | select(has("recover"))][0].recover') times, and all is back"
else
	no "not back after the last rubbish (state $(state)): $(host 'tail -n 3 $LAB_RUN/asicd.log')"
fi
[ $slowest -le 15000 ] || no "a round took $slowest ms"
exit $failed
