"""Secrets told by their names: `password = "..."`, `api_key: ...`, `?token=...`, `--password ...`.

What is called a password may look like anything, so a value is taken for a secret if it is no
placeholder, no expression of a program and no plain word; what is called a key or a token has to look
random as well. `plausible` is that judgement; it is the same for texts and for JSON values.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .json_text import MARK
from .shapes import Expression


class Named(NamedTuple):
    """A secret in a text: its kind, and where it begins and ends."""

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
)
"""What has to stand before `key`: a key as such is one of a dictionary."""

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
_MORE = re.compile(r"(?:[&;|](?![\w.\-]{1,64}[ \t]?[=:]|[A-Za-z]+(?:[\s/]|\Z))[^\s\"'`<>,;&\\|]{1,256}+)+")
"""How a password may go on behind a character that otherwise ends one: not with the next pair of a query or a list,
nor with the next command."""

_STOP = re.compile(r"[\s\"'`<>,;&\\|\[]|\Z")
"""Where a value ends that is longer than what is looked at."""

_QUOTES = ('"', "'", "`")
_NAME_END = re.compile(r"[A-Za-z0-9_\-.]*\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_WORDS = re.compile(
    r"_*(?:(?:[A-Z]?[a-z]+|[A-Z]+)[0-9]{0,2}(?:_+(?:[A-Z]?[a-z]+|[A-Z]+)[0-9]{0,2})+|[a-z]+(?:[A-Z][a-z]+)+[0-9]{0,2})\Z"
)
"""What a variable is called: `next_token_id2`, `nextTokenId2`."""
_PLACE = re.compile(r"\.{0,2}/|[a-z]+://|[A-Za-z]:\\")

_LONGEST = 256
"""Characters of a value that are looked at; between quotes, all that there may be."""
_LOOKED_AT = 80
"""Characters of a value that are asked whether it is a placeholder: longer ones are none."""

_RANDOM_BITS = 3.0
"""Shannon bits a character: English words have about 2.5 to 3 within 12 letters, 12 random letters and digits
about 3.4. (detect-secrets asks 4.5 of base64, 3.0 of hex, without a name that says that it is a secret.)"""


def entropy(text: str) -> float:
    """Shannon entropy of the characters of `text`, in bits a character; 0 for an empty one."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def looks_random(text: str, least: int = 12) -> bool:
    """Whether `text` looks like what a generator made: long, of many different characters, digits among them."""
    if len(text) < least or entropy(text) < _RANDOM_BITS:
        return False
    return any(char.isdigit() for char in text) and any(char.isalpha() for char in text)


def name_kind(name: str) -> str:
    """The kind of secret that something of this name is: `password`, `secret`, `token`, `key`; else ""."""
    found = _FULL_NAME.pattern.match(name) if len(name) <= 128 else None
    return _kind_at(name.lower(), found.start("name"), found["name"].lower()) if found else ""


def _kind_at(lower: str, start: int, keyword: str) -> str:
    """The kind of a keyword at a place of a text, by what stands before it."""
    before = lower[max(0, start - 12) : start]
    if keyword.startswith("key"):
        return "key" if before.rstrip("_- ").endswith(_QUALIFIERS) else ""
    if keyword in ("pass", "pwd") and before[-1:].isalpha():
        return ""  # bypass, compass
    if keyword.startswith("pass") and before.endswith(("by", "com", "sur", "tres")):
        return ""
    return "password" if keyword.startswith(("pass", "pwd")) else "secret" if keyword.startswith("secret") else "token"


def is_placeholder(value: str) -> bool:
    """Whether `value` stands for a secret and is none: `<your key>`, `${TOKEN}`, `changeme`."""
    return _PLACEHOLDER.pattern.search(value[:_LOOKED_AT]) is not None


def plausible(kind: str, value: str) -> bool:
    """Whether `value` is a secret, where its name says that it is one of this kind."""
    if len(value) < 4 or any(map(str.isspace, value)) or is_placeholder(value) or _PLACE.match(value):
        return False
    if kind in ("token", "key"):
        return looks_random(value)
    if kind == "secret":
        return looks_random(value, 8) or looks_random(value)
    if len(set(value)) < 3 or not any(map(str.isalnum, value)):
        return False
    letters = value.replace("-", "").replace("_", "")
    return len(value) >= 16 if letters.isalpha() else True


def has_name(text: str) -> bool:
    """Whether a name of a secret stands anywhere in `text`: where none does, no value beside one does either."""
    lower = text.lower()
    for keyword in _KEYWORDS:
        at = lower.find(keyword)
        while at >= 0:
            if _NAME_HERE.pattern.match(lower, at):
                return True
            at = lower.find(keyword, at + len(keyword))
    return False


