"""What a session has to know of its log however far back it stands: decisions, settings, system text.

Of a decision that no view shows anything of any more, as a later one hides all that it did, only the outline is kept
and its text not read again; so it is with settings that others took the place of, each with all tools there were. A
long session has hundreds of those.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from ..log.records import Configuration, Decision, Record
from ..log.store import RecordStore
from ..view.decisions import Rewinds, active_decisions, ended_decisions, lasting, told
from ..view.types import Edit

__all__ = ["LandmarkReader", "Landmarks"]

_SUMMARY = "replacement"
"""The entry of a decision's `detail` that is left out of an outline: a view alone has a use for it, and what lasts can
be told without it."""


class Landmarks(Struct, frozen=True):
    """The landmarks of a log.

    `records` are all of them in order, `configuration` the one in force. `decisions` are those in force by record
    number, `lasting` those among them that views show something of; `past` those in force and among them what took
    others back: what the next decision has regard to. `rewinds` and `told` (an edit for each that lasts) follow from
    them.
    """

    records: tuple[Record, ...]
    configuration: Configuration
    decisions: Mapping[int, Decision]
    lasting: Mapping[int, Decision]
    past: tuple[Decision, ...]
    rewinds: Rewinds
    told: tuple[Edit, ...]


class LandmarkReader:
    """Reads the landmarks of one log again and again."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._store = store
        self._id = session_id
        self._outlines: dict[int, Record] = {}

    def read(self) -> Landmarks:
        """The landmarks as they are now."""
        found: dict[int, Record] = {}
        settings = 0  # the record of the newest configuration so far: those before it are in force no more
        for record in self._store.landmarks(self._id, known=self._outlines.keys()):
            found[record.n] = record
            if isinstance(record.body, Configuration):
                if settings:
                    self._outlines[settings] = found.pop(settings).in_passing
                settings = record.n
        made = _landmarks({**found, **self._outlines})
        for n in made.lasting.keys() & self._outlines.keys():  # what hid it was taken back
            found.update((record.n, record) for record in self._store.read(self._id, first=n, last=n))
            del self._outlines[n]
        for n, record in found.items():
            body = record.body
            if isinstance(body, Decision) and n not in made.lasting and _SUMMARY in body.detail:
                self._outlines[n] = _outline(record, body)
        return _landmarks({**found, **self._outlines})


def _outline(record: Record, decision: Decision) -> Record:
    detail = {key: value for key, value in decision.detail.items() if key != _SUMMARY}
    return Record(record.n, record.time, msgspec.structs.replace(decision, detail=detail))


def _landmarks(found: Mapping[int, Record]) -> Landmarks:
    records = tuple(found[n] for n in sorted(found))
    configurations = [record.body for record in records if isinstance(record.body, Configuration)]
    decisions, ended = active_decisions(records), ended_decisions(records)
    lasts = lasting(decisions, {record.n for record in records if record.message is not None})
    return Landmarks(
        records=records,
        configuration=configurations[-1] if configurations else Configuration(),
        decisions=decisions,
        lasting=lasts,
        past=tuple(r.body for r in records if isinstance(r.body, Decision) and r.n not in ended),
        rewinds=Rewinds.of(records),
        told=told(lasts),
    )
