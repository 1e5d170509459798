"""Read the parts of contents."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...log.messages import (
    Media,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    compact_json,
    is_finite_json,
    media_kind,
)
from ..gemini import base64_words, file_media, plain_mime
from ..media_bytes import decode_base64, keep
from ..spelling import string
from .form import FORMS, NAME
from .keys import DATA, camel, find
from .parts import call_part, media_part, reasoning_part, result_part, text_part
from .results import read_response


class _Call(Struct):
    """A call of the current step: turnlog's id, Google's id (may be empty), and whether it has a result."""

    id: str
    wire_id: str
    name: str
    answered: bool = False


class PartReader:
    """Reads parts in order, and remembers the calls of the current step to match results that have no id. Media bytes
    are added to `blobs`."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self._calls: list[_Call] = []
        self._step_over = True

    def answering(self) -> None:
        """Note that the next parts are the model's. They begin a new step unless the last parts were the model's
        too."""
        if self._step_over:
            self._calls = []
            self._step_over = False

    def asking(self) -> None:
        """Note that the next parts are not the model's."""
        self._step_over = True

    def read(self, part: dict[str, Any]) -> Part:
        """One part, whose types the schema has checked. A part without a canonical kind is opaque; an empty part is an
        empty text."""
        names = {camel(key): key for key, value in part.items() if value is not None}
        data = [key for key in DATA if key in names]
        if len(data) > 1:
            return Opaque(NAME, "part", part)
        if not data:
            return self._without_data(part, names)
        value = part[names[data[0]]]
        parsed: Part | None = None
        match data[0]:
            case "text":
                parsed = self._text(part, value)
            case "functionCall":
                parsed = self._call(part, value)
            case "functionResponse":
                parsed = self._result(part, value)
            case "inlineData" | "fileData":
                parsed = self._media(part, value)
            case _:
                pass
        return Opaque(NAME, data[0], part) if parsed is None else parsed

    def _without_data(self, part: dict[str, Any], names: dict[str, str]) -> Part:
        signature = _signature(part)
        if signature and not self._step_over:
            reasoning = Reasoning(NAME, signature=signature)
            return FORMS.formed(reasoning, reasoning_part, part)
        kinds = [key for key in names if key != "thought"]
        if kinds:
            return Opaque(NAME, kinds[0], part)
        return FORMS.formed(Text(""), text_part, part)

    def _text(self, part: dict[str, Any], text: str) -> Part:
        """A text, or a thought. A user's text is never a thought, even if it is marked as one."""
        signature = _signature(part)
        thought = part.get("thought") is True or (signature and not text)
        if thought and not self._step_over:
            reasoning = Reasoning(NAME, text=text, signature=signature)
            return FORMS.formed(reasoning, reasoning_part, part)
        return FORMS.formed(Text(text), text_part, part)

    def _call(self, part: dict[str, Any], inner: dict[str, Any]) -> Part:
        name, wire_id, arguments = string(inner, "name"), string(inner, "id"), inner.get("args")
        call_id = wire_id or f"{name}-{len(self._calls) + 1}"
        self._calls.append(_Call(call_id, wire_id, name))
        finite = is_finite_json(arguments)
        bare = finite and arguments is not None and not isinstance(arguments, dict)
        call = ToolCall(
            id=call_id,
            name=name,
            arguments={} if arguments is None else arguments if finite else None,
            raw=None if finite else compact_json(arguments),
            signature=_signature(part),
            provider=NAME,
        )
        if not finite:  # NaN is not JSON: keep the arguments as text and send them wrapped
            part = {**part, "functionCall": {**inner, "args": call_part(call)["functionCall"]["args"]}}
        return FORMS.formed(call, call_part, part, "bare" if bare else "")

    def _result(self, part: dict[str, Any], inner: dict[str, Any]) -> Part:
        if not is_finite_json(inner.get("response")):
            inner = {**inner, "response": {"output": compact_json(inner["response"])}}
            part = {**part, "functionResponse": inner}
        nested = inner.get("parts")
        name, wire_id = string(inner, "name"), string(inner, "id")
        texts, outcome, shape = read_response(inner["response"]) if "response" in inner else ((), "ok", "absent")
        nested_parts = tuple(map(self._nested, nested or ()))
        call_id = self._answered(wire_id, name)
        shape = "nested" if nested_parts and not shape else shape
        result = ToolResult(
            call_id=call_id,
            name=name,
            parts=(*texts, *nested_parts),
            outcome=outcome,
        )

        def default(result: ToolResult) -> dict[str, Any]:  # a result must have a name; the form keeps that it had none
            return result_part(result, call_id, name or "unnamed", nested or [])

        return FORMS.formed(result, default, part, shape)

    def _nested(self, entry: dict[str, Any]) -> Media | Opaque:
        for key in ("inlineData", "fileData"):
            name = find(entry, key)
            media = self._media(entry, entry[name]) if entry.get(name) is not None else None
            if media is not None:
                return media
        return Opaque(NAME, "functionResponsePart", entry)

    def _answered(self, wire_id: str, name: str) -> str:
        """The id of the call that a result answers, matched by id, else by name."""
        waiting = [call for call in self._calls if not call.answered]
        call = next((call for call in waiting if wire_id and call.wire_id == wire_id), None)
        if call is None:
            nameless = [call for call in waiting if not (wire_id and call.wire_id)]
            call = next((call for call in nameless if call.name == name), None)
        if call is None:
            return wire_id
        call.answered = True
        return call.id

    def _media(self, part: dict[str, Any], inner: dict[str, Any]) -> Media | None:
        mime = plain_mime(string(inner, find(inner, "mimeType")))
        data, uri = inner.get("data"), inner.get(find(inner, "fileUri"))
        if isinstance(uri, str) and uri.startswith("data:"):
            return None  # a data URL is not a file: its bytes belong in `inlineData`
        if isinstance(uri, str) and uri:
            return FORMS.formed(file_media(uri, mime), self._default_media, part)
        raw = decode_base64(data) if isinstance(data, str) else None
        if raw is None or not isinstance(data, str):
            return None
        media = Media(kind=media_kind(mime), mime=mime, sha256=keep(raw, self.blobs), size=len(raw))
        return FORMS.formed(media, self._default_media, part, *base64_words(data, raw, self.blobs))

    def _default_media(self, media: Media) -> dict[str, Any]:
        return media_part(media, self.blobs.__getitem__)


def _signature(part: dict[str, Any]) -> str:
    return string(part, find(part, "thoughtSignature"))
