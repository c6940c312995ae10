# SPDX-License-Identifier: Apache-2.0
"""What decides whether a run passed: that each of these judges says no when too little ran, or too much was allowed."""

import collections
import os
import subprocess
import sys

import pytest

from lib import packet, twin
from lib.switch import TOP, Switch
from scenario import bench, report
from scenario.__main__ import drawn
from scenario.play import Play

sys.path.insert(0, os.path.join(TOP, "tools"))

import judge  # noqa: E402
import selftest  # noqa: E402

pytestmark = pytest.mark.no_daemons

RESULTS = """# Results

## Bridges (switchd)

| test | result | ok | skip | xfail | fail | seconds | packets | chip | note |
|---|---|---|---|---|---|---|---|---|---|
| bridge | pass | 5 | 0 | 0 | 0 | 51 | 80 | 90 % | |
| router | fail | 2 | 0 | 0 | 6 | 30 | 90 | 10 % | why |
| loopback | – | | | | | | | | not there |

## Bridges (driver)

| test | result | ok | skip | xfail | fail | seconds | packets | chip | note |
|---|---|---|---|---|---|---|---|---|---|
| bridge | pass | 4 | 0 | 0 | 0 | 51 | 80 | 90 % | |
"""


def ran(**tests):
    """Rows of a run: name = (result, ok, fail)."""
    return {t: {"test": t, "result": r, "ok": str(ok), "skip": "0", "xfail": "0", "fail": str(bad)}
            for t, (r, ok, bad) in tests.items()}


def worse(rows, code=0, asked=("bridge", "router")):
    return selftest.judge(selftest.tables(RESULTS, "switchd"), rows, code, asked)[1]


def test_reports_are_put_together(tmp_path):
    one = tmp_path / "one.xml"
    case = '<testcase classname="tests.test_a" name="b" time="2"/>'
    one.write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
    said = judge.merge(tmp_path / "all.xml", [one])
    assert judge.junit(tmp_path / "all.xml") == (1, 0, 0) and "tests.test_a::b" in said[1]
    judge.merge(tmp_path / "all.xml", [one, tmp_path / "none.xml"])
    assert judge.junit(tmp_path / "all.xml") == (1, 1, 0), "a file that died"


def test_the_kernels_tests_are_held_to_their_table():
    want = selftest.tables(RESULTS, "switchd")
    assert list(want) == ["bridge", "router"] and selftest.tables(RESULTS, "driver")["bridge"]["ok"] == 4
    as_said = ran(bridge=("pass", 5, 0), router=("fail", 2, 6))
    assert selftest.judge(want, as_said, 1, ["bridge", "router"]) == (2, [], [])
    assert worse({}) == ["bridge: did not run", "router: did not run"]
    assert "ended with 99" in worse(as_said, code=99)[0]
    assert "ended with 124" in worse(as_said, code=124)[0]
    assert "4 ok instead of 5" in worse(ran(bridge=("pass", 4, 0)), asked=["bridge"])[0], "fewer checks"
    assert "skip instead of pass" in worse(ran(bridge=("skip", 0, 0)), asked=["bridge"])[0]
    assert "7 fail instead of 6" in worse(ran(router=("fail", 2, 7)), asked=["router"])[0]
    assert "no line" in worse(ran(other=("pass", 1, 0)), asked=["other"])[0]
    good, bad, better = selftest.judge(want, ran(router=("pass", 8, 0)), 0, ["router"])
    assert (good, bad) == (1, []) and "pass, 8 ok" in better[0]


XML = """<testsuites><testsuite><testcase classname="tests.test_a" name="one"/>
<testcase classname="tests.test_a" name="two"><failure message="x"/></testcase>
<testcase classname="tests.test_b" name="three"><skipped message="no VRFs"/></testcase></testsuite></testsuites>"""


def test_reports_of_pytest_are_counted_by_name(tmp_path):
    path = str(tmp_path / "r.xml")
    assert judge.junit(path) == (0, 1, 0), "no report is a failure"
    assert judge.unskipped(path, ["a", "b"]) == (0, 2)
    (tmp_path / "r.xml").write_text(XML)
    assert judge.junit(path) == (1, 1, 1)
    one, two, three, four = (f"tests/test_{f}.py::{n}" for f, n in
                             (("a", "one"), ("a", "two"), ("b", "three"), ("b", "four")))
    assert judge.unskipped(path, [one]) == (1, 0)
    assert judge.unskipped(path, [one, two, three, four]) == (1, 3), "failed, skipped and absent ones"
    (tmp_path / "r.xml").write_text("<testsuites><testsuite errors='0' failures='0' tests='0'/></testsuites>")
    assert judge.unskipped(path, [one, two]) == (0, 2), "pytest ended with a usage error"


