"""The files store on disk: what people find there, torn ends, damage, and several processes."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import stat
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from store_parts import filled, said, texts

from turnlog.errors import CorruptRecord, InputError, NewerStore, SessionNotFound, StoreError, TurnlogError
from turnlog.log.codec import decode_record
from turnlog.log.messages import Media, Message, sha256_hex
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft, Problem
from turnlog.stores import FilesStore, open_store, salvage
from turnlog.stores.jsonl.files import LogFolder
from turnlog.stores.jsonl.rewrite import finish_rewrite

ROOT = Path(__file__).resolve().parents[2]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store: session `s` of nine records, `f` forked from it at 5 and two longer, a blob."""
    path = tmp_path / "new" / "store"
    store = FilesStore(path)
    filled(store, "s", 7)
    for text in ("8", "9"):
        store.append("s", [said(text)])
    store.fork("s", "f", at=5, title="A fork")
    picture = Draft(MessageRecord(Message("user", (Media("image", sha256=store.put_blob(b"picture")),))))
    store.append("f", [said("6f"), picture])
    store.close()
    return path


@pytest.fixture
def log(path: Path) -> Path:
    """The log of session `s`."""
    return path / "sessions" / "s.jsonl"


def test_logs_are_for_grep_and_jq(path: Path, log: Path) -> None:
    """Lines that are no JSON, a record that is not a line of its own, or titles nobody can read."""
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [line["record"]["body"]["message"]["parts"][0]["text"] for line in lines] == list("123456789")
    assert [line["messages"] for line in lines] == list(range(1, 10))
    card = json.loads((path / "sessions" / "f.json").read_bytes())
    assert (card["session"], card["title"], card["parent"], card["parent_records"]) == ("f", "A fork", "s", 5)
    assert len((path / "sessions" / "f.jsonl").read_bytes().splitlines()) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.rglob("*") if file.is_file()} == {0o600}
    assert {stat.S_IMODE(file.stat().st_mode) for file in (path, path / "sessions", path / "blobs")} == {0o700}


@pytest.mark.parametrize(
    "raw",
    [b'{"v":1,"n":1,\n"t":"x","body":{"kind":"note","topic":"\xc3\xa4"}}',
     b'{"v":9, "n":1,"t":"x","body":{"kind":"hologram","text":"\xed\xa0\xbd"}}'],
)  # fmt: skip
def test_records_that_are_no_line(path: Path, raw: bytes) -> None:
    """A copied record with a line break, or that is no UTF-8, which tears the log apart or comes back changed."""
    store = FilesStore(path)
    store.create("t")
    copied = decode_record(raw)
    store.append("t", [Draft(copied.body, copied.time, raw)])
    assert [record.raw for record in store.read("t")] == [raw]
    assert store.verify() == []
    assert b64decode(json.loads((path / "sessions" / "t.jsonl").read_bytes())["base64"]) == raw


def _cuts(log: Path) -> Iterator[tuple[int, int]]:
    """Cuts the log at each byte of its last two records: where, and how many records are whole."""
    whole = log.read_bytes()
    places = [place + 1 for place, byte in enumerate(whole[:-1]) if byte == ord("\n")]
    for cut in range(places[-2], len(whole)):
        log.write_bytes(whole[:cut])
        yield cut, 8 if cut >= places[-1] else 7


@pytest.mark.slow
def test_a_log_cut_anywhere(path: Path, log: Path) -> None:
    """An unfinished append at the end of a log that does not load, is not reported, or cannot be gone on with."""
    whole = log.read_bytes()
    for cut, count in _cuts(log):
        (path / "sessions" / "s.head").unlink(missing_ok=True)  # nobody was told that what is missing was written
        (path / "sessions" / "s.torn").unlink(missing_ok=True)
        kept = [str(n) for n in range(1, count + 1)]
        rest = whole[whole.rindex(b"\n", 0, cut) + 1 : cut]
        looking = FilesStore(path, read_only=True)
        assert texts(looking.read("s")) == texts(looking.read("s", reverse=True))[::-1] == kept, cut
        assert [problem.session for problem in looking.torn] == ["s"] * bool(rest), cut
        assert looking.torn == looking.verify(), cut
        looking.close()
        assert log.read_bytes() == whole[:cut]
        store = FilesStore(path)
        assert (store.torn, store.verify("s")) == (looking.torn, looking.torn), cut
        assert store.append("s", [said("on")])[0].n == len(kept) + 1, cut
        assert texts(store.read("s")) == [*kept, "on"], cut
        store.close()
        again = FilesStore(path)
        assert (again.torn, again.verify()) == ([], []), cut
        again.close()
        if rest:
            assert b64decode(json.loads((path / "sessions" / "s.torn").read_bytes())["base64"]) == rest


