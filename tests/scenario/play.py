# SPDX-License-Identifier: Apache-2.0
"""Plays one scenario on a bench and says what differs. What may differ: lib/twin.py, docs/testing.md."""

import collections
import ipaddress
import re
import struct
import time

from lib import packet, twin
from lib.switch import PACE

from .quarrels import Quarrels
from .support import Support
from .volleys import FLOWS
from .world import BOND_MAC, BRIDGE_MAC, OTHER_MACS, PORT_MAC

SETTLE = 0.004    # a frame's way through the CPU, at least
PATIENCE = {False: 10, True: 0.7}  # until an answer that hasn't come is missing; in a hurry
SYNC = {False: 12, True: 4}         # until the switch must be in sync
hurried = False
ended = False
NUMBER = re.compile(rb"#\d{6}")
NO_ROUTER = "a chip that does not route"
LAYER_2 = ("nxp-t1040",)            # profiles of chips that don't route
ECMP = re.compile(rb"ECMP (\d{5}) (\d\d) (\d)")
BRIDGE_MACS = {packet.mac(m) for m in BRIDGE_MAC.values()}
SWITCH_MACS = {packet.mac(m) for m in (*PORT_MAC.values(), *BRIDGE_MAC.values(), *BOND_MAC.values(), *OTHER_MACS)}
GATEWAY = re.compile(r" via (\S+) dev (\S+)")
NO_CHAIN = "Error: Cannot find specified filter chain."
NO_FILTER = "Error: Filter with specified priority/protocol not found."
UNKNOWN = re.compile(r"^RTNETLINK answers: No such file or directory\n(?!Command failed)", re.M)  # of `ip neigh del`
REFUSED = re.compile(r"((?:(?!Command failed).*\n)*)Command failed -:(\d+)\n")  # a line, by a tool that goes on
REACH = re.compile(r"ip link set |bridge link set |host ")  # what may decide who is reached through a bridge
# what may make IPv6 addresses
ADDRESSES = re.compile(r"ip addr (add|replace) \S*:|sysctl ipv6/conf/\S+/disable_ipv6=0|ip link set ")
LINKS = re.compile(r"(ip link set \S+ (up|down|nomaster|master \S+|type bond .*)|host .*)$")  # what bonds look at


def hurry(on):
    """Shorter waits, while a scenario is made small: most of its parts will fail."""
    global hurried
    hurried = on


def end():
    """The scenario that is playing ends before its next step or volley."""
    global ended
    ended = True


class Ended(BaseException):
    """`end` was called."""


class Different(Exception):
    """The two switches don't agree, or a promise is broken: `args[0]` says how, in lines."""


def go_on():
    """Not if `end` was called."""
    if ended:
        raise Ended


