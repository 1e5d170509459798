"""What a provider says when it refuses a request is told by its status where that says anything, else by its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turnlog.errors import NotLoggedIn, RateLimited, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from turnlog.models.target import target
from turnlog.providers.error_facts import error_facts
from turnlog.runners.refusals import refusal
from turnlog.session.answer import end_of

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


def said_by(status: int | None, body: Any) -> RunnerError:
    """The error for a body that came with a status, as the runner of SDKs makes it."""
    facts = error_facts(body)
    return refusal("openai", "set a key", f"Error code: {status}", status=status, facts=facts)


def openai_error(message: str, kind: str | None = None, code: Any = None, **more: Any) -> dict[str, Any]:
    """An error in the envelope of OpenAI."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


UPSTREAM = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
TOO_LONG: list[tuple[int | None, Any, int, int]] = [
    (400, openai_error(UPSTREAM, code="context_length_exceeded"), 9001, 8192),
    (400, {"object": "error", "message": UPSTREAM, "type": "BadRequestError", "code": 400}, 9001, 8192),
    (400, {"error": UPSTREAM}, 9001, 8192),
    (400, {"detail": UPSTREAM}, 9001, 8192),
    (400, [{"error": {"code": 400, "message": UPSTREAM, "status": "INVALID_ARGUMENT"}}], 9001, 8192),
    (400, openai_error("Provider returned error", metadata={"raw": json.dumps(openai_error(UPSTREAM))}), 9001, 8192),
    (400, openai_error(f"litellm.ContextWindowExceededError: OpenAIException - {UPSTREAM}"), 9001, 8192),
    (
        400,
        openai_error(
            "This model's maximum context length is 8192 tokens. However, you requested 11001 tokens (9001 in the "
            "messages, 2000 in the completion). Please reduce the length of the messages or completion."
        ),
        9001,
        6192,
    ),
    (
        400,
        openai_error(
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 8192 "
            "tokens and your request has 7000 input tokens (2000 > 8192 - 7000). "
        ),
        7000,
        6192,
    ),
    (400, openai_error("exceeded", "exceed_context_size_error", n_prompt_tokens=9001, n_ctx=8192), 9001, 8192),
    (400, openai_error("no", code="model_max_prompt_tokens_exceeded"), 0, 0),
    (413, openai_error("no", code="tokens_limit_reached"), 0, 0),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", 0, 0),
    (
        429,
        openai_error(
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000. "
            "The input or output tokens must be reduced in order to run successfully.",
            "tokens",
            "rate_limit_exceeded",
        ),
        40_000,
        30_000,
    ),
    (500, openai_error("Context size has been exceeded.", "server_error"), 0, 0),
    (None, {"error": {"message": "Context size has been exceeded."}}, 0, 0),
    (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease",
            },
        },
        188_240,
        178_667,
    ),
]


@pytest.mark.parametrize(("status", "body", "tokens", "limit"), TOO_LONG)
def test_a_request_that_is_too_long_is_known_by_words_and_kinds(
    status: int | None, body: Any, tokens: int, limit: int
) -> None:
    """It was a failure like any other, and the session was stuck."""
    error = said_by(status, body)
    assert isinstance(error, RequestTooLong) and (error.tokens, error.limit) == (tokens, limit)


NOT_TOO_LONG: list[tuple[int, Any, type[RunnerError]]] = [
    (
        400,
        openai_error("max_tokens is too large: 100000. This model supports at most 16384 completion"),
        RunnerFailed,
    ),
    (
        400,
        openai_error("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"),
        RunnerFailed,
    ),
    (400, openai_error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), RunnerFailed),
    (400, openai_error("Range of max_tokens should be [1, 8192]"), RunnerFailed),
    (
        400,
        openai_error(
            "'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 8192 "
            "tokens and your request has 10 input tokens (100000 > 8192 - 10)."
        ),
        RunnerFailed,
    ),
    (400, openai_error("max_tokens (100000) exceeds the model's maximum context length of 8192"), RunnerFailed),
    (400, openai_error("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"), RunnerFailed),
    (413, openai_error("The image is too large"), RunnerFailed),
    (400, openai_error("At least one of the image dimensions exceed max allowed size: 8000 pixels"), RunnerFailed),
    (
        429,
        openai_error(
            "Rate limit reached for model `m` in organization `o` service tier `on_demand` on tokens per minute (TPM): "
            "Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.",
            "tokens",
            "rate_limit_exceeded",
        ),
        RateLimited,
    ),
    (429, openai_error("Too many tokens, please wait before trying again.", code="throttling_error"), RateLimited),
    (403, openai_error("prompt is too long: your key may not send it"), NotLoggedIn),
]


@pytest.mark.parametrize(("status", "body", "kind"), NOT_TOO_LONG)
def test_other_limits_are_not_taken_for_the_window(status: int, body: Any, kind: type[RunnerError]) -> None:
    """The conversation would be cut for nothing, and the same error come again."""
    assert type(said_by(status, body)) is kind


def google_error(message: str, **more: Any) -> list[dict[str, Any]]:
    """An error of Google's imitation of OpenAI."""
    return [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, **more}}]


