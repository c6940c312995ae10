# SPDX-License-Identifier: Apache-2.0
"""Plays scenarios one after the other: benches, what is kept of a failed one, and how it is made small."""

import collections
import glob
import json
import os
import time
import traceback

from lib.switch import TOP

from . import play
from .bench import Bench
from .generate import generate
from .shrink import shrink, size

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.environ.get("TANDEM_OUT", os.path.join(TOP, "out")), "test", "scenario")


class Runner:
    """Plays on a bench that is made anew when a scenario needs another or spoilt it."""

    def __init__(self, have, shrink_s=0):
        self.have = have
        self.shrink_s = shrink_s
        self.bench = None
        self.counted = collections.Counter()  # of the scenario that plays, report.py

    def play(self, scenario):
        """What was wrong, in lines; empty if nothing."""
        if self.bench is None or self.bench.profile != scenario["profile"]:
            self.close()
            self.bench = Bench(scenario["profile"], self.have)
            self.counted["benches"] += 1
        run = play.Play(self.bench, scenario)
        try:
            run.run()
            wrong = []
        except play.Different as e:
            wrong = e.args[0]
        except Exception as e:  # a daemon that died, an answer that never came: a failure like others
            wrong = [f"{run.step}: {type(e).__name__}: {e}"] + traceback.format_exc().splitlines()[-6:-1]
        self.counted.update(run.summary())
        try:
            wrong += self.bench.warnings(run.quarrels.excuse)
            self.counted.update(run.quarrels.excused)
            left = self.bench.reset()
        except Exception as e:
            left = [f"reset: {type(e).__name__}: {e}"]
        if left and not wrong:
            wrong = [f"left behind after the scenario: {x}" for x in left]
        if left:
            self.close()
        return wrong

    def examine(self, name, source):
        """Plays a seed (a number) or a kept scenario (its path). What came of it: {"name", "what", "took": seconds,
        "failed", "said": lines, "counted": what report.py reports}."""
        self.counted = collections.Counter()
        at = time.monotonic()
        scenario = generate(source, self.have) if isinstance(source, int) else load(source)
        what = f"{scenario['profile']}, {scenario['fill']}"
        wrong = self.play(scenario)
        took, counted = time.monotonic() - at, self.counted
        said = []
        if wrong:
            logs = self.bench.logs() if self.bench else {}
            said = [f"{name} ({what}) FAILED", *(x[:600] for x in wrong[:6])]
            path = keep(name, scenario, wrong, logs)
            if self.shrink_s and isinstance(source, int):
                self.counted = collections.Counter()  # its parts are no scenarios of the run
                small = smaller(self, scenario, wrong)
                again = self.play(small)
                path = keep(f"{name}-small", small, again or wrong, {})
                said.append(f"made small: {size(scenario)} -> {size(small)} (steps, commands, frames)"
                            + ("" if again else "; did not fail once more"))
            said.append(f"kept: {path}; again: ./run test scenario --replay {path}")
        return {"name": name, "what": what, "took": took, "failed": bool(wrong), "said": said, "counted": dict(counted)}

    def close(self):
        if self.bench:
            self.bench.close()
            self.bench = None


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


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


def regressions(have, wanted=None):
    """Paths of the kept scenarios whose constructs this kernel has; of those that need one of `wanted`, if given."""
    needs = {path: load(path).get("needs", ()) for path in sorted(glob.glob(os.path.join(HERE, "regress", "*.json")))}
    return [path for path, those in needs.items()
            if have.issuperset(those) and (wanted is None or wanted.intersection(those))]


def smaller(runner, scenario, wrong):
    """The scenario made small; a part of it counts as failing if it fails in the same kind of way."""
    kinds = ("ECMP", "missing", "audit", "touched the CPU", "refused", "carrier", "accounting", "left behind",
             "in sync")

    def kind(lines):
        return next((k for k in kinds if k in lines[0]), "other") if lines else None

    play.hurry(True)
    try:
        return shrink(scenario, lambda s: kind(runner.play(s)) == kind(wrong), runner.shrink_s)
    finally:
        play.hurry(False)
