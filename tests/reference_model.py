"""What a session must show, told from its log alone: a plain list of records, replayed decision by decision.

Written from docs/format.md and from what strategies promise, beside `turnlog.view` and without it, so that the two
can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from turnlog.log.budget import Strategy
from turnlog.log.messages import Media, Message, Part, Text, Tool, ToolCall, ToolResult, media_parts, shown_apart
from turnlog.log.records import Decision, MessageRecord, PartialAnswer, Record
from turnlog.view.curate.conversation import CurationRules, Curator
from turnlog.view.rules import Rules
from turnlog.view.types import Shown

__all__ = [
    "Counts",
    "HIDE",
    "Line",
    "SIZES",
    "Sizes",
    "batched",
    "conversation",
    "curated",
    "floor_of",
    "groups",
    "in_force",
    "outputs",
    "pairs_of",
    "pins",
    "sizes_of",
    "thumbnail",
]

HIDE = ("clear", "compact", "priority", "rewind", "slide")
SIZES = ("cap", "compact", "curate", "images", "mask", "priority", "slide")
INTERRUPTED = Text("[This answer was interrupted here.]")
UNKNOWN = Text("No result of this call is on record. It may have run; check before repeating it.")


@dataclass(frozen=True)
class Line:
    """A message of the conversation: its place, and as it was recorded where a record is its own.

    `record` is the decision's number for a summary. `ends` are the places of outputs of which only both ends are shown.
    `decided` is the message before its outputs were curated.
    """

    place: int
    record: int
    message: Message
    original: Message
    summary: bool = False
    changed: frozenset[str] = frozenset()
    ends: frozenset[tuple[int, int]] = frozenset()
    decided: Message | None = None

    @property
    def uncurated(self) -> Message:
        """The message as decisions left it."""
        return self.decided or self.message


def in_force(records: Sequence[Record]) -> dict[int, Decision]:
    """The decisions that hold: no decision that holds and comes later takes them back."""
    made = {record.n: record.body for record in records if isinstance(record.body, Decision)}

    def holds(n: int) -> bool:
        later = [(m, other) for m, other in made.items() if m > n]
        return not any(holds(m) for m, other in later if _takes_back(other, n))

    return {n: decision for n, decision in made.items() if decision.action != "undo" and holds(n)}


def _takes_back(decision: Decision, n: int) -> bool:
    return decision.supersedes == n or (decision.action == "rewind" and decision.first <= n <= decision.last)


def conversation(records: Sequence[Record], extra: Sequence[Decision] = ()) -> list[Line]:
    """The conversation after all decisions of a log, replayed in order; `extra` come after the log."""
    held = in_force(records)
    lines: list[Line] = []
    for record in records:
        if isinstance(record.body, MessageRecord):
            lines.append(Line(record.n, record.n, record.body.message, record.body.message))
        elif isinstance(record.body, PartialAnswer) and record.body.message.parts:
            said = record.body.message
            marked = msgspec.structs.replace(said, parts=(*said.parts, INTERRUPTED))
            lines.append(Line(record.n, record.n, marked, marked))
    for n, decision in [*held.items(), *enumerate(extra, start=len(records) + 1)]:
        lines = _after(lines, n, decision)
    pinned = {decision.first for decision in held.values() if decision.action == "pin"}
    return curated(lines, Curator(CurationRules(records), pinned, also=batched(records, extra)))


def batched(records: Sequence[Record], extra: Sequence[Decision] = ()) -> frozenset[int]:
    """The records whose outputs decisions curate."""
    made = [decision for decision in (*in_force(records).values(), *extra) if decision.action == "curate"]
    return frozenset(n for decision in made for n in decision.detail["outputs"])


def curated(lines: Sequence[Line], curator: Curator) -> list[Line]:
    """The lines as a view shows them that has no others: outputs curated, by the product's own curator, as what becomes
    of one output is told elsewhere (tests/view/curate)."""
    found = []
    for line in lines:
        decided = Shown(line.uncurated, (line.record,), "summarised" if line.summary else "verbatim")
        shown = curator.see(decided, Shown(line.original, (line.record,)))
        plain = None if shown is decided else line.uncurated
        found.append(replace(line, message=shown.message, decided=plain))
    return found


def _after(lines: list[Line], n: int, decision: Decision) -> list[Line]:
    detail = decision.detail
    if decision.action in HIDE:
        lines = [line for line in lines if not _gone(line, n, decision)]
        standing = [msgspec.convert(one, Message) for one in detail.get("replacement") or []]
        at = detail.get("at", n)
        where = next((i for i, line in enumerate(lines) if line.place >= at and not _earlier(line, at)), len(lines))
        lines[where:where] = [Line(at, n, message, message, summary=True) for message in standing]
    for record, path, *change in (*detail.get("texts", ()), *detail.get("cuts", ())):
        lines = [_changed(line, decision.action, path, change, record) for line in lines]
    return lines


def _earlier(line: Line, at: int) -> bool:
    return line.summary and line.place == at


def _gone(line: Line, n: int, decision: Decision) -> bool:
    if line.record > n or not decision.first <= line.place <= decision.last:
        return False
    if line.summary:
        return line.record not in decision.detail.get("standing", ())
    if line.message.role == "system" and decision.action != "rewind":
        return False
    return not any(first <= line.place <= last for first, last in decision.detail.get("kept", ()))


def _changed(line: Line, action: str, path: Sequence[int], change: Sequence[Any], record: int) -> Line:
    if line.summary or line.record != record:
        return line
    parts: list[Part] = list(line.message.parts)
    part, said = parts[path[0]], line.original.parts[path[0]]
    ends = line.ends
    if len(path) == 2:
        assert isinstance(part, ToolResult) and isinstance(said, ToolResult)
        inner = list(part.parts)
        inner[path[1]] = _text(said.parts[path[1]], change, record)  # a second cut is of the text on record, too
        parts[path[0]] = msgspec.structs.replace(part, parts=tuple(inner))
        place = {(path[0], path[1])}
        ends = ends | place if len(change) == 2 else ends - place
    elif isinstance(part, ToolResult):
        ends = frozenset(place for place in ends if place[0] != path[0])
        parts[path[0]] = msgspec.structs.replace(part, parts=(Text(str(change[0])),), form=None)
    else:
        parts[path[0]] = _text(said, change, record)
    message = msgspec.structs.replace(line.message, parts=tuple(parts))
    return replace(line, message=message, changed=line.changed | {action}, ends=ends)


def _text(part: Any, change: Sequence[Any], record: int) -> Text:
    if len(change) == 1:
        return Text(str(change[0]))
    head, tail = change
    gone = part.text[head : len(part.text) - tail]
    assert gone, "a cut that cuts nothing"
    mark = f"[... {len(gone):,} characters, {gone.count(chr(10)):,} line breaks of record {record} left out ...]"
    return Text(part.text[:head] + "\n" + mark + "\n" + (part.text[-tail:] if tail else ""))


# -- what may not be cut apart, and what may never go -------------------------------------------------


def pins(records: Sequence[Record]) -> frozenset[int]:
    """The pinned records."""
    return frozenset(decision.first for decision in in_force(records).values() if decision.action == "pin")


def speaks(line: Line) -> bool:
    """Whether a user speaks, not a tool and not a summary."""
    said = line.original
    return not line.summary and said.role == "user" and not any(isinstance(p, ToolResult) for p in said.parts)


def pairs_of(messages: Sequence[Message]) -> tuple[list[tuple[int, int]], list[tuple[int, ToolCall]]]:
    """Which message's call is answered in which message, and the calls that wait, each with its message.

    By position: a result belongs to the newest message that calls its tool by its id, or by its name if it has no id.
    """
    calls: list[tuple[int, ToolCall]] = []
    waiting: list[tuple[int, ToolCall]] = []
    pairs: list[tuple[int, int]] = []
    for i, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall) and message.role == "assistant":
                waiting.append((i, part))
                calls.append(waiting[-1])
            elif isinstance(part, ToolResult):
                known = [one for one in calls if part.call_id in ("", one[1].id) and _agree(part.name, one[1].name)]
                newest = [one for one in known if one[0] == known[-1][0]]
                named = [one for one in newest if one[1].name] + [one for one in newest if not one[1].name]
                free = [one for one in (named if part.name else newest) if any(one is other for other in waiting)]
                pairs += [(known[-1][0], i)] if free else []
                waiting = [one for one in waiting if one is not free[0]] if free else waiting
    return pairs, waiting


def _agree(*names: str) -> bool:
    return "" in names or len({*names}) == 1


class Counts(NamedTuple):
    """Tokens of a message by itself, of one with results of calls made at once, and of declarations of tools that are
    there because they were called (None if the tools of requests are given)."""

    message: Callable[[Message], int]
    at_once: Callable[[Message], int]
    tools: Callable[[Sequence[Tool]], int] | None


class Sizes(NamedTuple):
    """The tokens of each line in a request as it was built, the lines with results of calls made at once, and those of
    which something is sent; whether that is system text, too."""

    tokens: list[int]
    at_once: frozenset[int]
    sent: frozenset[int]
    system: bool


def sizes_of(lines: Sequence[Line], view: Sequence[Shown], rules: Rules, counts: Counts) -> Sizes:
    """What a built view takes, counted message by message as it is spelled, by the line that each is there for: a tool
    that is declared from calls by the last of them, what no line made necessary by the last line."""
    place = {line.record: i for i, line in reversed([*enumerate(lines)])}
    tokens, at_once, sent = [0] * len(lines), set[int](), set[int]()
    tools: dict[str, Tool] = {}
    last: dict[str, int] = {}
    calls = 0
    for i, shown in enumerate(view if lines else ()):
        message = shown.message
        called = [part for part in message.parts if isinstance(part, ToolCall)]
        if message.role == "assistant":
            calls = len(called) + (calls if i and view[i - 1].message.role == "assistant" else 0)
        several = message.role == "user" and calls > 1 and any(isinstance(p, ToolResult) for p in message.parts)
        at = next((place[n] for n in shown.records if n in place), len(lines) - 1)
        here = {place[n] for n in shown.records if n in place}
        at_once |= here if several else set()
        sent |= here
        joins = counts.at_once != counts.message  # then results are counted together anyway
        spelled = msgspec.structs.replace(message, parts=tuple(_spoken(part, rules) for part in message.parts))
        for one in [spelled] if joins else messages_of(spelled, rules):
            tokens[at] += (counts.at_once if several else counts.message)(one)
        for call in called:
            custom = call.kind == "custom" and "custom" in rules.call_kinds
            if call.kind in ("function", "custom") or call.kind not in rules.call_kinds:
                schema = None if custom else {"type": "object", "properties": {}}
                kind: Any = "custom" if custom else "function"
                tools.setdefault(call.name, Tool(call.name, parameters=schema, kind=kind))
                last[call.name] = at
    for i in range(len(lines) if counts.tools is not None else 0):
        there = [tool for tool in tools.values() if last[tool.name] >= i]
        without = [tool for tool in tools.values() if last[tool.name] > i]
        if there != without and counts.tools is not None:
            tokens[i] += counts.tools(there) - counts.tools(without)
    system = any(shown.message.role == "system" for shown in view)
    return Sizes(tokens, frozenset(at_once), frozenset(sent), system)


def messages_of(message: Message, rules: Rules) -> list[Message]:
    """What a user's message is sent as: each result by itself, where the provider has a message for each; what is said
    ahead of a result behind it, where results have to come first, and not at all if it is blank and may not be."""
    kinds = [isinstance(part, ToolResult) for part in message.parts]
    said_before = rules.results == "adjacent" and kinds != sorted(kinds, reverse=True)
    if message.role != "user" or not any(kinds) or not (rules.results_apart or said_before):
        return [message]
    results = tuple(part for part, is_result in zip(message.parts, kinds, strict=True) if is_result)
    said = tuple(part for part, is_result in zip(message.parts, kinds, strict=True) if not is_result)
    blank = all(isinstance(part, Text) and not part.text.strip() for part in said)
    groups: list[tuple[Part, ...]] = [results]
    if rules.results_apart:  # which take no media: those are shown behind them
        shown = [(part, [inner for inner in part.parts if isinstance(inner, Media)]) for part in results]
        bare = [[inner for inner in part.parts if not isinstance(inner, Media)] for part in results]
        groups = [
            (msgspec.structs.replace(part, parts=tuple(texts) or ((Text(shown_apart(part)[1]),) if media else ())),)
            for (part, media), texts in zip(shown, bare, strict=True)
        ]
        media = tuple(one for part, seen in shown if seen for one in (Text(shown_apart(part)[0]), *seen))
        groups += [media] if media else []
    groups += [said] if said and (rules.blank_text or not blank) else []
    return [Message("user", group) for group in groups]


def _spoken(part: Part, rules: Rules) -> Part:
    if isinstance(part, ToolCall) and part.kind == "custom" and "custom" not in rules.call_kinds:
        return msgspec.structs.replace(part, kind="function", arguments={"input": part.raw_arguments}, raw=None)
    if isinstance(part, ToolResult) and part.outcome != "ok" and rules.failed_says:
        texts = "".join(inner.text for inner in part.parts if isinstance(inner, Text))
        return part if texts else msgspec.structs.replace(part, parts=(*part.parts, Text(rules.failed_says)))
    return part


def groups(lines: Sequence[Line]) -> list[list[Line]]:
    """What stays or goes as one: a user's word; system text; a summary; a step (answers and the results of calls)."""
    edges = {0, len(lines)}
    for i, line in enumerate(lines):
        before = lines[i - 1] if i else None
        alone = line.original.role == "system" or speaks(line) or line.summary
        after_alone = before is not None and (before.original.role == "system" or speaks(before) or before.summary)
        new_step = before is not None and line.original.role == "assistant" and before.original.role != "assistant"
        if alone or after_alone or new_step:
            edges.add(i)
    for call, result in pairs_of([line.original for line in lines])[0]:
        edges -= set(range(call + 1, result + 1))
    at = sorted(edges)
    return [list(lines[a:b]) for a, b in pairwise(at)]


