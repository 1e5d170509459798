"""Recording file changes: one by one, and by looking at a folder before and after."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import turnlog
from turnlog import Session
from turnlog.errors import InputError
from turnlog.log.records import FileChange, Note
from turnlog.stores import MemoryStore
from turnlog.testing.edits import File, git_judges, has_git
from turnlog.workspace.diff import file_diff, net_changes, patch_lines
from turnlog.workspace.snapshot import Folder
from turnlog.workspace.watch import FileRecorder, LeftOut, Watched


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
    with pytest.raises(InputError, match="is not inside"):
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


def test_a_time_that_was_set_back_hides_nothing(
    session: Session, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cp -p` gives a file another content and the old time; what a file system says of its last change tells."""
    monkeypatch.setattr("turnlog.workspace.snapshot._RACY_NS", -(10**12))  # as if all had been written long ago
    write(tmp_path, a=b"AAA", b=b"BBB", big=b"1" * 20)
    for name in ("a", "b", "big"):
        os.utime(tmp_path / name, (10**9, 10**9))
    times = {name: (tmp_path / name).stat().st_ctime_ns for name in ("a", "big")}
    files = FileRecorder(tmp_path, session._journal.append, store.put_blob, file_limit=10)
    with files, files.watch() as watched:
        while any((tmp_path / name).stat().st_ctime_ns == time for name, time in times.items()):
            shutil.copy2(tmp_path / "b", tmp_path / "a")
            write(tmp_path, big=b"2" * 20)
            os.utime(tmp_path / "big", (10**9, 10**9))
    assert changes_of(session) == [("modified", "a", "")]
    ((path, why),) = ((one.path, one.why) for one in watched.left_out)
    assert (path, why.endswith("so its content may be the same")) == ("big", True)


def test_a_time_that_was_set_back_just_now_hides_nothing(session: Session, store: MemoryStore, tmp_path: Path) -> None:
    """A file with an old time that was written a moment before a look may be written again in that moment: its time is
    no reason not to read it again, and one that is too large to be read may not come by with the same times."""
    write(tmp_path, a=b"AAA", big=b"1" * 20)
    for name in ("a", "big"):
        os.utime(tmp_path / name, (10**9, 10**9))
    assert not Folder(tmp_path, (), 10, 10).look()["a"].stable
    files = FileRecorder(tmp_path, session._journal.append, store.put_blob, file_limit=10)
    write(tmp_path, big=b"2" * 20)
    os.utime(tmp_path / "big", (10**9, 10**9))
    with files, files.watch() as watched:
        write(tmp_path, big=b"3" * 20)
        os.utime(tmp_path / "big", (10**9, 10**9))
    assert [one.path for one in watched.left_out] == ["big"]


def test_files_of_two_folders_stay_apart(session: Session, store: MemoryStore, tmp_path: Path) -> None:
    """Two files of one name made one: a change that nobody made, or none where both changed."""
    write(tmp_path, api__README=b"api 1\n", web__README=b"web 1\n")
    before = {"api/README": File(b"api 1\n"), "web/README": File(b"web 1\n")}
    with session.turn("one", watch=tmp_path / "api"):
        write(tmp_path, api__README=b"api 2\n")
    with session.turn("two", watch=tmp_path / "web"):
        write(tmp_path, web__README=b"api 1\n")
    net = net_changes(session.history())
    assert [(change.action, change.path) for change in net] == [("modified", "api/README"), ("modified", "web/README")]
    if has_git():
        diffs = [file_diff(change, store.get_blob) for change in net]
        patch = b"".join(line for diff in diffs if diff for line in patch_lines(diff))
        after = {"api/README": File(b"api 2\n"), "web/README": File(b"api 1\n")}
        assert git_judges(before, after, patch) == ""


def test_a_folder_in_another_has_the_same_files(session: Session, tmp_path: Path) -> None:
    """One change told as two files, by the name that it has in each folder, or in a folder that has two names."""
    write(tmp_path, real__src__a=b"1")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    with session.turn("one", watch=tmp_path / "real"), session.files(tmp_path / "linked" / "src") as files:
        with files.watch():
            write(tmp_path, real__src__a=b"2")
        files.record("a", b"2", b"3")
        write(tmp_path, real__src__a=b"3")
    assert changes_of(session) == [("modified", "a", ""), ("modified", "a", "")]
    assert [change.path for change in net_changes(session.history())] == ["a"]
    assert [change.path for change in net_changes(session.history(), root=str(tmp_path / "real"))] == ["src/a"]


