"""Find files, symbols, URLs, ids, branches and people in a text.

A text is cut into words, and each word is judged once: words repeat, so this costs little more than cutting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .._platform.lazy import lazy_pattern
from .entities import Kind

ENDS = 4_000, 2_000
"""Characters of a text that are searched, at its beginning and its end. What is in the middle of a longer text is a
file or a log, which few later messages refer to."""

# No word without one of these names anything.
_MAYBE = lazy_pattern(r"[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]|\w[_@.:-]\w|[/\\@#]\w|\d{7}|^\.\w")
_LONGEST = 160  # characters; a longer word is data
_REMEMBERED = 50_000  # words
BARE_WORD = r"[\w~./@+#:\\-]"
"""A character of a word, as a pattern."""

_KEPT = lazy_pattern(BARE_WORD)
_APART = "".join(chr(code) if _KEPT.match(chr(code)) else " " for code in range(128))
_URL = lazy_pattern(r"https?://[^\s\"'<>)\]}`|\\]+")
_LINE = lazy_pattern(r":(\d{1,7})(?:[:-](\d{1,7}))?(?::.*)?$")
_ENDING = lazy_pattern(r"\.[A-Za-z][A-Za-z0-9_+]{0,9}$")
_BARE = frozenset(
    (
        "md rst txt py pyi pyx ipynb go mod sum js jsx ts tsx mjs cjs mts cts json jsonl json5 yaml yml "
        "toml ini cfg conf env sh bash zsh fish ps1 bat html htm css scss sass less vue svelte astro c h "
        "cc cpp cxx hpp hh cs java kt kts scala rb rs swift m mm php pl pm lua r jl ex exs erl hs ml mli "
        "clj dart sql graphql proto xml svg png jpg jpeg gif webp pdf csv tsv parquet lock log tmpl tpl "
        "j2 tf hcl nix gradle properties plist patch diff zip gz tar db sqlite wasm"
    ).split()
)
"""Endings of file names. A word with a dot and no slash is a file only with one of these: `os.path` is none, nor is
`cmd.Env`."""

PROGRAMS = frozenset(
    (
        "git gh go npm npx pnpm yarn bun node deno python python3 pip pip3 pipx uv uvx poetry pytest tox "
        "nox ruff black mypy make cmake ninja cargo rustc gcc g++ clang java javac mvn gradle dotnet "
        "ruby bundle rake rails php composer sed grep rg find ls cat head tail awk cut sort uniq tr wc "
        "diff patch cp mv rm mkdir touch chmod chown ln tar zip unzip curl wget ssh scp rsync docker "
        "podman kubectl helm terraform ansible systemctl journalctl sudo apt apt-get brew bash sh zsh "
        "fish echo printf cd export source env which man ps kill nl perl jq sqlite3 psql mysql redis-cli"
    ).split()
)
"""Programs by which a piece of code in a text is known for a command."""

_NAMES = frozenset(
    "Makefile Dockerfile Justfile Rakefile Gemfile Procfile LICENSE README CHANGELOG Vagrantfile".split()
)
_HASH = lazy_pattern(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}$")
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_ID = lazy_pattern(
    r"#[A-Z]?\d{1,12}$|[A-Z][A-Z0-9]{1,9}-\d{1,8}$|[A-Z]{2,4}\d{2,8}$|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{6,12}$"
    r"|[a-z]+_[a-z]+_\d{3,6}$|[a-z]+_\d{5,10}$|\d{7,12}$"
)
_SYMBOL = lazy_pattern(
    r"(?:[A-Za-z_]\w*\.)?(?:_*[a-z][a-z0-9]*(?:_[a-z0-9]+)+_*|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+"
    r"(?:[A-Z][a-z0-9]*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Za-z]+_[a-z0-9]*\d[a-z0-9]*)$"
)
_HANDLE = lazy_pattern(r"@[A-Za-z][A-Za-z0-9-]{2,38}$")
_MAIL = lazy_pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+$")
_BRANCH = lazy_pattern(
    r"\b(?:branch(?:es)?(?: named| called)?|git (?:checkout|switch)(?: -[bcC])?|[Oo]n branch|merge(?:d)? into)[ :]+"
    r"[`'\"]?((?=[\w./-]*[/-]|(?:main|master|develop|dev)\b)[A-Za-z][\w./-]{2,80})"
)
_COMMITTED = lazy_pattern(r"^\[([A-Za-z][\w./-]{2,80}) (?:\(root-commit\) )?[0-9a-f]{7,40}\] ", re.MULTILINE)  # by git
_PERSON = lazy_pattern(r"(?:Author|Co-[Aa]uthored-[Bb]y|Signed-off-by|Reviewed-by): ([A-Z][^\n<]{2,40}?) ?<")


class Named(NamedTuple):
    """Something that a text names: its kind and value, and the lines that the text names with it, (0, 0) if none."""

    kind: Kind
    value: str
    lines: tuple[int, int] = (0, 0)


_NOTHING = Named("file", "")


class Words:
    """Finds what texts name. It remembers the verdict on each word."""

    def __init__(self) -> None:
        self._verdicts = _Verdicts(judged)
        self._files = _Verdicts(_file_in)

    def of(self, text: str, *, symbols: bool) -> list[Named]:
        """What `text` names, each once, in order of appearance; names in code only with `symbols`."""
        text = _ends_of(text)
        names = _judged(text, self._verdicts)
        if not symbols:
            names = {named: None for named in names if named.kind != "symbol"}
        if "://" in text:
            names |= dict.fromkeys(Named("url", url.rstrip(".,;:!?*")) for url in _URL.findall(text))
        if "ranch" in text or "git " in text or "into" in text:
            names |= dict.fromkeys(Named("branch", name.rstrip(".")) for name in _BRANCH.findall(text))
        if "\n[" in text or text.startswith("["):
            names |= dict.fromkeys(Named("branch", name) for name in _COMMITTED.findall(text))
        if ": " in text and "<" in text:
            names |= dict.fromkeys(Named("person", name) for name in _PERSON.findall(text))
        return list(names)

    def files(self, text: str) -> list[Named]:
        """The files that `text` names, as in `of`."""
        return list(_judged(_ends_of(text), self._files))


class _Verdicts(dict[str, Named]):
    """What each word names, as `judge` finds; `_NOTHING` for most."""

    def __init__(self, judge: Callable[[str], Named | None]) -> None:
        super().__init__()
        self._judge = judge

    def __missing__(self, word: str) -> Named:
        verdict = self[word] = self._judge(word) or _NOTHING
        return verdict


def _judged(text: str, verdicts: _Verdicts) -> dict[Named, None]:
    """What single words of a text name."""
    plain = text if text.isascii() else text.encode("ascii", "replace").decode("ascii")
    if len(verdicts) > _REMEMBERED:
        verdicts.clear()
    words = dict.fromkeys(plain.translate(_APART).split())  # most words are there several times
    names = map(verdicts.__getitem__, words)
    return dict.fromkeys(named for named in names if named is not _NOTHING)


def _ends_of(text: str) -> str:
    """The part of a text that is searched."""
    return text if len(text) <= ENDS[0] + ENDS[1] else f"{text[: ENDS[0]]}\n{text[-ENDS[1] :]}"


def judged(raw: str) -> Named | None:
    """What a word names; None for most."""
    word = _name_in(raw)
    if not 3 <= len(word) <= _LONGEST or "//" in word:
        return Named("id", word) if word and _ID.match(word) else None
    return _file(word) or _other(word)


def _file_in(raw: str) -> Named | None:
    """The file that a word names; None if it names none."""
    word = _name_in(raw)
    return _file(word) if 3 <= len(word) <= _LONGEST and "//" not in word else None


def _name_in(raw: str) -> str:
    """A word without the punctuation around it; "" if it names nothing."""
    if raw[0] == "-":
        return ""  # an option of a command
    if raw.isalpha() and (raw.islower() or raw.istitle()) and raw not in _NAMES:
        return ""  # most words
    if _MAYBE.search(raw) is None and raw not in _NAMES:
        return ""
    return raw.rstrip(".:-+/\\@#").lstrip("-+:")


def _file(word: str) -> Named | None:
    lines = (0, 0)
    word = word[2:] if word[:2] in ("a/", "b/") else word  # as diffs write them
    if ":" in word:
        match = _LINE.search(word)
        if match is not None:
            word, lines = word[: match.start()], (int(match[1]), int(match[2] or match[1]))
        word = word.rpartition(":")[2] if not _is_drive(word) else word
    name = word.replace("\\", "/").rpartition("/")[2]
    if not name or name[-1] in "/~":
        return None
    ending = _ENDING.search(name)
    if ending is None or ending.start() == 0:
        slashed = "/" in word and (name in _NAMES or name.startswith(".")) and len(name) > 2
        return Named("file", path_of(word), lines) if slashed or word in _NAMES else None
    if "/" in word or "\\" in word or (ending[0].islower() or ending[0].isupper()) and ending[0][1:].lower() in _BARE:
        return None if "@" in word and "/" not in word else Named("file", path_of(word), lines)
    return None


def _is_drive(word: str) -> bool:
    return len(word) > 2 and word[0].isalpha() and word[1] == ":" and word[2] in "/\\"


def _other(word: str) -> Named | None:
    if _HASH.match(word) or _UUID.match(word) or _ID.match(word):
        return Named("id", word)
    if _HANDLE.match(word) or _MAIL.match(word):
        return Named("person", word)
    return Named("symbol", word) if _SYMBOL.match(word) else None


def path_of(path: str) -> str:
    """A path in the form in which paths are compared."""
    return path.replace("\\", "/").removeprefix("./").replace("/./", "/")


def raised_in(text: str) -> Iterator[str]:
    """The lines of a text that somebody wrote that name an exception or an error."""
    if "rror" in text or "xception" in text:
        for match in _RAISED.finditer(text[: ENDS[0]]):
            yield match[1].strip()


_RAISED = lazy_pattern(r"(?:^|[\s`*])((?:[\w.]*[A-Z]\w*(?:Error|Exception)|[Ee]rror|ERROR|fatal): [^\n`]{4,200})")

WORDS = Words()
"""What all memories find words with: the verdict on a word depends on nothing else."""
