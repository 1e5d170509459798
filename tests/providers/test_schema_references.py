"""Every place where a request holds a JSON schema: `check` names its broken references, `repair` mends them."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from judging import errors_of
from turnlog import check, convert, repair
from turnlog.log.messages import Tool
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.requests.size import as_declared
from turnlog.skills.catalogue import schema_text

BAD = {
    "type": "object",
    "properties": {
        "a": {"$ref": "#/$defs/B", "$defs": {"B": {"type": "string"}}},
        "c": {"$ref": "#/$defs/Gone"},
    },
}
SAYS = [
    "properties.a.$defs.B moved to '#/$defs/B'",
    "properties.c.$ref dropped: '#/$defs/Gone' leads nowhere, so any value is allowed",
]
GOOD = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/B"}, "c": {}},
    "$defs": {"B": {"type": "string"}},
}
FUNCTION = {"type": "function", "name": "f", "strict": False, "parameters": BAD}
LISTED = {"name": "f", "input_schema": BAD}
CHAT = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES = {"model": "gpt-5", "input": [{"role": "user", "content": "hi"}]}
SEARCHED = {"call_id": "c", "execution": "client", "status": "completed"}
ANTHROPIC = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
GOOGLE = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
INTERACTION = {"model": "gemini-2.5-pro", "input": "hi"}
FOR_GOOGLE = {"type": "function", "name": "f", "parameters": BAD}
TEXT = {"type": "text", "mime_type": "application/json", "schema": BAD}
BODIES: list[tuple[str, dict[str, Any], str]] = [
    (
        "openai-chat",
        {**CHAT, "tools": [{"type": "function", "function": {"name": "f", "parameters": BAD}}]},
        "tools[0].function.parameters",
    ),
    ("openai-chat", {**CHAT, "functions": [{"name": "f", "parameters": BAD}]}, "functions[0].parameters"),
    (
        "openai-chat",
        {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": BAD}}},
        "response_format.json_schema.schema",
    ),
    ("openai-responses", {**RESPONSES, "tools": [FUNCTION]}, "tools[0].parameters"),
    (
        "openai-responses",
        {**RESPONSES, "tools": [{"type": "namespace", "name": "n", "description": "x", "tools": [FUNCTION]}]},
        "tools[0].tools[0].parameters",
    ),
    (
        "openai-responses",
        {**RESPONSES, "text": {"format": {"type": "json_schema", "name": "x", "schema": BAD}}},
        "text.format.schema",
    ),
    (
        "openai-responses",
        {
            **RESPONSES,
            "input": [
                *RESPONSES["input"],
                {"type": "tool_search_call", "arguments": {}, **SEARCHED},
                {"type": "tool_search_output", "tools": [FUNCTION], **SEARCHED},
            ],
        },
        "input[2].tools[0].parameters",
    ),
    (
        "openai-responses",
        {
            **RESPONSES,
            "input": [*RESPONSES["input"], {"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}],
        },
        "input[1].tools[0].parameters",
    ),
    (
        "openai-responses",
        {
            **RESPONSES,
            "input": [
                *RESPONSES["input"],
                {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [LISTED]},
            ],
        },
        "input[1].tools[0].input_schema",
    ),
    ("anthropic", {**ANTHROPIC, "tools": [{"name": "f", "input_schema": BAD}]}, "tools[0].input_schema"),
    (
        "anthropic",
        {**ANTHROPIC, "output_config": {"format": {"type": "json_schema", "schema": BAD}}},
        "output_config.format.schema",
    ),
    (
        "anthropic",
        {**ANTHROPIC, "output_format": {"type": "json_schema", "schema": BAD}},
        "output_format.schema",
    ),
    (
        "google",
        {**GOOGLE, "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": BAD}]}]},
        "tools[0].functionDeclarations[0].parametersJsonSchema",
    ),
    (
        "google",
        {**GOOGLE, "tools": {"function_declarations": [{"name": "f", "parameters_json_schema": BAD}]}},
        "tools.function_declarations[0].parameters_json_schema",
    ),
    (
        "google",
        {**GOOGLE, "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": BAD}},
        "generationConfig.responseJsonSchema",
    ),
    (
        "google",
        {**GOOGLE, "generationConfig": {"responseFormat": {"text": {"mimeType": "APPLICATION_JSON", "schema": BAD}}}},
        "generationConfig.responseFormat.text.schema",
    ),
    ("google-interactions", {**INTERACTION, "tools": [FOR_GOOGLE]}, "tools[0].parameters"),
    ("google-interactions", {**INTERACTION, "response_format": BAD}, "response_format"),
    ("google-interactions", {**INTERACTION, "response_format": TEXT}, "response_format.schema"),
    ("google-interactions", {**INTERACTION, "response_format": [TEXT]}, "response_format[0].schema"),
]


@pytest.mark.parametrize("name, body, path", BODIES, ids=[f"{name} {path}" for name, _, path in BODIES])
def test_a_schema_with_broken_references_is_mended(
    oracle: ModuleType, name: str, body: dict[str, Any], path: str
) -> None:
    """One such reference has the provider refuse the whole request, or the model guess what the tool takes."""
    made = repair(body, name)
    assert [str(edit) for edit in made.edits] == [f"{path}.{says}" for says in SAYS]
    assert {edit.kind for edit in made.edits} == {"reference"}
    assert [(one.kind, one.path) for one in check(body, name)] == [("reference", edit.path) for edit in made.edits]
    assert made.body == json.loads(json.dumps(body).replace(json.dumps(BAD), json.dumps(GOOD)))
    assert check(made.body, name) == []
    assert repair(made.body, name).body == made.body
    aim = target(name, str(body.get("model", "gemini-2.5-pro")))
    if "tools" in body:
        assert errors_of(oracle, aim, made.body) == []


TYPED = {
    "type": "OBJECT",
    "properties": {"a": {"ref": "#/defs/B"}, "ref": {"type": "STRING"}},
    "defs": {"B": {"type": "STRING"}},
}


def test_google_references_are_read_for_all() -> None:
    """No other provider knows `ref`: a parameter that refers would be declared as anything."""
    body = {**GOOGLE, "tools": [{"functionDeclarations": [{"name": "f", "parameters": TYPED}]}]}
    assert repair(body).body == body
    assert convert(body, to="anthropic").body["tools"][0]["input_schema"] == {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/B"}, "ref": {"type": "string"}},
        "$defs": {"B": {"type": "string"}},
    }
    broken = {**GOOGLE, "tools": [{"functionDeclarations": [{"name": "f", "parameters": {**TYPED, "defs": {}}}]}]}
    (edit,) = repair(broken).edits
    assert edit.path == "tools[0].functionDeclarations[0].parameters.properties.a.ref"


def test_tools_are_counted_and_told_as_they_are_sent() -> None:
    """A definition that is found nowhere would be neither counted nor understood."""
    sent, given = Tool("f", "", GOOD), Tool("f", "", BAD)
    assert schema_text(given) == schema_text(sent)
    assert as_declared([given, sent], provider("openai-chat").rules(target("openai-chat", "gpt-4o"), {})) == [
        sent,
        sent,
    ]
