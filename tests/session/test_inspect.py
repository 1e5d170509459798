"""What a session says of its own requests, and requests that leave no trace."""

from __future__ import annotations

import msgspec
import pytest

import turnlog
from turnlog.errors import BudgetError
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult, sha256_hex
from turnlog.log.records import Configuration, Decision, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import Target, target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

OURS = target("openai-chat", "gpt-4o")
CLAUDE = target("anthropic", "claude-sonnet-4-5")
TOOLS = [{"name": "read", "description": "Reads a file", "parameters": {"type": "object", "properties": {}}}]
PICTURE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x40\x00\x00\x00\x40IEND"


def turns(count: int) -> list[Message]:
    """Turns in which a tool is called, one of them with an image."""
    said = [Message("system", (Text("Be brief."),))]
    for n in range(count):
        said.append(Message("user", (Text(f"Please look into file {n}."),)))
        said.append(Message("assistant", (ToolCall(f"c{n}", "read", {"path": f"{n}.txt"}),)))
        said.append(Message("user", (ToolResult(f"c{n}", "read", (Text(f"line {n} of it " * 120),)),)))
        said.append(Message("assistant", (Text(f"File {n} is in order."),)))
    image = Media("image", mime="image/png", sha256=sha256_hex(PICTURE), size=len(PICTURE))
    said.insert(2, Message("user", (Text("This is what it looks like."), image)))
    return said


@pytest.fixture
def session() -> Session:
    """A session of 20 turns, about 12,000 tokens, that nothing was decided on."""
    store = MemoryStore()
    store.create("s")
    store.put_blob(PICTURE)
    made = Session(store, store.info("s"))
    made.switch(OURS)
    made.configure(tools=TOOLS)
    made.extend(turns(20))
    return made


@pytest.mark.parametrize("aim", [OURS, CLAUDE], ids=lambda aim: aim.provider)
@pytest.mark.parametrize("strategy", PRESETS)
def test_a_preview_is_the_request_and_leaves_no_trace(session: Session, strategy: str, aim: Target) -> None:
    """A look at the next request that changed the log, or showed another one, would be no look."""
    session.switch(aim)
    before = session.history()
    preview = session.preview(budget=5_000, strategy=strategy)
    assert session.history() == before
    assert session.preview().body == session.preview(budget=1_000_000).body != preview.body
    session.configure(budget=5_000, strategy=strategy)
    session.preview()
    made = session.request()
    assert (made.body, made.cache) == (preview.body, None)
    assert session.preview().edits == made.edits


@pytest.mark.parametrize("budget", [5_000, 100_000])
@pytest.mark.parametrize("marks", [True, False])
def test_a_preview_has_the_marks_of_its_strategy(session: Session, budget: int, marks: bool) -> None:
    """A strategy that was tried said nothing of cache marks: the session's own did."""
    session.switch(CLAUDE)
    session.configure(strategy=msgspec.structs.replace(PRESETS["auto"], cache_marks=not marks))
    tried = msgspec.structs.replace(PRESETS["auto"], cache_marks=marks)
    preview = session.preview(budget=budget, strategy=tried).json()
    session.configure(budget=budget, strategy=tried)
    assert preview == session.request().json() and (b"cache_control" in preview) is marks


@pytest.mark.slow
@pytest.mark.parametrize("aim", [OURS, CLAUDE], ids=lambda aim: aim.provider)
def test_looking_changes_no_figure(session: Session, aim: Target) -> None:
    """What is tried within a small budget has less of a long conversation at hand; the rest was then counted without
    what its messages take beside their own size, as long as no request was made."""
    session.switch(aim)
    for n in range(60):
        calls = [ToolCall(f"{n}-{i}", "read", {"path": f"{n}.txt"}) for i in range(3)]
        results = [Message("user", (ToolResult(call.id, "read", (Text("of it " * 120),)),)) for call in calls]
        session.extend([Message("user", (Text("Go on."),)), Message("assistant", tuple(calls)), *results])
    figures = session.window.tokens, session.window.breakdown().tokens, session.window.prediction
    session.preview(budget=4_000)
    assert (session.window.tokens, session.window.breakdown().tokens, session.window.prediction) == figures


def test_a_preview_that_cannot_fit(session: Session) -> None:
    """A budget below what has to stay would give a request that breaks it."""
    with pytest.raises(BudgetError):
        session.preview(budget=50)