class Play:
    """One scenario on one bench."""

    def __init__(self, bench, scenario):
        self.bench = bench
        self.scenario = scenario
        self.own = {ipaddress.ip_address(a).packed for a in scenario["own"]} | {twin.DUMMY}
        self.step = ""
        self.support = Support()
        self.bonded = False      # is there a bond
        self.place = {}          # host -> what a flow's way may be: all hosts behind a bond that hashes are one
        self.disturbed = False   # a fault plan or a restart in this step: the CPU may see anything
        self.counted = collections.Counter()  # what report.py reports
        self.overflowed = False  # a station found no room in the table of MAC addresses
        self.unknown = set()     # stations that the chip then did not know in this step, and the kernel alone did
        self.refused = False     # did a fault plan make the chip refuse objects
        self.unlearned = 0       # stations that had found none when the scenario began
        self.seen = [{h: 0 for h in side.wires} for side in bench.sides]
        self.caught = [{h: collections.Counter() for h in side.wires} for side in bench.sides]
        self.silent = set()      # hosts at ports that are not flooded to
        self.held = set()        # stations at ports whose state was set by hand to one that does not forward
        self.fixed = set()       # stations that were given an entry by hand
        self.gateways = []       # (address, device) of this step's routes and next hops
        self.objects = {}        # next-hop object -> what it is
        self.used = set()        # those that routes have referred to
        self.ever = set()        # all gateways so far
        self.routeless = set()   # IPv6 addresses that were waited for in vain
        self.forgiven = 0        # ICMP errors that were missing
        self.unanswered = set()  # ECMP: volleys for which that was
        self.asked = 0           # neighbours that switchd had asked for when the step began
        self.excused = collections.Counter()  # frames that rules allowed already
        self.unsent = [0, 0]     # ICMP messages that a side's kernel could not send, and that were allowed for
        self.numbers = set()     # of the packets that this step has sent
        self.quarrels = Quarrels()
        self.sources = {}        # ECMP: volley -> host it came from, MAC address of the interface that it came to
        self.flows = [{}, {}]    # ECMP: (volley, flow, repetition) -> list of fates

    def run(self):
        """Raises `Different` at the first step that differs."""
        self.unlearned = self.bench.unlearned()
        for side in self.bench.sides:
            side.answers = {h: {ipaddress.ip_address(a).packed: packet.mac(m) for a, m in table.items()}
                            for h, table in self.scenario["answers"].items()}
        for n, step in enumerate(self.scenario["steps"]):
            go_on()
            self.step = f"step {n}"
            self.disturbed = False
            self.unknown = set()
            self.asked, self.numbers = self.bench.asked(), set()
            self.unsent = [side.inside.unsent() for side in self.bench.sides]
            self.do(step["do"])
            for k, volley in enumerate(step["volleys"]):
                go_on()
                if self.bench.looking():
                    self.resolve()
                self.step = f"step {n}, volley {k} from {volley['from']} ({volley['kind']}: {volley['say']})"
                self.volley(volley)
                self.counted.update({"volleys": 1, "frames": len(volley["frames"])})
            self.step = f"step {n}, its end"
            self.resolve()
            self.equal()
            for caught in self.caught:  # what was equal is done with: places may change
                for frames in caught.values():
                    frames.clear()
        self.step = "the end"
        self.audit()

    def summary(self):
        """What was counted, and whether anything was proved at all."""
        self.counted["scenarios"] = 1
        if self.counted["good volleys"]:
            self.counted["scenarios with good volleys"] = 1
            self.counted["scenarios that proved none"] = int(not self.counted["checked"])
        return self.counted

    def allow(self, what, times=1):
        """Notes that a rule let something differ: what allows much hides much."""
        self.counted[f"allowed: {what}"] += times

    # ------------------------------------------------------------------------------------------------- commands

    def do(self, commands):
        bench = self.bench
        self.gateways = []
        group, tool, changed = [], None, False
        for command in [*commands, "end"]:
            words = command.split()
            self.counted[operation(words)] += command != "end"
            now = ("ip", "-6") if command.startswith("ip -6 ") else (words[0],)
            if group and now != tool:
                self.flush(tool, group)
                group = []
            if changed and now != tool and not self.quarrels.dead:  # a dead switchd passes no carrier on
                self.links()  # what comes next may be refused where a link is down
                changed = False
            tool = now
            bench.traces.note(command)
            self.support.note(command)
            quiet = re.match(r"bridge link set dev swp(\d) flood (on|off)", command)
            if quiet:
                (self.silent.add if quiet[2] == "off" else self.silent.discard)(f"h{quiet[1]}")
            state = re.match(r"bridge link set dev swp(\d) state (\d)", command)
            if state:
                (self.held.discard if state[2] == "3" else self.held.add)(twin.MAC[f"h{state[1]}"])
            fixed = re.match(r"bridge fdb (?:add|replace) (\S+) dev", command)
            if fixed:
                self.fixed.add(packet.mac(fixed[1]))
            if words[0] in ("ip", "bridge", "tc", "sysctl"):
                group.append(command[len(" ".join(now)) + 1:])
            elif words[0] == "host":
                for side in bench.sides:
                    side.sw.hosts[words[1]].ns.ip("link set eth0", words[2])
                    (side.cut.add if words[2] == "down" else side.cut.discard)(words[1])
            elif words[0] == "pause":
                time.sleep(float(words[1]) * PACE)
            elif words[0] == "kill":
                self.disturbed = True
                self.quarrels.kill(words[1])
                bench.asic.sw.kill(words[1])
            elif words[0] == "up":
                bench.restart()
                self.quarrels.up()
            elif words[0] == "fault":
                self.disturbed = self.refused = True
                self.quarrels.fault(words[1])
                bench.asic.sw.api("asicd", "POST", "/v1/fault", fault(words[1:]))
            self.bonded = self.bonded or " type bond " in command
            if LINKS.match(command):
                changed = True
            if self.bonded and LINKS.match(command) and not self.quarrels.dead:
                if group:
                    self.flush(tool, group)
                    group = []
                self.links()  # which member is active hangs on the order in which a bond sees links come and go
        self.links()
        # switchd asks for the gateways of routes at once, the kernel alone when it has a packet for them, when they
        # may be gone: the kernel alone is told to ask as well; not for those of routes that it refused
        bench.kernel.inside.look_for(self.gateways)
        if any(device.startswith("bond") for _, device in self.gateways):
            # of a group with a member that the chip has not (a bond may be such) switchd asks for none: the kernel does
            # with the first packets, which then go by another one (net/ipv4/nexthop.c `nexthop_select_path_hthr`)
            bench.asic.inside.look_for(self.gateways)
        if any(map(ADDRESSES.match, commands)):
            self.settle_addresses()
        bench.sync(SYNC[hurried])
        self.quarrels.calm()
        if any(map(REACH.match, commands)):
            self.agree()

    def settle_addresses(self):
        """Waits for the routes of IPv6 addresses; somebody may have deleted one."""
        until = time.monotonic() + 2 * PACE
        while True:
            missing = [side.inside.without_route() for side in self.bench.sides]
            late = set.union(*missing) - self.routeless
            if not late or time.monotonic() > until:
                break
            time.sleep(0.005)
        if late:
            self.allow("IPv6 addresses whose routes did not come in two seconds", len(late))
        self.routeless = set.union(*missing)

    def agree(self):
        """A gateway that switchd asked for before a port left, and the kernel alone after it: where only the kernel
        with the ASIC knows it, it is told to forget it and asks again."""
        gateways = set(self.gateways)
        if not gateways:
            return
        self.resolve()
        known, also = (side.inside.known(gateways) for side in self.bench.sides)
        if also - known:
            tool = self.bench.asic.tool("ip")
            tool.begin([f"neigh del {a} dev {d}" for a, d in sorted(also - known)])
            tool.end()
            self.bench.sync(SYNC[hurried])
            self.resolve()

    def links(self):
        """Waits until both sides agree on carriers and bonds."""
        differ = self.bench.carriers()
        if self.bonded and not differ:
            differ, shared = self.bench.bonds()
            self.place = {h: "+".join(sorted(hosts)) for hosts in shared for h in hosts}
        if differ:
            raise Different([f"{self.step}: {x}" for x in differ])

    def flush(self, tool, lines):
        last = next((n for n, x in enumerate(lines, 1) if x.startswith("neigh del ")), len(lines))
        if last < len(lines):  # `ip` ends when there is no such neighbour, as may be on one side only: no line after it
            self.flush(tool, lines[:last])
            self.flush(tool, lines[last:])
            return
        said = self.bench.sysctl(lines) if tool == ("sysctl",) else self.bench.both(list(tool), lines)
        # else `ip` has ended before the last line; `neigh del` is the last one
        if tool[0] == "ip" and not REFUSED.sub("", UNKNOWN.sub("", said[0])):
            no = {n for n, _ in refused(said[0])}
            self.gateways += self.asked_for([x for n, x in enumerate(lines, 1) if n not in no])
        if said[0] != said[1] and tool == ("bridge",) and self.full():
            said = self.without_room(lines, said)
            self.allow("entries of stations that the chip could not learn are refused by one side", said[0] == said[1])
        if said[0] != said[1] and tool[0] == "ip":
            # a neighbour that one of them has looked for in vain: the other one knows nothing of it
            if any(x.startswith("neigh del ") for x in lines) and len({UNKNOWN.sub("", x) for x in said}) == 1:
                self.allow("a neighbour to be deleted that only one side had looked for")
                return
        if tool[0] == "tc":
            # switchd's program at a port is a filter of its own: there the chain is never missing
            said = [x.replace(NO_CHAIN, NO_FILTER) for x in said]
        if said[0] != said[1]:
            raise Different([f"{self.step}: commands were refused differently: {lines}; kernel alone: {said[0]!r}; "
                             f"with ASIC: {said[1]!r}"])

    def asked_for(self, lines):
        """The gateways that switchd asks for by these lines of `ip`: of routes, if they are in tables that it
        looks at, and of next-hop objects that routes refer to."""
        asked = []
        for line in lines:
            made = re.match(r"nexthop (?:add|replace) id (\d+) (.*)", line)
            used = re.match(r"route .* nhid (\d+)", line)
            if made:
                self.objects[made[1]] = made[2]
            elif line.startswith("route ") and " table " not in line:
                asked += GATEWAY.findall(line)
            if used:
                self.used.add(used[1])
            number = (made or used or ("", ""))[1]
            if number in self.used:
                asked += GATEWAY.findall(" " + self.objects.get(number, ""))
            groups = [x for k, x in self.objects.items() if k in self.used and x.startswith("group ")]
            for k in {m for x in groups for m in re.findall(r"[ /](\d+)(?=,|/|$)", x)} if number else ():
                asked += GATEWAY.findall(" " + self.objects.get(k, ""))
            gone = re.match(r"neigh (?:del (\S+) dev (\S+)|replace (\S+) dev (\S+) nud failed$)", line)
            gateway = tuple(x for x in gone.groups() if x) if gone else None
            if gateway in self.ever:
                asked.append(gateway)  # switchd asks for a gateway that is forgotten, or has failed, too
            # and for those that are forgotten with their device's last address (net/ipv4/fib_frontend.c
            # `fib_disable_ip`) or with its address of layer 2 (net/ipv4/arp.c `arp_netdev_event`)
            device = re.match(r"addr del \S+ dev (\S+)|link set (\S+) address ", line)
            asked += sorted(x for x in self.ever if device and x[1] in device.groups())
        self.ever |= set(asked)
        return asked

    def without_room(self, lines, said):
        """A station that the chip had no room to learn can't be deleted there, and can be added where the kernel alone
        knows it; then it is told to replace that entry. What is still refused differently."""
        known, unknown = (refused(x) for x in said)
        add = [n for n, _ in known - unknown if lines[n - 1].startswith("fdb add ")]
        other = {n for n, _ in known ^ unknown} - set(add)
        if not other and not add or any(not lines[n - 1].startswith("fdb del ") for n in other):
            return said
        tool = self.bench.kernel.tool("bridge")
        tool.begin([lines[n - 1].replace("add", "replace", 1) for n in add])
        return tool.end(), ""

    # -------------------------------------------------------------------------------------------------- volleys

    def volley(self, volley, again=True):
        good = volley["kind"] in ("good", "ecmp") and not self.disturbed
        if again and volley["kind"] in ("good", "ecmp"):
            if self.kernels(volley) == NO_ROUTER:
                self.counted["allowed: all routed packets are the CPU's, on a chip that does not route"] += 1
                good = False
            else:
                self.counted["good volleys"] += 1
                self.counted["not: a restart or a fault plan in this step"] += self.disturbed
        before = self.cpu() if good else None
        self.see_unlearned()
        kernel_before = {h: c.copy() for h, c in self.caught[0].items()} if good else None
        frames = [bytes.fromhex(f) for f in volley["frames"]]
        self.numbers |= {n[0] for n in map(NUMBER.search, frames) if n}
        if volley["kind"] == "ecmp" and frames:
            number = int(ECMP.search(frames[0])[1])
            self.sources[number] = volley["from"], packet.mac_text(frames[0][:6])
        taken = self.bench.received()
        for frame in frames:
            if volley["kind"] == "ecmp" and self.scenario["fill"] == "overfull":
                time.sleep(0.001)  # all of them may need the CPU, whose policer takes 1,000 a second of such
            for side in self.bench.sides:
                try:
                    side.wires[volley["from"]].send(frame)
                except OSError:
                    pass  # its cable is cut, or the frame is larger than anything it takes
        until = time.monotonic() + 0.05 * PACE
        while self.bench.received() < taken + len(frames) and time.monotonic() < until:
            time.sleep(0.001)
        self.bench.sync(SYNC[hurried])
        time.sleep(SETTLE)
        if "pause" in volley:
            time.sleep(volley["pause"] * PACE)
            self.bench.sync(SYNC[hurried])
        self.see_unlearned()
        self.equal()
        if good:
            self.untouched(volley, before, kernel_before, again)

    def cpu(self):
        """What the CPU has been given so far: by reason, as the chip counts, and in all, as the kernel does."""
        names = {**{p: p for p in PORT_MAC}, **self.bench.traces.renamed}
        given = self.bench.asic.inside.received(*(new for new, old in names.items() if old in PORT_MAC))
        return given, self.bench.asic.sw.trapped()

    def see_unlearned(self):
        """Which stations the chip did not know while a volley was on its way, as soon as any has found no room."""
        if self.full():
            self.unknown |= self.bench.unknown()

    def collect(self):
        for n, side in enumerate(self.bench.sides):
            for h, w in side.wires.items():
                new = w.frames[self.seen[n][h]:]
                self.seen[n][h] += len(new)
                for _, frame in new:
                    key = ECMP.search(frame)
                    if packet.is_control(frame) and (frame[6:12] in SWITCH_MACS or frame[6:12] in self.bench.born):
                        continue  # its number and time are the switch's own
                    self.bench.spend(n, frame)
                    frame = twin.canonical(frame, self.own)
                    if key:
                        self.flows[n].setdefault(tuple(int(x) for x in key.groups()), []).append(
                            fate(self.place.get(h, h), frame))
                    else:
                        self.caught[n][h][frame] += 1

    def differences(self):
        self.collect()
        wrong = []
        for h, want, got in self.by_place():
            missing, extra = self.not_allowed(h, want - got, got - want)
            if missing or extra:
                wrong.append(f"{self.step}: {h}: missing {some(missing)}, not the kernel's {some(extra)}")
        volleys = {k[0] for flows in self.flows for k in flows}
        for v in sorted(volleys):
            want, got = ({k: f for k, f in flows.items() if k[0] == v} for flows in self.flows)
            fixed = {packet.mac_text(m) for m in self.fixed}
            flooded = self.overflowed and flooded_fates(want, got, fixed, self.held)
            if self.bench.limited and fates(want) != fates(got):
                want, got = few_errors(want), few_errors(got)
            if v not in self.unanswered and fates(want) != fates(got) \
                    and not (flooded or self.overflowed and flooded_fates(want, got, fixed, self.held)) \
                    and not self.hashed_twice(v, fates(want), fates(got)):
                wrong.append(f"{self.step}: ECMP {v}: the kernel's fates {fates(want)}, the chip's {fates(got)}")
            elif steady(want) and not steady(got) and not self.overflowed:
                wrong.append(f"{self.step}: ECMP {v}: a flow changed its member")
        return wrong

    def not_allowed(self, h, missing, extra):
        """What of the frames that are missing at a place, and of those that came in addition, no rule allows."""
        if self.overflowed:
            silent = h in self.silent
            extra = self.less(h, extra, lambda f: self.flooded(f), "copies of what a full chip floods")
            by_hand = "to a station with an entry by hand, full chip"
            missing = self.less(h, missing, lambda f: silent and self.flooded(f), "not flooded where flood is off")
            missing = self.less(h, missing, lambda f: f[:6] in self.fixed, by_hand)
            extra = self.less(h, extra, lambda f: f[:6] in self.fixed, by_hand)
        limit = "an ICMP error that the kernel's limit kept back on one side"
        return self.less(h, missing, self.bench.spent, limit), self.less(h, extra, self.bench.spent, limit)

    def less(self, h, frames, allows, what):
        """The frames without those that a rule allows; these are counted, each once."""
        for frame, n in frames.items():
            if allows(frame) and self.excused[what, h, frame] < n:
                self.allow(what, n - self.excused[what, h, frame])
                self.excused[what, h, frame] = n
        return {f: n for f, n in frames.items() if not allows(f)}

    def by_place(self):
        """(Place, frames that came there with the kernel alone, with the ASIC)."""
        if not self.place:
            return [(h, want, self.caught[1][h]) for h, want in self.caught[0].items()]
        places = {}
        for h in self.caught[0]:
            both = places.setdefault(self.place.get(h, h), (collections.Counter(), collections.Counter()))
            both[0].update(self.caught[0][h])
            both[1].update(self.caught[1][h])
        return [(p, want, got) for p, (want, got) in places.items()]

    def hashed_twice(self, number, want, got):
        """What the chip gives to the CPU (back out by the interface that it came in by, a neighbour that is missing or
        has no room) the kernel hashes once more: a member that the kernel alone used may then be missing by chance,
        but none may come in addition."""
        source, router = self.sources.get(number, (None, None))
        back = any(x.split(" ", 1)[0] == self.place.get(source, source) or x.endswith(f" {router} forwarded")
                   for x in want)
        if self.overflowed:  # it may flood as well: where they come is free then, what comes is not
            want, got = ([x.split(" ", 1)[-1] for x in found if " times: " not in x] for found in (want, got))
        return bool(got) and set(got) <= set(want) and (back or "none" in want or self.lacks_room())

    def lacks_room(self, routed=True):
        """Is there something that does not fit? Then the chip has a memory that is half full or fuller: switchd's word
        for it is not enough."""
        status = self.bench.asic.sw.api("switchd", "GET", "/v1/status")
        failed, waiting = status["sync"]["failed"], status["store"]["waiting"]
        if not failed and not waiting:
            return False
        pools = self.bench.asic.sw.api("asicd", "GET", "/v1/resources")["items"]
        if self.bench.profile in LAYER_2 and not routed:
            return False  # it is routes that wait there, for memories that this chip has not
        if not (any(2 * p["free"] <= p["size"] for p in pools) or self.refused or self.bench.profile in LAYER_2):
            raise Different([f"{self.step}: {failed} objects failed and {waiting} wait for room, says switchd, and no "
                             f"memory of the chip is half full: "
                             f"{ {p['name']: (p['free'], p['size']) for p in pools if p['free'] != p['size']} }"])
        return True

    def flooded(self, frame):
        """A chip whose MAC table is full can't learn: what it would have known it floods, as switches do. Only what
        is sent to a station that it did not know when this or an earlier volley of the step was on its way, by another
        or by the bridge: docs/testing.md, rule 6."""
        return frame[:6] in self.unknown and (frame[6:12] in BRIDGE_MACS or frame[6:12] not in SWITCH_MACS)

    def equal(self):
        """Waits until what arrived is equal on both sides."""
        wrong = self.differences()
        until = time.monotonic() + PATIENCE[hurried] * PACE
        pause = 0.002
        while wrong and time.monotonic() < until:
            go_on()
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)
            wrong = self.differences()
        if wrong and self.full():
            wrong = self.differences()
        if wrong and self.forgive():
            wrong = self.differences()
        if wrong and self.without_memory():
            wrong = self.differences()
        if wrong:
            raise Different(wrong)

    def full(self):
        """Has the chip failed to learn a station since the scenario began? Then it floods what it would have known."""
        if not self.overflowed:
            now = self.bench.unlearned()
            # a new asicd counts from zero
            self.overflowed = now > self.unlearned or (now > 0 and self.quarrels.killed("asicd"))
        return self.overflowed

    def forgive(self):
        """An ICMP error for a neighbour that does not answer may be missing, twice in a scenario, if switchd has asked
        for neighbours in this step: docs/testing.md, rule 7. True: it was that."""
        if self.bench.asked() == self.asked:
            return False
        forgiven = self.forgiven
        for v in {k[0] for k in self.flows[0]} - self.unanswered:
            kernel, chip = (set(fates({k: f for k, f in flows.items() if k[0] == v})) for flows in self.flows)
            if self.forgiven < 2 and kernel != chip and chip - kernel <= {"none"} and all(
                    x.endswith((" icmp 0301", " icmp 0103")) for x in kernel - chip):
                self.unanswered.add(v)
                self.forgiven += 1
                self.allow("an ICMP error that one side did not send")
        for place, want, got in self.by_place():
            for frame, n in (want - got).items():
                number = NUMBER.search(frame)
                if host_unreachable(frame) and number and number[0] in self.numbers and self.forgiven + n <= 2:
                    self.forgiven += n
                    self.allow("an ICMP error that one side did not send", n)
                    host = next(h for h in self.caught[1] if self.place.get(h, h) == place)
                    self.caught[1][host][frame] += n
        return self.forgiven > forgiven

    def without_memory(self):
        """As many ICMP messages as a side's kernel says that it could not send may be missing there: docs/testing.md,
        rule 12. True: it was that."""
        found = False
        for n, side in enumerate(self.bench.sides):
            left = side.inside.unsent() - self.unsent[n]
            before = left
            for v in {k[0] for flows in self.flows for k in flows} - self.unanswered if left else ():
                mine, other = ({k: f for k, f in self.flows[i].items() if k[0] == v} for i in (n, 1 - n))
                lacks = set(fates(other)) - set(fates(mine))
                if lacks and all(" icmp " in x for x in lacks) and set(fates(mine)) - set(fates(other)) <= {"none"}:
                    errors = sum(any(x in lacks for x in f) for f in other.values())
                    if errors <= left:
                        self.unanswered.add(v)
                        left -= errors
            for place, want, got in self.by_place():
                for frame, times in ((want - got) if n == 1 else (got - want)).items():
                    if is_icmp(frame) and times <= left:
                        left -= times
                        host = next(h for h in self.caught[n] if self.place.get(h, h) == place)
                        self.caught[n][host][frame] += times
            if left < before:
                found = True
                self.unsent[n] += before - left
                self.allow("an ICMP message that one side's kernel had no memory to send", before - left)
        return found

    def resolve(self):
        """Waits until neither kernel is still looking for a neighbour: an ICMP error follows when it gives up, or none
        if another packet for it comes at that moment (`neigh_invalidate`)."""
        until = time.monotonic() + 3 * PACE
        pause = 0.02
        while self.bench.looking() and time.monotonic() < until:
            time.sleep(pause)
            pause = min(0.06, pause * 1.5)  # a look costs the processor more than all else that a lane does
        self.bench.sync(SYNC[hurried])
        time.sleep(SETTLE)

    # ------------------------------------------------------------------------------------------------- promises

    def untouched(self, volley, before, kernel_before, again=True):
        """Plain packets, all of which the kernel alone forwarded: if they fit, the CPU has not seen them. What it has
        seen its own kernel counts, too: no more than the chip says that it gave it."""
        given, chip = before
        now, chip_now = self.cpu()
        cpu = {k: v - chip.get(k, 0) for k, v in chip_now.items() if v != chip.get(k, 0)}
        silent = now - given - sum(cpu.values())
        if silent > 0 and again:  # what was on its way to the kernel when the volley began
            self.counted["a volley again, for packets that were on their way to the kernel"] += 1
            self.volley(volley, again=False)
            return
        if silent > 0:
            raise Different([f"{self.step}: the kernel got {now - given} packets from the ports, the chip counted "
                             f"{cpu}"])
        why = self.unproved(volley)
        if why:
            self.counted[f"not: {why}"] += 1
            return
        cpu = {k: v for k, v in cpu.items() if k not in twin.ALWAYS_CPU}
        if any("86dd" in (f[24:28], f[32:36]) for f in volley["frames"]):
            self.allow("a redirect of IPv6", int("redirect" in cpu))
            cpu.pop("redirect", None)  # IPv6 has no setting that would forbid the kernel to send one
        if self.support.member.get(volley["say"].split(":")[0]):
            self.allow("a VRF's table has no route, so main is asked", int("lpm_miss" in cpu))
            cpu.pop("lpm_miss", None)  # what a VRF's table hasn't the kernel looks up in main
        lost = self.lost(volley, kernel_before)
        if lost and volley["kind"] == "ecmp":  # which flows take a member that nobody answers for hangs on the hash
            self.counted["not: a flow of a multipath route that the kernel alone did not forward"] += 1
        elif sum(cpu.values()) <= lost:  # what the kernel alone did not forward is the CPU's to answer or drop, once
            self.counted["good: in part" if lost else "good: checked"] += 1
            self.counted["checked"] += len(volley["frames"]) - lost
        elif again and sum(n for k, n in cpu.items() if k not in ("unresolved", "connected")) <= lost:
            # the first packets to a neighbour make the kernel look for it; the next ones need it no more
            self.resolve()
            self.volley(volley, again=False)
        else:
            raise Different([f"{self.step}: fits and is supported, and the kernel alone forwarded all but {lost} of "
                             f"its packets, yet it touched the CPU: {cpu}"])

    def unproved(self, volley):
        """Why it is not asked whether these packets stayed in hardware; None: it is."""
        why = self.kernels(volley)
        routed = not volley["say"].startswith("bridged")
        return why or ("something has no room in the chip" if self.lacks_room(routed) else None)

    def kernels(self, volley):
        """Why hardware does not do this by itself (SPECIFICATION.md, promise 1), as far as the settings go; None: it
        does."""
        routed = not volley["say"].startswith("bridged")
        if routed and self.bench.profile in LAYER_2:
            return NO_ROUTER
        groups6 = any(f.startswith("3333") for f in volley["frames"])
        return self.support.kernels(routed, groups6)

    def lost(self, volley, kernel_before):
        """How many of the frames the kernel alone did not forward."""
        if volley["kind"] == "ecmp":
            numbers = {tuple(int(x) for x in ECMP.search(bytes.fromhex(f)).groups()) for f in volley["frames"]}
            return sum(not all(x.endswith("forwarded") for x in self.flows[0].get(n, ["none"])) for n in numbers)
        new = set()
        for h, now in self.caught[0].items():
            for frame in now - kernel_before[h]:
                number = NUMBER.search(frame)
                ip = untagged(frame)[12:]
                proto = ip[8] if ip[:2] == b"\x86\xdd" else ip[11]
                if number and proto in (6, 17):
                    new.add(number[0])
        return sum(not n or n[0] not in new for n in (NUMBER.search(bytes.fromhex(f)) for f in volley["frames"]))

    def audit(self):
        sw = self.bench.asic.sw
        sw.api("asicd", "POST", "/v1/fault", {"kind": "clear"})
        self.bench.sync(SYNC[hurried])
        self.quarrels.clear()
        answer = sw.api("switchd", "POST", "/v1/audit", {"wait_s": 4.0 * PACE}, timeout=60)
        if answer["items"]:
            raise Different([f"audit: {x}" for x in answer["items"][:5]])
        for p in sw.api("asicd", "GET", "/v1/resources")["items"]:
            if p["used"] + p["in_flight"] + p["committed"] + p["free"] != p["size"]:
                raise Different([f"accounting: {p}"])


