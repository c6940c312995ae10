# SPDX-License-Identifier: Apache-2.0
"""Curves over offered rates, drawn as SVG; both axes begin at zero."""

import html

WIDTH, HEIGHT, LEFT, TOP, GAP, BELOW = 340, 230, 64, 66, 80, 100
COLOURS = ["#1b6ca8", "#c4501b", "#2a9d6f", "#8a8a8a", "#c58a00"]
STYLE = ("text{font:12px sans-serif;fill:#222}.t{font-weight:bold;font-size:13px}.a{font-size:11px;fill:#555}"
         ".g{stroke:#ddd}polyline{fill:none;stroke-width:1.8}")


class Panel:
    """`curves`: [(name, [(x, y), …], dashed)]; `mark`: an x, or y, that a line stands at, and what it is."""

    def __init__(self, title, top, curves, unit, mark=None, mark_y=None):
        self.title, self.top, self.curves, self.unit = title, top, curves, unit
        self.mark, self.mark_y = mark, mark_y

    def draw(self, out, x, y, right):
        def across(v):
            return x + v / right * WIDTH

        def up(v):
            return y + HEIGHT - min(v / self.top, 1) * HEIGHT

        out.append(f'<text class="t" x="{x}" y="{y - 14}">{html.escape(self.title)}</text>')
        for n in range(6):
            v, h = self.top * n / 5, right * n / 5
            out.append(f'<line class="g" x1="{x}" y1="{up(v):.1f}" x2="{x + WIDTH}" y2="{up(v):.1f}"/>'
                       f'<text class="a" x="{x - 6}" y="{up(v) + 4:.1f}" text-anchor="end">{v:g}{self.unit}</text>'
                       f'<text class="a" x="{across(h):.1f}" y="{y + HEIGHT + 17}" text-anchor="middle">{h:g}</text>')
        for at, vertical in ((self.mark, True), (self.mark_y, False)):
            if at is None or at > (right if vertical else self.top):
                continue
            ends = (across(at), y, across(at), y + HEIGHT) if vertical else (x, up(at), x + WIDTH, up(at))
            out.append('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#b00" stroke-dasharray="2 3"/>'
                       .format(*ends))
        for n, (name, points, dashed) in enumerate(self.curves):
            colour, dash = COLOURS[n % len(COLOURS)], "5 4" if dashed else "none"
            line = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in points)
            out.append(f'<polyline points="{line}" stroke="{colour}" stroke-dasharray="{dash}"/>')
            if not dashed:
                out += [f'<circle cx="{across(a):.1f}" cy="{up(b):.1f}" r="2.6" fill="{colour}"/>' for a, b in points]
            at, below = x + n % 2 * 180, y + HEIGHT + 38 + n // 2 * 15
            out.append(f'<path d="M{at} {below - 4} h18" stroke="{colour}" stroke-width="2.5"/>'
                       f'<text class="a" x="{at + 23}" y="{below}">{html.escape(name)}</text>')


def draw(title, panels, right):
    """The file's text: two panels in a line; `right`: where the level axis ends, in thousand packets a second."""
    rows = (len(panels) + 1) // 2
    width, height = LEFT + 2 * (WIDTH + GAP) - GAP + 24, TOP + rows * (HEIGHT + BELOW)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}">', f"<style>{STYLE}</style>",
           '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text class="t" x="{LEFT}" y="24">{html.escape(title)}</text>',
           f'<text class="a" x="{LEFT}" y="40">across: offered, thousand packets a second; red: 140, to which seed 004 '
           'measured</text>']
    for n, panel in enumerate(panels):
        panel.draw(out, LEFT + n % 2 * (WIDTH + GAP), TOP + n // 2 * (HEIGHT + BELOW), right)
    return "\n".join([*out, "</svg>", ""])
