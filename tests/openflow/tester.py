# SPDX-License-Identifier: Apache-2.0
"""os-ken's switch tester against a target, in several pairs of switches side by side: docs/openflow-tests.md.

    python3 tests/openflow/tester.py [--target TARGET] [--short | --only PATTERN...] [--pairs N]

The files of its tests come with the package os-ken; none is copied. out/openflow/tester.json (tester-ovs.json) has
each test.
"""

import argparse
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import net  # noqa: E402
from openflow import world  # noqa: E402

VERSIONS = {"of10": "openflow10", "of13": "openflow13"}
OVS_VERSIONS = {"of10": "OpenFlow10", "of13": "OpenFlow13"}
TARGET, TESTER = 1, 2  # datapath ids
# of what its file asks for a run has to offer so much, and of what came back the tester's switch has to have seen so
# much, whose counters are half a second old: the tester judges what arrives to within 10 %
LEAST, LEAST_SEEN = 0.97, 0.95
# a target that gets no processor lets a meter's time go by: what it would have passed is lost. For so much of a
# stream's time nothing may have come from it
MOST_STILL = 0.03
# Open vSwitch answers a barrier before its datapath's cache has forgotten the rules that were: a packet right after it
# may still meet them. For ofagentd a barrier has to mean what it says
TRIES = {"ovs": 3}
SETTLE = {"ovs": 0.15}  # seconds
# packets/s: a stream that is faster has the machine for itself, slower ones run side by side. The tester of such a
# stream is a second ofagentd if ofagentd is tested: Open vSwitch overlooks a third of it on a busy machine
FAST = 5000
# seconds without a new result after which a pair has failed: the longest that a test may take (`LONGEST` of the app),
# run three times because it was invalid, and some more
SILENCE = 330


def tests_folder():
    """Where the package has its files."""
    say = "import os, os_ken.tests.switch as s; print(os.path.dirname(s.__file__))"
    return net.run(sys.executable, "-c", say, timeout=60).strip()


def listed(path):
    """The lines of a list without comments and empty ones."""
    with open(path, encoding="utf-8") as f:
        return [x for x in (line.split("#", 1)[0].strip() for line in f) if x]


def files_of(root, patterns):
    """Names within `root` of the test files of both versions; those that a pattern matches, if there are any."""
    names = []
    for version in sorted(VERSIONS):
        for folder, _, files in os.walk(os.path.join(root, version)):
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files if f.endswith(".json")]
    for p in patterns:
        if not fnmatch.filter(names, p):
            raise ValueError(f"no file of the tester is called {p}")
    return sorted(n for n in names if not patterns or any(fnmatch.fnmatch(n, p) for p in patterns))


def rate_of(root, name):
    """Packets a second that a test of this file sends at most."""
    with open(os.path.join(root, name), encoding="utf-8") as f:
        tests = [t for x in json.load(f) if isinstance(x, dict) for t in x["tests"]]
    return max((t["ingress"]["packets"].get("pktps", 1000) for t in tests if isinstance(t["ingress"], dict)), default=0)


def group(name):
    return "/".join(name.split("/")[:2])


