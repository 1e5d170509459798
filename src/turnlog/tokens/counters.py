"""The counter for a model, and the counts that are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from .._platform.given import text_given
from ..errors import InputError
from ..log.messages import Message, Text, Tool, ToolCall, ToolResult
from ..log.usage import Count
from ..models.makers import PROVIDER_ROWS, Maker, maker_of
from .approximate import FactoredCounter
from .families import claude_family, gemini_family, openai_family, unknown_family
from .openai import OpenAICounter
from .protocol import CERTAINTIES, BlobReader, Choice, Counter, Tally, tokens_said

WORD = Message("user", (Text("a word"),))
"""A message to test counters with."""

_CALLS = Message("assistant", (ToolCall("1", "f", {}), ToolCall("2", "f", {})))
_RESULT = Message("user", (ToolResult("1", "f", (Text('A "text"\nof two lines'),)),))


@cache
def counter_for(provider: str, model: str = "") -> Counter:
    """The counter for a model, chosen by its name first and by the provider second.

    `provider` is the name of a provider, or `google-vertex`, whose framing differs from that of `google`. The model's
    name may begin with a region or a vendor. The vocabulary is loaded at the first count.
    """
    text_given("provider", provider)
    given, maker = text_given("model", model).lower().rsplit("/", 1)[-1], maker_of(provider)
    name = given or (maker.counted_as if maker else "")
    if "claude" in name:
        return FactoredCounter(claude_family(name))
    if "gemini" in name:
        return FactoredCounter(gemini_family(name, vertex=any(provider in row.hosts for row in PROVIDER_ROWS.values())))
    family, framing = openai_family(name), _framing(provider, maker)
    return OpenAICounter(family, framing) if family and framing else FactoredCounter(unknown_family(given))


def _framing(provider: str, maker: Maker | None) -> Literal["", "chat", "responses"]:
    """The framing of OpenAI's models by a provider; for a name that is no provider's, by the first of its maker, or as
    servers that imitate OpenAI have it."""
    if provider in PROVIDER_ROWS:
        return PROVIDER_ROWS[provider].framing
    return next((row.framing for row in PROVIDER_ROWS.values() if row.maker is maker), "chat")


def checked_counter(counter: Any, wanted: str) -> Counter:
    """The counter, tested with one word. Raises InputError if it does not work; `wanted` begins the error text if
    `counter` is not a counter."""
    missing = [name for name in ("id", "text", "messages", "tools", "frame") if not hasattr(counter, name)]
    if missing or isinstance(counter, type):
        lacks = f"has no {', '.join(map(repr, missing))}" if missing else "is a class; give an instance of it"
        raise InputError(f"{wanted}; {counter!r} {lacks}")
    if not isinstance(counter.id, str) or not counter.id:
        raise InputError(f"counter: its id is {counter.id!r}; it must be a non-empty string, the name and version")
    checked = _Checked(counter)
    checked.messages((WORD,))
    checked.frame(system=True, tools=False)
    checked.text("a word")
    return checked


class _Checked:
    """A counter given by the user. Everything it returns is checked: a wrong value would cause an error elsewhere."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter

    @property
    def id(self) -> str:
        """The counter's own id."""
        return str(self._counter.id)

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return tokens_said(self._counter.text(text), "counter: text()")

    def messages(self, messages: Sequence[Message], blob: BlobReader | None = None) -> Tally:
        """Messages as part of a request."""
        return self._tally("messages", self._counter.messages(messages, blob))

    def tools(self, tools: Sequence[Tool], choice: Choice = "auto") -> Tally:
        """Tool declarations."""
        return self._tally("tools", self._counter.tools(tools, choice))

    def frame(self, *, system: bool, tools: bool) -> Tally:
        """The tokens of a request except its messages and tools."""
        return self._tally("frame", self._counter.frame(system=system, tools=tools))

    def _tally(self, name: str, said: Any) -> Tally:
        if not isinstance(said, Tally):
            raise InputError(f"counter: {name}() returned {said!r}; it must return a turnlog.tokens.Tally")
        for tokens in said.parts.values():
            tokens_said(tokens, f"counter: {name}()")
        if said.certainty not in CERTAINTIES:
            words = ", ".join(CERTAINTIES)
            raise InputError(f"counter: {name}() returned the certainty {said.certainty!r}; it must be one of {words}")
        return said


def count_message(message: Message, counter: Counter, blob: BlobReader | None = None) -> Count:
    """The count of a message, framing included, as it is recorded. `blob` reads media bytes, to find their size in
    pixels or pages."""
    tally = counter.messages((message,), blob)
    return Count(tally.tokens, counter.id, tally.certainty)


def count_at_once(message: Message, counter: Counter, blob: BlobReader | None = None) -> Count:
    """The count of a message with results of parallel calls, which some providers bill as one item."""
    whole = counter.messages((_CALLS, message), blob)
    tokens = whole.tokens - counter.messages((_CALLS,), blob).tokens
    return Count(tokens, counter.id, whole.certainty, at_once=True)


def joins_results(counter: Counter) -> bool:
    """Whether results of parallel calls are counted differently from single ones."""
    return count_at_once(_RESULT, counter).tokens != count_message(_RESULT, counter).tokens


def count_tools(tools: Sequence[Tool], counter: Counter, choice: Choice = "auto") -> Count:
    """The count of all tool declarations of a request."""
    tally = counter.tools(tools, choice)
    return Count(tally.tokens, counter.id, tally.certainty)


def count_frame(counter: Counter, *, system: bool, tools: bool) -> Count:
    """The count of a request except its messages and tools."""
    tally = counter.frame(system=system, tools=tools)
    return Count(tally.tokens, counter.id, tally.certainty)
