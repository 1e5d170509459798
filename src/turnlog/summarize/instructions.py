"""What the user said, which of it a digest keeps first, and what the agent decided; each on one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum

from .reading import clip

_LINE = 300  # characters of what the user said at once
_HEAD, _ORDERS, _TAIL = 110, 130, 50  # the same where orders stand in the midst: their shares
_SEARCHED = 5_000  # characters at either end of a long text in which orders are looked for
_STALE = 0.4  # of the words of a line are new, on the average: with less, the user said such a thing several times
_WORD = re.compile(r"[^\W\d]+")
_STOP = re.compile(r"[\n。！？؟]|[.!?](?=\s|$)")
_FAR = 200  # characters around an order that its sentence is looked for in

# What orders, constraints and corrections are said with; of each language what is not said all the time.
_CONSTRAINT = re.compile(
    r"""\b(?:must|never|always|don't|don’t|do\ not|only|should|instead|prefer|make\ sure|without|avoid|from\ now\ on
        |whenever|every\ time|important|remember|keep\ in\ mind|note\ that|by\ the\ way|unless|except|ask\ me
        |no\ longer|any\ ?more|actually|correction|changed\ my\ mind|forget|forbidden|not\ allowed|at\ most|leave
        # German
        |nie|niemals|immer|nicht|kein\w*|nur|ausschlie(?:ß|ss)lich|muss|musst|müssen|darf\w*|dürfen|soll\w*|statt|stattdessen
        |lieber|wichtig|ab\ jetzt|ab\ sofort|künftig|ohne|außer|vermeide\w*|merk\w*|denk\ daran|verboten|korrektur
        # French, Spanish, Portuguese, Italian
        |jamais|toujours|ne\ \w+\ pas|ne\ pas|uniquement|seulement|doi[st]|devez|plutôt|au\ lieu|évite\w*|sauf|désormais
        |nunca|jamás|siempre|sempre|s[oó]lo|solamente|somente|apenas|debe[ns]?|deve|evita\w*|senza|excepto|exceto
        |invece|en\ lugar|en\ vez|em\ vez|importante|recuerda|lembre|ricorda|ya\ no|não
    )\b
    | (?=[^\x00-\u024f]) (?:  # looked at only where such a letter stands
    # Russian
    \b(?:никогда|всегда|нельзя|только|долж\w+|не|вместо|важно|запомни\w*|кроме|без)\b
    # Chinese, Japanese, Korean
    |必须|必須|务必|務必|不要|不得|不能|不可|不再|别|請勿|请勿|禁止|只能|只用|只在|仅|僅|总是|始终|始終|永远|永遠|从不|绝不|絕不
    |应该|應該|改为|改用|改成|更正|而不是|注意|记住|記住|重要|除非|除了|以后|今后|避免
    |必ず|しないで|ないでください|絶対|決して|常に|いつも|だけ|のみ|代わりに|べき|なければ|避け|覚えて|今後|以外|てはいけ|訂正
    |항상|절대|반드시|지\s?마|말아|대신|금지|중요|기억|앞으로|제외
    # Arabic, Hebrew, Hindi
    |دائم|أبد|لا\s+ت|يجب|فقط|بدل|بدون|ممنوع|تجنب|مهم|تذكر|إلا|من\ الآن|ينبغي
    |תמיד|לעולם|אסור|חובה|אל\s|רק\s|במקום|हमेशा|कभी|केवल|सिर्फ|ज़रूर|मत\s)""",
    re.VERBOSE,
)

# What a decision of the agent's is told with. That one thing is so and not another is no decision, but where the agent
# says that it makes it so.
_DECISION = re.compile(
    r"""\b(?:decided|decision|going\ with|go\ with|opted|chose|settled\ on|stick\ (?:with|to)
        |(?P<contrast>instead\ of|rather\ than)|we(?:'ll|’ll|\ will)\ use|agreed\ (?:on|to|that|with)
        |entschieden|entscheide\w*|entscheidung|stattdessen|anstatt|décid\w+|plutôt\ que|au\ lieu
        |decid(?:í|i(?!ng\b))\w*|en\ lugar|en\ vez)\b
    | (?=[^\x00-\u024f]) (?:\b(?:решил\w*|решение|вместо)\b
        |决定|決定|改用|选择|選擇|而不是|採用|采用|ことにし|代わりに|결정|대신|قرر|اخترت|بدل)""",
    re.VERBOSE,
)
_MAKES = re.compile(
    r"\b(?:i|i['’](?:ll|m|ve)|we|we['’](?:ll|re|ve)|let['’]s|let me|now|changed|switched|replaced|moved|to use)\b"
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*(?:>|#)[^\n]*", re.DOTALL | re.MULTILINE)
_DECISIONS, _DECIDED = 2, 160  # of one text, and characters of each


def decisions_of(text: str) -> tuple[str, ...]:
    """The sentences of an answer that tell a decision, each on one line: what was chosen, and mostly why. None that
    ask, and none for words that stand in code, in what is quoted, or in a headline."""
    if next(_sentences(text, _DECISION), None) is None:
        return ()  # as most: quickly found
    plain = _CODE.sub(_blank, text)
    found = dict.fromkeys(
        clip(text[start:end], _DECIDED)
        for start, end in _sentences(plain, _DECISION)
        if _is_decision(_lower(plain[start:end]))
    )
    return tuple(found)[-_DECISIONS:]


def _blank(found: re.Match[str]) -> str:
    """Nothing to be found, of the same length, so that all else stays at its place. Whole lines end a sentence."""
    return ("`" if found[0][0] == "`" and found[0][:3] != "```" else "\n") * len(found[0])


def _is_decision(sentence: str) -> bool:
    if sentence.rstrip().endswith(("?", "？")):
        return False
    plain = any(found["contrast"] is None for found in _DECISION.finditer(sentence))
    return plain or _MAKES.search(sentence) is not None


def line_of(text: str) -> str:
    """What the user said, on one line. What gives an order in the midst of a long text, which would be left out, stands
    between its two ends: what is near to them first, since behind that stands what was pasted."""
    if len(text) <= _LINE:
        return clip(text, _LINE)
    within, room = range(_HEAD, len(text) - _TAIL), _ORDERS
    found = [one for one in _sentences(text, _CONSTRAINT) if one[0] in within and one[1] in within]
    taken: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda one: (min(one[0], len(text) - one[1]), one)):
        if room >= min(end - start, _ORDERS):
            taken.append((start, end))
            room -= end - start
    if not taken:
        return clip(text, _LINE)
    told = (clip(text[start:end], _ORDERS) for start, end in sorted(taken))
    return " … ".join([clip(text[:_HEAD], _HEAD), *told, clip(text[-_TAIL:], _TAIL)])


def gives_orders(line: str) -> bool:
    """Whether what the user said sounds like an order that lasts, a constraint or a correction."""
    return _CONSTRAINT.search(_lower(line)) is not None


def _lower(text: str) -> str:
    """Small letters, each at its place: in these is searched in a third of the time that letters of any size take."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def _sentences(text: str, sign: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where sentences with such a sign stand."""
    lower = _lower(text)
    ends = [(0, len(text))] if len(text) <= 2 * _SEARCHED else [(0, _SEARCHED), (len(text) - _SEARCHED, len(text))]
    for first, last in ends:
        done = first
        for found in sign.finditer(lower, first, last):
            if found.start() >= done:
                start = max(first, found.start() - _FAR)
                start = max((stop.end() for stop in _STOP.finditer(text, start, found.start())), default=start)
                stop = _STOP.search(text, found.end(), done := min(last, found.end() + _FAR))
                done = stop.end() if stop is not None else done
                yield start, done


def most_telling(lines: Sequence[str], orders: Sequence[bool], *, task: bool = True) -> list[int]:
    """The positions of `lines`, each something that the user said, the most important first: the first of it if that
    is the `task`, what gives `orders`, the newest; and behind all that what was said in nearly the same words again and
    again, but for the newest of what was said in the very same."""
    words = [frozenset(_WORD.findall(line.lower())) for line in lines]
    newest = {found: at for at, found in enumerate(words)}
    often = Counter(word for found in newest for word in found)

    def rank(at: int) -> tuple[bool, bool, int]:
        # Summed so that it is the same in whatever order this process has the words of a set.
        new = fsum(1 / often[word] for word in words[at]) / max(1, len(words[at]))
        return newest[words[at]] != at or new < _STALE, not orders[at], -at

    first = min(len(lines), int(task))
    return [*range(first), *sorted(range(first, len(lines)), key=rank)]
