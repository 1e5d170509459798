"""The parts of a message as HTML: texts, reasoning, calls, results, images."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import BlobMissing, CorruptRecord
from ..log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Unknown, compact_json
from ..log.store import Problem, Store
from ..view.repair.sniff import image_type
from ..view.tool_calls import CallInfo
from .markup import Markup, end, start, tag, text

_LONG = 8_000
"""Characters from which a text is folded, so that one does not hide the rest of the conversation."""

_SHORT = 400
"""Characters up to which a tool's result is not folded."""

_GIST = 100


class PartWriter:
    """Writes the parts of one session's messages.

    Images stand in the page where they first occur, if their bytes are of a type that cannot hold a script; later
    ones lead there. `calls` are the session's calls by record, `answers` those that a record answers.
    """

    def __init__(self, store: Store, session_id: str, problems: list[Problem], calls: Sequence[CallInfo]) -> None:
        self._store = store
        self._id = session_id
        self._problems = problems
        self._placed: dict[str, int] = {}
        self._calls: dict[int, list[CallInfo]] = {}
        self._answers: dict[tuple[int, str], CallInfo] = {}
        for info in calls:
            self._calls.setdefault(info.record, []).append(info)
            if info.result:
                self._answers.setdefault((info.result, info.call.id), info)

    def message(self, message: Message, n: int) -> Iterator[Markup]:
        """The parts of the message of record `n`."""
        infos = iter(self._calls.get(n, ()) if message.role == "assistant" else ())
        for part in message.parts:
            yield from self.part(part, n, next(infos, None) if isinstance(part, ToolCall) else None)
        if not message.parts:
            yield tag("p", text("(empty)"), class_="small")

    def part(self, part: Part, n: int, info: CallInfo | None = None) -> Iterator[Markup]:
        """One part of record `n`; of a call, `info` is what became of it."""
        match part:
            case Text(text=words):
                yield preformatted(words) if len(words) <= _LONG else folded(sized("Text", words), words)
            case Reasoning(text=words, summary=summary):
                shown = words or "\n\n".join(summary)
                said = sized("Reasoning", shown) if shown else text("Reasoning, hidden by its provider")
                yield folded(said, shown, class_="reasoning") if shown else tag("p", said, class_="small")
            case ToolCall():
                yield _call(part, info)
            case ToolResult():
                yield from self._result(part, n)
            case Media():
                yield from self._media(part, n)
            case Opaque(provider=provider, kind=kind, data=held):
                yield data(f"{kind} of {provider}", held)
            case Unknown(kind=kind, data=held):
                yield data(f"{kind}, which a newer turnlog wrote", held)

    def _result(self, part: ToolResult, n: int) -> Iterator[Markup]:
        call = self._answers.get((n, part.call_id))
        name = part.name or (call.call.name if call else "")
        words = [inner.text for inner in part.parts if isinstance(inner, Text)]
        size = sum(map(len, words))
        marks = [_outcome(part.outcome), text(f" {size:,} characters")]
        if part.synthetic:
            marks.insert(1, tag("span", text("synthetic: no tool made it"), class_="badge warn"))
        back = [text(" "), link(call.record, "to its call")] if call else []
        gist = text(" ".join(words[0][: 10 * _GIST].split())[:_GIST] if words else "", one_line=True)
        head = [text("Result of "), tag("b", text(name or part.call_id, one_line=True)), text(" "), *marks, *back]
        head.append(tag("span", gist, class_="gist"))
        yield start("details", class_=f"result {part.outcome}", open="" if size <= _SHORT else None)
        yield tag("summary", *head)
        for inner in part.parts:
            if isinstance(inner, Text):
                yield preformatted(inner.text)
            elif not isinstance(inner, Media):
                yield from self.part(inner, n)
        yield end("details")
        for inner in part.parts:  # pictures stand open, under a result that is folded
            if isinstance(inner, Media):
                yield from self._media(inner, n)

    def _media(self, media: Media, n: int) -> Iterator[Markup]:
        named = " ".join(filter(None, (media.kind, media.mime, media.name)))
        if media.sha256 in self._placed:
            yield tag("p", text(f"{named}: the one of record "), link(self._placed[media.sha256]), class_="media")
            return
        bytes_ = self._bytes(media.sha256, n) if media.sha256 else b""
        if media.kind == "image" and (mime := image_type(bytes_)):
            self._placed[media.sha256] = n
            encoded = base64.b64encode(bytes_).decode("ascii")
            yield tag("p", start("img", src=f"data:{mime};base64,{encoded}", alt=named, loading="lazy"), class_="media")
            return
        size = f"{len(bytes_) or media.size:,} bytes, SHA-256 {media.sha256}"
        where = size if media.sha256 else media.url or f"file {media.file_id} of {media.provider}"
        yield tag("p", text(f"{named}, not shown here: "), tag("code", text(where, one_line=True)), class_="media")

    def _bytes(self, sha256: str, n: int) -> bytes:
        try:
            return self._store.get_blob(sha256)
        except (BlobMissing, CorruptRecord) as error:
            self._problems.append(Problem(self._id, n, f"left out of the export: {error}"))
            return b""


