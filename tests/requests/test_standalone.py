"""check, repair and convert on plain provider dicts."""

from __future__ import annotations

import json
import math
from types import ModuleType
from typing import Any

import pytest

import turnlog
from judging import errors_of
from turnlog.errors import FormatError, InputError, UnknownProvider
from turnlog.models.target import target
from turnlog.providers import PROVIDERS
from turnlog.providers.recognise import provider_of

BROKEN: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [
        {"role": "user", "content": "Weather in Oslo?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
            ],
        },
        {"role": "user", "content": "Well?"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    ],
}
ANSWER = {
    "role": "tool",
    "tool_call_id": "call_1",
    "content": "No result of this call is on record. It may have run; check before repeating it.",
}


SAID = {"temperature": 4, "wind": [1, {"from": None}]}
RETURNED: dict[str, dict[str, Any]] = {
    "openai-chat": {"role": "tool", "tool_call_id": "call_1", "content": SAID},
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": SAID}]},
    "openai-responses": {"type": "function_call_output", "call_id": "call_1", "output": SAID},
}


@pytest.mark.parametrize("provider", RETURNED)
def test_a_result_that_is_an_object_is_sent_as_text(provider: str, oracle: ModuleType) -> None:
    """A program that puts what its tool returned into the history as it is could repair nothing: the body was refused
    as a whole."""
    before = turnlog.convert({**BROKEN, "messages": BROKEN["messages"][:2]}, to=provider)
    key = PROVIDERS[provider].conversation
    body = {**before.body, key: [*before.body[key][:2], RETURNED[provider]]}
    aim = target(provider, body["model"])
    fixed = turnlog.repair(body, provider)
    text = json.dumps(SAID, separators=(",", ":"))
    assert [edit.path.partition(".")[0] for edit in fixed.edits] == [f"{key}[2]"]
    assert text in _strings(fixed.body) and errors_of(oracle, aim, fixed.body) == []
    assert [one.path for one in turnlog.check(body, provider)] == [edit.path for edit in fixed.edits]
    assert turnlog.repair(fixed.body, provider).body == fixed.body
    with turnlog.open("s", store=":memory:", target=target(provider, body["model"], **_limits(provider))) as session:
        session.extend(body[key])
        assert text in _strings(session.request().body)


def _limits(provider: str) -> dict[str, int]:
    return {"max_tokens": 100} if provider == "anthropic" else {}


def _strings(value: Any) -> list[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] if isinstance(value, str) else [one for item in inner for one in _strings(item)]


def test_check_names_what_is_wrong_and_where() -> None:
    """A violation that names no message cannot be mended by hand."""
    assert [(found.kind, found.messages) for found in turnlog.check(BROKEN, "openai-chat")] == [("unanswered", (2,))]


def test_repair_does_what_check_found_and_no_more() -> None:
    """Anything else changed would be a surprise in somebody's request."""
    messages = BROKEN["messages"]
    expected = {**BROKEN, "messages": [*messages[:2], ANSWER, messages[2]]}
    repaired = turnlog.repair(BROKEN, "openai-chat")
    assert repaired.body == expected
    assert turnlog.check(repaired.body, "openai-chat") == []
    assert turnlog.repair(repaired.body, "openai-chat").body == repaired.body


def test_results_that_repair_adds_stand_in_one_message() -> None:
    """Anthropic's guide says that results in separate messages teach the model to call one tool at a time; those that
    the caller put apart stay apart."""
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in range(3)]
    given = [{"type": "tool_result", "tool_use_id": "c0", "content": "done"}]
    lost = {"type": "tool_result", "is_error": True, "content": ANSWER["content"]}
    added = [{**lost, "tool_use_id": f"c{n}"} for n in range(3)]
    asked = [{"role": "user", "content": "q"}, {"role": "assistant", "content": calls}]
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": asked, "tools": [F]}
    whole = turnlog.repair(body)
    assert whole.body["messages"] == [*asked, {"role": "user", "content": added}]
    assert [edit.kind for edit in whole.edits] == ["unanswered"] * 3
    some = turnlog.repair({**body, "messages": [*asked, {"role": "user", "content": given}]})
    assert some.body["messages"] == [*asked, {"role": "user", "content": [*given, *added[1:]]}]
    assert [edit.kind for edit in some.edits] == ["unanswered"] * 2
    apart = [{"role": "user", "content": [{**given[0], "tool_use_id": f"c{n}"}]} for n in range(3)]
    kept = {**body, "messages": [*asked, *apart]}
    assert turnlog.repair(kept).body == kept


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
SEARCH = {"type": "web_search_call", "id": "ws_3", "status": "completed", "action": {"type": "search", "query": "x"}}
FILES = "https://generativelanguage.googleapis.com/v1beta/files/abc"


