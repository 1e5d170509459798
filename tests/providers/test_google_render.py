"""Google: rendering what came from elsewhere, rules, and sanitizing."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repairing import repair
from turnlog.log.messages import (
    Form,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    sha256_hex,
)
from turnlog.log.records import Configuration
from turnlog.models.target import target
from turnlog.providers.google import PROVIDER
from turnlog.requests.translate import plan
from turnlog.view.types import Loss, Shown

OLD, NEW = "gemini-2.5-flash", "gemini-3-flash-preview"
PDF = b"%PDF-1.4"
BLOBS = {sha256_hex(PDF): PDF}
PAPER = Media("document", mime="application/pdf", sha256=sha256_hex(PDF), size=len(PDF))
INLINE = {"inlineData": {"mimeType": "application/pdf", "data": base64.b64encode(PDF).decode()}}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
STAND_IN = "skip_thought_signature_validator"


def shown(*messages: Message) -> list[Shown]:
    return [Shown(message, (n,)) for n, message in enumerate(messages, 1)]


def rendered(messages: Sequence[Message], model: str = NEW, **configuration: Any) -> Any:
    return PROVIDER.render(shown(*messages), Configuration(**configuration), target("google", model), BLOBS.__getitem__)


def test_a_foreign_conversation_is_written_as_a_user_of_the_sdk_would() -> None:
    """Another provider's forms, ids or spellings that leak into the body would be refused."""
    other = Form("openai-chat", "string")
    messages = (
        Message("system", (Text("be kind", other),)),
        Message("system", (Text("be brief"),), form=Form("openai-chat", delta={"+": {"role": "developer"}})),
        Message("user", (Text("hi"), PAPER), form=other),
        Message(
            "assistant",
            (
                Reasoning("anthropic", text="hm", signature="sig"),
                Text("ok"),
                ToolCall("fc:1|a", "f", {"a": 1}),
                ToolCall("2", "g", raw="free", kind="custom"),
                ToolCall("3", "h", {"command": ["ls"]}, kind="shell"),
            ),
        ),
        Message("user", (ToolResult("fc:1|a", parts=(Text("one"), Text("two"))),)),
        Message("user", (ToolResult("2", "g", (Text("no"),), "timeout"),)),
        Message("user", (ToolResult("3", "h"), Text("and now?"))),
    )
    result = rendered(messages)
    assert result.body == {
        "systemInstruction": {"role": "user", "parts": [{"text": "be kind"}, {"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, INLINE]},
            {
                "role": "model",
                "parts": [
                    {"text": "ok"},
                    {"functionCall": {"id": "fc:1|a", "name": "f", "args": {"a": 1}}},
                    {"functionCall": {"id": "2", "name": "g", "args": {"input": "free"}}},
                    {"functionCall": {"id": "3", "name": "h", "args": {"command": ["ls"]}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "fc:1|a", "name": "f", "response": {"output": ["one", "two"]}}},
                    {"functionResponse": {"id": "2", "name": "g", "response": {"error": "no"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "3", "name": "h", "response": {"output": ""}}},
                    {"text": "and now?"},
                ],
            },
        ],
    }
    assert result.losses == (
        Loss("extra", "role of a system message left out", (2,)),
        Loss("reasoning", "reasoning of anthropic left out", (4,)),
    )


def test_results_of_one_step_join_and_those_of_another_do_not() -> None:
    """Parallel results in several contents are counted apart by older backends and refused."""
    call = ToolCall("1", "f", {})
    messages = [
        Message("user", (Text("go"),)),
        Message("assistant", (call, ToolCall("2", "f", {}))),
        Message("user", (ToolResult("1", "f", (Text("a"),)),)),
        Message("user", (ToolResult("2", "f", (Text("b"),)),)),
        Message("assistant", (call,)),
        Message("user", (ToolResult("1", "f", (Text("c"),)),)),
    ]
    contents = rendered(messages).body["contents"]
    assert [len(content["parts"]) for content in contents] == [1, 2, 2, 1, 1]


def test_a_result_answers_its_call_as_the_call_was_sent() -> None:
    """A result whose id the call does not carry on the wire is linked to nothing."""
    whole = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}}]}
    reply = PROVIDER.parse_response(whole)
    (call,) = reply.message.parts
    assert isinstance(call, ToolCall) and call.id
    answer = Message("user", (ToolResult(call.id, parts=(Text("a"),)),))
    contents = rendered([Message("user", (Text("go"),)), reply.message, answer]).body["contents"]
    assert contents[1:] == [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "a"}}}]},
    ]


