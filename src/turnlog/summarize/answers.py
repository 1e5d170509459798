"""The notes in a model's answer, which may have a draft before them.

The prompt asks for two lines with the mark of its quotation, which no quoted text can contain: one before the draft,
one before the notes. Nothing before the second is kept. Without them, the whole answer is notes, unless it begins like
a draft: then another border will do if it occurs once, and in no quoted text, so that the draft cannot have quoted it.
If it is not certain where a draft ends, there are no notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from ..errors import RunnerFailed
from .transcript import TranscriptEntry

DRAFT, NOTES = "draft", "notes"

# What may stand around words on a line of their own: signs of Markdown, of tags and of the quotation. Never given back
# by the search, which would take time quadratic in the length of a ruler.
_SIGNS = r"(?:[^\w\n]|_)*+"
_WRONG_MARK = rf"(?:[0-9a-f]{{6,16}}\b{_SIGNS})?+"
_DRAFTED = lazy_pattern(
    rf"<(?P<tag>think|thinking|analysis|scratchpad|draft)\b|{_SIGNS}{_WRONG_MARK}draft{_SIGNS}$",
    re.IGNORECASE | re.MULTILINE,
)
_NOTES = lazy_pattern(rf"^(?!.*</){_SIGNS}{_WRONG_MARK}notes{_SIGNS}$", re.IGNORECASE | re.MULTILINE)
_END = lazy_pattern(r"</notes>\s*\Z", re.IGNORECASE)
_FENCE = lazy_pattern(r"^[ \t]*+(`{3,}+|~{3,}+)([^`\n]*)$", re.MULTILINE)


class SummaryPrompt(Struct, frozen=True):
    """What a model is asked. `output` is the most tokens that it is to write, its draft included."""

    text: str
    output: int
    mark: str
    entries: tuple[TranscriptEntry, ...]

    def notes(self, answer: str) -> str:
        """The notes in the model's answer, without the draft. Raises RunnerFailed if there are none."""
        return notes_of(answer, self.mark, (entry.text for entry in self.entries))


def notes_of(answer: str, mark: str, quoted: Iterable[str]) -> str:
    """The notes in an answer to a prompt with this mark, which quoted these texts. Raises RunnerFailed if there is a
    draft without notes."""
    border = re.compile(rf"^{_SIGNS}{mark}{_SIGNS}(end of )?({DRAFT}|{NOTES}){_SIGNS}$", re.IGNORECASE | re.MULTILINE)
    borders = list(border.finditer(answer))
    ends = [*(found.start() for found in borders[1:]), len(answer)]
    for found, end in reversed([*zip(borders, ends, strict=False)]):
        if found[2].lower() == NOTES and not found[1] and answer[found.end() : end].strip():
            return _unfenced(answer[: found.start()], answer[found.end() : end])
    drafted = _DRAFTED.match(answer, _start(answer))
    begun = bool(answer.strip()) and f"==== {mark} {DRAFT}".startswith(answer.strip())
    if not (drafted or borders or begun):
        return _unfenced("", answer)
    unmarked = None if drafted is None or borders else _unmarked(answer, drafted, quoted)
    notes = "" if unmarked is None else _END.sub("", answer[unmarked.end() :])
    if unmarked is None or not notes.strip():
        raise RunnerFailed(
            "summarizer", "the answer is a draft without notes; if it was cut off, let the model write more tokens"
        )
    return _unfenced(answer[: unmarked.start()], notes)


def _start(answer: str) -> int:
    """Where the text of an answer begins: behind blanks and a fence around the whole."""
    start = len(answer) - len(answer.lstrip())
    fence = _FENCE.match(answer, start)
    return start if fence is None else len(answer) - len(answer[fence.end() :].lstrip())


def _unmarked(answer: str, drafted: re.Match[str], quoted: Iterable[str]) -> re.Match[str] | None:
    """The border between draft and notes in an answer without the line that was asked for; None if it is uncertain."""
    closing = re.compile(rf"</{drafted['tag'] or DRAFT}>", re.IGNORECASE)
    closings, openings = (list(pattern.finditer(answer, drafted.end())) for pattern in (closing, _NOTES))
    borders = [*closings, *openings]
    if not borders or max(len(closings), len(openings)) > 1 or answer[borders[0].end() : borders[-1].start()].strip():
        return None
    words = [border[0].strip().lower() for border in borders]
    return None if any(word in text.lower() for text in quoted for word in words) else borders[-1]


def _unfenced(before: str, notes: str) -> str:
    """The notes without a fence around them, or around the whole answer, whose beginning is `before`."""
    notes = notes.strip()
    fences = list(_FENCE.finditer(notes))
    if not fences:
        return notes
    first, last = fences[0], fences[-1]
    begins, ends = first.start() == 0, last.end() == len(notes) and not last[2].strip()
    if len(_FENCE.findall(before)) % 2 and len(fences) % 2:  # one from before the notes ends at their beginning or end
        if begins and not first[2].strip():
            return notes[first.end() :].strip()
        return notes[: last.start()].strip() if ends else notes
    around = len(fences) == 2 and begins and ends and first[1] == last[1]
    return notes[first.end() : last.start()].strip() if around else notes
