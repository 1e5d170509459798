"""Checks of what every store promises: records by kind, retention, forks, blobs, search, rewriting, usage.

Parts of `check_store`.
"""

from __future__ import annotations

import threading

from ..errors import BlobMissing, Conflict, InputError, SessionIdError, SessionNotFound
from ..log.bills import usage_by_model
from ..log.codec import encode_record
from ..log.messages import Media, Message, Text, ToolCall, ToolResult, sha256_hex
from ..log.records import (
    Body,
    Decision,
    FileChange,
    MessageRecord,
    Note,
    Record,
    TurnOpened,
    UnknownRecord,
    UsageRecord,
)
from ..log.store import Draft, Held, Store, Swept
from ..log.usage import Usage
from ..stores.records import kind_of
from .probing import raises, said, texts

# -- retained --------------------------------------------------------------------------------------
#
# Checks of what retention needs: the sessions in use, the readers of records, and their sizes. Part of `check_store`.


def check_holds(store: Store) -> None:
    """A session is in use while anybody holds its lock; an exclusive lock makes others wait."""
    assert _in_use(store) in (set(), None), "a new store has sessions in use"
    raises(SessionIdError, "a hold of a bad id", store.hold, "x" * 201)
    if _in_use(store) is None:  # this system or disk cannot report it
        return
    first, second = _lock(store, "a"), _lock(store, "a")  # before such a session exists
    store.create("a")
    assert _in_use(store) == {"a"}, "a locked session is not in use"
    assert store.hold("a", alone=True) is None, "a session that others hold was given to one alone"
    first.close()
    first.close()
    assert _in_use(store) == {"a"}, "a session is not in use though one of two holds it still"
    second.close()
    assert _in_use(store) == set(), "a session that nobody holds any more is in use"
    alone = _lock(store, "a", alone=True)
    assert store.hold("a", alone=True) is None, "two have a session alone"
    entered = threading.Event()

    def enter() -> None:
        hold = store.hold("a")
        entered.set()
        assert hold is not None
        hold.close()

    waiting = threading.Thread(target=enter)
    waiting.start()
    assert not entered.is_set(), "a session was entered while another had it alone"
    alone.close()
    waiting.join()
    assert entered.is_set(), "who waited for a session never got it"
    assert _in_use(store) == set(), "a hold outlived its end"


def check_inventory(store: Store) -> None:
    """The inventory lists the readers of all records, the blobs that they need, and the kept sessions."""
    small, large, _ = (store.put_blob(letter * size) for letter, size in ((b"s", 10), (b"l", 100_000), (b"x", 7)))
    store.create("a")
    store.append("a", [said("a1"), said("a2", blob=small), said("a3", blob=large), said("a4")])
    store.fork("a", "b", at=3)
    store.append("b", [said("b4")])
    store.create("c")
    inventory = store.inventory()
    assert sorted(inventory.blobs.values()) == [7, 10, 100_000], f"blobs are {inventory.blobs}"
    assert _owners(store) == {("a", "ab"), ("b", "b")}, f"pieces are {inventory.pieces}"
    assert _named(store) == {10, 100_000}, "the blobs that records name"
    assert all(piece.size > 0 for piece in inventory.pieces if piece.owner != "c"), "records take no room"
    store.delete("a")
    assert _owners(store) == {("", "b"), ("b", "b")}, "the records of a deleted session that a fork reads"
    assert _named(store) == {10, 100_000}, "the blobs of a deleted session that a fork reads"
    store.keep("b")
    store.keep("b")
    store.keep("c")
    store.keep("c", kept=False)
    assert store.inventory().kept == {"b"}, "sessions that are kept"
    raises(SessionNotFound, "keep of no session", store.keep, "a")
    store.delete("b")
    store.create("b")
    assert store.inventory().kept == frozenset(), "a new session is kept because one of its name was"
    assert store.verify() == [], "verify found damage after keeping and deleting"


