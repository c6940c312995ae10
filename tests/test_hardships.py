# SPDX-License-Identifier: Apache-2.0
"""A machine that runs short of something, and daemons that gave away what they don't need.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import os
import re
import resource
import signal
import subprocess
import time

import pytest

from lib import net
from lib.switch import binaries

CAPABILITIES = {"asicd": {"NET_ADMIN", "NET_RAW", "BPF", "SYS_ADMIN"}, "switchd": {"NET_ADMIN"}}
NUMBERS = {12: "NET_ADMIN", 13: "NET_RAW", 21: "SYS_ADMIN", 39: "BPF"}


def router(make, bridged=()):
    s = make.asic(profile="tiny")
    for i in bridged:
        s.host(f"h{i}", i).address(f"10.3.0.{i}/24")
    s.route_hosts(2)
    if bridged:
        s.ip("link add br0 up type bridge")
    for i in bridged:
        s.ip(f"link set swp{i} master br0")
        s.ip(f"link set swp{i} up")
    s.sync()
    return s


def right(sw):
    out = sw.tandem("audit", "--wait", "5", check=False, timeout=60)
    assert "no differences" in out, out
    sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)


def status(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def processor(pid):
    """Time on a processor, in hundredths of a second."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))


def test_the_daemons_keep_only_what_they_need(make):
    """Every thread of both: named capabilities, no way to others, a system call filter."""
    sw = router(make)
    for daemon, wanted in CAPABILITIES.items():
        pid = sw.pid(daemon)
        for task in os.listdir(f"/proc/{pid}/task"):
            s = status(f"{pid}/task/{task}")
            for kind in ("CapEff", "CapPrm", "CapBnd"):
                bits = int(s[kind], 16)
                found = {NUMBERS.get(n, str(n)) for n in range(64) if bits >> n & 1}
                assert found <= wanted, f"{daemon} {s['Name']}: {kind} {found}"
            assert int(s["CapInh"], 16) == int(s["CapAmb"], 16) == 0
            assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", f"{daemon} {s['Name']}"
        assert os.stat(sw.run_dir).st_mode & 0o777 == 0o700
    for socket in ("asicd.sock", "switchd.sock", "driver.sock"):
        assert os.stat(os.path.join(sw.run_dir, socket)).st_mode & 0o777 == 0o600, socket


@pytest.mark.parametrize("daemon", ["asicd", "switchd"])
def test_out_of_descriptors(make, daemon):
    """No descriptor is left: nothing is answered, packets are forwarded, routes arrive; then all is as before."""
    sw = router(make)
    pid = sw.pid(daemon)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")), before[1]))
    try:
        with pytest.raises((OSError, AssertionError)):
            sw.api(daemon, "GET", "/v1/health" if daemon == "asicd" else "/v1/resources", timeout=2)
        began = processor(pid)
        sw.hosts["h1"].ping("10.2.0.2", count=10, check=True)
        sw.ip("route add 60.0.0.0/24 via 10.2.0.2")
        sw.hosts["h2"].address("60.0.0.1/32")
        net.wait_until("the route to forward", lambda: sw.hosts["h1"].ping("60.0.0.1"), timeout=10)
        used = processor(pid) - began
        assert used < 150, f"{daemon} burnt {used} hundredths of a second while it could accept nothing"
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    net.wait_until("an answer again", lambda: "no differences" in sw.tandem("audit", check=False), timeout=10)
    right(sw)


def fill(path):
    """Writes to the end of a file until its disk is full."""
    f = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    with pytest.raises(OSError):
        for _ in range(1000):
            os.write(f, bytes(1024))
    os.close(f)


def test_a_full_disk(make, monkeypatch):
    """Nothing can be written where the daemons live: the switch works on, a start says what is wrong in one line."""
    folder = f"/run/tnt-{os.getpid()}-full"
    os.makedirs(folder)
    net.run("mount", "-t", "tmpfs", "-o", "size=256k,mode=0755", "none", folder)
    try:
        monkeypatch.setenv("TANDEM_RUN", folder)
        sw = router(make)
        ballast = f"{folder}/ballast"
        fill(ballast)
        sw.ip("route add 60.0.0.0/24 via 10.2.0.2")
        sw.sync()
        right(sw)
        for _ in range(14):  # each is three lines of asicd's log, which has the rest of a page
            sw.api("asicd", "POST", "/v1/fault", {"kind": "reset"})
            time.sleep(0.05)
            sw.sync()
        assert len(sw.log("asicd")) > 4096 - 200, "the log did not run out of room: this tests nothing"
        right(sw)
        sw.hosts_ask_nobody()
        sw.kill()
        fill(ballast)
        words = ["ip", "netns", "exec", sw.ns.name, os.path.join(binaries(), "tandem"), "--name", sw.instance, "up"]
        refused = 0
        while (up := subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)).returncode:
            assert up.stderr.startswith("tandem: ") and up.stderr.count("\n") == 1, up.stderr
            assert "No space left" in up.stderr, up.stderr
            sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)
            refused += 1
            os.truncate(ballast, os.stat(ballast).st_size - 4096)  # room for a page more
        assert refused, "nothing that a start writes was refused: this tests nothing"
        # one that started as soon as it could is a whole switch, on a disk that is full again
        fill(ballast)
        sw.ip("route replace 60.0.0.0/24 via 10.1.0.2")
        sw.sync()
        right(sw)
        os.unlink(ballast)
        right(sw)
    finally:
        for sw in make.made:
            sw.delete()  # while its files can be found
        net.run("umount", "-l", folder)
        os.rmdir(folder)


def test_a_cable_that_is_renamed(make):
    """It stays plugged in, and is as it was when asicd ends: by SIGHUP, as from a terminal that is closed, too."""
    sw = router(make)
    def mtu(name):
        return int(re.search(r" mtu (\d+)", sw.front.ip("link show", name))[1])

    assert mtu("p1") == 9216
    sw.front.ip("link set p1 down")  # a kernel before 6.2 renames no netdev that is up
    sw.front.ip("link set p1 name cable1")
    sw.front.ip("link set cable1 up")
    net.wait_until("the link to be back", lambda: sw.carrier(1), timeout=10)
    right(sw)
    assert "is called cable1 now" in sw.log("asicd")
    assert not [w for w in sw.json("status")["asicd"]["warnings"] if "gone" in w]
    sw.kill("asicd", signal.SIGHUP)
    assert mtu("cable1") == mtu("p2") == 1500
    assert "tandem" not in sw.front.exec("tc", "filter", "show", "dev", "cable1", "ingress")


def test_packets_that_the_chip_does_not_take(make):
    """A port may have an MTU that the chip's rings have not: what is lost there is said, and what fits passes."""
    sw = router(make)
    sw.ip("link set swp1 mtu 40000")
    for size, lost in ((400, False), (30000, True)):
        sw.ns.exec("ping", "-c", "3", "-i", "0.1", "-W", "1", "-M", "do", "-s", str(size), "10.1.0.2", check=False)
        if lost:
            net.wait_until("a warning", lambda: "longer than the chip takes" in sw.tandem("status"), timeout=5)
        else:
            assert "longer than the chip takes" not in sw.tandem("status")
