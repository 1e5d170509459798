"""Any history, made valid by a provider's rules.

`repair` takes a stretch of conversation through steps, each a function of the view before it: clean each message, pair
calls with results, arrange the answers, see to calls that the provider answers itself, sign steps, see to reasoning,
place system text, join what must stand in one message, put calls last, make room for media. `close` gives a whole view
legal ends. Repairing what is valid changes nothing; repairing twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, takewhile

import msgspec
from msgspec import Struct

from ...log.messages import Media, Message, Opaque, Part, Reasoning, Role, Text, Tool, ToolCall, ToolResult
from ..rules import Rules
from ..types import Edit, Loss, Shown, without_extras
from .arrange import Fate, arrange, with_parts
from .clean import clean, is_blank, sendable_name
from .media_room import within_room
from .own_calls import is_paused, own_calls
from .pairing import pair

EARLIER = "[The conversation began earlier.]"
NOTHING = "[No message yet.]"
CONTINUE = "Please continue."


class Repaired(Struct, frozen=True, gc=False):
    """A view as its rules accept it, and what had to change.

    `strays` says that there were results of no call in it, or second ones, or some that more of a view might pair
    otherwise.
    """

    view: tuple[Shown, ...]
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    strays: bool = False


class Closed(Struct, frozen=True, gc=False):
    """A whole view with legal ends, and what had to change.

    `opening` is the index of a user's word that was put ahead of the first answer, -1 if none was. The first `kept`
    messages are as they were; what stands behind them is new. `thinking_off` says that the request must go without
    thinking until the open tool loop closes.
    """

    view: tuple[Shown, ...]
    edits: tuple[Edit, ...]
    opening: int
    kept: int
    thinking_off: bool


def repair(
    view: Sequence[Shown],
    rules: Rules,
    fate: Fate,
    blob: Callable[[str], bytes] | None,
    *,
    leading: bool = True,
    follows: Role | None = None,
) -> Repaired:
    """A stretch of conversation as `rules` accept it, but for legal ends (see `close`).

    `fate` is what the log knows of calls without a result, `blob` reads media. `leading` says that nothing stands
    before the stretch, `follows` the role of what comes behind it; if nothing does either, there is room for its media.
    """
    cleaned, edits, losses = clean(view, rules)
    pairs = pair(cleaned)
    mended, changes = arrange(cleaned, pairs, rules, fate)
    edits += changes
    mended = own_calls(mended, rules, edits, more=follows is not None)
    mended = _sign(mended, rules, losses)
    mended = _reasoning(mended, rules, edits)
    mended = _without_blank(mended, rules, edits)
    if rules.results_together:
        mended = _together(mended)
    mended = _system(mended, rules, losses, leading=leading, follows=follows)
    if rules.merge_calls:
        mended = _join(mended)
    if rules.calls_last:
        mended = _calls_last(mended, edits)
    if leading and follows is None:
        mended = within_room(mended, rules, blob, losses)
    strays = bool(pairs.orphans or pairs.duplicates or pairs.by_name)
    return Repaired(tuple(mended), tuple(edits), tuple(losses), strays=strays)


def close(view: Sequence[Shown], rules: Rules) -> Closed:
    """A whole repaired view with a legal beginning and a legal end: only its first and last messages are looked at."""
    edits: list[Edit] = []
    ended = _stripped(list(view), rules, edits) if rules.strip_last and rules.last == "any" else list(view)
    kept = len(ended) - bool(ended and ended[-1] is not view[len(ended) - 1])
    opening, closing = added_ends(ended, rules)
    at = -1
    if opening is not None:
        at = next(i for i, shown in enumerate(ended) if shown.message.role != "system")
        edits.append(Edit("starts_with_assistant", "a user message put ahead of the first answer", opening.records))
        ended.insert(at, opening)
    if closing is not None:
        ended.append(closing)
        if closing.records:
            detail = "a user message put behind the last answer"
            edits.append(Edit("ends_with_assistant", detail, closing.records))
        else:
            edits.append(Edit("empty", "no message to send: a placeholder stands for one"))
    off = rules.loop_needs_reasoning and _open_loop_without_reasoning(ended)
    if off:
        edits.append(Edit("thinking", "thinking switched off until the open tool loop closes", ended[-1].records))
    return Closed(tuple(ended), tuple(edits), at, kept, off)


def named_tools(tools: Sequence[Tool], rules: Rules) -> tuple[tuple[Tool, ...], list[Edit]]:
    """Tools under names that the rules accept."""
    edits: list[Edit] = []
    named: list[Tool] = []
    for tool in tools:
        name = tool.name if tool.kind == "hosted" else sendable_name(tool.name, rules)
        if name != tool.name:
            edits.append(Edit("name", f"tool {tool.name!r} declared as {name!r}"))
            tool = msgspec.structs.replace(tool, name=name)
        named.append(tool)
    return tuple(named), edits


def declare_tools(view: Sequence[Shown], tools: Sequence[Tool], rules: Rules) -> tuple[tuple[Tool, ...], list[Edit]]:
    """The tools of a request: those given; if there are none, and the view holds calls, a declaration
    for each tool called, one that takes any object.

    A tool that is called in the history and not among those given was taken away: it stays away.
    """
    if tools:
        return named_tools(tools, rules)
    edits: list[Edit] = []
    declared: list[Tool] = []
    names: set[str] = set()
    for shown in view:
        for part in shown.message.parts:
            if isinstance(part, ToolCall) and part.name not in names:
                names.add(part.name)
                native = part.kind in rules.call_kinds
                if native and part.kind not in ("function", "custom"):
                    continue  # declared by its kind, not by name
                custom = native and part.kind == "custom"
                schema = None if custom else {"type": "object", "properties": {}}
                declared.append(Tool(part.name, parameters=schema, kind="custom" if custom else "function"))
                edits.append(
                    Edit(
                        "tool",
                        f"tool {part.name!r} is called but not declared: declared for any arguments",
                        shown.records,
                    )
                )
    return tuple(declared), edits


def _system(view: list[Shown], rules: Rules, losses: list[Loss], *, leading: bool, follows: Role | None) -> list[Shown]:
    """System text where it may stand; elsewhere it is shown as a user's."""
    if rules.system == "inline":
        return view
    first = next((i for i, shown in enumerate(view) if shown.message.role != "system"), len(view)) if leading else 0
    out = list(view)
    for i in range(len(view) - 1, first - 1, -1):  # backwards: what comes next decides
        shown = view[i]
        if shown.message.role != "system":
            continue
        next_role = out[i + 1].message.role if i + 1 < len(out) else follows or "assistant"
        legal = i > 0 and view[i - 1].message.role != "assistant" and next_role != "user"
        if rules.system == "top_or_after_user" and legal:
            continue
        left = without_extras(shown.message.form, name=shown.message.name, own=rules.provider)
        losses.append(Loss("place", f"system text in mid-conversation shown as a user message{left}", shown.records))
        out[i] = Shown(as_users(shown.message), shown.records, "repaired")
    return out


