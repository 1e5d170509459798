"""Google: reading request bodies and writing them again."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from repairing import repair
from turnlog.errors import FormatError
from turnlog.log.codec import decode_record, encode_record
from turnlog.log.messages import Form, Media, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult, sha256_hex
from turnlog.log.records import Body, MessageRecord, Record
from turnlog.models.target import target
from turnlog.providers.google import PROVIDER, sdk_arguments
from turnlog.providers.google.results import read_response, response_of
from turnlog.providers.protocol import Parsed
from turnlog.view.types import Shown

MODEL = "gemini-2.5-flash"


def through_codec(body: Body) -> Any:
    return decode_record(encode_record(Record(1, "2026-01-01T00:00:00.000Z", body))).body


def rendered(parsed: Parsed, model: str = MODEL) -> Any:
    """The body again, after every record and blob went through its bytes."""
    view = [Shown(through_codec(MessageRecord(m)).message, (i,)) for i, m in enumerate(parsed.messages, 1)]
    configuration = through_codec(parsed.configuration)
    return PROVIDER.render(view, configuration, target("google", model), parsed.blobs.__getitem__)


def body_of(*contents: Any, **settings: Any) -> dict[str, Any]:
    return {"contents": list(contents), **settings}


def parts_of(*wires: Any) -> tuple[Any, ...]:
    (message,) = PROVIDER.parse(body_of({"role": "model", "parts": list(wires)})).messages
    return message.parts


def filled(value: Any, blobs: Path) -> Any:
    """A recorded body with its media put back."""
    if isinstance(value, str) and value.startswith("@blob:"):
        return base64.b64encode((blobs / value.removeprefix("@blob:")).read_bytes()).decode()
    if isinstance(value, dict):
        return {key: filled(item, blobs) for key, item in value.items()}
    return [filled(item, blobs) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every recorded generateContent body, with its model."""
    folder = shared / "data" / "token_truth"
    with (folder / "requests.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        (row["model"], filled(row["request"], folder / "blobs"))
        for row in rows
        if row["api"] == "google.generateContent"
    ]


@pytest.mark.slow
def test_recorded_bodies_come_back_identical(recorded: list[tuple[str, dict[str, Any]]]) -> None:
    """A spelling, boundary or key that parsing forgot would make a recorded request come back changed."""
    assert len(recorded) > 300
    for model, body in recorded:
        again = rendered(PROVIDER.parse(body), model)
        assert again.body == body
        assert json.dumps(again.body, sort_keys=True) == json.dumps(body, sort_keys=True)
        assert again.losses == ()


def test_repair_leaves_recorded_bodies_alone(recorded: list[tuple[str, dict[str, Any]]]) -> None:
    """Rules stricter than the API would change requests that it answered. Only results of one group of calls that are
    in several contents go together, as stricter servers demand."""
    merged = 0
    for model, body in recorded:
        parsed = PROVIDER.parse(body)
        aim = target("google", model)
        repaired = repair(
            [Shown(m, (i,)) for i, m in enumerate(parsed.messages, 1)],
            PROVIDER.rules(aim, parsed.configuration.settings),
        )
        assert (repaired.edits, repaired.losses) == ((), ())
        again = PROVIDER.render(repaired.view, parsed.configuration, aim, parsed.blobs.__getitem__)
        assert again.body == with_results_together(body)
        merged += again.body != body
    assert 0 < merged < 5


def with_results_together(body: dict[str, Any]) -> dict[str, Any]:
    """The body with contents of results alone put together."""
    contents: list[Any] = []
    for content in body["contents"] if isinstance(body["contents"], list) else ():
        results = all("functionResponse" in part or "function_response" in part for part in content["parts"])
        if contents and results and content["role"] == "user" and contents[-1][0]:
            contents[-1][1]["parts"] = [*contents[-1][1]["parts"], *content["parts"]]
        else:
            contents.append((results, dict(content)))
    return {**body, "contents": [content for _, content in contents]} if contents else body


