"""Chats of VS Code (Copilot Chat, and editors built like it): `chatSessions/<id>.json`, since 2026 a log `<id>.jsonl`
of changes to the same document, and what "Export Chat" writes.

Kinds of log lines are those of objectMutationLog.ts in microsoft/vscode. What a model was given of its calls, and said
of them, is only in the metadata of an answer (`toolCallRounds`, `toolCallResults`); its `response` has what was shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..log.messages import Outcome, Part, Reasoning, Text
from ..log.records import FileChange
from ..providers.openai_chat import PROVIDER
from .fields import Fields, as_text
from .json_values import items, mapping, objects, path_of, within, word
from .parts import called, texts, thoughts
from .protocol import Imported, Origin, hashed_id
from .repeats import is_empty
from .transcript import Transcript
from .writing import Handler, SessionWriter

_STATES = {"1": "completed", "2": "cancelled", "3": "failed"}
"""The `modelState` of a request that ended."""


def read(origin: Origin) -> list[Imported]:
    """The chat."""
    file = Transcript(origin)
    chat = Fields(_document(file))
    if not isinstance(chat.value.get("requests"), list):
        raise file.refused("request of a chat", "give a file of chatSessions, or an exported chat.json")
    writer = SessionWriter(file, "vscode-chat", PROVIDER, envelope=("requestId", "timestamp", "responseId"))
    first = [mapping(request).get("requestId") for request in items(chat.value["requests"])[:1]]
    writer.id = chat.text("sessionId") or hashed_id("vscode-chat", first)
    writer.title = chat.text("customTitle", "computedTitle")
    writer.at(chat.get("creationDate"))
    folder, writer.files = _folder(file.path)
    writer.log.files.work_in(folder)
    writer.facts("context", {"cwd": folder})
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
        change = line.value
        kind, path, value = change.get("kind"), change.get("k"), change.get("v")
        if kind == 0 and isinstance(value, dict):
            root = value
        elif not _changed(root, kind, items(path), value, change.get("i")):
            file.warn(line.number, "left out: a change of something that is not in the chat", "entry")
    return root


def _changed(root: Any, kind: Any, path: list[Any], value: Any, start: Any) -> bool:
    """Apply a change at a path of keys: 1 sets, 2 appends to a list, which is cut before at `start`, 3 deletes. Returns
    whether the place exists."""
    *steps, key = path or [None]
    for step in steps:
        root = _at(root, step)
    if isinstance(root, list) and type(key) is int and key == len(root):
        root.append(None)
    elif not (isinstance(root, dict) and isinstance(key, str)) and _at(root, key) is None:
        return False
    held = _at(root, key)
    if kind == 2 and isinstance(held, (list, type(None))) and isinstance(value, (list, type(None))):
        kept = items(held)[:start] if type(start) is int and start >= 0 else items(held)
        root[key] = [*kept, *items(value)]
    elif kind in (1, 3):
        root[key] = value if kind == 1 else None
    else:
        return False
    return True


def _at(holder: Any, key: Any) -> Any:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    return holder[key] if isinstance(holder, list) and type(key) is int and 0 <= key < len(holder) else None


def _folder(path: Path | None) -> tuple[str, list[str]]:
    """The workspace's folder, which the file `workspace.json` beside the folder of chats names, and that file."""
    beside = path.parent.parent / "workspace.json" if path is not None else None
    if beside is None or not beside.is_file():
        return "", []
    try:
        facts = json.loads(beside.read_bytes())
    except (ValueError, OSError, RecursionError):
        facts = None
    return path_of(mapping(facts).get("folder")), [str(beside)]


# -- requests --------------------------------------------------------------------------------------


class _Shown(Struct):
    """What the editor shows of an answer: texts and thinking, and runs of tools, in order. `others` are parts that say
    nothing, `edited` the files in which it shows changes."""

    parts: list[Text | Reasoning | Fields] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    edited: list[dict[str, Any]] = field(default_factory=list)

    def runs(self) -> list[Fields]:
        """The runs of tools."""
        return [part for part in self.parts if isinstance(part, Fields)]


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
    shown = _shown(writer, request)
    number = _rounds(writer, metadata, shown, source) or _as_shown(writer, shown, source)
    writer.note("shown", {"parts": [*(run.value for run in shown.runs()), *shown.others]})
    _edited(writer, shown, first)
    figures = metadata.value if "promptTokens" in metadata.value else request.inside("usage").value
    output = "outputTokens" if "outputTokens" in figures else "completionTokens"
    raw = {key: figures[key] for key in ("promptTokens", output) if key in figures}
    writer.usage(raw, {"input": "promptTokens", "output": output}, incomplete=number > 1)
    metadata.skip("promptTokens", "outputTokens", "cacheKey", "sessionId")
    _ended(writer, request)
    if request.get("shouldBeRemovedOnSend", "isHidden"):
        writer.flush()
        writer.log.rewound(first, "the user took the request back")


