# SPDX-License-Identifier: Apache-2.0
"""The demo of the appliance: `./run demo appliance` builds and then calls this. Needs root; works in network
namespaces that it makes and removes. Exit code 0 only if every claim held. The same facts: out/demo-appliance.json; a
picture of the terminal, as the README has one: out/demo-appliance.svg.
"""

import os
import re
import time

import main as demo
from lib import net
from lib.appliance import ChipSwitch
from lib.console import Typist
from lib.frr import Frr
from lib.packet import Wire, udp4_frame
from terminal import picture

NAME = "demo-appliance"
DRAWING = """
        t1 ── port 1, trunk 1,2 ─┐              ┌─ port 3, access 2 ── a 10.2.0.3
                                 ├─ swcfgd ─────┼─ port 4, access 3 ── b 10.3.0.4
        t2 ── port 2, trunk 1,3 ─┘   on a chip  └─ port 5, access 4 ── r 10.4.0.5, OSPF ── 20.0.0.0/24
                          Vlan2 10.2.0.1, Vlan3 10.3.0.1, Vlan4 10.4.0.1
"""
TYPED = """\
enable
configure terminal
hostname lisa
vlan 2
name offices
vlan 3
name labs
interface te1/0/1
switchport mode trunk
switchport trunk allowed vlan 1,2
interface te1/0/2
switchport mode trunk
switchport trunk allowed vlan 1,3
interface te1/0/3
description to a
switchport mode access
switchport access vlan 2
interface te1/0/4
description to b
switchport mode access
switchport access vlan 3
interface vlan 2
ip address 10.2.0.1 255.255.255.0
interface vlan 3
ip address 10.3.0.1 255.255.255.0
exit
ip routing
end
"""
TYPED_OSPF = """\
configure terminal
vlan 4
name uplink
interface te1/0/5
description to r
switchport mode access
switchport access vlan 4
interface vlan 4
ip address 10.4.0.1 255.255.255.0
ip ospf network point-to-point
ip ospf hello-interval 1
ip ospf dead-interval 4
router ospf 1
router-id 10.4.0.1
passive-interface default
no passive-interface vlan 4
network 10.2.0.0 0.0.0.255 area 0
network 10.4.0.0 0.0.0.255 area 0
end
"""
NEIGHBOUR = """\
interface eth0
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
router ospf
 ospf router-id 10.4.0.5
 timers throttle lsa all 200
 timers lsa min-arrival 0
 network 10.4.0.0/24 area 0
 network 20.0.0.0/24 area 0
"""
FAR = "20.0.0.1"
SHOWN = ("show vlan brief", "show interfaces trunk", "show ip interface brief | include Vlan", "show mac address-table")
PHOTOGRAPHED = ("show interfaces status | exclude notconnect", "show vlan brief", "configure terminal",
                "interface te1/0/3", "switchport ?", "switchport acess vlan 2", "do show ip route", "end",
                "show platform why route 20.0.0.0/24")
MACS = {p: f"02:00:00:00:0a:{p:02x}" for p in (1, 2, 3, 4, 5)}
ALL = "ff:ff:ff:ff:ff:ff"
PINGS = 50


def build(prefix, frr):
    sw = ChipSwitch(prefix)
    sw.frr = os.path.join(frr, "switch")
    try:
        for port, name in ((1, "t1"), (2, "t2"), (3, "a"), (4, "b"), (5, "r")):
            sw.host(name, port, MACS[port])
        sw.hosts["a"].address("10.2.0.3/24", gateway="10.2.0.1")
        sw.hosts["b"].address("10.3.0.4/24", gateway="10.3.0.1")
        r = sw.hosts["r"]
        r.address("10.4.0.5/24")
        # a cable of its own, whose other end is there as well
        r.ns.ip("link add far type veth peer name farther")
        r.ns.ip("addr add", f"{FAR}/24", "dev far")
        for end in ("far", "farther"):
            r.ns.ip(f"link set {end} up")
        r.ns.sysctl(ipv4__ip_forward=1)
        sw.config = None  # out of its box
        sw.start_asicd()
        sw.start_swcfgd()
        return sw
    except BaseException:
        sw.delete()
        raise


def types(report, console, lines):
    """Types lines; those that were refused."""
    refused = []
    for line in lines.splitlines():
        prompt = console.prompt
        said = console.type(line)
        report.show(f"{prompt}{line}\n{said}".rstrip())
        refused += [line] * ("%" in said)
    return refused


def typed(report, sw):
    """The seed's example, by somebody at a terminal."""
    report.step("somebody at the console types the example: four ports, two VLANs, routed between them")
    console = Typist(sw)
    refused = types(report, console, TYPED)
    report.claim("typed", not refused and console.prompt == "lisa#",
                 f"{len(TYPED.splitlines())} lines typed into a terminal, each carried out at Enter, "
                 f"{len(refused)} refused", refused=refused)
    return console


