"""The lines that say what is missing from a curated output and where it can be read."""

from __future__ import annotations

from msgspec import Struct

from ..._platform.lazy import lazy_pattern

WORK = 1_000_000
"""The most characters of an output that are looked at line by line."""

WORTH = 2
"""This many lines are shown rather than counted, because a mark is longer."""

NO_TEXT = "[no text]"
"""Shown for an output that contains only control sequences of a terminal."""

_OWN = lazy_pattern(r"\[\.\.\. [^\n\[\]]{1,500}(?:left out|unchanged since record \d+)[^\n\[\]]{0,60} \.\.\.\]")


class Marks(Struct, frozen=True):
    """Makes marks. `record` is the number of the record that has the whole output, 0 if there is none."""

    record: int = 0

    def left_out(self, what: str) -> str:
        """The mark that `what` is missing, such as `214 similar lines`."""
        where = f", kept as record {self.record}" if self.record else ""
        return f"[... {what} left out{where} ...]"


def is_marked(text: str) -> bool:
    """Whether a text has marks, because it was curated or cut before."""
    return "[... " in text and _OWN.search(text) is not None


def number(count: int, noun: str, nouns: str = "") -> str:
    """A number with its noun: `1 more match`, `2 more matches`."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def lines_of(text: str) -> int:
    """The number of lines of a text. A line break at the end begins no further line."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0
