"""Chats of VS Code (Copilot Chat, and editors built like it): `chatSessions/<id>.json`, since 2026 a log `<id>.jsonl`
of changes to the same document, and what "Export Chat" writes.

Kinds of log lines are those of objectMutationLog.ts in microsoft/vscode. What a model was given of its calls, and said
of them, is only in the metadata of an answer (`toolCallRounds`, `toolCallResults`); its `response` has what was shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from msgspec.structs import replace

from ..log.messages import Outcome, Reasoning, Text
from ..log.records import FileChange
from ..providers.openai_chat import PROVIDER
from .fields import Fields, as_text
from .json_values import items, mapping, objects, path_of, within, word
from .parts import called, texts
from .protocol import Imported, Origin, hashed_id
from .repeats import is_empty
from .transcript import Transcript
from .writing import Handler, SessionWriter

_STATES = {"1": "completed", "2": "cancelled", "3": "failed"}
"""The `modelState` of a request that ended."""

_NOISE = "cacheKey sessionId id toolInputRetry statefulMarker"
_USAGE = {"input": "promptTokens", "output": "outputTokens|completionTokens"}


def read(origin: Origin) -> list[Imported]:
    """The chat."""
    file = Transcript(origin)
    chat = Fields(_document(file))
    if not isinstance(chat.value.get("requests"), list):
        raise file.refused("request of a chat", "give a file of chatSessions, or an exported chat.json")
    writer = SessionWriter(
        file, "vscode-chat", PROVIDER, envelope=("requestId", "timestamp", "responseId"), noise=_NOISE
    )
    first = [mapping(request).get("requestId") for request in items(chat.value["requests"])[:1]]
    writer.id = chat.text("sessionId") or hashed_id("vscode-chat", first)
    writer.title = chat.text("customTitle", "computedTitle")
    writer.at(chat.get("creationDate"))
    if file.path is not None:
        writer.place(path_of(writer.beside(file.path.parent.parent / "workspace.json").get("folder")))
    chat.skip("lastMessageDate", "version")
    for number, request in enumerate(chat.each("requests"), 1):
        writer.at(request.get("timestamp"))
        writer.take(request, number, "request", _HANDLERS)
    if len(chat.each("requests")) < len(items(chat.value["requests"])):
        file.warn(0, "not read: a request that is no object; it is kept as a note", "entry")
    writer.note("chat", chat.unread())
    return [writer.done()]


# -- the document ----------------------------------------------------------------------------------


def _document(file: Transcript) -> Any:
    """The chat as one document: that of the file, or what the changes in a log make of it."""
    first = file.data.lstrip(b"\0 \t\r\n")[:64].replace(b" ", b"")
    if b'"kind":' not in first and not first.startswith(b'{"v":'):
        return file.document_or_rest("requests")
    root: dict[str, Any] = {}
    for line in file.objects("change"):
        try:
            root = _changed(root, line.value)
        except (LookupError, TypeError, ValueError):
            file.warn(line.number, "left out: a change of something that is not in the chat", "entry")
    return root


def _changed(root: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The document after a change: 0 is a new one; at a path of keys, 1 sets, 2 appends to a list, which is cut before
    at `i`, 3 deletes. Raises LookupError, TypeError or ValueError if the place does not exist."""
    kind, value, holder = change.get("kind"), change.get("v"), cast(Any, root)
    if kind == 0 and isinstance(value, dict):
        return value
    *steps, key = change["k"]
    for step in steps:
        holder = holder[step]
    if isinstance(holder, dict) is not isinstance(key, str) or kind not in (1, 2, 3):
        raise TypeError
    if isinstance(holder, list) and key == len(holder):
        holder.append(None)
    held = holder.get(key) if isinstance(holder, dict) else holder[key]
    holder[key] = value if kind == 1 else (held or [])[: change.get("i")] + (value or []) if kind == 2 else None
    return root


# -- requests --------------------------------------------------------------------------------------


