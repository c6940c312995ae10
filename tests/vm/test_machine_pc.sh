#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3 --machine pc --cpu max --smp 4 --append mitigations=auto
# timeout: 600
# long
#
# The driver in another machine: a board without PCI Express, four processors with every feature that can be emulated, the
# kernel's mitigations on. What test_l3_forward asks for, unchanged.
. /host/tests/vm/lib.sh

is "processors" 4 "$(nproc)"
set -- /sys/bus/pci/devices/*/max_link_speed
[ ! -e "$1" ] || fail "this board has PCI Express: $1"
grep -q ' smap ' /proc/cpuinfo || fail "this processor has no SMAP: $(grep -m 1 '^model name' /proc/cpuinfo)"
exec sh /host/tests/vm/test_l3_forward.sh