def as_users(message: Message) -> Message:
    """System text as a user's, where a provider has no place for it."""
    return Message("user", (Text("[system]"), *message.parts))


def _sign(view: list[Shown], rules: Rules, losses: list[Loss]) -> list[Shown]:
    """The documented stand-in on the first call of each step that nobody signed."""
    if not rules.step_signature:
        return view
    out: list[Shown] = []
    for shown in view:
        signed = signed_call(shown.message, rules)
        if signed is not None:
            first = next(j for j, part in enumerate(shown.message.parts) if isinstance(part, ToolCall))
            shown = with_parts(shown, (*shown.message.parts[:first], signed, *shown.message.parts[first + 1 :]))
            what = f"call of {signed.name!r} had no signature: sent with the placeholder that Google documents"
            losses.append(Loss("signature", what, shown.records))
        out.append(shown)
    return out


def signed_call(message: Message, rules: Rules) -> ToolCall | None:
    """The first call of a step with the documented stand-in, if the rules want a signature and nobody gave one."""
    call = next((part for part in message.parts if isinstance(part, ToolCall)), None) if rules.step_signature else None
    if call is None or (call.signature and call.provider in ("", rules.provider)):
        return None
    return msgspec.structs.replace(call, signature=rules.step_signature, provider=rules.provider)


def _reasoning(view: list[Shown], rules: Rules, edits: list[Edit]) -> list[Shown]:
    """No reasoning without what it led to, where the rules ask for it."""
    if not (rules.reasoning_needs_follower or rules.reasoning_not_last):
        return view
    out: list[Shown] = []
    followed = False
    for shown in reversed(view):
        if shown.message.role != "assistant":
            followed = False
            out.append(shown)
            continue
        kept: list[Part] = []
        for part in reversed(shown.message.parts):
            if isinstance(part, Reasoning) and not followed:
                edits.append(Edit("reasoning", "reasoning at the end of the answer left out", shown.records))
                continue
            if not isinstance(part, Reasoning):
                followed = not (isinstance(part, Opaque) and part.kind in rules.not_followers)
            kept.append(part)
        if kept:
            out.append(with_parts(shown, tuple(reversed(kept))))
    return out[::-1]


def _without_blank(view: list[Shown], rules: Rules, edits: list[Edit]) -> list[Shown]:
    """No message of whitespace alone: where a result was moved or left out, that may be what stood beside it."""
    if rules.blank_text:
        return view
    out: list[Shown] = []
    for shown in view:
        if is_blank(shown.message.parts):
            edits.append(Edit("empty", f"blank text of a {shown.message.role} message left out", shown.records))
        else:
            out.append(shown)
    return out


