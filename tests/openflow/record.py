#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes down what Faucet says to a switch, for openflow/compose/src/tests/faucet-*.hex (root; `./run test openflow`
has installed what it needs):

    out/python/bin/python tests/openflow/record.py access|trunks > openflow/compose/src/tests/faucet-….hex

     Open vSwitch ── tcp:127.0.0.1:6700 ── this ── tcp:127.0.0.1:6653 ── Faucet          its flow_mods: one a line
"""

import os
import socket
import struct
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib.packet import ETH_ARP, arp, ether  # noqa: E402
from openflow import test_faucet, world  # noqa: E402
from openflow.hosts import mac, ping, reaches  # noqa: E402
from openflow.ofctl import Wires  # noqa: E402

BETWEEN = 6700
FLOW_MOD = 14
TRUNKS = """
vlans:
  office: {vid: 100}
  guest: {vid: 200}
dps:
  target:
    dp_id: 0x1
    hardware: Open vSwitch
    interfaces:
""" + "".join(f"      {i}: {{tagged_vlans: [office, guest]}}\n" for i in range(1, 9))
HEADS = {
    "access": "the configuration of tests/openflow/test_faucet.py, two VLANs on\n"
              "# access ports and a trunk, an ACL and a route, when all hosts have met",
    "trunks": "eight trunks (tagged_vlans: [100, 200]) when forty stations were seen",
}


def pump(source, to, out):
    """Passes on what comes, and writes down the flow_mods among it."""
    held = b""
    while data := source.recv(65536):
        to.sendall(data)
        held += data
        while out and len(held) >= 8 and len(held) >= (length := struct.unpack("!H", held[2:4])[0]):
            message, held = held[:length], held[length:]
            if message[1] == FLOW_MOD:
                out.write(message.hex() + "\n")
                out.flush()


def between(path):
    """Within the switch's namespace, until it is killed."""
    with open(path, "w", encoding="ascii") as out, socket.create_server(("127.0.0.1", BETWEEN)) as server:
        while True:
            switch, _ = server.accept()
            faucet = socket.create_connection(("127.0.0.1", world.PORT))
            for words in ((switch, faucet, None), (faucet, switch, out)):
                threading.Thread(target=pump, args=words, daemon=True).start()


def bridge(cell, ports):
    cell.start(sys.executable, __file__, "between", cell.path("said"), log="between.log")
    test_faucet.net.wait_until("the recorder", lambda: os.path.exists(cell.path("said")))
    ovs = world.Ovs(cell)
    ovs.bridge("target", 1, ports, controller=False)
    ovs.vsctl("set-controller", "target", f"tcp:127.0.0.1:{BETWEEN}", "--", "set", "controller", "target",
              "connection-mode=out-of-band", "max_backoff=1000")


def access(cell):
    hosts = {}
    for i in range(1, 7):
        vlan = 1 if i <= 3 else 2
        hosts[i] = cell.host(f"p{i}", f"h{i}", mac(i), f"10.0.{vlan}.{i}/24", gateway=f"10.0.{vlan}.254")
    cell.wires(1, a="p7-", b="b7-")
    test_faucet.configure(cell, test_faucet.CONFIG.format(hardware="Open vSwitch"))
    test_faucet.start(cell)
    bridge(cell, [f"p{i}" for i in range(1, 7)] + ["p7-1"])
    for of, to in ((1, "10.0.1.2"), (4, "10.0.2.5"), (1, "10.0.1.254"), (6, "10.0.2.254"), (1, "10.0.2.4"),
                   (5, "10.0.1.2"), (3, "10.0.1.2")):
        reaches(hosts[of], to, timeout=60)
    ping(hosts[3], "10.0.1.1")


def trunks(cell):
    cell.wires(8)
    test_faucet.configure(cell, TRUNKS)
    test_faucet.start(cell)
    bridge(cell, [f"a{i}" for i in range(1, 9)])
    test_faucet.net.wait_until("Faucet's first words", lambda: os.path.getsize(cell.path("said")), timeout=30)
    time.sleep(5)
    with Wires(cell, 8) as w:
        for n in range(40):
            who = f"02:00:00:00:02:{n:02x}"
            ask = arp(1, who, f"10.0.1.{n}", "00:00:00:00:00:00", "10.0.1.2")
            w.send(1 + n % 8, ether("ff:ff:ff:ff:ff:ff", who, ETH_ARP, ask, vid=100 if n < 20 else 200))
            time.sleep(0.2)


def main():
    what = sys.argv[1]
    if what == "between":
        between(sys.argv[2])
    with world.Cell() as cell:
        {"access": access, "trunks": trunks}[what](cell)
        time.sleep(3)
        print("# SPDX-License-Identifier: Apache-2.0")
        print(f"# What Faucet 1.10.12 says to a switch with {HEADS[what]}:\n"
              "# OpenFlow 1.3 flow_mods, one a line, in their order.")
        with open(cell.path("said"), encoding="ascii") as f:
            sys.stdout.write(f.read())


if __name__ == "__main__":
    main()
