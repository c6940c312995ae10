#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver --mem 256
# timeout: 900
# kernel: 6.12
# long
#
# switchd and asicd in a machine of 256 MB: a full table, memory that runs out, a start with too little of it.
exec /host/tests/vm/e2e tests/test_memory.py
