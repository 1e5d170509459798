"""What a user decides about size: how much of a window requests may fill, and what gives way first.

Both are plain values that go on record with the configuration; `turnlog.view.compaction.decide` carries them out.
"""

from __future__ import annotations

import difflib
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import InputError

_UNKNOWN_TRIGGER = 100_000
"""Tokens at which to act for a model whose window is a guess."""


class Marks(Struct, frozen=True):
    """A budget in tokens for one request: it never exceeds `limit`; above `trigger` something is done, down
    to `goal`."""

    limit: int
    trigger: int
    goal: int


class Budget(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """How much of a model's input window requests may fill.

    `max_tokens` is the limit of a request, all of it included; 0, or more than the window of a known model, takes it
    from that: what is left after `safety` (a share of the window), `answer` (tokens kept for the answer) and `system`
    (tokens kept for system text and tools, if they take less).

    `trigger` says when to act and `goal` how far to go then. A number up to 1 is a share: of the limit for
    `trigger`, and for `goal` of what the trigger leaves beside the parts that can never go. A
    greater number is tokens.
    """

    max_tokens: int = 0
    system: int = 2_000
    answer: int = 4_000
    safety: float = 0.10
    trigger: float = 1.0
    goal: float = 0.5

    def marks(self, window: int, fixed: int, floor: int, *, scale: float = 1.0, known: bool = True) -> Marks:
        """The budget in a counter's tokens.

        `window` is the model's input limit, `fixed` what system text and tools take, `floor` what cannot
        be left out, `scale` how many tokens may be billed for one that is counted; `known` says whether
        the window is that of a known model.
        """
        limit = self.max_tokens
        if not limit or (known and limit > window):
            limit = int(window * (1 - self.safety)) - self.answer - max(0, self.system - fixed)
        limit = max(0, int(limit / scale))
        trigger = int(self.trigger * limit if self.trigger <= 1 else self.trigger / scale)
        if not known and not self.max_tokens:
            trigger = min(trigger, int(_UNKNOWN_TRIGGER / scale))
        trigger = min(trigger, limit)
        room = max(0, trigger - floor)
        goal = floor + int(room * self.goal) if self.goal <= 1 else int(self.goal / scale)
        return Marks(limit, trigger, min(goal, trigger))


class Strategy(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """What gives way when a request would outgrow its budget.

    `steps` are tried in order until the view is down to the goal. Whatever they are, the oldest messages
    leave as a last resort before a request is refused.

    - `protect`: share of the limit in newest messages that `mask` and `priority` leave alone.
    - `head`, `summary`, `tail`: shares of what a summarising view may hold beside system text: the beginning of the
      conversation that stays as it is, the summary, and the newest messages. Without `tail` these get what the
      goal leaves.
    - `summary_tokens`: a summary has no more tokens than that, however large its share is (0: no such limit).
    - `keep_turns`: so many newest turns stay verbatim when older ones are summarised.
    - `recent`: share of the conversation, newest first, that stays verbatim when the rest is summarised.
    - `keep_results`: calls and their results stay when what is around them is summarised. Should they no longer fit
      beside half of the summary and some room, the oldest are told in it, and the decision says so; `keep_turns` gives
      way next.
    - `user_tokens`: so many tokens of the newest user messages stay when all else is summarised.
    - `grades`: sizes in tokens: under the first nothing is done, up to the second the middle is
      summarised, above it everything but the last three to five exchanges.
    - `heading`: what a summary begins with.
    - `cap`: share of what a view may hold beside system text that one tool output may take until `cap` cuts it.
    - `max_history_images`, `max_history_turns`: plain caps, kept whatever the size (None: no cap).
    - `horizon`: within so many requests a decision that nobody is forced to has to save, in the prompt cache's
      prices, more than it costs; else it waits.
    - `cache_marks`: prompt-cache marks are placed in requests to providers that want them, if a conversation has none.
    - `trigger`, `goal`: take the place of the budget's.
    """

    name: str = ""
    steps: tuple[str, ...] = ()
    protect: float = 0.25
    head: float = 0.0
    summary: float = 0.25
    summary_tokens: int = 0
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
    trigger: float | None = None
    goal: float | None = None

    def applied_to(self, budget: Budget) -> Budget:
        """The budget with this strategy's own trigger and goal."""
        own = {"trigger": self.trigger, "goal": self.goal}
        return msgspec.structs.replace(budget, **{key: value for key, value in own.items() if value is not None})


_STEPS = ("mask", "images", "cap", "priority", "summarise", "slide")

PRESETS: dict[str, Strategy] = {
    preset.name: preset
    for preset in (
        Strategy(
            "auto",
            ("images", "cap", "summarise", "mask"),
            head=0.1,
            summary=0.45,
            summary_tokens=20_000,
            tail=0.1,
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
            "spec", ("summarise",), keep_turns=5, keep_results=True, goal=0.7, heading="Previous conversation summary:"
        ),
        Strategy("graded", ("summarise",), grades=(5_000, 15_000), trigger=5_000),
    )
}
"""Strategies by name. `codex` and `gemini-cli` do as these programs do, `spec` and `graded` as their users'
descriptions of such systems say."""


def read_strategy(value: Strategy | str) -> Strategy:
    """A strategy, given as itself or by the name of a preset. Raises InputError, which names the field."""
    if isinstance(value, str) and value in PRESETS:
        return PRESETS[value]
    if not isinstance(value, Strategy):
        near = difflib.get_close_matches(str(value), PRESETS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PRESETS)}"
        raise InputError(f"no strategy {value!r}: {hint}")
    try:
        value = msgspec.convert(msgspec.structs.asdict(value), Strategy)  # nobody has looked at what it was made of
    except msgspec.ValidationError as error:
        raise InputError(f"strategy: {error}") from error
    for step in value.steps:
        if step not in _STEPS:
            raise InputError(f"strategy: no step {step!r}; there are {', '.join(_STEPS)}")
    for name in ("protect", "head", "summary", "tail", "recent", "cap"):
        if not 0 <= getattr(value, name) <= 1:
            raise InputError(f"strategy: {name} is a share from 0 to 1, not {getattr(value, name)}")
    for name, least in (
        ("max_history_turns", 1),
        ("horizon", 0),
        ("max_history_images", 0),
        ("keep_turns", 0),
        ("summary_tokens", 0),
        ("user_tokens", 0),
    ):
        found = getattr(value, name)
        if found is not None and found < least:
            raise InputError(f"strategy: {name} is at least {least}, not {found}")
    if len(value.grades) not in (0, 2) or [*value.grades] != sorted(value.grades):
        raise InputError(f"strategy: grades are two sizes in tokens, the smaller first, not {value.grades}")
    _check_marks("strategy", value)
    return value


def read_budget(value: Budget | int | dict[str, Any]) -> Budget:
    """A budget, given as itself, as the tokens of a whole request, or as a dict of its fields. Raises InputError,
    which names the field."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = Budget(max_tokens=value)
    if isinstance(value, Budget):
        value = msgspec.structs.asdict(value)  # nobody has looked at what it was made of
    if isinstance(value, dict):
        for key in value.keys() - set(Budget.__struct_fields__):
            near = difflib.get_close_matches(str(key), Budget.__struct_fields__, 1)
            raise InputError(
                f"budget: no field {key!r}; {f'did you mean {near[0]!r}?' if near else 'see turnlog.Budget'}"
            )
        try:
            value = msgspec.convert(value, Budget)
        except msgspec.ValidationError as error:
            raise InputError(f"budget: {error}") from error
    if not isinstance(value, Budget):
        raise InputError(f"a budget is a Budget, a number of tokens or a dict of its fields, not {value!r}")
    for name in ("max_tokens", "system", "answer"):
        if getattr(value, name) < 0:
            raise InputError(f"budget: {name} is a number of tokens, not {getattr(value, name)}")
    if not 0 <= value.safety < 1:
        raise InputError(f"budget: safety is a share of the window from 0 to 1, not {value.safety}")
    _check_marks("budget", value)
    return value


def _check_marks(what: str, value: Budget | Strategy) -> None:
    for name in ("trigger", "goal"):
        found = getattr(value, name)
        if found is not None and not (0 < found <= 1 or (found > 0 and float(found).is_integer())):
            raise InputError(f"{what}: {name} is a share (up to 1) or a whole number of tokens, not {found}")


class Terms(Struct, frozen=True):
    """What is decided by, where that is not what the configuration says."""

    budget: Budget
    strategy: Strategy
