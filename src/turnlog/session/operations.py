"""What agents, runners and telemetry do with a session beyond its methods: follow its records, find the turn to go on
with, read its system text, answer open calls, exclude what a provider refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from .._platform.given import kind_given, list_given
from ..errors import InputError, TurnCancelled
from ..log.messages import text_of
from ..view.tool_calls import CallInfo
from ..view.turns import TurnInfo
from .events import Appended
from .exclusions import refusal_for
from .reader import SessionLog
from .recovery import newest_turn, refused, stand_ins
from .session import Session


def follow_records(session: Session, callback: Callable[[Appended], object]) -> Callable[[], None]:
    """Call `callback` with every record that a session appends from now on, otherwise as `Session.on_event`."""
    _session_given(session)
    return session._events.on_records(callback)


def system_texts(session: Session) -> list[str]:
    """The system texts that a session's conversation begins with, as they are now."""
    _session_given(session)
    return [text for shown in session._context.head if (text := text_of(shown.message))]


def interrupted_turn(session: Session) -> TurnInfo | None:
    """The turn that `session.turn()` goes on with: the newest one, if it was interrupted. None if there is no such
    turn, also while it is open."""
    _session_given(session)
    newest = newest_turn(session.log)
    return newest[1] if isinstance(newest, tuple) else None


def check_turn(session: Session) -> None:
    """Raises TurnCancelled if `Turn.cancel` was called for the open turn of a session."""
    _session_given(session)
    if session._turn.is_cancelled:
        raise TurnCancelled(session._turn.id, "")


def answer_unfinished(session: Session, calls: Iterable[CallInfo] | None = None) -> list[CallInfo]:
    """Record a stand-in result for every call that has none, or for these: the same text that requests contain for it.
    A real result recorded later replaces it. Returns the calls."""
    _session_given(session)
    unanswered = session.log.unfinished() if calls is None else list_given("calls", calls, "CallInfo values")
    for call in unanswered:
        kind_given("calls", call, CallInfo, "CallInfo values, as those of session.log.unfinished()")
    if unanswered:
        session._journal.append(*stand_ins(session.log, unanswered))
    return unanswered


def answer_denied(session: Session, call: CallInfo) -> None:
    """Record the result of a call that somebody has denied in `Session.deny`, with the reason."""
    _session_given(session)
    session._journal.append(*refused([call]))


def exclude_for(
    session: Session,
    provider: str,
    records: Iterable[int],
    reason: str,
    *,
    media: Collection[str] = (),
    signatures: bool = False,
    containers: Collection[str] | None = None,
) -> tuple[int, int]:
    """Leave out of requests to one provider what it refused: in messages of these records, the media with these hashes
    or URLs, with `signatures` its reasoning and the signatures of its calls, and what it ran in `containers` with these
    ids (in any, if the collection is empty). Records one decision, if there is anything; messages are not touched.
    Returns how many parts are shown as a line of text, and how many signatures, thoughts and ids are left out."""
    numbers = set(records)
    named = [record for record in session.log.records(min(numbers)) if record.n in numbers] if numbers else []
    decision = refusal_for(named, provider, reason, media=media, signatures=signatures, containers=containers)
    if decision is None:
        return 0, 0
    session._journal.append(decision)
    return len(decision.detail["texts"]), len(decision.detail["unsigned"])


def _session_given(session: Any) -> None:
    """Raises InputError if this is no session."""
    if not isinstance(getattr(session, "log", None), SessionLog):
        raise InputError(f"session must be what turnlog.open returns, not {session!r:.100}")
