"""The content of records as HTML: texts, reasoning, calls, results, images, data.

Text is shown as it was written: diffs in colours, JSON indented, and what a terminal would colour coloured. A server
sends the beginning of a long text and says where the rest is; a page that is a file has all of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator

from .._platform.lazy import lazy_pattern
from ..errors import BlobMissing
from ..log.messages import Media, Text, ToolCall, ToolResult, compact_json
from ..log.store import Problem, Store
from ..tokens.dimensions import image_type
from ..view.curate.lines import without_escapes
from ..view.tool_calls import CallInfo
from .description import ContentBlock, Words
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways
from .prose import coloured, prose

_LONG = 8_000
"""A text with at least this many characters is folded, so that it does not hide the rest of the conversation."""

_SHORT = 400
"""A tool result with at most this many characters is not folded."""

_SENT = 20_000
"""A server sends this many characters of a text; the page of its record has the others."""

_NODES = 500
"""A server sends a text without its layout if that has more elements: a page of them would be slow to scroll."""

_GIST = 100
_INDENTED = 200_000
_LINE_STYLES = {"+": "add", "-": "del", "@": "hunk"}
_COLOUR = lazy_pattern("\x1b\\[([0-9;]*)m")


class PartWriter:
    """Writes the content of the records of one session.

    A page that is a file shows an image at its first occurrence, if its bytes are of a type that cannot contain a
    script; later occurrences link to the first. `problems` gets a line for each image that cannot be read. `is_cut`:
    long texts are cut.
    """

    def __init__(
        self, store: Store, session_id: str, ways: Ways, problems: list[Problem], *, is_cut: bool | None = None
    ) -> None:
        self._store, self._id, self._ways, self._problems = store, session_id, ways, problems
        self._is_cut = ways.is_served if is_cut is None else is_cut
        self._placed: dict[str, int] = {}

    def link(self, n: int, words: str = "") -> Markup:
        """A link to a record of the session."""
        return tag("a", text(words or str(n)), href=self._ways.session(self._id, n))

    def linked(self, words: Words) -> list[Markup]:
        """A line in which record numbers are links."""
        return [self.link(piece) if isinstance(piece, int) else text(piece, one_line=True) for piece in words]

    def prose(self, words: str, n: int) -> Markup:
        """A text of record `n` in Markdown, laid out; folded if it is long."""
        sent, rest = self._cut(words, n)
        shown = prose(sent)
        if self._is_cut and shown.count("<") > 2 * _NODES:
            shown = preformatted(sent)
        inside = join([shown, *rest])
        return tag("details", tag("summary", sized("Text", words)), inside) if len(words) > _LONG else inside

    def plain(self, words: str, n: int, *, shown: Callable[[str], Markup] | None = None) -> Markup:
        """A text of record `n` as it was written."""
        sent, rest = self._cut(words, n)
        return join([(shown or preformatted)(sent), *rest])

    def foldable(self, what: str, words: str, n: int, longest: int = 4 * _SHORT) -> Markup:
        """A text of record `n`, behind its name and size if it is long."""
        inside = self.plain(words, n)
        return inside if len(words) <= longest else tag("details", tag("summary", sized(what, words)), inside)

    def blocks(self, blocks: Iterable[ContentBlock], n: int) -> Iterator[Markup]:
        """The content of record `n`."""
        for block in blocks:
            yield from self._block(block, n)

    def _block(self, block: ContentBlock, n: int) -> Iterator[Markup]:
        match block.part:
            case ToolCall() as call:
                yield tag("p", *call_head(call), class_="head")
                yield from self.arguments(call, n)
            case ToolResult() as result:
                yield from self.result(result, block.blocks, n)
            case Media() as media:
                yield from self._media(block, media, n)
            case _ if block.kind == "data":
                written = json.dumps(block.value, ensure_ascii=False, indent=2)
                summary = tag("summary", sized(block.name or block.label.capitalize() or "Data", written))
                yield tag("details", summary, self.plain(written, n), class_="data")
            case _ if block.kind == "reasoning":
                title = sized("Reasoning", block.text) if block.text else text("Reasoning, hidden by its provider")
                inside = tag("summary", title), self.plain(block.text, n)
                yield tag("details", *inside, class_="reasoning") if block.text else tag("p", title, class_="small")
            case _ if block.kind == "fact":
                yield tag("p", *self.linked(block.words))
            case _ if block.kind == "group":
                yield start("details", class_="standin", open=None if block.label == "tools" else "")
                yield tag("summary", text(block.label.capitalize(), one_line=True))
                for inner in block.blocks:
                    yield from self._block(inner, n)
                yield end("details")
            case _:
                if block.label:
                    yield tag("p", tag("b", text(block.label, one_line=True)), class_="small")
                yield self.foldable(block.label or "Text", block.text, n, _LONG)

    def arguments(self, part: ToolCall, n: int) -> Iterator[Markup]:
        """The arguments of a call: texts unchanged, everything else as JSON."""
        if part.raw is not None or not isinstance(part.arguments, dict):
            if part.raw_arguments != "null":
                yield self.foldable("Input", part.raw_arguments, n)
            return
        rows: list[Markup] = []
        for key, value in part.arguments.items():
            shown = value if isinstance(value, str) else compact_json(value)
            rows += [tag("dt", text(key, one_line=True)), tag("dd", self.foldable(key, shown, n))]
        if rows:
            yield tag("dl", *rows)

    def result(
        self, part: ToolResult, blocks: Iterable[ContentBlock], n: int, info: CallInfo | None = None
    ) -> Iterator[Markup]:
        """The result of a tool, in record `n`, to the call `info` if that is known."""
        words = [inner.text for inner in part.parts if isinstance(inner, Text)]
        size = sum(map(len, words))
        marks = [outcome_badge(part.outcome), text(f" {size:,} characters")]
        if part.synthetic:
            marks.insert(1, tag("span", text("synthetic: not from a tool"), class_="badge warn"))
        head = [text("Result "), *marks]
        if info is None:
            gist = text(" ".join(words[0][: 10 * _GIST].split())[:_GIST] if words else "", one_line=True)
            named = tag("b", text(part.name or part.call_id, one_line=True))
            head = [text("Result of "), named, text(" "), *marks, tag("span", gist, class_="gist")]
        pictures = [block for block in blocks if block.kind == "media"]
        yield start("details", class_=f"result {part.outcome}", open="" if info or size <= _SHORT else None)
        yield tag("summary", *head)
        yield tag("p", self.link(n, f"record {n}"), class_="small") if info else Markup("")
        for block in blocks:
            if block.kind == "text":
                yield self.plain(block.text, n, shown=by_kind)
            elif block not in pictures:
                yield from self._block(block, n)
        yield end("details")
        for block in pictures:  # shown open, below the folded result
            yield from self._block(block, n)

    def _cut(self, words: str, n: int) -> tuple[str, list[Markup]]:
        if not self._is_cut or len(words) <= _SENT:
            return words, []
        more = text(f"{len(words) - _SENT:,} more characters of record {n}")
        return words[:_SENT], [tag("p", tag("a", more, href=self._ways.part(self._id, "r", n)), class_="rest")]

    def _media(self, block: ContentBlock, media: Media, n: int) -> Iterator[Markup]:
        named = f"{block.label} {block.name}"
        if media.sha256 in self._placed and not self._ways.is_served:
            yield tag("p", text(f"{named}: the one of record "), self.link(self._placed[media.sha256]), class_="media")
            return
        bytes_ = self._bytes(media.sha256, n) if media.sha256 else b""
        if media.kind == "image" and (mime := image_type(bytes_)):
            self._placed[media.sha256] = n
            shown = self._ways.media(media.sha256)
            if not self._ways.is_served:
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


def call_head(part: ToolCall) -> list[Markup]:
    """The name, the kind and the id of a call."""
    head: list[Markup] = [text("Calls "), tag("b", text(part.name, one_line=True)), text(" ")]
    if part.kind != "function":
        head.append(tag("span", text(part.kind, one_line=True), class_="badge"))
    return [*head, tag("code", text(part.id, one_line=True))]


def outcome_badge(outcome: str) -> Markup:
    """How a call ended."""
    return tag("span", text(outcome), class_=f"badge {'ok' if outcome == 'ok' else 'bad'}")


# -- texts by kind ---------------------------------------------------------------------------------


def by_kind(words: str) -> Markup:
    """The output of a tool: a diff in colours, JSON indented, what a terminal would colour in colours."""
    if "\x1b" in words:
        return tag("pre", Markup("\n"), *_terminal(words), dir="auto")
    if words.startswith(("diff --git ", "--- ", "Index: ")) and "\n@@ " in words:
        return tag("pre", Markup("\n"), *diff_lines(words.split("\n")), class_="diff", dir="auto")
    if words[:1] in ("{", "[") and len(words) <= _INDENTED and (indented := _indented(words)):
        return tag("pre", Markup("\n"), *coloured(indented, "json"), dir="auto")
    return preformatted(words)


def diff_lines(lines: Iterable[str]) -> Iterator[Markup]:
    """The lines of a diff in colours."""
    head, first = True, True
    for line in lines:
        head = head and not line.startswith("@@ ") or line.startswith("diff --git ")
        style = "meta" if head else _LINE_STYLES.get(line[:1])
        yield Markup("" if first else "\n")
        yield tag("span", text(line), class_=style) if style else text(line)
        first = False


def _indented(words: str) -> str:
    """JSON on lines of its own; "" if it is laid out already, or would not be the same any more."""
    compact = words.strip()
    if "\n" in compact:
        return ""
    try:
        value = json.loads(compact)
    except (ValueError, RecursionError):
        return ""
    same = (json.dumps(value, ensure_ascii=escaped, separators=by) for escaped in (False, True) for by in _SEPARATORS)
    return json.dumps(value, ensure_ascii=False, indent=2) if compact in same else ""


_SEPARATORS = ((",", ":"), (", ", ": "))


def _terminal(words: str) -> Iterator[Markup]:
    """A text with the colours that a terminal would show; other control sequences are left out."""
    colour, bold, at = "", "", 0
    for found in (*_COLOUR.finditer(words), None):
        piece = text(without_escapes(words[at : found.start() if found else len(words)]))
        style = " ".join(filter(None, (colour, bold)))
        if piece:
            yield tag("span", piece, class_=style) if style else piece
        if found is None:
            return
        at = found.end()
        for code in (found[1] or "0").split(";"):
            number = int(code or "0") if len(code) < 4 else 0
            if number in (0, 39):
                colour, bold = "", bold if number else ""
            elif number in (1, 22):
                bold = "b" if number == 1 else ""
            elif 30 <= number <= 37 or 90 <= number <= 97:
                colour = f"c{number % 10}"


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
