"""Finds secrets in texts and JSON values, and replaces them with marks.

A mark is `[redacted:KIND:TAG]`. The tag, four hex digits, is the same for the same secret, so that a model can
distinguish two secrets. It is a keyed hash cut to 16 bits, which reveals nothing useful about a random key. A password
that can be guessed gets a tag only with the caller's own key, because otherwise anybody could check guesses against the
tag.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

from .._platform.given import flag_given, text_given
from .._platform.lazy import lazy_pattern
from ..errors import InputError
from ..log.messages import compact_json
from .encoded import BYTES, DATA, MEDIA_TYPES, in_base64, in_data_urls
from .json_text import ARGUMENTS, EXACT, MARK, apart_by, cuts, decoded, read
from .named import find_named, has_name, is_placeholder, looks_random, name_kind, plausible
from .shapes import LONG, RUN, SHAPES, SecretShape

# -- sensitive -------------------------------------------------------------------------------------
#
# Secrets that stand near a word or pattern of the user's own: `badge: 4711`, `"caseNumber": "A-77"`.
#
# A word (`badge`, `case number`) is a name: the value behind it is the secret. What a regular expression matches may
# be a name or the secret itself: it is a name if a value follows and it has no digit.

Nearby = Callable[[str], Iterator[tuple[int, int]]]
"""Finds the secrets in a text: the start and end of each."""

_WORD = lazy_pattern(r"\w+(?:[ _-]\w+)*")

_VALUE = lazy_pattern(
    r"(?:\\{0,3}[\"'`])?\]?"
    r"(?:[ \t]{0,12}(?:=>|:=|={1,3}|:)[ \t]{0,12}|(?P<loose>[ \t]{1,12}(?:(?:is|was|of|number|no\.?)[ \t:]{1,3})?#?))"
    r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>(?:(?!(?P=quote))[^\r\n]){1,256}+)(?P=quote)"
    rf"|(?P<plain>{re.escape(MARK)}[^\]\s]{{1,60}}\]|[^\s\"'`<>,;&\\|(){{}}\[\]]{{1,256}}+))"
)
"""What may follow a name: a sign and a value, or words and a value with a digit."""


def nearby(pattern: str) -> Nearby:
    """The function that finds what stands near a word or a pattern. Raises InputError for a pattern that is no regular
    expression, or that matches an empty text."""
    is_word = _WORD.fullmatch(pattern) is not None
    spelled = r"[ _-]?".join(map(re.escape, re.split(r"[ _-]", pattern)))
    try:
        name = re.compile(rf"(?i)(?<![^\W_]){spelled}(?![^\W_])" if is_word else pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"redact: the sensitive pattern {pattern!r} is not a regular expression: {error}") from error
    if name.match(""):
        raise InputError(
            f"redact: the sensitive pattern {pattern!r} matches an empty text, which stands near everything"
        )

    def find(text: str) -> Iterator[tuple[int, int]]:
        for match in name.finditer(text):
            value = _value_at(text, match.end())
            if value is not None:
                yield value
            if not is_word and (value is None or any(map(str.isdigit, match.group()))):
                yield match.span()

    return find


def _value_at(text: str, at: int) -> tuple[int, int] | None:
    """The start and end of the value behind a name that ends at this place."""
    match = _VALUE.match(text, at)
    if match is None:
        return None
    if match["quoted"] is not None:
        return None if is_placeholder(match["quoted"]) else match.span("quoted")
    value = match["plain"].rstrip(".:!?")
    if value.startswith(MARK):  # a mark is no secret, but what stands before it is a name
        return match.span("plain")
    if not value or is_placeholder(value) or (match["loose"] is not None and not any(map(str.isdigit, value))):
        return None
    return match.start("plain"), match.start("plain") + len(value)


# -- examples --------------------------------------------------------------------------------------
#
# Keys that a service's documentation gives as examples. They open nothing, and every tutorial quotes them.

EXAMPLES = frozenset(
    (
        # docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html
        "AKIAIOSFODNN7EXAMPLE",
        "AKIAI44QH8DHBEXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY",
        # docs.stripe.com/keys
        "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
        "sk_test_BQokikJOvBiI2HlWgH4olfQ2",
        "pk_test_TYooMQauvdEDq54NiTphI7jx",
        # jwt.io, the token that its debugger begins with
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
        ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        # learn.microsoft.com/azure/storage/common/storage-use-azurite: the account key of the local emulator
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    )
)
"""Example keys that the built-in kinds do not replace; a pattern of your own does."""


Counts = Counter[str]
"""How many secrets were replaced, by kind."""

_MARK = lazy_pattern(r"\[redacted:([a-z0-9-]{1,40})(?::[0-9a-f]{4})?\]")
_NAME_MARK = lazy_pattern(r"redacted_([a-z0-9-]{1,40})(?:_([0-9a-f]{4}))?")
_KIND = lazy_pattern(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_NOT_RUN = bytes(code if chr(code) in RUN else 0x20 for code in range(256))
_WHOLE = tuple((needle, shape) for shape in SHAPES if not shape.spread for needle in shape.needles)
_SPREAD = tuple((needle, shape) for shape in SHAPES if shape.spread for needle in shape.needles)
_IN_NEEDLES = sorted({char for needle, _ in _WHOLE for char in needle})
_PIECE, _OVERLAP = 1 << 20, 256
"""Long texts are searched for needles in pieces, which overlap so that each needle is in one of them together with the
run around it. This takes little memory."""
_MANY = 2_000
"""If the runs have at least this many characters, it is faster to find first which characters do not occur in them,
because most needles contain one of these. (Encoded data, hashes and logs are long runs of few different characters.)"""
_MAX_DEPTH = 200
_SENSITIVE = "sensitive"
"""The kind of what stands near a word or pattern of the user's."""
_KNOWN_NAMES = 4_000
"""How many names without secrets are remembered: each record of a log repeats a few of them."""
_SPACE = lazy_pattern(r"\s|\.|\\[sWD]|\[\^")
"""Parts of a regular expression that may match a space."""


