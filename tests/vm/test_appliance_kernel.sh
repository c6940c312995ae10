#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 300
# kernel: 6.12
#
# The appliance's engine kernel: what it makes of a configuration, what is refused, what others change.
exec /host/tests/vm/e2e tests/test_appliance_kernel.py
