"""Checks of blobs, and of sweeping blobs that no record refers to. Part of `check_store`."""

from __future__ import annotations

from ..errors import BlobMissing
from ..log.codec import encode_record
from ..log.messages import Media, Message, ToolResult, sha256_hex
from ..log.records import FileChange, MessageRecord, Note, Record, UnknownRecord
from ..log.store import Draft, Store, Swept
from .probing import raises, said

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
    assert store.sweep(grace=0).removed == 2, "a blob outlived all that referred to it"


def _gone(store: Store, name: str) -> None:
    raises(BlobMissing, f"reading blob {name!r}, which should not be there,", store.get_blob, name)
