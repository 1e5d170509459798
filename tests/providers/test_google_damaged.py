"""Google: bodies and answers that are broken in ways nobody thought of."""

from __future__ import annotations

import json
import random
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutants import attempted, deep, mutant

from turnlog.errors import FormatError
from turnlog.log.messages import Media, Opaque, Reasoning, Text
from turnlog.models.target import target
from turnlog.providers.google import PROVIDER
from turnlog.requests.standalone import check, repair
from turnlog.view.types import Shown

MODELS = ("gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro")
AIM = target("google", "gemini-2.5-pro")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
IMAGE = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Look."}, IMAGE]},
    {"role": "model", "parts": [
        {"text": "Hm.", "thought": True},
        {"functionCall": {"id": "1", "name": "look", "args": {"at": "a"}}, "thoughtSignature": "AAAA"},
        {"functionCall": {"id": "2", "name": "look", "args": {}}},
    ]},
    {"role": "user", "parts": [
        {"functionResponse": {"id": "1", "name": "look", "response": {"output": "seen"}}},
        {"functionResponse": {"id": "2", "name": "look", "response": {"a": [1, {"b": 2}]}}},
    ]},
    {"role": "model", "parts": [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "One.", "thoughtSignature": "BBBB"},
    ]},
    {"role": "user", "parts": [
        {"text": "And this?"},
        {"fileData": {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1}},
    ]},
]  # fmt: skip
BODY: dict[str, Any] = {
    "contents": CONTENTS,
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [
        {"functionDeclarations": [
            {"name": "look", "description": "Looks.", "parameters": {"type": "OBJECT", "properties": {}}},
        ]},
        {"googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
    "generationConfig": {
        "temperature": 1, "maxOutputTokens": 100, "stopSequences": ["END"], "thinkingConfig": {"thinkingBudget": 5},
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
}  # fmt: skip
seeds = st.integers(min_value=0, max_value=2**32)
models = st.sampled_from(MODELS)


def body_of(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"contents": [{"role": role, "parts": list(parts)}]}


@pytest.mark.parametrize("model", MODELS[1:])
def test_the_sound_body_is_sound(model: str, oracle: ModuleType) -> None:
    """Mutants of a body that is refused anyway would prove nothing."""
    assert oracle.check_gemini(BODY, model=model) == []
    assert repair(BODY, "google", model=model).body == BODY
    assert check(BODY, "google", model=model) == []


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_mutant_is_refused_with_a_path_or_made_acceptable(model: str, oracle: ModuleType) -> None:
    """The promise of `repair`, and that repairing twice is repairing once, for bodies nobody foresaw: 99 in 100."""
    refused = unsteady = 0
    for seed in range(300):
        body = mutant(BODY, random.Random(seed))
        before = json.dumps(body)
        prepared = attempted(lambda body=body: repair(body, "google", model=model))  # type: ignore[misc]
        if isinstance(prepared, FormatError):
            assert prepared.path
            continue
        refused += bool(oracle.check_gemini(prepared.body, model=model))
        again = repair(prepared.body, "google", model=model)
        unsteady += (again.body, again.edits, again.losses) != (prepared.body, (), ())
        assert json.dumps(body) == before
    assert (refused <= 3, unsteady <= 3) == (True, True), (refused, unsteady)


@given(seed=seeds, model=models)
def test_no_function_raises_anything_else(seed: int, model: str) -> None:
    """A TypeError from the depths names no path and is nobody's to catch."""
    body, aim = mutant(BODY, random.Random(seed)), target("google", model)
    PROVIDER.rules(aim, body)
    PROVIDER.tool_choice(body)
    once = PROVIDER.sanitize(body, aim)
    again = PROVIDER.sanitize(once.body, aim)
    assert (again.body, again.edits) == (once.body, ())
    assert bool(once.edits) == (json.dumps(once.body, sort_keys=True) != json.dumps(body, sort_keys=True))


@given(seed=seeds)
def test_a_mutant_that_can_be_read_comes_back_or_is_declared(seed: int) -> None:
    """What parsing understood must not vanish on the way back without an edit or a loss."""
    body = mutant(BODY, random.Random(seed))
    parsed = attempted(lambda: PROVIDER.parse(body))
    if isinstance(parsed, FormatError):
        return
    view = [Shown(message, (n,)) for n, message in enumerate(parsed.messages, start=1)]
    rendered = PROVIDER.render(view, parsed.configuration, AIM, parsed.blobs.__getitem__)
    assert rendered.losses or rendered.edits or rendered.body == body


@pytest.mark.parametrize("place", [("x",), ("contents", 1, "parts", 1, "functionCall", "args"), ("generationConfig",)])
def test_nesting_that_nobody_means_is_refused(place: tuple[str | int, ...]) -> None:
    """Python gives up at a thousand levels, somewhere, with an error of its own."""
    body = json.loads(json.dumps(BODY))
    holder: Any = body
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = deep(5_000)
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body)
    assert caught.value.path


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


ANSWER: dict[str, Any] = {
    "candidates": [{"content": CONTENTS[1], "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    "modelVersion": AIM.model,
    "responseId": "r",
}
PIECES: list[dict[str, Any]] = [
    {"text": "Hi"},
    {"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "AAAA"},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True}],
                      "willContinue": True}},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "y"}], "willContinue": True}},
    {"functionCall": {}},
]  # fmt: skip
STREAM = [
    {"candidates": [{"content": {"role": "model", "parts": [piece]}}], "usageMetadata": {"promptTokenCount": 1}}
    for piece in PIECES
]


@given(seed=seeds)
def test_a_mutant_of_an_answer_is_read_or_refused(seed: int) -> None:
    """An answer that cannot be read is a FormatError, at the chunk that is wrong and not at the end."""
    rng = random.Random(seed)
    whole = mutant(ANSWER, rng)
    read = attempted(lambda: PROVIDER.parse_response(whole))
    assert not isinstance(read, FormatError) or read.path
    assembler = PROVIDER.assembler()
    for chunk in mutant({str(n): chunk for n, chunk in enumerate(STREAM)}, rng).values():
        refused = attempted(partial(assembler.feed, chunk))
        assert not isinstance(refused, FormatError) or refused.path
    assert assembler.reply() == assembler.reply()


@pytest.mark.parametrize("path", ["$.a[999999999999]", "$" + ".a" * 5_000])
def test_a_piece_of_arguments_cannot_make_us_build_the_sky(path: str) -> None:
    """One index of twelve digits would fill the memory."""
    call = {"name": "f", "partialArgs": [{"jsonPath": path, "numberValue": 1}], "willContinue": True}
    with pytest.raises(FormatError):
        PROVIDER.assembler().feed({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]})
