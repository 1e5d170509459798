"""Write a view as a request body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ..._platform.units import an
from ...log.messages import (
    Form,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ...log.records import Configuration
from ...models.target import Target
from ...view.types import Shown
from ..edits import Losses
from ..gemini import unsendable
from ..protocol import BlobReader, Rendered
from .form import FORMS, NAME
from .parts import is_content, is_plain
from .steps import call_step, result_step, said_step, thought_step
from .tools import write_tools


def render(view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader) -> Rendered:
    """The request body for a view. See `Provider.render`. Raises BlobMissing for missing media bytes, and nothing
    else."""
    writer = _Writer(blob)
    leading = 0
    while leading < len(view) and view[leading].message.role == "system":
        leading += 1
    system = writer.system(view[:leading])
    for shown in view[leading:]:
        writer.add(shown)
    named = target.model and not FORMS.says(configuration.form, "model=absent")
    body: dict[str, Any] = {"model": target.model} if named else {}
    body.update(configuration.settings)
    if system:
        body["system_instruction"] = system
    _put_input(body, writer.steps, [shown.message for shown in view[leading:]], configuration.form)
    tools = write_tools(configuration.tools, writer.losses)
    if tools:
        body["tools"] = tools
    return Rendered(body=body, losses=tuple(writer.losses.made))


def _put_input(body: dict[str, Any], steps: list[dict[str, Any]], messages: list[Message], form: Form | None) -> None:
    """Put the steps into the body, or the content of a single user message in the spelling of the body's form."""
    shape = FORMS.value(form, "input")
    alone = (
        len(steps) == 1 and len(messages) == 1 and messages[0].role == "user" and steps[0].keys() == {"type", "content"}
    )
    if alone and steps[0]["type"] == "user_input" and FORMS.own(messages[0].form) is None:
        content = steps[0]["content"]
        if shape == "string" and is_plain(messages[0].parts):
            body["input"] = content[0]["text"]
            return
        if shape in ("content", "contents") and content:
            body["input"] = content[0] if shape == "content" and len(content) == 1 else content
            return
    if steps or shape not in ("absent", "null"):
        body["input"] = steps
    elif shape == "null":
        body["input"] = None


class _Writer:
    """Collects steps and losses."""

    def __init__(self, blob: BlobReader) -> None:
        self.steps: list[dict[str, Any]] = []
        self.losses = Losses(NAME)
        self._blob = blob

    def system(self, messages: Sequence[Shown]) -> str:
        """All leading system text, which the API accepts as one string."""
        texts: list[str] = []
        for shown in messages:
            self._begin(shown)
            for part in shown.message.parts:
                self.losses.extras(part.form if isinstance(part, Text) else None, "a text")
                if isinstance(part, Text):
                    texts.append(part.text)
                else:
                    kind = "media" if isinstance(part, Media) else "opaque"
                    self.losses.add(kind, f"{type(part).__name__} in system text left out")
            if len(texts) > 1:
                self.losses.add("place", "system text joined with the one before it")
        return "\n\n".join(texts)

    def add(self, shown: Shown) -> None:
        """Add the steps of one message."""
        message = shown.message
        self._begin(shown)
        if message.role == "system":
            self.losses.add("place", "system text in mid-conversation shown as a user message")
        if not message.parts:
            self.steps.append(self._said(message, message))
        run: list[Part] = []
        for part in message.parts:
            if is_content(part) and not self._is_lost(part):
                if run and FORMS.says(getattr(part, "form", None), "step"):
                    self._add_said(message, run)
                    run = []
                run.append(part)
            elif not is_content(part):
                self._add_said(message, run)
                run = []
                self._add_step(part)
        self._add_said(message, run)

    def _begin(self, shown: Shown) -> None:
        self.losses.begin(shown)
        self.losses.author(shown.message.name)

    def _is_lost(self, part: Part) -> bool:
        """Whether a content cannot be sent. Adds losses for the content, or for details of it that cannot be sent."""
        if not isinstance(part, Opaque):
            self.losses.extras(getattr(part, "form", None), f"a {type(part).__name__.lower()}")
        if not isinstance(part, Media):
            return False
        if part.name:
            self.losses.add("extra", f"the name {part.name!r} of {an(part.kind)} left out")
        refusal = unsendable(part)
        if refusal:
            self.losses.add("media", refusal)
        return bool(refusal)

    def _add_said(self, message: Message, run: list[Part]) -> None:
        """Add contents as one step. The message's form is used only if the contents are the whole message."""
        if run:
            whole = len(run) == len(message.parts)
            self.steps.append(self._said(replace(message, parts=tuple(run)), message if whole else None))

    def _said(self, message: Message, formed: Message | None) -> dict[str, Any]:
        message = message if formed is not None else replace(message, form=None)
        step = said_step(message, self._blob)
        if FORMS.says(message.form, "bare") and len(step.get("content") or ()) == 1:
            return dict(step["content"][0])
        delta = FORMS.delta(message.form)
        return FORMS.spelled(step, message.form) if delta else step

    def _add_step(self, part: Part) -> None:
        match part:
            case Reasoning() if part.provider == NAME:
                self.steps.append(FORMS.spelled(thought_step(part), part.form))
            case Reasoning():
                self.losses.add("reasoning", f"reasoning of {part.provider} left out")
            case ToolCall():
                self.losses.extras(part.form, "a call")
                if part.signature:
                    by = part.provider or "another provider"
                    self.losses.add("reasoning", f"signature of {by} on {part.name!r} left out")
                self.steps.append(FORMS.spelled(call_step(part), part.form))
            case ToolResult():
                self._add_result(part)
            case Opaque() if part.provider == NAME and isinstance(part.data, dict):
                self.steps.append(dict(part.data))
            case _:
                kind = getattr(part, "kind", type(part).__name__)
                by = getattr(part, "provider", "") or "a newer turnlog"
                self.losses.add("opaque", f"{kind} of {by} left out")

    def _add_result(self, result: ToolResult) -> None:
        self.losses.extras(result.form, f"the result of {result.call_id!r}")
        sent: list[Any] = []
        for part in result.parts:
            if not is_content(part):
                kind, by = part.kind, getattr(part, "provider", "") or "a newer turnlog"  # type: ignore[union-attr]
                self.losses.add("opaque", f"{kind} of {by} in a result left out")
            elif not self._is_lost(part):
                sent.append(part)
        result = result if len(sent) == len(result.parts) else replace(result, parts=tuple(sent))
        self.steps.append(FORMS.spelled(result_step(result, self._blob), result.form))


def user_message(text: str) -> dict[str, Any]:
    """The step that carries a text of the user."""
    return {"type": "user_input", "content": [{"type": "text", "text": text}]}
