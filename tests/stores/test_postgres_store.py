"""The PostgreSQL store where it differs from others: lost connections, several machines, errors of a server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from store_parts import filled, said, texts

import turnlog
from commands import Command
from postgres_server import PostgresServer
from turnlog._platform.texts import without_password
from turnlog.errors import (
    BlobMissing,
    Conflict,
    CorruptRecord,
    InputError,
    NewerStore,
    SessionBusy,
    SessionNotFound,
    StoreError,
    StoreKeyError,
)
from turnlog.log.messages import Media, Message
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, Problem
from turnlog.stores import copy_store, open_store, salvage

if TYPE_CHECKING:
    from turnlog.stores import PostgresStore

CHAT = turnlog.target("openai-chat", "gpt-4o")


@pytest.fixture
def place(postgres: PostgresServer) -> str:
    """The URL of a place for a new store."""
    return postgres.new_place()


@pytest.fixture
def store(place: str) -> Iterator[PostgresStore]:
    """A new store."""
    made = open_store(place)
    yield made
    made.close()


def _cut(store: PostgresStore, postgres: PostgresServer) -> None:
    """End the store's connection from the server's side, as a restart of the server does."""
    pid = store._database.read(lambda db: db.info.backend_pid)
    postgres.run(f"select pg_terminate_backend({pid}, 5000)")


def _cut_leases(store: PostgresStore, postgres: PostgresServer) -> None:
    """End the connection that has the store's locks."""
    db = store._locks._connection
    assert db is not None
    postgres.run(f"select pg_terminate_backend({db.info.backend_pid}, 5000)")


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sessions_are_kept_on_a_server(place: str) -> None:
    """`turnlog.open` with a URL that opens another store, or leaves nothing there."""
    with turnlog.open("trip", store=place, target=CHAT) as session, session.turn("Is it warm in Oslo?"):
        session.assistant("4 degrees.")
    with turnlog.open("trip", store=place.replace("postgresql:", "postgres:"), read_only=True) as reader:
        assert texts(reader.history()) == ["Is it warm in Oslo?", "4 degrees."]
    off = turnlog.Settings(save_history=False)
    with turnlog.open("trip", store=place, settings=off) as unsaved:
        unsaved.user("And in Rome?")
        assert texts(unsaved.history())[-1] == "And in Rome?"
    with turnlog.open("trip", store=place, read_only=True) as reader:
        assert len(texts(reader.history())) == 2


def test_the_command_line_and_copies_both_ways(turnlog: Command, place: str, tmp_path: Path) -> None:
    """A command that refuses the URL, or a copy that is not the same sessions."""
    local = open_store(tmp_path / "a.db")
    filled(local, "a", 20)
    local.fork("a", "b", at=5)
    local.append("b", [said("six")])
    local.keep("a")
    before = [(info.id, [record.raw for record in local.read(info.id)]) for info in local.sessions()]
    local.close()
    assert turnlog("copy", place, "--store", str(tmp_path / "a.db")).code == 0
    listed = turnlog("ls", "--all", "--store", place)
    assert (listed.code, sorted(line.split()[0] for line in listed.out.splitlines() if line[:1] in "ab")) == (
        0,
        ["a", "b"],
    )
    assert turnlog("verify", "--store", place).code == 0
    assert turnlog("copy", str(tmp_path / "c.db"), "--store", place).code == 0
    back = open_store(tmp_path / "c.db")
    assert [(info.id, [record.raw for record in back.read(info.id)]) for info in back.sessions()] == before
    assert back.inventory().kept == {"a"}
    back.close()


def _failure(place: str) -> str:
    with pytest.raises(StoreError) as raised:
        open_store(place)
    return str(raised.value)


