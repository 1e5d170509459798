"""Make any history valid under a provider's rules.

`repair` takes a part of a conversation through steps, each a function of the view before it: clean each message, pair
calls with results, arrange the results, repair calls that the provider answers itself, sign steps, repair reasoning,
place system text, join what must be one message, put calls last, limit media. `close` makes the beginning and the end
of a whole view legal. Repairing a valid view changes nothing; repairing twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, takewhile

import msgspec
from msgspec import Struct

from ..._platform.units import an
from ...log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    is_compaction,
    unchanged,
)
from ..rules import Rules
from ..types import Edit, Loss, Shown, starts_turn, without_extras
from .alternate import alternating, as_texts, open_loop_without
from .arrange import Fate, arrange, as_one, has_results_alone, with_parts
from .clean import add_word, clean, is_blank, sendable_name
from .media_room import within_room
from .own_calls import has_own_strays, is_paused, own_calls
from .pairing import pair

# -- system place ----------------------------------------------------------------------------------
#
# System text where a provider accepts it.

_RULE = "a system message must follow a user message and be the last message or be followed by an assistant message"


def place_system(
    view: Sequence[Shown],
    rules: Rules,
    edits: list[Edit],
    losses: list[Loss],
    *,
    leading: bool,
    follows: Role | None,
) -> tuple[list[Shown], bool]:
    """The view with system text only where the rules allow it. Elsewhere it is shown as a user message; a message that
    has to stay a system message is moved to the next place that is allowed. Also returns whether that place may be
    after the view."""
    if rules.system == "inline":
        return list(view), False
    placed, waits = moved(view, rules, edits, leading=leading, follows=follows)
    first = _head(placed) if leading and rules.system != "none" else 0
    return [*placed[:first], *_as_user_messages(placed[first:], rules, losses, follows)], waits


def _head(view: Sequence[Shown]) -> int:
    """The number of system messages that the view begins with."""
    return next((i for i, shown in enumerate(view) if shown.message.role != "system"), len(view))


def moved(
    view: Sequence[Shown],
    rules: Rules,
    edits: list[Edit],
    *,
    leading: bool,
    follows: Role | None,
    past_answers: bool = True,
) -> tuple[list[Shown], bool]:
    """The view in which each message that has to stay a system message follows the user messages before the next
    answer, as do system messages after it. If there is no user message before that answer, the system message goes on
    to the next place, unless `past_answers` is False. Also returns whether the message after the view decides where it
    goes."""
    if rules.system != "top_or_after_user":
        return list(view), False
    if not any(shown.message.role == "system" and _stays(shown, rules) for shown in view):
        return list(view), False
    first = _head(view) if leading else 0
    out, held = list(view[:first]), list[Shown]()
    for shown in view[first:]:
        if shown.message.role == "system" and (held or _stays(shown, rules)):
            held.append(shown)
            continue
        if shown.message.role == "assistant" and not (past_answers and _is_answer(out)):
            out, held = out + held, []
        out.append(shown)
    waits = past_answers and bool(held) and (follows == "user" or (follows == "assistant" and _is_answer(out)))
    out += held
    if not waits:
        changed = (b for a, b in zip(view, out, strict=True) if a is not b and b.message.role == "system")
        detail = "system message moved behind the user's message"
        edits += (
            Edit("place", detail, message.records, _RULE) for message in changed if message.treatment != "appended"
        )
    return out, waits


def _is_answer(view: Sequence[Shown]) -> bool:
    """Whether the next message could continue an answer: the view ends with an answer, or is empty."""
    return not view or view[-1].message.role == "assistant"


def _stays(shown: Shown, rules: Rules) -> bool:
    """Whether a system message has to stay one."""
    return shown.treatment == "appended" or any(_is_system_part(part, rules) for part in shown.message.parts)


def _is_system_part(part: object, rules: Rules) -> bool:
    return isinstance(part, Opaque) and part.provider == rules.provider and part.kind in rules.system_parts


def _as_user_messages(view: list[Shown], rules: Rules, losses: list[Loss], follows: Role | None) -> list[Shown]:
    """The view in which system text is a user message where the rules do not allow it."""
    out = list(view)
    for i in range(len(view) - 1, -1, -1):  # backwards, as the next message decides
        shown = view[i]
        if shown.message.role != "system":
            continue
        next_role = out[i + 1].message.role if i + 1 < len(out) else follows or "assistant"
        legal = i > 0 and view[i - 1].message.role != "assistant" and next_role != "user"
        # If one that has to stay is at the end, `close` puts a message of the user before it.
        if rules.system == "top_or_after_user" and (legal or _stays(shown, rules)):
            continue
        left = without_extras(shown.message.form, name=shown.message.name, own=rules.provider)
        losses.append(Loss("place", f"system text in mid-conversation shown as a user message{left}", shown.records))
        out[i] = Shown(as_users(shown.message), shown.records, "repaired")
    return out


def as_users(message: Message) -> Message:
    """System text as a user message, for places where the provider does not accept system text."""
    return Message("user", (Text("[system]"), *message.parts))


EARLIER = "[The conversation began earlier.]"
NOTHING = "[No message yet.]"
CONTINUE = "Please continue."


class Repaired(Struct, frozen=True, gc=False):
    """A view as the rules accept it, and the changes.

    `strays`: the view had results without a call. `early` are the ids of results whose call may
    follow the view, `waiting` the ids of calls whose result may have come before it. `unplaced`: where system text may
    be depends on the message after the next.
    """

    view: tuple[Shown, ...]
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    strays: bool = False
    early: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    unplaced: bool = False


class Closed(Struct, frozen=True, gc=False):
    """A whole view with a legal beginning and end, and the changes.

    `opening` is the index of the user message that was added before the first answer, -1 if none was. The first `kept`
    messages of the given view are unchanged; all later ones are new. `thinking_off`: thinking must be switched off in
    requests until the open tool loop closes.
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
    """A part of a conversation as `rules` accept it, except for its beginning and end (see `close`).

    `fate` tells what is known about calls without a result; `blob` reads media. `leading`: no message comes before this
    part. `follows`: the role of the message after it, None if there is none. If the part is the whole conversation, the
    limits on the media of a request are applied too.
    """
    cleaned, edits, losses = clean(view, rules)
    # First, as a result behind such a message would be taken for a misplaced one.
    cleaned = moved(cleaned, rules, edits, leading=leading, follows=follows, past_answers=False)[0]
    pairs = pair(cleaned)
    mended, changes = arrange(cleaned, pairs, rules, fate)
    edits += changes
    mended = own_calls(mended, rules, edits, more=follows is not None)
    mended = _sign(mended, rules, losses)
    mended = _reasoning(mended, rules, edits)
    mended = _without_blank(mended, rules, edits)
    if rules.results_together:
        mended = _together(mended, rules)
    mended, unplaced = place_system(mended, rules, edits, losses, leading=leading, follows=follows)
    if rules.calls_as_text:
        mended = as_texts(mended, edits)
    if rules.merge_calls:
        mended = _join(mended)
    if rules.calls_last:
        mended = _calls_last(mended, edits)
    if leading and follows is None:
        mended = within_room(mended, rules, blob, losses)
    strays = bool(pairs.orphans) or has_own_strays(cleaned, rules)
    word = next((i for i, shown in enumerate(cleaned) if starts_turn(shown)), len(cleaned))
    waiting = frozenset(getattr(cleaned[i].message.parts[j], "id", "") for i, j in pairs.waiting if i < word)
    return Repaired(tuple(mended), tuple(edits), tuple(losses), strays, pairs.early, waiting, unplaced)


