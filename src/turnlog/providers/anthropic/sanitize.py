"""What the Messages API would refuse outside the conversation's order, taken out of a request.

Every function takes a request and returns one; nothing is changed in place. Each change is an
`Edit` that quotes what the API would have answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import unchanged
from ...models.target import Target
from ...view.types import Edit
from ..protocol import Rendered
from ..values import misfit, prune
from .cache_marks import sanitize_marks
from .rules import NO_SAMPLING, ONE_SAMPLING, thinking_type
from .sanitize_messages import sanitize_blocks
from .sanitize_tools import sanitize_tools
from .shapes import BODY, NOT_NULL
from .values import SETTINGS

_DEFAULT_MAX_TOKENS = 8192
"""Answer length where nobody asked for one, in tokens; less if the model's limit is lower."""
_MIN_BUDGET = 1024
"""Smallest thinking budget, in tokens ("Input should be greater than or equal to 1024")."""

_Request = dict[str, Any]
_Edits = list[Edit]


def sanitize(request: _Request, target: Target) -> Rendered:
    """The request as the API takes it, and what had to change. The given request stays as it is.
    Raises FormatError for one that is nested too deeply to be looked at."""
    edits: _Edits = []
    try:
        return Rendered(body=_sanitized(request, target, edits), edits=tuple(edits))
    except RecursionError:
        raise FormatError("nested too deeply", path="body") from None


def _sanitized(request: _Request, target: Target, edits: _Edits) -> _Request:
    sanitized: _Request = prune(request, BODY, "", edits)
    steps: tuple[Callable[[_Request, Target, _Edits], _Request], ...] = (
        _nulls,
        _settings,
        _system,
        _messages,
        _model,
        _thinking_budget,
        _max_tokens,
        _thinking_excludes,
        _sampling,
        _stop_sequences,
        sanitize_tools,
        _tool_choice,
    )
    for step in steps:
        sanitized = step(sanitized, target, edits)
    return sanitize_marks(sanitized, edits)


