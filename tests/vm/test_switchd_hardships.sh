#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --smp 1
# timeout: 400
# kernel: 6.12
#
# switchd and asicd: what they gave away on a kernel of Debian, and a clock that jumps.
exec /host/tests/vm/e2e tests/test_hardships.py tests/test_clock.py -k "clock or need"
