#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 300
#
# A chip that misbehaves, behind PCI: killed, replaced, reset, slow, forgetful, with corrupt rings, links that flap, answers
# that come twice. After each fault the driver must be back by itself within seconds, with everything in hardware that was
# there, and a health report; nothing hangs, the kernel warns of nothing (lab/run sees to that). Inside the virtual machine,
# by lab/run --backend pci.
# shellcheck disable=SC2016,SC2317 # what the host expands; what `within` calls

set -u
. /host/tests/vm/asic.sh
DEV=$(devlink dev | sed -n '/^pci/{s/:$//;p;q;}')
claims=0 failed=0

ok() { claims=$((claims + 1)); echo "ok: $*"; }
no() { failed=$((failed + 1)); echo "NOT OK: $*"; dmesg | grep clsw | tail -n 5; }
within() { # seconds command...: until it succeeds; the time it took in $took
	began=$(date +%s%N) until=$(($(date +%s) + $1)); shift
	until "$@" >/dev/null 2>&1; do
		if [ "$(date +%s)" -ge "$until" ]; then return 1; fi
		sleep 0.1
	done
	took=$((($(date +%s%N) - began) / 1000000))
}
health() { # error | recover | state
	devlink -j health show | jq -r "[.. | objects | select(has(\"$1\"))][0].$1"
}
seen() { # text: the driver's last trouble
	dmesg | grep 'trouble: ' | tail -n 1 | grep -q "$1"
}
reported() { [ "$(health error)" -gt "$errors" ] && [ "$(health recover)" -gt "$recoveries" ]; }
healthy() { [ "$(health state)" = healthy ] && ping -q -c 1 -W 1 -I p1 10.9.0.2; }
pings() { ip netns exec h1 ping -q -c 2 -i 0.2 -W 1 10.9.0.2; }
chip_has() { host "tandem show fdb --hw -j --name \$LAB_ASIC" | grep -q "$1"; } # asked of the chip itself
in_hardware() { chip_has 02:00:00:00:00:77; }
back() { [ "$(health state)" = healthy ] && pings; }
fault() { host "tandem fault $* --name \$LAB_ASIC" >/dev/null; }
# a change that needs the chip, so that what is wrong with it comes to light
touch_chip() { bridge fdb replace 02:00:00:00:00:99 dev swp1 master static vlan 1 2>/dev/null; bridge fdb del 02:00:00:00:00:99 dev swp1 master vlan 1 2>/dev/null; :; }

begin() { echo "--- $*"; errors=$(health error) recoveries=$(health recover); }
recovers() { # what seconds trouble
	if within "$2" reported && within 10 back && within 10 in_hardware; then
		if seen "$3"; then ok "$1: recovered"; else no "$1: the report doesn't say '$3'"; fi
	else
		no "$1: not back after $2 s (state $(health state), errors $(health error), recovered $(health recover))"
	fi
}

[ -n "$DEV" ] || { echo "NOT OK: devlink shows no chip behind PCI"; exit 1; }
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
if within 10 pings && within 5 in_hardware; then ok "two hosts through the chip"; else no "no way through the chip"; exit 1; fi

begin "asicd is killed, and back after two seconds"
asic_kill
within 3 seen "device is gone" || no "nobody noticed that asicd is gone"
sleep 2
asic_start
recovers "kill -9 of asicd" 15 "device is gone"

begin "the chip resets itself"
fault reset
touch_chip
recovers "reset" 15 "device reset itself"

for ring in cpl1 event rx; do
	begin "an impossible index of the device's, ring $ring"
	host "python3 tests/vm/region.py index $ring"
	touch_chip
	recovers "corrupt $ring" 15 "corrupt ring"
done

begin "a completion that answers nothing"
host "python3 tests/vm/region.py completion"
touch_chip
recovers "junk completion" 15 "corrupt ring"

begin "an impossible index of the driver's"
host "python3 tests/vm/region.py index tx"
recovers "corrupt tx, found by the device" 15 "device: corrupt ring index"

begin "header and directory spoilt, then a reset"
host "python3 tests/vm/region.py spoil"
fault reset
touch_chip
recovers "spoilt frame" 15 "device reset itself"

echo "--- a completion is lost"
fault drop
bridge fdb add 02:00:00:00:00:88 dev swp2 master static vlan 1
if within 10 chip_has 02:00:00:00:00:88 && within 10 back; then ok "a lost completion: the address is in hardware"; else no "a lost completion"; fi
within 15 pings || no "no ping after a lost completion"

begin "a completion comes twice" # the second one answers nothing
fault duplicate
bridge fdb add 02:00:00:00:00:89 dev swp2 master static vlan 1
bridge fdb add 02:00:00:00:00:8a dev swp2 master static vlan 1
recovers "a completion that came twice" 15 "corrupt ring"
if within 10 chip_has 02:00:00:00:00:89 && within 10 chip_has 02:00:00:00:00:8a; then ok "and the addresses are in hardware"; else no "no address in hardware"; fi

begin "a link flaps"
carrier() { [ "$(cat /sys/class/net/swp2/carrier)" = "$1" ]; }
fault flap swp2 --count 2 --ms 1500
within 3 carrier 0 || no "the driver did not hear that the link is down"
if within 10 carrier 1 && within 10 pings && within 10 in_hardware; then ok "a link that flaps comes back"; else no "a link that flaps"; fi
[ "$(health error)" = "$errors" ] || no "a link that flaps was trouble"

echo "--- completions come three seconds late"
fault delay 3000
began=$(date +%s)
for n in 1 2 3 4 5; do
	timeout 20 bridge fdb replace "02:00:00:00:01:0$n" dev swp2 master static vlan 1 || no "an address took more than 20 s, or failed"
done
timeout 20 ip link add br1 type bridge || no "no bridge in 20 s"
ip link del br1
took=$(($(date +%s) - began))
if [ $took -le 30 ]; then ok "a slow chip holds nobody up for long ($took s)"; else no "a slow chip held us up $took s"; fi
fault clear
if within 30 chip_has 02:00:00:00:01:05 && within 10 back; then ok "and is caught up with"; else no "not caught up with a slow chip"; fi

echo "--- the driver leaves while asicd is away, and comes back to nobody"
asic_kill
sleep 0.5
began=$(date +%s)
timeout 30 rmmod clsw_pci || no "rmmod without asicd"
took=$(($(date +%s) - began))
if [ $took -le 10 ]; then ok "rmmod without asicd: $took s"; else no "rmmod without asicd took $took s"; fi
began=$(date +%s)
modprobe clsw_pci wait_ms=2000
took=$(($(date +%s) - began))
if [ $took -le 10 ] && ! ip link show swp1 >/dev/null 2>&1; then ok "no chip, no ports, after $took s"; else no "a chip that isn't there"; fi
rmmod clsw_pci 2>/dev/null
asic_start
modprobe clsw_pci
if within 10 ip link show swp1; then ok "and with asicd the ports are back"; else no "no ports"; fi

echo "--- ten times in and out"
n=0
while [ $n -lt 10 ]; do
	timeout 20 rmmod clsw_pci || { no "rmmod $n"; break; }
	timeout 20 modprobe clsw_pci || { no "modprobe $n"; break; }
	n=$((n + 1))
done
ip link set swp1 up 2>/dev/null
[ $n = 10 ] && ip link show swp1 >/dev/null 2>&1 && ok "ten times in and out"

echo "$claims claims hold, $failed don't"
[ $failed = 0 ]