def added_ends(view: Sequence[Shown], rules: Rules) -> tuple[Shown | None, Shown | None]:
    """What has to stand ahead of the first message that is no system text, and what behind the last."""
    first = next((shown for shown in view if shown.message.role != "system"), None)
    if first is None:
        none = rules.calls_elsewhere or (view and rules.system_only)
        return None, None if none else Shown(Message("user", (Text(NOTHING),)), (), "synthetic")
    opening = closing = None
    if first.message.role == "assistant" and rules.first != "any":
        talk = (shown for shown in view if shown.message.role != "system")
        run = takewhile(lambda shown: shown.message.role == "assistant", talk)
        calls = any(isinstance(part, ToolCall) for shown in run for part in shown.message.parts)
        if rules.first == "user" or calls:
            opening = Shown(Message("user", (Text(EARLIER),)), first.records, "synthetic")
    last = next(shown for shown in reversed(view) if shown.message.role != "system")
    if last.message.role == "assistant" and rules.last == "user" and not is_paused(last.message, rules):
        closing = Shown(Message("user", (Text(CONTINUE),)), last.records, "synthetic")
    return opening, closing


def _stripped(view: list[Shown], rules: Rules, edits: list[Edit]) -> list[Shown]:
    """The view with a final answer that ends neither with whitespace nor, where that may not be, with reasoning."""
    if not view or view[-1].message.role != "assistant":
        return view
    shown = view[-1]
    parts = list(shown.message.parts)
    while parts:
        tail = parts[-1]
        if isinstance(tail, Text) and tail.text != tail.text.rstrip():
            edits.append(Edit("whitespace", "trailing whitespace of the last answer left out", shown.records))
            parts[-1] = msgspec.structs.replace(tail, text=tail.text.rstrip())
        elif isinstance(tail, Text) and not tail.text:
            parts.pop()
        elif isinstance(tail, Reasoning) and rules.reasoning_not_last:
            edits.append(Edit("reasoning", "reasoning at the end of the answer left out", shown.records))
            parts.pop()
        else:
            return [*view[:-1], with_parts(shown, tuple(parts))]
    return _stripped(view[:-1], rules, edits)


def _together(view: list[Shown]) -> list[Shown]:
    """The view with results on end in one message."""
    out: list[Shown] = []
    for shown in view:
        if out and has_results_alone(shown.message) and has_results_alone(out[-1].message):
            before = out.pop()
            shown = _as_one([before, shown])
        out.append(shown)
    return out


def has_results_alone(message: Message) -> bool:
    """Whether a user's message is results, and nothing else."""
    alone = message.role == "user" and bool(message.parts) and not message.name
    return alone and all(isinstance(part, ToolResult) for part in message.parts)


def _as_one(several: Sequence[Shown]) -> Shown:
    parts = tuple(part for shown in several for part in shown.message.parts)
    records = tuple(dict.fromkeys(n for shown in several for n in shown.records))
    first = several[0].message
    return Shown(Message(first.role, parts, name=first.name), records, "joined")


def _join(view: list[Shown]) -> list[Shown]:
    """The view with the answers of each of `joined_runs` as one message."""
    out: list[Shown] = []
    at = 0
    for run in joined_runs(view):
        out += [*view[at : run[0]], _as_one([view[i] for i in run])]
        at = run[-1] + 1
    return [*out, *view[at:]]


def joined_runs(view: Sequence[Shown]) -> Iterator[range]:
    """Consecutive answers, the first of which calls tools: its results must follow directly, and the next answers
    stand in the way."""
    start: int | None = None
    for i, shown in enumerate(view):
        if shown.message.role != "assistant":
            if start is not None and i - start > 1:
                yield range(start, i)
            start = None
        elif start is None and any(isinstance(part, ToolCall) for part in shown.message.parts):
            start = i
    if start is not None and len(view) - start > 1:
        yield range(start, len(view))


def _calls_last(view: Sequence[Shown], edits: list[Edit]) -> list[Shown]:
    """The view with the calls of answers on end behind all that these say."""
    out: list[Shown] = []
    for answers, group in groupby(view, key=lambda shown: shown.message.role == "assistant"):
        run = list(group)
        places = [(i, part) for i, shown in enumerate(run) for part in shown.message.parts] if answers else []
        said = max((n for n, (_, part) in enumerate(places) if isinstance(part, (Text, Media))), default=-1)
        first = next((n for n, (_, part) in enumerate(places) if isinstance(part, ToolCall)), said)
        if first >= said:
            out += run
            continue
        start, end = places[first][0], places[said][0] + 1
        joined = run[start] if end == start + 1 else _as_one(run[start:end])
        ahead = [part for i, part in places[: said + 1] if i >= start]
        talk = (part for part in ahead if not isinstance(part, ToolCall))
        calls = (part for part in ahead if isinstance(part, ToolCall))
        rest = (part for i, part in places[said + 1 :] if i < end)
        out += [*run[:start], with_parts(joined, (*talk, *calls, *rest)), *run[end:]]
        edits.append(Edit("moved", "calls stand behind what their answer says", joined.records))
    return out


def _open_loop_without_reasoning(view: Sequence[Shown]) -> bool:
    """Whether the view ends in the results of an assistant turn that does not start with reasoning."""
    i = len(view)
    results = False
    while i and view[i - 1].message.role != "assistant":
        i -= 1
        results = results or any(isinstance(part, ToolResult) for part in view[i].message.parts)
    if not results:
        return False
    while i and view[i - 1].message.role == "assistant":
        i -= 1
    return i < len(view) and not isinstance(view[i].message.parts[0], Reasoning)
