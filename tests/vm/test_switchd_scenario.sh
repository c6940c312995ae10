#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 2700
# kernel: 6.12
#
# Random scenarios in a kernel that has every construct: the kept ones that need one which a plain kernel lacks (the others
# are played outside, ten times as fast), which must pass, then for 25 seconds seeds that the commit's id draws, of which
# one that fails is told and kept; with --long all kept ones and seeds for half an hour, which must pass.
if [ -n "${TANDEM_LONG:-}" ]; then
	exec timeout -k 5 2600 /host/tests/vm/scenario --seconds 1800 --shrink 60 --failures 3
fi
exec timeout -k 5 1200 /host/tests/vm/scenario --kept bond,tc,vlan,vrf --seconds 25 --shrink 60 --failures 3 --new "${TANDEM_COMMIT:-none}"
