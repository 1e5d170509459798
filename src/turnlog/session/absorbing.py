"""Taking in a conversation that another program keeps and sends whole each time: what of a request body is new, and
what the program changed in its past."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from .._platform.units import counted
from ..log.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Unknown, text_of
from ..log.records import Body, Decision, MessageRecord, Note, Record
from ..models.target import Target, not_settings
from ..providers import provider
from ..providers.protocol import Parsed, Provider
from ..providers.recognise import provider_of
from ..redaction import Redactor
from ..redaction.drafts import redacted
from ..requests.standalone import aimed, as_json
from ..view.fold import without_compaction
from .parts import Parts

BY = "by"
"""The entry of a decision's detail that says who made it, if turnlog did not."""

PROGRAM = "program"
"""Who made it, if it was the program whose conversation it is."""

_ENCODER = msgspec.json.Encoder()

_SYSTEM = "absorbed system text"
"""Topic of the note which says that the system text is the program's, and not what the session was opened with."""


class Unit(Struct, frozen=True, gc=False):
    """A message of a conversation, or an answer that may be spelled as several: a digest of what it says, and the
    records that hold it; if it stands for records that the program replaced, those, and the `decision` about them."""

    says: bytes
    first: int
    last: int
    decision: int = 0


class Past:
    """The conversation as the program has it, by the log: all that it said, without what it took back or replaced. What
    turnlog left out for size is in it, and system text at its beginning is not."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.last = 0
        """The number of the last record that was taken in."""
        self.decisions: dict[int, Decision] = {}
        """What the program replaced, by record number, as far as it holds."""
        self._answer: list[Message] = []  # the messages of the answer at the end
        self._answer_first = 0

    def take(self, records: Iterable[Record]) -> None:
        """Take in records that came since."""
        for record in records:
            self.last = record.n
            if isinstance(record.body, Decision):
                self._decide(record.n, record.body)
            elif (message := record.message) is not None and (said := without_compaction(message)) is not None:
                self._say(said, record.n)

    def _say(self, message: Message, n: int) -> None:
        if message.role == "system" and not self.units:
            return
        if message.role != "assistant":
            self._answer = []
        elif self._answer:
            self._answer.append(message)
            if self.units and self.units[-1].first >= self._answer_first:
                self.units.pop()
        else:
            self._answer, self._answer_first = [message], n
        if digest := says(self._answer or [message]):
            self.units.append(Unit(digest, self._answer_first if self._answer else n, n))

    def _decide(self, n: int, decision: Decision) -> None:
        replaces = decision.action == "compact" and decision.detail.get(BY) == PROGRAM
        if not (replaces or decision.action in ("rewind", "clear")):
            return
        if decision.action == "rewind":
            self.decisions = {made: each for made, each in self.decisions.items() if made < decision.first}
        covered = {i for i, unit in enumerate(self.units) if decision.first <= unit.first <= decision.last}
        place = min(covered, default=len(self.units))
        self.units = [unit for i, unit in enumerate(self.units) if i not in covered]
        if replaces:
            self.decisions[n] = decision
            shown = units_of(decision.replacement)
            self.units[place:place] = [Unit(digest, decision.first, decision.last, n) for digest, _ in shown]
        self._answer = []


def units_of(messages: Iterable[Message]) -> list[tuple[bytes, list[Message]]]:
    """Messages, those of one answer together, with what each says; what says nothing is with the one after it."""
    units: list[tuple[bytes, list[Message]]] = []
    silent: list[Message] = []
    for message in messages:
        group = [*silent, message]
        if units and message.role == "assistant" and units[-1][1][-1].role == "assistant" and not silent:
            group = [*units.pop()[1], message]
        silent = []
        if digest := says(group if message.role == "assistant" else [message]):
            units.append((digest, group))
        else:
            silent = group
    return units


def says(messages: Sequence[Message]) -> bytes:
    """A digest of what messages of one role say. An answer is spelled in many ways: of that, texts without spaces and
    calls; not what was thought, which programs leave out or shorten. Empty if they say nothing."""
    said: list[Any] = [_said(part) for message in messages for part in message.parts]
    if messages[-1].role == "assistant":
        texts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
        calls = [one for one in said if one[0] in ("call", "media")]
        text = "".join("".join(texts).split())
        said = [text, *calls] if text or calls else []
    content = [messages[-1].role, said]
    return blake2b(msgspec.json.encode(content, order="sorted"), digest_size=16).digest() if said else b""


def _said(part: Part) -> list[Any]:
    match part:
        case Text(text=text):
            return ["text", text]
        case ToolCall(id=call_id, name=name):
            arguments = part.arguments if isinstance(part.arguments, dict) else part.raw_arguments
            return ["call", call_id, name, arguments]
        case ToolResult(call_id=call_id, outcome=outcome):
            return ["result", call_id, outcome, [_said(each) for each in part.parts]]
        case Media():
            return ["media", part.sha256 or part.url, part.name]
        case Opaque() | Unknown():
            return ["other", part.kind, part.data]
        case Reasoning():
            return ["reasoning"]


class Difference(Struct, frozen=True):
    """How a conversation became another: units `first` to before `last` of the past are replaced by the new ones of
    `instead`, those from `kept` on are taken back, and the new ones from `added` on come after it."""

    first: int
    last: int
    instead: tuple[int, int]
    kept: int
    added: int


def compared(before: Sequence[Unit], after: Sequence[bytes]) -> Difference:
    """What changed. The end of the past that is still there holds: what comes after it in `after` is new, what comes
    after it in `before` was taken back, and what differs ahead of it was replaced."""
    old_says = [unit.says for unit in before]
    pairs = zip(old_says, after, strict=False)
    same = next((i for i, (old, new) in enumerate(pairs) if old != new), min(len(before), len(after)))
    blocks = SequenceMatcher(None, old_says[same:], after[same:], autojunk=False).get_matching_blocks()[:-1]
    first, last, new_last, kept, added = same, same, same, same, same
    if blocks:
        old, new, size = blocks[-1]
        last, new_last, kept, added = same + old, same + new, same + old + size, same + new + size
        if last == same:  # something was put in between: the message after it is shown anew
            last, new_last = last + 1, new_last + 1
    new_first = first
    if any(unit.decision for unit in before[kept:]):  # a part of what stands for others: no record is to be taken back
        last = kept = len(before)
        new_last = added if kept > same or blocks else len(after)
    while first < last and first and before[first].decision and before[first - 1].decision == before[first].decision:
        first, new_first = first - 1, new_first - 1
    while first < last < kept and before[last].decision and before[last - 1].decision == before[last].decision:
        last, new_last = last + 1, new_last + 1
    return Difference(first, last, (new_first, new_last), kept, added)


class Absorber:
    """Takes in the request bodies of one session, one after another."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._past = Past()
        self._seen: list[int] = []  # a digest of each item of the last body, as it was spelled
        self._said = 0  # how many units of the past that body had
        self._rest = 0  # a digest of everything else in it
        self._outside = False  # whether system text stood beside its conversation
        notes = (record.body for record in parts.log.of_kinds("note"))
        self._has_system = any(isinstance(body, Note) and body.topic == _SYSTEM for body in notes)  # the program, once

    def absorb(self, body: Mapping[str, Any], given: Target | None) -> None:
        """Take in a body, for a target; None: the one that the body is for. Raises FormatError, InputError."""
        with as_json(body) as plain:
            speaker = provider(given.provider if given is not None else provider_of(plain))
            key = speaker.conversation
            rest = {name: value for name, value in plain.items() if name != key}
            items = items_of(plain, speaker)
            digests, rest_digest = [spelled(item) for item in items], spelled(rest)
            known = len(self._seen) if self._seen and digests[: len(self._seen)] == self._seen else 0
            around = None if known and rest_digest == self._rest else speaker.parse({**rest, key: []})
            if around is not None and bool(around.messages) != self._outside:
                known = 0  # system text came, or left
            parsed = speaker.parse({key: items[known:]})
        messages = parsed.messages
        for data in parsed.blobs.values():
            self._parts.store.put_blob(data)
        if around is not None:
            self._configure(around, speaker, given)
        if known:
            self._extend(messages, self._said)
            if around is not None and around.messages:
                self._begin_with(_text_of(around.messages))
        else:
            self._outside = bool(around is not None and around.messages)
            leading = _leading(messages)
            beginning = (*(around.messages if around is not None else ()), *messages[:leading])
            self._whole(_text_of(beginning), messages[leading:])
        answers_last = bool(items) and bool(messages) and messages[-1].role == "assistant"
        self._seen, self._rest = ([] if answers_last else digests), rest_digest

    def _configure(self, around: Parsed, speaker: Provider, given: Target | None) -> None:
        """Take over the model, the tools and the settings of a body, as far as they changed."""
        configurer, context = self._parts.configurer, self._parts.context
        wanted = around.configuration
        target = given or aimed(around, speaker.name, "")
        now = configurer.target
        if now is None or any(
            getattr(now, name) != getattr(target, name) for name in ("provider", "model", "base_url", "server")
        ):
            configurer.switch(msgspec.structs.replace(target, settings={}), "the program asks another model")
        held = context.configuration.settings
        elsewhere = not_settings()  # what is empty, such as a list of no tools, parsers keep as it was sent
        said = {name: value for name, value in wanted.settings.items() if name not in elsewhere}
        settings = {**{name: None for name in held if name not in said}, **said}
        configurer.configure(wanted.tools, None, None, settings)
        configurer.ask_for(wanted.answer_schema)

    def _whole(self, system: str, messages: Sequence[Message]) -> None:
        """Take in a whole conversation. If it has system text only now, or none any more, it is recorded anew: system
        text has its place at the beginning. What the session itself was given as system text stays."""
        past, log = self._past, self._parts.log
        past.take(log.on_disk.records(past.last + 1))
        comes = bool(system) and not self._parts.configurer.text_of_section("")
        leaves = self._has_system and not system and self._parts.configurer.text_of_section("")
        if past.units and (comes or leaves):
            why = f"the program {'set' if system else 'removed'} the system text"
            self._parts.journal.append_at(lambda n: [Decision("rewind", 1, n - 1, why, {BY: PROGRAM})], exact=False)
            past.take(log.on_disk.records(past.last + 1))
        is_new = not past.units
        if is_new:
            self._begin_with(system)
        self._extend(messages, 0)
        if not is_new:
            self._begin_with(system)  # last: what is taken back includes the decisions about it

    def _begin_with(self, text: str) -> None:
        if text:
            if not self._has_system:
                self._parts.journal.append(Note(_SYSTEM, "from here on, the system text is the program's"))
                self._has_system = True
            self._parts.configurer.begin_with(text)

    def _extend(self, messages: Sequence[Message], since: int) -> None:
        """Record what is new in a conversation, given from unit `since` of the past on, and what the program changed in
        it."""
        past, log = self._past, self._parts.log
        past.take(log.on_disk.records(past.last + 1))
        units = units_of(messages)
        before = past.units[since:]
        digests = [digest for digest, _ in units]
        if digests[: len(before)] != [unit.says for unit in before]:  # else the past is as it was, secrets or not
            digests = _as_kept(units, log.redactor)
        change = compared(before, digests)

        def bodies(n: int) -> list[Body]:
            made: list[Body] = []
            if gone := before[change.kept :]:
                why = f"the program took {counted(len(gone), 'message')} back"
                first = gone[0].first
                made.append(Decision("rewind", first, n - 1, why, {BY: PROGRAM}))
                made += (each for at, each in past.decisions.items() if at >= first > each.last)  # these hold
            if covered := before[change.first : change.last]:
                shown = [message for _, group in units[slice(*change.instead)] for message in group]
                why = f"the program {'replaced' if shown else 'left out'} {counted(len(covered), 'message')}"
                first, last = covered[0].first, max(unit.last for unit in covered)
                detail = {"replacement": msgspec.to_builtins(shown), "at": first, "system_too": True, BY: PROGRAM}
                made.append(Decision("compact", first, last, why, detail))
            made += (MessageRecord(message) for _, group in units[change.added :] for message in group)
            return made

        if bodies(0):
            self._parts.journal.append_at(bodies, exact=False)
            past.take(log.on_disk.records(past.last + 1))
        self._said = len(past.units)


