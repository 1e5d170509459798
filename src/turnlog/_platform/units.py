"""Numbers, sizes and ages as people write them: `3 messages`, `500MB`, `30d`."""

from __future__ import annotations

import sys
import warnings
from datetime import timedelta
from typing import Any

from ..errors import InputError
from .lazy import lazy_pattern

SIZES = "a size such as 500MB or 2GiB (B, kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024), more than 0"
"""The values that `read_size` accepts, in words."""

AGES = "an age such as 30d (s, min, h, d, w), more than 0"
"""The values that `read_age` accepts, in words."""

_NUMBER = lazy_pattern(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")
_BYTES = {
    "b": 1,
    **{f"{letter}{end}": 1000**power for power, letter in enumerate("kmgt", 1) for end in ("", "b")},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}
_SPELLED = ("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def an(noun: str) -> str:
    """A noun with its article, by its first letter: "an image", "a user"."""
    return f"an {noun}" if noun[:1].lower() in {"a", "e", "i", "o"} else f"a {noun}"


def counted(number: int, noun: str) -> str:
    """A number with a noun: `1 problem`, `2 problems`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s" if not noun.endswith("s") else "es")


def read_size(value: int | str) -> int:
    """A size in bytes, given as an int or as a number with a unit. Raises ValueError."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None or match[2].lower() not in _BYTES:
            raise ValueError(f"{value!r} is not a size")
        number, unit = match[1], _BYTES[match[2].lower()]
        try:
            value = int(float(number) * unit) if "." in number else int(number) * unit
        except OverflowError:
            raise ValueError(f"size out of range: {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{value!r} is not a size")
    return value


def old_max_size(value: Any, spelling: str = "max_size", new: str = "max_disk", where: str = "") -> Any:
    """The value of `max_disk` that was given as `max_size`, its name until 0.2. `where` names the file in the warning.
    Raises InputError for a number without a unit: other programs count turns with `maxSize`, and a thousand bytes would
    delete every session."""
    if not (isinstance(value, str) and (value.strip() == "none" or _is_size(value))):
        raise InputError(
            f"{spelling}: {value!r} is no size with a unit, so it may mean bytes or turns; write {new} with a unit "
            '(such as "500MB") for the space of a store on disk, or max_size in the table [history] of a configuration '
            "file for the turns that requests show"
        )
    told = f"{where and f'{where}: '}{spelling} is called {new} now; it is read until 0.2"
    warnings.warn(told, DeprecationWarning, stacklevel=_outside())
    return value


def _is_size(text: str) -> bool:
    try:
        return read_size(text) > 0
    except ValueError:
        return False


def _outside() -> int:
    """How far up the stack, seen from the caller, the code is that called turnlog."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "turnlog":
        frame, level = frame.f_back, level + 1
    return level


def read_age(value: timedelta | str) -> timedelta:
    """A length of time, given as a timedelta or as a number with a unit. Raises ValueError."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None or match[2].lower() not in _SECONDS:
            raise ValueError(f"{value!r} is not an age")
        try:
            value = timedelta(seconds=float(match[1]) * _SECONDS[match[2].lower()])
        except OverflowError:
            raise ValueError(f"age out of range: {value!r}") from None
    if not isinstance(value, timedelta) or value <= timedelta(0):
        raise ValueError(f"{value!r} is not an age")
    return value


def size_text(size: int) -> str:
    """A number of bytes with three digits: `512 B`, `4.20 MB`."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{size} B" if unit == "B" else f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def exact_size(size: int) -> str:
    """A number of bytes as `read_size` accepts it, in the largest unit that gives a whole number."""
    fitting = (unit for unit in _SPELLED if not size % _BYTES[unit.lower()])
    unit = max(fitting, key=lambda unit: _BYTES[unit.lower()])
    return f"{size // _BYTES[unit.lower()]}{unit}"


def age_text(age: timedelta) -> str:
    """An age as `read_age` accepts it, in the largest unit that gives a whole number."""
    seconds, micro = divmod(age // timedelta(microseconds=1), 1_000_000)
    for unit in ("w", "d", "h", "min"):
        if not micro and seconds and not seconds % _SECONDS[unit]:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}.{micro:06}".rstrip("0").rstrip(".") + "s"


def lasted(seconds: float | None) -> str:
    """A duration for people: `0.4 s`, `84 s`, `12 min`; "" for none."""
    if seconds is None:
        return ""
    for unit in ("d", "h", "min"):
        if seconds >= 1.5 * _SECONDS[unit]:
            return f"{seconds / _SECONDS[unit]:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 or not seconds else f"{seconds:.1f} s"
