# SPDX-License-Identifier: Apache-2.0
"""A picture of a terminal: what a console has shown, as SVG, so that a reader sees it without one."""

import html

CHAR, ROW, EDGE, BAR = 7.83, 17, 14, 30  # of 13 px: a character's width, a row, the margin, the bar with the title
STYLE = ("text{font:13px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}"
         ".p{fill:#8fbcbb}.b{font-weight:bold;fill:#fff}.t{fill:#7b8496}")


def screen(shown):
    """The rows that a terminal has after `shown`: a carriage return goes to the row's begin, a backspace one back."""
    rows = [[]]
    at = 0
    for c in shown:
        if c == "\n":
            rows.append([])
            at = 0
        elif c == "\r":
            at = 0
        elif c == "\b":
            at = max(at - 1, 0)
        elif c.isprintable():
            rows[-1][at:at + 1] = c
            at += 1
    return ["".join(row).rstrip() for row in rows]


def picture(shown, title, prompt):
    """The SVG's text. `prompt`: a regular expression of what the switch, and not a person, has written in a row."""
    rows = screen(shown)
    width = EDGE * 2 + CHAR * max(len(row) for row in rows)
    height = BAR + EDGE * 2 + ROW * len(rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
           f'viewBox="0 0 {width:.0f} {height}">', f"<style>{STYLE}</style>",
           '<rect width="100%" height="100%" rx="8" fill="#20242c"/>',
           f'<text class="t" x="{width / 2:.0f}" y="20" text-anchor="middle">{html.escape(title)}</text>']
    for n, row in enumerate(rows):
        y = BAR + EDGE + ROW * n + 6
        said = prompt.match(row)
        text = html.escape(row)
        if said:
            typed = row[said.end():]
            text = f'<tspan class="p">{html.escape(said[0])}</tspan><tspan class="b">{html.escape(typed)}</tspan>'
        if row:
            out.append(f'<text x="{EDGE}" y="{y}" xml:space="preserve">{text}</text>')
    return "\n".join([*out, "</svg>", ""])
