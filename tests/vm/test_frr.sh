#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --profile tiny
# timeout: 240
#
# Seed 002's figure 1 with FRR: a route that doesn't fit is neither taken nor advertised.
#
#   r1 AS 65001 ── p1 ═ swp1 ┐                     ┌ swp2 ═ p2 ── r2 AS 65002
#   announces 40 prefixes    │ the switch AS 65000 │              learns what the switch has
#   10.1.0.2        10.1.0.1 ┘   tiny: 32 prefixes └ 10.2.0.1     10.2.0.2
#
# First with the driver's refusal (devlink param when_full refuse: zebra marks the route rejected), then with the flags
# (when_full trap, fib_notify_on_flag_change, zebra --asic-offload=notify_on_offload: offload failed, withheld).
# Inside the virtual machine: lab/run --backend pci --profile tiny tests/vm/frr.sh

set -u
DIR=/tmp/frr
FRR=/usr/lib/frr
DEV=$(devlink dev | sed -n '/^pci/{s/:$//;p;q;}')
claims=0 failed=0

ok() { claims=$((claims + 1)); echo "ok: $*"; }
no() { failed=$((failed + 1)); echo "NOT OK: $*"; }
claim() { # text command...
	text=$1; shift
	if "$@"; then ok "$text"; else no "$text"; fi
}
within() {
	until=$(($(date +%s) + $1)); shift
	until "$@" >/dev/null 2>&1; do
		if [ "$(date +%s)" -ge "$until" ]; then return 1; fi
		sleep 0.3
	done
}
in_ns() { # namespace command...; "-" is the switch itself
	ns=$1; shift
	if [ "$ns" = - ]; then "$@"; else ip netns exec "$ns" "$@"; fi
}
vty() { # router command
	vtysh --vty_socket "$DIR/$1" -c "$2" 2>/dev/null
}

router() { # name namespace zebra-options: configurations in $DIR/name
	name=$1 ns=$2; shift 2
	chown -R frr:frr "$DIR/$name"
	in_ns "$ns" $FRR/zebra -d -N "$name" -f "$DIR/$name/zebra.conf" -i "$DIR/$name/zebra.pid" -z "$DIR/$name/zserv.api" \
		--vty_socket "$DIR/$name" -P 0 "$@" >"$DIR/$name/zebra.start" 2>&1 || { cat "$DIR/$name/zebra.start"; return 1; }
	in_ns "$ns" $FRR/bgpd -d -N "$name" -f "$DIR/$name/bgpd.conf" -i "$DIR/$name/bgpd.pid" -z "$DIR/$name/zserv.api" \
		--vty_socket "$DIR/$name" -P 0 -p 179 -l 0.0.0.0 >"$DIR/$name/bgpd.start" 2>&1 || { cat "$DIR/$name/bgpd.start"; return 1; }
}