def test_a_report_without_skips_says_nothing(tmp_path):
    tool = os.path.join(TOP, "tools/judge.py")
    for skip, said in [("", ""), ('<skipped message="no VRFs"/>', "tests/test_x.py::test_y: no VRFs\n")]:
        case = f'<testcase classname="tests.test_x" name="test_y">{skip}</testcase>'
        (tmp_path / "r.xml").write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
        out = subprocess.run([sys.executable, tool, "skips", tmp_path / "r.xml"], capture_output=True, text=True).stdout
        assert out == said


def test_too_few_tests_and_unlisted_skips_fail():
    rules = judge.allowed_skips(["e2e | needs a kernel with VRFs | in the machine"])
    least = {"e2e": 10}

    def missing(passed, skips, named=None):
        named = len(skips) if named is None else named
        return judge.judge([("e2e", passed, 0, named, 5, True)], [("e2e", s) for s in skips], least, rules)[1]

    vrf = "x.py::a: needs a kernel with VRFs"
    assert missing(10, []) == [] and missing(9, [vrf]) == []
    assert "wants 10" in missing(9, [])[0]
    assert "does not allow" in missing(10, ["x.py::b: needs root"])[0]
    assert "has to say why" in missing(10, [], named=3)[0]
    assert len(missing(0, ["needs root"])) == 2
    assert judge.judge([("e2e", 1, 0, 0, 5, False)], [], least, rules)[1] == [], "only some were asked for"
    with pytest.raises(ValueError):
        judge.allowed_skips(["e2e | no reason"])


def test_the_lists_of_the_repository_can_be_read():
    assert judge.allowed_skips(judge.lines(os.path.join(TOP, "tests/skips")))
    assert all(n.isdigit() for _, n in (line.split() for line in judge.lines(os.path.join(TOP, "tests/least"))))
    with open(os.path.join(TOP, "docs/results.md"), encoding="utf-8") as f:
        text = f.read()
    assert len(selftest.tables(text, "driver")) >= 11


def test_a_run_of_scenarios_that_proves_little_fails():
    enough = collections.Counter({"good volleys": 1000, "good: checked": 500, "good: in part": 250, "scenarios": 200,
                                  "scenarios with good volleys": 190, "scenarios that proved none": 10})
    assert report.short(enough) == []
    assert len(report.short(collections.Counter({**enough, "scenarios that proved none": 90}))) == 1
    assert "only 90 of 1000" in report.short(
        collections.Counter({**enough, "good: checked": 50, "good: in part": 40}))[0]
    assert "9 times" in report.short(
        collections.Counter({**enough, "allowed: an ICMP error that one side did not send": 9}))[0]
    assert report.short(collections.Counter({"good volleys": 10})) == [], "too few to say"
    few = {"scenarios with good volleys": 55, "scenarios that proved none": 18}
    assert report.short(collections.Counter({**enough, **few})) == [], "a third of 55 may be luck"
    assert report.too_many(1, 3) == report.too_many(3, 60) == [] and len(report.too_many(4, 60)) == 1
    assert "0 frames" in report.report(collections.Counter())[0]


def test_a_failure_is_never_forgiven():
    seven, eight = ("seed-7", 7), ("seed-8", 8)
    results = [{"task": ("seed-7-again", 7), "failed": n < 3} for n in range(20)] \
        + [{"task": ("seed-8-again", 8), "failed": False}] * 20
    assert report.replays([seven, eight], results, 20) == [
        "seed-7: 3 of 20 replays failed too",
        "seed-8: 0 of 20 replays failed too: open, until somebody says why it failed once"]


def test_new_seeds_are_the_commits_own():
    assert drawn("a" * 40) == drawn("a" * 40) != drawn("b" * 40)
    assert drawn("x") % 100 == 0 and drawn("x") >= 1_000_000


def test_gateways_are_looked_for_again_when_they_are_forgotten():
    play = Play(collections.namedtuple("Bench", "sides")([]), {"own": []})
    play.asked_for(["nexthop replace id 1 via 10.3.0.2 dev swp3", "nexthop replace id 2 group 1,1",
                    "route replace 10.9.0.0/16 nhid 2", "route replace 10.8.0.0/16 via 10.4.0.2 dev swp4"])
    there, other = ("10.3.0.2", "swp3"), ("10.4.0.2", "swp4")
    assert play.ever == {there, other}
    assert play.asked_for(["addr del 10.3.0.1/24 dev swp3"]) == [there]
    assert play.asked_for(["link set swp4 address 02:00:00:00:99:01"]) == [other]
    assert play.asked_for(["neigh del 10.4.0.2 dev swp4"]) == [other]
    assert not play.asked_for(["addr del 10.1.0.1/24 dev swp1", "link set swp4 mtu 1400"])


class Unsent:
    """A side whose kernel could not send so many ICMP messages."""

    def __init__(self, count):
        self.count, self.wires, self.inside = count, {"h1": None}, self

    def unsent(self):
        return self.count


