#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 900
# kernel: 6.12
#
# The appliance's engine kernel: what it makes of a configuration, what is refused, what others change;
# the spanning tree of two of them.
exec /host/tests/vm/e2e tests/test_appliance_kernel.py tests/test_appliance_stp.py -k kernel
