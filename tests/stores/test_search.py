"""Searching: no query is an error, what an index says is what reading says, and what is deleted cannot be found."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_parts import filled, said

from draws import examples
from turnlog.errors import InputError, SessionExists
from turnlog.log.messages import Media, Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.stores import MemoryStore, SqliteStore, open_store
from turnlog.stores.sqlite import store as sqlite
from turnlog.stores.sqlite.database import Database
from turnlog.stores.sqlite.schema import upgrade
from turnlog.stores.words import fold, indexed
from vanishing import Meanwhile

WORDS = st.sampled_from(
    "apple Apple apples äpfel ÄPFEL A\u0308pfel aspen x_y x y naïve Straße 日本 日本語 Йод 42 ộ İ x75736572".split(),
)
LINES = st.lists(WORDS, max_size=6).map(" ".join)


def both_with(lines: list[str]) -> tuple[MemoryStore, SqliteStore]:
    """A store without an index and one with it, each with a session that says these lines."""
    memory, indexed = MemoryStore(), SqliteStore(_PLACE)
    for store in (memory, indexed):
        for info in store.sessions():
            store.delete(info.id)
        store.create("s")
        store.append("s", [said(line) for line in lines])
    return memory, indexed


@pytest.mark.slow
@given(st.lists(LINES, max_size=5), st.lists(st.tuples(WORDS, st.sampled_from(["", "*", '"'])), min_size=1, max_size=3))
@settings(max_examples=examples(70, 2_000))
def test_the_index_finds_what_reading_finds(lines: list[str], asked: list[tuple[str, str]]) -> None:
    """A word that FTS5 splits, folds or compares in another way than the stores without an index."""
    query = " ".join(f'"{word}"' if how == '"' else word + how for word, how in asked)
    memory, indexed = both_with(lines)
    found = [(hit.record, hit.snippet, hit.start, hit.end) for hit in indexed.search(query)]
    assert found == [(hit.record, hit.snippet, hit.start, hit.end) for hit in memory.search(query)]
    indexed.close()


TIMES = st.sampled_from(
    ["", "2026-01-01T00:00:00.000Z", "2026-01-31T23:59:59.999Z", "2026-02-01T08:00:00.000Z", "~later"]
)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.tuples(WORDS, TIMES), max_size=5), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([None, "2026-01-01", "2026-01-31T12"]),
    st.sampled_from([None, "2026", "2026-01", "2026-01-31T23:59"]),
    st.sampled_from([None, 3]),
    st.integers(1, 3),
)
@settings(max_examples=examples(80, 2_000))
def test_a_search_by_date_passes_over_nothing(
    steps: list[tuple[int, list[tuple[str, str]], bool]],
    since: str | None,
    until: str | None,
    limit: int | None,
    size: int,
) -> None:
    """Records whose times the index has wrong, or forgets when another session goes on; spans that end too early."""
    memory, indexed = MemoryStore(), SqliteStore(_PLACE)
    for info in indexed.sessions():
        indexed.delete(info.id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turnlog.stores.sqlite.times._RECORDS", size)
        patch.setattr("turnlog.stores.sqlite.search._PATIENCE", 4 - size)
        for which, lines, looks in steps:
            for store in (memory, indexed):
                if not lines and any(info.id == f"s{which}" for info in store.sessions()):
                    store.delete(f"s{which}")
                with suppress(SessionExists):
                    store.create(f"s{which}")
                store.append(f"s{which}", [Draft(said(word).body, time or "2026-01-15") for word, time in lines])
            if looks:
                indexed.search("apple")
        for query in ("a*", "x*"):
            wanted = memory.search(query, since=since, until=until, limit=limit)
            assert indexed.search(query, since=since, until=until, limit=limit) == wanted
    indexed.close()


@pytest.mark.slow
@given(st.text(max_size=40) | st.text('ab"*:(){}^-+ NEARANDOT\x00', max_size=30))
@settings(max_examples=examples(150, 2_000))
def test_no_query_is_a_syntax_error(query: str) -> None:
    """Characters that mean something to FTS5, and reach it."""
    store = SqliteStore(_PLACE)
    try:
        with suppress(InputError):  # there is no word in it
            assert isinstance(store.search(query), list)
    finally:
        store.close()


@pytest.fixture(autouse=True, scope="module")
def _place(tmp_path_factory: pytest.TempPathFactory) -> None:
    global _PLACE
    _PLACE = tmp_path_factory.mktemp("search") / "s.db"


_PLACE = Path()


def test_appending_does_not_index(tmp_path: Path) -> None:
    """An append that waits for the index, or a search that does not see what was appended since."""
    store = SqliteStore(tmp_path / "s.db")
    filled(store, "s", 450)

    def indexed() -> object:
        with store._database.reading() as db:
            return db.execute("select sum(records) from searched").fetchone()[0]

    assert indexed() is None
    assert [hit.record for hit in store.search("7")] == [7]
    assert indexed() == 450
    store.append("s", [said("fresh")])
    assert indexed() == 450
    assert [hit.record for hit in store.search("fresh")] == [451]
    other = SqliteStore(tmp_path / "s.db")
    other.append("s", [said("fresh too")])
    assert [hit.record for hit in store.search("fresh")] == [452, 451]
    other.close()
    looking = SqliteStore(tmp_path / "s.db", read_only=True)
    store.append("s", [said("fresh again")])
    assert [hit.record for hit in looking.search("fresh")] == [453, 452, 451]
    looking.close()
    store.close()


def test_the_words_of_a_deleted_session_leave_the_file(tmp_path: Path) -> None:
    """Words that can still be read in the index after the session was deleted."""
    store = SqliteStore(tmp_path / "s.db")
    filled(store, "kept", 30)
    store.create("a")
    store.append("a", [said("shared zebra"), said("own xylophone quixotic")])
    store.fork("a", "b", at=1)
    assert [hit.session for hit in store.search("zebra")] == ["a"]
    store.delete("a")
    assert ([hit.session for hit in store.search("zebra")], store.search("quixotic")) == (["b"], [])
    on_disk = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file() and "shm" not in file.name)
    assert b"zebra" in on_disk
    assert b"xylophone" not in on_disk
    assert b"quixotic" not in on_disk
    store.close()


def test_results_are_found_by_the_tool_of_their_call(tmp_path: Path) -> None:
    """A result without a name that is not found by its tool where the index was made in several steps."""
    store = SqliteStore(tmp_path / "s.db")
    store.create("s")
    for number in range(3):
        call = ToolCall("again", f"tool{number}", {})
        store.append("s", [Draft(MessageRecord(Message("assistant", (call,))))])
        store.search("word")
        result = ToolResult("again", "", (Text("word"),))
        store.append("s", [Draft(MessageRecord(Message("user", (result,))))])
    found = [[hit.record for hit in store.search("word", tool=f"tool{number}")] for number in range(3)]
    assert found == [[2], [4], [6]]
    store.delete("s")
    with store._database.reading() as db:
        assert db.execute("select count(*) from search('word OR tool0')").fetchone() == (0,)
    store.close()


def test_a_damaged_record_or_index_costs_no_search(tmp_path: Path) -> None:
    """A search that fails, or an index that keeps old words, because something in the file is damaged."""
    store = SqliteStore(tmp_path / "s.db")
    filled(store, "s", 5)
    filled(store, "t", 3)
    store.search("2")
    store.close()
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute("update records set record = replace(record, '\"2\"', '\"zwei\"') where id = (1 << 32 | 2)")
    store = SqliteStore(tmp_path / "s.db")
    store.delete("s")
    assert [(hit.session, hit.record) for hit in store.search("2")] == [("t", 2)]
    store.close()
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute("update search_data set block = x'ffffffffffffffffffffffff' where id = 10")
    store = SqliteStore(tmp_path / "s.db")
    assert [(hit.session, hit.record) for hit in store.search("3")] == [("t", 3)]
    assert ["search index" in problem.what for problem in store.verify()] == [True]
    assert [(hit.session, hit.record) for hit in store.search("3")] == [("t", 3)]
    assert store.verify() == []
    store.close()


@pytest.mark.parametrize("key", [None, bytes(32)], ids=["plain", "encrypted"])
def test_a_damaged_record_costs_no_search_of_files(tmp_path: Path, key: bytes | None) -> None:
    """One damaged record, or one damaged card, that keeps all other sessions from being searched; SQLite finds
    what is readable before it and behind it."""
    with closing(open_store(f"files:{tmp_path / 'f'}", key=key)) as store:
        for name in ("a", "b", "c"):
            store.create(name)
            for n in (1, 2, 3):
                store.append(name, [said(f"apple {n}")])
    log, card = tmp_path / "f" / "sessions" / "a.jsonl", tmp_path / "f" / "sessions" / "c.json"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + lines[1].replace(b'"t":"2', b'"t":"3') + lines[2])
    card.write_bytes(b"{}")
    with closing(open_store(f"files:{tmp_path / 'f'}", key=key)) as store:
        found = [(hit.session, hit.record) for hit in store.search("apple")]  # type: ignore[attr-defined]
        assert found == [("b", 3), ("b", 2), ("b", 1), ("a", 3), ("a", 1)]
        assert {problem.session for problem in store.verify()} == {"a", "c"}


def test_a_session_that_is_deleted_meanwhile_costs_nothing() -> None:
    """A search in all sessions, or the list of what they cost, that ends with "there is no session" because somebody
    deletes one."""
    store = Meanwhile()
    for name in ("kept", "gone"):
        store.create(name)
        store.append(name, [said("apple"), Draft(UsageRecord("p", "m", Usage(input=1)))])
    store.fork("gone", "other")
    assert store.usages().keys() == {"kept", "other"}
    store.create("gone")
    store.append("gone", [said("apple")])
    assert [hit.session for hit in store.search("apple")] == ["other", "kept"]


LETTERS = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(
    "天気ฎกค한\u3099カ\u0651🤣🥳\u1ac1\ua7c5\U0001e900ſıß\u0334 ab_"
)


@pytest.mark.slow
@given(st.lists(st.text(LETTERS, min_size=1, max_size=12), min_size=1, max_size=4), st.data())
@settings(max_examples=examples(80, 2_000))
def test_the_index_knows_every_letter(lines: list[str], data: st.DataObject) -> None:
    """SQLite's own tables of letters end with Unicode 6.1: it took a later emoji for a part of the word beside it, so
    that `done` was not found in `done🥳`, and letters and marks since for no letters and marks."""
    line = data.draw(st.sampled_from(lines))
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(line))] * 2)))
    query = data.draw(st.sampled_from([line, f'"{line}"', line[start:end], line[start:end] + "*"]))
    memory, indexed = both_with(lines)
    try:
        wanted = memory.search(query)
    except InputError:
        wanted = []
        with pytest.raises(InputError):
            indexed.search(query)
    else:
        assert [(hit.record, hit.snippet) for hit in indexed.search(query)] == [
            (hit.record, hit.snippet) for hit in wanted
        ]
    indexed.close()


SAID = ["今天天气很好，我们用API设计它", "東京タワーに行く", "ภาษาไทยง่าย", "Αθήνα", "Чай и йод"]
SAID += ["한국어 문장", "がんばって", "مُحَمَّد"]
LOOKED_FOR = [("天气", 1, "天气"), ("很好我们", 1, "很好，我们"), ("api", 1, "API"), ("API设计*", 1, "API设计")]
LOOKED_FOR += [
    ("天 今", 1, "今"),
    ("今天*", 1, "今天"),
    ("タワー", 2, "タワー"),
    ('"京タ"', 2, "京タ"),
    ("ไทย", 3, "ไทย"),
]
LOOKED_FOR += [("αθηνα", 4, "Αθήνα"), ("ЙОД", 5, "йод"), ("한국어", 6, "한국어"), ("ばって", 7, "ばって")]
LOOKED_FOR += [("محمد", 8, "مُحَمَّد"), ("气天", 0, ""), ("ภง", 0, ""), ("ιοδ", 0, "")]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_what_stands_in_a_sentence_is_found(form: Literal["NFC", "NFD"]) -> None:
    """A word of a language without spaces that is found only by the beginning of its sentence; one with other accents
    than it was written with, or letters that macOS has parted from their marks in the name of a file."""
    memory, indexed = both_with([normalize(form, line) for line in SAID])
    for query, record, snippet in LOOKED_FOR:
        for store in (memory, indexed):
            found = [(hit.record, hit.snippet[hit.start : hit.end]) for hit in store.search(query)]
            marked = snippet if form == "NFC" or record not in (6, 7) else found and found[0][1]
            assert found == ([(record, normalize(form, marked))] if record else []), query
    indexed.close()


def test_what_was_attached_is_found_by_its_name(tmp_path: Path) -> None:
    """A message with nothing but a picture or a document in it, which no search finds."""
    for store in (MemoryStore(), SqliteStore(tmp_path / "s.db")):
        store.create("s")
        plan = Media("document", "application/pdf", file_id="f", provider="openai", name="invoice-2026.pdf")
        chart = Media("image", url="https://example.com/umsatz.png")
        store.append("s", [Draft(MessageRecord(Message("user", (each,)))) for each in (plan, chart)])
        assert [hit.record for name in ("invoice-2026.pdf", "umsatz") for hit in store.search(name)] == [1, 2]
        store.delete("s")
        assert store.search("umsatz") == []
        store.close()


def test_a_word_that_comes_again_is_made_ready_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word that is not ASCII folded anew, letter by letter: the first search of texts in Russian or German takes
    five times as long, and so does deleting a session of them."""
    folded: list[str] = []

    def fold_and_tell(word: str) -> str:
        folded.append(word)
        return fold(word)

    monkeypatch.setattr("turnlog.stores.words.fold", fold_and_tell)
    assert indexed("Wörtlein, das und Wörtlein " * 100) == "wortlein, das und wortlein " * 100
    assert folded == ["Wörtlein"]