def close(view: Sequence[Shown], rules: Rules, *, has_word: bool) -> Closed:
    """A whole repaired view with a legal beginning and end. Only its first and last messages are examined. `has_word`:
    see `contains_word`."""
    edits: list[Edit] = []
    ended = _stripped(list(view), rules, edits) if rules.strip_last and rules.last == "any" else list(view)
    kept_count = len(ended) - bool(ended and ended[-1] is not view[len(ended) - 1])
    opening, closing = added_ends(ended, rules)
    opening_index = -1
    if opening is not None:
        opening_index = next(i for i, shown in enumerate(ended) if shown.message.role != "system")
        edits.append(Edit("starts_with_assistant", "a user message added before the first answer", opening.records))
        ended.insert(opening_index, opening)
    if closing is not None:
        end = max((i + 1 for i, shown in enumerate(ended) if shown.message.role != "system"), default=len(ended))
        kept_count = min(kept_count, end - (opening_index >= 0))
        ended.insert(end, closing)
        if closing.records:
            detail = "a user message added after the last answer"
            edits.append(Edit("ends_with_assistant", detail, closing.records))
        else:
            edits.append(Edit("empty", "no message to send: a placeholder is sent"))
    if rules.word is not None and not has_word:
        add_word(ended, rules, edits)
    off = rules.loop_needs_reasoning and _open_loop_without_reasoning(ended)
    off = off or bool(rules.loop_needs_kind and open_loop_without(ended, rules))
    if off:
        edits.append(Edit("thinking", "thinking switched off until the open tool loop closes", ended[-1].records))
    if rules.one_system or rules.alternates:
        shaped = alternating(ended, rules, edits)
        if not unchanged(shaped, ended):
            return Closed(tuple(shaped), tuple(edits), -1, 0, off)
    return Closed(tuple(ended), tuple(edits), opening_index, kept_count, off)


