# SPDX-License-Identifier: Apache-2.0
"""The ports' netdevs: a port renamed is the same port; one that was deleted is missed, said, and made again.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import pytest

from lib import net


@pytest.fixture
def sw(make):
    s = make.asic()
    for i in (1, 2):
        s.host(f"h{i}", i).address(f"10.{i}.0.2/24", gateway=f"10.{i}.0.1")
    s.start()
    s.router()
    for i in (1, 2):
        up(s, i)
    net.wait_until("h1 to reach h2", lambda: s.hosts["h1"].ping("10.2.0.2"), timeout=10)
    s.sync()
    return s


def up(sw, i):
    sw.ip(f"link set swp{i} up")
    sw.ip(f"addr add 10.{i}.0.1/24 dev swp{i}")


def has_carrier(sw, dev):
    return "LOWER_UP" in sw.ip("-o link show", dev)


def test_a_renamed_port_is_the_same_port(sw):
    sw.ip("link set swp1 down")
    sw.ip("link set swp1 name uplink")
    sw.ip("link set uplink up")
    sw.sync()
    net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
    # carrier follows the cable still
    sw.hosts["h1"].ns.ip("link set eth0 down")
    net.wait_until("uplink without carrier", lambda: not has_carrier(sw, "uplink"), timeout=5)
    sw.hosts["h1"].ns.ip("link set eth0 up")
    net.wait_until("uplink with carrier", lambda: has_carrier(sw, "uplink"), timeout=5)
    assert sw.ports()["swp1"]["netdev"] == "uplink"
    # and the next switchd finds it under its new name
    sw.kill("switchd")
    sw.tandem("up", timeout=60)
    sw.sync()
    assert "uplink" in sw.ip("-o link show") and "swp1:" not in sw.ip("-o link show")
    sw.hosts["h1"].ns.ip("route replace default via 10.1.0.1")
    sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)


def test_a_deleted_port_is_said_and_made_again(sw):
    sw.ip("link del swp2")
    net.wait_until("a warning", lambda: any("swp2: its netdev is gone" in w for w in warnings(sw)), timeout=5)
    sw.sync()
    out = sw.tandem("audit", "--wait", "2", check=False, timeout=60)
    assert "no differences" in out, out
    sw.kill("switchd")
    sw.tandem("up", timeout=60)
    up(sw, 2)
    net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
    assert not any("netdev is gone" in w for w in warnings(sw))


def warnings(sw):
    return sw.json("status")["switchd"]["warnings"]
