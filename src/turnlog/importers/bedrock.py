"""Messages of Amazon Bedrock's Converse API: lists, request bodies, and the session folders of
Strands Agents (`session_ID/agents/agent_ID/messages/message_N.json`).

A session folder is read whole, whichever of its files is given; it has neither model nor system text. Checked against
what strands-agents 1.62.0 writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..providers.anthropic import PROVIDER
from .fields import Fields
from .framework_messages import ROLES, add_message
from .json_values import mapping, within, word
from .protocol import Damage, Imported, Origin, hashed_id
from .transcript import Line, Transcript
from .unread import named
from .writing import Handler, SessionWriter

_USAGE = {
    "input": "inputTokens cacheReadInputTokens cacheWriteInputTokens",
    "output": "outputTokens",
    "cached": "cacheReadInputTokens",
    "cache_write": "cacheWriteInputTokens",
}
"""Keys of Converse's usage, whose input has only what was not in the cache."""
_REMOVED = ("conversation_manager_state", "removed_message_count")
"""How many messages the model is no longer sent. It changes, as all of `agent.json`, so that it is no record."""
_ENVELOPE = ("role", "message_id", "created_at", "updated_at", "tracking_id")


def read(origin: Origin) -> list[Imported]:
    """The conversation; of a session folder, one session for each agent."""
    folder = _folder(origin) if isinstance(origin, Path) else None
    if folder is not None:
        return _agents(folder)
    file = Transcript(origin)
    whole = file.document_or_none()
    lines = file.entries("message", "messages")
    body = Fields(whole if isinstance(whole, dict) and "messages" in whole else {})
    body.skip("messages")
    writer = SessionWriter(file, "bedrock-converse", PROVIDER, agent="", envelope=_ENVELOPE)
    writer.id = hashed_id("bedrock-converse", [line.value for line in lines[:1]])
    writer.model = body.text("modelId")
    if system := body.each("system"):
        add_message(writer, Fields({"role": "system", "content": [block.value for block in system]}), 0)
        for block in system:
            block.skip(*block.value)
    writer.note("request", body.unread())
    _add(writer, lines)
    return [writer.done()]


def _add(writer: SessionWriter, lines: list[Line]) -> None:
    shown = (mapping(line.value.get("redact_message")) or line.value.get("message", line.value) for line in lines)
    roles = [word(mapping(message).get("role")) for message in shown]
    if not any(role in ROLES for role in roles):
        advice = "give a list of messages, or a session folder of Strands"
        raise writer.file.refused("message of Bedrock Converse", advice)
    for line, role in zip(lines, roles, strict=True):
        writer.at(line.value.get("created_at"))
        kind = "message" if role in ROLES else role or "unknown"
        writer.take(Fields(line.value), line.number, kind, _HANDLERS)


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    message = entry.inside("message") if isinstance(entry.value.get("message"), dict) else entry
    redacted = entry.inside("redact_message")
    if redacted.value:  # what the model is shown in place of it
        message.skip("role")
        message = redacted
    add_message(writer, message, line)
    message.skip("tracking_id")
    if usage := message.inside("metadata").get("usage"):
        writer.usage(usage, _USAGE)


_HANDLERS: dict[str, Handler | None] = {"message": _said}


# -- folders of Strands ----------------------------------------------------------------------------


def _folder(path: Path) -> Path | None:
    """The session folder that a file is in; None if it is in none."""
    for folder in (path, *path.absolute().parents[:4]):
        if (folder / "agents").is_dir() and (folder.name.startswith("session_") or (folder / "session.json").exists()):
            return folder
    return None


def _agents(folder: Path) -> list[Imported]:
    """A session for each agent; the first has the id of the folder's session."""
    sessions: list[Imported] = []
    session = folder.name.removeprefix("session_")
    for agent in sorted((folder / "agents").iterdir()):
        paths = sorted(agent.glob("messages/message_*.json"), key=lambda path: (len(path.name), path.name))
        if not paths:
            continue
        file, beside = Transcript(paths[0]), bool(sessions)
        writer = SessionWriter(file, "bedrock-converse", PROVIDER, agent="strands", beside=beside, envelope=_ENVELOPE)
        writer.id = f"{session}-{agent.name.removeprefix('agent_')}" if sessions else session
        writer.parent = session if sessions else ""
        for path in (folder / "session.json", agent / "agent.json"):
            facts = _object(writer, path) if path.exists() else {}
            writer.at(facts.get("created_at"))
            writer.note(path.stem, {key: facts.get(key) for key in ("session_type", "agent_id")})
            state = {"state": facts.get("state"), "removed_message_count": within(facts, *_REMOVED)}
            if any(state.values()):
                writer.log.count(f"{named([key for key in state if state[key]])} of {path.name}", 0, "nothing")
        values = [_object(writer, path) for path in paths]
        writer.files.remove(str(paths[0]))
        _add(writer, [Line(number, value) for number, value in enumerate(values, 1) if value])
        sessions.append(writer.done())
    if not sessions:
        raise Transcript(folder).refused("message of an agent", "give a session folder of Strands")
    return sessions


def _object(writer: SessionWriter, path: Path) -> dict[str, Any]:
    """The JSON object in a file of the session; empty, with a warning, if it has none."""
    value = Transcript(path).document_or_none()
    if not isinstance(value, dict):
        writer.log.warnings.append(Damage(str(path), 0, "left out: it is not a JSON object", "entry"))
    writer.files.append(str(path))
    return mapping(value)