def test_what_a_watch_passes_over_is_not_denied(session: Session, tmp_path: Path) -> None:
    """A file behind a link, or ignored, that was recorded as made and is there, told as deleted by the watch around."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "outside")
    with session.turn("one", watch=tmp_path / "in") as turn:
        files = turn.files(tmp_path / "in")
        for name in ("link/a", "node_modules/b"):
            (tmp_path / "in" / name).parent.mkdir(exist_ok=True)
            (tmp_path / "in" / name).write_bytes(b"1")
            files.record(name, None, b"1")
        files.record("never made", None, b"1")
    assert changes_of(session) == [
        ("created", "link/a", ""),
        ("created", "node_modules/b", ""),
        ("created", "never made", ""),
        ("deleted", "never made", ""),
    ]


def test_what_a_tool_tells_is_told_of_what_was_before_it(session: Session, tmp_path: Path) -> None:
    """A file that came to be unseen and was then changed by a tool, told as one that had always been there."""
    with session.turn("one", watch=tmp_path) as turn:
        write(tmp_path, a=b"1")
        turn.files(tmp_path).record("a", b"1", b"2")
        write(tmp_path, a=b"2")
    assert changes_of(session)[-1] == ("modified", "a", "")
    assert [(change.action, change.path) for change in net_changes(session.history())] == [("created", "a")]


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_name_that_looks_like_a_windows_path(session: Session, store: MemoryStore, tmp_path: Path) -> None:
    """Shown as another file, and left out of the patch as if it stood elsewhere."""
    with session.turn("one", watch=tmp_path) as turn:
        (tmp_path / "C:\\win").write_bytes(b"1\n")
        turn.files(tmp_path).record("D:\\win", None, b"2\n")
        (tmp_path / "D:\\win").write_bytes(b"2\n")
    net = net_changes(session.history())
    assert [(change.path, change.applies) for change in net] == [("C:\\win", True), ("D:\\win", True)]
    if has_git():
        diffs = [file_diff(change, store.get_blob) for change in net]
        patch = b"".join(line for diff in diffs if diff for line in patch_lines(diff))
        assert git_judges({}, {"C:\\win": File(b"1\n"), "D:\\win": File(b"2\n")}, patch) == ""


def test_what_is_too_large_is_left_out_and_said(session: Session, store: MemoryStore, tmp_path: Path) -> None:
    """Left out without a word, a file would pass for unchanged; unchanged, it is not to be mentioned."""
    write(tmp_path, big=b"1" * 20, quiet=b"2" * 20, small=b"3")
    recorder = FileRecorder(tmp_path, session._journal.append, store.put_blob, file_limit=10)
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


def interrupted(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have others `act` between what the system says of a file and its reading, from here on."""
    walk = Folder.files

    def files(folder: Folder) -> Iterator[tuple[str, os.stat_result | OSError]]:
        for found in walk(folder):
            act()
            yield found

    monkeypatch.setattr(Folder, "files", files)


