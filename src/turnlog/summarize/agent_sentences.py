"""The sentences of what an agent wrote, without its talk of the next command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._platform.lazy import lazy_pattern

_EXAMINED = 4_000  # characters at either end of a text whose sentences are read
_CODE = lazy_pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_BREAK = lazy_pattern(r"\n+|(?<=[.!?])[*_`\")\]]*[ \t]+(?=[A-Z\"'`*(\[«“‘])|(?<=[。！？])")
_MARKS = lazy_pattern(r"^[\s>#*\-•·–—✅❌⚠️✓✗]*(?:\d{1,2}[.)]\s+)?(?:THOUGHT:\s*)?|[\s*_]+$")
_SHORTEST = 20  # characters of a sentence that says something
_SHORTEST_WIDE = 8  # the same in a script without spaces
# How agents announce what they do next, or say that they do it.
_PROCESS = lazy_pattern(
    r"\W*(?:(?:now|next|okay|ok|good|great|perfect|excellent|first|finally|so|then|alright|right|yes|wait|hmm|ah)"
    r"[,.!:;—– -]+)*"
    r"(?:now\b|let me|let[’']s|let us|i[’'](?:ll|m)\b|i (?:will|want to|should|am|can|could|have to)\b"
    r"|i need to (?:see|check|look|find|read|verify|know|understand)\b"
    r"|(?:trying|running|checking|continuing|looking|reading|waiting|working|starting|testing|verifying|updating"
    r"|fixing)\b|try(?:ing)? again|one moment|back to|moving on)",
    re.IGNORECASE,
)
_TALK = lazy_pattern(
    r"\W*(?:perfect|excellent|great|good|done|thanks?|sorry|you[’']re (?:absolutely )?right)\b[^.]{0,20}$",
    re.IGNORECASE,
)
_EXCLAIMED = lazy_pattern(
    r"^\W*(?:perfect|excellent|great|good|nice|ah|aha|hmm|okay|ok|found it|done)[!.,:]+\s+(?=\S)", re.IGNORECASE
)
_CUT = lazy_pattern(r"[:,;(\[{`]$|\.\.\.$|…$")  # what only announces, or stops before its end


def sentences_of(text: str) -> Iterator[str]:
    """The whole sentences of a text, without code and marks of lists and headings; of a long text, of its two ends."""
    if len(text) > 2 * _EXAMINED:
        text = f"{text[:_EXAMINED].rpartition(chr(10))[0]}\n{text[-_EXAMINED:].partition(chr(10))[2]}"
    if "```" in text or "~~~" in text:
        text = _CODE.sub("\n", text)
    for piece in _BREAK.split(text):
        sentence = _EXCLAIMED.sub("", " ".join(_MARKS.sub("", piece).replace("**", "").split()), count=1)
        if len(sentence) >= (_SHORTEST if sentence.isascii() else _SHORTEST_WIDE):
            yield sentence


def is_process(sentence: str) -> bool:
    """Whether a sentence only says what the agent is about to do, is polite, or announces what is not in it."""
    return (
        _PROCESS.match(sentence) is not None or _TALK.match(sentence) is not None or _CUT.search(sentence) is not None
    )


def first_statement(text: str, longest: int) -> str:
    """The first whole sentence of a text that says something in at most so many characters; "" if there is none."""
    return next((one for one in sentences_of(text) if len(one) <= longest and not is_process(one)), "")
