# SPDX-License-Identifier: Apache-2.0
"""The demo: `./run demo` builds and then calls this. Needs root; works in network namespaces that it makes and removes.

Exit code 0 only if every claim held. The same facts: out/demo.json.
"""

import argparse
import fcntl
import os
import shutil
import signal
import sys
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TOP, "tests"), os.path.join(TOP, "demo")]

import bgp_part  # noqa: E402
import forwarding  # noqa: E402
import full  # noqa: E402
from lib import bgp, frr, net  # noqa: E402
from lib.switch import AsicSwitch, binaries  # noqa: E402
from report import Report  # noqa: E402

PREFIX = "tndemo-"
HOME = "/run/tandem-demo"


def clean():
    """Removes what an earlier demo that was killed may have left: daemons by their pid files, then namespaces."""
    frr.stop_leftovers(os.path.join(HOME, "frr"))
    base = os.environ.get("TANDEM_RUN", "/run/tandem")
    if os.path.isdir(base):
        for name in sorted(n for n in os.listdir(base) if n.startswith(PREFIX)):
            for file, daemon in (("switchd", "switchd"), ("switchd", "swcfgd"), ("ofagentd", "ofagentd"),
                                 ("asicd", "asicd")):
                net.end_by_pid_file(os.path.join(base, name, f"{file}.pid"), daemon)
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)
    left = net.namespaces(PREFIX)
    for name in left:
        net.run("ip", "netns", "del", name, check=False)
    return left


def lock():
    os.makedirs(HOME, exist_ok=True)
    os.chmod(HOME, 0o755)
    f = open(os.path.join(HOME, "lock"), "w", encoding="utf-8")
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("demo: another demo is running on this machine; wait for its end")
    return f


def keep_logs(sw, out):
    folder = os.path.join(out, "demo-logs")
    os.makedirs(folder, exist_ok=True)
    for daemon in ("asicd", "switchd"):
        text = sw.log(daemon)
        if text:
            with open(os.path.join(folder, f"{sw.instance}-{daemon}.log"), "w", encoding="utf-8") as f:
                f.write(text)


def arguments(description, daemons, parts, note=""):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--bin", help=f"folder of {', '.join(daemons)} and tandem")
    p.add_argument("--out", default=os.path.join(TOP, "out"))
    p.add_argument("--part", action="append", choices=parts, help="only this part" + note)
    a = p.parse_args()
    if a.bin:
        os.environ["TANDEM_BIN"] = os.path.abspath(a.bin)
    for b in (*daemons, "tandem"):
        if not os.access(os.path.join(binaries(), b), os.X_OK):
            sys.exit(f"demo: {binaries()} has no {b}: ./run build makes it")
    a.part = a.part or parts
    return a


def interrupt(*_):
    raise KeyboardInterrupt


def play(run, name, a):
    """run(report, arguments) alone on this machine, and what came of it in files that begin with the name. Exits."""
    facts, why = f"{name}.json", f"{name}-error.txt"
    os.makedirs(a.out, exist_ok=True)
    held = lock()
    signal.signal(signal.SIGTERM, interrupt)
    for old in (facts, why):
        if os.path.exists(os.path.join(a.out, old)):
            os.unlink(os.path.join(a.out, old))
    report = Report()
    left = clean()
    if left:
        report.step(f"removed what an earlier demo left: {', '.join(left)}")
    error = None
    try:
        run(report, a)
    except KeyboardInterrupt:
        error = "interrupted"
    except Exception as e:  # one sentence for the reader, the rest for whoever looks for the cause
        error = f"{type(e).__name__}: {e}" if not isinstance(e, (TimeoutError, net.CommandError)) else str(e)
        with open(os.path.join(a.out, why), "w", encoding="utf-8") as f:
            traceback.print_exc(file=f)
    finally:
        if not os.environ.get("TANDEM_KEEP"):
            clean()
    path = report.write(a.out, error, facts)
    good = sum(c["held"] for c in report.claims)
    print()
    if error:
        print(f"demo: stopped: {error} (details: {a.out}/{why}, {a.out}/{name}-logs/)")
    print(f"{good} of {len(report.claims)} claims held. The same facts: {os.path.relpath(path)}")
    held.close()
    sys.exit(0 if report.ok and not error else 1)


def run(report, a):
    parts = a.part
    folder = os.path.join(HOME, "frr")
    os.makedirs(folder, exist_ok=True)
    sw = routers = None
    try:
        if "forwarding" in parts or "bgp" in parts:
            report.step("making namespaces, cables, hosts; starting asicd and switchd")
            sw = AsicSwitch(PREFIX)
            forwarding.build(sw)
            if "bgp" in parts:
                routers = bgp.Routers(sw, folder)
            report.show(sw.start())
            forwarding.configure(sw)
            sw.ns.sysctl(ipv4__fib_multipath_hash_policy=1, ipv4__conf__all__ignore_routes_with_linkdown=1)
            if "forwarding" in parts:
                forwarding.run(report, sw)
            if routers:
                routers.addresses()
                bgp_part.run(report, sw, routers, HOME)
            report.step("tandem audit: the kernel, the store and the chip's table memory compared")
            audit = sw.json("audit", check=False, timeout=60)
            report.claim("audit", not audit["items"], f"{len(audit['items'])} differences; compared: "
                         + ", ".join(f"{n} {k}" for k, n in sorted(audit["compared"].items())), **audit)
            keep_logs(sw, a.out)
            routers and routers.delete()
            sw.delete()
            sw = routers = None
        if "full" in parts:
            full.run(report, PREFIX, HOME)
    finally:
        if sw:
            keep_logs(sw, a.out)
        if not os.environ.get("TANDEM_KEEP"):
            if routers:
                routers.delete()
            if sw:
                sw.delete()


if __name__ == "__main__":
    play(run, "demo", arguments("Tandem's demo", ("asicd", "switchd"), ("forwarding", "bgp", "full")))
