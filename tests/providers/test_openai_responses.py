"""The Responses API: what was read is written again."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import aim_of
from turnlog.errors import FormatError
from turnlog.log.codec import decode_record, encode_record
from turnlog.log.messages import (
    Message,
    Text,
    ToolCall,
    ToolResult,
    sha256_hex,
)
from turnlog.log.records import Body, Configuration, MessageRecord, Record
from turnlog.models.target import target
from turnlog.providers.openai_responses import PROVIDER
from turnlog.providers.protocol import Parsed, Rendered
from turnlog.view.types import Shown

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BLOBS = {sha256_hex(PNG): PNG}
MODEL = target("openai-responses", "gpt-5")
NAME = "openai-responses"


def kept(body: Body) -> Any:
    """A body as it comes back from a store."""
    record = decode_record(encode_record(Record(1, "2026-01-01T00:00:00.000Z", body)))
    assert record.body == body
    return record.body


def rendered(messages: list[Message], configuration: Configuration | None = None, **settings: Any) -> Rendered:
    """The request for messages as they are, record numbers counting from 1."""
    view = [Shown(message, (i,)) for i, message in enumerate(messages, 1)]
    return PROVIDER.render(
        view, configuration or Configuration(provider=NAME), MODEL.with_settings(**settings), BLOBS.__getitem__
    )


def replayed(body: dict[str, Any]) -> tuple[dict[str, Any], Parsed]:
    """`body`, read, stored, taken out again and written."""
    parsed = PROVIDER.parse(body)
    messages = [kept(MessageRecord(message)).message for message in parsed.messages]
    configuration = kept(parsed.configuration)
    view = [Shown(message, (i,)) for i, message in enumerate(messages, 1)]
    out = PROVIDER.render(view, configuration, aim_of(NAME, configuration.model), parsed.blobs.__getitem__)
    assert out.losses == () and out.edits == ()
    return out.body, parsed


# -- recorded requests ---------------------------------------------------------------------------


def recorded(shared: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Recorded request bodies of this API with their media put back in."""
    folder = shared / "data" / "token_truth"

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(
                r"@blob:([\w.\-]+)",
                lambda found: base64.b64encode((folder / "blobs" / found[1]).read_bytes()).decode("ascii"),
                value,
            )
        if isinstance(value, list):
            return [fill(item) for item in value]
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        return value

    with (folder / "requests.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["api"] == "openai.responses":
                yield entry["id"], fill(entry["request"])


def test_recorded_requests_come_back_as_they_were(shared: Path) -> None:
    """A body whose spelling is not kept would send other bytes than its author did."""
    total = 0
    for name, body in recorded(shared):
        assert replayed(body)[0] == body, name
        total += 1
    assert total > 400


def test_recorded_requests_hold_one_message_an_item(shared: Path) -> None:
    """A message that held two items could not be cut between them."""
    for name, body in recorded(shared):
        items = len(body["input"]) if isinstance(body["input"], list) else 1
        parsed = PROVIDER.parse(body)
        assert len(parsed.messages) == items + bool(body.get("instructions")), name


def test_tidy_leaves_accepted_requests_alone(shared: Path, oracle: ModuleType) -> None:
    """An edit of a request that is accepted as it is would change what its author asked for."""
    for name, body in recorded(shared):
        assert oracle.check_openai_responses(body) == [], name
        sanitized = PROVIDER.sanitize(body, target(NAME, body["model"]))
        assert sanitized.body is body and sanitized.edits == (), name


def test_forms_hold_no_content(shared: Path) -> None:
    """Content in a form would be invisible to search, counting and redaction."""
    for name, body in recorded(shared):
        for message in PROVIDER.parse(body).messages:
            for value in (message, *message.parts):
                form = getattr(value, "form", None)
                assert form is None or len(json.dumps(form.delta)) < 400, name


ITEMS: list[dict[str, Any]] = [
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": ""},
    {"role": "user", "content": []},
    {"role": "assistant", "content": None},
    {"role": "user", "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"}]},
    {"role": "user", "content": [{"type": "input_image", "file_id": "file-1", "detail": "auto"}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,not base64!"}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;charset=x;base64,QUJD"}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/svg+xml,%3Csvg/%3E"}]},
    {"role": "user", "content": [{"type": "input_file", "file_data": "QUJD", "filename": "a.pdf"}]},
    {"role": "user", "content": [{"type": "input_file", "file_data": "data:text/plain;base64,QUJD"}]},
    {"role": "user", "content": [{"type": "input_file", "file_data": "data:image/png;base64,QUJD", "filename": "a"}]},
    {"role": "user", "content": [{"type": "input_file", "file_url": "https://example.com/a.pdf", "filename": None}]},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "type": "message", "phase": "commentary"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "a", "annotations": [{"type": "file_path", "file_id": "f", "index": 0}]},
            {"type": "output_text", "text": "b", "annotations": []},
        ],
    },
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{ }"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{not json"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": None, "id": "fc_1", "caller": {}},
    {"type": "function_call_output", "call_id": "c", "output": "", "status": None},
    {"type": "function_call_output", "call_id": "c", "output": []},
    {"type": "function_call_output", "call_id": "c", "output": None},
    {"type": "function_call_output", "call_id": "c"},
    {"type": "function_call_output", "call_id": "c", "output": {"content": "x", "success": True}},
    {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}], "id": "fco_1"},
    {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "free text", "id": "ctc_1"},
    {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
    {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "c",
        "status": "incomplete",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    {"type": "local_shell_call_output", "id": "c", "output": "{}", "status": "completed"},
    {"type": "shell_call", "id": "sh_1", "call_id": "c", "action": {"commands": ["ls"], "timeout_ms": None}},
    {
        "type": "shell_call_output",
        "call_id": "c",
        "max_output_length": 9,
        "output": [
            {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 3}},
            {"stdout": "", "stderr": "b", "outcome": {"type": "timeout"}},
        ],
    },
    {
        "type": "apply_patch_call",
        "id": "apc_1",
        "call_id": "c",
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a"},
    },
    {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such file"},
    {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c",
        "status": "completed",
        "action": {"type": "wait"},
        "pending_safety_checks": [{"id": "s", "code": "k", "message": "m"}],
    },
    {
        "type": "computer_call_output",
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,QUJD"},
    },
    {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"q": "x"}, "status": "completed"},
    {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [{"type": "web_search"}]},
    {"type": "tool_search_call", "execution": "server", "arguments": {}, "call_id": None},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}], "encrypted_content": None},
    {"type": "reasoning", "summary": None, "content": None},
    {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "odd", "extra": 1}],
        "encrypted_content": "blob",
    },
    {
        "type": "reasoning",
        "id": "rs_2",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "ab"}, {"type": "reasoning_text", "text": ""}],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
    {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]},
    {"type": "item_reference", "id": "msg_2"},
    {"id": "msg_3"},
    {"type": "of_tomorrow", "payload": {"deep": [1, None]}},
]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.get('type', item.get('role'))}")
def test_every_item_comes_back(item: dict[str, Any]) -> None:
    """An item that lost its spelling would change the request, and the cached prefix with it."""
    body = {"model": "gpt-5", "input": [item]}
    assert replayed(body)[0] == body


