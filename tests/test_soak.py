# SPDX-License-Identifier: Apache-2.0
# alone: changes and traffic as fast as they go
"""A long day in little: thousands of route changes a second, and switchd is killed every 20 seconds.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2, and 20.0.0.1 behind it: numbered datagrams all the time
                                 └── swp3 ── h3 10.3.0.2, the next hop of the routes that come and go

Half a minute; 30 minutes with TANDEM_LONG=1, or TANDEM_SOAK seconds.
"""

import os
import statistics
import threading
import time

from conftest import LONG

from lib import net, traffic

SECONDS = int(os.environ.get("TANDEM_SOAK", "1800" if LONG else "30"))
KILL_EVERY = 20 if SECONDS >= 60 else 7
RATE = 5000  # changes a second that are asked for
BATCH = 1000
PREFIXES = 20000  # at most so many of them are there


class Churn(threading.Thread):
    """Routes are added, moved to another metric's next hop, and deleted, at RATE or as fast as the machine can."""

    def __init__(self, sw):
        super().__init__(daemon=True)
        self.sw, self.stop, self.done, self.error = sw, threading.Event(), 0, None

    def run(self):
        began, turn = time.monotonic(), 0
        steps = PREFIXES // BATCH
        try:
            while not self.stop.is_set():
                at, phase = turn % steps, turn // steps % 3
                verb = ("add", "replace", "del")[phase]
                via = "" if phase == 2 else f" via 10.{2 + phase}.0.2"
                block = range(at * BATCH, (at + 1) * BATCH)
                self.sw.ns.ip_batch(f"route {verb} 100.{i >> 8}.{i & 255}.0/24{via}" for i in block)
                self.done += BATCH
                turn += 1
                time.sleep(max(0.0, began + self.done / RATE - time.monotonic()))
        except Exception as e:  # noqa: BLE001 - told by the test
            self.error = e


def memory(pid):
    """Proportional set size in kB, and open descriptors."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        pss = next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    return pss, len(os.listdir(f"/proc/{pid}/fd"))


def test_soak(make, folder):
    sw = make.asic().route_hosts(3)
    h1, h2 = sw.hosts["h1"], sw.hosts["h2"]
    h2.address("20.0.0.1/32")
    sw.ip("route add 20.0.0.0/24 via 10.2.0.2")
    net.wait_until("h1 to reach 20.0.0.1", lambda: h1.ping("20.0.0.1"), timeout=10)
    net.wait_until("h3 to answer", lambda: sw.ns.exec("ping", "-c1", "-W1", "10.3.0.2", check=False), timeout=10)
    sw.sync()
    asicd = sw.pid("asicd")
    churn = Churn(sw)
    stream = traffic.Stream(h1.ns, h2.ns, "20.0.0.1", folder, "soak", pps=1000, seconds=SECONDS + 600, flows=16)
    churn.start()
    began, kills, sizes, fds, young = time.monotonic(), 0, [], set(), []
    try:
        while time.monotonic() - began < SECONDS and not churn.error:
            time.sleep(KILL_EVERY)
            pss, open_now = memory(asicd)
            sizes.append(pss)
            young.append(memory(sw.pid("switchd")))  # each switchd at the same age, with the same table
            sw.kill("switchd")
            sw.tandem("up", timeout=60)
            kills += 1
            fds.add(open_now)
        spent = time.monotonic() - began
    finally:
        churn.stop.set()
        churn.join(60)
    assert not churn.error, churn.error
    sw.tandem("sync", "--timeout", "60", timeout=90)
    result = stream.finish()
    rate = churn.done / spent
    said = f"{rate:.0f} changes/s, {kills} kills in {spent:.0f} s, asicd {sizes[0]} to {sizes[-1]} kB, {result}"
    print(said)
    assert churn.done > 5 * PREFIXES or rate > RATE * 0.2, said
    assert sw.pid("asicd") == asicd
    assert "no differences" in sw.tandem("audit", "--wait", "10", check=False, timeout=90)
    assert not result.lost and not result.duplicates, said
    assert max(fds) - min(fds) <= 4, f"asicd's descriptors: {sorted(fds)}"
    if len(sizes) >= 8:
        # the first quarter fills what stays; from there on nothing grows
        early, late = (statistics.median(s) for s in (sizes[len(sizes) // 4:len(sizes) // 2], sizes[-len(sizes) // 4:]))
        assert late < early * 1.05 + 1024, f"asicd grew from {early} to {late} kB"
    grown = max(p for p, _ in young)
    assert grown < statistics.median(p for p, _ in young) * 1.5 + 4096, f"switchd's memory, kill after kill: {young}"
    assert max(f for _, f in young) - min(f for _, f in young) <= 4, f"switchd's descriptors: {young}"
    # all of it goes again
    left = [x.split()[0] for x in sw.ns.ip("route show").splitlines() if x.startswith("100.")]
    sw.ns.ip_batch(f"route del {p}" for p in left)
    sw.tandem("sync", "--timeout", "60", timeout=90)
    assert not [r for r in sw.show("routes", "--hw") if str(r.get("prefix", "")).startswith("100.")]
    pools = sw.show("resources")["items"]
    assert all(p["in_flight"] == 0 for p in pools), pools
