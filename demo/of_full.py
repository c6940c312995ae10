# SPDX-License-Identifier: Apache-2.0
"""Part 3: more flows than the chip's TCAM has rows."""

from of_static import STEERED, five_tuple, places, told

DRAWING = """
        IS2 of the VSC9953: 2,048 half rows, 4 of them for frames that no row can tell apart
        and 2,200 flows h1 ► h2, one UDP port each: every packet shall leave by swp4
"""
MORE = 2200
GONE = 300
FIRST = 10000  # UDP ports of five digits, others than those that stand already


def packets():
    """One packet for each of the flows, and one for each station behind them."""
    return [(1, 2, FIRST + i, 4) for i in range(MORE)]


STATIONS = [(1, 3, 7000, 3), (3, 2, 7000, 2), (2, 1, 7000, 1)]


def run(report, table, sw, controller):
    report.section("A full chip: what happens to a flow that does not fit?", DRAWING)
    flows = [five_tuple(FIRST + i) for i in range(MORE)]
    controller.add(*flows)
    chip, rows = sw.status()["chip"], sw.flows()
    mine = [f for f in rows if "udp_dst=1" in f["match"]]
    inside = [f for f in mine if f["place"] == "hardware"]
    full = [f for f in mine if f["place"] == "software" and "full" in f["why"]]
    report.step(f"one of those outside: {full[0]['why'] if full else 'there is none'}")
    report.claim("the TCAM is full", chip["acl_used"] == chip["acl_size"] == 2044 and chip["state"] == "open"
                 and len(mine) == MORE and len(full) == len(mine) - len(inside) == MORE + len(STEERED) - 2044,
                 f"{chip['acl_used']} of {chip['acl_size']} rows used; of {len(mine)} flows {len(inside)} are in the "
                 f"chip, {len(full)} in software because it is full; none was refused",
                 used=chip["acl_used"], size=chip["acl_size"], inside=len(inside), outside=len(full))
    with sw.probes() as probes:
        with sw.measure() as m:
            came = probes.run(packets())
        report.claim("each packet right", not came.wrong and m.taken == MORE and m.cpu == len(full),
                     f"a packet of each flow: {came}; the chip forwarded {m.chip}, the software {m.cpu}",
                     right=came.right, sent=len(came.packets), **m.facts())
        table.add(f"a full TCAM, {MORE} flows", m)
        behind = [f for f in rows if f["priority"] == 10]
        trapping = sum(f["place"] == "software" for f in behind)
        with sw.measure() as m:
            came = probes.run(STATIONS * 50)
        report.claim("what is behind them", not came.wrong and m.cpu == (len(came.packets) if trapping else 0),
                     f"the {trapping} stations behind flows that found no room trap (a packet to them might be one of "
                     f"those): {came}, the CPU got {m.cpu}", trapping=trapping, right=came.right,
                     sent=len(came.packets), **m.facts())
        table.add("a full TCAM, stations behind", m)
        report.step(f"{GONE} of the flows in the chip go")
        gone = {int(f["match"].rpartition("udp_dst=")[2]) - FIRST for f in inside[:GONE]}
        left = [i for i in range(MORE) if i not in gone]
        controller.take(*[flows[i] for i in gone])
        found = places(sw.flows())
        with sw.measure() as m:
            came = probes.run([(1, 2, FIRST + i, 4) for i in left] + STATIONS)
        report.claim("who waited comes in", found == {"MAC table": 3, "IS2": len(left) + len(STEERED), "software": 0}
                     and not came.wrong and m.cpu == 0,
                     f"{told(found)}; a packet of each: {came}, the CPU's counter rose by {m.cpu}",
                     right=came.right, sent=len(came.packets), **found, **m.facts())
        table.add(f"{GONE} flows fewer", m)
