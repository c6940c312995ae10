# SPDX-License-Identifier: Apache-2.0
"""What a scenario is made of while it is drawn: interfaces, where their hosts are, and what has been changed so far."""

import contextlib
import ipaddress
import random

from lib.twin import HOSTS, MAC

from .frames import Frames

PORTS = ("swp1", "swp2", "swp3", "swp4")
PORT_MAC = {f"swp{i}": f"02:00:00:00:02:{i:02x}" for i in range(1, 5)}
BRIDGE_MAC = {"brA": "02:00:00:00:01:0a", "brB": "02:00:00:00:01:0b"}
BOND_MAC = {"bondA": "02:00:00:00:01:0c"}
OTHER_MACS = ("02:00:00:00:02:0f", "02:00:00:00:02:1f")  # that a port, a VLAN interface is given now and then
# An interface's number is in its addresses: 10.N.0.1, fdNN::1
INDEX = {"swp1": 1, "swp2": 2, "swp3": 3, "swp4": 4, "brA": 5, "brB": 6, "bondA": 7}
VLAN_INDEX = 31                     # of the first VLAN interface
VRFS = {"red": 10, "blue": 11}      # and their tables
VIDS = (10, 20, 30)
GROUPS = (100, 101, 150, 151)       # next-hop groups: 50 more if the number belongs to the other family
POOL4 = ["0.0.0.0/0", "20.0.0.0/8", "20.1.0.0/16", "20.1.1.0/24", "20.1.1.128/25", "20.1.1.129/32", "20.2.0.0/15",
         "21.0.0.0/24", "22.0.0.0/24", "22.0.0.64/26", "23.0.0.0/31", "10.0.0.0/8", "10.1.0.2/32", "10.2.0.2/31",
         "10.3.0.0/25", "10.4.0.3/32", "10.5.0.0/28"]
POOL6 = ["::/0", "fd20::/16", "fd20:1::/32", "fd20:1:1::/48", "fd20:1:1:1::/64", "fd20:1:1:1::8/125",
         "fd20:1:1:1::9/128", "fd21::/16", "fd22::/64", "fd02::2/128", "fd03::/120"]
WIDE = ("0.0.0.0/0", "10.0.0.0/8", "20.0.0.0/8", "::/0", "fd20::/16")


