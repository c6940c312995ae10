# SPDX-License-Identifier: Apache-2.0
"""Filters of traffic control at ports: flower and matchall, at both hooks, and how they change."""

from lib.twin import MAC, NOBODY

from .world import POOL4, POOL6, PORTS, VIDS

PREFERENCES = (10, 20, 30)
HANDLES = (1, 2)
HOOKS = ("ingress", "egress")
DST_PORTS = (7, 9, 53, 2000, 2005, 3000)  # that frames go to and filters look at
# Polices in bytes at their two ends: a packet is more than the first bucket ever holds and less than the second one.
# Between them it would hang on time
POLICES = ("action police rate 1mbit burst 20 conform-exceed drop",
           "action police rate 10gbit burst 1m conform-exceed drop")


class Filters:
    """Part of the maker."""

    def churn_filter(self):
        port, hook = self.rng.choice(PORTS), self.rng.choice(["ingress", "ingress", "egress"])
        if self.filters and self.chance(0.35):
            port, hook, pref = self.rng.choice(sorted(self.filters))
            protocol, kind = self.filters[port, hook, pref]
            if self.chance(0.7):
                del self.filters[port, hook, pref]
                return [f"tc filter del dev {port} {hook} pref {pref}"]
            return [f"tc filter del dev {port} {hook} pref {pref} handle {self.rng.choice(HANDLES)} "
                    f"protocol {protocol} {kind}"]
        pref = self.rng.choice(PREFERENCES)
        protocol, what = self.match()
        self.filters[port, hook, pref] = protocol, what.split()[0]
        self.frames.ports = DST_PORTS
        verb = self.rng.choice(["add", "replace"])
        return [f"tc filter {verb} dev {port} {hook} pref {pref} handle {self.rng.choice(HANDLES[:1] * 3 + HANDLES)} "
                f"protocol {protocol} {what} {self.action(port, hook)}"]

    def match(self):
        """What it looks at: (protocol, classifier and keys)."""
        draw = self.rng.random()
        port = self.rng.choice(DST_PORTS)
        if draw < 0.12:
            return "all", "matchall"
        if draw < 0.4:
            keys = self.rng.choice([
                f"ip_proto udp dst_port {port}", f"ip_proto udp dst_port {port}", "ip_proto udp dst_port 2000-2010",
                "ip_proto udp src_port 1024-40000", "ip_proto tcp dst_port 80", "ip_proto tcp tcp_flags 0x02/0x12",
                "ip_proto icmp type 8", "ip_ttl 64", "ip_ttl 63", "ip_tos 0x10/0xfc", "ip_flags frag", "ip_proto udp"])
            return "ip", f"flower {keys}"
        if draw < 0.6:
            keys = self.rng.choice([f"dst_ip {self.rng.choice(POOL4[1:])}", f"src_ip {self.any_source()}",
                                    f"src_ip {self.any_source()} ip_proto udp dst_port {port}",
                                    f"dst_ip {self.rng.choice(POOL4[1:])} ip_proto udp"])
            return "ip", f"flower {keys}"
        if draw < 0.72 and self.six:
            return "ipv6", "flower " + self.rng.choice([f"dst_ip {self.rng.choice(POOL6[1:])}",
                                                        f"ip_proto udp dst_port {port}", "ip_proto udp"])
        if draw < 0.88 or "vlan" not in self.have:
            mac = self.rng.choice([*list(MAC.values())[:4], NOBODY, *self.mac.values()])
            return "all", f"flower {self.rng.choice(['dst_mac', 'src_mac'])} {mac}"
        vid = self.rng.choice(VIDS)
        return "802.1Q", "flower " + self.rng.choice([
            f"vlan_id {vid}", f"vlan_id {vid}", "vlan_prio 0",
            f"vlan_id {vid} vlan_ethtype ipv4 ip_proto udp dst_port {port}", "vlan_ethtype ipv4"])

    def any_source(self):
        if not self.routed:
            return "192.0.2.0/24"
        i = self.rng.choice(self.routed)
        return self.rng.choice([f"{self.v4(i, 2)}", f"{self.v4(i, 0)}/24"])

    def action(self, port, hook):
        """What becomes of it; now and then something that the chip has not."""
        other = self.rng.choice([p for p in PORTS if p != port])
        draw = self.rng.random()
        if draw < 0.3:
            return "action drop"
        if draw < 0.45:
            return "action pass"
        if draw < 0.6 and hook == "ingress":
            return f"action mirred egress redirect dev {other}"
        if draw < 0.8:
            then = self.rng.choice(["", "", " action drop", " action pass"])
            return f"action mirred egress mirror dev {other}{then}"
        if draw < 0.92:
            return self.rng.choice(POLICES)
        return self.rng.choice(["action trap", "action vlan push id 5", f"action mirred egress redirect dev {other}",
                                "action continue"])
