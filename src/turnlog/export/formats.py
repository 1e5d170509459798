"""The formats in which a session can be written, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .._platform.files import write_whole
from .._platform.given import kind_given
from ..display.page import as_html
from ..errors import InputError
from ..log.records import Configuration
from ..log.store import Problem, Store
from ..providers import PROVIDERS
from ..providers.protocol import Parsed
from ..redaction.store import as_kept
from ..requests.build import build
from ..requests.standalone import aimed
from ..requests.translate import plan
from ..stores import PastDamage
from ..stores.places import store_given
from ..view.fold import as_left
from ..view.tool_calls import fate_of
from ..view.types import Edit, Loss
from .lines import as_json, as_jsonl
from .markdown import as_markdown, as_markdown_messages, as_markdown_records

# -- a session as a request body for a provider: the whole conversation, in that provider's JSO ----


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


_Format = Callable[[Store, str, list[Problem]], Iterator[bytes]]


def _past_damage(write: _Format, store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """Write a session without its damaged records, each of which is a problem."""
    past = store if isinstance(store, PastDamage) else PastDamage(as_kept(store), problems.append)
    return write(past, session_id, problems)


_FORMATS: dict[str, _Format] = {
    "html": as_html,
    "markdown": as_markdown,
    "markdown-messages": as_markdown_messages,
    "markdown-records": as_markdown_records,
    "json": as_json,
    "jsonl": as_jsonl,
    **{name: partial(as_body, name) for name in PROVIDERS},
}


FORMATS: dict[str, _Format] = {name: partial(_past_damage, write) for name, write in _FORMATS.items()}
"""Each function takes a store, a session id and a list to which it adds what it leaves out, and yields chunks of
UTF-8."""


def save(store: Store, session_id: str, form: str, path: str | Path) -> list[Problem]:
    """Write a session to a file, in one of `FORMATS`; returns what was left out or changed.

    Only the user can read the file (mode 0600), and it is written completely or not at all. Raises InputError for an
    unknown format and for a path that is not a file, SessionNotFound, OSError.
    """
    if not isinstance(form, str) or form not in FORMATS:
        raise InputError(f"unknown format {form!r}; use one of {', '.join(FORMATS)}")
    store_given(store, opened=True)
    kind_given("path", path, (str, Path), "the path of a file (str or Path)")
    problems: list[Problem] = []
    write_whole(Path(path), FORMATS[form](store, session_id, problems))
    return problems