class Pair(threading.Thread):
    """A target, a tester and os-ken in a namespace of their own; plays what nobody has claimed yet."""

    def __init__(self, target, with_, version, root, files, claims, results):
        super().__init__(daemon=True)
        self.target, self.version, self.root = target, version, root
        self.files, self.claims, self.results = files, claims, results
        self.cell = world.Cell()
        self.cell.wires(3)
        ovs = world.Ovs(self.cell) if "ovs" in (target, with_) else None
        self.under_test = ovs if target == "ovs" else world.TARGETS[target](self.cell)
        self.raise_target()
        with_ = ovs if with_ == "ovs" else world.Agent(self.cell)
        with_.bridge("tester", TESTER, ["b1", "b2", "b3"], version="OpenFlow13")
        self.app = None
        self.error = ""

    def raise_target(self):
        self.under_test.bridge("target", TARGET, ["a1", "a2", "a3"], version=OVS_VERSIONS[self.version])

    def run_app(self):
        env = {"OSKEN_HUB_TYPE": "eventlet", "PYTHONDONTWRITEBYTECODE": "1", "TANDEM_TESTER_FILES": self.files,
               "TANDEM_TESTER_ROOT": self.root, "TANDEM_TESTER_CLAIMS": self.claims,
               "TANDEM_TESTER_RESULTS": self.results, "TANDEM_TESTER_TRIES": str(TRIES.get(self.target, 1)),
               "TANDEM_TESTER_SETTLE": str(SETTLE.get(self.target, 0)), "TANDEM_TESTER_DEV": "a1",
               "TANDEM_TESTER_BACK": "b2 b3", "TANDEM_TESTER_LEAST": f"{LEAST} {LEAST_SEEN} {MOST_STILL}"}
        self.app = self.cell.start(
            *world.osken(), "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", world.PORT,
            "--test-switch-target", f"{TARGET:016x}", "--test-switch-tester", f"{TESTER:016x}",
            "--test-switch-target-version", VERSIONS[self.version], "--test-switch-tester-version", "openflow13",
            os.path.join(HERE, "tester_app.py"), log="app.log", env=env)

    def run(self):
        seen, last = -1, time.monotonic()
        while self.app.poll() is None:
            if self.under_test.daemon.poll() is not None:
                self.error += f"the target ended by itself with {self.under_test.daemon.returncode}\n"
                self.raise_target()
            size = os.path.getsize(self.results) if os.path.exists(self.results) else 0
            if size != seen:
                seen, last = size, time.monotonic()
            if time.monotonic() - last > SILENCE:
                self.error += f"no result in {SILENCE} s\n"
                self.app.kill()
            time.sleep(0.2)

    def played(self):
        """Its results. What it was writing when it was ended was not played."""
        with open(self.results, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def logs(self):
        names = ("app.log", "target.log", "asicd.log", "vswitchd.log")
        return "".join(f"--- {n}\n{self.cell.log(n)[-4000:]}" for n in names if self.cell.log(n))


def play(target, with_, version, root, names, pairs):
    """Results of these files, as the app writes them; for a file that no pair came to the end of, one that failed."""
    work = os.path.join("/run", world.unique())
    claims = os.path.join(work, "claims")
    os.makedirs(claims)
    files = os.path.join(work, "files")
    with open(files, "w", encoding="utf-8") as f:
        f.write("".join(f"{n}\n" for n in names))
    made = []
    try:
        for i in range(min(pairs, len(names))):
            made.append(Pair(target, with_, version, root, files, claims, os.path.join(work, f"{i}.jsonl")))
            # from this thread: what it starts ends with the thread that started it
            made[-1].run_app()
        for pair in made:
            pair.start()
        for pair in made:
            pair.join()
        lines = []
        for pair in made:
            lines += pair.played()
            if pair.error or pair.app.returncode not in (0, -signal.SIGTERM):
                print(f"   ! a pair ended with {pair.app.returncode}: {pair.error.strip()}\n{pair.logs()}")
    finally:
        for pair in made:
            pair.cell.delete()
        shutil.rmtree(work)
    for name in names:
        with open(os.path.join(root, name), encoding="utf-8") as f:
            there = [x["description"] for x in json.load(f) if isinstance(x, dict)]
        had = {r.get("number") for r in lines if r["file"] == name}
        lines += [{"file": name, "number": i, "test": d, "result": "failed", "why": "not played to the end",
                   "seconds": 0} for i, d in enumerate(there) if i not in had and None not in had]
    return lines


def why_invalid(r):
    """What keeps a run from saying something of the target; empty: nothing."""
    if r.get("offered_pps", 1) < r.get("wanted_pps", 0) * LEAST:
        return f"offered {100 * r['offered_pps'] / r['wanted_pps']:.1f} %"
    if r.get("seen", 0) < r.get("came_back", 0) * LEAST_SEEN:
        return f"its tester saw {100 * r['seen'] / r['came_back']:.1f} %"
    if r.get("still", 0) > MOST_STILL:
        return f"stood still for {100 * r['still']:.1f} %"
    return ""


def judge(results, exceptions):
    """A run that offered too little, whose tester overlooked too much or whose target stood still says nothing; a
    failure that is an exception by a clause is one."""
    for r in results:
        if why_invalid(r):
            r["was"], r["result"] = r["result"], "invalid"
        if r["result"] == "failed":
            for pattern, test, clause, _ in exceptions:
                if fnmatch.fnmatch(r["file"], pattern) and re.search(test, r["test"]):
                    r["result"], r["clause"] = "exception", clause


def exceptions_of(target):
    """tests/openflow/exceptions: targets | file | test | clause | why; those of a target without it."""
    rules = [[c.strip() for c in line.split(" | ")] for line in listed(os.path.join(HERE, "exceptions"))]
    if any(len(r) != 5 or not all(r) for r in rules):
        raise ValueError("tests/openflow/exceptions: wanted `targets | file | test | clause | why`")
    return [r[1:] for r in rules if target in r[0].split()]


KINDS = ("passed", "failed", "exception", "invalid")


def table(results):
    rows = {}
    for r in results:
        for g in (group(r["file"]), r["file"].split("/")[0]):
            rows.setdefault(g, dict.fromkeys(KINDS, 0))[r["result"]] += 1
    said = [f"{'group':<14}" + "".join(f"{k:>11}" for k in KINDS)]
    for g in sorted(rows, key=lambda g: (g.split("/")[0], "/" not in g, g)):
        said.append(f"{g:<14}" + "".join(f"{rows[g][k]:>11}" for k in KINDS))
    streams = [r for r in results if "wanted_pps" in r]
    if streams:
        worst = min(streams, key=lambda r: r["offered_pps"] / r["wanted_pps"])
        said.append(f"offered to meters: at least {100 * worst['offered_pps'] / worst['wanted_pps']:.1f} % of what the "
                    f"file asks for ({worst['offered_pps']:.0f} of {worst['wanted_pps']} packets/s)")
    again = [why_invalid(run) for r in streams for run in r.get("invalid", [])]
    if again:
        said.append(f"{len(again)} runs said nothing and were repeated: {', '.join(again)}")
    return said, rows


def arguments():
    p = argparse.ArgumentParser(prog="tests/openflow/tester.py", description="os-ken's switch tester, of10 and of13")
    p.add_argument("--target", choices=sorted(world.TARGETS), default="ofagentd")
    p.add_argument("--short", action="store_true", help="only the files of tests/openflow/short")
    p.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="only files such as of13/match/*IPV6*")
    p.add_argument("--without-meters", action="store_true", help="not the files that take half a minute a test")
    p.add_argument("--pairs", type=int, default=3 * (os.cpu_count() or 1), help="side by side (default: %(default)s)")
    p.add_argument("--out", default=world.OUT)
    return p.parse_args()


