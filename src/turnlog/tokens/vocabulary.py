"""OpenAI's published vocabularies, shipped with turnlog and loaded at the first count.

tiktoken would download the vocabularies, but is given the shipped ones. `scripts/vocabulary.py` packed them from the
published files and checked their digests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

from .._platform.lazy import lazy_pattern
from ..errors import InputError

if TYPE_CHECKING:
    from tiktoken import Encoding

# The patterns of tiktoken_ext/openai_public.py, tiktoken 0.14.0 (MIT).
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
VOCABULARIES = {
    "o200k_base": "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTION}",
            rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTION}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ),
}
"""The pattern that splits a text before pieces are merged, by vocabulary."""

_LONGEST = 64_000
"""Most characters that the tokenizer gets at once, at most 256 KB of UTF-8. A million spaces crash it (tiktoken 0.14,
openai/tiktoken #15), and it may have other limits."""

SAMPLED = 1_000_000
"""Texts of more characters are counted by samples. (Counts on record that were made without samples stay right: the id
of counters does not change with this.)"""

_SAMPLES, _SAMPLE = 128, 4_000
"""How many samples of a text are counted, and how many characters each has: 512,000 together."""

_LONG = range(10_000, 250_000)
"""Lengths of texts whose counts are remembered because they take a millisecond or more."""

_SHORT = 160
"""Length of the longest texts that are likely to be counted again, such as the name of a tool."""

_REMEMBERED = 256
"""Number of texts between the two whose counts are remembered, at most some megabytes: what a conversation says is
counted when it is recorded, built, measured and cut."""

_LINE = 1_000
"""Counts of lines of this length or longer are not remembered."""

_REMEMBERED_LINES = 2_048
"""Number of lines whose counts are remembered. The largest summary of `auto`, 20,000 tokens, has up to 1,500 lines: a
smaller cache would drop each line before it is needed again."""

_NEAR = 2_000
"""Number of characters before the end of the longest piece in which a safe place to cut is looked for."""

# No token spans these places: neither pattern matches a line end together with what follows (except a slash or more
# space), nor a letter together with the space after it.
_LINES = lazy_pattern(r"(?<=\n)(?=[^\s/])")
_SAFE = lazy_pattern(rf"{_LINES.pattern}|(?<=[A-Za-z])(?= [A-Za-z])")


def cut(text: str) -> Iterator[str]:
    """`text` in pieces. Their tokens add up to those of the whole text.

    If there is no safe place to cut (a long run without spaces), a cut may add a token or two per 64,000 characters.
    """
    start = 0
    while len(text) - start > _LONGEST:
        end = start + _LONGEST
        near = [match.start() for match in _SAFE.finditer(text, end - _NEAR, end)]
        yield text[start : near[-1] if near else end]
        start = near[-1] if near else end
    yield text[start:] if start else text


def estimated(text: str, count: Callable[[str], int]) -> int:
    """The tokens of a text of more than `SAMPLED` characters, from samples at equal distances in it."""
    last = len(text) - _SAMPLE
    begins = [last * i // (_SAMPLES - 1) for i in range(_SAMPLES)]
    return round(sum(count(text[begin : begin + _SAMPLE]) for begin in begins) * len(text) / (_SAMPLES * _SAMPLE))


def count_pieces(vocabulary: str, text: str) -> int:
    """Tokens of `text`; an estimate if it has more than `SAMPLED` characters. Special tokens count as plain text, lone
    surrogates as the replacement character that is sent.

    Never raises for a text. The first call takes a few tenths of a second, to load the vocabulary.
    """
    if not text:
        return 0
    if len(text) > SAMPLED:
        return estimated(text, partial(_count, vocabulary))
    if len(text) <= _SHORT:
        return _count_short(vocabulary, text)
    if len(text) < _LONG.start:
        return _count_usual(vocabulary, text)
    return (_count_again if len(text) in _LONG else _count)(vocabulary, text)


def _count(vocabulary: str, text: str) -> int:
    # `encode` would look for special tokens character by character, even without any.
    encode = _encoding(vocabulary).encode_ordinary
    if len(text) <= _LONGEST:
        return len(encode(text))
    return sum(len(encode(piece)) for piece in cut(text))


@lru_cache(maxsize=4)
def _count_again(vocabulary: str, text: str) -> int:
    """`_count` with a memory of the last texts and their lines: a summary is counted several times, and most of its
    lines were already in the summary before it."""
    return sum((_count_line if len(line) < _LINE else _count)(vocabulary, line) for line in _LINES.split(text))


_count_short = lru_cache(maxsize=512)(_count)
_count_usual = lru_cache(maxsize=_REMEMBERED)(_count)
_count_line = lru_cache(maxsize=_REMEMBERED_LINES)(_count)


@cache
def _encoding(name: str) -> Encoding:
    """The tokenizer with the packed vocabulary. Its modules are imported on first use."""
    if name not in VOCABULARIES:
        raise InputError(f"no vocabulary {name!r}; there are {', '.join(VOCABULARIES)}")
    import lzma
    from importlib import resources  # 10 ms

    from tiktoken import Encoding

    plain = lzma.decompress(resources.files(__package__).joinpath(f"data/{name}.xz").read_bytes())
    pieces = [plain[byte : byte + 1] for byte in range(256)] + plain[257:].split(b"\xff")
    ranks = {piece: rank for rank, piece in enumerate(pieces)}
    encoding = Encoding(name, pat_str=VOCABULARIES[name], mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # the tokenizer counts with its own copy, and would keep this one too
    return encoding
