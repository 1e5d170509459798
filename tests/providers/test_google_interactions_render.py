"""The Interactions API: what others wrote is written legally, and conversions keep what can be kept."""

from __future__ import annotations

import itertools
import random
from types import ModuleType
from typing import Any

import pytest
from interactions import draw_conversation

import turnlog
from judging import TARGETS, errors_of
from turnlog.log.messages import Form, Media, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.models.target import target
from turnlog.providers import PROVIDERS
from turnlog.providers.google_interactions import PROVIDER
from turnlog.providers.protocol import Rendered
from turnlog.requests.build import build
from turnlog.requests.request import Request
from turnlog.requests.standalone import check, convert
from turnlog.requests.translate import plan
from turnlog.testing import damaged_history, sound_history
from turnlog.testing.histories import PIXEL
from turnlog.view.types import Shown

NAME = "google-interactions"
AIM = target(NAME, "gemini-2.5-pro")
FILE = "https://generativelanguage.googleapis.com/v1beta/files/abc"


def view_of(messages: list[Message]) -> list[Shown]:
    return [Shown(message, (n,)) for n, message in enumerate(messages, 1)]


def rendered(*messages: Message, tools: tuple[Tool, ...] = ()) -> Rendered:
    """The request for messages as they are, record numbers counting from 1."""
    configuration = Configuration(provider=NAME, tools=tools)
    return PROVIDER.render(view_of([*messages]), configuration, AIM, {}.__getitem__)


def built(*messages: Message) -> Request:
    """The request for messages, repaired."""
    return build(plan(Configuration(), AIM), view_of([*messages]), {}.__getitem__)


def user(text: str = "go") -> Message:
    return Message("user", (Text(text),))


def call(n: int, **more: Any) -> ToolCall:
    return ToolCall(f"c{n}", "look", {"at": n}, **more)


def result(n: int, *parts: Any) -> ToolResult:
    return ToolResult(f"c{n}", "look", parts or (Text(f"seen {n}"),))


def kinds(made: Request | Rendered) -> list[str]:
    return [step["type"] for step in made.body["input"]]


# -- one message, several steps ------------------------------------------------------------------


def test_an_answer_becomes_a_step_for_each_of_its_kinds() -> None:
    """Contents stand together in one step; each call and thought is a step of its own."""
    thought = Reasoning(NAME, summary=("Hm.",), signature="AAAA")
    made = rendered(user(), Message("assistant", (thought, Text("a"), Text("b"), call(1), call(2))))
    assert kinds(made) == ["user_input", "thought", "model_output", "function_call", "function_call"]
    assert made.body["input"][2]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert made.losses == ()


@pytest.mark.parametrize(
    "answer",
    [
        [Message("assistant", (call(1), Text("I look.")))],
        [Message("assistant", (call(1),)), Message("assistant", (Text("I look."),))],
        [Message("assistant", (Text("First."), call(1), Text("I look."), call(2)))],
        [Message("assistant", (call(1), call(2))), Message("assistant", (Text("I look."), call(3)))],
    ],
)
def test_nothing_is_said_between_calls_and_their_results(answer: list[Message], oracle: ModuleType) -> None:
    """Other APIs take a text behind the calls; here the calls would count as unanswered. It is told as an edit."""
    asked = [part for message in answer for part in message.parts if isinstance(part, ToolCall)]
    results = [Message("user", (ToolResult(one.id, one.name, (Text(f"seen {one.id}"),)),)) for one in asked]
    made = built(user(), *answer, *results)
    assert oracle.check_interactions(made.body) == []
    assert kinds(made)[-2 * len(asked) :] == ["function_call"] * len(asked) + ["function_result"] * len(asked)
    assert [edit.kind for edit in made.edits if edit.kind != "tool"] == ["moved"]
    ids = [step["id"] for step in made.body["input"] if step["type"] == "function_call"]
    assert ids == [one.id for one in asked]
    again = build(plan(Configuration(), AIM), made.view, {}.__getitem__)
    assert again.body == made.body and {edit.kind for edit in again.edits} <= {"tool"}


def test_what_is_in_order_stays_in_its_own_messages() -> None:
    """Joined without need, a step would move when its neighbour changes."""
    made = built(
        user(),
        Message("assistant", (Text("I look."),)),
        Message("assistant", (call(1),)),
        Message("user", (result(1),)),
    )
    assert [edit.kind for edit in made.edits] == ["tool"]
    assert [shown.treatment for shown in made.view] == ["verbatim"] * 4