def main():
    args = arguments()
    why = world.missing(args.target)
    if why:
        print(f"tester: {why}")
        return 1
    world.tidy()
    root = tests_folder()
    names = files_of(root, args.only or (listed(os.path.join(HERE, "short")) if args.short else []))
    os.makedirs(args.out, exist_ok=True)
    exceptions = exceptions_of(args.target)
    began, results = time.monotonic(), []
    for version in sorted(VERSIONS):
        mine = [n for n in names if n.startswith(version + "/")]
        if args.without_meters:
            mine = [n for n in mine if "/meter/" not in n]
        fast = [n for n in mine if rate_of(root, n) > FAST]
        # switches of their own: what these make unknown stays so
        apart = [n for n in mine if any(fnmatch.fnmatch(n, e[0]) for e in exceptions)]
        rest = [n for n in mine if n not in fast + apart]
        alone = max(1, (os.cpu_count() or 2) // 2)
        for some, pairs, with_ in ((rest, args.pairs, "ovs"), (apart, args.pairs, "ovs"), (fast, alone, args.target)):
            if some:
                results += play(args.target, with_, version, root, some, pairs)
    judge(results, exceptions)
    results.sort(key=lambda r: (r["file"], r.get("number", 0)))
    said, rows = table(results)
    took = time.monotonic() - began
    name = "tester.json" if args.target == "ofagentd" else f"tester-{args.target}.json"
    with open(os.path.join(args.out, name), "w", encoding="utf-8") as f:
        json.dump({"target": args.target, "seconds": round(took, 1), "groups": rows, "tests": results}, f, indent=1)
    for r in results:
        if r["result"] in ("failed", "invalid"):
            print(f"   {r['result']}: {r['file']}: {r['test']}: {r['why'][:300]}")
    print("\n".join(said))
    passed = sum(r["result"] in ("passed", "exception") for r in results)
    bad = len(results) - passed
    print(f"tester: {passed} passed, {bad} failed ({args.target}, {took:.0f} s)")
    return 1 if bad or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("tester: interrupted")
    except (net.CommandError, OSError, TimeoutError, ValueError, subprocess.SubprocessError) as e:
        print(f"tester: {e}")
        sys.exit(1)