def _call(part: ToolCall, info: CallInfo | None) -> Markup:
    said: list[Markup] = [text("Calls "), tag("b", text(part.name, one_line=True)), text(" ")]
    if part.kind != "function":
        said.append(tag("span", text(part.kind, one_line=True), class_="badge"))
    said.append(tag("code", text(part.id, one_line=True)))
    if info is not None:
        said += _fate(info)
    return tag("div", tag("p", *said, class_="head"), *_arguments(part), class_="call")


def _fate(info: CallInfo) -> list[Markup]:
    said = [text(" ")]
    if info.outcome is not None:
        said.append(_outcome(info.outcome))
    if info.seconds:
        said.append(text(f" after {info.seconds:,.1f} s"))
    if info.result:
        said += [text(" "), link(info.result, "to its result")]
    else:
        said.append(tag("span", text(info.standing), class_="badge warn"))
    return said


def _arguments(part: ToolCall) -> list[Markup]:
    """What a call was given: texts as they read, everything else as JSON."""
    if part.raw is not None or not isinstance(part.arguments, dict):
        return [_foldable("Input", part.raw_arguments)] if part.raw_arguments != "null" else []
    rows: list[Markup] = []
    for key, value in part.arguments.items():
        shown = value if isinstance(value, str) else compact_json(value)
        rows += [tag("dt", text(key, one_line=True)), tag("dd", _foldable(key, shown))]
    return [tag("dl", *rows)] if rows else []


def _foldable(what: str, words: str) -> Markup:
    return preformatted(words) if len(words) <= 4 * _SHORT else folded(sized(what, words), words)


def _outcome(outcome: str) -> Markup:
    return tag("span", text(outcome), class_=f"badge {'ok' if outcome == 'ok' else 'bad'}")


def sized(what: str, words: str) -> Markup:
    """A name, and how long what it names is."""
    return text(f"{what}, {len(words):,} characters", one_line=True)


def folded(summary: Markup, words: str, *, class_: str | None = None) -> Markup:
    """A text behind a line that opens it."""
    return tag("details", tag("summary", summary), preformatted(words), class_=class_)


def preformatted(words: str) -> Markup:
    """A text with its lines and blanks as they are. Its direction is its own and does not reach what stands around it.
    (HTML drops a line end that stands first in it: hence one more.)"""
    return tag("pre", Markup("\n"), text(words), dir="auto")


def data(what: str, value: Any) -> Markup:
    """JSON, folded."""
    written = json.dumps(value, ensure_ascii=False, indent=2)
    return folded(sized(what, written), written, class_="data")


def link(n: int, words: str = "") -> Markup:
    """A way to a record of the page."""
    return tag("a", text(words or str(n)), href=f"#r{n}")
