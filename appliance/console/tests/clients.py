#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The console and a client that others wrote for IOS: netmiko (PyPI), by its driver cisco_ios over telnet.

    clients.py    starts a session of the console's tests, and drives it: login, enable, configuration sets, errors,
                  long texts, saving. Exit 77 without netmiko
"""

import os
import signal
import socket
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
CONFIG = ["vlan 10", "name users", "interface GigabitEthernet1/0/1", "switchport access vlan 10",
          "description the desk", "interface Vlan10", "ip address 10.0.0.1 255.255.255.0", "ip routing"]


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}\n  got:    {got!r}\n  wanted: {want!r}")


def drive(client):
    same("prompt", client.find_prompt(), "Switch>")
    client.enable()
    same("prompt", client.find_prompt(), "Switch#")
    same("privilege", client.send_command("show privilege"), "Current privilege level is 15")
    client.send_config_set(CONFIG, error_pattern=r"^%")
    same("in configuration mode", client.check_config_mode(), False)
    shown = client.send_command("show running-config")
    for line in CONFIG:
        same(f"running-config has {line}", line in shown, True)
    same("all of it", shown.rstrip().endswith("end"), True)
    sections = client.send_command("show running-config | section ^interface")
    same("sections", sections.startswith("interface GigabitEthernet1/0/1"), True)
    try:
        client.send_config_set(["vlan 4095"], error_pattern=r"% Invalid input")
        raise AssertionError("an error is not seen")
    except AssertionError:
        raise
    except Exception as e:
        same("error", type(e).__name__, "ConfigInvalidException")
        client.exit_config_mode()
    same("save", "[OK]" in client.save_config(), True)
    same("kept", "the desk" in client.send_command("show startup-config"), True)
    rows = client.send_command("show vlan", use_textfsm=True)
    if isinstance(rows, list):
        same("show vlan", [r["vlan_name"] for r in rows], ["default", "users"])
    client.send_config_set(["hostname core-1"])
    client.set_base_prompt()
    same("prompt", client.find_prompt(), "core-1#")
    bulk = [line for n in range(100, 300) for line in (f"vlan {n}", f"name net-{n}")]
    client.send_config_set(bulk, error_pattern=r"^%")
    same("two hundred VLANs", client.send_command("show vlan brief").count("net-"), 200)
    client.send_command("copy running-config startup-config", expect_string=r"\]\?")
    same("copy", "[OK]" in client.send_command("\n", expect_string=r"#"), True)


def main():
    try:
        from netmiko import ConnectHandler
    except ImportError:
        print("netmiko is not here (pip install netmiko)")
        return 77
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    test = ["cargo", "test", "--quiet", "-p", "tandem-swconsole", "--lib", "behind_a_connection"]
    env = {**os.environ, "TANDEM_CONSOLE_AT": f"127.0.0.1:{port}"}
    with subprocess.Popen(test, cwd=TOP, env=env, stdout=subprocess.DEVNULL, start_new_session=True) as console:
        try:
            client = None
            while client is None:
                if console.poll() is not None:
                    raise RuntimeError("the console did not begin")
                with open("/proc/net/tcp", encoding="ascii") as f:
                    listens = f"0100007F:{port:04X} 00000000:0000 0A" in f.read()
                if not listens:
                    time.sleep(0.2)
                    continue
                client = ConnectHandler(device_type="cisco_ios_telnet", host="127.0.0.1", port=port,
                                        username="", password="")
            drive(client)
            client.disconnect()
            return console.wait(60)
        finally:
            if console.poll() is None:
                os.killpg(console.pid, signal.SIGTERM)  # cargo, and the test that it has started


if __name__ == "__main__":
    code = main()
    if code == 0:
        print("netmiko: as with IOS")
    sys.exit(code)
