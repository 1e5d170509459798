"""What a session must show, told from its log alone: a plain list of records, replayed decision by decision.

Written from docs/format.md and from what strategies promise, beside `turnlog.view` and without it, so that the two
can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, takewhile
from typing import Any, NamedTuple

import msgspec

from turnlog.log.budget import Strategy
from turnlog.log.messages import Media, Message, Part, Text, Tool, ToolCall, ToolResult, media_parts, shown_apart
from turnlog.log.records import Decision, MessageRecord, PartialAnswer, Record
from turnlog.view.repair.clean import clean, sendable_name
from turnlog.view.rules import Rules
from turnlog.view.types import Shown

__all__ = [
    "Counts",
    "HIDE",
    "Line",
    "SIZES",
    "added",
    "conversation",
    "floor_of",
    "groups",
    "in_force",
    "outputs",
    "pairs_of",
    "pins",
    "thumbnail",
]

HIDE = ("clear", "compact", "priority", "rewind", "slide")
SIZES = ("cap", "compact", "images", "mask", "priority", "slide")
INTERRUPTED = Text("[This answer was interrupted here.]")
UNKNOWN = Text("No result of this call is on record. It may have run; check before repeating it.")
OPENING = Message("user", (Text("[The conversation began earlier.]"),))
CLOSING = Message("user", (Text("Please continue."),))
NOTHING = Message("user", (Text("[No message yet.]"),))


@dataclass(frozen=True)
class Line:
    """A message of the conversation: its place, and as it was recorded where a record is its own.

    `record` is the decision's number for a summary. `ends` are the places of outputs of which only both ends are shown.
    """

    place: int
    record: int
    message: Message
    original: Message
    summary: bool = False
    changed: frozenset[str] = frozenset()
    ends: frozenset[tuple[int, int]] = frozenset()


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
    return lines


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

    By position: a result answers the nearest open call of its id; one without an id the first open call of its tool.
    """
    waiting: list[tuple[int, ToolCall]] = []
    pairs: list[tuple[int, int]] = []
    for i, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall) and message.role == "assistant":
                waiting.append((i, part))
            elif isinstance(part, ToolResult):
                found = [one for one in waiting if one[1].id == part.call_id]
                if not found and not part.call_id:
                    found = [one for one in waiting if part.name in ("", one[1].name)][:1]
                if found:
                    pairs.append((found[-1][0], i))
                    waiting.remove(found[-1])
    return pairs, waiting


def orphans_of(lines: Sequence[Line], rules: Rules) -> list[Line]:
    """The lines that hold results alone, of calls that are not there (none of them a second result): never sent, but
    where the calls may be at the provider."""
    waiting: list[ToolCall] = []
    answered: set[str] = set()
    found: list[Line] = []
    for line in lines if not rules.calls_elsewhere else ():
        orphans = 0
        for part in line.message.parts:
            if isinstance(part, ToolCall) and line.message.role == "assistant":
                waiting.append(part)
            elif isinstance(part, ToolResult):
                own = [call for call in waiting if call.id == part.call_id]
                named = [call for call in waiting if part.name in ("", call.name)] if not part.call_id else []
                if own or named:
                    call = (own or named[:1])[-1]
                    answered.add(call.id)
                    waiting = [one for one in waiting if one is not call]
                elif not part.call_id or part.call_id not in answered:
                    orphans += 1
        if line.message.parts and orphans == len(line.message.parts):
            found.append(line)
    return found


class Counts(NamedTuple):
    """Tokens of a message by itself, of one with results of calls made at once, and of declarations of tools that are
    there because they were called (None if the tools of requests are given). `known` is a message as its provider knows
    it: media by what their bytes are."""

    message: Callable[[Message], int]
    at_once: Callable[[Message], int]
    tools: Callable[[Sequence[Tool]], int] | None
    known: Callable[[Message], Message | None]


