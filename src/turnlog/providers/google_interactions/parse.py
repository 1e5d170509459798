"""Read a request body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import Message, Text
from ...log.records import Configuration
from ..protocol import Parsed
from ..schema.walk import check_depth, check_types
from .form import FORMS, NAME
from .parts import read_parts
from .schema import BODY, CONTENTS
from .steps import read_steps
from .tools import read_tools


def parse(body: Mapping[str, Any]) -> Parsed:
    """A request body as messages, configuration and media bytes.

    `system_instruction` becomes a leading system message, `input` one message for each step, or a single message for
    contents without steps. Empty values (no tools, null instructions) stay among the settings. Raises FormatError with
    the path of what cannot be read.
    """
    if not isinstance(body, Mapping):
        raise FormatError("expected the body of an interaction, an object", path="body")
    check_depth(body)
    check_types(body, BODY, "")
    settings = dict(body)
    blobs: dict[str, bytes] = {}
    model = settings.pop("model") if settings.get("model") else ""
    messages: list[Message] = []
    if settings.get("system_instruction"):
        messages.append(Message("system", (Text(settings.pop("system_instruction")),)))
    shape = "absent" if "input" not in settings else ""
    input_messages, shape = _read_input(settings.pop("input", None), shape, blobs)
    tools = settings.pop("tools") if settings.get("tools") else []
    configuration = Configuration(
        provider=NAME,
        model=model,
        settings=settings,
        tools=read_tools(tools),
        form=FORMS.shaped(f"input={shape}" if shape else "", "" if "model" in body else "model=absent"),
    )
    return Parsed(messages=(*messages, *input_messages), configuration=configuration, blobs=blobs)


def _read_input(given: Any, shape: str, blobs: dict[str, bytes]) -> tuple[list[Message], str]:
    """The messages of an input, and the form word for its spelling."""
    if given is None:
        return [], shape or "null"
    if isinstance(given, str):
        return [Message("user", (Text(given),))], "string"
    if isinstance(given, dict):
        return [Message("user", read_parts(given, "input", blobs))], "content"
    if given and all(item.get("type") in CONTENTS for item in given):
        return [Message("user", read_parts(given, "input", blobs))], "contents"
    return read_steps(given, blobs), ""
