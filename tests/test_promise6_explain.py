# SPDX-License-Identifier: Apache-2.0
"""Promise 6: every object has a state that a person can read; the audit finds what is not as it should be.

    h1 10.1.0.2 ── swp1 ─┐
    h2 10.2.0.2 ── swp2 ─┼─ switch      br0: swp3
    h3          ── swp3 ─┘
"""

import pytest

from lib import net


@pytest.fixture
def sw(make):
    s = make.asic()
    s.host("h3", 3)
    s.route_hosts(2)
    s.ip("link add br0 type bridge mcast_snooping 0")
    s.ip("link set swp3 master br0 up")
    s.ip("link set br0 up")
    s.ns.bridge("fdb add 02:00:00:00:00:33 dev swp3 master static")
    s.ip("route add 20.0.0.0/8 via 10.2.0.2")
    s.ip("route add 21.0.0.0/8 via 10.2.0.77")
    s.ip("route add unreachable 22.0.0.0/8")
    s.sync()
    return s


def test_explain(sw):
    e = sw.json("explain", "route", "20.0.0.0/8")
    assert e["in_hardware"] is True and e["state"] == "offloaded", e
    e = sw.json("explain", "route", "20.1.2.3")
    assert "20.0.0.0/8" in e["object"], e
    e = sw.json("explain", "route", "21.0.0.0/8", check=False)
    assert e["in_hardware"] is False and e["reason"], e
    e = sw.json("explain", "route", "22.0.0.0/8", check=False)
    assert e["in_hardware"] is False and e["reason"], e
    e = sw.json("explain", "mac", "02:00:00:00:00:33")
    assert e["in_hardware"] is True, e
    e = sw.json("explain", "neighbour", "10.2.0.2")
    assert e["in_hardware"] is True, e
    with pytest.raises(net.CommandError) as bad:
        sw.tandem("explain", "neighbour", "10.2.0.200")
    assert bad.value.code == 1


def test_every_row_that_is_not_offloaded_has_a_reason(sw):
    for what in ("routes", "neighbours", "fdb"):
        for row in sw.show(what):
            if row["state"] != "offloaded":
                assert row.get("reason"), f"{what}: {row}"
            if row["state"] != "pending":
                continue
            pytest.fail(f"{what}: still pending after sync: {row}")


@pytest.mark.parametrize("table,key", [("routes", "20.0.0.0/8"), ("neighbours", "10.2.0.2"),
                                       ("fdb", "02:00:00:00:00:33")])
def test_audit_finds_a_flipped_entry(sw, table, key):
    assert "no differences" in sw.tandem("audit", timeout=60)
    sw.tandem("fault", "flip", table, key)
    with pytest.raises(net.CommandError) as found:
        sw.tandem("audit", "--wait", "1", timeout=60)
    assert found.value.code == 1
    rows = sw.json("audit", "--wait", "1", check=False, timeout=60)["items"]
    assert any(key.split("/")[0] in r["key"] and r["between"] == "store-asic" for r in rows), rows


def test_a_failed_write_is_seen_and_told(sw):
    # all routes from now on are refused, so the one that comes has to be: it is not in hardware, and says why
    sw.tandem("fault", "fail", "--cls", "route", "--nth", "1", "--count", "1000000")
    armed = sw.json("fault", "list")["items"]
    assert armed, "the fault is not armed: this tests nothing"
    sw.ip("route add 25.0.0.0/24 via 10.2.0.2")
    sw.sync()
    e = sw.json("explain", "route", "25.0.0.0/24", check=False)
    assert not e["in_hardware"] and e["reason"], e
    assert sw.json("fault", "list")["items"] != armed, "the fault did not fire"
    sw.tandem("fault", "clear")
    # a refusal that has nothing to do with room lasts until the route goes
    sw.ip("route del 25.0.0.0/24")
    sw.sync()
    sw.ip("route add 25.0.0.0/24 via 10.2.0.2")
    sw.sync()
    assert sw.json("explain", "route", "25.0.0.0/24", check=False)["in_hardware"]
    assert sw.hosts["h1"].ping("10.2.0.2") == 1
    assert "no differences" in sw.tandem("audit", "--wait", "5", check=False, timeout=60)
