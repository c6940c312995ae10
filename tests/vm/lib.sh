# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For the tests in the machine: `. /host/tests/vm/lib.sh`. A test ends at its first failed step.

set -eu

# The debug kernel is that much slower
SLOW=1
case $(uname -r) in *-debug) SLOW=4 ;; esac

# In virtual time (lab/run --icount) the clock runs on while the machine waits for its disk, by any time: tries count there.
# Every other machine has the power-management timer (lab/vm.sh).
VIRTUAL=
if [ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" != acpi_pm ]; then VIRTUAL=y; fi

# The machine's own time in ms, in $now_ms, for what is judged in virtual time. The shell reads it: a program would be looked for
# in the host's folder first (9p), and while a process of the host is waited for, virtual time leaps.
now() {
	read -r now_ms _ </proc/uptime
	now_ms=$((${now_ms%.*} * 1000 + 1${now_ms#*.} * 10 - 1000))
}

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	# why the driver thinks so
	dmesg | grep clsw | tail -n 12 >&2
	exit 1
}

# Each `is WHAT WANTED GOT` is one assertion
is() {
	[ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
}

has() { # what, extended pattern, text
	printf '%s\n' "$3" | grep -Eq -- "$2" || fail "$1: wanted /$2/, got '$3'"
}

# Runs a command that must be refused with a text: refused PATTERN COMMAND...
refused() {
	pattern=$1
	shift
	if said=$("$@" 2>&1); then fail "not refused: $*"; fi
	has "refusal of $*" "$pattern" "$said"
}

# Waits until a command succeeds: until_true SECONDS WHAT COMMAND... So many tenths of a second; where the command itself
# takes long, six times the seconds
until_true() {
	seconds=$1 what=$2
	shift 2
	n=$((seconds * 10 * SLOW))
	read -r clock _ </proc/uptime
	latest=$((${clock%.*} + seconds * 6 * SLOW))
	until "$@" >/dev/null 2>&1; do
		n=$((n - 1))
		read -r clock _ </proc/uptime
		if [ "$n" -le 0 ] || { [ -z "$VIRTUAL" ] && [ "${clock%.*}" -ge "$latest" ]; }; then fail "not within $seconds s: $what"; fi
		sleep 0.1
	done
}

# What the kernel's memory comes to, in kB: slabs, vmalloc, per-CPU
memory() {
	echo 3 >/proc/sys/vm/drop_caches
	# a cache that shrinks gives back what KASAN keeps of it to see it used once more
	for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache" 2>/dev/null || :; done
	awk '/^(Slab|VmallocUsed|Percpu):/ { s += $2 } END { print s }' /proc/meminfo
}

# A host behind front-panel port K: NIC pK moved to a namespace hK, as eth0, with addresses: host_on K ADDRESS...
host_on() {
	k=$1
	shift
	ip netns add "h$k"
	ip link set "p$k" netns "h$k" name eth0
	ip -n "h$k" link set lo up
	ip -n "h$k" link set eth0 up
	for a; do
		case $a in
		*:*) ip -n "h$k" addr add "$a" dev eth0 nodad ;;
		*) ip -n "h$k" addr add "$a" dev eth0 ;;
		esac
	done
}

# asicd as the host sees it: asic show ports
asic() { host "tandem --name \$LAB_ASIC $*"; }

# The sum of a counter over all ports, as the chip has it: counter l3_forwarded
counter() { asic -j show ports | jq "[.. | objects | .$1? // empty] | add"; }

# What the chip and the kernel have: for who reads why a test failed
state() {
	asic -j show rifs
	host 'python3 tests/vm/chip.py "/v1/table/neighbours?limit=100" "/v1/table/routes?limit=100"'
	asic show traps
	asic show drops
	ip -o link show up
	ip -d route show table all
	ip neigh
} 2>&1

# `count` echo requests from a namespace to an address, and in $routed how many packets the chip routed by itself
pings() { # namespace address count
	before=$(counter l3_forwarded)
	ip netns exec "$1" ping -q -c "$3" -i 0.05 -W 2 "$2" >/tmp/ping 2>&1 ||
		fail "$1 -> $2: $(tail -n 3 /tmp/ping; ip -n "$1" neigh; state)"
	routed=$(($(counter l3_forwarded) - before))
}

by_chip() { # namespace address: after a first packet has made the kernel resolve, both ways in hardware
	ip netns exec "$1" ping -q -c 2 -i 0.3 -W 3 "$2" >/dev/null 2>&1 || :
	n=10
	while :; do
		pings "$1" "$2" 10
		[ "$routed" -lt 18 ] || return 0
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$1 -> $2: of 20 packets the chip routed $routed: $(state)"
	done
}

by_cpu() { # namespace address [most that the chip may route]: what the kernel defers to a work item takes its time
	n=10
	while :; do
		pings "$1" "$2" 5
		[ "$routed" -gt "${3:-0}" ] || return 0
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$1 -> $2: of 10 packets the chip routed $routed"
	done
}