def _ended(writer: SessionWriter, request: Fields) -> None:
    state, result = request.inside("modelState"), request.inside("result")
    writer.at(state.get("completedAt"))
    status = _STATES.get(as_text(state.get("value")), "")
    status = "cancelled" if request.get("isCanceled") is True else status
    error = result.inside("errorDetails").text("message")
    if error or status or result.value:
        writer.end("failed" if error and status != "cancelled" else status or "completed", error)


def _rounds(writer: SessionWriter, metadata: Fields, shown: _Shown, source: str) -> int:
    """Record what the model said and was told, round by round; returns the number of rounds."""
    results, runs, told = metadata.inside("toolCallResults"), shown.runs(), ""
    rounds = metadata.each("toolCallRounds")
    known = {_plain(call.get("id")) for each in rounds for call in objects(each.value.get("toolCalls"))}
    for number, each in enumerate(rounds):
        thought = each.inside("thinking")
        thinking, text = _words(thought.get("text")), each.text("response")
        calls = [called(call.text("id"), call.text("name"), call.get("arguments")) for call in each.each("toolCalls")]
        writer.flush()
        writer.at(each.get("timestamp"))
        parts: list[Part] = [
            *thoughts(thinking, PROVIDER.name, encrypted=thought.text("encrypted")),
            *texts(text),
            *calls,
        ]
        writer.say("assistant", parts, source=f"{source} round {number}")
        for call in calls:
            run, content = _run_of(runs, call.id, known), results.get(call.id)
            said = _content(content) if content is not None else _told(run)
            if said or run.value:
                writer.result(call.id, said, source=f"{source} round {number}", outcome=_outcome(run))
        told += "".join((thinking + text).split())
        each.skip("id", "toolInputRetry", "statefulMarker")
        thought.skip("id")
    writer.flush()
    for part in shown.parts if rounds else ():  # the last words of an answer that was cut off
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


def _as_shown(writer: SessionWriter, shown: _Shown, source: str) -> int:
    """Record an answer of which there is only what was shown; returns how many rounds it took at least."""
    for part in shown.parts:
        if isinstance(part, Fields):
            details, about = mapping(part.value.get("resultDetails")), mapping(part.value.get("toolSpecificData"))
            line = within(about, "commandLine", "original") or about.get("command")
            given = {"command": line} if line else about.get("rawInput") or details.get("input") or {}
            call_id = word(part.value.get("toolCallId"))
            call = called(call_id, word(part.value.get("toolId")), given)
            writer.say("assistant", [call], source=source, joined=True)
            if part.value.get("isComplete") is not False:
                told = _told(part) or _words(part.value.get("pastTenseMessage"))
                writer.result(call_id, told, source=source, outcome=_outcome(part))
        else:
            writer.say("assistant", [part], source=source, joined=True)
    writer.flush()
    return 1 + len(shown.runs())


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


def _shown(writer: SessionWriter, request: Fields) -> _Shown:
    shown = _Shown()
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
            last = shown.parts[-1] if shown.parts else None
            if isinstance(last, type(new)):
                shown.parts[-1] = replace(last, text=last.text + text)
            else:
                shown.parts.append(new)
        elif kind in ("toolInvocationSerialized", "toolInvocation"):
            shown.parts.append(Fields(value))
        elif kind == "textEditGroup":
            shown.edited.append(value)
        elif not is_empty(value.get("value") if kind in ("", "thinking") else part):
            shown.others.append(part)
            if not kind:
                writer.log.count("a part of an answer without a kind", 0)
    if not isinstance(parts, (str, list)) and not is_empty(parts):
        writer.log.count("an answer that is no list", 0, "entry")
    return shown


def _words(value: Any) -> str:
    """A text, an object with one under `value`, or a list of texts."""
    return "".join(map(word, value)) if isinstance(value, list) else word(value) or word(within(value, "value"))


def _edited(writer: SessionWriter, shown: _Shown, first: int) -> None:
    """Record the files that were shown as edited, and that no call tells of."""
    writer.flush()
    told = {draft.body.path for draft in writer.log.drafts[first - 1 :] if isinstance(draft.body, FileChange)}
    for group in shown.edited:
        path = path_of(group.get("uri"))
        if path and path not in told:
            writer.log.files.modified(path, None, None, 0)
            writer.note("edits", group)


_HANDLERS: dict[str, Handler | None] = {"request": _request}
