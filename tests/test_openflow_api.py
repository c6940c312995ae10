# SPDX-License-Identifier: Apache-2.0
"""What docs/api.md says of ofagentd's lists is what they have: each key, and of which unit."""

import os
import re
import struct

import pytest

from lib import net, openflow

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GROUP_MOD, METER_MOD = 15, 29
CLOSED = 6999  # nobody listens there
COMMON = {"daemon", "version", "instance", "pid", "uptime_s"}


def documented():
    """{path: {key: unit}} of the tables `| key of `/v1/x` | unit | meaning |`, and of asicd's `deadline`."""
    tables = {}
    rows = None
    with open(os.path.join(TOP, "docs", "api.md"), encoding="utf-8") as f:
        for line in f:
            begins = re.match(r"\| key of `(/v1/\w+|deadline)` \| unit \| meaning \|$", line)
            if begins:
                rows = tables.setdefault(begins.group(1), {})
            elif not line.startswith("|"):
                rows = None
            elif rows is not None and "---" not in line:
                names, units = line.split("|")[1:3]
                names, units = re.findall(r"`([\w.]+)`", names), [u.strip() for u in units.split(",")]
                assert len(units) in (1, len(names)), line
                rows.update(zip(names, units * (len(names) if len(units) == 1 else 1)))
    return tables


def flat(value, prefix=""):
    """(key, value) of an object and of those in it."""
    for key, v in value.items():
        yield prefix + key, v
        for inner in v if isinstance(v, list) else [v]:
            if isinstance(inner, dict):
                yield from flat(inner, f"{prefix}{key}.")


def is_of(unit, value):
    kinds = {"text": str, "flag": bool, "list": (list, dict)}
    if unit in kinds:
        return isinstance(value, kinds[unit])
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value < 1 << 63


def differences(wanted, rows):
    """Keys that are documented and not there, there and not documented, of another kind, or always null."""
    found = {}
    for row in rows:
        for key, value in flat(row):
            found.setdefault(key, []).append(value)
    wrong = [f"{k}: not documented" for k in found if k not in wanted]
    wrong += [f"{k}: not there" for k in wanted if k not in found]
    for key in wanted.keys() & found.keys():
        values = [v for v in found[key] if v is not None]
        wrong += [f"{key}: {v!r} is no {wanted[key]}" for v in values if not is_of(wanted[key], v)]
        if not values:
            wrong.append(f"{key}: null in all rows")
    return wrong


def fill(peer):
    """A flow by a group and a meter, and one that is in a chip."""
    out = struct.pack("!HHIH6x", 0, 16, 2, 0)
    watching = struct.pack("!HHII4x", 16 + len(out), 0, 1, 5) + out
    plain = struct.pack("!HHII4x", 16 + len(out), 0, 0xffffffff, 0xffffffff) + out
    peer.send(GROUP_MOD, struct.pack("!HBxI", 0, 2, 5) + plain)
    peer.send(GROUP_MOD, struct.pack("!HBxI", 0, 3, 6) + watching)
    peer.send(METER_MOD, struct.pack("!HHI", 0, 2 | 4 | 8, 7) + struct.pack("!HHII4x", 1, 16, 1000, 100))
    todo = struct.pack("!HHI", 6, 8, 7) + struct.pack("!HH4xHHI", 4, 16, 22, 8, 6)
    match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, 1)
    peer.send(openflow.FLOW_MOD, struct.pack("!QQBBHHHIIIH2x", 1, 0, 0, 0, 0, 0, 5, 0xffffffff, 0xffffffff,
                                             0xffffffff, 0) + match + todo)
    peer.flow(1, in_port=2)
    peer.barrier()


class Switch(openflow.Switch):
    """One in software or on a chip."""

    def __init__(self, prefix, chip):
        super().__init__(prefix)
        self.chip = chip


@pytest.fixture(params=(None, "nxp-t1040"), ids=("software", "nxp-t1040"))
def sw(request):
    yield from openflow.lives(request, Switch(openflow.new(), request.param))


def test_lists_have_the_keys_that_are_documented(sw):
    sw.up("--controller", f"ptcp:127.0.0.1:{openflow.PORT}", "--controller", f"tcp:127.0.0.1:{CLOSED}",
          *(("--profile", sw.chip) if sw.chip else ()))
    peer = sw.peer()
    fill(peer)
    net.wait_until("the call to be refused", lambda: any(r.get("error") for r in sw.show("controllers")))
    tables = documented()
    deadline = tables.pop("deadline")
    if not sw.chip:
        del tables["/v1/flows"]["why"]
        for path in ("/v1/flows", "/v1/groups", "/v1/meters"):
            del tables[path]["place"]
        tables["/v1/lsis"] = {k: unit for k, unit in tables["/v1/lsis"].items() if k.split(".")[0] != "chip"}
    status = {k: unit for k, unit in tables["/v1/lsis"].items() if k not in ("lsi", "members")}
    wrong = {}
    for path, keys in tables.items():
        rows = sw.get(path)["items"]
        assert rows, path
        if not sw.chip:
            for row in rows:
                nulls = [row.pop(k) for k in ("place", "why", "chip") if k in row]
                assert set(nulls) <= {None}, path
        wrong[path] = differences(keys, rows)
    row = {k: v for k, v in sw.status().items() if k not in COMMON}
    assert isinstance(row.pop("lsis"), int)
    if not sw.chip:
        assert row.pop("chip") is None
    wrong["/v1/status"] = differences(status, [row])
    if sw.chip:
        # it has one from the first sign on that its driver has nothing to do
        told = net.wait_until("a sign", lambda: [d for d in [sw.get("/v1/status", "asicd")["deadline"]]
                                                 if d["traps_in_s"] is not None])[0]
        assert told.pop("trapping_s", 0) is None and deadline.pop("trapping_s")
        wrong["deadline"] = differences(deadline, [told])
    assert not any(wrong.values()), wrong
