# SPDX-License-Identifier: Apache-2.0
"""Random scenarios from a seed: a topology, steps of churn, frames between them. The same seed gives the same scenario
for the same constructs.

A scenario is plain JSON, so that it can be cut down and kept:

    {"seed": 7, "profile": "tiny", "fill": "normal", "answers": {"h1": {"10.1.0.2": MAC}}, "own": [addresses],
     "needs": ["vlan"], "steps": [{"do": ["ip link set swp1 up", ...], "volleys": [{"from": "h1", "kind": "good",
                "say": "...", "frames": [hex, ...]}]}]}

The first step's commands are the topology. A command is `ip ...`, `bridge ...`, `tc ...`, `sysctl KEY=VALUE`,
`host NAME up|down` (its cable), `pause SECONDS`, `kill switchd|asicd`, `fault ...`, `up` (the daemons again): the last
three touch the switch with the ASIC only. A volley leaves one host at once; it may have a pause, too. `needs`:
constructs (constructs.py) that the topology has.

    world.py      interfaces, where their hosts are          routing.py    routes, neighbours, VRFs, policy rules
    volleys.py    frames of a step                           switching.py  bridges, VLANs, bonds
    frames.py     one frame, good or odd                     groups.py     multicast groups of bridges that snoop
                                                             filters.py    traffic control
"""

from .constructs import EVERY
from .filters import Filters
from .groups import Groups
from .routing import Routing
from .switching import Switching
from .volleys import Volleys
from .world import PORTS, VIDS, World

PROFILES = {"tiny": ("empty", "normal", "overfull"), "spectrum-sn2700": ("empty", "normal"),
            "arista-7500e": ("empty", "normal"), "nxp-t1040": ("empty", "normal"),
            "spectrum-sn2100": ("empty", "normal")}
BLOCK = 100  # so many seeds in a row play on one profile: starting a chip takes longer than a scenario


