"""Checks of `rewrite`, the only operation that changes appended records. Part of `check_store`."""

from __future__ import annotations

from ..errors import BlobMissing, InputError, SessionNotFound
from ..log.codec import encode_record
from ..log.messages import Text
from ..log.records import Record
from ..log.store import Store, Swept
from .probing import raises, said


def check_rewrite(store: Store) -> None:
    """Rewritten records are changed, also in forks; everything else is unchanged, and `verify` finds no damage."""
    old, kept = store.put_blob(b"old picture"), store.put_blob(b"kept picture")
    store.create("a")
    store.append("a", [said("a1"), said("hunter2 a2", blob=old), said("a3", blob=kept)])
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
    for session, texts in wanted.items():
        records = list(store.read(session))
        assert [_text(record) for record in records] == texts, f"session {session!r} after a rewrite"
        same = [record for record in records if not _text(record).startswith("clean")]
        assert all(record.raw == before[session][record.n - 1].raw for record in same), (
            "a rewrite changed other records"
        )
        back = [_text(record) for record in store.read(session, reverse=True)]
        assert back == texts[::-1], "read backwards after a rewrite"
        assert store.info(session).records == len(texts), "info after a rewrite"
    assert store.verify() == [], f"verify after a rewrite: {store.verify()}"
    assert store.get_blob(kept) == b"kept picture", "a rewrite deleted a blob that was not in `blobs`"
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
