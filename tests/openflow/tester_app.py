# SPDX-License-Identifier: Apache-2.0
"""os-ken's switch tester as it is, in its own process, told which files to play and made to say what it found.

An application for `osken-manager`. What is different from the tester alone:
- files are taken one by one from a list that several testers share: each is somebody's who makes its claim first;
- each test is a line of JSON: file, what it is, its result and why, its seconds, and what was offered;
- where the tester itself stumbles (an assertion, no route to a test's state), that test has failed and the next one
  begins; else the whole run would hang;
- its SCTP checksums are CRC32c: os-ken's own are those of the text that Python prints for the bytes;
- a frame shorter than 60 bytes is filled up before it is compared: os-ken's model of one has that many, and a veth,
  unlike an Ethernet, adds none;
- the tester's own switch keeps its one flow from test to test: Open vSwitch may meet a packet with what it remembers of
  the moment in which the flow was not there;
- a stream is sent by the clock, many packet-outs in one write. The tester's own loop sleeps, then sends, and so offers
  less than the test's file says, for which it blames the switch.
"""

import json
import os
import time

from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.lib.packet import sctp
from os_ken.tests.switch import tester

FILES = os.environ["TANDEM_TESTER_FILES"]  # a line for each: its name within the folder of tests
ROOT = os.environ["TANDEM_TESTER_ROOT"]
CLAIMS = os.environ["TANDEM_TESTER_CLAIMS"]  # a folder
RESULTS = os.environ["TANDEM_TESTER_RESULTS"]
DEV = os.environ["TANDEM_TESTER_DEV"]  # where the tester's packets come out, on their way to the target
TRIES = int(os.environ["TANDEM_TESTER_TRIES"])
SETTLE = float(os.environ["TANDEM_TESTER_SETTLE"])  # seconds between the barrier's answer and the packet
LONGEST = 90  # seconds of a test
BACK = os.environ["TANDEM_TESTER_BACK"].split()  # where the target's come in
LEAST, LEAST_SEEN, MOST_STILL = map(float, os.environ["TANDEM_TESTER_LEAST"].split())
SHORTEST = 60  # bytes of a frame
SLICE = 0.005  # seconds of a stream in one write
# seconds without a packet from the target that its meters' bursts make up for, and how often that is looked at
BURST, LOOK = 0.1, 0.02


def received(dev):
    with open(f"/sys/class/net/{dev}/statistics/rx_packets", encoding="ascii") as f:
        return int(f.read())


