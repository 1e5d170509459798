"""Records: the numbered, timed entries of a log, one struct for each kind.

A record is an envelope (number, time) around a body. Bodies are frozen values. A new kind is a new struct in `Body`; a
reader that does not know the kind keeps the record unchanged, as `UnknownRecord`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .._platform.texts import without_password
from .budget import Budget, Strategy
from .messages import Form, Message, Outcome, Part, Tool
from .prompt import PromptRecord
from .usage import CacheRead, Count, Usage


class Binding(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """What the reasoning of an answer is bound to, for models that seal it together with everything they were sent.

    `prefix` is a digest of everything before the answer in its request to `model`, `after` the number of the record
    with the newest reasoning in that request, `first` with the oldest; both are 0 if the request contained none.
    """

    prefix: str
    after: int = 0
    first: int = 0
    model: str = ""


class MessageRecord(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="message"
):
    """A message. `model` is the model that wrote it, if a model did; `stop` is why it stopped, in the provider's words.

    `source` is its place in the foreign transcript that it was imported from (a line, an id). `binding` is what its
    reasoning is bound to, if the model binds it. `step` is the step of a trajectory whose image it shows; 0: none.
    `section` is the section of the system prompt whose text it is at its place, if it is one's.
    """

    message: Message
    count: Count | None = None
    model: str = ""
    stop: str = ""
    response_id: str = ""
    source: str = ""
    binding: Binding | None = None
    step: int = 0
    section: str = ""


class PartialAnswer(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="partial"
):
    """An interrupted answer: the part that had arrived. It belongs to the conversation.

    `reason` is what is known about the interruption. A call whose arguments had not arrived completely does not count
    as a call: it is in `fragments`, which can be read and are never sent.
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
    """Everything that had arrived of an answer while it was being streamed, including the content of earlier
    checkpoints.

    It is not part of the conversation. The answer itself follows. If the process was killed before that, the next
    opening of the session makes a `PartialAnswer` from the newest checkpoint, unless that was taken back. `fragments`
    is as in `PartialAnswer`.
    """

    message: Message
    fragments: tuple[Part, ...] = ()
    model: str = ""
    binding: Binding | None = None


class ToolStarted(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="tool_started"
):
    """A tool started to run for the call `call_id` in message record `call_record`."""

    call_id: str
    call_record: int
    name: str = ""


class ToolFinished(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="tool_finished"
):
    """A tool ended; its result is a separate message. `seconds` is how long it ran."""

    call_id: str
    call_record: int
    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""


class UsageRecord(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="kind", tag="usage"
):
    """What one request was billed. `raw` is the provider's own usage object.

    `counted` is the count of the whole request before it was sent, `answer` the tokens of the answer by the same
    counter (0 if the answer is not kept). Later counts are calibrated with both. `cache` is about the prompt cache.
    `response_id` is the provider's id of the answer if transcripts of several sessions may have it: sums over sessions
    count it once. `seller` is whose server answered, if it is known and sells models of other makers.
    """

    provider: str
    model: str
    usage: Usage
    raw: Any = None
    counted: Count | None = None
    answer: int = 0
    cache: CacheRead | None = None
    response_id: str = ""
    seller: str = ""

    @property
    def sold_as(self) -> str:
        """The model as the tables of prices name it: `MODEL`, or `SELLER/MODEL`."""
        return f"{self.seller}/{self.model}" if self.seller else self.model


class Decision(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="decision"):
    """A rule that all later requests follow: `clear`, `rewind`, `compact`, `mask`, `pin`, ...

    It covers the records `first` to `last` (inclusive) and applies to views of the log that include it. `detail`
    contains what the action needs; `why` is for people. `supersedes` is the number of a decision that this one takes
    back.
    """

    action: str
    first: int = 0
    last: int = 0
    why: str = ""
    detail: dict[str, Any] = {}
    supersedes: int = 0

    @property
    def replacement(self) -> tuple[Message, ...]:
        """The messages that are shown instead of the covered records; empty if there are none or they cannot be
        read."""
        try:
            return msgspec.convert(self.detail.get("replacement") or (), tuple[Message, ...])
        except (msgspec.ValidationError, UnicodeEncodeError):  # UnicodeEncodeError: a lone surrogate in a key
            return ()


class SessionOpened(
    Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="session_opened"
):
    """A session was opened for work, and the opener said from where.

    `source` is `interactive` (a person uses it), `non-interactive` (a script, a pipeline), `embedded-server` (a server
    inside another program, for its users) or `mcp` (a server that speaks MCP). `resumed` is True if the session existed
    before; `session` is then the id of the session whose records it goes on from, as forks and copies have them too.
    """

    source: str
    resumed: bool = False
    session: str = ""


class TurnOpened(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="turn_opened"):
    """A turn started. `watch` is the folder that is watched for changes during the turn, if there is one."""

    turn_id: str
    watch: str = ""


class TurnClosed(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="turn_closed"):
    """A turn ended."""

    turn_id: str
    status: str
    reason: str = ""


class TurnResumed(
    Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="turn_resumed"
):
    """A turn that had ended goes on: an earlier `TurnClosed` of it no longer holds."""

    turn_id: str


