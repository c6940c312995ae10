# SPDX-License-Identifier: Apache-2.0
"""What the switch tester's harness makes of results: a failure stays one, whatever else there is."""

import os

from openflow import tester


def result(**more):
    return {"file": "of13/meter/a.json", "number": 0, "test": "a meter", "result": "passed", "why": "", **more}


def test_a_run_that_offered_too_little_says_nothing():
    results = [result(wanted_pps=1000, offered_pps=969), result(wanted_pps=1000, offered_pps=971),
               result(wanted_pps=1000, offered_pps=500, result="failed"),
               result(wanted_pps=1000, offered_pps=1000, came_back=1000, seen=940, result="failed"),
               result(wanted_pps=1000, offered_pps=1000, still=0.04, result="failed"),
               result(wanted_pps=1000, offered_pps=1000, came_back=500, seen=500, still=0.02, result="failed")]
    tester.judge(results, [])
    assert [r["result"] for r in results] == ["invalid", "passed", "invalid", "invalid", "invalid", "failed"]


def test_an_exception_is_of_a_file_a_test_and_a_clause():
    rules = [["of13/meter/*", "^a meter", "7.3.4.4", "why"]]
    results = [result(result="failed"), result(result="failed", test="another"), result(),
               result(result="failed", file="of13/match/a.json")]
    tester.judge(results, rules)
    assert [r["result"] for r in results] == ["exception", "failed", "passed", "failed"]


def test_the_table_counts_groups_and_versions():
    said, rows = tester.table([result(), result(result="failed", file="of10/match/b.json")])
    assert rows["of13"]["passed"] == rows["of13/meter"]["passed"] == 1
    assert rows["of10/match"]["failed"] == 1 and rows["of10"]["passed"] == 0
    assert len(said) == 5
    runs = [dict(wanted_pps=1000, offered_pps=500), dict(wanted_pps=1000, offered_pps=1000, came_back=100, seen=50),
            dict(wanted_pps=1000, offered_pps=1000, still=0.1)]
    said, _ = tester.table([result(wanted_pps=1000, offered_pps=999, invalid=runs)])
    why = "offered 50.0 %, its tester saw 50.0 %, stood still for 10.0 %"
    assert said[-1] == f"3 runs said nothing and were repeated: {why}"


def test_each_line_of_the_short_list_is_of_files_that_are_there():
    root = tester.tests_folder()
    names = tester.files_of(root, tester.listed(os.path.join(tester.HERE, "short")))
    every = tester.files_of(root, [])
    assert {tester.group(n) for n in names} == {tester.group(n) for n in every}
    for line in tester.listed(os.path.join(tester.HERE, "exceptions")):
        targets, pattern = (word.strip() for word in line.split(" | ")[:2])
        assert set(targets.split()) <= set(tester.world.TARGETS)
        assert tester.files_of(root, [pattern])
    assert tester.exceptions_of("ofagentd") == []
