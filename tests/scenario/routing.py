# SPDX-License-Identifier: Apache-2.0
"""Routers: addresses, neighbours, routes, next-hop objects, VRFs and policy rules, and how they change."""

from lib.twin import MAC, NOBODY

from .world import GROUPS, OTHER_MACS, POOL4, POOL6, PORT_MAC, VRFS, WIDE, station_places

LOCAL_BEHIND = [f"ip {f}rule {x}" for f in ("", "-6 ") for x in ("add pref 32765 table local", "del pref 0")]
LOCAL_FIRST = [f"ip {f}rule {x}" for f in ("", "-6 ") for x in ("add pref 0 table local", "del pref 32765")]
RULES = range(100, 106)  # preferences of a scenario's own policy rules
TABLE = 99               # the table they lead to


class Routing:
    """Part of the maker."""

    def addresses(self, i):
        """Addresses of an interface, and its stations, of which some are known and some have to be asked for."""
        do = [f"ip addr add {self.v4(i)}/24 dev {i}"]
        if self.six:
            do.append(f"ip addr add {self.v6(i)}/64 dev {i} nodad")
        self.stations[i] = []
        for host, last, mac in station_places(self, i):
            v4, v6 = self.v4(i, last), self.v6(i, last)
            self.stations[i].append((host, v4, v6, mac))
            for address in (v4, v6) if self.six else (v4,):
                draw = self.rng.random()
                if draw < 0.65:
                    do.append(f"ip neigh replace {address} lladdr {mac} dev {i} nud permanent")
                elif draw < 0.9:
                    for h in self.beside(host):
                        self.answers[h][address] = mac
                elif draw < 0.95:
                    do.append(f"ip neigh replace {address} dev {i} nud failed")
        return do

    def again(self, i):
        """What an interface has lost by having been down for a moment: IPv6 addresses, neighbours."""
        do = [f"ip addr replace {self.v6(i)}/64 dev {i} nodad"] if self.six else []
        for _, v4, v6, mac in self.stations.get(i, ()):
            do += [f"ip neigh replace {a} lladdr {mac} dev {i} nud permanent"
                   for a in ((v4, v6) if self.six else (v4,)) if self.chance(0.7)]
        return do

    def fill_up(self):
        """More routes, neighbours or stations than `tiny` has room for."""
        i = self.rng.choice(self.routed)
        vrf = self.in_vrf(i)
        kind = self.rng.choice(["routes", "routes", "routes6", "neighbours", "nexthops", "mixed"])
        do = []
        via = self.stations[i][0][1] if self.stations[i] else self.v4(i, 2)
        via6 = self.stations[i][0][2] if self.stations[i] else self.v6(i, 2)
        if kind in ("routes", "mixed"):
            do += [f"ip route add 30.0.{k}.0/24 via {via}{vrf}" for k in range(40 if kind == "routes" else 15)]
        if kind == "routes6" and self.six:
            do += [f"ip route add fd30:{k:x}::/32 via {via6}{vrf}" for k in range(40)]
        if kind in ("neighbours", "mixed"):
            do += [f"ip neigh replace {self.v4(i, 100 + k)} lladdr 02:00:00:0e:00:{k:02x} dev {i} nud permanent"
                   for k in range(40 if kind == "neighbours" else 15)]
        if kind in ("nexthops", "mixed"):
            for k in range(10):
                to = self.v4(i, 200 + k)
                do.append(f"ip neigh replace {to} lladdr 02:00:00:0d:00:{k:02x} dev {i} nud permanent")
                do.append(f"ip route add 31.0.{k}.0/24 via {to}{vrf}")
        return do

    # ----------------------------------------------------------------------------------------- routes, neighbours

    def gateway(self, six, vrf=None):
        """A station and its interface; `vrf`: one of that VRF's ("" is the default one), if it has any."""
        places = [i for i in self.routed if self.stations.get(i)
                  and (vrf is None or self.vrf.get(i, "") == vrf)] or self.routed
        i = self.rng.choice(places)
        if not self.stations[i]:
            return (self.v6(i, 2) if six else self.v4(i, 2)), i
        _, v4, v6, _ = self.rng.choice(self.stations[i])
        return (v6 if six else v4), i

    def churn_route(self):
        six = self.six and self.chance(0.4)
        f = "6" if six else "4"
        prefix = self.rng.choice(POOL6 if six else POOL4)
        verb = self.rng.choice(["add", "replace", "replace", "append" if not six else "add"])
        metric = f" metric {self.rng.choice([10, 20])}" if self.chance(0.25) else ""
        draw = self.rng.random()
        via, dev = self.gateway(six)
        vrf = self.in_vrf(dev)
        if self.vrf and self.chance(0.05):
            vrf = self.rng.choice(["", *(f" vrf {v}" for v in VRFS)])  # from one VRF into another
        if draw < 0.45:
            what = f"via {via} dev {dev}"
        elif draw < 0.62 and (self.wide or prefix not in WIDE):
            gateways = {self.gateway(six, self.vrf.get(dev, "")) for _ in range(self.rng.randrange(2, 4))}
            ways = [f"nexthop via {v} dev {d} weight {self.rng.choice([1, 1, 2, 3])}" for v, d in sorted(gateways)]
            what = " ".join(ways)
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
                    f"{prefix}{metric}{vrf}"]
        return [f"ip route {verb} {prefix}{metric}{vrf} {what}"]  # `nexthop` ends what may be said of a route

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
                    + "/".join(f"{m},{self.rng.choice([1, 1, 2])}" for m in members) + self.resilient(k)]
        if self.nexthops and draw < 0.5:
            k = self.rng.choice(list(self.nexthops))
            del self.nexthops[k]
            return [f"ip nexthop del id {k}"]
        k = self.rng.randrange(1, 9) + (10 if f == "6" else 0)
        self.nexthops[k] = f
        if draw < 0.58:
            return [f"ip {'-6 ' if f == '6' else ''}nexthop replace id {k} blackhole"]
        return [f"ip nexthop replace id {k} via {via} dev {dev}"]

    def make_group(self):
        """Next-hop objects, a group of them that may be resilient, and a route that leads there."""
        f = "6" if self.six and self.chance(0.4) else "4"
        first = self.gateway(f == "6")
        vrf = self.vrf.get(first[1], "")
        gateways = {first, *(self.gateway(f == "6", vrf) for _ in range(3))}
        prefix = self.rng.choice([p for p in (POOL6 if f == "6" else POOL4) if self.wide or p not in WIDE])
        self.group = self.rng.choice(GROUPS[:2] if f == "4" else GROUPS[2:])
        do = []
        for k, (via, dev) in enumerate(sorted(gateways), 21):
            self.nexthops[k] = f
            self.grouped[k] = f"ip nexthop replace id {k} via {via} dev {dev}"
            do.append(self.grouped[k])
        self.nexthops[self.group] = "group" + f
        self.routes[prefix] = True
        return [*do, self.group_of(self.grouped), f"ip route replace {prefix}{self.in_vrf(first[1])} nhid {self.group}"]

    def group_of(self, members):
        some = "/".join(f"{m},{self.rng.choice([1, 1, 2])}" for m in sorted(members))
        return f"ip nexthop replace id {self.group} group {some}{self.resilient(self.group)}"

    def change_group(self):
        """Other weights, a member that goes and perhaps comes back, all of them again."""
        members = list(self.grouped)
        draw = self.rng.random()
        if draw < 0.4:
            return [self.group_of(self.rng.sample(members, self.rng.randrange(1, len(members) + 1)))]
        gone = self.rng.choice(members)
        back = [self.grouped[gone], self.group_of(members)] if self.chance(0.5) else []
        return [f"ip nexthop del id {gone}", *back] if draw < 0.8 else [
            *(self.grouped[m] for m in members), self.group_of(members)]

    def resilient(self, group):
        """Its buckets follow the weights at once: with a timer the kernel alone, which uses them, keeps what the kernel
        beside the ASIC, which doesn't, gives away."""
        n = self.buckets.get(group)
        return f" type resilient buckets {n} idle_timer 0" if n else ""

    def churn_neighbour(self):
        i = self.rng.choice([i for i in self.routed if self.stations[i]] or self.routed)
        if not self.stations[i]:
            return []
        _, v4, v6, mac = self.rng.choice(self.stations[i])
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
        n = self.index[i]
        six = self.six and self.chance(0.3)
        address = f"{self.v6(i)}/64" if six else f"{self.v4(i)}/24"
        draw = self.rng.random()
        if draw < 0.35:
            return [f"ip addr del {address} dev {i}"]
        if draw < 0.5:
            return [f"ip addr add 10.{n + 10}.0.1/24 dev {i}"]
        if draw < 0.65:
            return [f"ip addr add 10.{n}.0.{self.rng.choice([1, 9])}/{self.rng.choice([16, 24, 32])} dev {i}"]
        return [f"ip addr add {address} dev {i}" + (" nodad" if six else "")]

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
            return [f"ip link set {i} address {self.rng.choice([PORT_MAC[i], OTHER_MACS[0]])}"]
        return [f"sysctl ipv4/conf/{i}/ignore_routes_with_linkdown={self.rng.choice([0, 1])}"]

    def delete_route(self):
        pool = POOL6 if self.six and self.chance(0.4) else POOL4
        vrfs = ["", *(f" vrf {v}" for v in sorted(set(self.vrf.values())))]
        return [f"ip route del {self.rng.choice(pool)}{self.rng.choice(vrfs) if len(vrfs) > 1 else ''}"
                for _ in range(3)]

    # ------------------------------------------------------------------------------------------------------- VRFs

    def make_vrfs(self):
        """One or two, with some of the routed interfaces in them; before these have addresses."""
        do = []
        names = list(VRFS)[:self.rng.choice([1, 1, 2])]
        for name in names:
            do += [f"ip link add {name} type vrf table {VRFS[name]}", f"ip link set {name} up"]
        if self.chance(0.8):
            do += LOCAL_BEHIND
        for i in self.routed:
            if self.chance(0.65):
                self.vrf[i] = self.rng.choice(names)
                do.append(f"ip link set {i} master {self.vrf[i]}")
        for name in names:
            if self.chance(0.6):  # else what the VRF doesn't know the main table does
                do.append(f"ip route add unreachable default metric 4278198272 vrf {name}")
                if self.six:
                    do.append(f"ip -6 route add unreachable default metric 4278198272 vrf {name}")
        return do

    def churn_vrf(self):
        i = self.rng.choice(self.routed)
        names = sorted(set(self.vrf.values())) or ["red"]
        draw = self.rng.random()
        if draw < 0.35 and i in self.vrf:
            del self.vrf[i]
            return [f"ip link set {i} nomaster", *self.again(i)]
        if draw < 0.75:
            self.vrf[i] = self.rng.choice(names)
            return [f"ip link set {i} master {self.vrf[i]}", *self.again(i)]
        if draw < 0.83:
            return LOCAL_BEHIND if self.chance(0.7) else LOCAL_FIRST
        name = self.rng.choice(names)
        if draw < 0.92:
            return self.up_and_down(name)
        members = [k for k, v in self.vrf.items() if v == name]
        for k in members:
            del self.vrf[k]
        return [f"ip link del {name}", *(c for k in members for c in self.again(k))]

    def churn_rule(self):
        six = self.six and self.chance(0.3)
        ip = "ip -6" if six else "ip"
        if self.rules and self.chance(0.45):
            rule = self.rng.choice(sorted(self.rules))
            self.rules.discard(rule)
            return [f"ip {'-6 ' if rule[1] == 6 else ''}rule del pref {rule[0]}"]
        pref = self.rng.choice(RULES)
        self.rules.add((pref, 6 if six else 4))
        via, dev = self.gateway(six)
        source = self.rng.choice(self.routed)
        net = f"{self.v6(source, 0)[:-1]}/64" if six else f"{self.v4(source, 0)}/24"
        who = self.rng.choice([f"from {net}", f"from {net}", f"iif {source}", f"from {net} iif {source}",
                               f"to {self.rng.choice(POOL6 if six else POOL4)}", "tos 0x10", "from all"])
        what = self.rng.choice([f"table {TABLE}"] * 4 + ["blackhole", "prohibit", "unreachable"])
        prefix = self.rng.choice(POOL6 if six else POOL4)
        return [f"{ip} route replace {prefix} via {via} dev {dev} table {TABLE}",
                f"{ip} rule add pref {pref} {who} {what}"]
