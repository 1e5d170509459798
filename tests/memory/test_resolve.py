"""What "that file" and "it" stand for: what was named last and fits, or nothing."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from real_transcripts import imported, records_of
from turnlog.log.messages import Message, Text, ToolCall
from turnlog.memory import ENGLISH, Candidate, Memory
from turnlog.stores import MemoryStore
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories

LABELS = Path(__file__).parent.parent.parent / "bench" / "quality" / "references.jsonl"


@pytest.fixture
def session() -> turnlog.Session:
    """A session that read two files, edited one of them and ran a test that failed."""
    made = turnlog.open("s", store=MemoryStore())
    made.user("Fix `parse_date`, see https://example.com/issue/12. Work on branch feature/dates.")
    steps = (
        ("read_file", {"path": "src/app/views.py"}, "     1\timport dates", "ok"),
        ("read_file", {"path": "src/app/dates.py"}, "     1\timport re", "ok"),
        ("edit_file", {"path": "src/app/dates.py", "old": "a", "new": "b"}, "done", "ok"),
        ("bash", {"command": "pytest tests/test_dates.py"}, "ValueError: bad date", "failed"),
    )
    for n, (tool, arguments, result, outcome) in enumerate(steps):
        call = ToolCall(f"c{n}", tool, arguments)
        made.add(Message("assistant", (call,)))
        made.tool_result(call, result, outcome=outcome)  # type: ignore[arg-type]
    return made


def first(found: list[Candidate]) -> str:
    return str(found[0].entity) if found else "none"


@pytest.mark.parametrize(
    ("reference", "said", "meant"),
    [
        ("the error", "", "error:ValueError: bad date"),
        ("that command", "", "command:pytest tests/test_dates.py"),
        ("the test file", "", "file:tests/test_dates.py"),
        ("the branch", "", "branch:feature/dates"),
        ("this link", "", "url:https://example.com/issue/12"),
        ("run it", "", "command:pytest tests/test_dates.py"),
        ("it", "Please fix it", "error:ValueError: bad date"),
        ("that file", "Look at src/app/models.py. What is in that file", "file:src/app/models.py"),
        ("it", "`read_rows` is slow. Can you make it faster", "none"),
        ("it", "`read_rows` calls `split`. Then it joins", "symbol:read_rows"),
        ("it", "I see `read_rows` now. Let me search for it", "symbol:read_rows"),
        ("the URL", "Please visit the URL below: https://example.com/login", "url:https://example.com/login"),
        ("it", "It seems that it is obvious", "none"),
        ("these files", "", "none"),
        ("the user", "The user wants dates", "none"),
        ("this type", "this type of repository", "none"),
        ("that file", "The plan is written to a markdown file. Who reads that file", "none"),
        ("the commit", "the commit message", "none"),
        ("the first one", "It may be HAT136 or HAT039. I take the first one", "id:HAT136"),
        ("the second one", "It may be HAT136 or HAT039. I take the second one", "id:HAT039"),
        ("the weather", "", "none"),
    ],
)
def test_references(session: turnlog.Session, reference: str, said: str, meant: str) -> None:
    """A program that acts on another file, or on one where none was meant, does harm."""
    assert first(session.memory.resolve(reference, said)) == meant


def test_candidates_say_why(session: turnlog.Session) -> None:
    """Without reasons and an order, nobody can tell a sure answer from a guess."""
    found = session.memory.resolve("that file")
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len(found) > 1 and all(one.reasons for one in found)
    assert {str(one.entity) for one in found} >= {"file:src/app/dates.py", "file:src/app/views.py"}


def test_another_language_is_a_table(session: turnlog.Session) -> None:
    """A language that needs other code, and not only another table, fails here."""
    german = ENGLISH.__class__(
        **{
            **{name: getattr(ENGLISH, name) for name in ENGLISH.__struct_fields__},
            "things": {"fehler": ENGLISH.things["error"], "datei": ENGLISH.things["file"]},
            "pronouns": frozenset({"es", "sie", "ihn"}),
            "pointers": frozenset({"diese", "dieser", "die", "der"}),
        }
    )
    assert first(session.memory.resolve("der Fehler", language=german)) == "error:ValueError: bad date"
    assert session.memory.resolve("the error", language=german) == []


@given(
    damaged_histories(), st.sampled_from(["it", "that file", "the first one", "the error", "run it", "()", "x" * 99])
)
@settings(max_examples=examples(40, 1_000))
def test_whatever_is_asked_is_answered(history: History, reference: str) -> None:
    """A reference in a damaged conversation that raises, or differs the second time, fails here."""
    session = turnlog.open("s", store=MemoryStore())
    for message in history.messages:
        session.add(message)
    texts = [part.text for message in history.messages for part in message.parts if isinstance(part, Text)]
    for said in ("", *texts[-2:]):
        found = session.memory.resolve(reference, said)
        assert found == Memory.of(session.history()).resolve(reference, said)


@pytest.mark.slow
def test_labelled_references(shared: Path) -> None:
    """Rules that resolve fewer of the labelled references than before fail here. `bench/run.py memory.references` says
    which."""
    lines = map(json.loads, LABELS.read_text("utf-8").splitlines())
    wanted = [one for one in lines if one["half"] in (1, 2)]  # the others were labelled after the rules were made
    folders = sorted({one["file"].split("/")[0] for one in wanted})
    logs = {}
    for path, session in imported(shared, folders):
        logs[path.relative_to(shared / "data").as_posix(), session.session_id] = records_of(session.drafts)
    right = 0
    for one in wanted:
        log = logs[one["file"], one["session"]]
        message = log[one["record"] - 1].message
        assert message is not None
        text = next(part.text for part in message.parts if isinstance(part, Text))
        assert sha256(text.encode()).hexdigest().startswith(one["hash"])
        said = text[: one["start"] + len(one["reference"])]
        found = Memory.of(log[: one["record"] - 1]).resolve(one["reference"], said)
        right += _agree(one["entity"], first(found))
    assert right >= 0.85 * len(wanted)


def _agree(label: str | None, found: str) -> bool:
    """Whether both name the same thing; either may name a file by a longer path."""
    if label is None or found == "none":
        return label is None and found == "none"
    (kind, _, value), (other, _, told) = label.partition(":"), found.partition(":")
    left, right = (" ".join(one.removeprefix("~").split()) for one in (value, told))
    return kind == other and (left.endswith(right) or right.endswith(left) or right in left)