class Finding(NamedTuple):
    """A secret: its kind, its start and end in the text, and whether it is random, so that nobody can guess it."""

    kind: str
    start: int
    end: int
    random: bool


def has_mark(text: str) -> bool:
    """Whether `text` contains a mark."""
    return MARK in text and _MARK.search(text) is not None


def marks_in(text: str) -> list[tuple[str, int]]:
    """The kinds of the marks in `text`, and where they begin."""
    return [(mark[1], mark.start()) for mark in _MARK.finditer(text)] if MARK in text else []


def first_mark(text: str, *, name: bool = False) -> int:
    """The number of UTF-8 bytes before the first mark in `text`; -1 if there is none. With `name`, the text is a name,
    and the mark has the form for names."""
    mark = (_NAME_MARK if name else _MARK).search(text)
    return -1 if mark is None else len(text[: mark.start()].encode("utf-8", "surrogatepass"))


def counts_text(counts: Mapping[str, int]) -> str:
    """The number of each kind: `2 jwt, 1 password`."""
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))


class Redactor:
    """Replaces secrets with marks.

    `patterns` are regular expressions of your own by kind (`{"staff-id": r"EMP-[0-9]{6}"}`); if a match has a group
    named `secret`, only this group is replaced. `sensitive` are words and regular expressions: values that stand near
    them are replaced (`["badge"]`: the number in `badge: 4711`). `known`: also look for the built-in kinds: tokens of a
    known form (`sk-...`), and values next to names such as `password`. `key` is a secret for computing the TAG of each
    mark; keep it apart from the store. Only with a key do guessable secrets such as passwords get a tag. With `live`,
    redaction is for the disk: a session's requests contain the secrets until it is closed; on disk, and in every
    session opened later, there are only marks. Without it, requests contain marks from the start.
    """

    def __init__(
        self,
        patterns: Mapping[str, str | re.Pattern[str]] | None = None,
        *,
        sensitive: Sequence[str] = (),
        known: bool = True,
        key: bytes = b"",
        live: bool = True,
    ) -> None:
        flag_given("known", known)
        flag_given("live", live)
        if not isinstance(key, bytes):
            raise InputError(f"redact: key must be bytes, not {type(key).__name__}")
        if patterns is not None and not isinstance(patterns, Mapping):
            raise InputError(f"redact: patterns must be a dict from kind to expression, not {type(patterns).__name__}")
        if isinstance(sensitive, str) or not isinstance(sensitive, Sequence):
            raise InputError(f"redact: sensitive must be a list of words and patterns, not {type(sensitive).__name__}")
        self._own = [(kind, _compiled(kind, pattern)) for kind, pattern in (patterns or {}).items()]
        self._nearby = [nearby(text_given("redact: sensitive", each)) for each in sensitive]
        self._known = known
        self._key = key
        self._names: set[str] = set()
        self.live = live

    def __repr__(self) -> str:
        shapes = "known shapes" if self._known else "no known shapes"
        own_kinds = ", ".join(
            dict.fromkeys([*(kind for kind, _ in self._own), *([_SENSITIVE] if self._nearby else [])])
        )
        return f"Redactor({shapes}{own_kinds and f' and {own_kinds}'}{'' if self.live else ', live=False'})"

    @property
    def spans_words(self) -> bool:
        """Whether secrets that match the caller's own patterns may contain spaces."""
        return bool(self._nearby) or any(_SPACE.search(pattern.pattern) for _, pattern in self._own)

    def find(self, text: str) -> list[Finding]:
        """The secrets in `text`, in order. They do not overlap each other or a mark."""
        text_given("text", text)
        findings = [
            Finding(kind, *match.span("secret" if "secret" in pattern.groupindex else 0), random=False)
            for kind, pattern in self._own
            for match in pattern.finditer(text)
        ]
        findings += [Finding(_SENSITIVE, *span, random=False) for find in self._nearby for span in find(text)]
        if self._known:
            known_findings = [each for needle, shape in _candidates(text) for each in _of_shape(needle, shape, text)]
            known_findings += [
                Finding(*named, random=looks_random(text[named.start : named.end], 16)) for named in find_named(text)
            ]
            findings += [each for each in known_findings if text[each.start : each.end] not in EXAMPLES]
        return apart(text, findings) if findings else []

    def text(self, text: str) -> tuple[str, Counts]:
        """`text` with marks instead of secrets, and what was replaced."""
        text, counts = in_data_urls(text_given("text", text), self.text)
        while findings := self.find(text):  # a mark may reveal another secret; redacting a second time changes nothing
            marks = [(each.start, each.end, self.mark(each, text[each.start : each.end])) for each in findings]
            text = _with_marks(text, marks)
            counts.update(finding.kind for finding in findings)
        return text, counts

    def name(self, name: str) -> tuple[str, Counts]:
        """A name of a tool, a model or the like without secrets, and what was replaced. Few characters are allowed in
        these, so the marks are `redacted_KIND_TAG`."""
        if text_given("name", name) in self._names:
            return name, Counter()
        clean, counts = self.text(_NAME_MARK.sub(lambda mark: _mark(mark[1], mark[2]), name))
        if counts:
            return _MARK.sub(lambda mark: mark[0][1:-1].replace(":", "_"), clean), counts
        if len(self._names) >= _KNOWN_NAMES:
            self._names.clear()
        self._names.add(name)
        return name, counts

    def value(self, value: Any, counts: dict[str, int], *, ids: bool = True) -> Any:
        """A JSON value with marks instead of secrets; `value` itself if it contains no secret.

        The number of replaced secrets of each kind is added to `counts`. Secrets are also found in keys, in numbers,
        and by the name of the key (`"password": ...`). With `ids`, texts under keys such as `id` and `signature` are
        left as they are, except in arguments of tools.
        """
        if isinstance(value, str):
            return self._named(value, "", counts)
        text = _as_text(value)
        if not self._could_hold(text):
            return value
        clean = self._inside(value, counts, "", _MAX_DEPTH, ids)
        text = text if clean is value else _as_text(clean)
        spelled = self.spelled(text, counts, ids=ids)
        return clean if spelled is text else read(spelled)

    def spelled(self, text: str, counts: dict[str, int], *, ids: bool = True) -> str:
        """JSON text with marks instead of secrets, still JSON; `text` itself if it contains none. Arguments as for
        `value`."""
        while findings := self.find(text):
            parts = cuts(text, [(finding.start, finding.end) for finding in findings], ids=ids)
            if not parts:
                break
            marks = []
            for cut in parts:
                mark = self.mark(findings[cut.finding], decoded(text[cut.start : cut.end]))
                marks.append((cut.start, cut.end, mark if cut.quoted else f'"{mark}"'))
            text = _with_marks(text, marks)
            _add(counts, Counter(findings[number].kind for number in {cut.finding for cut in parts}))
        return text

    def refuse(self, field: str, value: Any) -> None:
        """Raises InputError if a value that is stored unchanged (a name, an id, labels) contains a secret. The message
        names `field` and the kind, never the value."""
        counts: Counts = Counter()
        self.value(value, counts, ids=False)
        if counts:
            raise InputError(
                f"{field} contains a secret ({counts_text(counts)}), and is stored as it is: choose another; "
                "text and notes may contain it, as it is replaced there"
            )

    def mark(self, finding: Finding, secret: str) -> str:
        """The mark that replaces `secret`."""
        if not (finding.random or self._key):
            return _mark(finding.kind)
        key = self._key or b"turnlog"
        tag = hmac.digest(key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:4]
        return _mark(finding.kind, tag)

    @property
    def _has_own(self) -> bool:
        return bool(self._own or self._nearby)

    def _could_hold(self, text: str) -> bool:
        """Whether a JSON value, given as its JSON `text`, may contain a secret, so that its texts must be searched one
        by one. Everything by which known secrets are recognised would be in `text`, too."""
        if self._has_own or not text or DATA in text or any(f'"{key}"' in text for key in MEDIA_TYPES):
            return True
        return self._known and (has_name(text) or bool(_candidates(text)))

    def _inside(self, value: Any, counts: dict[str, int], name: str, levels: int, ids: bool) -> Any:
        """A value under the key `name`, without the secrets in its texts."""
        if isinstance(value, str):
            return self._named(value, name, counts)
        if not levels or not isinstance(value, (dict, list, tuple)):
            return value
        if isinstance(value, dict):
            return self._object(value, counts, levels, ids and name not in ARGUMENTS)
        before = ""
        items = []
        for item in value:
            items.append(self._inside(item, counts, before, levels - 1, ids))
            before = item[2:] if isinstance(item, str) and item.startswith("--") else ""
        return value if all(map(is_, items, value)) else items

    def _named(self, text: str, name: str, counts: dict[str, int]) -> str:
        is_secret = self._known and name and text not in EXAMPLES
        if is_secret and (kind := name_kind(name)) and not has_mark(text) and plausible(kind, text, name):
            whole = (match for match in self.find(text) if (match.start, match.end) == (0, len(text)))
            finding = next(whole, Finding(kind, 0, len(text), looks_random(text, 16)))
            _add(counts, {finding.kind: 1})
            return self.mark(finding, text)
        clean, replaced = self.text(text)
        head = f"{name}: "
        if not replaced and name.lower().endswith("authorization"):  # a header: its first word is not a secret
            header, replaced = self.text(head + text)
            clean = header.removeprefix(head) if replaced else text
        _add(counts, replaced)
        return clean

    def _object(self, value: dict[str, Any], counts: dict[str, int], levels: int, ids: bool) -> dict[str, Any]:
        # {"name": "DB_PASSWORD", "value": "..."}: environment variables, headers, form fields
        label = next((value[key] for key in ("name", "key") if isinstance(value.get(key), str)), "")
        is_file = any(key in value for key in MEDIA_TYPES)
        changed: dict[str, Any] = {}
        same = True
        for key, item in value.items():
            clean = item
            if is_file and key in BYTES and isinstance(item, str):
                clean, replaced = in_base64(item, self.text)
                _add(counts, replaced)
            if clean is item and not (ids and key in EXACT and isinstance(item, str)):
                clean = self._inside(item, counts, label if key == "value" else key, levels - 1, ids)
            spelled = key
            if len(key) >= LONG or self._has_own:
                spelled, replaced = self.text(key)
                _add(counts, replaced)
                spelled = apart_by(spelled, changed)  # two keys that now read the same stay two
            same = same and clean is item and spelled is key
            changed[spelled] = clean
        return value if same else changed


