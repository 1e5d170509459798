"""Sessions of Continue: `~/.continue/sessions/<id>.json`. Each item of the history has a message in the shape of Chat
Completions, and the states of its calls.

The editor writes a result as a message too, the command line only in the state of its call.
"""

from __future__ import annotations

from ..log.messages import Outcome, Part, Text
from ..providers.openai_chat import PROVIDER
from .fields import Fields
from .json_values import items, mapping, objects, path_of, word
from .parts import called, shown
from .protocol import Imported, Origin, hashed_id
from .transcript import Transcript
from .writing import SessionWriter, kinds

_USAGE = {
    "input": "promptTokens",
    "output": "completionTokens",
    "cached": "promptTokensDetails.cachedTokens",
    "cache_write": "promptTokensDetails.cacheWriteTokens",
    "reasoning": "completionTokensDetails.reasoningTokens",
}
_OUTCOMES: dict[str, Outcome] = {"errored": "failed", "canceled": "canceled"}
_NOISE = "role type index parsedArgs tool active endAt isGatheringContext prompt completion"
_ENDED = ("done", "errored", "canceled")


def read(origin: Origin) -> list[Imported]:
    """The session."""
    file = Transcript(origin)
    session = Fields(file.document_or_rest("history"))
    if not isinstance(session.value.get("history"), list):
        raise file.refused("history of Continue", "give a file of ~/.continue/sessions")
    writer = SessionWriter(file, "continue", PROVIDER, envelope=("id", "timestamp"), noise=_NOISE)
    history = items(session.value["history"])
    writer.id = session.text("sessionId") or hashed_id("continue", history[:1])
    writer.title, writer.model = session.text("title"), session.text("chatModelTitle")
    writer.place(path_of(session.get("workspaceDirectory")), mode=session.text("mode"))
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


def _item(writer: SessionWriter, item: Fields, number: int) -> None:
    """An item with what every one may have: what was sent for it, its bill, a summary of all that was said."""
    message, source = item.inside("message"), f"history[{number - 1}]"
    parts = _parts(writer, message.get("content"))
    if message.text("role") == "user":
        writer.turn(f"item-{number}")
    _ROLES[message.text("role")](writer, item, parts, source)
    for log in item.each("promptLogs"):
        writer.model = log.text("modelTitle", "model") or writer.model
    usage = message.get("usage")
    if not writer.state["is_billed"]:
        _billed(writer, usage)
    message.skip("id")
    writer.compact("Continue compacted", item.text("conversationSummary"))


def _asked(writer: SessionWriter, item: Fields, parts: list[Part], source: str) -> None:
    writer.say(item.inside("message").text("role"), parts, source=source)
    writer.note("request", {"contextItems": item.get("contextItems")})
    if parts:
        item.skip("editorState")


def _thought(writer: SessionWriter, item: Fields, parts: list[Part], source: str) -> None:
    thinking = "\n".join(part.text for part in parts if isinstance(part, Text))
    message = item.inside("message")
    signature, encrypted = message.text("signature"), message.text("redactedThinking")
    told = writer.thinking(thinking, signature=signature, encrypted=encrypted)
    writer.say("assistant", told, source=source)
    writer.state["thought"] = True


def _answered(writer: SessionWriter, item: Fields, parts: list[Part], source: str) -> None:
    reasoning, states = item.inside("reasoning"), item.each("toolCallStates")
    writer.at(reasoning.get("startAt"))
    parts = [*writer.thinking(reasoning.text("text")), *parts]
    calls = item.inside("message").each("toolCalls")
    made = {word(call.value.get("id")) for call in calls}
    for call, holder in [(call, call) for call in calls] + [(state.inside("toolCall"), state) for state in states]:
        call_id, function = call.text("id") or word(holder.value.get("toolCallId")), call.inside("function")
        if call.value and (holder is call or call_id not in made):
            parts.append(called(call_id, function.text("name"), function.get("arguments")))
        else:
            call.skip("function")
    writer.say("assistant", parts, joined=writer.state.pop("thought", False), source=source)
    for state in states:
        _ran(writer, state, source)


def _ran(writer: SessionWriter, state: Fields, source: str) -> None:
    """The state of a call: its result, if no message has it."""
    call_id, status, output = state.text("toolCallId"), state.text("status"), state.value.get("output")
    outcome = writer.state.setdefault("outcomes", {})[call_id] = _OUTCOMES.get(status, "ok")
    is_told = call_id in writer.state["results"]
    if status in _ENDED or (output and not is_told):
        state.skip("output")
        if not is_told:
            told = [word(each.get("content")) for each in objects(output)]
            content = "\n".join(told) if told and all(told) else output
            writer.result(call_id, content, source=source, outcome=outcome)


def _returned(writer: SessionWriter, item: Fields, parts: list[Part], source: str) -> None:
    call_id = item.inside("message").text("toolCallId")
    outcome = writer.state.get("outcomes", {}).get(call_id, "ok")
    writer.result(call_id, tuple(parts), source=source, outcome=outcome)


def _billed(writer: SessionWriter, usage: object) -> None:
    writer.usage(usage, _USAGE, cost=mapping(usage).get("totalCost"))


def _parts(writer: SessionWriter, content: object) -> list[Part]:
    """The parts of a message; an image is under `imageUrl`."""
    parts: list[Part] = []
    for block in items(content) if isinstance(content, list) else [content]:
        url = mapping(mapping(block).get("imageUrl")).get("url")
        parts += shown({"image_url": url} if url else block, writer.log.blob)
    return parts


_ROLES = {"user": _asked, "system": _asked, "thinking": _thought, "assistant": _answered, "tool": _returned}
_HANDLERS = kinds("user system thinking assistant tool", _item)
