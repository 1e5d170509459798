"""What each kind of decision does to the conversation: one row for each action.

A decision with an action that is not here changes nothing that a view shows.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

TextTreatment = Literal["curated", "cut", "masked", "placeholder", "replaced"]
"""What views say of a text that a decision replaced or shortened."""


class Action(Struct, frozen=True, kw_only=True):
    """What one kind of decision does.

    - `word`: what it does to records or texts, in a sentence for people;
    - `hides`: it leaves out the records that it covers, `system_too` including their system text;
    - `treatment`: it replaces or shortens texts, and views say this of them;
    - `shrinks`: it is made because a view is too large;
    - `needs_summary`: what it leaves out is missing until a summary covers it. Otherwise the user did not want it, or
      it mattered least;
    - `leaves`: what views say of the messages that it puts there instead: a summary, or a note of the orders that left;
    - `refreshes`: requests change near their beginning, so that changes told in mid-conversation move there;
    - `undone`: what `session.undo` calls the decision; empty if undo does not look for it.
    """

    word: str = ""
    hides: bool = False
    system_too: bool = False
    treatment: TextTreatment | None = None
    shrinks: bool = False
    needs_summary: bool = False
    leaves: Literal["summarised", "noted"] = "summarised"
    refreshes: bool = False
    undone: Literal["", "compaction", "exclusion", "rewind"] = ""


_SIZE = Action(shrinks=True, refreshes=True, undone="compaction")

ACTIONS: dict[str, Action] = {
    "cache_lifetime": Action(),
    "cap": replace(_SIZE, word="shortened", treatment="cut"),
    "clear": Action(word="left out", hides=True, refreshes=True),
    "compact": replace(_SIZE, word="left out", hides=True, needs_summary=True),
    "curate": replace(_SIZE, word="shortened", treatment="curated"),
    "exclude": Action(word="shortened", treatment="placeholder", undone="exclusion"),
    "fold": Action(refreshes=True),
    "images": replace(_SIZE, word="shortened", treatment="placeholder"),
    "mask": replace(_SIZE, word="shortened", treatment="masked"),
    "pin": Action(),
    "priority": replace(_SIZE, word="left out", hides=True, leaves="noted"),
    "redact": Action(),
    "rewind": Action(word="left out", hides=True, system_too=True, undone="rewind"),
    "slide": replace(_SIZE, word="left out", hides=True, needs_summary=True, leaves="noted"),
    "system": Action(word="replaced", treatment="replaced"),
    "undo": Action(),
    "version": Action(),
}
"""All actions of decisions, by name. docs/format.md describes what their `detail` contains."""

HIDING = frozenset(name for name, action in ACTIONS.items() if action.hides)
"""Actions that leave records out of the conversation."""

SHRINKING = frozenset(name for name, action in ACTIONS.items() if action.shrinks)
"""Actions that make a view smaller."""

TREATMENT = {name: action.treatment for name, action in ACTIONS.items() if action.treatment}
"""Actions that replace or shorten texts, with what views say of these texts."""

SHOWN_BY = HIDING | TREATMENT.keys()
"""Actions that change what views show."""


def action_of(name: str) -> Action:
    """What an action does; nothing, if it is not known."""
    return ACTIONS.get(name, _UNKNOWN)


_UNKNOWN = Action()
