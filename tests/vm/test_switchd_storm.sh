#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver
# timeout: 300
# kernel: 6.12
# long
#
# switchd: LACP and a spanning tree that live, beside an ARP storm.
exec /host/tests/vm/e2e tests/test_promise5_live.py