def _mark(kind: str, tag: str | None = None) -> str:
    return f"[redacted:{kind}:{tag}]" if tag else f"[redacted:{kind}]"


def _as_text(value: Any) -> str:
    """The JSON text of a value; empty if it is not JSON, or nested deeper than a record can be."""
    try:
        return compact_json(value)
    except (TypeError, ValueError, RecursionError):
        return ""


def _with_marks(text: str, marks: Iterable[tuple[int, int, str]]) -> str:
    """`text` with each part from a start to an end replaced by its mark."""
    pieces, place = [], 0
    for start, end, mark in marks:
        pieces += [text[place:start], mark]
        place = end
    return "".join(pieces) + text[place:]


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for kind, number in more.items():
        counts[kind] = counts.get(kind, 0) + number


def _compiled(kind: str, pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise InputError(f"redact: {kind!r} cannot be a kind of secret: use a-z, 0-9 and '-', at most 40 characters")
    try:
        return re.compile(pattern)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"redact: the pattern for {kind!r} is not a regular expression: {error}") from error


def _candidates(text: str) -> list[tuple[str, SecretShape]]:
    """The needles that occur in `text`, with their shapes. Ordinary text is searched no further."""
    candidates = [row for row in _SPREAD if row[0] in text]
    if len(text) < LONG:
        return candidates
    pieces = range(0, len(text), _PIECE) if len(text) > _PIECE + _OVERLAP else (0,)
    left = _WHOLE
    for start in pieces:
        runs = _long_runs(text if len(pieces) == 1 else text[start : start + _PIECE + _OVERLAP])
        likely: Iterable[tuple[str, SecretShape]] = left
        if len(runs) >= _MANY:
            missing = [char for char in _IN_NEEDLES if char not in runs]
            likely = [row for row in left if not any(char in row[0] for char in missing)]
        met = [row for row in likely if row[0] in runs]
        if met:
            candidates += met
            left = tuple(row for row in left if row not in met)
    return candidates


