"""The Messages API read and written: what came in goes out again, and what the API refuses is sanitized."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import aim_of
from turnlog.errors import FormatError
from turnlog.log.codec import decode_record, encode_record
from turnlog.log.messages import Media, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult, sha256_hex
from turnlog.log.records import Configuration, MessageRecord, Record
from turnlog.models.target import target
from turnlog.providers.anthropic import PROVIDER
from turnlog.providers.protocol import Provider
from turnlog.view.types import Shown

CHECKED: Provider = PROVIDER
"""That mypy reads this line is the proof that the provider keeps to the protocol."""

MARK = {"type": "ephemeral"}


def recorded(shared: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Recorded Messages requests, media filled in, by id."""
    folder = shared / "data" / "token_truth"

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"@blob:([\w.-]+)", lambda m: _encoded(folder / "blobs" / m[1]), value)
        if isinstance(value, dict):
            return {key: filled(item) for key, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list) else value

    for line in (folder / "requests.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["api"] == "anthropic.messages":
            yield row["id"], filled(row["request"])


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")


def there_and_back(body: Mapping[str, Any]) -> dict[str, Any]:
    """`body` parsed, stored, read again and rendered without repair."""
    parsed = PROVIDER.parse(body)
    shown = [Shown(_stored(MessageRecord(m)).message, (n,)) for n, m in enumerate(parsed.messages, start=1)]
    configuration = _stored(parsed.configuration)
    aim = aim_of("anthropic", configuration.model)
    rendered = PROVIDER.render(shown, configuration, aim, parsed.blobs.__getitem__)
    assert rendered.losses == ()
    return rendered.body


def _stored(body: Any) -> Any:
    return decode_record(encode_record(Record(n=1, time="2026-01-01T00:00:00.000Z", body=body))).body


def forms(message: Message) -> Iterator[Any]:
    for value in (message, *message.parts, *(p for r in message.parts for p in getattr(r, "parts", ()))):
        if getattr(value, "form", None) is not None:
            yield value.form.delta


def exact(value: Any) -> str:
    """A text that tells 1 from True and null from absent."""
    return json.dumps(value, sort_keys=True)


def test_recorded_requests_come_back_equal(shared: Path) -> None:
    """A request that changes on its way through the log breaks prompt caches and signatures."""
    different = [name for name, body in recorded(shared) if exact(there_and_back(body)) != exact(body)]
    assert different == []


def test_tidy_leaves_accepted_requests_alone(shared: Path, oracle: ModuleType) -> None:
    """An edit on a request that the API takes would be damage done by the repair."""
    for name, body in recorded(shared):
        if oracle.check_anthropic(body) == []:
            sanitized = PROVIDER.sanitize(body, target("anthropic", body["model"]))
            assert (name, sanitized.edits, sanitized.body) == (name, (), body)


# --- generated bodies ---------------------------------------------------------------------------

words = st.sampled_from(["", " ", "hello", "naïve 数据 🙂", "a\x00b", '{"x": 1}'])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(["path", "deep", "n"]), json_values, max_size=3)
extras = st.dictionaries(
    st.sampled_from(["cache_control", "x_unknown", "citations", "caller"]), json_values | st.just(MARK), max_size=2
)
payloads = st.binary(max_size=12).map(lambda raw: base64.b64encode(raw).decode())
odd_payloads = st.sampled_from(["", "AB", "AA==\n", "A-_w", "not base64!", "AAAA====", "QQ"])