def _request(writer: SessionWriter, request: Fields, line: int) -> None:
    first, source = writer.log.last + 1, f"requests[{line - 1}]"
    metadata = request.inside("result", "metadata")
    model = metadata.text("resolvedModel") or request.text("modelId").rpartition("/")[2]
    writer.model = model if model not in ("", "auto") else writer.model
    asked = request.inside("message")
    text = asked.text("text") or request.text("message")
    if text or not asked.value:
        asked.skip("parts")
    writer.turn(request.text("requestId") or f"request-{line}")
    writer.say("user", texts(text), source=source)
    sent = items(metadata.get("renderedUserMessage"))
    is_same = [mapping(part).get("text") for part in sent] == [text]
    attached = request.inside("variableData").get("variables")
    writer.note("request", {"attached": attached, "sent": None if is_same else sent})
    shown, others, edited = _shown(writer, request)
    runs = [part for part in shown if isinstance(part, Fields)]
    number = _rounds(writer, metadata, shown, runs, source)
    if not number:
        number = 1 + len(runs)
        _as_shown(writer, shown, source)
    writer.note("shown", {"parts": [*(part.value for part in shown if isinstance(part, Fields)), *others]})
    _edited(writer, edited, first)
    figures = metadata.value if "promptTokens" in metadata.value else request.inside("usage").value
    raw = {key: figures[key] for key in ("promptTokens", "outputTokens", "completionTokens") if key in figures}
    writer.usage(raw, _USAGE, incomplete=number > 1)
    metadata.skip("promptTokens", "outputTokens")
    _ended(writer, request)
    if request.get("shouldBeRemovedOnSend", "isHidden"):
        writer.flush()
        writer.log.rewound(first, "the user took the request back")


def _ended(writer: SessionWriter, request: Fields) -> None:
    state, result = request.inside("modelState"), request.inside("result")
    writer.at(state.get("completedAt"))
    status = _STATES.get(as_text(state.get("value")), "")
    error = result.inside("errorDetails").text("message")
    if request.get("isCanceled") is True:
        status = "cancelled"
    elif error and status != "cancelled":
        status = "failed"
    if status or result.value:
        writer.end(status or "completed", error)


def _rounds(writer: SessionWriter, metadata: Fields, shown: _Shown, runs: list[Fields], source: str) -> int:
    """Record what the model said and was told, round by round; returns the number of rounds."""
    results, told = metadata.inside("toolCallResults"), ""
    rounds = metadata.each("toolCallRounds")
    known = {_plain(call.get("id")) for each in rounds for call in objects(each.value.get("toolCalls"))}
    for number, each in enumerate(rounds):
        thought = each.inside("thinking")
        thinking, text = _words(thought.get("text")), each.text("response")
        calls = [called(call.text("id"), call.text("name"), call.get("arguments")) for call in each.each("toolCalls")]
        writer.flush()
        writer.at(each.get("timestamp"))
        thinking_parts = writer.thinking(thinking, encrypted=thought.text("encrypted"))
        writer.say("assistant", [*thinking_parts, *texts(text), *calls], source=f"{source} round {number}")
        for call in calls:
            run, content = _run_of(runs, call.id, known), results.get(call.id)
            said = _content(content) if content is not None else _told(run)
            if said or run.value:
                writer.result(call.id, said, source=f"{source} round {number}", outcome=_outcome(run))
        told += "".join((thinking + text).split())
    writer.flush()
    for part in shown if rounds else ():  # the last words of an answer that was cut off
        if not isinstance(part, Fields) and "".join(part.text.split()) not in told:
            writer.say("assistant", [part], source=source, joined=True)
    return len(rounds)


def _run_of(runs: list[Fields], call_id: str, known: set[str]) -> Fields:
    """The run that was shown for a call: that of its id, else the next whose id is not that of a `known` call."""
    alike = (run for run in runs if _plain(run.value.get("toolCallId")) == _plain(call_id))
    others = (run for run in runs if _plain(run.value.get("toolCallId")) not in known)
    run = next(alike, None) or next(others, None) or Fields(None)
    runs[:] = [each for each in runs if each is not run]
    return run


def _plain(call_id: Any) -> str:
    """The id of a call without what VS Code adds to it."""
    return word(call_id).partition("__vscode")[0]


def _as_shown(writer: SessionWriter, shown: _Shown, source: str) -> None:
    """Record an answer of which there is only what was shown."""
    for part in shown:
        if not isinstance(part, Fields):
            writer.say("assistant", [part], source=source, joined=True)
            continue
        run, call_id = part.value, word(part.value.get("toolCallId"))
        line = within(run, "toolSpecificData", "commandLine", "original") or within(run, "toolSpecificData", "command")
        given = within(run, "toolSpecificData", "rawInput") or within(run, "resultDetails", "input") or {}
        call = called(call_id, word(run.get("toolId")), {"command": line} if line else given)
        writer.say("assistant", [call], source=source, joined=True)
        if run.get("isComplete") is not False:
            told = _told(part) or _words(run.get("pastTenseMessage"))
            writer.result(call_id, told, source=source, outcome=_outcome(part))
    writer.flush()