def staying(lines: Sequence[Line], pinned: frozenset[int]) -> Iterator[tuple[str, list[Line]]]:
    """The groups with the reason why each must stay, or an empty text."""
    found = groups(lines)
    said = [i for i, group in enumerate(found) if any(map(speaks, group))]
    for i, group in enumerate(found):
        open_calls = bool(said) and i > said[-1] and bool(pairs_of([line.original for line in group])[1])
        if any(line.original.role == "system" for line in group):
            yield "system text", group
        elif said and i == said[0]:
            yield "the task", group
        elif any(line.place in pinned and not line.summary for line in group):
            yield "pinned messages", group
        elif i == len(found) - 1 or (said and i == said[-1]) or open_calls:
            yield "the open turn", group
        else:
            yield "", group


def floor_of(
    lines: Sequence[Line],
    pinned: frozenset[int],
    fixed: int,
    counts: Counts,
    sizes: Sizes,
    strategy: Strategy,
    limit: int,
) -> dict[str, int]:
    """What cannot be left out, in tokens, the giants of the open turn cut if the strategy cuts giants: as a rule to
    the strategy's share, what was shortened before as it stands. Where that does not fit, with any strategy, all its
    outputs, those with only both ends shown too, to the most at which a fifth of the room stays free, at least to 60
    tokens."""
    reasons = ("system text", "the task", "pinned messages", "the open turn")
    sums = {"tools and framing": fixed, **dict.fromkeys(reasons, 0)}
    stays = list(staying(lines, pinned))
    index = {id(line): i for i, line in enumerate(lines)}
    for why, group in stays:
        if why:
            sums[why] += sum(sizes.tokens[index[id(line)]] for line in group)
    capping = "cap" in strategy.steps
    if not capping and sum(sums.values()) <= limit:
        return sums
    room = limit - fixed - sums["system text"]  # what the conversation may take
    giant = max(60, int(strategy.cap * room) if capping else room)
    open_turn = [index[id(line)] for why, group in stays if why == "the open turn" for line in group]
    there = [
        one
        for i in open_turn
        if i in sizes.sent  # else its call was cleared
        for one in outputs(lines[i], counts.at_once if i in sizes.at_once else counts.message)
    ]

    def cut_to(most: int, also: bool) -> dict[str, int]:
        saved = sum(max(0, tokens - most) for tokens, whole in there if whole or also)
        return {**sums, "the open turn": sums["the open turn"] - saved}

    if capping and sum(cut_to(giant, also=False).values()) <= limit:
        return cut_to(giant, also=False)
    fitting = (most for most in range(giant, 60, -1) if sum(cut_to(most, also=True).values()) <= limit - room // 5)
    return cut_to(next(fitting, 60), also=True)


def outputs(line: Line, count: Callable[[Message], int]) -> Iterator[tuple[int, bool]]:
    """The sizes of a message's outputs that are whole or of which both ends are shown, and whether they are whole."""

    def size(text: str) -> int:
        whole, bare = (Message("user", (ToolResult("", parts=(Text(one),)),)) for one in (text, ""))
        return count(whole) - count(bare)

    sent = line.message.parts if line.message.role == "user" else ()  # results elsewhere are never sent
    for i, (part, said) in enumerate(zip(sent, line.original.parts, strict=False)):
        if isinstance(part, ToolResult) and isinstance(said, ToolResult):
            plain = line.uncurated.parts[i]
            assert isinstance(plain, ToolResult)
            for j, (inner, decided) in enumerate(zip(part.parts, plain.parts, strict=True)):
                if isinstance(inner, Text) and (decided in said.parts or (i, j) in line.ends):
                    yield size(inner.text), decided in said.parts


def thumbnail(lines: Sequence[Line]) -> Media | None:
    """The first image of the first user message."""
    first = next((line for line in lines if speaks(line)), None)
    images = [media for media in media_parts(first.original) if media.kind == "image"] if first else []
    return images[0] if images else None
