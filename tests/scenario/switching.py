# SPDX-License-Identifier: Apache-2.0
"""Bridges, those that filter VLANs too, VLAN interfaces and bonds, and how they change."""

from lib.twin import MAC, NOBODY

from .world import OTHER_MACS, PORTS, VIDS

ACCESS, UNTAGGED, TAGGED = "pvid untagged", "untagged", ""


class Switching:
    """Part of the maker."""

    def make_bridge(self, name, members, options=""):
        self.bridges[name] = members
        do = [f"ip link add {name} address {self.mac[name]} type bridge {self.snooping_options()}{options}"]
        if self.snoops:  # without an IPv6 address from the start: the kernel notices the loss of one some time later
            do.append(f"sysctl ipv6/conf/{name}/disable_ipv6=1")
        do += [f"ip link set {p} master {name}" for p in members]
        return [*do, f"ip link set {name} up", *self.snooping_begins(name)]

    def make_bond(self, name, ports):
        """A bond of ports, most of them of a kind that the chip has."""
        self.bonds[name] = list(ports)
        kind = self.rng.choice(["mode active-backup"] * 3 + [f"mode balance-xor xmit_hash_policy {p}" for p in
                                                            ("layer2", "layer2+3", "layer3+4")] + ["mode broadcast"])
        do = [f"ip link add {name} address {self.mac[name]} type bond miimon 50 {kind}"]
        for p in ports:
            do += [f"ip link set {p} down", f"ip link set {p} master {name}"]
        if "active" in kind and self.chance(0.5):
            do.append(f"ip link set {name} type bond primary {self.rng.choice(ports)}")
        return [*do, f"ip link set {name} up"]

    def make_vlans(self, bridge):
        """Who is in which VLAN of a bridge that filters, its VLAN interfaces among them."""
        table = self.vlans[bridge] = {}
        do = []
        for p in self.bridges[bridge]:
            draw = self.rng.random()
            if draw < 0.3:
                mine = {1: ACCESS}
                if self.chance(0.6):
                    mine[self.rng.choice(VIDS)] = self.rng.choice([TAGGED, TAGGED, UNTAGGED])
            elif draw < 0.6:
                mine = {10: ACCESS}
            elif draw < 0.75:
                mine = {1: ACCESS, 10: TAGGED, 20: TAGGED}
            elif draw < 0.85:
                mine = {10: TAGGED, 20: TAGGED}
            else:
                mine = {20: ACCESS, 10: self.rng.choice([TAGGED, UNTAGGED])}
            table[p] = mine
            if 1 not in mine:
                do.append(f"bridge vlan del dev {p} vid 1")
            do += [f"bridge vlan add dev {p} vid {v} {how}".rstrip() for v, how in mine.items() if v != 1]
        return do

    def make_vlan_interface(self, below, vid):
        """A VLAN interface on a port, a bond or a bridge; routed from now on."""
        name = self.add_vlan_interface(below, vid)
        self.routed.append(name)
        do = [f"bridge vlan add dev {below} vid {vid} self"] if below in self.vlans else []
        return [*do, f"ip link add link {below} name {name} type vlan id {vid}", f"ip link set {name} up"]

    # ------------------------------------------------------------------------------------------------ links, FDB

    def up_and_down(self, name):
        turn = "up" if name in self.down else "down"
        (self.down.discard if turn == "up" else self.down.add)(name)
        return [f"ip link set {name} {turn}"]

    def churn_link(self):
        port = f"swp{self.rng.randrange(1, 5)}"
        names = [port] * 3 + list(self.bridges) + list(self.bonds) + [f"h{port[3:]}"]
        name = self.rng.choice(names)
        if not name.startswith("h"):
            return self.up_and_down(name)
        turn = "up" if name in self.down else "down"
        (self.down.discard if turn == "up" else self.down.add)(name)
        return [f"host {name} {turn}"]

    def churn_rename(self):
        """Another name until the next step."""
        name = self.rng.choice([*PORTS, *self.bridges, *self.bonds])
        self.later.append(f"ip link set {name}r name {name}")
        return [f"ip link set {name} name {name}r"]

    def churn_bridge(self):
        br, members = self.rng.choice(list(self.bridges.items()))
        port = self.rng.choice(members)
        draw = self.rng.randrange(12)
        flag = self.rng.choice(["flood", "mcast_flood", "bcast_flood", "isolated", "hairpin"])
        mac = self.rng.choice([NOBODY, MAC["h1"], MAC["h3"], "02:00:00:00:00:77"])
        vlan = f" vlan {self.any_vid(br, port)}" if br in self.vlans and self.chance(0.85) else ""
        if draw < 3:
            return [f"bridge link set dev {port} {flag} {self.rng.choice(['on', 'off'])}"]
        if draw < 5:
            return [f"bridge fdb {self.rng.choice(['add', 'replace', 'replace'])} {mac} dev {port} master "
                    f"{self.rng.choice(['static', 'static', 'dynamic'])}{vlan}"]
        if draw < 6:
            return [f"bridge fdb del {mac} dev {port} master{vlan}"]
        if draw < 7:
            return [f"bridge link set dev {port} state {self.rng.choice([0, 1, 2, 3, 3])}"]
        if draw < 8:
            return [f"ip link set {port} nomaster"]
        if draw < 10:
            again = []
            if br in self.vlans:
                self.vlans[br][port] = {1: ACCESS}
            return [f"ip link set {port} master {br}", f"ip link set {port} up", *again]
        if draw < 11:
            return [f"ip link set {br} type bridge fdb_flush"]
        return [f"ip link set {br} type bridge group_fwd_mask {self.rng.choice(['0', '0x4000'])}"]

    # ----------------------------------------------------------------------------------------------------- VLANs

    def any_vid(self, br, port):
        """One of the port's VLANs, most of the time."""
        return self.rng.choice([*self.vlans[br].get(port, {}), *self.vlans[br].get(port, {}), self.rng.choice(VIDS)])

    def churn_vlan(self):
        br = self.rng.choice(list(self.vlans))
        port = self.rng.choice(self.bridges[br])
        table = self.vlans[br].setdefault(port, {})
        draw = self.rng.random()
        if draw < 0.35:
            vid, how = self.rng.choice((1, *VIDS)), self.rng.choice([ACCESS, UNTAGGED, TAGGED, TAGGED])
            if "pvid" in how:
                for v, old in table.items():
                    table[v] = old.replace("pvid", "").strip()
            table[vid] = how
            return [f"bridge vlan add dev {port} vid {vid} {how}".rstrip()]
        if draw < 0.6:
            vid = self.any_vid(br, port)
            table.pop(vid, None)
            return [f"bridge vlan del dev {port} vid {vid}"]
        if draw < 0.64:
            return [f"bridge vlan add dev {port} vid 100-103", f"bridge vlan del dev {port} vid 102"]
        if draw < 0.76:
            return [f"ip link set {br} type bridge vlan_filtering {self.rng.choice([0, 1])}"]
        if draw < 0.9:
            vid = self.rng.choice((1, *VIDS))
            return [self.rng.choice([f"bridge vlan add dev {br} vid {vid} self",
                                     f"bridge vlan add dev {br} vid {vid} pvid untagged self",
                                     f"bridge vlan del dev {br} vid {vid} self"])]
        if draw < 0.94:
            return [f"ip link set {br} type bridge vlan_default_pvid {self.rng.choice([0, 1, 1, 10])}"]
        if draw < 0.97:
            return [f"bridge vlan set dev {port} vid {self.any_vid(br, port)} state {self.rng.choice([0, 1, 3, 3])}"]
        return [f"ip link set {br} type bridge vlan_protocol {self.rng.choice(['802.1ad', '802.1Q', '802.1Q'])}"]

    def churn_vlan_interface(self):
        name = self.rng.choice([i for i in self.routed if "." in i])
        below, _, vid = name.partition(".")
        draw = self.rng.random()
        if draw < 0.25:
            return [f"ip link set {name} down"]
        if draw < 0.5:
            return [f"ip link set {name} up", *self.again(name)]
        if draw < 0.7:
            self.vrf.pop(name, None)
            return [f"ip link del {name}", f"ip link add link {below} name {name} type vlan id {vid}",
                    *self.interface_settings(name), f"ip link set {name} up",
                    f"ip addr add {self.v4(name)}/24 dev {name}", *self.again(name)]
        if draw < 0.78:
            return [f"ip link set {name} mtu {self.rng.choice([1280, 1400, 1496, 1500])}"]
        if draw < 0.86:
            return [f"ip link set {name} type vlan egress 0:{self.rng.choice([0, 0, 5])}"]
        return [f"ip link set {name} address {self.rng.choice([self.mac[below], OTHER_MACS[1]])}", *self.again(name)]

    # ----------------------------------------------------------------------------------------------------- bonds

    def churn_bond(self):
        name, members = self.rng.choice(list(self.bonds.items()))
        port = self.rng.choice(members)
        draw = self.rng.random()
        if draw < 0.25:
            return [f"ip link set {port} nomaster", f"ip link set {port} up"]
        if draw < 0.35:
            bridges = [b for b, m in self.bridges.items() if name in m] or list(self.bridges)
            if bridges:
                return [f"ip link set {port} nomaster", f"ip link set {port} up",
                        f"ip link set {port} master {self.rng.choice(bridges)}"]
        if draw < 0.65:
            return [f"ip link set {port} nomaster", f"ip link set {port} down", f"ip link set {port} master {name}"]
        if draw < 0.8:
            return self.up_and_down(port)
        if draw < 0.88:
            return [f"ip link set {name} type bond active_slave {port}"]
        if draw < 0.95:
            policy = self.rng.choice(["layer2", "layer2+3", "layer3+4", "layer3+4", "encap3+4"])
            return [f"ip link set {name} type bond xmit_hash_policy {policy}"]
        return [f"ip link set {name} down", f"ip link set {name} up", *self.again(name)]
