"""Which session a request body belongs to: one of the conversations that a program has, or one on record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..log.actions import SHRINKING
from ..log.records import Decision, MessageRecord, PartialAnswer, Record
from ..log.store import Store
from ..models.target import Target
from ..providers.protocol import Provider
from ..redaction import Redactor
from ..session import Event, Session, SessionLog
from ..session.absorbing import BY, PROGRAM, Past, items_of, said_in, spelled
from ..stores.labels import OF_TRANSPORT
from .answers import Answering

OPENING, EXCHANGE, NAMED = (f"{OF_TRANSPORT}{name}" for name in ("opening", "exchange", "session"))
"""Labels by which sessions are found again: digests of the first message and of the first exchange, and the name that
the program gave."""

_ASKING = frozenset(
    """user system developer tool function function_call_output custom_tool_call_output user_input
    function_result""".split()
)
"""Roles and types of items that are not a model's."""

_COMPARED = 20
"""How many sessions on record are compared with a body at most, the newest first."""

_WHOLE = 1 << 30
"""What a conversation is worth of which a body has all."""

_LEAST = 3
"""How many messages a body has in common with a conversation that the program changed. Many begin in the same words,
and get the same answer."""


class Heard(Struct, frozen=True):
    """A request body as far as it tells which conversation it goes on with: digests of its items as they are spelled,
    one of all else in it, whether it begins a conversation, which items are the model's, and for a body of which that
    does not tell enough, what each message says."""

    items: list[int]
    around: int
    begins: bool = True
    answers: list[bool] = []
    said: list[bytes] = []

    @classmethod
    def of(cls, body: Mapping[str, Any], speaker: Provider) -> Heard:
        """The body without what its messages say."""
        items = items_of(body, speaker)
        system = [item for item in items if isinstance(item, dict) and item.get("role") in ("system", "developer")]
        rest = {key: value for key, value in body.items() if key != speaker.conversation}
        kinds = [(item.get("role"), item.get("type")) if isinstance(item, dict) else ("user",) for item in items]
        answers = [_ASKING.isdisjoint(kind) for kind in kinds]
        begins = len(items) - len(system) < 2
        return cls([spelled(item) for item in items], spelled([rest, system]), begins, answers)

    def read(self, body: Mapping[str, Any], speaker: Provider, redactor: Redactor | None) -> Heard:
        """The body with what its messages say. Raises FormatError."""
        return replace(self, said=said_in(body, speaker, redactor))

    def has_answer_to(self, earlier: Heard) -> bool:
        """Whether the body that `earlier` begins has the answer to it."""
        return any(self.answers[len(earlier.items) :][:1])

    def likeness(self, known: Known) -> int:
        """How many messages the body has in common with a conversation, more than any number if it has all of it; 0 if
        it goes on with another one. What a program changed is known by an answer that came over this wire: examples
        and greetings that a program puts into each conversation are none."""
        past = known.said
        same = _in_common(past, self.said)
        if same == len(past):
            return _WHOLE + same
        if same == len(self.said) and not known.is_answered:
            return same
        if len({*past} & {*self.said}) < _LEAST:
            return 0
        blocks = SequenceMatcher(None, past, self.said, autojunk=False).get_matching_blocks()
        places = [at for block in blocks for at in range(block.a, block.a + block.size)]
        return len(places) if len(places) >= _LEAST and any(known.came(at) for at in places) else 0


def _in_common(past: Sequence[bytes | int], said: Sequence[bytes | int]) -> int:
    """How many messages at the beginning are the same."""
    pairs = zip(past, said, strict=False)
    return next((i for i, (old, new) in enumerate(pairs) if old != new), min(len(past), len(said)))


class Known:
    """What a session's records say about its conversation, as bodies are compared with it."""

    def __init__(self) -> None:
        self._past = Past()
        self._came: set[int] = set()
        self.is_answered = False

    def take(self, log: SessionLog) -> Known:
        """Take in records that came since."""
        self._past.take(map(self._seen, log.records(self._past.last + 1)))
        return self

    @property
    def said(self) -> list[bytes]:
        """What each message says."""
        return [unit.says for unit in self._past.units]

    def came(self, at: int) -> bool:
        """Whether a message came as an answer over a wire."""
        return self._past.units[at].first in self._came

    def _seen(self, record: Record) -> Record:
        if record.message is not None:
            self.is_answered = record.message.role != "user" and not isinstance(record.body, PartialAnswer)
        if isinstance(record.body, MessageRecord) and (record.body.model or record.body.response_id):
            self._came.add(record.n)
        return record


