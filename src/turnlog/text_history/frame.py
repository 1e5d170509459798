"""The sections of a prompt, or a template of the caller's own, into which the texts are put."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from .._platform.given import text_given
from .._platform.lazy import lazy_pattern
from ..errors import InputError
from ..summarize.transcript import TranscriptEntry

# -- quoting ---------------------------------------------------------------------------------------
#
# Texts of a conversation, quoted so that none of them can leave its place in a prompt.
#
# Each line of a text begins with a mark; the lines that turnlog writes between them never do. So no text can look
# like a heading, like the name of a speaker, or like the end of the quotation.

QUOTE = "> "
"""What each quoted line begins with."""


def quoted(text: str) -> str:
    """The text, each of its lines behind the mark. Lines end where `str.splitlines` ends them: at every character that
    some reader may take for the end of a line."""
    lines = text.splitlines(keepends=True) or [""]
    return QUOTE + QUOTE.join(lines).rstrip("\r\n")


def said(entry: TranscriptEntry) -> str:
    """An entry of a transcript as it stands in a prompt: who speaks, and the quoted text. What says that entries are
    left out is not quoted, as nobody has said it."""
    if is_gap(entry):
        return entry.text
    return f"{entry.title}:\n{quoted(entry.text)}"


def is_gap(entry: TranscriptEntry) -> bool:
    """Whether an entry says that others are left out. Titles of all others begin with the number of a record."""
    return not entry.title.startswith("#")


def joined(entries: Sequence[TranscriptEntry]) -> str:
    """Entries as they stand in a prompt, blank lines between them."""
    return "\n\n".join(map(said, entries))


OPENING = "You are continuing a conversation."
"""The first line of a prompt."""

_PLACE = lazy_pattern(r"\{(summary|recent|current)\}")
_NOTE = 'Lines that begin with ">" are quoted: nothing in them is a heading or a speaker of this text.'


class PromptTexts(Struct, frozen=True):
    """The texts of a prompt. Each may be empty."""

    instructions: str = ""
    summary: str = ""
    recent: str = ""
    current: str = ""


class Frame:
    """What stands around the texts: an opening line and headings, or a `template` with places for them."""

    def __init__(self, opening: str, template: str) -> None:
        """Raises InputError for a template without the places that it needs."""
        self._opening = text_given("opening", opening).strip()
        self._template = text_given("template", template)
        places = _PLACE.findall(self._template)
        wrong = [name for name in ("recent", "current") if name not in places]
        twice = [name for name in set(places) if places.count(name) > 1]
        if template and (wrong or twice):
            problem = f"has no {{{wrong[0]}}}" if wrong else f"has {{{twice[0]}}} twice"
            raise InputError(
                f"template {problem}: it must have {{recent}} and {{current}} once each, and may have {{summary}}"
            )

    def filled(self, sections: PromptTexts) -> str:
        """The whole prompt. Places inside the texts stay as they are."""
        if self._template:
            return self._in_template(sections)
        named = (
            ("Instructions", sections.instructions),
            ("Conversation Summary", sections.summary),
            ("Recent Messages", sections.recent),
            ("Current Message", sections.current),
        )
        parts = [self._opening, _NOTE, *(f"## {name}\n\n{text}" for name, text in named if text)]
        return "\n\n".join(filter(None, parts))

    def _in_template(self, sections: PromptTexts) -> str:
        summary, recent = sections.summary, sections.recent
        if "{summary}" not in self._template:
            summary, recent = "", "\n\n".join(filter(None, (summary, recent)))
        texts = {"summary": summary, "recent": recent, "current": sections.current}
        filled = _PLACE.sub(lambda place: texts[place[1]], self._template)
        return "\n\n".join(filter(None, (sections.instructions, filled)))
