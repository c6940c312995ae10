#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver
# timeout: 3000
# kernel: 6.12
# long
#
# The twin tests of promise 1, all of them, in a kernel that has everything.
set -eu
cd /host
exec tests/vm/e2e tests/test_promise1_*.py