class OpenConversation:
    """A session that a client has open, and what the last body of it was. `owner` tells the client's labels apart."""

    def __init__(self, session: Session, name: str, owner: bytes) -> None:
        self.session, self.name, self._owner = session, name, owner
        self.heard = Heard([], 0)
        self.arounds: set[int] = set()
        self.answering: Answering | None = None
        self._known = Known()
        self.left: set[bytes] = set()
        """Digests of what the program took back, each with all that was before it."""
        self.is_shortened = any(map(_shortens, session.log.of_kinds("decision")))
        """Whether turnlog left anything out for size."""
        self.is_mended, self.mended_around = False, 0
        """Whether the provider would refuse a part of the past, and what else in bodies (see `Heard.around`)."""
        self.told: set[str] = set()
        """What notes said."""
        self.checked = (0, 0)
        """How many items of the last body were checked, and what else in it."""
        session.on_event(self._happened)
        self._labelled = False  # with all labels of the conversation as it is

    def _happened(self, event: Event) -> None:
        self.is_shortened = self.is_shortened or (event.record is not None and _shortens(event.record))

    def take(self, heard: Heard, target: Target) -> OpenConversation:
        """Take a body. The conversation is not free until the answer has come."""
        self._labelled = self._labelled and not heard.said
        known = len(self.heard.items)
        self.checked = (known if heard.items[:known] == self.heard.items else 0, self.heard.around)
        self.heard, self.answering = heard, Answering(self.session, target, self.label)
        self.arounds.add(heard.around)
        return self

    @property
    def is_free(self) -> bool:
        """Whether no answer is awaited."""
        return self.answering is None or not self.answering.is_awaited

    @property
    def is_answered(self) -> bool:
        """Whether the last body got a whole answer."""
        return self.answering is not None and self.answering.is_answered

    def known(self) -> Known:
        """What the log says."""
        return self._known.take(self.session.log.on_disk)

    def label(self) -> None:
        """Label the session so that it is found again, where that changed."""
        if not self._labelled and (said := self.known().said):
            self._labelled = len(said) > 1
            self.session.label(labels_found_by(self._owner, said))


def labels_found_by(owner: bytes, said: Sequence[bytes]) -> dict[str, str]:
    """The labels by which a session is found again in which this was said."""
    exchange = _short(owner, said[:2]) if len(said) > 1 else ""
    return {OPENING: _short(owner, said[:1]), EXCHANGE: exchange} if said else {}


def _shortens(record: Record) -> bool:
    decision = record.body
    return isinstance(decision, Decision) and decision.action in SHRINKING and decision.detail.get(BY) != PROGRAM


def _short(owner: bytes, said: Sequence[bytes]) -> str:
    return blake2b(owner + b"".join(said), digest_size=8).hexdigest()


def _chain(said: Sequence[bytes]) -> list[bytes]:
    """A digest of each message with all that is before it."""
    return list(accumulate(said, lambda before, each: blake2b(before + each, digest_size=16).digest(), initial=b""))[1:]


def continued(conversations: Iterable[OpenConversation], heard: Heard) -> list[OpenConversation]:
    """The conversations whose last body is the beginning of this one: first those that had all else of the body as it
    is, since guardrails are told the same messages under other instructions, and of those the longest."""
    begun = [each for each in conversations if 0 < len(each.heard.items) == _in_common(each.heard.items, heard.items)]
    return sorted(begun, key=lambda each: (heard.around not in each.arounds, -len(each.heard.items)))


def likeliest(conversations: Iterable[OpenConversation], heard: Heard) -> OpenConversation | None:
    """The conversation that a body goes on with although the program changed its past, None if there is none. What was
    taken back and comes again is another branch, which gets a session of its own."""
    best, most, chain = None, 0, _chain(heard.said)
    for each in conversations:
        found = heard.likeness(each.known())
        if found > most and each.left.isdisjoint(chain):
            best, most = each, found
    if best is not None and (same := _in_common(past := best.known().said, heard.said)):
        best.left |= {*_chain(past)[same:]}
    return best


def on_record(store: Store, heard: Heard, where: Mapping[str, str], owner: bytes, own: Iterable[str]) -> Iterator[str]:
    """The ids of the sessions that a body may go on with, the likeliest first: those in `own`, and those of the owner
    with the labels `where`."""
    labels = [{EXCHANGE: _short(owner, heard.said[:2])}] if len(heard.said) > 1 else []
    ids = dict.fromkeys(own)
    for label in [*labels, {OPENING: _short(owner, heard.said[:1])}]:
        ids |= dict.fromkeys(info.id for info in store.sessions(limit=_COMPARED, where={**where, **label}))
        found = {session_id: heard.likeness(Known().take(SessionLog(store, session_id))) for session_id in ids}
        if any(found.values()):
            return iter(sorted((each for each in found if found[each]), key=lambda each: -found[each]))
    return iter(())
