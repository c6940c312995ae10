#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws the simulator's sweep: draw.py SWEEP.csv OUT.json OUT.svg

One panel per arrival rate; over the bucket size, the time a user spends on a batch as a multiple of the kernel's own
(the floor). One line per query time; credit solid, synchronous prefetch dashed, lockstep as a mark on the right.
"""

import csv
import json
import math
import sys
from xml.sax.saxutils import escape

COLOURS = {35: "#1b6ca8", 100: "#2a9d6f", 350: "#c58a00", 1000: "#c4501b", 3500: "#8e2a6b"}
WIDTH, HEIGHT, GAP = 330, 250, 78
LEFT, TOP = 62, 64
Y_MAX = 100.0


def read(path):
    with open(path, newline="", encoding="ascii") as f:
        rows = list(csv.DictReader(f))
    for r in rows:
        for k, v in r.items():
            if k != "policy":
                r[k] = float(v) if "." in v else int(v)
    return rows


def rate_name(rate):
    return f"{rate:,} routes/s" if rate else "as fast as the kernel goes"


class Panel:
    """One arrival rate."""

    def __init__(self, rows, rate, x, y):
        self.rows = [r for r in rows if r["rate"] == rate]
        self.rate, self.x, self.y = rate, x, y
        self.buckets = sorted({r["bucket"] for r in self.rows if r["policy"] == "credit"})
        self.queries = sorted({r["query_us"] for r in self.rows})

    def px(self, bucket):
        return self.x + 12 + self.buckets.index(bucket) * (WIDTH - 70) / (len(self.buckets) - 1)

    def py(self, ratio):
        return self.y + HEIGHT - math.log(min(max(ratio, 1.0), Y_MAX)) / math.log(Y_MAX) * HEIGHT

    def points(self, policy, query):
        found = [r for r in self.rows if r["policy"] == policy and r["query_us"] == query]
        return [(r["bucket"], r["user_ms"] / r["floor_ms"]) for r in sorted(found, key=lambda r: r["bucket"])]

    def draw(self, out):
        out.append(f'<text class="t" x="{self.x}" y="{self.y - 14}">{escape(rate_name(self.rate))}</text>')
        for ratio in (1, 2, 5, 10, 20, 50, 100):
            y = self.py(ratio)
            out.append(f'<line class="g" x1="{self.x}" y1="{y:.1f}" x2="{self.x + WIDTH}" y2="{y:.1f}"/>')
            out.append(f'<text class="a" x="{self.x - 6}" y="{y + 4:.1f}" text-anchor="end">{ratio}×</text>')
        for b in self.buckets:
            x = self.px(b)
            out.append(f'<text class="a" x="{x:.1f}" y="{self.y + HEIGHT + 17}" text-anchor="middle">{b}</text>')
        mark = self.x + WIDTH - 22
        out.append(f'<text class="a" x="{mark}" y="{self.y + HEIGHT + 17}" text-anchor="middle">lockstep</text>')
        for query in self.queries:
            colour = COLOURS.get(query, "#555")
            for policy, dash in (("prefetch", "5 4"), ("credit", "none")):
                path = " ".join(f"{self.px(b):.1f},{self.py(r):.1f}" for b, r in self.points(policy, query))
                out.append(f'<polyline points="{path}" stroke="{colour}" stroke-dasharray="{dash}"/>')
            for b, r in self.points("credit", query):
                out.append(f'<circle cx="{self.px(b):.1f}" cy="{self.py(r):.1f}" r="2.6" fill="{colour}"/>')
            for _, r in self.points("lockstep", query):
                y = self.py(r)
                out.append(f'<path d="M{mark - 5} {y:.1f} h10" stroke="{colour}" stroke-width="3"/>')


def svg(rows):
    rates = sorted({r["rate"] for r in rows}, key=lambda r: r or math.inf)
    columns = 2
    lines = math.ceil(len(rates) / columns)
    width = LEFT + columns * (WIDTH + GAP) - GAP + 20
    height = TOP + lines * (HEIGHT + GAP) + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        "<style>text{font:12px sans-serif;fill:#222}.t{font-weight:bold;font-size:13px}.a{font-size:11px;fill:#555}"
        ".g{stroke:#ddd}polyline{fill:none;stroke-width:1.8}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text class="t" x="{LEFT}" y="24">{rows[0]["routes"]:,} routes: time of the batch, in multiples of the '
        "kernel's own, over the bucket size</text>",
    ]
    for i, rate in enumerate(rates):
        x = LEFT + (i % columns) * (WIDTH + GAP)
        y = TOP + (i // columns) * (HEIGHT + GAP)
        Panel(rows, rate, x, y).draw(out)
    x, y = LEFT, height - 16
    for query in sorted({r["query_us"] for r in rows}):
        out.append(f'<path d="M{x} {y - 4} h22" stroke="{COLOURS.get(query, "#555")}" stroke-width="2.5"/>')
        out.append(f'<text x="{x + 27}" y="{y}">{query} µs a query</text>')
        x += 116
    out.append(f'<text class="a" x="{x}" y="{y}">solid: credit, dashed: prefetch</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    rows = read(sys.argv[1])
    with open(sys.argv[2], "w", encoding="ascii") as f:
        json.dump(rows, f, indent=0)
        f.write("\n")
    with open(sys.argv[3], "w", encoding="utf-8") as f:
        f.write(svg(rows))


main()
