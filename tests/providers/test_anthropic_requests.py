"""What the Messages API is sent: foreign parts, rules by model, and the edits that make a request acceptable."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given

import turnlog
from judging import numbered, shown
from repairing import repair
from turnlog.errors import BlobMissing
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
)
from turnlog.log.records import Configuration
from turnlog.models.target import Target, target
from turnlog.providers.anthropic import PROVIDER
from turnlog.providers.protocol import Rendered
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.testing.histories import PIXEL, History
from turnlog.testing.strategies import damaged_histories
from turnlog.view.repair.repair import declare_tools
from turnlog.view.types import Loss, Shown

AIM = target("anthropic", "claude-haiku-4-5")
THINKING = {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
TARGETS = (
    AIM,
    target("anthropic", "claude-sonnet-4-5", **THINKING),  # needs reasoning in open loops
    target("anthropic", "claude-opus-4-8"),  # takes system text in mid-conversation, and no prefill
)
MARK = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def rendered(*messages: Message, tools: tuple[Tool, ...] = (), blobs: Mapping[str, bytes] | None = None) -> Rendered:
    def blob(sha256: str) -> bytes:
        if sha256 not in (blobs or {}):
            raise BlobMissing(sha256)
        return (blobs or {})[sha256]

    view = [Shown(message, (n,)) for n, message in enumerate(messages, start=1)]
    return PROVIDER.render(view, Configuration(tools=tools), AIM, blob)


def user(*parts: Any) -> Message:
    return Message("user", parts)


def sanitized(**request: Any) -> tuple[dict[str, Any], list[str]]:
    """A request after sanitizing, and its edits as sentences."""
    body = {"model": AIM.model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **request}
    found = PROVIDER.sanitize(body, AIM)
    return found.body, [str(edit) for edit in found.edits]


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.model)
@given(history=damaged_histories())
def test_a_repaired_history_is_accepted(aim: Target, history: History, oracle: ModuleType) -> None:
    """Rules, rendering and sanitizing together: if one of them is wrong, the API answers 400."""
    settings = dict(aim.settings)
    rules = PROVIDER.rules(aim, settings)
    repaired = repair(shown(history), rules)
    if repaired.thinking_off:
        settings = PROVIDER.without_thinking(settings)
    tools, _ = declare_tools(repaired.view, (), rules)
    configuration = Configuration(provider="anthropic", settings=settings, tools=tools)
    request = PROVIDER.render(repaired.view, configuration, aim, history.blobs.__getitem__).body
    request = PROVIDER.sanitize(request, aim).body
    assert oracle.check_anthropic(request) == []


@given(history=damaged_histories())
def test_a_request_of_our_own_reads_back_to_the_same_request(history: History) -> None:
    """What turnlog wrote must survive being recorded by a proxy and read in again."""
    view = repair(shown(history), PROVIDER.rules(AIM, {})).view
    first = PROVIDER.render(view, Configuration(), AIM, history.blobs.__getitem__).body
    parsed = PROVIDER.parse(first)
    again = [Shown(message, (n,)) for n, message in enumerate(parsed.messages, start=1)]
    assert PROVIDER.render(again, parsed.configuration, AIM, parsed.blobs.__getitem__).body == first


def test_what_has_no_place_is_a_loss_that_names_its_record() -> None:
    """A silent loss is one that nobody can look up."""
    other = Form("openai-chat", delta={"+": {"weight": 1}})
    found = rendered(
        Message("user", (Text("hi", form=other), Unknown("hologram")), name="ann"),
        Message(
            "assistant",
            (
                Reasoning("google", text="hm", signature="s"),
                Opaque("openai-responses", "web_search_call", {"type": "web_search_call"}),
                Opaque("anthropic", "strange", {"type": "strange"}),
                ToolCall("c1", "patch", raw="*** Begin", kind="custom"),
                ToolCall("c2", "look", arguments={}, signature="sig", provider="google"),
            ),
        ),
        user(ToolResult("c1", parts=(Text("late"),), outcome="timeout"), ToolResult("c2")),
        tools=(Tool("search", kind="hosted", provider="google"), Tool("patch", kind="custom")),
    )
    assert found.body["messages"] == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "patch", "input": {"input": "*** Begin"}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "late"},
                {"type": "tool_result", "tool_use_id": "c2"},
            ],
        },
    ]
    assert [(loss.kind, loss.records) for loss in found.losses] == [
        ("tool", ()),
        ("tool", ()),
        ("extra", (1,)),
        ("extra", (1,)),
        ("opaque", (1,)),
        ("reasoning", (2,)),
        ("opaque", (2,)),
        ("opaque", (2,)),
        ("reasoning", (2,)),
        ("outcome", (3,)),
    ]


def test_media_of_a_failed_result_follows_all_results_of_the_turn() -> None:
    """The API takes only text in errors, and no result after anything else, in one user turn of many messages."""
    image = Media("image", url="https://example.org/a.png")
    found = rendered(
        user(ToolResult("a", parts=(image,), outcome="failed")),
        user(ToolResult("b", parts=(Text("fine"),)), Text("go on")),
    )
    assert [message["content"] for message in found.body["messages"]] == [
        [{"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": "[no output]"}],
        [
            {"type": "tool_result", "tool_use_id": "b", "content": "fine"},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "text", "text": "go on"},
        ],
    ]
    assert [loss.kind for loss in found.losses] == ["place", "outcome"]


def test_results_come_first_in_a_message_from_elsewhere() -> None:
    """Text ahead of a result is refused as a call without one."""
    found = rendered(user(Text("look"), ToolResult("a", parts=(Text("seen"),))))
    assert [block["type"] for block in found.body["messages"][0]["content"]] == ["tool_result", "text"]
    assert [loss.kind for loss in found.losses] == ["place"]


def test_leading_system_messages_become_top_level_text() -> None:
    """System text inside `messages` is refused by most models."""
    found = rendered(Message("system", (Text("One."),)), Message("system", (Text("Two."),)), user(Text("hi")))
    assert found.body["system"] == [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    later = rendered(user(Text("hi")), Message("system", (Text("Now."),)))
    assert later.body["messages"][1] == {"role": "system", "content": "Now."}
    assert "system" not in later.body


def test_media_without_a_place_leaves_a_trace() -> None:
    """A message that silently lost its image reads as if there had been none."""
    found = rendered(
        user(
            Media("audio", mime="audio/wav", sha256="ab"),
            Media("image", mime="image/png", sha256="gone"),
            Media("document", file_id="file-1", provider="openai-chat", name="plan.pdf"),
        )
    )
    assert found.body["messages"][0]["content"] == [
        {"type": "text", "text": "[audio left out: audio/wav]"},
        {"type": "text", "text": "[image left out: image/png]"},
        {"type": "text", "text": "[document left out: plan.pdf]"},
    ]
    assert found.losses == tuple(
        Loss("media", f"{what} left out: this provider takes none such, or its bytes are gone", (1,))
        for what in ("audio audio/wav", "image image/png", "document plan.pdf")
    )


def test_text_documents_go_as_text() -> None:
    """A text file as base64 is refused: the API takes PDFs only that way."""
    part = Media("document", mime="text/csv", sha256="ab", size=3, name="t.csv")
    assert rendered(user(part), blobs={"ab": b"a,b"}).body["messages"][0]["content"] == [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}, "title": "t.csv"}
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_text_document_is_read_in_the_encoding_that_it_names(encoding: str) -> None:
    """Notepad writes UTF-16. Read as UTF-8, every second character is a replacement or nothing at all."""
    blobs = {"ab": "na\u00efve".encode(encoding)}
    found = rendered(user(Media("document", mime="text/plain", sha256="ab", size=9)), blobs=blobs)
    (block,) = found.body["messages"][0]["content"]
    assert block["source"]["data"].lstrip("\ufeff") == "na\u00efve"
    assert (found.losses, found.edits) == ((), ())


@pytest.mark.parametrize("data", [b"na\xefve", b"\xff\xfehello", b"\xff\xfe\x00\xd8"])
@pytest.mark.parametrize("mime", ["text/plain", "text/csv"])
def test_a_text_document_that_cannot_be_read_is_a_loss(data: bytes, mime: str) -> None:
    """Sent as replacement characters, the model reads rubbish, and nobody is told."""
    found = rendered(user(Media("document", mime=mime, sha256="ab", size=len(data))), blobs={"ab": data})
    assert found.body["messages"][0]["content"] == f"[document left out: {mime}]"
    assert [(loss.kind, loss.records) for loss in found.losses] == [("media", (1,))]


def test_a_text_as_base64_that_cannot_be_read_is_an_edit(oracle: ModuleType) -> None:
    """It goes as text, as base64 of a text is refused: what that cannot say must not be made up."""
    source = {"type": "base64", "media_type": "text/plain", "data": base64.b64encode(b"na\xefve").decode()}
    messages = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    body = {"model": AIM.model, "max_tokens": 9, "messages": messages}
    prepared = turnlog.repair(body, "anthropic")
    said = [{"type": "text", "text": "[document left out: text/plain]"}]
    assert prepared.body["messages"] == [{"role": "user", "content": said}]
    assert [edit.kind for edit in prepared.edits] == ["media"]
    assert oracle.check_anthropic(prepared.body) == []


@pytest.mark.parametrize("beside", [Text("so"), ToolCall("c", "f", arguments={})])
def test_unsigned_text_of_encrypted_reasoning_is_left_out_by_name(beside: Part, oracle: ModuleType) -> None:
    """As thinking it would be refused, "Invalid `signature` in `thinking` block"; its encrypted form is taken, and
    holds what was thought."""
    thought = Reasoning("anthropic", text="hm", encrypted="ZW5j")
    view = [user(Text("go")), Message("assistant", (thought, beside)), user(Text("on"))]
    prepared = build(plan(Configuration(), AIM), numbered(view), {}.__getitem__)
    assert prepared.body["messages"][1]["content"][0] == {"type": "redacted_thinking", "data": "ZW5j"}
    assert ("reasoning", (2,)) in [(edit.kind, edit.records) for edit in prepared.edits]
    assert oracle.check_anthropic(prepared.body) == []


def test_rules_follow_model_and_settings() -> None:
    """A habit attributed to the wrong model is either a 400 or an answer nobody asked for."""
    assert PROVIDER.rules(AIM, {}).last == "any"
    assert PROVIDER.rules(AIM, THINKING).last == "user"
    adaptive = {"thinking": {"type": "adaptive"}}
    assert [PROVIDER.rules(AIM, s).loop_needs_reasoning for s in ({}, THINKING, adaptive)] == [False, True, False]
    habits = {
        name: (rules.last, rules.system, rules.media_max_count)
        for name in ("claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-4-8", "claude-fable-5", "claude-haiku-4-5")
        for rules in [PROVIDER.rules(target("anthropic", name), {})]
    }
    assert habits == {
        "claude-sonnet-4-5": ("any", "top", 100),
        "claude-sonnet-4-6": ("user", "top", 600),
        "claude-opus-4-8": ("user", "top_or_after_user", 600),
        "claude-fable-5": ("user", "top_or_after_user", 600),
        "claude-haiku-4-5": ("any", "top", 100),
    }
    blind = msgspec.structs.replace(AIM, input_media=frozenset())
    assert PROVIDER.rules(blind, {}).user_media == frozenset()


def test_a_missing_limit_is_added_above_the_thinking_budget() -> None:
    """`max_tokens: Field required`; and a budget that fills it leaves no room for an answer."""
    bare = {"model": AIM.model, "messages": [{"role": "user", "content": "hi"}]}
    small = msgspec.structs.replace(AIM, output_limit=4096)
    assert PROVIDER.sanitize(bare, AIM).body["max_tokens"] == 8192
    assert PROVIDER.sanitize(bare, small).body["max_tokens"] == 4096
    thinking = {**bare, "thinking": {"type": "enabled", "budget_tokens": 10_000}}
    assert PROVIDER.sanitize(thinking, AIM).body["max_tokens"] == 18_192
    cramped = PROVIDER.sanitize(thinking, small).body
    assert (cramped["max_tokens"], cramped["thinking"]["budget_tokens"]) == (4096, 2048)
    assert PROVIDER.sanitize({"messages": bare["messages"]}, AIM).body["model"] == AIM.model


@pytest.mark.parametrize(
    ("given_settings", "kept"),
    [
        ({**THINKING, "temperature": 0.2, "top_k": 4}, THINKING),
        ({"thinking": {"type": "enabled", "budget_tokens": 10}, "max_tokens": 2000},
         {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}),
        ({"tool_choice": {"type": "auto"}}, {}),
        ({"temperature": 1.7}, {"temperature": 1}),
        ({"temperature": 0.5, "top_p": 0.5}, {"temperature": 0.5}),
        ({"model": "claude-opus-4-8", "temperature": 1.0}, {"model": "claude-opus-4-8"}),
        ({"stop_sequences": ["\n", "END"]}, {"stop_sequences": ["END"]}),
        ({"system": None}, {}),
        ({"system": [{"type": "text", "text": " "}]}, {}),
        ({"seed": 1, "metadata": {"user_id": "u", "trace": "t"}}, {"metadata": {"user_id": "u"}}),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "tokens": 1}], "id": 1}]},
         {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}),
    ],
)  # fmt: skip
def test_settings_that_the_api_refuses_are_sanitized(
    given_settings: dict[str, Any], kept: dict[str, Any], oracle: ModuleType
) -> None:
    """Each of these is a 400 that has nothing to do with the conversation."""
    request, edits = sanitized(**given_settings)
    assert edits
    assert request == sanitized(**kept)[0]
    assert oracle.check_anthropic(request) == []


def test_tools_are_declared_once_with_an_object_schema(oracle: ModuleType) -> None:
    """`Tool names must be unique.`, and `input_schema.type: Field required`."""
    tool = {"name": "look", "input_schema": {"properties": {}}}
    request, edits = sanitized(tools=[tool, tool], tool_choice={"type": "tool", "name": "other"})
    assert request["tools"] == [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]
    assert "tool_choice" not in request
    assert len(edits) == 3
    forced, edits = sanitized(**THINKING, tools=[request["tools"][0]], tool_choice={"type": "any"})
    assert (forced["tool_choice"], len(edits)) == ({"type": "auto"}, 1)
    assert oracle.check_anthropic(request) == oracle.check_anthropic(forced) == []


def test_surplus_cache_marks_go_from_the_oldest_messages(oracle: ModuleType) -> None:
    """`A maximum of 4 blocks with cache_control may be provided`: the newest and the shared ones save most."""
    block = {"type": "text", "text": "hi", "cache_control": MARK}
    request, edits = sanitized(
        system=[{**block, "cache_control": LONG}],
        messages=[{"role": "user", "content": [block, block, {**block, "cache_control": LONG}, block]}],
    )
    plain = {"type": "text", "text": "hi"}
    assert request["system"] == [{**block, "cache_control": LONG}]
    # The hour after five minutes is refused as well; it became five minutes.
    assert request["messages"][0]["content"] == [plain, block, block, block]
    assert edits == ["messages[0].content[0].cache_control dropped", "messages[0].content[2].cache_control.ttl dropped"]
    assert oracle.check_anthropic(request) == []


def test_halves_of_server_tool_calls_are_repaired_away(oracle: ModuleType) -> None:
    """A cut through a call that the provider runs itself makes every later request fail; the rules must let
    repair see both halves, and leave alone the call of a turn that the provider has only paused."""
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    stray = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_9", "content": []}
    text = {"type": "text", "text": "so"}
    ask = {"role": "user", "content": "hi"}

    def repaired(*messages: dict[str, Any]) -> dict[str, Any]:
        parsed = PROVIDER.parse({"model": AIM.model, "max_tokens": 9, "messages": list(messages)})
        view = [Shown(message, (n,)) for n, message in enumerate(parsed.messages, start=1)]
        view = list(repair(view, PROVIDER.rules(AIM, {})).view)
        return PROVIDER.render(view, parsed.configuration, AIM, parsed.blobs.__getitem__).body

    past = repaired(ask, {"role": "assistant", "content": [call, text, stray]}, ask)
    paused = repaired(ask, {"role": "assistant", "content": [text, call]})
    assert [message["content"] for message in past["messages"]] == ["hi", "so", "hi"]
    assert paused["messages"][1]["content"] == [text, call]
    assert oracle.check_anthropic(past) == oracle.check_anthropic(paused) == []


@pytest.mark.parametrize("aim", [*TARGETS, target("anthropic", "claude-opus-4-6", **THINKING)], ids=lambda a: a.model)
def test_a_paused_turn_is_sent_back_as_it_is(aim: Target, oracle: ModuleType) -> None:
    """With thinking, and for models that take no prefill, a user's word was put behind it, and so the call that the
    provider was at was left out: an agent that goes on after `pause_turn` had the work begin again each time."""
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "news"}}
    begun = [{"type": "thinking", "thinking": "look", "signature": "c2ln"}, call]
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    with turnlog.open("s", store=":memory:", target=aim.with_settings(max_tokens=4000), tools=tools) as session:
        session.user("What is new?")
        session.receive(
            {
                "type": "message",
                "role": "assistant",
                "model": aim.model,
                "content": begun,
                "stop_reason": "pause_turn",
                "usage": {"input_tokens": 9, "output_tokens": 9},
            }
        )
        prepared = session.request()
        sent = [
            {key: block[key] for key in block if key != "cache_control"}
            for block in prepared.body["messages"][1]["content"]
        ]
        assert sent == begun
        assert [message["role"] for message in prepared.body["messages"]] == ["user", "assistant"]
        assert prepared.edits == ()
        assert oracle.check_anthropic(prepared.body) == []
        assert session.window.tokens == turnlog.count(prepared.body).tokens


def test_thinking_can_be_switched_off_with_what_needs_it() -> None:
    """An open tool loop without reasoning is refused while thinking is on."""
    edit = {"type": "clear_thinking_20251015"}
    assert PROVIDER.without_thinking({**THINKING, "context_management": {"edits": [edit]}}) == {
        "max_tokens": 4000,
        "thinking": {"type": "disabled"},
    }
    other = {"type": "clear_tool_uses_20250919"}
    assert PROVIDER.without_thinking({"context_management": {"edits": [edit, other]}}) == {
        "thinking": {"type": "disabled"},
        "context_management": {"edits": [other]},
    }


def test_an_image_is_base64_with_its_type() -> None:
    """The API compares the declared type with the bytes."""
    part = Media("image", mime="image/png", sha256="ab", size=len(PIXEL))
    content = rendered(user(part), blobs={"ab": PIXEL}).body["messages"][0]["content"]
    assert content[0]["source"]["media_type"] == "image/png"
    assert content[0]["source"]["data"].startswith("iVBORw0KGgo")
