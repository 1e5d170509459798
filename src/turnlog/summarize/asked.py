"""What became of each request of the user: where the agent answered it, or that it is still open."""

from __future__ import annotations

from collections.abc import Sequence

from .reading import Said

_ANSWERED, _OPEN = " → answered at [{}]", " → open"
_NEAR = 5  # records; a nearer answer needs no pointer


def what_became(said: Sequence[Said], staying: Sequence[Said]) -> dict[int, str]:
    """For each record in which the user said something, what is added to its line: where the answer stands that ended
    the turn, or that it is open. Nothing if the user stopped it, or if the answer is near."""
    entries = [*said, *(entry for entry in staying if not said or entry.record > said[-1].record)]
    asked = [place for place, entry in enumerate(entries) if entry.who == "user" and entry.note.line]
    became: dict[int, str] = {}
    for place, following in zip(asked, [*asked[1:], len(entries)], strict=False):
        last = entries[following - 1]
        if last.who == "assistant":
            if last.record - entries[place].record < _NEAR:
                continue
            became[entries[place].record] = _ANSWERED.format(last.record)
        elif following == len(entries):
            became[entries[place].record] = _OPEN
    return became


def without_open(line: str) -> str:
    """A line of an earlier digest without the words that its request is open: it may have been answered since."""
    return line.removesuffix(_OPEN)
