# SPDX-License-Identifier: Apache-2.0
"""Part 1: Faucet rules the chip: two VLANs and an ACL. What its flows are for the chip is shown by numbers."""

import os
import re
import shutil
import subprocess
import time

from lib import net
from lib.openflow import PORT
from lib.packet import udp4_frame
from of_switch import A, B, PROFILE, SOURCE, WINDOW, ChipSwitch, mac
from openflow import world

DRAWING = """
        VLAN office, 100    VLAN guest, 200    both, with tags
        h1   h2   h3        h5   h6   h7       h4   h8          hosts without tags: 10.0.0.1 to 10.0.0.7
        │    │    │         │    │    │        │    │
      swp1 swp2 swp3      swp5 swp6 swp7     swp4 swp8          nxp-t1040 (asicd) ── ofagentd ── Faucet
                  └ ACL: no UDP to port 7000
"""

CONFIG = """
vlans:
  office: {{vid: 100}}
  guest: {{vid: 200}}
acls:
  not-7000:
    - rule: {{dl_type: 0x800, nw_proto: 17, udp_dst: 7000, actions: {{allow: 0}}}}
    - rule: {{actions: {{allow: 1}}}}
dps:
  demo:
    dp_id: 0x1
    hardware: Open vSwitch
    interfaces:
{ports}
"""
OFFICE, GUEST, TRUNKS = (1, 2, 3), (5, 6, 7), (4, 8)
ACL_PORT, DROPPED = 3, 7000
PACKETS = 400


def address(n):
    return f"10.0.0.{n}"


def port(n):
    """A port as Faucet's configuration has it."""
    member = "tagged_vlans: [office, guest]" if n in TRUNKS else f"native_vlan: {'office' if n in OFFICE else 'guest'}"
    return f"      {n}: {{{member}{', acls_in: [not-7000]' if n == ACL_PORT else ''}}}"


