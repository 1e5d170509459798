"""The compact text history: a conversation as one prompt, as large as its target allows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from .._platform.files import write_whole
from .._platform.given import flag_given, kind_given, number_given, text_given
from .._platform.stdlib import LOG, logging
from ..errors import CorruptRecord, InputError
from ..log.codec import decode_record, encode_record
from ..log.messages import Message, Part, Text, media_parts
from ..log.records import Body, MessageRecord, Record, SummaryRecord
from ..models.catalog import find_model, model_abilities
from ..summarize import Background, Material, MemoryLedger, Summarizer, attempt
from ..summarize.ledger import Ledger, key_of, outcome_of
from ..summarize.model import Complete, as_ladder
from ..summarize.protocol import TIMEOUT
from ..summarize.transcript import entries_of
from ..tokens.calibration import MARGINS
from ..tokens.counters import WORD, checked_counter, counter_for
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
        self._background.close(self._ledger, "the history was cleared before it came")
        self._pending = None
        self._asked = self._covered = ()
        self._text = ""

    def of(self, older: Sequence[Shown]) -> tuple[str, int]:
        """A summary of the oldest of these messages, and how many of them it covers; "" and 0 if there is none."""
        common = min(len(older), len(self._covered))  # one that `now` made covers newer messages, too
        if self._text and tuple(older[:common]) == self._covered[:common]:
            return self._text, common
        return "", 0

    def restore(self, text: str, covered: Sequence[Shown]) -> None:
        """Go on with a summary of these messages that was made before."""
        self._text, self._covered = text, tuple(covered)

    def now(self, material: Material) -> tuple[str, list[str]]:
        """A summary of the material, by the summarizer in at most its time, else by rules; and why the summarizer made
        none. One of a model is what later prompts show."""
        if self._text and material.messages == self._covered:
            return self._text, []
        ladder = () if self._summarizer is None else (self._summarizer,)
        made = attempt(material, ladder, timeout=self._timeout, ledger=self._ledger)
        if self._summarizer is not None and made.summarizer == self._summarizer.id:
            self.restore(made.text, material.messages)
        return made.text, [str(failure) for failure in made.failures if ladder]

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
            failure = self._background.close(self._ledger, f"no answer in {self._timeout:g} s")
        self._pending = None
        return str(failure) if failure is not None else "another process was to make it"

    def prepare(self, material: Material, size: Callable[[Sequence[Shown]], int]) -> str:
        """Ask for a summary of the material, unless one is being made, or the messages that none covers are few. `size`
        gives the tokens of messages. Returns at once: why it cannot be asked for, else ""."""
        if self._summarizer is None or self._pending is not None:
            return ""
        older = material.messages
        asked = len(self._asked) if older[: len(self._asked)] == self._asked else 0
        if size(older[max(len(older) - len(material.news), asked) :]) < _GROWN:
            return ""
        self._asked = older
        try:
            key = key_of(self._summarizer.id, material)
        except InputError as error:  # a message that cannot be recorded
            return str(error)
        failure = self._background.start(material, self._summarizer, self._ledger, key=key)
        self._pending = key, older, time.monotonic()
        return "" if failure is None else str(failure)


MAX_PROMPT_TOKENS = 16_000
"""The largest prompt, in tokens, if nothing else is said."""

_LARGE, _VERY_LARGE, _LARGEST = _BANDS = 16_000, 40_000, 60_000
_ANSWER = 4_000
"""Tokens of a model's window that are left for its answer, but at most half of the window."""

_LEAST = 100
"""Tokens besides the frame that any prompt needs: room for a question and for what says that all else is left out."""

_SAVED = "text history"
"""The key of a summary in a file of a history. It stands behind the messages that it covers."""

_ROLES = ("system", "user", "assistant")


class BuiltPrompt(Struct, frozen=True):
    """A prompt: its text, its `tokens` as `turnlog.count` counts a request of this one message, and the `level` by
    which it was made.

    `level`: `verbatim` (all messages), `moderate` (the first and the newest messages whole, and a summary between) or
    `strong` (the last exchanges whole, and a summary). Where no model has made a summary, the messages themselves stand
    in its place, shortened only as far as they have no room. `compressed`: whether anything of the conversation is
    shortened, summarised or left out; `changes` says what, one sentence for each.
    """

    prompt: str
    tokens: int
    level: Level
    compressed: bool
    changes: tuple[str, ...] = ()


