"""What happened in a conversation, as its digests say it: files changed, errors and how they ended, other things that
calls changed, what is left open."""

from __future__ import annotations

from collections.abc import Sequence

from .._platform.lazy import lazy_pattern
from ..view.file_edits import words_of
from .changed_files import FileState as FileState
from .changed_files import FileStates as FileStates
from .changed_files import file_states as file_states
from .changed_files import files as files
from .changed_files import lines_of as lines_of
from .errors import ended as ended
from .errors import errors as errors
from .open_ends import open_ends as open_ends
from .reading import Said
from .task_lists import tasks_of as tasks_of

# Names of tools that change something: a booking, a ticket. The first word decides: `get_order` orders nothing.
_ACTS = lazy_pattern(
    r"(?:^|__|[./:])(?:add|approve|assign|book|buy|cancel|change|charge|close|confirm|create|delete|deploy|disable|enable"
    r"|exchange|insert|invite|issue|merge|modify|move|notify|order|pay|place|post|publish|purchase|push|refund|reject"
    r"|remove|rename|reply|reserve|reset|return|schedule|send|set|share|ship|submit|subscribe|transfer|update|upload"
    r"|unsubscribe)(?=_|-|$)"
)


def acts(said: Sequence[Said]) -> list[int]:
    """The positions of the calls that changed something other than files, judged by the names of their tools, the
    newest first. Failed calls are left out, and so are plans, as `open_ends` shows what is left of them."""
    failed = {entry.call for entry in said if entry.error and entry.call is not None}
    return [
        index
        for index, entry in reversed(list(enumerate(said)))
        if entry.who == "call" and index not in failed and not entry.note.changes and entry.note.tasks is None
        if changes_things(entry.tool)
    ]


def changes_things(tool: str) -> bool:
    """Whether a tool changes something, judged by its name."""
    return _ACTS.search(words_of(tool)) is not None
