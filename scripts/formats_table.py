"""Writes the tables of formats in docs/importing.md from the rows in src/turnlog/importers/catalog.py.

python scripts/formats_table.py
"""

from __future__ import annotations

from pathlib import Path

from turnlog.importers.catalog import FORMATS, IMPORTERS
from turnlog.importers.protocol import Importer

PAGE = Path(__file__).parent.parent / "docs/importing.md"
BEGIN, END = "<!-- {} -->\n", "<!-- /{} -->"


def read_table() -> str:
    """The formats that are read, as a table in Markdown."""
    lines = ["| importer | reads | where | last checked |", "|---|---|---|---|"]
    lines += [f"| `{row.name}` | {row.title} | {_places(row)} | {row.checked} |" for row in IMPORTERS]
    return "\n".join(lines) + "\n"


def refused_list() -> str:
    """The formats that are recognised and refused, as a list in Markdown."""
    lines = [f"- {row.title}" + (f" (near to {row.near})" if row.near else "") for row in FORMATS if not row.module]
    return "\n".join(lines) + "\n"


def _places(row: Importer) -> str:
    places = [*row.where, *(place for places in row.also.values() for place in places)]
    return "<br>".join(f"`{place if place.startswith('<') else f'~/{place}'}`" for place in places)


def written(page: str) -> str:
    """The page with the table and the list as they have to be."""
    for name, text in (("formats", read_table()), ("refused", refused_list())):
        head, _, rest = page.partition(BEGIN.format(name))
        page = head + BEGIN.format(name) + text + END.format(name) + rest.partition(END.format(name))[2]
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