def test_system_text_is_one_string() -> None:
    """The API takes no list: several texts are joined, and that is told."""
    made = rendered(Message("system", (Text("a"),)), Message("system", (Text("b"),)), user())
    assert made.body["system_instruction"] == "a\n\nb"
    assert [(loss.kind, loss.records) for loss in made.losses] == [("place", (2,))]


@pytest.mark.parametrize(
    ("parts", "sent"),
    [
        ((Text("a"),), "a"),
        ((), ""),
        ((Text("a"), Text("b")), [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        (
            (Text("a"), Media("image", "image/png", url="https://a.b/c.png")),
            [{"type": "text", "text": "a"}, {"type": "image", "uri": "https://a.b/c.png", "mime_type": "image/png"}],
        ),
    ],
)
def test_results_hold_a_text_or_a_list(parts: tuple[Any, ...], sent: Any) -> None:
    """Pictures of a result stand in it, not behind it."""
    made = rendered(Message("user", (ToolResult("c1", "look", parts),)))
    assert made.body["input"] == [{"type": "function_result", "call_id": "c1", "name": "look", "result": sent}]


@pytest.mark.parametrize("outcome", ["failed", "timeout", "canceled", "aborted", "lost"])
def test_a_result_that_is_none_is_an_error(outcome: Any) -> None:
    """A failure that looks like a success is built upon."""
    made = rendered(Message("user", (ToolResult("c1", "look", (Text("x"),), outcome),)))
    assert made.body["input"][0]["is_error"] is True


# -- what others wrote ---------------------------------------------------------------------------

_CACHED = Form("anthropic", delta={"+": {"cache_control": {"type": "ephemeral"}}})


@pytest.mark.parametrize(
    ("part", "kind", "word"),
    [
        (Reasoning("google", text="t", signature="AAAA"), "reasoning", "google"),
        (Opaque("anthropic", "server_tool_use", {"id": "1"}), "opaque", "server_tool_use"),
        (Text("a", _CACHED), "extra", "cache_control"),
        (call(1, signature="AAAA", provider="google"), "reasoning", "signature"),
        (Media("image", file_id="file-1", provider="openai-responses"), "media", "openai-responses"),
        (Media("image", url="https://a.b/c", name="NAMED"), "extra", "NAMED"),
    ],
)
def test_what_cannot_be_sent_is_told(part: Part, kind: str, word: str) -> None:
    """A part that goes in silence is missed by nobody until it is needed."""
    made = rendered(user(), Message("assistant", (part, Text("beside"))))
    assert [loss.kind for loss in made.losses] == [kind]
    assert word in made.losses[0].detail and made.losses[0].records == (2,)


def test_files_are_those_of_generate_content() -> None:
    """Both APIs read the same files: one that was uploaded is not lost in a switch between them."""
    content = {"role": "user", "parts": [{"fileData": {"fileUri": FILE, "mimeType": "application/pdf"}}]}
    made = convert({"contents": [content]}, to=NAME)
    said = [{"type": "document", "uri": FILE, "mime_type": "application/pdf"}]
    assert made.body["input"] == [{"type": "user_input", "content": said}]
    assert made.losses == ()
    back = convert(made.body, to="google")
    assert back.body["contents"] == [content] and [loss.kind for loss in back.losses] == ["setting"]


def test_tools_of_others_are_declared_as_functions_or_told() -> None:
    """A tool with free text takes an object here; a search of another provider is nobody's here."""
    tools = (Tool("patch", kind="custom"), Tool("web", kind="hosted", provider="anthropic", data={"type": "web"}))
    made = rendered(user(), tools=tools)
    (declared,) = made.body["tools"]
    assert declared["type"] == "function" and "input" in declared["parameters"]["properties"]
    assert [loss.kind for loss in made.losses] == ["tool", "tool"]


def test_settings_that_all_have_go_along() -> None:
    """A limit that is lost in a switch is met only by the bill."""
    settings = {"max_output_tokens": 7, "temperature": 0.5, "stop_sequences": ["END"], "top_p": 0.1, "seed": 3}
    body = {"model": "gemini-2.5-pro", "input": "hi", "generation_config": settings, "store": False}
    google = convert(body, to="google")
    names = ("maxOutputTokens", "temperature", "stopSequences", "topP", "seed")
    assert google.body["generationConfig"] == dict(zip(names, settings.values(), strict=True))
    back = convert(google.body, to=NAME, model="gemini-2.5-pro")
    assert back.body["generation_config"] == settings and back.body["store"] is False


# -- histories -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_damaged_histories_that_it_answered_are_sent_to_everybody(oracle: ModuleType) -> None:
    """Its own thoughts, searches and calls, torn apart: whatever is left of them must be valid at each provider."""
    for seed in range(60):
        history = damaged_history(random.Random(seed), NAME)
        for aim in TARGETS:
            made = build(plan(Configuration(), aim), view_of([*history.messages]), history.blobs.__getitem__)
            assert errors_of(oracle, aim, made.body) == [], (seed, aim.provider)


def test_a_sound_history_of_its_own_loses_nothing() -> None:
    """What one session holds goes back to the same provider whole: thoughts and signatures as well."""
    kept = 0
    for seed in range(100):
        history = sound_history(random.Random(seed), NAME)
        made = build(plan(Configuration(), AIM), view_of([*history.messages]), history.blobs.__getitem__)
        thoughts = [part for message in history.messages for part in message.parts if isinstance(part, Reasoning)]
        sent = [step["signature"] for step in made.body["input"] if step["type"] == "thought"]
        assert sent == [thought.signature for thought in thoughts]
        assert {loss.kind for loss in made.losses} <= {"media"}
        kept += len(sent)
    assert kept > 50


@pytest.mark.slow
@pytest.mark.parametrize("to", [name for name in PROVIDERS if name != NAME])
def test_conversions_are_valid_both_ways(to: str, oracle: ModuleType) -> None:
    """Texts, calls and results are there after a switch to another provider and back."""
    for seed in range(40):
        body = draw_conversation(seed)
        there = convert(body, NAME, to=to)
        assert check(there.body, to) == [], seed
        back = convert(there.body, to, to=NAME, model="gemini-3-pro")
        assert check(back.body, NAME) == [] and oracle.check_interactions(back.body) == [], seed
        assert _gist(back.body) == _gist(body), seed


def _gist(body: dict[str, Any]) -> list[Any]:
    """What a body says, without what only one provider has."""
    said: list[Any] = []
    for step in body["input"]:
        match step["type"]:
            case "function_call":
                said.append((step["name"].replace(":", "_").replace(".", "_")[:6], step["arguments"]))
            case "user_input" | "model_output":
                texts = [content["text"] for content in step["content"] if content["type"] == "text"]
                said += [text for text in texts if not text.startswith("[")]
    return said


def test_counts_are_those_of_the_same_words_to_the_same_model() -> None:
    """The API in front of a model does not change how it reads a text."""
    told = "The quick brown fox jumps over the lazy dog. " * 50
    content = {"role": "user", "parts": [{"text": told}]}
    google = turnlog.count({"contents": [content]}, model="gemini-2.5-pro")
    body = {"model": "gemini-2.5-pro", "input": told}
    assert turnlog.count(body).tokens == google.tokens
    schema = {"type": "object", "properties": {f"key_{n}": {"type": "string"} for n in range(30)}}
    asked = {**body, "response_format": {"type": "text", "mime_type": "application/json", "schema": schema}}
    assert turnlog.count(asked).tokens == google.tokens  # Google bills no schema of an answer
    declared = {**body, "tools": [{"type": "function", "name": "f", "parameters": schema}]}
    functions = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}]
    both = turnlog.count({"contents": [content], "tools": functions}, model="gemini-2.5-pro")
    assert turnlog.count(declared).tokens == both.tokens


