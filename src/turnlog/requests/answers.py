"""How a request asks for an answer by a schema, and for how much reasoning, in the terms of its provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ..log.messages import Tool
from ..log.records import Configuration
from ..models.abilities import EFFORTS
from ..models.target import Target
from ..providers.answer_forms import ANSWER, AnswerSchema, answer_taken, effort_taken, with_answer, with_effort
from ..providers.protocol import Provider
from ..providers.strict_schemas import is_recursive, is_strict, sizes, strict_schema
from ..view.types import Loss


def asking(
    schema: dict[str, Any], to: Provider, target: Target, settings: dict[str, Any], tools: tuple[Tool, ...]
) -> tuple[dict[str, Any], tuple[Tool, ...]]:
    """Settings and tools that ask for an answer by a schema: by the provider's own form, else by a tool that the model
    has to call."""
    answer = AnswerSchema(schema, strict=is_strict(schema))
    if _takes(answer, to, target, beside_tools=bool(tools)):
        return with_answer(to, settings, answer), tools
    if to.tool_choice(settings) in (None, "auto") and target.abilities.forced_tools:
        settings = to.with_tool_choice(settings, "required")
    return settings, (Tool(ANSWER, "Give your final answer by calling this tool.", schema), *tools)


def _takes(answer: AnswerSchema, to: Provider, target: Target, *, beside_tools: bool) -> bool:
    """Whether a model answers by this schema if the settings ask for it."""
    able, formats = target.abilities.answer_schema, target.server_row.answer_formats
    if not to.answer_forms or able == "no" or (able == "alone" and beside_tools):
        return False
    if formats is not None and "json_schema" not in formats:
        return False
    if answer.strict and any(size > to.answer_limits.get(of, size) for of, size in sizes(answer.schema).items()):
        return False
    return (answer.strict or to.answers_loosely) and (to.answers_recursively or not is_recursive(answer.schema))


def carried_along(
    source: Provider, configuration: Configuration, to: Provider, target: Target | None
) -> tuple[dict[str, Any], Mapping[str, Any], list[Loss]]:
    """The settings of another provider that ask for an answer by a schema and for how much reasoning, as settings of
    `to`, as far as the model of `target` takes them; the other settings; and what is lost by using a nearby word."""
    settings: dict[str, Any] = {}
    answer, left = answer_taken(source, configuration.settings)
    if answer is not None and not to.answers_loosely:  # what its own provider took may be more than others take
        answer = replace(answer, schema=strict_schema(answer.schema))
    taken = target is None or (answer and _takes(answer, to, target, beside_tools=bool(configuration.tools)))
    if answer is not None and to.answer_forms and taken:
        settings = with_answer(to, settings, answer)
    else:
        left = configuration.settings
    effort, rest = effort_taken(source, left)
    words = target.abilities.efforts if target is not None and to.effort_form else ()
    if not words or effort not in EFFORTS:
        return settings, left, []
    near = min(words, key=lambda each: abs(EFFORTS.index(each) - EFFORTS.index(effort)))
    losses = [] if near == effort else [Loss("setting", f"effort {effort} of {source.name} sent as {near}")]
    return with_effort(to, settings, near), rest, losses
