"""Chat Completions: reading request bodies and writing them again."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from judging import numbered
from turnlog.errors import FormatError
from turnlog.log.codec import decode_record, encode_record
from turnlog.log.messages import Form, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, sha256_hex
from turnlog.log.records import Body, MessageRecord, Record
from turnlog.models.target import target
from turnlog.providers.openai_chat import PROVIDER
from turnlog.providers.protocol import Parsed
from turnlog.requests.standalone import repair
from turnlog.view.repair.pairing import pair
from turnlog.view.types import Shown

TARGET = target("openai-chat", "gpt-4o")


def through_codec(body: Body) -> Any:
    return decode_record(encode_record(Record(1, "2026-01-01T00:00:00.000Z", body))).body


def rendered(parsed: Parsed, model: str = "gpt-4o") -> Any:
    """The body again, after every record went through its bytes."""
    view = [Shown(through_codec(MessageRecord(m)).message, (i,)) for i, m in enumerate(parsed.messages, 1)]
    return PROVIDER.render(
        view, through_codec(parsed.configuration), target("openai-chat", model), parsed.blobs.__getitem__
    )


def messages_of(*wires: Any) -> tuple[Message, ...]:
    return PROVIDER.parse({"model": "gpt-4o", "messages": list(wires)}).messages


def filled(value: Any, blobs: Path) -> Any:
    """A recorded body with its media put back."""
    if isinstance(value, str) and "@blob:" in value:
        return re.sub(r"@blob:([\w.-]+)", lambda m: base64.b64encode((blobs / m[1]).read_bytes()).decode(), value)
    if isinstance(value, dict):
        return {key: filled(item, blobs) for key, item in value.items()}
    return [filled(item, blobs) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[dict[str, Any]]:
    """Every recorded Chat Completions body."""
    folder = shared / "data" / "token_truth"
    with (folder / "requests.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [filled(row["request"], folder / "blobs") for row in rows if row["api"] == "openai.chat"]


def test_recorded_bodies_come_back_identical(recorded: list[dict[str, Any]]) -> None:
    """Fails if any spelling of a real request is lost between parsing, storing and rendering."""
    assert len(recorded) > 1000
    for body in recorded:
        result = rendered(PROVIDER.parse(body), body.get("model") or "gpt-4o")
        assert result.body == body
        assert result.losses == ()


def test_forms_hold_no_content(recorded: list[dict[str, Any]]) -> None:
    """Fails if texts, arguments or media hide in a form, where no other provider would find them."""
    for body in recorded:
        for message in PROVIDER.parse(body).messages:
            parts = [inner for part in message.parts for inner in (part, *getattr(part, "parts", ()))]
            for holder in (message, *parts):
                form = getattr(holder, "form", None)
                assert form is None or len(json.dumps(form.delta)) < 200


def test_tidy_leaves_accepted_bodies_alone_and_mends_the_others(
    recorded: list[dict[str, Any]], oracle: ModuleType
) -> None:
    """Fails if sanitizing touches what the API takes, or leaves what it refuses."""
    refused = 0
    for body in recorded:
        model = target("openai-chat", body.get("model") or "gpt-4o")
        sanitized = PROVIDER.sanitize(body, model)
        if oracle.check_openai_chat(body):
            refused += 1
            assert oracle.check_openai_chat(sanitized.body) == []
            assert sanitized.edits
        else:
            assert (sanitized.body, sanitized.edits) == (body, ())
        again = PROVIDER.sanitize(sanitized.body, model)
        assert (again.body, again.edits) == (sanitized.body, ())
    assert refused > 100


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01IEND"
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}

SPELLINGS: list[list[dict[str, Any]]] = [
    [{"role": "developer", "content": [{"type": "text", "text": "be brief"}], "name": "boss"}],
    [
        {"role": "user", "content": ""},
        {"role": "user", "content": []},
        {"role": "user", "content": None},
        {"role": "user"},
    ],
    [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}],
        }
    ],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": DATA_URL, "detail": "low"}}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": DATA_URL + "\n"}, "x": None}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,???"}}]}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:;charset=a;base64,QUI="}}]}],
    [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg", "format": "wav"}}]}],
    [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "flac"}}]}],
    [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}],
    [{"role": "user", "content": [{"type": "file", "file": {"file_data": "JVBERg==", "filename": "a.pdf"}}]}],
    [{"role": "user", "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERg=="}}]}],
    [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "https://example.com/v"}}]}],
    [
        {"role": "assistant", "content": "both", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
    ],
    [{"role": "assistant", "content": None, "tool_calls": [{**CALL, "index": 0}]}],
    [{"role": "assistant", "content": [], "tool_calls": []}, {"role": "assistant", "content": "", "tool_calls": None}],
    [{"role": "assistant", "tool_calls": [{"id": None, "type": "builtin_function", "function": {"name": "$web"}}]}],
    [
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1]}, "x": 1}}, {"type": "?"}],
        }
    ],
    [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** a"}}],
        }
    ],
    [{"role": "assistant", "content": None, "refusal": "no"}, {"role": "assistant", "content": "x", "refusal": None}],
    [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": "but"}]}],
    [{"role": "assistant", "content": "a", "reasoning_content": "because"}],
    [{"role": "assistant", "reasoning": "because"}],
    [{"role": "user", "content": [{"type": "input_text", "text": "habit"}, {"type": "?", "text": "x"}]}],
    [{"role": "user", "content": [{"type": "?", "text": "only"}]}],
    [{"role": "function", "name": "f", "content": "asked by nobody"}, {"role": "user", "content": "x"}],
    [{"role": "assistant", "function_call": {"name": "f"}}, {"role": "function", "content": "1"}],
    [
        {"role": "assistant", "audio": {"id": "audio_1"}},
        {"role": "assistant", "content": "a", "annotations": [{"u": 1}]},
    ],
    [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ],
    [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c1", "name": "g", "content": None}],
    [
        {"role": "tool", "tool_call_id": "c1", "name": None, "content": [{"type": "text", "text": "a"}]},
        {"role": "tool"},
    ],
]


@pytest.mark.parametrize("wires", SPELLINGS)
def test_spellings_come_back(wires: list[dict[str, Any]]) -> None:
    """Fails if a spelling that compatible servers use, but no recorded body has, is lost."""
    body = {"model": "my-model", "messages": wires}
    assert rendered(PROVIDER.parse(body), "my-model").body == body


@pytest.mark.parametrize(
    "head",
    [
        {"model": None, "tools": []},
        {"tools": None, "temperature": 0.0},
        {"model": "gpt-4o", "functions": [{"name": "f"}], "function_call": "auto"},
        {"model": "gpt-5", "tools": [{"type": "custom", "custom": {"name": "p", "format": {"type": "text"}}}]},
        {"model": "gpt-5", "tools": [{"type": "web_search"}, {"function": {"name": "f", "parameters": None}}]},
        {"model": "m", "tools": [{"type": "function", "function": {"name": "f", "description": "", "strict": True}}]},
    ],
)
def test_heads_come_back(head: dict[str, Any]) -> None:
    """Fails if the spelling of model, tools or settings is lost."""
    body = {**head, "messages": []}
    assert rendered(PROVIDER.parse(body), head.get("model") or "other").body == body


def test_a_body_becomes_one_message_each() -> None:
    """Fails if the canonical reading of a plain tool conversation changes."""
    assert messages_of(
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": DATA_URL}}],
        },
        {"role": "assistant", "content": "ok", "reasoning_content": "hm", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "user", "content": "next", "name": "ann"},
    ) == (
        Message("system", (Text("s"),)),
        Message("user", (Text("look"), Media(kind="image", mime="image/png", sha256=sha256_hex(PNG), size=len(PNG)))),
        Message(
            "assistant",
            (Reasoning("openai-chat", text="hm"), Text("ok"), ToolCall("c1", "f", {"a": 1}, raw='{"a": 1}')),
        ),
        Message("user", (ToolResult("c1", "f", (Text("r"),)),)),
        Message("user", (Text("next"),), name="ann"),
    )


def test_a_custom_call_and_its_result_have_one_kind() -> None:
    """Fails if a result does not know what kind of call it answers: other providers need it."""
    call = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** a"}}
    answer = {"role": "tool", "tool_call_id": "c", "content": "done"}
    assert messages_of({"role": "assistant", "content": None, "tool_calls": [call]}, answer) == (
        Message("assistant", (ToolCall("c", "patch", raw="*** a", kind="custom"),)),
        Message("user", (ToolResult("c", "patch", (Text("done"),), kind="custom"),)),
    )


def test_results_of_one_id_have_the_names_of_their_own_calls() -> None:
    """Both results were named after the last call of the id, so that the first call had none."""
    calls = [
        {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("delete", "read")
    ]
    answers = [{"role": "tool", "tool_call_id": "c", "content": name} for name in ("delete", "read")]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    view = numbered(messages_of({"role": "user", "content": "Go."}, asked, *answers))
    assert pair(view).answers == {(1, 0): (2, 0), (1, 1): (3, 0)}


def test_media_bytes_that_do_not_encode_to_themselves_are_kept_twice() -> None:
    """Fails if odd base64 costs the image (other providers) or the spelling (this one)."""
    url = DATA_URL.rstrip("=") + "\n"
    parsed = PROVIDER.parse(
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}
    )
    literal = sha256_hex(url.encode())
    form = Form("openai-chat", shape=f"literal={literal}")
    assert parsed.messages[0].parts == (
        Media(kind="image", mime="image/png", sha256=sha256_hex(PNG), size=len(PNG), form=form),
    )
    assert parsed.blobs == {sha256_hex(PNG): PNG, literal: url.encode()}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "critic"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "tool_calls": [7]}]}, "messages[0].tool_calls[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": "x"}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": {}}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": ["text"]}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": {"x": 1}}]}]},
            "messages[0].content[0].text",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": 1}]}]}, "messages[0].content[0].file"),
        ({"messages": [{"role": "tool", "tool_call_id": 1}]}, "messages[0].tool_call_id"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": [1]}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"messages": [], "tools": "x"}, "tools"),
        ({"messages": [], "tools": [{"function": {"name": 1}}]}, "tools[0].function.name"),
        ({"messages": [], "model": 1}, "model"),
    ],
)
def test_what_is_no_body_is_refused_with_its_path(body: dict[str, Any], path: str) -> None:
    """Fails if a wrong body is read as something, or refused without saying where."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body)
    assert caught.value.path == path


