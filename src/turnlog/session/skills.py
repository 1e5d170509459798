"""`Session.skills`: skills and tools on demand, loaded when the model asks for them or a rule says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .._platform.given import text_given
from .._platform.units import counted
from ..errors import InputError
from ..log.messages import Message, Opaque, Outcome, Text, Tool, ToolCall, parse_arguments
from ..log.records import Body, MessageRecord
from ..models.target import Target
from ..prompt.sections import block_of
from ..providers import provider
from ..providers.protocol import OnDemand
from ..requests.carried import native
from ..skills.catalogue import SKILLS, list_of_skills, schema_text
from ..skills.folder import Skill
from ..skills.ready import FIND_TOOLS, LOAD_SKILL, USE_TOOL, found_by
from ..tokens.counters import count_tools, counter_for
from .changes import folding
from .configure import Configurer
from .prompt import Prompt
from .recorder import Journal
from .state import Context


class Savings(Struct, frozen=True, repr_omit_defaults=True):
    """What loading on demand saves, in tokens: `whole` is the size of all tools and skills in full, `shown` what
    requests show of them now. `loaded` are the names of the tools and skills that are shown in full."""

    whole: int
    shown: int
    loaded: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.shown:,} of {counted(self.whole, 'token')}; in full: {', '.join(self.loaded) or 'none'}"


class SessionSkills:
    """Skills and tools on demand of one session.

    A model sees the name and one line of each. What it loads is on record, so that a session which is opened again, or
    compacted, or switched to another provider, goes on with it. Skills themselves are not on record: a program adds
    them each time it opens the session.
    """

    def __init__(self, context: Context, journal: Journal, configurer: Configurer, prompt: Prompt) -> None:
        self._context = context
        self._journal = journal
        self._configurer = configurer
        self._prompt = prompt
        self._skills: dict[str, Skill] = {}
        self._rules: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
        prompt.also(self._matched)

    def add(self, *skills: Skill) -> None:
        """Add skills, such as those of `turnlog.load_skills(folder)`; one whose name is there takes its place. The
        session then declares `load_skill`. Raises InputError for what is no skill."""
        for skill in skills:
            if not isinstance(skill, Skill):
                raise InputError(f"skills.add() takes turnlog.skills.Skill objects, not {type(skill).__name__}")
        self._skills.update((skill.name, skill) for skill in skills)
        if self._skills and LOAD_SKILL not in self._context.configuration.tools:
            self._configurer.configure((*self._context.configuration.tools, LOAD_SKILL), None, None, {})
        listed = list_of_skills((skill.name, skill.description) for skill in self._skills.values())
        self._prompt.list_ready(SKILLS, listed)

    def load_when(self, pattern: str, *names: str) -> None:
        """Load these skills, and these tools on demand, when a turn opens whose text matches a pattern (a regular
        expression, upper and lower case alike). Raises InputError for a pattern that is none."""
        try:
            self._rules.append((re.compile(text_given("pattern", pattern), re.IGNORECASE), names))
        except re.error as error:
            raise InputError(f"load_when: {pattern!r} is no regular expression: {error}") from error

    def take(self, call: ToolCall) -> ToolCall | None:
        """A call as it is to be run; None if it is answered already.

        Calls of `load_skill` and `find_tools` are answered here. A call of `use_tool` becomes one of the tool that it
        names; if that tool is not loaded, it is loaded instead, and the answer says so. Any other call is returned as
        it is. Record the result of the call that the model made, not of the one returned.
        """
        names = {tool.name for tool in self._context.configuration.tools}
        if call.name == LOAD_SKILL.name and LOAD_SKILL.name in names:
            self._answer(call, *self._load_skill(_arguments(call)))
            return None
        if FIND_TOOLS.name in names and (call.name == FIND_TOOLS.name or call.kind == "tool_search"):
            self._answer(call, *self._find_tools(_arguments(call), call))
            return None
        if call.name == USE_TOOL.name and USE_TOOL.name in names:
            return self._use_tool(call, _arguments(call))
        return call

    def follow(self) -> None:
        """Record that the loaded tools are declared at the beginning of requests from now on: another provider cannot
        read how they were loaded, and its requests have no earlier prefix to keep. This happens by itself at a
        switch."""

        def moved(n: int) -> Sequence[Body]:
            self._context.aim_at(self._configurer.target_or(None), folded=True)
            return self._context.sections.named([folding(n - 1, n - 1, 1)])

        with self._context.lock:
            self._context.refresh()
            waiting = {tool.name for tool in self._on_demand()}
            if not self._context.sections.loaded_since(self._context.items) & waiting:
                return
        self._journal.append_at(moved)
        with self._context.lock:
            self._context.aim_at(self._configurer.target_or(None))

    def savings(self) -> Savings:
        """The tokens of all tools on demand and skills in full, against those that requests show of them."""
        with self._context.lock:
            self._context.refresh()
            target = self._configurer.target_or(None)
            counter = counter_for(target.provider, target.model)
            waiting, bodies = self._on_demand(), [skill.body for skill in self._skills.values()]
            whole = count_tools(waiting, counter).tokens if waiting else 0
            loaded = {f"tool:{name}" for name in self._loaded()}
            shown = [tool for tool in waiting if f"tool:{tool.name}" in loaded]
            section_texts = [
                section.text for section in self._prompt.sections if section.name in (SKILLS, "tools on demand")
            ]
            texts = {skill.name: skill.body for skill in self._skills.values() if self._has(f"skill:{skill.name}")}
            size = sum(map(counter.text, (*section_texts, *texts.values())))
            size += count_tools(shown, counter).tokens if shown else 0
            return Savings(
                whole + sum(map(counter.text, bodies)), size, (*sorted(t.name for t in shown), *sorted(texts))
            )

    # -- inside ----------------------------------------------------------------------------------

    def _on_demand(self) -> list[Tool]:
        return [tool for tool in self._context.configuration.tools if tool.on_demand]

    def _native(self) -> OnDemand | None:
        target: Target | None = self._configurer.target
        return None if target is None else native(provider(target.provider), target)

    def _has(self, section: str) -> bool:
        return self._context.sections.newest(self._context.items, section) is not None

    def _loaded(self) -> set[str]:
        """The names of the tools that requests show in full, or that the model was told of."""
        return self._context.sections.loaded_tools(self._context.items)

    def _answer(self, call: ToolCall, text: str, blocks: Sequence[Body], found: tuple[Opaque, ...] = ()) -> None:
        """Record the result of a call, with the blocks that it loads."""
        outcome: Outcome = "ok" if text.startswith("Loaded") or found else "failed"
        result = self._journal.result_of(call, [Text(text), *found] if not found else list(found), outcome)
        self._journal.append(MessageRecord(Message("user", (result,))), *blocks)

    def _load_skill(self, arguments: dict[str, Any]) -> tuple[str, list[Body]]:
        name = str(arguments.get("name", ""))
        if name not in self._skills:
            names = ", ".join(sorted(self._skills)) or "none"
            return f"There is no skill {name!r}. There are: {names}.", []
        if self._has(f"skill:{name}"):
            return f"Loaded already: the skill {name!r} stands above.", []
        return f"Loaded: the instructions of the skill {name!r} follow.", [self._skill_block(name)]

    def _find_tools(self, arguments: dict[str, Any], call: ToolCall) -> tuple[str, list[Body], tuple[Opaque, ...]]:
        waiting = {tool.name: tool for tool in self._on_demand()}
        asked = arguments.get("names")
        names = [str(name) for name in asked] if isinstance(asked, list) else [str(asked)] if asked else []
        tools = [waiting[name] for name in dict.fromkeys(names) if name in waiting]
        if not tools and arguments.get("query"):
            tools = found_by(str(arguments["query"]), [*waiting.values()])
        loaded = self._loaded()
        new = [tool for tool in tools if tool.name not in loaded]
        native = self._native()
        if new and native is not None and (call.kind == "tool_search") == native.searches_itself:
            return "", [], native.found(new)
        sentences = [f"Loaded: {', '.join(tool.name for tool in new)}. How to use them follows."] if new else []
        loaded_before = [tool.name for tool in tools if tool.name in loaded]
        sentences += [f"Loaded already: {', '.join(loaded_before)}."] if loaded_before else []
        if missing := [name for name in names if name not in waiting]:
            sentences.append(f"There is no tool on demand named {', '.join(map(repr, missing))}.")
        if not sentences:
            sentences.append("No tool fits. Ask with other words, or by the names in the list of tools on demand.")
        return " ".join(sentences), [_tool_block(tool) for tool in new], ()

    def _use_tool(self, call: ToolCall, arguments: dict[str, Any]) -> ToolCall | None:
        name, given = str(arguments.get("name", "")), arguments.get("arguments", {})
        waiting = {tool.name: tool for tool in self._on_demand()}
        if name not in waiting:
            self._answer(call, f"It did not run: there is no tool on demand named {name!r}.", [])
            return None
        if name not in self._loaded():
            text = f"It did not run: {name!r} was not loaded. How to use it follows; call use_tool again."
            self._answer(call, text, [_tool_block(waiting[name])])
            return None
        if isinstance(given, str):
            given = parse_arguments(given)[0]
        if not isinstance(given, dict):
            self._answer(call, "It did not run: arguments must be an object.", [])
            return None
        return replace(call, name=name, arguments=given, raw=None, form=None)

    def _skill_block(self, name: str) -> Body:
        skill = self._skills[name]
        files = f"Its files are in {skill.folder}\n\n" if skill.folder else ""
        return _block(f"skill:{name}", f"skill {name}", files + skill.body)

    def _matched(self, said: str) -> Iterator[Body]:
        """The blocks that rules load for what the user says."""
        wanted = dict.fromkeys(name for pattern, names in self._rules if pattern.search(said) for name in names)
        waiting = {tool.name: tool for tool in self._on_demand()}
        for name in wanted:
            if name in self._skills and not self._has(f"skill:{name}"):
                yield self._skill_block(name)
            elif name in waiting and name not in self._loaded() and self._native() is None:
                yield _tool_block(waiting[name])


def _arguments(call: ToolCall) -> dict[str, Any]:
    return call.arguments if isinstance(call.arguments, dict) else {}


def _tool_block(tool: Tool) -> Body:
    return _block(f"tool:{tool.name}", f"tool {tool.name}", schema_text(tool))


def _block(section: str, name: str, text: str) -> Body:
    return MessageRecord(Message("system", (Text(block_of(name, text)),)), section=section)
