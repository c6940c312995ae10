#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 60
#
# tandem batch: a list of routes is installed if there is room for all of it, and not at all otherwise (seed 002, loop 1).

set -u
claims=0 failed=0
claim() { # text command...
	text=$1; shift
	if "$@"; then claims=$((claims + 1)); echo "ok: $text"; else failed=$((failed + 1)); echo "NOT OK: $text"; fi
}
list() { # count: routes of that many prefixes
	i=0; while [ "$i" -lt "$1" ]; do echo "route add 101.0.$i.0/24 via 10.9.0.2"; i=$((i + 1)); done >/tmp/list
}
there() { ip route show | grep -c '^101\.'; }
batch() { tandem batch /tmp/list >/tmp/said 2>&1; code=$?; cat /tmp/said; }

ip link set swp1 up
ip addr add 10.9.0.1/24 dev swp1
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:09 dev swp1 nud permanent
sleep 1

list 10; batch
claim "ten routes go in" [ "$code" = 0 ]
claim "the kernel has ten" [ "$(there)" = 10 ]
sed 's/add/del/' /tmp/list >/tmp/unlist; ip -batch /tmp/unlist

list 20; batch
claim "twenty of 32 go in: they take what is reserved, not as much again" [ "$code-$(there)" = 0-20 ]
sed 's/add/del/' /tmp/list >/tmp/unlist; ip -batch /tmp/unlist
sleep 1

list 60; batch
claim "sixty don't fit into 32: exit code 1" [ "$code" = 1 ]
claim "it says which table, need and free" grep -q 'IPv4 LPM full (needs 60, free [0-9]* of 32)' /tmp/said
claim "nothing is installed" [ "$(there)" = 0 ]

list 5; ip route add 101.0.3.0/24 via 10.9.0.2; batch
claim "one is there already: exit code 1" [ "$code" = 1 ]
claim "the others were removed again" [ "$(there)" = 1 ]
ip route del 101.0.3.0/24

echo "route add 101.0.0.0/24 via 10.9.0.2" >/tmp/list; echo "route add nonsense" >>/tmp/list; batch
claim "a bad line: exit code 2, and nothing was done" [ "$code-$(there)" = 2-0 ]

list 10; batch
claim "what was reserved and not used was given back: ten go in again" [ "$code-$(there)" = 0-10 ]
echo "$claims ok, $failed not"
[ "$failed" = 0 ]
