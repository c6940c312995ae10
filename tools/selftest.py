# SPDX-License-Identifier: Apache-2.0
"""What docs/results.md says of the kernel's own tests, and whether a run of them did worse: for lab/selftest.

    selftest.py names docs/results.md HALF                    the tests of that half's tables, one a line
    selftest.py judge docs/results.md HALF FILE.csv CODE TEST...   ends with "selftest: N as expected, N worse"

HALF is `driver` or `switchd`: the word in a table's heading, "## ... (driver)". CODE is what lab/run ended with: 0, or
1 when a test failed; any other says that the machine's kernel warned, or that it did not come to the end.
"""

import csv
import re
import sys

COLUMNS = ("ok", "skip", "xfail", "fail")
BETTER = {"pass": 3, "skip": 2, "fail": 1, "timeout": 0}


def tables(text, half):
    """{test: {"result", "ok", "skip", "xfail", "fail"}} of that half's tables; one without a result is left out."""
    found, mine, head = {}, False, []
    for line in text.splitlines():
        if line.startswith("#"):
            mine, head = line.rstrip().endswith(f"({half})"), []
        if not mine or not line.startswith("|"):
            continue
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if not head:
            head = cells
        elif re.fullmatch(r"[a-z0-9_]+", cells[0]) and len(cells) >= 6 and cells[1] in BETTER:
            row = dict(zip(head, cells))
            found[cells[0]] = {"result": row["result"], **{c: int(row[c]) for c in COLUMNS}}
    return found


def judge(want, rows, code, asked):
    """(Number of tests as expected, lines that say what was worse, lines that say what was better)."""
    worse, better, good = [], [], 0
    if code not in (0, 1):
        worse.append(f"lab/run ended with {code}: 99 is a warning of the kernel, others that it did not get through")
    for test in asked:
        row, least = rows.get(test), want.get(test)
        if row is None or row["result"] == "absent":
            worse.append(f"{test}: did not run")
        elif least is None:
            worse.append(f"{test}: {row['result']}, and the table has no line for it")
        else:
            said = [f"{row['result']} instead of {least['result']}"] * (BETTER[row["result"]] < BETTER[least["result"]])
            said += [f"{row[c]} {c} instead of {least[c]}" for c, sign in (("ok", 1), ("fail", -1), ("xfail", -1))
                     if sign * (int(row[c]) - least[c]) < 0]
            if int(row["skip"]) > least["skip"]:
                said.append(f"{row['skip']} skipped instead of {least['skip']}")
            if said:
                worse.append(f"{test}: {', '.join(said)}")
                continue
            good += 1
            if int(row["ok"]) > least["ok"] or row["result"] != least["result"]:
                better.append(f"{test}: {row['result']}, {row['ok']} ok; the table: {least['result']}, {least['ok']}")
    return good, worse, better


def main():
    what, path, half, *rest = sys.argv[1:]
    with open(path, encoding="utf-8") as f:
        want = tables(f.read(), half)
    if what == "names":
        print(*want, sep="\n")
        return 0
    results, code, *asked = rest
    try:
        with open(results, encoding="utf-8", newline="") as f:
            rows = {r["test"]: r for r in csv.DictReader(f)}
    except OSError:
        rows = {}
    good, worse, better = judge(want, rows, int(code), asked)
    for line in worse:
        print(f"worse than expected: {line}")
    for line in better:
        print(f"better than the table, which wants a new line: {line}")
    print(f"selftest: {good} as expected, {len(worse)} worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
