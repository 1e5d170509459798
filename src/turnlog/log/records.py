"""What a log consists of: numbered, timed records, one struct a kind.

A record is an envelope (number, time) around a body. Bodies are frozen values; a new kind is a new
struct in `Body`, and a reader that does not know it keeps it as `UnknownRecord`, untouched.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from .budget import Budget, Strategy
from .messages import Form, Message, Outcome, Part, Tool


class Count(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """Tokens of a message as one counter saw them when it was recorded; never recomputed.

    `counter` names counter and version, `certainty` how far to trust it. `at_once` says that it is the size which the
    message takes among results of calls that were made at once, where a provider bills those otherwise.
    """

    tokens: int
    counter: str
    certainty: Literal["exact", "calibrated", "estimated"] = "estimated"
    at_once: bool = False


class Usage(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """What a provider billed for one request, in tokens.

    `input` is everything the model read, cached parts included, whatever the provider's own
    convention; `cached` the part read from its cache, `cache_write` the part written to it, of which
    `cache_write_1h` is kept for an hour. `output` is everything it wrote, reasoning included;
    `reasoning` that part alone.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0

    def __add__(self, other: Usage) -> Usage:
        """What both were billed."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            cache_write_1h=self.cache_write_1h + other.cache_write_1h,
        )


_CERTAIN = 1 << 53
"""From here on numbers in JSON are not told apart by everybody who reads them."""


def tokens_billed(value: Any) -> int:
    """A figure of a usage object as tokens: 0 for what is no whole number, less than none, or more than JSON holds.

    Servers that imitate an API report -1 for what they did not count, and 12.0 for 12.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _CERTAIN:
        return 0
    return int(value) if value == int(value) else 0