def added(lines: Sequence[Line], rules: Rules, counts: Counts) -> list[tuple[Line, int]]:
    """The tokens that a request takes beside the messages, each with the line that they are there for: results that
    nobody gave, signatures, a user's word ahead of the first answer or behind the last, declarations of tools; and
    those that messages are larger or smaller by as they are sent."""
    count = counts.message
    waiting = pairs_of([line.message for line in lines])[1]
    several, answers = made_at_once(lines)
    orphans = orphans_of(lines, rules)
    found: list[tuple[Line, int]] = []
    for line in lines if counts.at_once == count else ():
        if any(line is one for one in orphans):
            continue
        becomes = messages_of(line.message, rules)
        if becomes != [line.message]:
            found.append((line, sum(map(count, becomes)) - count(line.message)))
    leading = True
    gone: list[Line] = []
    for line in lines:
        leading = leading and line.message.role == "system"
        sent = as_sent(line.message, rules, leading, counts.known)
        sent = None if any(line is one for one in orphans) else sent
        gone += [line] if sent is None else []
        how = counts.at_once if any(line is one for one in answers) else count
        found.append((line, (how(sent) if sent else 0) - count(line.message)))
    runs, answering = runs_and_answers(lines)
    alone = [
        bool(runs_of) and all(isinstance(part, ToolResult) for part in line.message.parts)
        for line, runs_of in zip(lines, answering, strict=True)
    ]
    result = Message("user", (ToolResult("", "", (UNKNOWN,)),))
    joining = count(Message("user", result.parts * 2)) - 2 * count(result) if rules.results_together else 0
    for i in range(1, len(lines)):
        if alone[i] and alone[i - 1] and answering[i] == answering[i - 1]:
            found.append((lines[i], joining))
    have_results = set().union(*answering)
    for i, call in waiting:
        unknown = ToolResult(call.id, call.name, (UNKNOWN,), "lost", kind=call.kind)
        of_several = any(lines[i] is line for line in several)
        size = (counts.at_once if of_several else count)(Message("user", (unknown,)))
        found.append((lines[i], size + (joining if runs[i] in have_results else 0)))
        have_results.add(runs[i])
    if counts.tools is not None:
        found += declarations(lines, rules, counts.tools)
    for line in lines:
        answer = line.message.role == "assistant"
        calls = [part for part in line.message.parts if answer and isinstance(part, ToolCall)]
        if rules.step_signature and calls and not (calls[0].signature and calls[0].provider in ("", rules.provider)):
            whole = msgspec.structs.replace(calls[0], signature=rules.step_signature, provider=rules.provider)
            bare = msgspec.structs.replace(calls[0], signature="")
            found.append((line, count(Message("assistant", (whole,))) - count(Message("assistant", (bare,)))))
    for i, line in enumerate(lines if rules.merge_calls else ()):
        if line.message.role == "assistant" and (i + 1 == len(lines) or lines[i + 1].message.role != "assistant"):
            run = list(takewhile(lambda one: one.message.role == "assistant", reversed(lines[: i + 1])))[::-1]
            calls_from = dropwhile(lambda one: not any(isinstance(p, ToolCall) for p in one.message.parts), run)
            joined = [
                sent for one in calls_from if (sent := as_sent(one.message, rules, False, counts.known)) is not None
            ]
            if len(joined) > 1:
                together = Message("assistant", tuple(part for message in joined for part in message.parts))
                found.append((line, count(together) - sum(map(count, joined))))
    said = [line for line in lines if line.message.role != "system" and not any(line is one for one in gone)]
    if not said:
        told = rules.system_only and any(not any(line is one for one in gone) for line in lines)
        return found if told or not lines else [*found, (lines[-1], count(NOTHING))]
    answers = list(takewhile(lambda line: line.message.role == "assistant", said))
    calling = any(isinstance(part, ToolCall) for line in answers for part in line.message.parts)
    if answers and (rules.first == "user" or (rules.first == "not_call" and calling)):
        found.append((said[0], count(OPENING)))
    newest = list(takewhile(lambda line: line.message.role == "assistant", reversed(said)))
    waits = any(lines[i] is answer for answer in newest for i, _ in waiting)
    if rules.last == "user" and newest and not waits:
        found.append((said[-1], count(CLOSING)))
    return found


def declarations(
    lines: Sequence[Line], rules: Rules, count: Callable[[Sequence[Tool]], int]
) -> Iterator[tuple[Line, int]]:
    """What declares the tools that are called, with the last line to call each: by so much the request is smaller
    without that line and those before it."""
    tools: list[Tool] = []
    last: dict[str, int] = {}
    for i, line in enumerate(lines):
        said = line.message.parts if line.message.role == "assistant" else ()
        for call in [part for part in said if isinstance(part, ToolCall)]:
            free = call.kind == "custom" and "custom" in rules.call_kinds
            by_name = call.kind not in rules.call_kinds or call.kind in ("function", "custom")
            name = sendable_name(call.name, rules)
            if by_name and name not in last:
                schema = None if free else {"type": "object", "properties": {}}
                tools.append(Tool(name, parameters=schema, kind="custom" if free else "function"))
            last[name] = i
    for i, line in enumerate(lines):
        with_it = [tool for tool in tools if last[tool.name] >= i]
        without = [tool for tool in tools if last[tool.name] > i]
        if with_it != without:
            yield line, count(with_it) - count(without)


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


