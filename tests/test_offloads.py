# SPDX-License-Identifier: Apache-2.0
"""Hosts with their default offloads (partial checksums, super-frames): TCP and UDP as well as ping; the idle RTT.

    h1 10.1.0.2 ── swp1 ─┐
    h2 10.1.0.3 ── swp2 ─┴ br0 10.1.0.1 ─ switch ─ swp3 10.3.0.1 ── h3 10.3.0.2
"""

import re
import statistics
import time

import pytest

from lib import net, traffic


def bridge_and_router(make):
    """A switch with two hosts on a bridge and one behind a router, who reach each other."""
    s = make.asic()
    s.host("h1", 1).address("10.1.0.2/24", "fd01::2/64", gateway="10.1.0.1", gateway6="fd01::1")
    s.host("h2", 2).address("10.1.0.3/24", "fd01::3/64", gateway="10.1.0.1", gateway6="fd01::1")
    s.host("h3", 3).address("10.3.0.2/24", "fd03::2/64", gateway="10.3.0.1", gateway6="fd03::1")
    s.start()
    s.router()
    s.ip("link add br0 type bridge mcast_snooping 0")
    for p in (1, 2):
        s.ip(f"link set swp{p} master br0 up")
    s.ip("link set br0 up")
    s.ip("addr add 10.1.0.1/24 dev br0")
    s.ip("addr add fd01::1/64 dev br0 nodad")
    s.ip("link set swp3 up")
    s.ip("addr add 10.3.0.1/24 dev swp3")
    s.ip("addr add fd03::1/64 dev swp3 nodad")
    for a in ("10.1.0.3", "10.3.0.2", "fd01::3", "fd03::2"):
        net.wait_until(f"h1 to reach {a}", lambda a=a: s.hosts["h1"].ping(a), timeout=15)
    s.sync()
    return s


@pytest.fixture
def sw(make):
    return bridge_and_router(make)


CASES = [("bridged", "h2", "10.1.0.3"), ("bridged6", "h2", "fd01::3"), ("routed", "h3", "10.3.0.2"),
         ("routed6", "h3", "fd03::2")]


def test_tcp_udp_and_ping(sw, folder):
    features = sw.hosts["h1"].ns.exec("sh", "-c", "ethtool -k eth0 2>/dev/null || true")
    assert not features or "tx-checksumming: on" in features, "the test is about default offloads"
    h1 = sw.hosts["h1"]
    before = sw.cpu_packets()
    for name, host, address in CASES:
        dst = sw.hosts[host]
        server = dst.ns.popen(*traffic.words("serve", "--bind", "::", "--port", 5001), stdout=-1)
        server.stdout.readline()
        out = h1.ns.exec(*traffic.words("fetch", "--dst", address, "--port", 5001, "--bytes", 24 << 20), timeout=60)
        server.terminate()
        server.wait(5)
        server.stdout.close()
        assert int(out) > 20, f"{name}: TCP {out} Mb/s"
        for size in (20, 1400):
            r = traffic.Stream(h1.ns, dst.ns, address, folder, f"{name}{size}", pps=1000, seconds=1, size=size,
                               bind="::" if ":" in address else None).wait()
            assert not r.lost and not r.duplicates, f"{name}, {size} bytes: {r}"
        # larger than the MTU: the hosts fragment, the switch passes fragments
        r = traffic.Stream(h1.ns, dst.ns, address, folder, f"{name}frag", pps=100, seconds=0.5, size=4000).wait()
        assert not r.lost, f"{name}, fragments: {r}"
        assert h1.ping(address, count=3, size=1400, check=True)
    seen = {k: v for k, v in sw.cpu_delta(before).items()
            if k in ("route", "lpm_miss", "unresolved", "connected", "mtu", "error", "unsupported", "options")}
    assert not seen, f"all of this fits and is supported, yet the CPU saw {seen}"


def test_idle_rtt(sw):
    """Issue: at most 0.3 ms through asicd on an idle machine (the median). Other work makes that of a run longer, a
    switch that sleeps has no run without: judged is the best of a minute."""
    for address in ("10.1.0.3", "10.3.0.2"):
        medians, end = [], time.monotonic() + net.PATIENCE
        while not medians or min(medians) > 0.3 and time.monotonic() < end:
            out = sw.hosts["h1"].ns.exec("ping", "-n", "-c", "20", "-i", "0.05", address)
            medians.append(statistics.median(float(t) for t in re.findall(r"time=([\d.]+) ms", out)))
        print(f"{address}: medians of {medians} ms")
        assert min(medians) <= 0.3, f"{address}: {medians} ms"


def test_the_host_does_not_answer_behind_the_switch(sw):
    """A front-panel netdev belongs to the ASIC: an address on it is not reachable from the cable."""
    sw.front.ip("addr add 10.1.0.200/24 dev p1")
    assert sw.hosts["h1"].ping("10.1.0.200") == 0
    # and with asicd gone nothing forwards at all
    sw.kill("asicd")
    assert sw.hosts["h1"].ping("10.1.0.3") == 0