class Faucet:
    """Faucet in a namespace, its files in a folder; it ends with whoever started it."""

    def __init__(self, ns, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with open(self.path("faucet.yaml"), "w", encoding="utf-8") as f:
            f.write(CONFIG.format(ports="\n".join(port(n) for n in range(1, 9))))
        env = {**os.environ, "FAUCET_CONFIG": self.path("faucet.yaml"), "FAUCET_LOG": self.path("faucet.log"),
               "FAUCET_EXCEPTION_LOG": self.path("exceptions.log"), "FAUCET_PROMETHEUS_ADDR": "127.0.0.1",
               "FAUCET_EVENT_SOCK": "0", "OSKEN_HUB_TYPE": "eventlet",
               "PATH": f"{os.path.dirname(world.faucet())}:{os.environ['PATH']}"}
        with open(self.path("said.log"), "wb") as f:
            self.process = ns.popen(world.faucet(), "--use-stderr", "--ryu-ofp-listen-host", "127.0.0.1",
                                    "--ryu-ofp-tcp-listen-port", PORT, env=env, stdin=subprocess.DEVNULL, stdout=f,
                                    stderr=f, preexec_fn=world.die_with_parent)

    def path(self, name):
        return os.path.join(self.folder, name)

    def log(self, name="faucet.log"):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def complaints(self):
        """What it says that is not well; it says of itself that it sends before the switch is there."""
        bad = [x for x in self.log().splitlines() if re.search(r"OFError|ERROR", x) and "DP not up" not in x]
        return bad + self.log("exceptions.log").splitlines()


def pings(sw, pairs, wait=10):
    """How many of these pairs had an answer, all of them pinging at once. One each: after an answer `ping` waits for
    the next only as long as the first took."""
    running = [subprocess.Popen(["ip", "netns", "exec", sw.hosts[a - 1].name, "ping", "-q", "-n", "-c", "1", "-W",
                                 str(wait), address(b)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for a, b in pairs]
    return sum(p.wait(timeout=wait + 60) == 0 for p in running)


def build(prefix, folder):
    sw = ChipSwitch(prefix + "fa-")
    try:
        faucet = Faucet(sw.ns, folder)
        for n in range(1, 9):
            if n in TRUNKS:
                sw.host(n, vid=100)
            else:
                sw.host(n, f"{address(n)}/24")
        net.wait_until("Faucet to listen", lambda: faucet.process.poll() is not None or sw.listens(), timeout=90)
        if faucet.process.poll() is not None:
            raise RuntimeError(f"Faucet ended: {faucet.log('said.log').strip()[-300:]}")
        said = sw.up("--profile", PROFILE, "--mac-lookup", "vlan", "--datapath-id", "0x1",
                     "--controller", f"tcp:127.0.0.1:{PORT}")
        sw.ready()
        return sw, faucet, said
    except BaseException:
        sw.delete()
        raise


def learn(sw, within):
    """Until Faucet knows all stations and each pair is answered; whether it came to that is claimed afterwards."""
    end = time.monotonic() + 60
    while pings(sw, within, 2) != len(within) and time.monotonic() < end:
        time.sleep(0.2)
    # from here on nobody asks who has an address: what comes is what is sent
    for a in OFFICE + GUEST:
        for b in OFFICE + GUEST:
            if a != b:
                sw.knows(a, address(b), b)


def stations_of_trunks(probes):
    """Until Faucet knows these too: nothing is flooded any more."""
    a, b = TRUNKS
    end = time.monotonic() + 30
    while probes.run([(a, b, 8000, b), (b, a, 8000, a)]).wrong and time.monotonic() < end:
        pass


def place_of(sw, table):
    """Where the flows of some tables stand: {"hardware": n, "partly": n, "software": n}."""
    found = {"hardware": 0, "partly": 0, "software": 0}
    for f in sw.flows():
        if table(f["table"]):
            found[f["place"]] += 1
    return found


def run(report, table, prefix, folder, keep):
    report.section("Faucet: two VLANs and an ACL on a chip that was made for neither", DRAWING)
    report.step("starting Faucet, hosts, asicd, ofagentd")
    sw, faucet, said = build(prefix, os.path.join(folder, "faucet"))
    try:
        report.show(said)
        within = [(a, b) for vlan in (OFFICE, GUEST) for a in vlan for b in vlan if a != b]
        across = [(a, b) for a in OFFICE for b in GUEST] + [(a, b) for a in GUEST for b in OFFICE]
        report.step("Faucet learns where the hosts are")
        learn(sw, within)
        talk(report, table, sw, within, across)
        with sw.probes() as probes:
            acl(report, table, sw, probes)
            shares(report, table, sw, probes, 2, 1, "without tags")
            stations_of_trunks(probes)
            shares(report, table, sw, probes, 4, 8, "with tags")
            broadcasts(report, table, sw, probes)
        bad = faucet.complaints()
        report.claim("Faucet is content", not bad, "Faucet's log has no error" if not bad else
                     f"Faucet complains {len(bad)} times: {bad[0][:200]}", complaints=bad[:10])
    finally:
        keep(sw, {"faucet": faucet.log(), "faucet-exceptions": faucet.log("exceptions.log"),
                  "faucet-said": faucet.log("said.log")})
        sw.delete()


def talk(report, table, sw, within, across):
    with sw.measure() as m:
        answered = pings(sw, within)
    there = answered == len(within)
    report.claim("within a VLAN", there and m.cpu == 0,
                 f"within the VLANs: {answered} of {len(within)} pings answered, each host to each other, h{ACL_PORT} "
                 f"too, whose port has the ACL; the chip forwarded {m.chip} of {m.taken} packets",
                 answered=answered, sent=len(within), **m.facts())
    table.add("Faucet: pings within the VLANs", m)
    with sw.measure() as m:
        answered = pings(sw, across, 2)
    # nobody hears anybody where nobody is heard at all: that would be no VLAN
    report.claim("not across", there and answered == 0 and m.taken == len(across),
                 f"across: {answered} of {len(across)} answered, though each host knows the other's address; the "
                 f"chip's ports took in {m.taken} packets", answered=answered, sent=len(across), **m.facts())
    table.add("Faucet: pings across", m)


def acl(report, table, sw, probes):
    def counted():
        return sw.flow(lambda f: f["table"] == 0 and f["match"].endswith(f"udp_dst={DROPPED}"))

    before = counted()
    with sw.measure() as m:
        came = probes.run([(ACL_PORT, 1, DROPPED, None)] * PACKETS)
    after = counted()
    seen = None if after["packets"] is None or before["packets"] is None else after["packets"] - before["packets"]
    place = after["place"]
    held = place and not came.wrong and m.taken == PACKETS and seen in (None, PACKETS) \
        and m.cpu == {"hardware": 0, "software": PACKETS}.get(place, m.cpu)
    report.claim("the ACL drops", held,
                 f"ACL: of {PACKETS} packets from h{ACL_PORT} to UDP port {DROPPED}, {len(came.places)} came out; its "
                 f"flow is in {place} ({after['why']}) and counted {seen}; the chip dropped {m.chip}, the CPU got "
                 f"{m.cpu}",
                 came=len(came.places), place=place, counted=seen, **m.facts())
    table.add("Faucet: what its ACL drops", m)
    with sw.measure() as m:
        came = probes.run([(ACL_PORT, 1, DROPPED + 1, 1)] * PACKETS + [(2, 1, DROPPED, 1)] * PACKETS)
    report.claim("the ACL lets pass", not came.wrong and m.cpu == 0,
                 f"ACL: the next UDP port from there, and port {DROPPED} from h2: {came}; the chip forwarded {m.chip}",
                 right=came.right, sent=len(came.packets), **m.facts())
    table.add("Faucet: what its ACL lets pass", m)


def broadcasts(report, table, sw, probes):
    """One host's: to the others of its VLAN without tags and to the trunks with them, by an entry of its domain."""
    of, count = 2, WINDOW
    with sw.measure() as m:
        for _ in range(count):
            probes.wires[of].send(udp4_frame("ff:ff:ff:ff:ff:ff", mac(of), A, B, SOURCE, 8000, b"to all"))
        net.wait_until("the broadcasts", lambda: sw.numbers()[TRUNKS[-1]]["tx_packets"] >= m.before[TRUNKS[-1]][
            "tx_packets"] + count)
    to = [p for p in OFFICE + TRUNKS if p != of]
    right = all(m.sent(p) == (count, 0) for p in to) and not any(sum(m.sent(p)) for p in GUEST)
    report.claim("the chip floods in two forms", right and m.cpu == 0 and m.taken == count,
                 f"broadcasts: {count} of h{of} left by {len(to)} ports each, by the trunks with a tag; the CPU got "
                 f"{m.cpu}", sent={p: m.sent(p) for p in m.ports}, **m.facts())
    table.add(f"Faucet: broadcasts of h{of}", m)


def shares(report, table, sw, probes, a, b, how):
    """Numbers that can't be talked away: who forwarded, by the ports; what the tables counted."""
    def entry():
        return sw.flow(lambda f: f["table"] == 0 and f["match"] == f"in_port={a}")["packets"]

    counted = entry()
    with sw.measure() as m:
        came = probes.run([(a, b, 8000, b)] * PACKETS)
    now = entry()
    seen = None if now is None or counted is None else now - counted
    by_chip, by_cpu = m.sent(b)
    report.step(f"h{a} to h{b}, {how}: the flows on the way")
    report.show(sw.why(lambda f: f["match"] == f"in_port={a}" or f"in_port={a},vlan_vid=" in f["match"]
                       or f"in_port={a},eth_src={mac(a)}" in f["match"] or f"eth_dst={mac(b)}" in f["match"]))
    first, later = place_of(sw, lambda t: t == 0), place_of(sw, lambda t: t > 0)
    who = ("the chip forwarded all of it" if by_chip == PACKETS else
           f"the chip forwarded {by_chip}, the software {by_cpu}")
    held = not came.wrong and by_chip + by_cpu == PACKETS and m.taken == PACKETS and m.cpu == by_cpu \
        and seen in (None, PACKETS) and by_chip == PACKETS
    report.claim(f"the chip forwards {how}", held,
                 f"h{a} to h{b}, {how}: {came}: {who}; Faucet's first table counted {seen}. Of its first table "
                 f"{first['hardware']} flows are in hardware, {first['partly']} partly, {first['software']} in "
                 f"software; of its other tables {later['hardware']}, {later['partly']} and {later['software']}",
                 by_chip=by_chip, by_cpu=by_cpu, counted=seen, first_table=first, other_tables=later, **m.facts())
    table.add(f"Faucet: h{a} to h{b}, {how}", m)