def claude(*content: Any, **settings: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": list(content)}]
    return {"model": "claude-opus-4-8", "max_tokens": 9, "messages": messages, **settings}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def picture(mime: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": PIXEL}}


def asked(*messages: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": "go"}, *messages]}


def calling(*ids: str) -> dict[str, Any]:
    calls = [{"id": n, "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answering(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "r"}


def step(**signature: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, **signature}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ]


CALLED = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": [said("a"), said("")]}
LOOP = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [CALLED]}]
F = {"name": "f", "input_schema": {"type": "object", "properties": {}}}

REFUSED: list[tuple[str, dict[str, Any], str, tuple[int, ...]]] = [
    ("anthropic", claude(said("a"), said("")), "empty", (1,)),
    ("anthropic", claude(said("a"), {"type": "text"}), "empty", (1,)),
    ("anthropic", claude(said("q"), system=[said("a"), said("")]), "empty", (1,)),
    (
        "anthropic",
        {**claude(), "messages": [*LOOP, {"role": "user", "content": [RESULT]}], "tools": [F]},
        "empty",
        (3,),
    ),
    ("anthropic", claude(picture("image/jpeg")), "media_type", (1,)),
    (
        "anthropic",
        {**claude(), "messages": [{"role": role, "content": "x"} for role in ("user", "system", "user")]},
        "place",
        (2,),
    ),
    ("openai-chat", asked(calling("c1"), calling("c2"), answering("c1"), answering("c2")), "joined", (2, 3)),
    ("openai-chat", asked(calling("c"), {"role": "assistant", "content": ""}, answering("c")), "joined", (2, 3)),
    ("openai-responses", {"model": "gpt-5", "input": [SEARCH, SEARCH]}, "extra", (2,)),
    ("google", {"model": "gemini-3-pro", "contents": step()}, "signature", (2,)),
]


@pytest.mark.parametrize(("provider", "body", "kind", "where"), REFUSED)
def test_check_names_what_repair_changes_otherwise_than_by_an_edit(
    provider: str, body: dict[str, Any], kind: str, where: tuple[int, ...], oracle: ModuleType
) -> None:
    """What a session's request changes without an edit, as there it is nobody's mistake, makes a body refused."""
    aim = target(provider, body["model"])
    assert errors_of(oracle, aim, body)
    assert (kind, where) in [(found.kind, found.messages) for found in turnlog.check(body, provider)]
    repaired = turnlog.repair(body, provider)
    assert repaired.edits or repaired.losses
    assert errors_of(oracle, aim, repaired.body) == []


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("google", {"model": "gemini-3-pro", "contents": [*step(), *step(thoughtSignature="c2ln")]}),
        (
            "google",
            {
                "model": "gemini-3-pro",
                "contents": [{"parts": [{"inlineData": {"mimeType": "image/jpeg", "data": PIXEL}}]}],
            },
        ),
        (
            "openai-chat",
            asked(
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": f"data:image/jpg;base64,{PIXEL}"}}],
                }
            ),
        ),
    ],
)
def test_check_is_silent_on_what_is_accepted_though_repair_changes_it(
    provider: str, body: dict[str, Any], oracle: ModuleType
) -> None:
    """Steps of turns that are over are signed, and images relabelled, so that a message is the same in every request:
    told as violations, they would send people to mend what nobody refuses."""
    aim = target(provider, body["model"])
    assert errors_of(oracle, aim, body) == []
    assert turnlog.check(body, provider) == []
    assert turnlog.repair(body, provider).losses


