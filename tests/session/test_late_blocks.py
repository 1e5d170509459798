"""Late blocks: sections that are told behind what the user said."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from test_prompt_sections import TARGETS

import turnlog
from judging import errors_of
from turnlog.log.records import Decision
from turnlog.prompt import Section, When

TARGET = TARGETS[0]


class Files:
    """What changes from turn to turn."""

    now = "app.py"

    def __call__(self) -> str:
        """The text of the section."""
        return self.now


def _opened(files: Files, target: turnlog.Target = TARGET, cap: int = 0) -> turnlog.Session:
    session = turnlog.open("s", store=":memory:", target=target)
    session.prompt.add(Section("base", "Contract."), Section("files", files, place="late", cap=cap))
    return session


def _blocks(session: turnlog.Session) -> list[str]:
    said = (part for shown in session.request().view for part in shown.message.parts)
    return [part.text for part in said if isinstance(part, turnlog.Text) and part.text.startswith("[files")]


def _turns(session: turnlog.Session, files: Files, *names: str) -> None:
    for name in names:
        files.now = name
        session.user("Go on. " + "word " * 60)
        session.request()
        session.assistant("Done. " * 10)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_block_stays_and_a_newer_one_is_appended(oracle: ModuleType, target: turnlog.Target) -> None:
    """A block that moves with each turn, or one that is told again although it is the same, moves the prefix."""
    files = Files()
    session = _opened(files, target)
    for name in ("app.py", "app.py", "test.py"):
        files.now = name
        session.user("Go on.")
        request = session.request()
        assert errors_of(oracle, target, request.body) == []
        assert request.cache is None or request.cache.shared == request.cache.previous
        session.assistant("Done.")
    assert _blocks(session) == ["[files, as of now:]\napp.py", "[files, as of now:]\ntest.py"]


def test_a_decision_leaves_only_the_newest() -> None:
    """Old blocks, which never leave as system text, fill the window; or the newest leaves with the turn it came in."""
    files = Files()
    session = _opened(files)
    _turns(session, files, "a", "b", "c", "c", "c", "c")
    session.compact(keep=1)
    assert _blocks(session) == ["[files, as of now:]\nc"]
    left = [account for account in session.explain().accounts.values() if account.fate == "left out"]
    decisions = [record.n for record in session.history() if isinstance(record.body, Decision)]
    assert [account.by for account in left] == [(decisions[-1],)] * 2
    _turns(session, files, "d")
    session.compact(keep=1)
    assert _blocks(session) == ["[files, as of now:]\nd"]
    session.undo()
    assert _blocks(session) == ["[files, as of now:]\nc", "[files, as of now:]\nd"]


def test_blocks_alone_are_reason_enough() -> None:
    """A conversation that is small beside its late blocks: it would not fit any more, and nothing could leave."""
    files = Files()
    session = _opened(files)
    session.configure(budget=turnlog.Budget(max_tokens=3_000))
    for n in range(20):
        files.now = f"{n} " + "file.py " * 200
        session.user("Go on.")
        assert session.request().tokens <= 3_000
        session.assistant("Done.")
    assert any(record.body.action == "fold" for record in session.history() if isinstance(record.body, Decision))
    assert [shown.message.role for shown in session.view()].count("user") == 20


def test_a_block_that_no_longer_applies_says_so_and_leaves() -> None:
    """A model that goes on with what no longer holds."""
    files = Files()
    session = _opened(files)
    _turns(session, files, "a", "", "")
    assert _blocks(session) == ["[files, as of now:]\na", "[files: no longer applies]"]
    session.compact(keep=1)
    assert _blocks(session) == []
    _turns(session, files, "b")
    session.prompt.remove("files")
    session.user("And?")
    assert _blocks(session) == ["[files, as of now:]\nb", "[files: no longer applies]"]


def test_a_rewind_tells_a_block_again() -> None:
    """A block that was taken back, and is not told again as its text is the last one that was told."""
    files = Files()
    session = _opened(files)
    _turns(session, files, "a", "b")
    session.rewind(turns=1)
    assert _blocks(session) == ["[files, as of now:]\na"]
    _turns(session, files, "b")
    assert _blocks(session) == ["[files, as of now:]\na", "[files, as of now:]\nb"]


def test_a_late_section_has_conditions_and_a_cap() -> None:
    """Conditions and caps that count only at the beginning."""
    session = _opened(Files())
    session.prompt.add(Section("hint", "Use git.", place="late", when=When(label="git"), cap=2))
    session.user("One")
    assert not any("hint" in str(shown.message) for shown in session.view())
    session.prompt.label("git")
    session.user("Two")
    assert "[hint, as of now:]\nUse\n[The section 'hint' is cut here" in session.view()[-1].message.parts[0].text


def test_without_its_function_a_block_stays(tmp_path: Path) -> None:
    """A program that opens the session to look at it, and ends what another told."""
    files = Files()
    with turnlog.open("s", store=tmp_path / "s.db", target=TARGET) as session:
        session.prompt.add(Section("files", files, place="late"))
        _turns(session, files, "a")
        before = session.request().json()
    with turnlog.open("s", store=tmp_path / "s.db") as again:
        assert again.request().json() == before
        again.user("More")
        assert _blocks(again) == ["[files, as of now:]\na"]
        assert [report.left_out for report in again.prompt.explain()] == [""]


def test_refresh_tells_what_changed_within_a_turn() -> None:
    """A program that has no turns of its own, such as one that takes messages from elsewhere."""
    files = Files()
    session = _opened(files)
    session.prompt.refresh()
    assert _blocks(session) == []  # nothing was said behind which it could stand
    session.extend([turnlog.Message("user", (turnlog.Text("Hi"),))])
    session.prompt.refresh()
    session.prompt.refresh()
    assert _blocks(session) == ["[files, as of now:]\napp.py"]
