# SPDX-License-Identifier: Apache-2.0
"""Random scenarios on the kernel alone and on kernel + ASIC: ./run test scenario. docs/scenario.md says how."""

import argparse
import collections
import hashlib
import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import net  # noqa: E402
from lib.switch import sweep  # noqa: E402
from scenario import lanes  # noqa: E402
from scenario.constructs import EVERY, probe  # noqa: E402
from scenario.generate import generate  # noqa: E402
from scenario.report import replays, report, short, too_many  # noqa: E402
from scenario.runner import load, regressions  # noqa: E402

AGAIN = 20  # times that one which failed is played once more, with `--again`


def part(text):
    which, of = map(int, text.split("/"))
    if not 1 <= which <= of:
        raise ValueError(text)
    return which, of


def share(which, of, seed, count, kept):
    """First seed, number of seeds and kept scenarios of one of `of` machines: each is played by one of them."""
    first, end = (seed + count * n // of for n in (which - 1, which))
    return first, end - first, kept[which - 1::of]


def arguments():
    p = argparse.ArgumentParser(prog="./run test scenario", description="random scenarios: the kernel alone against "
                                "kernel + ASIC; first the kept ones (tests/scenario/regress), then seeds")
    p.add_argument("--seed", type=int, default=None, help="the first seed (default: 0)")
    p.add_argument("--count", type=int, default=None, help="so many seeds (default: as many as the time allows)")
    p.add_argument("--seconds", type=float, default=None, help="no new seed after so many seconds")
    p.add_argument("--part", type=part, default=(1, 1), metavar="I/N", help="the Ith of N equal parts of the seeds and "
                   "of the kept ones: others play the others")
    p.add_argument("--replay", nargs="*", metavar="FILE", help="these scenarios instead of seeds")
    p.add_argument("--kept", default=None, metavar="NAMES", help="of the kept ones only those that need one of these "
                   "constructs (none: without kept ones)")
    p.add_argument("--jobs", type=int, default=lanes.default_jobs(), metavar="N",
                   help="so many lanes play side by side (default here: %(default)s)")
    p.add_argument("--shrink", type=float, default=120, metavar="SECONDS", help="to make a failing seed small; 0: not")
    p.add_argument("--failures", type=int, default=5, help="end after so many (0: never)")
    p.add_argument("--again", action="store_true", help=f"play each failed one {AGAIN} times more, in all lanes at "
                   "once: says how often it fails. It has failed in any case")
    p.add_argument("--new", default=None, metavar="WORD", help="draw the first seed from this word (a commit's id): "
                   "these seeds are new, and one that fails is told and kept, and does not fail the run; kept ones do")
    p.add_argument("--show", action="store_true", help="print the seed's scenario, play nothing")
    p.add_argument("--have", default=None, metavar="NAMES", help="draw as for a kernel that has only these constructs: "
                   f"of {','.join(sorted(EVERY))}")
    p.add_argument("--all-constructs", action="store_true", help="a construct that the kernel lacks is a failure")
    p.add_argument("-v", "--verbose", action="store_true", help="a line per scenario")
    return p.parse_args()


def ranges(numbers):
    """0-99,120: what of the seeds was played."""
    runs = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in runs) or "none"


def name_of(path):
    return os.path.basename(path).removesuffix(".json")


def drawn(word):
    """A first seed of that word's own, at the beginning of a block; none of the few thousand that everybody plays."""
    return 1_000_000 + int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) % 10_000_000 * 100


