"""What is appended never vanishes: it is in the request, or named by a change, or it was refused."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from judging import TARGETS, errors_of
from turnlog.errors import FormatError, InputError
from turnlog.log.messages import Media, Part, Text, ToolCall, ToolResult
from turnlog.log.records import Record
from turnlog.models.makers import PROVIDER_ROWS
from turnlog.requests.request import Request

CASES = int(os.environ.get("TURNLOG_APPENDED", "0"))
"""`TURNLOG_APPENDED=50000` is the long run of the law."""

MODELS = {name: row.model for name, row in sorted(PROVIDER_ROWS.items())}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
Message = dict[str, Any]


def chat(kind: str, word: str) -> Message:
    """A message of Chat Completions."""
    match kind:
        case "user":
            return {"role": "user", "content": word}
        case "text":
            return {"role": "user", "content": [{"type": "text", "text": word}]}
        case "image":
            url = f"data:image/png;base64,{PIXEL}"
            return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        case "answer":
            return {"role": "assistant", "content": word}
        case "call":
            function = {"name": "look", "arguments": json.dumps({"q": word})}
            return {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            }
        case "result":
            return {"role": "tool", "tool_call_id": "c1", "content": word}
    return {"role": "assistant", "content": word, "reasoning_content": f"as {word}"}


def responses(kind: str, word: str) -> Message:
    """An item of the Responses API."""
    match kind:
        case "user":
            return {"role": "user", "content": word}
        case "text":
            return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": word}]}
        case "image":
            url = f"data:image/png;base64,{PIXEL}"
            return {"role": "user", "content": [{"type": "input_image", "image_url": url}]}
        case "answer":
            text = {"type": "output_text", "text": word, "annotations": []}
            return {"type": "message", "role": "assistant", "content": [text]}
        case "call":
            return {"type": "function_call", "call_id": "c1", "name": "look", "arguments": json.dumps({"q": word})}
        case "result":
            return {"type": "function_call_output", "call_id": "c1", "output": word}
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": word}], "encrypted_content": "eA=="}


def anthropic(kind: str, word: str) -> Message:
    """A message of the Messages API."""
    match kind:
        case "user":
            return {"role": "user", "content": word}
        case "text":
            return {"role": "user", "content": [{"type": "text", "text": word}]}
        case "image":
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            return {"role": "user", "content": [{"type": "image", "source": source}]}
        case "answer":
            return {"role": "assistant", "content": [{"type": "text", "text": word}]}
        case "call":
            return {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"q": word}}],
            }
        case "result":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": word}]}
    thinking = {"type": "thinking", "thinking": f"as {word}", "signature": "c2ln"}
    return {"role": "assistant", "content": [thinking, {"type": "text", "text": word}]}


def google(kind: str, word: str) -> Message:
    """A content of generateContent."""
    match kind:
        case "user" | "text":
            return {"role": "user", "parts": [{"text": word}]}
        case "image":
            return {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]}
        case "answer":
            return {"role": "model", "parts": [{"text": word}]}
        case "call":
            return {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"q": word}}}]}
        case "result":
            return {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": word}}}]}
    return {"role": "model", "parts": [{"text": f"as {word}", "thought": True}, {"text": word}]}


def interactions(kind: str, word: str) -> Message:
    """A step of the Interactions API."""
    match kind:
        case "user" | "text":
            return {"type": "user_input", "content": [{"type": "text", "text": word}]}
        case "image":
            return {"type": "user_input", "content": [{"type": "image", "mime_type": "image/png", "data": PIXEL}]}
        case "answer":
            return {"type": "model_output", "content": [{"type": "text", "text": word}]}
        case "call":
            return {"type": "function_call", "id": "c1", "name": "look", "arguments": {"q": word}}
        case "result":
            return {"type": "function_result", "call_id": "c1", "name": "look", "result": word}
    return {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": word}]}


SHAPES: dict[str, Callable[[str, str], Message]] = {
    "anthropic": anthropic,
    "google": google,
    "google-interactions": interactions,
    "openai-chat": chat,
    "openai-responses": responses,
}
KINDS = ("user", "text", "image", "answer", "call", "result", "reasoning")
ODD: tuple[Any, ...] = (
    None, True, 0, 1.5, "", " ", "x", [], {}, [None], [{}], ["x"], "data:image/png;base64,@@", "@@@", "ftp://x",
    {"type": "zzz", "x": 1}, {"type": "text"}, {"type": "image_url"}, {"type": "image", "source": None},
    {"type": "tool_use", "name": "look"}, {"inlineData": {}}, {"type": "input_image"}, {"type": "container_upload"},
)  # fmt: skip
KEYS = ("type", "role", "id", "content", "parts", "text", "tool_calls", "name", "refusal", "call_id", "cache_control")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a value that can be changed."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


def damaged(message: Message, chance: random.Random) -> Message:
    """A copy of a message with up to three changes; most of them leave its words alone."""
    changed = copy.deepcopy(message)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        holder, key = chance.choice(list(places(changed)) or [(changed, "role")])
        match chance.randrange(5):
            case 0 | 1:
                holder[key] = copy.deepcopy(chance.choice(ODD))
            case 2 if isinstance(holder, dict):
                holder.pop(key, None)
            case 3 if isinstance(holder, dict):
                holder[chance.choice(KEYS)] = holder.pop(key, None)
            case 4 if isinstance(holder.get(key) if isinstance(holder, dict) else None, list):
                holder[key].append(copy.deepcopy(chance.choice(ODD)))
            case _:
                changed[chance.choice(KEYS)] = copy.deepcopy(chance.choice(ODD))
    return changed


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value; one that is JSON itself is looked into as well."""
    if isinstance(value, str):
        yield value
        if value[:1] in "{[":
            with suppress(ValueError):
                yield from strings(json.loads(value))
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def contents(part: Part) -> Iterator[str]:
    """What a part may be recognised by in a request."""
    match part:
        case Media():
            yield from filter(None, (part.url, part.file_id, PIXEL))
        case ToolCall():
            yield part.name
        case ToolResult():
            yield part.call_id
            yield part.name
        case _:
            yield from strings(msgspec.to_builtins(part).get("data"))
            yield getattr(part, "text", "")
            yield from getattr(part, "summary", ())


