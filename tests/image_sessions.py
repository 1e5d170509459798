"""Sessions with images under `max_history_images`, beside what must become of each image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import reference_model as model
from judging import errors_of
from real_transcripts import FOLDERS, JUDGED, imported
from turnlog.importers import Imported
from turnlog.log.budget import Strategy
from turnlog.log.messages import Media, Message, Text, ToolResult, media_parts
from turnlog.log.records import Record
from turnlog.log.store import Draft
from turnlog.models.target import Target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

__all__ = ["CAPS", "JUDGED", "judge_images", "with_images"]

CAPS = (1, 3, None)


def with_images(shared: Path, folders: Iterable[str] = FOLDERS) -> Iterator[tuple[Path, Imported]]:
    """The sessions in these folders of the shared material that hold images."""
    for path, session in imported(shared, folders):
        said = [_message(draft) for draft in session.drafts]
        if any(media.kind == "image" for message in said if message for media in media_parts(message)):
            yield path, session


def _message(draft: Draft) -> Message | None:
    return Record(0, "", draft.body).message


def _slots(message: Message) -> list[Media | Text]:
    """The images of a message and the texts, in order, wherever they stand."""
    found: list[Media | Text] = []
    for part in message.parts:
        inner = part.parts if isinstance(part, ToolResult) else (part,)
        found += [one for one in inner if isinstance(one, Text) or (isinstance(one, Media) and one.kind == "image")]
    return found


def expected(lines: list[model.Line], log: list[Record], most: int | None) -> dict[int, list[Media | Text]]:
    """For each message of the conversation that has images: what must stand in it now."""
    number: dict[tuple[int, int], int] = {}
    for record in log:
        if record.message is not None:
            for i, slot in enumerate(_slots(record.message)):
                if isinstance(slot, Media):
                    number[record.n, i] = len(number) + 1
    shown = {line.record: _slots(line.original) for line in lines if not line.summary}
    images = [(n, i) for n, slots in shown.items() for i, slot in enumerate(slots) if isinstance(slot, Media)]
    stay = set(images if most is None else images[max(0, len(images) - most) :])
    first = next((line for line in lines if model.speaks(line)), None)
    stay.update([at for at in images if first is not None and at[0] == first.record][:1])
    return {
        n: [
            Text(f"[Image from Step {number[n, i]} removed to save context]")
            if isinstance(slot, Media) and (n, i) not in stay
            else slot
            for i, slot in enumerate(slots)
        ]
        for n, slots in shown.items()
        if any(isinstance(slot, Media) for slot in slots)
    }


def judge_images(
    imported_session: Imported, aim: Target, most: int | None, oracle: ModuleType | None, *, every: int = 1
) -> tuple[int, list[str]]:
    """Replays a session record by record with a request at every `every`-th message: how many, and what was wrong."""
    store = MemoryStore()
    store.create("s")
    for data in imported_session.blobs.values():
        store.put_blob(data)
    session = Session(store, store.info("s"))
    session.switch(aim)
    session.configure(strategy=Strategy(max_history_images=most, max_history_turns=None))
    wrong: list[str] = []
    asked = messages = 0
    drafts = [draft for draft in imported_session.drafts if type(draft.body).__name__ != "Configuration"]
    drafts = [_moved(draft) for draft in drafts]
    for i, draft in enumerate(drafts):
        store.append("s", [draft])
        messages += _message(draft) is not None
        if i < len(drafts) - 1 and (_message(draft) is None or messages % every):
            continue
        made = session.request()
        asked += 1
        log = session.history()
        lines = model.conversation(log)
        now = {line.record: _slots(line.message) for line in lines if not line.summary}
        for n, slots in expected(lines, log, most).items():
            if now[n] != slots:
                wrong.append(f"record {n}: {now[n]}, should be {slots}")
        if oracle is not None:
            wrong += errors_of(oracle, aim, made.body)
        if wrong:
            break
    return asked, wrong


def _moved(draft: Draft) -> Draft:
    return Draft(draft.body, draft.time)
