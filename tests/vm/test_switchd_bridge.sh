#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver
# timeout: 300
# kernel: 6.12
#
# switchd in a kernel that has everything: the twin of a bridge without VLANs.
exec /host/tests/vm/e2e tests/test_promise1_equivalence.py -k "bridge_twin"