class World:
    """The state that all parts of the maker share; `rng` decides, and nothing else."""

    def __init__(self, seed, have):
        self.rng = random.Random(seed)
        self.seed = seed
        self.have = have
        self.frames = Frames(self.rng)
        self.six = False
        self.snoops = seed % 8 == 5  # do bridges look at who wants which multicast group
        self.bridges = {}      # name -> ports and bonds in it
        self.bonds = {}        # name -> ports in it
        self.vlans = {}        # bridge that filters -> {port or bond: {VID: "pvid untagged", "untagged" or ""}}
        self.routed = []       # interfaces with addresses
        self.vrf = {}          # interface -> VRF
        self.stations = {}     # interface -> [(host, ipv4, ipv6, mac)]
        self.index = dict(INDEX)
        self.mac = {**PORT_MAC, **BRIDGE_MAC, **BOND_MAC}
        self.answers = {h: {} for h in HOSTS}
        self.nexthops = {}     # id -> family, or "group4"/"group6"
        self.group = None      # one of them that a route uses from the start
        self.grouped = {}      # and its members: id -> command that makes it
        self.apart = random.Random(f"{seed} apart")
        self.buckets = {k: self.apart.choice([8, 16, 40]) for k in GROUPS if self.apart.random() < 0.5}
        self.routes = {}       # (prefix, metric) -> is it multipath
        self.down = set()      # interfaces and hosts that are down
        self.filters = {}      # (port, hook, preference) -> protocol
        self.rules = set()     # policy rules: (preference, family)
        self.later = []        # commands that the next step begins with
        self.wide = self.rng.random() < 0.2  # multipath for prefixes that cover nearly everything

    @contextlib.contextmanager
    def drawn_apart(self):
        """What is drawn within leaves alone what the same seed draws elsewhere."""
        self.rng, self.apart = self.apart, self.rng
        try:
            yield
        finally:
            self.rng, self.apart = self.apart, self.rng

    def chance(self, p):
        return self.rng.random() < p

    # ------------------------------------------------------------------------------- interfaces and their hosts

    def v4(self, i, last=1):
        return f"10.{self.index[i]}.0.{last}"

    def v6(self, i, last=1):
        return f"fd{self.index[i]:02d}::{last:x}"

    def add_vlan_interface(self, below, vid):
        """Its name; it has a number and its parent's MAC address from now on."""
        name = f"{below}.{vid}"
        self.index[name] = VLAN_INDEX + len(self.index) - len(INDEX)
        self.mac[name] = self.mac[below]
        return name

    def hosts_of(self, i):
        """Hosts that can reach this interface, bridges and bonds looked through: as it was built."""
        below, _, vid = i.partition(".")
        if below in self.bonds:
            return [f"h{p[3:]}" for p in self.bonds[below]]
        if below in self.bridges:
            places = self.bridges[below]
            if below in self.vlans:
                places = [p for p in places if int(vid or 1) in self.vlans[below].get(p, {})]
            return [h for p in places for h in self.hosts_of(p)]
        return [f"h{below[3:]}"]

    def member(self, bridge, host):
        """The bridge's port or bond that this host is behind."""
        return next((m for m in self.bridges[bridge] if host in self.hosts_of(m)), None)

    def tag(self, i, host):
        """The VLAN id of the tag that a host's frames have on the way to an interface; None: no tag."""
        below, _, vid = i.partition(".")
        if below in self.vlans:
            how = self.vlans[below].get(self.member(below, host), {}).get(int(vid or 1))
            return None if how is None or "pvid" in how else int(vid or 1)
        return int(vid) if vid else None

    def beside(self, host):
        """All hosts that are behind the same bond: a frame for one of them may come to another."""
        for ports in self.bonds.values():
            if f"swp{host[1:]}" in ports:
                return [f"h{p[3:]}" for p in ports]
        return [host]

    def own(self):
        """The switch's own addresses, all that it may ever have."""
        return [f"10.{n + more}.0.{last}" for n in self.index.values() for more in (0, 10) for last in (1, 9)] \
            + [self.v6(i) for i in self.index] + [link_local(m) for m in dict.fromkeys(self.mac.values())]

    def interface_settings(self, i):
        """What every new interface is set to before it has addresses."""
        ours = [] if i in PORT_MAC else neighbour_times(i)
        return [*ours, f"sysctl ipv6/conf/{i}/disable_ipv6={0 if self.six and i in self.routed else 1}"]

    def in_vrf(self, i):
        """What `ip route` says of the VRF of that interface."""
        return f" vrf {self.vrf[i]}" if self.vrf.get(i) else ""


def neighbour_times(i):
    """Short enough that a neighbour who does not answer has failed within a step, long enough for one who does."""
    return [f"sysctl {f}/neigh/{i}/{k}" for f in ("ipv4", "ipv6")
            for k in ("mcast_solicit=3", "ucast_solicit=1", "retrans_time_ms=250")]


def link_local(mac):
    """RFC 4291, appendix A."""
    b = bytes.fromhex(mac.replace(":", ""))
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + bytes([b[0] ^ 2]) + b[1:3] + b"\xff\xfe" + b[3:]))


def station_places(world, i):
    """Who is on the network of an interface: (host, last part of its address, MAC)."""
    hosts = world.hosts_of(i)
    if len(hosts) == 1 and i.partition(".")[0] in PORT_MAC:
        return [(hosts[0], 2, MAC[hosts[0]]), (hosts[0], 3, f"02:00:00:00:{world.index[i]:02x}:03")]
    return [(h, 10 + int(h[1:]), MAC[h]) for h in hosts]
