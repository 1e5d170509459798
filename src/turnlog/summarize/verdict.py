"""Check whether a summarizer returned a summary, and describe what went wrong as a value."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from .protocol import Material
from .transcript import entries_of

Fault = Literal["exception", "timeout", "not text", "empty", "refusal", "inflated", "remembered", "claimed", "ledger"]
"""Why there is no summary. `remembered`: it failed before. `claimed`: another caller has claimed it and has no text
yet. `ledger`: the log could not be read or written."""


class SummaryFailure(Struct, frozen=True):
    """The failure of a summarizer: its id, a word for the reason, and a sentence for people."""

    summarizer: str
    fault: Fault
    detail: str

    def __str__(self) -> str:
        return f"{self.summarizer}: {self.fault}: {self.detail}"


_REFUSAL_CHARACTERS = 400
"""The most characters of a refusal; a longer text that begins with an apology is a summary."""

_QUOTED_CHARACTERS = 120

# How models begin when they decline, in several languages: with an apology, or by saying that they cannot.
_REFUSAL = lazy_pattern(
    r"""\W*(?:
        (?:i(?:'m|\ am)\ (?:very\ |so\ |really\ |truly\ )?(?:sorry|afraid)|sorry|apologies|i\ apologi[sz]e)\b
        | (?:unfortunately,?\ )?i\ (?:can(?:'t|not|\ not)|won't|will\ not|(?:must|have\ to)\ (?:decline|refuse)
            |am\ (?:unable|not\ able)\ to|do(?:n't|\ not)\ feel\ comfortable)\b
        | (?:unfortunately,?\ )?i'm\ (?:unable|not\ able)\ to\b
        | as\ an\ (?:ai|artificial)\b
        | lo\ siento\b | lamento\b | no\ puedo\b | es\ tut\ mir\ leid\b | entschuldig\w+ | leider\ kann\ ich\b
        | ich\ kann\ (?:dabei|dir|ihnen|das|dies\w*)\b[^.]*\bnicht\b | je\ suis\ d[ée]sol[ée] | d[ée]sol[ée]\b
        | je\ ne\ peux\ pas\b | mi\ dispiace\b | non\ posso\b | desculpe\b | não\ posso\b
        | извините\b | простите\b | к\ сожалению,?\ я\ не\b | я\ не\ могу\b
        | 我?[很非]?常?抱歉 | 对不起 | 對不起 | 我(?:无法|無法|不能) | 作为一[个名](?:AI|人工)
        | (?:大変)?申し訳 | すみませんが | ごめんなさい
        | 죄송 | 미안 | عذر | آسف | أعتذر | لا\ (?:أستطيع|يمكنني)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def fault_of(text: object, material: Material) -> tuple[Fault, str] | None:
    """Why `text` is not a summary of `material`; None if it is one."""
    if not isinstance(text, str):
        return "not text", f"it returned {type(text).__name__}, not text"
    if not text.strip():
        return "empty", "it returned nothing"
    plain = text.strip().replace("\u2019", "'")
    if len(plain) <= _REFUSAL_CHARACTERS and _REFUSAL.match(plain):
        return "refusal", f"it declined: {_beginning(' '.join(plain.split()))}"
    size = material.count(text)
    if size > material.target:
        return "inflated", f"{size:,} tokens, {material.target:,} were asked for"
    if not _is_smaller(size, material):
        return "inflated", f"{size:,} tokens, no fewer than the messages that it would replace"
    return None


def _beginning(line: str) -> str:
    """The beginning of a line, up to the end of a word: half a word may be half a secret that is not recognised."""
    whole = len(line) <= _QUOTED_CHARACTERS
    return line if whole else line[: _QUOTED_CHARACTERS + 1].rpartition(" ")[0]


def _is_smaller(size: int, material: Material) -> bool:
    """Whether the summary is smaller than its source. Counting the source stops as soon as that is certain."""
    if material.size:
        return material.size > size
    source = material.count(material.previous) if material.previous else 0
    for shown in material.messages:
        if source > size:
            break
        source += sum(material.count(entry.text) for entry in entries_of([shown]))
    return source > size
