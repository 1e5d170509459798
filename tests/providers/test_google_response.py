"""Google: whole responses and streams."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.errors import FormatError
from turnlog.log.messages import Form, Media, Message, Reasoning, Text, ToolCall, ToolResult, sha256_hex
from turnlog.log.records import Configuration, Note
from turnlog.log.usage import Usage
from turnlog.models.target import target
from turnlog.providers.google import PROVIDER, sdk_arguments
from turnlog.providers.protocol import Reply
from turnlog.view.types import Shown

MODEL = "gemini-3-flash-preview"


def candidate(*parts: Any, finish: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {**found, "finishReason": finish} if finish else found


def chunk(*parts: Any, finish: str | None = None, **rest: Any) -> dict[str, Any]:
    return {"candidates": [candidate(*parts, finish=finish)], **rest}


def assembled(chunks: list[Any]) -> Reply:
    assembler = PROVIDER.assembler()
    for one in chunks:
        assembler.feed(one)
    return assembler.reply()


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[list[dict[str, Any]]]:
    """Every recorded answer of gemini-cli, as the chunks it came in."""
    answers = []
    for path in sorted((shared / "data" / "gemini-cli-responses").iterdir()):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if row["method"] != "countTokens":
                    response = row["response"]
                    answers.append(response if isinstance(response, list) else [response])
    return answers


def test_recorded_streams_chunk_by_chunk(recorded: list[list[dict[str, Any]]]) -> None:
    """A stream put together otherwise than its whole would replay as another answer."""
    assert len(recorded) > 200
    for chunks in recorded:
        reply = assembled(chunks)
        assert reply.complete
        assert reply == PROVIDER.parse_response(chunks)
        candidates = [found for one in chunks for found in one.get("candidates", [])]
        wires = [part for one in candidates for part in one.get("content", {}).get("parts", [])]
        for thought in (True, False):
            said = [w.get("text", "") for w in wires if bool(w.get("thought")) == thought]
            kind = Reasoning if thought else Text
            assert "".join(p.text for p in reply.message.parts if isinstance(p, kind)) == "".join(said)
        calls = [wire["functionCall"] for wire in wires if "functionCall" in wire]
        assert [(c["name"], c["args"]) for c in calls] == [
            (part.name, part.arguments) for part in reply.message.parts if isinstance(part, ToolCall)
        ]
        signed = [wire["thoughtSignature"] for wire in wires if "thoughtSignature" in wire]
        assert signed == [w["thoughtSignature"] for w in replayed(reply.message) if "thoughtSignature" in w]


def replayed(message: Message) -> list[dict[str, Any]]:
    """The wire parts of an answer sent back as history."""
    view = [Shown(message, (1,))]
    request = PROVIDER.render(view, Configuration(), target("google", MODEL), {}.__getitem__).body
    return [part for content in request["contents"] for part in content["parts"]]


def test_recorded_streams_as_sdk_objects(recorded: list[list[dict[str, Any]]]) -> None:
    """SDK objects hold enums, bytes and snake case; they must read like the JSON they came from."""
    types = pytest.importorskip("google.genai.types")
    for chunks in recorded:
        reply = assembled(chunks)
        objects = [types.GenerateContentResponse.model_validate(one) for one in chunks]
        assert assembled(objects) == reply
        assert assembled([one.model_dump() for one in objects]) == reply
        assert assembled([one.model_dump(mode="json") for one in objects]) == reply


def test_recorded_streams_cut_anywhere(recorded: list[list[dict[str, Any]]]) -> None:
    """An interrupted answer must say so and keep what had come."""
    for chunks in recorded:
        whole = assembled(chunks)
        text = "".join(part.text for part in whole.message.parts if isinstance(part, Text))
        for n in range(len(chunks)):
            reply = assembled(chunks[:n])
            finished = any(one.get("finishReason") for part in chunks[:n] for one in part.get("candidates", []))
            assert (reply.complete, bool(reply.error)) == (finished, not finished)
            assert text.startswith("".join(part.text for part in reply.message.parts if isinstance(part, Text)))
            assert reply.fragments == ()


def test_a_whole_response() -> None:
    """Every field of a reply, from a response with all there is."""
    response = {
        **chunk(
            {"text": "hm", "thought": True},
            {"text": "see"},
            {"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "+/+/"},
            {"inlineData": {"mimeType": "image/png", "data": "+/+/"}},
            {"text": "", "thoughtSignature": "AAAA"},
            {"text": ""},
            finish="STOP",
        ),
        "usageMetadata": {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 60,
            "candidatesTokenCount": 10,
            "thoughtsTokenCount": 5,
            "toolUsePromptTokenCount": 7,
            "totalTokenCount": 122,
        },
        "modelVersion": "gemini-3-flash",
        "responseId": "r1",
    }
    reply = PROVIDER.parse_response(response)
    image = b"\xfb\xff\xbf"
    assert reply == Reply(
        message=Message(
            "assistant",
            (
                Reasoning("google", text="hm"),
                Text("see"),
                ToolCall("1", "f", {"a": 1}, signature="+/+/", provider="google"),
                Media("image", mime="image/png", sha256=sha256_hex(image), size=3),
                Reasoning("google", signature="AAAA", form=Form("google", delta={"+": {"text": ""}})),
            ),
        ),
        usage=Usage(input=107, output=15, cached=60, reasoning=5),
        raw_usage=response["usageMetadata"],
        model="gemini-3-flash",
        stop="STOP",
        response_id="r1",
        blobs={sha256_hex(image): image},
    )


def test_pieces_join_and_signed_parts_stand_alone() -> None:
    """A signature that moves to other text is answered with "Corrupted thought signature."."""
    reply = assembled(
        [
            chunk({"text": "a", "thought": True}),
            chunk({"text": "b", "thought": True}),
            chunk({"text": "c"}),
            chunk({"text": "d"}, {"text": "e", "thoughtSignature": "AAAA"}),
            chunk({"text": "f"}, finish="STOP"),
        ]
    )
    assert replayed(reply.message) == [
        {"text": "ab", "thought": True},
        {"text": "cd"},
        {"text": "e", "thoughtSignature": "AAAA"},
        {"text": "f"},
    ]


def test_usage_is_cumulative() -> None:
    """Adding up the counts of chunks would bill a stream several times."""
    reply = assembled(
        [
            chunk({"text": "a"}, usageMetadata={"promptTokenCount": 9, "cachedContentTokenCount": 4}),
            chunk({"text": "b"}, finish="STOP", usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 2}),
        ]
    )
    assert reply.usage == Usage(input=9, output=2, cached=4)


def test_a_blocked_prompt_is_an_answer() -> None:
    """A blocked prompt has no candidate; it is no broken stream to be tried again."""
    reply = PROVIDER.parse_response({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (reply.message.parts, reply.stop, reply.complete) == ((), "SAFETY", True)


def test_an_error_in_the_stream() -> None:
    """An error event must not look like the end of an answer."""
    reply = assembled([chunk({"text": "a"}), {"error": {"code": 503, "message": "overloaded"}}])
    assert (reply.message.parts, reply.complete, reply.error) == ((Text("a"),), False, "503: overloaded")


def test_only_the_first_candidate_counts() -> None:
    """Two candidates read as one would be an answer that nobody gave."""
    second = {**candidate({"text": "b"}, finish="STOP"), "index": 1}
    reply = PROVIDER.parse_response({"candidates": [candidate({"text": "a"}, finish="STOP"), second]})
    assert reply.message.parts == (Text("a"),)


STREAMED_CALL = [
    chunk({"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "AAAA"}),
    chunk({"functionCall": {"partialArgs": [{"jsonPath": "$.n", "numberValue": 50}], "willContinue": True}}),
    chunk(
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.list[1]['a b']", "stringValue": "wa", "willContinue": True}],
                "willContinue": True,
            }
        }
    ),
    chunk(
        {"functionCall": {"partialArgs": [{"jsonPath": "$.list[1]['a b']", "stringValue": "rm"}], "willContinue": True}}
    ),
    chunk({"functionCall": {}}, finish="STOP"),
]


def test_streamed_arguments_make_one_call() -> None:
    """A piece of a call taken for a call would run a tool with half its arguments."""
    reply = assembled(STREAMED_CALL)
    assert reply.complete and reply.fragments == ()
    assert replayed(reply.message) == [
        {
            "functionCall": {"name": "f", "args": {"n": 50, "list": [None, {"a b": "warm"}]}},
            "thoughtSignature": "AAAA",
        }
    ]


@pytest.mark.parametrize(
    "aside", [{}, {"createTime": "2026-11-23T10:00:00Z"}, {"modelStatus": {"modelStage": "STABLE"}}]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_chunk_that_says_nothing_of_the_answer_is_passed_over(aside: dict[str, Any], at: int) -> None:
    """It ended the stream with an error: the rest of the answer was paid for and gone."""
    chunks: list[Any] = [chunk({"text": "Cold, "}), chunk({"text": "4 degrees."}, finish="STOP")]
    reply = assembled([*chunks[:at], aside, *chunks[at:]])
    assert (reply.complete, reply.message.parts) == (True, (Text("Cold, 4 degrees."),))
    assert assembled([*chunks[:1], {"new": {"of": "theirs"}}, *chunks[1:]]).complete
    for whole in (aside, {"choices": []}):
        with pytest.raises(FormatError, match="this is not a generateContent response"):
            PROVIDER.parse_response(whole)


_PATHS = st.sampled_from(["$", "$.a", "$.a.b", "$.a[0]", "$.a[0].b", "$.b"])
_PIECES = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("f"),
        "willContinue": st.booleans(),
        "args": st.sampled_from([{}, {"a": 1}, {"a": []}, {"a": {"b": "w"}}]),
        "partialArgs": st.lists(
            st.fixed_dictionaries(
                {"jsonPath": _PATHS},
                optional={"stringValue": st.just("w"), "numberValue": st.just(5), "willContinue": st.booleans()},
            ),
            max_size=2,
        ),
    },
)


@given(st.lists(_PIECES, max_size=5))
def test_pieces_that_contradict_each_other_are_put_together_all_the_same(pieces: list[dict[str, Any]]) -> None:
    """A text that went on where a number had come since, or arguments behind what was no object, ended the stream in
    an AttributeError or TypeError, though the answer could be read."""
    assembled([chunk({"functionCall": piece}) for piece in pieces])


def test_a_half_call_is_a_fragment() -> None:
    """A cut inside the arguments leaves nothing that could be run."""
    for n in range(1, 5):
        reply = assembled(STREAMED_CALL[:n])
        assert reply.message.parts == () and not reply.complete
        (fragment,) = reply.fragments
        assert isinstance(fragment, ToolCall) and (fragment.name, fragment.arguments) == ("f", None)
        assert fragment.raw is not None and json.loads(fragment.raw) is not None


@pytest.mark.parametrize(
    "response",
    [
        None,
        "text",
        {},
        {"totalTokens": 5},
        {"candidates": {}},
        {"candidates": ["x"]},
        {"candidates": [{"content": {"parts": ["x"]}}]},
    ],
)
def test_what_is_no_response_is_refused(response: Any) -> None:
    """Something else read as an empty answer would be recorded as one."""
    with pytest.raises(FormatError):
        PROVIDER.parse_response(response)


REPLY = {
    "thinking": "let me see, this takes a while",
    "text": "first this long text in several pieces",
    "tool_calls": [{"name": "f", "args": {"a": 1}}, {"name": "f", "args": {"a": 2}}],
}
TOOLS = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}]


def test_a_tool_loop_with_the_real_sdk(fake_server: Any) -> None:
    """Whole and streamed answers of the real client are the same, and go back as the server signed them."""
    genai = pytest.importorskip("google.genai")
    server = fake_server(script=[REPLY, REPLY, {"text": "done"}], contract=True)
    client = genai.Client(api_key="k", http_options={"base_url": server.url})
    body = {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "tools": TOOLS}
    whole = PROVIDER.parse_response(client.models.generate_content(**sdk_arguments(body, MODEL)))
    chunks = list(client.models.generate_content_stream(**sdk_arguments(body, MODEL)))
    assert len(chunks) > 3
    streamed = assembled(chunks)
    assert [type(part) for part in streamed.message.parts] == [type(part) for part in whole.message.parts]
    assert streamed.message.parts[:2] == whole.message.parts[:2]
    assert (streamed.usage, streamed.stop, streamed.model) == (whole.usage, whole.stop, whole.model)
    assert streamed.complete and whole.complete

    calls = [part for part in streamed.message.parts if isinstance(part, ToolCall)]
    answers = tuple(ToolResult(call.id, parts=(Text("fine"),)) for call in calls)
    asked = PROVIDER.parse(body)
    view = [Shown(m, (i,)) for i, m in enumerate((*asked.messages, streamed.message, Message("user", answers)), 1)]
    request = PROVIDER.render(view, asked.configuration, target("google", MODEL), {}.__getitem__).body
    last = PROVIDER.parse_response(client.models.generate_content(**sdk_arguments(request, MODEL)))
    assert last.message == Message("assistant", (Text("done"),))
    assert server.rejections() == []


def test_a_cut_stream_of_the_real_sdk(fake_server: Any) -> None:
    """A stream that the server breaks off keeps what came, and is not complete."""
    genai = pytest.importorskip("google.genai")
    server = fake_server(script=[{**REPLY, "cut_after": 4, "stream_error": "overloaded"}])
    client = genai.Client(api_key="k", http_options={"base_url": server.url})
    body = {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "tools": TOOLS}
    assembler = PROVIDER.assembler()
    stream = client.models.generate_content_stream(**sdk_arguments(body, MODEL))
    with pytest.raises(genai.errors.ServerError):
        deque(map(assembler.feed, stream), maxlen=0)
    reply = assembler.reply()
    assert not reply.complete and reply.error
    assert reply.message.parts == (Reasoning("google", text="let me see, this takes a while"), Text("first this l"))


@pytest.mark.parametrize(
    ("path", "key"), [(r"$['it\'s']", "it's"), (r'$["a \"b\""]', 'a "b"'), (r"$['a\\b']", "a\\b"), ("$.a-b", "a-b")]
)
def test_a_streamed_argument_has_the_name_that_its_path_quotes(path: str, key: str) -> None:
    """A tool would be handed an argument under a name that it does not have."""
    piece = {"jsonPath": path, "stringValue": "v"}
    reply = assembled(
        [
            chunk({"functionCall": {"name": "f", "partialArgs": [piece], "willContinue": True}}),
            chunk({"functionCall": {}}, finish="STOP"),
        ]
    )
    [call] = reply.message.parts
    assert isinstance(call, ToolCall) and call.arguments == {key: "v"}


def test_a_streamed_call_that_another_cuts_off_is_a_fragment() -> None:
    """It was gone without a word, from an answer that was on record as whole."""
    second = {"functionCall": {"name": "g", "args": {"x": 1}}}
    reply = assembled([*STREAMED_CALL[:2], chunk(second, finish="STOP")])
    [call] = reply.message.parts
    assert isinstance(call, ToolCall) and (call.name, call.arguments) == ("g", {"x": 1})
    assert reply.fragments == (ToolCall("", "f", raw='{"n":50}', provider="google"),)


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_nobody_could_read_is_a_fragment(reason: str) -> None:
    """The answer counted as whole, and as one of nothing: an agent took it for the end of its work, and what the model
    had said was gone."""
    said = "Malformed function call: print(default_api.f("
    ended = {"candidates": [{"finishReason": reason, "finishMessage": said}]}
    half = ToolCall("", "", raw=said, provider="google")
    for reply in (PROVIDER.parse_response(ended), assembled([chunk({"text": "I look."}), ended, ended])):
        assert (reply.fragments, reply.stop) == ((half,), reason)
    assert PROVIDER.parse_response({"candidates": [{"finishReason": reason}]}).fragments == (
        ToolCall("", "", raw="", provider="google"),
    )
    read = chunk({"functionCall": {"name": "f", "args": {}}}, finish=reason)
    assert assembled([read]).fragments == ()


def test_what_an_answer_rests_on_is_kept_and_not_sent() -> None:
    """The sources of a grounded answer, which its terms want shown, were gone once the program had ended."""
    found = {"webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": "https://example.org", "title": "t"}}]}
    quoted = [{"citationSources": [{"startIndex": n, "endIndex": n + 5}]} for n in (0, 9)]
    chunks = [chunk({"text": "So it "}), chunk({"text": "is."}, finish="STOP")]
    chunks[0]["candidates"][0] |= {"citationMetadata": quoted[0], "groundingMetadata": None}
    chunks[1]["candidates"][0] |= {"citationMetadata": quoted[1], "groundingMetadata": found}
    with turnlog.open("s", store=":memory:", target=target("google", MODEL)) as session:
        session.user("Is it?")
        session.receive(iter(chunks))
        assert [record.body for record in session.history()][-1] == Note(
            "response", data={"citationMetadata": quoted, "groundingMetadata": found}
        )
        session.user("And so?")
        assert session.request().body["contents"] == [
            {"role": "user", "parts": [{"text": "Is it?"}]},
            {"role": "model", "parts": [{"text": "So it is."}]},
            {"role": "user", "parts": [{"text": "And so?"}]},
        ]
