"""gemini-cli's records of a tool's run: result, outcome, changed file, and displayed output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...log.messages import Message, Outcome, ToolResult
from ...log.records import Approval, ToolFinished
from ..drafting import Drafting
from ..file_changes import is_patch
from ..json_values import objects, within, without
from ..repeats import result_text

_OUTCOMES: dict[str, Outcome] = {"success": "ok", "error": "failed", "cancelled": "canceled"}
"""The statuses of calls that ended. With any other status (scheduled, executing, awaiting_approval) the call had not
ended."""

_DENIED = re.compile(r"User denied execution|User did not allow tool call")
_INTERRUPTED = re.compile(
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
_WROTE = re.compile(
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
        result, own = call.get("result"), call.get("id")
        if result is None or own in answered:
            continue
        given = [_with_id(part, own) for part in (result if isinstance(result, list) else [result])]
        responses = [part for part in given if _is_response(part)]
        if not responses:
            given = [_response(call, given), *(part for part in given if not _is_text(part))]
        elif any(_response_id(part) != own for part in responses):
            if given in turns:
                continue
            turns.append(given)
        parts += [part for part in given if not _is_response(part) or _response_id(part) not in answered_ids]
        if len(responses) > 1:
            answered_ids += map(_response_id, responses)
    return parts


def _with_id(part: Any, own: Any) -> Any:
    """A response without an id gets the id of the call that contains it."""
    if not _is_response(part) or _response_id(part) or not own:
        return part
    return {**part, "functionResponse": {**part["functionResponse"], "id": own}}


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
    return log.with_results(message, lambda one: replace(one, outcome=_outcome(one, calls.get(one.call_id, {}))))


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
    found, arguments = _WROTE.match(text), call.get("args")
    if found is None or not isinstance(arguments, dict):
        return
    path, named = found["path"], arguments.get("file_path")
    if isinstance(named, str) and path.endswith("/" + named):
        log.files.work_in(path.removesuffix("/" + named))
    patch = within(call, "resultDisplay", "fileDiff")
    content = arguments.get("content", arguments.get("new_string"))
    content = None if _USER_EDITED in text else content
    if found["how"] in _CREATED:
        log.files.created(path, content, call_record)
    elif "content" in arguments:
        log.files.modified(path, None, content, call_record)
    elif is_patch(patch):
        log.files.patched(path, patch, call_record)
    else:
        old, new = arguments.get("old_string"), content
        log.files.replaced(path, lambda content_before: _replaced(content_before, old, new), call_record)


def _replaced(content_before: bytes, old: Any, new: Any) -> bytes | None:
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        return None
    before, after = old.encode("utf-8", "surrogatepass"), new.encode("utf-8", "surrogatepass")
    return content_before.replace(before, after) if before in content_before else None
