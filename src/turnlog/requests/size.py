"""How large records, messages and requests are, by one counter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from msgspec.structs import replace

from ..log.messages import Media, Message, Tool, ToolCall, ToolResult, compact_json, free_text
from ..log.records import Count, MessageRecord, PartialAnswer, Record
from ..providers.protocol import Provider
from ..tokens.counters import count_at_once, count_frame, count_message, count_tools, joins_results
from ..tokens.protocol import BlobReader, Certainty, Choice, Counter, Tally
from ..view.added import Gauge
from ..view.compaction.blocks import Item
from ..view.fold import as_shown
from ..view.repair.media_room import Room, held, longest_side, room_for
from ..view.rules import Rules
from ..view.sent import Known
from ..view.types import Shown
from .pieces import as_known
from .translate import Plan

_REMEMBERED = 20_000
"""So many sizes are remembered that no record has."""


class Sizing:
    """Sizes by a counter; `blob` reads media."""

    def __init__(self, counter: Counter, blob: BlobReader) -> None:
        self.counter = counter
        self._blob = blob
        self._recounted: dict[tuple[int, int], int] = {}
        self._sides: dict[str, int] = {}
        self._plan: Plan | None = None
        self._fixed: dict[bool, int] = {}
        self._gauges: dict[tuple[str, bool, bool], Gauge] = {}

    @property
    def certainty(self) -> Certainty:
        """How far to trust what is counted."""
        return count_frame(self.counter, system=False, tools=False).certainty

    def message(self, message: Message) -> int:
        """Tokens of a message by itself."""
        return count_message(message, self.counter, self._blob).tokens

    def count(self, message: Message, earlier: Iterable[Message]) -> Count:
        """The count of a message that comes next, as its record keeps it; `earlier` are those before it, the newest
        first."""
        if self._joins_results and _answers_several(message, earlier):
            return count_at_once(message, self.counter, self._blob)
        return count_message(message, self.counter, self._blob)

    def record(self, record: Record) -> int:
        """Tokens of a message record: as counted when it was recorded, if this counter did and it is shown so."""
        kept = self._kept(record)
        if kept is not None:
            return kept.tokens
        if not isinstance(record.body, (MessageRecord, PartialAnswer)):
            return 0
        key = record.n, len(record.raw or b"")
        if key not in self._recounted:
            self._recounted[key] = sum(self.message(shown.message) for shown in as_shown(record))
        return self._recounted[key]

    def item(self, shown: Shown, record: Record) -> Item:
        """A message that is shown as its record has it, with its size."""
        kept = self._kept(record)
        return Item(shown, self.record(record), shown, record.n, counted_at_once=kept is not None and kept.at_once)

    def _kept(self, record: Record) -> Count | None:
        count = record.body.count if isinstance(record.body, MessageRecord) else None
        return count if count is not None and count.counter == self.counter.id else None

    @cached_property
    def _joins_results(self) -> bool:
        return joins_results(self.counter)

    def room(self, media: Sequence[Media], rules: Rules) -> Room:
        """The room for these media in one request; the bytes of each are looked at once."""
        return room_for(held(media, rules, self._side), rules)

    def has_room(self, media: Sequence[Media], rules: Rules) -> bool:
        """Whether one request has room for these media."""
        now = held(media, rules, self._side)
        return room_for(now, rules).holds(now)

    def _side(self, media: Media) -> int:
        if media.sha256 not in self._sides:
            self._sides[media.sha256] = longest_side(media, self._blob)
        return self._sides[media.sha256]

    def fixed(self, plan: Plan, *, system: bool) -> int:
        """Tokens of a request by a plan beside its messages: of the tools that it is given, of the schema that its
        answer has to keep to, and of what stands around all that."""
        if plan is not self._plan:
            self._plan, self._fixed = plan, {}
        if system not in self._fixed:
            schemas = schemas_of(plan.local.settings, self.counter).tokens
            self._fixed[system] = schemas + self._around(
                as_declared(plan.local.tools, plan.rules), given_choice(plan), system=system
            )
        return self._fixed[system]

    def _around(self, tools: Sequence[Tool], choice: Choice = "auto", *, system: bool) -> int:
        frame = count_frame(self.counter, system=system, tools=bool(tools)).tokens
        return frame + (count_tools(tools, self.counter, choice).tokens if tools else 0)

    def gauge(self, plan: Plan, *, declares: bool, system: bool) -> Gauge:
        """How to count what a request by a plan takes beside the sizes of its messages. `declares` says that it has no
        tools but those that its calls are declared from, `system` that it has system text."""
        key = plan.provider.name, declares, system
        if key not in self._gauges:
            at_once = self._message_at_once if self._joins_results else None
            tools = partial(self._declarations, system=system) if declares else None
            self._gauges[key] = Gauge(self.message, at_once, tools, self.known(plan))
        return self._gauges[key]

    def _message_at_once(self, message: Message) -> int:
        return count_at_once(message, self.counter, self._blob).tokens

    def _declarations(self, tools: Sequence[Tool], *, system: bool) -> int:
        return self._around(tools, system=system) - self._around((), system=system)

    def known(self, plan: Plan) -> Known:
        """What gives messages as the provider of a plan knows them."""
        return lambda view: as_known(view, plan.provider, self._blob, [])

    def trim(self) -> None:
        """Let go of what is remembered, if it is very much."""
        if len(self._recounted) > _REMEMBERED:
            self._recounted.clear()
        for gauge in self._gauges.values():
            if len(gauge.kept) > _REMEMBERED:
                gauge.kept.clear()


def _answers_several(message: Message, earlier: Iterable[Message]) -> bool:
    """Whether a message holds results of calls that were made at once: in one answer, or in answers on end."""
    answered = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
    called: list[str] = []
    for before in earlier if answered else ():
        if before.role == "assistant":
            called += [part.id for part in before.parts if isinstance(part, ToolCall)]
        elif called:
            break
    return len(called) > 1 and not answered.isdisjoint(called)


def as_declared(tools: Sequence[Tool], rules: Rules) -> Sequence[Tool]:
    """Tools as requests by these rules declare them: no more than they may, and one that takes free text as a function
    of a text, where the provider knows no other."""
    tools = tools[: rules.tools_max]
    if "custom" in rules.call_kinds:
        return tools
    return [replace(tool, kind="function", parameters=free_text()) if tool.kind == "custom" else tool for tool in tools]


def schemas_of(settings: Mapping[str, Any], counter: Counter) -> Tally:
    """What the schemas in a request's settings take: those that its answer has to keep to, and functions, as the Chat
    API's bodies declared tools at first. Where the provider adds what it keeps itself, the whole is an estimate."""
    tally = Tally(certainty="estimated" if any(settings.get(key) for key in _ELSEWHERE) else "exact")
    if functions := _functions(settings):
        around = counter.frame(system=False, tools=True).tokens - counter.frame(system=False, tools=False).tokens
        tally += counter.tools(functions) + Tally(framing=around, certainty="estimated")
    for schema in _answer_schemas(settings):
        tally += Tally(framing=counter.text(compact_json(schema)), certainty="estimated")
    return tally


