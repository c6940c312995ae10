# SPDX-License-Identifier: Apache-2.0
"""`ip`, `bridge` and `tc` that stay: one process for a scenario's commands, not one for each handful. Starting one
takes 50 ms in an emulated machine."""

import re
import select
import subprocess

END = "tnt-end"  # no object is called that: the complaint about it says that all before it is done
SAID_END = re.compile(rf'Object "{END}" is unknown.*\nCommand failed -:(\d+)\n')


class Tool:
    """One of them; `begin` and `end` for each group of lines. `spawn` starts a process in the namespace: its own `-n`
    would make a namespace of mounts, too, which takes longer than all else."""

    def __init__(self, words, spawn):
        self.words = [*words, "-force", "-batch", "-"]
        self.spawn = spawn
        self.process = None
        self.lines = 0  # that it has been given

    def begin(self, lines):
        """Gives it lines. One that has ended (some mistakes in a line make it) is started anew."""
        if self.process is None:
            self.process = self.spawn(self.words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE)
            self.lines = 0
        try:
            self.process.stdin.write("".join(f"{x}\n" for x in [*lines, END]).encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # `end` sees it

    def end(self, seconds=120):
        """What it refused of the lines."""
        said = b""
        while True:
            ready, _, _ = select.select([self.process.stderr], [], [], seconds)
            if not ready:
                raise TimeoutError(f"{self.words[0]}: no answer in {seconds} s")
            more = self.process.stderr.read1(1 << 16)
            said += more
            done = SAID_END.search(said.decode(errors="replace"))
            if not more:
                self.close()
            if done or not more:
                break
        text, before = said.decode(errors="replace"), self.lines
        if done:
            self.lines = int(done[1])
            text = text[:done.start()]
        # numbers of this group, not of the process's life
        return re.sub(r"^Command failed -:(\d+)$", lambda m: f"Command failed -:{int(m[1]) - before}", text, flags=re.M)

    def close(self):
        """Ends it; what it remembers of names and numbers of interfaces goes with it."""
        p, self.process = self.process, None
        if p is not None:
            try:
                p.stdin.close()
            except BrokenPipeError:
                pass
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait(10)
            p.stderr.close()
