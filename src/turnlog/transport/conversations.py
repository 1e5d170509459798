"""Which session a request body belongs to: one of the conversations that a program has, or one on record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..log.actions import SHRINKING
from ..log.records import Decision, PartialAnswer, Record
from ..log.store import Store
from ..models.target import Target
from ..providers.protocol import Provider
from ..redaction import Redactor
from ..session import Event, Session
from ..session.absorbing import BY, PROGRAM, Past, digest_of, items_of, said_in
from .answers import Answering

OPENING, EXCHANGE, NAMED = "transport-opening", "transport-exchange", "transport-session"
"""Labels by which sessions are found again: digests of the first message and of the first exchange, and the name that
the program gave."""

_ASKING = frozenset(
    """user system developer tool function function_call_output custom_tool_call_output user_input
    function_result""".split()
)
"""Roles and types of items that are not a model's."""

_COMPARED = 20
"""How many sessions on record are compared with a body at most, the newest first."""


class Heard(Struct, frozen=True):
    """A request body as far as it tells which conversation it goes on with: digests of its items as they are spelled,
    one of all else in it, whether it begins a conversation, which items are the model's, and for a body of which that
    does not tell enough, what each message says."""

    items: list[bytes]
    around: bytes
    begins: bool = True
    answers: list[bool] = []
    said: list[bytes] = []

    @classmethod
    def of(cls, body: Mapping[str, Any], speaker: Provider) -> Heard:
        """The body without what its messages say."""
        items = items_of(body, speaker)
        system = [item for item in items if isinstance(item, dict) and item.get("role") in ("system", "developer")]
        rest = {key: value for key, value in body.items() if key != speaker.conversation}
        answers = [
            isinstance(item, dict) and _ASKING.isdisjoint((item.get("role"), item.get("type"))) for item in items
        ]
        begins = len(items) - len(system) < 2
        return cls([digest_of(item) for item in items], digest_of([rest, system]), begins, answers)

    def read(self, body: Mapping[str, Any], speaker: Provider, redactor: Redactor | None) -> Heard:
        """The body with what its messages say. Raises FormatError."""
        return replace(self, said=said_in(body, speaker, redactor))

    def has_answer_to(self, earlier: Heard) -> bool:
        """Whether the body that `earlier` begins has the answer to it."""
        return any(self.answers[len(earlier.items) :][:1])

    def likeness(self, past: Sequence[bytes], *, answered: bool) -> int:
        """How much the body has in common with a past, in messages; 0 if it goes on with another conversation. One
        message in common is enough for a past that has no answer yet: the first message of many conversations is the
        same."""
        pairs = zip(past, self.said, strict=False)
        same = next((i for i, (old, new) in enumerate(pairs) if old != new), min(len(past), len(self.said)))
        if same == len(past) or same > 1 or (same == len(self.said) and not answered):
            return same or 1
        if len({*past} & {*self.said}) < 2:
            return 0
        common = SequenceMatcher(None, past, self.said, autojunk=False).get_matching_blocks()
        found = sum(block.size for block in common)
        return found if found > 1 else 0


class Known:
    """What a session's records say about its conversation, as bodies are compared with it."""

    def __init__(self) -> None:
        self.past = Past()
        self.is_answered = False

    def take(self, records: Iterable[Record]) -> list[bytes]:
        """Take in records that came since; returns what the conversation says."""
        self.past.take(self._seen(records))
        return [unit.says for unit in self.past.units]

    def _seen(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            if record.message is not None:
                self.is_answered = record.message.role != "user" and not isinstance(record.body, PartialAnswer)
            yield record


class OpenConversation:
    """A session that a client has open, and what the last body of it was."""

    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name = session, name
        self.heard = Heard([], b"")
        self.arounds: set[bytes] = set()
        self.answering: Answering | None = None
        self.known = Known()
        self.left: set[bytes] = set()
        """What was said in messages that the program took back."""
        self.is_shortened = any(map(_shortens, session.log.of_kinds("decision")))
        """Whether turnlog left anything out for size."""
        self.is_mended, self.mended_around = False, b""
        """Whether the provider would refuse a part of the past, and what else in bodies (see `Heard.around`)."""
        self.told: set[str] = set()
        """What notes said."""
        self.checked = (0, b"")
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
        self.heard, self.answering = heard, Answering(self.session, target)
        self.arounds.add(heard.around)
        return self

    @property
    def is_free(self) -> bool:
        """Whether no answer is awaited."""
        return self.answering is None or self.answering.is_over

    @property
    def is_answered(self) -> bool:
        """Whether the last body got a whole answer."""
        return self.answering is not None and self.answering.is_answered

    def said(self) -> list[bytes]:
        """What the conversation on record says."""
        return self.known.take(self.session.log.on_disk.records(self.known.past.last + 1))

    def label(self) -> None:
        """Label the session so that it is found again, where that changed."""
        if self._labelled or not (said := self.said()):
            return
        self._labelled = len(said) > 1
        self.session.label({OPENING: _short(said[:1]), EXCHANGE: _short(said[:2]) if self._labelled else ""})


def _shortens(record: Record) -> bool:
    decision = record.body
    return isinstance(decision, Decision) and decision.action in SHRINKING and decision.detail.get(BY) != PROGRAM


def _short(said: Sequence[bytes]) -> str:
    return blake2b(b"".join(said), digest_size=8).hexdigest()


def continued(conversations: Iterable[OpenConversation], heard: Heard) -> OpenConversation | None:
    """The conversation whose last body is the beginning of this one; of several, one that had all else of the body as
    it is, since guardrails are told the same messages under other instructions, and of those the longest."""
    begun = [each for each in conversations if each.heard.items == heard.items[: len(each.heard.items)]]
    return max(begun, key=lambda each: (heard.around in each.arounds, len(each.heard.items)), default=None)


def likeliest(conversations: Iterable[OpenConversation], heard: Heard) -> OpenConversation | None:
    """The conversation that a body goes on with although the program changed its past, None if there is none. What was
    taken back and comes again is another branch, which gets a session of its own."""
    best, most = None, 0
    for each in conversations:
        found = heard.likeness(each.said(), answered=each.known.is_answered)
        if found > most and each.left.isdisjoint(heard.said):
            best, most = each, found
    if best is not None:
        best.left |= {*best.said()} - {*heard.said}
    return best


def on_record(store: Store, heard: Heard, where: Mapping[str, str], own: Iterable[str]) -> Iterator[str]:
    """The ids of the sessions that a body may go on with, the likeliest first: those in `own`, and those with the
    labels `where`."""
    labels = [{EXCHANGE: _short(heard.said[:2])}] if len(heard.said) > 1 else []
    ids = dict.fromkeys(own)
    for label in [*labels, {OPENING: _short(heard.said[:1])}]:
        ids |= dict.fromkeys(info.id for info in store.sessions(limit=_COMPARED, where={**where, **label}))
        found: dict[str, int] = {}
        for session_id in ids:
            known = Known()
            past = known.take(store.read(session_id))
            found[session_id] = heard.likeness(past, answered=known.is_answered)
        if any(found.values()):
            return iter(sorted((each for each in found if found[each]), key=lambda each: -found[each]))
    return iter(())