def test_media_of_results_stand_inside_or_behind() -> None:
    """Models before the third generation know no parts inside a functionResponse."""
    messages = [
        Message("assistant", (ToolCall("1", "f", {}),)),
        Message("user", (ToolResult("1", "f", (Text("see"), PAPER)),)),
    ]
    inner = {"id": "1", "name": "f", "response": {"output": "see"}}
    new, old = rendered(messages), rendered(messages, OLD)
    assert new.body["contents"][1]["parts"] == [{"functionResponse": {**inner, "parts": [INLINE]}}]
    assert new.losses == ()
    assert old.body["contents"][1]["parts"] == [{"functionResponse": inner}, INLINE]
    assert [loss.kind for loss in old.losses] == ["place"]


def test_a_masked_result_shows_the_mask() -> None:
    """A form that outlives the text it spelled must not bring the old answer back or eat the new one."""
    wires: list[Any] = [{"a": 1}, {"result": "r"}, {}, None, "text", [1], {"error": "e"}]
    contents = [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": one}}]} for one in wires]
    for message in PROVIDER.parse({"contents": contents}).messages:
        (result,) = message.parts
        assert isinstance(result, ToolResult)
        kept = result.parts[0].form if result.parts and isinstance(result.parts[0], Text) else None
        for form in (None, kept):
            masked = ToolResult("", "f", (Text("[masked]", form),), result.outcome, form=result.form)
            (content,) = rendered([Message("user", (masked,))]).body["contents"]
            assert "[masked]" in json.dumps(content["parts"][0]["functionResponse"]["response"])


def test_foreign_schemas_and_tools() -> None:
    """`parameters` takes a part of JSON schema only; a schema sent there loses its rest or is refused."""
    schema = {"type": "object", "properties": {"x": {"type": ["string", "null"]}}, "additionalProperties": False}
    strict = Form("openai-chat", delta={"+": {"strict": True}})
    tools = (
        Tool("f", "does f", schema, form=strict),
        Tool("bare"),
        Tool("patch", kind="custom", provider="openai-responses", data={"format": {"type": "text"}}),
        Tool("web_search", kind="hosted", provider="anthropic", data={"type": "web_search_20250305"}),
        Tool("googleSearch", kind="hosted", provider="google", data={"googleSearch": {}}),
    )
    result = rendered([Message("user", (Text("go"),))], tools=tools)
    assert result.body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "does f", "parametersJsonSchema": schema},
                {"name": "bare"},
                {
                    "name": "patch",
                    "parametersJsonSchema": {
                        "type": "object",
                        "properties": {"input": {"type": "string"}},
                        "required": ["input"],
                    },
                },
            ]
        },
        {"googleSearch": {}},
    ]
    assert [loss.kind for loss in result.losses] == ["extra", "tool", "tool"]


def test_settings_of_the_target_are_laid_over_those_of_the_conversation() -> None:
    """A setting that stands twice in two spellings is ambiguous to the API."""
    configuration = Configuration("google", settings={"generation_config": {"topP": 1}, "labels": {"a": "b"}})
    aim = target("google", NEW, generation_config={"temperature": 0})
    local = plan(configuration, aim).local
    result = PROVIDER.render(shown(Message("user", (Text("go"),))), local, aim, BLOBS.__getitem__)
    assert result.body["generationConfig"] == {"temperature": 0}
    assert result.body["labels"] == {"a": "b"}
    assert result.body.keys() == {"contents", "generationConfig", "labels"}


@pytest.mark.parametrize(
    ("file_id", "uri"),
    [
        ("files/abc-123", "https://generativelanguage.googleapis.com/v1beta/files/abc-123"),
        ("https://generativelanguage.googleapis.com/v1beta/files/abc", ""),
        ("gs://bucket/a.pdf", ""),
    ],
)
def test_a_file_goes_by_its_address(file_id: str, uri: str, oracle: ModuleType) -> None:
    """The SDK calls a file `files/abc`, and the API takes only the whole address: "Invalid or unsupported file uri"."""
    paper = Media("document", mime="application/pdf", file_id=file_id, provider="google")
    result = rendered([Message("user", (Text("read"), paper))])
    parts = result.body["contents"][0]["parts"]
    assert parts[1] == {"fileData": {"fileUri": uri or file_id, "mimeType": "application/pdf"}}
    assert (oracle.check_gemini(result.body), result.losses) == ([], ())
    assert PROVIDER.parse(result.body).messages[0].parts[1] == msgspec.structs.replace(paper, file_id=uri or file_id)


