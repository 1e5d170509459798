"""Convert the entries of a gemini-cli session into drafts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..._platform.lazy import lazy_pattern
from ...errors import FormatError
from ...log.messages import Message, Outcome, ToolResult, text_of
from ...log.records import Approval, MessageRecord, ToolFinished, UsageRecord
from ...log.texts import strings_in
from ...providers.google import PROVIDER
from ...session.titles import title_of
from ..drafting import Drafting
from ..edits import edited
from ..file_changes import is_patch
from ..json_values import mapping, objects, within, without, word
from ..repeats import is_empty, result_text, without_repeats
from .entries import GeminiEntry

# -- tools -----------------------------------------------------------------------------------------
#
# gemini-cli's records of a tool's run: result, outcome, changed file, and displayed output.

_OUTCOMES: dict[str, Outcome] = {"success": "ok", "error": "failed", "cancelled": "canceled"}
"""The statuses of calls that ended. With any other status (scheduled, executing, awaiting_approval) the call had not
ended."""

_DENIED = lazy_pattern(r"User denied execution|User did not allow tool call")
_INTERRUPTED = lazy_pattern(
    r"User cancelled the operation|cancelled tool execution|cancelled by user|\[Operation Cancelled\] (?!Reason: )"
)
"""gemini-cli's reasons for cancelled calls that may have run. Calls that never began, for example siblings of a denied
call, have other reasons."""
_TIMED_OUT = "Command was automatically cancelled because it exceeded the timeout"

_CONVERSATION = frozenset({"id", "name", "args", "result", "status", "timestamp", "resultDisplay"})
_ABOUT = ("displayName", "description", "renderOutputAsMarkdown")
"""Keys that describe the tool; usually the same in every call."""
CALL_KEYS = frozenset({*_CONVERSATION, *_ABOUT})
"""The keys of a call in the files of gemini-cli."""
_WRITERS = frozenset({"write_file", "replace", "edit"})
_WROTE = lazy_pattern(
    r"(?P<how>Successfully created and wrote to new file|Successfully overwrote file|Successfully modified file"
    r"|Created new file): (?P<path>.+?)(?:\.(?= |$)| \(\d+ replacements?\)| with provided content)",
    re.MULTILINE,
)
"""Results of tools that write files (packages/core/src/tools/write-file.ts and edit.ts of gemini-cli)."""
_CREATED = frozenset({"Successfully created and wrote to new file", "Created new file"})
_USER_EDITED = "User modified the `"
_DIFF = frozenset({"fileDiff", "filePath", "originalContent", "newContent"})


def calls_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message record that are objects."""
    return objects(record.get("toolCalls"))


def response_parts(calls: Sequence[Mapping[str, Any]], answered: Sequence[Any]) -> list[Any]:
    """The wire parts that answer these calls: function responses, and the media beside them.

    The result of a call may contain the whole turn that answered the call and its siblings; that turn is included once.
    `answered` are the ids of calls that a separate message answers.
    """
    parts: list[Any] = []
    turns: list[Any] = []
    answered_ids: list[Any] = []  # ids that a whole turn answered
    for call in calls:
        result, call_id = call.get("result"), call.get("id")
        if result is None or call_id in answered:
            continue
        given = [_with_id(part, call_id) for part in (result if isinstance(result, list) else [result])]
        responses = [part for part in given if _is_response(part)]
        if not responses:
            given = [_response(call, given), *(part for part in given if not _is_text(part))]
        elif any(_response_id(part) != call_id for part in responses):
            if given in turns:
                continue
            turns.append(given)
        parts += [part for part in given if not _is_response(part) or _response_id(part) not in answered_ids]
        if len(responses) > 1:
            answered_ids += map(_response_id, responses)
    return parts


def _with_id(part: Any, call_id: Any) -> Any:
    """A response without an id gets the id of the call that contains it."""
    if not _is_response(part) or _response_id(part) or not call_id:
        return part
    return {**part, "functionResponse": {**part["functionResponse"], "id": call_id}}