def _long_runs(text: str) -> str:
    """The runs of at least `LONG` characters that secrets may consist of."""
    words = text.encode("utf-8", "surrogatepass").translate(_NOT_RUN).split()
    return b" ".join([word for word in words if len(word) >= LONG]).decode("ascii")


def _of_shape(needle: str, shape: SecretShape, text: str) -> Iterable[Finding]:
    group = "secret" if "secret" in shape.pattern.groupindex else 0
    index = text.find(needle)
    while index >= 0:
        after = index + len(needle)
        starts = range(max(0, index - shape.before), index + 1)
        match = next(filter(None, (shape.pattern.match(text, start) for start in starts)), None)
        if match is not None and not _is_blank(match[group]) and (shape.random or not is_placeholder(match[group])):
            yield Finding(shape.kind, *match.span(group), shape.random)
            after = max(after, match.end())
        index = text.find(needle, after)


def _is_blank(secret: str) -> bool:
    """Whether a secret is a placeholder of x's, as in documentation (sk-xxxxxxxx), or contains a mark."""
    return "xxxxxxxx" in secret.lower() or MARK in secret


def apart(text: str, found: list[Finding]) -> list[Finding]:
    """The findings in order. Those that overlap are replaced by one that covers all; those that overlap a mark are
    dropped.

    If two begin at the same place, the end of the one with a known shape is used, which is more precise than that of a
    named one.
    """
    marks = [match.span() for match in _MARK.finditer(text)] if MARK in text else []
    marks.append((len(text), len(text)))
    next_mark = 0
    alone: list[Finding] = []
    for finding in sorted(found, key=lambda finding: (finding.start, not finding.random, -finding.end)):
        while marks[next_mark][1] <= finding.start < len(text):
            next_mark += 1
        if finding.start == finding.end or marks[next_mark][0] < finding.end:
            continue
        if not alone or finding.start >= alone[-1].end:
            alone.append(finding)
        elif not (alone[-1].random and finding.start == alone[-1].start):
            alone[-1] = alone[-1]._replace(end=max(alone[-1].end, finding.end))
    return alone