class HistoryPrompt:
    """Keeps a conversation, and makes one prompt of it and of what the user says next.

        history = HistoryPrompt()
        history.add_user_message("What is in a.py?")
        history.add_assistant_message("A parser.")
        print(history.build_prompt("Does it read CSV?").prompt)

    How much is shown follows the tokens of the whole history: under 5,000 all of it; up to 15,000 the first message,
    the newest `recent_message_count` ones and a summary between; above that a summary and the last 3 to 5 exchanges.
    With `enable_compression=False` messages are shown whole, and the oldest are left out if not all fit. A prompt never
    has more than `prompt_limit` tokens: `max_prompt_tokens`, or what the window of a known `model` leaves beside
    `answer_tokens` for the answer (None: 4,000, at most half of the window).

    `summarizer` (a Summarizer, or a function from a prompt to a text) is asked for summaries of histories of
    `summary_threshold` tokens or more, in the background, for `summary_timeout` seconds: no prompt waits. Until one has
    come, or without it, older messages are shortened to fit, the oldest most. `ledger` keeps the summaries (None: in
    memory).

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
        answer_tokens: int | None = None,
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
        _check_counts(max_prompt_tokens, summary_threshold, recent_message_count, answer_tokens)
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
        window = _beside_answer(model, answer_tokens)
        room = max_prompt_tokens if window is None else int(window / MARGINS[counts.messages((WORD,)).certainty])
        self.prompt_limit = min(max_prompt_tokens, room)
        self._layout = Layout(self._sizes, Frame(opening, template), self.prompt_limit, recent_message_count)
        if self._layout.frame + _LEAST > self.prompt_limit:
            name = "max_prompt_tokens" if room >= max_prompt_tokens else f"answer_tokens and the window of {model!r}"
            raise InputError(
                f"{name}: {self.prompt_limit:,} tokens are too few for a prompt; headings and a question need "
                f"{self._layout.frame + _LEAST:,}"
            )
        self._reflective = model_abilities(model).reflective
        self._band = 0
        self._summaries = Summaries(summarizer, ledger, number_given("summary_timeout", summary_timeout))
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

    def add_user_message(self, content: str | Part | Sequence[Part]) -> None:
        """Add what the user said; raises as `add_message`."""
        self.add_message("user", content)

    def add_assistant_message(self, content: str | Part | Sequence[Part]) -> None:
        """Add what the model answered; raises as `add_message`."""
        self.add_message("assistant", content)

    def summarize_history(self) -> str:
        """A summary of all messages, now: by the summarizer, which is waited for as long as `summary_timeout` says, and
        which is not paid again for the same messages; later prompts show it. Without one, or if it fails (a warning in
        the log says why), by rules, as a `Digest`. Empty if the messages are no longer than a summary."""
        if not self._messages:
            return ""
        text, failures = self._summaries.now(self._material(self._messages))
        for failure in failures:
            LOG.warning("text history: no summary by the model: %s", failure)
        return text

    def save(self, path: str | Path) -> None:
        """Write the messages, and the summary of a model, to a file that only the user can read: a record in a line, as
        in a log. Secrets are not replaced. Raises InputError for what cannot be written, and OSError."""
        text, covered = self._summaries.of(self._messages)
        bodies: list[Body] = [MessageRecord(shown.message) for shown in self._messages]
        if text:
            bodies.insert(covered, SummaryRecord(_SAVED, "made", text))
        records = (Record(n, "", body) for n, body in enumerate(bodies, 1))
        write_whole(_place(path), [encode_record(record) + b"\n" for record in records])

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> HistoryPrompt:
        """The history in a file that `save` wrote; `options` are those of HistoryPrompt. Raises InputError, which names
        the line, for a file that is none."""
        history = cls(**options)
        try:
            lines = _place(path).read_bytes().splitlines()
        except (OSError, UnicodeEncodeError) as error:
            raise InputError(f"{str(path)!r} cannot be read: {error}") from error
        for number, line in enumerate(lines, 1):
            try:
                body = decode_record(line).body
            except CorruptRecord as error:
                raise InputError(f"{path}, line {number}: no record of a text history ({error})") from error
            if isinstance(body, SummaryRecord) and body.key == _SAVED:
                history._summaries.restore(body.text, history._messages)
            elif isinstance(body, MessageRecord):
                history.add_message(body.message)
            else:
                raise InputError(f"{path}, line {number}: no message; give a file that HistoryPrompt.save wrote")
        return history

    def clear_history(self) -> None:
        """Forget all messages, and their summary."""
        self._messages.clear()
        self._summaries.forget()
        self._band = 0

    def build_prompt(self, current_message: str | Part | Sequence[Part]) -> BuiltPrompt:
        """The prompt of the messages added so far and of what the user says now. `current_message` is not added: add
        it, and the answer, when the answer has come. Raises InputError if it says nothing."""
        message = Message("user", _parts(current_message))
        return self._built(self._messages, [Shown(message, (len(self._messages) + 1,))])

    def prompt_of(self, view: Iterable[Shown | Message]) -> BuiltPrompt:
        """The prompt of a session's view (`session.view()`, `request.view`) or of other messages. The user's messages
        at its end are the current one. Messages that were added with `add_message` are not in it. Raises InputError if
        the user says nothing at the end."""
        shown = [message if isinstance(message, Shown) else Shown(message, (n,)) for n, message in enumerate(view, 1)]
        since = len(shown)
        while since and shown[since - 1].message.role == "user":
            since -= 1
        return self._built(shown[:since], shown[since:])

    def _built(self, history: Sequence[Shown], current: Sequence[Shown]) -> BuiltPrompt:
        if not any(entry.voice != "user" or entry.text.strip() for entry in entries_of(current)):
            raise InputError("the current message is empty; give what the user says now, as a message of the user")
        reasons = [self._summaries.collect()]
        laid = self._layout.laid_out(history, current, self._summaries.of, compress=self.enable_compression)
        if self.enable_compression and laid.older and laid.size >= self.summary_threshold:
            reasons.append(self._summaries.prepare(self._material(laid.older), self._layout.size))
        self._warn_of(laid.size)
        failures = [f"no summary: {reason}" for reason in reasons if reason]
        media = sum(1 for shown in (*history, *current) for _ in media_parts(shown.message))
        changes = [*laid.changes, *failures, *([f"images and files by name only: {media}"] if media else [])]
        for number, change in enumerate(changes):
            loud = number < laid.cuts or change in failures
            LOG.log(logging.WARNING if loud else logging.INFO, "text history: %s", change)
        return BuiltPrompt(laid.prompt, laid.tokens, laid.level, bool(laid.changes), tuple(changes))

    def _material(self, messages: Sequence[Shown]) -> Material:
        """These messages for a summarizer, with the summary of the oldest of them that there is."""
        text, covered = self._summaries.of(messages)
        return Material(
            messages=tuple(messages),
            target=self._layout.summary_tokens,
            count=self._sizes.text,
            previous=text,
            news=tuple(messages[covered:]),
            size=self._layout.size(messages),
            reflective=self._reflective,
        )

    def _warn_of(self, size: int) -> None:
        """Warn once when the conversation enters 16,000 to 40,000 tokens, 40,000 to 60,000, and what is above."""
        band = sum(size >= start for start in _BANDS)
        if band > self._band:
            LOG.warning(
                "text history: the conversation has %s tokens, %s or more: prompts show less and less of it; clear the "
                "history when another task begins, or give a summarizer",
                f"{size:,}",
                f"{_BANDS[band - 1]:,}",
            )
        self._band = band


def _place(path: str | Path) -> Path:
    """A path as one; raises InputError for what is none."""
    kind_given("path", path, (str, Path), "the path of a file")
    if not str(path) or "\0" in str(path):
        raise InputError(f"path: give the path of a file, not {path!r}")
    return Path(path)


def _beside_answer(model: str, answer_tokens: int | None) -> int | None:
    """What the window of a model leaves beside the answer; None if the window is not known."""
    found = find_model(model) if model else None
    window = None if found is None else found.facts.input
    if window is None:
        return None
    return window - (min(_ANSWER, window // 2) if answer_tokens is None else answer_tokens)


def _check_counts(
    max_prompt_tokens: int, summary_threshold: int, recent_message_count: int, answer_tokens: int | None
) -> None:
    counts = (
        ("max_prompt_tokens", max_prompt_tokens),
        ("summary_threshold", summary_threshold),
        ("recent_message_count", recent_message_count),
        ("answer_tokens", 1 if answer_tokens is None else answer_tokens),
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
