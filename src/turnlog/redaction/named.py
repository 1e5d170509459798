"""Secrets found by their names: `password = "..."`, `api_key: ...`, `?token=...`, `--password ...`.

A password may look like anything, so a value named so counts as a secret unless it is a placeholder, an expression of a
program or a plain word. A value named key or token must also look random. `plausible` decides this, for texts and for
JSON values alike.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .._platform.lazy import lazy_pattern
from .json_text import MARK
from .shapes import Expression


class NamedSecret(NamedTuple):
    """A secret in a text: its kind, and its start and end."""

    kind: str
    start: int
    end: int


_KEYWORDS = ("pass", "pwd", "secret", "token", "key", "authorization")

_QUALIFIERS = (
    "api",
    "access",
    "private",
    "auth",
    "secret",
    "encryption",
    "signing",
    "master",
    "account",
    "client",
    "app",
    "admin",
    "write",
    "service",
    "server",
    "deploy",
    "license",
    "webhook",
    "consumer",
    "subscription",
    "ingest",
    "ingestion",
)
"""Words that must come before `key`, because a plain `key` is usually the key of a dictionary."""

_NAME = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret(?:[_-]?(?:access)?[_-]?key|[_-]?token)?|token|key|authorization)"
    r"(?:[_-]?(?:value|prod|live|[0-9]{1,2}))?"
)
_PAIR = Expression(
    rf"(?i:{_NAME})(?![A-Za-z0-9_\-])"
    r"(?:(?:\\{0,3}[\"'`])?\]?[ \t]{0,12}(?P<op>=>|:=|={1,3}|:)[ \t]{0,12}(?:(?:str|String|string)[ ]?=[ ]?)?"
    r"|(?P<flag>[ ]{1,2}(?=[^ =:]))|(?P<tag>>))"
    r"(?:[brf]{0,2}(?P<quote>\\{0,3}[\"'`])(?P<quoted>(?:(?!(?P=quote))[^\r\n]){1,256}+)(?P=quote)"
    r"|(?P<plain>[^\s\"'`<>,;&\\|]{1,256}+)(?P<after>[ \t]*.?))",
)
_NAME_HERE = Expression(rf"{_NAME}(?![A-Za-z0-9_\-])")
_FULL_NAME = Expression(rf"(?i:.*?(?P<name>{_NAME}))\Z", re.DOTALL)

_PLACEHOLDER = Expression(
    r"^<.*>$|^\{.*\}$|^\[.*\]$|^%\(|^%[A-Z_]+%$|^\$|\$\{|\{\{|x{4,}|\*{3,}|\.{3,}|^your|[_-]here$|placeholder|change.?me"
    r"|dummy|replace|insert|^(?:my|some|the|an?|test|fake|sample|example)?[_-]?(?:example|password|passwd|pass|pwd|secret|token"
    r"|api[_-]?key|key|value|string)[_-]?[0-9]?$"
    r"|environ|getenv|env\.|\[redacted:|^(?:none|null|nil|undefined|true|false|str|text|required|optional|hidden|masked|empty)$",
    re.IGNORECASE,
)
_EXPRESSION = Expression(r"[A-Za-z_][\w.\-]*(?:\(|\[|\{|\?\.|::|->)|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|[({\[!@]")
_DIGITS = lazy_pattern("[0-9]+")
_MANY = 3
_ATTRIBUTE = lazy_pattern(r"\w+(?:\.\w+)+\Z")
_MORE = lazy_pattern(r"(?:[&;|](?![\w.\-]{1,64}[ \t]?[=:]|[A-Za-z]+(?:[\s/]|\Z))[^\s\"'`<>,;&\\|]{1,256}+)+")
"""How a password may continue after a character that otherwise ends one: not with the next pair of a query or list, and
not with the next command."""

_STOP = lazy_pattern(r"[\s\"'`<>,;&\\|\[]|\Z")
"""The end of a value that is longer than the part that was matched."""

_QUOTES = ('"', "'", "`")
_NAME_END = lazy_pattern(r"[A-Za-z0-9_\-.]*\Z")
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
_IDENTIFIER = lazy_pattern(r"[A-Za-z_]\w*\Z")
_WORDS = lazy_pattern(
    r"_*(?:(?:[A-Z]?[a-z]+|[A-Z]+)[0-9]{0,2}(?:_+(?:[A-Z]?[a-z]+|[A-Z]+)[0-9]{0,2})+|[a-z]+(?:[A-Z][a-z]+)+[0-9]{0,2})\Z"
)
"""Typical names of variables: `next_token_id2`, `nextTokenId2`."""
_PLACE = lazy_pattern(r"\.{0,2}/|[a-z]+://|[A-Za-z]:\\")

_LONGEST = 256
"""The most characters of a value that are matched; a value in quotes must not be longer."""
_LOOKED_AT = 80
"""How many characters of a value are searched for placeholders; longer placeholders do not occur."""

_RANDOM_BITS = 3.0
"""Shannon bits per character: English words have about 2.5 to 3 within 12 letters, 12 random letters and digits about
3.4. (detect-secrets requires 4.5 for base64 and 3.0 for hex, without a name that indicates a secret.)"""


def entropy(text: str) -> float:
    """Shannon entropy of the characters of `text`, in bits per character; 0 for an empty text."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def _is_mixed(value: str) -> bool:
    """Whether `value` has digits and letters, and is not the name of a variable."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not _WORDS.match(value)


def looks_random(text: str, least: int = 12) -> bool:
    """Whether `text` looks generated: long, with many different characters, including digits."""
    if len(text) < least or entropy(text) < _RANDOM_BITS:
        return False
    return any(char.isdigit() for char in text) and any(char.isalpha() for char in text)


def name_kind(name: str) -> str:
    """The kind of secret that has this name: `password`, `secret`, `token` or `key`; "" if none."""
    match = _FULL_NAME.pattern.match(name) if len(name) <= 128 else None
    return _kind_at(name.lower(), match.start("name"), match["name"].lower()) if match else ""


def _kind_at(lower: str, start: int, keyword: str) -> str:
    """The kind of the keyword at this position, depending on the text before it."""
    before = lower[max(0, start - 16) : start]
    if keyword.startswith("key"):
        return "key" if before.rstrip("_- ").endswith(_QUALIFIERS) else ""
    if keyword in ("pass", "pwd") and before[-1:].isalpha():
        return ""  # bypass, compass
    if keyword.startswith("pass") and before.endswith(("by", "com", "sur", "tres")):
        return ""
    return "password" if keyword.startswith(("pass", "pwd")) else "secret" if keyword.startswith("secret") else "token"


def is_placeholder(value: str) -> bool:
    """Whether `value` is a placeholder for a secret: `<your key>`, `${TOKEN}`, `changeme`."""
    return _PLACEHOLDER.pattern.search(value[:_LOOKED_AT]) is not None


def is_variable(name: str) -> bool:
    """Whether `name` is that of an environment variable of several words: `GRAFANA_TOKEN`."""
    return _VARIABLE.match(name) is not None


def plausible(kind: str, value: str, name: str = "") -> bool:
    """Whether `value` is a secret, given that its name is that of a secret of this kind. If `name` is that of an
    environment variable, a token or key may be short."""
    if len(value) < 4 or any(map(str.isspace, value)) or is_placeholder(value) or _PLACE.match(value):
        return False
    if kind != "password" and is_variable(name) and _is_mixed(value):
        return True
    if kind in ("token", "key"):
        return looks_random(value)
    if kind == "secret":
        return looks_random(value, 8) or looks_random(value)
    if len(set(value)) < 3 or not any(map(str.isalnum, value)):
        return False
    letters = value.replace("-", "").replace("_", "")
    return len(value) >= 16 if letters.isalpha() else True


def has_name(text: str) -> bool:
    """Whether the name of a secret occurs anywhere in `text`. If not, `find_named` finds nothing."""
    lower = text.lower()
    for keyword in _KEYWORDS:
        index = lower.find(keyword)
        while index >= 0:
            if _NAME_HERE.pattern.match(lower, index):
                return True
            index = lower.find(keyword, index + len(keyword))
    return False


def find_named(text: str) -> Iterator[NamedSecret]:
    """The secrets in a text that are next to the name of a secret."""
    lower = text.lower()
    if len(lower) != len(text):  # the only letter whose lower case is longer
        lower = text.replace("\u0130", "I").lower()
    for keyword in _KEYWORDS:
        index = lower.find(keyword)
        while index >= 0:
            after = index + len(keyword)
            pair = _PAIR.pattern.match(text, index)
            secret = None if pair is None else _judged(pair, text, lower)
            if secret is not None and MARK not in text[secret.start : secret.end]:  # keep marks; search inside
                yield secret
                after = secret.end
            index = lower.find(keyword, after)


def _judged(pair: re.Match[str], text: str, lower: str) -> NamedSecret | None:
    start = pair.start()
    name = re.match(_NAME, lower[start : start + 40])
    kind = _kind_at(lower, start, name.group()) if name else ""
    if not kind or (name and name.group() == "pass" and not _is_name(lower, start)):
        return None
    if pair["flag"] and not _is_flag(text, start):
        return None
    if pair["quoted"] is not None:
        begin = pair.start("quoted")
        ends = (_closed(pair, text), pair.end("quoted"))  # not all backslashes escape: C:\\dir\\ in a batch file
        whole = _variable(pair, text)
        return next(
            (NamedSecret(kind, begin, end) for end in ends if plausible(kind, text[begin:end].strip(), whole)), None
        )
    value = pair["plain"].rstrip(".:)}]\u201d")
    if kind == "password" and not pair["tag"]:
        rest = _MORE.match(text, pair.end("plain"))
        whole = pair["plain"] + rest.group() if rest else ""
        if whole and _is_literal(whole, pair, text, kind) and plausible(kind, whole):
            return NamedSecret(kind, pair.start("plain"), pair.start("plain") + len(whole))
    if pair["tag"] and not (pair["after"] == "<" and text[:start].rfind("<", start - 40) >= 0):
        return None
    variable = "" if _is_expression(value) else _variable(pair, text)
    if not (variable or _is_literal(value, pair, text, kind)) or (name and _is_scheme(name.group(), pair)):
        return None
    begin = pair.start("plain")
    if not plausible(kind, value, variable):
        return None
    stop = _STOP.search(text, pair.end("plain")) if len(pair["plain"]) == _LONGEST else None
    return NamedSecret(kind, begin, stop.start() if stop else begin + len(value))


def _closed(pair: re.Match[str], text: str) -> int:
    """The end of a quoted value that contains escaped quotes: the first quote that is preceded by exactly the
    backslashes of the opening quote and is not escaped itself. In text of depth 0, 1, 2 an opening quote has 0, 1, 3
    backslashes; an escaped backslash takes one more than that, as often again."""
    quote, begin, end = pair["quote"], *pair.span("quoted")
    depth = len(quote)
    while True:
        held = text[begin : end + depth - 1]
        if (len(held) - len(held.rstrip("\\"))) % (2 * depth) == depth - 1:
            return end
        following = text.find(quote, end + depth, begin + _LONGEST + depth)
        if following < 0 or "\n" in text[end:following]:
            return pair.end("quoted")
        end = following


def _is_scheme(name: str, pair: re.Match[str]) -> bool:
    """Whether the value is the first word of an `Authorization` header and more follows; the shapes cover these."""
    return name == "authorization" and len(pair["after"]) > len(pair["after"].strip(" \t")) > 0


def _is_name(lower: str, start: int) -> bool:
    """Whether `pass` is a name, as in `db_pass: ...` and `"pass": ...`. (Test programs print PASS:, too.)"""
    before, after = lower[start - 1 : start], lower[start + 4 : start + 5]
    return before in ("_", "-") or after == "=" or (before in _QUOTES and after in (*_QUOTES, "\\"))


def _is_flag(text: str, start: int) -> bool:
    """Whether the name is an option of a command: `--password VALUE`."""
    before = text[max(0, start - 24) : start]
    return re.search(r"(?:^|[\s\"'])--[A-Za-z\-]*\Z", before) is not None


def _is_expression(value: str) -> bool:
    """Whether an unquoted value is an expression of a program: a call, or an attribute such as `config.token`. A key of
    two parts, such as `ID.SECRET`, is not an expression: one part looks generated, with digits in more places than
    names have."""
    if not _EXPRESSION.pattern.match(value):
        return False
    parts = value.split(".") if _ATTRIBUTE.match(value) else ()
    return not any(looks_random(part, 16) and len(_DIGITS.findall(part)) >= _MANY for part in parts)


def _is_literal(value: str, pair: re.Match[str], text: str, kind: str) -> bool:
    """Whether an unquoted value is a literal text, and not a variable or expression of a program."""
    if _is_expression(value) or not any(map(str.isalnum, value)):
        return False
    if len(value) < 6:
        return False
    before = text[pair.start() : pair.start("op")].rstrip()[-1:]
    of_program = pair["op"] != ":" or before in (*_QUOTES, "]")  # {"token": some_token}
    if kind != "password" and _WORDS.match(value) and of_program:
        return bool(pair["flag"]) or _is_shell(pair, text)
    if not _IDENTIFIER.match(value) and not value.replace(".", "").isdigit():
        return True
    if value.isdigit() or looks_random(value, 20):
        return kind == "password" or not value.isdigit()
    # A word such as hunter2: in the arguments of a call or the fields of an object it could be a variable.
    if not any(map(str.isdigit, value)):
        return False
    after = pair["after"].strip(" \t")
    return (
        bool(pair["flag"])
        or _is_shell(pair, text)
        or not (after.startswith((",", "(", ")", "[", "]", "{", "}")) or pair["plain"] != value)
    )


def _variable(pair: re.Match[str], text: str) -> str:
    """The name of the environment variable that is set to the value, as in `NAME=value` and `"NAME": "value"`; "" if
    it is another pair."""
    if pair["op"] not in ("=", ":"):
        return ""
    before = _NAME_END.search(text, max(0, pair.start() - 40), pair.start())
    start = before.start() if before else pair.start()
    name = text[start : pair.start("op")].removeprefix("n").rstrip("\\\"'`")  # n: of a line end that is written as \n
    return name if is_variable(name) else ""


def _is_shell(pair: re.Match[str], text: str) -> bool:
    """Whether the name is an environment variable (all capitals), or is in the query of a URL."""
    name = _NAME_END.search(text, max(0, pair.start() - 40), pair.start())
    start = name.start() if name else pair.start()
    whole = text[start : pair.start()] + text[pair.start() : pair.end()].partition("=")[0]
    return text[start - 1 : start] in ("?", "&") or whole.removeprefix("n").rstrip().isupper()
