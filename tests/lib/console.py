# SPDX-License-Identifier: Apache-2.0
"""Somebody at the appliance's console: swcli in a pseudo-terminal, typed at and read."""

import os
import pty
import re
import select
import time

from . import net
from .switch import binaries

PROMPT = re.compile(r"(?:^|[\r\n])([\w.-]+(?:\([\w-]+\))?[>#])\s?$")


class Typist:
    """Types lines and reads what they say, until the next prompt."""

    def __init__(self, sw):
        mine, theirs = pty.openpty()
        self.fd = mine
        try:
            self.process = sw.ns.popen(os.path.join(binaries(), "swcli"), "--name", sw.instance,
                                       stdin=theirs, stdout=theirs, stderr=theirs)
        finally:
            os.close(theirs)
        self.seen = ""     # all that the terminal has shown
        self.prompt = ""
        self.until_prompt()

    def read(self, until):
        """What is shown until `until(text)`."""
        text, end = "", time.monotonic() + net.PATIENCE
        while not until(text):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise TimeoutError(f"the console shows nothing more: {text[-300:]!r}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                raise EOFError(f"the console has ended: {text[-300:]!r}")
            text += data.decode("utf-8", "replace")
        self.seen += text
        return text

    def until_prompt(self):
        text = self.read(PROMPT.search)
        self.prompt = PROMPT.search(text)[1]
        return text

    def type(self, line, end="\r"):
        """Types a line; what it said, without the line itself and the prompt behind it. Pages are turned."""
        os.write(self.fd, (line + end).encode())
        text = ""
        while True:
            text += self.read(lambda new: PROMPT.search(new) or new.endswith("--More-- "))
            if PROMPT.search(text):
                break
            os.write(self.fd, b" ")
        self.prompt = PROMPT.search(text)[1]
        said = PROMPT.sub("", text)
        said = re.sub(r" ?--More-- (?:\x08 \x08|\x08| |\r)*", "", said).replace("\r\n", "\n").replace("\r", "")
        return said.removeprefix(line).lstrip("\n")

    def asks(self, line):
        """Types a line that ends in `?`, which is answered before Enter; the line is dropped then. What it said."""
        os.write(self.fd, line.encode())
        text = self.read(lambda new: new.count(line[:-1]) > 1 and new.endswith(line[:-1]))
        os.write(self.fd, b"\x15\r")
        self.until_prompt()
        return text

    def close(self):
        os.close(self.fd)
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(net.PATIENCE)
