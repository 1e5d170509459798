"""Write a view as a request body."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..._platform.units import an
from ...log.messages import Form, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from ...log.records import Configuration
from ...models.target import Target
from ...view.types import Edit, Loss, Shown
from ..edits import Losses
from ..protocol import BlobReader, Rendered
from ..schema.walk import fits
from .calls import call_type, read_type, result_type, write_call, write_result
from .form import FORMS, NAME
from .item_types import CALLS, ID_MAY_GO, RESULTS, id_fits, item_type
from .items import write_message, write_reasoning
from .schema import ITEM
from .tools import write_tool

# -- item ids --------------------------------------------------------------------------------------
#
# Remove item ids that the Responses API would refuse.
#
# The provider stores the items of a response by id and checks them as a group. It refuses a stored item without its
# reasoning ("Item 'fc_x' of type 'function_call' was provided without its required 'reasoning' item: 'rs_x'."),
# stored reasoning without the item that followed ("... was provided without its required following item."), and an id
# that occurs twice ("Duplicate item found with id rs_x."). It accepts an item without an id. So if a view leaves out
# one item of a group, the ids of the others are removed; the content stays, except for reasoning that has only an id.
#
# A truncated or edited answer has no id, so stored reasoning before it has lost its follower. Only this case is legal
# if nothing is stored (Codex sends reasoning with ids and messages without): here the `store` of the request matters.
#
# The items of a request may be rendered in several parts. Words tell each part what the parts before it contain: an
# id, if an item has it, and "reasoning ID", if reasoning is sent with that id (see `LinkedRenderer`).


class RenderedItem(Struct):
    """An item to be sent.

    `after` is the id of the item's reasoning, if its form contains it; `first`: the item directly followed the
    reasoning. `open_end`: the next item was left out. `renamed`: the item's id was removed.
    """

    item: dict[str, Any]
    records: tuple[int, ...]
    after: str = ""
    first: bool = False
    open_end: bool = False
    renamed: bool = False

    @property
    def id(self) -> str:
        """The item's id; "" if it has none that the provider could have assigned."""
        item_id = self.item.get("id")
        return item_id if isinstance(item_id, str) and self.type not in RESULTS and id_fits(self.item) else ""

    @property
    def type(self) -> str:
        """The item's type."""
        return item_type(self.item)


class RenderedItems(Struct, frozen=True):
    """The entries of a part of a request, and the words that they give to later parts and ask of earlier ones."""

    entries: list[RenderedItem]
    gives: frozenset[str]
    asks: frozenset[str]


def without_refused_ids(
    entries: list[RenderedItem], losses: list[Loss], earlier: Collection[str] = (), *, stored: bool
) -> RenderedItems:
    """The entries without ids that would be refused; each removed id is a loss. `earlier` are the words of the parts
    before these entries. `stored`: the provider stores the response."""
    ids = frozenset(entry.id for entry in entries if entry.id)
    asks = ids | {_sent(entry.after) for entry in entries if entry.after}
    remaining = _without_duplicates(entries, losses, earlier)
    losses_before = -1
    while losses_before < len(losses):  # a removed item may have been the reasoning or the follower of another
        losses_before = len(losses)
        remaining = _without_loose_reasoning(remaining, losses, stored)
        remaining = _without_missing_reasoning(remaining, losses, earlier)
    reasoning = {_sent(entry.id) for entry in remaining if entry.type == "reasoning" and entry.id}
    return RenderedItems(remaining, ids | reasoning, asks)


def _sent(reasoning_id: str) -> str:
    """The word that says that reasoning is sent with its id."""
    return f"reasoning {reasoning_id}"


def _without_duplicates(
    entries: list[RenderedItem], losses: list[Loss], earlier: Collection[str]
) -> list[RenderedItem]:
    seen = set(earlier)
    shown = {entry.id for entry in entries if entry.type != "item_reference"}  # a reference to these adds nothing
    unique: list[RenderedItem] = []
    for entry in entries:
        again = entry.id in seen or (entry.type == "item_reference" and entry.id in shown)
        if entry.id and not again:
            seen.add(entry.id)
        if not again or _drop_id(entry, "an item with this id comes earlier in the request", losses):
            unique.append(entry)
        elif unique:
            unique[-1].open_end = True
    return unique


