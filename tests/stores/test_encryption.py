"""Encrypted stores: nothing readable on the disk, no record in the place of another, no nonce twice, clear errors."""

from __future__ import annotations

import base64
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from store_parts import filled, said, texts

import turnlog
from turnlog.errors import BlobMissing, CorruptRecord, InputError, StoreError, StoreKeyError
from turnlog.log.codec import decode_record, encode_record
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult
from turnlog.log.records import Decision, FileChange, MessageRecord, Note, Record, SealedRecord, SummaryRecord
from turnlog.log.store import Draft, Store
from turnlog.stores import MemoryStore, Passphrase, SealedStore, copy_store, new_key, open_store, rekey_store
from turnlog.stores.encrypted.keys import KeySource
from turnlog.stores.encrypted.vault import Vault

KEY = bytes(range(32))
WORD = "xylophone"


@pytest.fixture(params=["sqlite", "files"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that is not there yet, alone in its folder."""
    (tmp_path / "home").mkdir()
    return f"{'files:' if request.param == 'files' else ''}{tmp_path}/home/log.db"


def _bytes_of(tmp_path: Path) -> dict[str, bytes]:
    files = {str(path): path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()}
    return {name: data for name, data in files.items() if data and not name.endswith("-shm")}


def _live(store: Store) -> None:
    """A session with the word in every place that holds what was said."""
    shot, text = store.put_blob(b"\x89PNG " + WORD.encode() * 30_000), store.put_blob(WORD.encode())
    store.create("s", title=f"About the {WORD}")
    bodies = (
        MessageRecord(Message("system", (Text(f"Play the {WORD}."),))),
        MessageRecord(Message("user", (Text(WORD), Media("image", sha256=shot, name=f"{WORD}.png")))),
        MessageRecord(Message("assistant", (ToolCall("c1", WORD, {"what": WORD}),)), model=WORD),
        MessageRecord(Message("user", (ToolResult("c1", WORD, (Text(f"out: {WORD}"),)),))),
        FileChange(f"{WORD}.txt", "modified", after=text),
        SummaryRecord("k", "made", f"they play the {WORD}"),
        Decision("clear", why=WORD, detail={"said": WORD}),
        Note(WORD, WORD),
    )
    store.append("s", [Draft(body, redacted={WORD: 1}) for body in bodies])
    store.fork("s", "t", at=3, title=f"The other {WORD}")
    store.append("t", [said(f"{WORD} again")])
    store.rename("t", f"A new {WORD}")
    assert len(store.search(WORD)) == 8  # type: ignore[attr-defined]
    assert [record.n for record in store.of_kinds("s", ("configuration", "decision", "summary", "system"))] == [1, 6, 7]
    store.sweep(grace=0)
    assert store.verify() == []


def test_nothing_that_was_said_is_on_the_disk(place: str, tmp_path: Path) -> None:
    """A word of a message, title, path, summary, blob or index in the clear, in any file, while open and after."""
    store = open_store(place, key=KEY)
    _live(store)
    for session in ("s", "t"):
        assert not [name for name, data in _bytes_of(tmp_path).items() if WORD.encode() in data]
        store.pack(session)  # type: ignore[attr-defined]
    store.close()
    assert not [name for name, data in _bytes_of(tmp_path).items() if WORD.encode() in data]
    store = open_store(place, key=KEY)
    assert (store.info("s").title, store.info("t").title) == (f"About the {WORD}", f"A new {WORD}")
    assert store.get_blob(next(part.sha256 for part in _parts(store, 2) if isinstance(part, Media))).endswith(b"phone")
    store.close()


def test_a_plain_store_has_it_all_on_the_disk(place: str, tmp_path: Path) -> None:
    """A search for the word that finds it nowhere, whatever the store: the test before would prove nothing."""
    store = open_store(place)
    _live(store)
    store.close()
    assert sum(data.count(WORD.encode()) for data in _bytes_of(tmp_path).values()) > 30_000


def _parts(store: Store, n: int) -> tuple[object, ...]:
    message = next(store.read("s", first=n)).message
    return message.parts if message else ()


_WRONG: list[tuple[KeySource | None, str]] = [
    (None, "key=.*--key"),
    (bytes(32), "does not open"),
    (Passphrase("x"), "not with a passphrase"),
]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(("key", "message"), _WRONG, ids=["none", "wrong", "passphrase"])
def test_without_the_right_key_nothing_happens(
    place: str, tmp_path: Path, key: KeySource | None, message: str, read_only: bool
) -> None:
    """A store that is read or written with the wrong key or none, or an error that does not say what to do."""
    store = open_store(place, key=KEY)
    filled(store, "s", 3)
    store.close()
    before = _bytes_of(tmp_path)
    with pytest.raises(StoreKeyError, match=message):
        open_store(place, key=key, read_only=read_only)
    assert _bytes_of(tmp_path) == before


def test_a_key_for_a_store_that_is_not_encrypted(place: str, tmp_path: Path) -> None:
    """Sessions in the clear that somebody believes encrypted, or new ones encrypted between them."""
    store = open_store(place)
    filled(store, "s", 3)
    store.close()
    for read_only, message in ((False, "turnlog copy"), (True, "is not encrypted")):
        with pytest.raises(StoreKeyError, match=message):
            open_store(place, key=KEY, read_only=read_only)
    with pytest.raises(StoreKeyError, match="not encrypted"):
        rekey_store(place, KEY, bytes(32))
    store = open_store(place)
    assert texts(store.read("s")) == ["1", "2", "3"]
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("source", ["bytes", "file", "hex", "base64", "env", "function", "passphrase"])
def test_where_a_key_may_come_from(source: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source of keys that is refused, or makes another key the second time or in another process."""
    file = tmp_path / "key"
    written = {"hex": KEY.hex().upper().encode() + b"\n", "base64": base64.b64encode(KEY)}
    file.write_bytes(written.get(source, KEY))
    monkeypatch.setenv("MY_KEY", KEY.hex())
    keys: dict[str, KeySource] = {"bytes": KEY, "env": "env:MY_KEY", "function": lambda: KEY}
    key = Passphrase("correct horse") if source == "passphrase" else keys.get(source, f"file:{file}")
    store = open_store(place, key=key)
    filled(store, "s", 1)
    store.close()
    file.write_bytes(b"correct horse\n")
    store = open_store(place, key=f"passphrase-file:{file}" if source == "passphrase" else KEY)
    assert texts(store.read("s")) == ["1"]
    store.close()
    assert WORD not in repr(Passphrase(WORD))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (b"short", "32 bytes, not 5 bytes"),
        ("hunter2", "must name the place of the key"),
        ("file:", "must name the place of the key"),
        ("file:nowhere/key", "the file 'nowhere/key' cannot be read"),
        ("env:NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
        ("env:PATH", "does not contain a key"),
        (7, "32 bytes, not int"),
        (lambda: "x", "must name the place of the key"),
    ],
)
def test_what_is_no_key(place: str, tmp_path: Path, key: KeySource, message: str) -> None:
    """A key that is taken for one and is none, an error that repeats it, or a store that is left half made."""
    with pytest.raises(InputError, match=message) as caught:
        open_store(place, key=key)
    assert "hunter2" not in str(caught.value)
    store = open_store(place, key=KEY)  # what was made before is empty still
    store.close()
    assert new_key() != new_key() and len(bytes.fromhex(new_key())) == 32


@pytest.mark.slow
def test_another_key_opens_the_same_records(place: str, tmp_path: Path) -> None:
    """A changed key with which records are lost, or with the old one of which the store still opens."""
    store = open_store(place, key=KEY)
    filled(store, "s", 3)
    store.close()
    rekey_store(place, KEY, Passphrase("correct horse"))
    with pytest.raises(StoreKeyError, match="with a passphrase"):
        open_store(place, key=KEY)
    with pytest.raises(StoreKeyError, match="does not open"):
        rekey_store(place, Passphrase("wrong"), KEY)
    store = open_store(place, key=Passphrase("correct horse"))
    assert (texts(store.read("s")), store.verify()) == (["1", "2", "3"], [])
    store.close()


def _sealed() -> tuple[MemoryStore, SealedStore]:
    behind = MemoryStore()
    return behind, SealedStore(behind, Vault.drawn())


def _exchange_number(behind: MemoryStore) -> None:
    _put(behind, "a", 2, _body(behind, "a", 1))


def _exchange_session(behind: MemoryStore) -> None:
    _put(behind, "a", 2, _body(behind, "b", 2))


def _exchange_kind(behind: MemoryStore) -> None:
    body = _body(behind, "a", 2)
    _put(behind, "a", 2, SealedRecord("note", body.data))


def _exchange_pack(behind: MemoryStore) -> None:
    _put(behind, "a", 2, SealedRecord("message", b"", 1))


def _flip(behind: MemoryStore) -> None:
    body = _body(behind, "a", 2)
    _put(behind, "a", 2, SealedRecord(body.of, body.data[:-1] + bytes([body.data[-1] ^ 1])))


def _in_the_clear(behind: MemoryStore) -> None:
    behind.rewrite("a", {2: encode_record(Record(2, "2026", said("planted").body))})


def _title(behind: MemoryStore) -> None:
    behind.rename("a", behind.info("b").title)


def _body(behind: MemoryStore, session: str, n: int) -> SealedRecord:
    body = next(behind.read(session, first=n)).body
    assert isinstance(body, SealedRecord)
    return body


def _put(behind: MemoryStore, session: str, n: int, body: SealedRecord) -> None:
    time = next(behind.read(session, first=n)).time
    behind.rewrite(session, {n: encode_record(Record(n, time, body))})


@pytest.mark.parametrize(
    "change", [_exchange_number, _exchange_session, _exchange_kind, _exchange_pack, _flip, _in_the_clear, _title]
)
def test_records_cannot_be_exchanged(change: Callable[[MemoryStore], None]) -> None:
    """A record or a title that is read in a place that it was not written for, or as other bytes than were written."""
    behind, store = _sealed()
    for session in ("a", "b"):
        store.create(session, title=session)
        store.append(
            session,
            [
                said(
                    f"{session}{n}",
                )
                for n in range(3)
            ],
        )
    assert store.verify() == []
    change(behind)
    with pytest.raises(CorruptRecord):
        list(store.read("a"))
    assert [(problem.session, problem.record) for problem in store.verify()] in ([("a", 2)], [("a", 0)])
    assert texts(store.read("b")) == ["b0", "b1", "b2"]


def test_a_store_of_another_key_is_not_ours() -> None:
    """Two stores whose records can be moved from the one to the other because both took the same key."""
    behind, store = _sealed()
    filled(store, "s", 2)
    with pytest.raises(CorruptRecord, match="cannot be read"):
        list(SealedStore(behind, Vault(KEY, bytes(16))).read("s"))


def test_no_nonce_comes_twice_under_one_key() -> None:
    """Two processes, a retry, a fork, a rewrite or a restart that encrypt with a nonce that was used before."""
    behind, vault = MemoryStore(), Vault(KEY, bytes(16))
    used: Counter[tuple[bytes, bytes]] = Counter()
    seal = vault.seal

    def watched(salt: bytes, bound: object, data: bytes) -> bytes:
        sealed = seal(salt, bound, data)  # type: ignore[arg-type]
        used[salt, sealed[:12]] += 1
        return sealed

    vault.seal = watched  # type: ignore[method-assign,assignment]
    processes = [SealedStore(behind, vault) for _ in range(3)]
    filled(processes[0], "s", 1)
    for turn in range(30):
        processes[turn % 3].append("s", [said(str(turn)), said(str(turn))])
    processes[1].fork("s", "t", at=5)
    processes[2].append("t", [said("x")])
    processes[0].pack("s")
    processes[0].rewrite("t", {2: encode_record(Record(2, "2026", said("clean").body))})
    assert len(used) > 65 and set(used.values()) == {1}
    assert len({salt for salt, _ in used}) == 2
    assert (KEY not in repr(behind.__dict__).encode()) and texts(processes[1].read("t"))[1] == "clean"


class _Beaten(MemoryStore):
    """Somebody else appends first, once."""

    beaten = 0

    def append(self, session_id, drafts, *, expected=None):  # type: ignore[no-untyped-def]
        if drafts and expected == 1 and not self.beaten:
            self.beaten = 1
            self.rival.append(session_id, [said("theirs")])
        return super().append(session_id, drafts, expected=expected)


def test_who_is_overtaken_encrypts_again() -> None:
    """A record that was encrypted for a number that somebody else got, and can never be read again."""
    behind, vault = _Beaten(), Vault.drawn()
    store = SealedStore(behind, vault)
    behind.rival = SealedStore(behind, vault)  # type: ignore[attr-defined]
    filled(store, "s", 1)
    assert [record.n for record in store.append("s", [said("ours")])] == [3]
    assert (texts(store.read("s")), behind.beaten) == (["1", "theirs", "ours"], 1)


def test_damaged_and_missing_blobs_are_found(tmp_path: Path) -> None:
    """A sealed blob that was changed or is gone, and nobody notices; or one that heals no more."""
    store = open_store(f"files:{tmp_path}/s", key=KEY)
    name = store.put_blob(b"picture")
    store.create("s")
    store.append("s", [Draft(MessageRecord(Message("user", (Media("image", sha256=name),))))])
    (file,) = (tmp_path / "s" / "blobs").iterdir()
    assert file.name != name
    whole = file.read_bytes()
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(BlobMissing):
            store.get_blob(name)
        assert store.verify() != []
    store.put_blob(b"picture")
    assert (store.get_blob(name), store.verify(), file.read_bytes()) == (b"picture", [], whole)
    file.unlink()
    assert [(problem.record, name in problem.what) for problem in store.verify("s")] == [(1, True)]
    store.close()


def test_the_same_file_is_kept_once(tmp_path: Path) -> None:
    """Two copies of one picture, or a name that tells who has the picture that it is in the store."""
    store = open_store(f"files:{tmp_path}/s", key=KEY)
    other = open_store(f"files:{tmp_path}/t", key=KEY)
    for each in (store, store, other):
        each.put_blob(b"picture")
    names = [{path.name for path in (tmp_path / place / "blobs").iterdir()} for place in "st"]
    assert [len(found) for found in names] == [1, 1] and names[0] != names[1]
    store.close()
    other.close()


def test_a_store_is_copied_into_an_encrypted_one_and_back(tmp_path: Path) -> None:
    """A copy that lacks records, bytes, blobs or forks; or that says the same twice when it is interrupted."""
    plain = open_store(tmp_path / "plain.db")
    _live(plain)
    plain.create("child", parent="gone")
    locked = open_store(f"files:{tmp_path}/locked", key=KEY)
    assert copy_store(plain, locked) == 9
    plain.append("s", [said("more")])
    assert copy_store(plain, locked) == 1
    assert copy_store(plain, locked) == 0
    back = open_store(tmp_path / "back.db")
    copy_store(locked, back)
    for info in plain.sessions():
        assert [record.raw for record in back.read(info.id)] == [record.raw for record in plain.read(info.id)]
        copied = back.info(info.id)
        assert (copied.title, copied.parent, copied.parent_records) == (info.title, info.parent, info.parent_records)
    assert back.verify() == []
    back.append("s", [said("other")])
    plain.append("s", [said("another")])
    with pytest.raises(InputError, match="with other records"):
        copy_store(back, plain)
    for store in (plain, locked, back):
        store.close()


def test_sessions_in_encrypted_stores(tmp_path: Path) -> None:
    """`turnlog.open` that takes a key and keeps the session in the clear, or takes one for a store that is open."""
    place = tmp_path / "home" / "log.db"
    with turnlog.open("s", store=place, settings=turnlog.Settings(key=KEY)) as session:
        session.user(WORD)
    with turnlog.open("s", store=place, settings=turnlog.Settings(key=KEY)) as session:
        assert [text for text in texts(session.log.records()) if text == WORD] == [WORD]
    assert not [name for name, data in _bytes_of(tmp_path).items() if WORD.encode() in data]
    with pytest.raises(StoreKeyError):
        turnlog.open("s", store=place)
    with closing(open_store(tmp_path / "plain.db")) as plain, pytest.raises(InputError, match="already open"):
        turnlog.open("s", store=plain, settings=turnlog.Settings(key=KEY))
    with closing(open_store(place, key=KEY)) as home:
        turnlog.open("s", store=home, settings=turnlog.Settings(key=KEY)).close()


@pytest.mark.slow
def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare ImportError, or a store that is silently not encrypted, where the extra is not installed."""
    keys: tuple[KeySource, ...] = (KEY, Passphrase("words"))
    for n, key in enumerate(keys):
        open_store(tmp_path / f"{n}.db", key=key).close()
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.setitem(sys.modules, name, None)
    for n, key in enumerate(keys):
        for there in (f"{n}.db", f"new {n}.db"):
            with pytest.raises(InputError, match=r"pip install '\.\[encryption\]'"):
                open_store(tmp_path / there, key=key)


def test_two_who_make_a_store_get_one_key(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that make an encrypted store at once, of which one writes what nobody can read."""
    stores = []
    numbers = count()
    draw = os.urandom

    def overtaken(size: int) -> bytes:
        if size > 8 and next(numbers) == 0:  # a key, and not the name of a file
            stores.append(open_store(place, key=KEY))
        return draw(size)

    monkeypatch.setattr(os, "urandom", overtaken)
    stores.append(open_store(place, key=KEY))
    filled(stores[0], "s", 1)
    assert texts(stores[1].read("s")) == ["1"]
    for store in stores:
        store.close()


def test_a_store_that_somebody_encrypts_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is written over, with which the only copy of the store's key is gone: who opens the folder without a
    key at the same moment saw no store yet."""
    place = f"files:{tmp_path}/s"

    def overtaken(path: Path) -> None:
        patch.undo()
        with closing(open_store(place, key=KEY)) as store:
            filled(store, "s", 2)

    with monkeypatch.context() as patch:
        patch.setattr("turnlog.stores.jsonl.files.make_private", overtaken)
        with pytest.raises(StoreKeyError):
            open_store(place)
    with closing(open_store(place, key=KEY)) as store:
        assert texts(store.read("s")) == ["1", "2"]


def test_a_store_that_became_encrypted_takes_nothing_in_the_clear(place: str) -> None:
    """A process that opened an empty store without a key, and writes in the clear after another one encrypted it."""
    plain = open_store(place)
    locked = open_store(place, key=KEY)
    with pytest.raises(StoreKeyError, match="key="):
        plain.create("s")
    filled(locked, "s", 1)
    assert (texts(locked.read("s")), locked.verify()) == (["1"], [])
    plain.close()
    locked.close()


def test_a_damaged_lock_says_so(place: str, tmp_path: Path) -> None:
    """A lock that was changed: taken for a wrong key at best, a bare traceback at worst."""
    store = open_store(place, key=KEY)
    store.close()
    files = open_store(f"files:{tmp_path}/other", key=KEY)
    files.close()
    marker = tmp_path / "other" / "turnlog.json"
    whole = marker.read_bytes()
    for old, new in (
        (b'"wrapped":"', b'"wrapped":"zz'),
        (b'"store":"', b'"store":7,"x":"'),
        (b"AES-256-GCM", b"ROT-13"),
    ):
        assert old in whole
        marker.write_bytes(whole.replace(old, new))
        with pytest.raises(StoreError):
            open_store(f"files:{tmp_path}/other", key=KEY)


def test_sealed_records_say_what_they_are() -> None:
    """An encrypted record that counts as no message, or as no decision, in the store that keeps it."""
    behind, store = _sealed()
    _live(store)
    assert behind.info("s").messages == store.info("s").messages == 4
    kinds = ("configuration", "decision", "summary", "system")
    assert [record.n for record in behind.of_kinds("s", kinds)] == [1, 6, 7]
    assert [decode_record(record.raw or b"").n for record in behind.of_kinds("s", ["note"])] == [8]
