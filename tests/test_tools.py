# SPDX-License-Identifier: Apache-2.0
"""The tools that judge: a test of each that they can say no."""

import os
import shutil
import signal
import struct
import subprocess
import sys

import pytest

from lib import bgp, monitor, net, packet, traffic, twin
from lib.switch import PREFIX, TOP
from scenario.__main__ import part, share

sys.path.insert(0, os.path.join(TOP, "tools"))

import layers  # noqa: E402
import lint  # noqa: E402

pytestmark = pytest.mark.no_daemons


def run(*words):
    r = subprocess.run([os.path.join(TOP, "run"), *words], capture_output=True, text=True, timeout=30,
                       stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout, r.stderr


def test_run_explains_itself_and_refuses_nonsense():
    code, out, _ = run("help")
    assert code == 0 and all(w in out for w in ("demo", "test", "bench", "lint", "TANDEM_YES"))
    assert all(run(command, "--help") == (0, out, "") for command in ("test", "bench", "lint", "demo"))
    assert run("nonsense")[0] == 2
    code, _, err = run("bench", "nonsense")
    assert code == 1 and "route-program" in err and err.count("\n") == 1
    code, _, err = run("test", "nonsense")
    assert code == 1 and "there are unit, loom, " in err and err.count("\n") == 1


def test_ci_that_is_ended_ends_all_it_has_started(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(os.path.join(TOP, ".ci/run"), tmp_path / ".ci/run")
    (tmp_path / "run").write_text("#!/bin/sh\nsleep 1000 | cat & echo $! >$1\nsleep 1000 | cat\n")
    (tmp_path / "run").chmod(0o755)
    ci = subprocess.Popen([tmp_path / ".ci/run"], stdout=subprocess.DEVNULL)
    net.wait_until("its first command to run", lambda: (tmp_path / "lint").exists() and (
        tmp_path / "lint").read_text().strip(), timeout=20)
    of = os.getsid(int((tmp_path / "lint").read_text()))

    def there():
        stats = (net.stat(pid) for pid in os.listdir("/proc") if pid.isdigit())
        return [s for s in stats if s and s[0] != "Z" and int(s[3]) == of]

    try:
        assert of != os.getsid(0) and len(there()) >= 4
        ci.send_signal(signal.SIGTERM)
        assert ci.wait(20) == 143
        net.wait_until("all of them to be gone", lambda: not there(), timeout=10)
    finally:
        ci.kill()
        if of != os.getsid(0) and there():
            os.killpg(of, signal.SIGKILL)


def test_a_run_of_tests_that_is_ended_leaves_nothing(tmp_path):
    (tmp_path / "test_long.py").write_text(
        "import time\n\n\ndef test_long(make):\n    make.kernel().host('h1', 1)\n    time.sleep(1000)\n")
    tests = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-q", tmp_path],
        env={**os.environ, "PYTHONPATH": os.path.join(TOP, "tests")}, stdout=subprocess.DEVNULL)
    mine = f"{PREFIX}{tests.pid}-"
    net.wait_until("its switch and its host", lambda: len(net.namespaces(mine)) == 2 or tests.poll() is not None,
                   timeout=60)
    tests.send_signal(signal.SIGTERM)
    assert tests.wait(60) == 2  # interrupted
    assert not net.namespaces(mine)


def test_layers_reads_the_table_and_its_words():
    rows = layers.table()
    assert rows["asic/pipeline"][0] == 1 and len(rows) >= 14
    crates = {"packet": "asic/packet", "tables": "asic/tables", "abi": "abi/rust"}
    assert layers.allowed("nothing: headers", crates) == set()
    assert layers.allowed("abi (numbers), packet", crates) == {"abi", "packet"}
    assert layers.allowed("all of asic, carrier", crates) == {"packet", "tables", "carrier"}
    assert layers.allowed("mgmt only", crates) == {"mgmt"}


def test_lint_finds(tmp_path, monkeypatch):
    monkeypatch.setattr(lint, "TOP", str(tmp_path))
    (tmp_path / ".ci").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "run").write_text("#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n")
    (tmp_path / ".ci/run").write_text("#!/bin/sh\n# SPDX-License-Identifier: MIT\n")
    (tmp_path / "a.py").write_text("print()\n")
    (tmp_path / "long.rs").write_text("//\n" * 801)
    (tmp_path / "docs/unsafe.md").write_text("| `gone.rs` | why |\n")
    (tmp_path / "u.rs").write_text("#![allow(unsafe_code)]\nfn f() { unsafe { g() } }\n")
    (tmp_path / "docs/x.md").write_text("# A title\n[a](nowhere.md) [b](#a-title) [c](#no-title)\n")
    assert sorted(f.split(":")[0] for f in lint.licences()) == [".ci/run", "a.py"]
    assert [f.split(":")[0] for f in lint.length()] == ["long.rs"]
    text = "\n".join(lint.unsafe())
    assert "u.rs: allows" in text and "without a SAFETY" in text and "gone.rs" in text
    text = "\n".join(lint.links())
    assert "nowhere.md: no such file" in text and "#no-title: no such heading" in text and "#a-title" not in text


