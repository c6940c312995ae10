# SPDX-License-Identifier: Apache-2.0
"""Promise 2: full is a normal answer.

    h1 10.1.0.2 ── swp1 ─┐
    h2 10.2.0.2 ── swp2 ─┼─ switch with the chip `tiny`
    h3 10.3.0.2 ── swp3 ─┘
"""

import pytest

from lib import net, traffic

CPU_DATA = ("route", "lpm_miss", "unresolved", "connected", "fdb_incomplete")


def tiny(make, policy):
    sw = make.asic(profile="tiny", policy=policy).route_hosts(3)
    for h in ("h2", "h3"):
        sw.hosts[h].ns.ip("route add local 30.0.0.0/8 dev lo")
    # h2 has 13.0.0.0/24; what reaches h3 is lost
    sw.hosts["h2"].ns.ip("route add local 13.0.0.0/24 dev lo")
    for i in (1, 2, 3):
        h = sw.hosts[f"h{i}"]
        net.wait_until(f"h{i} to reach the switch", lambda h=h, i=i: h.ping(f"10.{i}.0.1"), timeout=10)
        sw.ns.exec("ping", "-c", "1", "-W", "1", f"10.{i}.0.2", check=False)
    sw.at_rest()
    return sw


def lpm(sw):
    return next(r for r in sw.show("resources")["items"] if r["name"] == "ipv4-lpm")


def accounts(sw):
    """What each pool has given away, or is giving."""
    return {r["name"]: (r["used"], r["in_flight"], r["committed"]) for r in sw.show("resources")["items"]}


def fill(sw, via="10.2.0.2", extra=4):
    size = lpm(sw)["size"]
    sw.ns.ip_batch(f"route add 30.{i >> 8}.{i & 255}.0/24 via {via}" for i in range(size + extra))
    sw.sync()
    rows = [r for r in sw.show("routes") if r["prefix"].startswith("30.")]
    # how the kernel's messages are cut into batches decides whether an aggregate trap is left beside them
    rows = [r for r in rows if not (r["reason"] or "").startswith("an aggregate trap")]
    assert len(rows) == size + extra
    return rows


@pytest.mark.parametrize("policy", ["trap", "fail"])
def test_full_names_table_need_and_free(make, policy):
    sw = tiny(make, policy)
    rows = fill(sw)
    fitted = [r for r in rows if r["state"] == "offloaded"]
    others = [r for r in rows if r["state"] != "offloaded"]
    assert fitted and others
    pool = lpm(sw)
    assert pool["free"] == 0
    for r in others:
        assert r["reason"] and "IPv4 LPM" in r["reason"] and f"of {pool['size']}" in r["reason"], r
    e = sw.json("explain", "route", others[0]["prefix"], check=False)
    assert e["in_hardware"] is False and "IPv4 LPM" in e["reason"], e
    # both daemons live, and the chip goes on taking what fits
    assert sw.json("status")["switchd"]["sync"]["phase"] == "steady"
    sw.ip(f"route del {fitted[0]['prefix']}")
    sw.sync()
    waiting = [r for r in sw.show("routes") if r["prefix"].startswith("30.") and r["state"] == "offloaded"]
    assert len(waiting) == len(fitted), "a freed slot wakes one of those that wait"


def test_trap_loses_nothing_and_keeps_what_fits_in_hardware(make, folder):
    sw = tiny(make, "trap")
    sw.ip("route add default via 10.3.0.2")
    rows = fill(sw)
    fitted = [r for r in rows if r["state"] == "offloaded"]
    sw.ip("route add 13.0.0.0/24 via 10.2.0.2")
    sw.sync()
    h1, h2 = sw.hosts["h1"].ns, sw.hosts["h2"].ns
    before = sw.cpu_packets()
    result = traffic.Stream(h1, h2, "13.0.0.5", folder, "trap", pps=200, seconds=2).wait()
    assert result.count and not result.lost, str(result)
    seen = sw.cpu_delta(before)
    assert seen.get("route", 0) + seen.get("lpm_miss", 0) >= result.count * 0.9, seen
    before = sw.cpu_packets()
    address = fitted[0]["prefix"].replace(".0/24", ".7")
    result = traffic.Stream(h1, h2, address, folder, "fits", pps=200, seconds=1).wait()
    assert not result.lost, str(result)
    assert not {k: v for k, v in sw.cpu_delta(before).items() if k in CPU_DATA}


def test_fail_blackholes_as_the_paper_found(make, folder):
    sw = tiny(make, "fail")
    sw.ip("route add default via 10.3.0.2")
    fill(sw)
    sw.ip("route add 13.0.0.0/24 via 10.2.0.2")
    sw.sync()
    result = traffic.Stream(sw.hosts["h1"].ns, sw.hosts["h2"].ns, "13.0.0.5", folder, "fail", pps=200, seconds=2).wait()
    assert result.count and len(result.lost) == result.count, str(result)


def test_drained_chip_is_empty_again(make):
    sw = tiny(make, "trap")
    before = accounts(sw)
    rows = fill(sw)
    sw.ns.ip_batch(f"route del {r['prefix']}" for r in rows)
    sw.sync()
    assert accounts(sw) == before, "every pool, not only that of routes"
    there = [r for r in sw.show("routes", "--hw") if str(r.get("prefix", "")).startswith("30.")]
    assert not there, f"in the chip's memory still: {there[:5]}"
    assert "no differences" in sw.tandem("audit", check=False, timeout=60)
