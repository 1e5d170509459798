"""The configuration of a session's requests: its target, tools, budget, strategy, settings and system text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from .._platform.given import text_given
from .._version import __version__
from ..errors import InputError
from ..log.budget import Budget, Strategy, read_budget, read_strategy
from ..log.messages import Message, Text, Tool, compact_json, text_of
from ..log.records import Body, Configuration, Decision, Environment, MessageRecord, Record
from ..log.validation import admitted
from ..models.servers import recognised
from ..models.target import Target
from ..models.target import target as make_target
from ..providers.tool_declarations import read_tools
from ..redaction import Redactor
from ..requests.pieces import Conversation
from ..requests.request import Request
from ..requests.translate import plan, translate
from ..skills.ready import LOAD_SKILL, with_ready_tools
from ..view.types import Loss, Shown
from .inputs import settings_given, target_given
from .recorder import Journal
from .state import Context
from .versions import VIEWS


def refuse_secrets(redactor: Redactor | None, made: Configuration, now: Configuration) -> None:
    """Raises InputError if a model or a tool of `made` has a name with a secret; the names on record, in `now`, stay
    usable."""
    if redactor is None:
        return
    recorded_names = [tool.name for tool in now.tools]  # no set: a name of a wrong type is told by who records it
    redactor.refuse("the name of a tool", [tool.name for tool in made.tools if tool.name not in recorded_names])
    redactor.refuse("the name of the model", "" if made.model == now.model else made.model)


class Configurer:
    """The configuration of one session. Each change is recorded and applies to later requests. `redactor` is the one
    that the session's store has."""

    def __init__(self, context: Context, journal: Journal, redactor: Redactor | None) -> None:
        self._context = context
        self._journal = journal
        self._redactor = redactor
        self._last: tuple[Configuration, Target] | None = None

    @property
    def target(self) -> Target | None:
        """The target on record; None if there is none yet."""
        configuration = self._context.configuration
        if not (configuration.provider and configuration.model):
            return None
        if self._last is None or self._last[0] is not configuration:
            usual = make_target(
                configuration.provider,
                configuration.model,
                base_url=configuration.base_url,
                server=configuration.server,
            )
            self._last = (
                configuration,
                msgspec.structs.replace(usual, input_limit=configuration.input_limit or usual.input_limit),
            )
        return self._last[1]

    def target_or(self, given: Target | None) -> Target:
        """The target given, else the one on record. Raises InputError if there is neither."""
        chosen = self.target if given is None else target_given(given)
        if chosen is None:
            raise InputError(
                "no target: open the session with target=turnlog.target(PROVIDER, MODEL), or name one here"
            )
        return chosen

    def asked(self, given: Target | Request | None) -> Target | Request:
        """As `target_or`; a request is returned as it is."""
        return given if isinstance(given, Request) else self.target_or(given)

    def configure(
        self,
        tools: Sequence[Tool | Mapping[str, Any]] | None,
        budget: Budget | int | None,
        strategy: Strategy | str | None,
        settings: Mapping[str, Any],
    ) -> Record | None:
        """Record a change of the configuration. Returns None if nothing changes. The arguments are those of
        `Session.configure`."""
        self._context.refresh()
        target = self.target_or(None)  # first: a session without a target is told so
        settings_given(settings, target, self._context.configuration.settings)
        given = {
            **({} if tools is None else {"tools": self.with_ready_tools(read_tools(tools))}),
            **({} if budget is None else {"budget": read_budget(budget)}),
            **({} if strategy is None else {"strategy": read_strategy(strategy)}),
        }

        def configured(_: int) -> tuple[Configuration]:  # on top of what others configured meanwhile
            target, configuration = self.target_or(None), self._context.configuration
            merged = {key: value for key, value in {**configuration.settings, **settings}.items() if value is not None}
            here = environment_of(target.provider, target.model)
            changed = msgspec.structs.replace(
                configuration, settings=merged, why="", form=None, environment=here, **given
            )
            refuse_secrets(self._redactor, changed, configuration)
            return (changed,)

        configuration, wanted = self._context.configuration, admitted(configured(0)[0])  # a tuple is a list on record
        unchanged = {name: getattr(configuration, name) for name in ("why", "form", "environment")}
        if msgspec.structs.replace(wanted, **unchanged) == configuration:
            return None
        return self._journal.append_at(configured, exact=False)[0]

    def ask_for(self, answer_schema: dict[str, Any] | None) -> None:
        """Record the schema that answers follow from now on, in the terms of no provider; None: any answer."""
        self._context.refresh()
        if self._context.configuration.answer_schema == answer_schema:
            return

        def asked(_: int) -> tuple[Configuration]:
            now = self._context.configuration
            here = environment_of(now.provider, now.model)
            return (msgspec.structs.replace(now, answer_schema=answer_schema, why="", form=None, environment=here),)

        self._journal.append_at(asked, exact=False)

    def with_ready_tools(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """The tools, with the ready ones that they call for; `load_skill` stays if it is declared."""
        return with_ready_tools(tools, skills=LOAD_SKILL in (*tools, *self._context.configuration.tools))

    def switch(self, target: Target, reason: str) -> tuple[Loss, ...]:
        """Record another target. Arguments and result as for `Session.switch`."""
        self._context.refresh()
        planned = plan(self._context.configuration, target_given(target))
        usual = make_target(target.provider, target.model)

        def switched(_: int) -> tuple[Configuration]:  # on top of what others configured meanwhile
            configuration = self._context.configuration
            carried = translate(configuration, planned.provider, target)[0]
            then = Configuration(
                provider=target.provider,
                model=target.model,
                settings={**carried.settings, **target.settings},
                tools=carried.tools,
                why=reason,
                input_limit=0 if target.input_limit == usual.input_limit else target.input_limit,
                budget=configuration.budget,
                strategy=configuration.strategy,
                environment=environment_of(target.provider, target.model),
                base_url=target.base_url,
                server=target.server,
                answer_schema=configuration.answer_schema,
            )
            refuse_secrets(self._redactor, then, configuration)
            return (then,)

        self._journal.append_at(switched, exact=False)
        with self._context.lock:
            return (*planned.losses, *self._losses(self.target_or(None)))

    def _losses(self, target: Target) -> tuple[Loss, ...]:
        """What a request for a target loses of the conversation. While the conversation is empty, no tokens are
        counted: loading a vocabulary takes 0.2 seconds."""
        if self._context.items:
            return self._context.request(target, sent=False).losses
        return self._context.builder(target).request(Conversation(), {}).losses

    @property
    def system_text(self) -> str:
        """The system text that the conversation begins with."""
        return "\n\n".join(filter(None, (text_of(shown.message) for shown in self._context.head)))

    def begin_with(self, text: str) -> None:
        """Make the conversation begin with this system text. Records nothing if it does already."""
        self._context.refresh()
        if not self.begins_with(text):
            self.replace_system(text)

    def begins_with(self, text: str) -> bool:
        """Whether the system text that the conversation begins with is `text`, apart from that of sections. On disk its
        secrets are marks."""
        own_text = self.text_of_section("") or ""
        return own_text == text or (self._redactor is not None and own_text == self._redactor.text(text)[0])

    def replace_system(self, text: str) -> Record:
        """Record system text that replaces the text at the beginning of the conversation, apart from that of sections.

        A conversation without system text gets it at the present position; a later call replaces it.
        """
        text_given("system text that replaces another", text)
        # exact: a decision names the number
        exact = bool(self._context.items) and not self._context.head
        return self._journal.append_at(lambda n: self.system_bodies(n, text), exact=exact)[0]

    def text_of_section(self, section: str) -> str | None:
        """The text of a section at the beginning of the conversation ("": of no section); None if it is not there."""
        texts = [text_of(shown.message) for shown in self._context.head if self._section_of(shown) == section]
        return "\n\n".join(texts) if texts else None

    def system_bodies(self, n: int, text: str, section: str = "") -> tuple[Body, ...]:
        """The records, from number `n` on, that make `text` the text of a section at the beginning of the conversation
        ("": text of no section). They also replace what others recorded meanwhile. Other sections keep their text; it
        is repeated because models that are told of changes are told the whole text anew."""
        head = self._context.head
        old = [(shown, i) for shown in head for i in range(len(shown.message.parts))]
        own_places = [place for place in old if self._section_of(place[0]) == section]
        if not own_places:
            system_record = MessageRecord(Message("system", (Text(text),)), section=section)
            is_first = not old and bool(self._context.items)
            return (system_record, Decision("system", n, n, "system text")) if is_first else (system_record,)
        first, last = old[0][0].records[0], old[-1][0].records[0]
        places = []
        for shown, i in old:
            part = shown.message.parts[i]
            new_text = part.text if isinstance(part, Text) else None
            if (shown, i) in own_places:
                new_text = text if (shown, i) == own_places[0] else ""
            if new_text is not None:
                places.append([shown.records[0], [i], new_text])
        return (Decision("system", first, last, "another system text", {"texts": places, "changes_from": first}),)

    def _section_of(self, shown: Shown) -> str:
        return self._context.sections.of.get(shown.records[0], "")


class Change(Struct, frozen=True, repr_omit_defaults=True):
    """A difference between two configurations. `name` is the tool, setting or field; `before` and `after` are its
    values as text, empty if it did not exist."""

    what: Literal["model", "setting", "tool", "system text", "budget", "strategy", "limit", "turnlog"]
    name: str = ""
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        name = f"{self.what} {self.name}".rstrip() if self.what != "limit" else self.name
        if self.what in ("tool", "system text"):
            return f"{name} {'changed' if self.before and self.after else 'removed' if self.before else 'added'}"
        before, after = (_short(text) or "nothing" for text in (self.before, self.after))
        return f"{name} {before} -> {after}"


class SessionState(NamedTuple):
    """The configuration and the system text of a session at some moment."""

    configuration: Configuration
    system_text: str


def changes_of(was: SessionState, now: SessionState) -> tuple[Change, ...]:
    """The differences between two states. Limits of the model and the version of turnlog are those of now, compared
    with those recorded with the earlier configuration."""
    changes = changes_between(was.configuration, now.configuration)
    if now.system_text != was.system_text:
        changes.append(Change("system text", "", was.system_text, now.system_text))
    here = environment_of(now.configuration.provider, now.configuration.model)
    return (*changes, *changes_since(was.configuration.environment, here))


def environment_of(provider: str, model: str) -> Environment:
    """The environment of a configuration: the version of turnlog and, for a target, the limits of its model."""
    if not (provider and model):
        return Environment(__version__, views=VIEWS)
    usual = make_target(provider, model)
    return Environment(__version__, usual.input_limit, usual.output_limit, usual.known, VIEWS)


def changes_since(was: Environment | None, now: Environment | None) -> list[Change]:
    """The differences between the environment and the one recorded with a configuration; none if none was recorded."""
    if was is None or now is None or was == now:
        return []
    changes = []
    for name in ("input_limit", "output_limit"):
        before, after = getattr(was, name), getattr(now, name)
        if before and after and before != after:
            changes.append(Change("limit", name.replace("_", " "), f"{before:,}", f"{after:,}"))
    if was.known != now.known:
        words = {True: "in the table of models", False: "in no table of models"}
        changes.append(Change("model", "", words[was.known], words[now.known]))
    if was.turnlog != now.turnlog:
        changes.append(Change("turnlog", "", was.turnlog, now.turnlog))
    if was.views != now.views:
        changes.append(Change("turnlog", "views", f"{was.views}", f"{now.views}"))
    return changes


def _is_only_named(before: Configuration, after: Configuration) -> bool:
    """Whether the same target has the name of its server in `after` only: older records have none."""
    if before.server or any(getattr(before, key) != getattr(after, key) for key in ("provider", "model", "base_url")):
        return False
    return after.server in ("", recognised(before.base_url, before.model))


def changes_between(before: Configuration, after: Configuration) -> list[Change]:
    """The differences between two configurations."""
    if before == after:
        return []
    changes: list[Change] = []
    names = [
        " ".join(filter(None, (getattr(configuration, key) for key in ("provider", "model", "base_url", "server"))))
        for configuration in (before, after)
    ]
    if names[0] != names[1] and not _is_only_named(before, after):
        changes.append(Change("model", "", *names))
    changes += _values("setting", before.settings, after.settings)
    schemas = [{"answer_schema": each.answer_schema} if each.answer_schema else {} for each in (before, after)]
    changes += _values("setting", *schemas)
    limits = [
        f"{configuration.input_limit:,}" if configuration.input_limit else "" for configuration in (before, after)
    ]
    if limits[0] != limits[1]:
        changes.append(Change("limit", "input limit given", *limits))
    tools = [{tool.name: tool for tool in configuration.tools} for configuration in (before, after)]
    for name in sorted(tools[0].keys() | tools[1].keys()):
        old_tool, new_tool = tools[0].get(name), tools[1].get(name)
        if old_tool != new_tool:
            changes.append(Change("tool", name, _tool(old_tool), _tool(new_tool)))
    changes += _fields("budget", before.budget or Budget(), after.budget or Budget())
    strategies = [configuration.strategy or Strategy("auto") for configuration in (before, after)]
    if strategies[0].name != strategies[1].name:
        changes.append(Change("strategy", "", *(configuration.name or "of its own" for configuration in strategies)))
    elif before.strategy is not None and after.strategy is not None:
        changes += _fields("strategy", *strategies)
    return changes


def _values(what: Literal["setting"], before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        texts = [compact_json(held[key]) if key in held else "" for held in (before, after)]
        if texts[0] != texts[1]:
            yield Change(what, key, *texts)


def _fields(what: Literal["budget", "strategy"], before: Budget | Strategy, after: Budget | Strategy) -> list[Change]:
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in before.__struct_fields__)
    return [Change(what, name, _said(old), _said(new)) for name, old, new in pairs if old != new]


def _said(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, tuple) else str(value)


def _tool(tool: Tool | None) -> str:
    return "" if tool is None else msgspec.json.encode(tool).decode()


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
