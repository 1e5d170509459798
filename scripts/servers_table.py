"""Writes the table of servers in docs/servers.md from the rows in src/turnlog/models/data/servers.json.

python scripts/servers_table.py
"""

from __future__ import annotations

from pathlib import Path

from turnlog.models.servers import Server, server_rows

PAGE = Path(__file__).parent.parent / "docs/servers.md"
BEGIN, END = "<!-- servers -->\n", "<!-- /servers -->"


def table() -> str:
    """The rows as a table in Markdown."""
    lines = ["| server | `server=` | found at | system | order | call ids | arguments | reasoning |", "|---" * 8 + "|"]
    lines += [f"| {' | '.join(cells(name, row))} |" for name, row in server_rows().items()]
    return "\n".join(lines) + "\n"


def cells(name: str, row: Server) -> list[str]:
    """The cells of a row."""
    place = ", ".join(row.hosts) or (f"localhost:{row.port}" if row.port else "")
    order = ", ".join(row.alternates)
    back = row.reasoning.replace("_received", " received") if row.reasoning else ""
    back = ", ".join(filter(None, (back, "reasoning_details" if row.details else "", *row.opaque_keys)))
    back = back or ("`thinking` parts" if row.thinking_parts else "")
    return [
        row.title,
        ", ".join(f"`{word}`" for word in (name, *row.words)),
        place,
        "first" if row.one_system else "the template's" if row.templates else "",
        order or ("the template's" if row.templates else ""),
        f"`{row.call_ids}`" if row.call_ids else "",
        "parsed" if row.parses_arguments else "",
        back,
    ]


def written(page: str) -> str:
    """The page with the table as it has to be."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
