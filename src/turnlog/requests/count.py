"""Count the tokens of a request body, offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from .._platform.given import text_given
from ..log.messages import Message, Tool
from ..models.makers import api_of
from ..providers import provider as provider_named
from ..providers.protocol import Provider
from ..providers.recognise import provider_of
from ..tokens.counters import checked_counter, counter_for
from ..tokens.protocol import BlobReader, Certainty, Choice, Counter, Tally
from .carried import found_tools, tools_in_prompt
from .size import choice_of, settings_tally
from .standalone import as_json


class TokenCount(Struct, frozen=True):
    """Input tokens of a request and how far to trust them.

    `certainty` is `exact`, `calibrated` (corrected by earlier bills) or `estimated`. `parts` are the tokens by kind:
    `system`, `tools`, `user`, `assistant` (including its calls), `tool_results`, `images` (all media), `framing`; they
    add up to `tokens`. `counter` is the name and version of the counter.
    """

    tokens: int
    certainty: Certainty
    parts: dict[str, int]
    counter: str


def count(
    body: Mapping[str, Any], provider: str = "", *, model: str = "", counter: Counter | None = None
) -> TokenCount:
    """The input tokens of a request body, without a network.

    `provider` is detected from the body if not given; `google-vertex` counts as Vertex AI bills. `model` defaults to
    the body's own; without a model, the count is an estimate at best. `counter` replaces the built-in counter. The
    first count loads a vocabulary, which takes a few tenths of a second. Raises FormatError if `body` is not a request
    of that provider; InputError if no provider is given and none can be detected from the body, or if `counter` is not
    a counter.
    """
    if model is not None:  # None means no model, as a caller without one may pass it
        text_given("model", model)
    with as_json(body) as plain:
        return _count(plain, model, provider, counter)


def _count(body: Mapping[str, Any], model: str, provider: str, counter: Counter | None) -> TokenCount:
    name = provider or provider_of(body)
    spoken = provider_named(api_of(name))
    parsed = spoken.parse(body)
    if name == spoken.name and spoken.billed_by is not None:
        name = spoken.billed_by(parsed)
    counts = (
        counter_for(name, model or parsed.configuration.model)
        if counter is None
        else checked_counter(counter, "counter: give a counter of turnlog.tokens, or an object with its methods")
    )
    settings = parsed.configuration.settings
    messages = as_turns(spoken.after_compaction(parsed.messages), spoken)
    tools = tools_in_prompt(parsed.configuration.tools, spoken, found_tools(messages))
    tally = tally_of(counts, messages, tools, choice_of(settings, spoken), parsed.blob)
    tally += settings_tally(settings, counts, spoken)
    named = counter is not None or bool(model or parsed.configuration.model)
    return TokenCount(tally.tokens, tally.certainty if named else "estimated", tally.parts, counts.id)


def as_turns(messages: Sequence[Message], speaker: Provider) -> Sequence[Message]:
    """The messages as they are counted: if a body of the provider has a message for each step of a turn, consecutive
    messages of one role are joined."""
    if not speaker.turns_of_steps:
        return messages
    return [
        Message(role, tuple(part for message in turn for part in message.parts))
        for role, turn in groupby(messages, key=lambda message: message.role)
    ]


def count_conversation(
    messages: Sequence[Message], tools: Sequence[Tool], model: str, provider: str = ""
) -> TokenCount:
    """The input tokens of canonical messages and tools, as they are. Media are assumed to be of common size."""
    counts = counter_for(provider, model)
    if provider:
        tools = tools_in_prompt(tools, provider_named(provider), found_tools(messages))
    tally = tally_of(counts, messages, tools, "auto", None)
    return TokenCount(tally.tokens, tally.certainty, tally.parts, counts.id)


def tally_of(
    counts: Counter, messages: Sequence[Message], tools: Sequence[Tool], choice: Choice, blob: BlobReader | None
) -> Tally:
    """The tokens of a whole request, by kind."""
    system = any(message.role == "system" for message in messages)
    tally = counts.messages(messages, blob) + counts.tools(tools, choice)
    return tally + counts.frame(system=system, tools=bool(tools))