def operation(words):
    """What a command is counted as: its tool, object and verb."""
    if words[0] in ("kill", "fault", "up"):
        return "quarrel: " + " ".join(words[:2])
    words = [w for w in words if not w.startswith("-")]
    if words[0] == "sysctl":
        return "command: sysctl " + words[1].split("=")[0].rsplit("/", 1)[-1]
    kind = words[words.index("type") + 1] if "type" in words[:-1] and words[1] == "link" and words[2] == "add" else ""
    return "command: " + " ".join((*words[:3], *([kind] if kind else []))) if words[0] != "host" else "command: cable"


def some(frames):
    """Three of these frames, and how many there are."""
    return f"{[f.hex() for f in list(frames)[:3]]} of {sum(frames.values())}"


def untagged(frame):
    """The frame without its tags."""
    while len(frame) >= 18 and struct.unpack_from("!H", frame, 12)[0] in (packet.ETH_8021Q, 0x88A8):
        frame = frame[:12] + frame[16:]
    return frame


def refused(said):
    """(Number of the line, what was said of it) of what a tool refused."""
    return {(int(n), why) for why, n in REFUSED.findall(said)}


def host_unreachable(frame):
    """ICMP (RFC 792) type 3 code 1 or ICMPv6 (RFC 4443) type 1 code 3, by the switch."""
    if not is_icmp(frame):
        return False
    frame = untagged(frame)
    six = packet.ethertype(frame) == packet.ETH_IP6
    return frame[54:56] == b"\1\3" if six else frame[34:36] == b"\3\1"


