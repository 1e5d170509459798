"""A session as one HTML page for people, without other files and without scripts.

The page has no addresses except its own anchors: folding is done by HTML, and pictures are data URLs. Its
Content-Security-Policy (level 3) forbids everything else, in case foreign markup ever gets through.

What the user and the model wrote is laid out as the Markdown that it mostly is (see `prose`); results, arguments,
system text and everything else are shown as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from .._platform.units import counted
from ..errors import BlobMissing
from ..log.messages import Message, Part, Text, ToolCall, ToolResult
from ..log.records import Decision, FileChange, MessageRecord, PartialAnswer, Record, UsageRecord
from ..log.store import Problem, SessionInfo, Store
from ..redaction.store import as_kept
from ..stores.billing import with_subagents
from ..view.tool_calls import calls_of
from ..view.turns import TurnInfo, turns_of
from ..workspace.diff import FileDiff, NetChange, file_diff, net_changes, patch_lines
from ..workspace.diff.folding import root_of
from .description import Badge, Description, RecordBadges, describe
from .escapes import Markup, end, start, tag, text
from .frame import Ways, foot, head, opening
from .parts import PartWriter, link, linked
from .wording import in_short

# -- page records ----------------------------------------------------------------------------------
#
# Records as HTML: messages, decisions, settings and notes in full, other records in one line.

_COLOURED = ("system", "user", "assistant", "decision", "summary")


class RecordWriter:
    """Writes the records of one session. Records that `standing` lists as left out, shortened or taken back are
    marked."""

    def __init__(self, parts: PartWriter, standing: RecordBadges) -> None:
        self._parts = parts
        self._standing = standing

    def record(self, record: Record) -> Iterator[Markup]:
        """A record, in chunks of markup."""
        description = describe(record, self._standing)
        if not description.is_said and not description.blocks:
            yield _line(description)
            return
        yield _head(description)
        is_prose = description.kind in ("user", "assistant")
        yield from self._parts.blocks(description.blocks, description.n, is_prose=is_prose)
        if not description.blocks:
            yield tag("p", text("(empty)"), class_="small")
        yield end("article")


def _head(one: Description) -> Markup:
    """The beginning of a record, before its content."""
    head = tag(
        "header",
        tag("a", text(str(one.n)), href=f"#r{one.n}", class_="n"),
        tag("b", text(one.kind.title(), one_line=True)),
        tag("span", *linked(one.headline), class_="more"),
        *_marks(one),
    )
    kind = one.kind if one.kind in _COLOURED else "other"
    return Markup(start("article", id=f"r{one.n}", class_=f"{kind}{' gone' if one.is_hidden else ''}") + head)


def _line(one: Description) -> Markup:
    return tag(
        "p",
        tag("a", text(str(one.n)), href=f"#r{one.n}", class_="n"),
        tag("span", text(one.kind), class_="badge"),
        text(" "),
        *linked(one.headline),
        *_marks(one),
        id=f"r{one.n}",
        class_="event",
    )


def _marks(one: Description) -> Iterator[Markup]:
    """The badges of a record, and its time."""
    yield from map(_badge, one.badges)
    if one.redacted:
        yield tag("span", text(f"secrets replaced: {one.redacted}", one_line=True), class_="badge")
    yield tag("time", text(one.time, one_line=True))


def _badge(badge: Badge) -> Markup:
    words = (badge.words, " ", badge.link) if badge.link else (badge.words,)
    return tag("span", *linked(words), class_="badge warn", title=badge.title or None)


# -- page files ------------------------------------------------------------------------------------
#
# The file changes of a turn as HTML: one line for each file, with its coloured diff folded behind it.

_STYLES = {b"+": "add", b"-": "del", b"@": "hunk"}


def changed_files(store: Store, records: Iterable[Record], root: str) -> Iterator[Markup]:
    """The net change of each file in these records, in chunks of markup; nothing if no file changed."""
    changes = net_changes(records, root=root)
    if not changes:
        return
    yield start("div", class_="files")
    yield tag("p", text("1 file changed" if len(changes) == 1 else f"{len(changes):,} files changed"), class_="head")
    for change in changes:
        yield from _change(change, store)
    yield end("div")


def _change(change: NetChange, store: Store) -> Iterator[Markup]:
    name = f"{change.old_path} → {change.path}" if change.old_path else change.path
    heading = [tag("b", text(change.action.capitalize())), text(" "), tag("code", text(name, one_line=True)), text(" ")]
    try:
        diff = file_diff(change, store.get_blob)
        why = "its change was not recorded"
    except BlobMissing as error:
        diff, why = None, str(error)
    if diff is None:
        yield tag("p", *heading, tag("span", text(why), class_="badge warn"))
    elif diff.is_binary:
        before, after = diff.contents or (b"", b"")
        yield tag("p", *heading, text(f"binary, {len(before):,} to {len(after):,} bytes"))
    else:
        figures = [tag("ins", text(f"+{diff.additions:,}")), text(" "), tag("del", text(f"-{diff.deletions:,}"))]
        yield start("details")
        yield tag("summary", *heading, *figures)
        yield start("pre", class_="diff", dir="auto")
        yield Markup("\n")
        yield from _lines(diff)
        yield end("pre")
        yield end("details")


def _lines(diff: FileDiff) -> Iterator[Markup]:
    head = True
    for line in patch_lines(diff):
        head = head and not line.startswith(b"@@ ")
        style = "meta" if head else _STYLES.get(line[:1])
        words = text(line.rstrip(b"\n").decode("utf-8", "replace"))
        yield tag("span", words, class_=style) if style else words
        yield Markup("\n")


_TITLE = 120


def as_html(store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """Every record of the session, turn by turn, with the file changes of each turn.

    Raises SessionNotFound, CorruptRecord. Media that cannot be read are named, and each is a problem. Memory does not
    grow with long texts: of all records except the one being written, only outlines are kept.
    """
    return (piece.encode("utf-8") for piece in _page(as_kept(store), session_id, problems))


def _page(store: Store, session_id: str, problems: list[Problem]) -> Iterator[Markup]:
    info = store.info(session_id)
    outlines = [*map(_outline, store.read(info.id, last=info.records))]
    turns = turns_of(outlines)
    decisions = (record for record in store.of_kinds(info.id, ("decision",)) if record.n <= info.records)
    parts = PartWriter(store, info.id, problems, calls_of(outlines))
    del outlines
    writer = RecordWriter(parts, RecordBadges(decisions, info.records))
    ways = Ways()
    yield head(info.title or info.id, ways)
    yield from opening(ways)
    yield from _top(store, info, turns)
    yield start("main")
    records = store.read(info.id, last=info.records)
    root = root_of(r.body for r in store.of_kinds(info.id, ("file_change",)) if isinstance(r.body, FileChange))
    first = turns[0].first if turns else info.records + 1
    yield from _span(store, writer, _up_to(records, first - 1), root)
    for number, turn in enumerate(turns, start=1):
        yield start("section", id=f"turn-{number}")
        started = tag("time", text(turn.started, one_line=True))
        yield tag("h2", tag("a", text(f"Turn {number}"), href=f"#turn-{number}"), started)
        yield from _span(store, writer, _up_to(records, turn.last), root)
        yield tag("footer", *_outcome(turn))
        yield end("section")
    yield end("main")
    yield foot()


def _up_to(records: Iterator[Record], last: int) -> Iterator[Record]:
    """The next of `records`, up to number `last`; record numbers have no gaps."""
    for record in records if last else ():
        yield record
        if record.n >= last:
            return


def _span(store: Store, writer: RecordWriter, records: Iterable[Record], root: str) -> Iterator[Markup]:
    changes: list[Record] = []
    for record in records:
        if isinstance(record.body, FileChange):
            changes.append(record)
        yield from writer.record(record)
        yield Markup("\n")
    yield from changed_files(store, changes, root)


def _outcome(turn: TurnInfo) -> list[Markup]:
    """The outcome of a turn: status, reason, duration, cost."""
    good = "ok" if turn.status == "completed" else "bad" if turn.status in ("failed", "cancelled") else "warn"
    status = turn.status.replace("_", " ")
    pieces = [tag("span", text(status, one_line=True), class_=f"badge {good}"), text(f" {turn.reason}", one_line=True)]
    if turn.rewound:
        pieces += [text(" taken back by "), link(turn.rewound)]
    if turn.seconds is not None:
        pieces.append(text(f" {turn.seconds:,.1f} s"))
    if turn.bills:
        pieces.append(text(f" · {in_short(turn.bills)}", one_line=True))
    return pieces


def _top(store: Store, info: SessionInfo, turns: list[TurnInfo]) -> Iterator[Markup]:
    """The header: the session's listing, its cost, and links to its turns."""
    summary = (
        f"{info.records:,} records, {info.messages:,} messages, {len(turns):,} turns, {info.created} to {info.updated}"
    )
    lines = [tag("p", text("Session "), tag("code", text(info.id)), text(f": {summary}", one_line=True))]
    if info.parent:
        shared = f", whose first {info.parent_records:,} records it shares" if info.parent_records else ""
        lines.append(tag("p", text("Belongs to "), tag("code", text(info.parent)), text(shared)))
    if bills := store.usage(info.id):
        lines.append(tag("p", text(in_short(bills), one_line=True)))
    every_bill, many = with_subagents(store, info.id)
    if many:
        lines.append(tag("p", text(f"With {counted(many, 'subagent')}: {in_short(every_bill)}", one_line=True)))
    yield tag("header", tag("h1", text(info.title or info.id, one_line=True), dir="auto"), *lines, class_="top")
    if len(turns) < 2:
        return
    yield start("nav")
    yield start("details")
    yield tag("summary", text("Turns"))
    yield start("ol")
    for number, turn in enumerate(turns, start=1):
        words = " ".join(turn.input.split()) or "(no text)"
        yield tag("li", tag("a", text(words, one_line=True), href=f"#turn-{number}", dir="auto"))
    yield Markup("</ol></details></nav>\n")


def _outline(record: Record) -> Record:
    """A record without its long texts, sufficient to derive turns and calls."""
    body = record.body
    match body:
        case MessageRecord() | PartialAnswer():
            body = msgspec.structs.replace(body, message=_outlined(body.message))
            if isinstance(body, PartialAnswer):
                body = msgspec.structs.replace(body, fragments=())
        case UsageRecord():
            body = msgspec.structs.replace(body, raw=None)
        case Decision():
            body = msgspec.structs.replace(body, detail={})
    return Record(record.n, record.time, body)


def _outlined(message: Message) -> Message:
    return Message(message.role, tuple(map(_thin, message.parts)))


def _thin(part: Part) -> Part:
    match part:
        case Text(text=words):
            return Text(words[:_TITLE])
        case ToolCall(id=call_id, name=name, kind=kind):
            return ToolCall(call_id, name, kind=kind)
        case ToolResult(call_id=call_id, name=name, outcome=outcome, kind=kind, synthetic=synthetic):
            return ToolResult(call_id, name, (), outcome, kind, synthetic)
        case _:
            return Text("")
