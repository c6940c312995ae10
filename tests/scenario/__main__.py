# SPDX-License-Identifier: Apache-2.0
"""Random scenarios on the kernel alone and on kernel + ASIC: ./run test scenario. docs/scenario.md says how."""

import argparse
import glob
import json
import os
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib.switch import TOP  # noqa: E402
from scenario import play  # noqa: E402
from scenario.bench import Bench  # noqa: E402
from scenario.constructs import EVERY, probe  # noqa: E402
from scenario.generate import generate  # noqa: E402
from scenario.shrink import shrink, size  # noqa: E402

OUT = os.path.join(os.environ.get("TANDEM_OUT", os.path.join(TOP, "out")), "test", "scenario")


class Runner:
    """Plays scenarios one after the other, on a bench that is made anew when a scenario needs another or spoilt it."""

    def __init__(self, have):
        self.have = have
        self.bench = None
        self.benches = 0
        self.frames = self.checked = 0

    def play(self, scenario):
        """What was wrong, in lines; empty if nothing."""
        if self.bench is None or self.bench.profile != scenario["profile"]:
            self.close()
            self.bench = Bench(scenario["profile"], self.have)
            self.benches += 1
        run = play.Play(self.bench, scenario)
        try:
            run.run()
            self.frames += run.sent
            self.checked += run.checked
            wrong = []
        except play.Different as e:
            wrong = e.args[0]
        except Exception as e:  # a daemon that died, an answer that never came: a failure like others
            wrong = [f"{run.step}: {type(e).__name__}: {e}"] + traceback.format_exc().splitlines()[-6:-1]
        try:
            wrong += self.bench.warnings(run.quarrels.excuse)
            left = self.bench.reset()
        except Exception as e:
            left = [f"reset: {type(e).__name__}: {e}"]
        if left and not wrong:
            wrong = [f"left behind after the scenario: {x}" for x in left]
        if left:
            self.close()
        return wrong

    def close(self):
        if self.bench:
            self.bench.close()
            self.bench = None


def keep(name, scenario, wrong, logs):
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, f"{name}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({**scenario, "wrong": [x[:400] for x in wrong]}, f, indent=1)
        f.write("\n")
    for daemon, text in logs.items():
        with open(os.path.join(OUT, f"{name}-{daemon}.log"), "w", encoding="utf-8") as f:
            f.write(text)
    return path


def regressions(have):
    """The kept scenarios whose constructs this kernel has."""
    for path in sorted(glob.glob(os.path.join(HERE, "regress", "*.json"))):
        with open(path, encoding="utf-8") as f:
            scenario = json.load(f)
        if have.issuperset(scenario.get("needs", ())):
            yield os.path.basename(path)[:-5], scenario


def smaller(runner, scenario, wrong, seconds):
    """The scenario made small; a part of it counts as failing if it fails in the same kind of way."""
    kinds = ("ECMP", "missing", "audit", "touched the CPU", "refused", "carrier", "accounting", "left behind",
             "in sync")

    def kind(lines):
        return next((k for k in kinds if k in lines[0]), "other") if lines else None

    play.hurry(True)
    try:
        return shrink(scenario, lambda s: kind(runner.play(s)) == kind(wrong), seconds)
    finally:
        play.hurry(False)


