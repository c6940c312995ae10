# SPDX-License-Identifier: Apache-2.0
"""A controller that learns, written for os-ken, with 1.0 and 1.3: flows come by packet-in and go by timeout."""

import os
import re
import time

import pytest

from lib import net
from openflow import world
from openflow.hosts import answered, mac, ping, reaches

APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
VERSIONS = {"1.0": ("learning10.py", "OpenFlow10"), "1.3": ("learning13.py", "OpenFlow13")}


def start(cell, app, idle):
    return cell.controller(*world.osken(), "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", world.PORT,
                           os.path.join(APPS, app), env={"LEARNING_IDLE": str(idle)})


@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_a_learning_switch(cell, kind, version):
    app, name = VERSIONS[version]
    hosts = {i: cell.host(f"p{i}", f"h{i}", mac(i), f"10.0.0.{i}/24") for i in (1, 2, 3)}
    controller = start(cell, app, idle=2)
    switch = kind(cell)
    switch.bridge("target", 1, ["p1", "p2", "p3"], version=name)
    net.wait_until("the switch to come to its controller", lambda: "a switch: 1" in cell.log("app.log"), timeout=40)
    # what Open vSwitch drops before that it goes on to drop for as long as it is sent again
    time.sleep(0.5)
    for a, b in ((1, 2), (2, 3), (3, 1)):
        reaches(hosts[a], f"10.0.0.{b}")
    # flows were made, used and have ended: more packets went by than came to the controller
    net.wait_until("an end of a flow", lambda: re.search(rf"removed {mac(1)} {mac(2)} reason 0 packets [1-9]",
                                                         cell.log("app.log")), timeout=40)
    # what was learned forwards on while the controller is away
    reaches(hosts[1], "10.0.0.2")
    controller.kill()
    controller.wait(5)
    assert answered(hosts[1], "10.0.0.2")
    # one that comes back serves as before
    start(cell, app, idle=60)
    reaches(hosts[3], "10.0.0.2")
    reaches(hosts[1], "10.0.0.2")
    assert "error type" not in cell.log("app.log"), cell.log("app.log")
    if kind is world.CHIPS["arista-7500e"]:
        switch.spares_the_cpu(lambda: answered(hosts[1], "10.0.0.2"))
    elif kind is world.CHIPS["nxp-t1040"]:
        # its list has no key of both addresses and what IP packets have
        assert all(where != "hardware" and "software" in why for where, why in switch.places().values())


def test_fail_secure_and_standalone(cell, kind):
    """Nobody is there to ask: a secure switch forwards nothing that it was not told, the other one is a bridge."""
    for i in range(1, 5):
        cell.host(f"p{i}", f"h{i}", mac(i), f"10.0.0.{i}/24")
    hosts = cell.others
    kind(cell).bridge("secure", 1, ["p1", "p2"], fail="secure")
    assert ping(hosts[0], "10.0.0.2", count=2) == 0
    if kind is world.Ovs:
        return  # a bridge of a second Open vSwitch in this folder would be in the first one's way
    kind(cell).bridge("standalone", 2, ["p3", "p4"], fail="standalone")
    reaches(hosts[2], "10.0.0.4")