def given_choice(plan: Plan) -> Choice:
    """The choice among the tools that requests by a plan are given; none was made among those that are only declared
    because they were called."""
    return choice_of(plan.local.settings, plan.provider) if plan.local.tools else "auto"


def choice_of(settings: Mapping[str, Any], speaker: Provider) -> Choice:
    """The tool choice in a request's settings, as counters know it."""
    words = speaker.tool_choice(settings) or "auto"
    if words.startswith("tool:"):
        return "named"
    return "required" if words == "required" else "none" if words == "none" else "auto"


_SCHEMAS = (
    ("response_format", "json_schema", "schema"),
    ("text", "format", "schema"),
    ("output_format", "schema"),
    ("output_config", "format", "schema"),
    ("generationConfig", "responseSchema"),
    ("generationConfig", "responseJsonSchema"),
    ("generationConfig", "responseFormat", "text", "schema"),
)
"""Where requests say what JSON the answer must be, in whatever spelling of their keys (`response_schema`)."""


_ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Settings by which the provider puts more into a request than it holds."""


def _functions(settings: Mapping[str, Any]) -> list[Tool]:
    given = settings.get("functions")
    return [
        Tool(str(each.get("name") or ""), str(each.get("description") or ""), parameters)
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict) and isinstance(parameters := each.get("parameters"), (dict, type(None)))
    ]


def _answer_schemas(settings: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that the answer has to keep to: billed about as their compact JSON."""
    for path in _SCHEMAS:
        found: Any = settings
        for key in path:
            there = found.items() if isinstance(found, Mapping) else ()
            found = next((value for name, value in there if _plain(name) == _plain(key)), None)
        if found:
            yield found


def _plain(key: str) -> str:
    return key.replace("_", "").lower()
