"""A session as a request body for a provider: the whole conversation, in that provider's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..log.records import Configuration
from ..log.store import Problem, Store
from ..providers.protocol import Parsed
from ..redaction.store import as_kept
from ..requests.build import build
from ..requests.standalone import aimed
from ..requests.translate import plan
from ..view.fold import as_left
from ..view.tool_calls import fate_of
from ..view.types import Edit, Loss


def as_body(provider: str, store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """The whole conversation as the user left it, valid for `provider`: no budget applies, and compacted messages are
    included.

    Each edit and each loss is a problem with its record number. Raises SessionNotFound, CorruptRecord, UnknownProvider.
    """
    records = list(as_kept(store).read(store.info(session_id).id))
    bodies = (record.body for record in reversed(records))
    configuration = next((body for body in bodies if isinstance(body, Configuration)), Configuration())
    target = aimed(Parsed(messages=(), configuration=configuration), provider, "")
    prepared = build(plan(configuration, target), as_left(records), store.get_blob, fate_of(records))
    changes: list[Edit | Loss] = [*prepared.edits, *prepared.losses]
    for change in changes:
        problems.append(Problem(session_id, change.records[0] if change.records else 0, str(change)))
    yield json.dumps(prepared.body, ensure_ascii=True, indent=1).encode("ascii") + b"\n"
