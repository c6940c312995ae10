#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures sides of seed 004's tests where it runs: in the lab's machine, in virtual time, or here with --native.

One JSON object per line on standard output. In the machine there is one processor, which generator, switch and
sinks share; natively the switch has core 0, the generator core 1.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from sides import FOUR, FRAMES, SIDES, TRUNK, VLAN, Plain, counted, pace  # noqa: E402

import tcp  # noqa: E402
from lib import net  # noqa: E402
from lib.packet import Wire  # noqa: E402

BURST = 256
SINKS = {"unicast": (2,), "broadcast": (2, 3)}
KEPT = 0.99      # a rate is kept when so much of it comes out
HALVINGS = 5


def say(**what):
    print(json.dumps(what), flush=True)


def idle_ns():
    """How long processor 0 has been idle: the timers' own account where there is one, else in ticks."""
    try:
        with open("/proc/timer_list", encoding="ascii", errors="replace") as f:
            for line in f:
                if "idle_sleeptime" in line:
                    return int(line.split(":")[1].split()[0])
    except (OSError, ValueError, IndexError):
        pass
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[4]) * 10_000_000


def ticks():
    """user, system and softirq of /proc/stat."""
    with open("/proc/stat", encoding="ascii") as f:
        words = f.readline().split()
    return int(words[1]), int(words[3]), int(words[7])


