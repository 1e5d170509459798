"""Every store keeps the promises of the shipped suite, and a broken one does not get through it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from key_value_store import KeyValueStore
from store_parts import filled, texts

import turnlog
from turnlog.errors import BlobMissing, InputError, SessionNotFound, StoreError
from turnlog.log.records import Record
from turnlog.log.store import Store
from turnlog.stores import MemoryStore, SealedStore, SqliteStore, open_store
from turnlog.stores.encrypted.vault import Vault
from turnlog.testing import check_store
from turnlog.testing.stores import STORE_CHECKS

_SEALED = ("sealed", "locked-sqlite", "locked-files", "packing-sqlite", "packing-files")


class _Packing(SealedStore):
    """Packs each session whenever something was appended to it."""

    def append(self, session_id, drafts, *, expected=None):  # type: ignore[no-untyped-def]
        records = super().append(session_id, drafts, expected=expected)
        self.pack(session_id)
        return records


@pytest.fixture(params=["memory", "minimal", "sqlite", "sqlite-full", "files", "files-full", "postgres", *_SEALED])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Makes an empty store of each kind, as often as it is called."""
    if request.param == "memory":
        return MemoryStore
    if request.param == "minimal":
        return lambda: KeyValueStore({})
    kind, _, durability = request.param.partition("-")
    if kind == "sealed":
        return lambda: SealedStore(MemoryStore(), Vault.drawn())
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        return lambda: open_store(server.new_place())
    if kind in ("locked", "packing"):
        made, urls = count(), "files:" if durability == "files" else "sqlite:///"
        store = _Packing if kind == "packing" else SealedStore
        return lambda: store(open_store(f"{urls}{tmp_path}/{next(made)}.db"), Vault.drawn())
    url = "files:" if kind == "files" else "sqlite:///"
    names = count()
    return lambda: open_store(f"{url}{tmp_path}/{next(names)}.db", durability=durability or "normal")


@pytest.mark.slow
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__.removeprefix("_check_"))
def test_promise(new_store: Callable[[], Store], check: Callable[[Store], None]) -> None:
    """A store that breaks one of the promises fails its check."""
    store = new_store()
    check(store)
    store.close()


def test_a_fork_at_what_is_no_number_of_a_record_makes_nothing(new_store: Callable[[], Store]) -> None:
    """`at=True` made a session that could be neither deleted nor collected, for good; a text was a bare TypeError."""
    store = new_store()
    filled(store, "a", 4)
    for at in (True, False, 2.0, 2.5, "2", -1, 5, 1 << 70):
        with pytest.raises(InputError, match=re.escape(f"has records 1 to 4, not {at!r}")):
            store.fork("a", "b", at=at)  # type: ignore[arg-type]
    assert ([info.id for info in store.sessions()], store.verify()) == (["a"], [])
    assert (store.fork("a", "b", at=2).records, texts(store.read("b"))) == (2, ["1", "2"])
    store.close()


@pytest.mark.slow
def test_whole_suite(tmp_path: Path) -> None:
    """check_store that hands a used store to a check, or leaves one open, fails here."""
    opened: list[SqliteStore] = []

    def open_next() -> SqliteStore:
        assert all(store._database._closed for store in opened)
        opened.append(SqliteStore(tmp_path / f"{len(opened)}.db"))
        return opened[-1]

    check_store(open_next)
    assert len(opened) == len(STORE_CHECKS)


class _Forgetful(MemoryStore):
    """Loses the last record of what it reads."""

    def read(self, session_id: str, **options: object) -> Iterator[Record]:
        records = list(super().read(session_id, **options))  # type: ignore[arg-type]
        return iter(records[:-1])


class _Careless(MemoryStore):
    """Appends whatever the writer expected."""

    def append(self, session_id, drafts, *, expected=None):  # type: ignore[no-untyped-def]
        return super().append(session_id, drafts)


class _Leaky(MemoryStore):
    """Takes ids that name another folder."""

    def info(self, session_id):  # type: ignore[no-untyped-def]
        return super().info("x" if "/" in session_id else session_id)

    def create(self, session_id, **options):  # type: ignore[no-untyped-def]
        return super().create("x" if "/" in session_id else session_id, **options)


