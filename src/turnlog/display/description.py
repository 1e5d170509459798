"""The content of a record: one description for each kind, which the terminal, Markdown and the HTML page lay out.

A new kind of record or part needs a case only here; all outputs then show it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from math import inf
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .._platform.units import counted
from ..log.codec import encode_record
from ..log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ..log.prompt import PromptRecord
from ..log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageBody,
    MessageRecord,
    Note,
    PartialAnswer,
    Record,
    SealedRecord,
    SessionOpened,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    TurnResumed,
    UnknownRecord,
    UsageRecord,
)
from ..log.texts import texts_in
from ..models.pricing import cost, dollars
from ..redaction.redactor import counts_text
from ..view.decisions import Effects, Rewinds, active_decisions, ended_decisions
from .wording import charged, tokens_of

Words = tuple[str | int, ...]
"""A text in parts. A number among the parts is a record number, to which a page can link."""

_SHOWN_DETAIL = frozenset(
    {"before", "after", "replacement", "texts", "cuts", "kept", "standing", "at", "changes_from", "files"}
)


class ContentBlock(Struct, frozen=True):
    """One part of a record's content.

    `label` names the block in a word or two ("" for plain text). `name` and `id` identify its subject: a tool and its
    call, or the type and hash of media. The content is in `text`; for kind `data` in `value`, for kind `group` in
    `blocks`. `part` is the part of the message that the block was made from. Short displays leave out blocks with
    `is_detail`.
    """

    kind: Literal["text", "reasoning", "call", "result", "media", "data", "fact", "group"]
    text: str = ""
    label: str = ""
    name: str = ""
    id: str = ""
    outcome: str = ""
    words: Words = ()
    value: Any = None
    blocks: tuple[ContentBlock, ...] = ()
    part: Part | None = None
    is_detail: bool = False


class Badge(Struct, frozen=True):
    """A mark on a record: a few words, a longer explanation, and the record that it links to (0: none)."""

    words: str
    title: str = ""
    link: int = 0

    @property
    def whole(self) -> str:
        """The mark as text, without a link."""
        return f"{self.words} {self.link}" if self.link else self.words


class Description(Struct, frozen=True):
    """The description of a record.

    `kind`: the speaker (`user`, `assistant`, `system`, `tool`) or the kind of record (`decision`, `note`, ...).
    `is_said`: the record is part of the conversation. `headline`: a summary in a few words. `redacted`: the secrets
    that were replaced in it. `is_hidden`: the record is a message that no request shows unchanged any more.
    """

    n: int
    time: str
    kind: str
    is_said: bool
    headline: Words = ()
    blocks: tuple[ContentBlock, ...] = ()
    badges: tuple[Badge, ...] = ()
    redacted: str = ""
    is_hidden: bool = False


class RecordBadges:
    """The records that the decisions of a log leave out, shorten or take back. `last` is the number of the log's last
    record."""

    def __init__(self, decisions: Iterable[Record] = (), last: int = 0) -> None:
        records = list(decisions)
        self.ended = ended_decisions(records)
        self._rewinds = Rewinds.of(records)
        self._active = active_decisions(records)
        self._effects = Effects.of(self._active)
        self._sent = self._effects.shown_ranges(last)

    def badges(self, record: Record) -> list[Badge]:
        """The badges of a record: taken back, left out, shortened."""
        if by := self._rewinds.by(record.n):
            return [Badge("taken back by", "no longer part of the conversation: a rewind took it back", by)]
        if record.message is not None and self._is_left_out(record.n, record.message):
            by = self._by(record.n)
            return [Badge("left out by" if by else "left out", "no longer sent: a decision left it out", by)]
        return [Badge("shortened when sent")] if record.n in self._effects.changes else []

    def _by(self, n: int) -> int:
        """The newest decision in force over a record; 0 if none names it."""
        return max((m for m, one in self._active.items() if one.first <= n <= one.last), default=0)

    def _is_left_out(self, n: int, message: Message) -> bool:
        if message.role == "system":
            return self._effects.hides(n, message)
        ranges_before = bisect_right(self._sent, (n, inf))
        return not ranges_before or n > self._sent[ranges_before - 1][1]


def describe(record: Record, standing: RecordBadges | None = None) -> Description:
    """The content of a record as blocks; with `standing`, also badges that show the effect of decisions on it."""
    body = record.body
    kind, headline, blocks = _content(record, standing)
    badges = standing.badges(record) if standing is not None else []
    return Description(
        record.n,
        record.time,
        kind,
        isinstance(body, MessageBody),
        headline,
        tuple(blocks),
        tuple(badges),
        counts_text(record.redacted),
        bool(badges) and record.message is not None,
    )


def describe_part(part: Part) -> ContentBlock:
    """A part of a message as a block."""
    match part:
        case Text(text=text):
            return ContentBlock("text", text)
        case Reasoning(text=text, summary=summary):
            return ContentBlock("reasoning", "\n\n".join(filter(None, (text, *summary))), "reasoning")
        case ToolCall(name=name, id=call_id):
            return ContentBlock("call", part.raw_arguments, "call", name, call_id, part=part)
        case ToolResult(name=name, call_id=call_id, outcome=outcome, parts=parts):
            inside = tuple(map(describe_part, parts))
            return ContentBlock("result", "", "result", name, call_id, outcome, blocks=inside, part=part)
        case Media(kind=kind, mime=mime, sha256=sha256):
            size = f"{part.size:,} bytes" if part.size else ""
            where = size if sha256 else part.url or f"file {part.file_id} of {part.provider}"
            text = ", ".join(filter(None, (part.name, where)))
            return ContentBlock("media", text, kind, mime or "of unknown type", sha256, part=part)
        case Opaque(provider=provider, kind=kind, data=data):
            return ContentBlock("data", label="opaque", name=f"{kind} of {provider}", value=data)
        case unknown:
            return ContentBlock("data", label="unknown", name=f"{unknown.kind}, of a newer turnlog", value=unknown.data)


def _content(record: Record, standing: RecordBadges | None) -> tuple[str, Words, list[ContentBlock]]:
    """The kind of a record, its headline, and its content."""
    match record.body:
        case MessageRecord(message=message, model=model):
            return _speaker(message), (model,), list(map(describe_part, message.parts))
        case PartialAnswer(message=message, model=model, reason=reason, fragments=fragments):
            blocks = [*map(describe_part, message.parts), ContentBlock("text", reason, "interrupted")]
            blocks += [ContentBlock("group", label="fragment", blocks=(describe_part(part),)) for part in fragments]
            return message.role, (model,), blocks
        case Decision(action=action, first=first, last=last):
            span: Words = (", records ", first, " to ", last) if first < last else (", record ", first) if first else ()
            return "decision", (action, *span), _decision(record.n, record.body, standing)
        case Note(topic=topic, text=text, data=data):
            return "note", (topic,), [*_text(text), *_data("", data)]
        case SummaryRecord(state=state, text=text, reason=reason, summarizer=summarizer):
            return "summary", (f"{state} by {summarizer}",), [*_text(reason), *_text(text)]
        case StreamCheckpoint(message=message, fragments=fragments):
            size = sum(len(piece.value) for piece in texts_in(message) if piece.kind == "text")
            size += sum(len(part.raw_arguments) for part in (*message.parts, *fragments) if isinstance(part, ToolCall))
            return "checkpoint", (f"{size:,} characters of an answer had arrived",), []
        case Configuration(provider=provider, model=model):
            return "settings", (f"{provider} {model}".strip(),), _configuration(record.body)
        case PromptRecord(sections=sections, labels=labels):
            told = tuple(ContentBlock("text", section.text, section.name) for section in sections)
            return (
                "prompt",
                (f"{len(sections)} sections of system text", *labels),
                [*([ContentBlock("group", label="sections", blocks=told)] if told else [])],
            )
        case UnknownRecord(name=name):
            written = encode_record(record).decode("utf-8", "replace")
            headline = f"a {name} record that a newer turnlog wrote"
            return "unknown", (headline,), [ContentBlock("text", written, "the record", is_detail=True)]
        case body:
            kind, headline = _line(body)
            return kind, (headline,), []


def _line(body: Body) -> tuple[str, str]:
    """Records about tools, turns, files and usage: the kind, and the content in one line."""
    match body:
        case ToolStarted(name=name, call_id=call_id):
            return "started", f"{name}  ({call_id})"
        case ToolFinished(call_id=call_id, outcome=outcome, seconds=seconds, reason=reason):
            took = f" after {seconds:.1f} s" if seconds else ""
            return "finished", f"{outcome}{took}  ({call_id})" + (f": {reason}" if reason else "")
        case UsageRecord(provider=provider, model=model, usage=usage):
            spent = cost(usage, body.sold_as)
            doubt = f" ({charged(spent)})" if charged(spent) else ""
            return "usage", f"{provider} {model}: {tokens_of(usage)}, {dollars(spent)}{doubt}"
        case SessionOpened(source=source, resumed=resumed, session=session):
            return "session", f"{f'resumed {session}'.rstrip() if resumed else 'opened'}, {source}"
        case TurnOpened(turn_id=turn_id):
            return "turn", f"{turn_id} opened"
        case TurnResumed(turn_id=turn_id):
            return "turn", f"{turn_id} goes on"
        case TurnClosed(turn_id=turn_id, status=status, reason=reason):
            return "turn", f"{turn_id} closed: {status} {reason}".rstrip()
        case FileChange(path=path, action=action, old_path=old_path):
            return "file", f"{action} {path}" + (f" from {old_path}" if old_path else "")
        case Approval(call_id=call_id, state=state, by=by, reason=reason):
            return "approval", " ".join(filter(None, (state, by and f"by {by}", f"({call_id})", reason)))
        case SealedRecord(of=of):
            return "sealed", f"an encrypted record of kind {of}"
        case _:
            return "record", type(body).__name__


def _speaker(message: Message) -> str:
    """The speaker of a message: `tool` if it contains only tool results."""
    results = message.parts and all(isinstance(part, ToolResult) for part in message.parts)
    return "tool" if message.role == "user" and results else message.role


def _text(text: str, label: str = "") -> list[ContentBlock]:
    return [ContentBlock("text", text, label)] if text else []


def _data(label: str, value: Any, *, is_detail: bool = False) -> list[ContentBlock]:
    return [ContentBlock("data", label=label, value=value, is_detail=is_detail)] if value not in (None, {}) else []


def _decision(n: int, decision: Decision, standing: RecordBadges | None) -> list[ContentBlock]:
    detail = decision.detail
    facts: list[Words] = []
    if decision.supersedes:
        facts.append(("Takes back decision ", decision.supersedes, "."))
    if standing is not None and n in standing.ended:
        facts.append(("No longer in force: see ", standing.ended[n], "."))
    before, after = detail.get("before"), detail.get("after")
    if isinstance(before, int) and isinstance(after, int):
        facts.append((f"{before:,} tokens became {after:,}.",))
    if shortened := sum(len(changed) for changed in map(detail.get, ("texts", "cuts")) if isinstance(changed, list)):
        facts.append((f"{counted(shortened, 'text')} shortened.",))
    blocks = [*_text(decision.why), *(ContentBlock("fact", words=words, is_detail=True) for words in facts)]
    for message in decision.replacement:
        inside = tuple(map(describe_part, message.parts))
        blocks.append(ContentBlock("group", label=f"replacement ({message.role})", blocks=inside, is_detail=True))
    rest = {key: value for key, value in detail.items() if key not in _SHOWN_DETAIL}
    return [*blocks, *_data("how it was made", rest, is_detail=True)]


def _configuration(body: Configuration) -> list[ContentBlock]:
    tools = tuple(ContentBlock("text", tool.description, tool.name) for tool in body.tools)
    values = msgspec.to_builtins(body)
    limits = {
        key: values[key] for key in ("budget", "strategy", "input_limit", "base_url", "server") if values.get(key)
    }
    return [
        *_text(body.why),
        *([ContentBlock("group", label="tools", blocks=tools)] if tools else []),
        *_data("settings", body.settings),
        *_data("limits", limits),
    ]