def check_reclaim(store: Store) -> None:
    """Deleting frees disk space, and changes nothing else."""
    empty = store.used()
    for name in ("a", "b"):
        store.create(name)
        store.append(name, [said(_long(name, n)) for n in range(200)])
    full = store.used()
    assert full - empty > 600_000, f"400 records of 4 kB take {full - empty} bytes"
    store.delete("a")
    store.reclaim()
    assert store.used() - empty < (full - empty) * 0.6, "half of what was there is gone, and its room is not"
    assert texts(store, "b") == [_long("b", n) for n in range(200)], "reclaiming changed what was said"
    assert store.verify() == [], "verify found damage after reclaiming"


def _lock(store: Store, session_id: str, *, alone: bool = False) -> Held:
    hold = store.hold(session_id, alone=alone)
    assert hold is not None, f"session {session_id!r} could not be locked"
    return hold


def _in_use(store: Store) -> set[str] | None:
    in_use = store.inventory().in_use
    return None if in_use is None else set(in_use)


def _owners(store: Store) -> set[tuple[str, str]]:
    """The readers of the records that each session owns, regardless of how many pieces these are in."""
    readers: dict[str, set[str]] = {}
    for piece in store.inventory().pieces:
        if piece.readers and piece.size:
            readers.setdefault(piece.owner, set()).update(piece.readers)
    return {(owner, "".join(sorted(sessions))) for owner, sessions in readers.items()}


def _named(store: Store) -> set[int]:
    """The sizes of the blobs that records refer to; a store may use other names for them."""
    inventory = store.inventory()
    return {inventory.blobs[name] for piece in inventory.pieces for name in piece.blobs}


def _long(name: str, n: int) -> str:
    """A text of 4 kB that cannot be compressed to less than half."""
    return "".join(sha256_hex(f"{name} {n} {line}".encode()) for line in range(64))


# -- forks -----------------------------------------------------------------------------------------
#
# Checks of forks, and of deleting sessions that have forks. Part of `check_store`.


def check_forks(store: Store) -> None:
    """A fork begins with the records of its parent and then has its own; the same holds for forks of forks."""
    store.create("a")
    store.append("a", [said("a1"), said("a2"), Draft(Note("n")), said("a4")])
    fork = store.fork("a", "b", at=3, title="B")
    assert (fork.id, fork.title, fork.parent, fork.parent_records) == ("b", "B", "a", 3), f"fork returned {fork}"
    assert (fork.records, fork.messages) == (3, 2), f"a fork counts what it shares: {fork}"
    assert store.info("b") == fork, "info differs from what fork returned"
    assert [record.n for record in store.append("b", [said("b4"), said("b5")])] == [4, 5], "numbers go on"
    store.append("a", [said("a5")])
    store.fork("b", "c", at=2)
    store.fork("b", "d")
    store.append("d", [said("d6")])
    store.fork("d", "e", at=5)
    store.append("e", [said("e6")])
    store.fork("a", "z", at=0)
    wanted = {
        "a": ["a1", "a2", "a4", "a5"],
        "b": ["a1", "a2", "b4", "b5"],
        "c": ["a1", "a2"],
        "d": ["a1", "a2", "b4", "b5", "d6"],
        "e": ["a1", "a2", "b4", "b5", "e6"],
        "z": [],
    }
    for session, expected in wanted.items():
        texts_read = texts(store, session)
        assert texts_read == expected, f"fork {session!r} has {texts_read}, not {expected}"
        back = [record.n for record in store.read(session, reverse=True)]
        assert back == list(range(store.info(session).records, 0, -1)), f"fork {session!r} read backwards"
    assert [record.n for record in store.read("e", first=3, last=6)] == [3, 4, 5, 6], "a range across the boundary"
    assert store.info("e").messages == 5, "messages of a fork of a fork"
    for end in (-1, 6, True, 2.0, "2"):  # True equals 1, and would be stored as True
        raises(InputError, f"fork at {end!r} of 5 records", store.fork, "a", "f", at=end)
    raises(SessionNotFound, "fork of no session", store.fork, "y", "f")
    assert store.verify() == [], "verify found damage in forks"


