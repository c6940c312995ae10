# SPDX-License-Identifier: Apache-2.0
"""What a demo says while it runs, and the same facts for programs in out/demo.json."""

import json
import os
import platform
import sys
import time


class Report:
    """Prints progress and claims; collects them."""

    def __init__(self):
        self.began = time.monotonic()
        self.claims = []
        self.part = ""
        self.tty = sys.stdout.isatty()

    def _mark(self, good):
        word = "  held " if good else "FAILED "
        if self.tty:
            return f"\033[{'32' if good else '31'}m{word}\033[0m"
        return word

    def section(self, title, drawing=""):
        self.part = title
        print(f"\n── {title} " + "─" * max(3, 96 - len(title)))
        if drawing:
            print(drawing.rstrip())
        print(flush=True)

    def step(self, text):
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def show(self, text):
        """Output of a command, indented."""
        for line in text.rstrip().splitlines():
            print(f"            {line}")
        sys.stdout.flush()

    def claim(self, name, held, text, **facts):
        """One claim: whether it held, the sentence with the figures, the figures."""
        self.claims.append({"part": self.part, "claim": name, "held": bool(held), "text": text, "facts": facts})
        print(f"{self._mark(held)}   {text}", flush=True)
        return held

    @property
    def ok(self):
        return bool(self.claims) and all(c["held"] for c in self.claims)

    def write(self, folder, error=None, name="demo.json"):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        facts = {
            "ok": self.ok and error is None,
            "seconds": round(time.monotonic() - self.began, 1),
            "kernel": platform.release(),
            "cores": os.cpu_count(),
            "claims": self.claims,
        }
        if error:
            facts["error"] = error
        with open(path + ".part", "w", encoding="utf-8") as f:
            json.dump(facts, f, indent=2)
            f.write("\n")
        os.rename(path + ".part", path)
        return path