def find_named(text: str) -> Iterator[Named]:
    """The secrets of a text that stand beside a name that says so."""
    lower = text.lower()
    if len(lower) != len(text):  # the one letter that gets longer
        lower = text.replace("\u0130", "I").lower()
    for keyword in _KEYWORDS:
        at = lower.find(keyword)
        while at >= 0:
            after = at + len(keyword)
            pair = _PAIR.pattern.match(text, at)
            found = None if pair is None else _judged(pair, text, lower)
            if found is not None and MARK not in text[found.start : found.end]:  # that stays, what is in it not
                yield found
                after = found.end
            at = lower.find(keyword, after)


def _judged(pair: re.Match[str], text: str, lower: str) -> Named | None:
    start = pair.start()
    name = re.match(_NAME, lower[start : start + 40])
    kind = _kind_at(lower, start, name.group()) if name else ""
    if not kind or (name and name.group() == "pass" and not _is_name(lower, start)):
        return None
    if pair["flag"] and not _is_flag(text, start):
        return None
    if pair["quoted"] is not None:
        begin = pair.start("quoted")
        ends = (_closed(pair, text), pair.end("quoted"))  # not everybody escapes: C:\\dir\\ in a batch file
        return next((Named(kind, begin, end) for end in ends if plausible(kind, text[begin:end].strip())), None)
    value = pair["plain"].rstrip(".:)}]\u201d")
    if kind == "password" and not pair["tag"]:
        more = _MORE.match(text, pair.end("plain"))
        whole = pair["plain"] + more.group() if more else ""
        if whole and _is_literal(whole, pair, text, kind) and plausible(kind, whole):
            return Named(kind, pair.start("plain"), pair.start("plain") + len(whole))
    if pair["tag"] and not (pair["after"] == "<" and text[:start].rfind("<", start - 40) >= 0):
        return None
    if not _is_literal(value, pair, text, kind) or (name and _is_scheme(name.group(), pair)):
        return None
    begin = pair.start("plain")
    if not plausible(kind, value):
        return None
    stop = _STOP.search(text, pair.end("plain")) if len(pair["plain"]) == _LONGEST else None
    return Named(kind, begin, stop.start() if stop else begin + len(value))


def _closed(pair: re.Match[str], text: str) -> int:
    """Where a quoted value ends in which quotes are escaped: at the first that has just the backslashes of the one that
    it began with, none of which another escapes. In text of depth 0, 1, 2 these are 0, 1, 3, and as many again plus one
    escape another backslash."""
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
    """Whether the value is the first word of an `Authorization` header, of which more follows: shapes know those."""
    return name == "authorization" and len(pair["after"]) > len(pair["after"].strip(" \t")) > 0


def _is_name(lower: str, start: int) -> bool:
    """Whether `pass` is the name of something, as in `db_pass: ...` and `"pass": ...`: tests print PASS: too."""
    before, after = lower[start - 1 : start], lower[start + 4 : start + 5]
    return before in ("_", "-") or after == "=" or (before in _QUOTES and after in (*_QUOTES, "\\"))


def _is_flag(text: str, start: int) -> bool:
    """Whether the name is an option of a command: `--password VALUE`."""
    before = text[max(0, start - 24) : start]
    return re.search(r"(?:^|[\s\"'])--[A-Za-z\-]*\Z", before) is not None


def _is_literal(value: str, pair: re.Match[str], text: str, kind: str) -> bool:
    """Whether an unquoted value is a text and no variable or expression of a program."""
    if _EXPRESSION.pattern.match(value) or not any(map(str.isalnum, value)):
        return False
    if len(value) < 6:
        return False
    if kind != "password" and _WORDS.match(value) and pair["op"] != ":":
        return bool(pair["flag"]) or _is_shell(pair, text)
    if not _IDENTIFIER.match(value) and not value.replace(".", "").isdigit():
        return True
    if value.isdigit() or looks_random(value, 20):
        return kind == "password" or not value.isdigit()
    # A word such as hunter2: among the arguments of a call or the fields of an object it could be a variable.
    if not any(map(str.isdigit, value)):
        return False
    after = pair["after"].strip(" \t")
    return (
        bool(pair["flag"])
        or _is_shell(pair, text)
        or not (after.startswith((",", "(", ")", "[", "]", "{", "}")) or pair["plain"] != value)
    )


def _is_shell(pair: re.Match[str], text: str) -> bool:
    """Whether the name is one of the environment (all capitals), or stands in a URL's query."""
    name = _NAME_END.search(text, max(0, pair.start() - 40), pair.start())
    start = name.start() if name else pair.start()
    whole = text[start : pair.start()] + text[pair.start() : pair.end()].partition("=")[0]
    return text[start - 1 : start] in ("?", "&") or whole.removeprefix("n").rstrip().isupper()
