"""The content of records as HTML: texts, reasoning, calls, results, images, data."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence

from ..errors import BlobMissing
from ..log.messages import Media, Text, ToolCall, ToolResult, compact_json
from ..log.store import Problem, Store
from ..tokens.dimensions import image_type
from ..view.tool_calls import CallInfo
from .description import ContentBlock, Words
from .escapes import Markup, end, start, tag, text
from .prose import prose

_LONG = 8_000
"""A text with at least this many characters is folded, so that it does not hide the rest of the conversation."""

_SHORT = 400
"""A tool result with at most this many characters is not folded."""

_GIST = 100


class PartWriter:
    """Writes the content of the records of one session.

    An image is shown at its first occurrence if its bytes are of a type that cannot contain a script; later occurrences
    link to the first. `calls` are the calls of the session.
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

    def blocks(self, blocks: Iterable[ContentBlock], n: int, *, is_prose: bool = False) -> Iterator[Markup]:
        """The content of record `n`. If it `is_prose`, its texts are Markdown, and are laid out."""
        infos = iter(self._calls.get(n, ()))
        for block in blocks:
            if is_prose and block.kind == "text" and not block.label:
                shown = prose(block.text)
                is_long = len(block.text) > _LONG
                yield tag("details", tag("summary", sized("Text", block.text)), shown) if is_long else shown
                continue
            yield from self._block(block, n, next(infos, None) if block.kind == "call" else None)

    def _block(self, block: ContentBlock, n: int, info: CallInfo | None = None) -> Iterator[Markup]:
        """One block of record `n`; for a call, `info` is its outcome."""
        match block.part:
            case ToolCall() as call:
                yield _call(call, info)
            case ToolResult() as result:
                yield from self._result(result, block.blocks, n)
            case Media() as media:
                yield from self._media(block, media, n)
            case _ if block.kind == "data":
                written = json.dumps(block.value, ensure_ascii=False, indent=2)
                yield folded(sized(block.name or block.label.capitalize() or "Data", written), written, class_="data")
            case _ if block.kind == "reasoning":
                title = sized("Reasoning", block.text) if block.text else text("Reasoning, hidden by its provider")
                yield folded(title, block.text, class_="reasoning") if block.text else tag("p", title, class_="small")
            case _ if block.kind == "fact":
                yield tag("p", *linked(block.words))
            case _ if block.kind == "group":
                yield start("details", class_="standin", open=None if block.label == "tools" else "")
                yield tag("summary", text(block.label.capitalize(), one_line=True))
                for inner in block.blocks:
                    yield from self._block(inner, n)
                yield end("details")
            case _:
                if block.label:
                    yield tag("p", tag("b", text(block.label, one_line=True)), class_="small")
                yield _foldable(block.label or "Text", block.text, _LONG)

    def _result(self, part: ToolResult, blocks: Iterable[ContentBlock], n: int) -> Iterator[Markup]:
        call = self._answers.get((n, part.call_id))
        name = part.name or (call.call.name if call else "")
        words = [inner.text for inner in part.parts if isinstance(inner, Text)]
        size = sum(map(len, words))
        marks = [_outcome(part.outcome), text(f" {size:,} characters")]
        if part.synthetic:
            marks.insert(1, tag("span", text("synthetic: not from a tool"), class_="badge warn"))
        back = [text(" "), link(call.record, "to its call")] if call else []
        gist = text(" ".join(words[0][: 10 * _GIST].split())[:_GIST] if words else "", one_line=True)
        head = [text("Result of "), tag("b", text(name or part.call_id, one_line=True)), text(" "), *marks, *back]
        head.append(tag("span", gist, class_="gist"))
        yield start("details", class_=f"result {part.outcome}", open="" if size <= _SHORT else None)
        yield tag("summary", *head)
        pictures = [block for block in blocks if block.kind == "media"]
        for block in blocks:
            if block.kind == "text":
                yield preformatted(block.text)
            elif block not in pictures:
                yield from self._block(block, n)
        yield end("details")
        for block in pictures:  # shown open, below the folded result
            yield from self._block(block, n)

    def _media(self, block: ContentBlock, media: Media, n: int) -> Iterator[Markup]:
        named = f"{block.label} {block.name}"
        if media.sha256 in self._placed:
            yield tag("p", text(f"{named}: the one of record "), link(self._placed[media.sha256]), class_="media")
            return
        bytes_ = self._bytes(media.sha256, n) if media.sha256 else b""
        if media.kind == "image" and (mime := image_type(bytes_)):
            self._placed[media.sha256] = n
            shown = f"data:{mime};base64,{base64.b64encode(bytes_).decode('ascii')}"
            alt = f"{named}, {block.text}"
            yield tag("p", start("img", src=shown, alt=alt, loading="lazy"), class_="media")
            return
        where = ", ".join(filter(None, (block.text, block.id and f"SHA-256 {block.id}")))
        yield tag("p", text(f"{named}, not shown here: "), tag("code", text(where, one_line=True)), class_="media")

    def _bytes(self, sha256: str, n: int) -> bytes:
        try:
            return self._store.get_blob(sha256)
        except BlobMissing as error:
            self._problems.append(Problem(self._id, n, f"left out of the export: {error}"))
            return b""