RAW = {"raw": "Worker local total request limit reached (33/32)"}
LIMITS: list[tuple[int | None, Any, float | None, bool]] = [
    (429, openai_error("Please try again in 4.77s. Upgrade at https://x/settings/billing"), 4.77, False),
    (429, openai_error("Please try again in 7m12.5s."), 432.5, False),
    (429, openai_error("please try again after 1 seconds", "rate_limit_reached_error"), 1.0, False),
    (429, openai_error("Rate limit of 10 per 60s exceeded. Please wait 12 seconds before retrying."), 12.0, False),
    (429, google_error("Quota", details=[{"retryDelay": "34s"}]), 34.0, False),
    (429, google_error("check your plan and billing details"), None, False),
    (429, openai_error("check your plan and billing details", "insufficient_quota", "insufficient_quota"), None, True),
    (429, openai_error("you have reached your session usage limit, please wait or upgrade to continue"), None, True),
    (429, openai_error("Insufficient balance or no resource package. Please recharge.", code="1113"), None, True),
    (429, {"error": {"code": "1302", "message": "High concurrency usage of this API"}}, None, False),
    (429, {"message": "high traffic", "type": "too_many_requests_error", "code": "queue_exceeded"}, None, False),
    (503, "<html><title>503 Service Temporarily Unavailable</title></html>", None, False),
    (502, openai_error("Provider returned error", code=502, metadata=RAW), None, False),
    (500, openai_error("The server had an error: overloaded", "server_error"), None, False),
    (500, {"detail": "An error occurred (ServiceUnavailableException) when calling ConverseStream"}, None, False),
    (400, {"error": "Model unloaded."}, None, False),
    (503, openai_error("Loading model", "unavailable_error"), None, False),
    (None, {"error": {"message": "no", "type": "engine_overloaded_error"}}, None, False),
    (None, {"error": {"message": "no", "code": "1305"}}, None, False),
    (None, {"error": {"message": "no", "code": 429}}, None, False),
    (None, {"code": "Some resource has been exhausted", "error": "Too many tokens for team t"}, None, False),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "wait", "exhausted"), LIMITS)
def test_a_server_that_is_busy_is_known_by_words_and_kinds(
    status: int | None, body: Any, wait: float | None, exhausted: bool
) -> None:
    """A run would end where it only has to wait, or wait for what does not come back."""
    error = said_by(status, body)
    assert isinstance(error, RateLimited) and (error.retry_after, error.exhausted) == (wait, exhausted)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"object": "error", "message": {"detail": [{"loc": ["body", "x"], "msg": "Extra inputs"}]}}, "Extra inputs"),
        ({"error": "no such model"}, "no such model"),
        ({"code": "bad", "error": "no such model"}, "no such model"),
        ({"base_resp": {"status_code": 2013, "status_msg": "invalid params"}}, "invalid params"),
        ("<!DOCTYPE html><html><body><h1>Bad</h1>\n gateway</body></html>", "Bad gateway"),
        (openai_error("sk-proj-" + "a1B2" * 12), "[redacted:openai-key"),
    ],
)
def test_the_servers_words_are_in_the_error(body: Any, words: str) -> None:
    """An error said `Error code: 422` and nothing else; a key that a server quotes must not be in it."""
    error = said_by(422, body)
    assert type(error) is RunnerFailed and words in error.message
    assert "a1B2a1B2" not in str(error)


def test_words_of_hostile_bodies_are_bounded() -> None:
    """A page of megabytes, or JSON in JSON in JSON, would be the message of an error."""
    nested: Any = "deep"
    for _ in range(50):
        nested = {"error": nested}
    assert error_facts(nested).words == ""
    assert len(error_facts({"message": "x" * 1_000_000}).words) == 4_000
    quoted = "core"
    for _ in range(12):
        quoted = json.dumps({"error": quoted})
    assert len(error_facts(quoted).words) < 10_000


def test_a_row_of_ones_own_says_more_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever runs a gateway with words of its own could not teach them to turnlog."""
    row = {
        "hosts": ["llm.example.com"],
        "too_long": [r"(?P<tokens>\d+) Woerter sind mehr als (?P<limit>\d+)"],
        "rate_limited": ["bitte langsamer"],
        "overloaded": ["kein Platz"],
        "stops": {"abgebrochen": "interrupted", "zu_lang": "length"},
    }
    (tmp_path / "models.json").write_text(json.dumps({"servers": {"gateway": row}}), "utf-8")
    monkeypatch.setenv("TURNLOG_MODELS", str(tmp_path / "models.json"))
    aim = target("openai-chat", "any", base_url="https://llm.example.com/v1")
    said = [
        refusal("openai", "set a key", words, status=400, server=aim.server_row)
        for words in ("900 Woerter sind mehr als 800", "bitte langsamer", "kein Platz", "etwas anderes")
    ]
    assert [type(each) for each in said] == [RequestTooLong, RateLimited, RateLimited, RunnerFailed]
    assert (said[0].tokens, said[0].limit) == (900, 800)  # type: ignore[attr-defined]
    words = ("abgebrochen", "zu_lang", "fertig", "length", "network_error", "stop")
    assert [end_of(word, aim) for word in words] == ["interrupted", "length", None, "length", "interrupted", None]


def test_a_server_that_wants_to_be_paid_is_not_asked_again() -> None:
    """402 Insufficient credits: an agent would see an error like any other, and not what to do."""
    error = refusal("openai", "set a key", "Insufficient credits. Add more.", status=402)
    assert isinstance(error, RateLimited) and error.exhausted and "add credit" in str(error)
