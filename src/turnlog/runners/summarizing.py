"""Summaries by any model that a runner reaches, limited in time and cost; no request waits for them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from .._platform.given import flag_given, kind_given
from ..errors import InputError, RunnerError, RunnerFailed, RunnerTimedOut
from ..log.messages import Message, Text, text_of
from ..log.usage import Usage
from ..models.pricing import cost
from ..models.target import Target, target
from ..providers import provider
from ..providers.answer_forms import answer_taken
from ..providers.protocol import Provider
from ..requests.request import Request
from ..session.session import Session
from ..stores import MemoryStore
from ..summarize import Material
from ..summarize.prompt import (
    PROMPT_VERSION,
    REFLECTIVE_VERSION,
    SummaryPrompt,
    draft_tokens,
    instruction_for,
    prompt_for,
)
from ..summarize.protocol import TIMEOUT
from ..tokens.counters import counter_for
from ..view.types import Shown, starts_turn
from .blocking import LoopThread
from .programs.runner import ProgramRunner
from .protocol import Runner, events

_PER_SECOND = 150
"""Tokens that a model writes in a second, an estimate. A longer summary is not asked for, as it would come too late."""

_QUOTED = 120
"""Characters quoted from the last message that a summary covers, by which the model finds it."""

_NAMED = 6
"""The most messages that are named as staying in the midst of what a summary covers."""

_RIDING = """\
This conversation is about to be shortened. Everything up to and including the message that begins with {end} is going \
to leave it, and notes by you will stand in its place. What comes after it stays{staying}: do not write that again. Do \
not go on with the task, call no tool, and answer nothing that was asked before.

