"""The user's words, which of them a digest keeps first, and the agent's decisions; each on one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from math import fsum

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from .orders import order_spans, orders_in

_LINE = 300  # characters of a line for one text of the user
_HEAD, _ORDERS, _TAIL = 110, 130, 50  # characters of its beginning, its orders and its end, if orders are in the middle
_ORDER = 500  # characters of one order, which is told whole even if it takes more than the room for all
_SEARCHED = 5_000  # characters at either end of a long text that are searched for decisions
_REPEATED = 3  # such lines without orders that are told
_REPLACED = 0.7  # share of the words of a decision that a later one has too, which replaces it
_STALE = 0.4  # if a smaller share of a line's words is new on average, the user said such a thing several times
_WORD = lazy_pattern(r"[^\W\d]+")
_TOKEN = lazy_pattern(r"\w+")
_STOP = lazy_pattern(r"[\n。！？؟]|[.!?](?=\s|$)")
_FAR = 200  # characters on either side of a decision that are searched for the ends of its sentence

# Words of the agent's decisions. A contrast ("this instead of that") is a decision only if the agent says that it makes
# the change (`_MAKES`).
_DECISION = lazy_pattern(
    r"""\b(?:decided|decision|going\ with|go\ with|opted|chose|settled\ on|stick\ (?:with|to)
        |(?P<contrast>instead\ of|rather\ than)|we(?:'ll|’ll|\ will)\ use|agreed\ (?:on|to|that|with)
        |entschieden|entscheide\w*|entscheidung|stattdessen|anstatt|décid\w+|plutôt\ que|au\ lieu
        |decid(?:í|i(?!ng\b))\w*|en\ lugar|en\ vez)\b
    | (?=[^\x00-\u024f]) (?:\b(?:решил\w*|решение|вместо)\b
        |决定|決定|改用|选择|選擇|而不是|採用|采用|ことにし|代わりに|결정|대신|قرر|اخترت|بدل)""",
    re.VERBOSE,
)
_MAKES = lazy_pattern(
    r"\b(?:i|i['’](?:ll|m|ve)|we|we['’](?:ll|re|ve)|let['’]s|let me|now|changed|switched|replaced|moved|to use)\b"
)
_CODE = lazy_pattern(r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*(?:>|#)[^\n]*", re.DOTALL | re.MULTILINE)
# What a decision does away with: "instead of Redis", "not Redis", "drop Redis".
_REJECTED = lazy_pattern(
    r"""(?:(?<!\w)(?:instead\ of|rather\ than|drop(?:ped|ping)?|forget(?:\ about)?|no\ longer|away\ from
            |replac(?:ed?|ing)|abandon(?:ed|ing)?|switch(?:ed|ing)?\ from|statt|anstatt|anstelle\ von|plutôt\ que
            |au\ lieu\ de|en\ lugar\ de|en\ vez\ de)
        |(?:,|\band)\ not)\ (?P<old>[^\n.,:;!?()]{1,80})""",
    re.VERBOSE,
)
_REASON = lazy_pattern(r";|\s(?:because|since|as|so|weil|denn|parce que|car|porque)\b")
_AFTER_OLD = lazy_pattern(r"\s(?:because|since|as|for|so|after|when|with|by|to|in|which|that|weil|da|für|pour|para)\b")
# Words that say what is done with a choice, not what was chosen or for what.
_FORM_WORDS = frozenset(
    """a an the and or of for to in on at by is are was be it its this that we i you they our my will ll m ve re
    use used using going go went with from decided decide decision chose choose chosen because since so as now not
    instead rather than after all drop change changed switch settled opted let s actually mind about final
    answer take""".split()
)
_DECISIONS, _DECIDED = 2, 320  # decisions of one text, and characters of each


def decisions_of(text: str) -> tuple[str, ...]:
    """The sentences of an answer that state a decision, each on one line: what was chosen, and usually why. Questions,
    code, quotations and headlines do not count."""
    if next(_sentences(text, _DECISION), None) is None:
        return ()  # most texts: a quick check
    plain = _CODE.sub(_blank, text)
    decisions = dict.fromkeys(
        clip(text[start:end], _DECIDED)
        for start, end in _sentences(plain, _DECISION)
        if _is_decision(_lower(plain[start:end]))
    )
    return tuple(decisions)[-_DECISIONS:]


def _blank(match: re.Match[str]) -> str:
    """A replacement of the same length without words, so that positions stay the same. Whole lines end a sentence."""
    return ("`" if match[0][0] == "`" and match[0][:3] != "```" else "\n") * len(match[0])


def _is_decision(sentence: str) -> bool:
    if sentence.rstrip().endswith(("?", "？")):
        return False
    plain = any(match["contrast"] is None for match in _DECISION.finditer(sentence))
    return plain or _MAKES.search(sentence) is not None


def line_of(text: str) -> str:
    """A text of the user on one line. If a long text has orders in the middle, which would be left out, they are put
    between its two ends: those near the ends first, as text farther inside was probably pasted. No order is cut."""
    if len(text) <= _LINE:
        return clip(text, _LINE)
    spans = [(start, end) for start, end in order_spans(text) if end - start <= _ORDER]
    head = max([_HEAD, *(end for start, end in spans if start < _HEAD)])
    tail = min([len(text) - _TAIL, *(start for start, end in spans if end > len(text) - _TAIL)])
    if head >= tail:
        return clip(text, len(text))
    taken: list[tuple[int, int]] = []
    room = _ORDERS
    for start, end in sorted(spans, key=lambda span: (min(span[0], len(text) - span[1]), span)):
        if head <= start and end <= tail and room >= min(end - start, _ORDERS):
            taken.append((start, end))
            room -= end - start
    if not taken and (head, tail) == (_HEAD, len(text) - _TAIL):
        return clip(text, _LINE)
    pieces = ((0, head), *sorted(taken), (tail, len(text)))
    return " … ".join(clip(text[start:end], end - start) for start, end in pieces)


def gives_orders(text: str) -> bool:
    """Whether a text of the user, or a line of it, forbids, requires or allows something."""
    return bool(orders_in(text))


def _lower(text: str) -> str:
    """The text in lower case, if positions stay the same: it is searched three times as fast as with ignored case."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def _sentences(text: str, sign: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The ranges of sentences that contain `sign`."""
    lower = _lower(text)
    ends = [(0, len(text))] if len(text) <= 2 * _SEARCHED else [(0, _SEARCHED), (len(text) - _SEARCHED, len(text))]
    for first, last in ends:
        done = first
        for match in sign.finditer(lower, first, last):
            if match.start() >= done:
                start = max(first, match.start() - _FAR)
                start = max((stop.end() for stop in _STOP.finditer(text, start, match.start())), default=start)
                stop = _STOP.search(text, match.end(), done := min(last, match.end() + _FAR))
                done = stop.end() if stop is not None else done
                yield start, done


def standing(texts: Sequence[str], others: Collection[int] = ()) -> list[int]:
    """The positions of the decisions in `texts`, given in order, that no later one replaces: one in nearly the same
    words does, and one about the same thing that does away with what was chosen. Texts at the positions `others` are no
    decisions, but may do away with one."""
    words = {index: frozenset(_WORD.findall(text.lower())) for index, text in enumerate(texts) if index not in others}
    reversals: list[tuple[frozenset[str], frozenset[str]]] = []  # what later texts do away with, and about what
    later: list[frozenset[str]] = []  # the words of later decisions
    kept: list[int] = []
    for index in range(len(texts) - 1, -1, -1):
        own = [*_reversals(texts[index])]
        if (mine := words.get(index)) is not None:
            chosen = _tokens(_REASON.split(texts[index].lower(), maxsplit=1)[0]).difference(*(old for old, _ in own))
            repeated = any(len(mine & one) >= _REPLACED * min(len(mine), len(one)) for one in later)
            if not repeated and not any(old <= chosen and chosen & about - old for old, about in reversals):
                kept.append(index)
            later.append(mine)
        reversals += own
    return kept[::-1]


def _reversals(text: str) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """What sentences of a text do away with, each with the words of its sentence that tell about what."""
    for start, end in _sentences(text, _REJECTED):
        sentence = text[start:end].lower()
        for match in _REJECTED.finditer(sentence):
            if old := _tokens(_AFTER_OLD.split(match["old"], maxsplit=1)[0]):
                yield old, _tokens(sentence)


def _tokens(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(text)) - _FORM_WORDS


def most_telling(lines: Sequence[str], orders: Sequence[bool], *, task: bool = True) -> list[int]:
    """The positions of `lines`, each a text of the user, the most important first: the first line if it is the `task`,
    then lines that give `orders`, then the newest. Lines that were said several times in nearly the same words come
    last, and of those that give no orders only the newest few; of lines in exactly the same words, the newest is not
    counted as a repetition."""
    words = [frozenset(_WORD.findall(line.lower())) for line in lines]
    newest = {line_words: index for index, line_words in enumerate(words)}
    often = Counter(word for line_words in newest for word in line_words)

    def rank(index: int) -> tuple[bool, bool, int]:
        # `fsum`, so that the sum does not depend on the order of the set, which differs between processes.
        new = fsum(1 / often[word] for word in words[index]) / max(1, len(words[index]))
        return newest[words[index]] != index or new < _STALE, not orders[index], -index

    first = min(len(lines), int(task))
    ranks = {index: rank(index) for index in range(first, len(lines))}
    ranked = sorted(ranks, key=ranks.__getitem__)
    repeated = [index for index in ranked if ranks[index][:2] == (True, True)]
    dropped = frozenset(repeated[_REPEATED:])
    return [*range(first), *(index for index in ranked if index not in dropped)]
