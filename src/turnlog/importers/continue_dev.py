"""Sessions of Continue: `~/.continue/sessions/<id>.json`. Each item of the history has a message in the shape of Chat
Completions, and the states of its calls.

The editor writes a result as a message too, the command line only in the state of its call.
"""

from __future__ import annotations

from ..log.messages import Message, Outcome, Part, Text
from ..providers.openai_chat import PROVIDER
from .fields import Fields
from .json_values import items, mapping, objects, path_of, word
from .parts import called, shown, thoughts
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import Handler, SessionWriter

_USAGE = {
    "input": "promptTokens",
    "output": "completionTokens",
    "cached": "promptTokensDetails.cachedTokens",
    "cache_write": "promptTokensDetails.cacheWriteTokens",
    "reasoning": "completionTokensDetails.reasoningTokens",
}
_OUTCOMES: dict[str, Outcome] = {"errored": "failed", "canceled": "canceled"}
_ENDED = ("done", "errored", "canceled")


def read(origin: Origin) -> list[Imported]:
    """The session."""
    file = Transcript(origin)
    session = Fields(file.document_or_rest("history"))
    if not isinstance(session.value.get("history"), list):
        raise file.refused("history of Continue", "give a file of ~/.continue/sessions")
    writer = SessionWriter(file, "continue", PROVIDER, envelope=("id", "timestamp"))
    history = items(session.value["history"])
    writer.id = session.text("sessionId") or hashed_id("continue", history[:1])
    writer.title, writer.model = session.text("title"), session.text("chatModelTitle")
    folder = path_of(session.get("workspaceDirectory"))
    writer.log.files.work_in(folder)
    writer.facts("context", {"cwd": folder, "mode": session.text("mode")})
    results = [mapping(mapping(item).get("message")).get("toolCallId") for item in history]
    writer.state["results"] = list(filter(None, map(word, results)))
    writer.state["is_billed"] = bool(mapping(session.value.get("usage")))
    for number, item in enumerate(session.each("history"), 1):
        writer.at(item.value.get("timestamp"))
        writer.take(item, number, word(mapping(item.value.get("message")).get("role")), _HANDLERS)
    if len(session.each("history")) < len(history):
        file.warn(0, "not read: an item of the history that is no object; it is kept as a note", "entry")
    _billed(writer, session.get("usage"))
    writer.note("session", session.unread())
    return [writer.done()]


def _asked(writer: SessionWriter, item: Fields, number: int) -> None:
    message = item.inside("message")
    role, parts = message.text("role"), _parts(writer, message.get("content"))
    if role == "user":
        writer.turn(f"item-{number}")
    writer.say(role, parts, source=f"history[{number - 1}]")
    writer.note("request", {"contextItems": item.get("contextItems")})
    if parts:
        item.skip("editorState")
    _common(writer, item)


def _thought(writer: SessionWriter, item: Fields, number: int) -> None:
    message = item.inside("message")
    thinking = "\n".join(part.text for part in _parts(writer, message.get("content")) if isinstance(part, Text))
    about = {"signature": message.text("signature"), "encrypted": message.text("redactedThinking")}
    message.skip("role")
    writer.say("assistant", thoughts(thinking, PROVIDER.name, **about), source=f"history[{number - 1}]")
    writer.state["thought"] = True
    _common(writer, item)


def _answered(writer: SessionWriter, item: Fields, number: int) -> None:
    message, source = item.inside("message"), f"history[{number - 1}]"
    message.skip("role")
    writer.at(item.inside("reasoning").get("startAt"))
    item.inside("reasoning").skip("active", "endAt")
    thinking = item.inside("reasoning").text("text")
    parts: list[Part] = [*thoughts(thinking, PROVIDER.name), *_parts(writer, message.get("content"))]
    states = item.each("toolCallStates")
    calls = message.each("toolCalls")
    made = {word(call.value.get("id")) for call in calls}
    pairs = [(call, call) for call in calls] + [(state.inside("toolCall"), state) for state in states]
    for call, holder in pairs:
        call_id = call.text("id") or word(holder.value.get("toolCallId"))
        function = call.inside("function")
        call.skip("type", "index")
        if call.value and (call in calls or call_id not in made):
            parts.append(called(call_id, function.text("name"), function.get("arguments")))
        else:
            call.skip("function")
    is_more = writer.state.pop("thought", False)
    writer.say("assistant", parts, joined=is_more, source=source)
    for state in states:
        _ran(writer, state, source)
    _common(writer, item)


def _ran(writer: SessionWriter, state: Fields, source: str) -> None:
    """The state of a call: its result, if no message has it."""
    call_id, status = state.text("toolCallId"), state.text("status")
    outcome = writer.state.setdefault("outcomes", {})[call_id] = _OUTCOMES.get(status, "ok")
    state.skip("parsedArgs", "tool")
    output = state.value.get("output")
    if call_id in writer.state["results"]:
        state.skip("output" if status in _ENDED else "")
    elif output or status in _ENDED:
        state.skip("output")
        told = [word(each.get("content")) for each in objects(output)]
        content = "\n".join(told) if told and all(told) else output
        writer.result(call_id, content, source=source, outcome=outcome)


def _returned(writer: SessionWriter, item: Fields, number: int) -> None:
    message = item.inside("message")
    message.skip("role")
    call_id = message.text("toolCallId")
    outcome = writer.state.get("outcomes", {}).get(call_id, "ok")
    content = tuple(_parts(writer, message.get("content")))
    writer.result(call_id, content, source=f"history[{number - 1}]", outcome=outcome)
    _common(writer, item)


def _common(writer: SessionWriter, item: Fields) -> None:
    """What every item may have: what was sent for it, its bill, a summary of all that was said."""
    for log in item.each("promptLogs"):
        writer.model = log.text("modelTitle", "model") or writer.model
        log.skip("prompt", "completion")
    usage = item.inside("message").get("usage")
    if not writer.state["is_billed"]:
        _billed(writer, usage)
    item.skip("isGatheringContext")
    item.inside("message").skip("id")
    if summary := item.text("conversationSummary"):
        writer.flush()
        shown_instead = [Message("user", (Text(summary),), by_program=True)]
        writer.log.compacted(1, writer.log.last, "Continue compacted", {}, shown_instead)


def _billed(writer: SessionWriter, usage: object) -> None:
    writer.usage(usage, _USAGE, cost=mapping(usage).get("totalCost"))


def _parts(writer: SessionWriter, content: object) -> list[Part]:
    """The parts of a message; an image is under `imageUrl`."""
    parts: list[Part] = []
    for block in items(content) if isinstance(content, list) else [content]:
        url = mapping(mapping(block).get("imageUrl")).get("url")
        parts += shown({"image_url": url} if url else block, writer.log.blob)
    return parts


_HANDLERS: dict[str, Handler | None] = {
    "user": _asked,
    "system": _asked,
    "thinking": _thought,
    "assistant": _answered,
    "tool": _returned,
}
