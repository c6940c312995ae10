# SPDX-License-Identifier: Apache-2.0
"""Little memory: the whole machine's, so only in one of 256 MB that does nothing else (test_switchd_memory.sh).

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import configparser
import os
import re
import resource
import subprocess

import pytest

from lib import net
from lib.switch import TOP, binaries

ROUTES = 20000
MEMORY_KB = 300 << 10  # of a machine of 256 MB; another one has more
# Takes all the memory there is
HOG = "a = []\nwhile True: a.append(bytearray(b'x' * (1 << 20)))"


@pytest.fixture(autouse=True)
def little_memory():
    with open("/proc/meminfo", encoding="ascii") as f:
        total = int(re.search(r"MemTotal: +(\d+)", f.read())[1])
    assert total < MEMORY_KB, f"{total} kB: this is for a machine with little memory"


def right(sw):
    out = sw.tandem("audit", "--wait", "20", check=False, timeout=120)
    assert "no differences" in out, out
    sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)


def peak_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])


def killed():
    """What the kernel says it has killed for want of memory, so far."""
    return re.findall(r"Killed process \d+ \(([^)]*)\)", net.run("dmesg"))


def units():
    """OOMScoreAdjust of the daemons' units."""
    found = {}
    for daemon in ("asicd", "switchd"):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.read(os.path.join(TOP, "packaging", "systemd", f"tandem-{daemon}@.service"))
        found[daemon] = unit["Service"]["OOMScoreAdjust"]
    return found


def run_out():
    """A process takes all memory until the kernel ends it; who else was ended."""
    before = killed()
    hog = subprocess.run(["python3", "-c", HOG], capture_output=True, timeout=300, check=False)
    assert hog.returncode == -9, f"the kernel did not end who took all memory: {hog}"
    return killed()[len(before):]


def test_a_table_fills_and_memory_runs_out(make):
    """The chip's table takes its routes; who takes all memory is ended, with the units' protection and without, and the
    switch is as before."""
    sw = make.asic(profile="spectrum-sn2700").route_hosts(2)
    sw.ns.ip_batch([f"route add 60.{n >> 8}.{n & 255}.0/24 via 10.2.0.2" for n in range(ROUTES)], timeout=300)
    sw.sync()
    right(sw)
    pids = {d: sw.pid(d) for d in ("asicd", "switchd")}
    print(f"peak: { {d: peak_kb(p) for d, p in pids.items()} } kB")
    for protection in ({}, units()):
        for daemon, adjust in protection.items():
            assert int(adjust) < 0
            with open(f"/proc/{pids[daemon]}/oom_score_adj", "w", encoding="ascii") as f:
                f.write(adjust)
        ended = run_out()
        assert ended and all(name.startswith("python") for name in ended), ended
        assert {d: sw.pid(d) for d in pids} == pids
        right(sw)


@pytest.mark.parametrize("megabytes", [20, 40])
def test_a_start_with_too_little_memory(make, megabytes):
    """It ends in one line that says so; nothing is left of it, and with enough memory it starts."""
    sw = make.asic(profile="spectrum-sn2700")
    sw.host("h1", 1)
    words = ["ip", "netns", "exec", sw.ns.name, os.path.join(binaries(), "tandem"), "--name", sw.instance, "up",
             "--profile", "spectrum-sn2700"]
    limit = (megabytes << 20, megabytes << 20)
    up = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False,
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    assert up.returncode, "a start with so little succeeded: this tests nothing"
    assert up.stderr.startswith("tandem: ") and up.stderr.count("\n") == 1, up.stderr
    assert re.search("memory allocation of|Cannot allocate memory", up.stderr), up.stderr
    left = subprocess.run(["pgrep", "-af", f"name {sw.instance}"], capture_output=True, text=True, check=False).stdout
    assert not left, f"still there: {left}"
    links = sw.ns.ip("-o link show")
    assert "swp" not in links, links
    sw.start()
    assert "no differences" in sw.tandem("audit", check=False, timeout=60)
