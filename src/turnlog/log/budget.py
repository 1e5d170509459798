"""The user's choices about size: how much of a window requests may fill, and what is left out first.

Both are plain values and are recorded with the configuration; `turnlog.view.compaction.decide` applies them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from .._platform.stdlib import difflib
from ..errors import InputError

_UNKNOWN_TRIGGER = 100_000
"""The highest trigger, in tokens, for a model whose window is not known."""

_NO_LIMIT = 2**53
"""More tokens than any request has, and exact in the JSON of every language."""


class Thresholds(Struct, frozen=True):
    """A budget in tokens for one request. A request never exceeds `limit`; one above `trigger` is made smaller, down to
    `goal`."""

    limit: int
    trigger: int
    goal: int

    def with_room(self, tokens: int) -> Thresholds:
        """The same for requests of which so many tokens do not count."""
        return Thresholds(self.limit + tokens, self.trigger + tokens, self.goal + tokens) if tokens else self


class Budget(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """How much of a model's input window requests may fill.

    `max_tokens` is the most tokens of a whole request. If it is 0, or more than the window of a known model, the limit
    is the window minus `safety` (a share of it), minus `answer` (tokens for the answer), minus the part of `system`
    (tokens reserved for system text and tools) that the present system text and tools do not take.

    A request that would have more tokens than `trigger` is made smaller, down to `goal`. A number greater than 1 is a
    number of tokens, a smaller one a share: for `trigger` a share of the limit; for `goal`, the parts that cannot be
    left out plus this share of the rest up to the trigger. None: that of the strategy, or else 1.0 and 0.5.

    With `unlimited`, no request is made smaller, however small the model's window is.
    """

    max_tokens: int = 0
    system: int = 2_000
    answer: int = 4_000
    safety: float = 0.10
    trigger: float | None = None
    goal: float | None = None
    unlimited: bool = False

    def marks(
        self, window: int, fixed: int, floor: int, *, scale: float = 1.0, known: bool = True, whole: bool = False
    ) -> Thresholds:
        """The limit, trigger and goal in a counter's tokens.

        `window` is the model's input limit, `fixed` the tokens of system text and tools, `floor` the tokens that
        cannot be left out, `scale` the tokens that may be billed for each counted one. `known`: the window is that of
        a known model. `whole`: a share as goal is one of the trigger, as far as this leaves half of what can be left
        out.
        """
        if self.unlimited:
            return Thresholds(_NO_LIMIT, _NO_LIMIT, _NO_LIMIT)
        limit = self.max_tokens
        if not limit or (known and limit > window):
            limit = int(window * (1 - self.safety)) - self.answer - max(0, self.system - fixed)
        limit = max(0, int(limit / scale))
        share = 1.0 if self.trigger is None else self.trigger
        trigger = int(share * limit if share <= 1 else share / scale)
        if not known and not self.max_tokens:
            trigger = min(trigger, int(_UNKNOWN_TRIGGER / scale))
        trigger = min(trigger, limit)
        room = max(0, trigger - floor)
        share = 0.5 if self.goal is None else self.goal
        goal = floor + int(room * share) if share <= 1 else int(share / scale)
        if whole and share <= 1:
            goal = max(int(trigger * share), floor + room // 2)
        return Thresholds(limit, trigger, min(goal, trigger))


class Strategy(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """What is left out or shortened, and in which order, when a request would exceed its budget.

    `steps` are applied in order until requests are down to the goal. With every strategy, the oldest messages are left
    out as a last resort before a request is refused.

    The step `curate` shortens all older tool outputs by what the tool is (see `turnlog.curate`). With it, an output
    that takes over a tenth of the budget is shortened as soon as it is recorded, and what says nothing leaves every
    output.

    - `protect`: `mask` and `priority` do not touch the newest messages, up to this share of the limit.
    - `head`, `summary`, `tail`: when messages are summarised, shares of the room beside system text: for the beginning
      of the conversation that stays as it is, for the summary, and for the newest messages. If `tail` is 0, the newest
      messages get whatever room the goal leaves.
    - `summary_tokens`: the most tokens of a summary, however large its share is (0: no such limit).
    - `summary_large`: share of the room that a summary may take where that is more than `summary_tokens`; at most twice
      these.
    - `keep_turns`: this many newest turns stay verbatim when older ones are summarised.
    - `recent`: share of the conversation, newest first, that stays verbatim when the rest is summarised.
    - `keep_results`: calls and their results stay when the messages around them are summarised. If they no longer fit
      next to a summary of half size, the oldest results are summarised too, and the decision records this. If that is
      not enough, fewer than `keep_turns` turns stay.
    - `user_tokens`: this many tokens of the newest user messages stay when everything else is summarised.
    - `grades`: two sizes in tokens: below the first nothing is done; up to the second the middle is summarised; above
      it everything but the last three to five exchanges.
    - `heading`: the text that a summary begins with.
    - `cap`: the step `cap` cuts a tool output that is larger than this share of the room beside system text.
    - `max_history_images`, `max_history_turns`: the most images and turns that requests show, however small the
      conversation is (None: no limit).
    - `horizon`: the number of coming requests over which a decision must save more (at prompt-cache prices) than it
      costs; otherwise it is put off until the limit forces it.
    - `cache_marks`: requests get prompt-cache marks if the provider uses them and the conversation has none.
    - `cache_ttl`: how long the provider keeps what it caches, if it offers a choice: `5m`, `1h`, or `auto`, which
      chooses by the pauses between the session's requests.
    - `trigger`, `goal`: used where the budget does not say.
    - `whole_goal`: the strategy's `goal`, if it is a share, is one of the whole trigger, not of what can be left out.
    """

    name: str = ""
    steps: tuple[str, ...] = ()
    protect: float = 0.25
    head: float = 0.0
    summary: float = 0.25
    summary_tokens: int = 0
    summary_large: float = 0.0
    tail: float = 0.0
    keep_turns: int = 0
    recent: float = 0.0
    keep_results: bool = False
    user_tokens: int = 0
    grades: tuple[int, ...] = ()
    heading: str = ""
    cap: float = 0.1
    max_history_images: int | None = None
    max_history_turns: int | None = 1_000
    horizon: int = 20
    cache_marks: bool = True
    cache_ttl: Literal["auto", "5m", "1h"] = "auto"
    trigger: float | None = None
    goal: float | None = None
    whole_goal: bool = False

    def applied_to(self, budget: Budget) -> Budget:
        """The budget with this strategy's trigger and goal where it has none itself."""
        trigger = self.trigger if budget.trigger is None else budget.trigger
        goal = self.goal if budget.goal is None else budget.goal
        return msgspec.structs.replace(budget, trigger=trigger, goal=goal)


