# SPDX-License-Identifier: Apache-2.0
# alone: offers more frames than the machine can take
"""Promise 5: a storm of one protocol costs no other one, and none of the same by another port.

    h1 ── swp1 ──┐
    the storm    │
    h2 ── swp2 ──┼── br0 10.7.0.254
    LACP, ARP, … │
    h3 ── swp3 ──┘
    BPDUs, BFD, …

Whoever is not the storm sends a few frames a second, numbered, as long as it lasts: the kernel gets each of them at
its swpN. How fast the machine is only changes how many there are. A storm is a number of frames, not a time.
"""

import os
import subprocess
import threading

import pytest

from lib import bgp, net, packet
from lib.switch import binaries
from test_promise5_bounded import counted, delta

STORM = int(os.environ.get("TANDEM_STORM", "1000000"))  # frames at the port
PACE_S = 0.04  # between two frames of a protocol: 25 a second, below any port's share
H1, H2, H3 = "02:00:00:00:00:11", "02:00:00:00:00:22", "02:00:00:00:00:33"
SWITCH = "02:00:00:00:02:00"
LL2 = "fe80::22"


def link(dst, src, payload):
    """LACP (0x8809), LLDP (0x88cc): an EtherType; BPDUs: a length and LLC."""
    return packet.mac(dst) + packet.mac(src) + payload


def lacp(src, n):
    return link("01:80:c2:00:00:02", src, b"\x88\x09\x01\x01" + n.to_bytes(4, "big")).ljust(124, b"\0")


def bpdu(src, n):
    return link("01:80:c2:00:00:00", src, b"\0\x27\x42\x42\x03\0\0\2\2" + n.to_bytes(4, "big")).ljust(60, b"\0")


def lldp(src, n):
    return link("01:80:c2:00:00:0e", src, b"\x88\xcc\x02\x07\x04" + n.to_bytes(4, "big")).ljust(60, b"\0")


def arp(src, n):
    asked = f"10.7.{100 + n // 250 % 100}.{1 + n % 250}"
    return packet.ether("ff:ff:ff:ff:ff:ff", src, packet.ETH_ARP, packet.arp(
        1, src, "10.7.0.9", "00:00:00:00:00:00", asked))


def solicitation(src, n):
    target = bytes.fromhex("fe80000000000000") + (0xab << 56 | n).to_bytes(8, "big")
    body = bytes(4) + target + b"\1\1" + packet.mac(src)
    dst = "ff02::1:ff" + f"{target[13]:02x}:{target[14]:02x}{target[15]:02x}"
    return packet.ether("33:33:ff:" + ":".join(f"{b:02x}" for b in target[13:]), src, packet.ETH_IP6, packet.ipv6(
        LL2, dst, 58, packet.icmpv6(LL2, dst, 135, 0, body), hlim=255))


def igmp(src, n):
    group = bytes([239, 7, n >> 8 & 255, n & 255])
    head = b"\x16\0\0\0" + group
    head = head[:2] + packet.checksum(head).to_bytes(2, "big") + head[4:]
    ip = packet.ipv4("10.7.0.9", ".".join(map(str, group)), 2, head, ttl=1, options=b"\x94\x04\0\0")
    return packet.ether("01:00:5e:07:" + packet.mac_text(group[2:]), src, packet.ETH_IP, ip)


def bfd(src, n):
    return packet.udp4_frame(SWITCH, src, "10.7.0.9", "10.7.0.254", 49152, 3784,
                             b"\x20\xc0\x03\x18" + n.to_bytes(4, "big"), ttl=255)


def echo(src, n):
    return packet.ether(SWITCH, src, packet.ETH_IP, packet.ipv4("10.7.0.9", "10.7.0.254", 1, packet.icmp_echo(
        n >> 16, n & 0xFFFF)))


# the reason that frames come to the CPU for, and the frames
KINDS = {"link_proto": lldp, "arp": arp, "nd": solicitation, "igmp_mld": igmp, "routing": bfd, "local": echo}


