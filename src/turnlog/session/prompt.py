"""`Session.prompt`: the system prompt in sections. What each section says is put on record when a turn opens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from .._platform.units import counted
from ..errors import InputError
from ..log.messages import Message, Text, Tool, ToolCall, text_of, tool_called
from ..log.prompt import PromptRecord, PromptSection
from ..log.records import Body, MessageRecord, Record
from ..log.store import RecordStore
from ..prompt.sections import (
    Facts,
    Section,
    SectionPlacement,
    block_of,
    block_that_ends,
    capped,
    composed,
    is_reserved,
    replaced,
    section_given,
    start_text,
    text_said,
    text_told,
    tokens_in,
)
from ..redaction import RedactingStore
from ..skills.catalogue import TOOLS, list_of_tools
from ..view.fold import as_shown
from ..view.types import starts_turn
from .configure import Configurer
from .recorder import Journal
from .state import Context

START = "start"
"""The section that a message with the sections at the beginning names as its own."""

_ROOM = 0.5
"""Default limit of all sections together, as a share of the limit of a request."""


class SectionReport(Struct, frozen=True, repr_omit_defaults=True):
    """Where a section stands. `tokens` are those of its text, counted as for a model that is not known. `left_out` says
    why requests do not show it; empty if they do. `changes`: a function gives its text."""

    name: str
    place: str
    tokens: int
    left_out: str = ""
    priority: int | None = None
    changes: bool = False

    def __str__(self) -> str:
        words = [f"{self.name}: {counted(self.tokens, 'token')}", self.place]
        words += ["by a function"] if self.changes else []
        words += ["never gives way"] if self.priority is None else [f"priority {self.priority}"]
        return f"{', '.join(words)}{f' - left out: {self.left_out}' if self.left_out else ''}"


class Prompt:
    """The sections of a session's system prompt.

    Their definitions are on record, and so is the text that they make: a session that is opened again goes on with it.
    Functions are not on record. A program adds its sections each time it opens the session; what has not changed makes
    no record. Until a function is given, the section keeps the last text that is on record.
    """

    def __init__(
        self, store: RecordStore, session_id: str, context: Context, journal: Journal, configurer: Configurer
    ) -> None:
        self._store = store
        self._id = session_id
        self._context = context
        self._journal = journal
        self._configurer = configurer
        self._functions: dict[str, Callable[[], str]] = {}
        self._hooks: list[Callable[[str], Iterable[Body]]] = []

    # -- defining --------------------------------------------------------------------------------

    def add(self, *sections: Section) -> None:
        """Add sections, after those that are there; one whose name is there takes its place. Raises InputError."""
        given = [section_given(section) for section in sections]
        self._refuse_secrets("the name of a section", [section.name for section in given])
        for section in given:
            self._functions.pop(section.name, None)
            if not isinstance(section.text, str):
                self._functions[section.name] = section.text
        self._change(
            lambda now: replace(now, sections=replaced(now.sections, (_kept(section, now) for section in given)))
        )

    def remove(self, *names: str) -> None:
        """Remove sections by name. Raises InputError for a name that is not there."""

        def removed(now: PromptRecord) -> PromptRecord:
            present = [section.name for section in now.sections]
            if missing := [name for name in names if name not in present]:
                raise InputError(f"there is no section {missing[0]!r}: there are {', '.join(present) or 'none'}")
            return replace(now, sections=tuple(section for section in now.sections if section.name not in names))

        self._change(removed)
        for name in names:
            self._functions.pop(name, None)

    def label(self, *labels: str) -> None:
        """Give the prompt labels, which conditions of sections may ask for."""
        self._refuse_secrets("a label of the prompt", labels)
        self._change(lambda now: replace(now, labels=tuple(dict.fromkeys((*now.labels, *labels)))))

    def _refuse_secrets(self, field: str, names: Iterable[str]) -> None:
        """Raises InputError for new names with a secret; those on record stay usable."""
        recorded = {*self._now.labels, *(section.name for section in self._now.sections)}
        if isinstance(self._store, RedactingStore):
            self._store.redactor.refuse(field, [name for name in names if name not in recorded])

    def unlabel(self, *labels: str) -> None:
        """Take labels from the prompt."""
        self._change(lambda now: replace(now, labels=tuple(label for label in now.labels if label not in labels)))

    def limit(self, max_tokens: int) -> None:
        """Set the most tokens of all sections together; 0: half of what a request may have. Sections with the lowest
        priority give way."""
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 0:
            raise InputError(f"limit() takes a number of tokens, or 0, not {max_tokens!r}")
        self._change(lambda now: replace(now, max_tokens=max_tokens))

    def list_ready(self, name: str, text: str) -> None:
        """Set turnlog's own section that lists what a model may load; empty text removes it."""
        self._change(lambda now: _with_list(now, name, text))

    def also(self, hook: Callable[[str], Iterable[Body]]) -> None:
        """When a turn opens, call `hook` with the user's text, and record what it returns after the user's message."""
        self._hooks.append(hook)

    def settle(self) -> None:
        """Look at all conditions, and put on record what has changed. No function is called. This happens by itself
        when the tools or the target change."""
        if self._context.sections.record is not None or any(map(_on_demand, self._context.configuration.tools)):
            self._change(lambda now: now)

    def refresh(self) -> None:
        """Call the functions of sections, look at all conditions, and put on record what has changed. This happens by
        itself when a turn opens, and at `Session.user` outside of a turn."""
        if self._context.sections.record is None:
            return
        texts = self._called()
        with self._context.lock:
            self._context.refresh()
            begun = any(item.shown.message.role != "system" for item in self._context.items)
            if not begun or not [*self._late(texts)]:
                return
        self._journal.append_at(lambda n: [*self._late(texts)], exact=False)

    def said(self, make: Callable[[int], Sequence[Body]], *, exact: bool = True) -> tuple[Record, ...]:
        """Record what the user says at the beginning of a turn: the bodies that `make` returns for the number of the
        first of them. Changes of sections are recorded too: those at the beginning before it, late blocks after it."""
        if self._context.sections.record is None:
            return self._journal.append_at(make, exact=exact)
        texts = self._called()

        def told(n: int) -> list[Body]:
            bodies = make(n)
            user_text = "\n".join(text_of(body.message) for body in bodies if isinstance(body, MessageRecord))
            return [*bodies, *self._late(texts), *(body for hook in self._hooks for body in hook(user_text))]

        return self._journal.append_at(told, exact=exact)

    def _called(self) -> dict[str, str]:
        """The texts that the functions of sections return now. What they change at the beginning is recorded."""
        texts = {name: text_said(name, function()) for name, function in self._functions.items()}
        self._change(lambda now: replace(now, sections=tuple(_with_text(section, texts) for section in now.sections)))
        return texts

    # -- looking ---------------------------------------------------------------------------------

    @property
    def sections(self) -> tuple[PromptSection, ...]:
        """The sections on record, in the order in which they were added."""
        return self._now.sections

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the prompt."""
        return self._now.labels

    def explain(self) -> tuple[SectionReport, ...]:
        """Where each section stands, in the order of requests, by the conditions as they are now. No function is
        called: changes show from the next turn on. System text that belongs to no section comes first, as `system`."""
        with self._context.lock:
            self._context.refresh()
            plain = self._configurer.text_of_section("")
            reports = [] if plain is None else [SectionReport("system", "start", tokens_in(plain))]
            for placement in self._composed(self._now):
                of = placement.section
                reports.append(
                    SectionReport(of.name, of.place, placement.tokens, placement.left_out, of.priority, of.changes)
                )
            return tuple(reports)

    # -- inside ----------------------------------------------------------------------------------

    @property
    def _now(self) -> PromptRecord:
        return self._context.sections.record or PromptRecord()

    def _change(self, change: Callable[[PromptRecord], PromptRecord]) -> None:
        """Record the effect of a change of the sections, if it has any."""

        def changed(n: int) -> Sequence[Body]:
            wanted = _with_list(change(self._now), TOOLS, list_of_tools(self._context.configuration.tools))
            bodies: list[Body] = [] if wanted == self._now else [wanted]
            text = start_text(self._composed(wanted))
            if text != self._shown_text(START):
                bodies += self._configurer.system_bodies(n + len(bodies), text, START)
            return bodies

        with self._context.lock:
            self._context.refresh()
            if not changed(self._context.last + 1):
                return
        self._journal.append_at(changed)

    def _composed(self, record: PromptRecord, texts: Mapping[str, str] | None = None) -> list[SectionPlacement]:
        """Where each section stands. Late ones with a function have the text in `texts`, or the last one on record."""
        late = [section.name for section in record.sections if section.place == "late" and section.changes]
        told = {name: text_told(name, self._shown_text(name)) for name in late}
        return composed(record.sections, {**told, **(texts or {})}, self._facts(record), self._room(record))

    def _late(self, texts: Mapping[str, str]) -> Iterator[Body]:
        """The messages with the late blocks that are due now."""
        placements = [placement for placement in self._composed(self._now, texts) if placement.section.place == "late"]
        wanted = {placement.section.name: "" if placement.left_out else placement.text for placement in placements}
        shown_names = {name for name in self._context.sections.of.values() if not is_reserved(name)}
        for name in (*wanted, *sorted(shown_names - {*wanted})):
            shown_text, text = self._shown_text(name), wanted.get(name, "")
            if text_told(name, shown_text) != text:
                block = block_of(name, text) if text else block_that_ends(name)
                yield MessageRecord(Message("system", (Text(block),)), section=name)

    def _room(self, record: PromptRecord) -> int:
        configuration, target = self._context.configuration, self._configurer.target
        limit = (configuration.budget.max_tokens if configuration.budget else 0) or (
            target.input_limit if target else 0
        )
        return record.max_tokens or int(limit * _ROOM) or 1 << 62

    def _facts(self, record: PromptRecord) -> Facts:
        configuration = self._context.configuration
        tools = {tool.name for tool in configuration.tools}
        return Facts(tools, cache(self._used_in), configuration.provider, frozenset(record.labels))

    def _used_in(self, turns: int) -> Collection[str]:
        """The names of the tools called in the last turns of the user, without what was taken back."""
        names: set[str] = set()
        for record in self._store.read(self._id, reverse=True):
            if self._context.sections.is_taken_back(record.n):
                continue
            for shown in as_shown(record):
                names |= {tool_called(part) for part in shown.message.parts if isinstance(part, ToolCall)}
                turns -= starts_turn(shown)
            if turns <= 0:
                break
        return names

    def _shown_text(self, section: str) -> str:
        """The text of a section in the newest message that shows it; empty if no message does."""
        newest = self._context.sections.newest(self._context.items, section)
        return "" if newest is None else text_of(newest.shown.message)


def _with_list(now: PromptRecord, name: str, text: str) -> PromptRecord:
    """The sections with the one that lists what a model may load; without it if the text is empty."""
    sections = now.sections if text else tuple(section for section in now.sections if section.name != name)
    return replace(now, sections=replaced(sections, [PromptSection(name, text)] if text else ()))


def _on_demand(tool: Tool) -> bool:
    return tool.on_demand


def _kept(section: Section, now: PromptRecord) -> PromptSection:
    """A section as it is kept. One with a function has the last text on record until a turn opens."""
    changes = not isinstance(section.text, str)
    before = next(
        (recorded.text for recorded in now.sections if recorded.name == section.name and recorded.changes), ""
    )
    text = section.text if isinstance(section.text, str) else before
    return PromptSection(
        section.name, text, section.place, section.when, section.cap, section.priority, changes=changes
    )


def _with_text(section: PromptSection, texts: Mapping[str, str]) -> PromptSection:
    """A section with the text that its function returned, if it is at the beginning."""
    if section.place != "start" or section.name not in texts:
        return section
    return replace(section, text=capped(section, texts[section.name]))