def _call(part: ToolCall, info: CallInfo | None) -> Markup:
    head: list[Markup] = [text("Calls "), tag("b", text(part.name, one_line=True)), text(" ")]
    if part.kind != "function":
        head.append(tag("span", text(part.kind, one_line=True), class_="badge"))
    head.append(tag("code", text(part.id, one_line=True)))
    if info is not None:
        head += _call_state(info)
    return tag("div", tag("p", *head, class_="head"), *_arguments(part), class_="call")


def _call_state(info: CallInfo) -> list[Markup]:
    pieces = [text(" ")]
    if info.outcome is not None:
        pieces.append(_outcome(info.outcome))
    if info.seconds:
        pieces.append(text(f" after {info.seconds:,.1f} s"))
    if info.result:
        pieces += [text(" "), link(info.result, "to its result")]
    else:
        pieces.append(tag("span", text(info.standing), class_="badge warn"))
    return pieces


def _arguments(part: ToolCall) -> list[Markup]:
    """The arguments of a call: texts unchanged, everything else as JSON."""
    if part.raw is not None or not isinstance(part.arguments, dict):
        return [_foldable("Input", part.raw_arguments)] if part.raw_arguments != "null" else []
    rows: list[Markup] = []
    for key, value in part.arguments.items():
        shown = value if isinstance(value, str) else compact_json(value)
        rows += [tag("dt", text(key, one_line=True)), tag("dd", _foldable(key, shown))]
    return [tag("dl", *rows)] if rows else []


def _foldable(what: str, words: str, longest: int = 4 * _SHORT) -> Markup:
    return preformatted(words) if len(words) <= longest else folded(sized(what, words), words)


def _outcome(outcome: str) -> Markup:
    return tag("span", text(outcome), class_=f"badge {'ok' if outcome == 'ok' else 'bad'}")


def sized(what: str, words: str) -> Markup:
    """A name and a number of characters."""
    return text(f"{what}, {len(words):,} characters", one_line=True)


def folded(summary: Markup, words: str, *, class_: str | None = None) -> Markup:
    """A text folded behind a summary line."""
    return tag("details", tag("summary", summary), preformatted(words), class_=class_)


def preformatted(words: str) -> Markup:
    """A text with its line ends and spaces. Its direction does not affect its surroundings. (HTML drops the first line
    end of a `pre`, so one is added.)"""
    return tag("pre", Markup("\n"), text(words), dir="auto")


def link(n: int, words: str = "") -> Markup:
    """A link to a record of the page."""
    return tag("a", text(words or str(n)), href=f"#r{n}")


def linked(words: Words) -> list[Markup]:
    """A line in which record numbers are links."""
    return [link(piece) if isinstance(piece, int) else text(piece, one_line=True) for piece in words]
