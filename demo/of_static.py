# SPDX-License-Identifier: Apache-2.0
"""Part 2: flows of one table stand in the chip; a rule that it can't do comes in front of them, and goes."""

import os

from lib import traffic
from lib.openflow import PORT
from of_flow import Controller
from of_switch import PROFILE, ChipSwitch, mac

DRAWING = """
        h1 10.0.0.1 ── swp1 ┐                    stations (eth_dst)      ► the chip's MAC table
        h2 10.0.0.2 ── swp2 ┤ nxp-t1040          5-tuples h1 ► h2, UDP   ► its TCAM, IS2: out of swp4,
        h3 10.0.0.3 ── swp3 ┤                                              where a probe has h2's addresses
        h4 = h2's   ── swp4 ┘
"""
NEW_SOURCE = "02:00:00:00:09:09"
STEERED = range(7100, 7104)
PACKETS = 300
STREAM = {"pps": 500, "seconds": 4}
MEBIBYTES = 8


def stations():
    return [f"priority=10,eth_dst={mac(n)},actions=output:{n}" for n in (1, 2, 3)]


def five_tuple(port, a="10.0.0.1", b="10.0.0.2"):
    return f"priority=100,udp,in_port=1,nw_src={a},nw_dst={b},udp_src=20000,udp_dst={port},actions=output:4"


IN_FRONT = (f"priority=200,eth_src={mac(1)},eth_dst={mac(2)},"
            f"actions=set_field:{NEW_SOURCE}->eth_src,output:2")


def build(prefix):
    sw = ChipSwitch(prefix + "st-")
    try:
        for n in (1, 2, 3):
            sw.host(n, f"10.0.0.{n}/24")
        sw.host(4, "10.0.0.2/24", hw=mac(2))
        for n in (1, 2, 3):
            for m in (1, 2, 3):
                if n != m:
                    sw.knows(n, f"10.0.0.{m}", m)
        said = sw.up("--profile", PROFILE, "--versions", "1.3", "--controller", f"ptcp:127.0.0.1:{PORT}")
        sw.ready()
        return sw, Controller(sw), said
    except BaseException:
        sw.delete()
        raise


def places(flows):
    """How many stand where."""
    found = {"MAC table": 0, "IS2": 0, "software": 0}
    for f in flows:
        where = "software" if f["place"] != "hardware" else "MAC table" if "MAC table" in f["why"] else "IS2"
        found[where] += 1
    return found


def told(found):
    return ", ".join(f"{n} in {'the ' if k == 'MAC table' else ''}{k}" for k, n in found.items())


def standing(report, sw):
    found = places(sw.flows())
    report.show(sw.why())
    report.claim("flows in the chip", found == {"MAC table": 3, "IS2": len(STEERED), "software": 0},
                 f"of 7 flows {told(found)}", **found)


def in_hardware(report, table, sw, folder):
    """Streams with numbers and TCP; the CPU's counter stands still."""
    h1, h2, h3, h4 = sw.hosts
    port = STEERED[0]
    server = h3.popen(*traffic.words("serve", "--bind", "0.0.0.0", "--port", 5001), stdout=-1)
    server.stdout.readline()
    with sw.measure() as m:
        plain = traffic.Stream(h1, h2, "10.0.0.2", folder, "of-plain", port=7000, sport=20001, **STREAM)
        steered = traffic.Stream(h1, h4, "10.0.0.2", folder, "of-steered", port=port, sport=20000, **STREAM)
        speed = h1.exec(*traffic.words("fetch", "--dst", "10.0.0.3", "--port", 5001, "--bytes", MEBIBYTES << 20),
                        timeout=120, check=False).strip()
        plain, steered = plain.wait(), steered.wait()
    server.terminate()
    server.wait(5)
    server.stdout.close()
    [row] = [f for f in sw.flows() if f"udp_dst={port}" in f["match"]]
    good = all(r.count and not r.lost and not r.duplicates and not r.reordered for r in (plain, steered))
    report.claim("traffic by the chip alone", good and bool(speed) and m.cpu == 0 and row["packets"] == steered.count,
                 f"h1 to h2: {plain}; a 5-tuple to the probe: {steered}, and its row counted {row['packets']}; TCP h1 "
                 f"to h3: {f'{MEBIBYTES} MiB, content equal' if speed else 'failed'}; the chip took in {m.taken} "
                 f"packets, the CPU's counter rose by {m.cpu}", plain=str(plain), steered=str(steered),
                 row=row["packets"], tcp=bool(speed), **m.facts())
    table.add("static flows: two streams and TCP", m)


def three(probes):
    """h1 to h2, h3 to h2, h1 to h3."""
    return [probes.run([(a, b, 7000, b)] * PACKETS) for a, b in ((1, 2), (3, 2), (1, 3))]


def in_front(report, table, sw, controller, probes):
    before = {f["number"]: f["place"] for f in sw.flows()}
    report.step(f"a rule in front: {IN_FRONT}")
    controller.add(IN_FRONT)
    report.show(sw.why())
    flows = sw.flows()
    turned = [f for f in flows if f["place"] == "software" and before.get(f["number"]) == "hardware"]
    stay = [f for f in flows if f["place"] == "hardware"]
    named = all("traps, because 1 flow in front" in f["why"] for f in turned)
    report.claim("neighbours turned", len(turned) == 1 + len(STEERED) and len(stay) == 2 and named
                 and sw.status()["chip"]["turned"] == len(turned),
                 f"the chip can't ask for both addresses of IP packets nor write one: {len(turned)} flows that overlap "
                 f"it trap in their places, and --why says so; the other {len(stay)} stations answer on",
                 turned=len(turned), stay=len(stay), named=named)
    with sw.measure() as m:
        came = three(probes)
    written = came[0].sources.get(NEW_SOURCE, 0)
    report.claim("right all the same", not any(c.wrong for c in came) and written == PACKETS and m.cpu == 2 * PACKETS,
                 f"h1 to h2: {came[0]}, {written} with the new source address; h3 to h2, its neighbour: {came[1]}; "
                 f"h1 to h3: {came[2]}; the chip did {m.chip}, the CPU got {m.cpu}", right=[c.right for c in came],
                 sent=PACKETS, written=written, **m.facts())
    table.add("a rule in front that the chip can't do", m)
    report.step("the rule goes")
    controller.take(IN_FRONT)
    back = {f["number"]: f["place"] for f in sw.flows()}
    with sw.measure() as m:
        came = three(probes)
    written = came[0].sources.get(NEW_SOURCE, 0)
    report.claim("and back", back == before and not any(c.wrong for c in came) and written == 0 and m.cpu == 0,
                 f"{sum(p == 'hardware' for p in back.values())} of {len(back)} flows answer in the chip again: "
                 f"{sum(c.right for c in came)} of {3 * PACKETS} packets right, the CPU's counter rose by {m.cpu}",
                 hardware=sum(p == "hardware" for p in back.values()), right=[c.right for c in came], written=written,
                 **m.facts())
    table.add("it has gone", m)


def run(report, table, sw, controller, home):
    report.section("Flows of one table, and a rule that the chip can't do", DRAWING)
    controller.add(*stations(), *[five_tuple(p) for p in STEERED])
    folder = os.path.join(home, "streams")
    os.makedirs(folder, exist_ok=True)
    standing(report, sw)
    in_hardware(report, table, sw, folder)
    with sw.probes() as probes:
        in_front(report, table, sw, controller, probes)
