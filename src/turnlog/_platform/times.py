"""Times as people read and write them, in the time zone of this machine: `8 h ago`, `yesterday`, `5 May`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from .units import read_age

_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_DAYS = {"today": 0, "yesterday": 1}
TIMES = "a time: today, yesterday, an age such as 3d or 12h, or a date such as 2026-01-31, 2026-01 or 2026-01-31T12:00"
"""What `since` and `until` accept, in words."""


def present() -> datetime:
    """This moment."""
    return datetime.now(UTC)


def ago(time: str, now: datetime | None = None) -> str:
    """A recorded time in a word or two, at most 11 characters; `-` for an empty or damaged one."""
    then = local(time)
    if then is None:
        return "-"
    now = (now or present()).astimezone()
    minutes = (now - then) / timedelta(minutes=1)
    days = (now.date() - then.date()).days
    if minutes < 0 or days > 1:
        return day(time, now)
    if minutes >= 60:
        return "yesterday" if days and minutes >= 12 * 60 else f"{minutes / 60:.0f} h ago"
    return f"{minutes:.0f} min ago" if minutes >= 1 else "now"


def day(time: str, now: datetime | None = None) -> str:
    """The date of a recorded time: `5 May`, or `5 May 2025` in another year; `-` for an empty or damaged one."""
    then = local(time)
    if then is None:
        return "-"
    now = (now or present()).astimezone()
    return f"{then.day} {_MONTHS[then.month - 1]}" + ("" if then.year == now.year else f" {then.year}")


def clock(time: str) -> str:
    """The hour and minute of a recorded time: `03:46`; empty for an empty or damaged one."""
    then = local(time)
    return "" if then is None else f"{then:%H:%M}"


def local(time: str) -> datetime | None:
    """A recorded time (UTC, ISO 8601) in the time zone of this machine; None if it is empty or damaged."""
    try:
        then = datetime.fromisoformat(time)
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).astimezone()
    except (ValueError, OverflowError):
        return None


def since(text: str) -> str:
    """The first moment of a time that a person wrote, as records have it. Raises ValueError."""
    return _recorded(_span(text)[0])


def until(text: str) -> str:
    """The last moment of a time that a person wrote, as records have it. Raises ValueError."""
    return _recorded(_span(text)[1] - timedelta(milliseconds=1))


def _recorded(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def _span(text: str) -> tuple[datetime, datetime]:
    """The moment at which a time begins, and the one at which it is over."""
    now = present().astimezone()
    try:
        if text in _DAYS:
            begins = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None) - timedelta(days=_DAYS[text])
            return begins.astimezone(), (begins + timedelta(days=1)).astimezone()
        if text[:1].isdigit() and text[-1:].isalpha() and not text.endswith("Z"):
            return now - read_age(text), now - read_age(text) + timedelta(milliseconds=1)
        match = re.fullmatch(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", text)
        if match is None:
            begins = datetime.fromisoformat(text)
            return begins.astimezone(), (begins + _precision(text)).astimezone()
        year, month, date = (int(part) if part else 0 for part in match.groups())
        begins = datetime(year, month or 1, date or 1)  # noqa: DTZ001 - of this machine, until astimezone
        return begins.astimezone(), _after(begins, month, date).astimezone()
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not {TIMES}") from None


def _after(begins: datetime, month: int, date: int) -> datetime:
    """The moment after a day, a month or a year."""
    if date:
        return begins + timedelta(days=1)
    return begins.replace(year=begins.year + (month in (0, 12)), month=month % 12 + 1 if month else 1)


def _precision(text: str) -> timedelta:
    """How long a written moment lasts: a minute if it has no seconds, else a second."""
    seconds = text.partition("T")[2].count(":") > 1
    return timedelta(seconds=1) if seconds else timedelta(minutes=1)
