# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test with the kernel driver: the steps of the other files on the kernel alone, and on ports whose
chip the same kernel drives. In the lab's machine only: tests/vm/test_twin.sh.

    the machine                                                     its host
      h1 ── swp1' ─┐                   h1 ── p1 ─────────────────────┐
      …            ├─ a namespace      …       (NICs)                ├─ asicd
      h4 ── swp4' ─┘                   h4 ── p4 ─────────────────────┤
                                       swp1 … swp4, the driver ═ PCI ┘
"""

import functools

import pytest

import test_promise1_equivalence as plain
import test_promise1_vlan as vlan
import test_promise1_vlan_interface as interface
import test_promise1_vrf as vrf
from lib import driver, twin


@pytest.fixture(name="chip")
def driver_maker(make):
    """A maker whose switch with an ASIC is the driver's."""
    def asic():
        make.made.append(driver.DriverSwitch(make.prefix()))
        return make.made[-1]

    make.asic = asic
    return make


def but(steps, *names):
    """The steps without those that the driver refuses, with its reason, before anything changes."""
    def rest(macs):
        every = steps(macs)
        assert set(names) <= {s.name for s in every}, "a step has another name now"
        return [s for s in every if s.name not in names]

    return rest


@pytest.mark.parametrize("configure, steps", [
    pytest.param(twin.bridge, plain.bridge_steps, id="bridge"),
    pytest.param(lambda sw: twin.bridge(sw, "mcast_snooping 1"), plain.snooping_steps, id="snooping"),
    pytest.param(vlan.filtering, but(vlan.filtering_steps, "802.1ad bridge: the kernel's"), id="filtering"),
    pytest.param(plain.router, but(plain.router_steps, "a policy rule", "rule away"), id="router"),
    pytest.param(interface.router, interface.steps, id="vlan-interfaces"),
    *(pytest.param(functools.partial(vrf.vrfs, six), but(functools.partial(vrf.vrf_steps, six),
                                                         "a policy rule: the kernel's", "gone again"), id=name)
      for six, name in ((False, "vrf"), (True, "vrf6"))),
])
def test_driver_twin(chip, configure, steps):
    wrong, _ = twin.both(chip, configure, steps)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("family", [4, 6])
def test_driver_ecmp_twin(chip, family):
    plain.test_ecmp_twin(chip, family, 1)
