#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 2 --param clsw_null:policer_rate=1000
# timeout: 60
#
# A chip whose policers are slower than what the driver's have at the beginning.
. /host/tests/vm/lib.sh
. /host/tests/vm/ports.sh

rates() { devlink -j trap policer show | jq -c '[.. | objects | select(has("rate")) | .rate]'; }

is "rates at the beginning" "[1000,1000,1000,1000,1000]" "$(rates)"
refused "out of range|rate" devlink trap policer set "$DEV" policer 2 rate 1001
devlink trap policer set "$DEV" policer 2 rate 999
devlink trap group set "$DEV" group control policer 2
is "rates" "[1000,999,1000,1000,1000]" "$(rates)"
until_true 5 "the chip has taken it" settled
is "the chip's own check" ok "$(cat /sys/kernel/debug/clsw_null/*/check)"
