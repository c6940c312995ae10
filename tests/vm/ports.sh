# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For tests of ports and devlink: `. /host/tests/vm/ports.sh`, behind lib.sh.

DEV=$(devlink dev show | sed -n '/clsw\|pci/{s/:$//;p;q;}')
: "${DEV:?devlink shows no chip}"

page() { host "python3 tests/vm/chip.py /v1/$1"; }
# A port's entry in the chip's own table: chip_port 1 .mtu
chip_port() { page table/ports | jq -r ".items[] | select(.port == $1) | $2"; }
chip_says() { [ "$(chip_port "$1" "$2")" = "$3" ]; }
# What is cabled to port K goes down or up, as seen by the chip
cable() { host "ip -n \$LAB_NS link set p$1 $2"; }
carrier() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = "$2" ]; }
flag() { ip -o link show "$1" | grep -Eq "<[^>]*\b$2\b"; }
swps() { set -- /sys/class/net/swp*; echo $#; }
stat() { ethtool -S "$1" | sed -n "s/^ *$2: //p"; }
health() { devlink -j health show "$DEV" reporter chip | jq -r "[.. | objects | select(has(\"$1\"))][0].$1"; }
healthy() { [ "$(health state)" = healthy ]; }
diagnose() { devlink -j health diagnose "$DEV" reporter chip | jq -r "$1"; }
occ() { devlink -j resource show "$DEV" | jq -r "[.. | objects | select(.name? == \"$1\")][0].occ"; }
size() { devlink -j resource show "$DEV" | jq -r "[.. | objects | select(.name? == \"$1\")][0].size"; }
# Promise 3, from the driver's side: every memory adds up, and nothing is on its way
adds_up() {
	bad=$(diagnose '[.. | objects | select(has("committed"))] | map(select(.used + .in_flight + .committed + .free != .size)) | length')
	is "memories that don't add up" 0 "$bad"
}
settled() { [ "$(diagnose '[.. | objects | select(has("committed"))] | map(.in_flight) | add')" = 0 ]; }