def test_a_file_that_has_no_address_is_a_loss(oracle: ModuleType) -> None:
    """The id of nothing would be refused, and with it the whole request."""
    result = rendered([Message("user", (Media("document", file_id="../abc", provider="google"),))])
    assert result.body["contents"][0]["parts"] == [{"text": "[document left out]"}]
    assert [(loss.kind, loss.records) for loss in result.losses] == [("media", (1,))]
    assert oracle.check_gemini(result.body) == []


texts = st.text(max_size=8)
media = st.sampled_from(
    [
        PAPER,
        Media("image", url="https://x.org/a.png"),
        Media("image", url=f"data:image/png;base64,{PIXEL}"),
        Media("file", file_id="file-1", provider="openai-responses"),
        Media("image"),
    ]
)
forms = st.sampled_from(
    [
        None,
        Form("openai-chat", "list", {"+": {"annotations": [], "refusal": "x"}}),
        Form("anthropic", delta={"+": {"cache_control": {"type": "ephemeral"}}}),
        Form("google", "object"),
    ]
)
ids = st.sampled_from(["", "1", "2", "fc:1|a", "toolu_1"])
names = st.sampled_from(["f", "g", "not a name!", ""])
arguments = st.sampled_from([{}, {"a": 1}, [1], None, "text"])
spoken: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts, forms),
    media,
    st.builds(
        Reasoning,
        provider=st.sampled_from(["google", "anthropic"]),
        text=texts,
        signature=st.sampled_from(["", "AAAA"]),
    ),
    st.builds(
        ToolCall,
        ids,
        names,
        arguments,
        raw=st.sampled_from([None, "{broken"]),
        kind=st.sampled_from(["function", "custom", "shell"]),
        signature=st.sampled_from(["", "AAAA"]),
        provider=st.sampled_from(["", "google", "anthropic"]),
    ),
    st.builds(
        ToolResult,
        ids,
        names,
        st.lists(st.one_of(st.builds(Text, texts, forms), media), max_size=3).map(tuple),
        st.sampled_from(["ok", "failed", "lost"]),
    ),
    st.sampled_from([Opaque("anthropic", "x"), Opaque("google", "executableCode", {"executableCode": {"code": "1"}})]),
    st.just(Unknown("later")),
)
histories = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "user", "assistant", "system"]),
        st.lists(spoken, max_size=4).map(tuple),
        st.sampled_from(["", "", "ann"]),
        forms,
    ),
    max_size=8,
)


@given(histories, st.sampled_from([OLD, NEW]))
def test_any_history_renders(messages: list[Message], model: str) -> None:
    """Rendering never repairs and never fails: a session that cannot be shown cannot be saved."""
    result = rendered(messages, model)
    assert json.loads(json.dumps(result.body)) == result.body


@given(histories, st.sampled_from([OLD, NEW, "gemini-2.0-flash"]))
def test_any_repaired_history_is_accepted(oracle: ModuleType, messages: list[Message], model: str) -> None:
    """A rule that the provider has and ours lacks would let a request be refused."""
    aim = target("google", model)
    repaired = repair(shown(*messages), PROVIDER.rules(aim, {}))
    result = PROVIDER.render(repaired.view, Configuration(), aim, BLOBS.__getitem__)
    assert oracle.check_gemini(result.body, model=model) == []
    sanitized = PROVIDER.sanitize(result.body, aim)
    assert (sanitized.body, sanitized.edits) == (result.body, ())


@given(histories)
def test_texts_calls_and_results_survive(messages: list[Message]) -> None:
    """What was said, called and answered is never a loss, whoever said it."""
    sent = json.dumps(rendered(messages).body, ensure_ascii=False)
    for message in messages:
        for part in message.parts:
            if message.role == "system" and not isinstance(part, Text):
                continue
            for inner in (part, *getattr(part, "parts", ())):
                if isinstance(inner, Text):
                    assert json.dumps(inner.text, ensure_ascii=False) in sent
                if isinstance(inner, ToolCall):
                    assert json.dumps({"name": inner.name}, ensure_ascii=False)[1:-1] in sent


