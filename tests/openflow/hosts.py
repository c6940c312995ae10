# SPDX-License-Identifier: Apache-2.0
"""Hosts behind a switch's ports, and what they reach."""

import re

from lib import net


def mac(i):
    return f"02:00:00:00:01:{i:02x}"


def ping(host, target, count=3, interval=0.2, timeout=5):
    """Number of answers; if there is none, the last one had so long."""
    said = host.exec("ping", "-q", "-n", "-c", count, "-i", interval, "-W", timeout, target, check=False,
                     timeout=count * max(interval, timeout) + 15)
    found = re.search(r"(\d+) received", said)
    return int(found.group(1)) if found else 0


def answered(host, target, count=3):
    """All of so many pings are answered, on a busy machine late."""
    return all(ping(host, target, 1, timeout=30) == 1 for _ in range(count))


def reaches(host, target, timeout=40):
    """Waits until three pings in a row are answered."""
    net.wait_until(f"{host.name} to reach {target}",
                   lambda: ping(host, target, 3, interval=0.1, timeout=1) == 3, timeout=timeout)
