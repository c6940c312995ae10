# SPDX-License-Identifier: Apache-2.0
"""Our codec of OpenFlow against os-ken's parser, which knows nothing of ours: what os-ken sends is understood field by
field and encoded again to the same bytes; what ours sends is understood by os-ken as it was meant."""

import collections
import json
import os
import random
import subprocess

import pytest

from lib.switch import binaries

pytestmark = pytest.mark.no_daemons
COUNT = 20_000 if os.environ.get("TANDEM_LONG") else 3000
SEED = int(os.environ.get("TANDEM_OPENFLOW_SEED", "1"))


@pytest.fixture(scope="module")
def osken():
    try:
        from lib import osken
    except ModuleNotFoundError as e:
        pytest.fail(f"{e}: pip install -r tests/requirements.txt")
    return osken


def echo(*words, data=b""):
    program = os.path.join(binaries(), "openflow-echo")
    if not os.path.exists(program):
        pytest.fail(f"no {program}: cargo build --release -p tandem-openflow --features testing --bin openflow-echo")
    out = subprocess.run([program, *words], input=data, stdout=subprocess.PIPE, check=True, timeout=300).stdout
    return [json.loads(line) for line in out.splitlines()]


def understood(osken, sent):
    """Are all of os-ken's messages understood, and the same again?"""
    for xid, message in enumerate(sent):
        message.set_xid(xid)
        message.serialize()
    got = echo("requests", data=b"".join(bytes(m.buf) for m in sent))
    assert len(got) == len(sent)
    tables = []
    for message, line in zip(sent, got):
        what = f"{type(message).__name__} {bytes(message.buf).hex()}"
        assert "error" not in line, f"{what}: {line}"
        assert line["xid"] == message.xid, what
        assert osken.differences(line["message"], message) == [], what
        if type(message).__name__ == "OFPTableFeaturesStatsRequest":
            # os-ken leaves the length of a field at 0 where no value follows
            tables.append(line)
        else:
            assert line["again"] == bytes(message.buf).hex(), what
    assert echo("requests", data=b"".join(bytes.fromhex(line["again"]) for line in tables)) == tables
    return collections.Counter(type(m).__name__ for m in sent)


@pytest.mark.parametrize("version", [1, 4])
def test_what_os_ken_sends_is_understood(osken, version):
    make = {1: osken.Random10, 4: osken.Random13}[version](random.Random(SEED))
    kinds = understood(osken, [make.message() for _ in range(COUNT)])
    assert len(kinds) == {1: 17, 4: 32}[version] and min(kinds.values()) > 5, kinds


@pytest.mark.parametrize("version", [1, 4])
def test_what_os_kens_switch_tester_sends_is_understood(osken, version):
    kinds = understood(osken, list(osken.tester(version)))
    assert sum(kinds.values()) == {1: 192, 4: 1435}[version], kinds


def test_what_the_switch_sends_is_understood_by_os_ken(osken):
    lines = echo("replies", str(SEED), str(COUNT))
    kinds = collections.Counter()
    for line in lines:
        data = bytes.fromhex(line["bytes"])
        message = osken.parse(data)
        assert message is not None, line
        assert osken.differences(line["message"], message) == [], line
        kinds[line["version"], type(message).__name__] += 1
    assert len([1 for version, _ in kinds if version == 1]) == 18, kinds
    assert len([1 for version, _ in kinds if version == 4]) == 28, kinds
    assert min(kinds.values()) > 5, kinds