@pytest.mark.parametrize("role", ["user", "model"])
@pytest.mark.parametrize("uri", ["https://www.youtube.com/watch?v=abc", FILES])
def test_a_video_stays_wherever_it_stands(role: str, uri: str) -> None:
    """Models that read videos answer with them, too: a placeholder there would take one out of a sound request."""
    video = {"fileData": {"fileUri": uri, "mimeType": "video/mp4"}}
    q = {"role": "user", "parts": [{"text": "q"}]}
    body = {"model": "gemini-2.5-pro", "contents": [q, {"role": role, "parts": [video]}, q]}
    assert turnlog.check(body, "google") == []
    assert turnlog.repair(body, "google").body == body


def test_convert_carries_settings_and_says_what_it_cannot() -> None:
    """A silently dropped seed or limit changes what the model does."""
    body = {
        **BROKEN,
        "temperature": 0.5,
        "max_completion_tokens": 100,
        "stop": ["END"],
        "seed": 7,
        "tool_choice": "required",
    }
    converted = turnlog.convert(body, to="anthropic", model="claude-sonnet-4-5")
    kept = {key: converted.body[key] for key in ("model", "max_tokens", "temperature", "stop_sequences", "tool_choice")}
    assert kept == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any"},
    }
    assert "setting seed of openai-chat left out" in [loss.detail for loss in converted.losses]


@pytest.mark.parametrize(
    ("settings", "to", "kept"),
    [
        ({"parallel_tool_calls": False, "store": False, "metadata": {"a": "b"}}, "openai-responses", None),
        ({"user": "kim", "service_tier": "flex", "prompt_cache_key": "k"}, "openai-responses", None),
        ({"seed": 7, "temperature": 0.5}, "google", {"generationConfig": {"seed": 7, "temperature": 0.5}}),
    ],
)
def test_what_both_have_goes_along(settings: dict[str, Any], to: str, kept: dict[str, Any] | None) -> None:
    """On the way from one of OpenAI's APIs to the other, an agent that takes one call at a time got several; the loss
    said that only the one API has the setting."""
    there = turnlog.convert({**BROKEN, **settings}, to=to)
    assert (kept or settings).items() <= there.body.items()
    assert not any(name in loss.detail for loss in there.losses for name in settings)
    back = turnlog.convert(there.body, to="openai-chat", provider=to)
    assert settings.items() <= back.body.items()


@pytest.mark.parametrize("to", ["openai-responses", "anthropic", "google"])
def test_there_and_back_the_conversation_is_the_same(to: str) -> None:
    """Text, calls, arguments, results and their order survive a change of provider."""
    there = turnlog.convert(turnlog.repair(BROKEN, "openai-chat").body, to=to)
    back = turnlog.convert(there.body, to="openai-chat", model="gpt-4o", provider=to)
    expected = turnlog.repair(BROKEN, "openai-chat").body["messages"]
    said = [
        (m["role"], m["content"], [c["function"]["name"] for c in m.get("tool_calls", [])])
        for m in back.body["messages"]
    ]
    assert said == [
        (m["role"], m["content"], [c["function"]["name"] for c in m.get("tool_calls", [])]) for m in expected
    ]


MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
"""A block with a cache mark."""


@pytest.mark.parametrize(
    ("body", "provider"),
    [
        ({"contents": []}, "google"),
        ({"input": "hello"}, "openai-responses"),
        ({"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}]}, "openai-responses"),
        ({"input": "hello", "model": "gemini-3-pro"}, "google-interactions"),
        ({"input": {"type": "text", "text": "hello"}}, "google-interactions"),
        ({"input": [{"type": "user_input", "content": []}]}, "google-interactions"),
        ({"input": [{"type": "function_call", "id": "1", "name": "f", "arguments": {}}]}, "google-interactions"),
        ({"messages": [], "system": "x"}, "anthropic"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]}, "anthropic"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]}, "openai-chat"),
        ({"messages": [{"role": "user", "content": "hi"}], "model": "claude-haiku-4-5"}, "anthropic"),
        ({"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
        (
            {"messages": [{"role": "user", "content": "hi"}], "model": "eu.anthropic.claude-sonnet-4-5-v1:0"},
            "anthropic",
        ),
        ({"messages": [{"role": "user", "content": [MARKED]}], "model": "my-proxy"}, "anthropic"),
        ({"messages": [{"role": "user", "content": [MARKED]}], "model": "anthropic/claude-sonnet-4.5"}, "openai-chat"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "openai-chat"),
    ],
)
def test_a_body_says_whose_it_is(body: dict[str, Any], provider: str) -> None:
    """A body read as another provider's loses its tool blocks."""
    assert provider_of(body) == provider


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("left_out", range(3))
def test_a_body_needs_no_provider_named(provider: str, left_out: int) -> None:
    """Whoever has a body of one API would have to know our word for it, in each function by another argument."""
    body = turnlog.convert(BROKEN, "openai-chat", to=provider).body
    said = list(body[PROVIDERS[provider].conversation])
    body = {**body, PROVIDERS[provider].conversation: said[:left_out] + said[left_out + 1 :]}
    assert turnlog.check(body) == turnlog.check(body, provider)
    assert turnlog.repair(body).body == turnlog.repair(body, provider).body
    assert turnlog.convert(body, to="google").body == turnlog.convert(body, provider, to="google").body
    assert turnlog.fit(body).body == turnlog.fit(body, provider).body == turnlog.Fitter(provider).fit(body).body
    assert turnlog.count(body) == turnlog.count(body, provider)


