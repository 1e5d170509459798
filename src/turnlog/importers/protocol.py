"""The importer protocol: an importer recognises a foreign transcript by its content and converts it into drafts.

To add a format, add a row to `catalog.FORMATS`, and write the module that it names, with `read`. Importers share
`transcript` (a file and its damage), `databases` (SQLite), `writing` (a session from the entries of a program, and
`drafting` below it, which collects records), `parts` (parts of messages), `messages` (messages in the shape of an API),
`json_values` (reading JSON of unknown types) and `repeats` (leaving out repetitions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from ..errors import ImportFailed
from ..log.messages import compact_json, sha256_hex
from ..log.store import Draft, is_plain_id, is_reference
from .marks import has_marks, has_tables

Origin = Path | bytes
"""The source of a transcript: a file (for some formats a folder), or its bytes."""


Lost = Literal["entry", "part", "nothing"]
"""What is not imported: a whole message or line (`entry`), part of one (`part`), or nothing of the conversation."""


class Damage(Struct, frozen=True):
    """A part of a transcript that is damaged or not understood, and what was done about it. `line` counts from 1; 0
    means the whole file. `lost` says how much of the conversation is not imported because of it, `count` how often it
    was met: what is not understood is told once, with the first place."""

    file: str
    line: int
    message: str
    lost: Lost = "part"
    count: int = 1


class Imported(Struct, frozen=True, kw_only=True):
    """One session of a transcript, ready to be appended to an empty log.

    `session_id` is made from the transcript's own id and satisfies `check_session_id`; the same transcript always gives
    the same id. `format` names the transcript's format. `parent` is the id of the session that this one belongs to (as
    a sidechain or a fork); that session may not be imported. `created` is the time when the session began, if it is not
    the time of its first record. `written` is the time when the transcript was last written, if it has no times itself:
    its records get it. `drafts` are records without a number; a record number inside one is a position in
    `drafts`, from 1. `blobs` are the media bytes by hex SHA-256. `files` are all files that were read. `echoes`: notes
    that repeat the text of the message that follows them. They are imported only while that message is not in the
    transcript yet. Maps (time, topic) of the note to the key of its data that holds the text.
    """

    session_id: str
    format: str
    title: str = ""
    parent: str = ""
    created: str = ""
    written: str = ""
    drafts: tuple[Draft, ...] = ()
    blobs: dict[str, bytes] = {}
    warnings: tuple[Damage, ...] = ()
    files: tuple[str, ...] = ()
    echoes: dict[tuple[str, str], str] = {}


MARKED = 92
"""The score of a format that is recognised by its marks or tables, which say more than words in the first bytes."""


class Importer(Struct, frozen=True, kw_only=True):
    """A format of transcripts as data: a row of `catalog.FORMATS`.

    `title` says what a file of it is ("a session of goose"). `module` is the module of this package that has its
    `read(origin)`; "" if files are recognised and refused by name, with `near` as the reason or the advice.

    A file is recognised by `marks`, `tables` or `named`, or else by the module's `sniff(head, path)`, which says how
    sure it is, from 0 to 100. `marks`: paths that its JSON values have together (`marks`). `tables`: tables, and
    columns as `table.column`, that its SQLite database has together, separated by spaces. `named`: patterns for the
    end of its path.

    `where` are patterns below a home folder at which the program keeps such files, read or not (`<editor>` and `<data>`
    stand for the folders in `catalog.ROOTS`); `also` those of other programs that write the same format, by their
    names. `beside` are the names of what may appear beside a file, and is read with it: `{name}` is the name of the
    file, `{stem}` that without its last ending, `{first}` without all endings, `{session}` the id of its session.
    `checked` says when, and against what, the format was last checked.
    """

    name: str
    title: str
    checked: str = ""
    module: str = ""
    near: str = ""
    marks: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    also: dict[str, tuple[str, ...]] = {}
    beside: tuple[str, ...] = ()

    @property
    def is_data(self) -> bool:
        """Whether data alone recognises the format, so that its module need not be loaded to tell."""
        return bool(self.marks or self.tables or self.named)

    def sniff(self, head: bytes, path: Path | None) -> int:
        """How sure it is that a transcript has this format, from 0 (not at all) to 100. It gets the first bytes, in
        UTF-8 and without a byte order mark; none for a folder. Must not raise."""
        if not self.is_data:
            return int(self._module.sniff(head, path))
        is_named = path is not None and any(map(path.match, self.named))
        is_found = has_marks(head, self.marks) or any(has_tables(head, path, each) for each in self.tables)
        return MARKED if is_named or is_found else 0

    def read(self, origin: Origin) -> Iterable[Imported]:
        """Every session in the transcript, the main one first: a list, or one after the other from a database. Damage
        becomes a warning, and everything readable is kept. Raises ImportFailed if nothing can be read."""
        sessions: Iterable[Imported] = self._module.read(origin)
        return sessions

    @property
    def _module(self) -> ModuleType:
        return import_module(f"{__package__}.{self.module}")


def origin_name(origin: Origin) -> str:
    """The name of a transcript for messages to the user."""
    return str(origin) if isinstance(origin, Path) else "the bytes given"


def contents(origin: Origin) -> bytes:
    """The bytes of a transcript file. Raises ImportFailed if it cannot be read."""
    if isinstance(origin, bytes):
        return origin
    try:
        return origin.read_bytes()
    except OSError as error:
        raise ImportFailed(f"{origin}: cannot be read ({error.strerror}); name a readable transcript file") from error


_UNSAFE = lazy_pattern(r"[^A-Za-z0-9._-]+")


def digest_of(value: Any) -> str:
    """The hex SHA-256 of a JSON value."""
    return sha256_hex(compact_json(value).encode("utf-8", "surrogatepass"))


def hashed_id(kind: str, first: Any) -> str:
    """A session id for a transcript without an id, made from the beginning of the transcript, which stays the same when
    the transcript grows."""
    return f"{kind}-{digest_of(first)[:16]}"


def with_own_ids(sessions: Iterable[Imported]) -> list[Imported]:
    """The sessions; a number is appended to ids that occur more than once."""
    seen: dict[str, int] = {}
    result: list[Imported] = []
    for session in sessions:
        count = seen[session.session_id] = seen.get(session.session_id, 0) + 1
        session_id = session.session_id if count == 1 else session_id_of(f"{session.session_id}-{count}")
        result.append(replace(session, session_id=session_id))
    return result


def with_damage(session: Imported, *damage: Damage) -> Imported:
    """The session with these warnings added."""
    return replace(session, warnings=(*session.warnings, *damage))


def with_subagents(
    sessions: Sequence[Imported], paths: Iterable[Path], read_one: Callable[[Path], Iterable[Imported]]
) -> list[Imported]:
    """The sessions of a file, and those of its subagents in files of their own, which are children of the first."""
    main, *others = sessions
    children: list[Imported] = []
    files = list(main.files)
    for path in sorted(paths):
        try:
            children += [replace(child, parent=child.parent or main.session_id) for child in read_one(path)]
            files.append(str(path))
        except ImportFailed as error:
            main = with_damage(main, Damage(str(path), 0, f"subagent left out: {error}"))
    return [replace(main, files=tuple(files)), *others, *children]


def session_id_of(name: str) -> str:
    """A session id that is safe on every system, from a transcript's own id.

    A safe id is returned unchanged. Otherwise its safe characters are followed by part of its hash, so that two ids
    that differ only in unsafe characters stay different.
    """
    if is_plain_id(name) and not is_reference(name):
        return name
    readable = _UNSAFE.sub("-", name)[:80].strip("._-")
    digest = sha256_hex(name.encode("utf-8", "surrogatepass"))[:12]
    return f"s-{readable}-{digest}" if readable else f"s-{digest}"
