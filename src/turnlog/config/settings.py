"""Every setting: its key, the values it takes, and what it is for.

`session/settings.py` loads settings from files and the environment. A new key is one field of `Settings` with its
`Key`; docs/configuration.md has a row for each (a test compares them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_type_hints

import msgspec
from msgspec import Struct

from .._platform.units import AGES, SIZES, age_text, exact_size, old_max_size, read_age, read_size
from ..errors import InputError
from ..log.budget import USUAL_STRATEGY, Budget, Strategy, read_budget, read_strategy
from ..models.target import Target, target
from ..providers import PROVIDERS
from ..redaction import Redactor
from ..stores import Passphrase
from ..stores.encrypted.keys import KEY_PLACES, KeySource, is_key_place
from ..summarize.protocol import TIMEOUT

if TYPE_CHECKING:
    from ..summarize.provider import Summarizing
else:
    Summarizing = Any  # a command that only reads has no need of what writes summaries

REDACT_ALL = "all"
"""The value of `redact` with which marks replace secrets in requests, too."""

SOURCES = ("interactive", "non-interactive", "embedded-server", "mcp")
"""The values of `source`, which says from where a session is opened: see `SessionOpened`."""


class Kind(NamedTuple):
    """The values that a key takes: `allowed` describes them, and `read` turns a given value into the setting or raises
    ValueError or InputError.

    `of_text` turns the text of an environment variable into a value for `read`, `written` turns the setting into what a
    configuration file has. If `hidden`, errors do not show the value: it may be a secret that was given instead of its
    place. A number `with_unit` is a text outside of programs.
    """

    allowed: str
    read: Callable[[Any], Any]
    of_text: Callable[[str], Any] = str
    written: Callable[[Any], Any] = msgspec.to_builtins
    hidden: bool = False
    with_unit: bool = False


class Key(NamedTuple):
    """A key: the values it takes and what it is for. A key that is `of_store` decides what is stored of sessions, and
    for how long; a project's file may set it for its own store only. A key that is not `in_files` can be set only in a
    program."""

    kind: Kind
    meaning: str
    of_store: bool = False
    in_files: bool = True


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _key_place(value: Any) -> str:
    if not is_key_place(_text(value)):
        raise ValueError
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _flag_of(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    flag = words.get(text.strip().lower())
    if flag is None:
        raise ValueError
    return flag


def _number_of(text: str) -> int | str:
    return int(text) if text.strip().isdecimal() else text


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        value = read_age(value).total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError
    return float(value)


def _seconds_of(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return read


def _strategy(value: Any) -> str:
    return _given(_text(value), read_strategy) if value else _text(value)


def _given(value: Any, check: Callable[[Any], object]) -> Any:
    """`value` itself, if `check` accepts it."""
    check(value)
    return value


def _patterns(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for pair in value.items() for item in pair):
        raise ValueError
    Redactor(value)
    return dict(value)


def _sensitive(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ValueError
    Redactor(sensitive=value)
    return tuple(dict.fromkeys(value))


def _table_of(text: str) -> Any:
    """A value in the syntax of TOML, for values that are not a single word."""
    import tomllib  # takes 5 ms, and only few variables need it

    return tomllib.loads(f"value = {text}")["value"]


def _or_none(kind: Kind) -> Kind:
    def read(value: Any) -> Any:
        return None if value is None or value == "none" else kind.read(value)

    def of_text(text: str) -> Any:
        return "none" if text.strip() == "none" else kind.of_text(text)

    return kind._replace(allowed=f'{kind.allowed}; or "none"', read=read, of_text=of_text)


def _budget(value: Any) -> int | Budget:
    return read_budget(value) if isinstance(value, dict) else _given(value, read_budget)


def _budget_of(text: str) -> Any:
    return _table_of(text) if "{" in text else _number_of(text)


def _checkpoint(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError
    return float(value)


def _key_source(value: Any) -> KeySource:
    given: KeySource = value
    return given if isinstance(value, (bytes, Passphrase)) or callable(value) else _key_place(value)


def _redact(value: Any) -> bool | str | Redactor:
    return value if isinstance(value, Redactor) or value == REDACT_ALL else _flag(value)


def _redact_of(text: str) -> Any:
    return text if text == REDACT_ALL else _flag_of(text)


def _or_a_strategy(value: Any) -> str | Strategy:
    return value if isinstance(value, Strategy) else _strategy(value)


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _summarizer(value: Any) -> Any:
    if value is None:
        return None
    ladder_of = import_module(f"{__package__.rpartition('.')[0]}.summarize.provider").ladder_of
    return _given(value, ladder_of)


_PLACE = Kind(
    "a file, `files:FOLDER`, `postgresql://USER@HOST/DATABASE` or `:memory:`; empty for the store in your home folder",
    _text,
)
_FLAG = Kind("true or false", _flag, _flag_of)
_DURABILITY = Kind("`normal` or `full`", _one_of("normal", "full"))
_PROVIDER = Kind(f"{', '.join(f'`{name}`' for name in PROVIDERS)}; or empty", _one_of("", *PROVIDERS))
_LABEL = Kind("the name of a label; empty if all sessions belong together", _text)
_MODEL = Kind("a model's name, or empty", _text)
_STRATEGY = Kind("the name of a preset, or empty; in a program also a Strategy", _or_a_strategy)
_TIMEOUT = Kind("seconds, or a time such as 5s, more than 0", _seconds, _seconds_of)
_CHECKPOINT = Kind("seconds, at least 0; `inf` for no checkpoints", _checkpoint, _seconds_of)
_REDACT = Kind(f"true, false or `{REDACT_ALL}`; in a program also a Redactor", _redact, _redact_of)
_PATTERNS = Kind("a table of regular expressions by kind", _patterns, _table_of)
_SOURCE = Kind(f"{', '.join(f'`{name}`' for name in SOURCES)}; or empty", _one_of("", *SOURCES))
_CHECK = Kind("`warn`, `raise`; or empty", _one_of("", "warn", "raise"))
_AGE = _or_none(Kind(AGES, read_age, written=age_text))
_SIZE = _or_none(Kind(f"{SIZES}; in a program also bytes", read_size, written=exact_size, with_unit=True))
_KEY = _or_none(
    Kind(f"the place of a key: {KEY_PLACES}; in a program also bytes or a Passphrase", _key_source, hidden=True)
)
_COUNT = _or_none(Kind("a whole number, at least 1", _count, _number_of))
_TURNS = _or_none(Kind("a whole number of turns, at least 1", _count, _number_of))
_SENSITIVE = Kind("a list of words and regular expressions", _sensitive, _table_of)
_BUDGET = _or_none(Kind("the most tokens of a request, or a table of the fields of a Budget", _budget, _budget_of))
_TITLE = Kind("a text", _text)
_SYSTEM = Kind("a text, or None", _text_or_none)
_SUMMARIZER = Kind('a Summarizer, a function from a prompt to a summary, "provider", or None', _summarizer)


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be configured, with its defaults.

    Values may be given as in a file (`max_disk="500MB"`). A Settings object does not read configuration files or the
    environment; `turnlog.load_settings()` does. Raises InputError, which names the key, the value found and the values
    allowed.
    """

    store: Annotated[str, Key(_PLACE, "where sessions are kept")] = ""
    durability: Annotated[
        Literal["normal", "full"], Key(_DURABILITY, "what an append survives: a killed process, or a power cut too")
    ] = "normal"
    key: Annotated[
        KeySource | None, Key(_KEY, "opens an encrypted store; a new store becomes an encrypted one", of_store=True)
    ] = None
    save_history: Annotated[
        bool, Key(_FLAG, "whether sessions are stored; if not, they live in memory and nothing of them is on disk")
    ] = True
    owner: Annotated[
        str,
        Key(
            _LABEL,
            "the label that says whose a session is: a model recalls nothing of sessions with another value of it",
            of_store=True,
        ),
    ] = "user"
    provider: Annotated[str, Key(_PROVIDER, "with `model`, the target of new sessions")] = ""
    model: Annotated[str, Key(_MODEL, "with `provider`, the target of new sessions")] = ""
    budget: Annotated[int | Budget | None, Key(_BUDGET, "the budget of new sessions")] = None
    strategy: Annotated[
        str | Strategy, Key(_STRATEGY, "which messages leave first when a request would be too large, in new sessions")
    ] = ""
    summary_timeout: Annotated[float, Key(_TIMEOUT, "how long a model may take for a summary")] = TIMEOUT
    checkpoint: Annotated[float, Key(_CHECKPOINT, "shortest time between two checkpoints of a streamed answer")] = 1.0
    source: Annotated[str, Key(_SOURCE, "from where sessions are opened, which is put on record")] = ""
    check: Annotated[
        Literal["", "warn", "raise"],
        Key(_CHECK, "whether records that contradict each other are told, or raised, at the end of each turn"),
    ] = ""
    redact: Annotated[
        bool | str | Redactor,
        Key(
            _REDACT,
            "whether marks replace secrets before anything is stored; `all`: also in what models are sent",
            of_store=True,
        ),
    ] = True
    redact_patterns: Annotated[
        dict[str, str], Key(_PATTERNS, "more kinds of secrets; the tables of several places are put together")
    ] = {}
    sensitive_patterns: Annotated[
        tuple[str, ...],
        Key(_SENSITIVE, "marks replace values that stand near these; the lists of several places are put together"),
    ] = ()
    max_history_turns: Annotated[
        int | None,
        Key(_TURNS, "the most turns that requests of new sessions show; if not set, the strategy says it: 1,000"),
    ] = None
    max_age: Annotated[
        timedelta | None, Key(_AGE, "`gc` deletes sessions whose last record is older than that", of_store=True)
    ] = None
    max_disk: Annotated[
        int | None,
        Key(
            _SIZE, "`gc` deletes the oldest sessions until the store takes at most that much disk space", of_store=True
        ),
    ] = None
    max_sessions: Annotated[
        int | None, Key(_COUNT, "`gc` deletes the oldest sessions until at most that many are left", of_store=True)
    ] = None
    compress_after: Annotated[
        timedelta | None, Key(_AGE, "`gc` packs sessions whose last record is older than that", of_store=True)
    ] = None
    gc_on_open: Annotated[
        bool, Key(_FLAG, "whether `turnlog.open` does what `gc` does, when a limit is passed", of_store=True)
    ] = False
    title: Annotated[str, Key(_TITLE, "the title of a new session", in_files=False)] = ""
    system: Annotated[str | None, Key(_SYSTEM, "the system text that the conversation begins with", in_files=False)] = (
        None
    )
    summarizer: Annotated[
        Summarizing,
        Key(_SUMMARIZER, "writes summaries. Without one, or if it fails, the built-in digest is used", in_files=False),
    ] = None
    for_other_stores: Settings | None = None
    """The settings for any other store than the project's own: without the keys that a project file may set for its own
    store only. None if there are none."""
    max_size: str | None = None
    """`max_disk` as it was called until 0.2. It is always None afterwards."""

    def __post_init__(self) -> None:
        if self.max_size is not None:
            if self.max_disk is not None:
                raise InputError("max_size: this is what max_disk was called until 0.2; give one of them")
            msgspec.structs.force_setattr(self, "max_disk", old_max_size(self.max_size))
            msgspec.structs.force_setattr(self, "max_size", None)
        for name in keys():
            msgspec.structs.force_setattr(self, name, read_key(name, getattr(self, name)))
        if bool(self.provider) != bool(self.model):
            has, lacks = ("provider", "model") if self.provider else ("model", "provider")
            raise InputError(f"{has}: found {getattr(self, has)!r}, but no `{lacks}`; set both, or neither")

    def __repr__(self) -> str:
        usual = msgspec.structs.fields(Settings)
        given = [field.name for field in usual if field.name in keys() and getattr(self, field.name) != _default(field)]
        return f"Settings({', '.join(f'{name}={self._shown(name)}' for name in given)})"

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        return "..." if keys()[name].kind.hidden and not isinstance(value, str) else repr(value)

    @property
    def target(self) -> Target | None:
        """The target of new sessions, if one is set."""
        return target(self.provider, self.model) if self.provider else None

    @property
    def redactor(self) -> Redactor | None:
        """The redactor that replaces secrets by marks, None if `redact` is off."""
        if isinstance(self.redact, Redactor):
            return self.redact
        return self.finding(live=self.redact != REDACT_ALL) if self.redact else None

    def finding(self, *, live: bool = True) -> Redactor:
        """A redactor for the built-in kinds of secrets and the configured ones, also if `redact` is off."""
        return Redactor(self.redact_patterns, sensitive=self.sensitive_patterns, live=live)

    @property
    def first_strategy(self) -> Strategy | None:
        """The strategy that new sessions begin with; None for the usual one."""
        if self.max_history_turns is None:
            return read_strategy(self.strategy) if self.strategy else None
        chosen = read_strategy(self.strategy) if self.strategy else USUAL_STRATEGY
        return msgspec.structs.replace(chosen, max_history_turns=self.max_history_turns)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def read_key(name: str, value: Any, *, in_program: bool = True, spelled: str = "") -> Any:
    """The value of a key as `Settings` has it, given by a program or in a file or variable. Raises InputError, which
    names the key as it was `spelled`."""
    kind = keys()[name].kind
    try:
        if kind.with_unit and not in_program:
            _text(value)
        return kind.read(value)
    except (ValueError, TypeError, OverflowError, InputError) as error:
        why = f" ({error})" if isinstance(error, InputError) else ""
        shown = "the value given (not shown, as it may be a secret)" if kind.hidden else repr(value)
        raise InputError(f"{spelled or name}: {shown} is not allowed{why}; allowed: {kind.allowed}") from error


@cache
def keys() -> dict[str, Key]:
    """Every key of `Settings` by name, in order."""
    hints = get_type_hints(Settings, include_extras=True)
    annotations = {name: getattr(hints[name], "__metadata__", (None,))[0] for name in Settings.__struct_fields__}
    return {name: key for name, key in annotations.items() if isinstance(key, Key)}