def test_what_is_no_body_is_refused_by_name() -> None:
    """An unknown provider or shape must not be guessed at."""
    with pytest.raises(InputError, match="neither 'messages' nor 'input' nor 'contents'"):
        turnlog.convert({"prompt": "x"}, to="google")
    for call in (turnlog.fit, turnlog.count, lambda body: turnlog.convert(body, to="google")):
        with pytest.raises(InputError, match="'messages' must be a list, not str"):
            call({"messages": "hi"})
    with pytest.raises(UnknownProvider, match="use one of openai-chat"):
        turnlog.check({}, "mistral")


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"max_tokens": 50}, 50),
        ({"max_completion_tokens": 50}, 50),
        ({"max_tokens": 70, "max_completion_tokens": 50}, 50),
        ({"max_tokens": 50, "max_completion_tokens": None}, 50),
        ({"max_completion_tokens": None}, 8192),
    ],
)
def test_a_limit_under_either_name_goes_along(settings: dict[str, Any], limit: int) -> None:
    """Most chat bodies say `max_tokens`: an answer that was to have 50 tokens would get thousands, and be told that
    no other provider had such a limit."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], **settings}
    converted = turnlog.convert(body, to="anthropic", model="claude-sonnet-4-5")
    assert (converted.body["max_tokens"], converted.edits, converted.losses) == (limit, (), ())


CALLED = {"id": "t1", "name": "f"}


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "anthropic", "google"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("source", ["anthropic", "google"])
def test_what_is_sent_is_json(source: str, number: float, to: str) -> None:
    """NaN and infinity are no JSON: HTTP clients raise for them, and servers refuse the whole body. What a model said
    of them is not lost for that."""
    body: dict[str, Any] = {
        "anthropic": {
            "model": "claude-sonnet-4-5",
            "max_tokens": 10,
            "temperature": number,
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "tool_use", **CALLED, "input": {"x": number}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
            ],
        },
        "google": {
            "model": "gemini-2.5-pro",
            "generationConfig": {"temperature": number},
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {"role": "model", "parts": [{"functionCall": {**CALLED, "args": {"x": number}}}]},
                {"role": "user", "parts": [{"functionResponse": {**CALLED, "response": {"y": number}}}]},
            ],
        },
    }[source]
    for made in (turnlog.convert(body, provider=source, to=to), turnlog.fit(body, max_tokens=5_000)):
        assert json.dumps({"x": number}, separators=(",", ":")) in str(made.body).replace("\\", "")
        json.dumps(made.body, allow_nan=False)


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "anthropic", "google"])
@pytest.mark.parametrize("source", ["openai-chat", "openai-responses", "anthropic", "google"])
def test_numbers_that_json_does_not_have_are_left_out(source: str, to: str) -> None:
    """Python's json reads and writes Infinity and NaN, no provider does: a schema with one, as pydantic makes it
    of `le=inf`, was passed on as it was, and called valid."""
    schema = {
        "type": "object",
        "properties": {"share": {"type": "number", "minimum": 0.5, "maximum": float("inf"), "enum": [1, float("nan")]}},
    }
    finite = {"type": "object", "properties": {"share": {"type": "number", "minimum": 0.5, "enum": [1]}}}

    def bodies(parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
        named = {"name": "set", "description": "Set it."}
        said = [{"role": "user", "content": "Go on."}]
        return {
            "openai-chat": {
                "model": "gpt-4o",
                "messages": said,
                "tools": [{"type": "function", "function": {**named, "parameters": parameters}}],
            },
            "openai-responses": {
                "model": "gpt-5",
                "input": said,
                "tools": [{"type": "function", "strict": False, **named, "parameters": parameters}],
            },
            "anthropic": {
                "model": "claude-sonnet-4-5",
                "max_tokens": 100,
                "messages": said,
                "tools": [{**named, "input_schema": parameters}],
            },
            "google": {
                "model": "gemini-2.5-pro",
                "contents": [{"role": "user", "parts": [{"text": "Go on."}]}],
                "tools": [{"functionDeclarations": [{**named, "parametersJsonSchema": parameters}]}],
            },
        }

    broken, sound = bodies(schema)[source], bodies(finite)[source]
    made = turnlog.convert(broken, to=to, provider=source)
    assert made.body == turnlog.convert(sound, to=to, provider=source).body
    assert [edit.detail for edit in made.edits] == ["Infinity or NaN left out, which JSON does not have"]
    assert [one.kind for one in turnlog.check(broken, source)] == ["setting"]
    assert turnlog.check(made.body, to) == []


def test_a_file_of_text_is_told_where_none_is_taken() -> None:
    """Chat Completions takes no file of plain text. Left out with a placeholder, what a user had attached was lost to
    the model, though every word of it could be said; that it stands there as text is a loss by number, as the rest."""
    said = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Rain,\nthen sun.\n"}}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": [{**said, "title": "oslo.txt"}, {"type": "text", "text": "Umbrella?"}]}
        ],
    }
    made = turnlog.convert(body, to="openai-chat")
    told = "[document oslo.txt]\nRain,\nthen sun.\n"
    assert made.body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": told}, {"type": "text", "text": "Umbrella?"}]}
    ]
    assert [(loss.kind, loss.detail, loss.records) for loss in made.losses if loss.kind == "media"] == [
        ("media", "document oslo.txt shown as its text", (1,))
    ]
    with turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o")) as session:
        session.user([session.media(b"Rain,\nthen sun.\n", "text/plain", name="oslo.txt"), "Umbrella?"])
        assert session.request().body["messages"] == made.body["messages"]
        assert session.window.tokens == turnlog.count(session.request().body).tokens
        session.user(session.media(b"\xff\xfe\x00", "text/plain"))
        assert "left out" in session.request().body["messages"][-1]["content"]


def test_a_file_of_text_that_no_window_holds_stays_left_out() -> None:
    """A session whose task came with a large file had requests as long as the file was left out of them; told as text
    it is more than fits, and what the task came with may not go: every request would be refused."""
    with turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o")) as session:
        session.user(["Sum up.", session.media(b"Rain, then sun.\n" * 60_000, "text/plain", name="oslo.txt")])
        made = session.request()
        assert "[document left out (oslo.txt, 960,000 bytes)" in made.body["messages"][0]["content"][1]["text"]
        assert session.window.tokens == turnlog.count(made.body).tokens


def test_what_is_no_json_is_told_by_its_place() -> None:
    """A body with an object of an SDK in it ended in TypeError from within, which says nothing of where."""
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": object()}]}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [called, {"role": "user", "content": "x"}]}
    said = "messages[0].content[0].input is of type object: use only dicts, lists"
    for made in (
        lambda: turnlog.count(body),
        lambda: turnlog.fit(body, max_tokens=9_000),
        lambda: turnlog.repair(body, "anthropic"),
        lambda: turnlog.convert(body, to="google"),
    ):
        with pytest.raises(FormatError) as caught:
            made()
        assert str(caught.value).startswith(said)
    [found] = turnlog.check(body, "anthropic")
    assert (found.kind, found.detail.startswith(said)) == ("format", True)


@pytest.mark.parametrize("body", [None, 5, "x", []])
def test_what_is_no_body_is_told(body: Any) -> None:
    """With a provider named, None was an AttributeError."""
    for made in (
        lambda: turnlog.count(body, provider="openai-chat"),
        lambda: turnlog.fit(body, provider="openai-chat"),
        lambda: turnlog.repair(body, "openai-chat"),
        lambda: turnlog.convert(body, to="google", provider="openai-chat"),
    ):
        with pytest.raises(InputError, match="a request body must be a dict"):
            made()