def _is_response(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("functionResponse"), dict)


def _response_id(part: Any) -> Any:
    return part["functionResponse"].get("id") if _is_response(part) else None


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.keys() == {"text"})


def _response(call: Mapping[str, Any], given: Iterable[Any]) -> dict[str, Any]:
    """A function response that wraps a result of bare text."""
    texts = [part if isinstance(part, str) else str(part["text"]) for part in given if _is_text(part)]
    key = "output" if call.get("status") == "success" else "error"
    response = {"name": call.get("name"), "response": {key: "\n".join(texts)}}
    return {"functionResponse": {"id": call["id"], **response} if isinstance(call.get("id"), str) else response}


def judged(message: Message, calls: Mapping[str, Mapping[str, Any]], log: Drafting) -> Message:
    """The results of a message, with their outcomes from the transcript and the names of their tools."""
    return log.with_results(
        message, lambda result: replace(result, outcome=_outcome(result, calls.get(result.call_id, {})))
    )


def _outcome(result: ToolResult, call: Mapping[str, Any]) -> Outcome:
    outcome = _OUTCOMES.get(str(call.get("status")), result.outcome)
    text = result_text(result.parts)
    if outcome == "canceled" and (_INTERRUPTED.search(text) or isinstance(call.get("resultDisplay"), str)):
        return "aborted"
    return "timeout" if text.startswith(_TIMED_OUT) else outcome


def record_run(call: Mapping[str, Any], result: ToolResult | None, described: dict[str, Any], log: Drafting) -> None:
    """Record how a call ended, which file it changed, and what the conversation does not contain. `result` is the
    call's result if there is one; `described` has the last description of each tool."""
    call_id = str(call.get("id") or "")
    call_record = log.call_record(call_id)
    log.at(call.get("timestamp"))
    text = result_text([result]) if result is not None else ""
    status = str(call.get("status"))
    outcome = result.outcome if result is not None else _OUTCOMES.get(status)
    if status == "cancelled" and _DENIED.search(text):
        log.add(Approval(call_id=call_id, state="denied", call_record=call_record, by="user", reason=text))
    elif status in _OUTCOMES and outcome is not None:
        log.add(ToolFinished(call_id=call_id, call_record=call_record, outcome=outcome))
    display = call.get("resultDisplay")
    if status == "success" and isinstance(display, dict) and _changed_file(display, call_record, log):
        display = without(display, _DIFF)
    elif status == "success" and call.get("name") in _WRITERS:
        _file_in_answer(call, text, call_record, log)
    name, about = str(call.get("name")), [call.get(key) for key in _ABOUT]
    rest = without(call, (*_CONVERSATION, *_ABOUT) if described.get(name) == about else _CONVERSATION)
    described[name] = about
    rest |= {"status": call.get("status")} if status not in _OUTCOMES else {}
    rest |= {"display": None if display == text else display}
    log.note_rest("tool_call", rest, [text], call_id=call_id)


def _changed_file(diff: Mapping[str, Any], call_record: int, log: Drafting) -> bool:
    """Record the file that a tool wrote, with its content before and after; the patch can be computed from them."""
    path, before, after = diff.get("filePath"), diff.get("originalContent"), diff.get("newContent")
    if not isinstance(path, str) or not isinstance(after, str) or not isinstance(before, (str, type(None))):
        return False
    if diff.get("isNewFile") is True or before is None:
        log.files.created(path, after, call_record)
    else:
        log.files.modified(path, before, after, call_record)
    return True


