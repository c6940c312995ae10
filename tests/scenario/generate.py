# SPDX-License-Identifier: Apache-2.0
"""Random scenarios from a seed: a topology, steps of churn, frames between them. The same seed gives the same scenario.

A scenario is plain JSON, so that it can be cut down and kept:

    {"seed": 7, "profile": "tiny", "fill": "normal", "answers": {"h1": {"10.1.0.2": MAC}}, "own": [addresses],
     "steps": [{"do": ["ip link set swp1 up", ...], "volleys": [{"from": "h1", "kind": "good", "say": "...",
                "frames": [hex, ...]}]}]}

The first step's commands are the topology. A command is `ip ...`, `bridge ...`, `sysctl KEY=VALUE`,
`host NAME up|down` (its cable), `kill switchd|asicd`, `fault ...`, `up` (the daemons again): the last three touch the
switch with the ASIC only. A volley leaves one host at once.
"""

import ipaddress
import random

from lib.twin import HOSTS, MAC, NOBODY

from .frames import BROADCAST, Frames

PROFILES = {"tiny": ("empty", "normal", "overfull"), "spectrum-sn2700": ("empty", "normal"),
            "arista-7500e": ("empty", "normal"), "nxp-t1040": ("empty", "normal"),
            "spectrum-sn2100": ("empty", "normal")}
BLOCK = 100  # so many seeds in a row play on one profile: starting a chip takes longer than a scenario
FLOWS = 48   # of an ECMP volley; each is sent twice
PORT_MAC = {f"swp{i}": f"02:00:00:00:02:{i:02x}" for i in range(1, 5)}
BRIDGE_MAC = {"brA": "02:00:00:00:01:0a", "brB": "02:00:00:00:01:0b"}
INDEX = {"swp1": 1, "swp2": 2, "swp3": 3, "swp4": 4, "brA": 5, "brB": 6}
POOL4 = ["0.0.0.0/0", "20.0.0.0/8", "20.1.0.0/16", "20.1.1.0/24", "20.1.1.128/25", "20.1.1.129/32", "20.2.0.0/15",
         "21.0.0.0/24", "22.0.0.0/24", "22.0.0.64/26", "23.0.0.0/31", "10.0.0.0/8", "10.1.0.2/32", "10.2.0.2/31",
         "10.3.0.0/25", "10.4.0.3/32", "10.5.0.0/28"]
POOL6 = ["::/0", "fd20::/16", "fd20:1::/32", "fd20:1:1::/48", "fd20:1:1:1::/64", "fd20:1:1:1::8/125",
         "fd20:1:1:1::9/128", "fd21::/16", "fd22::/64", "fd02::2/128", "fd03::/120"]
WIDE = ("0.0.0.0/0", "10.0.0.0/8", "20.0.0.0/8", "::/0", "fd20::/16")


