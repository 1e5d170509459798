"""Draws docs/demo.svg: the middle of what `turnlog demo` prints, as a terminal shows it.

turnlog demo | python scripts/picture.py
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

OUT = Path(__file__).parent.parent / "docs/demo.svg"
FIRST, LAST = "3. Crash", "8. Nothing"
WIDTH, LINE = 108, 18


def main() -> None:
    text = sys.stdin.read()
    shown = text[text.index(FIRST) : text.index(LAST)].rstrip().splitlines()
    lines = ["$ turnlog demo", "", *(line for line in shown if "[turn]" not in line)]  # that line says nothing here
    cut = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    height = LINE * (len(cut) + 2)
    rows = "".join(
        f'<text x="16" y="{LINE * (i + 2)}" fill="{_colour(line)}" xml:space="preserve">{escape(line)}</text>\n'
        for i, line in enumerate(cut)
    )
    OUT.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{8 * WIDTH + 32}" height="{height}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#16181d"/>\n{rows}</svg>\n'
    )


def _colour(line: str) -> str:
    if line.startswith("$") or line[:2].rstrip(".").isdecimal():
        return "#7ee787"
    return "#f2cc60" if "may have run" in line or "left out" in line else "#c9d1d9"


if __name__ == "__main__":
    main()