def is_icmp(frame):
    """An ICMP or ICMPv6 message of the switch's own. It asks nobody for an echo: a request has been routed."""
    frame = untagged(frame)
    if frame[6:12] not in SWITCH_MACS:
        return False
    if packet.ethertype(frame) == packet.ETH_IP6:
        return frame[20] == 58 and frame[54:55] != b"\x80"
    return packet.ethertype(frame) == packet.ETH_IP and frame[23] == 1 and frame[34:35] != b"\x08"


def fate(host, frame):
    """What became of a packet of a flow: which way it left, or which ICMP error answered it."""
    tags = frame[12:16].hex() + " " if packet.ethertype(frame) == packet.ETH_8021Q else ""
    frame = untagged(frame)
    six = packet.ethertype(frame) == packet.ETH_IP6
    proto = frame[20] if six else frame[23]
    head = f"{host} {tags}{packet.mac_text(frame[:6])} {packet.mac_text(frame[6:12])}"
    return f"{head} forwarded" if proto == 17 else f"{head} icmp {frame[54:56].hex() if six else frame[34:36].hex()}"


def flooded_fates(want, got, fixed, held):
    """Whether what the chip did otherwise than the kernel is what a full MAC table makes of it (docs/testing.md, rule
    6): the same frames to more hosts, tagged as each has the VLAN; frames to `fixed`, stations with an entry by hand,
    to other hosts; and frames to `held`, stations at ports that do not forward, which the kernel holds back: it
    knows where they are."""
    kept_back = "none" in fates(want)

    def frame(x):
        return " ".join(w for w in x.split()[1:] if not w.startswith("8100"))

    def to(x, stations):
        return x.endswith(" forwarded") and x.split()[-3] in stations

    want, got = ({f"* {frame(x)}" if to(x, fixed) else x for f in flows.values() for x in f} for flows in (want, got))
    frames = {frame(x) for x in want}
    return want <= got and all(frame(x) in frames or kept_back and to(x, held) for x in got - want)