_STEPS = ("curate", "mask", "images", "cap", "priority", "summarise", "slide")

PRESETS: dict[str, Strategy] = {
    preset.name: preset
    for preset in (
        Strategy(
            "auto",
            ("curate", "images", "cap", "summarise", "mask"),
            head=0.04,
            summary=0.6,
            summary_tokens=15_000,
            summary_large=0.3,
            tail=0.05,
            cap=0.25,
            goal=0.65,
        ),
        Strategy("sliding", ("slide",), goal=0.3),
        Strategy("priority", ("priority",)),
        Strategy("mask", ("mask",), goal=0.4),
        Strategy("images", ("images",)),
        Strategy("cap", ("cap",)),
        Strategy("summarise", ("summarise",)),
        Strategy("codex", ("summarise",), user_tokens=20_000),
        Strategy("gemini-cli", ("summarise",), recent=0.3, trigger=0.5),
        Strategy(
            "spec",
            ("summarise",),
            keep_turns=5,
            keep_results=True,
            goal=0.7,
            whole_goal=True,
            heading="Previous conversation summary:",
        ),
        Strategy("graded", ("summarise",), grades=(5_000, 15_000), trigger=5_000),
    )
}
"""Strategies by name. `codex` and `gemini-cli` do what these programs do; `spec` and `graded` follow descriptions of
such systems by their users."""

