#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-load --ports 4
#
# The lab itself: NICs named after their ports, a frame that leaves by NIC p1 arrives at asicd's port swp1 and at no
# other, results and exit codes come back from the host.
# shellcheck source=tests/vm/lib.sh
. /host/tests/vm/lib.sh

for k in 1 2 3 4; do
	is "address of p$k" "02:54:4e:00:00:0$k" "$(cat "/sys/class/net/p$k/address")"
done
lspci=$(cat /sys/bus/pci/devices/*/device)
has "the ivshmem device" 0x1110 "$lspci"

code=0
said=$(host 'echo out; exit 3') || code=$?
is "what the host says" "out 3" "$said $code"

rx() { asic -j show ports | jq ".[] | select(.name == \"swp$1\").counters.rx_packets"; }
arrived() { [ "$(rx 1)" -ge $((before + 10)) ]; }
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
ip link set p1 up
before=$(rx 1)
other=$(rx 2)
mausezahn p1 -q -c 10 -a own -b 02:00:00:00:00:99 -t udp -A 192.0.2.1 -B 192.0.2.2
until_true 10 "10 packets at swp1" arrived
is "packets at swp2" "$other" "$(rx 2)"