@pytest.mark.slow
def test_records_that_were_written_are_not_forgotten(path: Path, log: Path) -> None:
    """A log cut at any byte of its last two records although it is known that they were written: numbers that are given
    again, or a store that, once opened, tells nobody any more what is missing."""
    whole = log.read_bytes()
    for cut, count in list(_cuts(log))[::50]:
        log.write_bytes(whole[:cut])
        kept, lost = [str(n) for n in range(1, count + 1)], list(range(count + 1, 10))
        for _ in range(2):
            with closing(FilesStore(path)) as store:
                assert [(one.session, one.record) for one in store.torn] == [("s", count + 1)], cut
                assert store.verify() == store.verify("s") == store.torn, cut
                assert store.info("s").records == store.info("s").messages == 9
                _check_lost(store, kept, lost)
        assert log.stat().st_size == cut


def _check_lost(store: FilesStore, kept: list[str], lost: list[int]) -> None:
    """Session `s` has the records `kept`, and what is done with it says that others are missing."""
    read: list[str] = []
    with pytest.raises(CorruptRecord, match=f"record {lost[0]} is missing.*turnlog salvage s NEW"):
        read += (text for record in store.read("s") for text in texts([record]))
    assert read == kept
    found = list(store.readable("s"))
    assert [one.record for one in found if isinstance(one, Problem)] == lost
    assert texts(one for one in found if not isinstance(one, Problem)) == kept
    assert texts(store.read("s", first=3, last=6, reverse=True)) == ["6", "5", "4", "3"]
    assert texts(store.read("s", first=5, last=len(kept))) == kept[4:]
    for change in (
        lambda: store.append("s", [said("on")]),
        lambda: store.fork("s", "g"),
        lambda: store.pack("s"),
        lambda: store.rewrite("s", {1: next(store.read("s")).raw or b""}),
        lambda: next(store.read("s", reverse=True)),
        lambda: next(store.of_kinds("s", ["message"], reverse=True)),
    ):
        with pytest.raises(CorruptRecord):
            change()
    store.fork("s", "g", at=6)
    assert texts(store.read("g")) == kept[:6]
    store.delete("g")


def test_what_is_left_of_a_whole_append_can_be_read(path: Path, log: Path) -> None:
    """Records lost because others of their append are: it is known to have been whole."""
    with closing(FilesStore(path)) as store:
        store.append("s", [said("a"), said("b"), said("c")])
    log.write_bytes(log.read_bytes()[:-1])
    with closing(FilesStore(path)) as store:
        _check_lost(store, [*"123456789", "a", "b"], [12])
        assert salvage(store, "s", "new").kept == 11
        assert store.append("new", [said("on")])[0].n == 13
    log.write_bytes(b"")
    with closing(FilesStore(path)) as store:
        assert [one.record for one in store.readable("s") if isinstance(one, Problem)] == list(range(1, 13))
        assert [(one.session, one.record) for one in store.verify("s")] == [("s", 1)]
        assert salvage(store, "s", "none").kept == 0


def test_what_older_versions_set_aside_is_told(path: Path) -> None:
    """Records that were written and are gone from the log, in a file that nobody is told of."""
    torn = path / "sessions" / "s.torn"
    notes = [
        {"time": "", "records": 9, "acknowledged": 9, "base64": "eA=="},  # an unfinished append: no problem
        {"time": "", "records": 5, "acknowledged": 7, "base64": ""},
        {"time": "", "records": None, "acknowledged": None, "base64": "eA=="},
    ]
    torn.write_bytes(b"".join(json.dumps(note).encode() + b"\n" for note in notes) + b"[]\n")
    with closing(FilesStore(path)) as store:
        found = store.verify("s")
        assert store.verify() == found and all(str(torn) in one.what for one in found)
        assert [(one.session, one.record) for one in found] == [("s", 6), ("s", 0), ("s", 0)]
        assert found[0].what.startswith("records 6 to 7 were written and are missing; ")
        torn.unlink()
        assert store.verify() == []