# -- truncated -------------------------------------------------------------------------------------
#
# Pieces of secrets: what remains of a secret where a text was cut off, as in the lines of summaries and placeholders.
#
# Half a key cannot be recognised as a secret without knowing the whole.

_LEAST, _ENOUGH = 6, 12
"""How many characters of a random secret reveal something about it, and how many identify it."""
_OF_WORDS = 8
_CUT_BEHIND = lazy_pattern(r"\s*(?:…|\.\.\.|\Z)")
_CUT_AHEAD = lazy_pattern(r"(?:…|\.\.\.|\A)\s*\Z")
_CUT_LOOK = 8


class Attentive(Redactor):
    """Finds what another redactor finds, and remembers it; `pieces` is a redactor that recognises cut-off pieces of
    these secrets."""

    def __init__(self, redactor: Redactor) -> None:
        self.__dict__.update(redactor.__dict__)
        self._redactor = redactor
        self.pieces = Pieces()

    def find(self, text: str) -> list[Finding]:
        """See `Redactor.find`."""
        return self._redactor.find(text)

    def mark(self, finding: Finding, secret: str) -> str:
        """See `Redactor.mark`."""
        mark = self._redactor.mark(finding, secret)
        self.pieces.learn(finding, secret, mark)
        return mark


class Pieces(Redactor):
    """Replaces the beginnings and ends of secrets that it has learned with the marks of the whole secrets."""

    def __init__(self) -> None:
        super().__init__(known=False)
        self._marks: dict[str, tuple[Finding, str]] = {}

    def __bool__(self) -> bool:
        return bool(self._marks)

    def learn(self, finding: Finding, secret: str, mark: str) -> None:
        """Remember a secret. Each of its words is remembered separately, because it may occur alone."""
        for line in secret.split():
            if len(line) >= (_LEAST if finding.random else _OF_WORDS):
                self._marks[line] = finding, mark
                self._names.clear()

    def find(self, text: str) -> list[Finding]:
        """See `Redactor.find`."""
        marks = tuple(self._marks.items())  # other threads may learn more
        findings = [finding for secret, (whole, _) in marks for finding in _met(secret, whole, text)]
        return apart(text, findings) if findings else []

    def mark(self, finding: Finding, secret: str) -> str:
        """See `Redactor.mark`."""
        marks = tuple(self._marks.items())
        whole = (mark for line, (_, mark) in marks if line.startswith(secret) or line.endswith(secret))
        return next(whole, f"[redacted:{finding.kind}]")

    def _could_hold(self, text: str) -> bool:
        return bool(self._marks)


