"""Types of arguments: a wrong value is an error that says what is allowed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any


def checked(read: Callable[[str], Any], allowed: str) -> Callable[[str], Any]:
    """An argument type that uses `read`, which raises ValueError; `allowed` says what it accepts."""

    def read_argument(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not {allowed}") from None

    return read_argument


def number(what: str, least: int = 0) -> Callable[[str], int]:
    """An argument type for a whole number of something, at least `least`, such as 1,000."""

    def read_number(text: str) -> int:
        digits = text.replace(",", "").replace("_", "")
        if not digits.isdecimal() or int(digits) < least:
            raise ArgumentTypeError(f"{text!r} is not a number of {what}" + (f" from {least} on" if least else ""))
        return int(digits)

    return read_number
