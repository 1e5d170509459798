"""Google: what of a broken body is named, mended or dropped."""

from __future__ import annotations

from typing import Any

import pytest
from sound import PIXEL

from turnlog.errors import FormatError
from turnlog.log.messages import Media, Opaque, Reasoning, Text
from turnlog.models.target import target
from turnlog.providers.google import PROVIDER
from turnlog.requests.standalone import repair
from turnlog.view.types import Shown

MODELS = ("gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro")
AIM = target("google", "gemini-2.5-pro")


def body_of(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"contents": [{"role": role, "parts": list(parts)}]}


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"text": 5}, "text"),
        ({"text": ["x"]}, "text"),
        ({"text": "x", "thought": "yes"}, "thought"),
        ({"text": "x", "thought_signature": 1}, "thought_signature"),
        ({"functionCall": "f"}, "functionCall"),
        ({"functionCall": {"name": 3}}, "functionCall.name"),
        ({"function_call": {"name": "f", "id": {}}}, "function_call.id"),
        ({"functionResponse": []}, "functionResponse"),
        ({"functionResponse": {"name": {}}}, "functionResponse.name"),
        ({"functionResponse": {"name": "f", "parts": ["x"]}}, "functionResponse.parts[0]"),
        ({"inlineData": "x"}, "inlineData"),
        ({"inlineData": {"mimeType": "image/png", "data": 1}}, "inlineData.data"),
        ({"inline_data": {"mime_type": [], "data": ""}}, "inline_data.mime_type"),
        ({"fileData": {"fileUri": {}}}, "fileData.fileUri"),
        ({"functionCall": {"name": "f"}, "function_call": {"name": "g"}}, "function_call"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(part: dict[str, Any], path: str) -> None:
    """Carried along unread, it would be sent again and refused there."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body_of(part))
    assert caught.value.path == f"contents[0].parts[0].{path}"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"contents": [{"text": "Hello!"}]}, "contents[0]"),
        ({"contents": [{"role": "user", "parts": None, "content": "Hello!"}]}, "contents[0]"),
        ({"contents": [{"role": {}, "parts": []}]}, "contents[0].role"),
        ({"contents": [], "systemInstruction": {"role": 1, "parts": []}}, "systemInstruction.role"),
        ({"contents": [], "model": {}}, "model"),
        ({"contents": [], "tools": [{"functionDeclarations": "f"}]}, "tools[0].functionDeclarations"),
        ({"contents": [], "tools": [{"functionDeclarations": [{"name": 1}]}]}, "tools[0].functionDeclarations[0].name"),
        (
            {"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parameters": []}]}]},
            "tools[0].functionDeclarations[0].parameters",
        ),
        ({"contents": [], "generationConfig": {"topP": 1, "top_p": 2}}, "generationConfig.top_p"),
        ({"contents": [], "systemInstruction": "a", "system_instruction": "b"}, "system_instruction"),
    ],
)
def test_what_could_mean_anything_is_named(body: dict[str, Any], path: str) -> None:
    """A text outside the parts, or one of two spellings, would be left out and nobody would know."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body)
    assert caught.value.path == path


def test_the_users_own_json_may_hold_any_keys() -> None:
    """Arguments, responses and schemas are no fields of Google's: `a_b` and `aB` are two keys there."""
    both = {"a_b": 1, "aB": 2}
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": both}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": both}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"properties": both}}]}],
    }
    assert repair(body, "google", model=AIM.model).body == body


