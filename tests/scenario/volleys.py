# SPDX-License-Identifier: Apache-2.0
"""Volleys: frames that leave one host at once. Routed, odd, over many ways, bridged; with the tags of their VLANs."""

import ipaddress

from lib.twin import HOSTS, MAC, NOBODY, tagged

from .frames import BROADCAST
from .world import BRIDGE_MAC, POOL4, POOL6, PORT_MAC, VIDS

FLOWS = 48   # of an ECMP volley; each is sent twice


class Volleys:
    """Part of the maker."""

    def hello(self):
        """Every host is heard once in each VLAN, so that both switches know the same stations when something else
        speaks."""
        if not self.bridges:
            return []
        made = []
        for h in HOSTS:
            vids = [None]
            for br, table in self.vlans.items():
                vids += [v for v, how in table.get(self.member(br, h), {}).items() if "pvid" not in how]
            made.append({"from": h, "kind": "odd", "say": "hello", "frames": [
                with_tag(self.frames.udp(BROADCAST, MAC[h], "192.0.2.1", "192.0.2.255"), v).hex() for v in vids]})
        return made

    def volleys(self):
        made = []
        for _ in range(self.rng.randrange(2, 6)):
            kinds = []
            if self.bridges:
                kinds += [self.volley_l2] * 3 + [self.volley_l2_odd]
                if self.snoops:
                    kinds += [self.volley_member] * 3 + [self.volley_group] * 4
            if self.routed:
                kinds += [self.volley_routed] * 4 + [self.volley_odd] * 3
                if any(self.routes.values()):
                    kinds += [self.volley_ecmp] * 2
            if not kinds:
                kinds = [self.volley_nowhere]
            made.append(self.rng.choice(kinds)())
        return made

    # --------------------------------------------------------------------------------------------------- routed

    def destination(self, six):
        """An address that no multipath route may have to answer for: which member a flow takes is free, so those
        destinations have volleys of their own (`volley_ecmp`)."""
        multi = [ipaddress.ip_network(p) for p, is_multi in self.routes.items() if is_multi]
        for _ in range(50):
            address = self.any_destination(six)
            if not any(ipaddress.ip_address(address) in net for net in multi):
                return address
        return "::1" if six else "127.0.0.77"  # nobody's: no route is asked for these

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
        i = self.rng.choice(self.routed)
        return self.rng.choice([f"30.0.{self.rng.randrange(40)}.9", f"31.0.{self.rng.randrange(10)}.9",
                                self.v4(i, self.rng.randrange(100, 140)), self.v4(i, 255), "99.0.0.1"])

    def inside(self):
        """Where a routed frame comes from: host, its MAC, its addresses, the router's MAC, interface, VLAN id."""
        i = self.rng.choice([i for i in self.routed if self.stations[i]] or self.routed)
        if not self.stations[i]:  # nobody is in that VLAN
            h = self.rng.choice(HOSTS)
            return h, MAC[h], self.v4(i, 2), self.v6(i, 2), self.mac[i], i, None
        host, v4, v6, mac = self.rng.choice(self.stations[i])
        vid = self.tag(i, host)
        if self.vlans and self.chance(0.05):
            vid = self.rng.choice([None, 0, *VIDS])
        return host, mac, v4, v6, self.mac[i], i, vid

    def volley_routed(self):
        host, mac, v4, v6, router, i, vid = self.inside()
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 6)):
            six = self.six and self.chance(0.4)
            dst = self.destination(six)
            make = self.frames.tcp if self.chance(0.2) else self.frames.udp
            frames.append(with_tag(make(router, mac, v6 if six else v4, dst), vid).hex())
            say.append(dst)
        return {"from": host, "kind": "good", "say": f"{i}: to {' '.join(say)}", "frames": frames}

    def volley_odd(self):
        host, mac, v4, v6, router, i, vid = self.inside()
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 8)):
            six = self.six and self.chance(0.4)
            own = self.v6(i) if six else self.v4(i)
            dst = self.destination(six)
            name, frame = self.frames.odd(router, mac, v6 if six else v4, dst, own)
            frames.append(with_tag(frame, vid).hex())
            say.append(f"{name} {dst}")
        return {"from": host, "kind": "odd", "say": f"{i}: {', '.join(say)}", "frames": frames}

    def volley_ecmp(self):
        """One destination of a multipath route, many flows, each twice."""
        host, mac, v4, v6, router, i, vid = self.inside()
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
                frames.append(with_tag(self.frames.udp(
                    router, mac, v6 if six else v4, dst, sport=2000 + 37 * flow, dport=53,
                    data=b"ECMP %05d %02d %d" % (number, flow, again)), vid).hex())
        return {"from": host, "kind": "ecmp", "say": f"{i}: to {dst}", "frames": frames}

    # -------------------------------------------------------------------------------------------------- bridged

    def l2_place(self):
        """A host behind a bridge, and the VLAN ids that its frames may have there (None: no tag)."""
        br, members = self.rng.choice(list(self.bridges.items()))
        member = self.rng.choice(members)
        vids = [None]
        if br in self.vlans:
            mine = self.vlans[br].get(member, {})
            vids = [None if "pvid" in how else v for v, how in mine.items()] or [None]
        return self.rng.choice(self.hosts_of(member)), vids

    def any_tag(self, vids):
        """One that the port takes, most of the time; without a filter nearly none."""
        if self.chance(0.15):
            return self.rng.choice([100, 100, 0, *(VIDS if self.vlans else ())])
        return self.rng.choice(vids)

    def volley_l2(self):
        h, vids = self.l2_place()
        mine = MAC[h] if self.chance(0.8) else self.rng.choice(list(MAC.values())[:4] + ["02:00:00:00:00:77"])
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 5)):
            dst = self.rng.choice([*list(MAC.values())[:4], NOBODY, "02:00:00:00:00:77", "02:00:00:0f:00:07"])
            vid = self.any_tag(vids)
            frames.append(with_tag(self.frames.udp(dst, mine, "192.0.2.1", "192.0.2.2"), vid).hex())
            say.append(dst[-2:] + (f" ({vid})" if vid is not None else ""))
        return {"from": h, "kind": "good", "say": f"bridged from {mine[-2:]} to {' '.join(say)}", "frames": frames}

    def volley_l2_odd(self):
        h, vids = self.l2_place()
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 5)):
            dst = self.rng.choice([BROADCAST, "01:00:5e:01:02:03", "33:33:00:00:12:34", "01:80:c2:00:00:00",
                                   "01:80:c2:00:00:0e", "01:80:c2:00:00:10", MAC[h], "00:00:00:00:00:00",
                                   *PORT_MAC.values(), *BRIDGE_MAC.values()])
            # what the switch takes for itself is routed: as in `destination`
            multi = dst in (*PORT_MAC.values(), *BRIDGE_MAC.values()) and any(
                ipaddress.ip_address(a) in ipaddress.ip_network(p) for p, m in self.routes.items() if m
                for a in ("192.0.2.1", "192.0.2.2"))
            to, own = ("127.0.0.77", "127.0.0.77") if multi else ("192.0.2.2", "192.0.2.1")
            name, frame = self.frames.odd(dst, MAC[h], "192.0.2.1", to, own)
            frames.append(with_tag(frame, self.any_tag(vids) if len(frame) >= 14 else None).hex())
            say.append(f"{name} {dst[-5:]}")
        return {"from": h, "kind": "odd", "say": f"bridged: {', '.join(say)}", "frames": frames}

    def volley_nowhere(self):
        h = self.rng.choice(HOSTS)
        return {"from": h, "kind": "odd", "say": "to a port that does nothing", "frames": [
            self.frames.udp(PORT_MAC[f"swp{h[1:]}"], MAC[h], "10.1.0.2", "10.2.0.2").hex()]}


def with_tag(frame, vid):
    return frame if vid is None else tagged(frame, vid)
