"""The view beside the log: what became of each message in a request, and the decision behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from .._platform.texts import shorten
from .._platform.units import counted
from ..log.messages import Message, Part, Text, ToolCall, ToolResult
from ..log.store import Store
from ..log.texts import leaf_parts
from ..view.decisions import active_decisions
from ..view.explain import Account
from ..view.file_edits import about_call, without_folder
from ..view.types import Shown
from .escapes import Markup, tag, text
from .frame import Ways
from .parts import preformatted
from .past_request import PastRequest
from .pieces import badge, folded, line, link
from .request_words import gist, part_words, saving, undoing

_ROWS, _GROUPS = 120, 60
"""At most so many messages of the log have a row on the page of a request, and so many groups a heading: the newest.
The session's page has the others."""

_SENT = 4_000
"""How many characters of a text as sent are on the page."""


class PageLinks(Struct, frozen=True):
    """What the pieces of a page need to find records and to link to them."""

    store: Store
    id: str
    ways: Ways

    def record(self, n: int, words: str = "") -> Markup:
        """A link to a record in the talk."""
        return link(words or str(n), self.ways.session(self.id, at=n))

    def request(self, n: int, words: str, **attributes: str) -> Markup:
        """A link to the request that record `n` answered, or its words alone if it has no page."""
        return link(words, self.ways.request(self.id, n), **attributes)


class _Row(Struct, frozen=True):
    """What became of one message: `by` is the decision that says how it is shown now (0: none)."""

    account: Account
    fate: str
    by: int
    shown: Shown | None


