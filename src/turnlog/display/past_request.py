"""Requests of the past: what a model was sent before an answer on record, made again from the log as it was then.

The same log gives the same bytes (the law of determinism), so a session that sees the log only up to the request makes
that request again. Of transcripts of other programs it is the request that turnlog would have made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from .._platform.lazy import cached_property
from ..errors import InputError
from ..log.bills import Bills, usage_by_model
from ..log.records import Decision, PartialAnswer, Record, StreamCheckpoint, TurnOpened, UsageRecord
from ..log.store import Problem, SessionInfo, Store
from ..models.catalog import find_model, model_name
from ..models.target import Target
from ..providers import PROVIDERS
from ..redaction.store import as_kept
from ..requests.request import CacheUse, Request
from ..session.inspect import WindowOverTime
from ..session.session import Session
from ..session.state import Context
from ..session.targets import chosen_target
from ..stores.records import of_any
from ..stores.wrapper import ReadingStore
from ..view.breakdown import Share
from ..view.turns import seconds_between
from ..view.types import Shown, starts_turn

# -- requests on record ----------------------------------------------------------------------------
#
# Which answers a log has, and how far it went when each was asked for.


class AnsweredRequest(Struct, frozen=True, repr_omit_defaults=True):
    """A request whose answer is on record.

    The answer is the messages of records `n` to `last`; the request was made when the log ended with record `made_of`,
    and the latest time in it was `updated`. `seconds` is the time from that record to the answer. `bill` has its usage,
    without the provider's own object; `decided` are the decisions since the request before, with their actions.
    """

    number: int
    n: int
    last: int
    made_of: int
    updated: str
    time: str
    seconds: float | None
    model: str
    complete: bool
    bill: Record | None = None
    decided: tuple[tuple[int, str], ...] = ()

    @property
    def usage_record(self) -> UsageRecord | None:
        """What it was billed; None if that is not on record."""
        return self.bill.body if self.bill and isinstance(self.bill.body, UsageRecord) else None


class RequestList(Struct, frozen=True):
    """The requests of a session, oldest first, and how many bills belong to none of their answers (a compaction that a
    provider made, a bill without an answer)."""

    requests: tuple[AnsweredRequest, ...]
    other_bills: int
    problems: tuple[Problem, ...]

    def of(self, n: int) -> AnsweredRequest:
        """The request that record `n` answered or billed. Raises InputError if it is no record of an answer."""
        for request in self.requests:
            if request.n <= n <= request.last or (request.bill and request.bill.n == n):
                return request
        raise InputError(f"record {n} is no answer of a model")

    def before(self, request: AnsweredRequest) -> AnsweredRequest | None:
        """The request for the same model before this one; None if it is none of the last hundred."""
        name, others = model_name(request.model), self.requests[max(0, request.number - 101) : request.number - 1]
        return next((each for each in reversed(others) if model_name(each.model) == name), None)


class _Walk:
    """Takes the records of a log one by one, and keeps what is needed of the requests."""

    def __init__(self) -> None:
        self.found: list[AnsweredRequest] = []
        self.other_bills = 0
        self._before = ("", "")  # the time of the record before, and the latest of all
        self._streaming: tuple[int, str, str] | None = None  # what was before the first checkpoint of an answer
        self._decided: list[tuple[int, str]] = []
        self._response = ""
        self._goes_on = False  # whether another message of an assistant belongs to the newest answer

    def take(self, record: Record) -> None:
        """The next record."""
        body, latest = record.body, max(self._before[1], record.time)
        if isinstance(body, Decision):
            self._decided.append((record.n, body.action))
        elif isinstance(body, UsageRecord):
            self._billed(record, body)
        elif isinstance(body, StreamCheckpoint):
            self._streaming = self._streaming or (record.n - 1, *self._before)
        elif isinstance(body, TurnOpened):
            self._streaming = None
        elif record.message is not None and record.message.role == "assistant":
            self._answered(record)
        elif record.message is not None:
            self._goes_on = False
            if starts_turn(Shown(record.message, (record.n,))):
                self._streaming = None
        self._before = record.time, latest

    def _answered(self, record: Record) -> None:
        body, response = record.body, getattr(record.body, "response_id", "")
        of_one = self._goes_on and not (response and self._response and response != self._response)
        if self.found and (of_one or (response and response == self._response)):
            self.found[-1] = replace(self.found[-1], last=record.n)
            return
        made_of, asked, updated = self._streaming or (record.n - 1, *self._before)
        self.found.append(
            AnsweredRequest(
                number=len(self.found) + 1,
                n=record.n,
                last=record.n,
                made_of=made_of,
                updated=updated,
                time=record.time,
                seconds=seconds_between(asked, record.time) if asked else None,
                model=getattr(body, "model", ""),
                complete=not isinstance(body, PartialAnswer),
                decided=tuple(self._decided),
            )
        )
        self._decided, self._streaming, self._response = [], None, response
        self._goes_on = not isinstance(body, PartialAnswer)

    def _billed(self, record: Record, body: UsageRecord) -> None:
        if not self.found or self.found[-1].bill is not None:
            self.other_bills += 1
            return
        bill = Record(record.n, record.time, replace(body, raw=None))
        self.found[-1] = replace(self.found[-1], bill=bill, model=self.found[-1].model or body.model)
        self._goes_on = False


def requests_of(store: Store, session_id: str) -> RequestList:
    """The requests of a session whose answers are on record. Reads the log once and keeps no message."""
    walk, problems = _Walk(), list[Problem]()
    for record in ReadingStore(as_kept(store), problems.append).read(session_id):
        walk.take(record)
    return RequestList(tuple(walk.found), walk.other_bills, tuple(problems))


# -- the log as it was -----------------------------------------------------------------------------


class PastStore(ReadingStore):
    """A store in which a session ends with an earlier record, for reading."""

    def __init__(self, store: Store, upto: AnsweredRequest) -> None:
        super().__init__(store, lambda problem: None)
        self.upto = upto

    def info(self, session_id: str) -> SessionInfo:
        """As `Store.info`, of the log up to then."""
        info: SessionInfo = self.store.info(session_id)
        return replace(info, records=self.upto.made_of, updated=self.upto.updated or info.created)

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """As `Store.read`, up to then."""
        last = self.upto.made_of if last is None else min(last, self.upto.made_of)
        return super().read(session_id, first=first, last=last, reverse=reverse) if first <= last else iter(())

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """As `Store.of_kinds`, up to then. Frequent kinds are not read from the end of the whole log."""
        if reverse and not _RARE.issuperset(kinds):
            return filter(of_any(kinds), self.read(session_id, first=first, reverse=True))
        found = takewhile(
            lambda record: record.n <= self.upto.made_of, super().of_kinds(session_id, kinds, first=first)
        )
        return reversed([*found]) if reverse else found

    def usage(self, session_id: str) -> Bills:
        """As `Store.usage`, up to then."""
        return usage_by_model(self.of_kinds(session_id, ("usage",)))


_RARE = frozenset({"configuration", "decision", "system"})


class PastRequest:
    """The request that `answered` tells of, made again without damaged records, which `RequestList.problems` names.

    Raises the errors of `Session.preview`, and InputError if the provider of the answer is not known.
    """

    def __init__(self, store: Store, session_id: str, answered: AnsweredRequest) -> None:
        self._kept, self.answered = as_kept(store), answered
        past = PastStore(self._kept, answered)
        self.session = Session(past, past.info(session_id))
        found = _target(self.session, answered)
        if found is None:
            raise InputError(f"which model record {answered.n} is of is not known, so its request cannot be made again")
        self.target: Target = found

    @cached_property
    def request(self) -> Request:
        """The request."""
        return self.session.preview(self.target)

    def cache_use(self, before: AnsweredRequest) -> tuple[CacheUse, int] | None:
        """How much of the beginning of an earlier request for the same model this one repeats, and the record from
        which on it differs (0: none). None if this request cannot be compared, as decisions were made for it alone."""
        past = PastStore(self._kept, before)
        context = Context(past, self.session.id)
        earlier = context.request(self.target, marks=context.strategy)
        past.upto = self.answered
        context.refresh()
        now = context.request(self.target, sent=False, marks=context.strategy)
        if now.view != self.request.view or now.cache is None:
            return None
        pairs = zip(earlier.view, now.view, strict=False)
        other = next((two for one, two in pairs if one != two), None)
        first = min(other.records, default=0) if other else 0
        decision = context.decisions.get(first) if other and other.stands_in else None
        return now.cache, first if decision is None else decision.first


def windows_of(store: Store, session_id: str, requests: Sequence[AnsweredRequest]) -> Iterator[tuple[Share, ...]]:
    """What filled the window of each of these requests, oldest first: what the log showed then, in the counts of the
    model that answered. Nothing for one whose model is not known, or for which the log was far beyond its budget."""
    targets: dict[tuple[str, str], Target | None] = {}
    if not requests:
        return
    past = PastStore(as_kept(store), requests[0])
    window = WindowOverTime(past, session_id)
    for each in requests:
        past.upto, bill = each, each.usage_record
        names = (bill.provider if bill else ""), each.model
        if names not in targets:
            targets[names] = _target(Session(past, past.info(session_id)), each)
        target = targets[names]
        yield window.now(target) if target else ()


def _target(session: Session, answered: AnsweredRequest) -> Target | None:
    """The target of a request: the session's own, unless another model answered."""
    own, bill = session.target, answered.usage_record
    provider = bill.provider if bill and bill.provider in PROVIDERS else ""
    if own is not None and provider in ("", own.provider) and (not answered.model or _alike(own.model, answered.model)):
        return own
    return chosen_target(session, provider, answered.model) or own


def _alike(asked: str, told: str) -> bool:
    """Whether the model that answered may be the one that was asked: providers report dated and internal names."""
    names = model_name(asked), model_name(told)
    if names[0].startswith(names[1]) or names[1].startswith(names[0]):
        return True
    entries = find_model(asked), find_model(told)
    return entries[1] is None or (entries[0] is not None and entries[0].facts == entries[1].facts)


def past_request(store: Store, session_id: str, n: int) -> PastRequest:
    """The request that record `n` answered, made again. Raises InputError if that record is no answer."""
    return PastRequest(store, session_id, requests_of(store, session_id).of(n))
