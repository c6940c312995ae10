# SPDX-License-Identifier: Apache-2.0
"""Promise 4: kill -9 of switchd loses no packet, no netdev, no BGP session, and rewrites nothing that was right.

    h1 10.1.1.2 ── swp1 ── switch ─┬─ swp3 ── r1 ─┐
                        10,000 pps │              ├─ server, BGP prefixes
                        of traffic └─ swp4 ── r2 ─┘
"""

import os
import time

import pytest
from conftest import LONG

from lib import bgp, monitor, net, traffic

KILLS = int(os.environ.get("TANDEM_KILLS", "100" if LONG else "20"))
PPS = 10000


@pytest.fixture
def topology(make, folder, routers_available):
    sw = make.asic()
    h1 = sw.host("h1", 1)
    routers = bgp.Routers(sw, folder, count=512, hold_s=60)
    try:
        sw.start()
        sw.router()
        sw.ns.sysctl(ipv4__fib_multipath_hash_policy=1)
        h1.address("10.1.1.2/24", gateway="10.1.1.1")
        sw.ip("link set swp1 up")
        sw.ip("addr add 10.1.1.1/24 dev swp1")
        routers.addresses()
        routers.start()
        routers.wait_established()
        net.wait_until("h1 to reach the server", lambda: h1.ping("20.0.5.1"), timeout=15)
        # both next hops resolved, and the path warm
        traffic.Stream(h1.ns, routers.server, "20.0.5.1", folder, "warm", pps=500, seconds=1, flows=64).wait()
        sw.at_rest()
        yield sw, h1, routers
    finally:
        routers.delete()


def restart(sw):
    sw.kill("switchd")
    sw.tandem("up", timeout=60)


def losses(sw):
    """What the switch itself knows to have lost: an overrun cable is a machine too slow for the traffic."""
    counts = {f"drop {d['reason']}": d["packets"] for d in sw.show("drops")}
    for name, port in sw.ports().items():
        for k in ("cable_rx_overrun", "cable_tx_dropped"):
            counts[f"{name} {k}"] = port["counters"]["detail"].get(k, 0)
    return counts


def test_kill_9_under_traffic(topology, folder):
    sw, h1, routers = topology
    sessions = routers.sessions()
    assert len(sessions) == 2 and all(s == "Established" for s, _ in sessions.values()), sessions
    table = sorted(map(str, sw.show("routes", "--hw")))
    links = sw.ns.ip("-o link show")
    before, lost_before = sw.cpu_packets(), losses(sw)
    with monitor.LinkMonitor(sw.ns) as watch:
        stream = traffic.Stream(h1.ns, routers.server, "20.0.5.1", folder, "kill", pps=PPS, seconds=600, flows=64)
        time.sleep(0.5)
        churn = 0
        for n in range(KILLS):
            if n % 3 == 2:
                # killed while it programs
                sw.ns.ip_batch(f"route add 50.{n}.{i}.0/24 via 10.9.1.2" for i in range(200))
                churn += 200
            restart(sw)
            time.sleep(0.3)
        sw.sync()
        result = stream.finish()
        events = list(watch.events)
    where = {k: v - lost_before.get(k, 0) for k, v in losses(sw).items() if v != lost_before.get(k, 0)}
    assert result.count > KILLS * PPS * 0.2
    assert not result.lost, f"{result}; first lost {result.lost[:3]}; the chip's own counts: {where}; {events[:3]}"
    assert not result.duplicates and not result.reordered, str(result)
    assert not events, f"link messages: {events[:5]}"
    assert routers.sessions() == sessions, "a BGP session went down"
    assert sw.ns.ip("-o link show") == links
    slow = {k: v for k, v in sw.cpu_delta(before).items() if k in ("route", "lpm_miss", "unresolved", "connected")}
    assert not slow, f"a restart sent data to the CPU: {slow}"
    now = [r for r in sw.show("routes", "--hw") if not str(r.get("prefix", "")).startswith("50.")]
    assert len(now) == len(table)
    assert len([r for r in sw.show("routes") if r["prefix"].startswith("50.") and r["state"] == "offloaded"]) == churn
    assert "no differences" in sw.tandem("audit", check=False, timeout=60)


def test_restart_rewrites_nothing_that_was_right(topology):
    """A new switchd reads the kernel and the chip, finds them equal, and writes to no table."""
    sw, _, _ = topology
    before = sw.json("status")["switchd"]
    assert before["writes"] > 0, "the counter counts"
    restart(sw)
    sw.sync()
    after = sw.json("status")["switchd"]
    assert after["pid"] != before["pid"] and after["writes"] == 0, after
    # and the counter is not stuck: one route more is at least one write
    sw.ip("route add 51.0.0.0/24 via 10.9.1.2")
    sw.sync()
    assert sw.json("status")["switchd"]["writes"] >= 1


def test_stations_stay_where_the_chip_saw_them(make):
    """A station moves while switchd is dead: the next one does not move it back, and tells the kernel."""
    sw = make.asic()
    hosts = {n: sw.host(f"h{n}", n, mac=f"02:aa:00:00:00:0{n}") for n in (1, 2, 3)}
    for n, h in hosts.items():
        h.ns.sysctl(ipv6__conf__eth0__disable_ipv6=1)
        h.address(f"10.7.0.{n}/24")
    sw.start()
    sw.ip("link add br0 type bridge mcast_snooping 0 forward_delay 0")
    for p in hosts:
        sw.ip(f"link set swp{p} master br0 up")
    sw.ip("link set br0 up")
    net.wait_until("h1 to reach h2", lambda: hosts[1].ping("10.7.0.2"), timeout=10)
    sw.at_rest()

    def kernel(mac):
        lines = sw.ns.bridge("fdb show br br0").splitlines()
        return [line.split()[2] for line in lines if line.startswith(mac) and "extern_learn" in line]

    mac = hosts[1].mac
    assert kernel(mac) == ["swp1"]
    sw.kill("switchd")
    hosts[3].ns.ip("link set eth0 address", mac)
    net.wait_until("the moved station to be answered", lambda: hosts[3].ping("10.7.0.2"), timeout=10)
    sw.tandem("up", timeout=60)
    sw.sync()
    assert kernel(mac) == ["swp3"]
    assert sw.json("status")["switchd"]["writes"] == 0
    before = sw.cpu_packets()
    assert hosts[3].ping("10.7.0.2", count=3, check=True)
    assert not sw.cpu_delta(before).get("fdb_incomplete"), "the chip forwards it"
    assert "no differences" in sw.tandem("audit", check=False, timeout=60)


def test_asicd_restart_is_programmed_again(topology):
    """asicd's death costs packets (it forwards), but not the configuration: switchd programs a fresh chip."""
    sw, h1, routers = topology
    sw.kill("asicd")
    sw.tandem("up", timeout=60)
    net.wait_until("traffic to flow again", lambda: h1.ping("20.0.5.1"), timeout=20)
    sw.sync()
    rows = [r for r in sw.show("routes") if r["prefix"].startswith("20.")]
    assert len(rows) >= 512
    assert "no differences" in sw.tandem("audit", "--wait", "5", check=False, timeout=60)
