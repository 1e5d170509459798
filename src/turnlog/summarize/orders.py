"""The sentences in which a user forbids or requires something, in the user's own words: only what was typed counts
(`typed.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from ..log.messages import Message, Text, ToolResult, text_of
from ..view.program_prefaces import is_preface
from .failures import refusal_of
from .paste_forms import form
from .pastes import ENDS, LONG_LINE, has_typed_pieces, typed_lines, typed_pieces
from .reading import is_output

# -- order words -----------------------------------------------------------------------------------
#
# The words by which a sentence forbids or requires something, in several languages, as data.
#
# To add a language, add an entry to `LANGUAGES`. All expressions are searched in lower-case text:
#
# - `orders` finds the words of an order. `reports` finds places where the same words only tell something ("it never
#   worked"): what `orders` finds inside such a place does not count.
# - `weak` words ("only") count in short sentences; `weak_reports` are their exceptions.
# - With `script`, sentences are searched only if they have one of these characters. This saves time.


class OrderWords(Struct, frozen=True):
    """The words of one language, as regular expressions in verbose form."""

    orders: str
    reports: str = ""
    weak: str = ""
    weak_reports: str = ""
    script: str = ""


LANGUAGES: dict[str, OrderWords] = {
    "English": OrderWords(
        orders=r"""\b(?:
            never | always | must(?:n['’]t)? | do\ not | don['’]?t | you\ (?:can|may)\ (?:only|not)
            | under\ no\ circumstances
            | should(?:n['’]t|\ not|\ never|\ always|\ only) | you\ should | make\ (?:absolutely\ )?sure
            | be\ (?:very\ )?(?:sure|careful) | refrain | from\ now\ on | at\ all\ times | keep\ in\ mind
            | remember\ (?:to|that|not) | stick\ (?:to|with) | (?:not|never)\ allowed | forbidden | prohibited
            | mandatory
            | off[-\ ]limits | no\ matter\ what | important(?:ly)?: | no\ longer\ (?:use|need|want|have\ to)
            | leave\ (?:[^.]|\.\b){1,60}(?:alone|as\ (?:it\ )?is|untouched|unchanged|out)
            | keep\ (?:[^.]|\.\b){1,60}(?:unchanged
            |intact|as\ is)
            | needs?\ (?:my|our)\ (?:prior\ |explicit\ |written\ )?(?:approval|ok|okay|consent|permission|sign-?off)
            | i\ (?:do\ not|don['’]?t|never|always|only)\ (?:want|like|accept|allow)
            # taken back, allowed again, corrected
            | you\ (?:may|can)\ (?:(?:[^.?]|\.\b){1,80}\ )?(?:now|again|after\ all|from\ now\ on) | (?:may|can)\ now\ be
            | (?:ok|okay|fine|allowed|back)\ (?:now|again|after\ all) | no\ longer\ (?:has\ to|appl(?:y|ies)|holds?)
            | feel\ free\ to | no\ need\ to | (?:ok|okay|fine|allowed)\ (?:now\ )?to
            | you\ (?:do\ not|don['’]?t)\ (?:have|need)\ to | change[d]?\ my\ mind | scratch\ that | correction:
            | forget\ (?:about|what|that|my)
            )(?!\w)""",
        weak=r"""\b(?:only | ensure | avoid | every\ time | whenever | without\ (?:\w+ing|my|using) | prefer | instead
            | use\ (?:[^.]|\.\b){1,40},?\ not | ask\ (?:me|first|before) | stop\ \w+ing | at\ (?:most|least)
            | no\ more\ than
            | (?:can|may)\ only | keep\ (?:[^.]|\.\b){1,60}\ (?:under|below|within|shorter\ than)
            | use\ (?:[^.]|\.\b){1,60}\ (?:throughout|everywhere) | are\ (?:confidential|out\ of\ scope)
            )(?!\w)
            # at the beginning of a sentence
            | (?:^|(?<=[.!?:\n]))\W{0,4}(?:
                (?:please\ )?(?:(?:exclude|omit|ignore|leave\ out)\b
                    |(?:tell|ask|inform|notify|warn)\ (?:[^.]|\.\b){1,60}\ (?:before|first|when|if)\b)
                | (?:every|each)\ (?:[^.,;:]|\.\b){1,60}
                    \ (?:needs|gets|has\ to|starts\ with|ends\ with|goes\ (?:in|to))\b
                | (?:if|when|before|after|as\ soon\ as)\ (?:[^.,;:]|\.\b){1,100},\ (?:please\ )?
                    (?:ask|tell|hand|stop|call|notify|inform|warn|escalate|let\ me\ know|wait|check\ with)\b
                | no\ (?!(?:one|idea|problems?|luck|changes?\ (?:to|so)|differences?|errors?|issues?|responses?
                        |results?|answers?|signs?|matter|worries|way|reason|longer|need|doubt|wonder
                        |more\ questions)\b)
                    (?:[\w-]+\ ){1,4}(?:without|unless|until|before|between|for|in|on|please)\b
                    (?![^.]*\b(?:was|were|is|are|has|have|had|so\ far|yet)\b)
                | no\ (?!(?:errors|issues|questions|changes|differences|problems|results|worries|comments|tests
                        |hits)\b)
                    (?:[\w-]+\ )?\w{3,}s(?=[.!\n]|$)
                )
            | until\ (?:i|we)\ (?:say|tell|approve|confirm|agree|decide)\b""",
        reports=r"""\b(?:
            (?:it|he|she|they|this|that|there|which|who|has|have|had|['’]ve|['’]s|is|are|was|were|gets?|been
            |i['’]?m|users?
                |that\ should)
                \ (?:also\ |just\ |still\ |really\ |almost\ |probably\ |currently\ )?(?:never|always|only|instead)
            | i\ (?:also\ |just\ |still\ |really\ |almost\ )?(?:never|always|only)(?!\ (?:want|like|accept|allow))
            | you\ (?:also\ |just\ |still\ )?(?:never|always|only)\ (?:\w+ed|did|had|got|made|wrote|ran|forgot|put
            |gave|have|has)
            | (?:i|they|we|you|users?|these|those|but|tests?|things)\ (?:still\ |also\ |just\ |even
            \ |really\ |actually\ )?
                (?:do\ not|don['’]?t)(?!\ (?:want|like|accept|allow|(?:have|need)\ to|use|do|add|write|commit|put
                |change))
            | why\ (?:do\ not|don['’]?t) | (?:do\ not|don['’]?t)\ (?:know|think|understand|see|believe|seem
            |remember|care|mind|you(?!\ (?:dare|ever)\b))
            | if\ (?:you|it|they|i|we)\ (?:do\ not|don['’]?t)
            | (?:there|something|i|someone|somebody)\ must | must[-\ ](?:be\ (?:a|an|some|something|wrong|missing
            |because|due|caused)|have)
            | (?<!,\ )(?:never|always)\ (?!press|pass|process|address|access|bypass|guess|miss|compress|focus|need|embed
            |seed|feed)\w+(?:s|ed)\b
            | never\ (?:work|happen|end) | never\ ?mind | as\ always | almost\ (?:never|always)
            | i['’]?(?:ll|\ will)\ (?:make\ sure|ensure|be\ sure|stick)
            | just\ to\ make\ sure | i\ (?:just\ )?(?:want|wanted|need|tried)\ to\ (?:make\ sure|be\ sure)
            | you\ should\ (?:have|see|be\ able|know) | stick\ with\ the\ current
            )""",
        weak_reports=r"""\bthe\ only\ [^.]{1,80}\ (?:was|were|had)\b
            | \b(?:gives?|lets?|allows?|helps?|enables?)\ (?:you|people|users|developers|teams)\ [^.]{1,100}\bwithout
            | ^\W*(?:this|that|it|these|those|there|the|he|she|they|an?|i|\*\*)\b(?!['’]d\ prefer
            |\ (?:would\ )?prefer) | ^\W*\*\*
            | \b(?:(?:the|its|their|it\ can)\ only | not\ only | if\ only | only\ (?:one|thing|way|reason|problem
            |difference|because)
            | \w+[-_]only | only[-_]\w+ | \w+s\ (?:can|could)\ (?:\S+\ )+without | without\ (?:knowing|meaning|it\b
            |them\b|realizing) | at\ least\ (?:it|we|i|now|that|for|be)
            | (?:to|will|would|helps?|['’]ll)\ (?:ensure|avoid) | would\ prefer\ if\ not | you\ prefer
            | guidance\ to\ prefer)""",
    ),
    "German": OrderWords(
        orders=r"""\b(?:
            nie | niemals | immer | nicht | kein(?:e[nmrs]?)? | nur | ausschlie(?:ß|ss)lich | muss | musst
            | müssen | müsst
            | darf | darfst | dürfen | sollst | soll | sollen | sollte[nt]? | statt | stattdessen | lieber | unbedingt
            | ab\ jetzt | ab\ sofort | künftig | in\ zukunft | ohne | vermeide\w* | verboten | erlaubt | pflicht
            | stell\w*\ [^.]{0,20}sicher | achte\ (?:darauf|auf) | denk\w*\ daran | merk\w*\ dir | korrektur
            | lass\w*\ [^.]{1,60}(?:in\ ruhe|unverändert|so|weg)
            )\b""",
        reports=r"""^\W*(?:das|es|ich|er|sie|da|hier|warum|wieso|weshalb|leider|irgendwie|was|wie|wo|ist|hat|kann)\b
            (?!.*\b(?:darf|darfst|dürfen|muss|musst|müssen|soll\w*|verboten|erlaubt)\b).*$ | nicht\ nur""",
    ),
    "French": OrderWords(
        orders=r"""\b(?:ne\ \w+\ (?:pas|jamais|plus) | n['’]\w+\ (?:pas|jamais|plus) | ne\ pas | jamais | toujours
            | uniquement
            | seulement | doi[st] | devez | doivent | il\ faut | plutôt | au\ lieu | évite[rz]? | sauf | désormais
            | interdit\w*
            | assure\w*\ (?:toi|vous) | assure[rz]?[-\ ](?:toi|vous) | surtout\ pas)(?!\w)""",
        reports=r"""\b(?:(?:je|il|elle|ça|cela|on|ils)\ (?:ne\ |n['’])\w+ | c['’]est\ toujours | pourquoi\ .*)""",
    ),
    "Spanish, Portuguese, Italian": OrderWords(
        orders=r"""\b(?:nunca | jam[áa]s | siempre | sempre | s[oó]lo | solamente | somente | apenas | solo\ (?:usa
            |en|si|con)
            | debe[ns]? | debes | deve | devem | devi | dovete | evita\w* | senza | sin\ \w+r | excepto | exceto
            | tranne | invece
            | en\ lugar | en\ vez | em\ vez | importante: | recuerda | lembre | ricorda | ya\ no | prohibido
            | proibido | vietato
            | no\ (?:uses|cambies|toques|borres|modifiques|hagas|escribas|a[ñn]adas|olvides) | não\ \w+
            | non\ \w+re | mai
            | aseg[úu]rate | certifique-se | assicurati)(?!\w)""",
        reports=r"""\b(?:(?:eu|ele|ela|isso|isto|io|esso)\ (?:não|sempre|nunca|mai) | não\ (?:sei|funciona|é|está
            |consigo|entendi))""",
    ),
    "Russian": OrderWords(
        orders=r"""\b(?:никогда | всегда | нельзя | только | долж\w+ | не\ \w+(?:й|йте|ть|ти) | вместо
            | запомни\w* | кроме | без
            | обязательно | убедись | запрещ\w+)\b""",
        reports=r"""\b(?:я|он|она|оно|это|мы)\ (?:всегда|никогда|только|не)\b""",
        script="\u0400-\u04ff",
    ),
    "Chinese, Japanese, Korean": OrderWords(
        orders=r"""必须|必須|务必|務必|不要|不得|不可|不能|不准|不许|别|請勿|请勿|禁止|只能|只用|只在|仅|僅|总是|始终|始終|永远|永遠|从不|绝不|絕不
            |应该|應該|改为|改用|改成|而不是|注意|记住|記住|除非|以后|今后|避免|确保|確保
            |必ず|しないで|ないでください|絶対|決して|常に|いつも|だけ|のみ|代わりに|べき|なければ|避け|覚えて|今後|以外|てはいけ|訂正
            |항상|절대|반드시|지\s?마|말아|대신|금지|기억|앞으로|제외""",
        reports=r"""不能(?:用了|运行|工作|显示|打开)|别的|特别|分别|区别|类别|级别|个别|別の|特別|区別""",
        script="\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af",
    ),
    "Arabic, Hebrew, Hindi": OrderWords(
        orders=r"""دائم|أبد|لا\s+ت|يجب|فقط|بدل|بدون|ممنوع|تجنب|تذكر|إلا|من\ الآن|ينبغي
            |תמיד|לעולם|אסור|חובה|אל\s|רק\s|במקום|हमेशा|कभी|केवल|सिर्फ|ज़रूर|मत\s""",
        script="\u0590-\u06ff\u0900-\u097f",
    ),
}
"""The words of each language."""


_LONGEST = 600
"""Characters of a sentence. A longer one has no end of its own, so it is likely to be data."""

_FEWEST = 2  # words of a sentence that says something by itself

_SHORT = 25  # words of a sentence in which weak words count


class _Language(Struct, frozen=True):
    """The expressions of one language, compiled."""

    orders: re.Pattern[str]
    reports: re.Pattern[str] | None
    weak: re.Pattern[str] | None
    weak_reports: re.Pattern[str] | None
    script: re.Pattern[str] | None

    @classmethod
    def of(cls, words: OrderWords) -> _Language:
        """The language of these words."""
        reports, weak, weak_reports = (
            re.compile(source, re.VERBOSE) if source else None
            for source in (words.reports, words.weak, words.weak_reports)
        )
        script = re.compile(f"[{words.script}]") if words.script else None
        return cls(re.compile(words.orders, re.VERBOSE), reports, weak, weak_reports, script)

    def may_say(self, lower: str) -> bool:
        """Whether a text in lower case has any of the words at all: most texts have none, and need no closer look."""
        if self.script is not None and self.script.search(lower) is None:
            return False
        return self.orders.search(lower) is not None or (self.weak is not None and self.weak.search(lower) is not None)

    def says(self, lower: str) -> bool:
        """Whether a sentence in lower case has words of an order."""
        if self.script is not None and self.script.search(lower) is None:
            return False
        if _outside(self.orders, self.reports, lower):
            return True
        weak = self.weak is not None and self.weak.search(lower) is not None and len(_WORD.findall(lower)) <= _SHORT
        if not weak or self.weak is None or (self.reports is not None and _outside(self.reports, None, lower)):
            return False
        return _outside(self.weak, self.weak_reports, lower)


@cache
def _languages() -> list[_Language]:
    return [_Language.of(words) for words in LANGUAGES.values()]


def _outside(sign: re.Pattern[str], exceptions: re.Pattern[str] | None, lower: str) -> bool:
    """Whether `sign` is found outside of the places that `exceptions` finds."""
    places: list[tuple[int, int]] | None = None
    for match in sign.finditer(lower):
        if places is None:
            places = [exception.span() for exception in exceptions.finditer(lower)] if exceptions is not None else []
        if not any(first <= match.start() < max(last, first + 1) for first, last in places):
            return True
    return False


_STOP = lazy_pattern(
    r"[。！？؟]|(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bz\.B)(?<!\bd\.h)(?<!\bca)(?<!\bcf)[.!?]+(?=[\s\"')\]]|$)"
)
_WORD = lazy_pattern(r"[^\W\d]+")


def orders_of(message: Message) -> tuple[str, ...]:
    """The sentences of a user's message that forbid, require or allow something, in order, each as it stands there.
    What a user said when refusing a call counts as well."""
    if message.role != "user" or message.by_program or is_preface(message) or is_output(message):
        return ()
    sentences: list[str] = []
    for part in message.parts:
        if isinstance(part, Text):
            sentences += orders_in(part.text)
        elif isinstance(part, ToolResult):
            sentences += _said_in_refusal(text_of(Message("user", part.parts)) if part.parts else "")
    return tuple(dict.fromkeys(sentences))


def _said_in_refusal(text: str) -> tuple[str, ...]:
    words = refusal_of(text) or ""
    return (words,) if 0 < len(words) <= _LONGEST else orders_in(words)


def orders_in(text: str) -> tuple[str, ...]:
    """The same of one text of the user."""
    return tuple(text[start:end] for start, end in order_spans(text))


def order_spans(text: str) -> tuple[tuple[int, int], ...]:
    """The places of these sentences in a text of the user."""
    return (_spans_seen if len(text) <= _MOST_SEEN else _spans_if_any)(text)


def _spans_if_any(text: str) -> tuple[tuple[int, int], ...]:
    return _order_spans(text) if _may_say(text) or (len(text) > LONG_LINE and has_typed_pieces(text)) else ()


# The messages of a long session are read again at each decision. Long ones are kept only if they say an order.
_MOST_SEEN = 2_000  # characters
_spans_seen = lru_cache(maxsize=5_000)(_spans_if_any)


@lru_cache(maxsize=2_000)
def _order_spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(span for piece in typed_pieces(text) for span in _sentences(text, *piece)))


def _may_say(text: str) -> bool:
    """Whether a text has any words of an order where the user's own lines may be (see `typed_lines`)."""
    ends = (text,) if len(text) <= ENDS + LONG_LINE + ENDS else (text[: ENDS + LONG_LINE], text[-ENDS:])
    if any(_NAMES_RULES.search(end) for end in ends):
        return True
    return any(language.may_say(lower) for lower in map(str.lower, ends) for language in _languages())


def is_order(sentence: str) -> bool:
    """Whether one sentence forbids, requires or allows something."""
    lower = sentence.lower()
    return any(language.says(lower) for language in _languages()) and not _asks(lower)


def _asks(lower: str) -> bool:
    """Whether a sentence only asks a question. A request in the form of a question is an order."""
    asks = lower.rstrip(" \"')").endswith(("?", "？"))
    return asks and re.match(r"\W*(?:and |also |so )?(?:please|(?:can|could|would|will) you)\b", lower) is None


def _sentences(text: str, place: int, plain: str) -> Iterator[tuple[int, int]]:
    """The places of the user's orders in a text, of which `plain` is the piece that begins at `place`. A sentence that
    ends with a colon includes the list under it; what is listed under the word "rules", or stands behind "rule one:",
    is an order, whatever its words."""
    behind, listed = 0, False
    for first, last in _paragraphs(plain):
        listed = _lists_rules(plain[behind:first], plain[first:last], listed)
        start, behind = first, last
        is_rule = listed or _STATED.match(plain, first, last) is not None
        while start < last:
            stop = _STOP.search(plain, start, last)
            end = stop.end() if stop is not None else last
            sentence, words = text[place + start : place + end], plain[start:end].strip()
            begin, size = place + start + len(sentence) - len(sentence.lstrip()), len(sentence.strip())
            says = is_order(words) or (is_rule and not _only_heads(words))
            if 0 < size <= _LONGEST and _says_something(words) and says:
                yield begin, begin + size
            start, is_rule = end, listed


_RULES = (
    r"rules?|constraints?|requirements?|restrictions?|guard\ ?rails?|guidelines|boundaries|ground\ rules|don['’]?ts"
    r"|regeln?|vorgaben?|règles?|contraintes?|reglas?|规则|要求|ルール"
)
_LEAD = (
    r"\W*(?:(?:oh|ok|okay|right|also|and|so|here|are|is|these|please|follow|mind|my|the|our|a|an|some|one|two|three|four|five"
    r"|another|more|few|new|key|hard|strict|important|general|basic|first|second|third|last|house|golden|only|\d+)[,\s]+)*+"
)
_NAMES_RULES = lazy_pattern(rf"(?i)(?<!\w)(?:{_RULES})(?!\w)")
_HEADING = lazy_pattern(rf"(?i){_LEAD}(?:{_RULES})\b[^.!?\n:：]{{0,60}}[:：.]?\s*$")
_LIST = lazy_pattern(rf"(?i){_LEAD}(?:{_RULES})\b[^.!?\n:：]{{0,60}}[:：]\s*\n")
_STATED = lazy_pattern(rf"(?i){_LEAD}(?:{_RULES})(?:\s(?:one|two|three|four|five|six|#?\d+))?\s?[:：]\s*\S")


def _lists_rules(between: str, paragraph: str, before: bool) -> bool:
    """Whether a paragraph is a list of rules: because it begins so, or because it goes on with one. `between` is what
    stands between it and the paragraph before, of which `before` tells the same."""
    if _LIST.match(paragraph) is not None:
        return True
    *lines, bullet = between.split("\n")
    if not bullet.strip():
        return False
    titles = [line for line in lines if line.strip()]
    return _HEADING.match(titles[-1]) is not None if titles else before


def _only_heads(words: str) -> bool:
    """Whether a sentence only says that rules follow."""
    return "\n" not in words and _HEADING.match(words) is not None


def _says_something(plain: str) -> bool:
    words = _WORD.findall(plain)
    return len(words) >= _FEWEST or any(not word.isascii() for word in words)


def _paragraphs(plain: str) -> Iterator[tuple[int, int]]:
    """The ranges of lines that belong together: lines that are wrapped, or a list under a line that ends with a colon.
    Lines that are not the user's own words are left out."""
    begin = end = -1
    head = ""  # the last line of the range
    listing = False
    for first, last, line, is_own in typed_lines(plain):
        if not is_own:
            if begin >= 0:
                yield begin, end
            begin = -1
            continue
        bullet = form("bullet").match(line)
        wraps = begin >= 0 and bullet is None and line.lstrip()[:1].islower() and head.rstrip()[-1:] not in ".!?:;"
        listing = begin >= 0 and bullet is not None and (listing or head.rstrip().endswith(":"))
        if begin >= 0 and not wraps and not (listing and last - begin <= _LONGEST):
            yield begin, end
            begin = -1
        if begin < 0:
            begin, listing = first + (bullet.end() if bullet is not None else 0), False
        end, head = last, line
    if begin >= 0:
        yield begin, end
