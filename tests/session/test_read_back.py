"""What a view left out can be read back, by people and by the model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.errors import InputError
from turnlog.log.messages import Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from turnlog.providers import PROVIDERS
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CHAT = turnlog.target("openai-chat", "gpt-4o")


def long_session(tmp_path: Path) -> turnlog.Session:
    session = turnlog.open(
        "s", target=CHAT, store=tmp_path / "a.db", budget=1_500, settings=turnlog.Settings(strategy="mask")
    )
    session.user("Find the port.")
    for n in range(12):
        call = ToolCall(f"c{n}", "read", {"path": f"f{n}.py"})
        session.add(turnlog.Message("assistant", (call,)))
        session.tool_result(call, "\n".join(f"line {i} of f{n}" for i in range(1, 60)))
    session.request()
    return session


def test_whatever_is_left_out_reads_back_in_full(tmp_path: Path) -> None:
    """A masked result that nobody can read again is lost."""
    with long_session(tmp_path) as session:
        masked = [shown for shown in session.view() if shown.treatment == "masked"]
        assert masked
        for shown in masked:
            n = shown.records[0]
            original = next(record.message for record in session.history() if record.n == n)
            assert original is not None
            result = original.parts[0]
            assert isinstance(result, ToolResult)
            text = "".join(part.text for part in result.parts if isinstance(part, turnlog.Text))
            assert session.read_back(n) == text
            assert session.read_back(n, lines=(2, 3)) == "\n".join(text.split("\n")[1:3])


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """A model that asks for a wrong record needs to be told, not to be given silence."""
    with long_session(tmp_path) as session:
        for n, lines in ((0, None), (10_000, None), (True, None), (3, (5, 2)), (3, (99, 100)), (3, (1,)), (3, "12")):
            with pytest.raises(turnlog.InputError):
                session.read_back(n, lines=lines)  # type: ignore[arg-type]


def test_a_model_reads_back_by_itself(tmp_path: Path) -> None:
    """The tool's call is answered with the record's own text; a call that asks for nonsense with what is wrong."""
    with long_session(tmp_path) as session:
        session.configure(tools=[turnlog.session.READ_BACK])
        good = ToolCall("r1", "read_back", {"record": 5, "first_line": 2, "last_line": 2})
        bad = ToolCall("r2", "read_back", {"record": "five"})
        session.add(turnlog.Message("assistant", (good, bad)))
        answers = [session.answer_read_back(call).message for call in (good, bad)]
        results = [answer.parts[0] for answer in answers if answer is not None]
        assert [
            (result.outcome, result.parts[0].text)
            for result in results  # type: ignore[union-attr]
        ] == [
            ("ok", "line 2 of f0"),
            ("failed", "give `record`, the number of a record, as an integer from 1 on"),
        ]
        assert session.request().body["tools"][0]["function"]["name"] == "read_back"
        with pytest.raises(InputError, match="calls the tool 'bash'"):
            session.answer_read_back(ToolCall("r3", "bash", {"record": 5}))


def test_numbers_are_taken_as_models_write_them() -> None:
    """A model that writes 5.0 or "5" was told to give an integer, and gave the same again; what is no number must not
    be taken for one, or end in a bare exception."""
    store = MemoryStore()
    session = Session(store, store.create("s"))
    for n in range(1, 7):
        session.user(f"first of {n}\nsecond of {n}\nthird of {n}")
    session.add(Message("assistant", (ToolCall("r1", "read_back", {}),)))

    def answered(number: object, line: object = 1) -> Message | None:
        asked = {"record": number, "first_line": line, "last_line": line}
        return session.answer_read_back(ToolCall("r1", "read_back", asked)).message

    read = Message("user", (ToolResult("r1", "read_back", (Text("second of 5"),)),))
    for number, line in ((5.0, 2), ("5", "2"), (" 5 ", 2.0)):
        assert answered(number, line) == read
    for named in ("#5", "(#5)", "[5]", "[#5]", "(5)", "record 5", "Record #5", " record [5] "):
        assert answered(named, 2) == read
    told = Text("give `record`, the number of a record, as an integer from 1 on")
    unclear = (
        "#5 to #6",
        "records 5",
        "[5",
        "5)",
        "(5]",
        "-5",
        "#0",
        "#",
        "record",
        "##5",
        "#5.",
        "message 5",
        "#" + "5" * 19,
    )
    for wrong in (True, 5.5, "5.0", "five", float("inf"), float("nan"), [5], *unclear):
        assert answered(wrong) == Message("user", (ToolResult("r1", "read_back", (told,), "failed"),))


def test_a_record_of_media_says_so() -> None:
    """An empty answer, of which a model can only think that there was nothing."""
    store = MemoryStore()
    session = Session(store, store.create("s"))
    shot = session.media(b"\x89PNG", "image/png", name="shot.png")
    alone, nameless = session.user([shot]), session.user([session.media(b"\x89PNG", "image/png")])
    result = session.add(Message("user", (ToolResult("c1", "look", (Text("it shows"), shot)),)))
    named = "[image shot.png: not text, it cannot be read back]"
    assert session.read_back(alone.n) == named
    assert session.read_back(nameless.n) == "[image: not text, it cannot be read back]"
    assert session.read_back(result.n) == session.read_back(result.n, lines=(1, 2)) == f"it shows\n{named}"


def test_media_cannot_be_read_back_by_a_model() -> None:
    """A model that was promised every record, asked for an image, and was told that it has what it asked for."""
    store = MemoryStore()
    session = Session(store, store.create("s"))
    shot = session.media(b"\x89PNG", "image/png")
    records = [session.user([shot]), session.add(Message("user", (ToolResult("c1", "look", (shot,)),)))]
    records += [
        session.user(["see", shot]),
        session.add(Message("user", (ToolResult("c2", "look", (Text("a"), shot)),))),
    ]
    records += [session.add(Message("assistant", (ToolCall("c3", "look", {}), shot))), session.user("")]
    outcomes = []
    session.add(Message("assistant", (ToolCall("r", "read_back", {}),)))
    for record in records:
        answer = session.answer_read_back(ToolCall("r", "read_back", {"record": record.n})).message
        assert answer is not None
        [result] = answer.parts
        assert isinstance(result, ToolResult) and result.parts == (Text(session.read_back(record.n)),)
        outcomes.append(result.outcome)
    assert outcomes == ["failed", "failed", "ok", "ok", "ok", "ok"]
    assert "Images and other media have no text and cannot be read back." in turnlog.session.READ_BACK.description


def test_what_only_its_provider_can_read_says_so() -> None:
    """An empty answer for a record of reasoning or of a provider's own items, told as what was asked for; and a result
    with such a part in it that reads as if there had been none."""
    store = MemoryStore()
    session = Session(store, store.create("s"))
    thought, found = Reasoning("openai-responses", encrypted="x"), Opaque("anthropic", "search_result", {"title": "a"})
    alone = session.add(Message("assistant", (thought,)))
    own = session.add(Message("assistant", (Opaque("anthropic", "server_tool_use", {}),)))
    result = session.add(Message("user", (ToolResult("c1", "search", (found,)),)))
    mixed = session.add(Message("user", (ToolResult("c2", "search", (Text("one hit"), found)),)))
    said = session.add(Message("assistant", (thought, Text("It is warm."))))
    named = "[search_result: not text, it cannot be read back]"
    answers = {
        alone.n: ("[reasoning: it cannot be read back]", "failed"),
        own.n: ("[server_tool_use: not text, it cannot be read back]", "failed"),
        result.n: (named, "failed"),
        mixed.n: (f"one hit\n{named}", "ok"),
        said.n: ("It is warm.", "ok"),
    }
    session.add(Message("assistant", (ToolCall("r", "read_back", {}),)))
    for n, (text, outcome) in answers.items():
        answer = session.answer_read_back(ToolCall("r", "read_back", {"record": n})).message
        assert answer == Message("user", (ToolResult("r", "read_back", (Text(text),), outcome),))
        assert session.read_back(n) == text


@pytest.mark.parametrize("provider", [*PROVIDERS])
def test_the_tool_is_declared_as_each_provider_has_it(provider: str) -> None:
    """A declaration in another provider's words would be refused by each."""
    model = {} if provider == "google" else {"model": "m"}
    body = {
        "openai-chat": {"messages": [{"role": "user", "content": "x"}]},
        "openai-responses": {"input": "x"},
        "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
        "google": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
        "google-interactions": {"input": "x"},
    }[provider]
    request = {**model, **body, "tools": [turnlog.read_back_tool(provider)]}
    assert turnlog.check(request, provider, model="m") == []


@given(st.lists(st.text("ab", max_size=8).map(lambda word: word * 300), min_size=1, max_size=5))
def test_long_lines_are_read_in_pieces(lines: list[str]) -> None:
    """A page of minified JSON of which nothing between the two ends that are shown can ever be read."""
    store = MemoryStore()
    text = "\n".join(lines)
    record = Session(store, store.create("s")).user(text)
    session = Session(store, store.info("s"))
    pieces: list[str] = []
    with suppress(InputError):
        while True:
            at = len(pieces) + 1
            pieces.append(session.read_back(record.n, lines=(at, at)))
    assert max(map(len, pieces)) <= 1_000
    assert len(pieces) == sum(max(1, -(-len(line) // 1_000)) for line in lines)
    assert session.read_back(record.n, lines=(1, len(pieces))) == text
    assert "".join(pieces) == text.replace("\n", "")
