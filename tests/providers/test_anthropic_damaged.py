"""Anthropic: what of a broken body is named, mended or dropped."""

from __future__ import annotations

import base64
from types import ModuleType
from typing import Any

import pytest
from sound import BODIES, PIXEL

from turnlog.errors import FormatError
from turnlog.log.messages import Opaque
from turnlog.models.target import target
from turnlog.providers.anthropic import PROVIDER
from turnlog.requests.standalone import repair

AIM = target("anthropic", "claude-sonnet-4-5")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
MARK = {"type": "ephemeral"}
BODY = BODIES["anthropic"]
TALK = BODY["messages"]


def with_blocks(role: str, *blocks: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}, {"role": role, "content": list(blocks)}]
    return {"model": AIM.model, "max_tokens": 9, "messages": messages}


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"text": "no type"}, "type"),
        ({"type": 1}, "type"),
        ({"type": "text", "text": ["x"]}, "text"),
        ({"type": "thinking", "thinking": {}, "signature": "s"}, "thinking"),
        ({"type": "tool_use", "id": 1, "name": "n", "input": {}}, "id"),
        ({"type": "tool_use", "id": "a", "name": [], "input": {}}, "name"),
        ({"type": "tool_result", "tool_use_id": {}, "content": "x"}, "tool_use_id"),
        ({"type": "tool_result", "tool_use_id": "a", "content": 1}, "content"),
        ({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": 1}]}, "content[0].text"),
        ({"type": "tool_result", "tool_use_id": "a", "is_error": "yes"}, "is_error"),
        ({"type": "image", "source": "x"}, "source"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": 1}}, "source.data"),
        ({"type": "document", "source": {"type": "url", "url": []}}, "source.url"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(block: dict[str, Any], path: str) -> None:
    """Carried along unread, it would be sent again and refused there."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(with_blocks("user", block))
    assert caught.value.path == f"messages[1].content[0].{path}"


@pytest.mark.parametrize("system", [0, {}, False, 3.5])
def test_system_text_is_text_or_blocks(system: Any) -> None:
    """An empty object looks like nothing, and was sent again as it was."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse({**BODY, "system": system})
    assert caught.value.path == "system"


CALL = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "seen"}
FOUND = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "a"}]}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}


def without(block: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != key}


@pytest.mark.parametrize(
    ("seen", "sent"),
    [
        (without(CALL, "input"), CALL),
        ({**CALL, "input": None}, CALL),
        ({**CALL, "input": "x"}, {**CALL, "input": {"input": "x"}}),
        ({**CALL, "caller": {"type": "zzz"}}, CALL),
        ({**RESULT, "is_error": None}, RESULT),
        ({**RESULT, "is_error": 0}, {**RESULT, "is_error": False}),
        ({**RESULT, "content": None}, without(RESULT, "content")),
        ({**RESULT, "content": [{"type": "zzz"}]}, without(RESULT, "content")),
        ({**RESULT, "content": [{"type": "image"}], "is_error": True},
         {**RESULT, "content": "[no output]", "is_error": True}),
        ({"type": "text", "text": "a", "citations": [{"type": "char_location"}]}, {"type": "text", "text": "a"}),
        ({"type": "text", "text": "a", "cache_control": {"type": "zzz"}}, {"type": "text", "text": "a"}),
        ({"type": "text", "text": "a", "cache_control": "x"}, {"type": "text", "text": "a"}),
        ({"type": "text", "text": "a", "cache_control": {**MARK, "ttl": "9h"}},
         {"type": "text", "text": "a", "cache_control": MARK}),
        ({"type": "thinking", "thinking": None, "signature": "s"},
         {"type": "thinking", "thinking": "", "signature": "s"}),
        ({"type": "document", "source": {"type": "base64", "media_type": "text/html", "data": "PGI-"}},
         {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "<b>"}}),
        ({"type": "document", "source": {"type": "text", "media_type": "text/csv", "data": "a"}},
         {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}),
        ({"type": "document", "source": {**PDF, "data": "JVBE\nRi0x"}}, {"type": "document", "source": PDF}),
        ({"type": "document", "title": 5, "source": PDF}, {"type": "document", "source": PDF}),
        ({"type": "image", "source": PDF}, {"type": "document", "source": PDF}),
        ({**IMAGE, "type": "document", "title": "t"}, IMAGE),
    ],
)  # fmt: skip
def test_a_block_is_mended_where_it_can_be(seen: dict[str, Any], sent: dict[str, Any]) -> None:
    """Each is a 400 as it was seen; an edit names the place."""
    sanitized = PROVIDER.sanitize(with_blocks("user", seen), AIM)
    assert sanitized.body == with_blocks("user", sent)
    assert sanitized.edits
    assert all(edit.path.startswith("messages[") for edit in sanitized.edits)