USUAL_STRATEGY = PRESETS["auto"]
"""The strategy of a session that has none on record."""


def read_strategy(value: Strategy | str) -> Strategy:
    """A strategy, given as a `Strategy` or as the name of a preset. Raises InputError, which names the field."""
    if isinstance(value, str) and value in PRESETS:
        return PRESETS[value]
    if not isinstance(value, Strategy):
        near = difflib.get_close_matches(str(value), PRESETS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PRESETS)}"
        raise InputError(f"no strategy {value!r}: {hint}")
    try:
        value = msgspec.convert(msgspec.structs.asdict(value), Strategy)  # its constructor checks no types
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise InputError(f"strategy: {error}") from error
    for step in value.steps:
        if step not in _STEPS:
            raise InputError(f"strategy: no step {step!r}; there are {', '.join(_STEPS)}")
    for name in ("protect", "head", "summary", "summary_large", "tail", "recent", "cap"):
        if not 0 <= getattr(value, name) <= 1:
            raise InputError(f"strategy: {name} must be a share from 0 to 1, not {getattr(value, name)}")
    for name, least in (
        ("max_history_turns", 1),
        ("horizon", 0),
        ("max_history_images", 0),
        ("keep_turns", 0),
        ("summary_tokens", 0),
        ("user_tokens", 0),
    ):
        number = getattr(value, name)
        if number is not None and number < least:
            raise InputError(f"strategy: {name} must be at least {least}, not {number}")
    if len(value.grades) not in (0, 2) or [*value.grades] != sorted(value.grades):
        raise InputError(f"strategy: grades must be two sizes in tokens, the smaller first, not {value.grades}")
    _check_marks("strategy", value)
    return value


def read_budget(value: Budget | int | dict[str, Any]) -> Budget:
    """A budget, given as a `Budget`, as the tokens of a whole request, or as a dict of its fields. Raises InputError,
    which names the field."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = Budget(max_tokens=value)
    if isinstance(value, Budget):
        value = msgspec.structs.asdict(value)  # its constructor checks no types
    if isinstance(value, dict):
        for key in value.keys() - set(Budget.__struct_fields__):
            near = difflib.get_close_matches(str(key), Budget.__struct_fields__, 1)
            raise InputError(
                f"budget: no field {key!r}; {f'did you mean {near[0]!r}?' if near else 'see turnlog.Budget'}"
            )
        try:
            value = msgspec.convert(value, Budget)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise InputError(f"budget: {error}") from error
    if not isinstance(value, Budget):
        raise InputError(f"budget: must be a Budget, a number of tokens or a dict of its fields, not {value!r}")
    for name in ("max_tokens", "system", "answer"):
        if getattr(value, name) < 0:
            raise InputError(f"budget: {name} must be 0 or more tokens, not {getattr(value, name)}")
    if not 0 <= value.safety < 1:
        raise InputError(f"budget: safety must be a share of the window from 0 to below 1, not {value.safety}")
    _check_marks("budget", value)
    return value


def _check_marks(what: str, value: Budget | Strategy) -> None:
    for name in ("trigger", "goal"):
        mark = getattr(value, name)
        if mark is not None and not (0 < mark <= 1 or (mark > 0 and float(mark).is_integer())):
            raise InputError(
                f"{what}: {name} must be a share above 0 and up to 1, or a whole number of tokens, not {mark}"
            )


class Terms(Struct, frozen=True):
    """A budget and strategy to use instead of those in the configuration."""

    budget: Budget
    strategy: Strategy

    def changed(self, budget: Budget | int | None, strategy: Strategy | str | None) -> Terms | None:
        """These terms with another budget or strategy; None if neither is given. Raises InputError."""
        if budget is None and strategy is None:
            return None
        new_budget = self.budget if budget is None else read_budget(budget)
        return Terms(new_budget, self.strategy if strategy is None else read_strategy(strategy))
