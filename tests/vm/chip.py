#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One page of asicd's API as JSON: chip.py /v1/table/ports. Runs on the lab's machine; TANDEM_RUN says where."""

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
    c = Unix("asicd")
    c.request("GET", sys.argv[1])
    answer = c.getresponse()
    text = answer.read().decode()
    if answer.status != 200:
        sys.exit(f"{sys.argv[1]}: {answer.status} {text}")
    print(text)


if __name__ == "__main__":
    main()
