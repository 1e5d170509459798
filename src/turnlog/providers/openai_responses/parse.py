"""Read a request body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import Message, Text
from ...log.records import Configuration
from ..protocol import Parsed
from ..schema import check_types
from .form import FORMS, NAME
from .items import read_items
from .schema import BODY
from .tools import read_tools


def parse(body: Mapping[str, Any]) -> Parsed:
    """A request body as messages, configuration and media bytes.

    `instructions` becomes a leading system message, `input` one message per item. Empty values (no tools, null
    instructions) stay in the settings. Raises FormatError with the path of the value that cannot be read.
    """
    try:
        return _parsed(body)
    except RecursionError as error:
        raise FormatError("the request body is nested too deeply to be read", path="body") from error


def _parsed(body: Mapping[str, Any]) -> Parsed:
    check_types(body, BODY, "")
    settings = dict(body)
    blobs: dict[str, bytes] = {}
    messages: list[Message] = []
    shape = ""
    model = settings.pop("model") if settings.get("model") else ""
    if settings.get("instructions"):
        messages.append(Message("system", (Text(settings.pop("instructions")),), form=FORMS.shaped("instructions")))
    if isinstance(settings.get("input"), str):
        messages.append(Message("user", (Text(settings.pop("input")),)))
        shape = "input=string"
    elif isinstance(settings.get("input"), list):
        messages.extend(read_items(settings.pop("input"), blobs))
    elif settings.get("input") is not None:
        raise FormatError("expected a string or a list of input items", path="input")
    else:
        shape = "input=null" if "input" in settings else "input=absent"
        settings.pop("input", None)
    tools = settings.pop("tools") if settings.get("tools") else []
    configuration = Configuration(
        provider=NAME,
        model=model,
        settings=settings,
        tools=read_tools(tools),
        form=FORMS.shaped(shape, "" if "model" in body else "model=absent"),
    )
    return Parsed(messages=tuple(messages), configuration=configuration, blobs=blobs)