def test_a_repaired_id_beats_the_form() -> None:
    """Fails if a form brings back what a repair had to change."""
    (message,) = messages_of(
        {"role": "assistant", "tool_calls": [{"id": None, "type": "function", "function": {"name": "f"}}]}
    )
    call = message.parts[0]
    assert isinstance(call, ToolCall)
    mended = Message("assistant", (ToolCall("call_1", "g", {}, form=call.form),), form=message.form)
    result = PROVIDER.render(
        [Shown(mended, (1,))], PROVIDER.parse({"messages": []}).configuration, TARGET, dict[str, bytes]().__getitem__
    )
    assert result.body["messages"] == [
        {
            "role": "assistant",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}}],
        }
    ]


@pytest.mark.parametrize(
    ("settings", "choice"),
    [
        ({}, None),
        ({"tool_choice": "required"}, "required"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool:f"),
        ({"tool_choice": {"type": "custom", "custom": {"name": "f"}}}, "tool:f"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}, "auto"),
        ({"function_call": {"name": "f"}}, "tool:f"),
        ({"tool_choice": None}, None),
    ],
)
def test_tool_choice_in_common_words(settings: dict[str, Any], choice: str | None) -> None:
    """Fails if a forced tool is not recognised when a conversation moves to another provider."""
    assert PROVIDER.tool_choice(settings) == choice


