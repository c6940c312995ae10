# SPDX-License-Identifier: Apache-2.0
"""An upgrade from an earlier version, daemon by daemon, and back, under traffic. The earlier one's binaries are in
TANDEM_OLD (`./run test upgrade`; `tests/old-version.sh REVISION` builds them).

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2        asicd   old ─► old ─► new ─► new ─► old
    h3 10.9.0.3 ── swp3 ── br0 ───── swp4 ── h4 10.9.0.4        switchd old ─► new ─► new ─► old ─► old
"""

import os
import subprocess

from lib import net
from lib.switch import binaries

OLD = os.environ["TANDEM_OLD"]


def test_an_upgrade_and_back(make):
    sw = make.asic()
    for i in (3, 4):
        sw.host(f"h{i}", i).address(f"10.9.0.{i}/24")
    new = os.environ.get("TANDEM_BIN")
    os.environ["TANDEM_BIN"] = OLD
    try:
        sw.route_hosts(2)
    finally:
        del os.environ["TANDEM_BIN"]
        if new:
            os.environ["TANDEM_BIN"] = new
    sw.ip("link add br0 up type bridge")
    for i in (3, 4):
        sw.ip(f"link set swp{i} up master br0")
    sw.ip("route add 20.0.0.0/8 nexthop via 10.1.0.2 nexthop via 10.2.0.2")
    h1, h3 = sw.hosts["h1"], sw.hosts["h3"]
    net.wait_until("h3 to reach h4", lambda: h3.ping("10.9.0.4"), timeout=10)
    sw.sync()

    def up(where):
        """`tandem up` of a version, with nothing but what the last start left."""
        return sw.ns.exec(os.path.join(where, "tandem"), "--name", sw.instance, "up", timeout=60)

    def holds(what):
        sw.sync()
        before = sw.cpu_packets()
        h1.ping("10.2.0.2", count=20, interval=0.02, check=True)
        h3.ping("10.9.0.4", count=20, interval=0.02, check=True)
        # each way has its neighbours asked for now and then; the pings themselves are the chip's
        assert sum(sw.cpu_delta(before).values()) < 20, (what, sw.cpu_delta(before))
        for tandem in (OLD, binaries()):
            out = sw.ns.exec(os.path.join(tandem, "tandem"), "--name", sw.instance, "audit", "--wait", "2", timeout=60)
            assert "no differences" in out, (what, out)

    def others(daemon, where, what):
        """That daemon of another version, while the other forwards on."""
        stream = h3.ns.popen("ping", "-q", "-i", "0.02", "-c", "150", "10.9.0.4", stdout=subprocess.PIPE, text=True)
        sw.kill(daemon)
        up(where)
        runs = os.path.realpath(f"/proc/{sw.pid(daemon)}/exe")
        assert runs == os.path.realpath(os.path.join(where, daemon)), (what, runs)
        said = stream.communicate(timeout=30)[0]
        if daemon == "switchd":
            assert "150 received, 0% packet loss" in said, (what, said)
        net.wait_until("h1 to reach h2", lambda: h1.ping("10.2.0.2"), timeout=20)
        holds(what)

    holds("old")
    others("switchd", binaries(), "new switchd, old asicd")
    others("asicd", binaries(), "new")
    others("switchd", OLD, "old switchd, new asicd")
    others("asicd", OLD, "old again")
    # a stop and a start, with the files of the one before
    sw.ns.exec(os.path.join(OLD, "tandem"), "--name", sw.instance, "down", timeout=30)
    up(binaries())
    for i in (1, 2):
        sw.gateway(i)
    net.wait_until("h1 to reach h2", lambda: h1.ping("10.2.0.2"), timeout=20)
