"""The shared writer of formats: pieces, calls without ids, branches, figures, changed files, and what is not read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from transcripts import bodies_of, messages_of, of_kind

from turnlog.importers import Imported
from turnlog.importers.fields import Fields
from turnlog.importers.parts import called, shown, texts, thoughts
from turnlog.importers.transcript import Transcript
from turnlog.importers.writing import SessionWriter
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult, sha256_hex, text_of
from turnlog.log.origins import origin_of
from turnlog.log.records import Decision, FileChange, MessageRecord, Note, PartialAnswer, Record, UsageRecord
from turnlog.providers.openai_chat import PROVIDER


def new(**more: Any) -> SessionWriter:
    """A writer of an empty file."""
    writer = SessionWriter(Transcript(b""), "test", PROVIDER, agent="", **more)
    writer.id = "s"
    return writer


def call(name: str, arguments: Any = None, call_id: str = "") -> ToolCall:
    """A call, by default without an id."""
    return called(call_id, name, arguments)


def test_pieces_of_an_answer_are_one_message() -> None:
    """An answer in pieces would be a message for each, and a text a part for each."""
    writer = new()
    writer.at("2026-01-01T00:00:01Z")
    for piece in ("he", "llo"):
        writer.say("assistant", texts(piece), 3, piece=True)
        writer.at("2026-01-01T00:00:02Z")
    writer.say("assistant", [call("ls")], 4, joined=True)
    writer.say("assistant", texts("next"), 5)
    session = writer.done()
    assert [message.parts for message in messages_of(session)] == [
        (Text("hello"), ToolCall("call-1", "ls", {})),
        (Text("next"),),
    ]
    assert [draft.time[17:19] for draft in session.drafts] == ["01", "02"]
    assert [record.source for record in of_kind(session, MessageRecord)] == ["lines 3, 4", "line 5"]


def test_calls_without_ids_meet_their_results_by_name_and_order() -> None:
    """A result at another's call is a wrong conversation."""
    writer = new()
    writer.say("assistant", [call("a"), call("b"), call("a"), call("c", call_id="own")], 1)
    for name, text in (("b", "of b"), ("a", "first a"), ("", "second a")):
        writer.result("", text, 2, name=name)
    writer.result("own", "of c", 3)
    (answer, results) = messages_of(writer.done())
    assert [part.id for part in answer.parts if isinstance(part, ToolCall)] == ["call-1", "call-2", "call-3", "own"]
    assert [(part.call_id, part.name) for part in results.parts if isinstance(part, ToolResult)] == [
        ("call-2", "b"), ("call-1", "a"), ("call-3", "a"), ("own", "c"),
    ]  # fmt: skip


def test_another_branch_takes_back_the_one_before() -> None:
    """Both branches in a row would be a conversation that nobody had."""
    writer = new()
    for entry, parent in (("1", ""), ("2", "1"), ("3", "2"), ("4", "1"), ("5", "4"), ("6", "lost")):
        writer.branch(entry, parent, int(entry))
        writer.say("user" if int(entry) % 2 else "assistant", texts(entry), int(entry))
    session = writer.done()
    assert [
        (at, body.first, body.last) for at, body in enumerate(bodies_of(session), 1) if isinstance(body, Decision)
    ] == [(4, 2, 3)]
    assert [warning.lost for warning in session.warnings] == ["nothing"]


def test_figures_are_sums_and_minimums() -> None:
    """Tokens from a cache that the program counts apart were read as well; a figure that is missing is not zero."""
    writer = new()
    keys = {"input": "input cache.read", "output": "output", "cached": "cache.read"}
    writer.usage({"input": 10, "output": 3, "cache": {"read": 90}}, keys, vendor="anthropic", cost=0.25, model="m")
    writer.usage({"input": 10}, keys)
    for nothing in ({}, None, {"input": 0, "output": 0}, {"input": "ten"}):
        writer.usage(nothing, keys)
    first, second = of_kind(writer.done(), UsageRecord)
    assert (first.provider, first.model, first.usage.input, first.usage.cached) == ("anthropic", "m", 100, 90)
    assert (first.usage.charged, first.usage.incomplete) == (Decimal("0.25"), False)
    assert (second.provider, second.usage.input, second.usage.incomplete) == ("openai-chat", 10, True)


