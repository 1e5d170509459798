"""gemini-cli sessions: `~/.gemini/tmp/<project>/chats/session-*.json`, since 2026 `*.jsonl`.

The old format is one JSON object, written anew with every change; the new one appends lines. What
they mean follows gemini-cli's own reader (npm package @google/gemini-cli-core 0.61.0,
`services/chatRecordingService.js` and `utils/sessionUtils.js`). Subagents, in the folder beside the
session that bears its id, become sessions of their own. `lastUpdated`, the time of the last write,
is not kept: a session that went on would begin otherwise than before.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ...errors import ImportFailed
from ...log.messages import sha256_hex
from ..drafting import Drafting
from ..protocol import Damage, Imported, Origin, contents, origin_name, session_id_of
from .conversation import draft_session
from .entries import Session, read_session

__all__ = ["GeminiCli", "IMPORTER"]

_HEADER = re.compile(rb'"projectHash"\s*:')
_SESSION = re.compile(rb'"sessionId"\s*:')
_ANSWER = re.compile(rb'"type"\s*:\s*"gemini"')
_PATCH = re.compile(rb'^\s*\{\s*"\$(set|rewindTo)"\s*:', re.MULTILINE)
_CHATS = "chats"
"""The folder of a project's main sessions; a subagent's is named after its parent's id."""
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class GeminiCli:
    """Imports gemini-cli sessions, both formats."""

    name = "gemini-cli"

    def sniff(self, head: bytes, path: Path | None) -> int:
        """Its header has a project hash; what is left of a cut file has its answers or patches."""
        if not head.lstrip(b"\0 \t\r\n").startswith(b"{"):
            return 0
        if _HEADER.search(head) and _SESSION.search(head):
            return 90
        return 60 if _ANSWER.search(head) or _PATCH.search(head) else 0

    def read(self, origin: Origin) -> list[Imported]:
        """The session, then its subagents."""
        main = _read_one(origin)
        if not isinstance(origin, Path) or main.parent:
            return [main]
        folder = origin.parent / _UNSAFE.sub("_", main.session_id)
        found = []
        for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else []:
            try:
                found.append(_read_one(path))
            except ImportFailed as error:
                damage = Damage(str(path), 0, f"subagent left out: {error}")
                main = msgspec.structs.replace(main, warnings=(*main.warnings, damage))
        files = (*main.files, *(file for child in found for file in child.files))
        children = [msgspec.structs.replace(child, parent=child.parent or main.session_id) for child in found]
        return [msgspec.structs.replace(main, files=files), *children]


IMPORTER = GeminiCli()


def _read_one(origin: Origin) -> Imported:
    data, file = contents(origin), origin_name(origin)
    warnings: list[Damage] = []
    session = read_session(data, file, warnings)
    if not any(entry.kind == "message" or entry.is_header for entry in session.entries):
        reason = f" ({warnings[0].message})" if warnings else ""
        raise ImportFailed(
            f"{file}: no record of a gemini-cli session in it{reason}; give a session file of ~/.gemini/tmp/*/chats"
        )
    log = Drafting(file, warnings)
    title = draft_session(session.entries, log)
    own = session.id or f"gemini-cli-{sha256_hex(data)[:16]}"
    return Imported(
        session_id=session_id_of(own),
        format="gemini-cli-json" if session.document else "gemini-cli-jsonl",
        title=title,
        parent=_parent(session, origin),
        drafts=log.finished(),
        blobs=log.blobs,
        warnings=tuple(log.warnings),
        files=(file,),
    )


def _parent(session: Session, origin: Origin) -> str:
    """Who called this subagent: the folder is named after it."""
    if not session.subagent or not isinstance(origin, Path):
        return ""
    folder = origin.resolve().parent.name
    return session_id_of(folder) if folder and folder != _CHATS else ""
