"""The compact text history: a conversation as one prompt, as large as its target allows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from .._platform.given import flag_given, text_given
from .._platform.stdlib import LOG, logging
from ..errors import InputError
from ..log.messages import Message, Part, Text, media_parts
from ..summarize import Background, Material, MemoryLedger, Summarizer
from ..summarize.attempts import TIMEOUT
from ..summarize.ledger import Ledger, key_of, outcome_of
from ..summarize.model import Complete, as_ladder
from ..tokens.counters import checked_counter, counter_for
from ..tokens.protocol import Counter
from ..view.types import Shown
from .frame import OPENING, Frame
from .layout import Layout, Level
from .sizes import TextSizes

# -- summaries -------------------------------------------------------------------------------------
#
# Summaries of the older messages of a text history, made by a model in the background.
#
# No prompt waits for one. A summary covers the messages from the first to some number; those after it are shown,
# shortened, until the next summary covers them too.

_GROWN = 1_000
"""Tokens of messages that no summary covers before the next one is asked for."""


class Summaries:
    """The summaries of one conversation. Without a summarizer there are none."""

    def __init__(self, summarizer: Summarizer | Complete | None, ledger: Ledger | None, timeout: float) -> None:
        self._summarizer = next(iter(as_ladder(summarizer)), None)
        self._ledger = MemoryLedger() if ledger is None else ledger
        self._timeout = timeout
        self._background = Background()
        self._pending: tuple[str, tuple[Shown, ...], float] | None = None
        self._asked: tuple[Shown, ...] = ()
        self._covered: tuple[Shown, ...] = ()
        self._text = ""

    def forget(self) -> None:
        """Begin another conversation. A summary in the making is not used."""
        self._background.close(self._ledger)
        self._pending = None
        self._asked = self._covered = ()
        self._text = ""

    def of(self, older: Sequence[Shown]) -> tuple[str, int]:
        """A summary of the oldest of these messages, and how many of them it covers; "" and 0 if there is none."""
        if self._text and tuple(older[: len(self._covered)]) == self._covered:
            return self._text, len(self._covered)
        return "", 0

    def collect(self) -> str:
        """Take the summary that was asked for, if it has come. Returns why there will be none, else ""."""
        if self._pending is None:
            return ""
        key, messages, began = self._pending
        failure = self._background.collect(self._ledger)
        outcome = outcome_of(self._ledger.find(key))
        if outcome is not None and outcome[1].state == "made":
            self._pending, self._covered, self._text = None, messages, outcome[1].text
            return ""
        if failure is None and self._background.running(key) is not None:
            if time.monotonic() - began < self._timeout:
                return ""
            failure = self._background.close(self._ledger)
        self._pending = None
        return str(failure) if failure is not None else "another process was to make it"

    def prepare(
        self, older: Sequence[Shown], size: Callable[[Sequence[Shown]], int], tokens: int, count: Callable[[str], int]
    ) -> str:
        """Ask for a summary of these messages of at most `tokens` tokens, unless one is being made, or those that none
        covers are few. `size` gives the tokens of messages. Returns at once: why it cannot be asked for, else ""."""
        if self._summarizer is None or self._pending is not None:
            return ""
        text, covered = self.of(older)
        asked = len(self._asked) if tuple(older[: len(self._asked)]) == self._asked else 0
        if size(older[max(covered, asked) :]) < _GROWN:
            return ""
        material = Material(
            messages=tuple(older),
            target=tokens,
            count=count,
            previous=text,
            news=tuple(older[covered:]),
            size=size(older),
        )
        self._asked = material.messages
        try:
            key = key_of(self._summarizer.id, material)
        except InputError as error:  # a message that cannot be recorded
            return str(error)
        failure = self._background.start(material, self._summarizer, self._ledger, key=key)
        self._pending = key, material.messages, time.monotonic()
        return "" if failure is None else str(failure)


MAX_PROMPT_TOKENS = 16_000
"""The largest prompt, in tokens, if nothing else is said."""

_LARGE, _VERY_LARGE, _LARGEST = 16_000, 40_000, 60_000
_LEAST = 100
"""Tokens besides the frame that any prompt needs: room for a question and for what says that all else is left out."""

_ROLES = ("system", "user", "assistant")


class BuiltPrompt(Struct, frozen=True):
    """A prompt: its text, its `tokens` as `turnlog.count` counts a request of this one message, and the `level` by
    which it was made.

    `level`: `verbatim` (all messages), `moderate` (the first and the newest messages, and a summary between) or
    `strong` (a summary, and the last exchanges). `compressed`: whether anything of the conversation is shortened,
    summarised or left out; `changes` says what, one sentence for each.
    """

    prompt: str
    tokens: int
    level: Level
    compressed: bool
    changes: tuple[str, ...] = ()


class HistoryPrompt:
    """Keeps a conversation, and makes one prompt of it and of what the user says next.

        history = HistoryPrompt()
        history.add_message("user", "What is in a.py?")
        history.add_message("assistant", "A parser.")
        print(history.build_prompt("Does it read CSV?").prompt)

    How much is shown follows the tokens of the whole history: under 5,000 all of it; up to 15,000 the first message,
    the newest `recent_message_count` ones and a summary between; above that a summary and the last 3 to 5 exchanges.
    With `enable_compression=False` messages are shown whole, and the oldest are left out if not all fit. A prompt never
    has more than `max_prompt_tokens` tokens.

    `summarizer` (a Summarizer, or a function from a prompt to a text) is asked for summaries of histories of
    `summary_threshold` tokens or more, in the background, for `summary_timeout` seconds: no prompt waits. Until one has
    come, or without it, older messages are shortened, the oldest most. `ledger` keeps the summaries (None: in memory).

    `opening` is the first line of a prompt; a `template` with `{recent}`, `{current}` and, if you like, `{summary}`
    replaces all headings. `model` and `provider` say how tokens are counted, as in `turnlog.count`.
    """

    def __init__(
        self,
        max_prompt_tokens: int = MAX_PROMPT_TOKENS,
        summary_threshold: int = 8_000,
        recent_message_count: int = 8,
        enable_compression: bool = True,
        *,
        allow_large: bool = False,
        opening: str = OPENING,
        template: str = "",
        model: str = "",
        provider: str = "",
        counter: Counter | None = None,
        summarizer: Summarizer | Complete | None = None,
        summary_timeout: float = TIMEOUT,
        ledger: Ledger | None = None,
    ) -> None:
        """Warns of a `max_prompt_tokens` above 16,000 or 40,000. Raises InputError for one above 60,000 without
        `allow_large`, for values that are out of range, and for a template without its places."""
        _check_counts(max_prompt_tokens, summary_threshold, recent_message_count)
        flag_given("enable_compression", enable_compression)
        flag_given("allow_large", allow_large)
        text_given("model", model)
        text_given("provider", provider)
        _check_size(max_prompt_tokens, allow_large=allow_large)
        counts = (
            counter_for(provider or ("" if model else "openai-chat"), model)
            if counter is None
            else checked_counter(counter, "counter")
        )
        self.max_prompt_tokens = max_prompt_tokens
        self.summary_threshold = summary_threshold
        self.recent_message_count = recent_message_count
        self.enable_compression = enable_compression
        self._sizes = TextSizes(counts)
        self._layout = Layout(self._sizes, Frame(opening, template), max_prompt_tokens, recent_message_count)
        if self._layout.frame + _LEAST > max_prompt_tokens:
            raise InputError(
                f"max_prompt_tokens: {max_prompt_tokens:,} tokens are too few; headings and a question need "
                f"{self._layout.frame + _LEAST:,}"
            )
        self._summaries = Summaries(summarizer, ledger, summary_timeout)
        self._messages: list[Shown] = []

    @property
    def message_count(self) -> int:
        """The number of messages that were added."""
        return len(self._messages)

    @property
    def estimated_total_tokens(self) -> int:
        """The tokens of all messages that were added, as they stand in a prompt. Long texts are estimated."""
        return self._layout.size(self._messages)

    def add_message(
        self, message: str | Message | Mapping[str, Any], content: str | Part | Sequence[Part] = ""
    ) -> None:
        """Add a message: a role (`system`, `user` or `assistant`) and its content, a turnlog.Message, or a dict with
        `role` and `content`. Raises InputError for anything else."""
        added = message if isinstance(message, Message) else _message(message, content)
        self._messages.append(Shown(added, (len(self._messages) + 1,)))

    def clear_history(self) -> None:
        """Forget all messages, and their summary."""
        self._messages.clear()
        self._summaries.forget()

    def build_prompt(self, current: str | Part | Sequence[Part] = "") -> BuiltPrompt:
        """The prompt of the messages added so far and of what the user says now. `current` is not added: add it, and
        the answer, when the answer has come."""
        message = Message("user", _parts(current))
        return self._built(self._messages, [Shown(message, (len(self._messages) + 1,))])

    def prompt_of(self, view: Iterable[Shown | Message]) -> BuiltPrompt:
        """The prompt of a session's view (`session.view()`, `request.view`) or of other messages. The user's messages
        at its end are the current one. Messages that were added with `add_message` are not in it."""
        shown = [message if isinstance(message, Shown) else Shown(message, (n,)) for n, message in enumerate(view, 1)]
        since = len(shown)
        while since and shown[since - 1].message.role == "user":
            since -= 1
        return self._built(shown[:since], shown[since:])

    def _built(self, history: Sequence[Shown], current: Sequence[Shown]) -> BuiltPrompt:
        changes = [f"no summary: {reason}" for reason in [self._summaries.collect()] if reason]
        laid = self._layout.laid_out(history, current, self._summaries.of, compress=self.enable_compression)
        if self.enable_compression and laid.older and laid.size >= self.summary_threshold:
            count = self._sizes.text
            wanted = self._summaries.prepare(laid.older, self._layout.size, self._layout.summary_tokens, count)
            changes += [f"no summary: {wanted}"] if wanted else []
        media = sum(1 for shown in (*history, *current) for _ in media_parts(shown.message))
        changes += [f"images and files by name only: {media}"] if media else []
        changes = [*laid.changes, *changes]
        for number, change in enumerate(changes):
            LOG.log(logging.WARNING if number < laid.cuts else logging.INFO, "text history: %s", change)
        return BuiltPrompt(laid.prompt, laid.tokens, laid.level, bool(laid.changes), tuple(changes))


def _check_counts(max_prompt_tokens: int, summary_threshold: int, recent_message_count: int) -> None:
    counts = (
        ("max_prompt_tokens", max_prompt_tokens),
        ("summary_threshold", summary_threshold),
        ("recent_message_count", recent_message_count),
    )
    for name, value in counts:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be a whole number, at least 1, not {value!r}")


def _check_size(tokens: int, *, allow_large: bool) -> None:
    if tokens > _LARGEST and not allow_large:
        raise InputError(
            f"max_prompt_tokens: {tokens:,} is more than {_LARGEST:,}; give allow_large=True if you mean it"
        )
    if tokens > _LARGE:
        cost = "slow and expensive: each turn sends it anew" if tokens > _VERY_LARGE else "sent anew with each turn"
        above = _VERY_LARGE if tokens > _VERY_LARGE else _LARGE
        warnings.warn(f"max_prompt_tokens: prompts of more than {above:,} tokens are {cost}", stacklevel=3)


def _message(given: Any, content: Any) -> Message:
    role = given
    if isinstance(given, Mapping):
        role, content = given.get("role"), given.get("content") or ""
    if role not in _ROLES:
        raise InputError(
            f"add_message takes a role ({', '.join(_ROLES)}) and its content, a turnlog.Message, or a dict with role "
            f"and content; not {role!r:.100}. To read messages of an API with tools, use turnlog.open and extend"
        )
    return Message(role, _parts(content))


def _parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    given = (content,) if isinstance(content, Part) else content
    if isinstance(given, Sequence):
        parts = [_part(value) for value in given]
        if all(isinstance(part, Part) for part in parts):
            return tuple(parts)
    raise InputError(f"content is text, or parts such as turnlog.Text; not {content!r:.100}")


def _part(given: Any) -> Any:
    """A text part as providers write it, as a Text; anything else as it is."""
    if isinstance(given, Mapping) and given.keys() <= {"type", "text"} and isinstance(given.get("text"), str):
        return Text(given["text"])
    return given
