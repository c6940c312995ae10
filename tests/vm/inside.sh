#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of /run/lab/todo inside the machine; tests/vm/run reads what it writes to /run/lab/results.

alarms=/run/lab/.lab/alarms
backend=
case $LAB_BACKEND in pci) backend=clsw_pci ;; null) backend=clsw_null ;; esac

say() { printf '%s\n' "$*"; }

# Addresses and names of the NICs that are here, not in a test's namespace
nics() { grep -H '^02:54:4e:00:' /sys/class/net/*/address | sed 's,^/sys/class/net/\([^/]*\)/address:\(.*\),\2 \1,'; }
all=$(nics | grep -c .)

# What nobody refers to any more since the last look, of a debug kernel. Told twice: at first something may still be on its
# way through RCU, and what is younger than five seconds is not looked at
leaks() {
	[ -w /sys/kernel/debug/kmemleak ] || return 0
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	grep -q '^unreferenced' /sys/kernel/debug/kmemleak || return 0
	head -n 60 /sys/kernel/debug/kmemleak
	echo clear >/sys/kernel/debug/kmemleak
	return 1
}

# As after boot: nothing of the last test's is left, and the driver is a new one
clean() {
	for ns in $(ip netns list | cut -d' ' -f1); do
		for p in $(ip netns pids "$ns"); do kill -KILL "$p" 2>/dev/null; done
		ip netns del "$ns"
	done
	# they come back a little later, under the names that they had there
	n=0
	while [ "$(nics | grep -c .)" -lt "$all" ] && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
	nics | while IFS=': ' read -r _ _ _ _ hi lo name; do
		p=p$((0x$hi * 256 + 0x$lo))
		[ "$name" = "$p" ] || { ip link set "$name" down; ip link set "$name" name "$p"; }
	done
	if [ -n "$backend" ] && lsmod | grep -q '^clsw '; then
		modprobe -r "$backend" || return 1
		modprobe -r clsw 2>/dev/null
		if lsmod | grep -q '^clsw '; then
			say "clsw can't be unloaded: $(lsmod | grep '^clsw ')"
			return 1
		fi
	fi
	for kind in bridge vrf bond team vlan macvlan veth dummy ifb gre vxlan; do
		for dev in $(ip -o link show type "$kind" 2>/dev/null | sed 's/^[0-9]*: \([^:@]*\).*/\1/'); do
			ip link del "$dev" 2>/dev/null
		done
	done
	for f in -4 -6; do
		ip $f route flush table main scope global 2>/dev/null
		# not l3mdev's: the kernel makes that one with the first VRF of a namespace, and never again
		ip $f rule show | awk -F: '$1 != 0 && $1 < 32766 && !/l3mdev/ { print $1 }' | while read -r n; do ip $f rule del pref "$n"; done
	done
	ip nexthop flush 2>/dev/null
	nft flush ruleset 2>/dev/null
	for d in /sys/class/net/p[0-9]*; do
		[ -e "$d" ] || continue
		ip link set "${d##*/}" down
		ip addr flush dev "${d##*/}"
		tc qdisc del dev "${d##*/}" clsact 2>/dev/null
	done
	leaks || leaked=y
	sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
	if [ -n "$backend" ] && [ -n "$LAB_LOAD" ]; then
		i=0
		for m in $LAB_LOAD; do
			i=$((i + 1))
			eval "params=\$LAB_PARAMS_$i"
			# shellcheck disable=SC2086,SC2154 # a list of words
			modprobe "$m" $params || return 1
		done
	fi
	return 0
}

# shellcheck disable=SC1091 # made by lab/run
. /run/lab/.lab/env
: >/run/lab/began
[ ! -w /sys/kernel/debug/kmemleak ] || echo clear >/sys/kernel/debug/kmemleak
while read -r name limit; do
	log=/run/lab/$name.log
	dmesg -C
	read -r up _ </proc/uptime
	result=passed
	shell='sh'
	case $name in *.py) shell='python3' ;; esac
	PYTHONPATH=/host/tests setsid timeout -k 5 "$limit" $shell "/host/tests/vm/$name" >"$log" 2>&1 </dev/null &
	session=$!
	wait "$session"
	code=$?
	case $code in
	0) ;;
	4|77) result="failed: it skipped itself, which this machine has no reason for" ;;
	124|137) result="failed: not done in $limit s" ;;
	*) result="failed: exit code $code" ;;
	esac
	pkill -KILL -s "$session"
	leaked=
	if ! clean >>"$log" 2>&1 && [ "$result" = passed ]; then result="failed: the machine could not be made as new after it"; fi
	if [ -n "$leaked" ] && [ "$result" = passed ]; then result="failed: memory that nobody refers to is left"; fi
	dmesg >/tmp/dmesg
	if grep -Eqf $alarms /tmp/dmesg; then
		if [ "$result" = passed ]; then result="failed: the kernel complained"; fi
		grep -EA 40 -f $alarms /tmp/dmesg | head -n 60 >>"$log"
	fi
	read -r end _ </proc/uptime
	seconds=$(awk -v a="$up" -v b="$end" 'BEGIN { printf "%.1f", b - a }')
	[ "$result" != passed ] || printf '   %-46s passed %6s s\n' "$name" "$seconds"
	printf '%s %s %s\n' "$name" "$(printf '%s' "$result" | tr ' ' '_')" "$seconds" >>/run/lab/results
	echo 3 >/proc/sys/vm/drop_caches
done </run/lab/todo
exit 0
