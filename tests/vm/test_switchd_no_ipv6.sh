#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --append ipv6.disable=1
# timeout: 300
# kernel: 6.12
# long
#
# switchd and asicd on a kernel that was booted without IPv6.
[ ! -e /proc/sys/net/ipv6 ] || { echo "this kernel has IPv6"; exit 1; }
exec /host/tests/vm/e2e tests/test_machines.py -k without_ipv6