def result_wire(number: int, **beside: Any) -> dict[str, Any]:
    return {
        "functionResponse": {"id": f"c{number}", "name": "look", "response": {"output": f"seen {number}"}, **beside}
    }


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3-pro"])
@pytest.mark.parametrize("between", [[], [{"role": "user", "parts": [{"text": "and?"}]}]], ids=["beside", "text"])
def test_results_of_parallel_calls_go_together(model: str, between: list[Any], oracle: ModuleType) -> None:
    """Vertex and Gemini 3 answer 400: the number of function response parts must equal that of the calls."""
    calls = [{"functionCall": {"id": f"c{n}", "name": "look", "args": {}}, "thoughtSignature": "c2ln"} for n in (1, 2)]
    apart = body_of(
        {"role": "user", "parts": [{"text": "Look twice."}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": [result_wire(1)]},
        *between,
        {"role": "user", "parts": [result_wire(2), {"text": "go on"}]},
    )
    fixed = turnlog.repair(apart, model=model)
    together = {"role": "user", "parts": [result_wire(1), result_wire(2)]}
    assert fixed.body["contents"][2:] == [together, *between, {"role": "user", "parts": [{"text": "go on"}]}]
    assert [(edit.kind, edit.records) for edit in fixed.edits] == [("joined", (3, 4 + len(between)))]
    assert [violation.kind for violation in turnlog.check(apart, model=model)] == ["joined"]
    assert oracle.check_gemini(fixed.body, model=model) == []
    assert turnlog.repair(fixed.body, model=model).body == fixed.body


def test_a_missing_result_stands_beside_the_others() -> None:
    """The synthetic result in a content of its own would be counted apart from the recorded one."""
    calls = [{"functionCall": {"name": name, "args": {}}} for name in ("look", "go")]
    result = {"functionResponse": {"name": "look", "response": {"output": "seen"}}}
    body = body_of(
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": [result]},
    )
    fixed = turnlog.repair(body, model=MODEL)
    assert [len(content["parts"]) for content in fixed.body["contents"]] == [1, 2, 2]
    assert "unanswered" in {edit.kind for edit in fixed.edits}


@pytest.mark.slow
def test_tidy_leaves_recorded_bodies_alone(recorded: list[tuple[str, dict[str, Any]]], oracle: ModuleType) -> None:
    """A shape that lacks a real key would drop it from a request that was answered."""
    for model, body in recorded:
        assert oracle.check_gemini(body, model=model) == []
        sanitized = PROVIDER.sanitize(body, target("google", model))
        assert (sanitized.body, sanitized.edits) == (body, ())


def test_no_form_holds_content(recorded: list[tuple[str, dict[str, Any]]]) -> None:
    """A text, argument, result or base64 inside a form would be out of reach of views and redaction."""
    for _, body in recorded:
        for message in PROVIDER.parse(body).messages:
            parts = [inner for part in message.parts for inner in (part, *getattr(part, "parts", ()))]
            for part in (message, *parts):
                form = getattr(part, "form", None)
                if form is not None and form.delta is not None:
                    kept = {key for key, value in _leaves(form.delta) if isinstance(value, str) and len(value) > 40}
                    assert kept <= {"thoughtSignature", "thought_signature"}


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in _leaves(item, name)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item, key)]
    return [(key, value)]


