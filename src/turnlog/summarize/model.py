"""Summaries by a model, through any function that takes a prompt and returns a text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import CellType
from typing import Any

from msgspec.structs import replace

from .._platform.given import flag_given
from .._platform.stdlib import inspect
from ..errors import InputError
from ..log.messages import sha256_hex
from .digest import Digest
from .prompt import PROMPT_VERSION, REFLECTIVE_VERSION, SummaryPrompt, prompt_for
from .protocol import Material, Summarizer

_PLAIN = (str, bytes, int, float, bool, type(None))

Complete = Callable[[str], str | Awaitable[str]]
"""A function that calls a model: takes a prompt and returns the text of the answer. May be asynchronous."""


class ModelSummarizer:
    """Asks a model through `call`, a function that takes a prompt and returns the text of the answer.

        client = anthropic.Anthropic()

        def ask(prompt):
            message = {"role": "user", "content": prompt}
            return client.messages.create(model=MODEL, max_tokens=4096, messages=[message]).content[0].text

        summarizer = ModelSummarizer(ask, name=MODEL)

    Stored summaries are found again by `name`: use another name for another model. `input_limit` is the most tokens of
    a prompt, counted as the session counts; leave some room if the model counts differently. With `reflective` the
    summary lists only the user's previous requests, for models that reason by themselves. None: for o1, o3 and o4, if
    it is one of them that goes on from the summary.

    The model is asked to think in a draft first, of at most 400 tokens, which is cut off the answer.

    `call` runs in a thread of its own and may raise any exception. Set a time limit on its client too: turnlog stops
    waiting for a slow call, but cannot end it. An asynchronous `call` is awaited in the loop that awaits
    `Session.arequest` or `acompact`, so that its client works, and cancelled when time is up; for any other request, in
    a loop of its own.
    """

    def __init__(
        self, call: Complete, *, name: str, input_limit: int = 100_000, reflective: bool | None = None
    ) -> None:
        """Raises InputError if `call` is not a function, or if `name` or `input_limit` is not valid."""
        if not callable(call):
            raise InputError(f"call must be a function that takes a prompt and returns a text, not {call!r}")
        if not isinstance(name, str) or not name:
            raise InputError("name: give the model's name; stored summaries are found again by it")
        if not isinstance(input_limit, int) or input_limit <= 0:
            raise InputError(f"input_limit must be a whole number of tokens, at least 1, not {input_limit!r}")
        self._call = call
        self._input_limit = input_limit
        self._reflective = None if reflective is None else flag_given("reflective", reflective)
        form = f"requests-{REFLECTIVE_VERSION}" if reflective else f"prompt-{PROMPT_VERSION}"
        self._id = f"{name}/{form}/{input_limit}"

    @property
    def id(self) -> str:
        """The model, the prompt's version and the input limit."""
        return self._id

    def summarize(self, material: Material, /) -> str | Awaitable[str]:
        """The notes in the model's answer. Raises any exception of `call`, InputError if `input_limit` is too small,
        and RunnerFailed if the answer is a draft without notes."""
        if self._reflective is not None:
            material = replace(material, reflective=self._reflective)
        prompt = prompt_for(material, limit=self._input_limit)
        answer = self._call(prompt.text)
        return _awaited_notes(prompt, answer) if inspect.isawaitable(answer) else _notes(prompt, answer)


def _notes(prompt: SummaryPrompt, answer: Any) -> Any:
    """The notes in an answer; anything else than a text as it is, which is not accepted later."""
    return prompt.notes(answer) if isinstance(answer, str) else answer


async def _awaited_notes(prompt: SummaryPrompt, answer: Awaitable[Any]) -> Any:
    return _notes(prompt, await answer)


def as_ladder(given: Summarizer | Complete | None) -> tuple[Summarizer, ...]:
    """The summarizers to try before the offline digest, which always comes last: one or none. A plain function that
    asks a model becomes a ModelSummarizer with the function's name. Raises InputError at once for an object that cannot
    summarise."""
    if given is None or type(given) is Digest:
        return ()
    if isinstance(given, type):
        raise InputError(f"summarizer: give an instance, {given.__name__}(...), not the class")
    summarizer: Any = given
    if not hasattr(summarizer, "summarize"):
        if callable(given):
            return (ModelSummarizer(given, name=_name_of(given)),)
        raise InputError(
            f"summarizer: give an object with a method `summarize`, or a function that takes a prompt, not {given!r}"
        )
    name = type(given).__name__
    if not callable(summarizer.summarize):
        raise InputError(f"{name}.summarize must be a method that takes a Material and returns a text")
    made_by = getattr(summarizer, "id", None)
    if not isinstance(made_by, str) or not made_by.strip():
        raise InputError(
            f"{name}.id must be a non-empty string (name and version), not {made_by!r}; stored summaries are found "
            "again by it"
        )
    return (summarizer,)


def _name_of(call: Any) -> str:
    """The name under which summaries of a function are stored: its own name, with a digest of its contents if other
    functions may have the same name."""
    if isinstance(call, partial):
        given = [*call.args, *(value for pair in sorted(call.keywords.items()) for value in pair)]
        return f"{_name_of(call.func)}:{_digest(given)}"
    name: str = getattr(call, "__qualname__", type(call).__qualname__)
    code = getattr(call, "__code__", None)
    if code is None or "<" not in name:  # only names such as `<lambda>` and `outer.<locals>.inner` are shared
        return name
    closure = getattr(call, "__closure__", None) or ()
    cells = [cell.cell_contents for cell in closure if cell != CellType()]  # the others are still empty
    return f"{name}:{_digest([code.co_code, *code.co_names, *code.co_consts, *(call.__defaults__ or ()), *cells])}"


def _digest(values: Iterable[Any]) -> str:
    """A few characters that differ if plain values differ; of other values, only the type matters."""
    texts = (repr(value) if isinstance(value, _PLAIN) else type(value).__qualname__ for value in values)
    return sha256_hex("\0".join(texts).encode("utf-8", "surrogatepass"))[:8]
