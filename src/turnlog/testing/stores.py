"""Checks that every store must pass: `check_store(lambda: MyStore(new_empty_place()))`.

Each check gets a new empty store and fails with an AssertionError that describes the problem. `STORE_CHECKS` contains
the single checks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import msgspec

from ..errors import Conflict, InputError, SessionExists, SessionIdError, SessionNotFound, TurnlogError
from ..log.codec import decode_record, encode_record
from ..log.messages import Media, Message, Text, ToolCall, ToolResult
from ..log.records import (
    Body,
    Configuration,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    Record,
    SealedRecord,
    SessionOpened,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    UnknownRecord,
    UsageRecord,
)
from ..log.store import Draft, SessionInfo, Store
from ..log.usage import Count, Usage
from ..stores.base import BaseStore, Log
from .leases import check_leases
from .probing import content, raises, said, texts
from .promises import (
    check_blobs,
    check_delete,
    check_forks,
    check_holds,
    check_inventory,
    check_kinds,
    check_labels,
    check_reclaim,
    check_rewrite,
    check_search,
    check_sweep,
    check_usage,
)

_TIME = "2026-01-02T03:04:05.678Z"
_EIGHT = ("_logs", "_save", "_rows", "_cut", "_save_blob", "_blob", "_blobs", "_remove_blobs")


def check_store(open_store: Callable[[], Store]) -> None:
    """Run every check; `open_store` returns a new, empty store each time."""
    for check in STORE_CHECKS:
        store = open_store()
        try:
            check(store)
        finally:
            store.close()


def _check_methods(store: Store) -> None:
    """What the eight methods of a BaseStore do, each alone, before other checks fail by them in other words."""
    if not isinstance(store, BaseStore) or any(getattr(type(store), one) is getattr(BaseStore, one) for one in _EIGHT):
        return

    def same(what: str, got: object, wanted: object) -> None:
        assert got == wanted, f"{what} gave {got!r:.300}, not {wanted!r:.300}"

    key, name = 1 << 60, "ab" * 32
    one, other = (Log(key + n, SessionInfo(f"s{n}", "T", _TIME, _TIME, 3, 0)) for n in (0, 1))
    rows = [encode_record(Record(n=min(n, 3), time=_TIME, body=Note("t", str(n)))) for n in range(1, 5)]
    store._save(one, dict(enumerate(rows[:3], 1)))
    store._save(other, {})
    same("_rows(key, 1, 3) after _save of these", [*store._rows(key, 1, 3)], rows[:3])
    same("_rows(key, 2, 9) of three records", [*store._rows(key, 2, 9)], rows[1:3])
    store._save(msgspec.structs.replace(one, kept=True), {3: rows[3]})
    same("`kept` in _logs() after _save", {log.key: log.kept for log in store._logs()}, {key: True, key + 1: False})
    same("_rows(key, 1, 3) after _save of another record 3", [*store._rows(key, 1, 3)], [*rows[:2], rows[3]])
    store._cut(key, 1)
    same("_rows(key, 1, 3) after _cut(key, 1)", [*store._rows(key, 1, 3)], rows[:1])
    store._cut(key, 0)
    same("_logs() after _cut(key, 0) of one of two", [*store._logs()], [other])
    store._save_blob(name, b"first")
    store._save_blob(name, b"1234")
    same("_blob(name) after _save_blob, twice", store._blob(name), b"1234")
    same("sizes in _blobs()", [(each, put.size) for each, put in store._blobs().items()], [(name, 4)])
    store._remove_blobs(iter([name, "0" * 64]))
    same("_blob(name) and _blobs() after _remove_blobs", (store._blob(name), {**store._blobs()}), (None, {}))


def _check_sessions(store: Store) -> None:
    """Sessions are created, listed in the order of their last update (newest first), renamed, and not created twice."""
    assert store.sessions() == [], "a new store has sessions"
    new = store.create("a", title="First", created=_TIME)
    assert (new.id, new.title, new.created, new.records, new.messages) == ("a", "First", _TIME, 0, 0), (
        f"create returned {new}"
    )
    assert store.info("a") == new, "info differs from what create returned"
    assert list(store.read("a")) == [], "a new session has records"
    store.create("b", created=_TIME)
    store.append("a", [said("x", time="2026-01-03T00:00:00.000Z")])
    assert [info.id for info in store.sessions()] == ["a", "b"], "sessions are not listed the last updated first"
    assert [info.id for info in store.sessions(limit=1)] == ["a"], "limit does not keep the last updated"
    assert store.sessions()[0] == store.info("a"), "a listing and info differ"
    store.rename("a", "Second \x00 title")
    assert store.info("a").title == "Second \x00 title", "rename did not change the title"
    assert store.info("a").records == 1, "rename changed the records"
    raises(SessionExists, "create of a session that there is", store.create, "a")


def _check_parents(store: Store) -> None:
    """A session may have a parent that is created later or never, and keeps it whatever happens to either session."""
    session = store.create("child", title="Agent", created=_TIME, parent="later")
    assert (session.parent, session.parent_records, session.records) == ("later", 0, 0), f"create returned {session}"
    assert store.info("child") == store.sessions()[0] == session, "info or a listing differs from what create returned"
    store.append("child", [said("x"), said("y")])
    store.rename("child", "New")
    store.create("later")
    store.append("later", [said("z")])
    store.fork("child", "twig", at=1)
    assert store.info("child").parent == "later", "appending or renaming lost the parent"
    assert (store.info("twig").parent, texts(store, "twig")) == ("child", ["x"]), "a fork of a session with a parent"
    store.delete("later")
    assert (store.info("child").parent, texts(store, "child")) == ("later", ["x", "y"]), "deleting a parent"
    raises(SessionIdError, "create with a bad parent", store.create, "other", parent="x" * 201)
    raises(SessionIdError, "create with itself as parent", store.create, "other", parent="Other")
    assert store.verify() == [], "verify found damage in sessions with parents"


def _check_session_ids(store: Store) -> None:
    """Ids are any printable text, safe on every disk; ids that cannot be printed, or that collide on a disk that
    ignores case, are refused."""
    odd = [
        "../a",
        "a/b",
        "..",
        ".hidden",
        "a.",
        "con",
        "-x",
        "ann@example.com",
        "https://example.com/?a=b#c",
        " ",
        "行",
    ]
    odd += ["x" * 129, "a+0123456789abcdef0123456789abcdef", "a~2", "\U0001f600" * 200, "A*b|c<d>", "%2e%2e", "'; drop"]
    for n, name in enumerate(odd):
        assert store.create(name, title=f"odd {n}").id == name, f"create of session id {name!r}"
        store.append(name, [said(str(n))])
    for n, name in enumerate(odd):
        assert (store.info(name).title, texts(store, name)) == (f"odd {n}", [str(n)]), f"session {name!r}"
        raises(SessionExists, f"create of session {name!r} again", store.create, name)
    assert {info.id for info in store.sessions()} == {*odd}, "sessions with odd ids are not listed"
    store.fork("../a", "ann@example.com/2")
    raises(SessionIdError, "an odd id that differs by case only", store.create, "ANN@example.com")
    for name in [*odd, "ann@example.com/2"]:
        store.delete(name)
    assert store.sessions() == [] and store.verify() == [], "sessions with odd ids stayed"
    for bad in ("", "a\x00b", "\udc80", "a\nb", "\u202e", "x" * 201):
        raises(SessionIdError, f"create of session id {bad!r}", store.create, bad)
        raises(SessionNotFound, f"info of session id {bad!r}", store.info, bad)
    store.create("Session-1")
    raises(SessionIdError, "an id that differs by case only", store.create, "session-1")
    raises(SessionNotFound, "an id in another case", store.info, "session-1")
    raises(SessionNotFound, "append in another case", store.append, "SESSION-1", [said("x")])
    raises(SessionIdError, "fork to an id in another case", store.fork, "Session-1", "SESSION-1")
    raises(SessionExists, "fork to an id that there is", store.fork, "Session-1", "Session-1")
    raises(SessionIdError, "fork to a bad id", store.fork, "Session-1", "x" * 201)


def _check_append(store: Store) -> None:
    """Records are numbered from 1 without gaps, have times, are counted, and are read back unchanged."""
    store.create("s", created=_TIME)
    first = store.append("s", [Draft(body) for body in _BODIES])
    second = store.append("s", [said("last", time=_TIME)])
    records = [*first, *second]
    assert [record.n for record in records] == list(range(1, len(_BODIES) + 2)), "numbers are not 1 to n"
    for low, high, reverse in ((1, None, False), (2, 4, False), (1, 5, True)):  # without damage both are the same
        both = [list(each("s", first=low, last=high, reverse=reverse)) for each in (store.readable, store.read)]
        assert both[0] == both[1], f"readable differs from read: {low}, {high}, {reverse}"
    assert all(record.time for record in records), "a record has no time"
    assert second[0].time == _TIME, "the time of a draft was not kept"
    read = list(store.read("s"))
    assert content(read) == content(records), "what was read is not what append returned"
    for body, record in zip(_BODIES, read, strict=False):
        assert repr(record.body) == repr(body), f"a body came back changed: {record.body} for {body}"
    for record in read:
        assert record.raw is not None, "a record was read without its bytes"
        assert content([decode_record(record.raw)]) == content([record]), "raw does not encode the record"
    info = store.info("s")
    newest = max(record.time for record in records)  # the last one has an earlier time, as after a clock was set back
    assert (info.records, info.updated) == (len(records), newest), f"info does not follow the log: {info}"
    assert store.sessions()[0] == info, "a listing and info differ"
    assert info.messages == sum(record.message is not None for record in records), f"messages miscounted: {info}"
    assert store.append("s", []) == (), "an append of nothing returned something"
    raises(SessionNotFound, "append to no session", store.append, "t", [said("x")])


def _check_conflicts(store: Store) -> None:
    """`expected` keeps a writer from appending to a log with records that it has not read."""
    store.create("s")
    store.append("s", [said("1")], expected=0)
    conflict = raises(Conflict, "append, expected too low", store.append, "s", [said("2")], expected=0)
    assert (conflict.expected, conflict.actual) == (0, 1), f"the conflict says {conflict}"
    raises(Conflict, "append of nothing, expected too high", store.append, "s", [], expected=2)
    assert texts(store, "s") == ["1"], "a refused append left something behind"
    store.append("s", [said("2")], expected=1)
    assert texts(store, "s") == ["1", "2"], "append with the right expected number"


def _check_all_or_nothing(store: Store) -> None:
    """A failed append leaves nothing behind, and the next append works."""
    store.create("s")
    drafts = [said("1"), Draft(Note(topic="bad", data=object()))]
    raises(InputError, "append of a value that JSON cannot contain", store.append, "s", drafts)
    assert (store.info("s").records, texts(store, "s")) == (0, []), "a failed append left records behind"
    store.append("s", [said("2")])
    assert texts(store, "s") == ["2"], "append after a failed one"


def _check_isolation(store: Store) -> None:
    """Changes that a caller makes to a value after appending or reading it do not affect the log."""
    store.create("s")
    settings = {"temperature": 1}
    store.append("s", [Draft(Configuration(settings=settings))])
    settings["temperature"] = 2
    for _ in range(2):
        body = next(iter(store.read("s"))).body
        assert isinstance(body, Configuration), "the record changed its kind"
        assert body.settings == {"temperature": 1}, "the log was changed"
        body.settings["temperature"] = 3


def _check_ranges(store: Store) -> None:
    """Any range can be read in both directions; ends beyond the log are cut to the log."""
    store.create("s")
    count = 300
    store.append("s", [said(str(n)) for n in range(1, count + 1)])
    numbers = list(range(1, count + 1))
    for first, last in ((1, None), (1, 1), (2, 299), (130, 140), (300, None), (0, 9999), (301, None), (9, 8), (1, 0)):
        wanted = [n for n in numbers if n >= first and (last is None or n <= last)]
        ahead = [record.n for record in store.read("s", first=first, last=last)]
        back = [record.n for record in store.read("s", first=first, last=last, reverse=True)]
        assert ahead == wanted, f"read {first} to {last} gave {ahead!r:.99}, not {wanted!r:.99}"
        assert back[::-1] == wanted, f"read {first} to {last}, reverse=True, gave {back!r:.60} for {wanted!r:.60}"
    raises(SessionNotFound, "read of no session", lambda: list(store.read("t")))


def _check_reading_while_appending(store: Store) -> None:
    """A reader ends at the record that was the last when it began, even if others append meanwhile."""
    store.create("s")
    store.append("s", [said(str(n)) for n in range(200)])
    for reverse in (False, True):
        before = store.info("s").records
        seen = []
        for record in store.read("s", reverse=reverse):
            seen.append(record.n)
            if len(seen) % 50 == 1:
                store.append("s", [said("meanwhile")])
        assert sorted(seen) == list(range(1, before + 1)), "a reader lost or gained records to an append"


def _check_copies(store: Store) -> None:
    """Encoded records are stored byte for byte if their number matches, so that fields of newer versions are
    preserved."""
    store.create("s")
    raw = b'{"v":9, "n":1,"t":"2030-01-01T00:00:00.000Z","body":{"kind":"hologram","depth":3},"new":true}'
    copied = decode_record(raw)
    record = store.append("s", [Draft(copied.body, copied.time, raw)])[0]
    again = next(iter(store.read("s")))
    assert record.raw == again.raw == raw, "a copied record's bytes were changed"
    assert (record.time, again.body) == (copied.time, UnknownRecord("hologram")), "a copied record's content changed"
    encoded = encode_record(Record(n=1, time=_TIME, body=Note("t", "x")))
    moved = store.append("s", [Draft(Note("t", "x"), _TIME, encoded), Draft(copied.body, copied.time, raw)])
    assert [record.n for record in moved] == [2, 3], "a copied record kept a number that is not its own"
    read = list(store.read("s", first=2))
    assert [decode_record(record.raw or b"").n for record in read] == [2, 3], "the bytes hold another number"
    assert read[0].body == Note("t", "x"), "a copied record that got another number changed"
    depth = msgspec.json.decode(read[1].raw or b"")["body"]
    assert depth == {"kind": "hologram", "depth": 3}, "an unknown record lost its content with its number"


def _check_verify(store: Store) -> None:
    """An undamaged store has no problems; a record without its media is a problem."""
    sha256 = store.put_blob(b"picture")
    store.create("good")
    store.append("good", [Draft(MessageRecord(Message("user", (Media("image", sha256=sha256),))))])
    store.create("bad")
    lost = Draft(MessageRecord(Message("user", (Media("image", sha256="0" * 64),))))
    store.append("bad", [said("x"), lost])
    assert store.verify("good") == [], "verify found damage in a good session"
    for problems in (store.verify(), store.verify("bad")):
        assert [(problem.session, problem.record) for problem in problems] == [("bad", 2)], f"found {problems}"
    raises(SessionNotFound, "verify of no session", store.verify, "none")


def _check_threads(store: Store) -> None:
    """Threads that share a store append to one session without losses, gaps or duplicates."""
    store.create("s")
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for count in range(25):
                store.append("s", [said(f"{name}{count}"), said(f"{name}{count}+")])
                sum(1 for _ in store.read("s", reverse=True, last=10))
        except (TurnlogError, OSError, RuntimeError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "wxyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, f"a thread failed: {failures[0]!r}"
    assert [record.n for record in store.read("s")] == list(range(1, 201)), "numbers have gaps or doubles"
    stored = texts(store, "s")
    assert sorted(stored) == sorted(f"{name}{n}{end}" for name in "wxyz" for n in range(25) for end in ("", "+"))
    for first, second in zip(stored[::2], stored[1::2], strict=True):
        assert second == first + "+", "records of one append were torn apart by another"


STORE_CHECKS: tuple[Callable[[Store], None], ...] = (
    _check_methods,
    _check_sessions,
    _check_append,
    _check_ranges,
    _check_parents,
    _check_session_ids,
    _check_conflicts,
    _check_all_or_nothing,
    _check_isolation,
    check_kinds,
    _check_reading_while_appending,
    _check_copies,
    check_forks,
    check_delete,
    check_blobs,
    _check_verify,
    check_usage,
    check_search,
    check_labels,
    check_sweep,
    check_holds,
    check_leases,
    check_inventory,
    check_reclaim,
    check_rewrite,
    _check_threads,
)
"""All checks. Each is called with an empty store and raises AssertionError."""

_BODIES: Sequence[Body] = (
    MessageRecord(Message("user", (Text("Grüße \x00 \U0001f600 \u2028"),)), count=Count(3, "test"), source="line 1"),
    MessageRecord(Message("user", (Text("lone \ud83d surrogate"),))),
    MessageRecord(Message("assistant", (ToolCall("c1", "run", {"x": [1, 2.5, None, 2**70]}),)), model="m"),
    ToolStarted("c1", 3, "run"),
    ToolFinished("c1", 3, "ok", seconds=0.25),
    MessageRecord(Message("user", (ToolResult("c1", "run", (Text("out"),), outcome="failed"),))),
    PartialAnswer(Message("assistant", (Text("I wa"),)), reason="disconnected", fragments=(Text("{"),)),
    UsageRecord("p", "m", Usage(input=5, output=6), raw={"in": 5}),
    Decision("mask", 1, 2, detail={"limit": float("inf"), "low": float("nan")}),
    SessionOpened("interactive", resumed=True),
    TurnOpened("t1"),
    TurnClosed("t1", "done"),
    FileChange("a.txt", "renamed", old_path="b.txt"),
    Note("topic", "text", {"deep": {"er": [True]}}),
    StreamCheckpoint(Message("assistant", (Text("I "),)), fragments=(ToolCall("c2", "run", raw='{"x'),)),
    SummaryRecord("k", "made", "Short.", summarizer="s/1"),
    SealedRecord("approval", b"no text"),
)
