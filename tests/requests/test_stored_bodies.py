"""Recorded request bodies there and back: parsed, stored, read again, rendered without repair."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from draws import draws
from recorded_bodies import recorded_bodies
from turnlog.log.records import Configuration, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.stores import open_store
from turnlog.view.types import Shown


@pytest.mark.slow
def test_stored_bodies_come_back_equal(shared: Path, tmp_path: Path) -> None:
    """What a store loses of a request (a spelling, an order of keys, a blob) is in no later request."""
    differ = []
    answered = [one for one in recorded_bodies(shared) if one.name.startswith("requests")]  # the others were refused
    bodies = answered[:: draws(12, 1)]
    with closing(open_store(str(tmp_path / "log.db"))) as store:
        for number, one in enumerate(bodies):
            speaker = provider(one.provider)
            parsed = speaker.parse(one.body)
            for data in parsed.blobs.values():
                store.put_blob(data)
            store.create(f"s{number}")
            said = (parsed.configuration, *map(MessageRecord, parsed.messages))
            store.append(f"s{number}", [Draft(body) for body in said])
            records = list(store.read(f"s{number}"))
            assert isinstance(records[0].body, Configuration)
            view = [Shown(record.message, (record.n,)) for record in records if record.message is not None]
            aim = target(one.provider, one.model or "any")
            if speaker.render(view, records[0].body, aim, store.get_blob).body != one.body:
                differ.append(one.name)
    assert len(bodies) > 100
    assert differ == []