def test_an_append_cut_in_two(path: Path, log: Path) -> None:
    """Some records of an append that was not finished, taken for all of it."""
    store = FilesStore(path)
    before, head = log.stat().st_size, log.with_suffix(".head").read_bytes()
    store.append("s", [said("a"), said("b"), said("c")])
    store.close()
    lines = log.read_bytes()[before:].splitlines(keepends=True)
    log.write_bytes(log.read_bytes()[: before + len(lines[0]) + len(lines[1])])
    log.with_suffix(".head").write_bytes(head)  # it is written after the log
    store = FilesStore(path)
    assert texts(store.read("s")) == list("123456789")
    assert [(problem.session, problem.record) for problem in store.torn] == [("s", 10)]
    assert store.append("s", [said("on")])[0].n == 10
    store.close()


def test_an_append_torn_while_the_store_is_open(path: Path, log: Path) -> None:
    """The torn end that another process left, to which the next append is glued."""
    store = FilesStore(path)
    with log.open("ab") as file:
        file.write(b'{"sum":"123')
    assert texts(store.read("s")) == list("123456789")
    assert store.append("s", [said("10")])[0].n == 10
    assert ([problem.record for problem in store.torn], [p.record for p in store.verify()]) == ([10], [10])
    assert texts(store.read("s", first=9)) == ["9", "10"]
    store.close()


def _change(log: Path, number: int, change: tuple[bytes, bytes] | None) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    lines[number - 1] = b"" if change is None else lines[number - 1].replace(*change)
    log.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    "change",
    [(b'"4"', b'"5"'), (b'"n":4', b'"n":5'), (b'"messages":4', b'"messages":5'), (b'"left":3', b'"left":2'),
     (b'"sum":"', b'"sum":"0'), (b"\n", b" "), (b"}\n", b" \n"), (b'"t":"2', b'"t":"3'), None],
)  # fmt: skip
def test_damage_in_the_middle(path: Path, log: Path, change: tuple[bytes, bytes] | None) -> None:
    """A changed, glued or missing line that reading skips, that verify does not name, or that hides what is good."""
    _change(log, 4, change)
    store = FilesStore(path)
    seen = []
    with pytest.raises(CorruptRecord) as caught:
        seen += (text for record in store.read("s") for text in texts([record]))
    assert (seen, caught.value.record) == (["1", "2", "3"], 4)
    with pytest.raises(CorruptRecord):
        list(store.read("s", reverse=True))
    assert ("s", 4) in {(problem.session, problem.record) for problem in store.verify()}
    assert ("f", 4) in {(problem.session, problem.record) for problem in store.verify("f")}
    store.fork("s", "rescued", at=3)
    store.append("rescued", [said("on")])
    assert texts(store.read("rescued")) == ["1", "2", "3", "on"]
    assert store.verify("rescued") == []
    store.close()


def test_nothing_is_appended_to_a_damaged_end(path: Path, log: Path) -> None:
    """A last line that is damaged, but whole, cut off or built upon."""
    _change(log, 9, (b'{"sum":', b'{"mus":'))
    store = FilesStore(path)
    (path / "sessions" / "s.head").unlink()
    with pytest.raises(CorruptRecord, match="turnlog salvage s NEW"):
        store.append("s", [said("x")])
    assert {problem.record for problem in store.verify("s")} == {9}
    assert store.info("s").records == 9
    store.close()


def _places(path: Path) -> Iterator[tuple[Path, int]]:
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.name != "lock":
            for place in range(0, file.stat().st_size, 7):
                yield file, place


