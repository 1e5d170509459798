"""The values of a memory: what a conversation is about, one entity for each thing."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ..summarize.changed_files import State

Kind = Literal["file", "symbol", "command", "url", "error", "id", "branch", "person"]
"""What an entity is. `id` covers commit hashes, numbers of issues, orders, reservations and the like."""

Who = Literal["user", "assistant", "call", "result", "disk"]
"""Who mentioned it: a message's author, a tool call or its result, or a recorded change of a file."""


class Entity(Struct, gc=False):
    """A thing that the conversation is about.

    - `value`: the path, command, message, ... as the conversation has it; of a path, its longest form.
    - `first`, `last`: the records that mention it first and last. `mentions`: how often, `by` whom.
    - `state`: what became of it, and `at`, the record that says so.
    - Of a file: `change`, what its last change did (one that failed did nothing), `changed`, the record of that change
      (0: none), and `changes`, how many there were; `read`, the record that last read it, and `lines`, the first and
      last line that were read or named then ((0, 0): not known); `symbols`, the names that were spoken of together with
      it, the newest first.
    - Of an error: `about`, the call that failed.
    """

    kind: Kind
    value: str
    first: int
    last: int
    mentions: int = 0
    by: dict[str, int] = field(default_factory=dict)
    state: State = ""
    at: int = 0
    change: State = ""
    changed: int = 0
    changes: int = 0
    read: int = 0
    lines: tuple[int, int] = (0, 0)
    symbols: tuple[str, ...] = ()
    about: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        """What tells it from all others."""
        return self.kind, self.value

    @property
    def stale(self) -> bool:
        """Whether a file changed after it was last read."""
        return 0 < self.read < self.changed

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"


class Mention(Struct, frozen=True, gc=False):
    """One mention of an entity: its record, by whom, and where among the mentions of that record (from 0)."""

    record: int
    who: Who
    entity: Entity
    place: int


class Fact(Struct, frozen=True, gc=False):
    """A sentence in which the user required, forbade or allowed something, and its record."""

    record: int
    text: str


class Candidate(Struct, frozen=True):
    """What a reference may stand for, how strongly (only the order of scores means something), and why."""

    entity: Entity
    score: float
    reasons: tuple[str, ...]
