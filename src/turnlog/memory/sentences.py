"""Find what the pronoun of a whole sentence stands for: "Run that again.", "Where is it used?", "Try the other one."

The verb says which kinds of things are meant. What was at hand is what the texts and calls of the last turns named: the
last turn that has something fitting decides. One thing is meant, or none: where two fit equally, nobody can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .entities import Candidate, Entity, Kind, Mention
from .language import Groups, Language

TURNS = 4
"""Turns that are looked back over."""

_LONGEST = 80  # characters; a longer sentence tells by more than its verb what it means
_SURE = 10.0  # score
_WORD = r"[\w'’-]+"
_ENDED = r"[,;:.!?]|$"  # a clause
_ANY: Groups = (("error",), ("symbol", "file", "url", "command", "branch", "id"))


class Pronoun(NamedTuple):
    """The pronoun of a sentence, read: the text before it and it, the kinds that it may stand for, whether the other of
    two things is meant, and whether something that was done is to be taken back, or to be done again."""

    before: str
    word: str
    groups: Groups
    other: bool = False
    undoing: bool = False
    repeating: bool = False


def asked_in(sentence: str, language: Language) -> Pronoun | None:
    """What a sentence asks for with its first pronoun whose verb is known; None if there is none."""
    given, text = sentence.strip(), sentence.lower().strip()
    given = given if len(given) == len(text) else text  # names are known by their capitals
    words = re.findall(_WORD, text)
    if len(text) > _LONGEST or len(words) < 2:
        return None
    others, ones = "|".join(sorted(language.others)), "|".join(sorted(language.vague))
    if others and (match := re.search(rf"\b(?:{others})\b(?: (?:{ones})\b|(?=\s*(?:{_ENDED})))", text)) is not None:
        key = _verb_before(text[: match.start()], words, language)
        return Pronoun(given[: match.start()], match[0], language.deeds.get(key, _ANY), other=True)
    pronouns = "|".join(map(re.escape, sorted(language.pronouns, key=len, reverse=True)))
    for match in re.finditer(rf"\b(?:{pronouns})\b(?!['’-])", text):
        before, after = text[: match.start()], text[match.end() :]
        if set(before.split()[-1:]) & language.ordinals.keys():
            return None  # "the second one"
        if key := _trait_after(after, words, language):
            return Pronoun(given[: match.start()], match[0], language.traits[key])
        following = re.match(rf"\s*({_WORD})", after)
        if match[0] in language.vague and following and not _is_no_noun(following[1], language):
            continue  # "that line"
        if re.search(language.unnamed, before[: _clause(before, language)]):
            return Pronoun(before, match[0], ())  # it is what has no name yet
        key = _verb_before(before, words, language)
        if key and (key not in language.common or re.match(rf"\s*(?:{_ENDED})", after)):
            kinds, undoing, repeating = language.deeds[key], key in language.undoing, key in language.repeating
            return Pronoun(given[: match.start()], match[0], kinds, False, undoing, repeating)
    return None


def _clause(text: str, language: Language) -> int:
    """Where the last clause of a text begins."""
    return max((match.end() for match in re.finditer(language.breaks, text)), default=0)


def _is_no_noun(word: str, language: Language) -> bool:
    return word in language.common | language.between or any(key.partition(" ")[2] == word for key in language.deeds)


def _trait_after(after: str, words: Sequence[str], language: Language) -> str:
    """The key of what is said of the pronoun right after it; "" if there is none."""
    for word in re.findall(_WORD, re.split(_ENDED, after, maxsplit=1)[0]):
        if key := _key(word, words, language.traits.keys()):
            return key
        if word not in language.between:
            break
    return ""


def _verb_before(before: str, words: Sequence[str], language: Language) -> str:
    """The key of the verb before a pronoun, in the same clause; "" if there is none."""
    for word in reversed(re.findall(_WORD, re.split(r"[,;:.!?]", before)[-1])):
        if key := _key(word, words, language.deeds.keys()):
            return key
        if word not in language.things and not _is_no_noun(word, language):
            break
    return ""


def _key(word: str, words: Sequence[str], known: object) -> str:
    """A word as a table knows it: with another word of the sentence, or alone."""
    keys = (*(f"{word} {other}" for other in words), word)
    return next((key for key in keys if key in known), "")  # type: ignore[operator]


# -- what was at hand ------------------------------------------------------------------------------


def at_hand(asked: Pronoun, named: Sequence[Entity], trail: Sequence[Mention], turns: Sequence[int]) -> list[Candidate]:
    """The one thing that is meant, or []. `named` is what the sentence names before the pronoun and it may stand for,
    `trail` the mentions before, oldest first, `turns` the records of the user's messages."""
    recent = list(_turns(trail, turns))
    if asked.other:
        return _other(asked, named, recent)
    for since, mentions in recent:
        group, found = _first_group(asked, mentions)
        if group:
            return _candidate(found, f"at hand since record {since}") if found else []
        kinds = {kind for group in asked.groups for kind in group}
        if any(one.entity.kind in kinds and one.entity.state == "deleted" and one.who != "result" for one in mentions):
            break  # what was at hand is gone
        if asked.undoing and any(mention.who == "call" for mention in mentions):
            break  # what was done since is no change of a file
    return []


