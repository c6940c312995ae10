# SPDX-License-Identifier: Apache-2.0
"""ofagentd is killed while it works: what a barrier had acknowledged stands in the next one, with ages and counters."""

import os
import signal
import socket
import struct
import threading
import time

import pytest

from lib import net, openflow
from lib.openflow import BARRIER_REQUEST, FLOW_MOD
from test_openflow_chip import CHIP, ETH_TYPE, LISTENING, ChipSwitch, both_ways, flow, out

BARRIER_REPLY = 21


@pytest.fixture
def sw(request):
    yield from openflow.lives(request, openflow.Switch(openflow.new()))


@pytest.fixture
def chip(request):
    yield from openflow.lives(request, ChipSwitch(openflow.new()))


class Numbered:
    """Packets with numbers from the first host to the second one, 500 a second, while something happens."""

    PORT = 7000

    def __init__(self, sw):
        self.to = net.in_netns(sw.hosts[1].name, socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        self.by = net.in_netns(sw.hosts[0].name, socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        self.to.bind(("10.0.0.2", self.PORT))
        self.to.settimeout(1)
        self.sent, self.came, self.ends = 0, [], False
        self.threads = [threading.Thread(target=t) for t in (self.send, self.take)]

    def send(self):
        while not self.ends:
            self.by.sendto(struct.pack("!Q", self.sent), ("10.0.0.2", self.PORT))
            self.sent += 1
            time.sleep(0.002)

    def take(self):
        while True:
            try:
                self.came += struct.unpack("!Q", self.to.recv(64))
            except TimeoutError:
                if self.ends:
                    return

    def more(self, count):
        """So many more have come."""
        wanted = len(self.came) + count
        net.wait_until(f"{count} more packets to come", lambda: len(self.came) >= wanted)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        for t in self.threads:
            t.join()
        self.to.close()
        self.by.close()


def flow_mod(cookie, idle=0, hard=0, in_port=None, to=None, priority=1):
    match = struct.pack("!HH4x", 1, 4)
    if in_port is not None:
        match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, in_port)
    todo = b"" if to is None else struct.pack("!HH4xHHIH6x", 4, 24, 0, 16, to, 0xffff)
    return struct.pack("!QQBBHHHIIIH2x", cookie, 0, 0, 0, idle, hard, priority, 0xffffffff, 0xffffffff, 0xffffffff,
                       0) + match + todo


def counts(sw):
    """Packets of all flows, and those that came in at ports."""
    for _ in range(100):
        before, ports = [sum(p["counters"]["rx_packets"] for p in sw.chip_ports()) for _ in range(2)]
        sw.peer().ask(18, struct.pack("!HH4xB3xIIIQQHH4x", 1, 0, 0xff, 0xffffffff, 0xffffffff, 0, 0, 0, 1, 4))
        flows = sum(r["packets"] for r in sw.show("flows"))
        if sum(p["counters"]["rx_packets"] for p in sw.chip_ports()) == before == ports:
            return flows, ports
    raise AssertionError("packets come all the while")


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
    assert sw.answered(1, 2, 5)
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


def comes_back(chip, how, *words):
    """The next ofagentd is there, and says of the chip how it was attached."""
    before = len(chip.log())
    chip.up(*LISTENING, *CHIP, *words)
    chip.settled()
    log = chip.log()[before:]
    assert f"attached to asicd: {how}" in log, log


def test_the_chip_goes_on_without_a_gap(chip):
    peer = chip.start()
    both_ways(peer)
    for n in range(40):
        flow(peer, [(ETH_TYPE, 0x2000 + n, 2)], out(2), priority=5 + n % 3)
    peer.barrier()
    chip.reaches(1, 2)
    to_cpu, by_chip, counted = chip.to_cpu(), chip.by_chip(), counts(chip)
    with Numbered(chip) as packets:
        packets.more(100)
        for _ in range(2):
            chip.kill()
            packets.more(100)
            comes_back(chip, "the chip goes on as it is")
            packets.more(100)
    assert packets.came == list(range(packets.sent))
    # all the while it was the chip that forwarded, and nothing was written to it
    assert chip.to_cpu() == to_cpu and chip.by_chip() >= by_chip + packets.sent
    assert {r["place"] for r in chip.show("flows")} == {"hardware"}
    # each packet has met one flow, and is counted there once
    flows, ports = (now - before for now, before in zip(counts(chip), counted))
    assert flows == ports >= packets.sent, (flows, ports, packets.sent)
    # and it is this process's: what comes, goes and changes is written
    peer = chip.peer()
    flow(peer, [], out(2), command=3)
    peer.barrier()
    assert chip.pings(1, 2, 1) == 0
    both_ways(peer)
    chip.reaches(1, 2)


def test_what_was_under_way_is_written_while_the_software_forwards(chip):
    peer = chip.start()
    both_ways(peer)
    chip.reaches(1, 2)
    with Numbered(chip) as packets:
        for n in range(5):
            for m in range(200):
                flow(peer, [(ETH_TYPE, 0x2000 + 200 * n + m, 2)], out(2), priority=5 + m % 3)
            time.sleep(0.01 * n)
            chip.kill()
            peer.close()
            packets.more(50)
            comes_back(chip, "the chip goes on")
            packets.more(50)
            peer = chip.peer()
    assert sorted(packets.came) == list(range(packets.sent))
    # the flows that were taken are there, and the chip is as they say
    assert {r["place"] for r in chip.show("flows")} == {"hardware"}
    before = chip.to_cpu()
    assert chip.answered(1, 2, 3) and chip.to_cpu() == before


def test_a_chip_that_is_not_understood_is_written_anew(chip):
    peer = chip.start()
    both_ways(peer)
    chip.reaches(1, 2)
    chip.kill()
    os.kill(chip.chip_pid(), 9)
    assert "asicd started" in chip.up(*LISTENING, *CHIP)
    chip.settled()
    log = chip.log()
    assert "it holds no list of flows: all is to be written anew" in log, log
    assert "attached to asicd: all flows are written to the chip" in log, log
    chip.reaches(1, 2)
    assert [r["place"] for r in chip.show("flows")] == ["hardware"] * 2


# longer than a busy machine takes for what is looked at before the end
SECONDS = 20
DEADLINE = ("--deadline", str(SECONDS))


def nothing_passes(chip):
    """The deadline is over: of pings, which nobody has to be asked for, none is forwarded."""
    said = net.wait_until("the deadline to pass", lambda: [s for s in [chip.get("/v1/status", "asicd")]
                                                           if s["deadline"]["trapping_s"] is not None], timeout=120)[0]
    by_chip = chip.by_chip()
    assert chip.pings(1, 2, 3) == 0 and chip.by_chip() == by_chip
    assert said["deadline"]["driver"].startswith("ofagentd of "), said
    assert any("flow ports give every frame to the CPU" in w for w in said["warnings"]), said


def passes_until_then(chip):
    """asicd's status, if hosts reached each other by the chip, and the deadline had not passed by its own time."""
    answered = chip.answered(1, 2, 3, wait=10)
    said = chip.get("/v1/status", "asicd")
    if said["deadline"]["silent_s"] >= SECONDS:
        return None
    assert answered and said["deadline"]["trapping_s"] is None, said
    assert 0 < said["deadline"]["traps_in_s"] <= SECONDS, said
    return said


def known_to_each_other(chip):
    """Hosts that need no ARP."""
    macs = [h.exec("cat", "/sys/class/net/eth0/address").strip() for h in chip.hosts]
    for a, b in ((0, 1), (1, 0)):
        chip.hosts[a].ip(f"neigh replace 10.0.0.{b + 1} lladdr {macs[b]} nud permanent dev eth0")


def test_flows_that_nobody_comes_back_to_have_an_end(chip):
    peer = chip.start(*DEADLINE)
    both_ways(peer)
    known_to_each_other(chip)
    chip.reaches(1, 2)
    peer.close()
    flows, ports = counts(chip)
    to_cpu, by_chip, pid = chip.to_cpu(), chip.by_chip(), chip.chip_pid()
    chip.kill()
    # the chip alone, and it says for how long
    alone = passes_until_then(chip)
    assert alone is None or "is gone for" in " ".join(alone["warnings"]), alone
    nothing_passes(chip)
    assert "flow ports give every frame to the CPU" in chip.tandem("status", check=False)
    trapped, forwarded = chip.to_cpu() - to_cpu, chip.by_chip() - by_chip
    assert trapped >= 3
    comes_back(chip, "the chip goes on, and what differs is written to it", *DEADLINE)
    assert chip.chip_pid() == pid
    # what the chip forwarded meanwhile its flows have counted, and what it trapped met none
    after = counts(chip)
    assert (after[0] - flows, after[1] - ports) == (forwarded, forwarded + trapped), (after, flows, ports)
    assert chip.get("/v1/status", "asicd")["deadline"]["trapping_s"] is None
    to_cpu = chip.to_cpu()
    assert chip.answered(1, 2, 3) and chip.to_cpu() == to_cpu
    assert {r["place"] for r in chip.show("flows")} == {"hardware"}


def test_one_that_was_stopped_finds_the_chip_as_it_left_it(chip):
    peer = chip.start(*DEADLINE)
    both_ways(peer)
    known_to_each_other(chip)
    chip.reaches(1, 2)
    # it has nothing to do, and says each second that it is there
    silent = []

    def signs():
        told = chip.get("/v1/status", "asicd")["deadline"]
        assert told["trapping_s"] is None, told
        silent.append(told["silent_s"])
        return sum(b < a for a, b in zip(silent, silent[1:]))

    net.wait_until("five signs", lambda: signs() >= 5, timeout=60, every=0.2)
    pid = chip.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        passes_until_then(chip)
        nothing_passes(chip)
    finally:
        os.kill(pid, signal.SIGCONT)
    net.wait_until("its ports to forward", lambda: chip.pings(1, 2, 1) == 1)
    to_cpu = chip.to_cpu()
    assert chip.answered(1, 2, 3) and chip.to_cpu() == to_cpu
    assert {r["place"] for r in chip.show("flows")} == {"hardware"}
    # the same session: nothing is unknown
    assert all(r["packets"] >= 7 for r in chip.show("flows"))
    assert "attached anew" not in chip.log()
