# SPDX-License-Identifier: Apache-2.0
"""What the kernel changes without a message, and changes in bulk: afterwards kernel, store and chip are equal.

    h1 10.1.0.2 ── swp1 ─┐
    h2 10.2.0.2 ── swp2 ─┼─ switch
    h3 10.3.0.2 ── swp3 ─┘
"""

import random

import pytest

from lib import net


@pytest.fixture
def sw(make):
    return make.asic().route_hosts(3, six=True)


def equal(sw):
    sw.sync()
    out = sw.tandem("audit", "--wait", "3", check=False, timeout=60)
    assert "no differences" in out, out


def prefixes(sw):
    return {r["prefix"] for r in sw.show("routes")}


def test_link_down_takes_its_routes(sw):
    sw.ns.ip_batch(f"route add 50.0.{i}.0/24 via 10.2.0.2" for i in range(100))
    sw.ip("nexthop add id 9 via 10.2.0.2 dev swp2")
    sw.ip("route add 51.0.0.0/24 nhid 9")
    sw.ip("-6 route add fd50::/32 via fd02::2")
    # a worse alias becomes active when the link goes
    sw.ip("route add 50.0.5.0/24 via 10.3.0.2 metric 100")
    sw.sync()
    assert "50.0.7.0/24" in prefixes(sw)
    sw.ip("link set swp2 down")
    equal(sw)
    left = prefixes(sw)
    assert "50.0.7.0/24" not in left and "51.0.0.0/24" not in left and "50.0.5.0/24" in left
    assert "fd50::/32" not in left
    # by the chip, as soon as the gateway has answered
    net.wait_until("the worse route to forward",
                   lambda: sw.json("trace", "swp1", "--icmp", "10.1.0.2", "50.0.5.1")["egress"] == ["swp3"], timeout=10)
    sw.gateway(2, six=True)
    equal(sw)


def test_address_removed_takes_its_routes(sw):
    sw.ip("route add 52.0.0.0/24 via 10.3.0.2")
    sw.ip("route add 52.0.1.0/24 dev swp1 src 10.1.0.1")
    sw.sync()
    sw.ip("addr del 10.3.0.1/24 dev swp3")
    equal(sw)
    assert "52.0.0.0/24" not in prefixes(sw) and "52.0.1.0/24" in prefixes(sw)
    # not the last address of its device, and a route elsewhere prefers it as its source
    sw.ip("addr add 10.9.0.1/24 dev swp1")
    sw.ip("route add 52.0.2.0/24 via 10.2.0.2 src 10.1.0.1")
    sw.ip("route add 52.0.3.0/24 via 10.2.0.2")
    equal(sw)
    assert {"52.0.1.0/24", "52.0.2.0/24"} <= prefixes(sw)
    sw.ip("addr del 10.1.0.1/24 dev swp1")
    equal(sw)
    left = prefixes(sw)
    assert not {"52.0.1.0/24", "52.0.2.0/24"} & left and "52.0.3.0/24" in left and "10.9.0.0/24" in left


def test_next_hop_object_removed(sw):
    sw.ip("nexthop add id 1 via 10.2.0.2 dev swp2")
    sw.ip("nexthop add id 2 via 10.3.0.2 dev swp3")
    sw.ip("nexthop add id 10 group 1/2")
    sw.ns.ip_batch(f"route add 53.0.{i}.0/24 nhid 10" for i in range(50))
    equal(sw)
    sw.ip("nexthop del id 1")
    equal(sw)
    assert "53.0.7.0/24" in prefixes(sw)
    sw.ip("nexthop del id 10")
    equal(sw)
    assert "53.0.7.0/24" not in prefixes(sw)


def test_flush_and_bridge_removed(sw):
    sw.ns.ip_batch(f"route add 54.0.{i}.0/24 via 10.2.0.2" for i in range(200))
    sw.ip("link add br0 type bridge mcast_snooping 0")
    sw.ip("link set swp3 master br0")
    sw.ip("link set br0 up")
    sw.ns.bridge("fdb add 02:00:00:00:00:33 dev swp3 master static")
    equal(sw)
    sw.ip("route flush root 54.0.0.0/8")
    sw.ip("link del br0")
    equal(sw)
    assert not any(p.startswith("54.") for p in prefixes(sw))
    assert not [r for r in sw.show("fdb") if r["mac"] == "02:00:00:00:00:33"]


def test_cable_pulled_and_back(sw):
    """Carrier goes and comes; the netdev stays; traffic flows again."""
    h2 = sw.hosts["h2"]
    h2.ns.ip("link set eth0 down")
    net.wait_until("swp2 to lose carrier", lambda: "LOWER_UP" not in sw.ns.ip("-o link show swp2"), timeout=5)
    h2.ns.ip("link set eth0 up")
    net.wait_until("swp2 to have carrier", lambda: "LOWER_UP" in sw.ns.ip("-o link show swp2"), timeout=5)
    h2.ns.ip("route replace default via 10.2.0.1")
    net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
    equal(sw)


def test_random_churn(sw):
    """A seeded storm of changes; then the audit, and what `ip route get` says is what the chip does."""
    rnd = random.Random(7)
    nets = [f"60.{rnd.randrange(4)}.{rnd.randrange(8)}.0/{rnd.choice([16, 20, 22, 24])}" for _ in range(60)]
    nets = sorted({str(net_of(n)) for n in nets})
    lines = []
    for _ in range(1500):
        n = rnd.choice(nets)
        via = rnd.choice(["10.2.0.2", "10.3.0.2"])
        lines.append(rnd.choice([f"route replace {n} via {via}", f"route replace {n} via {via}", f"route del {n}",
                                 f"route replace {n} nexthop via 10.2.0.2 nexthop via 10.3.0.2",
                                 f"route replace blackhole {n}"]))
    # deletes of what is not there are part of the storm
    sw.ns.exec("ip", "-force", "-4", "-batch", "-", stdin="\n".join(lines) + "\n", timeout=60, check=False)
    equal(sw)
    kernel = {line.split()[1] if line.startswith("blackhole") else line.split()[0]
              for line in sw.ns.ip("-o -4 route show").splitlines()}
    assert {p for p in prefixes(sw) if p.startswith("60.")} == {k for k in kernel if k.startswith("60.")}


def net_of(text):
    import ipaddress
    return ipaddress.ip_network(text, strict=False)
