"""Anthropic: bodies and answers that are broken in ways nobody thought of."""

from __future__ import annotations

import base64
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
from turnlog.log.messages import Opaque
from turnlog.models.target import target
from turnlog.providers.anthropic import PROVIDER
from turnlog.requests.standalone import check, repair
from turnlog.view.types import Shown

AIM = target("anthropic", "claude-sonnet-4-5")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
MARK = {"type": "ephemeral"}
CITATION = {
    "type": "char_location", "cited_text": "c", "document_index": 0, "document_title": None,
    "start_char_index": 0, "end_char_index": 1,
}  # fmt: skip
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Look.", "cache_control": MARK}, IMAGE]},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "Calling.", "citations": [CITATION]},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "a"}},
        {"type": "tool_use", "id": "call_2", "name": "look", "input": {}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "seen"}, IMAGE]},
        {"type": "tool_result", "tool_use_id": "call_2", "is_error": True, "content": "no", "cache_control": MARK},
        {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]},
    ]},
]  # fmt: skip
BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 4000,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {**MARK, "ttl": "1h"}}],
    "messages": TALK,
    "tools": [
        {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "stop_sequences": ["END"],
    "metadata": {"user_id": "u"},
    "temperature": 1,
}
seeds = st.integers(min_value=0, max_value=2**32)


def accepted(oracle: ModuleType, body: dict[str, Any]) -> list[str]:
    """What the oracle says of a body. Names of server tools are taken on trust: there will be new ones."""
    return [error for error in oracle.check_anthropic(body) if ".server_tool_use.name: " not in error]


def with_blocks(role: str, *blocks: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}, {"role": role, "content": list(blocks)}]
    return {"model": AIM.model, "max_tokens": 9, "messages": messages}


def test_the_sound_body_is_sound(oracle: ModuleType) -> None:
    """Mutants of a body that is refused anyway would prove nothing."""
    assert accepted(oracle, BODY) == []
    assert repair(BODY, "anthropic").body == BODY
    assert check(BODY, "anthropic") == []


@given(seed=seeds)
def test_every_mutant_is_refused_with_a_path_or_made_acceptable(seed: int, oracle: ModuleType) -> None:
    """The promise of `repair`, and that repairing twice is repairing once, for bodies nobody foresaw."""
    body = mutant(BODY, random.Random(seed))
    before = json.dumps(body)
    prepared = attempted(lambda: repair(body, "anthropic"))
    if isinstance(prepared, FormatError):
        assert prepared.path
        return
    assert accepted(oracle, prepared.body) == []
    again = repair(prepared.body, "anthropic")
    assert (again.body, again.edits, again.losses) == (prepared.body, (), ())
    assert json.dumps(body) == before


@given(seed=seeds)
def test_no_function_raises_anything_else(seed: int) -> None:
    """A TypeError from the depths names no path and is nobody's to catch."""
    body = mutant(BODY, random.Random(seed))
    PROVIDER.rules(AIM, body)
    PROVIDER.tool_choice(body)
    PROVIDER.without_thinking(body)
    once = PROVIDER.sanitize(body, AIM)
    again = PROVIDER.sanitize(once.body, AIM)
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
    assert rendered.losses or rendered.edits or {**rendered.body, "model": ""} == {**body, "model": ""}


@pytest.mark.parametrize(
    "place", [(), ("messages",), ("messages", 1, "content", 4, "input"), ("tools", 0, "input_schema"), ("metadata",)]
)
def test_nesting_that_nobody_means_is_refused(place: tuple[str | int, ...]) -> None:
    """Python gives up at a thousand levels, somewhere, with an error of its own."""
    body = mutant(BODY, random.Random(0)) if not place else json.loads(json.dumps(BODY))
    holder: Any = body
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1] if place else "x"] = deep(5_000)
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body)
    assert caught.value.path
    PROVIDER.rules(AIM, body)
    PROVIDER.tool_choice(body)


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
    assert accepted(oracle, prepared.body) == []
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
    assert accepted(oracle, prepared.body) == []


def test_a_key_in_another_spelling_is_unknown(oracle: ModuleType) -> None:
    """`toolUseId` is not `tool_use_id` to this API; the id that repair found must not be spelled so."""
    result = {"type": "tool_result", "toolUseId": "call_1", "content": "seen"}
    body = {**BODY, "messages": [
        TALK[0], {"role": "assistant", "content": [TALK[1]["content"][0], TALK[1]["content"][4]]},
        {"role": "user", "content": [result]},
    ]}  # fmt: skip
    prepared = repair(body, "anthropic")
    assert prepared.body["messages"][2]["content"][0]["tool_use_id"] == "call_1"
    assert accepted(oracle, prepared.body) == []


@pytest.mark.parametrize(("kind", "mime", "megabytes", "kept"), [
    ("image", "image/png", 4, True), ("image", "image/png", 6, False),
    ("document", "application/pdf", 6, True), ("document", "application/pdf", 33, False),
])  # fmt: skip
def test_images_and_documents_have_limits_of_their_own(kind: str, mime: str, megabytes: int, kept: bool) -> None:
    """ "image exceeds 5 MB maximum" is said of images; a PDF may fill the request of 32 MB."""
    head = base64.b64decode(PIXEL) if kind == "image" else b"%PDF-1.7\n"
    data = base64.b64encode(head + bytes(megabytes * 786_432)).decode("ascii")
    block = {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}
    prepared = repair(with_blocks("user", block, {"type": "text", "text": "?"}), "anthropic")
    sent = prepared.body["messages"][1]["content"][0]
    assert (sent == block) is kept
    assert [loss.kind for loss in prepared.losses] == ([] if kept else ["media"])


ANSWER: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": AIM.model, "stop_reason": "tool_use",
    "content": TALK[1]["content"], "usage": {"input_tokens": 1, "output_tokens": 2},
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**ANSWER, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": CITATION}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": CALL},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]


@given(seed=seeds)
def test_a_mutant_of_an_answer_is_read_or_refused(seed: int) -> None:
    """An answer that cannot be read is a FormatError, at the chunk that is wrong and not at the end."""
    rng = random.Random(seed)
    whole = mutant(ANSWER, rng)
    read = attempted(lambda: PROVIDER.parse_response(whole))
    assert not isinstance(read, FormatError) or read.path
    assembler = PROVIDER.assembler()
    for event in mutant({str(n): event for n, event in enumerate(EVENTS)}, rng).values():
        refused = attempted(partial(assembler.feed, event))
        assert not isinstance(refused, FormatError) or refused.path
    assert assembler.reply() == assembler.reply()
