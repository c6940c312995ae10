# SPDX-License-Identifier: Apache-2.0
"""The two switches that scenarios are played on, side by side, and how they are made new between scenarios."""

import collections
import itertools
import os
import re
import socket
import subprocess
import time

from lib import net, packet, twin
from lib.switch import PACE, PREFIX, AsicSwitch, KernelSwitch

from .inside import Inside
from .routing import RULES, TABLE
from .tool import Tool
from .world import INDEX, PORT_MAC, VRFS, neighbour_times

_count = itertools.count(1)
# What a scenario may set, as it is before one
SETTINGS = [f"ipv4/conf/{p}/{k}" for p in PORT_MAC for k in
            ("forwarding=1", "rp_filter=0", "ignore_routes_with_linkdown=0")] \
    + [f"ipv6/conf/{p}/disable_ipv6=1" for p in PORT_MAC] + ["ipv6/conf/all/forwarding=1", "ipv4/ip_forward=1"]


def route_error(frame):
    """Of what the kernel answers where it has no route, or one that says so (`ip_error`): the address that it is sent
    to; None of other frames."""
    if frame[12:14] == b"\x81\x00":
        frame = frame[:12] + frame[16:]
    is_one = frame[12:14] == b"\x08\0" and len(frame) >= 62 and frame[23] == 1 and frame[34:36] in (
        b"\3\0", b"\3\1", b"\3\x0d")
    return frame[30:34] if is_one else None


