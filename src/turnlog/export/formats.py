"""The formats in which a session can be written, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .._platform.files import write_whole
from .._platform.given import kind_given
from ..errors import InputError
from ..log.store import Problem, Store
from ..providers import PROVIDERS
from ..redaction.store import as_kept
from ..stores import PastDamage
from ..stores.places import store_given
from .bodies import as_body
from .lines import as_json, as_jsonl
from .markdown import as_markdown
from .page import as_html

_Format = Callable[[Store, str, list[Problem]], Iterator[bytes]]


def _past_damage(write: _Format, store: Store, session_id: str, problems: list[Problem]) -> Iterator[bytes]:
    """Write a session without its damaged records, each of which is a problem."""
    past = store if isinstance(store, PastDamage) else PastDamage(as_kept(store), problems.append)
    return write(past, session_id, problems)


_FORMATS: dict[str, _Format] = {
    "html": as_html,
    "markdown": as_markdown,
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
