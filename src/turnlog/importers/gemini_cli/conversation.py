"""Convert the entries of a gemini-cli session into drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...errors import FormatError
from ...log.messages import Message, ToolResult, text_of
from ...log.records import MessageRecord, UsageRecord
from ...log.texts import strings_in
from ...providers.google import PROVIDER
from ..drafting import Drafting
from ..json_values import mapping, objects, without, word
from ..repeats import is_empty, without_repeats
from ..titles import title_from
from .entries import Entry
from .tools import CALL_KEYS, calls_of, judged, record_run, response_parts

_NOTICES = frozenset({"info", "warning", "error"})
"""Messages of gemini-cli to the user, which are not sent to a model."""

_CANCELLED = "Request cancelled."
_IGNORED = ("<session_context>", "<hook_context>")
"""The beginnings of messages that gemini-cli itself writes as the user."""

_USER_KEYS = frozenset({"id", "timestamp", "type", "content"})
_ANSWER_KEYS = _USER_KEYS | {"toolCalls", "thoughts", "tokens", "model"}
_THOUGHT = frozenset({"subject", "description"})

_USAGE = {
    "input": "promptTokenCount",
    "output": "candidatesTokenCount",
    "cached": "cachedContentTokenCount",
    "thoughts": "thoughtsTokenCount",
    "tool": "toolUsePromptTokenCount",
    "total": "totalTokenCount",
}
"""gemini-cli's names for the counts in Google's usageMetadata."""


def draft_session(entries: list[Entry], log: Drafting) -> str:
    """Add the drafts of a session to `log`; returns its title."""
    return _Session(entries, log).run()


class _Session:
    """One pass over the entries, with its state."""

    def __init__(self, entries: list[Entry], log: Drafting) -> None:
        self.entries = entries
        self.log = log
        self.begins: list[int] = []
        self.calls: dict[str, Mapping[str, Any]] = {}
        self.described: dict[str, Any] = {}
        self.summary = self.prompt = ""

    def run(self) -> str:
        """Draft every entry; returns the title."""
        for index, entry in enumerate(self.entries):
            self.begins.append(self.log.last + 1)
            match entry.kind:
                case "header":
                    self._header(entry)
                case "rewind" | "rewritten":
                    self._hide(entry)
                case "unreadable":
                    self.log.note("unreadable", entry.record)
                case _:
                    self._message(index, entry)
        return self.summary or self.prompt

    def _header(self, entry: Entry) -> None:
        """Note the header; its summary is the title. The old format does not have the time of the summary: a record of
        it would change the beginning of a session that continues, so it is left out there."""
        facts = without(entry.record, ("lastUpdated",))
        self.log.at(facts.get("startTime") if entry.is_header else entry.record.get("lastUpdated"))
        if summary := word(facts.get("summary")).strip():
            self.summary = summary
            if not entry.line:
                del facts["summary"]
        self.log.note_changes("session", facts)

    def _hide(self, entry: Entry) -> None:
        """Record that history was taken back or rewritten: requests show the new history, the log keeps both."""
        first = self.begins[entry.target] if entry.target is not None else 0
        if not first or first > self.log.last:
            if entry.kind == "rewind":
                self.log.note("rewind", entry.record)
            return
        if entry.kind == "rewind":
            self.log.rewound(first, "the user went back")
            self.log.turn = ""
        else:
            self.log.compacted(first, self.log.last, "gemini-cli rewrote the history", {})

    def _message(self, index: int, entry: Entry) -> None:
        record = entry.record
        self.log.at(record.get("timestamp"))
        if record["type"] == "gemini":
            self._answer(index, entry)
        elif record["type"] == "user":
            self._user(entry)
        elif not entry.again:
            self._notice(entry)
        if entry.superseded:
            self.log.note("superseded", {"id": record.get("id"), "earlier": entry.superseded})

    def _notice(self, entry: Entry) -> None:
        record = entry.record
        text = "\n".join(_texts(record.get("content")))
        topic = record["type"] or "unknown"
        left = _USER_KEYS - {"id"} if topic in _NOTICES and text else frozenset({"timestamp", "type"})
        self.log.note(topic, without(record, left), text)
        if text.startswith(_CANCELLED):
            self._cancelled(text)

    def _cancelled(self, reason: str) -> None:
        if self.log.turn:
            self.log.close_turn("cancelled", reason)

    def _parts(self, value: Any, entry: Entry) -> list[Any]:
        """Content as wire parts; anything else becomes a note and a warning."""
        parts: list[Any] = []
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                parts.append(item)
            elif isinstance(item, str):
                parts += [{"text": item}] if item else []
            elif item is not None:
                self.log.unreadable(entry.line, f"{entry.place}: a part", item)
        return parts

    def _parsed(self, contents: Sequence[Mapping[str, Any]], entry: Entry) -> tuple[Message, ...]:
        try:
            parsed = PROVIDER.parse({"contents": contents})
        except FormatError as error:
            self.log.unreadable(entry.line, f"{entry.place} ({error})", entry.record, "entry")
            return ()
        self.log.blobs.update(parsed.blobs)
        return parsed.messages

    def _user(self, entry: Entry) -> None:
        record = entry.record
        content = {"role": "user", "parts": self._parts(record.get("content"), entry)}
        for message in self._parsed([content], entry):
            answers = any(isinstance(part, ToolResult) for part in message.parts)
            text = "\n".join(_texts(record.get("displayContent"))) or text_of(message)
            if text.startswith(_IGNORED):
                message = replace(message, by_program=True)
            elif not answers and not entry.again:
                self.prompt = self.prompt or title_from(text)
                self.log.open_turn(str(record.get("id") or entry.place))
            self.log.add(MessageRecord(message=judged(message, self.calls, self.log), source=_source(entry)))
        rest = without(record, _USER_KEYS)
        self.log.left_unread(entry.line, entry.place, rest, is_empty="content" not in record)
        self._rest(rest, entry)

    def _answer(self, index: int, entry: Entry) -> None:
        record = entry.record
        calls = calls_of(record)
        self.calls.update({call["id"]: call for call in calls if isinstance(call.get("id"), str)})
        content = self._parts(record.get("content"), entry)
        answers = self._parts(response_parts(calls, self._answered_next(index)), entry)
        contents = [{"role": "model", "parts": _model_parts(record, content, calls)}]
        contents += [{"role": "user", "parts": answers}] if answers else []
        messages = self._parsed(contents, entry)
        if not messages:
            return
        model = word(record.get("model"))
        self.log.add(MessageRecord(message=messages[0], model=model, source=_source(entry)))
        if not entry.again:
            self._usage(record.get("tokens"), model)
            rest = _unread(record, content)
            is_empty = "content" not in record and not calls
            self.log.left_unread(entry.line, entry.place, rest, is_empty=is_empty)
            for call in calls:
                if "args" not in call:
                    self.log.left_unread(entry.line, entry.place, without(call, CALL_KEYS), is_empty=True)
            self._rest(rest, entry)
        results = [judged(message, self.calls, self.log) for message in messages[1:]]
        for message in results:
            if calls:
                self.log.at(calls[-1].get("timestamp"))
            self.log.add(MessageRecord(message=message, source=_source(entry)))
        if not entry.again:
            self._runs(calls, results)

    def _runs(self, calls: Sequence[Mapping[str, Any]], messages: Sequence[Message]) -> None:
        results = {part.call_id: part for one in messages for part in one.parts if isinstance(part, ToolResult)}
        for call in calls:
            record_run(call, results.get(str(call.get("id"))), self.described, self.log)
        if calls and all(call.get("status") == "cancelled" for call in calls):
            self._cancelled("all tool calls were cancelled")

    def _answered_next(self, index: int) -> list[Any]:
        """The ids of the calls that the next message answers: since 2026 gemini-cli also writes results as messages."""
        for entry in self.entries[index + 1 :]:
            kind = entry.record.get("type") if entry.kind == "message" else None
            if entry.kind == "header" or kind in _NOTICES:
                continue
            content = entry.record.get("content") if kind == "user" else None
            responses = [mapping(part.get("functionResponse")) for part in objects(content)]
            return [one["id"] for one in responses if one.get("id")]
        return []

    def _usage(self, tokens: Any, model: str) -> None:
        if not isinstance(tokens, dict):
            return
        raw = {wire: tokens[key] for key, wire in _USAGE.items() if key in tokens}
        usage = PROVIDER.parse_response({"candidates": [], "usageMetadata": raw}).usage
        if usage is None:
            self.log.note("usage", tokens)
        else:
            self.log.add(UsageRecord(provider=PROVIDER.name, model=model, usage=usage, raw=tokens))

    def _rest(self, rest: Mapping[str, Any], entry: Entry) -> None:
        """Note what a message contains besides its content."""
        kept = {key: item for key, item in rest.items() if not is_empty(item)}
        if kept and not entry.again:
            self.log.note("message", {"id": entry.record.get("id"), **kept})


def _source(entry: Entry) -> str:
    own = word(entry.record.get("id"))
    return f"{entry.place} id {own}" if own else entry.place


def _texts(content: Any) -> list[str]:
    """The texts of a list of parts, or the text itself."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return [text for text in texts if isinstance(text, str)]


