"""Real tool outputs with pieces left out, repeated, moved or replaced: curation does not fail, nor differ the second
time."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from draws import batches, draws
from real_transcripts import imported
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord
from turnlog.view.curate.curate import curated
from turnlog.view.curate.recognise import OUTPUTS

ODD = ("\x00", "\x1b[31m", "\r", "\n" * 50, "[", '"', "<", "}", "é" * 30, "\u2028", "[... 3 lines left out ...]")
FOLDERS = ("claude-code-entire", "codex-entire", "swe-agent")


def results(messages: Iterable[Message]) -> Iterator[tuple[ToolCall, str]]:
    """Each text of a tool result, with its call."""
    calls: dict[str, ToolCall] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult):
                call = calls.get(part.call_id, ToolCall("", part.name))
                yield from ((call, inner.text) for inner in part.parts if isinstance(inner, Text))


@pytest.fixture(scope="module")
def outputs(shared: Path) -> dict[str, list[tuple[ToolCall, str]]]:
    """Real outputs by kind, at most 60 of each."""
    found: dict[str, list[tuple[ToolCall, str]]] = defaultdict(list)
    for _, session in imported(shared, FOLDERS):
        said = [draft.body.message for draft in session.drafts if isinstance(draft.body, MessageRecord)]
        for call, text in results(said):
            if 2_000 <= len(text) < draws(10_000, 40_000):
                kind = curated(call, text).kind
                if len(found[kind]) < 60:
                    found[kind].append((call, text))
    return found


def mutated(text: str, chance: random.Random) -> str:
    """A text with a few pieces left out, repeated, moved or replaced."""
    for _ in range(chance.randint(1, 6)):
        a, b = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        piece = text[a : min(b, a + 4_000)]
        odd = chance.choice(ODD)
        change = chance.randrange(5)
        if change == 0:
            text = text[:a] + text[a + len(piece) :]
        elif change == 1:
            text = text[:a] + piece * chance.randint(2, 5) + text[a:]
        elif change == 2:
            text = text[:a] + odd + text[a:]
        elif change == 3:
            text = text.replace(piece[:3] or "\n", odd, 20)
        else:
            text = text[b:] + text[:a]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("some", batches(100, 50_000, 1_000), ids=lambda some: f"from {some.start}")
def test_a_mutated_output_is_curated_the_same_twice(
    some: range, outputs: dict[str, list[tuple[ToolCall, str]]]
) -> None:
    """An output that raises stops a session; one that changes when it is curated again moves the prompt cache."""
    wrong, shorter = [], 0
    for seed in some:
        chance = random.Random(seed)
        call, text = chance.choice(outputs[chance.choice(sorted(outputs))])
        text = mutated(text, chance)
        output = chance.choice(("", *OUTPUTS))
        first, again = (curated(call, text, output, seed) for _ in range(2))
        shorter += first.saved > 0
        if first != again or curated(call, first.text, output, seed).text != first.text:
            wrong.append((seed, output))
    assert wrong == []
    assert shorter
