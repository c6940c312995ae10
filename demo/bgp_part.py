# SPDX-License-Identifier: Apache-2.0
"""Part 2 of the demo: two BGP routers, 1,024 routes, ECMP over both, and a link that is cut."""

import time

from lib import monitor, net, traffic

DRAWING = """
                                       ┌ swp3 ── 10.9.1.2 r1 (FRR, AS 65010) ┐
        h3 ── swp5 ── switch           │                                     ├── server: 1,024 prefixes
                      FRR, AS 65001 ───┤                                     │   of 20.0.0.0/8
                                       └ swp4 ── 10.9.2.2 r2 (FRR, AS 65010) ┘
"""

FLOWS = 256
PPS = 2000


def run(report, sw, routers, folder):
    report.section("Routes from a real BGP daemon, over two links", DRAWING)
    report.step(f"starting FRR on r1, r2 and the switch; {routers.count} prefixes from each router")
    began = time.monotonic()
    routers.start()
    routers.wait_established(timeout=40)
    in_kernel = time.monotonic() - began
    sw.sync()
    in_asic = time.monotonic() - began
    rows = [r for r in sw.show("routes") if r["prefix"].startswith("20.")]
    offloaded = [r for r in rows if r["state"] == "offloaded"]
    table = [r for r in sw.show("routes", "--hw") if str(r.get("prefix", "")).startswith("20.")]
    report.claim("bgp routes", len(offloaded) == routers.count and len(table) == routers.count,
                 f"{len(rows)} BGP routes in the kernel after {in_kernel:.1f} s, {len(offloaded)} of them in hardware "
                 f"after {in_asic:.1f} s ({len(table)} in the chip's table memory)",
                 routes=len(rows), offloaded=len(offloaded), table_memory=len(table),
                 kernel_s=round(in_kernel, 2), asic_s=round(in_asic, 2))
    report.show(sw.tandem("show", "routes", "20.0.5.0/24"))

    h3 = sw.hosts["h3"]
    addresses = [f"20.0.{i}.{1 + i % 200}" for i in range(64)]
    # resolve both next hops first: a flow's first packets may still go through the CPU
    warm = traffic.Stream(h3.ns, routers.server, addresses[0], folder, "warm", pps=500, seconds=1.5, flows=FLOWS,
                          addresses=addresses)
    warm.wait()
    sw.sync()

    report.step(f"ECMP: {FLOWS} flows at {PPS} packets/s")
    cpu = sw.cpu_packets()
    before = sw.ports()
    result = traffic.Stream(h3.ns, routers.server, addresses[0], folder, "ecmp", pps=PPS, seconds=4, flows=FLOWS,
                            addresses=addresses).wait()
    after = sw.ports()
    out = [after[p]["counters"]["tx_packets"] - before[p]["counters"]["tx_packets"] for p in ("swp3", "swp4")]
    share = out[0] / max(1, sum(out))
    slow = {k: v for k, v in sw.cpu_delta(cpu).items()
            if k in ("route", "lpm_miss", "unresolved", "connected", "uncounted")}
    report.claim("ecmp", 0.35 <= share <= 0.65 and not result.lost and not result.reordered and not slow,
                 f"swp3 carried {share:.0%}, swp4 {1 - share:.0%}; {result}; none through the CPU" if not slow else
                 f"swp3 carried {share:.0%}, swp4 {1 - share:.0%}; {result}; through the CPU: {slow}",
                 share_swp3=round(share, 3), sent=result.count, lost=len(result.lost), reordered=result.reordered,
                 cpu=slow)

    report.step("the cable between swp3 and r1 is cut while traffic runs")
    with monitor.LinkMonitor(sw.ns) as links, monitor.LinkMonitor(sw.hosts["r1"].ns) as far_end:
        stream = traffic.Stream(h3.ns, routers.server, addresses[0], folder, "cut", pps=PPS, seconds=30, flows=FLOWS,
                                addresses=addresses)
        time.sleep(1.5)
        begin = time.monotonic_ns()
        sw.hosts["r1"].ns.ip("link set eth0 down")
        cut = net.wait_until("r1's link to be down", lambda: far_end.first(
            "eth0", lambda e: not e.carrier, after=begin), timeout=5, every=0.01)
        knows = net.wait_until("the kernel to see swp3 lose carrier",
                               lambda: links.first("swp3", lambda e: not e.carrier, after=begin), timeout=10,
                               every=0.01)
        time.sleep(0.5)
        before, since = sw.ports(), time.monotonic_ns()
        time.sleep(2.0)
        until, after = time.monotonic_ns(), sw.ports()
        result = stream.finish()
    out = [after[p]["counters"]["tx_packets"] - before[p]["counters"]["tx_packets"] for p in ("swp3", "swp4")]
    late = [n for n, t in enumerate(result.sent) if since <= t < until]
    flows = len({n % FLOWS for n in late if n in result.arrived})
    first = result.sent[result.lost[0]] if result.lost else begin
    after_knowing = result.lost_between(knows, result.sent[-1] + 1)
    last = max([result.sent[n] for n in after_knowing], default=knows)
    gap_ms = (last - knows) / 1e6
    total_ms = len(result.lost) * 1000 / PPS
    report.claim("fail-over", gap_ms <= 50 and result.lost_between(0, begin) == [] and out[0] == 0 and flows == FLOWS
                 and out[1] >= len(late) * 0.95,
                 f"the kernel's message of the lost carrier was read {max(0, knows - cut) / 1e6:.0f} ms after the cut; "
                 f"the last lost packet left {gap_ms:.0f} ms after that (limit 50), {max(last - first, 0) / 1e6:.0f} "
                 f"ms after the first; {len(result.lost)} of {result.count} lost; then, in 2 s, {flows} of {FLOWS} "
                 f"flows arrived, {out[0]} packets left by swp3 and {out[1]} by swp4",
                 outage_ms=round(max(last - first, 0) / 1e6, 1), flows_after=flows, out_after=out,
                 kernel_knows_ms=round(max(0, knows - cut) / 1e6, 1), lost_for_ms=round(gap_ms, 1),
                 lost=len(result.lost),
                 lost_equivalent_ms=round(total_ms, 1), sent=result.count)