stop() { # name
	for d in bgpd zebra; do
		if [ -e "$DIR/$1/$d.pid" ]; then kill "$(cat "$DIR/$1/$d.pid")" 2>/dev/null; fi
	done
	within 10 sh -c "! pgrep -f '$FRR/.* -N $1 ' >/dev/null"
	rm -f "$DIR/$1"/*.pid "$DIR/$1"/*.vty "$DIR/$1/zserv.api"
}

conf() { # name asn router-id neighbours... ; networks on standard input
	name=$1 asn=$2 id=$3; shift 3
	mkdir -p "$DIR/$name"
	printf 'hostname %s\nlog file %s/zebra.log informational\n' "$name" "$DIR/$name" >"$DIR/$name/zebra.conf"
	{
		printf 'hostname %s\nlog file %s/bgpd.log informational\nrouter bgp %s\n' "$name" "$DIR/$name" "$asn"
		printf ' bgp router-id %s\n no bgp ebgp-requires-policy\n no bgp network import-check\n timers bgp 1 3\n' "$id"
		[ "$name" != dut ] || printf ' bgp suppress-fib-pending\n'
		for n; do printf ' neighbor %s remote-as %s\n' "${n%=*}" "${n#*=}"; done
		printf ' address-family ipv4 unicast\n'
		sed 's/^/  network /'
		printf ' exit-address-family\n'
	} >"$DIR/$name/bgpd.conf"
}

count() { # router pattern: lines of its routing table
	vty "$1" "show ip route bgp" | grep -c "$2"
}
learned() { vty r2 "show bgp ipv4 unicast json" | jq '[.routes | keys[] | select(startswith("13."))] | length'; }
learns() { [ "$(learned)" = "$1" ]; }
settled() { # accepted and refused make 40
	[ "$(vty dut 'show bgp ipv4 unicast json' | jq '[.routes | keys[] | select(startswith("13."))] | length')" = 40 ]
}

[ -n "$DEV" ] || { echo "NOT OK: no chip behind PCI"; exit 1; }
mkdir -p $DIR
chmod 755 $DIR
for n in 1 2; do
	ip netns add r$n
	ip link set p$n netns r$n
	ip -n r$n link set lo up
	ip -n r$n link set p$n up
	ip link set swp$n up
	ip addr add 10.$n.0.1/24 dev swp$n
	ip -n r$n addr add 10.$n.0.2/24 dev p$n
done
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_notify_on_flag_change=0
claim "r1 reaches the switch" within 30 ip netns exec r1 ping -q -c 1 -W 1 10.1.0.1
i=0; while [ $i -lt 40 ]; do echo "13.0.$i.0/24"; i=$((i + 1)); done >$DIR/networks
conf r1 65001 1.1.1.1 10.1.0.1=65000 <$DIR/networks
conf r2 65002 2.2.2.2 10.2.0.1=65000 </dev/null
conf dut 65000 9.9.9.9 10.1.0.2=65001 10.2.0.2=65002 </dev/null
claim "FRR runs on both neighbours" eval "router r1 r1 && router r2 r2"

echo "--- refused by the driver"
devlink dev param set "$DEV" name when_full value refuse cmode runtime
claim "FRR runs on the switch" router dut -
claim "the switch's bgpd learned 40 prefixes" within 60 settled
sleep 3
vty dut "show ip route bgp" | grep '13\.0\.' >$DIR/routes
kernel=$(ip route show proto bgp | grep -c '^13\.0\.')
offloaded=$(ip route show proto bgp | grep '^13\.0\.' | grep -c rt_offload)
rejected=$(grep -c '^B[^ ]*r' $DIR/routes)
echo "kernel $kernel, of them in hardware $offloaded; zebra rejected $rejected; r2 learned $(learned) of 40"
claim "a chip with 32 prefixes takes some of 40, not all ($kernel)" [ "$kernel" -gt 5 -a "$kernel" -lt 40 ]
claim "all that the kernel has are in hardware" [ "$offloaded" = "$kernel" ]
claim "zebra shows the others rejected ($rejected)" [ $((kernel + rejected)) = 40 ]
claim "r2 learns the $kernel that are installed, and none that was refused" within 20 learns "$kernel"
claim "zebra's log has the driver's words" grep -q 'IPv4 LPM full (needs 1, free 0 of 32)' $DIR/dut/zebra.log
[ "$failed" = 0 ] || { head -n 5 $DIR/routes; grep -i 'full\|extended' $DIR/dut/zebra.log | head -n 3; }
stop dut
ip route flush proto bgp

echo "--- taken and flagged"
devlink dev param set "$DEV" name when_full value trap cmode runtime
sysctl -qw net.ipv4.fib_notify_on_flag_change=1
claim "FRR runs on the switch" router dut - --asic-offload=notify_on_offload
claim "the switch's bgpd learned 40 prefixes" within 60 settled
sleep 5
kernel=$(ip route show proto bgp | grep -c '^13\.0\.')
offloaded=$(ip route show proto bgp | grep '^13\.0\.' | grep -c 'rt_offload \|rt_offload$')
flagged=$(ip route show proto bgp | grep '^13\.0\.' | grep -c rt_offload_failed)
echo "kernel $kernel, offloaded $offloaded, offload failed $flagged; r2 learned $(learned) of 40"
claim "the kernel has all 40" [ "$kernel" = 40 ]
claim "those that don't fit say rt_offload_failed ($flagged)" [ "$flagged" -gt 0 -a $((offloaded + flagged)) = 40 ]
claim "zebra shows them" [ "$(vty dut 'show ip route bgp' | grep '13\.0\.' | grep -c '^B[^ ]*o')" = "$flagged" ]
claim "r2 learns the $offloaded that are in hardware; the others are withheld" within 20 learns "$offloaded"
for r in dut r1 r2; do stop $r; done

echo "$claims ok, $failed not"
[ "$failed" = 0 ]