def test_what_is_wrong_with_a_server_is_said(postgres: PostgresServer, turnlog: Command) -> None:
    """An error that does not name the server and the remedy, is a traceback, or shows the password."""
    postgres.run("drop role if exists guarded", "create role guarded login password 'hunter2'")
    wrong = postgres.url(user="guarded", password="hunter3")
    for url, words in (
        (wrong, ("127.0.0.1", "password authentication failed", "~/.pgpass")),
        (postgres.url("nowhere"), ('database "nowhere" does not exist', "createdb")),
        ("postgresql://me:hunter3@127.0.0.1:1/x", ("127.0.0.1:1", "refused", "check that the server runs")),
        (postgres.url(schema="nowhere"), ("no usable schema", "create schema")),
    ):
        said_ = _failure(url)
        assert all(word in said_ for word in words), said_
        ran = turnlog("ls", "--store", url)
        assert (ran.code, "hunter" in said_ + ran.out + ran.err, "Traceback" in ran.err) == (3, False, False)
        assert words[0] in ran.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@host:port/x",
        "postgresql://me:x@hunter/y@host/db",
        "postgresql://me:x@hunter@host/db",
        "postgresql://me:hunter/2@host/db",
        "postgresql://host/db?passwor=hunter2",
    ],
)
def test_a_wrong_url_is_refused_without_its_password(postgres: PostgresServer, turnlog: Command, url: str) -> None:
    """The driver's own error quotes what it could not read, which may be a part of the password."""
    ran = turnlog("ls", "--store", url)
    assert (ran.code, "hun" in ran.err, "Traceback" in ran.err) == (2, False, False), ran.err
    assert "postgresql://" in ran.err


def test_no_command_shows_a_password(postgres: PostgresServer, turnlog: Command) -> None:
    """A password in the settings that `turnlog config` prints, or that a copy reports."""
    place = postgres.new_place().replace("turnlog@", "turnlog:hunter2@")
    filled(store := open_store(place), "a", 1)
    store.close()
    ran = [
        turnlog("config", "--store", place),
        turnlog("config", "--json", "--store", place),
        turnlog("copy", place, "--store", place),
    ]
    assert [(run.code, "hunter2" in run.out + run.err) for run in ran] == [(0, False)] * 3
    assert without_password("postgres://u:a@b@h/d?sslpassword=x&a=b") == "postgres://u:***@h/d?sslpassword=***&a=b"
    assert without_password("C:/work@home/a:b@c") == "C:/work@home/a:b@c"


