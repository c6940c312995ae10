# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the OpenFlow tests. TANDEM_OPENFLOW names the targets: `ovs`, `ofagentd`, or both."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from openflow import ofctl, world  # noqa: E402

TARGETS = os.environ.get("TANDEM_OPENFLOW", "ofagentd").split()


def pytest_generate_tests(metafunc):
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", TARGETS, scope="module")


@pytest.fixture(scope="module")
def kind(target):
    """The class of switch that is tested."""
    why = world.missing(target)
    if why:
        pytest.fail(why)
    return world.TARGETS[target]


@pytest.fixture
def cell():
    with world.Cell() as made:
        yield made


@pytest.fixture(scope="module")
def switch(kind):
    """A switch that waits for clients."""
    with world.Cell() as made:
        yield ofctl.Switch(kind, made)


@pytest.fixture
def wires(switch):
    """The far ends of its cables."""
    with ofctl.Wires(switch.cell) as w:
        yield w


def logs(cell):
    """What the daemons of a cell said, for a test that failed."""
    names = sorted(n for n in os.listdir(cell.folder) if n.endswith(".log"))
    return "".join(f"--- {n}\n{cell.log(n)[-1500:]}\n" for n in names if n not in ("ovsdb.log", "vswitchd.log"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and call.when != "teardown":
        for name in ("cell", "switch", "net13"):
            made = getattr(item, "funcargs", {}).get(name)
            made = getattr(made, "cell", made)
            if isinstance(made, world.Cell):
                report.sections.append(("daemons", logs(made)))