def _file_in_answer(call: Mapping[str, Any], text: str, call_record: int, log: Drafting) -> None:
    """Record the file that a tool wrote, from its arguments and its answer. The transcript does not contain the content
    before."""
    written, arguments = _WROTE.match(text), call.get("args")
    if written is None or not isinstance(arguments, dict):
        return
    path, named = written["path"], arguments.get("file_path")
    if isinstance(named, str) and path.endswith("/" + named):
        log.files.work_in(path.removesuffix("/" + named))
    patch = within(call, "resultDisplay", "fileDiff")
    content = arguments.get("content", arguments.get("new_string"))
    content = None if _USER_EDITED in text else content
    if written["how"] in _CREATED:
        log.files.created(path, content, call_record)
    elif "content" in arguments:
        log.files.modified(path, None, content, call_record)
    elif is_patch(patch):
        log.files.patched(path, patch, call_record)
    else:
        old, new = word(arguments.get("old_string")), content
        pairs = [(old, new)] if old and isinstance(new, str) else []
        log.files.replaced(path, lambda before: edited(before, pairs, is_all=True) if pairs else None, call_record)


_NOTICES = frozenset({"info", "warning", "error"})
"""Messages of gemini-cli to the user, which are not sent to a model."""

_CANCELLED = "Request cancelled."
_IGNORED = ("<session_context>", "<hook_context>")
"""The beginnings of messages that gemini-cli itself writes as the user."""

_PLACE = frozenset({"id", "timestamp", "type"})
_USER_KEYS = _PLACE | {"content"}
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


def draft_session(entries: list[GeminiEntry], log: Drafting) -> str:
    """Add the drafts of a session to `log`; returns its title."""
    return _Session(entries, log).run()


class _Session:
    """One pass over the entries, with its state."""

    def __init__(self, entries: list[GeminiEntry], log: Drafting) -> None:
        self.entries = entries
        self.log = log
        self.begins: list[int] = []
        self.calls: dict[str, Mapping[str, Any]] = {}
        self.described: dict[str, Any] = {}
        self.summary = ""
        self.prompts: list[str] = []

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
        return self.summary or title_of(self.prompts)

    def _header(self, entry: GeminiEntry) -> None:
        """Note the header; its summary is the title. The old format does not have the time of the summary: a record of
        it would change the beginning of a session that continues, so it is left out there."""
        facts = without(entry.record, ("lastUpdated",))
        self.log.at(facts.get("startTime") if entry.is_header else entry.record.get("lastUpdated"))
        if summary := word(facts.get("summary")).strip():
            self.summary = summary
            if not entry.line:
                del facts["summary"]
        if entry.is_header and all(each.kind == "header" for each in self.entries):
            self.log.left_unread(entry.line, entry.place, facts, is_empty=True, of="a session without messages")
        self.log.note_changes("session", facts)

    def _hide(self, entry: GeminiEntry) -> None:
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

    def _message(self, index: int, entry: GeminiEntry) -> None:
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

    def _notice(self, entry: GeminiEntry) -> None:
        record = entry.record
        text = "\n".join(_texts(record.get("content")))
        topic = record["type"] or "unknown"
        left = _USER_KEYS - {"id"} if topic in _NOTICES and text else frozenset({"timestamp", "type"})
        unknown = topic not in _NOTICES
        rest, of = without(record, _PLACE if unknown else _USER_KEYS), f"a message of type {topic!r}"
        self.log.left_unread(entry.line, entry.place, rest, is_empty=unknown, of=of)
        self.log.note(topic, without(record, left), text)
        if text.startswith(_CANCELLED):
            self._cancelled(text)

    def _cancelled(self, reason: str) -> None:
        if self.log.turn:
            self.log.close_turn("cancelled", reason)

    def _parts(self, value: Any, entry: GeminiEntry) -> list[Any]:
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

    def _parsed(self, contents: Sequence[Mapping[str, Any]], entry: GeminiEntry) -> tuple[Message, ...]:
        try:
            parsed = PROVIDER.parse({"contents": contents})
        except FormatError as error:
            self.log.unreadable(entry.line, f"{entry.place} ({error})", entry.record, "entry")
            return ()
        self.log.blobs.update(parsed.blobs)
        return parsed.messages

    def _user(self, entry: GeminiEntry) -> None:
        record = entry.record
        content = {"role": "user", "parts": self._parts(record.get("content"), entry)}
        for message in self._parsed([content], entry):
            answers = any(isinstance(part, ToolResult) for part in message.parts)
            text = "\n".join(_texts(record.get("displayContent"))) or text_of(message)
            if text.startswith(_IGNORED):
                message = replace(message, by_program=True)
            elif not answers and not entry.again:
                self.prompts.append(text)
                self.log.open_turn(str(record.get("id") or entry.place))
            self.log.add(MessageRecord(message=judged(message, self.calls, self.log), source=_source(entry)))
        rest = without(record, _USER_KEYS)
        self.log.left_unread(entry.line, entry.place, rest, is_empty="content" not in record)
        self._rest(rest, entry)

    def _answer(self, index: int, entry: GeminiEntry) -> None:
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
            is_empty = "content" not in record
            self.log.left_unread(entry.line, entry.place, rest, is_empty=is_empty)
            if any(" " in text for text in strings_in(rest.get("thoughts"))):
                self.log.left_unread(entry.line, entry.place, {"thinking": rest["thoughts"]}, is_empty=False)
            for call in calls:
                if "args" not in call or "result" not in call:
                    unread = without(call, CALL_KEYS)
                    self.log.left_unread(entry.line, entry.place, unread, is_empty=True, of="a tool call")
            self._rest(rest, entry)
        results = [judged(message, self.calls, self.log) for message in messages[1:]]
        for message in results:
            if calls:
                self.log.at(calls[-1].get("timestamp"))
            self.log.add(MessageRecord(message=message, source=_source(entry)))
        if not entry.again:
            self._runs(calls, results)

    def _runs(self, calls: Sequence[Mapping[str, Any]], messages: Sequence[Message]) -> None:
        results = {part.call_id: part for message in messages for part in message.parts if isinstance(part, ToolResult)}
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
            return [response["id"] for response in responses if response.get("id")]
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

    def _rest(self, rest: Mapping[str, Any], entry: GeminiEntry) -> None:
        """Note what a message contains besides its content."""
        fields = {key: item for key, item in rest.items() if not is_empty(item)}
        if fields and not entry.again:
            self.log.note("message", {"id": entry.record.get("id"), **fields})


