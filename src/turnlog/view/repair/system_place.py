"""System text where a provider accepts it."""

from __future__ import annotations

from collections.abc import Sequence

from ...log.messages import Message, Opaque, Role, Text
from ..rules import Rules
from ..types import Edit, Loss, Shown, without_extras

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
    behind the view."""
    if rules.system == "inline":
        return list(view), False
    placed, waits = moved(view, rules, edits, leading=leading, follows=follows)
    first = _head(placed) if leading else 0
    return [*placed[:first], *_as_user_messages(placed[first:], rules, losses, follows)], waits


def _head(view: Sequence[Shown]) -> int:
    """How many system messages the view begins with."""
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
    """The view in which each message that has to stay a system message follows what users say before the next answer,
    and system messages after it stay there. If nobody says anything before that answer, it goes on to the next place,
    unless `past_answers` is False. Also returns whether the message after the view decides where it goes."""
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
        edits += (Edit("place", detail, one.records, _RULE) for one in changed if one.treatment != "appended")
    return out, waits


def _is_answer(view: Sequence[Shown]) -> bool:
    """Whether an answer could be continued by the next message: the view ends with one, or is empty."""
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
