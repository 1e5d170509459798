"""What another provider's request cannot hold of a body is named: each field of it, not only the block it stands in."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import turnlog
from turnlog.log.messages import Media, media_parts
from turnlog.models.makers import PROVIDER_ROWS
from turnlog.providers import provider
from turnlog.requests.standalone import convert
from turnlog.testing.histories import PIXEL

PROVIDERS = tuple(PROVIDER_ROWS)
PICTURE = base64.b64encode(PIXEL).decode()
TEXT = base64.b64encode(b"some words").decode()


def _anthropic(block: dict[str, Any], **settings: Any) -> dict[str, Any]:
    told = [{"role": "user", "content": [block, {"type": "text", "text": "Well?"}]}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": told, **settings}


def _document(source: dict[str, Any]) -> dict[str, Any]:
    said = {"title": "TITLE", "context": "CONTEXT", "citations": {"enabled": True}}
    return _anthropic({"type": "document", "source": source, **said})


_CHAT_TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "ab"]
_ALLOWED = {"mode": "required", "tools": [{"type": "function", "name": "ALLOWED"}]}
_SIGNED_CALL = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "U0lHTkVE"}
_CALLING = {"mode": "ANY", "allowedFunctionNames": ["FIRST", "SECOND"]}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "text document": ("anthropic", _document({"type": "text", "media_type": "text/plain", "data": "words"})),
    "pieces of a document": ("anthropic", _document({"type": "content", "content": "words"})),
    "pdf": ("anthropic", _document({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="})),
    "document by address": ("anthropic", _document({"type": "url", "url": "https://a.b/c.pdf"})),
    "document by id": ("anthropic", _document({"type": "file", "file_id": "file_1"})),
    "no image": (
        "anthropic",
        _anthropic(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": TEXT},
                "cache_control": {"type": "ephemeral"},
            }
        ),
    ),
    "one call at a time": (
        "anthropic",
        _anthropic(
            {"type": "text", "text": "Hi."},
            tools=[{"name": "a", "input_schema": {"type": "object"}}],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
        ),
    ),
    "authors": (
        "openai-chat",
        {
            "model": "gpt-4o",
            "messages": [
                {"role": "system", "content": "S", "name": "FIRST"},
                {"role": "user", "content": "hi", "name": "SECOND"},
                {"role": "assistant", "content": "yes", "name": "THIRD"},
                {"role": "developer", "content": "mid", "name": "FOURTH"},
                {"role": "user", "content": "so?"},
            ],
        },
    ),
    "allowed tools": (
        "openai-chat",
        {
            "model": "gpt-5",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": _CHAT_TOOLS,
            "tool_choice": {"type": "allowed_tools", "allowed_tools": _ALLOWED},
        },
    ),
    "phase of system text": (
        "openai-responses",
        {
            "model": "gpt-5",
            "input": [
                {"role": "user", "content": "hi"},
                {"role": "system", "content": "mid", "type": "message", "phase": "PHASE"},
                {"role": "user", "content": "so?"},
            ],
        },
    ),
    "allowed tools of items": (
        "openai-responses",
        {
            "model": "gpt-5",
            "input": "hi",
            "tools": [{"type": "function", "name": "a", "parameters": {"type": "object"}}],
            "tool_choice": {"type": "allowed_tools", **_ALLOWED},
        },
    ),
    "file with a name": (
        "openai-responses",
        {
            "model": "gpt-5",
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_file", "file_data": f"data:text/csv;base64,{TEXT}", "filename": "NAMED.csv"}
                    ],
                }
            ],
        },
    ),
    "a signed call": (
        "google",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [_SIGNED_CALL]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]},
            ]
        },
    ),
    "a few functions and a place": (
        "google",
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"functionDeclarations": [{"name": "FIRST"}, {"name": "THIRD"}]}],
            "toolConfig": {"functionCallingConfig": _CALLING, "retrievalConfig": {"languageCode": "LANGUAGE"}},
        },
    ),
    "a few functions of steps": (
        "google-interactions",
        {
            "input": "hi",
            "system_instruction": "INSTRUCTION",
            "tools": [{"type": "function", "name": name, "short_description": "SHORT"} for name in ("FIRST", "THIRD")],
            "generation_config": {
                "thinking_level": "high",
                "max_output_tokens": 77,
                "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["FIRST", "SECOND"]}},
            },
        },
    ),
    "steps of many kinds": (
        "google-interactions",
        {
            "input": [
                {"type": "user_input", "content": [{"type": "text", "text": "hi"}]},
                {"type": "function_call", "id": "CALL", "name": "f", "arguments": {"path": "PATH"}},
                {"type": "function_result", "call_id": "CALL", "name": "f", "result": {"key": "RESULT"}},
                {
                    "type": "model_output",
                    "content": [
                        {"type": "text", "text": "ANSWER", "annotations": [{"type": "url_citation", "url": "CITED"}]}
                    ],
                },
                {
                    "type": "user_input",
                    "content": [
                        {"type": "image", "data": PICTURE, "mime_type": "image/png", "resolution": "RESOLUTION"},
                        {"type": "document", "uri": "https://a.b/c.pdf", "processing": "static"},
                    ],
                },
            ]
        },
    ),
    "a picture with a name": (
        "google",
        {
            "contents": [
                {
                    "role": "user",
                    "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE, "displayName": "NAMED"}}],
                }
            ]
        },
    ),
}

_ALSO_NAMED = {"thoughtSignature": "signature", "filename": "name", "title": "name", "file_id": "file"}
"""Words under which losses speak of a field."""

_EVERYWHERE = {
    "messages",
    "content",
    "input",
    "contents",
    "parts",
    "source",
    "tool_choice",
    "toolConfig",
    "name",
    "text",
}
"""Keys that say where something stands, and nothing of what it is."""

_SHARED = {"type", "role", "mode", "mimeType", "media_type", "data", "file_data", "model", "url"}
"""Keys that every API has in its own way, and those that say what kind of thing something is."""


def _fields(value: Any, *way: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every string and flag of a body, with the keys it stands under."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _fields(inner, *way, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, *way)
    elif isinstance(value, (str, bool)) and way[-1] not in _SHARED:
        yield way, value


@pytest.mark.parametrize(
    ("what", "to"), [(what, to) for what, to in itertools.product(BODIES, PROVIDERS) if BODIES[what][0] != to]
)
@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
def test_what_is_not_in_the_request_is_named(what: str, to: str) -> None:
    """A document's context was gone where the document was shown as its text, an author's name with system text,
    the tools that alone were allowed with a choice among them: each without a word."""
    source, body = BODIES[what]
    made = convert(body, to=to, provider=source)
    sent = json.dumps(made.body, ensure_ascii=False)
    said = " ".join(change.detail for change in (*made.losses, *made.edits))
    words = set(re.findall(r"\w+", said))
    for way, value in _fields(body):
        names = {_ALSO_NAMED.get(key, key) for key in way} - _EVERYWHERE | {_ALSO_NAMED.get(way[-1], str(value))}
        inside = isinstance(value, str) and (value in sent or base64.b64encode(value.encode()).decode() in sent)
        assert inside or names & words, f"{way}: {value!r} is gone; told: {said}"


def test_a_name_is_named_wherever_no_media_have_one() -> None:
    """A name given to `session.media` went without a word with a picture to OpenAI, and with any medium to Google."""
    models = ("gpt-4o", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro", "gemini-2.5-pro")
    for to, model in zip(PROVIDERS, models, strict=True):
        with turnlog.open(
            target=turnlog.target(to, model), store=":memory:", settings=turnlog.Settings(title="named")
        ) as session:
            for data, mime in ((PIXEL, "image/png"), (b"%PDF-1.4 of one page", "application/pdf")):
                session.user([session.media(data, mime, name=f"NAMED.{mime[-3:]}")])
            made = session.request()
            said = str([loss.detail for loss in made.losses]) + json.dumps(made.body)
            assert "NAMED.png" in said and "NAMED.pdf" in said, (to, said)


def test_text_that_is_not_plain_is_sent_as_plain_with_a_word() -> None:
    """Anthropic's documents of text are plain: that one was Markdown or CSV was gone."""
    source, body = BODIES["file with a name"]
    made = convert(body, to="anthropic", provider=source)
    assert [loss.detail for loss in made.losses] == ["document declared as text/csv sent as text/plain"]
    plain = convert(BODIES["text document"][1], to="anthropic", provider="anthropic")
    assert plain.losses == ()