def test_so_many_icmp_messages_may_be_missing_as_a_kernel_could_not_send():
    sides = [Unsent(0), Unsent(0)]
    play = Play(collections.namedtuple("Bench", "sides")(sides), {"own": []})
    h1, swp1 = "02:00:00:00:00:01", "02:00:00:00:02:01"
    error = packet.ether(h1, swp1, packet.ETH_IP, packet.ipv4("10.1.0.1", "10.1.0.2", 1, b"\3\0" + bytes(34)))
    play.caught[0]["h1"][error] = 2
    assert not play.without_memory(), "it has sent all that it wanted to send"
    sides[0].count = 2
    assert not play.without_memory(), "that was the other side"
    sides[1].count = 1
    assert not play.without_memory(), "two are missing"
    sides[1].count = 2
    assert play.without_memory() and play.caught[1]["h1"][error] == 2
    play.caught[0]["h1"][error] = 3
    assert not play.without_memory(), "each counts once"
    data = packet.udp4_frame(h1, swp1, "10.1.0.1", "10.2.0.2")
    play.caught = [{"h1": collections.Counter({data: 1})}, {"h1": collections.Counter()}]
    sides[1].count = 100
    assert not play.without_memory(), "data"
    echo6 = packet.icmpv6("fd02::2", "fd01::2", 128, 0, bytes(4))
    for kind, ip in ((packet.ETH_IP, packet.ipv4("10.2.0.2", "10.1.0.2", 1, packet.icmp_echo(7, 1))),
                     (packet.ETH_IP6, packet.ipv6("fd02::2", "fd01::2", 58, echo6))):
        pinged = packet.ether(h1, swp1, kind, ip)
        play.caught = [{"h1": collections.Counter({pinged: 1})}, {"h1": collections.Counter()}]
        assert not play.without_memory(), "a ping between hosts is data"


def test_so_many_icmp_errors_of_flows_may_be_missing_as_a_kernel_could_not_send():
    def played(count, way="h1 02 02 icmp 0301"):
        play = Play(collections.namedtuple("Bench", "sides")([Unsent(count), Unsent(0)]), {"own": []})
        play.flows = [{}, {(1, n, 0): [way] for n in range(3)}]
        return play.without_memory()

    assert played(3)
    assert not played(2), "three are missing"
    assert not played(3, "h1 02 02 forwarded")


def test_only_padding_is_cut_off():
    frame = packet.udp4_frame("02:00:00:00:00:01", "02:00:00:00:00:02", "10.1.0.1", "10.2.0.2", data=b"x")
    bare = frame[:43]
    assert len(frame) == 60 and twin.canonical(frame, set()) == twin.canonical(bare, set()) == bare
    assert twin.canonical(bare + b"\0" * 40, set()) != bare, "more than what a port pads to"
    assert twin.canonical(bare + b"\xa5" * 17, set()) != bare, "not zeros"
    tag = b"\x81\0\0\7"
    assert twin.canonical(frame[:12] + tag + frame[12:], set()) == twin.canonical(bare[:12] + tag + bare[12:], set())


def test_a_wrong_checksum_of_the_switchs_own_stays_wrong():
    frame = packet.udp4_frame("02:00:00:00:00:01", "02:00:00:00:00:02", "10.1.0.1", "10.2.0.2")
    wrong = frame[:24] + bytes([frame[24] ^ 1]) + frame[25:]
    own = {b"\x0a\x01\0\x01"}
    assert twin.canonical(frame, own) != twin.canonical(wrong, own)


def test_the_kernels_own_count_tells_what_the_chip_does_not():
    class Fake(Switch):
        def __init__(self):
            self.chip_says, self.kernel = {"arp": 3}, 3

        def trapped(self):
            return dict(self.chip_says)

        def kernel_received(self):
            return self.kernel

    sw = Fake()
    before = sw.cpu_packets()
    sw.chip_says["route"], sw.kernel = 2, 5
    assert sw.cpu_delta(before) == {"route": 2}
    sw.kernel = 9  # four packets that the chip does not tell of
    assert sw.cpu_delta(before) == {"route": 2, "uncounted": 4}
    step = twin.Step("s", fits=True)
    want = [({"h1": (["aa"], set())}, {})]
    assert twin.compare([step], want, [({"h1": (["aa"], set())}, {"arp": 1, "uncounted": 4})])


def test_errors_about_a_packet_that_was_sent_twice_count_twice():
    """The kernel lets an address have five ICMP errors of routes, whatever they are about."""
    made = object.__new__(bench.Bench)
    made.limited, made.errors = True, collections.defaultdict(list)
    about = packet.ipv4("10.1.0.2", "99.0.0.1", 17, bytes(12))
    error = packet.ether("02:00:00:00:00:01", "02:00:00:00:00:02", packet.ETH_IP,
                         packet.ipv4("10.1.0.1", "10.1.0.2", 1, b"\3\0\0\0\0\0\0\0" + about))
    for n in range(5):
        assert not made.spent(error), f"{n} errors: none may be missing"
        made.spend(1, error)
    assert made.spent(error), "the sixth may be kept back on either side"
    other = error[:30] + bytes([10, 1, 0, 3]) + error[34:]
    assert not made.spent(other), "another address"