def without_thinking(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with thinking switched off, and without what the API takes only with it."""
    changed: dict[str, Any] = {**settings, "thinking": {"type": "disabled"}}
    management = changed.get("context_management")
    if isinstance(management, Mapping) and isinstance(management.get("edits"), list):
        # "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive" (known
        # from use, not among the recorded refusals).
        kept = [edit for edit in management["edits"] if not _clears_thinking(edit)]
        if len(kept) != len(management["edits"]):
            changed["context_management"] = {**management, "edits": kept}
            if not kept:
                del changed["context_management"]
    return changed


def _clears_thinking(edit: Any) -> bool:
    return isinstance(edit, Mapping) and str(edit.get("type", "")).startswith("clear_thinking")


def _setting(edits: _Edits, path: str, detail: str, rule: str) -> None:
    edits.append(Edit("setting", detail, rule=rule, path=path))


def _dropped(request: _Request, key: str, edits: _Edits, detail: str, rule: str) -> _Request:
    _setting(edits, key, detail, rule)
    return {name: value for name, value in request.items() if name != key}


def _nulls(request: _Request, target: Target, edits: _Edits) -> _Request:
    for key in [key for key, value in request.items() if value is None and key in NOT_NULL]:
        request = _dropped(request, key, edits, "dropped: it was null", "Input should be valid")
    return request


def _settings(request: _Request, target: Target, edits: _Edits) -> _Request:
    """Settings whose values are none of theirs go; what a request needs is filled in later."""
    for key in SETTINGS:
        why = misfit(request[key], SETTINGS[key]) if key in request else ""
        if why:
            request = _dropped(request, key, edits, f"dropped: {why}", "Input should be valid")
    return request


def _messages(request: _Request, target: Target, edits: _Edits) -> _Request:
    """Every block of the system text and of the messages as such."""
    request = sanitize_blocks(request, "system", "system", edits)
    given = request.get("messages")
    if not isinstance(given, list):
        return request
    mended = [
        sanitize_blocks(message, "content", f"messages[{i}].content", edits) if isinstance(message, dict) else message
        for i, message in enumerate(given)
    ]
    same = unchanged(mended, given)
    return request if same else {**request, "messages": mended}


def _model(request: _Request, target: Target, edits: _Edits) -> _Request:
    if request.get("model"):
        return request
    _setting(edits, "model", f"set to {target.model}", "Field required")
    return {**request, "model": target.model}


def _budget(request: Mapping[str, Any]) -> int | None:
    """The thinking budget in tokens, None if thinking is not enabled by budget."""
    budget = request["thinking"].get("budget_tokens") if thinking_type(request) == "enabled" else None
    return budget if isinstance(budget, int) else None


def _thinking_budget(request: _Request, target: Target, edits: _Edits) -> _Request:
    budget = _budget(request)
    if budget is None or budget >= _MIN_BUDGET:
        return request
    _setting(
        edits,
        "thinking.budget_tokens",
        f"raised from {budget} to {_MIN_BUDGET}",
        "Input should be greater than or equal to 1024",
    )
    return {**request, "thinking": {**request["thinking"], "budget_tokens": _MIN_BUDGET}}


def required_settings(target: Target) -> dict[str, Any]:
    """The limit on the answer, which no request may be without."""
    return {"max_tokens": min(target.output_limit, _DEFAULT_MAX_TOKENS)}


def _max_tokens(request: _Request, target: Target, edits: _Edits) -> _Request:
    """A limit, above the thinking budget; a budget above the model's limit comes down below it."""
    given = request.get("max_tokens")
    budget = _budget(request)
    limit = given if given is not None else required_settings(target)["max_tokens"]
    rule = "Field required"
    if budget is not None and isinstance(limit, int) and limit <= budget:
        limit = min(budget + max(limit, _MIN_BUDGET), max(target.output_limit, _MIN_BUDGET + 1))
        rule = "`max_tokens` must be greater than `thinking.budget_tokens`."
        if limit <= budget:
            lowered = max(_MIN_BUDGET, limit // 2)
            _setting(edits, "thinking.budget_tokens", f"lowered from {budget} to {lowered}", rule)
            request = {**request, "thinking": {**request["thinking"], "budget_tokens": lowered}}
    if limit == given:
        return request
    _setting(edits, "max_tokens", f"set to {limit}", rule)
    return {**request, "max_tokens": limit}


def _thinking_excludes(request: _Request, target: Target, edits: _Edits) -> _Request:
    """Thinking by budget allows no other temperature than 1, no top_k and no forced tool choice."""
    if thinking_type(request) != "enabled":
        return request
    if request.get("temperature") not in (None, 1):
        rule = "`temperature` may only be set to 1 when thinking is enabled."
        request = _dropped(request, "temperature", edits, "dropped: thinking is on", rule)
    if request.get("top_k") is not None:
        rule = "`top_k` must be unset when thinking is enabled."
        request = _dropped(request, "top_k", edits, "dropped: thinking is on", rule)
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        _setting(
            edits,
            "tool_choice",
            f"{choice['type']!r} became 'auto': thinking is on",
            "Thinking may not be enabled when tool_choice forces tool use.",
        )
        kept = {key: value for key, value in choice.items() if key != "name"}
        request = {**request, "tool_choice": {**kept, "type": "auto"}}
    return request


def _sampling(request: _Request, target: Target, edits: _Edits) -> _Request:
    model = str(request.get("model", ""))
    for key in ("temperature", "top_p", "top_k"):
        if key in request and NO_SAMPLING.search(model):
            rule = "sampling parameters are refused by the newest models"
            request = _dropped(request, key, edits, f"dropped: {model} takes none", rule)
    both = request.get("temperature") is not None and request.get("top_p") is not None
    if both and ONE_SAMPLING.search(model):
        rule = "`temperature` and `top_p` cannot both be specified for this model."
        request = _dropped(request, "top_p", edits, "dropped: temperature is set", rule)
    for key in ("temperature", "top_p"):
        value = request.get(key)
        if value != value:  # NaN, which is no JSON
            request = _dropped(request, key, edits, f"dropped: {value} is no number", "range: 0..1")
        elif isinstance(value, (int, float)) and not 0 <= value <= 1:
            clamped = min(max(value, 0), 1)
            _setting(edits, key, f"{value} became {clamped}", "range: 0..1")
            request = {**request, key: clamped}
    return request


def _stop_sequences(request: _Request, target: Target, edits: _Edits) -> _Request:
    given = request.get("stop_sequences")
    if not isinstance(given, list):
        return request
    kept = [item for item in given if not isinstance(item, str) or item.strip()]
    if len(kept) == len(given):
        return request
    _setting(edits, "stop_sequences", "blank ones dropped", "each stop sequence must contain non-whitespace")
    return {**request, "stop_sequences": kept}


def _system(request: _Request, target: Target, edits: _Edits) -> _Request:
    """System text is text, without blank blocks, which the API refuses even beside others."""
    given = request.get("system")
    if given is None or isinstance(given, str):
        return request
    blocks = given if isinstance(given, list) else []
    kept = [block for block in blocks if _says_something(block)]
    if kept == given:
        return request
    rule = "text content blocks must contain non-whitespace text"
    if not kept:
        return _dropped(request, "system", edits, "dropped: it has no text", rule)
    _setting(edits, "system", f"{len(blocks) - len(kept)} blocks without text dropped", rule)
    return {**request, "system": kept}


def _says_something(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return isinstance(text, str) and bool(text.strip())


def _tool_choice(request: _Request, target: Target, edits: _Edits) -> _Request:
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") == "none":
        return request
    tools = request.get("tools")
    if not tools or not isinstance(tools, list):
        rule = "tool_choice may only be specified while providing tools."
        return _dropped(request, "tool_choice", edits, "dropped: there are no tools", rule)
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
    if choice.get("type") == "tool" and choice.get("name") not in names:
        rule = f"Tool '{choice.get('name')}' not found in provided tools"
        return _dropped(request, "tool_choice", edits, f"dropped: no tool {choice.get('name')!r}", rule)
    return request
