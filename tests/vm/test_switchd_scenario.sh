#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver
# timeout: 2700
# kernel: 6.12
#
# Random scenarios in a kernel that has every construct: the kept ones, then seeds for two minutes; with --long for half an
# hour.
seconds=120 limit=600
if [ -n "${TANDEM_LONG:-}" ]; then seconds=1800 limit=2600; fi
exec timeout -k 5 "$limit" /host/tests/vm/scenario --seconds "$seconds" --shrink 60 --failures 3
