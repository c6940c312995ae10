# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests: each test gets switches of its own in namespaces of its own, removed at its end.

The names begin with tnt-<pid>-, so that several runs can go on at once and what a killed run left can be told.
"""

import itertools
import os
import re
import shutil
import signal
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from lib import driver, frr, net  # noqa: E402
from lib.switch import PREFIX, TOP, AsicSwitch, KernelSwitch, binaries, sweep  # noqa: E402

# vm: the driver, by tests/vm/run. A clock and memory are the whole machine's: only in one of our own, and a small one
collect_ignore = ["vm"] if os.environ.get("TANDEM_NO_SKIP") else ["vm", "test_clock.py"]
if not os.environ.get("TANDEM_NO_SKIP") or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >= 300 << 20:
    collect_ignore.append("test_memory.py")
if not os.environ.get("TANDEM_OLD"):  # ./run test upgrade
    collect_ignore.append("test_upgrade.py")
if not driver.is_there():
    collect_ignore.append("test_promise1_driver.py")
if not os.environ.get("TANDEM_OPENFLOW"):  # ./run test openflow
    collect_ignore.append("openflow")
LONG = bool(os.environ.get("TANDEM_LONG"))
NO_SKIP = bool(os.environ.get("TANDEM_NO_SKIP"))  # in the virtual machine, which has everything a test may need
LOGS = os.path.join(os.environ.get("TANDEM_OUT", os.path.join(TOP, "out")), "test", "logs")


def pytest_configure(config):
    config.addinivalue_line("markers", "no_daemons: needs neither root nor the daemons")


def pytest_collection_modifyitems(items):
    why = None
    if os.geteuid() != 0:
        why = "needs root: network namespaces"
    elif not os.path.exists("/dev/net/tun"):
        why = "needs /dev/net/tun (kernel feature TUN/TAP)"
    if why:
        for item in items:
            if "no_daemons" not in item.keywords:
                item.add_marker(pytest.mark.skip(reason=why))


def interrupt(*_):
    raise KeyboardInterrupt


def pytest_sessionstart(session):
    # who is told to end takes away what he has made, as at Ctrl-C
    signal.signal(signal.SIGTERM, interrupt)
    if os.geteuid() == 0:
        sweep(lambda pid: pid != os.getpid() and not net.pid_alive(pid))


def pytest_sessionfinish(session):
    if os.geteuid() == 0 and not os.environ.get("TANDEM_KEEP"):
        sweep(lambda pid: pid == os.getpid())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be skipped here: {report.longrepr[2]}"
    setattr(item, f"report_{report.when}", report)


_count = itertools.count(1)


@pytest.fixture
def folder(tmp_path):
    """A folder that the user frr can reach."""
    path = f"/run/{PREFIX}{os.getpid()}-{next(_count)}"
    os.makedirs(path, mode=0o755, exist_ok=True)
    yield path
    frr.stop_leftovers(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make(request):
    """make.asic(...) and make.kernel(...): switches that go away with the test; logs are kept if it failed."""
    if not os.access(os.path.join(binaries(), "tandem"), os.X_OK):
        pytest.fail(f"no tandem in {binaries()}: ./run build makes it")

    class Maker:
        def __init__(self):
            self.made = []

        def prefix(self):
            return f"{PREFIX}{os.getpid()}-{next(_count)}-"

        def asic(self, **kw):
            self.made.append(AsicSwitch(self.prefix(), **kw))
            return self.made[-1]

        def kernel(self, **kw):
            self.made.append(KernelSwitch(self.prefix(), **kw))
            return self.made[-1]

    maker = Maker()
    yield maker
    report = getattr(request.node, "report_call", None)
    failed = report is None or report.failed
    for sw in maker.made:
        if failed and isinstance(sw, AsicSwitch):
            os.makedirs(LOGS, exist_ok=True)
            test = re.sub(r"[^A-Za-z0-9_.-]+", "-", request.node.name)
            for daemon in ("asicd", "switchd"):
                with open(os.path.join(LOGS, f"{test}-{daemon}.log"), "w", encoding="utf-8") as f:
                    f.write(sw.log(daemon))
        if not (failed and os.environ.get("TANDEM_KEEP")):
            sw.delete()


@pytest.fixture
def routers_available():
    if not frr.available():
        pytest.fail("needs FRR: apt-get install frr (./run test does that)")