def unseen(records: tuple[Record, ...], request: Request) -> list[str]:
    """The records of which a request shows nothing, and which no change names."""
    sent = "\n".join(strings(request.body))
    missing = []
    for record in records:
        assert record.message is not None
        parts = [part for one in request.view if record.n in one.records for part in one.message.parts]
        said = [one for part in parts for one in contents(part) if one.strip()]
        seen = any(one in sent for one in said) if said else bool(parts)
        if not seen and not any(_names(change, record.n) for change in _changes(request)):
            missing.append(f"record {record.n}, {record.message}, is in none of {request.body}")
    return missing


def _changes(request: Request) -> tuple[Any, ...]:
    return (*request.edits, *request.losses)


def _names(change: Any, n: int) -> bool:
    if getattr(change, "through", 0):
        return bool(change.records[0] <= n <= change.through)
    return n in change.records


@pytest.mark.parametrize("home", sorted(SHAPES))
@pytest.mark.parametrize("other", sorted(SHAPES))
@pytest.mark.parametrize("kind", KINDS)
def test_a_message_of_another_provider_is_read_whole_or_refused_with_its_target(
    home: str, other: str, kind: str
) -> None:
    """Half of a message that is taken for the whole of it, a call that is an unknown key, a result that is a user's
    text: the model goes on from something that nobody said, and the one who appended it has no sign of that."""
    message = SHAPES[home](kind, "word-0-")
    aim = turnlog.target(other, MODELS[other])
    with turnlog.open("own", store=":memory:", target=turnlog.target(home, MODELS[home])) as session:
        [own] = session.extend([message])
    with turnlog.open("s", store=":memory:", target=aim) as session:
        said = refusal(session, message)
        named = [name for name in SHAPES if f"pass target=turnlog.target({name!r}, MODEL)" in said]
        if said:
            assert len(named) == 1 and named != [other] and home in said
            session.extend([message], turnlog.target(named[0], MODELS[named[0]]))
        record = next(session.log.newest())
        assert record.message is not None and own.message is not None
        assert gists(record.message.parts) == gists(own.message.parts)
        assert record.message.role == own.message.role


def refusal(session: turnlog.Session, message: Message) -> str:
    """Why a message is not appended; "" if it was."""
    try:
        session.extend([message])
    except FormatError as error:
        return str(error)
    return ""


def gists(parts: tuple[Part, ...]) -> list[Any]:
    """Parts without the spelling of their provider, and without ids that Google makes up."""
    return [(type(part).__name__, *contents(part)) for part in parts]


BY_CONTENT = ("anthropic", "openai-chat", "openai-responses")
"""The providers whose messages have their content under `content`."""

NOT_READ: dict[str, tuple[Message, str]] = {
    "texts as parts": (
        {"role": "user", "parts": ["Pay the bill."]},
        r"format of google, but parts\[0\]: expected an obj",
    ),
    "parts as text": ({"role": "user", "parts": "Pay"}, "format of google, but parts: expected an array or an object"),
    "code": ({"role": "user", "parts": [{"executableCode": {"code": "1"}}]}, "in the format of google"),
    "result of code": (
        {"role": "user", "parts": [{"codeExecutionResult": {"output": "1"}}]},
        "in the format of google",
    ),
    "code and a call": (
        {"role": "user", "parts": [{"executableCode": {"code": "1"}}, {"functionCall": {"name": "f", "args": {}}}]},
        "in the format of google",
    ),
    "text": ({"role": "user", "text": "HELLO"}, "it has no `content`, and {own} does not read text"),
    "message": ({"role": "assistant", "message": "HELLO"}, "it has no `content`, and {own} does not read message"),
    "blocks of Bedrock": ({"role": "user", "content": [{"text": "HELLO"}]}, "type"),
    "calls of Bedrock": ({"role": "assistant", "content": [{"toolUse": {"name": "f", "input": {}}}]}, "type"),
    "a block of Bedrock": ({"text": "HELLO"}, "role"),
}
"""Messages of which a provider reads nothing, and what its error says."""


