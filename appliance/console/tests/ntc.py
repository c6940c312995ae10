#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `show` shows, read by the TextFSM templates that others wrote for IOS (PyPI: ntc-templates).

    ntc.py        runs the tests of the console, which write texts of 40 random configurations and what has to be read
                  out of them; parses the texts, and compares. Exit 77 without ntc_templates
"""

import importlib.util
import ipaddress
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PLATFORM = "cisco_ios"


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}\n  read:   {got}\n  wanted: {want}")


def of(texts, command):
    from ntc_templates.parse import parse_output
    return parse_output(platform=PLATFORM, command=command, data=texts[command])


def state(i):
    return "administratively down" if i["shutdown"] else "up" if i["up"] else "down"


def out_of_service(facts, texts):
    """The one table is a part of the other."""
    got = {row["interface"] for row in of(texts, "show interfaces status err-disabled")}
    want = {row["port"] for row in of(texts, "show interfaces status") if row["status"] == "err-disabled"}
    same("show interfaces status err-disabled", got, want)


def vlans(facts, texts):
    for command in ("show vlan", "show vlan brief"):
        got = {row["vlan_id"]: (row["vlan_name"], row["status"], row["interfaces"]) for row in of(texts, command)}
        want = {}
        for number, vlan in facts["vlans"].items():
            ports = [i["short"] for i in facts["interfaces"] if i["access"] and i["vlan"] == int(number)
                     and not i["channel"]]
            want[number] = (vlan["name"], "suspended" if vlan["suspended"] else "active", ports)
        same(command, got, want)


def interfaces(facts, texts):
    rows = {row["interface"]: row for row in of(texts, "show interfaces")}
    same("show interfaces", set(rows), {i["name"] for i in facts["interfaces"]})
    for i in facts["interfaces"]:
        row = rows[i["name"]]
        address, prefix = i["ipv4"] or ("", "")
        same(f"show interfaces: {i['name']}",
             [row["link_status"], row["description"], row["mtu"], row["ip_address"], row["prefix_length"]],
             [state(i), i["description"], str(i["mtu"]), address, str(prefix)])
        same(f"line protocol of {i['name']}", row["protocol_status"].split()[0], "up" if i["up"] else "down")
        if i["counters"]:
            same(f"counters of {i['name']}", [row["input_packets"], row["output_packets"]],
                 [str(i["counters"][0]), str(i["counters"][2])])
        if i["mac"] and not i["name"].startswith("Loopback"):
            same(f"MAC of {i['name']}", row["mac_address"], i["mac"])


def tree(facts, texts):
    got = [[row[k] for k in ("interface", "role", "status", "cost", "port_priority", "port_id")]
           for row in of(texts, "show spanning-tree")]
    same("show spanning-tree", got, facts["tree"])


def status(facts, texts):
    got = {row["port"]: row for row in of(texts, "show interfaces status")}
    want = [i for i in facts["interfaces"] if i["switched"]]
    same("show interfaces status", set(got), {i["short"] for i in want})
    for i in want:
        row = got[i["short"]]
        vlan = "routed" if not i["switchport"] else str(i["vlan"]) if i["access"] else "trunk"
        up = "connected" if i["up"] else "notconnect"
        # the tests' engine has one such port
        word = "disabled" if i["shutdown"] else "err-disabled" if i["short"] == "Gi1/0/6" else up
        same(f"show interfaces status: {i['short']}", [row["status"], row["vlan_id"], row["name"]],
             [word, vlan, i["description"][:18].strip()])


def numbers(parts):
    found = set()
    for part in parts:
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def switchport(facts, texts):
    got = {row["interface"]: row for row in of(texts, "show interfaces switchport")}
    want = [i for i in facts["interfaces"] if i["switched"]]
    same("show interfaces switchport", set(got), {i["short"] for i in want})
    for i in want:
        row = got[i["short"]]
        what = f"show interfaces switchport: {i['short']}"
        if not i["switchport"]:
            same(what, row["switchport"], "Disabled")
            continue
        mode = "static access" if i["access"] else "trunk"
        member = f" (member of bundle Po{i['channel']})" if i["channel"] else ""
        same(what, [row["switchport"], row["admin_mode"], row["mode"], row["access_vlan"], row["native_vlan"]],
             ["Enabled", mode, (mode if i["up"] else "down") + member, str(i["vlan"]), str(i["native"])])
        if i["allowed"] is None:
            same(what, row["trunking_vlans"], ["ALL"])
        elif not i["allowed"]:
            same(what, row["trunking_vlans"], ["NONE"])
        else:
            same(what, numbers(row["trunking_vlans"]), set(i["allowed"]))


def channels(facts, texts):
    got = {row["group"]: (row["bundle_name"], row["bundle_status"], row["bundle_protocol"],
                          list(zip(row["member_interface"], row["member_interface_status"])))
           for row in of(texts, "show etherchannel summary")}
    want = {}
    for i in facts["interfaces"]:
        if i["short"].startswith("Po"):
            number = int(i["short"][2:])
            ports = [p for p in facts["interfaces"] if p["channel"] == number]
            protocol = "LACP" if any(p["lacp"] for p in ports) else "-"
            want[str(number)] = (i["short"], "SU" if i["up"] else "SD", protocol,
                                 [(p["short"], "P" if p["up"] else "D") for p in ports])
    same("show etherchannel summary", got, want)


def descriptions(facts, texts):
    got = {row["port"]: (row["status"], row["protocol"], row["description"])
           for row in of(texts, "show interfaces description")}
    want = {i["short"]: ("admin down" if i["shutdown"] else state(i), "up" if i["up"] else "down", i["description"])
            for i in facts["interfaces"]}
    same("show interfaces description", got, want)


def briefs(facts, texts):
    got = {row["interface"]: (row["ip_address"], row["status"], row["proto"])
           for row in of(texts, "show ip interface brief")}
    want = {i["name"] if len(i["name"]) <= 22 else i["short"]:
            ((i["ipv4"] or ["unassigned"])[0], state(i), "up" if i["up"] else "down") for i in facts["interfaces"]}
    same("show ip interface brief", got, want)
    got = {row["interface"]: (sorted(row["ipv6_address"]), row["admin"])
           for row in of(texts, "show ipv6 interface brief")}
    want = {i["name"]: (sorted(a.upper() for a in i["ipv6"]) or ["unassigned"], state(i)) for i in facts["interfaces"]}
    same("show ipv6 interface brief", got, want)


def stations(facts, texts):
    got = sorted((row["vlan_id"], row["destination_address"], row["type"], row["destination_port"])
                 for row in of(texts, "show mac address-table"))
    want = sorted((str(vlan), mac, "STATIC" if fixed else "DYNAMIC", [port or "CPU"])
                  for vlan, mac, fixed, port in facts["stations"])
    same("show mac address-table", got, want)


def routes(facts, texts):
    """What is connected is read whole; of static routes those that are read are ones of the configuration."""
    for command, key, of_version in (("show ip route", "ipv4", 4), ("show ipv6 route", "ipv6", 6)):
        if of_version == 4 and not facts["routing"]:
            continue
        rows = of(texts, command)
        nets = {(row["network"] + (f"/{row['prefix_length']}" if of_version == 4 else "")).lower()
                for row in rows if row["protocol"] in ("S", "S*")}
        known = {str(ipaddress.ip_network(f"{a}/{p}")) for a, p, _, _ in facts["routes"]
                 if ipaddress.ip_address(a).version == of_version}
        same(f"{command}: static ones", nets - known, set())
        if of_version == 4:
            local = {row["network"] for row in rows if row["protocol"] in ("L", "C")}
            for i in facts["interfaces"]:
                if i["up"] and i[key]:
                    same(f"{command}: {i['name']}", i[key][0] in local, True)


def version(facts, texts):
    row = of(texts, "show version")[0]
    same("show version", [row["hostname"], row["version"], bool(row["uptime"]), len(row["mac_address"])],
         [facts["hostname"], "0.1.0", True, 1])


def box(facts, texts):
    row = of(texts, "show inventory")[0]
    ports = sum(i["port"] for i in facts["interfaces"])
    same("show inventory", [row["pid"], row["vid"].strip(), len(row["sn"])], [f"TANDEM-{ports}", "V01", 12])
    row = of(texts, "show clock")[0]
    same("show clock", [row["timezone"], bool(row["time"]), len(row["year"])], [facts["zone"], True, 4])


def lists(facts, texts):
    rows = of(texts, "show access-lists") if facts["lists"] else []
    got = sorted([r["name"], r["sn"], r["action"]] for r in rows if r["sn"])
    same("show access-lists", got, sorted(facts["lists"]))


def messages(facts, texts):
    """The lines of the buffer, as they stand there."""
    _, _, buffer = texts["show logging"].partition(" bytes):\n\n")
    rows = of(texts, "show logging") if buffer else []
    got = [f"%{r['facility']}-{r['severity']}-{r['mnemonic']}: {''.join(r['message'])}" for r in rows]
    same("show logging", got, [line.split(": ", 1)[1] for line in buffer.splitlines()])


CHECKS = (box, messages, lists, vlans, interfaces, tree, status, out_of_service, switchport, channels, descriptions,
          briefs, stations, routes, version)


def main():
    if importlib.util.find_spec("ntc_templates") is None:
        print("ntc_templates is not here (pip install ntc-templates)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        test = ["cargo", "test", "--quiet", "-p", "tandem-swconsole", "--lib", "random_configurations"]
        env = {**os.environ, "TANDEM_SHOWN_TO": folder}
        subprocess.run(test, cwd=TOP, env=env, check=True, stdout=subprocess.DEVNULL)
        count = 0
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                one = json.load(f)
            for check in CHECKS:
                try:
                    check(one["facts"], one["texts"])
                except Exception as e:
                    print(f"{name}: {check.__name__}: {e}")
                    return 1
                count += 1
    print(f"{count} comparisons of {len(CHECKS)} kinds: as configured")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
