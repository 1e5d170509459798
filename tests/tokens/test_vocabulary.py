"""OpenAI's vocabularies: what is shipped is what was published, and no text is too much for it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import lzma
import random
import subprocess
import sys
import time
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import InputError
from turnlog.tokens import vocabulary
from turnlog.tokens.vocabulary import VOCABULARIES, count_pieces, cut

# As tiktoken_ext/openai_public.py pins them.
PUBLISHED = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
MEGABYTE = 1_000_000
NOISE = random.Random(7).randbytes(MEGABYTE * 3 // 4)
HARD = {
    "spaces": " " * MEGABYTE,
    "line ends": "\n" * MEGABYTE,
    "one letter": "a" * MEGABYTE,
    "base64": base64.b64encode(NOISE).decode(),
    "emoji": "😀" * (MEGABYTE // 4),
    "lone surrogates": "\ud83d" * (MEGABYTE // 3),
    "special tokens": "<|endoftext|>" * (MEGABYTE // 13),
}
WORDS = st.sampled_from(
    ["a", "the", "don't", "I'll", "x1", "12345", "é", "中文", "{", "});", "//", "/", "\t", "😀", "\ud83d"]
)
GAPS = st.sampled_from([" ", "\n", "\n\n", "\r\n", "  ", " \n ", ""])


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_shipped_vocabulary_is_the_published_one(name: str) -> None:
    """A packed vocabulary that differs from the published file in one piece fails here."""
    packed = resources.files("turnlog.tokens").joinpath(f"data/{name}.xz").read_bytes()
    plain = lzma.decompress(packed)
    pieces = [plain[byte : byte + 1] for byte in range(256)] + plain[257:].split(b"\xff")
    published = b"".join(base64.b64encode(piece) + b" %d\n" % rank for rank, piece in enumerate(pieces))
    assert hashlib.sha256(published).hexdigest() == PUBLISHED[name]


def test_nothing_is_loaded_before_the_first_count() -> None:
    """An import of turnlog that pulls the tokenizer, or decompresses its vocabulary, fails here."""
    script = (
        "import sys, turnlog, turnlog.tokens, turnlog.requests.count\n"
        "from turnlog.tokens.counters import counter_for\n"
        "from turnlog.tokens.vocabulary import _encoding\n"
        "counter_for('openai-chat', 'gpt-4o'), counter_for('anthropic', 'claude-sonnet-4-5')\n"
        "print(sorted({'tiktoken', 'regex', 'requests'} & set(sys.modules)), _encoding.cache_info().currsize)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[] 0"


@pytest.mark.slow
@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("kind", HARD)
def test_a_megabyte_of_anything_is_counted(kind: str, name: str) -> None:
    """A text that makes the tokenizer panic or go quadratic, or that cutting miscounts, fails here."""
    text = HARD[kind]
    tenth = len(text) // 10
    count_pieces(name, "load")
    start = time.perf_counter()
    counted = count_pieces(name, text)
    assert time.perf_counter() - start < 10
    truth = sum(count_pieces(name, text[i : i + tenth]) for i in range(0, len(text), tenth))
    assert counted == pytest.approx(truth, rel=0.02)


@given(st.lists(st.tuples(WORDS, GAPS), max_size=60), st.sampled_from(list(VOCABULARIES)))
def test_safe_places_change_no_count(pieces: list[tuple[str, str]], name: str) -> None:
    """A place called safe to cut at that a token reaches over fails here."""
    text = "".join(word + gap for word, gap in pieces)
    places = [match.start() for match in vocabulary._SAFE.finditer(text)]
    edges = [0, *places, len(text)]
    parts = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert sum(count_pieces(name, part) for part in parts) == count_pieces(name, text)


@given(
    st.lists(st.tuples(WORDS, GAPS), min_size=1, max_size=60),
    st.integers(1, 2_000),
    st.sampled_from(list(VOCABULARIES)),
)
def test_a_long_text_counts_as_its_tokens(pieces: list[tuple[str, str]], times: int, name: str) -> None:
    """A long text that is counted line by line, as those are that are counted again, as more or less than it is made
    of fails here."""
    text = "".join(word + gap for word, gap in pieces)
    long = "".join(f"{nth} {text}" for nth in range(max(times, vocabulary._LONG.start // len(text))))[:60_000]
    assert count_pieces(name, long) == len(vocabulary._encoding(name).encode_ordinary(long))


@given(st.text(st.sampled_from("ab \n/😀\ud83d")), st.integers(1, 5))
def test_cutting_loses_nothing(text: str, times: int) -> None:
    """Pieces that do not make up the text, or are longer than allowed, fail here."""
    long = text * (times * 20_000 // max(1, len(text)) * 7)
    pieces = list(cut(long))
    assert "".join(pieces) == long
    assert all(len(piece) <= vocabulary._LONGEST for piece in pieces)


def test_known_counts() -> None:
    """Counts known from OpenAI's own tools: a wrong pattern or an off rank fails here."""
    text = "Hello, world! Grüße, 你好. 1234567890\n\n  def f(x):\n    return x**2\n"
    assert [count_pieces(name, text) for name in ("o200k_base", "cl100k_base")] == [26, 28]
    assert count_pieces("o200k_base", "") == 0


def test_special_tokens_are_text() -> None:
    """A tool result that spells a special token counts as its letters and raises nothing."""
    assert count_pieces("o200k_base", "<|endoftext|>") == 7


def test_a_lone_surrogate_counts_as_what_is_sent() -> None:
    """A lone surrogate cannot be encoded; it counts as the replacement character."""
    assert count_pieces("o200k_base", "a\ud83d") == count_pieces("o200k_base", "a�")


def test_an_unknown_vocabulary_says_which_there_are() -> None:
    """A wrong name raises the error that names the right ones."""
    with pytest.raises(InputError, match="o200k_base"):
        count_pieces("p50k_base", "x")