def test_a_closed_store_in_memory_says_so() -> None:
    """Who closed it too early looked for a session that seemed to be gone, or filled a store that nobody reads."""
    store = MemoryStore()
    store.create("a")
    blob = store.put_blob(b"x")
    store.close()
    store.close()
    uses = (
        lambda: turnlog.open("a", store=store),
        lambda: store.info("a"),
        lambda: store.create("b"),
        store.sessions,
        store.verify,
        lambda: store.get_blob(blob),
        lambda: store.put_blob(b"y"),
    )
    for use in uses:
        with pytest.raises(StoreError, match="closed") as raised:
            use()
        assert not isinstance(raised.value, (SessionNotFound, BlobMissing))


@pytest.mark.parametrize("broken", [_Forgetful, _Careless, _Leaky])
def test_broken_stores_are_refused(broken: type[MemoryStore]) -> None:
    """A suite that lets through a store that loses records, ignores `expected` or takes bad ids."""
    with pytest.raises(AssertionError):
        check_store(broken)


class _OutOfOrder(KeyValueStore):
    """Gives the newest record first."""

    def _rows(self, key, first, last):  # type: ignore[no-untyped-def]
        return super()._rows(key, first, last)[::-1]


class _Whole(KeyValueStore):
    """Gives more than was asked for."""

    def _rows(self, key, first, last):  # type: ignore[no-untyped-def]
        return super()._rows(key, 1, last)


class _Uncut(KeyValueStore):
    """Cuts nothing."""

    def _cut(self, key, after):  # type: ignore[no-untyped-def]
        pass


class _CutShort(KeyValueStore):
    """Cuts all."""

    def _cut(self, key, after):  # type: ignore[no-untyped-def]
        super()._cut(key, 0)


class _Once(KeyValueStore):
    """Replaces no record."""

    def _save(self, log, rows):  # type: ignore[no-untyped-def]
        if f"log {log.key}" not in self._values or rows:
            super()._save(log, {n: raw for n, raw in rows.items() if f"row {log.key} {n}" not in self._values})


class _OneLog(KeyValueStore):
    """Knows one session."""

    def _logs(self):  # type: ignore[no-untyped-def]
        return list(super()._logs())[:1]


class _Forever(KeyValueStore):
    """Removes no blob."""

    def _remove_blobs(self, names):  # type: ignore[no-untyped-def]
        pass


class _Sizeless(KeyValueStore):
    """Does not measure blobs."""

    def _blobs(self):  # type: ignore[no-untyped-def]
        return {name: put._replace(size=0) for name, put in super()._blobs().items()}


class _Eager(KeyValueStore):
    """Has every blob."""

    def _blob(self, name):  # type: ignore[no-untyped-def]
        return super()._blob(name) or b""


class _FirstBlob(KeyValueStore):
    """Keeps the first of two blobs."""

    def _save_blob(self, name, data):  # type: ignore[no-untyped-def]
        if self._blob(name) is None:
            super()._save_blob(name, data)


class _Ahead(KeyValueStore):
    """Reads only forwards."""

    def read(self, session_id, *, first=1, last=None, reverse=False):  # type: ignore[no-untyped-def]
        return super().read(session_id, first=first, last=last)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (_OutOfOrder, "_rows(key, 1, 3) after _save of these gave ["),
        (_Whole, "_rows(key, 2, 9) of three records gave ["),
        (_Uncut, "_rows(key, 1, 3) after _cut(key, 1) gave ["),
        (_CutShort, "_rows(key, 1, 3) after _cut(key, 1) gave [], not ["),
        (_Once, "_rows(key, 1, 3) after _save of another record 3 gave ["),
        (_OneLog, "`kept` in _logs() after _save gave {"),
        (_Forever, "_blob(name) and _blobs() after _remove_blobs gave (b'1234', {"),
        (_Sizeless, "sizes in _blobs() gave ["),
        (_Eager, "_blob(name) and _blobs() after _remove_blobs gave (b'', {"),
        (_FirstBlob, "_blob(name) after _save_blob, twice gave b'first', not b'1234'"),
        (_Ahead, "read 1 to None, reverse=True, gave [1, 2, 3, "),
    ],
)
def test_what_is_wrong_in_a_store_is_told_by_the_name_of_its_method(broken: type[KeyValueStore], named: str) -> None:
    """Records in the wrong order were told as `deleting a parent`, and a `_cut` that does nothing as a blob."""
    with pytest.raises(AssertionError) as caught:
        check_store(lambda: broken({}))
    assert str(caught.value).startswith(named)
