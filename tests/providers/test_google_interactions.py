"""Google's Interactions API: bodies of its own come back identical, and what is broken is named or mended."""

from __future__ import annotations

import base64
from types import ModuleType
from typing import Any

import pytest
from google.genai._gaos.types.interactions.content import ContentParam
from google.genai._gaos.types.interactions.step import StepParam
from interactions import draw_body, draw_conversation, union_of
from sound import BODIES

import turnlog
from turnlog.errors import FormatError
from turnlog.log.messages import Media, Opaque, Reasoning, Text, ToolCall, ToolResult
from turnlog.models.target import target
from turnlog.providers.google_interactions import PROVIDER
from turnlog.providers.google_interactions.schema import CONTENTS, STEP
from turnlog.requests.standalone import check, repair
from turnlog.testing.histories import PIXEL
from turnlog.view.types import Shown

NAME = "google-interactions"
AIM = target(NAME, "gemini-2.5-pro")
PICTURE = base64.b64encode(PIXEL).decode()
BODY = BODIES[NAME]


def round_trip(body: dict[str, Any]) -> dict[str, Any]:
    """A body as it comes back, not repaired."""
    parsed = PROVIDER.parse(body)
    view = [Shown(message, (n,)) for n, message in enumerate(parsed.messages, start=1)]
    return PROVIDER.render(view, parsed.configuration, target(NAME, "gemini-3-pro"), parsed.blob).body


# -- bodies of its own ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
def test_bodies_of_any_field_and_step_come_back_identical() -> None:
    """A field that the SDK has and we do not would be lost on the way, or dropped as unknown before it is sent."""
    aim = target(NAME, "gemini-3-pro")
    met: set[str] = set()
    for seed in range(500):
        body = draw_body(seed, (0.3, 0.6, 1.0)[seed % 3])
        assert round_trip(body) == body
        unknown = [edit for edit in PROVIDER.sanitize(body, aim).edits if edit.kind.startswith("unknown")]
        assert unknown == []
        items = body["input"] if isinstance(body["input"], list) else []
        met |= {item["type"] for item in items}
    assert met == {*union_of(StepParam), *union_of(ContentParam)}


def test_the_schema_has_the_steps_and_contents_of_the_sdk() -> None:
    """A step of a newer SDK that nobody decided about would be dropped from histories."""
    assert STEP.shapes.keys() == union_of(StepParam).keys()
    assert CONTENTS.keys() == union_of(ContentParam).keys()


@pytest.mark.slow
def test_a_sound_conversation_is_left_alone(oracle: ModuleType) -> None:
    """What the API accepts needs no repair: an edit in it would be a change for nothing."""
    for seed in range(300):
        body = draw_conversation(seed)
        assert oracle.check_interactions(body) == []
        assert check(body, NAME) == []
        assert repair(body, NAME).body == body


def test_each_step_is_what_it_says() -> None:
    """A call that is kept whole is not paired, a text that is kept whole is not found."""
    parsed = PROVIDER.parse(BODY)
    kinds = [tuple(type(part) for part in message.parts) for message in parsed.messages]
    assert kinds == [
        (Text,), (Text, Media), (Reasoning,), (ToolCall,), (ToolCall,), (ToolResult,), (ToolResult,),
        (Opaque,), (Opaque,), (Text,), (Media,),
    ]  # fmt: skip
    roles = "".join(message.role[0] for message in parsed.messages)
    assert roles == "suaaauuaaau"
    thought, call, result = (parsed.messages[i].parts[0] for i in (2, 3, 6))
    assert isinstance(thought, Reasoning) and (thought.summary, thought.signature) == (("Two looks.",), "AAAA")
    assert isinstance(call, ToolCall) and (call.id, call.name, call.arguments) == ("1", "look", {"at": "a"})
    assert isinstance(result, ToolResult) and result.outcome == "failed"
    assert [tool.kind for tool in parsed.configuration.tools] == ["function", "hosted"]


@pytest.mark.parametrize(
    "given",
    [
        "hello",
        {"type": "text", "text": "hello"},
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        [{"type": "user_input", "content": "hello"}],
        [{"type": "user_input", "content": {"type": "text", "text": "hello"}}],
        [{"type": "user_input"}],
        [{"type": "user_input", "content": None}, {"type": "model_output", "content": []}],
        [{"type": "text", "text": "alone"}, {"type": "user_input", "content": [{"type": "text", "text": "in a step"}]}],
        [{"type": "thought"}, {"type": "thought", "summary": []}, {"type": "thought", "signature": None}],
        [{"type": "thought", "summary": [{"type": "text", "text": None}]}],
        [
            {"type": "function_result", "call_id": "1", "result": one}
            for one in ("", [], {}, None, 5, [{"type": "new"}])
        ],
        [{"type": "function_result", "call_id": "1"}],
        [{"type": "function_call", "name": "f", "arguments": one} for one in ({}, None, "text", [1])],
        [{"type": "hologram", "of": "something new"}],
        [],
        None,
    ],
)
def test_an_input_comes_back_as_it_was_spelled(given: Any) -> None:
    """The same words in another place of the body are another prefix for the provider's cache."""
    body = {"model": "gemini-3-pro", "input": given}
    assert round_trip(body) == body


