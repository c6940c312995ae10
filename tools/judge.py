# SPDX-License-Identifier: Apache-2.0
"""Counts what `./run test` ran, and says no where too little did: for `run`.

    judge.py junit FILE.xml                      "passed failed skipped" of a report of pytest
    judge.py skips FILE.xml                      a line for each test that was skipped: its name, then why
    judge.py merge FILE.xml REPORT.xml...        one report of many, and what took longest; one that is not there failed
    judge.py unskipped FILE.xml NAME...          "passed failed": of these tests, all of which had to run
    judge.py sum PARTS SKIPS LEAST ALLOWED       the closing table; exit 1 if anything is missing, with a line for each

PARTS has a line for each part that ran: name, passed, failed, skipped, seconds and `whole` or `some` (of its tests were
asked for), by tabs. SKIPS: part, tab, what was skipped and why. LEAST (tests/least): a part's name, and how many of its
tests must have passed or been skipped as ALLOWED says. ALLOWED (tests/skips): part | regular expression | why.
"""

import collections
import re
import sys
import xml.etree.ElementTree as tree


def cases(path):
    """(name, "passed", "failed" or "skipped", why) of each test; nothing if there is no report."""
    try:
        root = tree.parse(path).getroot()
    except (OSError, tree.ParseError):
        return
    for case in root.iter("testcase"):
        name = case.get("classname", "").replace(".", "/") + ".py::" + case.get("name", "")
        skip = case.find("skipped")
        bad = case.find("failure") is not None or case.find("error") is not None
        yield name, "failed" if bad else "passed" if skip is None else "skipped", \
            skip.get("message", "") if skip is not None else ""


def junit(path):
    """(passed, failed, skipped); a report that is not there is one failure."""
    found = collections.Counter(result for _, result, _ in cases(path))
    return (found["passed"], found["failed"], found["skipped"]) if found else (0, 1, 0)


def merge(path, reports):
    """Writes one report of many; a report that is not there is a test that failed. To print: the longest tests."""
    whole, times = tree.Element("testsuites"), []
    for name in reports:
        try:
            suites = list(tree.parse(name).getroot().iter("testsuite"))
        except (OSError, tree.ParseError) as e:
            suites = [tree.Element("testsuite")]
            case = tree.SubElement(suites[0], "testcase", classname=str(name), name="report")
            tree.SubElement(case, "failure", message=f"no report: {e}")
        for suite in suites:
            whole.append(suite)
            times += [(float(c.get("time", 0)), f"{c.get('classname')}::{c.get('name')}")
                      for c in suite.iter("testcase")]
    tree.ElementTree(whole).write(path)
    return ["longest:", *(f"{seconds:8.1f} s  {name}" for seconds, name in sorted(times, reverse=True)[:15])]


def unskipped(path, names):
    """(passed, failed) of tests that had to run: one without a result has failed."""
    passed = {name for name, result, _ in cases(path) if result == "passed"}
    return len(passed & set(names)), len(set(names) - passed)


def lines(path):
    """The lines of a file without comments and empty ones; none if it is not there."""
    try:
        with open(path, encoding="utf-8") as f:
            return [x for x in (line.split("#", 1)[0].rstrip() for line in f) if x]
    except OSError:
        return []


def allowed_skips(text_lines):
    """[(part, pattern, why)]; a line that is not one is an error of whoever wrote it."""
    rules = []
    for line in text_lines:
        cells = [c.strip() for c in line.split(" | ")]
        if len(cells) != 3 or not all(cells):
            raise ValueError(f"wanted `part | pattern | why`, not: {line}")
        rules.append((cells[0], re.compile(cells[1]), cells[2]))
    return rules


def judge(parts, skips, least, rules):
    """What to print, and what is missing, as lines. `parts`: [(name, passed, failed, skipped, seconds, whole)],
    `skips`: [(part, text)], `least`: {part: number}, `rules`: of `allowed_skips`."""
    said, missing = [], []
    excused, why = collections.Counter(), collections.Counter()
    for part, text in skips:
        rule = next((r for r in rules if r[0] == part and r[1].search(text)), None)
        if rule is None:
            missing.append(f"{part}: skipped, and tests/skips does not allow it: {text}")
        else:
            excused[part] += 1
            why[part, rule[1].pattern, rule[2]] += 1
    if why:
        said.append("skipped, as tests/skips allows:")
        said += [f"   {n:4} {part}: {pattern}: {reason}" for (part, pattern, reason), n in sorted(why.items())]
    said.append(f"{'part':<14}{'passed':>8}{'failed':>8}{'skipped':>9}{'at least':>10}{'seconds':>9}{'of all':>8}")
    total = sum(p[4] for p in parts)
    for name, passed, failed, skipped, seconds, whole in parts:
        wanted = least.get(name, 1) if whole else 0
        said.append(f"{name:<14}{passed:>8}{failed:>8}{skipped:>9}{wanted or '-':>10}{seconds:>9}"
                    f"{100 * seconds // max(total, 1):>6} %")
        if skipped > excused[name] and skipped > sum(part == name for part, _ in skips):
            missing.append(f"{name}: {skipped} skipped, {excused[name]} of them named: what is skipped has to say why")
        if passed + excused[name] < wanted:
            missing.append(f"{name}: {passed} passed, {excused[name]} skipped as allowed: tests/least wants {wanted}")
    return said, missing


def main():
    what, *rest = sys.argv[1:]
    if what == "junit":
        print(*junit(rest[0]))
    elif what == "skips":
        for name, result, why in cases(rest[0]):
            if result == "skipped":
                print(f"{name}: {why}")
    elif what == "merge":
        print(*merge(rest[0], rest[1:]), sep="\n")
    elif what == "unskipped":
        print(*unskipped(rest[0], rest[1:]))
    else:
        rows = [line.split("\t") for line in lines(rest[0])]
        parts = [(r[0], *map(int, r[1:5]), r[5] == "whole") for r in rows]
        skips = [tuple(line.split("\t", 1)) for line in lines(rest[1])]
        least = {name: int(n) for name, n in (line.split() for line in lines(rest[2]))}
        said, missing = judge(parts, skips, least, allowed_skips(lines(rest[3])))
        print(*said, *(f"   ! {x}" for x in missing), sep="\n")
        return 1 if missing else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
