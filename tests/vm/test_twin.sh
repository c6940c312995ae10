#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 4
# timeout: 1200
# long
#
# The twin test with the driver: the kernel alone beside the kernel and the chip that it drives.
cd /host || exit
# not br_netfilter: its hooks are the kernel's to apply, to every frame
modprobe -a tun veth bridge 8021q vrf
export TANDEM_NO_SKIP=1 TANDEM_OUT=/run/lab/out PYTHONDONTWRITEBYTECODE=1 TANDEM_PACE=2
export TANDEM_BIN=/opt/tandem
exec python3 -m pytest -p no:cacheprovider --tb=short -q --durations=5 tests/test_promise1_driver.py "$@"