def _model_parts(record: Mapping[str, Any], content: list[Any], calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The parts that the model wrote: thoughts, content, calls. If the content itself contains thoughts or calls, the
    separate lists are copies."""
    parts: list[Any] = [] if _has_thoughts(content) else [_thought(one) for one in _thoughts(record)]
    parts += content
    inside = [part["functionCall"] for part in content if isinstance(part.get("functionCall"), dict)]
    known = [call.get("id") for call in inside]
    if not inside or None not in known:
        parts += [_call(call) for call in calls if call.get("id") not in known]
    return parts


def _has_thoughts(content: list[Any]) -> bool:
    return any(part.get("thought") is True for part in content)


def _thoughts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in objects(record.get("thoughts")) if isinstance(one.get("description", ""), str)]


def _thought(thought: Mapping[str, Any]) -> dict[str, Any]:
    """A thought in Google's format: its subject is a bold heading."""
    subject, description = thought.get("subject"), thought.get("description", "")
    text = f"**{subject}** {description}" if isinstance(subject, str) and subject else description
    return {"text": text, "thought": True}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"functionCall": {key: call[key] for key in ("id", "name", "args") if call.get(key) is not None}}


def _unread(record: Mapping[str, Any], content: list[Any]) -> dict[str, Any]:
    """What neither the message nor the usage of an answer contains: times of thoughts, new keys."""
    rest = without(record, _ANSWER_KEYS)
    thoughts = record.get("thoughts")
    if _has_thoughts(content):
        rest["thoughts"] = without_repeats(thoughts, list(strings_in(content)), {})
    elif isinstance(thoughts, list):
        readable = _thoughts(record)
        rest["thoughts"] = [without(one, _THOUGHT) if one in readable else one for one in thoughts]
    elif thoughts is not None:
        rest["thoughts"] = thoughts
    calls = record.get("toolCalls")
    if not isinstance(calls, list) or len(calls_of(record)) != len(calls):
        rest["toolCalls"] = calls
    return rest