def arguments():
    p = argparse.ArgumentParser(prog="./run test scenario", description="random scenarios: the kernel alone against "
                                "kernel + ASIC; first the kept ones (tests/scenario/regress), then seeds")
    p.add_argument("--seed", type=int, default=None, help="the first seed (default: 0)")
    p.add_argument("--count", type=int, default=None, help="so many seeds (default: as many as the time allows)")
    p.add_argument("--seconds", type=float, default=None, help="no new seed after so many seconds")
    p.add_argument("--replay", nargs="*", metavar="FILE", help="these scenarios instead of seeds")
    p.add_argument("--no-regress", action="store_true", help="without the kept ones")
    p.add_argument("--shrink", type=float, default=120, metavar="SECONDS", help="to make a failing seed small; 0: not")
    p.add_argument("--failures", type=int, default=5, help="end after so many (0: never)")
    p.add_argument("--show", action="store_true", help="print the seed's scenario, play nothing")
    p.add_argument("--have", default=None, metavar="NAMES", help="draw as for a kernel that has only these constructs: "
                   f"of {','.join(sorted(EVERY))}")
    p.add_argument("--all-constructs", action="store_true", help="a construct that the kernel lacks is a failure")
    p.add_argument("-v", "--verbose", action="store_true", help="a line per scenario")
    return p.parse_args()


def main():
    a = arguments()
    seed = a.seed or 0
    have = EVERY if a.have is None else frozenset(x for x in a.have.split(",") if x)
    if not have <= EVERY:
        sys.exit(f"no constructs called {', '.join(sorted(have - EVERY))} (there are {', '.join(sorted(EVERY))})")
    if a.show:
        print(json.dumps(generate(seed, have), indent=1))
        return 0
    there, lacks = probe()
    if a.all_constructs and lacks:
        print(*(f"this kernel lacks {k}: {said}" for k, said in lacks.items()), sep="\n")
        print("scenario: 0 passed, 1 failed")
        return 1
    have &= there
    if a.count is None and a.seconds is None:
        a.count = 1 if a.seed is not None else 100
    todo = [] if a.no_regress or a.replay else list(regressions(have))
    for path in a.replay or []:
        with open(path, encoding="utf-8") as f:
            todo.append((os.path.basename(path).removesuffix(".json"), json.load(f)))
    kept = len(todo)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`: nothing is left behind
    runner = Runner(have)
    passed, failed, n = 0, [], 0
    began = time.monotonic()
    try:
        while True:
            if n < kept:
                name, scenario = todo[n]
            else:
                k = n - kept
                late = a.seconds is not None and time.monotonic() - began > a.seconds
                if a.replay or late or (a.count is not None and k >= a.count):
                    break
                name, scenario = f"seed-{seed + k}", generate(seed + k, have)
            n += 1
            at = time.monotonic()
            wrong = runner.play(scenario)
            if a.verbose and not wrong:
                print(f"{name}: {scenario['profile']}, {scenario['fill']}, {time.monotonic() - at:.2f} s", flush=True)
            if not wrong:
                passed += 1
                if n % 100 == 0:
                    print(f"   {n} scenarios in {time.monotonic() - began:.0f} s, {len(failed)} failed", flush=True)
                continue
            failed.append(name)
            logs = runner.bench.logs() if runner.bench else {}
            print(f"{name} ({scenario['profile']}, {scenario['fill']}) FAILED", *(x[:600] for x in wrong[:6]),
                  sep="\n   ")
            path = keep(name, scenario, wrong, logs)
            if a.shrink and name.startswith("seed-"):
                small = smaller(runner, scenario, wrong, a.shrink)
                again = runner.play(small)
                path = keep(f"{name}-small", small, again or wrong, {})
                print(f"   made small: {size(scenario)} -> {size(small)} (steps, commands, frames)"
                      + ("" if again else "; did not fail once more"))
            print(f"   kept: {path}; again: ./run test scenario --replay {path}", flush=True)
            if a.failures and len(failed) >= a.failures:
                break
    finally:
        runner.close()
    took = time.monotonic() - began
    print(f"{n} scenarios ({kept} kept ones) in {took:.0f} s, {60 * n / max(took, 1e-9):.0f} a minute, "
          f"{runner.frames} frames, {runner.checked} proved to have stayed in hardware, {runner.benches} benches")
    print(f"drawn: {', '.join(sorted(have)) or 'none of the constructs'}; this kernel lacks: "
          f"{', '.join(sorted(EVERY - there)) or 'none'}")
    print(f"scenario: {passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