def _source(entry: GeminiEntry) -> str:
    message_id = word(entry.record.get("id"))
    return f"{entry.place} id {message_id}" if message_id else entry.place


def _texts(content: Any) -> list[str]:
    """The texts of a list of parts, or the text itself."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return [text for text in texts if isinstance(text, str)]


def _model_parts(record: Mapping[str, Any], content: list[Any], calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The parts that the model wrote: thoughts, content, calls. If the content itself contains thoughts or calls, the
    separate lists are copies."""
    parts: list[Any] = [] if _has_thoughts(content) else [_thought(thought) for thought in _thoughts(record)]
    parts += content
    inside = [part["functionCall"] for part in content if isinstance(part.get("functionCall"), dict)]
    call_ids = [call.get("id") for call in inside]
    if not inside or None not in call_ids:
        parts += [_call(call) for call in calls if call.get("id") not in call_ids]
    return parts


def _has_thoughts(content: list[Any]) -> bool:
    return any(part.get("thought") is True for part in content)


def _thoughts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [thought for thought in objects(record.get("thoughts")) if isinstance(thought.get("description", ""), str)]


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
        rest["thoughts"] = [without(thought, _THOUGHT) if thought in readable else thought for thought in thoughts]
    elif thoughts is not None:
        rest["thoughts"] = thoughts
    calls = record.get("toolCalls")
    if not isinstance(calls, list) or len(calls_of(record)) != len(calls):
        rest["toolCalls"] = calls
    return rest