def test_a_choice_goes_along_under_its_older_name_without_a_loss() -> None:
    """`function_call` was told as lost beside the choice that was made of it."""
    body = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": _CHAT_TOOLS,
        "function_call": {"name": "a"},
    }
    made = convert(body, to="anthropic", provider="openai-chat")
    assert (made.body["tool_choice"], made.losses) == ({"type": "tool", "name": "a"}, ())


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("google", {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [""]}}}),
        ("google", {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [5]}}}),
        ("anthropic", {"tool_choice": {"type": "tool", "name": ""}}),
    ],
)
def test_a_choice_of_no_tool_is_no_reason_to_refuse_a_body(source: str, body: dict[str, Any]) -> None:
    """`tool choice 'tool:'` was said to who had given none of these words."""
    said = {"contents": [{"parts": [{"text": "hi"}]}]} if source == "google" else {"messages": []}
    for to in PROVIDERS:
        made = convert({**said, **body}, to=to, provider=source)
        assert turnlog.check(made.body, to) == []


@pytest.mark.parametrize(
    "mime", ["text/plain", "text/markdown", "text/csv", "application/pdf", "application/json", "application/zip"]
)
def test_a_file_is_of_one_kind_whoever_speaks_of_it(mime: str) -> None:
    """`session.media` and the Chat API made a file of a Markdown text, others a document: a rule or a line that says
    which it is held for some of them alone."""
    url = f"data:{mime};base64,{TEXT}"
    chat = {"type": "file", "file": {"file_data": url, "filename": "x"}}
    bodies: dict[str, dict[str, Any]] = {
        "openai-chat": {"messages": [{"role": "user", "content": [chat]}]},
        "openai-responses": {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": url}]}]},
        "google": {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": mime, "data": TEXT}}]}]},
    }
    step = {"type": "user_input", "content": [{"type": "document", "mime_type": mime, "data": TEXT}]}
    bodies["google-interactions"] = {"input": [step]}
    with turnlog.open(store=":memory:", settings=turnlog.Settings(title="kinds")) as session:
        kinds = {"session": session.media(b"some words", mime).kind}
    for name, body in bodies.items():
        (media,) = media_parts(provider(name).parse(body).messages[0])
        assert isinstance(media, Media)
        kinds[name] = media.kind
    assert len(set(kinds.values())) == 1, kinds