def interrupted(number, _):
    """By way of `finally`: nothing is left behind."""
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    a = arguments()
    seed = a.seed or 0 if a.new is None else drawn(a.new)
    have = EVERY if a.have is None else frozenset(x for x in a.have.split(",") if x)
    if not have <= EVERY:
        sys.exit(f"no constructs called {', '.join(sorted(have - EVERY))} (there are {', '.join(sorted(EVERY))})")
    if a.jobs < 1:
        sys.exit(f"--jobs {a.jobs}: at least one lane has to play")
    if a.show:
        print(json.dumps(generate(seed, have), indent=1))
        return 0
    sweep(lambda pid: not net.pid_alive(pid))
    there, lacks = probe()
    if a.all_constructs and lacks:
        print(*(f"this kernel lacks {k}: {said}" for k, said in lacks.items()), sep="\n")
        print("scenario: 0 passed, 1 failed")
        return 1
    have &= there
    if a.count is None and a.seconds is None:
        a.count = 1 if a.seed is not None else 100
    if a.kept not in (None, "none") and not EVERY.issuperset(a.kept.split(",")):
        sys.exit(f"--kept: no constructs called {a.kept} (there are none, {', '.join(sorted(EVERY))})")
    wanted = None if a.kept is None else EVERY.intersection(a.kept.split(","))
    kept = [(name_of(p), p) for p in (a.replay if a.replay is not None else regressions(have, wanted))]
    which, of = a.part
    if of > 1:
        if a.count is None:
            sys.exit("--part wants to know of how many: --count")
        seed, a.count, kept = share(which, of, seed, a.count, kept)
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, interrupted)
    all_began = began = time.monotonic()
    passed, failed, new, played = 0, [], [], set()
    counted, counted_new = collections.Counter(), collections.Counter()
    tasks = set(kept)

    def late():
        return bool(a.failures and len(failed) + len(new) >= a.failures) \
            or a.seconds is not None and time.monotonic() - began > a.seconds

    def results_of(lanes_, work, until):
        for result in lanes_.play(work, until):
            counted.update(result["counted"])
            if result["task"] not in tasks:
                counted_new.update(result["counted"])
            yield result

    side_by_side = lanes.Lanes(a.jobs, have, a.shrink)
    try:
        # the kept ones are played whatever the time and whatever failed; only then does the time of the seeds begin
        for blocks, until in ((lanes.by_profile(kept, lambda path: load(path)["profile"]), lambda: False),
                              (lanes.seeds(seed, a.count) if a.replay is None else [], late)):
            began = time.monotonic()
            for result in results_of(side_by_side, lanes.Work(blocks), until):
                if result["task"] not in tasks:
                    played.add(result["task"][1])
                if result["failed"]:
                    is_new = a.new is not None and result["task"] not in tasks
                    (new if is_new else failed).append(result["task"])
                    print(*result["said"], sep="\n   ", flush=True)
                    continue
                passed += 1
                if a.verbose:
                    print(f"{result['name']}: {result['what']}, {result['took']:.2f} s", flush=True)
                n = passed + len(failed) + len(new)
                if n % 100 == 0:
                    print(f"   {n} scenarios in {time.monotonic() - all_began:.0f} s, {len(failed)} failed", flush=True)
        if a.again and failed:
            print(f"{len(failed)} failed, each {AGAIN} times more, in {a.jobs} lanes", flush=True)
            side_by_side.close()
            side_by_side = lanes.Lanes(a.jobs, have, 0)
            again = lanes.Work([[(f"{name}-again", source)] for name, source in failed for _ in range(AGAIN)])
            print(*replays(failed, list(results_of(side_by_side, again, lambda: False)), AGAIN), sep="\n")
    finally:
        took = time.monotonic() - all_began
        side_by_side.close()
        n = passed + len(failed) + len(new)
        print(f"{n} scenarios (seeds {ranges(played)}, {n - len(played)} kept ones) in {took:.0f} s with {a.jobs} "
              f"lanes, {60 * n / max(took, 1e-9):.0f} a minute")
        print(*report(counted), sep="\n")
    for why, wrong in (("too little was proved", short(counted_new)), ("too many", too_many(len(new), len(played)))):
        for x in wrong:
            print(f"{why}: {x}")
            failed.append((why, x))
    print(f"drawn: {', '.join(sorted(have)) or 'none of the constructs'}; this kernel lacks: "
          f"{', '.join(sorted(EVERY - there)) or 'none'}")
    for name, _ in new:
        print(f"new scenario that failed (kept in out/test/scenario, does not fail this run): {name}")
    print(f"scenario: {passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
