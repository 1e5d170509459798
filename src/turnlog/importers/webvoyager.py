"""WebVoyager runs: a folder with `interact_messages.json` and `screenshot1.png`, `screenshot2.png`, ...

The messages have the shape of OpenAI's chat API, with a placeholder for each image. The agent takes screenshot N in its
round N, and each round has one user message (github.com/MinorJerry/WebVoyager, run.py), so screenshot N belongs to user
message N. This also applies to images that the agent had removed from its context by the end of the run; their messages
contain "(Omitted in context.)".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern
from ..errors import ImportFailed
from ..log.messages import text_of
from ..log.records import MessageRecord
from ..providers.openai_chat import PROVIDER
from ..session.titles import title_from
from .drafting import Drafting
from .json_values import items, within, word
from .messages import read_message
from .protocol import Imported, Origin, contents
from .transcript import Transcript

_NAME = "interact_messages.json"
_TASK = "Now given a task: "
_PLACEHOLDER = "{b64_img}"
_REFERENCE = lazy_pattern(r"(?:.*[/\\])?(screenshot\d+\.png)")
_MARKS = lazy_pattern(rb"\{b64_img\}|\(Omitted in context\.\)|Imagine you are a robot browsing the web")


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by the file's name, or by words that the agent writes into its messages."""
    plain = head.lstrip(b"\0 \t\r\n")
    if not plain.startswith(b"[") or b'"role"' not in plain:
        return 0
    if path is not None and path.name == _NAME:
        return 90
    return 70 if _MARKS.search(plain) and b'"content"' in plain else 0


def read(origin: Origin) -> list[Imported]:
    """The one session of the run."""
    file = Transcript(origin)
    messages = items(file.document_or_rest(""))
    if not any(isinstance(wire, dict) for wire in messages):
        raise file.refused("messages of a WebVoyager run", f"give its {_NAME}")
    log = Drafting(file)
    run = _Run(log, file.path.parent if file.path else None)
    for index, wire in enumerate(messages):
        run.draft(wire, index)
    task = file.path.parent.name if file.path and file.path.name == _NAME else ""
    session_id = task if task.startswith("task") else f"webvoyager-{file.digest}"
    return [log.imported(session_id, "webvoyager", run.title, files=run.files)]


class _Run:
    """One pass over the messages, which counts rounds."""

    def __init__(self, log: Drafting, folder: Path | None) -> None:
        self.log = log
        self.folder = folder
        self.round = 0
        self.title = ""
        self.files: list[str] = []

    def draft(self, wire: Any, index: int) -> None:
        """Draft one message with its image."""
        if not isinstance(wire, dict):
            self.log.warn(0, f"[{index}] left out: a message must be a JSON object", "entry")
            return
        if wire.get("role") == "user":
            self.round += 1
            wire = self._with_images(wire, index)
        message = read_message(PROVIDER, wire, self.log, opaque=False)
        if message is None:
            return
        if message.role == "user" and not self.title:
            self.title = title_from(text_of(message).removeprefix(_TASK))
        self.log.add(MessageRecord(message=message, source=f"[{index}]"))

    def _with_images(self, wire: Mapping[str, Any], index: int) -> dict[str, Any]:
        content = wire.get("content")
        taken = f"screenshot{self.round}.png"
        if isinstance(content, str):
            shown = self._screenshot(taken)
            return {**wire, "content": [{"type": "text", "text": content}, shown]} if shown else dict(wire)
        if not isinstance(content, list):
            return dict(wire)
        parts: list[Any] = []
        for part in content:
            url = _url(part)
            reference = _REFERENCE.fullmatch(url)
            name = taken if _PLACEHOLDER in url else reference[1] if reference else ""
            shown = self._screenshot(name) if name else part
            if shown is None:
                self.log.warn(0, f"[{index}]: {name} is not beside the file; its message has no image")
                self.log.note("missing_image", {"message": index, "name": name})
            else:
                parts.append(shown)
        return {**wire, "content": parts}

    def _screenshot(self, name: str) -> dict[str, Any] | None:
        """The image as a content part; None if it is not in the folder."""
        path = self.folder / name if self.folder is not None else None
        if path is None or not path.is_file():
            return None
        try:
            data = contents(path)
        except ImportFailed as error:
            self.log.warn(0, str(error))
            return None
        self.files.append(str(path))
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(data).decode()}"}}


def _url(part: Any) -> str:
    image = within(part, "image_url")
    return word(image) or word(within(image, "url"))
