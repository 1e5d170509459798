"""Which sessions are subagents of which: their ids, their costs and their end go by that."""

from __future__ import annotations

from collections.abc import Iterable

from ..log.store import SessionInfo

SUBAGENT = "subagent"
"""Topic of the note with which a session says that a child of it is made; the text is the child's id."""


def descendants(infos: Iterable[SessionInfo], session_id: str) -> list[SessionInfo]:
    """The sessions that belong to this one, and those that belong to them, in the order of `infos`: its subagents.
    Forks, which share records, are none."""
    infos = list(infos)
    found, near = set[str](), {session_id}
    while near:
        near = {info.id for info in infos if info.parent in near and not info.parent_records} - found - {session_id}
        found |= near
    return [info for info in infos if info.id in found]


def agent_id(session_id: str, name: str) -> str:
    """The id of a session's subagent of this name, as `session.child` and the importers of Claude Code make it."""
    return f"{session_id}.agent-{name}"


def leaders(infos: Iterable[SessionInfo]) -> dict[str, str]:
    """For each subagent whose id is made from that of its session, which it is deleted with: that session. Others that
    belong to a session (copies that Codex made, for some) may be what somebody went on with."""
    infos = list(infos)
    names = {info.id for info in infos}
    return {
        info.id: info.parent
        for info in infos
        if info.parent in names and not info.parent_records and info.id.startswith(agent_id(info.parent, ""))
    }


def with_agents(infos: Iterable[SessionInfo], session_id: str) -> list[str]:
    """The ids of a session and of the subagents that are deleted with it."""
    found, by_agent = [session_id], leaders(infos)
    for each in found:
        found += [agent for agent, leader in by_agent.items() if leader == each]
    return found