SPELLINGS: dict[str, dict[str, Any]] = {
    "one content, one part": {"contents": {"parts": {"text": "hi"}}},
    "function role": body_of(
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
        {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
    ),
    "snake case throughout": {
        "contents": [
            {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "AAAA"}}]},
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"snake_key": {"a_b": 1}}}}]},
            {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"out_put": 1}}}]},
        ],
        "system_instruction": {"parts": {"text": "s"}},
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}],
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
        "generation_config": {"max_output_tokens": 5, "response_schema": {"properties": {"a_b": {"type": "STRING"}}}},
        "safety_settings": [{"category": "x", "threshold": "y"}],
        "cached_content": "cachedContents/1",
    },
    "nulls": {
        "contents": [{"role": None, "parts": [{"text": "a", "functionCall": None}, {"text": None}, {}]}],
        "systemInstruction": None,
        "tools": None,
        "generationConfig": None,
    },
    "no parts": body_of({"role": "user"}, {"role": "user", "parts": None}, {"role": "model", "parts": []}),
    "empty instruction": body_of(systemInstruction={"parts": []}),
    "bare instruction": body_of(systemInstruction={"role": "system"}),
    "instruction as a string": body_of(systemInstruction="s"),
    "instruction as strings": body_of(systemInstruction=["s", "t"]),
    "system among contents": body_of({"role": "system", "parts": [{"text": "s"}]}, systemInstruction={"parts": []}),
    "unknown keys everywhere": body_of(
        {"role": "user", "parts": [{"text": "a", "x": {"y": 1}}], "z": 0}, extra={"a_b": [1]}
    ),
    "tools in odd groups": body_of(
        tools=[
            {"functionDeclarations": [{"name": "a"}, {"name": "b", "parameters": {"type": "OBJECT"}}]},
            {"functionDeclarations": {"name": "c", "parameters": {"type": "object"}}},
            {"googleSearch": {}, "functionDeclarations": [{"name": "d", "response": {"type": "STRING"}}]},
            {"code_execution": {}, "url_context": {}},
            {},
            {"functionDeclarations": []},
            {"function_declarations": [{"description": "", "parameters": None}]},
        ]
    ),
    "one tool": body_of(tools={"googleSearch": {}}),
    "no tools": body_of(tools=[], model="models/gemini-2.5-flash"),
    "other part kinds": body_of(
        {
            "role": "model",
            "parts": [
                {"executableCode": {"language": "PYTHON", "code": "1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"videoMetadata": {"fps": 1}},
                {"text": "a", "functionCall": {"name": "two of them"}},
                {"functionCall": {"name": "f", "args": [1, 2.0]}},
                {"functionCall": {"name": None, "id": None, "args": None}},
                {"inlineData": {"mimeType": "image/png", "data": "no base64!"}},
                {"inlineData": {"mimeType": "image/png", "data": "AB=="}},
                {"fileData": {"fileUri": "gs://bucket/x.pdf"}},
                {"fileData": {"fileUri": "https://youtu.be/x"}, "videoMetadata": {"startOffset": "2s"}},
            ],
        }
    ),
    "thoughts and signatures": body_of(
        {
            "role": "model",
            "parts": [
                {"text": "thinking", "thought": True, "thoughtSignature": "AAAA"},
                {"text": "", "thought": True},
                {"thoughtSignature": "BBBB"},
                {"text": "", "thought_signature": "CCCC"},
                {"text": "said", "thoughtSignature": "DDDD"},
                {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "EEEE", "thought": True},
            ],
        }
    ),
    "results of all forms": body_of(
        {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "f", "args": {}}}]},
        *(
            {"role": "user", "parts": [{"functionResponse": {"name": "f", **extra}}]}
            for extra in (
                {"id": "1", "response": {"output": "o"}},
                {"response": {"result": "r"}},
                {"response": {"output": ["a", "b"]}},
                {"response": {"output": ["a"]}},
                {"response": {"error": "e"}},
                {"response": {"error": {"code": 1}}},
                {"response": {"error": None, "x": 1}},
                {"response": {}},
                {"response": None},
                {},
                {"response": "text"},
                {"response": [1, 1.0, True]},
                {"id": "2", "response": {"a": 1}, "willContinue": False, "scheduling": "SILENT"},
                {"response": {"output": "o"}, "parts": [{"inline_data": {"mime_type": "a/b", "data": "AAAA"}}, {}]},
                {"response": {"output": "o"}, "parts": []},
            )
        ),
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_comes_back(name: str) -> None:
    """What the API takes, or a caller once sent, must not be respelled on the way through the log."""
    body = SPELLINGS[name]
    again = rendered(PROVIDER.parse(body))
    assert json.dumps(again.body, sort_keys=True) == json.dumps(body, sort_keys=True)
    assert again.losses == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["output", "error", "result", "a", ""]), inner, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_any_response_comes_back(response: Any) -> None:
    """A response object that reads as text and outcome must be written as the same object."""
    texts, outcome, shape = read_response(response)
    again = response_of(texts, outcome, shape)
    assert json.dumps(again, sort_keys=True) == json.dumps(response, sort_keys=True)