def runs_and_answers(lines: Sequence[Line]) -> tuple[dict[int, int], list[set[int]]]:
    """The run of answers that each calling line belongs to, by the index of its first; and for each line the runs of
    which it answers calls."""
    runs: dict[int, int] = {}
    for i, line in enumerate(lines):
        if line.message.role == "assistant":
            first = i
            while first and lines[first - 1].message.role == "assistant":
                first -= 1
            runs[i] = first
    answering: list[set[int]] = [set() for _ in lines]
    for call, result in pairs_of([line.message for line in lines])[0]:
        if lines[result].message.role == "user":
            answering[result].add(runs[call])
    return runs, answering


def made_at_once(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """The lines that make calls at once (in one answer, or in answers on end), and those with their results."""
    runs: list[list[int]] = []
    ended = True
    for i, line in enumerate(lines):
        if line.message.role != "assistant":
            ended = True
        elif any(isinstance(part, ToolCall) for part in line.message.parts):
            runs = [*runs, [i]] if ended else [*runs[:-1], [*runs[-1], i]]
            ended = False
    made = [sum(isinstance(part, ToolCall) for i in run for part in lines[i].message.parts) for run in runs]
    callers = [i for run, calls in zip(runs, made, strict=True) if calls > 1 for i in run]
    answers = {result for call, result in pairs_of([line.message for line in lines])[0] if call in callers}
    return [lines[i] for i in callers], [lines[i] for i in sorted(answers)]


def as_sent(
    message: Message, rules: Rules, leading: bool, known: Callable[[Message], Message | None]
) -> Message | None:
    """A message without what the provider does not take; free text of calls in JSON, where it takes none; system text
    as a user's, where it may not stand; words in failed results without any, where there have to be some."""
    seen = known(message)
    kept = clean([Shown(seen, (1,))], rules)[0] if seen else []
    if not kept:
        return None
    if message.role == "system" and rules.system != "inline" and not leading:
        return Message("user", (Text("[system]"), *kept[0].message.parts))
    parts = tuple(_spoken(part, rules) for part in kept[0].message.parts)
    return message if parts == message.parts else msgspec.structs.replace(kept[0].message, parts=parts)


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
    strategy: Strategy,
    limit: int,
    rules: Rules,
) -> dict[str, int]:
    """What cannot be left out, in tokens, the giants of the open turn cut if the strategy cuts giants: as a rule to
    the strategy's share, what was shortened before as it stands. Where that does not fit, all its outputs, those with
    only both ends shown too, to the most at which a fifth of the room stays free, at least to 60 tokens."""
    reasons = ("system text", "the task", "pinned messages", "the open turn")
    sums = {"tools and framing": fixed, **dict.fromkeys(reasons, 0)}
    stays = list(staying(lines, pinned))
    beside = added(lines, rules, counts)
    count, at_once = counts.message, made_at_once(lines)[1]

    def size(group: Sequence[Line]) -> int:
        there = sum(tokens for line, tokens in beside if any(line is one for one in group))
        return there + sum(count(line.message) for line in group)

    for why, group in stays:
        if why:
            sums[why] += size(group)
    if "cap" not in strategy.steps:
        return sums
    room = limit - fixed - sums["system text"]  # what the conversation may take
    giant = max(60, int(strategy.cap * room))
    open_turn = (line for why, group in stays if why == "the open turn" for line in group)
    unsent = orphans_of(lines, rules)
    there = [
        one
        for line in open_turn
        if not any(line is other for other in unsent)
        for one in outputs(line, counts.at_once if any(line is other for other in at_once) else count)
    ]

    def cut_to(most: int, also: bool) -> dict[str, int]:
        saved = sum(max(0, tokens - most) for tokens, whole in there if whole or also)
        return {**sums, "the open turn": sums["the open turn"] - saved}

    if sum(cut_to(giant, also=False).values()) <= limit:
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
            for j, inner in enumerate(part.parts):
                if isinstance(inner, Text) and (inner in said.parts or (i, j) in line.ends):
                    yield size(inner.text), inner in said.parts


def thumbnail(lines: Sequence[Line]) -> Media | None:
    """The first image of the first user message."""
    first = next((line for line in lines if speaks(line)), None)
    images = [media for media in media_parts(first.original) if media.kind == "image"] if first else []
    return images[0] if images else None
