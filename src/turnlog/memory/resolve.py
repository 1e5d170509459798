"""Find what a reference such as "that file" or "it" stands for: ranked entities with reasons, or none.

Recent mentions count most, by records and never by time: those in the same text before the reference, then those of the
records before it, where what a call was about counts more than what its result lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .._platform.lazy import lazy_pattern
from ..summarize.errors import as_command
from .calls import SHELLS
from .entities import Candidate, Entity, Kind, Mention
from .language import Language, Thing
from .sentences import asked_in, at_hand
from .words import BARE_WORD, PROGRAMS, Named, judged

_WEIGHTS = {"user": 1.0, "assistant": 0.9, "call": 1.0, "result": 0.35, "disk": 0.8}
_FADES = 0.85  # how much less a mention counts for each record since
_AGAIN = 0.05  # how much more for each other mention, up to `_OFTEN`
_OFTEN = 5
_LEAST = 0.12  # score of a mention before the text; below, it is too long ago
_FARTHEST = 40  # records back
_LISTED = 12  # the same for lists
_FEWEST, _MOST = 2, 12  # entities of a list
_WITHIN = 10.0  # a mention in the same text counts more than any before it
_MOST_FOUND = 10
_TOKEN = lazy_pattern(
    r"```[ \t]*(?P<language>\w*)[^\n]*\n(?P<block>.*?)(?:```|\Z)|`(?P<code>[^`\n]+)`|(?P<url>https?://[^\s\"'<>)\]}`|\\]+)"
    r"|(?P<call>\b[A-Za-z_][\w.]*)\(\)|(?P<word>" + BARE_WORD + r"+)",
    re.DOTALL,
)
_GIVEN = lazy_pattern(r"([A-Za-z_]\w*)=[^=\s]")  # an argument with its value
_LINKED = lazy_pattern(r"^\W*[^\]\n]*\]\(")  # the text of a link, before its address
_NAME = lazy_pattern(r"[A-Za-z_$*&][\w.$*&<>:\[\]]*(?:\(.*\))?$")
_SENTENCE = lazy_pattern(r"(?<=[.!?:])\s+|\n+")
_WORDS = lazy_pattern(r"[\w'’-]+")


class _Asked(NamedTuple):
    """A reference, read: the kinds it may stand for (() for any), what the value must have in it, its place in a list,
    and whether it is a pronoun."""

    kinds: tuple[Kind, ...]
    within: str = ""
    place: int | None = None
    pronoun: bool = False
    other: bool = False
    noun: str = ""
    generic: bool = False


_ACTING: tuple[Kind, ...] = ("symbol", "file", "command", "url", "error")
"""What a pronoun stands for without a verb that tells more."""


def resolve(
    reference: str,
    said: str,
    trail: Sequence[Mention],
    known: Iterable[Entity],
    last: int,
    turns: Sequence[int],
    language: Language,
) -> list[Candidate]:
    """What `reference` may stand for, the likeliest first. `said` is the text in which it stands last, or "". `trail`
    are the mentions before, oldest first, `known` the entities, `last` the last record, `turns` the records of what the
    user typed."""
    table = _Known({entity.key: entity for entity in known}, trail, last)
    sentence = asked_in(said if said and not _SENTENCE.search(said.strip()) else reference, language)
    if sentence is not None and (not said or reference.lower().strip() in language.pronouns - language.vague):
        kinds = {kind for group in sentence.groups for kind in group}
        spoken = [table.entity(name.named) for name in _named_in(sentence.before) if name.named.kind in kinds]
        if sentence.other or not spoken:
            return at_hand(sentence, spoken, trail, turns)
        reference, said = sentence.word, said or reference
    elif not said and (phrase := _phrase_in(reference, language)):
        reference, said = phrase, reference
    before, after = _around(reference, said)
    asked = _read(reference, before, after, language)
    if asked is None:
        return []
    if (named := _named_after(asked, after, language)) is not None:
        return [Candidate(table.entity(named), 2 * _WITHIN, ("named right after it",))]
    if asked.generic:
        return []
    here = list(_named_in(before))
    if asked.place is not None:
        return _of_list(asked, here, trail, table, last)
    candidates = _within(asked, before, here, table, language)
    if candidates is None:
        return []
    if asked.pronoun and not asked.kinds:  # without a verb that says what it is, only the same text tells
        return candidates[:_MOST_FOUND]
    taken = {candidate.entity.key for candidate in candidates}
    earlier = [candidate for candidate in _earlier(asked, trail, last) if candidate.entity.key not in taken]
    if asked.other:
        return [*candidates, *earlier][1 : _MOST_FOUND + 1]
    return [*candidates, *earlier][:_MOST_FOUND]


# -- reading the reference -------------------------------------------------------------------------


def _around(reference: str, said: str) -> tuple[str, str]:
    position = said.lower().rfind(reference.lower())
    return (said[:position], said[position + len(reference) :]) if position >= 0 else (said, "")


def _phrase_in(sentence: str, language: Language) -> str:
    """A noun that a sentence points at ("that file" in "open that file again"); "" if it is all, or there is none."""
    pointers, things = "|".join(language.pointers), "|".join(language.things)
    places = "|".join((*language.ordinals, *language.others))
    match = re.search(rf"\b(?:{pointers})(?: (?:{places}))?(?: \w+)?? (?:{things})\b", sentence.lower())
    return match[0] if match is not None and match.end() - match.start() < len(sentence.strip(" .!?")) else ""


def _read(reference: str, before: str, after: str, language: Language) -> _Asked | None:
    """The reference, read with the words around it; None if it stands for nothing in particular."""
    words = [word.lower() for word in _WORDS.findall(reference)]
    behind, lower = before.lower().rstrip(), after.lower()
    if not words or language.plurals & set(words):
        return None
    place = next((language.ordinals[word] for word in words if word in language.ordinals), None)
    other = bool(language.others & set(words))
    noun = next((word for word in reversed(words) if word in language.things), "")
    if not noun and _singular(words[-1], language):
        return None  # several things
    if noun:
        return _by_noun(noun, words, place, other, lower, language)
    if place is not None or other:
        return _Asked((), place=place, other=other)
    if " ".join(words) not in language.pronouns and words[-1] not in language.pronouns:
        return None
    empty = re.search(language.empty_before, behind) or re.search(language.empty_after, lower)
    verb = next(iter(reversed(_WORDS.findall(behind)[-1:] or words[:-1][-1:])), "")
    kinds = language.verbs.get(verb, language.verbs.get(words[0], ()) if len(words) > 1 else ())
    vague = bool(empty) or words[-1] in language.vague
    return None if vague and not kinds else _Asked(kinds, pronoun=True)


def _by_noun(
    noun: str, words: Sequence[str], place: int | None, other: bool, after: str, language: Language
) -> _Asked | None:
    thing = language.things[noun]
    following = _WORDS.match(after.lstrip())
    if following is not None and after[:1] == " " and following[0] in language.things:
        head = language.things[following[0]]  # "the test file"
        thing = Thing(head.kinds, thing.within)
    elif re.search(language.generic, after) or after[:1] == "s" or (following and following[0] in language.compounds):
        return None
    plain = {noun, *language.pointers, *language.ordinals, *language.others, *language.things}
    telling = [word for word in words if word not in plain and word not in language.verbs]
    within = thing.within or (re.escape(telling[-1]) if telling else "")
    place = None if place == -1 else place  # "the last error" is the newest, not one of a list
    return _Asked(thing.kinds, within, place, other=other, noun=noun, generic=noun in language.generic_nouns)


def _singular(word: str, language: Language) -> bool:
    return word.endswith("s") and word[:-1] in language.things


def _named_after(asked: _Asked, after: str, language: Language) -> Named | None:
    """What the words right after the reference name, if they say what it is."""
    match = re.match(language.named_after, after, re.IGNORECASE)
    if match is None or (asked.pronoun and not asked.place):
        return None
    sentence = _LINKED.sub("", _SENTENCE.split(after[match.end() :], maxsplit=1)[0][:300])
    names = list(_named_in(sentence))
    if not names or not _fits(asked, names[0].named.kind, names[0].named.value):
        return None
    lead = sentence[: names[0].at].strip(" *_`\"'([").lower()
    if any(word not in language.things for word in lead.split()):
        return None
    several = len(names) > 1 and re.match(language.joined, sentence[names[1].at - 5 : names[1].at].lower())
    return None if several else names[0].named


# -- what was named before -------------------------------------------------------------------------


class _Here(NamedTuple):
    """Something that a text names, and where."""

    named: Named
    at: int


def _named_in(text: str) -> Iterator[_Here]:
    """What a text names, in order, with repetitions: also commands in blocks of code, and names in code that would be
    plain words elsewhere."""
    for token in _TOKEN.finditer(text):
        if token["block"] is not None:
            lines = [line for line in token["block"].strip().split("\n") if line.strip()]
            if token["language"].lower() in SHELLS and lines:
                yield _Here(Named("command", as_command(token["block"])), token.start())
        elif token["code"] is not None:
            if (named := _of_code(token["code"].strip())) is not None:
                yield _Here(named, token.start())
        elif token["url"] is not None:
            yield _Here(Named("url", token["url"].rstrip(".,;:!?*")), token.start())
        elif token["call"] is not None:
            yield _Here(Named("symbol", token["call"]), token.start())
        elif (named := judged(token["word"])) is not None:
            yield _Here(named, token.start())


def _of_code(code: str) -> Named | None:
    """What a piece of code in a text names."""
    if code.startswith(("http://", "https://")):
        return Named("url", code)
    named = judged(code) if " " not in code else None
    if named is not None and named.kind != "symbol":
        return named
    if (given := _GIVEN.match(code)) is not None:
        return Named("symbol", given[1])
    if _NAME.match(code):
        return Named("symbol", re.sub(r"\(.*\)$", "", code).lstrip("*&"))
    if code.startswith(("/", "~/", "./")) and " " not in code:
        return Named("file", code.rstrip("/"))
    return Named("command", code) if code.partition(" ")[0] in PROGRAMS else named


def _within(
    asked: _Asked,
    before: str,
    here: Sequence[_Here],
    table: _Known,
    language: Language,
) -> list[Candidate] | None:
    """What the same text names before the reference, the nearest first; None if the reference means something that the
    text names no further ("a file ... that file")."""
    fitting = [name for name in here if _fits(asked, name.named.kind, name.named.value)]
    if asked.noun:
        nearest = fitting[-1].at if fitting else 0
        since = before[max(nearest, len(before) - 300) :].rpartition("\n\n")[2].lower()
        if re.search(rf"{language.indefinite}{asked.noun}\b", since):
            return None
    if asked.pronoun and not fitting and re.search(language.unnamed, _SENTENCE.split(before)[-1].lower()):
        return None
    if asked.pronoun and not asked.kinds:
        fitting = [name for name in fitting if name.named.kind in _ACTING]
        fitting = _by_subject(before, fitting, language)
    candidates: dict[tuple[Kind, str], Candidate] = {}
    for back, name in enumerate(reversed(fitting)):
        entity = table.entity(name.named)
        candidates.setdefault(entity.key, Candidate(entity, _WITHIN * _FADES**back, ("named in the same text",)))
    return list(candidates.values())


def _by_subject(before: str, here: Sequence[_Here], language: Language) -> list[_Here]:
    """The names that a pronoun may stand for, the likeliest last. At the beginning of a sentence the pronoun stands for
    the subject of the sentence before; elsewhere it stands for what was named last. It never stands for something that
    was named more than two sentences before."""
    starts = [0, *(match.end() for match in _SENTENCE.finditer(before))]
    sentences = [(start, before[start:end]) for start, end in zip(starts, [*starts[1:], len(before)], strict=True)]
    sentences = [(start, text) for start, text in sentences if text.strip()] or [(0, "")]
    own_start, own_sentence = sentences[-1] if before[-1:] not in "\n" else (len(before), "")
    earlier = [(start, text) for start, text in sentences if start < own_start]
    subject = re.fullmatch(language.starts, own_sentence.lower()) is not None
    while subject and len(earlier) > 1 and _continues(earlier[-1][1], language):
        earlier.pop()
    reach = earlier[-2:][0][0] if earlier else own_start
    near = [name for name in here if name.at >= reach]
    clause = max((match.end() for match in re.finditer(language.breaks, before.lower())), default=0)
    if not subject and not before[max(clause, own_start) :].strip():
        return [*near, *[name for name in near if name.at >= own_start][:1]]  # the subject of a clause
    if not subject:  # what a clause says something of is not what it does it to
        near = [name for name in near if name.at < max(clause, own_start)] or near
    if subject and earlier:
        topic = [name for name in near if earlier[-1][0] <= name.at < own_start][:1]
        return [*near, *topic]
    return near


def _continues(sentence: str, language: Language) -> bool:
    """Whether a sentence is about what the one before it is about: it begins with a pronoun."""
    rest = sentence.lower()[re.match(language.starts, sentence.lower()).end() :]  # type: ignore[union-attr]
    return (_WORDS.match(rest) or [""])[0] in language.pronouns


def _earlier(asked: _Asked, trail: Sequence[Mention], last: int) -> list[Candidate]:
    """What the records before mention, the likeliest first."""
    scores: dict[tuple[Kind, str], float] = {}
    newest: dict[tuple[Kind, str], Mention] = {}
    for mention in reversed(trail):
        age = last - mention.record
        if age > _FARTHEST:
            break
        entity = mention.entity
        if not _fits(asked, entity.kind, entity.value) or (entity.kind == "error" and entity.state == "fixed"):
            continue
        score = _WEIGHTS[mention.who] * _FADES**age * _rank(asked, entity)
        scores[entity.key] = max(scores.get(entity.key, 0.0), score)
        newest.setdefault(entity.key, mention)
    candidates = []
    for key, score in scores.items():
        mention = newest[key]
        entity = mention.entity
        again = _AGAIN * min(_OFTEN, entity.mentions - 1)
        state = f"{entity.state or 'mentioned'} in record {mention.record}"
        candidates.append(Candidate(entity, score * (1 + again), (state, f"mentioned {entity.mentions} times")))
    candidates = [candidate for candidate in candidates if candidate.score >= _LEAST]
    return sorted(candidates, key=lambda candidate: (-candidate.score, -candidate.entity.last, candidate.entity.key))


def _rank(asked: _Asked, entity: Entity) -> float:
    """How much less a kind counts that a noun stands for less often."""
    return 0.7 ** asked.kinds.index(entity.kind) if entity.kind in asked.kinds else 1.0


def _fits(asked: _Asked, kind: Kind, value: str) -> bool:
    return (not asked.kinds or kind in asked.kinds) and bool(re.search(asked.within, value.lower()))


def _of_list(
    asked: _Asked, here: Sequence[_Here], trail: Sequence[Mention], table: _Known, last: int
) -> list[Candidate]:
    """The thing at a place of the last list: things of one kind that a text, or a record before it, names in a row."""
    lists: list[tuple[str, list[Entity]]] = [("the same text", [table.entity(name.named) for name in here])]
    records: dict[int, list[Entity]] = {}
    for mention in trail:
        if last - mention.record <= _LISTED and mention.who in ("user", "assistant", "result"):
            records.setdefault(mention.record, []).append(mention.entity)
    lists += [(f"record {n}", records[n]) for n in sorted(records, reverse=True)]
    kinds = asked.kinds or ("id", "file", "url", "command")
    for place, entities in lists:
        for kind in kinds:
            row = list(
                {
                    entity.key: entity
                    for entity in entities
                    if entity.kind == kind and _fits(asked, kind, entity.value)
                }.values()
            )
            wanted = asked.place or 0
            if _FEWEST <= len(row) <= _MOST and -len(row) <= wanted < len(row):
                index = wanted % len(row)
                return [Candidate(row[index], _WITHIN, (f"number {index + 1} of {len(row)} in {place}",))]
    return []


class _Known(NamedTuple):
    """The known entities, and the mentions by which one of several is chosen."""

    entities: dict[tuple[Kind, str], Entity]
    trail: Sequence[Mention]
    last: int

    def entity(self, named: Named) -> Entity:
        """The known entity for a name, or a new one. A part of a path stands for the file that was mentioned last with
        such a path, and so does the name of a file without its ending, if it is no other name."""
        if (entity := self.entities.get((named.kind, named.value))) is not None:
            return entity
        if named.kind in ("file", "symbol"):
            end = f"/{named.value.removeprefix('~/')}"
            for mention in reversed(self.trail):
                path = mention.entity.value
                if mention.entity.kind == "file" and f"/{path if named.kind == 'file' else _stem(path)}".endswith(end):
                    return mention.entity
        return Entity(named.kind, named.value, self.last, self.last)


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name
