"""The protocol: two tools and a resource, by the official SDK, over standard input and output."""

from __future__ import annotations

import os
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from .._version import __version__
from ..errors import TurnlogError
from ..importers.sync.programs import Sync
from .past import RECALL, USUAL, PastSessions

_SERVER = f"Earlier sessions of coding agents on this machine can be searched: before you guess, call {RECALL} once."
_RECALL = """Search what was said and done in earlier sessions of coding agents on this machine.

Use it BEFORE you guess or try things out: when an error may have been met before, when you need a command, a setting or
a fix that worked, when it matters why something was decided, or when the user speaks of earlier work ("as last time").
Ask once, with names, paths, words of the error and other rare words; if nothing fits, go on without. It is no help for
what this conversation or the project's files say. `max_tokens` is the size of the answer."""
_READ = f"""Read a record of an earlier session, with the session and record that {RECALL} cites.

Use it when a passage is cut off where it matters. `lines` are such as "1-80"; without it, all that has room."""


def serve(past: PastSessions, sync: Sync | None) -> None:
    """Answer one agent program until it goes away."""
    server = MCPServer("turnlog", version=__version__, instructions=_SERVER, log_level="WARNING")

    def recall_sessions(question: str, ctx: Context[Any, Any], max_tokens: int = USUAL) -> str:
        asking, unread = _asking(ctx.request_context.meta, sync), 0
        if sync is not None:
            sync.wait(asking)
            unread = sync.unread
        try:
            note = f" Transcripts not read yet: {unread}." if unread else ""
            return past.recall(question, max_tokens, asking, note)
        except TurnlogError as error:
            raise ToolError(str(error)) from error

    def read_session(session: str, record: int, lines: str = "") -> str:
        try:
            return past.read(session, record, lines)
        except TurnlogError as error:
            raise ToolError(str(error)) from error

    @server.resource("turnlog://session/{session}/record/{record}", mime_type="text/plain", description=_READ)
    def record_of_session(session: str, record: int) -> str:
        return read_session(session, record)

    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    # Without a structure: programs that prefer it, such as Codex, would show the text as a string of JSON.
    server.add_tool(recall_sessions, description=_RECALL, annotations=reads, structured_output=False)
    server.add_tool(read_session, description=_READ, annotations=reads, structured_output=False)
    server.run()


def _asking(told: Any, sync: Sync | None) -> set[str]:
    """The ids of the session that asks, or their beginnings: as Codex tells with each call and Claude Code when it
    starts the server; Gemini CLI does not, so it is the one whose transcript Gemini CLI wrote last."""
    names = [told.get(key) for key in ("sessionId", "threadId")] if told else []
    names.append(os.environ.get("CLAUDE_CODE_SESSION_ID"))
    if sync is not None and os.environ.get("GEMINI_CLI"):
        names += [path.stem.rpartition("-")[2] for _, agent, path in sync.files() if agent == "gemini-cli"][:1]
    return {name for name in names if isinstance(name, str) and name}
