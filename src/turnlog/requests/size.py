"""The sizes of records, messages and requests in tokens, by one counter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from .._platform.lazy import cached_property
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
    is_compaction,
    shown_apart,
    unchanged,
)
from ..log.records import MessageBody, MessageRecord, Record
from ..log.references import tool_with_references
from ..log.usage import Count
from ..providers.protocol import Provider
from ..tokens.approximate import FactoredCounter
from ..tokens.counters import count_at_once, count_frame, count_message, count_tools, joins_results
from ..tokens.openai import OpenAICounter
from ..tokens.protocol import CERTAINTIES, BlobReader, Certainty, Choice, Counter, Tally
from ..view.compaction.situation import Item
from ..view.fold import as_shown
from ..view.repair.clean import is_blank
from ..view.repair.media_room import MediaLimits, held, longest_side, room_for
from ..view.rules import Rules
from ..view.types import Shown
from .carried import tools_in_prompt
from .translate import RequestPlan

_REMEMBERED = 20_000
"""The most sizes to remember of records that have no count by this counter."""


class Sizing:
    """Sizes by a counter; `blob` reads media."""

    def __init__(self, counter: Counter, blob: BlobReader) -> None:
        self.counter = counter
        self._blob = blob
        self._recounted: dict[tuple[int, int], int] = {}
        self._sides: dict[str, int] = {}

    @property
    def certainty(self) -> Certainty:
        """How far to trust the counts."""
        return count_frame(self.counter, system=False, tools=False).certainty

    def certainty_for(self, plan: RequestPlan) -> Certainty:
        """How far to trust the counts of requests by a plan: not exact if its settings may change what is billed, or if
        another server bills them."""
        if (
            plan.target.base_url
            or settings_tally(plan.local.settings, self.counter, plan.provider).certainty != "exact"
        ):
            return max(self.certainty, "estimated", key=CERTAINTIES.index)
        return self.certainty

    def message(self, message: Message) -> int:
        """Tokens of a message by itself."""
        return count_message(message, self.counter, self._blob).tokens

    def at_once(self, message: Message) -> int:
        """The tokens of a message that contains results of parallel calls."""
        return (count_at_once if self.joins_results else count_message)(message, self.counter, self._blob).tokens

    def count(self, message: Message, earlier: Iterable[Message]) -> Count:
        """The count to record with the next message; `earlier` are the messages before it, newest first."""
        if self.joins_results and _answers_several(message, earlier):
            return count_at_once(message, self.counter, self._blob)
        return count_message(message, self.counter, self._blob)

    def record(self, record: Record) -> int:
        """The tokens of a message record. The recorded count is used if this counter made it."""
        count = self._recorded_count(record)
        if count is not None:
            return count.tokens
        if not isinstance(record.body, MessageBody):
            return 0
        key = record.n, len(record.raw or b"")
        if key not in self._recounted:
            self._recounted[key] = sum(self.message(shown.message) for shown in as_shown(record))
        return self._recounted[key]

    def item(self, shown: Shown, record: Record) -> Item:
        """A message that is shown as recorded, with its size."""
        count = self._recorded_count(record)
        return Item(shown, self.record(record), shown, record.n, counted_at_once=count is not None and count.at_once)

    def _recorded_count(self, record: Record) -> Count | None:
        count = record.body.count if isinstance(record.body, MessageRecord) else None
        if record.message is not None and any(map(is_compaction, record.message.parts)):
            return None  # it counted the compaction too, which a decision shows
        return count if count is not None and count.counter == self.counter.id else None

    @cached_property
    def joins_results(self) -> bool:
        """Whether results of parallel calls count differently from single ones."""
        return joins_results(self.counter)

    def repaired(self, view: Sequence[Shown], items: Iterable[Item], rules: Rules) -> tuple[int, ...]:
        """The tokens of repaired messages in the form that requests have. Messages that repair left unchanged were
        counted before, in `items`."""
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

    def room(self, media: Sequence[Media], rules: Rules) -> MediaLimits:
        """The limits that apply to these media in one request. Each image is read only once."""
        return room_for(held(media, rules, self._side), rules)

    def has_room(self, media: Sequence[Media], rules: Rules) -> bool:
        """Whether these media are within the limits of one request."""
        held_media = held(media, rules, self._side)
        return room_for(held_media, rules).holds(held_media)

    def _side(self, media: Media) -> int:
        if media.sha256 not in self._sides:
            self._sides[media.sha256] = longest_side(media, self._blob)
        return self._sides[media.sha256]

    def around(
        self,
        plan: RequestPlan,
        tools: Sequence[Tool],
        *,
        system: bool,
        found: Collection[str] = (),
    ) -> int:
        """Tokens of a request by a plan except its messages: those of the tools (of deferred tools only if they were
        `found`), of settings, such as a schema that the answer must match, and of the framing, which depends on whether
        there is `system` text. Thinking is always counted, although a request may be sent without it until a tool loop
        ends, so that the size does not depend on the messages shown."""
        declared = tools_in_prompt(as_declared(tools, plan.rules), plan.provider, found)
        tokens = count_frame(self.counter, system=system, tools=bool(declared)).tokens
        tokens += count_tools(declared, self.counter, given_choice(plan)).tokens if declared else 0
        return tokens + settings_tally(plan.local.settings, self.counter, plan.provider).tokens

    def trim(self) -> None:
        """Forget the remembered sizes if there are too many."""
        if len(self._recounted) > _REMEMBERED:
            self._recounted.clear()


class Sizings:
    """The `Sizing` of each counter; each remembers what it has measured."""

    def __init__(self, blob: BlobReader) -> None:
        self._blob = blob
        self._made: dict[str, Sizing] = {}

    def __call__(self, counter: Counter) -> Sizing:
        """The `Sizing` of this counter."""
        return self._made.setdefault(counter.id, Sizing(counter, self._blob))


def answers_at_once(view: Sequence[Shown]) -> Iterator[bool]:
    """For each message of a repaired view, whether it has results of parallel calls: calls in one answer, or in
    consecutive answers."""
    calls, answered = 0, True
    for shown in view:
        message = shown.message
        if message.role == "assistant":
            calls = 0 if answered else calls
            calls += sum(isinstance(part, ToolCall) for part in message.parts)
        answered = message.role != "assistant"
        yield answered and calls > 1 and any(isinstance(part, ToolResult) for part in message.parts)


def spelled_as(message: Message, rules: Rules) -> Message:
    """A repaired message in the form that requests have; the same object if nothing in it differs."""
    parts = tuple(_part(part, rules) for part in message.parts)
    return message if unchanged(parts, message.parts) else replace(message, parts=parts)


def _part(part: Part, rules: Rules) -> Part:
    """A part in the form that requests have. A call with free text becomes a function call with the text as its
    argument if the provider does not support such calls; a failed result gets the text that the rules require."""
    if isinstance(part, ToolCall) and part.kind == "custom" and "custom" not in rules.call_kinds:
        return replace(part, arguments={"input": part.raw_arguments}, raw=None, kind="function")
    if isinstance(part, ToolResult) and part.outcome != "ok" and rules.failed_says:
        if not any(isinstance(inner, Text) and inner.text for inner in part.parts):
            return replace(part, parts=(*part.parts, Text(rules.failed_says)))
    return part


def apart(message: Message, rules: Rules) -> list[Message]:
    """The messages that a user message with results is sent as. It is split if each result has to be a separate
    message, or if other content comes before a result where the provider forbids it; else it stays one message."""
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
    """The media of a result as they are shown after it, with the text that introduces them."""
    media = tuple(part for part in result.parts if isinstance(part, Media))
    return (Text(shown_apart(result)[0]), *media) if media else ()


def _bare(result: ToolResult) -> ToolResult:
    """A result without its media; if it has no other content, with a text in their place."""
    left = tuple(part for part in result.parts if not isinstance(part, Media))
    if len(left) == len(result.parts):
        return result
    return replace(result, parts=left or (Text(shown_apart(result)[1]),))


def _answers_several(message: Message, earlier: Iterable[Message]) -> bool:
    """Whether a message has results of parallel calls: calls in one answer, or in consecutive answers."""
    answered = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
    called: list[str] = []
    for before in earlier if answered else ():
        if before.role == "assistant":
            called += [part.id for part in before.parts if isinstance(part, ToolCall)]
        elif called:
            break
    return len(called) > 1 and not answered.isdisjoint(called)


def as_declared(tools: Sequence[Tool], rules: Rules) -> Sequence[Tool]:
    """Tools as requests by these rules declare them: no more than allowed, with references that lead somewhere. If the
    provider does not support tools with free text as input, they become functions with a text argument."""
    tools = [tool_with_references(tool) for tool in tools[: rules.tools_max]]
    if "custom" in rules.call_kinds:
        return tools
    return [replace(tool, kind="function", parameters=free_text()) if tool.kind == "custom" else tool for tool in tools]


def settings_tally(settings: Mapping[str, Any], counter: Counter, speaker: Provider) -> Tally:
    """The tokens of a request's settings: schemas that the answer must match, thinking, and `functions`, in which Chat
    Completions used to declare tools. Exact only if no setting can change what is billed."""
    tally = Tally(certainty="exact" if all(map(_is_free, settings.items())) else "estimated")
    if functions := _functions(settings):
        around = counter.frame(system=False, tools=True).tokens - counter.frame(system=False, tools=False).tokens
        tally += counter.tools(functions) + Tally(framing=around, certainty="estimated")
    schemas, thinking = [*_answer_schemas(settings, speaker)], settings.get("thinking")
    if isinstance(counter, (FactoredCounter, OpenAICounter)):
        kind = str(thinking.get("type")) if isinstance(thinking, Mapping) else ""
        return tally + counter.settings(schemas, kind)
    for schema in schemas:
        tally += Tally(framing=counter.text(compact_json(schema)), certainty="estimated")
    return tally


def _is_free(setting: tuple[str, Any]) -> bool:
    """Whether a setting is known not to change the billed input."""
    name, value = setting
    if name == "reasoning" and isinstance(value, Mapping):
        return value.keys() <= {"effort", "summary"}
    if name in ("text", "response_format") and isinstance(value, Mapping):
        form = value.get("format", value) if name == "text" else value
        is_plain = isinstance(form, Mapping) and form.get("type", "text") in ("text", "json_object")
        return is_plain and value.keys() <= {"format", "type"}
    return name in _FREE or value in (None, [], {}, "") or (name, value) in _FREE_VALUES


def given_choice(plan: RequestPlan) -> Choice:
    """The tool choice of requests by a plan; `auto` if no tools are given, because a choice does not cover tools that
    are declared only because they were called."""
    return choice_of(plan.local.settings, plan.provider) if plan.local.tools else "auto"


def choice_of(settings: Mapping[str, Any], speaker: Provider) -> Choice:
    """The tool choice in a request's settings, in the words that counters use."""
    words = speaker.tool_choice(settings) or "auto"
    if words.startswith("tool:"):
        return "named"
    return "required" if words == "required" else "none" if words == "none" else "auto"


