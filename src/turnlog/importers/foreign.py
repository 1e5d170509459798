"""Recognise formats that resemble a supported one, and say why they are not read.

Such a file has keys of a conversation, but its content is in places that no importer looks at. Read as the nearest
format, it would become messages without content. The formats are those of their programs' own public sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import Any

from msgspec import Struct

from .transcript import Transcript

_NONE = "none"
_KINDS = ("type", "kind", "from", "part_kind")
_DEPTH = 5
_ITEMS = 50


class Foreign(Struct, frozen=True):
    """A format that is not read. `marks` are paths that its values have together (`a.b[].c`, or `type=word` for the
    value of a key that names a kind); `near` is the nearest supported format, and the difference."""

    name: str
    near: str
    marks: frozenset[str]

    def is_most_of(self, paths: Sequence[Set[str]]) -> bool:
        """Whether these values have this one format: at least a quarter of them have one of its marks."""
        return 4 * sum(not self.marks.isdisjoint(each) for each in paths) >= len(paths)


def _foreign(name: str, near: str, *marks: str) -> list[Foreign]:
    return [Foreign(name, near, frozenset(each.split())) for each in marks]


_FORMATS = (
    *_foreign("a session of qwen-code", "claude-code, but messages have `parts`", "parentUuid message.parts[]"),
    *_foreign(
        "an agent transcript of Cursor",
        "claude-code and request bodies, but lines have `role` beside `message`, and calls have no ids",
        "role message.content",
    ),
    *_foreign(
        "a thread of Amp",
        "a body of Anthropic's API, but results have `toolUseID` and `run`",
        "messages[].content[].toolUseID",
        "v messages[].messageId messages[].content[].type",
    ),
    *_foreign(
        "what `gemini --output-format stream-json` printed",
        "claude-stream-json; give the session file of ~/.gemini/tmp/*/chats",
        "type=init type=message session_id",
        "type=tool_use tool_name tool_id",
        "type=message role content delta",
    ),
    *_foreign(
        "what `codex exec --json` printed",
        "codex; give the rollout-*.jsonl of ~/.codex/sessions",
        "type=thread.started",
        "type=item.completed item.type",
    ),
    *_foreign(
        "the events of a session of GitHub Copilot CLI",
        _NONE,
        "type=session.start data.sessionId",
        "type=user.message data.content",
        "type=assistant.message data.content",
    ),
    *_foreign(
        "a session of opencode",
        "request bodies, but messages are `info` with `parts`",
        "info messages[].parts[]",
        "info.role parts[].type",
        "role sessionID modelID",
    ),
    *_foreign("a chat of VS Code", _NONE, "requests[].message.text requests[].response[]"),
    *_foreign("a data export of ChatGPT", _NONE, "mapping current_node"),
    *_foreign("a data export of Claude.ai", _NONE, "chat_messages[].sender"),
    *_foreign(
        "a session of goose",
        "request bodies, but messages are in `conversation`, and calls are `toolRequest`",
        "conversation[].content[]",
        "content[].type=toolRequest",
    ),
    *_foreign("a session of kimi-code", _NONE, "type=turn.prompt", "type=context.append_message"),
    *_foreign("OpenTelemetry spans", _NONE, "resourceSpans[]"),
    *_foreign("a session of Continue", "request bodies, but messages are in `history`", "history[].message.role"),
    *_foreign("a session of Kiro CLI", _NONE, "kind=Prompt data.content[]", "kind=AssistantMessage data.content[]"),
    *_foreign("a message history of pydantic-ai", _NONE, "parts[].part_kind", "messages[].parts[].part_kind"),
    *_foreign(
        "messages of LangChain",
        "request bodies, but messages name their `type`, not their role",
        "type=human data.content",
        "type=human content",
        "type=ai content",
        "type=ai data.content",
        "messages[].type=human messages[].content",
    ),
    *_foreign("a session of ADK", "request bodies of Google, but contents are in `events`", "events[].content.parts[]"),
    *_foreign(
        "messages of Bedrock Converse or Strands",
        "a body of Anthropic's API, but blocks have no `type`",
        "role content[].toolUse",
        "role content[].toolResult",
        "messages[].content[].toolUse",
        "messages[].content[].toolResult",
    ),
    *_foreign("ShareGPT conversations", _NONE, "conversations[].from=human", "conversations[].from=gpt"),
)


def foreign(values: Iterable[Any]) -> str:
    """The format of a file with these JSON values, and the nearest supported one; "" if the format is unknown."""
    paths = [set(_paths(value, "", _DEPTH)) for value in islice(values, _ITEMS)]
    together = set().union(*paths)
    nearest = next((each for each in _FORMATS if each.marks <= together and each.is_most_of(paths)), None)
    if nearest is None:
        return ""
    return f"it is {nearest.name}, which turnlog does not read yet (nearest format: {nearest.near})"


def foreign_head(head: bytes) -> str:
    """As `foreign`, for the first bytes of a file."""
    file = Transcript(head)
    document = file.document_or_none()
    if document is None:
        return foreign(line.value for line in file.lines())
    return foreign(document if isinstance(document, list) else [document])


def _paths(value: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict) and depth:
        for key, inner in islice(value.items(), _ITEMS):
            inner_path = f"{path}.{key}" if path else str(key)
            yield inner_path
            if key in _KINDS and isinstance(inner, str):
                yield f"{inner_path}={inner}"
            yield from _paths(inner, inner_path, depth - 1)
    elif isinstance(value, list) and depth:
        yield f"{path}[]"
        for inner in value[:_ITEMS]:
            yield from _paths(inner, f"{path}[]", depth)
