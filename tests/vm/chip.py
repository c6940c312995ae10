#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of asicd's API, a line of JSON each: chip.py /v1/table/ports. Runs on the lab's host; TANDEM_RUN says where."""

import http.client
import os
import socket
import sys


class Unix(http.client.HTTPConnection):
    """HTTP over asicd's socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(os.path.join(os.environ["TANDEM_RUN"], os.environ.get("LAB_ASIC", "asic"), "asicd.sock"))


def main():
    for page in sys.argv[1:]:
        c = Unix("asicd")
        c.request("GET", page)
        answer = c.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            sys.exit(f"{page}: {answer.status} {text}")
        print(text)


if __name__ == "__main__":
    main()
