#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 600
# kernel: 6.12
#
# switchd: filters of traffic control, the switch with an ASIC beside the kernel alone.
modprobe -a cls_u32 act_police act_vlan
exec /host/tests/vm/e2e tests/test_promise1_tc.py
