"""Approvals that wait: the calls of which nobody has said yet whether they may run, and what somebody says of them
later, in this process or another, beside whoever has the session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from .._platform.given import text_given
from ..config.settings import Settings
from ..errors import Conflict, InputError, SessionNotFound
from ..log.messages import ToolCall
from ..log.records import Approval, Record
from ..log.store import Draft, Store
from ..log.validation import admitted
from ..redaction import RedactingStore
from ..redaction.redactor import has_mark
from ..stores.places import open_store
from ..stores.subagents import agent_id
from ..view.tool_calls import CallInfo
from .family import name_for, works_for_call
from .inputs import to_run
from .parts import Parts
from .reader import SessionLog
from .recovery import latest_turn

_RACES = 8
"""How often somebody else may append first."""


class Approvals:
    """What a session has for approvals that wait."""

    id: str
    log: SessionLog
    _store: Store
    _parts: Parts
    _beside: Callable[[str, Approval, int], Record] | None = None  # appends, where the session only reads

    def pending(self) -> list[CallInfo]:
        """The calls of the newest turn that wait for approval, in this process or any other: `call` of each is the
        call, `reason` why it is asked; with those of the subagents that calls of it run, whose `session` is theirs.
        None of a turn that was cancelled, or that this session has as a fork."""
        return _pending(self._store, self.id)

    def _check_approved(self) -> None:
        """Raises InputError if the newest turn is open and waits only for approvals."""
        newest = latest_turn(self.log)
        if not isinstance(newest, str) and newest[1].waits_for_approval and (waiting := self.pending()):
            calls = ", ".join(f"{info.call.name} ({info.call.id})" for info in waiting)
            raise InputError(
                f"approval of {calls} is waited for, and a request would answer it: approve() or deny() it first; "
                "preview() shows the request as it would be"
            )

    def approve(self, call: CallInfo | ToolCall | str, *, by: str = "", reason: str = "") -> Record:
        """Record that a call, given as such or by its id, may run; it runs when its turn goes on. May be said beside
        another owner of the session, also in one that is open with `read_only`; of two who decide at the same moment
        the first one counts. Raises InputError, which says how the call stands, if it does not wait for approval."""
        return self._decide(call, "given", by, reason)

    def deny(self, call: CallInfo | ToolCall | str, reason: str = "", *, by: str = "") -> Record:
        """As `approve`: record that a call may not run. The model is told so, with the reason, when the turn goes
        on."""
        return self._decide(call, "denied", by, reason)

    def _decide(self, call: Any, state: Literal["given", "denied"], by: str, reason: str) -> Record:
        for name, text in (("by", by), ("reason", reason)):
            text_given(name, text)
        for left in reversed(range(_RACES)):
            info = self._named(call, state)
            where = info.session or self.id
            last = self._store.info(where).records
            if replace(info, session="") not in _waiting(self._store, where):
                continue  # somebody was faster
            try:
                return self._says(where, Approval(info.call.id, state, info.record, by, reason), last)
            except Conflict:
                if not left:
                    raise
        raise InputError(self._not_waiting(info.call.id))

    def _named(self, call: Any, state: Literal["given", "denied"]) -> CallInfo:
        """The call that waits, as it is now. Raises InputError."""
        given = call.call if isinstance(call, CallInfo) else call
        call_id = given.id if isinstance(given, ToolCall) else text_given("call", given)

        def is_meant(info: CallInfo) -> bool:  # ids repeat, and what was shown is what is decided
            if isinstance(call, CallInfo) and (info.session, info.record) != (call.session, call.record):
                return False
            return info.call.id == call_id and (not isinstance(given, ToolCall) or _is_same(info.call, given))

        found = list(filter(is_meant, self.pending()))
        if not found and state == "denied":  # the whole work of a subagent
            found = list(filter(is_meant, _waiting(self._store, self.id)))
        if not found:
            raise InputError(self._not_waiting(call_id))
        if len(found) > 1:
            raise InputError(f"several calls with the id {call_id!r} wait: give one of those in pending()")
        return found[0]

    def _says(self, where: str, approval: Approval, last: int) -> Record:
        if self._beside is not None:
            return self._beside(where, approval, last)
        if where == self.id:
            return self._parts.journal.append(approval, expected=last)[0]
        return self._store.append(where, [Draft(admitted(approval))], expected=last)[0]

    def _not_waiting(self, call_id: str) -> str:
        info = next((info for info in reversed(self.log.calls()) if info.call.id == call_id), None)
        waits = ", ".join(f"{info.call.id!r} of {info.call.name!r}" for info in self.pending()) or "none"
        if info is None:
            return f"session {self.id!r} has no call with the id {call_id!r}; these wait for approval: {waits}"
        what = f"call {call_id!r} of {info.call.name!r}"
        if info in self.pending():
            return f"{what} is another one now (record {info.record}): show that before you decide"
        if info in _waiting(self._store, self.id):
            return f"{what} runs an agent, and goes on by itself; these calls wait for approval: {waits}"
        by = f" by {info.approved_by}" if info.approved_by else ""
        decided = {"given": f"it was approved{by}", "denied": f"it was denied{by}"}.get(info.approval, "")
        standing = "its turn has ended" if info.awaits == "approval" else info.standing.removeprefix("approved, ")
        told = "; ".join(filter(None, (decided, standing if standing != "denied" else "")))
        return f"{what} does not wait for approval: {told}"


def _pending(store: Store, session_id: str) -> list[CallInfo]:
    """What waits in a session and in the subagents that its calls run."""
    found = []
    for info in _unfinished(store, session_id):
        child_id = agent_id(session_id, name_for(info))
        if info.started and _exists(store, child_id):  # it waits for what its agent waits for
            found += [replace(inner, session=inner.session or child_id) for inner in _pending(store, child_id)]
        elif info.awaits == "approval":
            found.append(info)
    return found


def _waiting(store: Store, session_id: str) -> list[CallInfo]:
    """The calls of a session itself that wait for approval."""
    return [info for info in _unfinished(store, session_id) if info.awaits == "approval"]


def _unfinished(store: Store, session_id: str) -> list[CallInfo]:
    """The calls without a result of the newest turn of a session, if anybody still waits for them: the turn is open, or
    has failed, and so has that of the session whose call the session works for."""
    session = store.info(session_id)
    newest = latest_turn(SessionLog(store, session_id))
    if isinstance(newest, str):
        return []
    if works_for_call(store, session) and not any(
        agent_id(session.parent, name_for(info)) == session_id for info in _unfinished(store, session.parent)
    ):
        return []
    turn = newest[1]
    if not (turn.is_open or turn.status == "failed"):
        return []
    calls = (info for info in turn.calls if info.awaits and not (info.approval == "denied" and info.is_decided))
    return [info for info in calls if not 0 < info.approval_record <= session.parent_records]


def _is_same(call: ToolCall, shown: ToolCall) -> bool:
    """Whether a call on record is the one that was shown, perhaps with marks in place of secrets, or as it is run."""
    marked = has_mark(call.raw_arguments) or has_mark(shown.raw_arguments)
    return call.name == shown.name and (marked or shown in (call, to_run(call)))


def _exists(store: Store, session_id: str) -> bool:
    with suppress(SessionNotFound):
        return bool(store.info(session_id))
    return False


def append_beside(
    place: Store | str | Path, settings: Settings, session_id: str, approval: Approval, last: int
) -> Record:
    """Append to a session that somebody else may have; secrets are replaced. A store that is given as a path is opened
    for it and closed again. Raises Conflict if the last record is another one."""
    with ExitStack() as opened:
        store: Store
        if isinstance(place, (str, Path)):
            store = opened.enter_context(closing(open_store(place, durability=settings.durability, key=settings.key)))
        else:
            store = place
        if settings.redactor is not None:
            store = RedactingStore(store, settings.redactor)
        return store.append(session_id, [Draft(admitted(approval))], expected=last)[0]