def test_a_file_that_is_rewritten_while_a_look_reads_it(
    tmp_path: Path, session: Session, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes a file empties it first: what was there would be kept as empty, and a reversed patch lose it."""
    file = tmp_path / "a"
    file.write_bytes(b"one")
    with session.files(tmp_path) as recorder, recorder.watch():
        with monkeypatch.context() as patch:
            file.write_bytes(b"")
            interrupted(patch, lambda: file.write_bytes(b"one"))
            with recorder.watch():
                pass
        file.write_bytes(b"two")
    (change,) = (body for record in session.history() if isinstance(body := record.body, FileChange))
    assert [store.get_blob(name) for name in (change.before, change.after)] == [b"one", b"two"]


def test_files_that_grow_or_go_while_a_look_reads_them(
    tmp_path: Path, session: Session, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fits of a file beyond the limit would be kept as the whole of it; a file that went would be one that cannot
    be read, and its deletion be lost."""
    file = tmp_path / "a"
    file.write_bytes(b"one")
    recorder = FileRecorder(tmp_path, session._journal.append, store.put_blob, file_limit=100)
    with monkeypatch.context() as patch, recorder.watch() as grown:
        interrupted(patch, lambda: file.write_bytes(b"x" * 101))
    assert (changes_of(session), [left.path for left in grown.left_out]) == ([], ["a"])
    file.write_bytes(b"two")
    with monkeypatch.context() as patch, recorder.watch() as gone:
        interrupted(patch, file.unlink)
    assert (changes_of(session), gone.left_out) == ([("deleted", "a", "")], ())
    recorder.close()


def test_what_is_in_a_folder_that_cannot_be_read_is_not_said_to_be_gone(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that somebody closes, or a process with too many open files: all in it would be on record as deleted, or
    as new where the folder was closed first, and the patch or its reverse would delete what is there."""
    (tmp_path / "sub/in").mkdir(parents=True)
    write(tmp_path, **{"sub/in/a": b"1", "sub/b": b"2", "c": b"3"})
    scandir = os.scandir

    def closed(path: str) -> object:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    def told(watched: Watched) -> list[tuple[str, str]]:
        return [(left.path, left.why) for left in watched.left_out]

    why = "it could not be examined: Permission denied; it may be unchanged"
    with session.files(tmp_path) as files:
        with monkeypatch.context() as patch, files.watch() as first:
            patch.setattr(os, "scandir", closed)
            write(tmp_path, d=b"1")  # as `sub/in/a`, which nobody knows to be gone
        (tmp_path / "d").unlink()
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", closed)
            watch = files.watch()
            second = watch.__enter__()
        (tmp_path / "c").unlink()
        write(tmp_path, **{"sub/e": b"3"})
        watch.__exit__(None, None, None)
    assert changes_of(session) == [("created", "d", ""), ("deleted", "c", "")]
    assert told(first) == [("sub/b", why), ("sub/in/a", why)]
    assert told(second) == [("sub/b", why), ("sub/e", why), ("sub/in/a", why)]


def test_folders_may_stand_as_deep_as_a_path_reaches(session: Session, tmp_path: Path) -> None:
    """A tool that makes folders in folders without end: the turn's watch would fail, and tell nothing of any file."""
    folders = [tmp_path]
    limit = sys.getrecursionlimit()
    with session.files(tmp_path) as files:
        sys.setrecursionlimit(len(inspect.stack(0)) + 150)  # so that no tool that clears up has to go as deep
        try:
            with files.watch():
                for _ in range(200):
                    folders.append(folders[-1] / "d")
                    folders[-1].mkdir()
                (folders[-1] / "a").touch()
        finally:
            sys.setrecursionlimit(limit)
    assert [(action, path[-3:]) for action, path, _ in changes_of(session)] == [("created", "d/a")]


def test_a_large_file_whose_change_was_recorded_is_not_left_out(
    session: Session, store: MemoryStore, tmp_path: Path
) -> None:
    """A note would say that a change is not kept which is on record; what came after that is not."""
    write(tmp_path, old=b"1" * 20)
    files = FileRecorder(tmp_path, session._journal.append, store.put_blob, session._watches, file_limit=10)
    with files, files.watch() as watched:
        for name, before in (("old", b"1" * 20), ("new", None), ("more", None)):
            write(tmp_path, **{name: b"2" * 20})
            files.record(name, before, b"2" * 20)
        write(tmp_path, more=b"3" * 20)
    assert changes_of(session) == [("modified", "old", ""), ("created", "new", ""), ("created", "more", "")]
    assert [left.path for left in watched.left_out] == ["more"]


def test_a_file_has_one_name_whichever_link_it_was_reached_by(session: Session, tmp_path: Path) -> None:
    """A tool names a file by a link to its folder, a watch by the folder: one change would be two, and git refuses the
    whole patch for a path beyond a link. A link that leads elsewhere stays what it was called."""
    root = tmp_path / "root"
    write(tmp_path, root__src__a=b"1", root__b=b"1", elsewhere__c=b"1")
    for link, folder in (("src/up", "root"), ("lib", "root/src"), ("out", "elsewhere")):
        (root / link).symlink_to(tmp_path / folder)
    with session.files(root) as files, files.watch():
        write(root, src__a=b"2", b=b"2")
        files.record("lib/a", b"1", b"2")
        files.record(root / "lib" / "up" / "b", b"1", b"2")
        files.record("out/c", b"1", b"2")
        files.record("lib", None, b"it was replaced by a file")
    assert [path for _, path, _ in changes_of(session)] == ["src/a", "b", "out/c", "lib"]