@pytest.mark.parametrize("strategy", ["auto", "mask", "codex", "sliding"])
@pytest.mark.parametrize("aim", [OURS, CLAUDE], ids=lambda aim: aim.provider)
def test_a_dry_run_says_what_a_compaction_then_does(session: Session, strategy: str, aim: Target) -> None:
    """Figures of a dry run that the real one does not keep would be made up."""
    before = session.history()
    tried = session.compact(target=aim, budget=5_000, strategy=strategy, dry_run=True)
    foreseen = session.explain(tried.decisions).accounts
    assert session.history() == before
    done = session.compact(target=aim, budget=5_000, strategy=strategy)
    assert done == tried
    assert session.explain().accounts == foreseen
    recorded = {record.n: record.body for record in session.history() if record.n in done.decisions}
    assert msgspec.json.encode(recorded) == msgspec.json.encode(done.decisions)


@pytest.mark.parametrize("strategy", ["auto", "codex", "graded", "images"])
def test_a_breakdown_adds_up_to_what_requests_are_counted_as(session: Session, strategy: str) -> None:
    """Kinds that leave something out, or count it twice, would hide where tokens go."""
    assert session.window.breakdown().tokens == session.window.tokens
    session.configure(budget=4_000, strategy=strategy)
    session.compact()
    found = session.window.breakdown()
    assert found.tokens == session.window.tokens
    assert found.marks.goal <= found.marks.trigger <= found.marks.limit
    assert found.free == max(0, found.marks.limit - found.tokens)
    assert all(share.tokens > 0 for share in found.shares)


@pytest.mark.parametrize("aim", [OURS, CLAUDE], ids=lambda aim: aim.provider)
def test_what_an_answer_has_to_keep_to_is_counted(session: Session, aim: Target) -> None:
    """A schema of thousands of tokens that is sent and not counted puts requests beyond their budget, as a choice of
    tools does that costs more than none."""
    session.switch(aim)
    bare = session.window.tokens
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(300)}}
    formats = {
        OURS.provider: {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}},
        CLAUDE.provider: {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
    }
    session.configure(**formats[aim.provider], tool_choice={"type": "any"} if aim is CLAUDE else "required")
    assert session.window.tokens == session.window.breakdown().tokens
    assert session.window.tokens > bare + 2_000
    assert session.window.tokens == turnlog.count(session.request().body, model=aim.model, provider=aim.provider).tokens


def test_a_schema_is_counted_in_either_spelling(session: Session) -> None:
    """Google takes its keys in two spellings: what is sent of one was counted of the other only."""
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(300)}}
    sizes = []
    for settings in (
        {"generationConfig": {"responseSchema": schema}},
        {"generation_config": {"response_schema": schema}},
    ):
        session.switch(target("google", "gemini-2.5-pro"))
        session.configure(**settings)
        sizes.append(session.window.tokens - turnlog.count(session.request().body, model="gemini-2.5-pro").tokens)
        session.switch(OURS)
    assert sizes == [0, 0]


def test_a_breakdown_names_tools_images_and_summaries(session: Session) -> None:
    """Each kind has its own line; tokens in the wrong one send a reader the wrong way."""
    kinds = {(share.kind, share.name) for share in session.window.breakdown().shares}
    rest = {"system", "tools", "user", "assistant", "images", "framing"}
    assert kinds == {("tool results", "read"), *((kind, "") for kind in rest)}
    session.compact(keep=1)
    assert "summary" in {share.kind for share in session.window.breakdown().shares}


def test_what_stands_in_is_counted_wherever_it_stands(session: Session) -> None:
    """A summary that stands at its own decision's place, as imported ones do, would be taken to have no size: a
    request could then be larger than its budget."""
    told = Message("user", (Text("what happened before " * 500),))
    store = MemoryStore()
    store.create("s")
    bodies = [Configuration("openai-chat", "gpt-4o"), *map(MessageRecord, turns(2))]
    detail = {"replacement": [msgspec.to_builtins(told)]}
    store.append("s", list(map(Draft, [*bodies, Decision("compact", 1, len(bodies), detail=detail)])))
    counted = Session(store, store.info("s"))
    assert counted.window.tokens > 1_000
    assert counted.window.tokens == counted.window.breakdown().tokens