def check_delete(store: Store) -> None:
    """A deleted session no longer exists, its forks are complete, and its id can be used for a new, empty session."""
    store.create("a")
    store.append("a", [said(f"a{n}") for n in range(1, 6)])
    store.fork("a", "b", at=3)
    store.append("b", [said("b4")])
    store.fork("b", "c", at=2)
    conflict = raises(Conflict, "delete, expected too low", store.delete, "a", expected=4)
    assert (conflict.expected, conflict.actual) == (4, 5), f"the conflict says {conflict}"
    assert texts(store, "a") == [f"a{n}" for n in range(1, 6)], "a refused delete took something away"
    store.delete("a", expected=5)
    for use in (store.info, store.read, store.delete, lambda id: store.append(id, [said("x")]), store.verify):
        raises(SessionNotFound, "use of a deleted session", use, "a")
    store.delete("a", missing_ok=True)
    assert sorted(info.id for info in store.sessions()) == ["b", "c"], "a deleted session is listed"
    assert texts(store, "b") == ["a1", "a2", "a3", "b4"], "a fork lost records with its parent"
    store.create("a")
    assert texts(store, "a") == [], "a new session has records of a deleted one"
    store.append("a", [said("new")])
    store.delete("b")
    assert texts(store, "c") == ["a1", "a2"], "a fork lost records with its parents"
    assert store.verify() == [], "verify found damage after deleting"
    store.append("c", [said("c3")])
    store.delete("c")
    assert texts(store, "a") == ["new"], "deleting forks touched another session"
    assert [info.id for info in store.sessions()] == ["a"], "sessions after deleting"
    assert store.verify() == [], "verify found damage after deleting forks"


# -- sweeps ----------------------------------------------------------------------------------------
#
# Checks of blobs, and of sweeping blobs that no record refers to. Part of `check_store`.

_BIG = 100_000


def check_blobs(store: Store) -> None:
    """Bytes of any size are returned by their hash; putting them twice changes nothing."""
    for data in (b"", b"\x00\xff" * 10, b"\r\n\x1a" * 20_000, bytes(range(256)) * 2000):
        name = store.put_blob(data)
        assert name == sha256_hex(data), "put_blob did not return the SHA-256"
        assert store.put_blob(data) == name, "the same bytes have another name the second time"
        assert store.get_blob(name) == data, f"a blob of {len(data)} bytes came back changed"
    for missing in ("0" * 64, "", "../../etc/passwd", "g" * 64):
        _gone(store, missing)
    assert store.verify() == [], "verify found damage in good blobs"


def check_sweep(store: Store) -> None:
    """A sweep removes blobs that no record refers to, and nothing else; new blobs may wait for their record."""
    seen, changed, nested, newer, shared = (store.put_blob(f"{n}".encode() * _BIG) for n in range(5))
    small, lost = store.put_blob(b"small"), store.put_blob(b"lost")
    assert store.sweep() == Swept(0, 0, 7), "a sweep removed blobs that were just put, or counted them wrongly"
    store.create("a")
    store.append("a", [said("", blob=shared)])
    store.fork("a", "b")
    result = ToolResult("c", "look", (Media("image", sha256=nested),))
    hologram = encode_record(Record(4, "", Note("x", data=newer))).replace(b'"note"', b'"hologram"')
    store.append(
        "a", [Draft(MessageRecord(Message("user", (result,)))), Draft(FileChange("f", "modified", after=changed))]
    )
    store.append("a", [Draft(UnknownRecord("hologram"), raw=hologram), said("", blob=seen), said("", blob=small)])
    assert store.sweep(grace=0) == Swept(1, 4, 0), "a sweep did not remove the one blob that nothing refers to"
    _gone(store, lost)
    for name in (seen, changed, nested, newer, shared, small):
        store.get_blob(name)
    assert store.put_blob(b"lost") == lost, "a blob cannot be put again after it was swept away"
    assert store.get_blob(lost) == b"lost", "a blob that was put again is not there"
    store.append("b", [said("", blob=lost)])
    store.delete("a")
    assert store.sweep(grace=0) == Swept(5, 4 * _BIG + 5, 0), "a sweep after deleting a session"
    for name in (seen, changed, nested, newer, small):
        _gone(store, name)
    for name in (shared, lost):
        store.get_blob(name)
    assert store.verify() == [], "verify found damage after a sweep"
    store.delete("b")
    assert (swept := store.sweep(grace=0)).removed == 2, f"of two blobs to which nothing refers, a sweep took {swept}"


