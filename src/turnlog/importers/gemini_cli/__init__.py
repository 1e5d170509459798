"""gemini-cli sessions: `~/.gemini/tmp/<project>/chats/session-*.json`, since 2026 `*.jsonl`.

The old format is one JSON object that is rewritten with every change; the new format appends lines. Their meaning
follows gemini-cli's own reader (npm package @google/gemini-cli-core 0.61.0, `services/chatRecordingService.js` and
`utils/sessionUtils.js`). Subagents, in a folder beside the session that is named after its id, become separate
sessions. `lastUpdated`, the time of the last write, is not imported: with it, the first records would change whenever
the session continues.
"""

from __future__ import annotations

from pathlib import Path

from ..._platform.lazy import lazy_pattern
from ..drafting import Drafting
from ..protocol import Imported, Origin, with_subagents
from ..transcript import Transcript
from .conversation import draft_session
from .entries import GeminiSession, read_session

_CHATS = "chats"
"""The folder of a project's main sessions; the folder of a subagent is named after its parent's id."""
_UNSAFE = lazy_pattern(r"[^a-zA-Z0-9_-]")


def read(origin: Origin) -> list[Imported]:
    """The session, then the sessions of its subagents."""
    main = _read_one(origin)
    if not isinstance(origin, Path) or main.parent:
        return [main]
    folder = origin.parent / _UNSAFE.sub("_", main.session_id)
    return with_subagents([main], folder.glob("*.jsonl"), lambda path: [_read_one(path)])


def _read_one(origin: Origin) -> Imported:
    file = Transcript(origin)
    session = read_session(file)
    if not any(entry.kind == "message" or entry.is_header for entry in session.entries):
        raise file.refused("record of a gemini-cli session", "give a session file of ~/.gemini/tmp/*/chats")
    log = Drafting(file)
    title = draft_session(session.entries, log)
    session_id = session.id or f"gemini-cli-{file.digest}"
    form = "gemini-cli-json" if session.document else "gemini-cli-jsonl"
    return log.imported(session_id, form, title, parent=_parent(session, file.path))


def _parent(session: GeminiSession, path: Path | None) -> str:
    """The id of this subagent's parent, which is the name of its folder; "" for a main session."""
    folder = path.resolve().parent.name if session.subagent and path else ""
    return folder if folder != _CHATS else ""
