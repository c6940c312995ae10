# SPDX-License-Identifier: Apache-2.0
"""A chip that misbehaves (`tandem fault`): answers that never come or come late cost time, never an answer's truth.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import time

import pytest

from lib import net


@pytest.fixture
def sw(make):
    return make.asic().route_hosts(2)


def routes(sw, net8, count=100, verb="add"):
    sw.ns.ip_batch(f"route {verb} {net8}.0.{i}.0/24 via 10.2.0.2" for i in range(count))


def offloaded(sw, net8):
    return sum(r["prefix"].startswith(f"{net8}.0.") and r["state"] == "offloaded" for r in sw.show("routes"))


def right(sw):
    out = sw.tandem("audit", "--wait", "5", check=False, timeout=60)
    assert "no differences" in out, out
    sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)


def test_lost_answers_are_made_good(sw):
    """Five answers are lost, to writes and to deletes; a command is given up after 5 s, and its key made certain."""
    for nth in (1, 2, 30, 60, 99):
        sw.tandem("fault", "drop", "--nth", str(nth))
    began = time.monotonic()
    routes(sw, 60)
    sw.tandem("sync", "--timeout", "40", timeout=60)
    assert time.monotonic() - began > 4, "no answer was lost: the fault did nothing"
    assert offloaded(sw, 60) == 100
    right(sw)
    sw.tandem("fault", "drop", "--nth", "5")
    routes(sw, 60, verb="del")
    sw.tandem("sync", "--timeout", "40", timeout=60)
    right(sw)
    items = {p["name"]: p for p in sw.show("resources")["items"]}
    assert all(p["in_flight"] == 0 for p in items.values()), items


def test_late_answers_delay_only_programming(sw):
    """Each command takes 20 ms longer: the chip forwards meanwhile, new routes get the kernel's answer by the CPU."""
    sw.tandem("fault", "delay", "20")
    routes(sw, 61)
    began = time.monotonic()
    assert sw.hosts["h1"].ping("10.2.0.2", count=5, interval=0.05) == 5
    sw.tandem("sync", "--timeout", "40", timeout=60)
    took = time.monotonic() - began
    sw.tandem("fault", "clear")
    assert offloaded(sw, 61) == 100
    assert took > 0.5, f"100 commands of 20 ms took {took:.2f} s: the fault did nothing"
    right(sw)


def test_an_answer_lost_at_attach_ends_the_attempt(sw):
    """kill -9 of switchd, and the chip's first answer to the next one is lost: that one says so and ends, the chip
    forwards on, and the one after it finds everything as it was (the service manager's job where there is one)."""
    routes(sw, 62)
    sw.sync()
    table = sorted(map(str, sw.show("routes", "--hw")))
    sw.kill("switchd")
    sw.tandem("fault", "drop", "--nth", "1")
    with pytest.raises(net.CommandError) as e:
        sw.tandem("up", timeout=60)
    assert "no answer from the ASIC" in e.value.said + sw.log("switchd"), e.value.said
    sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)
    sw.tandem("up", timeout=60)
    sw.tandem("sync", "--timeout", "30", timeout=60)
    assert sorted(map(str, sw.show("routes", "--hw"))) == table
    right(sw)