def few_errors(flows):
    """Without ICMP errors, if they are so few that a limit may have kept them back."""
    errors = [k for k, f in flows.items() if any(" icmp 03" in x for x in f)]
    return {k: f for k, f in flows.items() if k not in errors} if len(errors) <= 12 else flows


def steady(flows):
    return all(f == flows.get((v, n, 1 - again), f) for (v, n, again), f in flows.items())


def fates(flows):
    """All fates of a volley's packets: a packet that came nowhere has one, too, and one that came twice is told.

    Where some are answered by an error, a neighbour is missing, and of the packets that wait for it the kernel keeps
    only so many: then some may come nowhere.
    """
    found = {x for f in flows.values() for x in f} | {f"{len(f)} times: {f}" for f in flows.values() if len(f) > 1}
    waits = any(" icmp " in x for x in found)
    return sorted(found | ({"none"} if len(flows) < FLOWS * 2 and not waits else set()))


def fault(words):
    """`tandem fault`'s words as the request's body."""
    body = {"kind": words[0]}
    if words[0] == "delay":
        body["ms"] = int(words[1])
    names = {"--nth": "nth", "--class": "cls", "--count": "count", "--table": "table"}
    for k, v in zip(words[1:], words[2:]):
        if k in names:
            body[names[k]] = v if names[k] in ("cls", "table") else int(v)
    return body