def test_tool_choice_can_be_given_in_common_words() -> None:
    """Fails if what one provider's choice means cannot be said here."""
    for choice in ("auto", "none", "required", "tool:f"):
        assert PROVIDER.tool_choice(PROVIDER.with_tool_choice({"a": 1}, choice)) == choice


def test_unknown_parts_are_opaque() -> None:
    """Fails if a server's own part kinds are dropped or mistaken for text."""
    (message,) = messages_of({"role": "user", "content": [{"type": "video_url", "video_url": {"url": "u"}}]})
    assert message.parts == (Opaque("openai-chat", "video_url", {"type": "video_url", "video_url": {"url": "u"}}),)


def test_a_function_message_without_a_call_is_a_users_text() -> None:
    """What a tool said would be lost if a message of the old kind had to answer a call that is cut off."""
    asked = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    told = {"role": "function", "name": "f", "content": "1"}
    parts = [message.parts[0] for message in messages_of(asked, told, told)]
    assert [type(part) for part in parts] == [ToolCall, ToolResult, Text]
    assert messages_of(told)[0].parts[0] == ToolResult("", "f", (Text("1"),), form=Form("openai-chat", shape="legacy"))


def test_bytes_of_another_type_are_not_sent_as_declared() -> None:
    """A literal spelling that declares the wrong type would undo what a look at the bytes has found."""
    url = DATA_URL.replace("image/png", "image/jpeg") + "\n"
    body = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}],
    }
    sent = repair(body, "openai-chat").body["messages"][0]["content"][0]["image_url"]["url"]
    assert sent.startswith("data:image/png;base64,")
