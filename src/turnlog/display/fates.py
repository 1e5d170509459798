"""The view beside the log: what became of each message in a request, and the decision behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from .._platform.texts import shorten
from .._platform.units import counted
from ..log.actions import SHRINKING, action_of
from ..log.messages import Message, Text, ToolCall
from ..log.records import Decision
from ..log.store import Store
from ..log.texts import leaf_parts
from ..view.decisions import active_decisions
from ..view.explain import Account, Explanation
from ..view.types import Shown
from .escapes import Markup, end, join, start, tag, text
from .frame import Ways
from .parts import preformatted
from .past_request import PastRequest
from .request_words import gist, saving

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
        return tag("a", text(words or str(n)), href=self.ways.session(self.id, at=n))

    def request(self, n: int, words: str, **attributes: str) -> Markup:
        """A link to the request that record `n` answered, or its words alone if it has no page."""
        where = self.ways.request(self.id, n)
        return tag("a", text(words), href=where, **attributes) if where else text(words)

    def requests_link(self) -> Markup:
        """A link to all requests."""
        return tag("a", text("All requests"), href=self.ways.part(self.id, "requests"))

    def message(self, n: int) -> Message | None:
        """The message of a record."""
        return next((record.message for record in self.store.read(self.id, first=n, last=n)), None)


class _Row(Struct, frozen=True):
    """What became of one message: `by` is the decision that says how it is shown now (0: none)."""

    account: Account
    fate: str
    by: int
    shown: Shown | None = None


class Fates:
    """The view beside the log: what became of each message of the log."""

    def __init__(self, page: PageLinks, past: PastRequest, explanation: Explanation) -> None:
        self._page = page
        self._explanation = explanation
        self._rulings = {ruling.n: ruling for ruling in explanation.rulings}
        self._undo = _undoing(page)
        self._left = _ROWS
        view = [shown for shown in past.request.view if not shown.stands_in and shown.treatment != "synthetic"]
        sent = {n: shown for shown in view for n in shown.records}
        hidden = [edit for edit in past.request.edits if edit.through]

        def row(account: Account) -> _Row:
            shown, by = sent.get(account.n), account.by[-1] if account.by else 0
            if account.fate in ("summarised", "left out", "rewound"):
                return _Row(account, account.fate, by)
            if shown is None:
                covers = any(edit.records and edit.records[0] <= account.n <= edit.through for edit in hidden)
                return _Row(account, "left out" if covers else "never sent", by)
            changed = account.fate == "kept" and not shown.as_recorded
            return _Row(account, shown.treatment if changed else account.fate, by, shown)

        self._rows = [row(account) for account in explanation.accounts.values()]
        self._added = [shown for shown in past.request.view if shown.treatment in ("synthetic", "appended")]
        self._stand_ins: dict[int, list[Shown]] = {}
        for shown in past.request.view:
            if shown.stands_in:
                self._stand_ins.setdefault(shown.records[0], []).append(shown)

    def section(self) -> Iterator[Markup]:
        """The section of the page, newest messages last."""
        yield start("section", class_="panel")
        yield tag("h2", text("What became of each message"))
        fates = Counter(row.fate for row in self._rows)
        words = ", ".join(f"{number:,} {fate}" for fate, number in fates.most_common())
        saved = f"; decisions save {self._explanation.saved:,} tokens" if self._explanation.saved else ""
        yield tag("p", text(f"{counted(len(self._rows), 'message')} in the log: {words}{saved}."))
        groups = [[*rows] for _, rows in groupby(self._rows, key=lambda row: (row.fate, row.by))]
        if len(groups) > _GROUPS:
            groups = [[row for rows in groups[:-_GROUPS] for row in rows], *groups[-_GROUPS:]]
        drawn = [self._group(rows, is_last=i == 0) for i, rows in enumerate(reversed(groups))]  # rows go to the newest
        yield tag("ol", *reversed(drawn), class_="fates")
        if others := [shown for several in self._stand_ins.values() for shown in several]:
            yield tag("h3", text("Summaries and notes"))
            yield tag("ol", *(tag("li", *self._instead(shown)) for shown in others), class_="fates")
        if self._added:
            yield tag("h3", text("Added to the request"))
            yield tag("ol", *(tag("li", *self._instead(shown)) for shown in self._added[-20:]), class_="fates")
        yield end("section")

    def _group(self, rows: Sequence[_Row], *, is_last: bool) -> Markup:
        """Messages of the same fate by the same decision."""
        fates = {row.fate for row in rows}
        if len(rows) == 1:
            return tag("li", *self._line(rows[0]), *self._decided(rows[0].by))
        fate = rows[0].fate if len(fates) == 1 else "mixed"
        by = rows[0].by if len(fates) == 1 else 0
        before, after = sum(row.account.tokens for row in rows), sum(row.account.shown for row in rows)
        instead = self._stand_ins.pop(by, []) if by and fate in ("summarised", "left out") else []
        after += self._explanation.summaries.get(by, 0) if instead else 0
        spans = f"records {rows[0].account.n:,} to {rows[-1].account.n:,}: {counted(len(rows), 'message')} "
        decided = f" by decision {by}" if by else ""
        size = f", {saving(before, after)}" if before != after else f", {before:,} tokens"
        summary = tag("summary", text(spans), _badge(fate), text(decided + size))
        room = max(0, min(self._left, len(rows), 40))
        self._left -= room
        shown, hidden = rows[len(rows) - room :], len(rows) - room
        inside = [self._decided_line(by), *(tag("div", *self._instead(each)) for each in instead)]
        if hidden:
            first = self._page.record(rows[0].account.n, f"record {rows[0].account.n:,} on")
            inside.append(tag("p", text(f"{counted(hidden, 'message')} more, from "), first, class_="more"))
        inside.append(tag("ol", *(tag("li", *self._line(row)) for row in shown))) if shown else None
        return tag("li", tag("details", summary, *inside, open="" if is_last else None))

    def _line(self, row: _Row) -> Iterator[Markup]:
        """One message: its record, role, beginning, fate and size, and what was sent instead."""
        account, message = row.account, self._page.message(row.account.n)
        yield self._page.record(account.n)
        yield tag("b", text(message.role if message else ""))
        yield tag("span", text(_gist(message) if message else "", one_line=True), class_="gist")
        also = f", {row.shown.treatment}" if row.shown and row.shown.treatment in ("repaired", "joined") else ""
        yield _badge(row.fate, (f" as {account.curator}" if account.curator else "") + also)
        size = saving(account.tokens, account.shown) if account.tokens != account.shown else f"{account.tokens:,}"
        yield tag("span", text(size), class_="n")
        if row.shown is not None and row.shown.treatment != "verbatim":
            yield _as_sent(row.shown.message)

    def _instead(self, shown: Shown) -> Iterator[Markup]:
        """What the request shows that is no message of the log, or stands for several."""
        yield self._page.record(shown.records[0]) if shown.records else text("-")
        yield tag("b", text(shown.message.role))
        yield _badge(shown.treatment)
        yield _as_sent(shown.message)

    def _decided(self, by: int) -> list[Markup]:
        return [self._decided_line(by)] if by else []

    def _decided_line(self, by: int) -> Markup:
        """A decision, its reason and the command that takes it back."""
        ruling = self._rulings.get(by)
        if ruling is None:
            return join([])
        words = f" {ruling.decision.action}: {ruling.decision.why}"
        undo = [text(" Take it back: "), tag("code", text(self._undo[by], one_line=True))] if by in self._undo else []
        decision = self._page.record(by, f"decision {by}")
        return tag("p", decision, text(words, one_line=True), *undo, class_="small")


def _undoing(page: PageLinks) -> dict[int, str]:
    """The commands that take back decisions which are still in force."""
    decisions = active_decisions(page.store.of_kinds(page.id, ("decision",)))
    commands: dict[int, str] = {}
    newest: list[tuple[int, Decision]] = [*reversed(decisions.items())]
    for i, n in enumerate(n for n, decision in newest if decision.action in SHRINKING):
        commands[n] = f"turnlog undo {page.id}" + (f" ({i + 1} times, the newest decision first)" if i else "")
    rewind = next((n for n, decision in newest if action_of(decision.action).undone == "rewind"), 0)
    return {**commands, rewind: f"turnlog rewind {page.id} --undo"} if rewind else commands


def _gist(message: Message) -> str:
    """A message on one line; of results also their text."""
    texts = gist(Message(message.role, tuple(leaf_parts(message.parts))))
    return " ".join(dict.fromkeys((gist(message), texts)))


def _badge(fate: str, more: str = "") -> Markup:
    return tag("span", text(fate + more, one_line=True), class_=f"badge f-{fate.replace(' ', '-')}")


def _as_sent(message: Message) -> Markup:
    """A message as it was sent, folded."""
    pieces = []
    for part in leaf_parts(message.parts):
        match part:
            case Text(text=words):
                pieces.append(words)
            case ToolCall(name=name):
                pieces.append(f"[calls {name}] {part.raw_arguments}")
            case _:
                pieces.append(f"[{type(part).__name__.lower()}]")
    words = shorten("\n".join(pieces), characters=_SENT, lines=200)
    return tag("details", tag("summary", text("as sent")), preformatted(words), class_="data")