@given(histories)
def test_what_was_sent_reads_back_as_what_was_said(messages: list[Message]) -> None:
    """Two rounds of render and parse that drift would change a conversation a little each time."""
    first = rendered(messages)
    read = PROVIDER.parse(first.body)
    again = PROVIDER.render(shown(*read.messages), read.configuration, target("google", NEW), read.blobs.__getitem__)
    assert again.body == first.body
    assert again.losses == ()


def test_rules_of_the_generations() -> None:
    """An unsigned call of another model is refused by Gemini 3 and fine before it."""
    assert PROVIDER.rules(target("google", OLD), {}).step_signature == ""
    for model in (NEW, "gemini-3.5-flash", "gemini-10-pro", "gemini-pro-latest"):
        assert PROVIDER.rules(target("google", model), {}).step_signature == STAND_IN


def test_signatures_go_to_their_own_provider_only() -> None:
    """A foreign signature is answered with "Corrupted thought signature."."""
    calls = (
        ToolCall("1", "f", {}, signature="AAAA", provider="google"),
        ToolCall("2", "f", {}, signature=STAND_IN),
        ToolCall("3", "f", {}, signature="AAAA", provider="other"),
    )
    result = rendered([Message("assistant", calls)])
    signatures = [part.get("thoughtSignature") for part in result.body["contents"][0]["parts"]]
    assert signatures == ["AAAA", STAND_IN, None]
    assert [loss.kind for loss in result.losses] == ["reasoning"]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("tool:f", {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_tool_choice_both_ways(choice: str, config: dict[str, Any]) -> None:
    """A choice that does not come back would switch calling on or off on the next request."""
    settings = {"tool_config": {"function_calling_config": {"mode": "ANY"}, "retrievalConfig": {"languageCode": "x"}}}
    chosen = PROVIDER.with_tool_choice(settings, choice)
    assert chosen == {"toolConfig": {"functionCallingConfig": config, "retrievalConfig": {"languageCode": "x"}}}
    assert PROVIDER.tool_choice(chosen) == choice
    assert PROVIDER.tool_choice({}) is None


SAID = {"role": "user", "parts": [{"text": "hi"}]}
BAD: dict[str, dict[str, Any]] = {
    "unknown keys": {
        "contents": [{"role": "user", "name": "x", "parts": [{"text": "hi", "type": "text"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "strict": True}], "type": "function"}],
        "generation_config": {"max_tokens": 1, "thinking_config": {"effort": "low"}},
        "system_instruction": {"parts": [{"text": "s", "cache_control": {}}]},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "level": 1}],
        "messages": [],
    },
    "one content with unknown keys": {"contents": {"parts": {"text": "hi", "id": 1}, "created": 1}},
    "instruction as a string": {"contents": [SAID], "systemInstruction": "s"},
    "instruction without parts": {"contents": [SAID], "systemInstruction": {"parts": []}},
    "content without parts": {"contents": [{"role": "user", "parts": []}]},
    "forced calling without functions": {
        "contents": [SAID],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    },
    "undeclared functions allowed": {
        "contents": [SAID],
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}},
    },
    "cached content beside tools": {
        "contents": [SAID],
        "cachedContent": "cachedContents/1",
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "system_instruction": {"parts": [{"text": "s"}]},
    },
    "function declared twice": {
        "contents": [SAID],
        "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}, {"function_declarations": [{"name": "f"}]}],
    },
    "schema in the typed field": {
        "contents": [SAID],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"$schema": "x", "type": "object"}}]}],
        "generationConfig": {"responseSchema": {"type": "OBJECT", "properties": {"a": {"const": 1}}}},
    },
    "schema twice": {
        "contents": [SAID],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {}, "parametersJsonSchema": {}}]}],
    },
    "out of range": {
        "contents": [SAID],
        "generationConfig": {"temperature": 3, "stopSequences": list("abcdef")},
    },
}


@pytest.mark.parametrize("name", BAD)
def test_tidy_makes_the_rest_of_a_request_acceptable(oracle: ModuleType, name: str) -> None:
    """What sanitizing misses is a 400 that no repair of the conversation can prevent."""
    body, aim = BAD[name], target("google", NEW)
    before = json.dumps(body)
    assert oracle.check_gemini(body, model=NEW) != []
    once = PROVIDER.sanitize(body, aim)
    assert oracle.check_gemini(once.body, model=NEW) == []
    assert once.edits
    twice = PROVIDER.sanitize(once.body, aim)
    assert (twice.body, twice.edits) == (once.body, ())
    assert json.dumps(body) == before