def _gone(store: Store, name: str) -> None:
    raises(BlobMissing, f"reading blob {name!r}, which should not be there,", store.get_blob, name)


# -- searches --------------------------------------------------------------------------------------
#
# Checks of search. Part of `check_store`.

_TIME = "2026-01-02T03:04:05.678Z"


def check_search(store: Store) -> None:
    """A search finds records by word, role, tool and time, and no deleted records."""
    search = store.search
    result = ToolResult("c1", "", (Text("out: 7 apples"),))  # only the call has the tool's name
    store.create("a")
    store.append("a", [said("Grüße, two red APPLES"), said("two and red", time=_TIME), said('"quotes" AND (NEAR')])
    store.append("a", [Draft(MessageRecord(Message("assistant", (ToolCall("c1", "count", {"what": "apples"}),))))])
    store.append("a", [Draft(MessageRecord(Message("user", (result,)))), Draft(Note("fruit", "apples"))])
    for options, wanted in (
        ({"query": "apples"}, [6, 5, 4, 1]),
        ({"query": "apples", "limit": 2}, [6, 5]),
        ({"query": "app* two"}, [1]),
        ({"query": '"two red"'}, [1]),
        ({"query": '"two re"*'}, [1]),
        ({"query": "grusse"}, []),
        ({"query": "grüße"}, [1]),
        ({"query": "GRU*"}, [1]),
        ({"query": "apple"}, []),
        ({"query": 'and "'}, [3, 2]),
        ({"query": "near(", "session": "a"}, [3]),
        ({"query": "apples", "role": "tool"}, [5]),
        ({"query": "apples", "role": "note"}, [6]),
        ({"query": "apples", "tool": "count"}, [5, 4]),
        ({"query": "apples", "tool": "coun"}, []),
        ({"query": "two", "until": _TIME[:7]}, [2]),
        ({"query": "two", "since": _TIME[:10], "until": _TIME[:10]}, [2]),
    ):
        hits = [hit.record for hit in search(**options)]
        assert hits == wanted, f"search {options} found {hits}, not {wanted}"
    hit = search("red apples")[0]
    assert hit.snippet[hit.start : hit.end].lower() in ("red", "apples"), f"the hit is not where {hit} says"
    store.fork("a", "b", at=5)
    store.append("b", [said("green apples")])
    both = [(hit.session, hit.record) for hit in search("apples")]
    assert both == [("b", 6), ("a", 6), ("a", 5), ("a", 4), ("a", 1)], f"with a fork, search found {both}"
    store.delete("a")
    left = [(hit.session, hit.record) for hit in search("apples")]
    assert left == [("b", 6), ("b", 5), ("b", 4), ("b", 1)], f"after deleting, search found {left}"
    raises(InputError, "search for no word", search, ' *"-" ')
    raises(InputError, "search since no date", search, "apples", since="yesterday")
    raises(SessionNotFound, "search in no session", search, "apples", session="a")
    assert store.verify() == [], "verify found damage after searching"


def check_labels(store: Store) -> None:
    """Sessions are listed and searched by their labels: the newest note of each counts, also in a fork."""

    def asked(**where: str) -> tuple[list[str], list[tuple[str, int]]]:
        listed = sorted(info.id for info in store.sessions(where=where))
        return listed, [(hit.session, hit.record) for hit in store.search("apples", where=where)]

    def label(session: str, **labels: str) -> None:
        store.append(session, [Draft(Note("labels", "", labels))])

    for name in ("a", "b", "c"):
        store.create(name)
        store.append(name, [said("apples")])
    label("a", user="ann", team="x")
    label("b", user="bob", team="x")
    results = [asked(user="ann"), asked(team="x"), asked(user=""), asked(user="ann", team=""), asked(user="cy")]
    both = (["a", "b"], [("b", 1), ("a", 1)])
    wanted = [(["a"], [("a", 1)]), both, (["c"], [("c", 1)]), ([], []), ([], [])]
    assert results == wanted, f"by labels, the store found {results}, not {wanted}"
    store.fork("a", "d")
    label("d", user="dan")
    label("a", user="née ☂\x00")
    facts = {name: dict(known.labels) for name, known in store.facts().items()}
    wanted_facts = {"a": {"user": "née ☂\x00"}, "b": {"user": "bob", "team": "x"}, "c": {}, "d": {"user": "dan"}}
    assert facts == wanted_facts, f"facts has the labels {facts}, not {wanted_facts}"
    results = [asked(user="ann"), asked(user="dan"), asked(user="née ☂\x00")]
    wanted = [([], []), (["d"], [("d", 1)]), (["a"], [("a", 1)])]
    assert results == wanted, f"after labels changed, the store found {results}, not {wanted}"
    assert store.search("apples", session="a", where={"user": "dan"}) == [], "search in a session without the label"
    assert [info.id for info in store.sessions(where={"user": "dan"}, limit=1)] == ["d"], "labels with a limit"
    assert len(store.search("apples", where={})) == 3, "no labels asked for are not all sessions"
    store.delete("d")
    assert asked(user="dan") == ([], []), "a deleted session is found by its label"
    raises(InputError, "search for a label that is no text", store.search, "apples", where={"user": 5})
    assert store.verify() == [], "verify found damage after searching by labels"


