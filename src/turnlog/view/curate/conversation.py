"""Curate the outputs of a conversation, one after another, on their way into a view.

A new output loses only what says nothing, and a file that is read again points to the earlier read, which a provider's
prompt cache holds. Only a giant, an output that takes much of the budget, is shortened at once; all other outputs are
shortened when a decision needs room.

The form of an output depends only on the records up to it and on the decisions in force, so it is the same in every
later view, until a decision changes what is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec import Struct

from ...log.budget import USUAL_STRATEGY, Strategy
from ...log.messages import Text, ToolCall, ToolResult
from ...log.records import Configuration, Decision, Record
from ..repair.pairing import Pairing
from ..types import Shown
from .curate import curated
from .marks import is_marked
from .reading import LEAST_READ, ReadLines, ShownLines, folded, read_of
from .recognise import kind_of

STEP = "curate"
"""The step of a strategy with which outputs are curated."""


GIANT = 0.1
"""The share of the budget from which an output counts as a giant."""

_BYTES_A_TOKEN = 4
"""An estimate that depends on no tokenizer, so that all targets are shown the same of a giant."""


class Rule(Struct, frozen=True):
    """Whether outputs that are recorded now are curated; the tokens of a giant, 0 if there is none; and the kinds of
    output that the user declared for tools, by name."""

    on: bool
    giant: float = 0
    outputs: Mapping[str, str] = {}

    @classmethod
    def of(cls, strategy: Strategy | None, configuration: Configuration | None = None) -> Rule:
        """The rule of a strategy (None: the default) and of the tools and the budget of a configuration."""
        tools = configuration.tools if configuration is not None else ()
        budget = configuration.budget if configuration is not None else None
        steps = (strategy or USUAL_STRATEGY).steps
        giant = GIANT * budget.max_tokens if budget is not None else 0
        return cls(STEP in steps, giant, {tool.name: tool.output for tool in tools if tool.output})

    def is_giant(self, text: str) -> bool:
        """Whether a text takes more of the budget than an output should."""
        return 0 < self.giant * _BYTES_A_TOKEN < len(text.encode("utf-8", "surrogatepass"))


class CurationRules:
    """The curation rules of a log. An output is curated by the configuration in force when it was recorded, so that a
    new strategy does not change what was sent."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._starts: list[int] = []
        self._rules: list[Rule] = [Rule.of(None)]
        for record in records:
            self.take(record)

    def take(self, record: Record) -> None:
        """Take in the next record."""
        if isinstance(record.body, Configuration):
            rule = Rule.of(record.body.strategy, record.body)
            if rule != self._rules[-1]:
                self._starts.append(record.n)
                self._rules.append(rule)

    def at(self, n: int) -> Rule:
        """The rule for record `n`."""
        return self._rules[bisect_left(self._starts, n)]


def outputs_of(decisions: Iterable[Decision]) -> frozenset[int]:
    """The records whose outputs these decisions curate, even if the rule left them alone when they were recorded."""
    curations = (decision for decision in decisions if decision.action == STEP)
    return frozenset(n for decision in curations for n in decision.detail.get("outputs", ()))


class _Known(Struct):
    """What is known about one text, `source`: the call that it answers, its kind, and the text to show for it."""

    call: ToolCall
    source: str
    read: ReadLines | None = None
    text: str | None = None
    kind: str = ""


_MOST_KNOWN = 5_000
"""The number of texts about which something is remembered."""

_MOST_READ = 1_000_000
"""Characters. A longer text is not curated: how much of it is shown is left to the budget."""


