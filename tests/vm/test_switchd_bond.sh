#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 600
# kernel: 6.12
#
# switchd: bonds, the switch with an ASIC beside the kernel alone.
exec /host/tests/vm/e2e tests/test_promise1_bond.py tests/test_promise1_lacp.py
