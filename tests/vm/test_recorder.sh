#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver
# timeout: 900
# kernel: 6.12
# long
#
# The recorder in a kernel that has VLANs and VRFs: what is recorded twice is the same, and the model does what this kernel does.
set -e
twin=/host/tests/vm/recorder
"$twin" model --seed 5000 --count 200 --least 50
"$twin" record --bridges --twice --seed 5000 --count 40 --need rule,vlan,vrf