def _met(secret: str, whole: Finding, text: str) -> Iterator[Finding]:
    """The places where a text has the beginning or the end of a secret. A secret that is not random must be there as a
    whole, or be cut off where the text is cut, because its words occur elsewhere, too; of a random one, less is enough
    where the text is cut."""
    if not whole.random:
        enough, least = len(secret) + 1, max(_OF_WORDS, len(secret) // 2)
    else:
        enough = min(_ENOUGH, max(_LEAST, len(secret) // 2))
        least = min(_OF_WORDS, enough)
    index = text.find(secret[:least])
    while index >= 0:
        end = index + _same(secret, text[index : index + len(secret)])
        tells = end - index >= enough or _CUT_BEHIND.match(text, end)
        if tells or (end - index == len(secret) and _is_apart(text, index, end)):
            yield whole._replace(start=index, end=end)
        index = text.find(secret[:least], end)
    index = text.find(secret[-least:])
    while index >= 0:
        end = index + least
        start = end - _same(secret[::-1], text[max(0, end - len(secret)) : end][::-1])
        if end - start >= enough or _CUT_AHEAD.search(text[max(0, start - _CUT_LOOK) : start]):
            yield whole._replace(start=start, end=end)
        index = text.find(secret[-least:], end)


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether a part of a text is not part of a longer word. (The text by which it was recognised as a secret may be
    cut off.)"""
    return not (text[:start][-1:].isalnum() or text[end : end + 1].isalnum())


def _same(one: str, other: str) -> int:
    """How many characters both texts begin with."""
    return next((n for n, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(other))