def profile_of(seed):
    """Half of the blocks are tiny's: it is the one that overflows."""
    names = list(PROFILES)
    block = seed // BLOCK
    return "tiny" if block % 2 == 0 else names[1 + block // 2 % (len(names) - 1)]


def generate(seed):
    """The scenario of that seed."""
    return _Maker(seed).make()


class _Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.seed = seed
        self.profile = profile_of(seed)
        self.fill = self.rng.choice(PROFILES[self.profile])
        self.frames = Frames(self.rng)
        self.six = self.rng.random() < 0.6
        self.bridges = {}      # name -> ports
        self.routed = []       # interfaces with addresses
        self.stations = {}     # interface -> [(host, ipv4, ipv6, mac)]
        self.answers = {h: {} for h in HOSTS}
        self.nexthops = {}     # id -> family, or "group4"/"group6"
        self.routes = {}       # (prefix, metric) -> is it multipath
        self.down = set()      # interfaces and hosts that are down
        self.wide = self.rng.random() < 0.2  # multipath for prefixes that cover nearly everything

    def chance(self, p):
        return self.rng.random() < p

    # ------------------------------------------------------------------------------------------------- topology

    def make(self):
        shape = self.rng.choice(["bridge", "bridges", "router", "router", "mixed", "mixed"])
        ports = [f"swp{i}" for i in range(1, 5)]
        do = []
        if shape == "bridge":
            self.bridges["brA"] = ports[:self.rng.choice([3, 4])]
        elif shape == "bridges":
            self.bridges["brA"], self.bridges["brB"] = ports[:2], ports[2:]
        elif shape == "mixed":
            cut = self.rng.choice([2, 3])
            self.bridges["brA"] = ports[:cut]
            if cut == 2 and self.chance(0.3):
                self.bridges["brB"] = ports[2:]
        bridged = [p for members in self.bridges.values() for p in members]
        for name, members in self.bridges.items():
            do.append(f"ip link add {name} address {BRIDGE_MAC[name]} type bridge mcast_snooping 0")
            do += [f"ip link set {p} master {name}" for p in members]
            do.append(f"ip link set {name} up")
            if shape == "mixed" or self.chance(0.25):
                self.routed.append(name)
        self.routed += [p for p in ports if p not in bridged and self.chance(0.95)]
        six = self.six and self.routed
        for i in [*bridged, *self.bridges, *self.routed]:
            if i in self.bridges:
                do += neighbour_times(i)
            do.append(f"sysctl ipv6/conf/{i}/disable_ipv6={0 if six and i in self.routed else 1}")
        for i in self.routed:
            do += self.addresses(i)
        if self.routed:
            for _ in range({"empty": 0, "normal": 6, "overfull": 10}[self.fill]):
                do += self.churn_route()
            if self.fill == "overfull":
                do += self.fill_up()
        elif self.fill == "overfull":
            do += [f"bridge fdb add 02:00:00:0f:00:{k:02x} dev {self.rng.choice(bridged)} master static"
                   for k in range(40)]
        own = [f"10.{INDEX[i]}.0.1" for i in INDEX] + [f"fd0{INDEX[i]}::1" for i in INDEX] \
            + [link_local(m) for m in (*PORT_MAC.values(), *BRIDGE_MAC.values())]
        steps = [{"do": do, "volleys": self.hello() + self.volleys()}]
        for _ in range(self.rng.randrange(2, 6)):
            steps.append({"do": self.churn(), "volleys": self.volleys()})
        return {"seed": self.seed, "profile": self.profile, "fill": self.fill, "answers": self.answers, "own": own,
                "steps": steps}

    def addresses(self, i):
        n = INDEX[i]
        do = [f"ip addr add 10.{n}.0.1/24 dev {i}"]
        if self.six:
            do.append(f"ip addr add fd0{n}::1/64 dev {i} nodad")
        members = self.bridges.get(i)
        if members:
            here = [(f"h{p[3:]}", 10 + int(p[3:]), MAC[f"h{p[3:]}"]) for p in members]
        else:
            here = [(f"h{i[3:]}", 2, MAC[f"h{i[3:]}"]), (f"h{i[3:]}", 3, f"02:00:00:00:0{n}:03")]
        self.stations[i] = []
        for host, last, mac in here:
            v4, v6 = f"10.{n}.0.{last}", f"fd0{n}::{last:x}"
            self.stations[i].append((host, v4, v6, mac))
            for address in (v4, v6) if self.six else (v4,):
                draw = self.rng.random()
                if draw < 0.65:
                    do.append(f"ip neigh replace {address} lladdr {mac} dev {i} nud permanent")
                elif draw < 0.9:
                    self.answers[host][address] = mac
                elif draw < 0.95:
                    do.append(f"ip neigh replace {address} dev {i} nud failed")
        return do

    def fill_up(self):
        """More routes, neighbours or stations than `tiny` has room for."""
        i = self.rng.choice(self.routed)
        n = INDEX[i]
        kind = self.rng.choice(["routes", "routes", "routes6", "neighbours", "nexthops", "mixed"])
        do = []
        if kind in ("routes", "mixed"):
            do += [f"ip route add 30.0.{k}.0/24 via 10.{n}.0.2" for k in range(40 if kind == "routes" else 15)]
        if kind == "routes6" and self.six:
            do += [f"ip route add fd30:{k:x}::/32 via fd0{n}::2" for k in range(40)]
        if kind in ("neighbours", "mixed"):
            do += [f"ip neigh replace 10.{n}.0.{100 + k} lladdr 02:00:00:0e:00:{k:02x} dev {i} nud permanent"
                   for k in range(40 if kind == "neighbours" else 15)]
        if kind in ("nexthops", "mixed"):
            for k in range(10):
                do.append(f"ip neigh replace 10.{n}.0.{200 + k} lladdr 02:00:00:0d:00:{k:02x} dev {i} nud permanent")
                do.append(f"ip route add 31.0.{k}.0/24 via 10.{n}.0.{200 + k}")
        return do

    # ---------------------------------------------------------------------------------------------------- churn

    def gateway(self, six):
        i = self.rng.choice(self.routed)
        host, v4, v6, _ = self.rng.choice(self.stations[i])
        return (v6 if six else v4), i

    def churn_route(self):
        six = self.six and self.chance(0.4)
        f = "6" if six else "4"
        prefix = self.rng.choice(POOL6 if six else POOL4)
        verb = self.rng.choice(["add", "replace", "replace", "append" if not six else "add"])
        metric = f" metric {self.rng.choice([10, 20])}" if self.chance(0.25) else ""
        draw = self.rng.random()
        via, dev = self.gateway(six)
        if draw < 0.45:
            what = f"via {via} dev {dev}"
        elif draw < 0.62 and (self.wide or prefix not in WIDE):
            legs = {self.gateway(six) for _ in range(self.rng.randrange(2, 4))}
            what = " ".join(f"nexthop via {v} dev {d} weight {self.rng.choice([1, 1, 2, 3])}" for v, d in sorted(legs))
            self.routes[prefix] = True
        elif draw < 0.80 and not metric:
            ids = [k for k, kind in self.nexthops.items() if kind.endswith(f)
                   and (self.wide or prefix not in WIDE or not kind.startswith("group"))]
            if not ids or self.chance(0.4):
                return self.churn_nexthop(f)
            nhid = self.rng.choice(ids)
            if self.nexthops[nhid].startswith("group"):
                self.routes[prefix] = True
            what = f"nhid {nhid}"
        elif draw < 0.86:
            what = f"dev {dev}"
        else:
            return [f"ip route {verb} {self.rng.choice(['blackhole', 'unreachable', 'prohibit', 'throw'])} "
                    f"{prefix}{metric}"]
        return [f"ip route {verb} {prefix} {what}{metric}"]

    def churn_nexthop(self, family=None):
        f = family or ("6" if self.six and self.chance(0.4) else "4")
        via, dev = self.gateway(f == "6")
        singles = [k for k, kind in self.nexthops.items() if kind == f]
        draw = self.rng.random()
        if len(singles) >= 2 and draw < 0.4:
            members = self.rng.sample(singles, 2)
            k = self.rng.choice([100, 101])
            if self.nexthops.get(k, "group" + f) != "group" + f:
                k += 50
            self.nexthops[k] = "group" + f
            return [f"ip nexthop replace id {k} group "
                    + "/".join(f"{m},{self.rng.choice([1, 1, 2])}" for m in members)]
        if self.nexthops and draw < 0.5:
            k = self.rng.choice(list(self.nexthops))
            del self.nexthops[k]
            return [f"ip nexthop del id {k}"]
        k = self.rng.randrange(1, 9) + (10 if f == "6" else 0)
        self.nexthops[k] = f
        if draw < 0.58:
            return [f"ip {'-6 ' if f == '6' else ''}nexthop replace id {k} blackhole"]
        return [f"ip nexthop replace id {k} via {via} dev {dev}"]

    def churn_neighbour(self):
        i = self.rng.choice(self.routed)
        host, v4, v6, mac = self.rng.choice(self.stations[i])
        address = v6 if self.six and self.chance(0.4) else v4
        draw = self.rng.random()
        if draw < 0.35:
            return [f"ip neigh replace {address} lladdr {self.rng.choice([mac, NOBODY, MAC['h1'], MAC['h2']])} "
                    f"dev {i} nud permanent"]
        if draw < 0.5:
            return [f"ip neigh del {address} dev {i}"]
        if draw < 0.6:
            return [f"ip neigh replace {address} dev {i} nud failed"]
        if draw < 0.8:
            return [f"ip neigh replace {address} lladdr {mac} dev {i} nud reachable"]
        return [f"ip neigh replace {address} lladdr {mac} dev {i} nud permanent"]

    def churn_address(self):
        i = self.rng.choice(self.routed)
        n = INDEX[i]
        six = self.six and self.chance(0.3)
        address = f"fd0{n}::1/64" if six else f"10.{n}.0.1/24"
        draw = self.rng.random()
        if draw < 0.35:
            return [f"ip addr del {address} dev {i}"]
        if draw < 0.5:
            return [f"ip addr add 10.{n + 10}.0.1/24 dev {i}"]
        if draw < 0.65:
            return [f"ip addr add 10.{n}.0.{self.rng.choice([1, 9])}/{self.rng.choice([16, 24, 32])} dev {i}"]
        return [f"ip addr add {address} dev {i}" + (" nodad" if six else "")]

    def churn_link(self):
        port = f"swp{self.rng.randrange(1, 5)}"
        names = [port] * 3 + list(self.bridges) + [f"h{port[3:]}"]
        name = self.rng.choice(names)
        turn = "up" if name in self.down else "down"
        (self.down.discard if turn == "up" else self.down.add)(name)
        if name.startswith("h"):
            return [f"host {name} {turn}"]
        return [f"ip link set {name} {turn}"]

    def churn_bridge(self):
        br, members = self.rng.choice(list(self.bridges.items()))
        port = self.rng.choice(members)
        draw = self.rng.randrange(12)
        flag = self.rng.choice(["flood", "mcast_flood", "bcast_flood", "isolated", "hairpin"])
        mac = self.rng.choice([NOBODY, MAC["h1"], MAC["h3"], "02:00:00:00:00:77"])
        if draw < 3:
            return [f"bridge link set dev {port} {flag} {self.rng.choice(['on', 'off'])}"]
        if draw < 5:
            return [f"bridge fdb {self.rng.choice(['add', 'replace', 'replace'])} {mac} dev {port} master "
                    f"{self.rng.choice(['static', 'static', 'dynamic'])}"]
        if draw < 6:
            return [f"bridge fdb del {mac} dev {port} master"]
        if draw < 7:
            return [f"bridge link set dev {port} state {self.rng.choice([0, 1, 2, 3, 3])}"]
        if draw < 8:
            return [f"ip link set {port} nomaster"]
        if draw < 10:
            return [f"ip link set {port} master {br}", f"ip link set {port} up"]
        if draw < 11:
            return [f"ip link set {br} type bridge fdb_flush"]
        return [f"ip link set {br} type bridge group_fwd_mask {self.rng.choice(['0', '0x4000'])}"]

    def churn_setting(self):
        i = self.rng.choice(self.routed or [f"swp{self.rng.randrange(1, 5)}"])
        draw = self.rng.random()
        if draw < 0.3:
            return [f"ip link set {i} mtu {self.rng.choice([1280, 1400, 1500, 1500])}"]
        if draw < 0.5:
            return [f"sysctl ipv4/conf/{i}/forwarding={self.rng.choice([0, 1, 1])}"]
        if draw < 0.6:
            return [f"sysctl ipv6/conf/all/forwarding={self.rng.choice([0, 1, 1])}"]
        if draw < 0.75:
            return [f"sysctl ipv4/conf/{i}/rp_filter={self.rng.choice([0, 0, 1, 2])}"]
        if draw < 0.85:
            return [f"sysctl ipv6/conf/{i}/disable_ipv6={self.rng.choice([0, 1])}"]
        if draw < 0.92 and i in PORT_MAC:
            return [f"ip link set {i} address {self.rng.choice([PORT_MAC[i], '02:00:00:00:02:0f'])}"]
        return [f"sysctl ipv4/conf/{i}/ignore_routes_with_linkdown={self.rng.choice([0, 1])}"]

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
        if self.routed:
            kinds += [self.churn_route] * 5 + [self.churn_nexthop] * 2 + [self.churn_neighbour] * 2
            kinds += [self.churn_address, self.delete_route, self.churn_setting]
        kinds += [self.churn_link]
        return self.rng.choice(kinds)()

    def delete_route(self):
        pool = POOL6 if self.six and self.chance(0.4) else POOL4
        return [f"ip route del {self.rng.choice(pool)}" for _ in range(3)]

    def churn(self):
        if self.chance(0.12):
            return self.churn_daemon()
        do = []
        for _ in range(self.rng.choice([1, 1, 2, 3, 5])):
            do += self.change()
        return do

    # -------------------------------------------------------------------------------------------------- volleys

    def hello(self):
        """Every host is heard once, so that both switches know the same stations when something else speaks."""
        if not self.bridges:
            return []
        return [{"from": h, "kind": "odd", "say": "hello", "frames": [
            self.frames.udp(BROADCAST, MAC[h], "192.0.2.1", "192.0.2.255").hex()]} for h in HOSTS]

    def volleys(self):
        made = []
        for _ in range(self.rng.randrange(2, 6)):
            kinds = []
            if self.bridges:
                kinds += [self.volley_l2] * 3 + [self.volley_l2_odd]
            if self.routed:
                kinds += [self.volley_routed] * 4 + [self.volley_odd] * 3
                if any(self.routes.values()):
                    kinds += [self.volley_ecmp] * 2
            if not kinds:
                kinds = [self.volley_nowhere]
            made.append(self.rng.choice(kinds)())
        return made

    def destination(self, six):
        """An address that no multipath route may have to answer for: which member a flow takes is free, so those
        destinations have volleys of their own (`volley_ecmp`)."""
        multi = [ipaddress.ip_network(p) for p, is_multi in self.routes.items() if is_multi]
        for _ in range(50):
            address = self.any_destination(six)
            if not any(ipaddress.ip_address(address) in net for net in multi):
                return address
        return "192.0.2.77" if not six else "2001:db8::77"

    def any_destination(self, six):
        """An address: of a station, in some prefix of the pool, in one that filled the chip, or nobody's."""
        draw = self.rng.random()
        if draw < 0.3:
            return self.gateway(six)[0]
        if draw < 0.85:
            net = ipaddress.ip_network(self.rng.choice(POOL6 if six else POOL4))
            if net.prefixlen == 0:
                net = ipaddress.ip_network("fd77::/32" if six else "77.0.0.0/16")
            return str(net[self.rng.randrange(min(net.num_addresses, 250))])
        if six:
            return self.rng.choice([f"fd30:{self.rng.randrange(40):x}::9", "2001:db8::1"])
        n = INDEX[self.rng.choice(self.routed)]
        return self.rng.choice([f"30.0.{self.rng.randrange(40)}.9", f"31.0.{self.rng.randrange(10)}.9",
                                f"10.{n}.0.{self.rng.randrange(100, 140)}", f"10.{n}.0.255", "99.0.0.1"])

    def inside(self):
        """Where a routed frame comes from: host, its MAC, its addresses, the router's MAC and interface."""
        i = self.rng.choice(self.routed)
        host, v4, v6, mac = self.rng.choice(self.stations[i])
        return host, mac, v4, v6, PORT_MAC.get(i) or BRIDGE_MAC[i], i

    def volley_routed(self):
        host, mac, v4, v6, router, i = self.inside()
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 6)):
            six = self.six and self.chance(0.4)
            dst = self.destination(six)
            make = self.frames.tcp if self.chance(0.2) else self.frames.udp
            frames.append(make(router, mac, v6 if six else v4, dst).hex())
            say.append(dst)
        return {"from": host, "kind": "good", "say": f"{i}: to {' '.join(say)}", "frames": frames}

    def volley_odd(self):
        host, mac, v4, v6, router, i = self.inside()
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 8)):
            six = self.six and self.chance(0.4)
            own = f"fd0{INDEX[i]}::1" if six else f"10.{INDEX[i]}.0.1"
            dst = self.destination(six)
            name, frame = self.frames.odd(router, mac, v6 if six else v4, dst, own)
            frames.append(frame.hex())
            say.append(f"{name} {dst}")
        return {"from": host, "kind": "odd", "say": f"{i}: {', '.join(say)}", "frames": frames}

    def volley_ecmp(self):
        """One destination of a multipath route, many flows, each twice."""
        host, mac, v4, v6, router, i = self.inside()
        prefix = self.rng.choice([p for p, multi in self.routes.items() if multi])
        net = ipaddress.ip_network(prefix)
        six = net.version == 6
        if net.prefixlen == 0:
            net = ipaddress.ip_network("fd77::/32" if six else "77.0.0.0/16")
        dst = str(net[self.rng.randrange(min(net.num_addresses, 250))])
        frames = []
        number = next(self.frames.number)
        for flow in range(FLOWS):
            for again in range(2):
                frames.append(self.frames.udp(router, mac, v6 if six else v4, dst, sport=2000 + 37 * flow, dport=53,
                                              data=b"ECMP %05d %02d %d" % (number, flow, again)).hex())
        return {"from": host, "kind": "ecmp", "say": f"{i}: to {dst}", "frames": frames}

    def l2_place(self):
        _, members = self.rng.choice(list(self.bridges.items()))
        return f"h{self.rng.choice(members)[3:]}"

    def volley_l2(self):
        h = self.l2_place()
        mine = MAC[h] if self.chance(0.8) else self.rng.choice(list(MAC.values())[:4] + ["02:00:00:00:00:77"])
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 5)):
            dst = self.rng.choice([*list(MAC.values())[:4], NOBODY, "02:00:00:00:00:77", "02:00:00:0f:00:07"])
            frame = self.frames.udp(dst, mine, "192.0.2.1", "192.0.2.2")
            if self.chance(0.15):
                frame = frame[:12] + b"\x81\x00\x00\x64" + frame[12:]
            frames.append(frame.hex())
            say.append(dst[-2:])
        return {"from": h, "kind": "good", "say": f"bridged from {mine[-2:]} to {' '.join(say)}", "frames": frames}

    def volley_l2_odd(self):
        h = self.l2_place()
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 5)):
            dst = self.rng.choice([BROADCAST, "01:00:5e:01:02:03", "33:33:00:00:12:34", "01:80:c2:00:00:00",
                                   "01:80:c2:00:00:0e", "01:80:c2:00:00:10", MAC[h], "00:00:00:00:00:00",
                                   *PORT_MAC.values(), *BRIDGE_MAC.values()])
            name, frame = self.frames.odd(dst, MAC[h], "192.0.2.1", "192.0.2.2", "192.0.2.1")
            frames.append(frame.hex())
            say.append(f"{name} {dst[-5:]}")
        return {"from": h, "kind": "odd", "say": f"bridged: {', '.join(say)}", "frames": frames}

    def volley_nowhere(self):
        h = self.rng.choice(HOSTS)
        return {"from": h, "kind": "odd", "say": "to a port that does nothing", "frames": [
            self.frames.udp(PORT_MAC[f"swp{h[1:]}"], MAC[h], "10.1.0.2", "10.2.0.2").hex()]}


def neighbour_times(i):
    """Short enough that a neighbour who does not answer has failed within a step, long enough for one who does."""
    return [f"sysctl {f}/neigh/{i}/{k}" for f in ("ipv4", "ipv6")
            for k in ("mcast_solicit=3", "ucast_solicit=1", "retrans_time_ms=250")]


def link_local(mac):
    """RFC 4291, appendix A."""
    b = bytes.fromhex(mac.replace(":", ""))
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + bytes([b[0] ^ 2]) + b[1:3] + b"\xff\xfe" + b[3:]))