class Bench:
    def __init__(self, o):
        self.o = o

    def send(self, side, kind, count, rate):
        """Frames and what came of them, in seconds and frames a second."""
        o = self.o
        cmd = ["ip", "netns", "exec", side.hosts[1].name,
               *pace("send", "eth0", FRAMES[kind].hex(), count, rate, 0 if o.native else BURST)]
        if o.native:
            cmd = ["taskset", "-c", "1", *cmd]
        sinks = [side.hosts[n] for n in SINKS[kind]]
        before = [counted(ns) for ns in sinks]
        used, idle, tick, began = side.used(), idle_ns(), ticks(), time.monotonic_ns()
        sent, seconds = subprocess.run(cmd, check=True, capture_output=True, text=True, timeout=600).stdout.split()
        deadline, last = time.monotonic() + 0.5, -1
        while time.monotonic() < deadline and sum(counted(ns)[0] for ns in sinks) != last:
            last = sum(counted(ns)[0] for ns in sinks)
            time.sleep(0.02)  # what is under way
        took, idle = time.monotonic_ns() - began, idle_ns() - idle
        tick = [b - a for a, b in zip(tick, ticks())]
        got = [(a[0] - b[0], a[1] - b[1]) for a, b in zip(map(counted, sinks), before)]
        return {"sent": int(sent), "seconds": float(seconds), "got": [g[0] for g in got], "bytes": [g[1] for g in got],
                "used": side.used() - used, "busy": (took - idle) / 1e9, "took": took / 1e9,
                "user_system_softirq": tick}

    def point(self, name, side, kind, rate, pair):
        count = max(int(rate * self.o.seconds), 1000)
        r = self.send(side, kind, count, rate)
        say(step="point", side=name, test=kind, pair=pair, rate=rate, grid=rate in self.o.rates, **r)
        return min(r["got"]) >= KEPT * r["sent"] and r["seconds"] <= (count / rate) / KEPT + 0.01

    def check(self, side, kind):
        """The frames at each sink are what they have to be: the tag on the trunk, none elsewhere."""
        plain = FRAMES[kind]
        tagged = plain[:12] + b"\x81\x00" + VLAN.to_bytes(2) + plain[12:]
        for n in SINKS[kind]:
            wanted = tagged if side.tagged and TRUNK[n] else plain
            with Wire(side.hosts[n]) as wire:
                self.send(side, kind, 64, 1000)
                net.wait_until(f"{kind} at port {n}", lambda w=wire: len(w.caught()) >= 64)
                found = set(wire.caught())
            if found != {wanted}:
                raise RuntimeError(f"{kind} at port {n}: {[f.hex() for f in found]}, not {wanted.hex()}")

    def side(self, name, pair):
        """The tests on one side: the sweep, then where between two of its rates the last one lies that is kept."""
        o = self.o
        side = SIDES[name](TRUNK)
        try:
            if o.native:
                side.pin(0)
            for kind in o.tests:
                self.send(side, kind, 2000, 10_000)  # stations are known, memory is warm
                self.check(side, kind)
                kept, lost = 0, None
                for rate in o.rates:
                    if self.point(name, side, kind, rate, pair):
                        kept = rate
                    elif lost is None and rate > kept:
                        lost = rate
                if kept and lost and lost < kept:
                    lost = None  # one rate in between was disturbed
                for _ in range(HALVINGS if kept and lost else 0):
                    middle = (kept + lost) / 2
                    if self.point(name, side, kind, middle, pair):
                        kept = middle
                    else:
                        lost = middle
                say(step="cut", side=name, test=kind, pair=pair, rate=kept, above_all=lost is None)
                if o.sample and pair == 0 and kept:
                    r = self.send(side, kind, o.sample, 0.95 * kept)
                    say(step="sample", side=name, test=kind, pair=pair, rate=0.95 * kept, **r)
        finally:
            side.delete()

    def transfers(self, name, pair):
        """Seed 004's table of bandwidths."""
        side = SIDES[name](FOUR)
        try:
            tcp.wire(side.hosts)
            for n in side.hosts:
                if n != 1:
                    side.hosts[1].exec("ping", "-q", "-c", "1", "-W", "30", tcp.address(n))
            for both in (False, True):
                used = side.used()
                r = tcp.transfer(side.hosts, both, self.o.tcp)
                say(step="tcp", side=name, pair=pair, both=both, seconds=self.o.tcp, used=side.used() - used, **r)
        finally:
            side.delete()

    def generator(self):
        """What the generator takes by itself: frames that a program drops at the port."""
        side = Plain(TRUNK)
        drop = None
        try:
            drop = side.sw.popen(*pace("sink", "p1"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            drop.stdout.readline()
            for rate in self.o.rates:
                r = self.send(side, "unicast", int(rate * self.o.seconds), rate)
                say(step="generator", rate=rate, **r)
        finally:
            if drop:
                drop.stdin.close()
            side.delete()


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--native", action="store_true")
    p.add_argument("--pairs", type=int, default=1)
    p.add_argument("--sides", default="tandem,8021q,filtering")
    p.add_argument("--tests", default="unicast,broadcast")
    p.add_argument("--rates", default="10000,20000,40000,60000,80000,100000,120000,140000")
    p.add_argument("--seconds", type=float, default=0.5, help="seconds at each rate")
    p.add_argument("--tcp", type=float, default=0, help="only TCP, for so many seconds, not the rates")
    p.add_argument("--sample", type=int, default=0,
                   help="in the first pair, so many frames a little below the cut point")
    o = p.parse_args()
    o.sides, o.tests = o.sides.split(","), o.tests.split(",")
    o.rates = [float(r) for r in o.rates.split(",")]
    return o


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # sides take themselves away
    o = options()
    if not o.native:
        os.environ["TANDEM_BIN"] = "/opt/tandem"
        net.run("modprobe", "-a", "veth", "tun", "bridge", "8021q")
        with open("/sys/kernel/rcu_expedited", "w", encoding="ascii") as f:
            f.write("1")  # the generator's calls end at once
    bench = Bench(o)
    say(step="begin", kernel=os.uname().release, cores=os.cpu_count())
    if not o.native and not o.tcp:
        bench.generator()
    for pair in range(o.pairs):
        turn = pair % len(o.sides)
        for name in o.sides[turn:] + o.sides[:turn]:
            if o.tcp:
                bench.transfers(name, pair)
            else:
                bench.side(name, pair)
    say(step="end")


if __name__ == "__main__":
    main()
