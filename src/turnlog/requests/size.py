"""How large records, messages and requests are, by one counter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from ..log.messages import (
    Media,
    Message,
    Part,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    compact_json,
    free_text,
    shown_apart,
    unchanged,
)
from ..log.records import Count, MessageRecord, PartialAnswer, Record
from ..providers.protocol import Provider
from ..tokens.counters import count_at_once, count_frame, count_message, count_tools, joins_results
from ..tokens.protocol import BlobReader, Certainty, Choice, Counter, Tally
from ..view.compaction.blocks import Item
from ..view.fold import as_shown
from ..view.repair.clean import is_blank
from ..view.repair.media_room import Room, held, longest_side, room_for
from ..view.rules import Rules
from ..view.types import Shown
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

    @property
    def certainty(self) -> Certainty:
        """How far to trust what is counted."""
        return count_frame(self.counter, system=False, tools=False).certainty

    def message(self, message: Message) -> int:
        """Tokens of a message by itself."""
        return count_message(message, self.counter, self._blob).tokens

    def at_once(self, message: Message) -> int:
        """Tokens of a message with results of calls that were made at once."""
        return (count_at_once if self.joins_results else count_message)(message, self.counter, self._blob).tokens

    def count(self, message: Message, earlier: Iterable[Message]) -> Count:
        """The count of a message that comes next, as its record keeps it; `earlier` are those before it, the newest
        first."""
        if self.joins_results and _answers_several(message, earlier):
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
    def joins_results(self) -> bool:
        """Whether results of calls made at once count otherwise than each by itself."""
        return joins_results(self.counter)

    def repaired(self, view: Sequence[Shown], items: Iterable[Item], rules: Rules) -> tuple[int, ...]:
        """The tokens of repaired messages as a request spells them. Those that repair left as the `items` have them
        were counted before."""
        counted = {id(item.shown): item for item in items}
        sizes: list[int] = []
        for shown, at_once in zip(view, answers_at_once(view), strict=True):
            at_once = at_once and self.joins_results
            spelled = spelled_as(shown.message, rules)
            item = counted.get(id(shown))
            if spelled is not shown.message or item is None or item.counted_at_once != at_once:
                count = self.at_once if at_once else self.message
                sizes.append(sum(map(count, (spelled,) if self.joins_results else apart(spelled, rules))))
            elif self.joins_results or len(several := apart(spelled, rules)) == 1:
                sizes.append(item.tokens)
            else:
                sizes.append(sum(map(self.message, several)))
        return tuple(sizes)

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

    def around(self, plan: Plan, tools: Sequence[Tool], *, system: bool) -> int:
        """Tokens of a request by a plan beside its messages: of these tools, of the schema that its answer has to keep
        to, and of what stands around all that, `system` text among it or not."""
        declared = as_declared(tools, plan.rules)
        tokens = count_frame(self.counter, system=system, tools=bool(declared)).tokens
        tokens += count_tools(declared, self.counter, given_choice(plan)).tokens if declared else 0
        return tokens + schemas_of(plan.local.settings, self.counter).tokens

    def trim(self) -> None:
        """Let go of what is remembered, if it is very much."""
        if len(self._recounted) > _REMEMBERED:
            self._recounted.clear()


def answers_at_once(view: Sequence[Shown]) -> Iterator[bool]:
    """For each message of a repaired view, whether it has results of calls that were made at once: in one answer, or in
    answers on end."""
    calls, answered = 0, True
    for shown in view:
        message = shown.message
        if message.role == "assistant":
            calls = 0 if answered else calls
            calls += sum(isinstance(part, ToolCall) for part in message.parts)
        answered = message.role != "assistant"
        yield answered and calls > 1 and any(isinstance(part, ToolResult) for part in message.parts)


def spelled_as(message: Message, rules: Rules) -> Message:
    """A repaired message with the parts that requests spell as others; itself if it has none."""
    parts = tuple(_part(part, rules) for part in message.parts)
    return message if unchanged(parts, message.parts) else replace(message, parts=parts)


def _part(part: Part, rules: Rules) -> Part:
    """A call with free text as providers take it that know none: as an argument. A failed result with the text that it
    has to have."""
    if isinstance(part, ToolCall) and part.kind == "custom" and "custom" not in rules.call_kinds:
        return replace(part, arguments={"input": part.raw_arguments}, raw=None, kind="function")
    if isinstance(part, ToolResult) and part.outcome != "ok" and rules.failed_says:
        if not any(isinstance(inner, Text) and inner.text for inner in part.parts):
            return replace(part, parts=(*part.parts, Text(rules.failed_says)))
    return part


def apart(message: Message, rules: Rules) -> list[Message]:
    """The messages that a user's message with results is sent as. They are several where each result has to be a
    message of its own, or where something else stands ahead of a result and may not; else it is itself."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    led = rules.results != "adjacent" or all(isinstance(part, ToolResult) for part in message.parts[: len(results)])
    if message.role != "user" or not results or (led and not rules.results_apart):
        return [message]
    others = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if rules.results_apart:
        media = tuple(part for result in results for part in _beside(result))
        groups = [(_bare(result),) for result in results] + ([media] if media else [])
    else:
        groups = [tuple(results)]
    if others and (rules.blank_text or not is_blank(others)):
        groups.append(others)
    return [message] if groups == [message.parts] else [Message(message.role, group) for group in groups]


def _beside(result: ToolResult) -> tuple[Part, ...]:
    """The media of a result where they are shown behind it, with the words ahead of them."""
    media = tuple(part for part in result.parts if isinstance(part, Media))
    return (Text(shown_apart(result)[0]), *media) if media else ()


def _bare(result: ToolResult) -> ToolResult:
    """A result without its media, and with the words in their place if it says nothing else."""
    left = tuple(part for part in result.parts if not isinstance(part, Media))
    if len(left) == len(result.parts):
        return result
    return replace(result, parts=left or (Text(shown_apart(result)[1]),))


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
    ("response_format", "schema"),
    ("text", "format", "schema"),
    ("output_format", "schema"),
    ("output_config", "format", "schema"),
    ("generationConfig", "responseSchema"),
    ("generationConfig", "responseJsonSchema"),
    ("generationConfig", "responseFormat", "text", "schema"),
)
"""Where requests say what JSON the answer must be, in whatever spelling of their keys (`response_schema`)."""


_ELSEWHERE = ("previous_response_id", "previous_interaction_id", "conversation", "prompt")
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