@pytest.mark.parametrize(
    ("seen", "sent"),
    [
        ({}, {"text": ""}),
        ({"text": None}, {"text": ""}),
        ({"thought": True}, {"thought": True, "text": ""}),
        ({"functionCall": {"name": "f", "args": [1]}}, {"functionCall": {"name": "f", "args": {"input": [1]}}}),
        ({"functionResponse": {"name": "f"}}, {"functionResponse": {"name": "f", "response": {}}}),
        ({"functionResponse": {"name": "f", "response": None}}, {"functionResponse": {"name": "f", "response": {}}}),
        ({"functionResponse": {"name": "f", "response": "o"}},
         {"functionResponse": {"name": "f", "response": {"output": "o"}}}),
        ({"functionResponse": {"name": "f", "response": [1]}},
         {"functionResponse": {"name": "f", "response": {"output": [1]}}}),
        ({"functionResponse": {"name": "f", "response": {}, "willContinue": "soon"}},
         {"functionResponse": {"name": "f", "response": {}}}),
        ({"inlineData": {"data": PIXEL}}, {"inlineData": {"data": PIXEL, "mimeType": "image/png"}}),
        ({"inlineData": {"mimeType": "text/plain", "data": "aGk\n="}},
         {"inlineData": {"mimeType": "text/plain", "data": "aGk="}}),
        ({"inlineData": {"mimeType": "text/plain", "data": "AB=="}},
         {"inlineData": {"mimeType": "text/plain", "data": "AA=="}}),
        ({"fileData": {"fileUri": "https://x.org/a.pdf"}},
         {"fileData": {"fileUri": "https://x.org/a.pdf", "mimeType": "application/pdf"}}),
        ({"text": "a", "thoughtSignature": "?"}, {"text": "a"}),
        ({"text": "a", "videoMetadata": 5}, {"text": "a"}),
    ],
)  # fmt: skip
def test_a_part_is_mended_where_it_can_be(seen: dict[str, Any], sent: dict[str, Any]) -> None:
    """Each is a 400 as it was seen; an edit names the place."""
    sanitized = PROVIDER.sanitize(body_of(seen), AIM)
    assert sanitized.body == body_of(sent)
    assert sanitized.edits
    assert all(edit.path.startswith("contents[0]") for edit in sanitized.edits)


def test_a_call_without_a_readable_signature_gets_the_stand_in() -> None:
    """The third generation refuses a call without one; older ones take any."""
    call = {"functionCall": {"name": "f", "args": {}}}
    seen = body_of({**call, "thought_signature": "?"}, role="model")
    new, old = (PROVIDER.sanitize(seen, target("google", model)).body for model in (MODELS[2], MODELS[1]))
    assert new == body_of({**call, "thought_signature": "skip_thought_signature_validator"}, role="model")
    assert old == body_of(call, role="model")


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"generationConfig": {"temperature": "hot", "topP": "0.5"}}, {"generationConfig": {"topP": "0.5"}}),
        ({"generationConfig": []}, {}),
        ({"generation_config": {"stop_sequences": ["a", {}]}}, {"generation_config": {"stop_sequences": ["a"]}}),
        ({"safetySettings": ["none"]}, {}),
        ({"toolConfig": {"functionCallingConfig": {"allowedFunctionNames": [{}]}}},
         {"toolConfig": {"functionCallingConfig": {}}}),
        ({"tools": [{"googleSearch": "yes"}]}, {"tools": [{}]}),
        ({"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "required": "a"}}]}]},
         {"tools": [{"functionDeclarations": [
             {"name": "f", "parametersJsonSchema": {"type": "object", "required": "a"}}]}]}),
        ({"tools": {"functionDeclarations": {"name": "f", "strict": True}}},
         {"tools": {"functionDeclarations": {"name": "f"}}}),
    ],
)  # fmt: skip
def test_settings_of_the_wrong_type_are_dropped(settings: dict[str, Any], kept: dict[str, Any]) -> None:
    """One bad setting refuses the whole request."""
    sanitized = PROVIDER.sanitize({**body_of({"text": "a"}), **settings}, AIM)
    assert sanitized.body == {**body_of({"text": "a"}), **kept}
    assert sanitized.edits