def test_without_the_driver_the_extra_is_named(tmp_path: Path) -> None:
    """Who did not install psycopg got an ImportError, and no word of what to install."""
    (tmp_path / "psycopg").mkdir()
    (tmp_path / "psycopg" / "__init__.py").write_text("raise ImportError('not here')")
    run = subprocess.run(
        [sys.executable, "-m", "turnlog", "ls", "--store", "postgresql://me:hunter2@host/x"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert "pip install '.[postgres]'" in run.stderr and "hunter2" not in run.stderr and "Traceback" not in run.stderr


def test_a_store_is_opened_for_reading(place: str) -> None:
    """Reading that makes tables, or writes."""
    reader = open_store(place, read_only=True)
    assert reader.sessions() == []
    with pytest.raises(SessionNotFound, match="there is no store at postgresql://turnlog@127"):
        reader.info("a")
    filled(store := open_store(place), "a", 3)
    store.close()
    reader = open_store(place, read_only=True)
    assert texts(reader.read("a")) == ["1", "2", "3"]
    for write in (
        lambda: reader.append("a", [said("4")]),
        lambda: reader.create("b"),
        lambda: reader.put_blob(b"x"),
        lambda: reader.sweep(),
        lambda: reader.delete("a"),
    ):
        with pytest.raises(StoreError, match="open for reading only"):
            write()
    reader.hold("a")
    reader.lease("a").close()
    reader.close()
    with pytest.raises(StoreError, match="is closed"):
        reader.info("a")


def test_many_open_a_new_store_at_once(place: str) -> None:
    """Of the workers that a fleet starts at once, all but the first fail on tables that are there by now."""
    with ThreadPoolExecutor(6) as pool:
        opened = list(pool.map(lambda _: open_store(place), range(6)))
    opened[0].create("a")
    assert [[info.id for info in store.sessions()] for store in opened] == [["a"]] * 6
    for store in opened:
        store.close()


def test_what_a_user_may_not_do_is_said(store: PostgresStore, place: str, postgres: PostgresServer) -> None:
    """A user without rights gets the server's words and no advice; a rewrite that leaves the old bytes looks done."""
    filled(store, "a", 1)
    postgres.run("drop role if exists weak", "create role weak login")
    weak = place.replace("turnlog@", "weak@")
    with pytest.raises(StoreError, match="grant its usage"):
        open_store(weak)
    with pytest.raises(StoreError, match="permission denied for schema public; the user must own"):
        open_store(postgres.url(user="weak"))
    schema = place.partition("%3D")[2]
    postgres.run(f"grant usage on schema {schema} to weak", f"grant all on all tables in schema {schema} to weak")
    other = open_store(weak)
    raw = other.append("a", [said("hunter2")])[0].raw or b""
    with pytest.raises(StoreError, match="the records are rewritten, but old bytes are left"):
        other.rewrite("a", {2: raw.replace(b"hunter2", b"clean")})
    assert texts(store.read("a")) == ["1", "clean"]
    other.close()
    postgres.run("drop owned by weak")


def test_a_writer_does_not_wait_for_ever(store: PostgresStore, place: str) -> None:
    """A process that stopped in the midst of a change keeps a whole fleet waiting, without a word."""
    import psycopg

    filled(store, "a", 1)
    store._database.read(lambda db: db.execute("set lock_timeout = '100ms'"))
    with psycopg.connect(place) as stopped:
        stopped.execute("select * from turnlog_sessions for update")
        for _ in range(2):
            with pytest.raises(StoreError, match="another process has been writing"):
                store.append("a", [said("2")])
    assert texts(store.append("a", [said("3")])) == ["3"]
    assert (texts(store.read("a")), store.verify()) == (["1", "3"], [])


def test_a_store_of_a_newer_turnlog_is_left_alone(store: PostgresStore, place: str, postgres: PostgresServer) -> None:
    """An older version that writes what the newer one cannot read."""
    postgres.run("update turnlog_version set version = 99", url=place)
    with pytest.raises(NewerStore, match="store version 99"):
        open_store(place)


def test_encryption(place: str, postgres: PostgresServer) -> None:
    """A store that is opened without its key, or in which what was said can be read."""
    with turnlog.open("a", store=place, settings=turnlog.Settings(key=bytes(32))) as session:
        session.user("The launch is on Friday.")
    rows = postgres.run(
        "select record::text from turnlog_records union all select title from turnlog_sessions", url=place
    )
    assert rows and not [row for row in rows if b"Friday".hex() in str(row) or "Friday" in str(row)]
    with pytest.raises(StoreKeyError, match="is encrypted"):
        open_store(place)
    sealed = open_store(place, key=bytes(32), read_only=True)
    assert "The launch is on Friday." in texts(sealed.read("a"))
    sealed.close()
    filled(plain := open_store(other := postgres.new_place()), "a", 1)
    plain.close()
    with pytest.raises(StoreKeyError, match="not encrypted"):
        open_store(other, key=bytes(32))


def test_labels_of_any_spelling_are_found(store: PostgresStore) -> None:
    """A session whose label JSON spells in another way, or that has it from its parent, is not listed."""
    values = ["ann", "a b", 'quo"te', "back\\slash", "wörd", "x/y", ""]
    for n, value in enumerate(values):
        with turnlog.open(f"s{n}", store=store, labels={"user": value, "project": "p"}) as session:
            session.user("ann")
    store.fork("s0", "f0")
    with turnlog.open("s0", store=store, labels={"user": "bob"}):
        pass
    found = [sorted(info.id for info in store.sessions(where={"user": value})) for value in values[:-1]]
    assert found == [["f0"], ["s1"], ["s2"], ["s3"], ["s4"], ["s5"]]
    assert [info.id for info in store.sessions(where={"user": "bob", "project": "p"})] == ["s0"]
    assert len(store.sessions(where={"project": "p"}, limit=3)) == 3


def test_labels_are_found_in_a_store_of_an_older_turnlog(place: str, postgres: PostgresServer) -> None:
    """A store made before there was an index of labels, in which users lose their sessions or get those of others; or
    one that cannot be read before it is upgraded."""
    with closing(open_store(place)) as store:
        for n, user in enumerate(("ann", "bob")):
            with turnlog.open(f"s{n}", store=store, labels={"user": user}) as session:
                session.user("cough")
    postgres.run("drop table turnlog_labels", "update turnlog_version set version = 1", url=place)
    for read_only in (True, False):
        with closing(open_store(place, read_only=read_only)) as store:
            assert [info.id for info in store.sessions(where={"user": "ann"})] == ["s0"]
            assert [hit.session for hit in store.search("cough", where={"user": "bob"})] == ["s1"]
            assert store.verify() == []
        assert postgres.run("select version from turnlog_version", url=place) == [(1 if read_only else 2,)]


def test_an_index_of_labels_notices_what_it_was_not_told(
    store: PostgresStore, place: str, postgres: PostgresServer
) -> None:
    """An entry that was damaged, or is older than what another process appended, shows a user what another said."""
    with turnlog.open("s", store=store, labels={"user": "ann"}) as session:
        session.user("cough")
    assert len(store.sessions(where={"user": "ann"})) == 1
    with closing(open_store(place)) as other, turnlog.open("s", store=other, labels={"user": "bob"}) as session:
        session.user("cough")
    assert store.sessions(where={"user": "ann"}) == [] and len(store.sessions(where={"user": "bob"})) == 1
    postgres.run("update turnlog_labels set labels = replace(labels, 'bob', 'ann')", url=place)
    assert ["index of labels was damaged" in problem.what for problem in store.verify()] == [True]
    assert store.sessions(where={"user": "ann"}) == [] and store.verify() == []
    store.delete("s")
    assert postgres.run("select * from turnlog_labels", url=place) == []


# -- connections -----------------------------------------------------------------------------------


def test_a_lost_connection_is_opened_again(store: PostgresStore, postgres: PostgresServer) -> None:
    """A server that restarts ends every session of a fleet."""
    filled(store, "a", 3)
    uses: list[Callable[[], object]] = [
        lambda: texts(store.read("a")),
        lambda: store.append("a", [said("4")]),
        lambda: store.append("a", [said("5")], expected=4),
        lambda: store.create("b"),
        lambda: store.put_blob(b"x"),
        lambda: store.delete("b"),
        lambda: store.verify(),
        lambda: store.inventory(),
        lambda: store.sweep(),
    ]
    for use in uses:
        _cut(store, postgres)
        use()
    assert texts(store.read("a")) == ["1", "2", "3", "4", "5"]
    assert ([info.id for info in store.sessions()], store.verify()) == (["a"], [])


def test_a_server_that_is_gone_is_named(store: PostgresStore, postgres: PostgresServer) -> None:
    """A server that does not come back: a traceback of the driver, or no word of which server it is."""
    with turnlog.open("a", store=store) as session:
        session.user("1")
        port = store.path.options["port"]
        store.path.options["port"] = "1"
        _cut(store, postgres)
        for use in (lambda: session.user("2"), session.request, lambda: store.create("b"), store.sessions):
            with pytest.raises(
                StoreError, match=r"postgresql://turnlog@127.0.0.1.*refused.*check that the server runs"
            ):
                use()
        store.path.options["port"] = port
        session.user("3")
        assert texts(session.history()) == ["1", "3"]


@pytest.mark.parametrize("remembered", [True, False])
def test_an_append_that_may_have_happened_is_called_so(
    store: PostgresStore, postgres: PostgresServer, remembered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is gone behind an append: told that it failed, a caller appends it twice."""
    filled(store, "a", 1)
    if not remembered:
        store._appender._rows.clear()
    really = type(store._database._connected()).execute

    def execute(db: object, query: object, *given: object, **named: object) -> object:
        done = really(db, query, *given, **named)  # type: ignore[arg-type]
        if "with advanced" in str(query):
            store.path.options["port"] = "1"
            _cut(store, postgres)
            return really(db, "select 1")  # type: ignore[arg-type]
        return done

    port = store.path.options["port"]
    with monkeypatch.context() as patched:
        patched.setattr("psycopg.Connection.execute", execute)
        with pytest.raises(StoreError, match=r"refused.*which may have happened: look at the end of the session"):
            store.append("a", [said("2")])
    store.path.options["port"] = port
    assert texts(store.read("a")) in (["1"], ["1", "2"])
    assert (texts(store.append("a", [said("3")])), store.verify()) == (["3"], [])


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("between", ["", "other"])
def test_an_append_whose_answer_is_lost_happens_once(
    store: PostgresStore, place: str, postgres: PostgresServer, happened: bool, remembered: bool, between: str
) -> None:
    """The connection ends after the server was asked to append: asked again, it appends twice; not asked again, what
    was said is gone. `between`: another appends before it is asked again."""
    filled(store, "a", 2)
    other = open_store(place)
    if not remembered:
        other.append("a", [said("3")])  # the remembered row is old
    database, cut = store._database, []
    connected = database._connected

    def connect_and_cut() -> object:
        db = connected()
        really = type(db).execute

        def execute(query: object, *given: object, **named: object) -> object:
            ends = query == "commit" if not remembered else "with advanced" in str(query)
            if not ends or cut:
                return really(db, query, *given, **named)  # type: ignore[arg-type]
            cut.append(query)
            if happened:
                really(db, query, *given, **named)  # type: ignore[arg-type]
                with db.pipeline():  # the end of it waits for the server
                    pass
            pid = db.info.backend_pid
            postgres.run(f"select pg_terminate_backend({pid}, 5000)")
            if between:
                other.append("a", [said(between)])
            return really(db, "select 1")

        db.execute = execute  # type: ignore[method-assign,assignment]
        return db

    database._connected = connect_and_cut  # type: ignore[method-assign,assignment]
    before = texts(store.read("a"))
    made = store.append("a", [said("mine"), said("too")])
    assert cut and texts(made) == ["mine", "too"]
    mine, theirs = ["mine", "too"], [between] if between else []
    assert texts(other.read("a")) == before + (mine + theirs if happened else theirs + mine)
    assert (store.verify(), texts(store.append("a", [said("next")]))) == ([], ["next"])
    other.close()


def test_a_lost_append_says_conflict_if_another_was_first(store: PostgresStore, place: str) -> None:
    """`expected` is forgotten when the remembered row is old."""
    filled(store, "a", 2)
    other = open_store(place)
    other.append("a", [said("3")])
    with pytest.raises(Conflict) as raised:
        store.append("a", [said("x")], expected=2)
    assert (raised.value.actual, texts(store.read("a"))) == (3, ["1", "2", "3"])
    other.close()


def test_a_fork_has_a_connection_of_its_own(store: PostgresStore, place: str) -> None:
    """A child that talks on its parent's socket, or ends the parent's connection or lease when it ends."""
    filled(store, "a", 1)
    lease = store.lease("a")
    hold = store.hold("a")
    assert hold is not None
    child = os.fork()
    if not child:
        code = 1
        try:
            lease.close()
            hold.close()
            store.append("a", [said("child")])
            with pytest.raises(SessionBusy):
                store.lease("a")
            store.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    lease.check()
    store.append("a", [said("parent")])
    other = open_store(place)
    with pytest.raises(SessionBusy):
        other.lease("a")
    assert len(other.inventory().in_use or ()) == 1
    assert texts(other.read("a")) == ["1", "child", "parent"]
    other.close()


@pytest.mark.slow
def test_a_living_child_does_not_keep_the_session_of_its_dead_parent(place: str) -> None:
    """A child that inherits the socket keeps the lease alive, for as long as it lives itself."""
    script = f"""
import os, sys, time, turnlog
session = turnlog.open("a", store={place!r})
if not os.fork():
    print(os.getpid(), flush=True)
    time.sleep(60)
time.sleep(60)
"""
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    child = int(owner.stdout.readline())
    try:
        with pytest.raises(SessionBusy) as raised:
            turnlog.open("a", store=place, wait=0)
        assert raised.value.process == owner.pid
        owner.kill()
        owner.wait()
        turnlog.open("a", store=place, wait=20).close()
    finally:
        os.kill(child, 9)
        owner.stdout.close()


# -- several writers -------------------------------------------------------------------------------


@pytest.mark.slow
def test_many_writers_number_without_gaps(place: str) -> None:
    """Two processes that give one number twice, or one that leaves a gap when it fails."""
    filled(store := open_store(place), "a", 1)
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from store_parts import said
from turnlog.stores import open_store
store = open_store({place!r})
for n in range(20):
    store.append("a", [said(f"{{sys.argv[1]}}.{{n}}"), said("+")])
"""
    writers = [subprocess.Popen([sys.executable, "-c", script, name]) for name in "xyz"]
    assert [writer.wait() for writer in writers] == [0] * 3
    records = list(store.read("a"))
    assert [record.n for record in records] == list(range(1, 122))
    assert sorted(texts(records)[1::2]) == sorted(f"{name}.{n}" for name in "xyz" for n in range(20))
    assert store.verify() == []
    store.close()


def test_a_lease_is_known_to_other_machines(store: PostgresStore, place: str) -> None:
    """Two owners of a session; or an error that does not say who has it."""
    other = open_store(place)
    lease = store.lease("a")
    with pytest.raises(SessionBusy) as raised:
        other.lease("a")
    assert (raised.value.process, bool(raised.value.host), bool(raised.value.since)) == (os.getpid(), True, True)
    lease.close()
    shared = [each.lease("a", shared=True) for each in (store,)]
    shared[0].share()
    shared.append(other.lease("a", shared=True))
    with pytest.raises(SessionBusy):
        other.lease("a")
    for each in shared:
        each.close()
    other.lease("a").close()
    other.close()


def test_who_lost_the_connection_of_its_lease_writes_no_more(
    store: PostgresStore, place: str, postgres: PostgresServer
) -> None:
    """The server gives the session to another, and both write as its owner."""
    other = open_store(place)
    with turnlog.open("a", store=store) as session:
        session.user("mine")
        _cut_leases(store, postgres)
        with pytest.raises(SessionBusy, match="was lost"):
            session.user("not mine any more")
        with pytest.raises(SessionBusy, match="was lost"):
            store.append("a", [said("nor so")])
        with turnlog.open("a", store=other) as theirs:
            theirs.user("theirs")
    assert texts(other.read("a")) == ["mine", "theirs"]
    with turnlog.open("a", store=store) as session:
        session.user("mine again")
    other.close()


def test_who_does_not_know_that_its_lease_is_lost_writes_no_more(
    store: PostgresStore, place: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a broken network the server frees the lease, and its owner hears nothing of it: the mark in the session's
    row has to tell."""
    filled(store, "a", 1)
    lease = store.lease("a")
    store.append("a", [said("mine")])
    monkeypatch.setattr(type(store._locks), "_is_alive", lambda self: True)
    _cut_leases(store, postgres)
    store.append("a", [said("still mine, as nobody took it")])
    monkeypatch.undo()
    other = open_store(place)
    theirs = other.lease("a")
    monkeypatch.setattr(type(store._locks), "_is_alive", lambda self: True)
    lease.check()
    with pytest.raises(SessionBusy, match="was lost"):
        store.append("a", [said("not mine any more")])
    monkeypatch.undo()
    other.append("a", [said("theirs")])
    theirs.close()
    assert texts(other.read("a")) == ["1", "mine", "still mine, as nobody took it", "theirs"]
    other.close()


def test_a_lease_that_is_garbage_in_the_midst_of_another_is_given_up(store: PostgresStore) -> None:
    """A lease that the garbage collector ends while its thread uses the same connection waits for itself, for ever."""
    lease = store.lease("a")
    locks = store._locks
    locks._do(lease.close)
    done = threading.Event()

    def take() -> None:
        store.lease("a").close()
        done.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    assert done.wait(30)


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("update turnlog_records set record = overlay(record placing 'X' from 20) where n = 2", "does not match"),
        ("update turnlog_records set record = '' where n = 2", "does not match"),
        ("delete from turnlog_records where n = 2", "cannot be read"),
    ],
)
def test_damage_costs_one_record(
    store: PostgresStore, place: str, postgres: PostgresServer, statement: str, problem: str
) -> None:
    """A row that changed is read as if it were whole, or takes others with it."""
    filled(store, "a", 4)
    postgres.run(statement, url=place)
    with pytest.raises(CorruptRecord, match=r"record [123] .*turnlog salvage"):
        list(store.read("a"))
    met = list(store.readable("a"))
    assert [one.record for one in met if isinstance(one, Problem)] == [2]
    assert problem in next(one.what for one in met if isinstance(one, Problem))
    assert texts(one for one in met if not isinstance(one, Problem)) == ["1", "3", "4"]
    assert 2 in [found.record for found in store.verify("a")]
    with pytest.raises(CorruptRecord):
        turnlog.open("a", store=store)
    assert salvage(store, "a", "b").kept == 3
    assert store.verify("b") == []


def test_damage_of_a_session_row_and_of_a_blob_is_found(
    store: PostgresStore, place: str, postgres: PostgresServer
) -> None:
    """A row that is written again although it changed hides that."""
    filled(store, "a", 2)
    blob = store.put_blob(b"picture")
    filled(store, "b", 1)
    store.append("b", [Draft(MessageRecord(Message("user", (Media("image", sha256=blob),))))])
    postgres.run(
        "update turnlog_sessions set messages = 7 where id = 'a'", "update turnlog_blobs set data = 'x'", url=place
    )
    assert [(found.session, "checksum" in found.what) for found in store.verify()][:2] == [("a", True), ("a", False)]
    for session in (None, "b"):
        damage = Problem("b", 2, f"it needs blobs that are damaged: {blob}", (blob,))
        assert store.verify(session)[-1] == damage
    with pytest.raises(BlobMissing, match="is damaged"):
        store.get_blob(blob)
    other = open_store(place)
    with pytest.raises(CorruptRecord, match="session row"):
        other.append("a", [said("3")])
    store.put_blob(b"picture")
    assert store.get_blob(blob) == b"picture"
    other.close()


def test_a_rewritten_record_is_gone_from_the_tables(store: PostgresStore, place: str, postgres: PostgresServer) -> None:
    """A secret that was taken out, and stays in the files of the server's tables."""
    filled(store, "a", 1)
    store.append("a", [said("hunter2" * 3)])
    raw = next(iter(store.read("a", first=2))).raw or b""
    store.rewrite("a", {2: raw.replace(b"hunter2" * 3, b"clean")})
    files = postgres.run("select pg_relation_filepath('turnlog_records')", "checkpoint", url=place)
    ((path,),) = postgres.run("select pg_read_binary_file(pg_relation_filepath('turnlog_records'))", url=place)
    assert b"clean" in bytes(path) and b"hunter2" not in bytes(path)  # type: ignore[arg-type]
    assert files == []


def test_copies_continue(store: PostgresStore, tmp_path: Path) -> None:
    """A copy into a server that was interrupted begins anew, or doubles records."""
    local = open_store(tmp_path / "a.db")
    filled(local, "a", 5)
    assert copy_store(local, store) == 5
    local.append("a", [said("6")])
    assert (copy_store(local, store), texts(store.read("a"))[-1]) == (1, "6")
    local.close()


def test_a_store_needs_a_url() -> None:
    """A place of another kind that is taken for a database."""
    with pytest.raises(InputError, match="does not name a store"):
        open_store("mysql://me:hunter2@host/db")
