"""Sections as programs give them, checked, ordered and capped."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from .._platform.given import is_async, text_given
from .._platform.lazy import lazy_pattern
from ..errors import InputError
from ..log.prompt import PromptSection, When
from ..tokens.counters import counter_for

# -- conditions ------------------------------------------------------------------------------------
#
# Whether the conditions of a section are met.


class Facts(Struct, frozen=True):
    """What conditions are about. `used_in` returns the names of the tools called in the last turns of the user, so
    many."""

    tools: Collection[str] = ()
    used_in: Callable[[int], Collection[str]] = lambda turns: ()
    provider: str = ""
    labels: Collection[str] = ()


def unmet(when: When, facts: Facts) -> str:
    """The first condition that is not met, in words; empty if all are."""
    if when.tool and when.tool not in facts.tools:
        return f"there is no tool {when.tool!r}"
    if when.provider and when.provider != facts.provider:
        return f"requests do not go to {when.provider!r}"
    if when.label and when.label not in facts.labels:
        return f"the prompt has no label {when.label!r}"
    if when.used and when.used not in facts.used_in(when.turns):
        turns = "turn" if when.turns == 1 else f"{when.turns} turns"
        return f"tool {when.used!r} was not called in the last {turns}"
    return ""


# -- late ------------------------------------------------------------------------------------------
#
# The text of late blocks: sections that are told behind what the user said, where a changed one is told again.

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


_CUT = "[The section {name!r} is cut here: it may have {cap:,} tokens.]"

_RESERVED = lazy_pattern(r"start|system|skills|tools on demand|(?:skill|tool):.*", re.DOTALL)
"""Names that turnlog itself uses."""

_NAME = 64
"""The most characters of a name."""


class Section(Struct, frozen=True, repr_omit_defaults=True):
    """One section of the system prompt.

    - `text`: the text, or a function without arguments that returns it. A function is called when a turn opens, and
      never for a request.
    - `place`: `start` is the system text that requests begin with. `late` is behind what the user said: a changed text
      is told there, and what was sent stays where it was sent.
    - `when`: the conditions under which it is shown.
    - `cap`: the most tokens of it; 0: no cap. A longer text is cut at its end. Tokens are counted as for a model that
      is not known, so that a switch to another model changes nothing.
    - `priority`: if all sections together have too many tokens, the one with the lowest priority is left out first.
      None: never, as for the contract that everything else rests on.
    """

    name: str
    text: str | Callable[[], str]
    place: Literal["start", "late"] = "start"
    when: When = When()
    cap: int = 0
    priority: int | None = None


def section_given(section: Section) -> Section:
    """`section`, if it can be one. Raises InputError that names the section and the field."""
    if not isinstance(section, Section):
        raise InputError(f"prompt.add() takes turnlog.prompt.Section objects, not {type(section).__name__}")
    name = section.name
    if not isinstance(name, str) or not name or len(name) > _NAME or not name.isprintable():
        raise InputError(f"section name {name!r}: give 1 to {_NAME} printable characters")
    if is_reserved(name):
        raise InputError(f"section name {name!r}: turnlog itself has a section of that name; give another one")
    if not isinstance(section.text, str) and (not callable(section.text) or is_async(section.text)):
        raise InputError(f"section {name!r}: text must be a string, or a function that is not asynchronous")
    if section.place not in ("start", "late"):
        raise InputError(f"section {name!r}: place must be 'start' or 'late', not {section.place!r}")
    if not isinstance(section.when, When):
        raise InputError(f"section {name!r}: when must be turnlog.prompt.When(...)")
    turns = section.when.turns
    if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
        raise InputError(f"section {name!r}: when.turns must be a whole number, at least 1, not {turns!r:.100}")
    for field in ("tool", "used", "provider", "label"):
        text_given(f"section {name!r}: when.{field}", getattr(section.when, field))
    if isinstance(section.cap, bool) or not isinstance(section.cap, int) or section.cap < 0:
        raise InputError(f"section {name!r}: cap must be a number of tokens, or 0, not {section.cap!r}")
    if isinstance(section.priority, bool) or not isinstance(section.priority, int | None):
        raise InputError(f"section {name!r}: priority must be a whole number or None, not {section.priority!r}")
    return section


def is_reserved(name: str) -> bool:
    """Whether turnlog itself uses a name, so that no section of a program may have it."""
    return _RESERVED.fullmatch(name) is not None


def text_said(name: str, text: object) -> str:
    """What the function of a section returned, if it is text. Raises InputError."""
    if not isinstance(text, str):
        raise InputError(f"section {name!r}: its function must return a string, not {type(text).__name__}")
    return text


def replaced(sections: Sequence[PromptSection], given: Iterable[PromptSection]) -> tuple[PromptSection, ...]:
    """The sections with those `given`: each takes the place of the one with its name, or comes last."""
    by_name = {section.name: section for section in sections}
    by_name.update((section.name, section) for section in given)
    return tuple(by_name.values())


def ordered(sections: Iterable[PromptSection]) -> list[PromptSection]:
    """The sections in the order in which requests show them: first those that never change, then the lists of what may
    be loaded, then those under a condition, then computed ones; each kind in the order in which it was added."""
    return sorted(sections, key=_rank)


def _rank(section: PromptSection) -> int:
    if section.changes:
        return 3
    return 2 if section.when != When() else int(is_reserved(section.name))


@lru_cache(maxsize=256)
def tokens_in(text: str) -> int:
    """The tokens of a text, as for a model that is not known. Texts that stay are counted once."""
    return counter_for("").text(text)


def capped(section: PromptSection, text: str) -> str:
    """The text of a section, cut at its end if it has more tokens than its cap."""
    return text if not section.cap else cut_to(text, section.cap, _CUT.format(name=section.name, cap=section.cap))


def length_within(text: str, cap: int) -> int:
    """How many characters of the beginning of a text have at most `cap` tokens."""
    count = counter_for("").text
    return max(0, bisect_right(range(len(text)), cap, key=lambda length: count(text[:length])) - 1)


def cut_to(text: str, cap: int, mark: str) -> str:
    """The beginning of a text, with a line that says so if it has more than `cap` tokens. That line comes on top."""
    if tokens_in(text) <= cap:
        return text
    begin = text[: length_within(text, cap)]
    whole = begin.rpartition("\n")[0] or begin.rpartition(" ")[0] or begin
    return f"{whole}\n{mark}".lstrip("\n")


# -- compose ---------------------------------------------------------------------------------------
#
# Which sections requests show, and with what text.


class SectionPlacement(Struct, frozen=True):
    """Where a section stands: its text as it is shown, cap applied, and the tokens of that. `left_out` says why it is
    not shown; empty if it is."""

    section: PromptSection
    text: str
    tokens: int
    left_out: str = ""


def composed(
    sections: Sequence[PromptSection], texts: Mapping[str, str], facts: Facts, room: int
) -> list[SectionPlacement]:
    """Where each section stands, in the order in which requests show them. `texts` are those of late sections with a
    function; `room` is how many tokens all may have together."""
    placements: list[SectionPlacement] = []
    for section in ordered(sections):
        text = capped(section, texts.get(section.name, section.text))
        placements.append(
            SectionPlacement(section, text, tokens_in(text), unmet(section.when, facts) if text else "it has no text")
        )
    return _given_way(placements, room)


def _given_way(found: list[SectionPlacement], room: int) -> list[SectionPlacement]:
    """Without the sections that give way, those of the lowest priority and of these the last first, until the rest has
    room."""
    used = sum(placement.tokens for placement in found if not placement.left_out)
    going = [
        placement for placement in found[::-1] if not placement.left_out and placement.section.priority is not None
    ]
    for placement in sorted(going, key=lambda placement: placement.section.priority or 0):
        if used <= room:
            break
        used -= placement.tokens
        why = f"it gave way: all sections together may have {room:,} tokens"
        found[found.index(placement)] = SectionPlacement(placement.section, placement.text, placement.tokens, why)
    return found


def start_text(found: Sequence[SectionPlacement]) -> str:
    """The system text that requests begin with."""
    shown = (placement.text for placement in found if placement.section.place == "start" and not placement.left_out)
    return "\n\n".join(shown)