def _outcome(run: Fields) -> Outcome:
    code = within(run.value, "toolSpecificData", "terminalCommandState", "exitCode")
    is_denied = run.value.get("isConfirmed") is False or within(run.value, "isConfirmed", "type") == 0
    is_error = within(run.value, "resultDetails", "isError") is True or code not in (0, None)
    return "canceled" if is_denied else "failed" if is_error else "ok"


def _told(run: Fields) -> str:
    """What a tool returned, as far as it was shown."""
    output = within(run.value, "resultDetails", "output")
    said = "\n".join(_words(each.get("value")) for each in objects(output)) or word(output)
    return said or word(within(run.value, "toolSpecificData", "terminalCommandOutput", "text"))


def _content(result: Any) -> Any:
    """The content of a result: its texts, or all of it as JSON if it has other parts. A part is a text, or a tree of
    nodes around texts (that of prompt-tsx)."""
    values = [part.get("value") for part in objects(within(result, "content"))]
    told = [word(value) or "".join(_texts_in(within(value, "node"))).strip("\n") for value in values]
    return "\n".join(told) if told and all(told) else result


def _texts_in(node: Any) -> Iterator[str]:
    text = within(node, "text")
    if isinstance(text, str):
        yield "\n" * (within(node, "lineBreakBefore") is True) + text
    for child in items(within(node, "children")):
        yield from _texts_in(child)


# -- what was shown --------------------------------------------------------------------------------


_Shown = list[Text | Reasoning | Fields]
"""What the editor shows of an answer: texts and thinking, and runs of tools, in order."""


def _shown(writer: SessionWriter, request: Fields) -> tuple[_Shown, list[Any], list[dict[str, Any]]]:
    """What was shown, the parts that say nothing, and the files in which changes were shown."""
    shown: _Shown = []
    others: list[Any] = []
    edited: list[dict[str, Any]] = []
    parts = request.get("response")
    for part in [parts] if isinstance(parts, str) else items(parts):
        value = {"value": part} if isinstance(part, str) else mapping(part)
        kind = word(value.get("kind"))
        text = _words(value.get("value")) or _words(value.get("content"))
        place = mapping(value.get("inlineReference"))
        if kind == "inlineReference":
            text = f"`{word(value.get('name')) or path_of(place) or path_of(place.get('location'))}`"
        if kind in ("", "markdownContent", "markdownVuln", "inlineReference", "thinking") and text:
            new = Reasoning(PROVIDER.name, text) if kind == "thinking" else Text(text)
            last = shown[-1] if shown else None
            if isinstance(last, type(new)):
                shown[-1] = replace(last, text=last.text + text)
            else:
                shown.append(new)
        elif kind in ("toolInvocationSerialized", "toolInvocation"):
            shown.append(Fields(value))
        elif kind == "textEditGroup":
            edited.append(value)
        elif not is_empty(value.get("value") if kind in ("", "thinking") else part):
            others.append(part)
            if not kind:
                writer.log.count("a part of an answer without a kind", 0)
    if not isinstance(parts, (str, list)) and not is_empty(parts):
        writer.log.count("an answer that is no list", 0, "entry")
    return shown, others, edited


def _words(value: Any) -> str:
    """A text, an object with one under `value`, or a list of texts."""
    return "".join(map(word, value)) if isinstance(value, list) else word(value) or word(within(value, "value"))


def _edited(writer: SessionWriter, edited: list[dict[str, Any]], first: int) -> None:
    """Record the files that were shown as edited, and that no call tells of."""
    writer.flush()
    told = {draft.body.path for draft in writer.log.drafts[first - 1 :] if isinstance(draft.body, FileChange)}
    for group in edited:
        path = path_of(group.get("uri"))
        if path and path not in told:
            writer.log.files.modified(path, None, None, 0)
            writer.note("edits", group)


_HANDLERS: dict[str, Handler | None] = {"request": _request}
