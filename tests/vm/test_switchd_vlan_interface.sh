#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 300
# kernel: 6.12
#
# switchd's twin of routers with VLAN interfaces on ports.
set -eu
cd /host
exec tests/vm/e2e tests/test_promise1_vlan_interface.py