@pytest.mark.parametrize(("version", "column"), [(9, "text"), (10, "words"), (11, "terms")])
def test_an_index_by_older_rules_is_made_again(tmp_path: Path, version: int, column: str) -> None:
    """An index of which nobody knows any more what was put in cannot be kept: what is deleted would stay in it, and
    words since would be missed. Who may only read the store, finds what is there all the same; who still has the older
    turnlog open fails at filling the index that is new, instead of putting in what nobody finds."""
    path = tmp_path / "s.db"
    older = f"insert into search (rowid, {column}, role, tools) select id, 'done🥳 and äpfel', 'x', '' from records"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        upgrade(db, str(path), to=version)
    with closing(SqliteStore(tmp_path / "new.db")) as new:
        new.create("s")
        new.append("s", [said("done🥳 and äpfel")])
        copied = new._database.path
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("attach ? as new", (str(copied),))
        for table in ("sessions", "records"):
            db.execute(f"insert into {table} select * from new.{table}")
        db.execute(older)
        db.execute("insert into searched (no, records) select no, records from sessions")
    with closing(SqliteStore(path, read_only=True)) as store:
        assert [hit.record for hit in store.search("done APFEL")] == [1]
    with closing(SqliteStore(path)) as store:
        assert [hit.record for hit in store.search("done APFEL")] == [1]
        with (
            closing(sqlite3.connect(path)) as db,
            pytest.raises(sqlite3.OperationalError, match=f"no column named {column}"),
        ):
            db.execute(older)
        store.delete("s")
        assert (store.search("done"), store.verify()) == ([], [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_what_a_child_appended_is_found(tmp_path: Path) -> None:
    """A server that searched once before it forked its workers finds nothing of what they say: the connection that it
    has since counts changes from the beginning, and so as many as the one before had."""
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        filled(store, "s", 1)
        store.search("needle")
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        assert store.search("needle") == []
        child = os.fork()
        if child == 0:
            try:
                store.append("s", [said("needle")])
                store.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert [hit.record for hit in store.search("needle")] == [2]


def test_what_is_appended_right_behind_the_index_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last words of a session that nobody goes on with, missed for as long as a process looks for them: they came
    when the index was up to date, and before the search remembered that it was."""
    with closing(SqliteStore(tmp_path / "s.db")) as other, closing(SqliteStore(tmp_path / "s.db")) as store:
        filled(store, "s", 1)
        catch_up = sqlite.catch_up

        def overtaken(database: Database) -> None:
            catch_up(database)
            other.append("s", [said("needle")])
            monkeypatch.undo()

        monkeypatch.setattr(sqlite, "catch_up", overtaken)
        store.search("needle")
        assert [hit.record for hit in store.search("needle")] == [2]
