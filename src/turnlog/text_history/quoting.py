"""Texts of a conversation, quoted so that none of them can leave its place in a prompt.

Each line of a text begins with a mark; the lines that turnlog writes between them never do. So no text can look like a
heading, like the name of a speaker, or like the end of the quotation.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..summarize.transcript import Entry

QUOTE = "> "
"""What each quoted line begins with."""


def quoted(text: str) -> str:
    """The text, each of its lines behind the mark. Lines end where `str.splitlines` ends them: at every character that
    some reader may take for the end of a line."""
    lines = text.splitlines(keepends=True) or [""]
    return QUOTE + QUOTE.join(lines).rstrip("\r\n")


def said(entry: Entry) -> str:
    """An entry of a transcript as it stands in a prompt: who speaks, and the quoted text. What says that entries are
    left out is not quoted, as nobody has said it."""
    if is_gap(entry):
        return entry.text
    return f"{entry.title}:\n{quoted(entry.text)}"


def is_gap(entry: Entry) -> bool:
    """Whether an entry says that others are left out. Titles of all others begin with the number of a record."""
    return not entry.title.startswith("#")


def joined(entries: Sequence[Entry]) -> str:
    """Entries as they stand in a prompt, blank lines between them."""
    return "\n\n".join(map(said, entries))
