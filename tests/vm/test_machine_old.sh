#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3 --machine pc --cpu kvm64 --smp 1
# timeout: 600
# long
#
# The driver in a machine with one processor, and an old one: whoever waits there for somebody else, and does not let him
# run, waits for ever. What test_l3_forward asks for, unchanged.
. /host/tests/vm/lib.sh

is "processors" 1 "$(nproc)"
exec sh /host/tests/vm/test_l3_forward.sh