def named_tools(tools: Sequence[Tool], rules: Rules) -> tuple[tuple[Tool, ...], list[Edit]]:
    """The tools under names that the rules accept."""
    edits: list[Edit] = []
    named: list[Tool] = []
    for tool in tools:
        name = tool.name if tool.kind == "hosted" else sendable_name(tool.name, rules)
        if name != tool.name:
            edits.append(Edit("name", f"tool {tool.name!r} declared as {name!r}"))
            tool = msgspec.structs.replace(tool, name=name)
        named.append(tool)
    return tuple(named), edits


def is_declared_by_name(call: ToolCall, rules: Rules) -> bool:
    """Whether the tool of a call is declared under its name; tools of the provider's own are declared by their kind."""
    return call.kind in ("function", "custom") or call.kind not in rules.call_kinds


def declare_tools(view: Sequence[Shown], tools: Sequence[Tool], rules: Rules) -> tuple[tuple[Tool, ...], list[Edit]]:
    """The tools that a request declares: those given. If none are given and the view has calls, each called tool is
    declared, with any object as its arguments.

    If tools are given, a called tool that is not among them is not declared, as it was removed on purpose.
    """
    if tools:
        return named_tools(tools, rules)
    edits: list[Edit] = []
    declared: list[Tool] = []
    names: set[str] = set()
    for shown in view:
        for part in shown.message.parts:
            if isinstance(part, ToolCall) and part.name not in names and is_declared_by_name(part, rules):
                names.add(part.name)
                custom = part.kind == "custom" and part.kind in rules.call_kinds
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


def _sign(view: list[Shown], rules: Rules, losses: list[Loss]) -> list[Shown]:
    """The view with the documented placeholder as the signature of the first call of each step that has none."""
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
    """The first call of a step with the documented placeholder as its signature; None if the rules require no signature
    or the call has one."""
    call = next((part for part in message.parts if isinstance(part, ToolCall)), None) if rules.step_signature else None
    if call is None or (call.signature and call.provider in ("", rules.provider)):
        return None
    return msgspec.structs.replace(call, signature=rules.step_signature, provider=rules.provider)


def _reasoning(view: list[Shown], rules: Rules, edits: list[Edit]) -> list[Shown]:
    """The view without reasoning that is not followed by what it led to, if the rules forbid such reasoning."""
    if not (rules.reasoning_needs_follower or rules.reasoning_not_last):
        return view
    out: list[Shown] = []
    followed = False
    for shown in reversed(view):
        if shown.message.role != "assistant":
            followed = False
            out.append(shown)
            continue
        remaining: list[Part] = []
        for part in reversed(shown.message.parts):
            if isinstance(part, Reasoning) and not followed:
                edits.append(Edit("reasoning", "reasoning at the end of the answer left out", shown.records))
                continue
            if not isinstance(part, Reasoning):
                followed = not (isinstance(part, Opaque) and part.kind in rules.not_followers)
            remaining.append(part)
        if remaining:
            out.append(with_parts(shown, tuple(reversed(remaining))))
    return out[::-1]


