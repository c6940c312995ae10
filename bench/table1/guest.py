#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inside the lab's virtual machine: times `ip -batch` of N routes without a driver and under each policy.

  guest.py [--driver null|pci] [--flags] STEP...      STEP: floor:N or POLICY:N[:PARAMETER=VALUE,...]

One JSON object per step on standard output. Times are the machine's CLOCK_MONOTONIC, as those of debugfs `timing`.
A parameter of clsw_null (write_ns, query_ns, write_batch, ...) is set before the step; `replay=1` resets the chip after
it; `packet=1`: when the batch is in, a packet to its last route comes in (`packet=0`: none, for comparison);
`devlink.X=Y` is a devlink parameter. With --flags the chip isn't asked: a route is in hardware when the kernel shows it
so, looked at every few milliseconds; that is how asicd and clsw_null are compared.
"""

import functools
import json
import os
import subprocess
import sys
import time

DEBUG = "/sys/kernel/debug/clsw_null/clsw_null"
PARAMS = "/sys/module/clsw_null/parameters"
PROTO = "77"
DEADLINE_S = 600
PORTS = 4


def ip(*args, **kw):
    return subprocess.run(["ip", *args], check=True, **kw)


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))


def prefix(i):
    return f"10.{i >> 8 & 255}.{i & 255}.0/24"


def batch(name, count, dev):
    """A file for ip -batch: `count` /24 in 10/8, one gateway."""
    path = f"/tmp/{name}-{count}-{dev}"
    if not os.path.exists(path):
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"route add {prefix(i)} via 192.0.2.2 dev {dev} proto {PROTO}\n" for i in range(count))
    return path


def timing():
    with open(DEBUG + "/timing", encoding="ascii") as f:
        return {k: int(v) for k, v in (line.split() for line in f)}


def switches():
    with open("/proc/stat", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("ctxt "))


def run_batch(path):
    """Begin in ns, and what it took: wall, user, system time in ns, context switches of the machine."""
    ctxt = switches()
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    p = subprocess.Popen(["ip", "-batch", path])
    _, status, usage = os.wait4(p.pid, 0)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit(f"guest: ip -batch {path} ended with {p.returncode}")
    return begin, {"user_ns": end - begin, "cpu_user_ns": int(usage.ru_utime * 1e9),
                   "cpu_sys_ns": int(usage.ru_stime * 1e9), "switches": switches() - ctxt}


def flush(count):
    subprocess.run(["ip", "route", "flush", "proto", PROTO], check=True, stdout=subprocess.DEVNULL)
    left = subprocess.run(["ip", "route", "show", "proto", PROTO], check=True, capture_output=True).stdout
    if left:
        sys.exit(f"guest: {left.count(bytes([10]))} of {count} routes are left after a flush")


def floor(count):
    ip("link", "add", "floor0", "type", "dummy")
    ip("addr", "add", "192.0.2.1/24", "dev", "floor0")
    ip("link", "set", "floor0", "up")
    # as many interfaces as the chip has ports: the kernel's per-CPU allocator has a part in every route, and what it
    # costs depends on what lies in its memory (up to 4 %)
    for i in range(1, PORTS):
        ip("link", "add", f"floor{i}", "type", "dummy")
    path = batch("floor", count, "floor0")
    _, out = run_batch(path)
    flush(count)
    for i in range(PORTS):
        ip("link", "del", f"floor{i}")
    return out


def devlink_handle():
    out = subprocess.run(["devlink", "-j", "dev", "show"], check=True, capture_output=True).stdout
    return next(iter(json.loads(out)["dev"]))


def load(driver):
    if os.path.isdir("/sys/module/clsw_" + driver):
        return
    subprocess.run(["modprobe", "clsw_" + driver, *os.environ.get("TABLE1_LOAD", "").split()], check=True)
    write("/proc/sys/net/ipv4/ip_forward", 1)
    ip("link", "set", "swp1", "up")
    for _ in range(100):
        with open("/sys/class/net/swp1/operstate", encoding="ascii") as f:
            if f.read().strip() == "up":
                break
        time.sleep(0.05)
    else:
        sys.exit("guest: swp1 gets no carrier")
    ip("addr", "add", "192.0.2.1/24", "dev", "swp1")
    ip("neigh", "replace", "192.0.2.2", "lladdr", "02:00:00:00:00:02", "dev", "swp1", "nud", "permanent")


def wait_for(count):
    """Until the chip has them all."""
    until = time.monotonic() + DEADLINE_S
    while True:
        t = timing()
        if t["routes"] >= count:
            return t
        if time.monotonic() > until:
            sys.exit(f"guest: {t['routes']} of {count} routes in hardware after {DEADLINE_S} s")
        time.sleep(0.02)


def by_flags(policy, count, begin, out):
    """The last route shows as offloaded."""
    last = prefix(count - 1)
    until = time.monotonic() + DEADLINE_S
    while b"rt_offload" not in subprocess.run(["ip", "route", "show", last], check=True, capture_output=True).stdout:
        if time.monotonic() > until:
            sys.exit(f"guest: {last} is not offloaded after {DEADLINE_S} s under {policy}")
        time.sleep(0.002)
    out["outage_ns"] = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin
    time.sleep(0.5)
    out["offloaded"] = offloaded()
    flush(count)
    time.sleep(0.5 + count * 100e-6)
    return out


def offloaded():
    out = subprocess.run(["ip", "-j", "route", "show", "proto", PROTO], check=True, capture_output=True).stdout
    return sum("rt_offload" in r.get("flags", []) or "offload" in r.get("flags", []) for r in json.loads(out))


def reset_and_replay(count):
    """The chip resets itself at the next route; until all routes are in it again."""
    write(DEBUG + "/faults", "reset cls=10")
    write(DEBUG + "/timing", 1)
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    ip("route", "add", "10.255.255.0/24", "via", "192.0.2.2", "dev", "swp1", "proto", PROTO)
    t = wait_for(count + 1)
    write(DEBUG + "/faults", "clear")
    return t["last_ns"] - begin


def wait_for_last(count, packet):
    """The batch is in; a packet to its last route comes in, or none: how long until the chip has that route."""
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if packet:
        write(DEBUG + "/packet", "1 " + prefix(count - 1).replace(".0/24", ".1"))
    t = wait_for(count)
    return t["watch_ns"] - begin


def policy_step(policy, count, params, flags):
    params = dict(params)
    replay = params.pop("replay", None)
    packet = params.pop("packet", None)
    handle = devlink_handle()
    subprocess.run(["devlink", "dev", "param", "set", handle, "name", "policy", "value", policy, "cmode", "runtime"],
                   check=True)
    for key, value in params.items():
        if key.startswith("devlink."):
            subprocess.run(["devlink", "dev", "param", "set", handle, "name", key[8:], "value", value,
                            "cmode", "runtime"], check=True)
        else:
            write(f"{PARAMS}/{key}", value)
    path = batch("routes", count, "swp1")
    time.sleep(0.3)
    if flags:
        return by_flags(policy, count, *run_batch(path))
    write(DEBUG + "/timing", 1)
    write(DEBUG + "/watch", prefix(count - 1))
    begin, out = run_batch(path)
    if packet is not None:
        out["last_after_ns"] = wait_for_last(count, packet == "1")
    t = wait_for(count)
    if not t["watch_ns"]:
        sys.exit("guest: the last route is not in hardware")
    out |= {"first_ns": t["first_ns"] - begin, "outage_ns": t["watch_ns"] - begin, "all_ns": t["last_ns"] - begin,
            **{k: t[k] for k in ("writes", "batches", "queries", "busy_ns", "model_ns", "irqs", "depth", "refused")}}
    time.sleep(0.3)
    out["offloaded"] = offloaded()
    if replay:
        out["replay_ns"] = reset_and_replay(count)
    flush(count)
    time.sleep(0.5 + count * 1.2e-9 * max(int(params.get("write_ns", 0)), 100_000))
    with open(DEBUG + "/check", encoding="ascii") as f:
        out["check"] = f.read().strip()
    return out


def disturbed(out):
    """Part of the time nothing ran: the disk was waited for, and virtual time jumps with the host's."""
    return out["user_ns"] - out["cpu_user_ns"] - out["cpu_sys_ns"] > 0.15 * out["user_ns"]


def undisturbed(step):
    """The step, once more if it was disturbed, at most three times; `tries` says how often."""
    for tries in (1, 2, 3):
        out = step() | {"tries": tries}
        if not disturbed(out):
            break
    return out


def main():
    args = sys.argv[1:]
    driver = "null"
    if args[:1] == ["--driver"]:
        driver = args[1]
        args = args[2:]
    flags = args[:1] == ["--flags"]
    for step in args[flags:]:
        name, count, *rest = step.split(":")
        params = dict(p.split("=", 1) for p in rest[0].split(",")) if rest else {}
        if name == "floor":
            out = undisturbed(functools.partial(floor, int(count)))
        else:
            load(driver)
            step = functools.partial(policy_step, name, int(count), params, flags)
            out = step() if flags else undisturbed(step)
        print(json.dumps({"step": name, "count": int(count), "params": params, **out}), flush=True)


main()
