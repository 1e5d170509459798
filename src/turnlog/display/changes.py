"""The file changes of turns as HTML: one line for each file, with its coloured diff folded behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from .._platform.units import counted
from ..errors import BlobMissing
from ..log.records import FileChange, Record
from ..log.store import SessionInfo, Store
from ..session.titles import shown_title
from ..view.turns import turn_spans
from ..workspace.diff import NetChange, file_diff, net_changes, patch_lines
from ..workspace.diff.folding import root_of
from .escapes import Markup, end, start, tag, text
from .frame import Ways, framed
from .parts import diff_lines

_LINES = 400
"""A server sends this many lines of a diff; `turnlog diff` shows all."""


def changed_files(store: Store, records: Iterable[Record], root: str, *, most: int | None = None) -> Iterator[Markup]:
    """The net change of each file in these records, in chunks of markup; nothing if no file changed. With `most`, at
    most this many lines of each diff."""
    changes = net_changes(records, root=root)
    if not changes:
        return
    yield start("div", class_="files")
    yield tag("p", text(f"{counted(len(changes), 'file')} changed"), class_="head")
    for change in changes:
        yield from changed_file(change, store, most)
    yield end("div")


def changed_file(change: NetChange, store: Store, most: int | None) -> Iterator[Markup]:
    """The net change of one file."""
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
        lines = [line.rstrip(b"\n").decode("utf-8", "replace") for line in patch_lines(diff)]
        cut = len(lines) - most if most and len(lines) > most else 0
        yield start("details")
        yield tag("summary", *heading, *figures)
        yield tag("pre", Markup("\n"), *diff_lines(lines[:most] if cut else lines), class_="diff", dir="auto")
        if cut:
            yield tag("p", text(f"{cut:,} more lines: turnlog diff"), class_="rest")
        yield end("details")


def changes_between(store: Store, session_id: str, first: int, last: int) -> list[Record]:
    """The file changes in the records `first` to `last`."""
    found = store.of_kinds(session_id, ("file_change",), first=first)
    return list(takewhile(lambda record: record.n <= last, found))


def root_for(store: Store, session_id: str) -> str:
    """The folder that the paths of a session are shown relative to."""
    return root_of(r.body for r in store.of_kinds(session_id, ("file_change",)) if isinstance(r.body, FileChange))


def changes_page(store: Store, session_id: str, ways: Ways) -> Iterator[Markup]:
    """The files that a session changed, all in all and turn by turn. Raises SessionNotFound, CorruptRecord."""
    info = store.info(session_id)
    title = shown_title(store, info) or info.id
    return framed(f"Files · {title}", ways, _changes(store, info, title, ways))


def _changes(store: Store, info: SessionInfo, title: str, ways: Ways) -> Iterator[Markup]:
    yield tag("h1", text("Files changed in "), tag("a", text(title, one_line=True), href=ways.session(info.id)))
    root, most = root_for(store, info.id), _LINES if ways.is_served else None
    changes = changes_between(store, info.id, 1, info.records)
    if not changes:
        yield tag("p", text("No change of a file is on record."))
    else:
        yield tag("h2", text("All in all"))
        yield from changed_files(store, changes, root, most=most)
        messages = store.of_kinds(info.id, ("message", "turn_opened", "turn_closed", "turn_resumed"))
        for number, (first, last) in enumerate(turn_spans(messages, info.records), 1):
            if own := [record for record in changes if first <= record.n <= last]:
                yield tag("h2", tag("a", text(f"Turn {number}"), href=ways.session(info.id, first)))
                yield from changed_files(store, own, root, most=most)
