# SPDX-License-Identifier: Apache-2.0
"""The time of day jumps, a day forward and a year back. In the lab's machine only: a clock can't be had per namespace.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
    h3 10.3.0.3 ── swp3 ── br0    ── swp4 ── h4 10.3.0.4
"""

import subprocess
import time

from test_hardships import right, router


def jump(seconds):
    subprocess.run(["date", "-s", f"@{int(time.time()) + seconds}"], check=True, stdout=subprocess.DEVNULL)


def test_the_clock_jumps(make):
    sw = router(make, bridged=(3, 4))
    sw.hosts["h3"].ping("10.3.0.4", count=3, check=True)
    sw.sync()
    learned = {row["mac"] for row in sw.show("fdb")}
    before = time.monotonic()
    for seconds in (86400, -365 * 86400, 364 * 86400):
        jump(seconds)
        sw.ip("route add 60.0.0.0/24 via 10.2.0.2")
        sw.sync()  # or it fails after 25 s
        right(sw)
        sw.ip("route del 60.0.0.0/24 via 10.2.0.2")
        # nothing is aged by a day that never was
        assert time.monotonic() - before > 250 or learned <= {row["mac"] for row in sw.show("fdb")}
    sw.kill()
    sw.tandem("up", timeout=120)
    right(sw)