def test_lint_knows_the_drivers_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(lint, "TOP", str(tmp_path))
    for folder in ("kernel/clsw/l3", "kernel/backend/null", "kernel/tests"):
        (tmp_path / folder).mkdir(parents=True)
    assert list(lint.statics()) == ["kernel: no function of the driver was found"]
    one = ("static const struct ops x = { .f = g(1) };\n\n"
           "static int %s(struct a *a,\n\t\tint b)\n{\n\tif (b) {\n\t}\n}\n")
    rif = one % "rif_changed" + one % "clsw_rifs" + "int l3_rif(int a)\n{\n}\n"
    (tmp_path / "kernel/clsw/l3/rif.c").write_text(rif)
    (tmp_path / "kernel/clsw/l3/nexthop.c").write_text("/* static int changed(void)\n{ */\n" + one % "nh_changed")
    (tmp_path / "kernel/tests/any.c").write_text(one % "changed")
    assert not list(lint.statics())
    (tmp_path / "kernel/clsw/l3/route.c").write_text("\n" + one % "refused" + one % "route_x")
    assert list(lint.statics()) == ["kernel/clsw/l3/route.c:4: static refused() has no prefix: route_"]
    # the second of a name, wherever it is, and whatever it is called by elsewhere
    (tmp_path / "kernel/clsw/l3/route.c").write_text(one % "route_x" + one % "clsw_rifs")
    assert list(lint.statics()) == ["kernel/clsw/l3/route.c:11: clsw_rifs() is in kernel/clsw/l3/rif.c:11, too"]
    (tmp_path / "kernel/clsw/l3/route.c").write_text("static int l3_rif(void)\n{\n}\n")
    assert [f.split(": ")[1] for f in lint.statics()] == ["l3_rif() is in kernel/clsw/l3/rif.c:17, too",
                                                         "static l3_rif() has no prefix"]
    # one prefix for two folders
    (tmp_path / "kernel/clsw/l3/route.c").unlink()
    (tmp_path / "kernel/clsw/rif.c").write_text(one % "rif_y")
    assert ["too" in f and "PREFIXES" in f for f in lint.statics()] == [True]


def test_lost_doubled_and_reordered_are_told_apart():
    r = traffic.Result([10, 20, 30, 40, 50, 60], [0, 1, 2, 2, 4, 3, 1, 4, 1, 5], flows=1)
    assert r.lost == [3, 5] and r.duplicates == 1 and r.reordered == 1
    assert r.lost_between(0, 45) == [3] and r.last_lost_ns() == 60
    # two flows of their own: 1 after 2 is no reordering
    assert traffic.Result([0] * 4, [0, 0, 2, 0, 1, 0, 3, 0], flows=2).reordered == 0


def test_link_messages_are_read():
    attr = struct.pack("=HH5s3x", 9, 3, b"swp1\0")
    body = struct.pack("=BBHiII", 0, 0, 1, 7, 0x10043, 0) + attr
    msg = struct.pack("=IHHII", 16 + len(body), 16, 0, 0, 0) + body
    bridge = struct.pack("=IHHII", 16 + len(body), 16, 0, 0, 0) + struct.pack("=B", 7) + body[1:]
    events = monitor.parse(msg + bridge + b"\1", 5)
    assert len(events) == 1 and events[0].name == "swp1" and events[0].carrier and events[0].when == 5


def test_twin_tells_differences_and_forgives_what_it_should():
    own = {b"\x0a\x01\x00\x01"}
    a, b = (packet.udp4_frame("02:00:00:00:00:01", "02:00:00:00:00:02", "10.1.0.1", "10.2.0.2", ident=i)
            for i in (1, 2))
    assert a != b and twin.canonical(a, own) == twin.canonical(b, own)
    assert twin.canonical(a, set()) != twin.canonical(b, set())
    step = twin.Step("s", fits=True)
    want = [({"h1": (["aa"], set())}, {})]
    assert twin.compare([step], want, want) == []
    assert twin.compare([step], want, [({"h1": ([], set())}, {})])
    assert twin.compare([step], want, [({"h1": (["aa", "aa"], set())}, {})]), "a frame sent twice"
    assert twin.compare([step], want, [({"h1": (["aa"], set())}, {"route": 1})]), "the CPU did it"
    assert not twin.compare([step], want, [({"h1": (["aa"], set())}, {"arp": 1})])


def test_frames_by_hand_have_right_checksums():
    f = packet.udp4_frame("02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", "10.0.0.2", data=b"odd")
    assert packet.checksum(f[14:34]) == 0
    length = struct.unpack_from("!H", f, 38)[0]
    assert packet.checksum(packet.pseudo("10.0.0.1", "10.0.0.2", 17, length) + f[34:34 + length]) == 0
    assert bgp.supernet(bgp.prefixes(1024)) == "20.0.0.0/14"


def test_parts_of_scenarios_are_all_of_them_once():
    kept = [f"case-{n}" for n in range(7)]
    for of in (1, 2, 3, 8):
        for count in (0, 1, 5, 60):
            parts = [share(which, of, 100, count, kept) for which in range(1, of + 1)]
            assert [s for first, n, _ in parts for s in range(first, first + n)] == list(range(100, 100 + count))
            assert sorted(k for _, _, some in parts for k in some) == kept
            assert max(n for _, n, _ in parts) - min(n for _, n, _ in parts) <= 1
    assert part("2/3") == (2, 3)
    for bad in ("0/3", "4/3", "x", "1"):
        with pytest.raises(ValueError):
            part(bad)
