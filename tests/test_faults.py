# SPDX-License-Identifier: Apache-2.0
"""A chip that misbehaves (`tandem fault`): answers that never come or come late cost time, never an answer's truth.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import os
import time

import pytest

from lib import monitor, net, traffic


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


def test_answers_that_come_twice_are_taken_once(sw):
    """The chip answers four commands twice: each is taken once, the other one is counted and changes nothing."""
    def strays():
        return sw.api("switchd", "GET", "/v1/status")["control"]["stray"]

    before = strays()
    for nth in (1, 2, 30, 99):
        sw.tandem("fault", "duplicate", "--nth", str(nth))
    assert "command 30 is answered twice (0 such commands so far)" in sw.tandem("fault", "list")
    routes(sw, 63)
    routes(sw, 63, count=20, verb="del")
    sw.tandem("sync", "--timeout", "40", timeout=60)
    assert strays() - before == 4
    assert offloaded(sw, 63) == 80
    right(sw)
    items = {p["name"]: p for p in sw.show("resources")["items"]}
    assert all(p["in_flight"] == 0 for p in items.values()), items
    sw.tandem("fault", "clear")
    assert sw.tandem("fault", "list").strip() == "no faults are armed"


def test_a_link_that_flaps(sw):
    """swp2's link goes down three times although its cable is fine: the kernel hears of each, and all is as before."""
    with monitor.LinkMonitor(sw.ns) as watch:
        sw.tandem("fault", "flap", "swp2", "--count", "3", "--ms", "300")
        assert not sw.ports()["swp2"]["link"]
        assert sw.hosts["h1"].ping("10.2.0.2", count=1, timeout=0.2) == 0, "the link is down, and packets pass"
        assert "swp2 flaps" in sw.tandem("fault", "list")
        net.wait_until("the flaps to end", lambda: "swp2" not in sw.tandem("fault", "list"), timeout=10)
        net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
        events = list(watch.events)
    downs = [e for e in events if e.name == "swp2" and not e.carrier]
    assert len(downs) >= 3, events
    assert sw.ports()["swp2"]["link"]
    right(sw)


@pytest.mark.parametrize("ring", ["completion", "event", "rx"])
def test_a_ring_that_is_corrupt_costs_a_new_attach(sw, folder, ring):
    """switchd finds an index that can't be, drops the session and attaches anew, warm: nothing is lost meanwhile."""
    routes(sw, 64)
    sw.sync()
    before = sw.api("switchd", "GET", "/v1/status")["epoch"]
    table = sorted(map(str, sw.show("routes", "--hw")))
    h1, h2 = sw.hosts["h1"], sw.hosts["h2"]
    stream = traffic.Stream(h1.ns, h2.ns, "10.2.0.2", folder, "corrupt", pps=500, seconds=20, flows=4)
    time.sleep(0.5)
    sw.tandem("fault", "corrupt", ring)
    net.wait_until("another epoch", lambda: sw.api("switchd", "GET", "/v1/status")["epoch"] not in (0, before),
                   timeout=15)
    sw.tandem("sync", "--timeout", "30", timeout=60)
    result = stream.finish()
    assert not result.lost, str(result)
    assert "impossible" in sw.log("switchd")
    assert sorted(map(str, sw.show("routes", "--hw"))) == table
    assert offloaded(sw, 64) == 100
    right(sw)


def test_a_plan_from_the_start(make, folder):
    """Faults that are armed before the first command; a plan that can't be read starts nothing."""
    sw = make.asic()
    sw.host("h1", 1)
    plan = os.path.join(folder, "plan.toml")

    def write(*lines):
        with open(plan, "w", encoding="utf-8") as f:
            f.writelines(f"{x}\n" for x in lines)

    for told, *lines in (("explode", "[[fault]]", 'kind = "explode"'),
                         ("fault 1: table fdb is empty", "[[fault]]", 'kind = "flip"', 'table = "fdb"'),
                         ("fault 1: no driver is attached", "[[fault]]", 'kind = "corrupt"', 'ring = "rx"')):
        write(*lines)
        with pytest.raises(net.CommandError) as e:
            sw.tandem("up", "--port", f"swp1=p1@{sw.front.name}", "--faults", plan)
        assert str(plan) in e.value.said and told in e.value.said, e.value.said
        assert "not running" in sw.tandem("status", check=False)
    write("[[fault]]", 'kind = "fail"', 'cls = "rif"', "count = 2", "[[fault]]", 'kind = "delay"', "ms = 1")
    sw.tandem("up", "--port", f"swp1=p1@{sw.front.name}", "--faults", plan, timeout=60)
    sw.started = True
    first = sw.tandem("fault", "list").splitlines()[0]
    assert first == "write of rif 1 fails, and the 1 after it (0 such commands so far)", first
    sw.router()
    sw.gateway(1)
    sw.tandem("sync", "--timeout", "40", timeout=60)
    assert "(0 such" not in sw.tandem("fault", "list").splitlines()[0], "the fault did nothing"
    right_alone = sw.tandem("audit", "--wait", "10", check=False, timeout=60)
    assert "no differences" in right_alone, right_alone
    # as it was told, it is told again; without it, it is another switch
    with pytest.raises(net.CommandError) as e:
        sw.tandem("up", "--faults", "none", timeout=60)
    assert f"faults {plan}, not none" in e.value.said, e.value.said
    sw.tandem("down", timeout=60)
    sw.tandem("up", "--faults", "none", timeout=60)
    assert sw.tandem("fault", "list").strip() == "no faults are armed"


def test_late_answers_delay_only_programming(sw):
    """Each command takes 20 ms longer: the chip forwards meanwhile, new routes get the kernel's answer by the CPU."""
    sw.tandem("fault", "delay", "20")
    began = time.monotonic()
    routes(sw, 61)
    assert sw.hosts["h1"].ping("10.2.0.2", count=5, interval=0.05, check=True)
    sw.tandem("sync", "--timeout", "40", timeout=60)
    took = time.monotonic() - began
    sw.tandem("fault", "clear")
    assert offloaded(sw, 61) == 100
    # all of them, which by themselves take far less, with five echoes as well; a busy machine takes longer, never less
    assert took > 1.9, f"100 commands of 20 ms took {took:.2f} s: the fault did nothing"
    right(sw)


def test_an_answer_lost_at_attach_ends_the_attempt(sw):
    """kill -9 of switchd, and the chip's first answer to the next one is lost: that one says so and ends, the chip
    forwards on, and the one after it finds everything as it was (the service manager's job where there is one)."""
    routes(sw, 62)
    sw.sync()
    table = sorted(map(str, sw.show("routes", "--hw")))
    sw.hosts_ask_nobody()
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
