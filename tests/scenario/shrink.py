# SPDX-License-Identifier: Apache-2.0
"""Makes a failing scenario small: steps, volleys, commands and frames are left out as long as it still fails (ddmin,
Zeller and Hildebrandt 2002, with complements only)."""

import copy
import time


def shrink(scenario, fails, seconds=300):
    """The smallest scenario found for which `fails(scenario)` is true, within so many seconds."""
    end = time.monotonic() + seconds
    best = copy.deepcopy(scenario)

    def attempt(candidate):
        nonlocal best
        if time.monotonic() < end and fails(candidate):
            best = candidate
            return True
        return False

    before = None
    while before != size(best) and time.monotonic() < end:
        before = size(best)
        # what comes after the failure first: the longest tail that can go
        ddmin(best["steps"], lambda steps: attempt({**best, "steps": steps}))
        for k in range(len(best["steps"])):
            for part in ("volleys", "do"):
                ddmin(best["steps"][k][part], lambda items, k=k, part=part: attempt(put(best, k, part, items)))
        for k, step in enumerate(best["steps"]):
            for v, volley in enumerate(step["volleys"]):
                # few flows of a multipath route say nothing: the chip's hash is another one
                if volley["kind"] == "ecmp":
                    continue
                ddmin(best["steps"][k]["volleys"][v]["frames"],
                      lambda frames, k=k, v=v: attempt(put_frames(best, k, v, frames)))
    # an empty step is a pause only
    merged = {**best, "steps": [s for s in best["steps"] if s["do"] or s["volleys"]]}
    if merged["steps"] != best["steps"]:
        attempt(merged)
    return best


def ddmin(items, works):
    """Leaves out parts of `items`, halves first; `works(rest)` says whether the rest will do."""
    parts = 2
    while items:
        length = max(1, len(items) // parts)
        at, less = 0, False
        while at < len(items):
            rest = items[:at] + items[at + length:]
            if works(rest):
                items, less = rest, True
            else:
                at += length
        if length == 1 and not less:
            return items
        parts = 2 if less and length > 1 else min(len(items) or 1, parts * 2)
    return items


def size(scenario):
    return (len(scenario["steps"]), sum(len(s["do"]) for s in scenario["steps"]),
            sum(len(v["frames"]) for s in scenario["steps"] for v in s["volleys"]))


def put(scenario, k, part, items):
    new = copy.deepcopy(scenario)
    new["steps"][k][part] = items
    return new


def put_frames(scenario, k, v, frames):
    new = copy.deepcopy(scenario)
    new["steps"][k]["volleys"][v]["frames"] = frames
    return new