_FREE = frozenset(
    """background frequency_penalty include logit_bias logprobs max_completion_tokens max_output_tokens max_tokens
    metadata n parallel_tool_calls presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
    reasoning_effort safety_identifier seed service_tier stop store stream stream_options temperature tool_choice
    top_logprobs top_p user""".split()
)
"""Settings that do not change the billed input: OpenAI billed recorded requests with them like requests without them.
All others may change it (`web_search_options`, `reasoning.mode`, `context_management`, a stored conversation)."""
_FREE_VALUES = (("truncation", "disabled"), ("modalities", ["text"]))


def _functions(settings: Mapping[str, Any]) -> list[Tool]:
    given = settings.get("functions")
    return [
        Tool(str(each.get("name") or ""), str(each.get("description") or ""), parameters)
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict) and isinstance(parameters := each.get("parameters"), (dict, type(None)))
    ]


def _answer_schemas(settings: Mapping[str, Any], speaker: Provider) -> Iterator[Any]:
    """The schemas for the answer; they are billed about like their compact JSON."""
    for path in speaker.answer_schemas:
        schema: Any = settings
        for key in path:
            entries = schema.items() if isinstance(schema, Mapping) else ()
            schema = next((value for name, value in entries if _plain(name) == _plain(key)), None)
        if schema:
            yield schema


def _plain(key: str) -> str:
    return key.replace("_", "").lower()