@pytest.mark.slow
def test_any_flipped_byte_is_found(path: Path) -> None:
    """A byte of any file that changes unnoticed by verify and by opening."""
    missed = []
    for file, place in _places(path):
        whole = file.read_bytes()
        file.write_bytes(whole[:place] + bytes([whole[place] ^ (place % 255 + 1)]) + whole[place + 1 :])
        try:
            store = FilesStore(path, read_only=True)
            found: list[Problem] | list[str] = store.verify()
        except TurnlogError as error:
            found = [str(error)]
        if not found:
            missed.append((file.name, place))
        file.write_bytes(whole)
    assert missed == []


def test_exchanged_logs_are_found(path: Path) -> None:
    """The log of one session in the place of another's, unnoticed."""
    store = FilesStore(path)
    filled(store, "t", 9)
    store.close()
    shutil.copy(path / "sessions" / "t.jsonl", path / "sessions" / "s.jsonl")
    store = FilesStore(path)
    with pytest.raises(CorruptRecord):
        list(store.read("s"))
    assert store.verify("s") != []
    store.close()


def test_deleting_what_forks_need(path: Path) -> None:
    """A deleted session whose words stay longer than a fork needs them, or one that cannot be made again."""
    store = FilesStore(path)
    store.delete("s")
    assert texts(store.read("f")) == ["1", "2", "3", "4", "5", "6f", ""]
    kept = (path / "sessions" / "s.jsonl").read_bytes().splitlines()
    assert len(kept) == 5
    filled(store, "s", 2)
    assert (path / "sessions" / "s~2.jsonl").exists()
    assert (texts(store.read("s")), store.verify()) == (["1", "2"], [])
    store.delete("f")
    assert sorted(file.stem for file in (path / "sessions").glob("*.json")) == ["s~2"]
    assert (store.info("s").records, store.verify()) == (2, [])
    store.close()


