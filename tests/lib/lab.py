# SPDX-License-Identifier: Apache-2.0
"""The lab from pytest: `lab.run(script, backend="null")` boots a virtual machine, runs a script, tells how it went.

    pytest ── lab/run ── QEMU: Debian 13, clsw ── script (root)
                 └────── asicd, ivshmem server (backend pci)
"""

import os
import shutil
import subprocess
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Result:
    """What one run left: exit code, output, and the folder that was /run/lab inside."""

    def __init__(self, code, stdout, stderr, folder):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.folder = folder

    def read(self, name):
        """A file that the script wrote to /run/lab."""
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            return f.read()

    def check(self):
        """Raises with what was said unless the script ended with 0 and the kernel warned of nothing."""
        if self.code != 0:
            raise AssertionError(f"lab/run ended with {self.code}\n{self.stdout[-3000:]}\n{self.stderr[-5000:]}")
        return self


def missing():
    """Why the lab can't run here, in one line, or None."""
    if os.geteuid() != 0:
        return "needs root: chroot, network namespaces, TAP"
    for tool in ("mmdebstrap", "qemu-system-x86_64"):
        if not shutil.which(tool):
            return f"needs {tool}: run ./run lab once"
    return None


def run(script, *args, timeout=300, results=None, **options):
    """Runs `script` (a path, or the text of a shell script) in a machine of its own.

    Keyword arguments are lab/run's options: `backend="null"`, `ports=8`, `no_driver=True`, `cable=["3=h3"]`.
    `timeout` is seconds for the script; the boot comes on top. `results`: a folder that is kept.
    """
    folder = results or tempfile.mkdtemp(prefix="lab-")
    words = [os.path.join(TOP, "lab", "run"), "--timeout", str(timeout), "--results", folder]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if v is True:
                words.append(option)
            elif v not in (None, False):
                words += [option, str(v)]
    if "\n" in script:
        path = os.path.join(folder, "script.sh")
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        script = path
    r = subprocess.run([*words, script, *map(str, args)], capture_output=True, text=True, timeout=timeout + 1200,
                       stdin=subprocess.DEVNULL)
    return Result(r.returncode, r.stdout, r.stderr, folder)
