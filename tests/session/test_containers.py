"""Containers in which a provider runs code: named as long as they are of use, left out when they are gone."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

import turnlog
from turnlog.errors import RunnerFailed
from turnlog.log.messages import Form
from turnlog.log.records import Decision, Note
from turnlog.runners import RetryingRunner
from turnlog.session import Answer
from turnlog.stores import MemoryStore

LOOK = {"name": "look", "input_schema": {"type": "object"}}
TOOLS: list[Any] = [{"type": "code_execution_20260120", "name": "code_execution"}, LOOK]
LATE, PAST = "9999-01-01T00:00:00Z", "2020-01-01T00:00:00Z"
RAN = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}}
OUTPUT = {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}
CAME = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": OUTPUT}
CALLED = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


def said(*content: dict[str, Any], container: Any = None, stop: str = "end_turn") -> dict[str, Any]:
    """An answer of the Messages API."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    more = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    return {**more, "content": [*content], "stop_reason": stop, "container": container}


def named(name: str = "container_011", until: str = LATE) -> dict[str, Any]:
    """A container, as answers name it."""
    return {"id": name, "expires_at": until}


def opened(tools: list[Any] = TOOLS, store: MemoryStore | None = None, **settings: Any) -> turnlog.Session:
    """A session with a question in it."""
    aim = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=100, **settings)
    session = turnlog.open("s", store=store or MemoryStore(), target=aim, tools=tools)
    session.user("hi")
    return session


def container(session: turnlog.Session) -> Any:
    """The container that the next request names."""
    return session.request().body.get("container")


def blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a body's messages."""
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    return [block for content in contents for block in content]


def waiting(until: str = PAST) -> turnlog.Session:
    """A session in which code waits for the result of a tool of ours, which is there."""
    session = opened()
    answer = session.receive(said(RAN, CALLED, container=named(until=until), stop="tool_use"))
    session.tool_result(answer.tool_calls[0], "found")
    return session


def test_a_container_is_named_while_a_call_waits_in_it() -> None:
    """The API refused it: container_id is required when there are pending tool uses."""
    session = waiting()
    body = session.request().body
    assert body["container"] == "container_011" and body["messages"][1]["content"] == [RAN, CALLED]
    assert session.request().losses == ()


def test_a_call_and_its_result_in_the_next_answer_stay(oracle: ModuleType) -> None:
    """The result of code that had waited was left out, and the call before it: the model ran it again."""
    session = waiting()
    session.receive(said(CAME, {"type": "text", "text": "It is 1."}, container=named(until=PAST)))
    for question in ("And now?", "And then?"):
        session.user(question)
        body = session.request().body
        assert [block["type"] for block in blocks(body) if "tool" in block["type"]] == [
            "server_tool_use",
            "tool_use",
            "tool_result",
            "code_execution_tool_result",
        ]
        # The judge looks for the call in the same message only; the API has it so (inspect_ai#4603).
        assert [error for error in oracle.check_anthropic(body) if "srvtoolu_1" not in error] == []
        assert session.request().edits == () and "container" not in body
        assert turnlog.repair(body, provider="anthropic").body == body
        session.receive(said({"type": "text", "text": "Well."}))


def test_a_call_whose_result_never_came_leaves() -> None:
    """The API refuses a call without a result in a turn that is over."""
    session = waiting()
    session.receive(said({"type": "text", "text": "I gave up."}))
    session.user("Why?")
    sent = blocks(session.request().body)
    assert RAN not in sent and CALLED in sent
    assert [edit.kind for edit in session.request().edits] == ["server_tool"]


def test_a_container_is_used_again_until_it_expires() -> None:
    """Files and variables of the turn before were gone, or the API was asked for a container that is gone."""
    for until, expected in ((LATE, "container_011"), (PAST, None), ("", "container_011")):
        session = opened()
        session.receive(said(RAN, CAME, container={"id": "container_011", "expires_at": until or None}))
        session.user("Go on.")
        assert container(session) == expected
        session.receive(said(RAN, CAME, container=named("container_012")))
        session.user("Go on.")
        assert container(session) == "container_012"


def test_a_container_that_no_tool_uses_is_not_named() -> None:
    """The API refuses the setting where no tool runs code."""
    for tools in ([LOOK], [{"type": "web_search_20250305", "name": "web_search"}]):
        session = opened(tools)
        session.receive(said({"type": "text", "text": "Hm."}, container=named()))
        session.user("Go on.")
        assert container(session) is None
    search = [{"type": "web_search_20260209", "name": "web_search"}]
    session = opened(search)
    session.receive(said({"type": "text", "text": "Hm."}, container=named()))
    session.user("Go on.")
    assert container(session) == "container_011"


def test_settings_keep_their_own_container_and_skills() -> None:
    """What the caller chose was replaced, or skills were loaded no more."""
    skills = {"skills": [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]}
    for given, expected in (("mine", "mine"), ({"id": "mine"}, {"id": "mine"}), (skills, {**skills, "id": "new"})):
        session = opened(container=given)
        session.receive(said(RAN, CAME, container=named("new")))
        session.user("Go on.")
        assert container(session) == expected