# -- rewrites --------------------------------------------------------------------------------------
#
# Checks of `rewrite`, the only operation that changes appended records. Part of `check_store`.


def check_rewrite(store: Store) -> None:
    """Rewritten records are changed, also in forks; everything else is unchanged, and `verify` finds no damage."""
    old, other = store.put_blob(b"old picture"), store.put_blob(b"kept picture")
    store.create("a")
    store.append("a", [said("a1"), said("hunter2 a2", blob=old), said("a3", blob=other)])
    store.fork("a", "b", at=2)
    store.append("b", [said("b3"), said("hunter2 b4")])
    store.fork("b", "c")
    store.append("c", [said("c5")])
    store.append("a", [said("a4")])
    store.fork("a", "d", at=1)
    store.append("d", [said("d2")])
    before = {session: list(store.read(session)) for session in "abcd"}
    new = {n: encode_record(Record(n, before["b"][n - 1].time, said(f"clean {n}").body)) for n in (2, 4)}
    store.rewrite("b", new, blobs=[old])
    wanted = {
        "a": ["a1", "clean 2", "a3", "a4"],
        "b": ["a1", "clean 2", "b3", "clean 4"],
        "c": ["a1", "clean 2", "b3", "clean 4", "c5"],
        "d": ["a1", "d2"],
    }
    for session, expected in wanted.items():
        records = list(store.read(session))
        assert [_text(record) for record in records] == expected, f"session {session!r} after a rewrite"
        same = [record for record in records if not _text(record).startswith("clean")]
        assert all(record.raw == before[session][record.n - 1].raw for record in same), (
            "a rewrite changed other records"
        )
        back = [_text(record) for record in store.read(session, reverse=True)]
        assert back == expected[::-1], "read backwards after a rewrite"
        assert store.info(session).records == len(expected), "info after a rewrite"
    assert store.verify() == [], f"verify after a rewrite: {store.verify()}"
    assert store.get_blob(other) == b"kept picture", "a rewrite deleted a blob that was not in `blobs`"
    raises(BlobMissing, "reading a deleted blob", store.get_blob, old)
    raises(InputError, "a rewrite of a record that does not exist", store.rewrite, "b", {9: new[2]})
    raises(InputError, "a rewrite under another number", store.rewrite, "b", {3: new[2]})
    raises(SessionNotFound, "a rewrite of an unknown session", store.rewrite, "x", {})
    assert [record.n for record in store.append("c", [said("c6")])] == [6], "append after a rewrite"
    assert store.verify() == [], "verify after a rewrite and an append"
    assert store.sweep(grace=0) == Swept(0, 0, 0), "a sweep after a rewrite found blobs that the rewrite had deleted"


def _text(record: Record) -> str:
    part = record.message.parts[0] if record.message else None
    return part.text if isinstance(part, Text) else ""


# -- bills -----------------------------------------------------------------------------------------
#
# Checks of a store's usage sums. Part of `check_store`.


