"""The file changes of a turn as HTML: one line for each file, with its coloured diff folded behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import BlobMissing
from ..log.records import Record
from ..log.store import Store
from ..workspace.diff import FileDiff, NetChange, file_diff, net_changes, patch_lines
from .markup import Markup, end, start, tag, text

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
    said = [tag("b", text(change.action.capitalize())), text(" "), tag("code", text(name, one_line=True)), text(" ")]
    try:
        diff = file_diff(change, store.get_blob)
        why = "its change was not recorded"
    except BlobMissing as error:
        diff, why = None, str(error)
    if diff is None:
        yield tag("p", *said, tag("span", text(why), class_="badge warn"))
    elif diff.is_binary:
        before, after = diff.contents or (b"", b"")
        yield tag("p", *said, text(f"binary, {len(before):,} to {len(after):,} bytes"))
    else:
        figures = [tag("ins", text(f"+{diff.additions:,}")), text(" "), tag("del", text(f"-{diff.deletions:,}"))]
        yield start("details")
        yield tag("summary", *said, *figures)
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
