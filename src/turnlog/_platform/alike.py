"""Many problems that differ only in an id, a name or a number, as one line: sessions have hundreds of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

_FEW = 3
"""Up to this many problems that differ only in an id each get a line."""

_NUMBERS = 5
"""At most this many record numbers are named for one problem."""

Found = tuple[str, str, Sequence[int]]
"""A problem: its place (a session, or a kind), what it is, and the numbers of its records."""


def grouped(problems: Iterable[Found]) -> Iterator[tuple[str, str, str]]:
    """For each kind of problem in a place: the place, the first problem with the number of those alike, and the records
    of all: `record 4`, `records 4, 7 and 3 more`; empty for none."""
    found = list(problems)
    kinds = Counter((place, kind_of(what)) for place, what in {(place, what) for place, what, _ in found})
    groups: dict[tuple[str, str], list[Found]] = {}
    for place, what, numbers in found:
        kind = kind_of(what)
        groups.setdefault((place, what if kinds[place, kind] <= _FEW else kind), []).append((place, what, numbers))
    for (place, _), group in groups.items():
        alike = len({what for _, what, _ in group}) - 1
        text = group[0][1] + (f" (and {alike:,} alike)" if alike else "")
        yield place, text, _records(dict.fromkeys(n for _, _, numbers in group for n in numbers if n))


def _records(numbers: Iterable[int]) -> str:
    several = list(numbers)
    named = ", ".join(map(str, several[:_NUMBERS]))
    omitted = f" and {len(several) - _NUMBERS:,} more" if len(several) > _NUMBERS else ""
    return f"record{'s' if len(several) > 1 else ''} {named}{omitted}" if several else ""


def kind_of(what: str) -> str:
    """The text of a problem without call ids, positions, hashes and names in quotes."""
    words = what.split(" ")
    return " ".join(
        word
        for before, word in zip(["", *words], words, strict=False)
        if before != "call" and not word.startswith("'") and not any(char.isdigit() for char in word)
    )