@given(st.lists(st.sampled_from(ITEMS), max_size=8))
def test_items_come_back_in_any_company(items: list[dict[str, Any]]) -> None:
    """Reading an item must not depend on items that it has nothing to do with, nor lose order."""
    seen: set[str] = set()
    unique = [item for item in items if "id" not in item or not (item["id"] in seen or seen.add(item["id"]))]
    others = [
        {**item, "call_id": f"c{i}"} if item.get("call_id") else item
        for i, item in enumerate(unique)
        if item.get("type") != "reasoning"  # its company is tested with the ids
    ]
    body = {"model": "gpt-5", "input": others}
    assert replayed(body)[0] == body


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "input": "hello"},
        {"model": "m", "input": ""},
        {"model": "m", "input": None, "previous_response_id": "resp_1"},
        {"model": "m", "conversation": "conv_1"},
        {"input": [], "prompt": {"id": "p"}, "model": None},
        {"model": "m", "input": "x", "instructions": None, "tools": []},
        {"model": "m", "input": "x", "instructions": "", "tools": None},
        {"model": "m", "input": [{"role": "user", "content": "x"}], "instructions": "be brief"},
        {
            "model": "m",
            "input": "x",
            "tools": [
                {"type": "function", "name": "f", "parameters": None, "strict": None},
                {"type": "function", "name": "g", "description": "", "parameters": {"type": "object"}, "strict": True},
                {"type": "custom", "name": "h", "format": {"type": "text"}},
                {"type": "web_search"},
                {"type": "mcp", "server_label": "s", "server_url": "https://example.com"},
                {"type": "function", "function": {"name": "nested"}},
            ],
        },
    ],
)
def test_every_body_comes_back(body: dict[str, Any]) -> None:
    """Null, empty and absent are three different requests."""
    assert replayed(body)[0] == body


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"input": 5}, "input"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{"role": "user", "content": 5}]}, "input[0].content"),
        ({"input": [{"content": "x"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": ["x"]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call", "call_id": 1, "name": "f"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name"),
        ({"input": [{"type": "shell_call_output", "call_id": "c", "output": [1]}]}, "input[0].output[0]"),
        ({"input": "x", "instructions": ["y"]}, "instructions"),
        ({"input": "x", "tools": {"a": 1}}, "tools"),
        ({"input": "x", "tools": ["a"]}, "tools[0]"),
        ({"input": "x", "tools": [{"type": "function", "name": 1}]}, "tools[0].name"),
        ({"input": "x", "model": 5}, "model"),
        ({"input": [{"type": {}}]}, "input[0].type"),
        ({"input": [{"type": "reasoning", "id": {}}]}, "input[0].id"),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": []}]}]}, "input[0].content[0].text"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": {"url": "x"}}]}]},
            "input[0].content[0].image_url",
        ),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": 1}]}, "input[0].arguments"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": 1}]}, "input[0].output"),
    ],
)
def test_bad_bodies_are_refused_by_path(body: dict[str, Any], path: str) -> None:
    """An error that does not say where sends the user searching."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body)
    assert caught.value.path == path


def test_a_synthetic_answer_takes_the_type_of_its_call() -> None:
    """An output of the wrong type would leave the call unanswered."""
    calls = [item for item in ITEMS if str(item.get("type", "")).endswith("_call") and "call_id" in item]
    for item in calls:
        if item.get("execution") == "server" or not isinstance(item.get("arguments", ""), (str, dict)):
            continue
        call = PROVIDER.parse({"input": [item]}).messages[0]
        part = call.parts[0]
        assert isinstance(part, ToolCall)
        lost = ToolResult(part.id, part.name, (Text("no answer"),), "lost", part.kind, synthetic=True)
        items = rendered([call, Message("user", (lost,))]).body["input"]
        answers = {
            "function_call": "function_call_output",
            "custom_tool_call": "custom_tool_call_output",
            "local_shell_call": "local_shell_call_output",
            "shell_call": "shell_call_output",
            "apply_patch_call": "apply_patch_call_output",
            "tool_search_call": "function_call_output",
        }
        # A computer call can only be answered by a picture, so it is shown as a function call.
        assert items[1]["type"] == answers[items[0]["type"]]
        assert "no answer" in json.dumps(items[1])