class Fates:
    """The view beside the log: what became of each message of the log."""

    def __init__(self, page: PageLinks, past: PastRequest) -> None:
        self._page = page
        self._explanation = past.session.explain(target=past.target)
        self._rulings = {ruling.n: ruling for ruling in self._explanation.rulings}
        self._undo = undoing(page.id, active_decisions(page.store.of_kinds(page.id, ("decision",))))
        self._left = _ROWS
        view = past.request.view
        parts = (part for shown in view for part in shown.message.parts)
        self._calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
        self._added = [shown for shown in view if shown.treatment in ("synthetic", "appended") and not shown.stands_in]
        self._stand_ins: dict[int, list[Shown]] = {}  # by the decision that made them
        for shown in view:
            if shown.stands_in:
                self._stand_ins.setdefault(shown.records[0], []).append(shown)
        sent = {n: each for each in view if not each.stands_in and each.treatment != "synthetic" for n in each.records}
        hidden = [edit for edit in past.request.edits if edit.through]

        def row(account: Account) -> _Row:
            shown, fate = sent.get(account.n), str(account.fate)
            if fate in ("summarised", "left out", "rewound"):
                shown = None
            elif shown is None:
                covers = any(edit.records and edit.records[0] <= account.n <= edit.through for edit in hidden)
                fate = "left out" if covers else "never sent"
            elif fate == "kept" and not shown.as_recorded:
                fate = shown.treatment
            return _Row(account, fate, account.by[-1] if account.by else 0, shown)

        self._rows = [row(account) for account in self._explanation.accounts.values()]

    def pieces(self) -> Iterator[Markup]:
        """The list of messages, the newest last, and what the request has besides."""
        fates = Counter(row.fate for row in self._rows)
        words = ", ".join(f"{number:,} {fate}" for fate, number in fates.most_common())
        saved = f"; decisions save {self._explanation.saved:,} tokens" if self._explanation.saved else ""
        yield line(f"{counted(len(self._rows), 'message')} in the log: {words}{saved}.", kind=None)
        groups = [[*rows] for _, rows in groupby(self._rows, key=lambda row: (row.fate, row.by))]
        if len(groups) > _GROUPS:
            groups = [[row for rows in groups[:-_GROUPS] for row in rows], *groups[-_GROUPS:]]
        drawn = [self._group(rows, is_last=i == 0) for i, rows in enumerate(reversed(groups))]  # rows go to the newest
        yield tag("ol", *reversed(drawn), class_="fates")
        others = [shown for each in self._stand_ins.values() for shown in each] + self._added[-20:]
        if others:
            yield tag("h3", text("Summaries, notes, and what was added"))
            yield tag("ol", *(tag("li", *self._other(shown)) for shown in others), class_="fates")

    def _group(self, rows: Sequence[_Row], *, is_last: bool) -> Markup:
        """Messages of the same fate by the same decision; the oldest ones, of many, are of different fates."""
        first, last, is_one = rows[0], rows[-1], len({(row.fate, row.by) for row in rows}) == 1
        fate, by = (first.fate, first.by) if is_one else ("mixed", 0)
        if len(rows) == 1:
            return tag("li", *self._line(first), *self._decided(by))
        instead = self._stand_ins.pop(by, []) if fate in ("summarised", "left out") else []
        before, after = sum(row.account.tokens for row in rows), sum(row.account.shown for row in rows)
        after += self._explanation.summaries.get(by, 0) if instead else 0
        size = saving(before, after) if before != after else f"{before:,} tokens"
        spans = f"records {first.account.n:,} to {last.account.n:,}: {counted(len(rows), 'message')} "
        decided = f" by decision {by}, {size}" if by else f", {size}"
        hidden = len(rows) - max(0, min(self._left, len(rows), 40))
        self._left -= len(rows) - hidden
        inside = [*self._decided(by), *(tag("div", *self._other(shown)) for shown in instead)]
        if hidden:
            inside.append(line(f"{counted(hidden, 'message')} more, from ", self._page.record(first.account.n)))
        if hidden < len(rows):
            inside.append(tag("ol", *(tag("li", *self._line(row)) for row in rows[hidden:])))
        summary = tag("summary", text(spans), _badge(fate), text(decided))
        return tag("li", tag("details", summary, *inside, open="" if is_last else None))

    def _line(self, row: _Row) -> Iterator[Markup]:
        """One message: its record, role, beginning, fate and size, and what was sent instead."""
        account, shown, page = row.account, row.shown, self._page
        message = next((record.message for record in page.store.read(page.id, first=account.n, last=account.n)), None)
        yield page.record(account.n)
        yield tag("b", text(message.role if message else ""))
        words = gist(self._named(message)) if message else ""
        yield tag("span", text(words, one_line=True), class_="gist")
        also = f", {shown.treatment}" if shown and shown.treatment in ("repaired", "joined") else ""
        yield _badge(row.fate, (f" as {account.curator}" if account.curator else "") + also)
        size = saving(account.tokens, account.shown) if account.tokens != account.shown else f"{account.tokens:,}"
        yield tag("span", text(size), class_="n")
        if shown is not None and shown.treatment != "verbatim":
            yield _as_sent(shown.message)

    def _named(self, message: Message) -> Message:
        """A message in which each call and each result begins with its tool and what the call is about."""
        parts = list[Part]()
        for part in message.parts:
            if isinstance(part, ToolCall):
                parts.append(Text(f"[calls {part.name}{_about(part)}] "))
            elif isinstance(part, ToolResult):
                call = self._calls.get(part.call_id)
                parts.append(Text(f"[{part.name} {part.outcome}{_about(call) if call else ''}] "))
                parts += part.parts
            else:
                parts.append(part)
        return Message(message.role, tuple(parts))

    def _other(self, shown: Shown) -> Iterator[Markup]:
        """What the request has that is no message of the log, or stands for several."""
        yield self._page.record(shown.records[0]) if shown.records else text("-")
        yield tag("b", text(shown.message.role))
        yield _badge(shown.treatment)
        yield _as_sent(shown.message)

    def _decided(self, by: int) -> Iterator[Markup]:
        """A decision, its reason and the command that takes it back."""
        if ruling := self._rulings.get(by):
            words = text(f" {ruling.decision.action}: {ruling.decision.why}", one_line=True)
            command = self._undo.get(by)
            undo = [text(" Take it back: "), tag("code", text(command, one_line=True))] if command else []
            yield tag("p", self._page.record(by, f"decision {by}"), words, *undo, class_="small")


def _about(call: ToolCall) -> str:
    about, is_path = about_call(call)
    words = "/".join(about.split("/")[-2:]) if is_path else without_folder(about)
    return f" {words[:60]}" if words else ""


def _badge(fate: str, more: str = "") -> Markup:
    return badge(fate + more, f"f-{fate.replace(' ', '-')}")


def _as_sent(message: Message) -> Markup:
    """A message as it was sent, folded."""
    words = "\n".join(part_words(part, whole=True) for part in leaf_parts(message.parts))
    return folded("as sent", preformatted(shorten(words, characters=_SENT, lines=200)), kind="data")