def claim(number):
    try:
        os.close(os.open(os.path.join(CLAIMS, str(number)), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def valid(wanted_pps, offered_pps, came_back=0, seen=0, still=0):
    """Was enough offered, and enough of what came back seen, to say something of the target, and had it a processor?"""
    return offered_pps >= wanted_pps * LEAST and seen >= came_back * LEAST_SEEN and still <= MOST_STILL


def came_back():
    return sum(received(dev) for dev in BACK)


class Still:
    """The part of a stream's time in which nothing came from the target, beyond what a meter's burst makes up for."""

    def __init__(self):
        self.count, self.at, self.still = came_back(), time.monotonic(), 0

    def look(self, now):
        if now - self.at >= LOOK and (count := came_back()) != self.count:
            self.still += max(0, now - self.at - BURST)
            self.count, self.at = count, now


def frame_of(drawn):
    """A frame as a test's file writes it, in the tester's own names; random parts are drawn anew."""
    packet = eval(drawn, vars(tester))
    packet.serialize()
    return bytes(packet.data)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return ~crc & 0xffffffff


# least significant byte first on the wire (RFC 9260, appendix A)
sctp.sctp._checksum = lambda self, data: int.from_bytes(crc32c(data).to_bytes(4, "little"), "big")


class Words:
    """What the tester says of the test that runs; a handler of its log."""

    level = 0

    def __init__(self):
        self.said = []

    def handle(self, record):
        self.said.append(record.getMessage())


class Kept:
    """The tester's switch, of which only what a stream's test has added is deleted."""

    def __init__(self, switch):
        self.switch = switch

    def __getattr__(self, name):
        return getattr(self.switch, name)

    def del_flows(self):
        return self.switch.del_flows(cookie=tester.THROUGHPUT_COOKIE)


class Tester(tester.OfTester):
    """The tester, with a list of files instead of a folder."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.words = Words()
        self.logger.addHandler(self.words)
        self.offered = None

    def _set_logger(self):
        self.logger.propagate = False

    def _test_sequential_execute(self, _):
        with open(FILES, encoding="utf-8") as f:
            names = f.read().splitlines()
        with open(RESULTS, "a", encoding="utf-8", buffering=1) as out:
            for number, name in enumerate(names):
                if claim(number):
                    for line in self._file(name):
                        out.write(json.dumps({"file": name, **line}) + "\n")
        self._test_end()

    def _file(self, name):
        parsed = tester.TestFile(os.path.join(ROOT, name), self.logger)
        if not parsed.tests:
            yield {"test": "", "result": "failed", "why": "the tester can't read this file", "seconds": 0}
        for number, test in enumerate(parsed.tests):
            self.words.said = []
            began, tries, invalid, passed = time.monotonic(), 0, [], False
            while not passed and tries < TRIES:
                self.offered = None
                passed, why = self._play(test)
                if passed and self.offered:
                    # it was not for long
                    self.offered.pop("still", None)
                # a run that says nothing is no try, if it is not the rule
                if self.offered and not valid(**self.offered) and len(invalid) < 2:
                    invalid.append(self.offered)
                    passed = False
                else:
                    tries += 1
            yield {"number": number, "test": test.description, "result": "passed" if passed else "failed", "why": why,
                   "tries": tries, "invalid": invalid, "seconds": round(time.monotonic() - began, 2),
                   **(self.offered or {})}

    def _play(self, test):
        """(passed, why not)"""
        try:
            with hub.Timeout(LONGEST):
                if self._test_execute(test, None) == tester.TEST_OK:
                    return True, ""
            # "    description  result", then why not
            return False, self.words.said[-1].strip()
        except hub.Timeout:
            self.waiter = self.sw_waiter = None
            return False, f"not within {LONGEST} s"
        except Exception as e:  # whatever it is: this test has failed, and the others have to be played
            self.waiter = None
            return False, f"the tester stumbled over {self._received()}: {type(e).__name__} {e}"

    def _received(self):
        """The messages that the tester had before it stumbled."""
        return ", ".join(type(m).__name__ for m in self.rcv_msgs) or "nothing"

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in_handler(self, ev):
        if len(ev.msg.data) == ev.msg.total_len < SHORTEST:
            ev.msg.data = ev.msg.data.ljust(SHORTEST, b"\0")
        super().packet_in_handler(ev)

    def _test_initialize_flow(self, datapath):
        if datapath is self.tester_sw and tester.OfTester.tester_ver != tester.ofproto_v1_0.OFP_VERSION:
            datapath = Kept(datapath)
        super()._test_initialize_flow(datapath)

    def _one_time_packet_send(self, pkt):
        hub.sleep(SETTLE)
        super()._one_time_packet_send(pkt)

    def _continuous_packet_send(self, pkt):
        wanted = pkt[tester.KEY_PACKETS][tester.KEY_PKTPS]
        seconds = pkt[tester.KEY_PACKETS][tester.KEY_DURATION_TIME]
        text = "/".join(pkt[tester.KEY_PACKETS]["packet_text"])
        if pkt[tester.KEY_PACKETS]["randomize"]:
            drawn = compile(text, "packets of a test", "eval")
            before, began = received(DEV), time.monotonic()
            self._stream(lambda many: b"".join(self._packet_out(frame_of(drawn)) for _ in range(many)), wanted, seconds)
        else:
            one = self._packet_out(pkt[tester.KEY_PACKETS]["packet_binary"])
            before, began = received(DEV), time.monotonic()
            self._stream(lambda many: one * many, wanted, seconds)
        took = time.monotonic() - began
        # what is still on its way to the target
        hub.sleep(0.05)
        self.offered = {"wanted_pps": wanted, "offered_pps": round((received(DEV) - before) / took, 1),
                        "still": round(self.still / took, 3)}

    def _test_get_throughput(self):
        """Also what came out of the target, by the kernel's count, and how much of it the tester's switch has seen: one
        that gets no processor loses packets, and the target is none the worse for it."""
        got = super()._test_get_throughput()
        came = came_back()
        seen = sum(s.packet_count for s in self.rcv_msgs[0].body)
        if self.offered is None:
            self.before = came, seen
        else:
            self.offered["came_back"] = came - self.before[0]
            self.offered["seen"] = seen - self.before[1]
        return got

    def _packet_out(self, data):
        dp = self.tester_sw.dp
        ofp, parser = dp.ofproto, dp.ofproto_parser
        out = parser.OFPPacketOut(datapath=dp, buffer_id=ofp.OFP_NO_BUFFER, data=data, in_port=ofp.OFPP_CONTROLLER,
                                  actions=[parser.OFPActionOutput(self.tester_send_port)])
        dp.set_xid(out)
        out.serialize()
        return bytes(out.buf)

    def _stream(self, messages, rate, seconds):
        sent, began, still = 0, time.monotonic(), Still()
        while (now := time.monotonic() - began) < seconds:
            # not more in one piece than a slow moment explains: a burst is not what the file asks for
            due = min(int(now * rate) - sent, int(rate * 0.1) + 1)
            if due > 0:
                self.tester_sw.dp.send(messages(due))
                sent += due
            still.look(time.monotonic())
            hub.sleep(SLICE)
        self.still = still.still