@pytest.mark.parametrize("name", BY_CONTENT)
@pytest.mark.parametrize("shape", sorted(NOT_READ))
def test_a_message_with_its_content_elsewhere_is_refused(name: str, shape: str) -> None:
    """`[blank message]` in place of what the user said, as its text was under another key."""
    message, says = NOT_READ[shape]
    with turnlog.open("s", store=":memory:", target=turnlog.target(name, MODELS[name])) as session:
        with pytest.raises(FormatError, match=says.format(own=name)) as error:
            session.extend([{"role": "user", "content": "first"}, message])
        assert error.value.path.startswith(("messages[1]", "input[1]"))
        assert ("pass target=turnlog.target('google', MODEL)" in str(error.value)) == ("google" in says)
        assert not any(record.message for record in session.log.newest())


@pytest.mark.parametrize("call_id", ["", None])
def test_a_call_with_an_empty_id_is_mended(call_id: str | None) -> None:
    """`extend` named another provider's target for what `repair` mends."""
    call = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "look", "arguments": "{}"}
    asked = {"role": "user", "content": "Look."}
    body = {"model": "gpt-5", "input": [asked, call], "store": False}
    with turnlog.open("s", store=":memory:", target=turnlog.target("openai-responses", "gpt-5")) as session:
        session.extend([asked, call])
        kinds = [edit.kind for edit in session.request().edits]
    assert kinds[:2] == [edit.kind for edit in turnlog.repair(body).edits][:2] == ["id", "unanswered"]


MALFORMED: dict[str, Message] = {
    "anthropic": {"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]},
    "google": {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "@@@"}}]},
    "google-interactions": {
        "type": "user_input",
        "content": [{"type": "image", "mime_type": "image/png", "data": "@@@"}],
    },
    "openai-chat": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,@@@"}}],
    },
    "openai-responses": {"role": "user", "content": [{"type": "input_image", "image_url": None}]},
}
"""A message of each provider with nothing but an image that cannot be read."""


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@pytest.mark.parametrize("home", sorted(MALFORMED))
def test_an_image_that_cannot_be_read_leaves_a_trace(home: str, aim: turnlog.Target, oracle: ModuleType) -> None:
    """The newest message of the user left the request without a trace: the model went on from its own last answer."""
    with turnlog.open("s", store=":memory:", target=aim) as session:
        session.user("first")
        session.assistant("yes")
        [record] = session.extend([MALFORMED[home]], turnlog.target(home, MODELS[home]))
        request = session.request()
    assert request.view[-1].message.parts == (Text("[Image]"),)
    assert [(edit.kind, edit.records) for edit in request.edits] == [("media", (record.n,))]
    assert (request.losses, errors_of(oracle, aim, request.body)) == ((), [])


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_an_image_in_a_result_that_cannot_be_read_leaves_a_trace(aim: turnlog.Target, oracle: ModuleType) -> None:
    """A tool that returns a broken screenshot returned nothing, as the model saw it."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    broken = {"type": "image", "source": {"type": "base64"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [broken]}
    home = turnlog.target("anthropic", MODELS["anthropic"])
    with turnlog.open("s", store=":memory:", target=aim) as session:
        session.user("first")
        session.extend([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}], home)
        request = session.request()
    assert "[Image]" in list(strings(request.body))
    assert ("media", (request.view[-1].records)) in [(edit.kind, edit.records) for edit in request.edits]
    assert errors_of(oracle, aim, request.body) == []


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@settings(max_examples=CASES or settings.default.max_examples)
@given(seed=st.integers(min_value=0, max_value=2**48))
def test_a_message_that_is_appended_never_vanishes(aim: turnlog.Target, seed: int) -> None:
    """A model answers a question that it was never asked if a message is recorded, left out of every request and named
    by nobody."""
    chance = random.Random(seed)
    home = chance.choice(sorted(SHAPES))
    kinds = [chance.choice(KINDS) for _ in range(chance.choice((1, 1, 2, 3, 5)))]
    messages = [damaged(SHAPES[home](kind, f"word-{i}-"), chance) for i, kind in enumerate(kinds)]
    source = turnlog.target(chance.choice((home, home, aim.provider)), MODELS[home])
    with turnlog.open("s", store=":memory:", target=aim) as session:
        try:
            records = session.extend(messages, source)
        except InputError:
            assert not any(record.message for record in session.log.newest())
            return
        request = session.request()
    assert unseen(records, request) == []