class Binding(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """What the reasoning of an answer is bound to, where its model seals it with all that it was sent.

    `prefix` is the digest of what stood ahead of the answer in its request, `after` the number of the record with the
    newest reasoning in that request, `first` of that with the oldest; 0 if there was none.
    """

    prefix: str
    after: int = 0
    first: int = 0


class MessageRecord(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="message"
):
    """A message. `model` wrote it, where a model did; `stop` is why it stopped, in its words.

    `source` is the place in a foreign transcript that it was imported from (a line, an id). `binding` says what its
    reasoning is bound to, if the model binds it.
    """

    message: Message
    count: Count | None = None
    model: str = ""
    stop: str = ""
    response_id: str = ""
    source: str = ""
    binding: Binding | None = None


class PartialAnswer(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="partial"
):
    """An answer that was interrupted: what had come. It is part of the conversation.

    `reason` says what is known of the interruption. A call whose arguments had not fully come is
    not a call: its fragments stand in `fragments`, readable, never sent.
    """

    message: Message
    reason: str
    fragments: tuple[Part, ...] = ()
    count: Count | None = None
    model: str = ""
    binding: Binding | None = None


class StreamCheckpoint(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="checkpoint"
):
    """What had come of an answer while it was being streamed: all of it up to here, whatever checkpoints said before.

    Not part of the conversation: the answer follows, or, where the process was killed before it came, the
    `PartialAnswer` that whoever opens the session next makes of the newest checkpoint, unless it was taken back.
    `fragments` as there.
    """

    message: Message
    fragments: tuple[Part, ...] = ()
    model: str = ""
    binding: Binding | None = None


class ToolStarted(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="tool_started"
):
    """A tool began to run for the call `call_id` of message record `call_record`."""

    call_id: str
    call_record: int
    name: str = ""


class ToolFinished(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="tool_finished"
):
    """A tool ended; its result is a message of its own. `seconds` is how long it ran."""

    call_id: str
    call_record: int
    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""


class UsageRecord(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="usage"
):
    """What one request cost. `raw` is the provider's own usage object.

    `counted` is the whole request as it was counted before it was sent, `answer` the tokens of the
    answer by the same counter (0 if it is not kept): what later counts are calibrated by.
    """

    provider: str
    model: str
    usage: Usage
    raw: Any = None
    counted: Count | None = None
    answer: int = 0


class Decision(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="decision"):
    """Something a view must do from here on: `clear`, `rewind`, `compact`, `mask`, `pin`, ...

    It covers the records `first` to `last` (inclusive) and applies to views of the log from its own
    number on. `detail` holds what the action needs; `why` is for people. `supersedes` is the number
    of a decision that this one takes back.
    """

    action: str
    first: int = 0
    last: int = 0
    why: str = ""
    detail: dict[str, Any] = {}
    supersedes: int = 0

    @property
    def replacement(self) -> tuple[Message, ...]:
        """The messages that stand in for what it hides; none if there are none, or none that can be read."""
        try:
            return msgspec.convert(self.detail.get("replacement") or (), tuple[Message, ...])
        except (msgspec.ValidationError, UnicodeEncodeError):  # the latter: a lone surrogate in a key
            return ()


class SessionOpened(
    Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="session_opened"
):
    """A session was opened for work, and where that was said: from where.

    `source` is `interactive` (somebody sits before it), `non-interactive` (a script, a pipeline) or `embedded-server`
    (a server inside another program, for its users). `resumed` says that the log was there before.
    """

    source: str
    resumed: bool = False


class TurnOpened(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="turn_opened"):
    """A turn began. `watch` is the folder that is watched for changes while it lasts, if one is."""

    turn_id: str
    watch: str = ""


class TurnClosed(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="turn_closed"):
    """A turn ended."""

    turn_id: str
    status: str
    reason: str = ""


class Environment(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """What was found where a configuration was made: the version of turnlog, and the model's limits in tokens as the
    table of models had them, 0 without a model. `known` is False if the model stood in no table."""

    turnlog: str = ""
    input_limit: int = 0
    output_limit: int = 0
    known: bool = True


class Configuration(
    Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="configuration"
):
    """What requests are made with from here on.

    `settings` are the top-level request keys of `provider`, passed through; `tools` what the model
    may call. `form` is how that provider's request body was spelled. `input_limit`, in tokens, is what
    the model takes where that was said and is not its usual limit, else 0. `budget` and `strategy` are
    None where the default holds. `environment` is what it was made in: no request depends on it. `base_url`
    is another server that speaks the provider's API.
    """

    provider: str = ""
    model: str = ""
    settings: dict[str, Any] = {}
    tools: tuple[Tool, ...] = ()
    form: Form | None = None
    why: str = ""
    input_limit: int = 0
    budget: Budget | None = None
    strategy: Strategy | None = None
    environment: Environment | None = None
    base_url: str = ""


class FileChange(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="file_change"):
    """A file changed.

    `before` and `after` are blob hashes, empty where there was or is no file, or its content is not
    known. `patch` is the blob hash of a unified diff where that is all that is known of a content's change.
    `root` is the folder that a relative path starts from, where it is known; `old_mode` and `mode` are
    git's (`100644`, `100755`).
    """

    path: str
    action: Literal["modified", "created", "deleted", "renamed"]
    before: str = ""
    after: str = ""
    old_path: str = ""
    call_record: int = 0
    patch: str = ""
    root: str = ""
    old_mode: str = ""
    mode: str = ""


class Approval(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="approval"):
    """Somebody was asked whether a call may run, or answered."""

    call_id: str
    state: Literal["asked", "given", "denied"]
    call_record: int = 0
    by: str = ""
    reason: str = ""


class Note(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="note"):
    """Something kept with the conversation and never sent to a model.

    `topic` is a short word to find it by, `data` whatever JSON goes with it.
    """

    topic: str
    text: str = ""
    data: Any = None


class SummaryRecord(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="summary"):
    """A step in the making of a summary. Never shown to a model: a decision does that.

    `key` says what was to be summarised by whom. `claimed` is written before a summarizer is called: whoever
    claimed first, by record number, may call it, and nobody else ever. `made` and `failed` say how that ended;
    `text` is the summary, `reason` why there is none. `summarizer` is name and version.
    """

    key: str
    state: Literal["claimed", "made", "failed"]
    text: str = ""
    reason: str = ""
    summarizer: str = ""


class SealedRecord(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="sealed"):
    """How a record stands on the disk in an encrypted store; who reads through the store never meets it.

    `of` is the kind of the record that is in `data`, `system` for a message of system text. `data` is a nonce and
    the encrypted bytes. `within` is the number of the record whose `data` holds this one too, 0 for its own: so
    it is where a session was packed. `blobs` are the names of the blobs that it needs, as the store has them.
    """

    of: str
    data: bytes = b""
    within: int = 0
    blobs: tuple[str, ...] = ()


class UnknownRecord(Struct, frozen=True, repr_omit_defaults=True, tag_field="kind", tag="unknown"):
    """A record of a kind that a newer turnlog wrote; its bytes are kept on the `Record`."""

    name: str


Body = (
    MessageRecord
    | PartialAnswer
    | StreamCheckpoint
    | ToolStarted
    | ToolFinished
    | UsageRecord
    | Decision
    | SessionOpened
    | TurnOpened
    | TurnClosed
    | Configuration
    | FileChange
    | Approval
    | Note
    | SummaryRecord
    | SealedRecord
    | UnknownRecord
)


_SHOWN = 300
"""Characters of a body that the `repr` of its record shows."""


class Record(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A numbered, timed entry of a log.

    `n` counts from 1 without gaps. `time` is UTC, ISO 8601 with milliseconds. `raw` is the encoded
    record as it stands in the store: it is what gets copied, so that fields this version does not
    know survive. It does not count for equality of content; compare `body`. `redacted` says how many
    secrets were replaced by marks before it was written, by kind.
    """

    n: int
    time: str
    body: Body
    raw: bytes | None = msgspec.field(default=None)
    redacted: dict[str, int] = {}

    def __repr__(self) -> str:
        body = repr(self.body)
        return f"Record({self.n}, {self.time}, {body if len(body) <= _SHOWN else f'{body[:_SHOWN]}...'})"

    @property
    def message(self) -> Message | None:
        """The message that this record adds to the conversation, if it adds one."""
        if isinstance(self.body, (MessageRecord, PartialAnswer)):
            return self.body.message
        return None

    @property
    def in_passing(self) -> Record:
        """The record, to be kept among many that are looked through: of a configuration, which may hold hundreds of
        tools, only that it is one."""
        return Record(self.n, self.time, Configuration()) if isinstance(self.body, Configuration) else self
