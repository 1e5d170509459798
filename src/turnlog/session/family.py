"""The sessions of subagents, which a session opens as its children, and what it cost, alone and with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from .._platform.given import text_given
from .._platform.lazy import lazy_pattern
from ..config.settings import Settings
from ..errors import InputError, SessionNotFound
from ..log.bills import Bills, added, total_usage
from ..log.budget import Budget
from ..log.messages import Tool, ToolCall, compact_json, sha256_hex, tool_called
from ..log.records import Note
from ..log.store import SessionInfo, Store
from ..log.usage import Usage
from ..models.pricing import Cost, total_cost
from ..models.target import Target
from ..stores.billing import with_subagents
from ..stores.subagents import SUBAGENT, agent_id
from ..view.tool_calls import CallInfo
from .parts import Parts


class Given(NamedTuple):
    """What a session is opened with, beside its settings."""

    target: Target | None
    system: str | None
    tools: Any
    budget: Budget | int | None
    labels: Mapping[str, str] | None


class Parent:
    """What a session has to do with its children, and the bill; a part of `Session`."""

    id: str
    _wait: float
    _settings: Settings
    _parts: Parts
    _opener: Callable[..., Any] | None

    def child(
        self,
        name: str,
        *,
        target: Target | None = None,
        system: str | None = None,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        budget: Budget | int | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Self:
        """Open the session of a subagent, or create it: the same name is the same session, also after a crash. Its id
        is `{this id}.agent-{name}`; `parent` in the store and a note in this log say that it belongs here.

        The arguments are those of `turnlog.open`. A new one has the store, settings and labels of this session, without
        its system text and tools; the target, and with it the budget, of now if none are given. Close it when it has
        done its work, before this session. Raises InputError, SessionBusy, StoreError.
        """
        self._parts.lease.check()
        if self._opener is None:
            raise InputError("this session cannot have children: open it with turnlog.open")
        if not text_given("name", name).strip():
            raise InputError("name must say something: the same name is the same child")
        child_id, log = agent_id(self.id, name), self._parts.log
        with suppress(SessionNotFound):
            if self._parts.store.info(child_id).parent != self.id:
                raise InputError(f"session {child_id!r} is no child of this one: give another name")
        if not self._was_spoken_in(child_id):  # a crash may have come before it had all that it begins with
            configuration = self._parts.context.configuration
            target = self._parts.configurer.target if target is None else target
            budget = configuration.budget if budget is None and target is not None else budget
            labels = {**log.labels, **(labels or {})}
        child: Self = self._opener(
            *(self._parts.store, child_id, self._settings, Given(target, system, tools, budget, labels)),
            wait=self._wait,
            parent=self.id,
            told=lambda: self._tell_of(name, child_id),
        )
        return child

    @property
    def usage(self) -> Usage:
        """The tokens that all requests of this session were billed for, summed."""
        return total_usage(self._parts.store.usage(self.id))

    @property
    def cost(self) -> Cost:
        """The cost of all requests, each at the list price of its model, without those of children."""
        return total_cost(self._parts.store.usage(self.id))

    @property
    def total_cost(self) -> Cost:
        """The cost of this session and its children, each answer once."""
        return total_cost(with_subagents(self._parts.store, self.id)[0])

    def _was_spoken_in(self, session_id: str) -> bool:
        with suppress(SessionNotFound):
            said = (record.message for record in self._parts.store.read(session_id))
            return any(message is not None and message.role != "system" for message in said)
        return False

    def _tell_of(self, name: str, child_id: str) -> None:
        """Record, once and before the child exists, that it is going to."""
        if self._child_ids().get(name) != child_id:
            self._parts.journal.append(Note(SUBAGENT, child_id, {"name": name}))

    def _child_ids(self) -> dict[str, str]:
        """The children that the log names, also those of the session that it is a fork of: their ids by name."""
        bodies = (record.body for record in self._parts.log.of_kinds("note"))
        notes = [body for body in bodies if isinstance(body, Note) and body.topic == SUBAGENT]
        return {note.data["name"]: note.text for note in notes if isinstance(note.data, dict) and "name" in note.data}


def name_for(info: CallInfo) -> str:
    """The name of the child that a call runs, the same after a crash: ids of calls repeat, records do not. The time of
    the call tells children of a deleted session apart from those of its successor under the same id."""
    mark = sha256_hex(compact_json([info.call.id, info.time]).encode())[:8]
    return f"{tool_called(info.call)}-{info.record}-{mark}"


def can_go_on(session: Parent, info: CallInfo) -> bool:
    """Whether the child that a call runs goes on where it was, or was never made. Not so in a fork: there the child is
    that of another session, and nobody knows what it did."""
    name = name_for(info)
    return session._child_ids().get(name, "") in ("", agent_id(session.id, name))


def works_for_call(store: Store, session: SessionInfo) -> bool:
    """Whether a session is the child that a call of its parent runs. A child may be opened by hand under any name."""
    ending = _OF_CALL.search(session.id)
    if not session.parent or ending is None:
        return False
    try:
        records = list(store.read(session.parent, first=int(ending[1]), last=int(ending[1])))
    except SessionNotFound:
        return False
    parts = [(record, part) for record in records if record.message for part in record.message.parts]
    calls = (CallInfo(part, record.n, record.time) for record, part in parts if isinstance(part, ToolCall))
    return any(agent_id(session.parent, name_for(info)) == session.id for info in calls)


_OF_CALL = lazy_pattern(r"-([0-9]{1,12})-[0-9a-f]{8}$")
"""The end of what `name_for` makes, with the number of the record."""


def bills_of(session: Parent, calls: Iterable[CallInfo]) -> Bills:
    """What the children that calls run were billed until now."""
    bills = []
    for info in calls:
        with suppress(SessionNotFound):  # of another tool, or not begun
            bills.append(with_subagents(session._parts.store, agent_id(session.id, name_for(info)))[0])
    return added(bills)
