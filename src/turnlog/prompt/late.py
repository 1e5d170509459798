"""The text of late blocks: sections that are told behind what the user said, where a changed one is told again."""

from __future__ import annotations

_HEADING = "[{name}, as of now:]\n"
_GONE = "[{name}: no longer applies]"


def block_of(name: str, text: str) -> str:
    """The block that tells the text of a section."""
    return f"{_HEADING.format(name=name)}{text}"


def block_that_ends(name: str) -> str:
    """The block that says that the ones of this section before it no longer apply."""
    return _GONE.format(name=name)


def text_told(name: str, block: str) -> str:
    """The text of a section as a block tells it; empty if the block says that none applies."""
    heading = _HEADING.format(name=name)
    return block[len(heading) :] if block.startswith(heading) else ""
