"""`turnlog visualize`: a page or a picture of a trajectory, from a file or a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Command
from navigating import navigation
from pages import Page, strange
from turnlog.tokens.dimensions import dimensions


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """The file of a trajectory of two steps."""
    made = navigation(2)
    made.answer("At the left.")
    made.trajectory.save(tmp_path / "run.json")
    return tmp_path / "run.json"


def test_a_file_and_its_session_have_the_same_page(turnlog: Command, run_file: Path) -> None:
    """A trajectory is shown without a store, and the same from a store into which it was imported."""
    shown = turnlog("visualize", str(run_file))
    assert (shown.code, shown.err) == (0, f"{run_file}: trajectory\n")
    assert strange(Page(shown.out), drawn=True) == [] and shown.out.count('class="step"') == 2
    imported = turnlog("import", str(run_file))
    assert imported.code == 0 and "(trajectory, 6 messages" in imported.out
    assert "unchanged" in turnlog("import", str(run_file)).out
    name = imported.out.split()[1]
    assert turnlog("visualize", name, "-o", "page.html").code == 0
    assert (run_file.parent / "page.html").read_text("utf-8") == shown.out
    assert "the image of step 1" in shown.out
    assert "no longer that of 1" in turnlog("visualize", name, "--max-history-images", "0").out


def test_a_picture_is_written_to_a_file(turnlog: Command, run_file: Path) -> None:
    """The name of the file says what is wanted; `--format` says it where the name does not."""
    pytest.importorskip("PIL")
    for words in (("-o", "a.png"), ("--format", "png", "--output", "b")):
        assert turnlog("visualize", str(run_file), *words).code == 0
    assert dimensions((run_file.parent / "a.png").read_bytes()) == (1600, 1280)
    assert (run_file.parent / "a.png").read_bytes() == (run_file.parent / "b").read_bytes()


def test_what_cannot_be_shown(turnlog: Command, run_file: Path) -> None:
    """Each mistake is one line that says what to do; a damaged file is shown as far as it goes, with exit code 1 only
    for images that the page lacks."""
    missing = turnlog("visualize", "nowhere.json")
    assert missing.code == 4 and "no such file" in missing.err
    same = turnlog("visualize", str(run_file), "-o", str(run_file))
    assert same.code == 2 and "is the file to show" in same.err
    run_file.with_name("text.txt").write_text("Hello")
    assert turnlog("visualize", "text.txt").code == 2
    run_file.write_text(run_file.read_text()[:-200])
    cut = turnlog("visualize", str(run_file))
    assert cut.code == 0 and cut.out.count('class="step"') == 1 and "the JSON is damaged" in cut.err
    folder = turnlog("visualize", str(run_file), "-o", str(run_file.parent))
    assert folder.code == 2 and "is a folder" in folder.err
