# SPDX-License-Identifier: Apache-2.0
"""Part 3 of the demo: a chip whose route table is full, and one route more.

The experiment of "Resource Management for Hardware Accelerated Linux Kernel Network Functions" (figure 1): the default
route leads to r2, which does not know 13.0.0.0/24; the route to 13.0.0.0/24 leads to r1 and does not fit.
"""

from lib import net, traffic
from lib.switch import AsicSwitch

DRAWING = """
                               ┌ swp2 ── r1   13.0.0.0/24 is here
        h1 ── swp1 ── switch ──┤
                      full     └ swp3 ── r2   default route; knows nothing of 13.0.0.0/24
"""

PACKETS = 500
PPS = 250
TARGET = "13.0.0.5"


def build(prefix, policy):
    sw = AsicSwitch(prefix, profile="tiny", policy=policy)
    sw.host("h1", 1).address("10.1.0.2/24", gateway="10.1.0.1")
    sw.host("r1", 2).address("10.4.1.2/24", gateway="10.4.1.1")
    sw.host("r2", 3).address("10.4.2.2/24")
    for r in ("r1", "r2"):
        # the routers keep what is for their own prefixes, r2 drops the rest
        sw.hosts[r].ns.ip("route add local 30.0.0.0/8 dev lo")
        sw.hosts[r].ns.sysctl(ipv4__icmp_ratelimit=0)
    sw.hosts["r1"].ns.ip("route add local 13.0.0.0/24 dev lo")
    sw.start()
    sw.router()
    for port, address in ((1, "10.1.0.1"), (2, "10.4.1.1"), (3, "10.4.2.1")):
        sw.ip(f"link set swp{port} up")
        sw.ip(f"addr add {address}/24 dev swp{port}")
    sw.ip("route add default via 10.4.2.2")
    for host, gateway in (("h1", "10.1.0.1"), ("r1", "10.4.1.1"), ("r2", "10.4.2.1")):
        net.wait_until(f"{host} to reach the switch", lambda h=host, g=gateway: sw.hosts[h].ping(g), timeout=10)
    for gateway in ("10.4.1.2", "10.4.2.2"):
        sw.ns.exec("ping", "-c", "1", "-W", "1", gateway, check=False)
    sw.sync()
    return sw


def pool(sw, name="ipv4-lpm"):
    return next(r for r in sw.show("resources")["items"] if r["name"] == name)


def fill(sw):
    """Routes 30.x.0.0/24 until the chip takes no more; returns those in hardware."""
    size = pool(sw)["size"]
    sw.ns.ip_batch(f"route add 30.{i >> 8}.{i & 255}.0/24 via 10.4.1.2" for i in range(size + 8))
    sw.sync()
    rows = [r for r in sw.show("routes") if r["prefix"].startswith("30.")]
    return [r for r in rows if r["state"] == "offloaded"], rows


def left(sw):
    """Packets that have left the switch to each router."""
    ports = sw.ports()
    return {r: ports[p]["counters"]["tx_packets"] for r, p in (("r1", "swp2"), ("r2", "swp3"))}


def experiment(report, prefix, policy, folder):
    report.step(f"policy {policy}: a new switch with the chip `tiny`")
    sw = build(prefix, policy)
    try:
        fitted, rows = fill(sw)
        free = pool(sw)
        report.step(f"{len(fitted)} of {len(rows)} filler routes fit: the pool {free['name']} has {free['free']} of "
                    f"{free['size']} slots free")
        sw.ip("route add 13.0.0.0/24 via 10.4.1.2")
        sw.sync()
        report.show(sw.tandem("explain", "route", "13.0.0.0/24", check=False))
        cpu, before = sw.cpu_packets(), left(sw)
        lost = traffic.Stream(sw.hosts["h1"].ns, sw.hosts["r1"].ns, TARGET, folder, f"full-{policy}", pps=PPS,
                              seconds=PACKETS / PPS, flows=4).wait()
        by_cpu, ways = sw.cpu_delta(cpu), {r: n - before[r] for r, n in left(sw).items()}
        # a route that fitted, while the chip is full
        one = fitted[len(fitted) // 2]["prefix"].split("/")[0].rsplit(".", 1)[0] + ".9" if fitted else None
        cpu = sw.cpu_packets()
        good = traffic.Stream(sw.hosts["h1"].ns, sw.hosts["r1"].ns, one, folder, f"fit-{policy}", pps=PPS, seconds=1,
                              flows=4).wait() if one else None
        good_cpu = {k: v for k, v in sw.cpu_delta(cpu).items() if k in ("route", "lpm_miss", "unresolved", "uncounted")}
        still = sum(r["state"] == "offloaded" for r in sw.show("routes", "30."))
        return {"lost": lost, "ways": ways, "cpu": by_cpu, "fitted": len(fitted), "still": still, "good": good,
                "good_cpu": good_cpu, "pool": free}
    finally:
        sw.delete()


def run(report, prefix, folder):
    report.section("A full chip: what happens to a route that does not fit?", DRAWING)
    r = experiment(report, prefix + "f-", "fail", folder)
    lost = r["lost"]
    report.claim("policy fail blackholes", len(lost.lost) == lost.count > 0 and r["ways"]["r2"] >= lost.count,
                 f"fail (flag only, as the paper found it): {len(lost.lost)} of {lost.count} packets to {TARGET} lost; "
                 f"{r['ways']['r2']} packets left to r2 meanwhile, {r['ways']['r1']} to r1",
                 lost=len(lost.lost), sent=lost.count, left=r["ways"], pool=r["pool"])
    r = experiment(report, prefix + "t-", "trap", folder)
    lost, good = r["lost"], r["good"]
    by_cpu = sum(r["cpu"].get(k, 0) for k in ("route", "lpm_miss"))
    report.claim("policy trap loses nothing", not lost.lost and lost.count > 0 and by_cpu >= lost.count
                 and r["ways"]["r1"] >= lost.count,
                 f"trap: {len(lost.lost)} of {lost.count} packets to {TARGET} lost; the CPU routed "
                 f"{by_cpu} packets, {r['ways']['r1']} left to r1",
                 lost=len(lost.lost), sent=lost.count, cpu=r["cpu"], pool=r["pool"])
    held = good is not None and not good.lost and not r["good_cpu"] and r["still"] == r["fitted"] > 0
    report.claim("what fits stays in hardware", held,
                 f"the {r['still']} routes that fit are still in hardware: {good} to one of them, "
                 f"{sum(r['good_cpu'].values())} through the CPU",
                 fitted=r["fitted"], still=r["still"], cpu=r["good_cpu"])