@pytest.mark.slow
def test_every_order_of_three_parts_is_sent(oracle: ModuleType) -> None:
    """Whatever an answer holds, in any order and over any messages, its request is accepted."""
    parts: tuple[Part, ...] = (
        Text("said"),
        call(1),
        Reasoning(NAME, summary=("Hm.",), signature="AAAA"),
        Opaque(NAME, "google_search_call", {"type": "google_search_call", "id": "s", "arguments": {}}),
        Opaque(NAME, "google_search_result", {"type": "google_search_result", "call_id": "s", "result": []}),
        Media("image", "image/png", url="https://a.b/c.png"),
    )
    for some in itertools.permutations(parts, 3):
        for cut in range(3):
            answer = [Message("assistant", one) for one in (some[:cut], some[cut:]) if one]
            for behind in ([], [Message("user", (result(1),))], [user("next")]):
                assert oracle.check_interactions(built(user(), *answer, *behind).body) == []


def test_an_image_is_sent_by_its_bytes() -> None:
    """The bytes of the store, as base64."""
    with turnlog.open(target=AIM, store=":memory:") as session:
        session.user(["Look.", session.media(PIXEL, "image/png")])
        said = session.request().body["input"][0]["content"]
    assert [content["type"] for content in said] == ["text", "image"] and said[1]["mime_type"] == "image/png"
