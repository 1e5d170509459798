"""The entries of a decision's `detail`, and whether those of a foreign decision can be read."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .._platform.msgspec_init import ready
from ..log.actions import SHOWN_BY
from ..log.codec import as_message
from ..log.records import Decision


@ready
class _Detail(Struct, frozen=True):
    """The entries of a decision's `detail` that views read, and their types."""

    kept: list[tuple[int, int]] = []
    standing: list[int] = []
    replacement: list[Any] | None = None
    at: int = 0
    texts: list[tuple[int, list[int], str]] = []
    cuts: list[tuple[int, list[int], int, int]] = []
    outputs: list[int] = []
    provider: str = ""
    elsewhere: dict[str, Any] | None = None
    system_too: bool = False
    bound: list[str] = []
    orders: list[tuple[int, str]] = []
    more_orders: list[tuple[int, int]] = []
    untold_orders: list[tuple[int, int]] = []


def misfit(decision: Decision) -> str:
    """Why a decision cannot be applied to a view: what is wrong with its `detail`; "" if nothing is. Only a log that
    another program wrote can contain such a decision."""
    if decision.action in SHOWN_BY:
        try:
            read = {key: decision.detail[key] for key in _Detail.__struct_fields__ if key in decision.detail}
            detail = msgspec.convert(read, _Detail)
            for message in detail.replacement or ():
                as_message(message)
            if detail.elsewhere is not None:
                return misfit(replace(decision, detail={**detail.elsewhere, "elsewhere": None}))
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: a lone surrogate in a key
            return str(error)
    return ""