def test_what_a_handler_does_not_read_is_kept_and_named_once() -> None:
    """A newer version of a program may say something in a field that nobody reads."""
    writer = new(envelope=("type",))

    def said(writer: SessionWriter, entry: Fields, line: int) -> None:
        writer.say("user", texts(entry.text("text"), *(each.text("a") for each in entry.each("list"))), line)

    entries = [
        {"type": "said", "text": "x", "content": "two words", "size": 3, "list": [{"a": "y", "output": "z"}, 5]},
        {"type": "said", "text": "x", "content": "more words", "empty": []},
        {"type": "said", "other": "of several words"},
        {"type": "known", "content": "two words"},
        {"type": "unknown", "content": "two words"},
        {"type": "unknown", "n": 1},
    ]
    for line, entry in enumerate(entries, 1):
        writer.take(Fields(entry), line, str(entry["type"]), {"said": said, "known": None})
    session = writer.done()
    assert [(warning.line, warning.message, warning.lost, warning.count) for warning in session.warnings] == [
        (1, "not read: `content` of an entry of type 'said' (2 times)", "part", 2),
        (1, "not read: `list[].output` of an entry of type 'said'", "part", 1),
        (3, "not read: `other` of an entry of type 'said'", "part", 1),
        (5, "not read: an entry of type 'unknown'", "entry", 1),
        (6, "not read: an entry of type 'unknown'", "nothing", 1),
    ]
    notes = [note.data for note in of_kind(session, Note)]
    assert notes[0] == {"content": "two words", "size": 3, "list[0].output": "z", "list[1]": 5}
    assert notes[3:] == [{"content": "two words"}] * 2 + [{"n": 1}]


def test_a_session_names_its_program_and_folder() -> None:
    """A listing of sessions by agent or by folder would leave out those of newer formats."""
    writer = SessionWriter(Transcript(b""), "test", PROVIDER)
    writer.facts("session", {"cwd": "/w", "empty": ""})
    writer.facts("session", {"cwd": "/w"})
    drafts = writer.done().drafts
    assert origin_of([Record(n, "", draft.body) for n, draft in enumerate(drafts, 1)]) == ("test", "/w")
    assert len(drafts) == 2


def test_an_interrupted_answer_is_a_partial_one() -> None:
    """Half an answer as a whole one would be sent back to the model as its own words."""
    writer = new()
    writer.say("assistant", [*thoughts("hm", PROVIDER.name), *texts("half")], 1)
    writer.flush("the user stopped it")
    (answer,) = of_kind(writer.done(), PartialAnswer)
    assert (text_of(answer.message), answer.reason) == ("half", "the user stopped it")


PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: b.txt\n+new\n*** End Patch\n"


def changes(*runs: tuple[ToolCall, str], outcome: Any = "ok", **more: Any) -> list[tuple[str, str, bool, bool]]:
    """The changed files of calls with these results: path, what happened, and whether the contents are known."""
    writer = new(**more)
    for each, said in runs:
        writer.say("assistant", [each])
        if not more:
            writer.result("", said, outcome=outcome)
    writer.say("user", texts("go on"))
    session: Imported = writer.done()
    return [(c.path, c.action, bool(c.before), bool(c.after)) for c in of_kind(session, FileChange)]


