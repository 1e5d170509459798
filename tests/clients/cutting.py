"""Streams that break: one answer, cut after every number of events, and what must hold each time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

from asking import AGENTS, asking
from replies import REPLIES
from sdk_clients import ERRORS, SdkClient

from judging import errors_of
from turnlog.log.messages import Message, Reasoning, Text, ToolCall
from turnlog.log.records import MessageRecord, PartialAnswer
from turnlog.models.target import Target
from turnlog.session.session import Session

__all__ = ["Cuts", "cut_everywhere"]

_MOST = 300
"""Events of the longest reply; a loop that gets here has found no end."""


class Cuts(NamedTuple):
    """How often a stream was cut, how often its error came out of `receive`, and what went wrong."""

    cuts: int
    raised: int
    findings: list[str]


def cut_everywhere(
    server: Any, clients: dict[str, SdkClient], oracle: ModuleType, aim: Target, name: str, *, by_error: bool = False
) -> Cuts:
    """Cut the reply `name` after 0, 1, 2, ... events until it comes whole.

    The connection drops, or with `by_error` the provider reports an error in mid-stream. Each time
    the answer must be recorded as partial with a reason, and the next request must be accepted: by
    the oracle for every agent, by the server for this one and the next.
    """
    findings: list[str] = []
    said: list[Message] = []
    raised = 0
    for at in range(_MOST):
        session = asking(aim)
        server.script({**REPLIES[name], "cut_after": at, **({"stream_error": "overloaded"} if by_error else {})})
        whole, error = _receive(session, clients[aim.provider], aim)
        raised += error is not None
        record = next(r for r in reversed(session.history()) if isinstance(r.body, (MessageRecord, PartialAnswer)))
        if whole != isinstance(record.body, MessageRecord):
            findings.append(f"after {at}: whole={whole}, recorded as {type(record.body).__name__}")
        if isinstance(record.body, PartialAnswer) and not record.body.reason:
            findings.append(f"after {at}: no reason")
        said.append(record.body.message)  # type: ignore[union-attr]
        findings += [f"after {at}: {what}" for what in _next_request(session, clients, oracle, aim)]
        if whole:
            return Cuts(at, raised, findings + _shrinking(said))
    return Cuts(_MOST, raised, [*findings, "never whole"])


def _receive(session: Session, client: SdkClient, aim: Target) -> tuple[bool, Exception | None]:
    """Whether the answer came whole, and the error that `receive` raised again."""
    try:
        return session.receive(client.stream(session.request().body, aim.model)).complete, None
    except ERRORS as error:
        return False, error


def _next_request(session: Session, clients: dict[str, SdkClient], oracle: ModuleType, aim: Target) -> list[str]:
    """What the oracle says of the next request to each agent, and the server of two of them."""
    session.user("Go on.")
    following = AGENTS[(AGENTS.index(aim) + 1) % len(AGENTS)] if aim in AGENTS else AGENTS[0]
    refused = []
    for to in (aim, *(agent for agent in AGENTS if agent != aim)):
        if to == following:
            session.switch(to)
        request = session.request(to).body
        refused += [f"{to.provider} would refuse: {what}" for what in errors_of(oracle, to, request)]
        if to in (aim, following):
            try:
                clients[to.provider].send(request, to.model)
            except ERRORS as error:
                refused.append(f"{to.provider} refused: {error}")
    return refused


def _shrinking(said: Sequence[Message]) -> list[str]:
    """Where less was recorded than one event earlier, or other than the whole answer says."""
    wrong = []
    for at, (less, more) in enumerate(pairwise(said)):
        if not _begins(less, more) or not _begins(less, said[-1]):
            wrong.append(f"after {at}: {less.parts} is no beginning of {more.parts}")
    return wrong


def _begins(less: Message, more: Message) -> bool:
    """Whether `more` says all that `less` says; ids differ from answer to answer."""
    texts = ["".join(part.text for part in message.parts if isinstance(part, Text)) for message in (less, more)]
    calls = [
        [(part.name, part.arguments, part.raw) for part in message.parts if isinstance(part, ToolCall)]
        for message in (less, more)
    ]
    thoughts = ["".join(_thought(part) for part in message.parts) for message in (less, more)]
    return (
        texts[1].startswith(texts[0]) and thoughts[1].startswith(thoughts[0]) and calls[1][: len(calls[0])] == calls[0]
    )


def _thought(part: Any) -> str:
    return part.text + "".join(part.summary) if isinstance(part, Reasoning) else ""