class Bench:
    def __init__(self, make):
        self.sw = make.asic(profile="tiny")
        self.hosts = [self.sw.host(f"h{i}", i, mac) for i, mac in enumerate((H1, H2, H3), 1)]
        for h in self.hosts:
            h.ns.sysctl(ipv6__conf__all__disable_ipv6=1)
        self.sw.start()
        self.sw.router()
        self.sw.ip("link add br0 address", SWITCH, "type bridge")
        for i in (1, 2, 3):
            self.sw.ip(f"link set swp{i} master br0")
            self.sw.ip(f"link set swp{i} up")
        self.sw.ip("link set br0 up")
        self.sw.ip("addr add 10.7.0.254/16 dev br0")
        # the kernel answers to h2, however busy ARP is
        self.sw.ip("neigh add 10.7.0.9 lladdr", H2, "dev br0 nud permanent")
        self.sw.sync()

    def storm(self, frame):
        """Starts the flood of one frame out of h1."""
        program = os.path.join(binaries(), "blast")
        if not os.access(program, os.X_OK):
            pytest.fail(f"no {program}: cargo build --release -p tandem-linux --features testing --bin blast")
        return self.hosts[0].ns.popen(program, "eth0", self.sw.front.name, "p1", frame.hex(), "2",
                                      stdout=subprocess.PIPE, text=True)

    def offered(self):
        port = self.sw.ports()["swp1"]
        return counted(port, "cable_rx_frames") + counted(port, "cable_rx_overrun")

    def policed(self, reason):
        return next(r["dropped"] for r in self.sw.show("traps")["items"] if r["reason"] == reason)

    def during(self, loud, quiet, patience=120):
        """Sends `quiet` (name -> (host's number, maker of frames)) as long as a storm of `loud` (a reason) lasts.

        Returns what was sent and what the kernel got of it (name -> number), and a report."""
        before, at_first = self.sw.show("traps")["items"], self.offered()
        frame = KINDS[loud](H1, 7)
        sent, over = dict.fromkeys(quiet, 0), threading.Event()
        wires = {i: packet.Wire(self.hosts[i - 1].ns) for i in (2, 3)}
        kernel = {i: packet.Wire(self.sw.ns, f"swp{i}") for i in (2, 3)}
        made = {name: [] for name in quiet}

        def talk():
            while not over.is_set():
                for name, (port, maker) in quiet.items():
                    f = maker(H2 if port == 2 else H3, sent[name])
                    wires[port].send(f)
                    made[name].append(f)
                    sent[name] += 1
                over.wait(PACE_S)

        talker = threading.Thread(target=talk)
        seconds = 0.0
        try:
            talker.start()
            # far more than the CPU takes, however many the machine loses before the chip sees them
            while self.offered() - at_first < STORM or self.policed(loud) < STORM / 4:
                flood = self.storm(frame)
                words = flood.stdout.read().split()
                flood.stdout.close()
                assert flood.wait() == 0 and len(words) == 2, "the storm did not run: see what it said above"
                seconds += float(words[1])
                assert seconds < patience, f"{self.offered() - at_first} frames in {seconds:.0f} s, of {STORM}"
            over.set()
            talker.join()

            def got():
                there = {i: set(kernel[i].caught()) for i in kernel}
                return {name: sum(f in there[quiet[name][0]] for f in made[name]) for name in quiet}

            try:
                net.wait_until("all to be there", lambda: got() == sent, timeout=5)
            except TimeoutError:
                pass
            arrived = got()
        finally:
            over.set()
            talker.join()
            for w in (*wires.values(), *kernel.values()):
                w.close()
        after = self.sw.show("traps")
        reasons = delta(before, after["items"], "reason")
        offered = self.offered() - at_first
        report = (f"storm: {offered:,} frames in {seconds:.1f} s ({offered / seconds:,.0f} a second); sent {sent}; "
                  f"the kernel got {arrived}; to the CPU (passed, dropped) {reasons}")
        print(report)
        return sent, arrived, report


@pytest.mark.parametrize("loud", KINDS)
def test_a_storm_takes_no_other_protocol_along(make, loud, record_property):
    """Each reason of the three classes that hold protocols, against all of them: its own by other ports as well."""
    bench = Bench(make)
    quiet = {"lacp": (2, lacp), "bpdu": (3, bpdu), "lldp": (2, lldp), "arp": (2, arp), "nd": (3, solicitation),
             "igmp": (2, igmp), "bfd": (3, bfd), "echo": (2, echo)}
    sent, arrived, report = bench.during(loud, quiet)
    record_property("storm", report)
    assert min(sent.values()) >= 10, report
    assert arrived == sent, report


def test_pings_to_itself_cost_no_session(make, folder, routers_available, record_property):
    """A BGP session beside a flood of what is for the switch itself, in one class with it: none of the session's
    packets is dropped. Its hold time is long enough for a busy machine: the packets decide, not the time."""
    sw = make.asic()
    h1 = sw.host("h1", 1, H1)
    routers = bgp.Routers(sw, folder, ports=(3,), count=16, hold_s=60)
    try:
        sw.start()
        sw.router()
        h1.address("10.1.1.2/24", gateway="10.1.1.1")
        sw.ip("link set swp1 up")
        sw.ip("addr add 10.1.1.1/24 dev swp1")
        routers.addresses()
        routers.start()
        routers.wait_established()
        sw.sync()
        sessions = routers.sessions()
        before = sw.show("traps")["items"]
        own = sw.ns.read("/sys/class/net/swp1/address").strip()
        frame = packet.ether(own, H1, packet.ETH_IP, packet.ipv4("10.1.1.2", "10.1.1.1", 1, packet.icmp_echo(1, 1)))
        program = os.path.join(binaries(), "blast")
        flood = h1.ns.popen(program, "eth0", sw.front.name, "p1", frame.hex(), "12", stdout=subprocess.PIPE, text=True)
        words = flood.stdout.read().split()
        flood.stdout.close()
        assert flood.wait() == 0 and len(words) == 2, "the flood did not run: see what it said above"
        reasons = delta(before, sw.show("traps")["items"], "reason")
        report = f"flood: {words[0]} frames in {words[1]} s; to the CPU (passed, dropped) {reasons}"
        print(report)
        record_property("flood", report)
        assert reasons["local"][1] > 100_000, report
        assert reasons["routing"][0] > 0 and reasons["routing"][1] == 0, report
        assert routers.sessions() == sessions, f"the BGP session went down; {report}"
    finally:
        routers.delete()
