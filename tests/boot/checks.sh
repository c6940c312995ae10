# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What a person would look at after a boot, as functions: each check is a line "ok: …" or "FAILED: …".
bad=0
check() { # what, command...
	what=$1
	shift
	if said=$("$@" 2>&1); then
		echo "ok: $what"
	else
		bad=$((bad + 1))
		echo "FAILED: $what: $said"
	fi
}
until_so() { # seconds command...
	n=$(($1 * 5))
	shift
	until "$@" >/dev/null 2>&1; do
		n=$((n - 1))
		[ $n -gt 0 ] || { "$@"; return 1; }
		sleep 0.2
	done
}
ping_from() { ip netns exec "$1" ping -q -n -c "$3" -i 0.05 -W 2 "$2"; }
all_answered() { ping_from "$@" | grep -q " 0% packet loss"; }
received() { cat /sys/class/net/swp*/statistics/rx_packets | awk '{ n += $1 } END { print n }'; }
by_the_chip() { # from to: 40 packets, of which the kernel has none; it may have asked and been asked for neighbours
	before=$(received)
	all_answered "$1" "$2" 20 || return 1
	after=$(received)
	[ $((after - before)) -lt 15 ] || { echo "the kernel had $((after - before)) packets"; return 1; }
}
active() { for u; do [ "$(systemctl is-active "$u")" = active ] || { systemctl status "$u" --no-pager -n 20; return 1; }; done; }
no_cycle() { journalctl -b --no-pager | grep -q systemd && ! journalctl -b --no-pager | grep -iE 'ordering cycle|Job .* deleted to break'; }
in_order() { # unit came to be active before unit
	a=$(systemctl show -P ActiveEnterTimestampMonotonic "$1") b=$(systemctl show -P InactiveExitTimestampMonotonic "$2")
	echo "$1 $a, $2 $b"
	[ "$a" -gt 0 ] && [ "$b" -gt 0 ] && [ "$a" -le "$b" ]
}
offloaded() { tandem --name sw show routes | grep -E "^$1 .*offloaded"; }

kill_main() { # unit: its number becomes another one
	old=$(systemctl show -P MainPID "$1")
	[ "$old" -gt 1 ] && kill -9 "$old" && until_so 20 another "$1" "$old"
}
another() { new=$(systemctl show -P MainPID "$1") && [ "$new" -gt 1 ] && [ "$new" != "$2" ]; }
the_end() { # says how many, and switches the machine off
	dmesg | grep -E 'BUG:|WARNING:|Oops' && bad=$((bad + 1))
	if [ $bad = 0 ]; then echo "inside: all passed"; else
		echo "inside: $bad failed"
		journalctl -b --no-pager -u 'tandem*' -n 60 -o cat
	fi
	sync
	systemctl poweroff --force --force
}