{instruction}"""


class RunnerSummarizer:
    """Has a runner write the summaries of a session.

        settings = turnlog.load_settings(summarizer=RunnerSummarizer(SdkRunner()))

    Give it its own runner, because it works in its own event loop. The model is that of `target`, by default a cheap
    model of the maker of the session's model.

    If it costs less, the session's own model gets the session's own request with the question at its end: the provider
    bills most of that request as read from its prompt cache. `rides` says always (True) or never (False); programs
    always get a prompt.

    A summary is requested ahead of need, while the conversation goes on (docs/summaries.md, In advance), for at most
    `timeout` seconds. No request waits: one that needs room before the summary has come uses the digest. A summary that
    would cost more than `max_cost` US dollars at list prices is not requested, and none is once all together have cost
    `max_total`; `spent` is what they cost. Models without a price are not limited.
    """

    patience = 0.0
    """Seconds that a request waits for a summary."""

    def __init__(
        self,
        runner: Runner,
        *,
        target: Target | None = None,
        rides: bool | None = None,
        timeout: float = TIMEOUT,
        max_cost: Decimal | float = 0.10,
        max_total: Decimal | float = 1.0,
        input_limit: int = 0,
        reflective: bool | None = None,
    ) -> None:
        """`input_limit` is the most tokens of a prompt (0: 100,000, for programs 15,000); `reflective` is as for
        ModelSummarizer. Raises InputError for values that are not positive."""
        for name, value in (("timeout", timeout), ("max_cost", max_cost), ("max_total", max_total)):
            if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not value > 0:
                raise InputError(f"{name} must be a number, more than 0, not {value!r}")
        if not hasattr(runner, "stream"):
            raise InputError(f"runner: give a runner, such as SdkRunner(), not {type(runner).__name__}")
        if target is not None:
            kind_given("target", target, Target, "what turnlog.target(PROVIDER, MODEL) returns")
        self._runner = runner
        self._target = target
        self._program = isinstance(runner, ProgramRunner)
        self._rides = False if self._program else rides
        self._timeout = timeout
        self._most, self._total = Decimal(str(max_cost)), Decimal(str(max_total))
        self._limit = input_limit or (15_000 if self._program else 100_000)
        self._spent = _Spent()
        self._loop = LoopThread("turnlog-summarizer")
        self._living: tuple[Target, bytes, int, tuple[Shown, ...]] | None = None
        named = target.model if target is not None else "cheap"
        self._reflective = None if reflective is None else flag_given("reflective", reflective)
        form = f"requests-{REFLECTIVE_VERSION}" if reflective else f"prompt-{PROMPT_VERSION}"
        self._id = f"runner/{named}/{form}/{self._limit}"

    @property
    def id(self) -> str:
        """The model, the prompt's version and the input limit."""
        return self._id

    @property
    def spent(self) -> Decimal:
        """What all summaries have cost, in US dollars at list prices."""
        return self._spent.dollars

    def close(self) -> None:
        """Close the runner and end the thread."""
        self._loop.close(self._runner.aclose())

    def for_request(self, request: Request, /) -> RunnerSummarizer:
        """The same summarizer for the conversation of a request that is being sent."""
        summarizer = RunnerSummarizer(self._runner, target=self._target, rides=self._rides, timeout=self._timeout)
        summarizer._most, summarizer._total, summarizer._limit = self._most, self._total, self._limit
        summarizer._reflective = self._reflective
        summarizer._spent, summarizer._id, summarizer._loop = self._spent, self._id, self._loop
        summarizer._living = request.target, request.json(), request.tokens, request.view
        return summarizer

    def summarize(self, material: Material, /) -> str:
        """The summary. Raises RunnerError, and InputError without a target or for an input limit that is too small."""
        reflective = material.reflective if self._reflective is None else self._reflective
        material = msgspec.structs.replace(material, reflective=reflective)
        request, expected, prompt = self._cheapest(material)
        price = cost(expected, request.target.sold_as).total
        if price is not None and (price > self._most or self._spent.dollars + price > self._total):
            raise RunnerFailed(
                "summarizer", f"a summary would cost about ${price:.4f}, more than max_cost or max_total allows"
            )
        answer: tuple[str, Usage | None] = self._loop.wait(self._asked(request))
        text, usage = answer
        self._spent.add(cost(usage or expected, request.target.sold_as).at_least)
        return prompt.notes(text)

    def _cheapest(self, material: Material) -> tuple[Request, Usage, SummaryPrompt]:
        """The cheapest request for a summary, its expected bill, and what it asks."""
        aim = self._aim()
        speaker = provider(aim.provider)
        settings = {**speaker.required_settings(aim), **aim.settings}
        prompt = prompt_for(self._within(material, aim, settings), limit=self._limit)
        count = counter_for(aim.provider, aim.model).text
        plain = Usage(input=count(prompt.text), output=prompt.output)
        riding = self._riding(material)
        if riding is not None:
            riding_cost, plain_cost = cost(riding[1], riding[0].target.sold_as).total, cost(plain, aim.sold_as).total
            if self._rides or (riding_cost is not None and plain_cost is not None and riding_cost <= plain_cost):
                return riding
        with Session(store := MemoryStore(), store.create("summary")) as asked:
            asked.user(prompt.text)
            return asked.request(aim), plain, prompt

    def _within(self, material: Material, aim: Target, settings: Mapping[str, Any]) -> Material:
        """The material for notes that the model can write, draft included, in time and within its limit on answers."""
        limit: Any = settings
        for key in provider(aim.provider).setting_paths.get("max_output_tokens", ()):
            limit = limit.get(key) if isinstance(limit, Mapping) else None
        most = min(int(self._timeout * _PER_SECOND), limit if isinstance(limit, int) else aim.output_limit)
        most -= draft_tokens(min(most, material.target))
        return msgspec.structs.replace(material, target=max(1, min(material.target, most)))

    def _aim(self) -> Target:
        if self._target is not None:
            return self._target
        if self._living is None:
            raise InputError("RunnerSummarizer needs target=turnlog.target(...) outside of a session")
        session_target = self._living[0]
        return (
            session_target
            if session_target.base_url or session_target.compatible
            else target(session_target.provider, provider(session_target.provider).row.maker.cheap_model)
        )

    def _riding(self, material: Material) -> tuple[Request, Usage, SummaryPrompt] | None:
        """The session's own request, with the question at its end; None if that is not wanted, there is none, or an
        answer to it would be no summary."""
        if self._living is None or self._rides is False or not material.messages:
            return None
        session_target, body, tokens, view = self._living
        speaker, settings = provider(session_target.provider), msgspec.json.decode(body)
        if answer_taken(speaker, settings)[0] or speaker.tool_choice(settings) not in (None, "auto", "none"):
            return None  # the answer would be no prose: a summary in the form of a schema, or a call
        last = next((text for shown in reversed(material.messages) if (text := _beginning(shown))), "")
        instruction = instruction_for(self._within(material, session_target, settings))
        asked = _RIDING.format(end=_quoted(last), staying=_staying(material), instruction=instruction.text)
        message = Shown(Message("user", (Text(asked),)), ())
        count = counter_for(session_target.provider, session_target.model).text(asked)
        request = Request(
            target=session_target,
            body=lambda: _with_question(msgspec.json.decode(body), speaker, asked),
            edits=tuple,
            losses=tuple,
            tokens=lambda: tokens + count,
            view=(*view, message),
        )
        return request, Usage(input=tokens + count, cached=tokens, output=instruction.output), instruction

    async def _asked(self, request: Request) -> tuple[str, Usage | None]:
        """The text of the answer, and what was billed. Raises RunnerError."""
        try:
            async with asyncio.timeout(self._timeout):
                return await _text(self._runner, request)
        except TimeoutError:
            raise RunnerTimedOut("summarizer", self._timeout) from None


class _Spent:
    """Money spent by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.dollars = Decimal(0)

    def add(self, dollars: Decimal) -> None:
        """Count what was spent."""
        with self._lock:
            self.dollars += dollars


async def _text(runner: Runner, request: Request) -> tuple[str, Usage | None]:
    pieces: list[str] = []
    usage = None
    async for event in events(runner, request):
        if event.kind == "text":
            pieces.append(event.text)
        elif event.kind == "usage":
            usage = event.usage
        elif event.kind == "error":
            raise event.error if isinstance(event.error, RunnerError) else RunnerFailed("summarizer", event.text)
    return "".join(pieces), usage


def _staying(material: Material) -> str:
    """The end of a sentence that names the user's messages among the summarised ones which stay."""
    last = max((n for shown in material.messages for n in shown.records), default=0)
    own = (shown for shown in material.kept if shown.records and shown.records[0] < last and starts_turn(shown))
    texts = [text for shown in own if not shown.stands_in and (text := _beginning(shown))][:_NAMED]
    return f", and so do the user's messages that begin with {', '.join(map(_quoted, texts))}" if texts else ""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _beginning(shown: Shown) -> str:
    """The first characters of a message's text, on one line."""
    return " ".join(text_of(shown.message).split())[:_QUOTED]


def _with_question(body: dict[str, Any], speaker: Provider, text: str) -> dict[str, Any]:
    """A body with one more message of the user at its end. Nothing before it changes, so that is read from the prompt
    cache."""
    key = speaker.conversation
    return {**body, key: [*body[key], speaker.user_message(text)]}
