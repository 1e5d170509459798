"""Claude Code sessions: `~/.claude/projects/<folder>/<session>.jsonl` and their subagents; of Claude Code on the web,
the same records as a list under `loglines`.

One JSON record a line. The meaning of fields was observed in files of versions 1.0 to 2.1; Anthropic does not document
the format. Subagents (sidechains) become separate sessions. They can be written in three ways: as marked lines among
the others, as `agent-*.jsonl` beside the session, or as files in `<session>/subagents/`. Of the envelope of a record,
`uuid` is kept in the message's `source`; `requestId` and the parents are not kept (file order is kept; the parents only
show where the user went back).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..._platform.lazy import lazy_pattern
from ...errors import ImportFailed
from ...log.records import Note
from ...log.store import Draft
from ..drafting import Drafting
from ..json_values import within, word
from ..protocol import Damage, Imported, Origin, with_damage, with_subagents
from ..transcript import Transcript
from .conversation import draft_conversation
from .steps import ClaudeRecord, Steps, entries_of

_FORMAT = "claude-code-jsonl"

_KEYS = lazy_pattern(rb'"(parentUuid|isSidechain|leafUuid|isSnapshotUpdate|toolUseResult)"\s*:')
_OWN = frozenset({"sessionId", "parentUuid", "isSidechain", "leafUuid", "isSnapshotUpdate"})
_SESSION = lazy_pattern(rb'"sessionId"\s*:')


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by envelope keys that no other format has."""
    if not head.lstrip(b"\0 \t\r\n").startswith(b"{"):
        return 0 if not _KEYS.search(head) else 30
    if not _KEYS.search(head):
        return 0
    return 90 if _SESSION.search(head) else 60


def read(origin: Origin) -> list[Imported]:
    """The session, its inline sidechains, and the files of its `subagents/` folder."""
    sessions = _read_one(Transcript(origin))
    if not isinstance(origin, Path):
        return sessions
    sessions[0] = _described(sessions[0], origin)
    agents = sorted((origin.with_suffix("") / "subagents").glob("*.jsonl"))
    main, *others = with_subagents(sessions, agents, _agent)
    return _once([replace(main, files=tuple(dict.fromkeys((*main.files, *map(str, agents))))), *others])


def _agent(path: Path) -> list[Imported]:
    """The sessions of a subagent, described by the facts beside it."""
    sessions = _read_one(Transcript(path))
    return [_described(sessions[0], path), *sessions[1:]]


def _read_one(file: Transcript) -> list[Imported]:
    """The sessions of one file: the main chain first, then its inline sidechains."""
    entries = entries_of(file)
    if not any(isinstance(entry.record.get("type"), str) and entry.record.keys() & _OWN for entry in entries):
        raise file.refused("record of a Claude Code session", "give a .jsonl file of ~/.claude/projects")
    session = _session_of(entries, Path(file.name).stem)
    main, sidechains = _by_chain(entries)
    sessions: list[Imported] = []
    for agent, chain in [("", main), *sidechains.items()]:
        if chain:
            log = Drafting(file, beside=bool(sessions))
            title = draft_conversation(Steps(chain), log)
            session_id, parent = (f"{session}.agent-{agent}", session) if agent else (session, "")
            sessions.append(log.imported(session_id, _FORMAT, title, parent=parent))
    return sessions


def _session_of(entries: list[ClaudeRecord], stem: str) -> str:
    """The session's own id. A resumed session may repeat lines of the session before: if the file is named after one of
    the ids, that id is used, else the first."""
    ids = [entry.record["sessionId"] for entry in entries if isinstance(entry.record.get("sessionId"), str)]
    return stem if stem in ids or not ids else ids[0]


def _by_chain(entries: list[ClaudeRecord]) -> tuple[list[ClaudeRecord], dict[str, list[ClaudeRecord]]]:
    """The main chain, and the sidechains by the agent's id, or else by the uuid of their first record."""
    main: list[ClaudeRecord] = []
    chains: dict[str, list[ClaudeRecord]] = {}
    root_of: dict[str, str] = {}
    for entry in entries:
        record = entry.record
        if record.get("isSidechain") is not True:
            main.append(entry)
            continue
        uuid, agent = str(record.get("uuid", "")), record.get("agentId")
        root = agent if isinstance(agent, str) and agent else root_of.get(str(record.get("parentUuid")), "")
        root = root or uuid or f"line-{entry.line}"
        root_of[uuid] = root
        chains.setdefault(root, []).append(entry)
    return main, chains


def _described(imported: Imported, path: Path) -> Imported:
    """The session with the title and facts of the agent's `.meta.json`."""
    meta = path.with_suffix(".meta.json")
    if not meta.is_file():
        return imported
    try:
        facts: Any = Transcript(meta).document()
    except (ValueError, ImportFailed):
        return with_damage(imported, Damage(str(meta), 0, "left out: not JSON", "nothing"))
    time = imported.drafts[-1].time if imported.drafts else ""
    note = Draft(Note("agent", data=facts), time)
    title = word(within(facts, "description")) or imported.title
    return replace(imported, title=title, drafts=(*imported.drafts, note), files=(*imported.files, str(meta)))


def _once(sessions: list[Imported]) -> list[Imported]:
    """The sessions, without duplicate ids: an agent may be written both inline and in a separate file."""
    longest: dict[str, Imported] = {}
    repeated: list[Damage] = []
    for imported in sessions:
        other = longest.setdefault(imported.session_id, imported)
        if other is not imported:
            longest[imported.session_id] = max((other, imported), key=lambda session: len(session.drafts))
            warning = f"session {imported.session_id} occurs twice; the longer one was imported"
            repeated.append(Damage(imported.files[0], 0, warning))
    first, *others = longest.values()
    return [with_damage(first, *repeated), *others]