def _text_of(messages: Iterable[Message]) -> str:
    return "\n\n".join(filter(None, map(text_of, messages)))


def items_of(plain: Mapping[str, Any], speaker: Provider) -> list[Any]:
    """The items of the conversation in a body."""
    items = plain.get(speaker.conversation) or []
    return items if isinstance(items, list) else [{"role": "user", "content": items}]


def said_in(plain: Mapping[str, Any], speaker: Provider, redactor: Redactor | None) -> list[bytes]:
    """What a body says, as `Past.units` would have it: a digest of each message, as it is on record. Raises
    FormatError."""
    messages = speaker.parse({speaker.conversation: items_of(plain, speaker)}).messages
    return _as_kept(units_of(messages[_leading(messages) :]), redactor)


def _leading(messages: Sequence[Message]) -> int:
    """How many messages at the beginning are system text."""
    return next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))


def _as_kept(units: Iterable[tuple[bytes, list[Message]]], redactor: Redactor | None) -> list[bytes]:
    """What units of messages say on record."""
    if redactor is None:
        return [digest for digest, _ in units]
    return [says([redacted(MessageRecord(each), redactor)[0].message for each in group]) for _, group in units]


def spelled(value: Any) -> int:
    """A number for JSON as it is spelled, the same in this process only: bodies of hundreds of kilobytes go through it
    with each request, and digests that others can check take four times as long."""
    return hash(_ENCODER.encode(value))