def test_whoever_opens_the_session_names_the_same_container() -> None:
    """A process that goes on after a crash sent another request, or one that the API refuses."""
    for until in (LATE, PAST):
        store = MemoryStore()
        session = opened(store=store)
        session.receive(said(RAN, CAME, container=named(until=until)))
        session.user("Go on.")
        body = session.request().body
        session.close()
        with turnlog.open("s", store=store) as again:
            assert again.request().body == body


def test_a_streamed_answer_names_its_container_too() -> None:
    """A stream tells it at its end only (anthropic-sdk-python#1801)."""
    session = opened()
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {**said(container=None, stop=""), "stop_reason": None}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": RAN},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "container": named()}, "usage": usage},
        {"type": "message_stop"},
    ]
    answer = session.receive(iter(events))
    whole = session.receive(said(RAN, container=named(), stop="tool_use"))
    assert answer.message == whole.message
    assert answer.message.form == Form("anthropic", f"container=container_011 until={LATE}")


class Server:
    """Answers requests in order, and raises those that are errors."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    async def stream(self, request: Any) -> Any:
        """The next answer."""
        self.bodies.append(request.body)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield answer

    async def aclose(self) -> None:
        """Nothing is open."""


def asked(session: turnlog.Session, server: Server) -> Answer:
    """The next answer, mended if it has to be."""

    async def ask() -> Answer:
        request = session.request()
        return await session.areceive(RetryingRunner(server, session).stream(request), request)

    return asyncio.run(ask())


def test_a_container_of_claude_that_is_gone_is_not_named_again() -> None:
    """Every later request was refused; the call that waits in it has to leave with it."""
    for waits in (True, False):
        session = waiting() if waits else opened()
        if not waits:
            session.receive(said(RAN, CAME, container=named()))
            session.user("Go on.")
        before = [record.body for record in session.history()]
        gone = RunnerFailed("anthropic", "container: container_011 not found or expired", status=400)
        answer = {"type": "message", **said({"type": "text", "text": "So."})}
        server = Server(gone, answer)
        assert asked(session, server).text == "So."
        assert [body.get("container") for body in server.bodies] == ["container_011", None]
        kinds = [block["type"] for block in blocks(server.bodies[1])]
        assert ("server_tool_use" in kinds) is not waits
        session.user("More.")
        assert container(session) is None
        assert [record.body for record in session.history()][: len(before)] == before
        [note] = [record.body for record in session.history() if isinstance(record.body, Note)]
        assert "container that is gone" in note.text


RAN_BY_GPT = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "container_id": "cntr_1",
    "code": "1+1",
    "outputs": [{"type": "logs", "logs": "2"}],
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


def response(text: str, *items: dict[str, Any]) -> dict[str, Any]:
    """An answer of the Responses API."""
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    output = [*items, message]
    whole = {"id": "r", "object": "response", "status": "completed", "output": output, "model": "gpt-5", "usage": usage}
    return {"type": "response.completed", "sequence_number": 0, "response": whole}


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("Container is expired.", {"cntr_1", "cntr_2"}),
        ("Expected container_id: cntr_1", {"cntr_1"}),
        ("Container 'cntr_2' not found.", {"cntr_2"}),
        ("Container cntr_9 has expired", {"cntr_1", "cntr_2"}),
    ],
)
def test_what_ran_in_a_container_of_gpt_that_is_gone_is_left_out(
    words: str, left: set[str], oracle: ModuleType
) -> None:
    """The conversation could not go on any more (pydantic-ai#7461): each request had the items of the container."""
    session = turnlog.open("s", store=MemoryStore(), target=turnlog.target("openai-responses", "gpt-5"))
    other = {**RAN_BY_GPT, "id": "ci_2", "container_id": "cntr_2"}
    gone = RunnerFailed("openai", words, status=400)
    server = Server(response("2", THOUGHT, RAN_BY_GPT), response("2", other), gone, response("3"), response("4"))
    for question in ("One?", "Two?", "Three?", "Four?"):
        session.user(question)
        assert asked(session, server).complete
    shown = [{item.get("container_id") for item in body["input"]} - {None} for body in server.bodies]
    rest = {"cntr_1", "cntr_2"} - left
    assert shown == [set(), {"cntr_1"}, {"cntr_1", "cntr_2"}, rest, rest]
    assert all(oracle.check_openai_responses(body) == [] for body in server.bodies)
    thought = [item for item in server.bodies[-1]["input"] if item.get("type") == "reasoning"]
    assert bool(thought) is ("cntr_1" not in left)
    [decision] = [record.body for record in session.history() if isinstance(record.body, Decision)]
    assert decision.action == "exclude" and len(decision.detail["texts"]) == len(left)
