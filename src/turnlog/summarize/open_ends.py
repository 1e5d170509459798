"""What is left to do: unfinished tasks, and what the agent itself named as left, next, or offered without an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .._platform.lazy import lazy_pattern
from .agent_sentences import is_process, sentences_of
from .reading import Said
from .task_lists import unfinished_tasks

_TURNS = 3  # turns of the user whose last answers are looked at
_MOST = 8  # sentences
_LONGEST = 240  # characters of a sentence
_OFFER = lazy_pattern(
    r"(?:^|.*[,;:—–.-] ?)(?:(?:do you )?want me to|would you like(?: me)?|do you want to|should i|shall i"
    r"|(?:if you want|if you[’']d like|say the word)[^.?]*\bi (?:can|could|[’']ll))\b",
    re.IGNORECASE,
)
_LEFT = lazy_pattern(
    r"(?:remaining|next(?: up| steps?)?|to ?do|still (?:to do|open|missing|needed|pending)|left(?: to do)?|open"
    r"|follow-?ups?|outstanding|pending|not (?:yet )?done|deferred)\b[^.:]{0,30}:\s*\S"
    r"|.*\b(?:still (?:needs?|fails?|missing|pending|open|to be)\b"
    r"|(?:is|are|was|were|have|has)(?: not|n[’']t) (?:yet |been )|not yet\b|remains? (?:to|open|un)|left to (?:do|be)"
    r"|to be done|yet to be\b|as a follow-?up|in a follow-?up|out of scope"
    r"|pre-existing (?:bug|issue|problem|failure|error))",
    re.IGNORECASE,
)
_HEADING = lazy_pattern(
    r"(?:remaining|next steps?|next up|to ?do|still (?:to do|open|pending)|left to do|what[’']s (?:left|next|missing)"
    r"|follow-?ups?|outstanding|open (?:points|questions|items|issues)|not (?:yet )?done)\b[^.!?]{0,40}$",
    re.IGNORECASE,
)
_ITEM = lazy_pattern(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+(\S.*)$")
_POINTING = lazy_pattern(r"\b(?:this|that|these|those|it|them|next)\b", re.IGNORECASE)
_ANSWER = lazy_pattern(
    r"\W*(?:y|yes|yeah|yep|yup|sure|ok|okay|please|go|do|let[’']?s|no|nope|don[’']?t|not|never ?mind|leave|skip|sounds"
    r"|good|great|perfect|thanks?|lgtm|continue|proceed|just|ja|nein|oui|non|sí|si|\d+)\b",
    re.IGNORECASE,
)
_GOING_ON = lazy_pattern(r"\b(?:start|begin|proceed|continue|go ahead|implement|execut\w+)\b", re.IGNORECASE)
_SHORT = 60  # characters of a text that can only be an answer
_WORD = lazy_pattern(r"[^\W\d_]{5,}")


def open_ends(said: Sequence[Said], staying: Sequence[Said] = ()) -> list[str]:
    """The unfinished tasks of the newest list, and sentences of the agent's last answers that say what is left or next,
    or offer something that the user has not answered; the newest first. Nothing that `staying` shows."""
    shown = "\n".join(" ".join(entry.text.split()) for entry in staying if entry.who == "assistant")
    lines = unfinished_tasks(said, staying)
    seen: set[str] = set()
    for entry, sentence in _named(said, staying):
        if len(seen) == _MOST:
            break
        if sentence not in seen and sentence not in shown:
            seen.add(sentence)
            lines.append(f"[{entry.record}] {sentence}")
    return lines


def _named(said: Sequence[Said], staying: Sequence[Said]) -> Iterator[tuple[Said, str]]:
    """What the agent named as open in its last answers: the last text of each of the last turns."""
    everything = [*said, *staying]
    turns = 0
    for index in range(len(said) - 1, -1, -1):
        entry = said[index]
        following = everything[index + 1] if index + 1 < len(everything) else None
        if entry.who != "assistant" or (following is not None and following.who != "user"):
            continue
        turns += 1
        if turns > _TURNS:
            return
        later = [other.text for other in everything[index + 1 :] if other.who == "user"]
        for sentence in _open_in(entry.text, later, last=turns == 1):
            yield entry, sentence


def _open_in(text: str, later: Sequence[str], *, last: bool) -> Iterator[str]:
    """What a text names as open; its next steps only if it is the last one. `later`: what the user said after it."""
    before = ""
    sentences = [*sentences_of(text)]
    for sentence in sentences:
        if _OFFER.match(sentence):
            offered = f"{before} {sentence}" if before and _POINTING.search(sentence) else sentence
            if len(offered) <= 2 * _LONGEST and not _is_answered(offered, later):
                yield offered
        elif _LEFT.match(sentence) and len(sentence) <= _LONGEST and not sentence.endswith("?"):
            if (last or not sentence.casefold().startswith("next")) and not is_process(sentence):
                yield sentence
        before = "" if sentence.endswith((":", "?")) else sentence
    if last:
        yield from _steps(text)


def _steps(text: str) -> Iterator[str]:
    """The items of a list under a heading such as "Next steps"."""
    under = ""
    for line in text.splitlines():
        plain = line.strip().strip("#*_: ")
        item = _ITEM.match(line)
        if item is not None and under:
            yield f"{under}: {item[1].strip()}"[:_LONGEST]
        elif _HEADING.match(plain):
            under = plain
        elif plain:
            under = ""


def _is_answered(offered: str, later: Sequence[str]) -> bool:
    """Whether the user answered an offer: shortly, or with words of it; an offer to go on with anything."""
    if not later:
        return False
    answer = later[0][:2_000]
    if len(answer) <= _SHORT or _ANSWER.match(answer) or _GOING_ON.search(offered):
        return True
    words = {word.casefold() for word in _WORD.findall(offered)}
    return any(word.casefold() in words for word in _WORD.findall(answer[:600]))
