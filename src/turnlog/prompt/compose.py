"""Which sections requests show, and with what text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..log.prompt import PromptSection
from .conditions import Facts, unmet
from .sections import capped, ordered, tokens_in


class Standing(Struct, frozen=True):
    """Where a section stands: its text as it is shown, cap applied, and the tokens of that. `left_out` says why it is
    not shown; empty if it is."""

    section: PromptSection
    text: str
    tokens: int
    left_out: str = ""


def composed(sections: Sequence[PromptSection], texts: Mapping[str, str], facts: Facts, room: int) -> list[Standing]:
    """Where each section stands, in the order in which requests show them. `texts` are those of late sections with a
    function; `room` is how many tokens all may have together."""
    found: list[Standing] = []
    for section in ordered(sections):
        text = capped(section, texts.get(section.name, section.text))
        found.append(Standing(section, text, tokens_in(text), unmet(section.when, facts) if text else "it has no text"))
    return _given_way(found, room)


def _given_way(found: list[Standing], room: int) -> list[Standing]:
    """Without the sections that give way, those of the lowest priority and of these the last first, until the rest has
    room."""
    used = sum(one.tokens for one in found if not one.left_out)
    going = [one for one in found[::-1] if not one.left_out and one.section.priority is not None]
    for one in sorted(going, key=lambda one: one.section.priority or 0):
        if used <= room:
            break
        used -= one.tokens
        why = f"it gave way: all sections together may have {room:,} tokens"
        found[found.index(one)] = Standing(one.section, one.text, one.tokens, why)
    return found


def start_text(found: Sequence[Standing]) -> str:
    """The system text that requests begin with."""
    shown = (one.text for one in found if one.section.place == "start" and not one.left_out)
    return "\n\n".join(shown)
