"""Recording file changes: one by one, and by looking at a folder before and after."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from turnlog import Session
from turnlog.diffs import file_diff, net_changes, patch_lines
from turnlog.errors import InputError
from turnlog.filewatch import FileRecorder, LeftOut
from turnlog.records import FileChange, Note
from turnlog.stores import MemoryStore
from turnlog.testing.edits import File, git_judges, has_git


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


@pytest.fixture
def session(store: MemoryStore) -> Session:
    """A session in it."""
    return turnlog.open("s", store=store)


def changes_of(session: Session) -> list[tuple[str, str, str]]:
    """The changes on record: action, path, old path."""
    bodies = [record.body for record in session.history()]
    return [(body.action, body.path, body.old_path) for body in bodies if isinstance(body, FileChange)]


def write(root: Path, **files: bytes) -> None:
    """Write files; `__` in a name is `/`."""
    for name, data in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_changes_are_recorded_with_both_contents(session: Session, store: MemoryStore, tmp_path: Path) -> None:
    """A change whose contents are not kept cannot be shown or taken back."""
    files = session.files(tmp_path)
    made = files.record("a.txt", None, b"one\n", call_record=7)
    assert made is not None
    assert isinstance(made.body, FileChange)
    assert (made.body.action, made.body.call_record, store.get_blob(made.body.after)) == ("created", 7, b"one\n")
    files.record(tmp_path / "a.txt", b"one\n", b"two\n")
    files.record("sub/b.txt", b"two\n", b"two\n", old_path="a.txt")
    files.record("gone", b"x", None)
    assert files.record("same", b"x", b"x") is None
    assert changes_of(session) == [
        ("created", "a.txt", ""),
        ("modified", "a.txt", ""),
        ("renamed", "sub/b.txt", "a.txt"),
        ("deleted", "gone", ""),
    ]


@pytest.mark.parametrize("path", ["../a", "/elsewhere/a", ".git/config", "", "."])
def test_paths_outside_are_refused(session: Session, tmp_path: Path, path: str) -> None:
    """Recorded, such a path would be applied elsewhere than it was made."""
    with pytest.raises(InputError, match="inside of"):
        session.files(tmp_path).record(path, None, b"")
    with pytest.raises(InputError, match="bytes"):
        session.files(tmp_path).record("a", None, "text")  # type: ignore[arg-type]
    assert session.history() == []


def test_a_watch_finds_what_changed(session: Session, store: MemoryStore, tmp_path: Path) -> None:
    """Each kind of change, a mode, and what is to be passed over."""
    write(tmp_path, a=b"1\n", moves=b"content\n", goes=b"x", run=b"#!\n", same=b"=", node_modules__x=b"1")
    (tmp_path / "run").chmod(0o644)
    with session.files(tmp_path) as files, files.watch() as watched:
        write(tmp_path, a=b"2\n", new=b"", same=b"=", node_modules__x=b"2", deep__er=b"\0\xff")
        (tmp_path / "moves").rename(tmp_path / "moved")
        (tmp_path / "goes").unlink()
        (tmp_path / "run").chmod(0o755)
        os.symlink(tmp_path, tmp_path / "link")
    assert changes_of(session) == [
        ("modified", "a", ""),
        ("created", "deep/er", ""),
        ("deleted", "goes", ""),
        ("renamed", "moved", "moves"),
        ("created", "new", ""),
        ("modified", "run", ""),
    ]
    assert [record.n for record in watched.records] == [1, 2, 3, 4, 5, 6]
    if has_git():
        diffs = [file_diff(change, store.get_blob) for change in net_changes(session.history())]
        patch = b"".join(line for diff in diffs if diff for line in patch_lines(diff))
        before = {"a": File(b"1\n"), "moves": File(b"content\n"), "goes": File(b"x"), "run": File(b"#!\n")}
        after = {
            "a": File(b"2\n"),
            "moved": File(b"content\n"),
            "deep/er": File(b"\0\xff"),
            "new": File(b""),
            "run": File(b"#!\n", executable=True),
        }
        assert git_judges(before, after, patch) == ""


def test_a_write_within_the_same_time_stamp_is_seen(session: Session, tmp_path: Path) -> None:
    """Same size, same time: only the content tells. Tools that restore times do this too."""
    write(tmp_path, a=b"1")
    status = (tmp_path / "a").stat()
    with session.files(tmp_path) as files, files.watch():
        write(tmp_path, a=b"2")
        os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert changes_of(session) == [("modified", "a", "")]


def test_a_second_watch_begins_where_the_first_ended(session: Session, tmp_path: Path) -> None:
    """What the first has on record must not come again, nor contents from before it."""
    write(tmp_path, a=b"1")
    with session.files(tmp_path) as files:
        with files.watch():
            write(tmp_path, a=b"2")
        with files.watch() as nothing:
            pass
        with files.watch() as third:
            write(tmp_path, a=b"3")
    assert (nothing.records, len(third.records)) == ((), 1)
    first, second = (record.body for record in session.history())
    assert isinstance(first, FileChange)
    assert isinstance(second, FileChange)
    assert first.after == second.before


def test_what_is_too_large_is_left_out_and_said(session: Session, store: MemoryStore, tmp_path: Path) -> None:
    """Left out without a word, a file would pass for unchanged; unchanged, it is not to be mentioned."""
    write(tmp_path, big=b"1" * 20, quiet=b"2" * 20, small=b"3")
    recorder = FileRecorder(tmp_path, session._append, store.put_blob, file_limit=10)
    with recorder, recorder.watch() as watched:
        write(tmp_path, big=b"1" * 21, small=b"4")
    assert watched.left_out == (LeftOut("big", "20 bytes, the limit is 10"),)
    assert changes_of(session) == [("modified", "small", "")]
    (note,) = (record.body for record in session.history() if isinstance(record.body, Note))
    assert (note.topic, note.data) == ("files", [{"path": "big", "why": "20 bytes, the limit is 10"}])


def test_changes_are_on_record_when_the_work_fails(session: Session, tmp_path: Path) -> None:
    """A turn that ends in an exception has changed files all the same."""

    def fail(files: FileRecorder) -> None:
        with files.watch():
            write(tmp_path, a=b"1")
            raise KeyError

    with session.files(tmp_path) as files, pytest.raises(KeyError):
        fail(files)
    assert changes_of(session) == [("created", "a", "")]