def _without_blank(view: list[Shown], rules: Rules, edits: list[Edit]) -> list[Shown]:
    """The view without messages of only whitespace. Such a message may remain when a result in it is moved or left
    out."""
    if rules.blank_text:
        return view
    out: list[Shown] = []
    for shown in view:
        if is_blank(shown.message.parts):
            edits.append(Edit("empty", f"blank text of {an(shown.message.role)} message left out", shown.records))
        else:
            out.append(shown)
    return out


def added_ends(view: Sequence[Shown], rules: Rules) -> tuple[Shown | None, Shown | None]:
    """The messages that have to be added before the first message other than system text, and after the last message;
    None if nothing has to be added there."""
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
    must_follow = rules.last == "user" or (rules.system == "top_or_after_user" and view[-1].message.role == "system")
    if last.message.role == "assistant" and must_follow and not is_paused(last.message, rules):
        closing = Shown(Message("user", (Text(CONTINUE),)), last.records, "synthetic")
    return opening, closing


def _stripped(view: list[Shown], rules: Rules, edits: list[Edit]) -> list[Shown]:
    """The view with a final answer that ends neither with whitespace nor, if the rules forbid that, with reasoning."""
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


def _together(view: list[Shown], rules: Rules) -> list[Shown]:
    """The view with consecutive results in one message: all of them, or only those that repair added and their
    neighbours."""
    out: list[Shown] = []
    for shown in view:
        if out and has_results_alone(shown.message) and has_results_alone(out[-1].message):
            treatments = {out[-1].treatment, shown.treatment}
            if rules.results_together == "all":
                shown = as_one([out.pop(), shown])
            elif "synthetic" in treatments:
                shown = as_one([out.pop(), shown], "synthetic" if len(treatments) == 1 else "repaired")
        out.append(shown)
    return out


def _join(view: list[Shown]) -> list[Shown]:
    """The view with the answers of each run in `joined_runs` as one message."""
    out: list[Shown] = []
    next_index = 0
    for run in joined_runs(view):
        out += [*view[next_index : run[0]], as_one([view[i] for i in run])]
        next_index = run[-1] + 1
    return [*out, *view[next_index:]]


def joined_runs(view: Sequence[Shown]) -> Iterator[range]:
    """Runs of consecutive answers to join: the first answer calls tools, and its results must follow it directly, but
    the other answers are in between."""
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
    """The view in which the calls of consecutive answers come after the text and media of these answers."""
    out: list[Shown] = []
    for answers, group in groupby(view, key=lambda shown: shown.message.role == "assistant"):
        run = list(group)
        places = [(i, part) for i, shown in enumerate(run) for part in shown.message.parts] if answers else []
        last_text = max((n for n, (_, part) in enumerate(places) if isinstance(part, (Text, Media))), default=-1)
        first = next((n for n, (_, part) in enumerate(places) if isinstance(part, ToolCall)), last_text)
        if first >= last_text:
            out += run
            continue
        start, end = places[first][0], places[last_text][0] + 1
        joined = run[start] if end == start + 1 else as_one(run[start:end])
        ahead = [part for i, part in places[: last_text + 1] if i >= start]
        talk = (part for part in ahead if not isinstance(part, ToolCall))
        calls = (part for part in ahead if isinstance(part, ToolCall))
        rest = (part for i, part in places[last_text + 1 :] if i < end)
        out += [*run[:start], with_parts(joined, (*talk, *calls, *rest)), *run[end:]]
        edits.append(Edit("moved", "calls moved behind the text of their answer", joined.records))
    return out


def _open_loop_without_reasoning(view: Sequence[Shown]) -> bool:
    """Whether the view ends with the results of an assistant turn that does not start with reasoning."""
    i = len(view)
    results = False
    while i and view[i - 1].message.role != "assistant":
        i -= 1
        results = results or any(isinstance(part, ToolResult) for part in view[i].message.parts)
    if not results:
        return False
    while i and view[i - 1].message.role == "assistant":
        i -= 1
    # A compaction stands for what came before the turn.
    parts = (part for shown in view[i:] for part in shown.message.parts if not is_compaction(part))
    return not isinstance(next(parts, None), Reasoning)
