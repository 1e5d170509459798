"""Real SDKs before a server that answers a streamed request with something that is no stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sound import ANSWERS
from test_stream_shapes import ERRORS

import turnlog
from turnlog.errors import RateLimited, RunnerError, RunnerFailed
from turnlog.log.messages import Message
from turnlog.runners import SdkRunner

httpx2 = pytest.importorskip("httpx2")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

MODELS = {"openai-chat": "gpt-4o", "openai-responses": "gpt-5", "anthropic": "claude-opus-5-5"}
names = pytest.mark.parametrize("name", MODELS)
TYPES = ("application/json", "application/json; charset=utf-8", "text/event-stream", "")


def runner(name: str, body: str, kind: str) -> SdkRunner:
    """The SDK for a provider, whose server sends this body as this type, with status 200."""
    answer = httpx2.Response(200, headers={"content-type": kind} if kind else {}, text=body)
    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda request: answer))
    if name == "anthropic":
        return SdkRunner(anthropic=anthropic.AsyncAnthropic(api_key="k", max_retries=0, http_client=transport))
    return SdkRunner(openai=openai.AsyncOpenAI(api_key="k", max_retries=0, http_client=transport))


def session(name: str) -> turnlog.Session:
    """A session with a question in it."""
    made = turnlog.open("s", store=":memory:", target=turnlog.target(name, MODELS[name]))
    made.user("hi")
    return made


def asked(name: str, body: str, kind: str) -> tuple[Message, bool]:
    """What is on record of the answer, and whether it is complete."""
    asking = session(name)
    answer = turnlog.runners.BlockingRunner(runner(name, body, kind)).stream(asking.request())
    got = asking.receive(answer)
    return got.message, got.complete


@names
@pytest.mark.parametrize("kind", TYPES)
def test_a_json_answer_is_read(name: str, kind: str) -> None:
    """The session had an interrupted, empty answer, and the model was paid for nothing."""
    whole = session(name).receive(ANSWERS[name])
    assert asked(name, json.dumps(ANSWERS[name]), kind) == (whole.message, True)
    assert asked(name, json.dumps(ANSWERS[name], indent=1), kind) == (whole.message, True)


@names
@pytest.mark.parametrize("shape", ERRORS)
@pytest.mark.parametrize("form", ["data: {}\n\n", "event: error\ndata: {}\n\n", "{}"])
def test_an_error_is_raised_with_its_text(name: str, shape: str, form: str) -> None:
    """A program that waits and asks again would take an empty answer for one."""
    body = form.format(json.dumps(_limited(ERRORS[shape])))
    with pytest.raises(RunnerError, match="rate limit") as raised:
        asked(name, body, "text/event-stream")
    assert type(raised.value) is RateLimited


def _limited(value: Any) -> Any:
    return json.loads(json.dumps(value).replace("slow down", "rate limit reached"))


@names
@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("<html>Bad gateway</html>", "text/html", "text/html: '<html>Bad gateway</html>'"),
        ('{"ok": true}', "application/json", "application/json: '{\"ok\": true}'"),
        ("", "text/event-stream", "nothing"),
    ],
)
def test_what_is_no_answer_is_quoted(name: str, body: str, kind: str, told: str) -> None:
    """A proxy's page, or nothing at all, was an answer without text."""
    with pytest.raises(RunnerFailed) as raised:
        asked(name, body, kind)
    assert told in str(raised.value)


@names
def test_a_key_in_what_came_is_not_repeated(name: str) -> None:
    """Errors are logged: a proxy that prints the headers of a request would put the key there."""
    with pytest.raises(RunnerFailed) as raised:
        asked(name, "Authorization: Bearer sk-proj-" + "aB3" * 20, "text/plain")
    assert "aB3aB3" not in str(raised.value)
