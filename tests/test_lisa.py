# SPDX-License-Identifier: Apache-2.0
"""What ./run bench lisa makes of its lines: ratios of pairs, the generator taken off, targets, what was stopped."""

import os
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "bench", "lisa"))

import figures  # noqa: E402

pytestmark = pytest.mark.no_daemons


def point(side, pair, rate, busy, got):
    return {"step": "point", "side": side, "test": "unicast", "pair": pair, "rate": rate, "grid": True, "sent": 1000,
            "seconds": 1000 / rate, "got": [got], "busy": busy, "used": 0.0}


def measured():
    lines = [{"step": "generator", "rate": 10000.0, "sent": 500, "seconds": 0.05, "busy": 0.002},
             {"step": "generator", "rate": 20000.0, "sent": 1500, "seconds": 0.1, "busy": 0.006}]
    for pair, (ours, theirs) in enumerate([(26000, 20000), (30000, 20000), (20000, 20000)]):
        for side, cut, busy in (("tandem", ours, 0.014), ("8021q", theirs, 0.024)):
            lines += [point(side, pair, 10000.0, busy, 1000), point(side, pair, 20000.0, busy, 1000),
                      {"step": "cut", "side": side, "test": "unicast", "pair": pair, "rate": float(cut)}]
    return lines


def rows(lines):
    return {r["claim"]: r for r in figures.Part("machine", lines).rows()}


def test_a_ratio_is_of_pairs_and_judged():
    found = rows(measured())
    cut = found["machine, unicast, access to trunk: cut point"]
    assert (cut["value"], cut["ratio"], cut["met"], cut["runs"]) == (26.0, 1.3, True, 3)
    lines = [x | {"rate": 25000.0} if x["step"] == "cut" and x["rate"] == 26000.0 else x for x in measured()]
    assert rows(lines)["machine, unicast, access to trunk: cut point"]["met"] is False


def test_the_generators_time_is_taken_off():
    each = rows(measured())["machine, unicast, access to trunk: processor time of the switch per frame"]
    # 1,000 frames: 4 ms of the generator, between what 500 and 1,500 took
    assert each["value"] == pytest.approx(10.0) and each["ratio"] == pytest.approx(0.5)


def test_what_was_lost_is_not_kept_and_a_curve_shows_it():
    assert figures.output(point("tandem", 0, 10000.0, 0, 400)) == pytest.approx(4.0)
    chart = figures.Part("machine", measured()).chart()
    # two sides with two rates each, of output and of the processor
    assert chart.count("<circle") == 8 and "140" in chart


def test_a_peer_that_was_stopped_is_beside_nobody():
    ours = {"step": "vlans", "part": "vlans", "side": "tandem", "trunks": 2, "vlans": 4094, "seconds": 4.0,
            "system_kb": 10000, "asicd_kb": 1000, "swcfgd_kb": 7000}
    theirs = {"step": "progress", "part": "vlans", "side": "8021q", "trunks": 2, "vlans": 1920, "seconds": 18.0,
              "system_kb": 326000}
    said = {r["claim"]: r for r in figures.vlans([ours, theirs])}
    assert "machine, 1,920 VLANs on 2 trunks, bridge + 8021q, stopped there for want of time: time" in said
    assert not any(r["peer"] for r in said.values())
    done = theirs | {"step": "vlans", "vlans": 4094, "seconds": 40.0}
    beside = [r for r in figures.vlans([ours, done]) if r["peer"]]
    assert [r["ratio"] for r in beside] == [0.1]
