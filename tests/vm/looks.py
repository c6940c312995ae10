#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at asicd's tables again and again, on the lab's host: looks.py PREFIX ROUTES SECONDS [COMMAND]. A line of JSON
per look: how many router interfaces and domains there are, which of them forward, and how many routes whose prefix
begins with PREFIX, the most that were there at once.

Ends when all forward and there are ROUTES; with a COMMAND, which is run after the first look, when there were fewer
routes and then ROUTES again; or in time.
"""

import json
import subprocess
import sys
import time

from chip import Unix


def page(path):
    c = Unix("asicd")
    c.request("GET", path)
    answer = c.getresponse()
    text = answer.read()
    return json.loads(text)["items"] if answer.status == 200 else []


def routes_there(prefix):
    return sum(r["prefix"].startswith(prefix) for r in page("/v1/table/routes?limit=500"))


def look_once(prefix):
    # a reset may come between two pages, and so may the end of the degraded state: who forwards does so beside the
    # routes of before or of after
    before = routes_there(prefix)
    rifs, vlans = page("/v1/table/rifs"), page("/v1/table/vlans")
    routes = max(before, routes_there(prefix))
    forwards = [f"RIF {r['rif']}" for r in rifs if "trap_all" not in r["flags"]]
    forwards += [f"domain {v['fid']}" for v in vlans if "uc_trap" not in v["flags"]]
    return {"there": len(rifs) + len(vlans), "forwards": forwards, "routes": routes}


def main():
    prefix, most, end = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
    command = sys.argv[4:]
    first, fewer = True, False
    while first or time.monotonic() < end:
        look = look_once(prefix)
        print(json.dumps(look), flush=True)
        if first and command:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        fewer |= look["routes"] < most
        if look["routes"] == most and (fewer if command else len(look["forwards"]) == look["there"] > 0):
            return
        first = False
        time.sleep(0.02)


main()