def test_opening(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that takes another folder for its own, changes a newer one, or makes something to read."""
    monkeypatch.chdir(tmp_path)
    for place in ("files:a", "files:///b", f"files:{tmp_path}/c", f"files:///{tmp_path}/d"):
        open_store(place).close()
    assert {name for name in os.listdir(tmp_path) if len(name) == 1} == {"a", "b", "c", "d"}
    with pytest.raises(StoreError, match="no store"):
        FilesStore("none", read_only=True)
    assert not (tmp_path / "none").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").touch()
    with pytest.raises(StoreError, match="is not empty and not a turnlog store"):
        open_store("files:mine")
    with pytest.raises(InputError):
        open_store("files:")
    (path / "turnlog.json").write_text('{"turnlog":"files","version":3}\n')
    with pytest.raises(NewerStore):
        FilesStore(path)
    assert sorted(os.listdir(path)) == ["blobs", "lock", "sessions", "turnlog.json"]


def test_reading_changes_nothing(path: Path) -> None:
    """A store opened for reading that writes, or lets something be written."""
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    store = FilesStore(path, read_only=True)
    assert (texts(store.read("f", last=6)), store.verify()) == (["1", "2", "3", "4", "5", "6f"], [])
    writes = (
        lambda: store.append("s", [said("x")]),
        lambda: store.create("t"),
        lambda: store.fork("s", "t"),
        lambda: store.delete("s"),
        lambda: store.rename("s", "x"),
        lambda: store.put_blob(b"x"),
    )
    for write in writes:
        with pytest.raises(StoreError, match="reading only"):
            write()
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.info("s")


def test_a_log_deleted_under_a_reader(path: Path) -> None:
    """A reader that goes on into another log of the same name."""
    store = FilesStore(path)
    reader = store.read("f", first=1)
    assert next(reader).n == 1
    store.delete("f")
    with pytest.raises(SessionNotFound, match="deleted"):
        list(reader)
    store.close()


def _write(path: Path, name: str) -> None:
    store = FilesStore(path)
    for count in range(200):
        store.append("many", [said(f"{name} {count}")])
    store.close()


@needs_fork
def test_four_processes_append_to_one_session(path: Path) -> None:
    """Records that are lost, doubled or misnumbered when several processes write at once."""
    store = FilesStore(path)
    store.create("many")
    store.close()
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_write, args=(path, name)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    store = FilesStore(path)
    records = list(store.read("many"))
    assert [record.n for record in records] == list(range(1, 801))
    assert Counter(texts(records)) == {f"{name} {count}": 1 for name in "abcd" for count in range(200)}
    assert store.verify() == []
    store.close()


@pytest.mark.parametrize("killed", [False, True])
def test_what_is_appended_during_a_rewrite_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    """An acknowledged append of another process that is lost because a log was rewritten, or its rewrite killed and
    ended later; twice there, or a fork that no longer fits."""
    store, other = FilesStore(tmp_path / "f"), FilesStore(tmp_path / "f")
    store.create("s")
    store.append("s", [Draft(Note("n", f"{n}")) for n in range(3)])
    store.fork("s", "f", at=2)
    store.create("empty")
    store.fork("s", "bare", at=2)

    def finish(folder: LogFolder) -> None:
        if (folder.path / "rewrite.json").exists():
            for name in ("s", "bare"):
                other.append(name, [Draft(Note("n", f"late {n}")) for n in range(2)])
            if killed:
                raise KeyboardInterrupt
        finish_rewrite(folder)

    record = next(store.read("s", first=2, last=2))
    changed = (record.raw or b"").replace(b'"1"', b'"x"')
    monkeypatch.setattr("turnlog.stores.jsonl.rewrite.finish_rewrite", finish)
    with suppress(KeyboardInterrupt):
        store.rewrite("s", {2: changed})
    monkeypatch.undo()
    other.fork("s", "g")  # whoever takes the store's lock ends it first
    for again in (store, FilesStore(tmp_path / "f")):
        for name, told in (("s", ["0", "x", "2", "late 0", "late 1"]), ("bare", ["0", "x", "late 0", "late 1"])):
            assert [getattr(record.body, "text", "") for record in again.read(name)] == told
        assert [getattr(record.body, "text", "") for record in again.read("f")] == ["0", "x"]
        assert again.verify() == []
        assert again.info("g").records == 5


def test_an_append_stands_though_its_head_could_not_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that is said to have failed and is in the log: whoever tries again has it twice. The disk was full
    when the log had its last block, and a new session's head had none."""
    store = FilesStore(path)
    store.create("new")
    real = os.open

    def full(name: str | os.PathLike[str], *given: int, **more: int) -> int:
        handle = real(name, *given, **more)
        if str(name).endswith(".head"):
            os.close(handle)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(name))
        return handle

    for name, told in (("new", ["a"]), ("s", [*"123456789", "a"])):
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", full)
            store.append(name, [said("a")])
        assert texts(store.read(name)) == told and store.verify() == []
        store.append(name, [said("b")])
        assert texts(store.read(name)) == [*told, "b"] and store.verify() == []
    store.close()


def test_what_the_system_refuses_is_a_clear_error(path: Path) -> None:
    """A bare OSError where a file cannot be opened or written: a program that looks out for TurnlogError ends in a
    traceback, as it would on a disk that is full or may not be written to."""
    store, blob = FilesStore(path), sha256_hex(b"picture")
    shutil.rmtree(path / "blobs")
    (path / "blobs").write_bytes(b"")
    with pytest.raises(StoreError, match=str(path / "blobs")):
        store.put_blob(b"picture")
    (path / "lock").unlink()
    (path / "lock").mkdir()
    with pytest.raises(StoreError, match=str(path / "lock")):
        store.put_blob(b"picture")
    with pytest.raises(StoreError, match=blob):
        store.get_blob(blob)
    for kind in ("json", "head", "jsonl"):
        file = path / "sessions" / f"s.{kind}"
        held = file.read_bytes()
        file.unlink()
        file.mkdir()
        with pytest.raises(StoreError, match=str(file)):
            store.append("s", [said("a")])
        file.rmdir()
        file.write_bytes(held)
    assert texts(store.read("s")) == list("123456789")
    store.close()


