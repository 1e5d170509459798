"""Get a summary whatever happens: try a list of summarizers in order, and at last one that needs no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .._platform.exceptions import described
from ..errors import TurnlogError
from ..log.records import SummaryRecord
from .background import Background
from .digest import Digest
from .ledger import Ledger, MemoryLedger, claim, key_of, outcome_of, settle
from .protocol import TIMEOUT, Material, Summarizer
from .running import RunningCall
from .verdict import SummaryFailure, fault_of

# How models begin when they decline, in several languages: with an apology, or by saying that they cannot.


class Attempt(Struct, frozen=True):
    """The result of `attempt`: the summary, the summarizer that wrote it, and those that failed before. `text` and
    `summarizer` are empty if all failed.

    `remembered`: the summary was already on record, so no summarizer was called.
    """

    text: str = ""
    summarizer: str = ""
    failures: tuple[SummaryFailure, ...] = ()
    remembered: bool = False


def attempt(
    material: Material,
    ladder: Sequence[Summarizer],
    *,
    offline: Summarizer = Digest(),
    timeout: float = TIMEOUT,
    ledger: Ledger | None = None,
    ahead: Background | None = None,
) -> Attempt:
    """The summary of `material` by the first summarizer in `ladder` that returns one, else by `offline`.

    Summarizers in `ladder` may cost money: each is called at most once for the same content, in a thread of its own,
    and has `timeout` seconds. `offline` costs nothing: it is called directly, and its calls are not recorded. If
    `ahead` is already computing a summary of this content, that call is waited for, once, instead of a new call. A
    call that takes too long is left to `ahead`.

    Never raises: exceptions, timeouts, refusals and texts that save nothing are failures in the result. Failures of
    summarizers in `ladder` are also recorded in `ledger`.
    """
    ledger = MemoryLedger() if ledger is None else ledger
    material = msgspec.structs.replace(material, count=_once(material.count))
    failures: list[SummaryFailure] = []
    for summarizer in ladder:
        outcome = _asked(summarizer, material, timeout, ledger, ahead)
        if isinstance(outcome, Attempt):
            return Attempt(outcome.text, outcome.summarizer, (*failures, *outcome.failures), outcome.remembered)
        failures.append(outcome)
    try:
        text: Any = offline.summarize(material)
        fault = fault_of(text, material)
    except Exception as error:  # noqa: BLE001 - a summarizer of the caller may raise anything, and there are other steps
        fault = "exception", described(error)
    if fault is not None:
        return Attempt(failures=(*failures, SummaryFailure(offline.id, *fault)))
    return Attempt(text, offline.id, tuple(failures))


def _once(count: Callable[[str], int]) -> Callable[[str], int]:
    """The same function, which does not count the same text twice in a row: the summarizer and `fault_of` both count
    it."""
    last: tuple[str | None, int] = (None, 0)

    def counted(text: str) -> int:
        nonlocal last
        before = last  # threads may share it
        if text is before[0]:
            return before[1]
        tokens = count(text)
        last = (text, tokens)
        return tokens

    return counted


def _asked(
    summarizer: Summarizer, material: Material, timeout: float, ledger: Ledger, ahead: Background | None
) -> Attempt | SummaryFailure:
    """The result of one summarizer: from the background, from the ledger, or from a call now."""
    try:
        key = key_of(summarizer.id, material)
        run = None if ahead is None else ahead.running(key)
        recorded = None
        waits = getattr(summarizer, "patience", None) != 0
        if run is None:
            recorded = claim(ledger, key, summarizer.id) if waits else outcome_of(ledger.find(key))
            if recorded is None and not waits:
                return SummaryFailure(summarizer.id, "timeout", "it was not asked ahead, and no request waits for it")
    except (TurnlogError, OSError) as error:
        return SummaryFailure(summarizer.id, "ledger", str(error))
    if recorded is not None:
        return _recalled(summarizer.id, material, *recorded)
    try:
        run = run or RunningCall(summarizer, material, key)
    except RuntimeError as error:  # no thread can be started
        failure = SummaryFailure(summarizer.id, "exception", str(error))
        return settle(ledger, key, failure) or failure
    # Records of the attempt make the decision be made again for the same content. The run has had its time by then.
    try:
        ended = run.wait(0 if run.given_up or not waits else timeout)
    except BaseException:  # Ctrl-C: the call goes on and is paid for, and its result may be used later
        if ahead is not None:
            ahead.keep(run)
        raise
    text, failed = run.settle(ledger, unfinished=f"no answer in {timeout if waits else 0:g} s")
    if ahead is not None:
        (ahead.release if ended else ahead.keep)(run)
    if failed is None or text:
        return Attempt(text, summarizer.id, () if failed is None else (failed,))
    return failed


def _recalled(summarizer_id: str, material: Material, n: int, body: SummaryRecord) -> Attempt | SummaryFailure:
    """The result that record `n` contains for this content."""
    match body.state:
        case "made":
            fault = fault_of(body.text, material)  # another counter may count it differently
            if fault is None:
                return Attempt(body.text, summarizer_id, remembered=True)
            return SummaryFailure(summarizer_id, fault[0], f"record {n}: {fault[1]}")
        case "failed":
            return SummaryFailure(summarizer_id, "remembered", f"record {n}: {body.reason}")
        case _:
            return SummaryFailure(summarizer_id, "claimed", f"by record {n}, which has no text yet")