def shown(report, console):
    for line in SHOWN:
        report.show(f"{console.prompt}{line}\n{console.type(line)}".rstrip())
        print()
    said = console.type("interface te1/0/1")
    report.show(f"{console.prompt}interface te1/0/1\n{said}".rstrip())
    marked = " " * len(console.prompt) + "^\n% Invalid input detected at '^' marker."
    report.claim("a wrong line", said.startswith(marked),
                 "a line in the wrong mode is refused with the caret under the word, as in IOS")


def routed_by_the_chip(sw):
    return sum(p["counters"]["detail"].get("l3_forwarded", 0) for p in sw.chip("/v1/ports")["items"])


def until_the_chip_routes(sw, to="10.3.0.4"):
    """a's pings to b pass without the CPU; how long that took."""
    began = time.monotonic()

    def alone():
        before = routed_by_the_chip(sw)
        return sw.hosts["a"].ping(to) and routed_by_the_chip(sw) >= before + 2

    net.wait_until("the chip to route", alone)
    return time.monotonic() - began


def pings(sw, to="10.3.0.4"):
    """(answered, what the CPU was given for it), of PINGS from a to b."""
    before = sw.trapped()
    out = sw.hosts["a"].ns.exec("ping", "-c", PINGS, "-i", "0.01", "-W", 5, to, timeout=60, check=False)
    now = sw.trapped()
    answered = int(out.split(" received")[0].split()[-1]) if " received" in out else 0
    routed = ("unresolved", "connected", "lpm_miss", "route", "fdb_incomplete")
    return answered, sum(now.get(r, 0) - before.get(r, 0) for r in routed)


def why(report, console, what):
    """Whether `show platform why` says that something is in the chip; shown."""
    line = f"show platform why {what}"
    said = console.type(line)
    report.show(f"{console.prompt}{line}\n{said}".rstrip())
    return re.search(r"^In hardware +yes$", said, re.M)


def forwarding(report, sw, console):
    took = until_the_chip_routes(sw)
    answered, cpu = pings(sw)
    report.claim("routed by the chip", answered == PINGS and cpu == 0,
                 f"a pings b, from VLAN 2 to VLAN 3: {answered} of {PINGS} answered, {cpu} of them by the CPU "
                 f"(the first {took:.1f} s after, while both hosts were asked for, are not counted)",
                 answered=answered, cpu=cpu)
    report.claim("why b's address is in the chip", why(report, console, "neighbor 10.3.0.4"),
                 "`show platform why` says of b, which the pings went to, that the chip has it")
    text = b"a broadcast of a"
    wires = {p: Wire(sw.hosts[h].ns) for p, h in ((1, "t1"), (2, "t2"), (4, "b"))}
    try:
        wires_a = Wire(sw.hosts["a"].ns)
        wires_a.send(udp4_frame(ALL, MACS[3], "10.2.0.99", "10.2.0.255", data=text))

        def found():
            frames = {p: w.caught(lambda f: text in f) for p, w in wires.items()}
            return {p: [int.from_bytes(f[14:16], "big") & 0xfff if f[12:14] == b"\x81\0" else 0 for f in got]
                    for p, got in frames.items()}

        net.wait_until("the broadcast at the trunk", lambda: found()[1])
        sw.hosts["a"].ping("10.2.0.1", check=True)
        sw.sync()
        wires_a.close()
        got = found()
        report.claim("tags", got == {1: [2], 2: [], 4: []},
                     f"a broadcast of a leaves by the trunk of VLAN 2, once, with tag {got[1]}; by the other {got[2]}, "
                     f"to b {got[4]}", tags={str(k): v for k, v in got.items()})
    finally:
        for w in wires.values():
            w.close()


