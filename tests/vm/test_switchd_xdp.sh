#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab: --no-driver
# timeout: 600
# long
# kernel: 6.12
#
# Ports by AF_XDP on a kernel whose veth is a module: the self-test must pass there, the frames be the same.
exec /host/tests/vm/e2e tests/test_ports_xdp.py -k "bridge or cannot"
