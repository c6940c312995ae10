#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --ports 4
# timeout: 180
#
# Ports as Linux sees them: there at boot from the platform information, MAC addresses from the EEPROM, ethtool, MTU, MAC
# change, proto_down, carrier by the chip's events, counters, the lamp, stray tags (seed 000 5.2.3-5.2.5, 6.1, 6.3, 6.4).
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

# ---- there at boot
is "ports" "$(page ports | jq '.items | length')" "$(swps)"
base=$(ip -j link show swp1 | jq -r '.[0].address')
last=$((0x${base##*:}))
for n in 2 7 32; do
	is "MAC of swp$n" "$(printf '%s:%02x' "${base%:*}" $((last + n - 1)))" "$(ip -j link show "swp$n" | jq -r '.[0].address')"
done
is "phys_port_name" p3 "$(cat /sys/class/net/swp3/phys_port_name)"
is "one switch" "$(cat /sys/class/net/swp1/phys_switch_id)" "$(cat /sys/class/net/swp9/phys_switch_id)"
has "driver" "driver: clsw_pci" "$(ethtool -i swp1)"
has "bus" "bus-info: ${DEV#pci/}" "$(ethtool -i swp1)"
info=$(devlink dev info "$DEV")
has "info" "asic.id spectrum-sn2700" "$info"
has "info" "board.part_number MSN2700" "$info"
has "info" "board.ports device" "$info"
refused "netns|Invalid" ip link set swp5 netns 1

# ---- the chip follows
is "closed in the chip" false "$(chip_port 1 '.flags | contains(["up"])')"
ip link set swp1 up
until_true 5 "the chip's port is up" chip_says 1 '.flags | contains(["up"])' true
until_true 5 "carrier" carrier swp1 1
ip link set swp1 mtu 9000
until_true 5 "the chip's MTU" chip_says 1 .mtu 9000
refused "mtu" ip link set swp1 mtu 9217
ip link set swp1 address 02:00:00:00:00:77
until_true 5 "the chip's MAC" chip_says 1 .mac 02:00:00:00:00:77
ip link set swp1 address "$base"

# ---- proto_down: no carrier here, no link there, whatever the cable says
ip link set swp1 protodown on
until_true 5 "no carrier under proto_down" carrier swp1 0
until_true 5 "the chip's port is down" chip_says 1 '.flags | contains(["up"])' false
cable 1 down
cable 1 up
sleep 0.5
carrier swp1 0 || fail "the cable brought carrier back under proto_down"
cable 1 down
sleep 0.5
ip link set swp1 protodown off
sleep 0.5
carrier swp1 0 || fail "carrier without a link after proto_down"
cable 1 up
until_true 5 "carrier" carrier swp1 1

# ---- carrier is the cable's
before=$(stat swp1 link_changes)
cable 1 down
until_true 5 "carrier follows the cable down" carrier swp1 0
cable 1 up
until_true 5 "carrier follows the cable up" carrier swp1 1
is "link changes" 2 $(($(stat swp1 link_changes) - before))

# ---- packets both ways through the CPU, counted by the chip and by the driver
ip link set swp1 mtu 1500
host_on 1 192.0.2.2/24 2001:db8:1::2/64
ip addr add 192.0.2.1/24 dev swp1
ip addr add 2001:db8:1::1/64 dev swp1 nodad
until_true 10 "IPv4" ping -q -c 1 -W 1 192.0.2.2
until_true 10 "IPv6" ping -q -c 1 -W 1 2001:db8:1::2
rx=$(stat swp1 hw_rx_packets) tx=$(stat swp1 hw_tx_packets) cpu=$(stat swp1 cpu_rx_packets)
ping -q -c 10 -i 0.1 -s 1400 192.0.2.2 >/dev/null || fail "10 pings"
[ $(($(stat swp1 hw_rx_packets) - rx)) -ge 10 ] || fail "the chip's rx counter: $rx, then $(stat swp1 hw_rx_packets)"
[ $(($(stat swp1 hw_tx_packets) - tx)) -ge 10 ] || fail "the chip's tx counter"
[ $(($(stat swp1 cpu_rx_packets) - cpu)) -ge 10 ] || fail "the driver's rx counter"
sleep 1.5
[ "$(cat /sys/class/net/swp1/statistics/rx_packets)" -ge 10 ] || fail "ip -s link shows no packets of the chip"
cpu=$(ip -j -s -s link show swp1 | jq '[.. | objects | select(has("cpu_hit"))] | length' 2>/dev/null || echo 1)
# a large datagram, and TCP with what the stack makes of it (GSO here, GRO there)
ping -q -c 2 -s 8000 192.0.2.2 >/dev/null || fail "fragments"

# ---- a tag that was not on the wire goes, one that was stays
host "tandem fault stray-tag 3025 --name \$LAB_ASIC" >/dev/null
ip neigh flush dev swp1
ping -q -c 3 -i 0.2 -W 1 192.0.2.2 >/dev/null || fail "packets with a stray tag are not understood"
host "tandem fault clear --name \$LAB_ASIC" >/dev/null
timeout 10 tcpdump -p -n -i swp1 -c 1 -e vlan 7 >/tmp/tagged 2>/dev/null &
watch=$!
sleep 2
ip netns exec h1 mausezahn eth0 -q -c 3 -a own -b "$base" -Q 7 -t udp -A 192.0.2.2 -B 192.0.2.1
wait $watch || :
has "a real tag" "vlan 7" "$(cat /tmp/tagged)"

# ---- ethtool: what the port can do and does
all=$(ethtool swp1)
has "speed" "Speed: [0-9]+Mb/s" "$all"
has "duplex" "Duplex: Full" "$all"
has "modes" "100000baseCR4/Full" "$all"
has "autoneg" "Auto-negotiation: on" "$all"
has "FEC" "Configured FEC encodings: Auto" "$(ethtool --show-fec swp1)"
# a chip without serdes: what it doesn't do anyway is refused, though the cage could
active=$(ethtool --show-fec swp1 | sed -n 's/.*Active FEC encodings*: *//p' | tr '[:upper:]' '[:lower:]')
other=rs
[ "$active" != rs ] || other=baser
ethtool --set-fec swp1 encoding "$active"
has "FEC" "Configured FEC encodings: $active" "$(ethtool --show-fec swp1 | tr '[:upper:]' '[:lower:]' | sed 's/configured fec/Configured FEC/')"
ethtool --set-fec swp1 encoding auto
refused "" ethtool --set-fec swp1 encoding $other
refused "" ethtool --set-fec swp1 encoding llrs
refused "" ethtool -s swp1 speed 2500 autoneg off
speed=$(printf '%s\n' "$all" | sed -n 's/.*Speed: \([0-9]*\)Mb.*/\1/p')
other=40000
[ "$speed" != 40000 ] || other=10000
refused "" ethtool -s swp1 speed $other autoneg off
refused "" ethtool -s swp1 speed $other autoneg on
ethtool -s swp1 speed "$speed" autoneg off
ethtool -s swp1 autoneg on
refused "" ethtool -s swp1 speed 100 duplex half autoneg off

# ---- the lamp
page ports | jq -e '.items[0].blinks | not' >/dev/null || fail "swp1 blinks unasked"
ethtool -p swp1 5 &
until_true 5 "swp1 blinks" sh -c "host 'python3 tests/vm/chip.py /v1/ports' | jq -e '.items[0].blinks'"
wait $!
page ports | jq -e '.items[0].blinks | not' >/dev/null || fail "swp1 blinks on"
echo "all of it"