def _without_loose_reasoning(entries: list[RenderedItem], losses: list[Loss], stored: bool) -> list[RenderedItem]:
    """The entries without reasoning that its next item no longer follows. Goes backwards, so that reasoning before
    removed reasoning is checked afterwards."""
    remaining: list[RenderedItem] = []
    gone = False
    for entry in reversed(entries):
        entry.open_end = entry.open_end or gone
        follower = remaining[-1] if remaining and _is_models(remaining[-1]) else None
        gone = entry.type == "reasoning" and not _may_precede(entry, follower, losses, stored)
        if not gone:
            remaining.append(entry)
    return remaining[::-1]


def _may_precede(entry: RenderedItem, follower: RenderedItem | None, losses: list[Loss], stored: bool) -> bool:
    """Whether reasoning may precede `follower`, the model's next item. The id of the reasoning may be removed for
    that."""
    if follower is None:
        if entry.open_end:
            losses.append(
                Loss(
                    "reasoning",
                    "reasoning left out: the item that must follow it is not in this request",
                    entry.records,
                )
            )
        return not entry.open_end
    belongs = follower.first and follower.after == entry.id and not follower.renamed
    nameless = stored and follower.type == "message" and not follower.id
    return (
        not entry.id or (belongs and not nameless) or _drop_id(entry, "the item that must follow it does not", losses)
    )


def _without_missing_reasoning(
    entries: list[RenderedItem], losses: list[Loss], earlier: Collection[str]
) -> list[RenderedItem]:
    present = set(earlier)
    remaining: list[RenderedItem] = []
    for entry in entries:
        if entry.type == "reasoning":
            present.add(_sent(entry.id))
        missing = entry.type != "reasoning" and entry.id and entry.after and _sent(entry.after) not in present
        if not missing or _drop_id(entry, f"its reasoning {entry.after} is not in this request", losses):
            remaining.append(entry)
        elif remaining:
            remaining[-1].open_end = True
    return remaining


def _is_models(entry: RenderedItem) -> bool:
    if entry.type == "message":
        return entry.item.get("role") == "assistant"
    return entry.type not in RESULTS


def _drop_id(entry: RenderedItem, reason: str, losses: list[Loss]) -> bool:
    """Remove the id of an entry; False if the item is useless without its id and must be removed as a whole."""
    if entry.type == "reasoning" and not entry.item.get("encrypted_content"):
        losses.append(Loss("reasoning", f"reasoning {entry.id} left out: {reason}", entry.records))
        return False
    if entry.type == "computer_call":
        return True  # it must have an id and a result: leave it
    if entry.type not in ID_MAY_GO:
        losses.append(Loss("opaque", f"{entry.type} {entry.id} left out: {reason}", entry.records))
        return False
    losses.append(Loss("extra", f"id {entry.id} of {an(entry.type)} item left out: {reason}", entry.records))
    entry.item = {key: value for key, value in entry.item.items() if key != "id"}
    entry.renamed = True
    return True


def render(
    view: Sequence[Shown],
    configuration: Configuration,
    target: Target,
    blob: BlobReader,
    earlier: Collection[str] = frozenset(),
    *,
    keep_ids: bool = False,
) -> Rendered:
    """The request body for a view. See `Renderer` and, for `earlier`, `LinkedRenderer`. `keep_ids`: also refused ones.

    System text becomes an input item of role `system`, wherever it is: an item keeps the message's parts and
    boundaries, and a later item does not move the first. `instructions` is used for a leading message that was read
    from `instructions`.
    """
    writer = _Writer(view, blob)
    named = target.model and not FORMS.says(configuration.form, "model=absent")
    body: dict[str, Any] = {"model": target.model} if named else {}
    body.update(configuration.settings)
    rest = list(view)
    if rest and _is_instructions(rest[0].message) and not configuration.settings.get("instructions"):
        first = rest.pop(0).message.parts[0]
        assert isinstance(first, Text)
        body["instructions"] = first.text
    for shown in rest:
        writer.add(shown)
    stored = body.get("store") is not False
    kept = RenderedItems(writer.entries, frozenset(), frozenset()) if keep_ids else None
    items = kept or without_refused_ids(writer.entries, writer.losses.made, earlier, stored=stored)
    _put_input(body, [entry.item for entry in items.entries], configuration.form)
    tools = _write_tools(configuration, writer.losses)
    if tools:
        body["tools"] = tools
    return Rendered(
        body=body,
        losses=tuple(writer.losses.made),
        edits=tuple(writer.edits),
        gives=items.gives,
        asks=items.asks,
    )


