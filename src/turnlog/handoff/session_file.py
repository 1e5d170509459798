"""A session file of gemini-cli that begins with a handoff, for `gemini --session-file`.

gemini-cli 0.61 reads a header and messages, one JSON object a line, and gives the session an id of its own
(packages/cli/src/gemini.tsx, `resolveSessionId`).
"""

from __future__ import annotations

import json
from uuid import NAMESPACE_URL, uuid5

from ..errors import InputError
from .handoff import Handoff

_READ = "I have read it."
"""What the model is taken to have answered: a conversation alternates."""


def session_file(made: Handoff, time: str) -> str:
    """The lines of a session file that holds `made.past`; `made.now` is left for the prompt. `time` is that of its
    messages, in ISO 8601. Raises InputError for another program than gemini."""
    if made.to != "gemini":
        raise InputError(f"session files are for gemini; give {made.to} the prompt")
    name = str(uuid5(NAMESPACE_URL, f"turnlog:{made.session}:{made.records}"))
    header = {"sessionId": name, "projectHash": "turnlog", "startTime": time, "lastUpdated": time, "kind": "main"}
    told = {"id": f"{name}-1", "timestamp": time, "type": "user", "content": [{"text": made.past}]}
    read = {"id": f"{name}-2", "timestamp": time, "type": "gemini", "content": _READ}
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (header, told, read))
