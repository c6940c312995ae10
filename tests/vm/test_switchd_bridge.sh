#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 300
# kernel: 6.12
# long
#
# switchd in a kernel that has everything: the twin of a bridge without VLANs.
exec /host/tests/vm/e2e tests/test_promise1_equivalence.py -k "bridge_twin"