def test_how_base64_was_spelled_is_kept() -> None:
    """Other bytes on the wire are another prefix."""
    data = PIXEL + b"\xff\xfe\xfd?"
    urlsafe = base64.urlsafe_b64encode(data).decode()
    spellings = [urlsafe, urlsafe.rstrip("="), PICTURE, f"{PICTURE[:20]}\n{PICTURE[20:]}"]
    contents = [{"type": "image", "data": one, "mime_type": "image/png"} for one in spellings]
    body = {"model": "gemini-3-pro", "input": [{"type": "user_input", "content": contents}]}
    assert round_trip(body) == body
    parsed = PROVIDER.parse(body)
    assert len({part.sha256 for part in parsed.messages[0].parts if isinstance(part, Media)}) == 2


# -- what is broken ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"input": 5}, "input"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{"type": {}}]}, "input[0].type"),
        ({"input": [{"text": "x"}]}, "input[0]"),
        ({"input": [{"type": "user_input", "content": 5}]}, "input[0].content"),
        ({"input": [{"type": "user_input", "content": [{"text": "x"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "user_input", "content": [{"type": "text", "text": 1}]}]}, "input[0].content[0].text"),
        ({"input": [{"type": "thought", "signature": 1}]}, "input[0].signature"),
        ({"input": [{"type": "function_call", "id": {}, "name": "f"}]}, "input[0].id"),
        ({"input": [{"type": "function_result", "call_id": [], "result": ""}]}, "input[0].call_id"),
        ({"input": [{"type": "function_result", "call_id": "1", "result": [5]}]}, "input[0].result[0]"),
        ({"input": "x", "system_instruction": ["y"]}, "system_instruction"),
        ({"input": "x", "tools": {}}, "tools"),
        ({"input": "x", "tools": [{"type": "function", "name": 1}]}, "tools[0].name"),
        ({"input": "x", "model": {}}, "model"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(body: dict[str, Any], path: str) -> None:
    """Carried along unread, it would be sent again and refused there."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body)
    assert caught.value.path == path


def test_a_thought_that_says_null_is_mended(oracle: ModuleType) -> None:
    """The null was read as a text, and repair crashed on it."""
    step = {"type": "thought", "signature": "AAAA", "summary": [{"type": "text", "text": None}]}
    body = {**BODY, "input": [BODY["input"][0], step, BODY["input"][-1]]}
    made = repair(body, NAME)
    assert oracle.check_interactions(made.body) == []
    assert made.edits or made.losses


@pytest.mark.parametrize(
    ("changed", "kind", "after"),
    [
        ({"generation_config": {"tool_choice": "any"}, "tools": []}, "setting", None),
        (
            {"generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["gone"]}}}},
            "setting",
            None,
        ),
        ({"cached_content": "cachedContents/x", "generation_config": {}}, "setting", "cachedContents/x"),
        ({"background": True}, "setting", None),
        ({"generation_config": {"temperature": 7, "top_k": 3}}, "unknown_key", {"temperature": 2}),
    ],
)
def test_settings_that_exclude_each_other_are_mended(
    changed: dict[str, Any], kind: str, after: Any, oracle: ModuleType
) -> None:
    """Each of them is answered with status 400."""
    body = {**BODY, **changed}
    made = repair(body, NAME)
    assert kind in {edit.kind for edit in made.edits}
    assert check(body, NAME)
    assert made.body.get(next(iter(changed))) == after
    assert oracle.check_interactions(made.body) == []


def test_the_tool_choice_is_read_and_set_in_common_words() -> None:
    """A choice that nobody reads is lost in a conversion."""
    for word in ("auto", "none", "required", "tool:look"):
        settings = PROVIDER.with_tool_choice({"generation_config": {"seed": 1}}, word)
        assert PROVIDER.tool_choice(settings) == word
        assert settings["generation_config"]["seed"] == 1
        assert PROVIDER.with_tool_choice(settings, word) is settings
    assert PROVIDER.tool_choice({"generation_config": {"tool_choice": "validated"}}) == "auto"
    assert PROVIDER.tool_choice({}) is None


def test_tools_are_declared_in_its_own_format() -> None:
    """Hosted tools were read as those of OpenAI, and left out as nobody's."""
    with turnlog.open(target=target(NAME, "gemini-2.5-pro"), store=":memory:") as session:
        session.configure(tools=[*BODY["tools"], {"type": "file_search", "file_search_store_names": ["a"]}])
        session.user("hi")
        made = session.request()
        assert made.body["tools"] == [*BODY["tools"], {"type": "file_search", "file_search_store_names": ["a"]}]
        assert made.body["store"] is False and made.losses == ()
