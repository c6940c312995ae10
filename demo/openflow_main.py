# SPDX-License-Identifier: Apache-2.0
"""The demo of OpenFlow: `./run demo openflow` builds and then calls this. Needs root; works in network namespaces that
it makes and removes. Exit code 0 only if every claim held. The same facts: out/demo-openflow.json.
"""

import argparse
import os
import signal
import sys
import traceback

import main as demo
import of_faucet
import of_full
import of_static
from lib import net
from lib.switch import binaries
from of_switch import Table
from report import Report

PARTS = ("faucet", "static", "full")
FACTS, ERROR, LOGS = "demo-openflow.json", "demo-openflow-error.txt", "demo-openflow-logs"


def keeper(out):
    """keep(switch, {name: text}): the daemons' logs, and others, stay in the folder of results."""
    folder = os.path.join(out, LOGS)

    def keep(sw, texts=None):
        os.makedirs(folder, exist_ok=True)
        texts = {f"{sw.name}-ofagentd": sw.log(), **(texts or {})}
        for name, text in texts.items():
            if text:
                with open(os.path.join(folder, f"{name}.log"), "w", encoding="utf-8") as f:
                    f.write(text)

    return keep


def static_and_full(report, table, parts, keep):
    report.step("starting hosts, asicd, ofagentd")
    sw, controller, said = of_static.build(demo.PREFIX)
    try:
        report.show(said)
        of_static.run(report, table, sw, controller)
        if "full" in parts:
            of_full.run(report, table, sw, controller)
        controller.close()
    finally:
        keep(sw)
        sw.delete()


def arguments():
    p = argparse.ArgumentParser(description="Tandem's demo of OpenFlow")
    p.add_argument("--bin", help="folder of asicd, ofagentd and tandem")
    p.add_argument("--out", default=os.path.join(demo.TOP, "out"))
    p.add_argument("--part", action="append", choices=PARTS, help="only this part; `full` needs `static`")
    a = p.parse_args()
    if a.bin:
        os.environ["TANDEM_BIN"] = os.path.abspath(a.bin)
    for b in ("asicd", "ofagentd", "tandem"):
        if not os.access(os.path.join(binaries(), b), os.X_OK):
            sys.exit(f"demo: {binaries()} has no {b}: ./run build makes it")
    return a


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    a = arguments()
    os.makedirs(a.out, exist_ok=True)
    parts = a.part or PARTS
    held = demo.lock()
    signal.signal(signal.SIGTERM, interrupt)
    for old in (FACTS, ERROR):
        if os.path.exists(os.path.join(a.out, old)):
            os.unlink(os.path.join(a.out, old))
    report, table, keep = Report(), Table(), keeper(a.out)
    left = demo.clean()
    if left:
        report.step(f"removed what an earlier demo left: {', '.join(left)}")
    error = None
    try:
        if "faucet" in parts:
            of_faucet.run(report, table, demo.PREFIX, demo.HOME, keep)
        if "static" in parts or "full" in parts:
            static_and_full(report, table, parts, keep)
    except KeyboardInterrupt:
        error = "interrupted"
    except Exception as e:  # one sentence for the reader, the rest for whoever looks for the cause
        error = f"{type(e).__name__}: {e}" if not isinstance(e, (TimeoutError, net.CommandError)) else str(e)
        with open(os.path.join(a.out, ERROR), "w", encoding="utf-8") as f:
            traceback.print_exc(file=f)
    finally:
        demo.clean()
    path = report.write(a.out, error, FACTS)
    good = sum(c["held"] for c in report.claims)
    if table.rows:
        report.section("Who answered: packets that came in by the chip's ports")
        print(table.text())
    print()
    if error:
        print(f"demo: stopped: {error} (details: {a.out}/{ERROR}, {a.out}/{LOGS}/)")
    print(f"{good} of {len(report.claims)} claims held. The same facts: {os.path.relpath(path)}")
    held.close()
    sys.exit(0 if report.ok and not error else 1)


if __name__ == "__main__":
    main()
