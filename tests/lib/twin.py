# SPDX-License-Identifier: Apache-2.0
"""The twin test's machinery: the same steps on a switch with an ASIC and on the kernel alone, and what may differ.

Canonicalisation (docs/testing.md has the reasons):
  1. ARP, ND, MLD, IGMP and link protocols are compared as sets per step; their number hangs on timers.
  2. Frames that the switch itself made (source address one of its own): the IPv4 identification is zeroed and the
     header checksum recomputed; it is drawn at random or counted per system.
  3. Trailing padding up to 60 bytes is cut off by the IP length; hardware pads, a veth does not.
  4. Frames that leave by the same port in one step are compared as a multiset: their order across flows is free.
  5. ECMP: not the port of a flow is compared, but that a flow keeps its port, and the shares.
"""

import ipaddress
import struct
import time

from . import packet


class Step:
    """One step: `do(switch)` changes the kernel, then `frames` (host, frame) are sent. `fits`: hardware must do it.

    `expect` says how many data frames leave by which port on the kernel alone: a guard against a step that tests
    nothing. `control`: the sets of control frames must be equal too.
    """

    def __init__(self, name, do=None, frames=(), fits=False, expect=None, control=False):
        self.name = name
        self.control = control
        self.do = do
        self.frames = frames
        self.fits = fits
        self.expect = expect


def canonical(frame, own):
    """Rules 2 and 3; `own` are the switch's addresses as packed bytes."""
    kind = packet.ethertype(frame)
    if kind == packet.ETH_IP and len(frame) >= 34:
        total = struct.unpack_from("!H", frame, 16)[0]
        if 20 <= total <= len(frame) - 14:
            frame = frame[:14 + total]
        if frame[26:30] in own:
            ihl = (frame[14] & 15) * 4
            head = bytearray(frame[14:14 + ihl])
            head[4:6] = b"\0\0"
            head[10:12] = b"\0\0"
            head[10:12] = struct.pack("!H", packet.checksum(bytes(head)))
            frame = frame[:14] + bytes(head) + frame[14 + ihl:]
    elif kind == packet.ETH_IP6 and len(frame) >= 54:
        frame = frame[:14 + 40 + struct.unpack_from("!H", frame, 18)[0]]
    elif len(frame) == 60:
        frame = frame.rstrip(b"\0")
    return frame


def own_addresses(sw):
    text = sw.ns.ip("-o addr show")
    found = set()
    for line in text.splitlines():
        words = line.split()
        for i, w in enumerate(words):
            if w in ("inet", "inet6"):
                found.add(ipaddress.ip_interface(words[i + 1]).ip.packed)
    return found


def quiet(wires, least=0.06, most=1.0):
    """Waits until no frame has come for a while."""
    end = time.monotonic() + most
    seen = -1
    while time.monotonic() < end:
        time.sleep(least)
        now = sum(len(w.frames) for w in wires.values())
        if now == seen:
            return
        seen = now


def play(sw, steps, wires):
    """Runs the steps on one switch; per step: {host: (sorted data frames, set of control frames)} and CPU reasons."""
    results = []
    for step in steps:
        if step.do:
            step.do(sw)
        sw.sync()
        for w in wires.values():
            w.clear()
        before = sw.cpu_packets() if sw.has_asic else {}
        for host, frame in step.frames:
            wires[host].send(frame)
        quiet(wires)
        own = own_addresses(sw)
        caught = {}
        for host, w in wires.items():
            frames = [canonical(f, own) for f in w.caught()]
            data = sorted(f.hex() for f in frames if not packet.is_control(f))
            control = {f.hex() for f in frames if packet.is_control(f)}
            caught[host] = (data, control)
        cpu = sw.cpu_delta(before) if sw.has_asic else {}
        results.append((caught, cpu))
    return results


ALWAYS_CPU = {"arp", "nd", "igmp_mld", "link_proto", "broadcast", "routing", "local", "l2_local"}


def compare(steps, reference, asic):
    """Differences as readable lines; empty if the two switches agree."""
    wrong = []
    for step, (want, _), (got, cpu) in zip(steps, reference, asic):
        for host in want:
            if want[host][0] != got[host][0]:
                lost = [f for f in want[host][0] if f not in got[host][0]]
                extra = [f for f in got[host][0] if f not in want[host][0]]
                wrong.append(f"{step.name}: {host} got {len(got[host][0])} frames, the kernel alone sends "
                             f"{len(want[host][0])}; missing {lost[:2]}, not the kernel's {extra[:2]}")
            if step.control and want[host][1] != got[host][1]:
                wrong.append(f"{step.name}: {host}: control frames differ: kernel {sorted(want[host][1])[:3]}, "
                             f"with ASIC {sorted(got[host][1])[:3]}")
        if step.expect is not None and {h: len(v[0]) for h, v in want.items() if v[0]} != step.expect:
            wrong.append(f"{step.name}: the step itself is wrong: the kernel sent "
                         f"{ {h: len(v[0]) for h, v in want.items() if v[0]} }, the test expects {step.expect}")
        data = {k: v for k, v in cpu.items() if k not in ALWAYS_CPU}
        if step.fits and data:
            wrong.append(f"{step.name}: fits and is supported, yet the CPU saw {data}")
    return wrong
