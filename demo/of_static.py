# SPDX-License-Identifier: Apache-2.0
"""Part 2: flows of one table stand in the chip; a rule that it can't do comes in front of them, and goes."""

from lib import traffic
from lib.openflow import PORT
from of_flow import Controller
from of_switch import A, B, PROFILE, SOURCE, ChipSwitch, mac

DRAWING = """
        h1 ── swp1 ┐
        h2 ── swp2 ┤ nxp-t1040          stations (eth_dst)               ► the chip's MAC table
        h3 ── swp3 ┤                    5-tuples of UDP h1 to h2, which
        h4 ── swp4 ┘                    shall leave by swp4 all the same ► its TCAM, IS2
"""
NEW_SOURCE = "02:00:00:00:09:09"
STEERED = range(7100, 7104)
PACKETS = 300
STREAM = 2000
MEBIBYTES = 8


def stations():
    return [f"priority=10,eth_dst={mac(n)},actions=output:{n}" for n in (1, 2, 3)]


def five_tuple(port):
    return f"priority=100,udp,in_port=1,nw_src={A},nw_dst={B},udp_src={SOURCE},udp_dst={port},actions=output:4"


IN_FRONT = (f"priority=200,eth_src={mac(1)},eth_dst={mac(2)},"
            f"actions=set_field:{NEW_SOURCE}->eth_src,output:2")


def build(prefix):
    sw = ChipSwitch(prefix + "st-")
    try:
        for n in (1, 2, 3, 4):
            sw.host(n, f"10.0.0.{n}/24")
        sw.knows(1, "10.0.0.3", 3)
        sw.knows(3, "10.0.0.1", 1)
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


def in_hardware(report, table, sw, probes):
    """Numbered packets and TCP; the CPU's counter stands still."""
    h1, _, h3, _ = sw.hosts
    port = STEERED[0]
    with sw.measure() as m:
        plain = probes.run([(1, 2, 7000, 2)] * STREAM)
        steered = probes.run([(1, 2, port, 4)] * STREAM)
    row = sw.flow(lambda f: f["match"].endswith(f"udp_dst={port}"))
    good = not plain.wrong and not steered.wrong and not plain.reordered and not steered.reordered
    report.claim("numbered packets by the chip alone", good and m.taken == 2 * STREAM and m.cpu == 0
                 and row["packets"] == STREAM,
                 f"h1 to h2: {plain}, {plain.reordered} out of order; a 5-tuple to swp4: {steered}, "
                 f"{steered.reordered} out of order, its row counted {row['packets']}; the chip took in {m.taken}, the "
                 f"CPU's counter rose by {m.cpu}", right=[plain.right, steered.right], sent=[STREAM, STREAM],
                 row=row["packets"], **m.facts())
    table.add("static flows: numbered packets", m)
    server = h3.popen(*traffic.words("serve", "--bind", "0.0.0.0", "--port", 5001), stdout=-1)
    server.stdout.readline()
    with sw.measure() as m:
        same = h1.exec(*traffic.words("fetch", "--dst", "10.0.0.3", "--port", 5001, "--bytes", MEBIBYTES << 20),
                       timeout=120, check=False).strip()
    server.terminate()
    server.wait(5)
    server.stdout.close()
    report.claim("TCP by the chip alone", bool(same) and m.total("rx_bytes") > MEBIBYTES << 20 and m.cpu == 0,
                 f"TCP h1 to h3: {f'{MEBIBYTES} MiB, content equal' if same else 'failed'}; the chip took in {m.taken} "
                 f"packets, the CPU's counter rose by {m.cpu}", same=bool(same), **m.facts())
    table.add("static flows: TCP", m)


def four(probes, steered):
    """h1 to h2, the same by a 5-tuple, h3 to h2, h1 to h3."""
    return [probes.run([(a, b, port, out)] * PACKETS) for a, b, port, out in
            ((1, 2, 7000, 2), (1, 2, STEERED[0], steered), (3, 2, 7000, 2), (1, 3, 7000, 3))]


def in_front(report, table, sw, controller, probes):
    before = {f["number"]: f["place"] for f in sw.flows()}
    report.step(f"a rule in front: {IN_FRONT}")
    controller.add(IN_FRONT)
    report.show(sw.why())
    flows = sw.flows()
    turned = [f for f in flows if f["place"] == "software" and before.get(f["number"]) == "hardware"]
    stay = [f for f in flows if f["place"] == "hardware"]
    named = all("traps, because 1 flow in front" in f["why"] for f in turned)
    # and what no flow is for, which the chip drops otherwise
    rules = len(turned) + 1
    report.claim("neighbours turned", len(turned) == 1 + len(STEERED) and len(stay) == 2 and named
                 and sw.status()["chip"]["turned"] == rules,
                 f"the chip can't ask for both addresses of IP packets nor write one: {len(turned)} flows that overlap "
                 f"it trap in their places, and --why says so; the other {len(stay)} stations answer on",
                 turned=len(turned), stay=len(stay), named=named)
    with sw.measure() as m:
        came = four(probes, steered=2)
    written = sum(c.sources.get(NEW_SOURCE, 0) for c in came)
    report.claim("right all the same", not any(c.wrong for c in came) and written == 2 * PACKETS
                 and m.cpu == 3 * PACKETS and m.taken == 4 * PACKETS,
                 f"h1 to h2: {came[0]}, by the 5-tuple's port: {came[1]}, {written} with the new source address; h3 to "
                 f"h2, a neighbour: {came[2]}; h1 to h3: {came[3]}; the chip did {m.chip}, the CPU got {m.cpu}",
                 right=[c.right for c in came], sent=PACKETS, written=written, **m.facts())
    table.add("a rule in front that the chip can't do", m)
    report.step("the rule goes")
    controller.take(IN_FRONT)
    back = {f["number"]: f["place"] for f in sw.flows()}
    with sw.measure() as m:
        came = four(probes, steered=4)
    written = sum(c.sources.get(NEW_SOURCE, 0) for c in came)
    report.claim("and back", back == before and not any(c.wrong for c in came) and written == 0 and m.cpu == 0
                 and m.taken == 4 * PACKETS,
                 f"{sum(p == 'hardware' for p in back.values())} of {len(back)} flows answer in the chip again: "
                 f"{sum(c.right for c in came)} of {4 * PACKETS} packets right, the CPU's counter rose by {m.cpu}",
                 hardware=sum(p == "hardware" for p in back.values()), right=[c.right for c in came], written=written,
                 **m.facts())
    table.add("it has gone", m)


def run(report, table, sw, controller):
    report.section("Flows of one table, and a rule that the chip can't do", DRAWING)
    controller.add(*stations(), *[five_tuple(p) for p in STEERED])
    standing(report, sw)
    with sw.probes() as probes:
        in_hardware(report, table, sw, probes)
        in_front(report, table, sw, controller, probes)
