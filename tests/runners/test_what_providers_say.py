"""What a provider says when it refuses a request is told by its status where that says anything, else by its words."""

from __future__ import annotations

import pytest

from turnlog.errors import NotLoggedIn, RateLimited, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from turnlog.runners.refusals import refusal

OVERLOADED = "{'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}"


@pytest.mark.parametrize(
    ("message", "status", "kind"),
    (
        (OVERLOADED, 529, RateLimited),
        (OVERLOADED, 200, RateLimited),  # in the midst of a stream
        (OVERLOADED, None, RateLimited),
        ("prompt is too long: 9 tokens > 8 maximum", 200, RequestTooLong),
        ("no", 401, NotLoggedIn),
        ("rate limit", 400, RunnerFailed),
        ("no", 504, RunnerTimedOut),
    ),
)
def test_a_refusal_is_what_it_says(message: str, status: int | None, kind: type[RunnerError]) -> None:
    """A program that waits and asks again would give up, as the error of a stream has the status of its success."""
    assert type(refusal("anthropic", "set a key", message, status=status)) is kind
