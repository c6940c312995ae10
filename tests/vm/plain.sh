# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# For what runs asicd and switchd inside the plain virtual machine: `. /host/tests/vm/plain.sh`. Modules, binaries, places.

cd /host || exit
# there is no udev that would load what a device node or a netlink request asks for
modprobe -a tun veth bridge 8021q vrf bonding dummy br_netfilter cls_flower cls_matchall sch_ingress act_mirred act_gact
# loaded for the tests that want it; as on a machine that has no firewall
sysctl -qw net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0 net.bridge.bridge-nf-call-arptables=0
export TANDEM_BIN=/opt/tandem TANDEM_NO_SKIP=1 TANDEM_OUT=/run/lab/out PYTHONDONTWRITEBYTECODE=1 TANDEM_PACE=2
for b in asicd switchd tandem; do
	[ -x "$TANDEM_BIN/$b" ] || { echo "${0##*/}: no $b in the machine's $TANDEM_BIN: ./run build makes it" >&2; exit 1; }
done
