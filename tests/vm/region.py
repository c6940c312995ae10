#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The other side's hand in the shared region: shows it, or spoils it (for tests of drivers that believe nothing).

    region.py show | spoil | index RING | completion | scribble SECONDS SEED

Runs on the machine that runs the lab's ivshmem server: TANDEM_RUN is the folder with its socket. RING is cmd0, cmd1,
cpl0, cpl1, event, rx or tx: its producer's index becomes one that can't be. completion: one that answers no command
stands where the driver looks next, until it has taken it.
"""

import mmap
import os
import random
import struct
import sys
import time

KINDS = {1: "cmd", 2: "cpl", 3: "event", 4: "rx", 5: "tx"}
ATTACHED = 2  # enum tnd_device_state; the word at 40, the epoch at 48
HEADER = "<QHHIQQQIIIIIII"  # magic … device_peer: abi/tandem.h, struct tnd_header


def memory():
    """The memfd of the server that listens in TANDEM_RUN, mapped."""
    want = os.path.join(os.environ["TANDEM_RUN"], "ivshmem")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().decode(errors="replace").split("\0")
            if not words[0].endswith("tandem-ivshmem-server") or want not in words:
                continue
            for fd in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{fd}"
                if "memfd:tandem-ivshmem" in os.readlink(path):
                    with open(path, "r+b") as f:
                        return mmap.mmap(f.fileno(), 0)
        except (FileNotFoundError, ProcessLookupError):
            continue
    sys.exit(f"region: no server with memory for {want}")


def rings(mem):
    """name -> (entry_size, count, prod, cons, entries)"""
    fields = struct.unpack_from(HEADER, mem, 0)
    count, offset, stride = fields[10:13]
    out = {}
    for i in range(count):
        kind, pair, size, entries, _bell, prod, cons, at = struct.unpack_from("<HHIIIQQQ", mem, offset + i * stride)
        name = KINDS.get(kind, "?") + (str(pair) if kind in (1, 2) else "")
        out[name] = (size, entries, prod, cons, at)
    return out


def word(mem, at):
    return struct.unpack_from("<I", mem, at)[0]


def scribble(mem, table, seconds, seed):
    """Random bytes, numbers and small changes all over the region, most of them where they hurt."""
    rnd = random.Random(seed)
    lines = [at for _, _, prod, cons, _ in table.values() for at in (prod, cons, cons + 4)]
    fronts = [(at + word(mem, prod) % count * size, size) for size, count, prod, _, at in table.values()]
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        kind = rnd.random()
        if kind < 0.2:
            at, room = rnd.randrange(0, 384), 8
        elif kind < 0.3:
            at, room = rnd.randrange(512, 1536), 8
        elif kind < 0.55:
            at, room = rnd.choice(lines), 4
        elif kind < 0.9:
            start, size = rnd.choice(fronts)
            at, room = start + rnd.randrange(0, 128), min(size, 64)
        else:
            at, room = rnd.randrange(0, len(mem) - 64), 64
        if rnd.random() < 0.4:
            # what is there, and a little more: passes coarse checks
            struct.pack_into("<I", mem, at & ~3, (word(mem, at & ~3) + rnd.choice((-1, 1, 2, 64))) & 0xFFFFFFFF)
        else:
            size = rnd.randrange(1, room + 1)
            mem[at:at + size] = rnd.randbytes(size)
        n += 1
        time.sleep(rnd.choice((0, 0.0005, 0.01, 0.1)))
    print(f"{n} places spoilt")


def main():
    what = sys.argv[1]
    mem = memory()
    table = rings(mem)
    if what == "show":
        f = struct.unpack_from(HEADER, mem, 0)
        print(f"magic {f[0]:#x} state {f[7]} reason {f[8]} epoch {f[9]} device_peer {f[13]}")
        for name, (_, count, prod, cons, _) in table.items():
            print(f"{name}: {count} entries, produced {word(mem, prod)}, consumed {word(mem, cons)}")
    elif what == "spoil":
        mem[512:1536] = b"\xee" * 1024
        mem[16:24] = struct.pack("<Q", 1 << 60)
    elif what == "index":
        _, count, prod, cons, _ = table[sys.argv[2]]
        # again and again: the rightful producer writes there too. Until somebody has noticed
        before, end = word(mem, 48), time.monotonic() + 10
        while word(mem, 40) == ATTACHED and word(mem, 48) == before and time.monotonic() < end:
            struct.pack_into("<I", mem, prod, (word(mem, cons) + count + 7) & 0xFFFFFFFF)
            time.sleep(0.0005)
    elif what == "completion":
        size, count, prod, cons, at = table["cpl1"]
        # what the rightful producer writes next comes to the same place: until the driver has taken ours
        before, end = word(mem, 48), time.monotonic() + 10
        while word(mem, 40) == ATTACHED and word(mem, 48) == before and time.monotonic() < end:
            n = word(mem, cons)
            if word(mem, prod) == n:
                start = at + (n & (count - 1)) * size
                mem[start:start + size] = b"\x5a" * size
                struct.pack_into("<I", mem, prod, (n + 1) & 0xFFFFFFFF)
            time.sleep(0.0005)
    elif what == "scribble":
        scribble(mem, table, float(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
