"""Which texts a record has: every body with marks in place of secrets.

Left as they are: ids, signatures, encrypted reasoning, names of tools and models, hashes and the bytes
of media. A provider's spelling of a value (`Form`) holds unknown keys with whatever they held, so it
is gone through like any JSON.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from ..log.messages import (
    Form,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    compact_json,
    unchanged,
)
from ..log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    TurnClosed,
    TurnOpened,
    UsageRecord,
)
from .json_text import begun, read
from .redactor import Counts, Redactor

_S = TypeVar("_S", bound=Struct)
_B = TypeVar("_B", bound=Body)

TEXTS: dict[type, tuple[str, ...]] = {
    MessageRecord: ("source",),
    PartialAnswer: ("reason",),
    ToolFinished: ("reason",),
    TurnOpened: ("watch",),
    TurnClosed: ("reason",),
    Configuration: ("why",),
    Decision: ("why",),
    Approval: ("by", "reason"),
    FileChange: ("path", "old_path", "root"),
    Note: ("topic", "text"),
    SummaryRecord: ("text", "reason"),
    Message: ("name",),
    Text: ("text",),
    Reasoning: ("text",),
    Tool: ("description",),
    Media: ("name",),
}
"""Fields that are plain text."""
VALUES: dict[type, tuple[str, ...]] = {
    Configuration: ("settings",),
    Decision: ("detail",),
    Note: ("data",),
    Opaque: ("data",),
    Tool: ("parameters", "data"),
    Unknown: ("data",),
    UsageRecord: ("raw",),
}
"""Fields that hold any JSON. Calls, forms and addresses of media are seen to one by one."""


def redacted(body: _B, redactor: Redactor) -> tuple[_B, Counts]:
    """`body` with marks in place of secrets, and what was replaced; `body` itself where there are none."""
    work = _Redaction(redactor)
    return cast(_B, work.body(body)), work.counts


def redacted_bytes(data: bytes, redactor: Redactor) -> tuple[bytes, Counts]:
    """The bytes of a text file with marks in place of secrets; `data` itself if it is no text in UTF-8."""
    if b"\0" in data:
        return data, {}
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data, {}
    clean, counts = redactor.text(text)
    return (clean.encode("utf-8", "surrogatepass"), counts) if counts else (data, {})


class _Redaction:
    """Goes through one body and counts."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.counts: Counts = {}

    def body(self, body: Body) -> Body:
        changed = self._fields(body)
        match changed:
            case MessageRecord(message=message):
                return _with(changed, message=self._message(message))
            case (
                PartialAnswer(message=message, fragments=fragments)
                | StreamCheckpoint(message=message, fragments=fragments)
            ):
                return _with(changed, message=self._message(message), fragments=self._parts(fragments))
            case Configuration(tools=tools, form=form):
                tools = _same(tools, tuple(map(self._tool, tools)))
                return _with(changed, tools=tools, form=self._form(form))
        return changed

    def _message(self, message: Message) -> Message:
        return _with(self._fields(message), parts=self._parts(message.parts), form=self._form(message.form))

    def _parts(self, parts: tuple[Part, ...]) -> tuple[Any, ...]:
        return _same(parts, tuple(map(self._part, parts)))

    def _part(self, part: Part) -> Part:
        changed = self._fields(part)
        match changed:
            case Unknown():
                return changed
            case ToolCall():
                changed = self._call(changed)
            case ToolResult(parts=parts):
                changed = _with(changed, parts=self._parts(parts))
            case Reasoning(summary=summary):
                changed = _with(changed, summary=_same(summary, tuple(map(self._text, summary))))
            case Media(url=url) if not url.startswith("data:"):
                changed = _with(changed, url=self._text(url))
        return _with(changed, form=self._form(changed.form))

    def _tool(self, tool: Tool) -> Tool:
        return _with(self._fields(tool), form=self._form(tool.form))

    def _call(self, call: ToolCall) -> ToolCall:
        """A call with clean arguments: JSON stays JSON, and `raw` stays another spelling of it."""
        if call.arguments is None:
            return _with(call, raw=call.raw and self._begun(call.raw))
        arguments = self._redactor.value(call.arguments, self.counts, ids=False)
        if call.raw is None:
            return _with(call, arguments=arguments)
        more: Counts = {}
        raw = self._redactor.spelled(call.raw, more, ids=False)
        if arguments is call.arguments and raw is not call.raw:  # what only this spelling shows: a key that comes twice
            self._add(more)
            arguments = read(raw) if _spells(call.raw, arguments) else arguments
        same = raw is call.raw and arguments is call.arguments
        return call if same else _with(call, arguments=arguments, raw=raw if _spells(raw, arguments) else None)

    def _begun(self, raw: str) -> str:
        """Arguments that are no JSON, or not yet: what their beginning says is looked into as the whole will be."""
        if (held := begun(raw)) is not None:
            clean = self._redactor.value(held.value, self.counts, ids=False)
            raw = raw if clean is held.value else held.text(clean)
        return self._text(raw)

    def _form(self, form: Form | None) -> Form | None:
        return form if form is None or form.delta is None else _with(form, delta=self._value(form.delta))

    def _fields(self, holder: _S) -> _S:
        """The fields that are plain text or any JSON."""
        changes: dict[str, Any] = {}
        for name in TEXTS.get(type(holder), ()):
            if held := getattr(holder, name):
                changes[name] = self._text(held)
        for name in VALUES.get(type(holder), ()):
            if held := getattr(holder, name):
                changes[name] = self._value(held)
        return _with(holder, **changes)

    def _text(self, text: str) -> str:
        clean, counts = self._redactor.text(text)
        self._add(counts)
        return clean

    def _add(self, counts: Counts) -> None:
        for kind, number in counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + number

    def _value(self, value: Any) -> Any:
        return self._redactor.value(value, self.counts)


def _with(holder: _S, **changes: Any) -> _S:
    """`holder` with these fields, itself if they are the ones it has."""
    new = {name: value for name, value in changes.items() if getattr(holder, name) is not value}
    return replace(holder, **new) if new else holder


def _same(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if unchanged(old, new) else new


def _spells(raw: str, arguments: Any) -> bool:
    try:
        return compact_json(json.loads(raw)) == compact_json(arguments)
    except (ValueError, RecursionError):
        return False