PATCHED = [("a.txt", "modified", False, False), ("b.txt", "created", False, True)]
WRITE = call("Write", {"file_path": "a.txt", "content": "one\n"})
EDIT = call("str_replace_editor", {"command": "str_replace", "path": "a.txt", "old_str": "one", "new_str": "two"})


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        ([(WRITE, "Created the file")], [("a.txt", "created", False, True)]),
        ([(WRITE, "done")], [("a.txt", "modified", False, True)]),
        ([(WRITE, "done"), (EDIT, "done")], [("a.txt", "modified", False, True), ("a.txt", "modified", True, True)]),
        ([(EDIT, "done")], [("a.txt", "modified", False, False)]),
        ([(call("delete_file", {"path": "a.txt"}), "done")], [("a.txt", "deleted", False, False)]),
        ([(call("apply_patch", {"input": PATCH}), "")], PATCHED),
        ([(call("ApplyPatch", PATCH), "")], PATCHED),
        ([(ToolCall("c", "ApplyPatch", PATCH), "")], PATCHED),
        ([(call("edit_file", {"target_file": "a.txt", "code_edit": "..."}), "")], PATCHED[:1]),
        ([(call("Read", {"path": "a.txt"}), "one"), (call("view", {"path": "a", "content": "x"}), "")], []),
        ([(call("Write", {"file_path": 5, "content": "x"}), ""), (call("Edit", []), "")], []),
    ],
)  # fmt: skip
def test_the_arguments_of_a_call_tell_what_it_changed(runs: Any, wanted: Any) -> None:
    """A session without its edits answers `diff` with nothing."""
    assert changes(*runs) == wanted
    assert changes(*runs, is_silent=True) in (wanted, [(path, "modified", *more) for path, _, *more in wanted])
    assert changes(*runs, outcome="failed") == []


def test_content_of_any_shape_is_shown() -> None:
    """A result in the blocks of MCP or of an API, or as bare JSON, would be empty."""
    blobs: dict[str, bytes] = {}

    def blob(data: bytes) -> str:
        blobs[sha256_hex(data)] = data
        return sha256_hex(data)

    image = Media("image", "image/png", sha256_hex(b"png"), 3)
    assert shown("a", blob) == (Text("a"),) and shown(None, blob) == shown("", blob) == shown([], blob) == ()
    mcp = [{"type": "text", "text": "a"}, {"type": "image", "data": "cG5n", "mimeType": "image/png"}]
    anthropic = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}}
    chat = {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}
    assert shown(mcp, blob) == (Text("a"), image)
    assert shown([anthropic, chat, "b"], blob) == (image, image, Text("b"))
    assert shown([{"type": "image_url", "image_url": "https://x/y.png"}], blob) == (
        Media("image", url="https://x/y.png"),
    )
    assert shown({"n": [1]}, blob) == (Text('{"n":[1]}'),)
    assert shown([{"type": "odd"}, {"type": "text", "text": "a"}], blob) == (
        Text('[{"type":"odd"},{"type":"text","text":"a"}]'),
    )
    assert blobs == {sha256_hex(b"png"): b"png"}
    assert called("c", "f", '{"a": 1}') == ToolCall("c", "f", {"a": 1}, raw='{"a": 1}')
    assert called("c", "f", '{"a":').raw == '{"a":'
    assert called("c", "f", {"a": float("nan")}).arguments is None
    assert Message("assistant", thoughts("", "x")) == Message("assistant")


def test_a_call_whose_arguments_have_another_name_is_told_beside_a_text() -> None:
    """What the message says otherwise would hide that a call lost its arguments."""
    writer = new()
    entry = Fields({"parts": [{"type": "text", "text": "I look."}, {"type": "call", "payload": {"path": "a b"}}]})
    kinds: dict[str, Any] = {
        "text": lambda block: texts(block.text("text")),
        "call": lambda block: [call("ls", block.get("args"))],
    }
    writer.take(
        entry, 1, "message", {"message": lambda w, e, n: w.say("assistant", w.parts_of(e.each("parts"), kinds, n))}
    )
    assert [warning.message for warning in writer.done().warnings] == ["not read: `payload` of a block of type 'call'"]
