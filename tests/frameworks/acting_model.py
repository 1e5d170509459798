"""A model for the fake server: it answers from what a request says, so that it needs no order of requests.

It reads the files that the user's last words name, by calls at once, and then says that it is done. An agent that can
only hand over does that; one without tools says yes, as a guardrail asks.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

_FILES = re.compile(r"src/\w+\.py")


class ActingModel:
    """Stands in for the script of a fake server. `view(provider, body)` is the server's own reading of a request."""

    view: Callable[[str, Any], Any]

    def __init__(self) -> None:
        self._asked = threading.local()

    def look(self, provider: str, body: Any) -> list[str]:
        """Called by the server with each request that it is about to answer; finds nothing wrong."""
        self._asked.now = (provider, body)
        return []

    def pop(self, _: int) -> dict[str, Any]:
        """The reply to the request of this thread."""
        provider, body = self._asked.now
        seen = self.view(provider, body)
        said = _last_task(seen.user_text)  # smolagents tells results as words of the user
        files = list(dict.fromkeys(_FILES.findall(said)))
        thought = {"thinking": f"I have to see {', '.join(files)}."} if provider != "openai" else {}
        if not seen.tools:
            return {"text": json.dumps({"about_files": True})}
        if "read_file" not in seen.tools and (names := [name for name in seen.tools if name.startswith("transfer_")]):
            return {"tool_calls": [{"name": names[0], "args": {}}]}
        if not any("price" in result for result in [said, *seen.results]):
            calls = [{"name": "read_file", "args": {"path": path}} for path in files]
            return {**thought, "text": f"I read {len(files)} of them.", "tool_calls": calls}
        answer = f"{' and '.join(files)}: rows of prices, with tax."
        if "final_answer" in seen.tools:
            return {"tool_calls": [{"name": "final_answer", "args": {"answer": answer}}]}
        return {**thought, "text": answer}

    def __bool__(self) -> bool:
        return True


def _last_task(text: str) -> str:
    """The last task in a text: frameworks put an earlier conversation before it."""
    return text[max(text.rfind("Turn "), 0) :]
