# SPDX-License-Identifier: Apache-2.0
"""Promise 3, seen from outside: in every snapshot, while routes come and go, each pool adds up.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import threading

from lib import net

KEYS = {"name", "unit", "size", "used", "in_flight", "committed", "free", "high_watermark"}
CLASS_KEYS = {"cls", "family", "pool", "cost", "free_guaranteed", "free_expected"}


def test_pools_add_up_at_every_instant(make):
    sw = make.asic()
    sw.route_hosts(2)
    count = 20000
    adds = [f"route add 40.{i >> 8}.{i & 255}.0/24 via 10.2.0.2" for i in range(count)]
    stop = threading.Event()
    failures, snapshots, seen = [], [], set()

    def watch():
        while not stop.is_set():
            r = sw.show("resources")
            for p in r["items"]:
                if p["used"] + p["in_flight"] + p["committed"] + p["free"] != p["size"]:
                    failures.append(p)
                if not p["used"] + p["in_flight"] <= p["high_watermark"] <= p["size"]:
                    failures.append(p)
            for c in r["classes"]:
                if c["free_guaranteed"] > c["free_expected"]:
                    failures.append(c)
            snapshots.append(1)
            seen.add(next(p["used"] for p in r["items"] if p["name"] == "ipv4-lpm"))

    t = threading.Thread(target=watch)
    t.start()
    try:
        sw.ns.ip_batch(adds)
        sw.sync()
        full = sw.show("resources")
        sw.ns.ip_batch(a.replace("route add", "route del") for a in adds)
        sw.sync()
    finally:
        stop.set()
        t.join()
    assert not failures, failures[:3]
    assert len(snapshots) >= 5 and len(seen) >= 3, "the watcher saw too little of the change to mean anything"
    for p in full["items"]:
        assert KEYS <= set(p)
    for c in full["classes"]:
        assert CLASS_KEYS <= set(c)
    lpm = next(p for p in full["items"] if p["name"] == "ipv4-lpm")
    assert lpm["used"] >= count
    net.wait_until("the routes to be gone from the chip", lambda: next(
        p["used"] for p in sw.show("resources")["items"] if p["name"] == "ipv4-lpm") < 100)
