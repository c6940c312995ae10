# SPDX-License-Identifier: Apache-2.0
"""ofagentd is killed while it works: what a barrier had acknowledged stands in the next one, with ages and counters."""

import os
import struct
import time

import pytest

from lib import net, openflow
from lib.openflow import BARRIER_REQUEST, FLOW_MOD

LISTENING = ("--controller", f"ptcp:127.0.0.1:{openflow.PORT}")
BARRIER_REPLY = 21


@pytest.fixture
def sw(request):
    yield from openflow.lives(request, openflow.Switch(openflow.new()))


def flow_mod(cookie, idle=0, hard=0, in_port=None, to=None, priority=1):
    match = struct.pack("!HH4x", 1, 4)
    if in_port is not None:
        match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, in_port)
    todo = b"" if to is None else struct.pack("!HH4xHHIH6x", 4, 24, 0, 16, to, 0xffff)
    return struct.pack("!QQBBHHHIIIH2x", cookie, 0, 0, 0, idle, hard, priority, 0xffffffff, 0xffffffff, 0xffffffff,
                       0) + match + todo


def kept(sw):
    return os.path.join(sw.folder, "ofagentd.tables")


def test_flows_counters_and_ages_go_on(sw):
    sw.up(*LISTENING)
    peer = sw.peer()
    for a, b in ((1, 2), (2, 1)):
        peer.send(FLOW_MOD, flow_mod(a, idle=60, in_port=a, to=b))
    peer.send(FLOW_MOD, flow_mod(9, hard=8, priority=0))
    peer.barrier()
    began = time.monotonic()
    sw.reaches(1, 2)
    assert sw.pings(1, 2, 5) == 5
    # what a controller is told is kept, and the rest within a second
    peer.ask(18, struct.pack("!HH4xB3xIIIQQHH4x", 1, 0, 0xff, 0xffffffff, 0xffffffff, 0, 0, 0, 1, 4))
    before = {r["cookie"]: r for r in sw.show("flows")}
    peer.close()
    sw.kill()
    assert os.stat(kept(sw)).st_mode & 0o777 == 0o600
    sw.up(*LISTENING)
    assert sw.status()["kept"] and "go on" in sw.log()
    old = time.monotonic() - began
    after = {r["cookie"]: r for r in sw.show("flows")}
    # ages are those of the flows, not of the process
    assert all(r["age_s"] >= old - 0.01 for r in after.values()), (old, after)
    for cookie in [c for c, r in before.items() if r["idle_timeout"]]:
        a, b = before[cookie], after[cookie]
        assert b["packets"] >= a["packets"] >= 5 and b["bytes"] >= a["bytes"], (a, b)
        assert b["age_s"] >= a["age_s"], (a, b)
    # nobody has said anything to it yet
    sw.reaches(1, 2)
    net.wait_until("the third flow's time to be up", lambda: len(sw.show("flows")) == 2)
    assert time.monotonic() - began >= 7.9


def test_what_a_barrier_acknowledged_is_there_whenever_it_is_killed(sw):
    """Flows in one stream with barriers between; the process is killed in the midst."""
    batch = 50
    for attempt in range(3):
        sw.up(*LISTENING)
        peer = sw.peer()
        for n in range(200):
            many = b"".join(struct.pack("!BBHI", 4, FLOW_MOD, 8 + len(m), 0) + m for m in (
                flow_mod(n * batch + i, in_port=n * batch + i) for i in range(batch)))
            peer.s.sendall(many + struct.pack("!BBHI", 4, BARRIER_REQUEST, 8, n))
            if n == 40 * (attempt + 1):
                break
        told = 0
        while told < 10 * (attempt + 1):
            _, xid, _ = peer.next()
            told = xid + 1
        sw.kill()
        # answers that are on their way count as well
        while (m := peer.next()) is not None:
            told = m[1] + 1
        peer.close()
        sw.up(*LISTENING)
        cookies = {r["cookie"] for r in sw.show("flows")}
        missing = [c for c in range(told * batch) if c not in cookies and f"0x{c:x}" not in cookies]
        assert not missing, (told, len(cookies), missing[:5])
        sw.tandem("openflow", "down")
        assert not os.path.exists(kept(sw))


def test_a_file_that_says_nothing_is_said_and_begins_empty(sw):
    sw.up(*LISTENING)
    peer = sw.peer()
    peer.send(FLOW_MOD, flow_mod(1))
    peer.barrier()
    sw.kill()
    with open(kept(sw), "r+b") as f:
        f.write(b"something")
    sw.up(*LISTENING)
    assert sw.show("flows") == [] and "no file of tables" in sw.log()
    peer = sw.peer()
    peer.send(FLOW_MOD, flow_mod(1))
    peer.barrier()
    sw.kill()
    # a batch that was being written
    with open(kept(sw), "ab") as f:
        f.write(bytes(7))
    sw.up(*LISTENING)
    assert len(sw.show("flows")) == 1
    sw.tandem("openflow", "down")
    sw.up(*LISTENING)
    assert sw.show("flows") == []
