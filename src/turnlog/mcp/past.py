"""What an agent is told of past sessions: quoted as data, without secrets, within its tokens."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from .._platform.units import counted
from .._platform.visible import visible
from ..errors import InputError
from ..log.messages import Text, ToolCall, ToolResult
from ..log.records import Record
from ..log.store import Hit, Store
from ..memory.recall import QUOTED, Recalled, quoted, recall
from ..redaction import Redactor
from ..redaction.drafts import redacted
from ..session.read_back import pieces, read_back
from ..session.titles import shown_title
from ..stores.search import Search
from ..stores.words import role_and_text
from ..stores.wrapper import PastDamage
from ..tokens.counters import counter_for

RECALL, READ = "recall_sessions", "read_session"
"""The names of the tools. Agent programs put the server's name before them."""

USUAL, MOST, TOTAL = 1_500, 4_000, 30_000
"""Tokens: of an answer if the agent gives no number, the most of one, and of all answers of a server together."""

_LEAST = 150  # tokens; less holds no passage
_LINES = lazy_pattern(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?")


def without_answers(record: Record) -> Record | None:
    """A record without calls of these tools and answers like theirs, which repeat other records; None if nothing is
    left."""
    message = record.message
    if message is None:
        return None if QUOTED in role_and_text(record)[1] else record
    parts = tuple(part for part in message.parts if not _is_answer(part))
    if len(parts) == len(message.parts):
        return record
    body: Any = record.body
    return replace(record, body=replace(body, message=replace(message, parts=parts)), raw=None) if parts else None


def _is_answer(part: object) -> bool:
    inner = part.parts if isinstance(part, ToolResult) else ()
    return (isinstance(part, (ToolCall, ToolResult)) and part.name.endswith((RECALL, READ))) or any(
        isinstance(each, Text) and QUOTED in each.text for each in inner
    )


class _Search(Search):
    """A search without snippets, answers, and the sessions `without`. It keeps the records that it met."""

    kept: dict[tuple[str, int], Record]
    without: Collection[str]

    def hit(self, session: str, record: Record, role: str, text: str) -> Hit | None:
        """See `Search.hit`."""
        left = without_answers(record) if "_session" in text or QUOTED in text else record
        if left is None or session in self.without:
            return None
        self.kept.setdefault((session, record.n), left)  # it may be there without secrets
        return Hit(session, record.n, role, record.time, "", 0, 0)


class _Scope(PastDamage):
    """A store in which only the sessions `among` (None: all) but `without` are searched, and whose records have no
    secrets and no answers. Records that a search met are clean once `clean` has said so: it takes longer than the
    search to look through all of them."""

    def __init__(
        self, store: Store, redactor: Redactor, among: Collection[str] | None = (), without: Collection[str] = ()
    ) -> None:
        super().__init__(store, lambda problem: None)
        self._redactor, self._among, self._without = redactor, among, without
        self._kept: dict[tuple[str, int], Record] = {}

    def search(self, query: str, *, limit: int | None = 50, **_: Any) -> list[Hit]:
        search = _Search(query, limit=limit, among=self._among)
        search.kept, search.without = self._kept, self._without
        hits: list[Hit] = self.store._search(search)
        return hits

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        known = self._kept.get((session_id, first)) if first == last else None
        records = super().read(session_id, first=first, last=last, reverse=reverse) if known is None else ()
        yield from () if known is None else (known,)
        yield from (self._without_secrets(left) for record in records if (left := without_answers(record)) is not None)

    def clean(self, found: Collection[Recalled]) -> bool:
        """Whether no record of these passages has a secret. Otherwise all records that were met are cleaned, for
        another try: a passage has to be cut from a clean record, or it may end inside a secret."""
        records = [self._kept[passage.session, passage.record] for passage in found]
        if all(self._without_secrets(record) is record for record in records):
            return True
        self._kept = {key: self._without_secrets(record) for key, record in self._kept.items()}
        return False

    def _without_secrets(self, record: Record) -> Record:
        body, counts = redacted(record.body, self._redactor)
        return replace(record, body=body, raw=None) if counts else record


class PastSessions:
    """The sessions of a store with the labels `where`, for an agent in the folder `project`. Its answers have at most
    `total` tokens together. Methods raise InputError if they cannot answer."""

    def __init__(
        self, store: Store, redactor: Redactor, project: Path, where: Mapping[str, str], total: int = TOTAL
    ) -> None:
        self._store, self._redactor, self._where, self._left = store, redactor, where, total
        self._count = counter_for("", "").text
        self._lock = Lock()  # agents call tools side by side
        folder = project.absolute()
        self._project = str(next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder))

    def recall(self, question: str, max_tokens: int = USUAL, asking: Collection[str] = (), note: str = "") -> str:
        """The passages that answer a question best, those of this project first, and `note`; nothing of sessions whose
        ids begin as one of `asking`."""
        with self._lock:
            room = self._room(max_tokens)
            here, others, left_out = self._ids(asking)
            own = self._found(question, room, here)
            # Without labels, to search all and leave a few out is twice as fast as to name the others.
            rest = self._found(question, room, others if self._where else None, here | left_out)
            # What this project hardly says does not go before what answers the question elsewhere.
            likely = max((each.score for each in (*own, *rest)), default=0) / 2
            found = sorted((*own, *rest), key=lambda each: (each not in own or each.score < likely, -each.score))
            told = f"Searched {counted(len(here | others), 'earlier session')}, {len(here)} of this project.{note}"
            while self._count(text := _answer(found, here, told)) > room and found:
                found.pop()
            self._left -= self._count(text)
            return text

    def read(self, session: str, record: int, lines: str = "") -> str:
        """The text of a record, or of some of its lines, such as `1-80`, as far as there is room."""
        with self._lock:
            if session not in set().union(*self._ids(())):
                raise InputError(f"there is no session {session!r}; {RECALL} cites sessions and records")
            if (asked := _LINES.fullmatch(lines.strip() or "1-999999999")) is None:
                raise InputError(f'lines={lines!r}: write the first and the last, such as "1-80"')
            first, last = max(1, int(asked[1])), int(asked[2] or asked[1])
            scope, room = _Scope(self._store, self._redactor), self._room(MOST)
            every = list(pieces(read_back(scope, session, record)))
            [at] = scope.read(session, first=record, last=record)
            after = next((each.n for each in scope.of_kinds(session, ("message",), first=record + 1)), 0)
            chosen = every[first - 1 : last]
            while True:
                end = first + len(chosen) - 1
                passage = Recalled(session, record, role_and_text(at)[0], at.time, "".join(chosen).rstrip("\n"))
                told = f"Lines {first} to {end} of {len(every)}; the next message is record {after or 'none'}."
                text = f"{told}\n{visible(quoted([passage]))}"
                if (size := self._count(text)) <= room or not chosen:
                    self._left -= size
                    return text
                del chosen[min(len(chosen) - 1, len(chosen) * room // size) :]

    def titles(self, max_tokens: int, asking: Collection[str] = ()) -> str:
        """The titles of this project's last sessions, quoted as data; empty if there are none."""
        here, _, _ = self._ids(asking)
        found: list[Recalled] = []
        for info in self._store.sessions(where=self._where):
            if info.id in here and len(found) < 20 and (title := shown_title(self._store, info)):
                clean = visible(self._redactor.text(title)[0], one_line=True)
                found.append(Recalled(info.id, info.records, "title", info.updated, clean))
        told = f"Earlier sessions of this project; {RECALL} searches what was said and done in them."
        while found and self._count(text := f"{told}\n{quoted(found)}") > max_tokens:
            found.pop()
        return text if found else ""

    def _ids(self, asking: Collection[str]) -> tuple[set[str], set[str], set[str]]:
        """The sessions of this project, all others, and those that ask."""
        ids = {info.id for info in self._store.sessions(where=self._where)}
        left_out = {each for each in ids if each.startswith(tuple(asking))}
        folders = {each: facts.folder for each, facts in self._store.facts().items() if each in ids - left_out}
        below = self._project.rstrip(os.sep) + os.sep
        here = {each for each, folder in folders.items() if folder == self._project or folder.startswith(below)}
        return here, ids - left_out - here, left_out

    def _found(
        self, question: str, room: int, among: Collection[str] | None, without: Collection[str] = ()
    ) -> tuple[Recalled, ...]:
        if among is not None and not among:
            return ()
        scope = _Scope(self._store, self._redactor, among, without)
        while not scope.clean(found := recall(scope, question, max_tokens=room, count=self._count)):
            pass
        return found

    def _room(self, max_tokens: int) -> int:
        if self._left < _LEAST:
            raise InputError("the tokens for answers about earlier sessions are used up until this server starts again")
        return max(_LEAST, min(max_tokens, MOST, self._left))


def _answer(found: Collection[Recalled], here: Collection[str], searched: str) -> str:
    if not found:
        return f"{searched} Nothing was found."
    own = sum(each.session in here for each in found)
    told = f"{counted(own, 'passage')} of this project, {len(found) - own} of others. {searched}"
    return f"{told} {READ}(session, record) shows the whole record.\n{visible(quoted(list(found)))}"
