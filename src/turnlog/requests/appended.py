"""Changes of tools and system text during a session, told by messages at the places where they were made.

A change at the beginning of a request makes the provider read everything anew, and invalidates reasoning that is bound
to it. Some models are told about changes by system messages within the conversation instead. The next decision that
leaves out or shortens messages changes the beginning anyway, so the changes before it move there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from ..log.actions import action_of
from ..log.messages import Message, Part, Text, Tool
from ..log.records import Configuration, Decision
from ..models.target import Target
from ..view.repair.repair import named_tools
from ..view.rules import Rules
from ..view.types import Shown
from .translate import plan

FOLD = "fold"
"""The action of a decision that only moves changes to the beginning."""

_REPLACED = "[From here on, this replaces the system text at the beginning:]"


class ChangeDelivery(Struct, frozen=True):
    """The kinds of change that requests for a target tell within the conversation; none without a target."""

    target: Target | None = None
    system: bool = False
    tools: bool = False

    @classmethod
    def of(cls, target: Target, rules: Rules) -> ChangeDelivery:
        """The kinds of change that a target's rules allow."""
        if not (rules.system_appended or rules.tools_appended):
            return cls()
        return cls(target, rules.system_appended, rules.tools_appended)


class InlineChanges(Struct, frozen=True):
    """The changes of a session that its requests tell within the conversation.

    `tools` are declared at the beginning of a request. `messages` tell the later changes, each with the number of the
    record that made it; `decisions` are the numbers of those that replaced system text.
    """

    tools: tuple[Tool, ...]
    messages: tuple[Shown, ...] = ()
    decisions: frozenset[int] = frozenset()


def folded_until(decisions: Mapping[int, Decision], first_answer: int) -> int:
    """The number of the last record whose changes are told at the beginning of requests. Before the `first_answer` that
    is shown nothing was cached or thought, and a decision in `decisions` (those in force) that made room changed the
    beginning anyway."""
    return max((first_answer, *(n for n, decision in decisions.items() if action_of(decision.action).refreshes)))


def system_texts(decisions: Mapping[int, Decision]) -> Iterator[tuple[int, str]]:
    """The decisions that replaced system text, and the new text."""
    for n, decision in decisions.items():
        if decision.action == "system" and decision.detail.get("texts"):
            yield n, "\n\n".join(text for _, _, text in decision.detail["texts"] if text)


def appended(
    configuration: Configuration,
    ways: ChangeDelivery,
    since: int,
    texts: Iterable[tuple[int, str]],
    configured: Sequence[tuple[int, tuple[Tool, ...]]],
) -> InlineChanges:
    """The changes after record `since`. `texts` are replacements of system text by record number; `configured` are the
    tools of each configuration by record number, oldest first, from the one in force at `since` on."""
    declared, told = configuration.tools, dict[int, tuple[Part, ...]]()
    if ways.target is not None and ways.tools:
        since, declared, told = _tool_changes(configuration, ways.target, since, configured)
    replaced = {n: text for n, text in texts if n > since} if ways.system else {}
    told.update((n, (Text(f"{_REPLACED}\n\n{text}"),)) for n, text in replaced.items())
    messages = (Shown(Message("system", told[n]), (n,), "appended") for n in sorted(told))
    return InlineChanges(declared, tuple(messages), frozenset(replaced))


def _tool_changes(
    configuration: Configuration, target: Target, since: int, configured: Sequence[tuple[int, tuple[Tool, ...]]]
) -> tuple[int, tuple[Tool, ...], dict[int, tuple[Part, ...]]]:
    """The record up to which changes are told at the beginning, the tools declared there, and the parts that tell each
    later change of tools. A change that parts cannot tell is told at the beginning, with all before it."""
    declared: tuple[Tool, ...] = ()
    top: tuple[Tool, ...] = ()
    before: tuple[Tool, ...] = ()
    told: dict[int, tuple[Part, ...]] = {}
    given: tuple[Tool, ...] | None = None
    for n, tools in configured:
        if n > since and tools == given:
            continue  # another change of the configuration
        given = tools
        ways = plan(msgspec.structs.replace(configuration, tools=tools), target)
        named = named_tools(ways.local.tools, ways.rules)[0]
        parts = None if n <= since else ways.provider.tool_changes(top, before, named)
        if parts is None:
            since, declared, top, told = max(since, n), tools, named, {}
        elif parts:
            told[n] = parts
        before = named
    return since, declared, told