def _candidate(entity: Entity, why: str) -> list[Candidate]:
    return [Candidate(entity, _SURE, (why, f"mentioned {entity.mentions} times"))]


def _turns(trail: Sequence[Mention], turns: Sequence[int]) -> Iterator[tuple[int, list[Mention]]]:
    """The last turns that mention something, the newest first, with their first records."""
    bounds = [0, *turns][-TURNS:]
    end = trail[-1].record + 1 if trail else 0
    for first, after in reversed(list(pairwise([*bounds, max(end, bounds[-1])]))):
        mentions = [one for one in trail if first <= one.record < after]
        gone = _moved_away(mentions)
        if mentions := [one for one in mentions if one.entity.key not in gone]:
            yield first or mentions[0].record, mentions


def _first_group(asked: Pronoun, mentions: Sequence[Mention]) -> tuple[tuple[Kind, ...], Entity | None]:
    """The first group of which a turn has something, and the one thing of it that is meant, if it can be told."""
    for group in asked.groups:
        if things := [one for one in mentions if one.entity.kind in group and _is_at_hand(asked, one)]:
            return group, _one(asked, things)
    return (), None


def _moved_away(mentions: Sequence[Mention]) -> set[tuple[Kind, str]]:
    """The files that were moved, without their new names. A call names the new name last, if it is no folder."""
    gone: set[tuple[Kind, str]] = set()
    ends: dict[int, list[Entity]] = {}
    for one in mentions:
        if one.entity.state == "moved" and one.entity.changed == one.record and one.who == "call":
            ends.setdefault(one.record, []).append(one.entity)
    for record, files in ends.items():
        new = files[-1].value.rpartition("/")[2]
        commands = [one.entity.value for one in mentions if one.record == record and one.entity.kind == "command"]
        is_file = len({one.value.rpartition(".")[2] for one in files}) == 1
        is_last = all(command.rstrip("'\"").endswith(new) for command in commands)
        gone |= {one.key for one in files if one is not files[-1] or not (is_file and is_last)}
    return gone


def _is_at_hand(asked: Pronoun, mention: Mention) -> bool:
    """Whether what is mentioned is at hand by that. What results list is not, but for errors; nor is a name in a call's
    arguments."""
    entity = mention.entity
    if entity.kind == "error":
        return entity.state != "fixed"
    if mention.who == "result" or (entity.kind == "symbol" and mention.who == "call"):
        return False
    if asked.undoing:
        return entity.changed == mention.record or mention.who == "disk"
    if asked.repeating:
        return mention.who == "call"
    return entity.state != "deleted"


def _one(asked: Pronoun, things: Sequence[Mention]) -> Entity | None:
    """The one thing that is meant of those that fit; None if several fit equally. Of errors and of commands it is the
    last; of changes that are taken back, the only one; of others, what the last text names, or what changed since, and
    if no text names one, what changed, or the only one."""
    if asked.undoing:
        return _only(things)
    if {one.entity.kind for one in things} <= {"error", "command"}:
        return _only(one for one in things if one.record == things[-1].record)
    texts = [one for one in things if one.who in ("user", "assistant")]
    told = texts[-1].record if texts else 0
    changed = [one for one in things if one.entity.changed == one.record > told]
    return _only([*(one for one in texts if one.record == told), *changed] or things)


def _only(mentions: Sequence[Mention] | Iterator[Mention]) -> Entity | None:
    entities = {one.entity.key: one.entity for one in mentions}
    return next(iter(entities.values())) if len(entities) == 1 else None


def _other(asked: Pronoun, named: Sequence[Entity], recent: Sequence[tuple[int, list[Mention]]]) -> list[Candidate]:
    """Of two things of a kind, the one that is not spoken of: not named in the sentence, or else not at hand."""
    spoken = named[-1] if named else next((_first_group(asked, turn)[1] for _, turn in recent), None)
    if spoken is None:
        return []
    for since, mentions in recent:
        alike = [one for one in mentions if one.entity.kind == spoken.kind and _is_at_hand(asked, one)]
        others = [one for one in alike if one.entity.key not in {spoken.key, *(one.key for one in named)}]
        if others:
            entity = _only(others)
            return _candidate(entity, f"beside {spoken.value} since record {since}") if entity else []
    return []
