"""Checks that every provider must pass."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from ..errors import FormatError
from ..log.messages import Message, Part, Text, ToolCall, ToolResult
from ..log.records import Configuration
from ..models.target import Target
from ..providers.protocol import Provider
from ..requests.build import build
from ..requests.request import Request
from ..requests.translate import plan
from ..view.types import Shown
from .damages import damaged_history
from .histories import History, sound_history


def check_provider(provider: Provider, target: Target, *, histories: int = 50) -> None:
    """Assert the promises of `turnlog.providers.protocol` for `provider`, on `histories` conversations of each kind.
    `target` is a target of that provider, which must be registered in `turnlog.providers`."""
    for check in PROVIDER_CHECKS:
        check(provider, target, histories)


def _damaged(histories: int) -> Iterable[History]:
    return (damaged_history(random.Random(seed)) for seed in range(histories))


def _made(target: Target, history: History) -> Request:
    view = [Shown(message, (n,)) for n, message in enumerate(history.messages, start=1)]
    return build(plan(Configuration(), target), view, history.blobs.__getitem__)


def _never_raises(provider: Provider, target: Target, histories: int) -> None:
    for history in _damaged(histories):
        request = _made(target, history).body
        assert isinstance(request.get(provider.conversation), list), f"no list at {provider.conversation!r}"


def _is_deterministic(provider: Provider, target: Target, histories: int) -> None:
    for history in _damaged(histories):
        first, second = _made(target, history), _made(target, history)
        assert first.json() == second.json(), "the same view made two different requests"


def _tidies_once(provider: Provider, target: Target, histories: int) -> None:
    for history in _damaged(histories):
        request = _made(target, history).body
        again = provider.sanitize(request, target)
        assert again.body == request, "sanitizing a sanitized request changed it"
        assert not again.edits, f"sanitizing a sanitized request reported {again.edits}"


def _reads_what_it_writes(provider: Provider, target: Target, histories: int) -> None:
    for seed in range(histories):
        history = sound_history(random.Random(seed))
        request = _made(target, history)
        read = provider.parse(request.body)
        back = iter(_gists(read.messages))  # captions of moved media may be in between
        for sent in _gists(shown.message for shown in request.view):
            assert sent in back, f"{sent} was not read back, or not in its position"


def _gists(messages: Iterable[Message]) -> list[tuple[str, ...]]:
    """Texts, calls and results in order, without details that differ between providers."""
    gists: list[tuple[str, ...]] = []
    for message in messages:
        gists += [gist for part in message.parts if (gist := _gist(part))]
    return gists


def _gist(part: Part) -> tuple[str, ...]:
    match part:
        case Text(text=text):
            return ("text", text)
        case ToolCall(name=name):
            return ("call", name)
        case ToolResult(parts=parts):
            return ("result", *(inner.text for inner in parts if isinstance(inner, Text)))
        case _:
            return ()


def _an_empty_stream_is_incomplete(provider: Provider, target: Target, histories: int) -> None:
    reply = provider.assembler().reply()
    assert not reply.complete, "an empty stream is not a complete answer"
    assert reply.error, "an incomplete answer must say what is known"


def _an_error_is_no_answer(provider: Provider, target: Target, histories: int) -> None:
    refusal = ""
    try:
        provider.parse_response({"error": {"type": "rate_limit", "message": "Slow down."}})
    except FormatError as error:
        refusal = str(error)
    assert "rate_limit: Slow down." in refusal, "an error body must be refused with its message"


PROVIDER_CHECKS: tuple[Callable[[Provider, Target, int], None], ...] = (
    _never_raises,
    _is_deterministic,
    _tidies_once,
    _reads_what_it_writes,
    _an_empty_stream_is_incomplete,
    _an_error_is_no_answer,
)
"""The checks one by one, for test runners that report each check."""