def test_a_session_that_could_not_be_made_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log without a card, of which every `verify` tells from then on, because the disk was full for a moment."""
    store = FilesStore(path)

    def full(*_: object) -> None:
        raise StoreError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("turnlog.stores.jsonl.files.write_whole", full)
        with pytest.raises(StoreError):
            store.create("new")
    assert store.verify() == [] and store.create("new").records == 0
    assert (path / "sessions" / "new.json").exists()
    store.close()


def test_a_copy_without_its_empty_folders(tmp_path: Path) -> None:
    """git and some copies leave empty folders out: such a store could not be opened for writing any more."""
    FilesStore(tmp_path / "store").close()
    (tmp_path / "store" / "sessions").rmdir()
    store = FilesStore(tmp_path / "store")
    store.create("a")
    assert [info.id for info in store.sessions()] == ["a"]
    store.close()


def test_a_log_that_somebody_took_away(path: Path, log: Path) -> None:
    """A card without its log, as a copy that was cut short leaves it: whoever asked for that session waited for ever,
    the list did without it, and it could not be deleted."""
    log.unlink()
    with closing(FilesStore(path)) as store:
        store.create("t")
        store.append("t", [said("8")])
        uses = (
            store.info,
            store.usage,
            store.pack,
            lambda name: list(store.read(name)),
            lambda name: store.append(name, []),
        )
        for use in uses:
            with pytest.raises(CorruptRecord, match=r"s\.jsonl is missing"):
                use("s")
        with pytest.raises(CorruptRecord, match=r"s\.jsonl is missing"):
            list(store.read("f"))
        assert [(info.id, info.records) for info in store.sessions()] == [("t", 1), ("f", 7), ("s", 0)]
        assert [hit.session for hit in store.search("8")] == ["t"]
        store.delete("s")
        store.delete("f")
        assert ([info.id for info in store.sessions()], store.verify("t")) == (["t"], [])


def test_a_session_that_was_not_made_to_the_end(path: Path, log: Path) -> None:
    """An empty log without a card, as it stands when a process is killed while it makes a session: `verify` told it as
    a problem for good, and who made the session again got its files under another name."""
    (path / "sessions" / "new.jsonl").touch()
    with closing(FilesStore(path, read_only=True)) as store:
        assert store.verify() == []
    with closing(FilesStore(path)) as store:
        filled(store, "new", 2)
        assert (path / "sessions" / "new.json").exists()
        assert (texts(store.read("new")), store.verify()) == (["1", "2"], [])
    shutil.move(path / "sessions" / "s.json", path / "s.json")
    with closing(FilesStore(path)) as store:
        assert log.stat().st_size
        assert any("s.jsonl belongs to no session" in problem.what for problem in store.verify())


def test_deleting_under_a_reader(tmp_path: Path) -> None:
    """A session that somebody deletes while it is read, and of which forks need the beginning, told as damaged: a scan
    of the whole store, or the costs of all sessions, end there."""
    with closing(FilesStore(tmp_path / "logs")) as store:
        store.create("s")
        store.append("s", [said("word " * 100) for _ in range(1000)])
        store.fork("s", "f", at=5)
        readers = [store.read("s"), store.read("s", reverse=True), store.of_kinds("s", ("message",))]
        for reader in readers:
            next(reader)
        store.delete("s")
        for reader in readers[::2]:
            with pytest.raises(SessionNotFound):
                list(reader)
        assert len(list(store.read("f"))) == 5
        assert store.verify() == []


def test_a_session_can_be_deleted_from_a_full_disk(path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk of which nothing can be freed, because deleting a session writes a little first; an error that does
    not say what to do; and a session that is half deleted because there was no room at all."""
    real, head = os.write, log.with_suffix(".head")

    def write(handle: int, data: bytes) -> int:
        if full or head.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle, data)

    full = True
    monkeypatch.setattr(os, "write", write)
    with closing(FilesStore(path)) as store:
        for change in (lambda: store.append("s", [said("on")]), lambda: store.delete("s")):
            with pytest.raises(StoreError, match="free some space on this disk"):
                change()
            assert texts(store.read("s")) == list("123456789") and store.verify() == []
        full = False
        head.write_bytes(b"")
        store.delete("s")
        assert [info.id for info in store.sessions()] == ["f"] and store.verify() == []
        assert texts(store.read("f"))[:6] == [*"12345", "6f"]
