"""Write a view as a request body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._platform.units import an
from ...log.messages import (
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
    parse_arguments,
    shown_apart,
)
from ...log.records import Configuration
from ...models.target import Target
from ...view.types import Shown
from ..edits import Losses
from ..protocol import BlobReader, Rendered
from ..spelling import spell
from .form import FORMS, NAME, spelled
from .media import media_wire
from .parts import call_wire, envelope, function_wire, text_wire, tool_wire
from .schema import OPAQUE_FIELDS


def render(view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader) -> Rendered:
    """The request body for a view, with its losses. Raises BlobMissing for missing media bytes, and nothing else."""
    row = target.server_row
    custom = target.abilities.custom_tools and row.own_api and row.custom_tools
    details = bool(row.details or row.signature) if target.server else target.abilities.replays_reasoning
    writer = _Writer(blob, custom=custom, details=details, key=row.reasoning if target.server else "as_received")
    for shown in view:
        writer.show(shown)
    writer.flush()
    model = target.model or configuration.model
    request: dict[str, Any] = {"model": model} if model else {}
    request = spell(request, FORMS.delta(configuration.form))
    request["messages"] = writer.messages
    tools = _tools(configuration.tools, writer.losses, custom=custom)
    if tools:
        request["tools"] = tools
    request.update(configuration.settings)
    return Rendered(body=request, losses=tuple(writer.losses.made))


def _tools(tools: Sequence[Tool], losses: Losses, *, custom: bool) -> list[dict[str, Any]]:
    losses.records = ()
    wires: list[dict[str, Any]] = []
    for tool in tools:
        wire = tool_wire(tool, custom=custom)
        if wire is None:
            losses.add("tool", f"tool {tool.name!r} runs at {tool.provider or 'its provider'} only")
            continue
        if tool.kind == "custom" and not custom:
            losses.add("tool", f"custom tool {tool.name!r} declared as a function of one text `input`")
        losses.extras(tool.form, f"tool {tool.name!r}")
        wires.append(wire)
    return wires


class _Writer:
    """Writes messages one by one. A tool message accepts only text, and no other message may come between the results
    of one batch, so media of results are held back until the batch ends."""

    def __init__(self, blob: BlobReader, *, custom: bool, details: bool, key: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self.losses = Losses(NAME, apart=True)
        self._blob = blob
        self._custom = custom
        self._details = details
        self._key = key  # for reasoning: see `Server.reasoning`
        self._waiting: list[dict[str, Any]] = []

    def show(self, shown: Shown) -> None:
        message = shown.message
        self.losses.begin(shown)
        if message.role == "user":
            self._user(message)
            return
        self.flush()
        if message.role == "assistant":
            self._assistant(message)
            return
        role = "developer" if FORMS.says(message.form, "developer") else "system"
        contents = self._contents(message.parts, "system message")
        self._add(envelope(role, name=message.name), contents, message)

    def flush(self) -> None:
        """Send the media that were held back, as a user message."""
        if self._waiting:
            self.messages.append({"role": "user", "content": self._waiting})
            self._waiting = []

    def _user(self, message: Message) -> None:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        rest = [part for part in message.parts if not isinstance(part, ToolResult)]
        if results and any(not isinstance(part, ToolResult) for part in message.parts[: len(results)]):
            self.losses.add("place", "tool results stand ahead of what was said before them")
        if not results:
            self.flush()
        for result in results:
            self._result(result)
        if results and not rest:
            return
        contents = self._contents(rest, "user message", media=True)
        moved, self._waiting = self._waiting, []
        role = "function" if FORMS.says(message.form, "function") and not moved else "user"
        self._add(envelope(role, name=message.name), [*moved, *contents], message)

    def _result(self, result: ToolResult) -> None:
        self.losses.extras(result.form, f"result of call {result.call_id}")
        words = FORMS.words(result.form)
        legacy = "legacy" in words and not result.call_id
        named = legacy or "named" in words
        media = [part for part in result.parts if isinstance(part, Media)]
        contents = self._contents([part for part in result.parts if not isinstance(part, Media)], "tool result")
        if result.outcome != "ok" and not result.synthetic:  # its text contains the outcome
            self.losses.add("outcome", f"call {result.call_id} {result.outcome}: only its text can say so")
        if media:
            kinds = " and ".join(sorted({part.kind for part in media}))
            self.losses.add("place", f"{kinds} of the result of call {result.call_id} shown in a user message after it")
            label, instead = shown_apart(result)
            self._waiting += [{"type": "text", "text": label}, *(self._media(part) for part in media)]
            contents = contents or [{"type": "text", "text": instead}]
        wire = envelope(
            "function" if legacy else "tool", tool_call_id=result.call_id, name=result.name if named else ""
        )
        self.messages.append(spelled(_with_content(wire, contents, words, bare=False), result.form))

    def _assistant(self, message: Message) -> None:
        wire = envelope("assistant", name=message.name)
        calls: list[dict[str, Any]] = []
        texts: list[Part] = []
        sounds = any(
            isinstance(part, Opaque) and (part.provider, part.kind) == (NAME, "audio") for part in message.parts
        )
        for part in message.parts:
            match part:
                case ToolCall():
                    self.losses.extras(part.form, f"call {part.id}")
                    if part.signature:
                        self.losses.add("reasoning", f"{part.provider} signature of call {part.id!r} left out")
                    if FORMS.says(part.form, "legacy") and not part.id and "function_call" not in wire:
                        wire["function_call"] = spelled(function_wire(part), part.form)
                    else:
                        calls.append(call_wire(part, custom=self._custom))
                case Opaque(kind="tool_call") if part.provider == NAME:
                    calls.append(part.data)
                case Text() if FORMS.says(part.form, "refusal-field"):
                    wire["refusal"] = f"{wire['refusal']}\n{part.text}" if "refusal" in wire else part.text
                case Text() if sounds and FORMS.says(part.form, "transcript"):
                    pass
                case Reasoning() if not self._key:
                    self._unsent(message)
                case _ if self._field(part, wire):
                    pass
                case _:
                    if calls:
                        self.losses.add("place", "text after a tool call stands before it")
                    texts.append(part)
        if calls:
            wire["tool_calls"] = calls
        self._add(wire, self._contents(texts, "assistant message"), message)

    def _unsent(self, message: Message) -> None:
        """Record that the text of reasoning is left out, unless its details are sent, which have it too."""
        if not any(isinstance(part, Opaque) and part.kind == "reasoning_details" for part in message.parts):
            self.losses.add("reasoning", "reasoning left out: this server takes none of this model back")

    def _field(self, part: Part, wire: dict[str, Any]) -> bool:
        """Write a part that is a key of the assistant message. Returns whether the part is one."""
        if isinstance(part, Reasoning):
            if part.provider != NAME:
                self.losses.add("reasoning", f"reasoning of {part.provider} left out")
                return True
            if not part.text:
                return True
            key = self._key
            if key == "as_received":
                key = (FORMS.words(part.form) or ["reasoning_content"])[0]
            wire[key] = f"{wire[key]}\n{part.text}" if key in wire else part.text
            return True
        if not isinstance(part, Opaque) or part.provider != NAME:
            return False
        if part.kind == "reasoning_details" and not self._details:
            self.losses.add("opaque", "reasoning_details left out: this model's server takes none back")
            return True
        if part.kind in wire and part.kind in OPAQUE_FIELDS:  # two messages were joined
            both = isinstance(part.data, list) and isinstance(wire[part.kind], list)
            if both:
                wire[part.kind] = [*wire[part.kind], *part.data]
            else:
                self.losses.add("opaque", f"a second {part.kind} of one message left out")
        elif part.kind == "audio" and isinstance(part.data, dict):
            # Only readers use `expires_at` and `sha256`; requests do not accept them.
            wire["audio"] = {key: value for key, value in part.data.items() if key not in ("expires_at", "sha256")}
        elif part.kind in OPAQUE_FIELDS:
            wire[part.kind] = part.data
        return part.kind in OPAQUE_FIELDS or part.kind == "response"

    def _add(self, wire: dict[str, Any], contents: list[Any], message: Message) -> None:
        """Append a message, unless none of its parts remain."""
        has_own_reasoning = any(isinstance(part, Reasoning) and part.provider == NAME for part in message.parts)
        if not contents and message.parts and not has_own_reasoning and wire.keys() <= {"role", "name"}:
            return
        bare = bool(wire.keys() & {"tool_calls", "function_call", "refusal", "audio"})
        whole = _with_content(wire, contents, FORMS.words(message.form), bare=bare)
        self.messages.append(spelled(whole, message.form))

    def _contents(self, parts: Sequence[Part], where: str, *, media: bool = False) -> list[Any]:
        contents: list[Any] = []
        for part in parts:
            match part:
                case Text():
                    self.losses.extras(part.form, f"text of {an(where)}")
                    contents.append(text_wire(part))
                case Media() if media:
                    contents.append(self._media(part))
                case Media():
                    self.losses.add("media", f"{part.kind} in a {where} left out")
                case Opaque() if part.provider == NAME:
                    contents.append(part.data)
                case Opaque():
                    self.losses.add("opaque", f"{part.kind} of {part.provider} left out")
                case Unknown():
                    self.losses.add("unknown", f"part of unknown kind {part.kind!r} left out")
                case _:
                    self.losses.add("place", f"{type(part).__name__} has no place in a {where}")
        return contents

    def _media(self, media: Media) -> dict[str, Any]:
        """The content part of media, or a text in its place if this API does not accept it."""
        self.losses.extras(media.form, media.kind)
        if media.name and media.kind not in ("document", "file"):
            self.losses.add("extra", f"name {media.name!r} of {media.kind} left out")
        wire = media_wire(media, self._blob)
        if wire is not None:
            return wire
        label = media.name or media.url or media.file_id or media.mime or media.kind
        self.losses.add("media", f"{media.kind} {label} cannot be sent to this API")
        return {"type": "text", "text": f"[{media.kind} left out: {label}]"}


def _with_content(wire: dict[str, Any], contents: list[Any], words: list[str], *, bare: bool) -> dict[str, Any]:
    """`wire` with its content: a string for a single plain text, else a list. With `bare` the content may be null, for
    example beside calls."""
    content: Any = contents
    if contents:
        only = contents[0] if len(contents) == 1 else None
        plain = isinstance(only, dict) and only.keys() == {"type", "text"} and only["type"] == "text"
        if plain and "list" not in words:
            content = contents[0]["text"]
            value, raw = parse_arguments(content) if "object" in words else (None, content)
            content = value if raw is None and isinstance(value, dict) else content
    elif "absent" in words:
        return wire
    elif "empty" not in words:
        content = None if bare or "null" in words else ""
    return {"role": wire["role"], "content": content, **wire}
