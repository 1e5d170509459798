"""Reading a request body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...content import Form, Message, Text
from ...errors import FormatError
from ...records import Configuration
from ..protocol import Parsed
from .items import read_items
from .tools import read_tools
from .wire import NAME

__all__ = ["parse"]


def parse(body: Mapping[str, Any]) -> Parsed:
    """A request body as messages, configuration and media bytes.

    `instructions` becomes a leading system message, `input` one message an item. Values that say
    nothing (an empty list of tools, null instructions) stay among the settings. Raises FormatError
    with the path of what cannot be read.
    """
    settings = dict(body)
    blobs: dict[str, bytes] = {}
    messages: list[Message] = []
    shape = ""
    model = settings.pop("model") if isinstance(settings.get("model"), str) else ""
    if settings.get("instructions"):
        instructions = settings.pop("instructions")
        if not isinstance(instructions, str):
            raise FormatError("expected a string", path="instructions")
        messages.append(Message("system", (Text(instructions),), form=Form(NAME, "instructions")))
    if isinstance(settings.get("input"), str):
        content = settings.pop("input")
        messages.append(Message("user", (Text(content),) if content else ()))
        shape = "input=string"
    elif isinstance(settings.get("input"), list):
        messages.extend(read_items(settings.pop("input"), blobs))
    elif settings.get("input") is not None:
        raise FormatError("expected a string or a list of input items", path="input")
    else:
        shape = "input=null" if "input" in settings else "input=absent"
        settings.pop("input", None)
    tools = settings.pop("tools") if settings.get("tools") else []
    if not isinstance(tools, list):
        raise FormatError("expected a list of tools", path="tools")
    configuration = Configuration(
        provider=NAME,
        model=model,
        settings=settings,
        tools=read_tools(tools),
        form=Form(NAME, shape) if shape else None,
    )
    return Parsed(messages=tuple(messages), configuration=configuration, blobs=blobs)