@pytest.mark.parametrize(("role", "wire", "canonical"), [
    ("assistant", "model", "assistant"), ("MODEL", "model", "assistant"), ("USER", "user", "user"),
    ("tool", "user", "user"), ("robot", "user", "user"),
])  # fmt: skip
def test_roles_of_other_habits_are_understood(role: str, wire: str, canonical: str) -> None:
    """`Please use a valid role: user, model.`; an answer read as the user's would turn the conversation around."""
    body = {"contents": [{"role": role, "parts": [{"text": "a"}]}]}
    assert [message.role for message in PROVIDER.parse(body).messages] == [canonical]
    sanitized = PROVIDER.sanitize(body, AIM)
    assert sanitized.body == {"contents": [{"role": wire, "parts": [{"text": "a"}]}]}
    assert [edit.kind for edit in sanitized.edits] == ["role"]


def test_what_a_user_says_is_no_thought() -> None:
    """Reasoning in a user message is repaired away, and the text would go with it."""
    said = {"text": "a", "thought": True}
    user, model = PROVIDER.parse(
        {"contents": [*body_of(said)["contents"], *body_of(said, role="model")["contents"]]}
    ).messages
    assert isinstance(user.parts[0], Text)
    assert isinstance(model.parts[0], Reasoning)
    body = body_of(said, {"thoughtSignature": "AAAA"})
    assert repair(body, "google", model=AIM.model).body == body


def test_mime_types_are_read_in_lower_case_without_parameters() -> None:
    """`APPLICATION/PDF` is a PDF, and `audio/L16;rate=24000` is what Google's own voices are sent as."""
    body = body_of(
        *({"inlineData": {"mimeType": mime, "data": "AAAA"}} for mime in ("IMAGE/PNG", "audio/L16;rate=24000"))
    )
    (message,) = PROVIDER.parse(body).messages
    assert [(part.kind, part.mime) for part in message.parts if isinstance(part, Media)] == [
        ("image", "image/png"), ("audio", "audio/l16"),
    ]  # fmt: skip
    view = [Shown(message, (1,))]
    parsed = PROVIDER.parse(body)
    assert PROVIDER.render(view, parsed.configuration, AIM, parsed.blobs.__getitem__).body == body


@pytest.mark.parametrize(
    ("data", "known"),
    [
        ({"executableCode": {"code": "1"}}, True),
        ({"code_execution_result": {"outcome": "OUTCOME_OK"}}, True),
        ({"executableCode": "1"}, False),
        ({"text": "a", "functionCall": {"name": "f"}}, False),
        ({"inlineData": {"mimeType": "image/png", "data": "no base64!"}}, False),
        ({"fileData": {}}, False),
        ({"foo": "a"}, False),
        ({"partMetadata": {}}, False),
        ({"videoMetadata": {"fps": 1}}, True),
        ({"thoughtSignature": "AAAA"}, True),
        ("a", False),
    ],
)
def test_only_parts_that_say_one_thing_are_sent_back(data: Any, known: bool) -> None:
    """What Google would refuse leaves the view before repair, so that no content is left empty."""
    assert PROVIDER.knows(Opaque("google", "k", data)) is known


def test_a_result_without_a_name_is_named_and_says_so() -> None:
    """`function_response.name: Name cannot be empty.`: a body that is refused must not pass `check`."""
    body = {"contents": [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "response": {"a": 1}}}]},
    ]}  # fmt: skip
    prepared = repair(body, "google", model=AIM.model)
    assert prepared.body["contents"][2]["parts"][0]["functionResponse"]["name"] == "f"
    assert [edit.kind for edit in prepared.edits] == ["name"]


@pytest.mark.parametrize("path", ["$.a[999999999999]", "$" + ".a" * 5_000])
def test_a_piece_of_arguments_cannot_make_us_build_the_sky(path: str) -> None:
    """One index of twelve digits would fill the memory."""
    call = {"name": "f", "partialArgs": [{"jsonPath": path, "numberValue": 1}], "willContinue": True}
    with pytest.raises(FormatError):
        PROVIDER.assembler().feed({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]})