def ospf(report, sw, console, mine, theirs):
    """A router that speaks OSPF: its network is learned, and what goes there goes by the chip."""
    report.step("starting FRR at r and at the switch; the console types OSPF")
    began = time.monotonic()
    theirs.start_all({"zebra": "", "ospfd": NEIGHBOUR})
    mine.start_all({"zebra": "", "ospfd": ""})
    refused = types(report, console, TYPED_OSPF)
    learned = net.wait_until("the route by OSPF", lambda: re.search(
        r"^O .*20\.0\.0\.0.* \[110/\d+\] via 10\.4\.0\.5, .*Vlan4$", console.type("show ip route"), re.M))
    took = time.monotonic() - began
    ping = f"ping {FAR} source vlan 2"
    said = ""

    def all_answered():
        nonlocal said
        said = console.type(ping)
        return "!!!!!" in said

    net.wait_until("r to answer: it has the way back as well", all_answered)
    for line in ("show ip ospf neighbor", "show ip route"):
        report.show(f"{console.prompt}{line}\n{console.type(line)}".rstrip())
    report.show(f"{console.prompt}{ping}\n{said}".rstrip())
    report.claim("a route by OSPF", bool(learned) and not refused,
                 f"{len(TYPED_OSPF.splitlines())} lines typed, {len(refused)} refused; FRR has carried them out: a "
                 f"network of r's is in the routing table {took:.1f} s after both FRRs were started, and answers the "
                 f"console's ping",
                 refused=refused, seconds=round(took, 1))
    until_the_chip_routes(sw, FAR)
    answered, cpu = pings(sw, FAR)
    report.claim("why r's network is in the chip", why(report, console, "route 20.0.0.0/24"),
                 "`show platform why` says that the chip has the route that OSPF has brought")
    report.claim("routed by the chip, there as well", answered == PINGS and cpu == 0,
                 f"a pings {FAR} behind r: {answered} of {PINGS} answered, {cpu} by the CPU", answered=answered,
                 cpu=cpu)


def photographed(report, sw, out):
    """Another person at the console, who looks around; and a picture of that terminal."""
    console = Typist(sw)
    try:
        for line in PHOTOGRAPHED:
            if line.endswith("?"):
                console.asks(line)
            else:
                console.type(line)
    finally:
        console.close()
    path = os.path.join(out, f"{NAME}.svg")
    with open(path, "w", encoding="utf-8") as f:
        f.write(picture(console.seen, "swcli: the console of lisa", re.compile(r"lisa(\([\w-]+\))?[>#]")))
    report.step(f"a picture of the terminal: {path}")


def killed(report, sw, console):
    running = console.type("show running-config")
    report.show(f"{console.prompt}write memory\n{console.type('write memory')}".rstrip())
    console.close()
    sw.hosts_ask_nobody()  # a neighbour's entry may be due just then, and nobody would answer
    report.step("kill -9 swcfgd")
    sw.kill("swcfgd")
    answered, _ = pings(sw)
    far, _ = pings(sw, FAR)
    report.claim("without the daemon", answered == far == PINGS,
                 f"the chip forwards on: {answered} of {PINGS} to b answered, {far} of {PINGS} to the network behind r",
                 answered=answered, far=far)
    sw.start_swcfgd()
    again = Typist(sw)
    again.type("enable")
    report.claim("the daemon is back", again.type("show running-config") == running,
                 "a new swcfgd has the configuration that was written, word for word")
    again.close()
    report.step("a power cut: kill -9 of both daemons")
    sw.kill("swcfgd")
    sw.kill("asicd")
    sw.start_asicd()
    sw.start_swcfgd()
    took = until_the_chip_routes(sw)
    far_took = took + until_the_chip_routes(sw, FAR)
    again = Typist(sw)
    again.type("enable")
    same = again.type("show running-config") == running
    again.close()
    answered, cpu = pings(sw)
    far, far_cpu = pings(sw, FAR)
    report.claim("after the power cut", same and answered == far == PINGS and cpu == far_cpu == 0,
                 f"the configuration is there, the chip routes again {took:.1f} s after it was, to the network behind "
                 f"r after {far_took:.1f} s: {answered} and {far} of {PINGS} answered, {cpu + far_cpu} by the CPU",
                 answered=answered, far=far, cpu=cpu + far_cpu, same=same)


def keep_logs(sw, out):
    folder = os.path.join(out, f"{NAME}-logs")
    os.makedirs(folder, exist_ok=True)
    for daemon in ("asicd", "swcfgd"):
        with open(os.path.join(folder, f"{daemon}.log"), "w", encoding="utf-8") as f:
            f.write(sw.log(daemon))


def run(report, a):
    report.section("A switch from its console", DRAWING)
    report.step("making namespaces, cables, hosts; starting asicd and swcfgd")
    folder = os.path.join(demo.HOME, "frr")
    sw = build(demo.PREFIX + "ap-", folder)
    routers = []
    try:
        routers += [Frr(sw.ns, folder, "switch"), Frr(sw.hosts["r"].ns, folder, "r")]
        console = typed(report, sw)
        shown(report, console)
        forwarding(report, sw, console)
        ospf(report, sw, console, *routers)
        photographed(report, sw, a.out)
        killed(report, sw, console)
    finally:
        keep_logs(sw, a.out)
        for router in routers:
            router.stop()
        sw.delete()


if __name__ == "__main__":
    demo.play(run, NAME, demo.arguments("Tandem's demo of the appliance", ("asicd", "swcfgd", "swcli"), ("console",)))