@pytest.mark.parametrize(
    ("tool", "sent"),
    [
        ({"name": "a"}, {"name": "a", "input_schema": {"type": "object", "properties": {}}}),
        ({"name": "a", "input_schema": {"type": "string"}}, {"name": "a", "input_schema": {"type": "object"}}),
        ({"name": "a", "input_schema": {"type": "object"}, "strict": "yes"},
         {"name": "a", "input_schema": {"type": "object"}}),
        ({"type": "function", "name": "a", "parameters": {}},
         {"name": "a", "input_schema": {"type": "object", "properties": {}}}),
        ({"type": "bash_20250124", "name": "shell"}, {"type": "bash_20250124", "name": "bash"}),
        ({"type": "zzz"}, None),
        ({"type": "computer_20250124", "name": "computer"}, None),
    ],
)  # fmt: skip
def test_a_tool_is_mended_or_dropped(tool: dict[str, Any], sent: dict[str, Any] | None) -> None:
    """One bad declaration refuses the whole request."""
    sanitized = PROVIDER.sanitize({**with_blocks("user"), "tools": [tool]}, AIM)
    assert sanitized.body.get("tools", []) == ([] if sent is None else [sent])
    assert sanitized.edits


def test_tools_of_later_versions_are_left_alone() -> None:
    """A table of dates is out of date the day after."""
    tools = [{"type": "web_search_20990101", "name": "web_search"}, {"type": "telescope_20990101", "name": "t"}]
    assert PROVIDER.sanitize({**with_blocks("user"), "tools": tools}, AIM).body["tools"] == tools


@pytest.mark.parametrize(
    ("data", "known"),
    [
        ({"type": "zzz"}, False),
        ({"type": "image"}, False),
        ({"type": "image", "source": {"type": "zzz"}}, False),
        ({"type": "tool_reference", "tool_name": "t"}, False),
        ({"type": "server_tool_use", "id": "call_1", "name": "web_search", "input": {}}, False),
        ({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, True),
        ({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "zzz"}}, False),
        ({"type": "telescope_tool_result", "tool_use_id": "srvtoolu_1", "content": 5}, True),
        ({"type": "container_upload", "file_id": "f"}, True),
        ({"type": "compaction", "content": "c"}, True),
        ({**FOUND, "content": [*FOUND["content"], {"type": "text", "text": "b"}]}, True),
        ({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}, True),
        ([], False),
    ],
)
def test_only_whole_blocks_of_known_types_are_sent_back(data: Any, known: bool) -> None:
    """What the API would refuse leaves the view before repair, so that no message is left empty."""
    assert PROVIDER.knows(Opaque("anthropic", "k", data)) is known


def test_a_message_of_unknown_blocks_leaves_no_empty_conversation(oracle: ModuleType) -> None:
    """`messages: at least one message is required`."""
    body = with_blocks("user", {"type": "zzz", "text": "?"})
    del body["messages"][0]
    prepared = repair(body, "anthropic")
    assert oracle.check_anthropic(prepared.body) == []
    assert [(loss.kind, loss.records) for loss in prepared.losses] == [("opaque", (1,))]


def test_an_empty_output_stays_an_empty_output() -> None:
    """A tool that said nothing is the commonest of all; its result must not change its shape in silence."""
    body = {**BODY, "messages": [TALK[0], {"role": "assistant", "content": [CALL]},
                                 {"role": "user", "content": [{**RESULT, "content": ""}]}]}  # fmt: skip
    del body["thinking"]
    assert repair(body, "anthropic").body == body


def test_a_leading_system_message_moves_to_the_top_and_says_so(oracle: ModuleType) -> None:
    """`messages: Unexpected role "system"`: a body that is refused must not pass `check`."""
    body = {**BODY, "system": [], "messages": [{"role": "system", "content": "Be kind."}, *TALK]}
    prepared = repair(body, "anthropic")
    assert (prepared.body["system"], prepared.body["messages"]) == ("Be kind.", TALK)
    assert [edit.kind for edit in prepared.edits] == ["place"]
    assert oracle.check_anthropic(prepared.body) == []


def test_a_key_in_another_spelling_is_unknown(oracle: ModuleType) -> None:
    """`toolUseId` is not `tool_use_id` to this API; the id that repair found must not be spelled so."""
    result = {"type": "tool_result", "toolUseId": "call_1", "content": "seen"}
    body = {**BODY, "messages": [
        TALK[0], {"role": "assistant", "content": [TALK[1]["content"][0], TALK[1]["content"][4]]},
        {"role": "user", "content": [result]},
    ]}  # fmt: skip
    prepared = repair(body, "anthropic")
    assert prepared.body["messages"][2]["content"][0]["tool_use_id"] == "call_1"
    assert oracle.check_anthropic(prepared.body) == []


@pytest.mark.parametrize(("kind", "mime", "megabytes", "kept"), [
    ("image", "image/png", 4, True), ("image", "image/png", 6, False),
    ("document", "application/pdf", 6, True), ("document", "application/pdf", 33, False),
])  # fmt: skip
def test_images_and_documents_have_limits_of_their_own(kind: str, mime: str, megabytes: int, kept: bool) -> None:
    """ "image exceeds 5 MB maximum" is said of images; a PDF may fill the request of 32 MB."""
    head = base64.b64decode(PIXEL) if kind == "image" else b"%PDF-1.7\n%%EOF"
    data = base64.b64encode(head + bytes(megabytes * 786_432)).decode("ascii")
    block = {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}
    prepared = repair(with_blocks("user", block, {"type": "text", "text": "?"}), "anthropic")
    sent = prepared.body["messages"][1]["content"][0]
    assert (sent == block) is kept
    assert [loss.kind for loss in prepared.losses] == ([] if kept else ["media"])