class Side:
    """One of the two: the switch, its wires, and commands to it."""

    def __init__(self, sw):
        self.sw = sw
        self.inside = Inside(sw.ns.name)
        self.tools = {}
        self.cut = set()   # hosts whose cable is cut
        self.answers = {}  # host -> {address as bytes: MAC as bytes}
        self.catcher = packet.Catcher()
        self.wires = {h: packet.Wire(host.ns, catcher=self.catcher,
                                     answer=lambda f, h=h: answer(f, self.answers.get(h)))
                      for h, host in sw.hosts.items()}

    def tool(self, *words):
        """`ip`, `ip -6`, `bridge` or `tc` in the switch's namespace, as long as a scenario lasts."""
        if words not in self.tools:
            self.tools[words] = Tool(words, self.inside.spawn)
        return self.tools[words]

    def put_away(self):
        """Ends these."""
        for t in self.tools.values():
            t.close()
        self.tools = {}

    def show(self, tool):
        """Starts a command that answers several questions: its process, to be given them."""
        return self.inside.spawn([*tool, "-force", "-batch", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True)

    def close(self):
        self.catcher.close()
        for w in self.wires.values():
            w.close()
        self.put_away()
        self.inside.close()
        self.sw.delete()


def answer(frame, table):
    """The answer of a host to ARP or neighbour solicitation for an address of its own (RFC 826, RFC 4861), or None."""
    if not table or len(frame) < 42:
        return None
    kind = packet.ethertype(frame)
    if kind == packet.ETH_ARP and frame[20:22] == b"\0\1":
        mine = table.get(frame[38:42])
        return mine and (frame[6:12] + mine + frame[12:20] + b"\0\2" + mine + frame[38:42]
                         + frame[22:32]).ljust(60, b"\0")
    if kind == packet.ETH_IP6 and len(frame) >= 78 and frame[20] == 58 and frame[54] == 135:
        mine = table.get(frame[62:78])
        if not mine or frame[22:38] == bytes(16):
            return None
        src, dst = socket.inet_ntop(socket.AF_INET6, frame[62:78]), socket.inet_ntop(socket.AF_INET6, frame[22:38])
        body = packet.icmpv6(src, dst, 136, 0, b"\x60\0\0\0" + frame[62:78] + b"\2\1" + mine)
        return frame[6:12] + mine + b"\x86\xdd" + packet.ipv6(src, dst, 58, body, hlim=255)
    return None


class _Maker:
    """What `twin.lone` asks for its switches."""

    def __init__(self, profile):
        self.profile = profile
        self.switches = []

    def asic(self):
        self.switches.append(AsicSwitch(f"{PREFIX}{os.getpid()}-{next(_count)}-", profile=self.profile))
        return self.switches[-1]

    def kernel(self, **kw):
        self.switches.append(KernelSwitch(f"{PREFIX}{os.getpid()}-{next(_count)}-", **kw))
        return self.switches[-1]


class Traces:
    """What a scenario's commands made, by the commands: what is to be taken away after it."""

    def __init__(self):
        self.names = {}       # links, in the order in which they came
        self.renamed = {}     # new name -> old one
        self.filters = {}     # (port, hook, preference)
        self.rules = self.moved = False  # rules of its own; was the one of table local moved
        self.tables = False   # of VRFs and of rules
        self.six = False      # IPv6

    def note(self, command):
        made = re.match(r"ip link add (?:link \S+ name )?(\S+)", command)
        renamed = re.match(r"ip link set (\S+) name (\S+)", command)
        filtered = re.match(r"tc filter \S+ dev (\S+) (\S+) pref (\d+)", command)
        if made:
            self.names[made[1]] = True
        elif renamed and renamed[2] == renamed[1] + "r":
            self.renamed[renamed[2]] = renamed[1]
        elif filtered:
            self.filters[filtered.groups()] = True
        self.rules = self.rules or re.match(r"ip (-6 )?rule ", command) is not None
        self.moved = self.moved or "rule del pref 0" in command
        self.tables = self.tables or self.rules or " type vrf " in command
        self.six = self.six or re.search(r"::|-6 |disable_ipv6=0", command) is not None

    def links(self):
        """Lines of `ip` that take away the links."""
        return [f"link set {new} name {old}" for new, old in self.renamed.items()] \
            + [f"link del {n}" for n in reversed(self.names)]

    def routing(self):
        """Lines of `ip` for one family: rules and tables beside the main one."""
        lines = [f"rule del pref {p}" for p in RULES] * 3 if self.rules else []
        if self.moved:
            lines += ["rule del pref 0", "rule add pref 0 table local protocol kernel", "rule del pref 32765"]
        return lines + ([f"route flush table {t}" for t in (TABLE, *VRFS.values())] if self.tables else [])


def prepare(sw, have=()):
    """Settings that no message tells of, before there are daemons and ports: as they stay for all scenarios."""
    sw.router()
    if "vrf" in have:  # the rule of VRFs comes with a namespace's first one, and stays
        sw.ns.ip_batch(["link add tnt-v type vrf table 4242", "link del tnt-v"])
    sw.ns.sysctl(ipv4__fib_multipath_hash_policy=1, ipv6__fib_multipath_hash_policy=1, ipv6__conf__all__accept_dad=0,
                 ipv6__conf__default__accept_dad=0, ipv6__conf__default__router_solicitations=0,
                 ipv6__conf__default__accept_ra=0)
    if os.path.isdir("/proc/sys/net/bridge"):
        sw.ns.sysctl(**{f"bridge__bridge-nf-call-{t}tables": 0 for t in ("ip", "ip6", "arp")})


class Bench:
    """Kernel alone and kernel + ASIC with one profile, used by many scenarios."""

    def __init__(self, profile, have=()):
        self.profile = profile
        self.have = have
        self.traces = Traces()
        self.errors = collections.defaultdict(list)  # (side, address) -> when ICMP errors of routes came
        with open("/proc/sys/net/ipv4/route/error_cost", encoding="utf-8") as f:
            self.limited = f.read().strip() != "0"  # the machine's, not a namespace's
        self.sides = []
        self.made = _Maker(profile)
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self):
        switches = twin.lone(self.made, prepare=lambda sw: prepare(sw, self.have))
        self.kernel, self.asic = self.sides = [Side(sw) for sw in switches]
        self.hasten()
        # addresses that ports had at first: what the kernel sent from these is on its way for up to a second
        self.born = {packet.mac(m) for m in twin.port_macs(self.asic.sw).values()}
        if "tc" in self.have:  # before kernel 6.6 switchd has made one on its side: that stays
            for side in self.sides:
                side.tool("tc").begin([f"qdisc replace dev {p} clsact" for p in PORT_MAC])
                side.tool("tc").end()
        for sw in switches:
            for h in sw.hosts.values():
                h.ns.ip("link set eth0 mtu 9000")
        for p in PORT_MAC:
            self.asic.sw.front.ip(f"link set p{p[3:]} mtu 9000")
        for side in self.sides:
            side.inside.sysctl([s.removeprefix("sysctl ") for p in PORT_MAC for s in neighbour_times(p)])
        self.log_at = {"asicd": 0, "switchd": 0}
        self.empty = None
        self.reset()
        self.empty, self.empty_shown = self.state(), self.shown()
        self.warnings()

    # ------------------------------------------------------------------------------------------------- commands

    def both(self, tool, lines):
        """The same lines to both kernels; what they refused, of each."""
        if not lines:
            return "", ""
        running = [side.tool(*tool) for side in self.sides]
        for t in running:
            t.begin(lines)
        return tuple(t.end() for t in running)

    def sysctl(self, settings):
        return tuple(side.inside.sysctl(settings) for side in self.sides)

    def sync(self, seconds=12):
        self.asic.sw.api("switchd", "POST", "/v1/sync", {"timeout_ms": int(seconds * 1000 * PACE)}, timeout=60)

    def restart(self):
        self.asic.sw.tandem("up", timeout=60 * PACE)
        self.hasten()

    def hasten(self):
        """Gives the daemons the priority that this process's session has: theirs is another (sched(7), autogroup)."""
        try:
            with open("/proc/self/autogroup", encoding="ascii") as f:
                group = f.read().split()
            # Empty: this process is in a control group for processors, and such a session has no group of its own
            for d in ("asicd", "switchd") if group else ():
                with open(f"/proc/{self.asic.sw.pid(d)}/autogroup", "w", encoding="ascii") as f:
                    f.write(group[-1])
        except OSError:
            pass  # a kernel without such groups

    def carriers(self, timeout=6.0):
        """Waits until both sides' ports agree on being up and having carrier: the kernel's link watch takes a while."""
        end = time.monotonic() + timeout * PACE
        names = [*INDEX, *self.traces.renamed]
        pause = 0.01
        while True:
            want, got = (s.inside.flags(*names) for s in self.sides)
            if want == got or time.monotonic() > end:
                return [f"{n}: (up, link, carrier) {want[n]} in the kernel alone, {got[n]} with ASIC"
                        for n in names if want[n] != got[n]]
            time.sleep(pause)
            pause = min(0.1, pause * 1.5)  # the question takes the kernel's configuration lock, as its link watch does

    def bonds(self, timeout=3.0):
        """Waits until both sides' bonds have seen what their members' links do. What still differs, and the hosts
        behind each bond whose members share flows by a hash.

        Which one is active of several that could be, hangs on when each side's bond looked at its members: then the
        switch with the ASIC is told to take the kernel's."""
        end = time.monotonic() + timeout * PACE
        while True:
            want, got = (s.inside.bonds() for s in self.sides)
            seen = all(up == all(flags) for side, bonds in zip(self.sides, (want, got)) for _, _, members in
                       bonds.values() for flags, up in ((side.inside.flags(m)[m], up) for m, up in members.items()))
            if seen and want == got or time.monotonic() > end:
                break
            if seen:
                self.asic.tool("ip").begin([
                    f"link set {name} type bond active_slave {active}" for name, (_, active, members) in want.items()
                    if active and name in got and got[name][1] != active and members == got[name][2]])
                self.asic.tool("ip").end()
            time.sleep(0.02)
        shared = [[f"h{m[3]}" for m in members] for mode, _, members in want.values() if "xor" in mode]
        return [f"bond {n}: {want.get(n)} in the kernel alone, {got.get(n)} with ASIC"
                for n in {**want, **got} if want.get(n) != got.get(n)], shared

    def unlearned(self):
        """Stations that the chip could not learn since it was started: no room."""
        return self.asic.sw.api("asicd", "GET", "/v1/learning")["items"][0]["full"]

    def unknown(self):
        """Stations of which the chip has fewer entries than the kernel alone, as octets."""
        chip, at = {}, ""
        while at is not None:
            page = self.asic.sw.api("asicd", "GET", f"/v1/table/fdb{at}")
            for row in page["items"]:
                mac = packet.mac(row["mac"])
                chip[mac] = chip.get(mac, 0) + 1
            at = f"?cursor={page['next']}" if page.get("next") is not None else None
        return {mac for mac, n in self.kernel.inside.stations().items() if chip.get(mac, 0) < n}

    def asked(self):
        """Neighbours that switchd has asked the kernel for, since it was started."""
        return self.asic.sw.api("switchd", "GET", "/v1/status")["upkeep"]["neighbours_used"]

    def looking(self):
        """Is one of the kernels looking for a neighbour?"""
        return any(side.inside.looking() for side in self.sides)

    def spend(self, side, frame):
        """Notes an ICMP error of which there may be only so many; one about a packet that was sent again counts."""
        address = route_error(frame) if self.limited else None
        if address:
            self.errors[side, address].append(time.monotonic())

    def spent(self, frame):
        """Whether a limit may have kept that error back on one side: an address gets five, then one a second
        (net/ipv4/route.c `ip_error`), so which ones hangs on time."""
        address = route_error(frame) if self.limited else None
        since = time.monotonic() - 8 * PACE
        return bool(address) and any(sum(t > since for t in self.errors[side, address]) > 4 for side in (0, 1))

    def received(self):
        """Frames the chip's ports have taken from their cables so far."""
        return sum(row["counters"]["rx_packets"] + row["counters"]["rx_dropped"]
                   for row in self.asic.sw.api("asicd", "GET", "/v1/ports")["items"])

    # ----------------------------------------------------------------------------------------------- new again

    def reset(self):
        """Both switches as they were made; what was left behind, as lines: then they must not be used again."""
        alive = all(net.pid_alive(self.asic.sw.pid(d), d) for d in ("asicd", "switchd"))
        if not alive:
            self.restart()
        self.asic.sw.api("asicd", "POST", "/v1/fault", {"kind": "clear"})
        for side in self.sides:
            side.answers = {}
            for h, host in side.sw.hosts.items():
                if h in side.cut:
                    host.ns.ip("link set eth0 up")
            side.cut = set()
        gone, self.traces = self.traces, Traces()
        lines = [*gone.links(), "nexthop flush", *gone.routing()]
        for p, mac in PORT_MAC.items():
            lines += [f"link set {p} nomaster", f"link set {p} mtu 1500 address {mac} up", f"addr flush dev {p}",
                      f"neigh flush dev {p} nud all", f"neigh flush dev {p} nud permanent", f"route flush dev {p}"]
        lines += ["route flush table main", "nexthop flush"]
        self.sysctl([f"ipv6/conf/{p}/disable_ipv6=1" for p in PORT_MAC])
        self.both(["ip"], lines)
        if gone.six or gone.tables:
            self.both(["ip", "-6"], [*gone.routing(), "route flush table main", "neigh flush all nud all",
                                     "neigh flush all nud permanent"])
        self.both(["tc"], [f"filter del dev {dev} {hook} pref {pref}" for dev, hook, pref in gone.filters])
        for side in self.sides:
            side.put_away()
        self.sysctl(SETTINGS)
        self.carriers()
        self.sync()
        for side in self.sides:
            for w in side.wires.values():
                w.clear()
        if self.empty is None:
            return []
        now = self.state()
        if now == self.empty:
            return []
        shown, before = self.shown(), self.empty_shown
        return [f"{k}: gone {sorted(before[k] - shown[k])}, more {sorted(shown[k] - before[k])}" for k in shown
                if shown[k] != before[k]] or [f"{k}: gone {self.empty[k] - now[k]}, more {now[k] - self.empty[k]}"
                                              for k in now if now[k] != self.empty[k]]

    def state(self):
        """What must be the same after every reset, as sets."""
        pools = self.asic.sw.api("asicd", "GET", "/v1/resources")["items"]
        return {"kernel": self.kernel.inside.everything(), "asic": self.asic.inside.everything(),
                "chip": {(p["name"], p["used"] + p["in_flight"]) for p in pools}}

    def shown(self):
        """The same for people to read."""
        shown = ["route show table all", "neigh show nud all", "nexthop show", "rule show"]
        running = [(f"{name}: ip {family}", side.show(["ip", family]))
                   for name, side in zip(("kernel", "asic"), self.sides) for family in ("-4", "-6")]
        found = {}
        for name, p in running:
            out, _ = p.communicate("\n".join(shown) + "\n", timeout=30)
            found[name] = {" ".join(x.split()) for x in out.splitlines()
                           if x.split()[-1:] not in (["NOARP"], ["FAILED"], ["INCOMPLETE"])}
        pools = self.asic.sw.api("asicd", "GET", "/v1/resources")["items"]
        found["chip"] = {f"{p['name']}: {p['used'] + p['in_flight']}" for p in pools}
        return found

    def warnings(self, excused=lambda daemon, line: False):
        """What the daemons' logs have said since the last call that is a warning or worse. `excused(daemon, line)`: it
        was to be expected."""
        found = []
        for daemon in ("asicd", "switchd"):
            text = self.asic.sw.log(daemon)
            new = text[self.log_at[daemon]:] if len(text) >= self.log_at[daemon] else text
            self.log_at[daemon] = len(text)
            found += [f"{daemon}: {line}" for line in new.splitlines()
                      if re.search(r"panicked|overflow", line)
                      or re.search(r"\b(WARN|ERROR)\b", line) and not excused(daemon, line)]
        return found

    def logs(self):
        return {d: self.asic.sw.log(d) for d in ("asicd", "switchd")}

    def close(self):
        for side in self.sides:
            side.close()
        for sw in self.made.switches[len(self.sides):]:
            sw.delete()