def test_parts_become_canonical() -> None:
    """A part read as another kind would be lost to every other provider."""
    png = base64.b64decode("AAAA")
    parts = parts_of(
        {"text": "t"},
        {"text": "why", "thought": True, "thoughtSignature": "AAAA"},
        {"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "BBBB"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"fileData": {"fileUri": "https://x.org/a.pdf", "mimeType": "application/pdf"}},
        {"executableCode": {"code": "1"}},
    )
    assert parts == (
        Text("t"),
        Reasoning("google", text="why", signature="AAAA"),
        ToolCall("1", "f", {"a": 1}, signature="BBBB", provider="google"),
        Media("image", mime="image/png", sha256=sha256_hex(png), size=3),
        Media("document", mime="application/pdf", url="https://x.org/a.pdf"),
        Opaque("google", "executableCode", {"executableCode": {"code": "1"}}),
    )


def test_files_of_google_are_file_ids() -> None:
    """A Files API URI sent to another provider as a URL would be refused there."""
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc"
    (part,) = parts_of({"fileData": {"fileUri": uri, "mimeType": "video/mp4"}})
    assert part == Media("video", mime="video/mp4", file_id=uri, provider="google")


def test_results_become_canonical() -> None:
    """A failed tool shown as a success, or JSON where there is a plain text, misleads the next model."""
    wires = [{"output": "o"}, {"result": "r"}, {"error": "e"}, {"a": 1, "b": "x"}]
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}} for _ in wires]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": wire}} for wire in wires]},
    ]
    results = PROVIDER.parse(body_of(*contents)).messages[1].parts
    without_id = Form("google", delta={"~": {"functionResponse": {"-": ["id"]}}})
    assert results == (
        ToolResult("f-1", "f", (Text("o"),), form=without_id),
        ToolResult("f-2", "f", (Text("r", Form("google", "result")),), form=without_id),
        ToolResult("f-3", "f", (Text("e"),), "failed", form=without_id),
        ToolResult("f-4", "f", (Text('{"a":1,"b":"x"}', Form("google", "json")),), form=without_id),
    )


def test_results_without_ids_find_their_calls_by_name() -> None:
    """Parallel calls answered in another order would swap their answers."""
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in "ab"]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": name, "response": {"output": name}}} for name in "ba"],
        },
    ]
    call, answer = PROVIDER.parse(body_of(*contents)).messages
    ids = {part.name: part.id for part in call.parts if isinstance(part, ToolCall)}
    assert [part.call_id for part in answer.parts if isinstance(part, ToolResult)] == [ids["b"], ids["a"]]


def test_schemas_in_capitals_are_json_schemas_to_others() -> None:
    """`"type": "OBJECT"` is no JSON schema: every other provider would refuse the tool."""
    schema = {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}, "required": ["type"]}
    body = body_of(tools=[{"functionDeclarations": [{"name": "f", "parameters": schema}]}])
    parsed = PROVIDER.parse(body)
    assert parsed.configuration.tools == (
        Tool(
            "f",
            parameters={"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
            form=Form("google", "schema"),
        ),
    )
    assert rendered(parsed).body == body


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "contents"),
        ({"contents": "hi"}, "contents"),
        ({"contents": ["hi"]}, "contents[0]"),
        ({"contents": [{"parts": "hi"}]}, "contents[0].parts"),
        ({"contents": [{"parts": [{}, "hi"]}]}, "contents[0].parts[1]"),
        ({"contents": [], "systemInstruction": 3}, "systemInstruction"),
        ({"contents": [], "tools": [None]}, "tools[0]"),
        ({"contents": [], "tools": [{"functionDeclarations": ["f"]}]}, "tools[0].functionDeclarations[0]"),
    ],
)
def test_what_cannot_be_read_is_named(body: dict[str, Any], path: str) -> None:
    """An error without its place leaves the caller to search a body of megabytes."""
    with pytest.raises(FormatError, match=re.escape(path) + ":"):
        PROVIDER.parse(body)


def test_settings_are_camel_case_whatever_was_sent() -> None:
    """Setting paths name one spelling; a second one beside it would make the request ambiguous."""
    parsed = PROVIDER.parse(body_of(generation_config={"max_output_tokens": 5}))
    assert parsed.configuration.settings == {"generationConfig": {"maxOutputTokens": 5}}


@pytest.mark.slow
def test_the_sdk_sends_the_body_unchanged(fake_server: Any, recorded: list[tuple[str, dict[str, Any]]]) -> None:
    """The real SDK respells bytes and drops fields it does not know; our arguments must not let it."""
    genai = pytest.importorskip("google.genai")
    server = fake_server()
    client = genai.Client(api_key="k", http_options={"base_url": server.url})
    said = {"role": "user", "parts": [{"inline_data": {"mime_type": "text/plain", "data": "-_-_"}}]}
    image = body_of(said, generationConfig={"imageConfig": {"aspectRatio": "1:1"}}, tools=[])
    bodies = [(MODEL, body_of(said, generation_config={"top_p": 0.5})), (MODEL, image), *recorded[::12]]
    for model, body in bodies:
        client.models.generate_content(**sdk_arguments(body, model))
        assert _plain(server.requests[-1].body) == _plain(body)


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    """The SDK writes a generationConfig always, in its own spelling; neither means anything."""
    config = {"generation_config": "generationConfig"}
    return {"generationConfig": {}, **{config.get(key, key): value for key, value in body.items()}}
