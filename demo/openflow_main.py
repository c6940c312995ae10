# SPDX-License-Identifier: Apache-2.0
"""The demo of OpenFlow: `./run demo openflow` builds and then calls this. Needs root; works in network namespaces that
it makes and removes. Exit code 0 only if every claim held. The same facts: out/demo-openflow.json.
"""

import os

import main as demo
import of_faucet
import of_full
import of_static
from of_switch import Table

PARTS = ("faucet", "static", "full")
NAME = "demo-openflow"


def keeper(out):
    """keep(switch, {name: text}): the daemons' logs, and others, stay in the folder of results."""
    folder = os.path.join(out, f"{NAME}-logs")

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


def run(report, a):
    table, keep = Table(), keeper(a.out)
    try:
        if "faucet" in a.part:
            of_faucet.run(report, table, demo.PREFIX, demo.HOME, keep)
        if "static" in a.part or "full" in a.part:
            static_and_full(report, table, a.part, keep)
    finally:
        if table.rows:
            report.section("Who answered: packets that came in by the chip's ports")
            print(table.text())


if __name__ == "__main__":
    demo.play(run, NAME, demo.arguments("Tandem's demo of OpenFlow", ("asicd", "ofagentd"), PARTS,
                                        "; `full` needs `static`"))
