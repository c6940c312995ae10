#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drops all frames at a device's hook, by a BPF program of two instructions: bpf.py xdp|ingress|egress DEVICE. Prints
"there" once it is attached, and is until this process ends: the last descriptor of the link takes it away.
"""

import ctypes
import os
import signal
import socket
import struct
import sys

BPF, PROG_LOAD, LINK_CREATE = 321, 5, 28  # the system call on x86-64, two of its commands
# linux/bpf.h: program type, attach type, what the program answers (XDP_DROP, TCX_DROP), flags (XDP_FLAGS_SKB_MODE)
HOOKS = {"xdp": (6, 37, 1, 2), "ingress": (3, 46, 2, 0), "egress": (3, 47, 2, 0)}


def bpf(command, attr):
    buffer = ctypes.create_string_buffer(attr, 144)
    fd = ctypes.CDLL(None, use_errno=True).syscall(BPF, command, buffer, len(buffer))
    if fd < 0:
        sys.exit(f"bpf.py: command {command}: {os.strerror(ctypes.get_errno())}")
    return fd


def main():
    program, attach, answer, flags = HOOKS[sys.argv[1]]
    # r0 = answer; exit
    code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, answer, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    attr = struct.pack("=IIQQ44xI", program, 2, ctypes.addressof(code), ctypes.addressof(licence), attach)
    fd = bpf(PROG_LOAD, attr)
    bpf(LINK_CREATE, struct.pack("=IIII16x", fd, socket.if_nametoindex(sys.argv[2]), attach, flags))
    print("there", flush=True)
    signal.pause()


main()