def _is_instructions(message: Message) -> bool:
    return FORMS.says(message.form, "instructions") and len(message.parts) == 1 and isinstance(message.parts[0], Text)


def _put_input(body: dict[str, Any], items: list[dict[str, Any]], form: Form | None) -> None:
    plain = len(items) == 1 and items[0].keys() == {"role", "content"} and items[0]["role"] == "user"
    if FORMS.says(form, "input=string") and plain and isinstance(items[0]["content"], str):
        body["input"] = items[0]["content"]
    elif items or not (FORMS.says(form, "input=null") or FORMS.says(form, "input=absent")):
        body["input"] = items
    elif FORMS.says(form, "input=null"):
        body["input"] = None


def _write_tools(configuration: Configuration, losses: Losses) -> list[dict[str, Any]]:
    losses.records = ()
    tools: list[dict[str, Any]] = []
    for tool in configuration.tools:
        written = write_tool(tool)
        if written is None:
            losses.add("tool", f"tool {tool.name!r} left out: {tool.provider} runs it")
            continue
        losses.extras(tool.form, f"tool {tool.name!r}")
        tools.append(written)
    return tools


class _Writer:
    """Collects the items of a view."""

    def __init__(self, view: Sequence[Shown], blob: BlobReader) -> None:
        self.entries: list[RenderedItem] = []
        self.losses = Losses(NAME)
        self.edits: list[Edit] = []
        self._blob = blob
        self._called: dict[str, str] = {}
        self._told = frozenset(
            part.call_id
            for shown in view
            for part in shown.message.parts
            if isinstance(part, ToolResult)
            and part.kind == "computer"
            and not any(isinstance(inner, Media) and inner.kind == "image" for inner in part.parts)
        )

    def add(self, shown: Shown) -> None:
        """Add the items of one message."""
        message = shown.message
        self.losses.begin(shown)
        self.losses.author(message.name)
        if not message.parts:
            self._add_message(message, shown)
        run: list[Part] = []
        for part in message.parts:
            if _is_content(part):
                if run and (_item_size(part) or len(run) == _item_size(run[0])):
                    self._add_run(message, run, shown)
                    run = []
                run.append(part)
                continue
            if run:
                self._add_run(message, run, shown)
                run = []
            self._add_part(part, shown)
        if run:
            self._add_run(message, run, shown)

    def _add_run(self, message: Message, run: list[Part], shown: Shown) -> None:
        """Add one message item. The form of the message is used only if the item is the whole message."""
        whole = len(run) == len(message.parts)
        self._add_message(replace(message, parts=tuple(run), form=message.form if whole else None), shown)

    def _add_message(self, message: Message, shown: Shown) -> None:
        item, lost = write_message(message, self._blob)
        for part in lost:
            self._lose_part(part)
        for part in message.parts:
            self.losses.extras(getattr(part, "form", None), "part")
            self._note_name(part)
        if item is None:
            self._mark_open()
            return
        form = message.form
        size = _item_size(message.parts[0]) if message.parts else 0
        if size and isinstance(message.parts[0], Text):
            form = message.parts[0].form
        self._push(item, form, shown, edited=size not in (0, len(message.parts)))

    def _add_part(self, part: Part, shown: Shown) -> None:
        self.losses.extras(getattr(part, "form", None), "part")
        if isinstance(part, Reasoning) and part.provider == NAME:
            self._push(write_reasoning(part), part.form, shown)
        elif isinstance(part, Reasoning):
            self.losses.add("reasoning", f"reasoning of {part.provider} left out")
        elif isinstance(part, ToolCall):
            self._add_call(part, shown)
        elif isinstance(part, ToolResult):
            self._add_result(part, shown)
        elif isinstance(part, Opaque) and part.provider == NAME and isinstance(part.data, dict):
            self._push(dict(part.data), part.form, shown)
        else:
            self._lose_part(part)
            self._mark_open()

    def _add_call(self, call: ToolCall, shown: Shown) -> None:
        if call.signature:
            self.losses.add("reasoning", f"{call.provider} signature of call {call.id!r} left out")
        kind = call_type(call, self._told)
        item = write_call(call, kind)
        is_sendable = fits(item, ITEM) and (kind in ID_MAY_GO or id_fits(item))
        if kind == "local_shell_call":  # its output refers to the call by this id
            is_sendable = is_sendable and id_fits({"type": CALLS[kind].results[0], "id": call.id})
        if CALLS[kind].action and not is_sendable:
            self.losses.add("extra", f"{kind} {call.id} shown as a function call: it lacks what such items must have")
            kind = "function_call"
            item = write_call(call, kind)
        elif kind == "local_shell_call" and call.id == item.get("id"):
            self.losses.add("extra", f"id {call.id} of {an(kind)} item left out: its output goes by it")
            item = {key: value for key, value in item.items() if key != "id"}
        self._called[call.id] = kind
        self._push(item, call.form, shown)

    def _add_result(self, result: ToolResult, shown: Shown) -> None:
        unreadable = [part for part in result.parts if isinstance(part, Opaque) and FORMS.says(part.form, "part")]
        if unreadable:
            for strange in unreadable:
                self._lose_part(strange)
            result = replace(result, parts=tuple(part for part in result.parts if part not in unreadable))
        kind = result_type(result, self._called.get(result.call_id, ""))
        given_type = read_type(result)
        if given_type not in ("", kind) and not any(
            given_type in c.results for c in CALLS.values() if c.kind == result.kind
        ):
            rule = f"No tool call found for {given_type} with call_id {result.call_id}."
            self.edits.append(
                Edit(
                    "output",
                    f"{given_type} of call {result.call_id} sent as {kind}, which its call requires",
                    shown.records,
                    rule,
                )
            )
        item, lost = write_result(result, kind, self._blob)
        for part in lost:
            self._lose_part(part)
        for part in result.parts:
            self.losses.extras(getattr(part, "form", None), "part of a result")
            self._note_name(part)
        if (
            result.outcome != "ok"
            and not result.synthetic
            and kind not in ("apply_patch_call_output", "shell_call_output")
        ):
            self.losses.add("outcome", f"result of {result.call_id}: {result.outcome!r} has no place of its own")
        self._push(item, result.form, shown)

    def _push(self, item: dict[str, Any], form: Form | None, shown: Shown, *, edited: bool = False) -> None:
        # What differs from the content that the provider stored under an item's id must not be sent with that id.
        edited = edited or not shown.as_recorded
        edited = edited and item.get("type") in (None, "message", *CALLS) and "id" in item
        if edited:
            self.losses.add("extra", f"id {item['id']} left out: the item is not shown as it was")
            item = {key: value for key, value in item.items() if key != "id"}
        first = FORMS.value(form, "first")
        self.entries.append(
            RenderedItem(item, shown.records, first or FORMS.value(form, "after"), bool(first), renamed=edited)
        )

    def _mark_open(self) -> None:
        if self.entries:
            self.entries[-1].open_end = True

    def _note_name(self, part: Part) -> None:
        if isinstance(part, Media) and part.name and part.kind == "image" and not FORMS.says(part.form, "file"):
            self.losses.add("extra", f"name {part.name!r} of an image left out")

    def _lose_part(self, part: Part) -> None:
        if isinstance(part, Media):
            what = part.mime or part.kind
            self.losses.add("media", f"{what} left out: this place takes none")
        elif isinstance(part, Opaque):
            self.losses.add("opaque", f"{part.kind} of {part.provider} left out")
        elif isinstance(part, Unknown):
            self.losses.add("opaque", f"{part.kind}, written by a newer turnlog, left out")
        else:
            self.losses.add("place", f"a {type(part).__name__} left out: this place takes none")


def _item_size(part: Part) -> int:
    """The number of parts of the output message that this part begins; 0 if it does not begin one."""
    size = FORMS.value(part.form, "item") if isinstance(part, Text) else ""
    return int(size) if size.isdecimal() else 0


def _is_content(part: Part) -> bool:
    if isinstance(part, Opaque):
        return part.provider == NAME and FORMS.says(part.form, "part")
    return isinstance(part, (Text, Media))