def blocks_of(kind: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Blocks of a type with extra keys, some without one of their fields."""
    full = st.builds(lambda extra, own: {**extra, "type": kind, **own}, extras, st.fixed_dictionaries(fields))
    lacking = st.builds(_less, full, st.sampled_from(sorted(fields)))
    return st.one_of(full, full, lacking)


def _less(block: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != key}


texts = blocks_of("text", text=words)
image_sources = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("base64"), "media_type": st.just("image/png"), "data": payloads | odd_payloads}
    ),
    st.fixed_dictionaries({"type": st.just("url"), "url": st.just("https://example.org/a.png")}),
    st.fixed_dictionaries({"type": st.just("file"), "file_id": st.just("file_1")}),
    st.fixed_dictionaries({"type": st.just("newer"), "handle": json_values}),
)
document_sources = st.one_of(
    image_sources,
    st.fixed_dictionaries(
        {"type": st.just("base64"), "media_type": st.sampled_from(["application/pdf", "text/plain"]), "data": payloads}
    ),
    st.fixed_dictionaries({"type": st.just("text"), "media_type": st.just("text/plain"), "data": words}),
    st.fixed_dictionaries({"type": st.just("content"), "content": words | st.lists(texts, max_size=2)}),
)
images = blocks_of("image", source=image_sources)
documents = blocks_of("document", source=document_sources, title=words | st.none(), context=words)
search_results = blocks_of("search_result", source=words, title=words, content=st.lists(texts, max_size=2))
references = blocks_of("tool_reference", tool_name=words)
contents = st.one_of(words, st.lists(st.one_of(texts, texts, images, documents, search_results), max_size=3))
result_contents = st.one_of(
    words,
    st.none(),
    st.lists(st.one_of(texts, texts, images, documents, search_results, references), max_size=3),
)
results = st.one_of(
    blocks_of("tool_result", tool_use_id=words, content=result_contents, is_error=st.sampled_from([False, None, 0])),
    blocks_of("tool_result", tool_use_id=words, content=words | st.lists(texts, max_size=2), is_error=st.just(True)),
)
said = st.one_of(
    texts,
    blocks_of("tool_use", id=words, name=words, input=objects | json_values),
    blocks_of("thinking", thinking=words, signature=words),
    blocks_of("redacted_thinking", data=words),
    blocks_of("server_tool_use", id=words, name=words, input=objects),
    blocks_of("web_search_tool_result", tool_use_id=words, content=json_values),
)
user_contents = contents | st.lists(results | texts, max_size=3)
messages = st.one_of(
    st.builds(lambda c, e: {**e, "role": "user", "content": c}, user_contents, extras),
    st.builds(lambda c: {"role": "assistant", "content": c}, words | st.lists(said, max_size=3)),
    st.just({"role": "user"}),
    st.just({"role": "user", "content": None}),
)
tools = st.one_of(
    blocks_of("custom", name=words, description=words, input_schema=objects),
    st.builds(lambda n, s: {"name": n, "input_schema": s}, words, objects),
    st.just({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}),
    st.just({"type": "mcp_toolset", "mcp_server_name": "files"}),
)
bodies = st.fixed_dictionaries(
    {"messages": st.lists(messages, max_size=3).map(lambda found: [{"role": "user", "content": "hi"}, *found])},
    optional={
        "model": st.just("claude-haiku-4-5"),
        "system": st.one_of(words, st.none(), st.lists(texts, max_size=2)),
        "tools": st.none() | st.lists(tools, max_size=2),
        "max_tokens": st.just(10),
        "stream": st.booleans(),
        "metadata": json_values,
    },
)


@given(body=bodies)
def test_any_body_comes_back_equal(body: dict[str, Any]) -> None:
    """Form is part of the truth: null, absent, empty, string or list, extra keys, literal base64."""
    assert exact(there_and_back(body)) == exact(body)


@given(body=bodies)
def test_tidy_settles_and_changes_nothing_in_place(body: dict[str, Any]) -> None:
    """If sanitizing did not settle, a request sent again would differ; in place, the log's view would."""
    before = exact(body)
    aim = target("anthropic", "claude-haiku-4-5")
    once = PROVIDER.sanitize(body, aim)
    again = PROVIDER.sanitize(once.body, aim)
    assert exact(body) == before
    assert (again.edits, exact(again.body)) == ((), exact(once.body))
    assert bool(once.edits) == (exact(once.body) != before)


def test_content_stands_in_parts_and_not_in_forms() -> None:
    """A form that holds content doubles the log and shows it to nobody who searches or redacts."""
    secret = "c2VjcmV0IGNvbnRlbnQ="
    body = {
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": secret, "cache_control": MARK},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": secret}, "x": 1},
                {"type": "document", "source": {"type": "content", "content": secret}, "title": "t"},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": secret}], "x": 1},
                {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": secret}]},
            ]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "n", "input": {"q": secret}, "cache_control": MARK},
                {"type": "thinking", "thinking": secret, "signature": secret, "x": 1},
            ]},
        ],
        "system": [{"type": "text", "text": secret, "cache_control": MARK}],
    }  # fmt: skip
    parsed = PROVIDER.parse(body)
    assert exact(there_and_back(body)) == exact(body)
    assert all(secret not in exact(delta) for message in parsed.messages for delta in forms(message))
    assert sum(1 for message in parsed.messages for _ in forms(message)) == 9


def test_a_conversation_is_read_into_canonical_parts() -> None:
    """Everybody else sees only these parts; a wrong one is wrong in every other provider's request."""
    png = b"\x89PNG"
    body = {
        "model": "claude-sonnet-4-5",
        "system": "Be brief.",
        "max_tokens": 100,
        "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                {"type": "redacted_thinking", "data": "blob"},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "a"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": "no"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                             "data": base64.b64encode(png).decode()}},
                {"type": "container_upload", "file_id": "file_1"},
            ]},
        ],
    }  # fmt: skip
    parsed = PROVIDER.parse(body)
    assert parsed.messages == (
        Message("system", (Text("Be brief."),)),
        Message("user", (Text("Look."),)),
        Message(
            "assistant",
            (
                Reasoning("anthropic", text="Hm.", signature="sig"),
                Reasoning("anthropic", encrypted="blob"),
                ToolCall("toolu_1", "look", arguments={"at": "a"}),
            ),
        ),
        Message(
            "user",
            (
                ToolResult("toolu_1", parts=(Text("no"),), outcome="failed"),
                Media("image", mime="image/png", sha256=sha256_hex(png), size=4),
                Opaque("anthropic", "container_upload", {"type": "container_upload", "file_id": "file_1"}),
            ),
        ),
    )
    assert parsed.configuration == Configuration(
        provider="anthropic",
        model="claude-sonnet-4-5",
        settings={"max_tokens": 100},
        tools=(Tool("look", description="Looks.", parameters={"type": "object"}),),
    )
    assert parsed.blobs == {sha256_hex(png): png}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]}, "messages[0].content[0].text"),
        ({"messages": [], "tools": "all"}, "tools"),
        ({"messages": [], "tools": [{"name": "x", "input_schema": []}]}, "tools[0].input_schema"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_path(body: dict[str, Any], path: str) -> None:
    """An error without a path leaves people to search a megabyte of JSON."""
    with pytest.raises(FormatError) as caught:
        PROVIDER.parse(body)
    assert caught.value.path == path


def test_tool_choice_in_common_words_and_back() -> None:
    """A wrong word here forces or forbids tools when a conversation changes provider."""
    for word, wire in (
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("tool:look", {"type": "tool", "name": "look"}),
    ):
        assert PROVIDER.with_tool_choice({"max_tokens": 1}, word) == {"max_tokens": 1, "tool_choice": wire}
        assert PROVIDER.tool_choice({"tool_choice": wire}) == word
    assert PROVIDER.tool_choice({}) is None