def check_usage(store: Store) -> None:
    """Usage summed by model equals that of the records, also in forks, and after the parent session is deleted.
    `usages` counts what forks share, and copies of an answer, once."""
    message = said("x")
    store.create("s")
    bills = [UsageRecord("p", model, Usage(input=n, output=1)) for n, model in enumerate(("a", "b", "a", ""), 1)]
    store.append("s", [draft for bill in bills for draft in (message, Draft(bill))])
    store.create("free")
    store.append("free", [message])
    store.fork("s", "f", at=5)
    store.append("f", [Draft(bills[3])])
    store.fork("f", "g")
    expected = {name: usage_by_model(store.read(name)) for name in "sfg"}
    assert expected["f"] == {"a": Usage(input=1, output=1), "b": bills[1].usage, "": bills[3].usage}
    assert {name: store.usage(name) for name in "sfg"} == expected, "usage() differs from the records"
    added = {"s": expected["s"], "f": usage_by_model([list(store.read("f"))[-1]])}
    assert store.usages() == added, "usages() differs from what each session added"
    copied = UsageRecord("p", "a", Usage(input=9), response_id="r")
    for name in ("t", "u"):
        store.create(name, created=f"2001-01-0{'ut'.index(name) + 1}T00:00:00.000Z")
        store.append(name, [message, Draft(copied)])
    assert store.usages() == {**added, "u": {"a": copied.usage}}, "a copied answer is not counted once"
    for name in ("s", "t", "u"):
        store.delete(name)
    assert {name: store.usage(name) for name in "fg"} == {name: expected[name] for name in "fg"}
    assert (store.usage("free"), store.usages()) == ({}, {"f": expected["f"]})
    raises(SessionNotFound, "usage of an unknown session", store.usage, "s")


_BODIES: tuple[Body, ...] = (
    TurnOpened("t1"),
    MessageRecord(Message("user", (Text('a "file_change", a "turn_opened"'), Text("lone \ud83d surrogate")))),
    MessageRecord(Message("system", (Text('"message"'),))),
    FileChange("a", "created"),
    FileChange("b \ud83d", "renamed", old_path="a"),
    MessageRecord(Message("user", (ToolResult("c1"),))),
    Decision("mask", 1, 2, detail={"limit": float("inf"), "kind": "file_change"}),
    Note("file_change"),
)
_QUERIES: tuple[tuple[str, ...], ...] = (
    ("file_change",),
    ("turn_opened", "file_change"),
    ("message",),
    ("system",),
    ("system", "decision", "configuration"),
    ("note", "usage"),
    (),
)


def check_kinds(store: Store) -> None:
    """Records of a kind are found, in order, also in forks; a text that contains the name of a kind does not count."""
    store.create("s")
    store.append("s", [Draft(body) for body in (*_BODIES, *_BODIES)])
    store.fork("s", "t", at=13)
    store.append("t", [Draft(FileChange("mine", "created"))])
    for session in ("s", "t"):
        for kinds in _QUERIES:
            wanted = [record.raw for record in store.read(session) if not _words_of(record.body).isdisjoint(kinds)]
            raw_records = [record.raw for record in store.of_kinds(session, kinds)]
            assert raw_records == wanted, f"of_kinds of {kinds} gave {len(raw_records)} records, not {len(wanted)}"
            back = [record.raw for record in store.of_kinds(session, kinds, reverse=True)]
            assert back == wanted[::-1], f"of_kinds of {kinds} backwards gave other records than in order"
        for first in (0, 5, 13, 14, 18, 19):
            late = [record.n for record in store.read(session, first=first) if kind_of(record.body) == "file_change"]
            found_late = [record.n for record in store.of_kinds(session, ("file_change",), first=first)]
            assert found_late == late, f"of_kinds from {first} on gave records {found_late}, not {late}"
            back_to = [record.n for record in store.of_kinds(session, ("file_change",), first=first, reverse=True)]
            assert back_to == late[::-1], f"of_kinds back to {first} gave records {back_to}, not {late[::-1]}"
    raises(SessionNotFound, "of_kinds of an unknown session", lambda: list(store.of_kinds("u", ("note",))))


def _words_of(body: Body) -> set[str]:
    is_system = isinstance(body, MessageRecord) and body.message.role == "system"
    return {kind_of(body), "system" if is_system else ""}