def profile_of(seed):
    """Half of the blocks are tiny's: it is the one that overflows."""
    names = list(PROFILES)
    block = seed // BLOCK
    return "tiny" if block % 2 == 0 else names[1 + block // 2 % (len(names) - 1)]


def generate(seed, have=EVERY):
    """The scenario of that seed for a kernel that has these constructs."""
    return _Maker(seed, have).make()


class _Maker(Switching, Groups, Routing, Filters, Volleys, World):
    def __init__(self, seed, have):
        super().__init__(seed, frozenset(have))
        self.profile = profile_of(seed)
        self.fill = self.rng.choice(PROFILES[self.profile])
        # the reports that a bridge's own IPv6 sends, at random times, are joins
        self.six = self.rng.random() < 0.6 and not self.snoops
        self.filtering = False  # are there filters in this scenario

    # ------------------------------------------------------------------------------------------------- topology

    def make(self):
        shapes = ["bridge", "bridges", "router", "router", "mixed", "mixed"]
        if "vlan" in self.have:
            shapes += ["vlan bridge"] * 5 + ["vlan ports"] * 3
        if "bond" in self.have:
            shapes += ["bond"] * 4
        shape = self.rng.choice(shapes)
        do = {"vlan bridge": self.shape_vlan_bridge, "vlan ports": self.shape_vlan_ports, "bond": self.shape_bond}.get(
            shape, lambda: self.shape_plain(shape))()
        self.six = self.six and bool(self.routed)
        inside = [p for members in (*self.bridges.values(), *self.bonds.values()) for p in members if p in PORTS]
        for i in dict.fromkeys([*inside, *self.bridges, *self.bonds, *self.routed]):
            do += self.interface_settings(i)
        needs = [k for k, is_there in (("vlan", self.vlans or any("." in i for i in self.routed)),
                                       ("bond", self.bonds)) if is_there]
        if "vrf" in self.have and len(self.routed) > 1 and self.chance(0.25):
            needs.append("vrf")
            do += self.make_vrfs()
        for i in self.routed:
            do += self.addresses(i)
        if "tc" in self.have and self.chance(0.3):
            needs.append("tc")
            self.filtering = True
            for _ in range(self.rng.choice([0, 1, 2])):
                do += self.churn_filter()
        if self.routed:
            for _ in range({"empty": 0, "normal": 6, "overfull": 10}[self.fill]):
                do += self.churn_route()
            if self.fill == "overfull":
                do += self.fill_up()
        elif self.fill == "overfull":
            members = [p for m in self.bridges.values() for p in m]
            do += [f"bridge fdb add 02:00:00:0f:00:{k:02x} dev {self.rng.choice(members)} master static"
                   for k in range(40)]
        with self.drawn_apart():
            do += self.make_group() if self.routed and self.chance(0.4) else []
        steps = [{"do": do, "volleys": self.hello() + self.volleys()}]
        for _ in range(self.rng.randrange(2, 6)):
            before, self.later = self.later, []
            do = before + self.churn()
            with self.drawn_apart():
                do += self.change_group() if self.grouped and self.chance(0.4) else []
            # who has been asked for since then, and has been heard therefore, hangs on time
            again = self.hello() if any("fdb_flush" in c for c in do) else []
            steps.append({"do": do, "volleys": again + self.volleys()})
        return {"seed": self.seed, "profile": self.profile, "fill": self.fill, "answers": self.answers,
                "own": self.own(), "needs": needs, "steps": steps}

    def shape_plain(self, shape):
        ports = list(PORTS)
        bridges = {}
        if shape == "bridge":
            bridges["brA"] = ports[:self.rng.choice([3, 4])]
        elif shape == "bridges":
            bridges["brA"], bridges["brB"] = ports[:2], ports[2:]
        elif shape == "mixed":
            cut = self.rng.choice([2, 3])
            bridges["brA"] = ports[:cut]
            if cut == 2 and self.chance(0.3):
                bridges["brB"] = ports[2:]
        do = []
        for name, members in bridges.items():
            do += self.make_bridge(name, members)
            if shape == "mixed" or self.chance(0.25):
                self.routed.append(name)
        bridged = [p for members in bridges.values() for p in members]
        self.routed += [p for p in ports if p not in bridged and self.chance(0.95)]
        return do

    def shape_vlan_bridge(self):
        """A bridge that filters; routed in some of its VLANs; the last port routed, in it, or in a bond in it."""
        ports = list(PORTS)
        do = []
        draw = self.rng.random()
        members = ports if draw < 0.4 else ports[:3]
        if draw > 0.8 and "bond" in self.have:
            do += self.make_bond("bondA", ports[2:])
            members = [*ports[:2], "bondA"]
        do += self.make_bridge("brA", members, " vlan_filtering 1")
        do += self.make_vlans("brA")
        if self.chance(0.2):
            self.routed.append("brA")
        for vid, p in ((10, 0.6), (20, 0.4)):
            if self.chance(p):
                do += self.make_vlan_interface("brA", vid)
        if ports[3] not in members and not self.bonds:
            if self.chance(0.8):
                self.routed.append(ports[3])
            if self.chance(0.4):
                do += self.make_vlan_interface(ports[3], 30)
        return do

    def shape_vlan_ports(self):
        """A router whose ports have VLAN interfaces."""
        self.routed += [p for p in PORTS if self.chance(0.7)]
        do = []
        for p in PORTS:
            for vid in VIDS[:2]:
                if self.chance(0.45) and len(self.index) < 12:
                    do += self.make_vlan_interface(p, vid)
        return do

    def shape_bond(self):
        """A bond of two ports, bridged with the other ones (which filter, some) or routed like them."""
        ports = list(PORTS)
        do = self.make_bond("bondA", ports[2:])
        if self.chance(0.5):
            members = [*ports[:self.rng.choice([1, 2])], "bondA"]
            vlans = "vlan" in self.have and self.chance(0.3)
            do += self.make_bridge("brA", members, " vlan_filtering 1" if vlans else "")
            do += self.make_vlans("brA") if vlans else []
            self.routed += [i for i in ("brA", *(p for p in ports[:2] if p not in members)) if self.chance(0.6)]
            return do
        self.routed += ["bondA", *(p for p in ports[:2] if self.chance(0.9))]
        if "vlan" in self.have and self.chance(0.3):
            do += self.make_vlan_interface("bondA", 10)
        return do

    # ---------------------------------------------------------------------------------------------------- churn

    def churn_daemon(self):
        draw = self.rng.random()
        if draw < 0.5:
            middle = self.change() if self.chance(0.5) else []
            return ["kill switchd", *middle, "up"]
        if draw < 0.65:
            return ["kill asicd", "up"]
        if draw < 0.75:
            return ["fault reset"]
        if draw < 0.85:
            return [f"fault delay {self.rng.choice([1, 5])}", *self.change()]
        cls = self.rng.choice(["route", "neigh", "nexthop", "nhg", "fdb", "rif"])
        return [f"fault fail --nth {self.rng.randrange(1, 4)} --class {cls} --count {self.rng.randrange(1, 3)}",
                *self.change(), *self.change()]

    def change(self):
        """One change of the kernel's state."""
        kinds = []
        if self.bridges:
            kinds += [self.churn_bridge] * 3
            if self.snoops:
                kinds += [self.churn_group] * 4
        if self.vlans:
            kinds += [self.churn_vlan] * 5
        if self.bonds:
            kinds += [self.churn_bond] * 4
        if any("." in i for i in self.routed):
            kinds += [self.churn_vlan_interface] * 3
        if self.filtering:
            kinds += [self.churn_filter] * 5
        if self.routed:
            kinds += [self.churn_route] * 5 + [self.churn_nexthop] * 2 + [self.churn_neighbour] * 2
            kinds += [self.churn_address, self.delete_route, self.churn_setting]
            if self.vrf:
                kinds += [self.churn_vrf] * 3
            if "rule" in self.have and self.seed % 5 == 0:  # all behind a rule is the kernel's
                kinds += [self.churn_rule] * 2
        kinds += [self.churn_link]
        if "rename" in self.have and not self.later and self.chance(0.4):
            kinds.append(self.churn_rename)
        return self.rng.choice(kinds)()

    def churn(self):
        if self.chance(0.12):
            return self.churn_daemon()
        do = []
        for _ in range(self.rng.choice([1, 1, 2, 3, 5])):
            do += self.change()
        return do