class Environment(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """The version of turnlog that recorded a configuration, and the model's limits in tokens from the table of models
    then (0 without a model). `known` is False if no table contained the model. `views` is the generation of the rules
    by which that version made requests from a log: it grows when a log gives other bytes than before."""

    turnlog: str = ""
    input_limit: int = 0
    output_limit: int = 0
    known: bool = True
    views: int = 0


class Configuration(
    Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="configuration"
):
    """The settings, tools and target of later requests.

    `settings` are top-level request keys of `provider`, passed on unchanged; `tools` is what the model may call. `form`
    is how that provider's request body was spelled. `input_limit` is the number of tokens that the model takes, if it
    was given and is not the model's usual limit; else 0. `budget` and `strategy` are None for the default.
    `environment` is the version and the model limits when this was recorded; no request depends on it. `base_url` is
    another server that speaks the provider's API, `server` the name of that server's row (docs/servers.md).
    `answer_schema` is the JSON schema that answers follow, in the terms of no provider; None: answers are free.
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
    server: str = ""
    answer_schema: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return Struct.__repr__(replace(self, base_url=without_password(self.base_url)))


class FileChange(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="file_change"):
    """A file changed.

    `before` and `after` are blob hashes; they are empty if there was or is no file, or its content is not known.
    `patch` is the blob hash of a unified diff, if only that is known of the change. `root` is the folder that a
    relative path starts from, if it is known; `old_mode` and `mode` are modes as in git (`100644`, `100755`).
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
    """Somebody was asked whether a call may run, or gave the answer."""

    call_id: str
    state: Literal["asked", "given", "denied"]
    call_record: int = 0
    by: str = ""
    reason: str = ""


class Note(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="note"):
    """Something that belongs to the conversation and is never sent to a model.

    `topic` is a short keyword, `data` any JSON.
    """

    topic: str
    text: str = ""
    data: Any = None


class SummaryRecord(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="summary"):
    """A step in the making of a summary. It is never shown to a model; a decision shows the summary.

    `key` identifies what is summarised and by which summarizer. A record in the state `claimed` is written before a
    summarizer is called: among claims with the same key, only the one with the lowest record number may call the
    summarizer, once. `made` and `failed` are how that ended; `text` is the summary, `reason` why there is none.
    `summarizer` is the summarizer's name and version.
    """

    key: str
    state: Literal["claimed", "made", "failed"]
    text: str = ""
    reason: str = ""
    summarizer: str = ""


class SealedRecord(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True, tag_field="kind", tag="sealed"):
    """A record as it is written to disk in an encrypted store. Reading through the store returns the record inside.

    `of` is the kind of the record in `data`, `system` for a message of system text. `data` is a nonce and the encrypted
    bytes. In a packed session, `within` is the number of the record whose `data` contains this record too; 0: its own
    `data` does. `blobs` are the names of the blobs that the record needs, as the store has them.
    """

    of: str
    data: bytes = b""
    within: int = 0
    blobs: tuple[str, ...] = ()


class UnknownRecord(Struct, frozen=True, repr_omit_defaults=True, tag_field="kind", tag="unknown"):
    """A record of a kind that a newer turnlog wrote; its bytes are `Record.raw`."""

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
    | TurnResumed
    | Configuration
    | PromptRecord
    | FileChange
    | Approval
    | Note
    | SummaryRecord
    | SealedRecord
    | UnknownRecord
)


MessageBody = MessageRecord | PartialAnswer
"""The kinds of records that add a message to the conversation."""

SHOWN_AS = {
    "message": "its message",
    "partial": "what had arrived of an answer, and that it was interrupted",
}
"""The same kinds by the words that stores know them by, with what requests show of each. Requests show nothing of other
kinds: they say how messages are shown (`decision`), what else is sent with them (`configuration`, `prompt`), or what is
known beside the conversation."""

_SHOWN = 300
"""The most characters of a body that the `repr` of its record shows."""


class Record(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A numbered, timed entry of a log.

    `n` counts from 1 without gaps. `time` is UTC, ISO 8601 with milliseconds. `raw` is the encoded record as the store
    has it. Copies are made from `raw`, so that fields which this version does not know survive. Records with equal
    content may differ in `raw`; to compare content, compare `body`. `redacted` is how many secrets were replaced by
    marks before the record was written, by kind. `live` is True if the session that recorded it went on to show the
    text as it was given, and this value has the marks.
    """

    n: int
    time: str
    body: Body
    raw: bytes | None = msgspec.field(default=None)
    redacted: dict[str, int] = {}
    live: bool = False

    def __repr__(self) -> str:
        body = repr(self.body)
        return f"Record({self.n}, {self.time}, {body if len(body) <= _SHOWN else f'{body[:_SHOWN]}...'})"

    @property
    def message(self) -> Message | None:
        """The message that this record adds to the conversation; None if it adds none."""
        return self.body.message if isinstance(self.body, MessageBody) else None

    @property
    def in_passing(self) -> Record:
        """This record in a small form for scans that keep many records: a configuration, which may contain hundreds of
        tools, is replaced by an empty one."""
        return Record(self.n, self.time, Configuration()) if isinstance(self.body, Configuration) else self
