"""Agents over real SDKs: ask, call tools, answer, and go on with another provider in mid-session."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from asking import AGENTS, TOOLS
from replies import REPLIES
from sdk_clients import Ask, sdk_client, sdk_clients

import turnlog
from turnlog.models.target import Target
from turnlog.stores import MemoryStore

Start = Callable[..., Any]

_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "google": "/v1beta/models/{model}:{method}",
    "google-interactions": "/v1beta/interactions",
}
_HEADERS = {
    "content-type": "application/json",
    "authorization": "Bearer k",
    "x-api-key": "k",
    "x-goog-api-key": "k",
    "anthropic-version": "2023-06-01",
}


def turn(session: turnlog.Session, ask: Ask, question: str) -> list[str]:
    """One turn of an agent: until the model stops calling tools. Gives the texts it said."""
    session.user(question)
    said = []
    while True:
        prepared = session.request()
        answer = session.receive(ask(prepared.body, prepared.target.model))
        said.append(answer.text)
        if not answer.tool_calls:
            return said
        for call in answer.tool_calls:
            session.tool_started(call)
            failed = call.name == "bash"
            session.tool_result(call, f"what {call.name} found", outcome="failed" if failed else "ok")
            session.tool_finished(call, "failed" if failed else "ok")


@pytest.mark.parametrize("first", range(len(AGENTS)), ids=[aim.provider for aim in AGENTS])
@pytest.mark.parametrize("way", ["send", "stream"])
def test_an_agent_goes_through_all_providers_without_a_refusal(way: str, first: int, fake_server: Start) -> None:
    """Three turns with thoughts and parallel calls at each provider, and back to the first: a signature
    or item carried where it does not belong, or changed on the way, is refused by this server."""
    server = fake_server(verify_signatures="all")
    clients = sdk_clients(server.url)
    order = [*AGENTS[first:], *AGENTS[:first], AGENTS[first]]
    session = turnlog.open("agent", target=order[0], store=MemoryStore())
    session.configure(tools=TOOLS)
    session.system("Be brief.")
    for aim in order:
        session.switch(aim)
        for number in range(3):
            calls = REPLIES["custom"] if aim.provider == "openai-responses" and number == 1 else REPLIES["calls"]
            thoughtful = {"thinking": f"thought {number}", **calls}
            server.script(thoughtful, {**thoughtful, "text": "more"}, {"thinking": "enough", "text": f"done {number}"})
            assert turn(session, getattr(clients[aim.provider], way), f"turn {number}")[-1] == f"done {number}"
    assert [one.errors for one in server.requests] == [[]] * len(order) * 9
    assert session.usage.output > 0


def posted(url: str, aim: Target, request: dict[str, Any], *, stream: bool = False) -> Any:
    """The JSON of an answer, or of each event of a stream, without any SDK."""
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = _PATHS[aim.provider].format(model=aim.model, method=method)
    options = {"stream_options": {"include_usage": True}} if aim.provider == "openai-chat" else {}
    body = request if aim.provider == "google" or not stream else {**request, "stream": True, **options}
    call = urllib.request.Request(url + path, json.dumps(body).encode(), _HEADERS)
    with urllib.request.urlopen(call) as response:
        if not stream:
            return json.load(response)
        lines = [line.decode().strip() for line in response if line.startswith(b"data: ")]
    return [json.loads(line[6:]) if line != "data: [DONE]" else "[DONE]" for line in lines]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("aim", AGENTS, ids=lambda aim: aim.provider)
def test_plain_json_is_received_like_sdk_objects(aim: Target, stream: bool, fake_server: Start) -> None:
    """Who talks HTTP without an SDK gets the same records; a reader that needs SDK objects fails here."""
    answers = []
    for plain in (False, True):
        server = fake_server([REPLIES["thought and calls"]])
        client = sdk_client(aim.provider, server.url)
        session = turnlog.open("plain", target=aim, store=MemoryStore())
        session.configure(tools=TOOLS)
        session.user("go")
        request = session.request().body
        if plain:
            answer = session.receive(posted(server.url, aim, request, stream=stream))
        else:
            answer = session.receive((client.stream if stream else client.send)(request, aim.model))
        answers.append((answer.message, answer.complete, answer.usage, answer.record.body))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("aim", AGENTS, ids=lambda aim: aim.provider)
def test_tools_declared_by_name_alone_are_declared_to_every_provider(aim: Target, fake_server: Start) -> None:
    """`name`, `description` and `parameters` are what the documentation asks for: a provider that is
    then sent no such tool, or refuses it, fails here."""
    server = fake_server()
    session = turnlog.open("tools", target=aim, store=MemoryStore())
    session.configure(tools=[{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}])
    session.user('CALL look {"at": "it"}')
    prepared = session.request()
    answer = session.receive(sdk_client(aim.provider, server.url).send(prepared.body, aim.model))
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("look", {"at": "it"})]
    assert (prepared.edits, prepared.losses) == ((), ())
