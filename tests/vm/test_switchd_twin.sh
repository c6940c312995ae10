#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver
# timeout: 3000
# kernel: 6.12
# long
#
# The twin tests of promise 1, all of them, in a kernel that has everything; the driver has a machine of its own (test_twin.sh).
set -eu
cd /host
# shellcheck disable=SC2046 # names without blanks
exec tests/vm/e2e $(printf '%s\n' tests/test_promise1_*.py | grep -v /test_promise1_driver)