class Curator:
    """Curates the messages of one view, given in order.

    `rules` say what is curated; the outputs of the records `also` are shortened whatever their size. Messages of
    `pinned` records stay unchanged. Without `named`, marks name no records, for a conversation that has none. With
    `whole_reads`, a file is shown each time it was read. What the curator `before` knows about texts is reused.
    """

    def __init__(
        self,
        rules: CurationRules | Rule,
        pinned: Collection[int] = (),
        before: Curator | None = None,
        *,
        also: Collection[int] = (),
        named: bool = True,
        whole_reads: bool = False,
    ) -> None:
        self._rules = rules
        self._pinned = pinned
        self._also = also
        self._named = named
        self._whole_reads = whole_reads
        self._known: dict[tuple[int, int, int, bool], _Known] = before._known if before is not None else {}
        self._pairing = Pairing()
        self._ledger = ShownLines()
        self.kinds: dict[int, str] = {}
        """The kinds of the curated outputs, by record."""

    def again(
        self,
        pinned: Collection[int] | None = None,
        also: Collection[int] | None = None,
        *,
        whole_reads: bool = False,
    ) -> Curator:
        """A curator for another view of the same conversation, with other `pinned` records and, if given, other outputs
        to curate `also`."""
        pinned = self._pinned if pinned is None else pinned
        also = self._also if also is None else also
        return Curator(self._rules, pinned, self, also=also, named=self._named, whole_reads=whole_reads)

    def shortens(self, n: int) -> bool:
        """Whether the outputs of a record are shortened whatever their size."""
        return n in self._also

    def see(self, shown: Shown, raw: Shown) -> Shown:
        """The next message, curated: the same object if nothing changes. `raw` is the message as recorded: what a
        decision changed is not curated."""
        message = shown.message
        self._pairing.see(shown)
        if message.role == "assistant":
            for part in message.parts:
                if isinstance(part, ToolCall):
                    self._ledger.edited(part)
            return shown
        if message.role != "user" or shown.stands_in or not shown.records:
            return shown
        parts = [
            self._result(shown.records[0], i, part) if isinstance(part, ToolResult) and part is recorded else part
            for i, (part, recorded) in enumerate(zip(message.parts, raw.message.parts, strict=False))
        ]
        if all(new is old for new, old in zip(parts, message.parts, strict=False)):
            return shown
        treatment = "curated" if shown.treatment == "verbatim" else shown.treatment
        whole = msgspec.structs.replace(message, parts=(*parts, *message.parts[len(parts) :]))
        return Shown(whole, shown.records, treatment)

    def see_ahead(self, raw: Shown) -> None:
        """Shorten the outputs of a message that was seen before, as a decision is likely to have them shortened."""
        n = raw.records[0]
        for i, part in enumerate(raw.message.parts):
            for j in range(len(part.parts)) if isinstance(part, ToolResult) else ():
                known = self._known.get((n, i, j, False))
                rule = self._rules if isinstance(self._rules, Rule) else self._rules.at(n)
                if known is not None and rule.on and (n, i, j, True) not in self._known:
                    self._known[n, i, j, True] = self._found(n, known.call, known.source, rule, True)

    def _result(self, n: int, i: int, result: ToolResult) -> ToolResult:
        if result.synthetic or not any(
            isinstance(part, Text) and len(part.text) >= LEAST_READ for part in result.parts
        ):
            return result
        rule = self._rules if isinstance(self._rules, Rule) else self._rules.at(n)
        answered = self._pairing.answered.get(i)
        call = answered[1] if answered is not None else ToolCall(result.call_id, result.name)
        inner = [
            self._text((n, i, j), call, part, rule) if isinstance(part, Text) else part
            for j, part in enumerate(result.parts)
        ]
        if all(new is old for new, old in zip(inner, result.parts, strict=True)):
            return result
        return msgspec.structs.replace(result, parts=tuple(inner))

    def _text(self, place: tuple[int, int, int], call: ToolCall, part: Text, rule: Rule) -> Text:
        if len(part.text) > _MOST_READ:
            return part
        also = self.shortens(place[0])
        wanted = rule.on or also
        cached = self._known.get((*place, also))
        stale = cached is None or cached.call != call or cached.source != part.text  # a scrub changes records
        if cached is None or stale or (wanted and not cached.kind):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            cached = self._known[*place, also] = self._found(place[0], call, part.text, rule, also)
        text, on = cached.text, wanted and place[0] not in self._pinned
        if cached.read is not None:
            since = self._ledger.repeats(cached.read, place[0])
            references = [0] * len(since)
            if on and not self._whole_reads and any(since):
                text, references = folded(cached.read, since, named=self._named)
            self._ledger.shown(cached.read, references, place[0])
        if text is None or not on or text == part.text:
            return part
        self.kinds[place[0]] = cached.kind
        return Text(text)

    def _found(self, n: int, call: ToolCall, text: str, rule: Rule, also: bool) -> _Known:
        output = rule.outputs.get(call.name, "")
        if (output or kind_of(call, text)) == "read":
            return _Known(call, text, None if is_marked(text) else read_of(call, text), kind="read")
        if not (rule.on or also):
            return _Known(call, text)
        loses = also or rule.is_giant(text)
        curation = curated(call, text, output, n if self._named else 0, loses=loses)
        return _Known(call, text, text=curation.text if curation.saved else None, kind=curation.kind)
