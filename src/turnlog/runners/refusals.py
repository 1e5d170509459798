"""The errors for providers' refusals, recognised by HTTP status if there is one, else by their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from .._platform.lazy import lazy_pattern
from ..errors import NotLoggedIn, RateLimited, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from ..models.servers import OPENAI, Server
from ..providers.error_facts import ErrorFacts, page_text
from ..redaction import Redactor

# -- sizes -----------------------------------------------------------------------------------------
#
# A request that is too long for its model, and its sizes, as providers and servers say them.


def _pattern(text: str) -> re.Pattern[str]:
    return lazy_pattern(text.replace("#", r"(?:[\d,_]+)"), re.IGNORECASE | re.DOTALL)


_TOO_LONG: Sequence[re.Pattern[str]] = tuple(
    map(
        _pattern,
        (
            # Anthropic: https://platform.claude.com/docs/en/api/errors
            r"prompt is too long: (?P<tokens>#) tokens > (?P<limit>#)",
            r"exceed context limit: (?P<tokens>#) \+ (?P<answer>#) > (?P<limit>#)",
            # OpenAI Chat, DeepSeek (fast-agent#621), vLLM (vllm#20409), SGLang, OpenRouter: with the answer's share
            r"maximum context length (?:is|of) (?P<limit>#) tokens.*?requested.{0,40}? # tokens:? \(?(?P<tokens>#)"
            r"(?: tokens)? (?:in|from) the (?:input )?messages,? (?:and )?(?P<answer>#)(?: tokens)? (?:in|for) the"
            r" completion",
            r"maximum context length is (?P<limit>#) tokens.*?requested.{0,20}? # tokens \((?P<tokens>#) of text"
            r" input.{0,40}?, (?P<answer>#) (?:in|of|for) the output",
            r"is too large: (?P<answer>#)\..{0,20}maximum context length is (?P<limit>#) tokens and your request has"
            r" (?P<tokens>#) input tokens",
            # the same without it; xAI (cline#3120)
            r"maximum (?:context|prompt) length (?:is|of) (?P<limit>#)(?: tokens)?\b.{0,80}?"
            r"(?:resulted in|requested(?: about| a total of)?|request (?:has|contains)) (?P<tokens>#)(?: input)?"
            r" tokens",
            r"maximum (?:context|prompt) length (?:is|of) (?P<limit>#)",
            # Google (gemini-cli#4692), Azure
            r"input token count \(?(?P<tokens>#)\)? exceeds the maximum number of tokens allowed \(?(?P<limit>#)",
            r"exceed(?:s|ed)? the configured limit of (?P<limit>#) tokens.{0,40}?(?:resulted in (?P<tokens>#))",
            # SGLang (Qwen3#1321), llama.cpp (#19774), LM Studio (openclaude#353, cline#3664)
            r"\(?(?P<tokens>#) tokens\)? is longer than the model's context length \(?(?P<limit>#)",
            r"\(?(?P<tokens>#) tokens\)? exceeds the (?:available|maximum) context size \(?(?P<limit>#)",
            r"n_keep: (?P<tokens>#)\s*>=\s*n_ctx: (?P<limit>#)",
            r"keep the first (?P<tokens>#) tokens when context.{0,80}context length of only (?P<limit>#)",
            # Mistral, Moonshot, DashScope, Groq's limit per minute (continue#10218) and OpenAI's, Cerebras
            r"contains (?P<tokens>#) tokens.{0,60}?too large for model with (?P<limit>#) maximum context length",
            r"exceeded model token limit: (?P<limit>#)(?: \(requested: (?P<tokens>#)\))?",
            r"range of input length should be \[\d+, ?(?P<limit>#)\]",
            r"request too large for .{0,200}?\blimit:? (?P<limit>#),? requested:? (?P<tokens>#)",
            r"current length is (?P<tokens>#) while limit is (?P<limit>#)",
            # Together and text-generation-inference (litellm#4934), Fireworks (cookbook#134), watsonx
            r"`inputs` tokens \+ `max_new_tokens` must be <= (?P<limit>#)\. given: (?P<tokens>#) `inputs` tokens and"
            r" (?P<answer>#)",
            r"`inputs` must have less than (?P<limit>#) tokens\. given: (?P<tokens>#)",
            r"prompt is too long: (?P<tokens>#), model maximum context length: (?P<limit>#)",
            r"number of input tokens (?P<tokens>#) cannot exceed the total tokens limit (?P<limit>#)",
            # GitHub Models (ai-inference#128), Copilot (opencode#305)
            r"request body too large for .{0,80}?max size: (?P<limit>#) tokens",
            r"token count of (?P<tokens>#) exceeds the limit of (?P<limit>#)",
            # OpenAI Responses, Bedrock, programs, MiniMax, Z.ai, Ollama's cloud: without figures
            r"exceeds the context window|context_length_exceeded|input tokens exceeded|prompt (?:is )?too long",
            r"ran out of room in the model's context window|context (?:window|size|length) (?:is |has been )?exceeded",
            r"exceeds? (?:the )?(?:available |maximum |model's )?context (?:size|length|window|limit)",
            r"context window exceeds limit|prompt exceeds max(?:imum)? length",
            r"tokens in (?:the )?request more than max(?:imum)? tokens allowed",
            r"input is too long for (?:the )?requested",
            r"reduce the length of (?:the|your) (?:input )?(?:messages|prompt)",
        ),
    )
)
"""How a request that is too long is refused: first what says the sizes. `answer` is the room for the answer, if it
counts against the limit."""
_KINDS = lazy_pattern(
    r"(?i)context_length_exceeded|exceed_context_size|max_prompt_tokens_exceeded|tokens_limit_reached"
    r"|context_?window_?exceeded"
)
"""Types and codes of the same."""
_ANSWER = lazy_pattern(
    r"(?i)max_(?:completion_|output_|new_)?tokens\b[^.;]{0,100}?"
    r"(?:too large|must be (?:less|lower|smaller|at most|<)|at most|greater than|larger than|exceeds?|maximum allowed)"
)
"""Words for an answer that may not be as long as was asked for."""


def sizes_if_too_long(
    message: str, facts: ErrorFacts | None = None, more: Iterable[re.Pattern[str]] = ()
) -> tuple[int, int] | None:
    """The tokens and the limit of a request that is too long, each 0 if the error does not say it; None for another
    error. `more` are patterns of the target's server, which come first.

    A limit that includes the room for the answer is told without it. An answer that was to take more than three
    quarters of the limit is too long itself: a smaller request would not help.
    """
    told = (0, 0) if facts is None else (facts.tokens, facts.limit)
    said = message if facts is None else f"{message}\n{facts.words}"
    of_answer = bool(_ANSWER.search(said))
    for pattern in (*more, *_TOO_LONG):
        match = pattern.search(said)
        if match is None:
            continue
        found = match.groupdict()
        tokens, limit, answer = (_whole(found.get(name)) for name in ("tokens", "limit", "answer"))
        if (of_answer and not tokens) or (limit and limit - answer < limit // 4):
            return None
        return tokens or told[0], (limit - answer) or told[1]
    kinds = () if facts is None else facts.kinds
    return told if not of_answer and any(map(_KINDS.search, kinds)) else None


def _whole(digits: str | None) -> int:
    return int(re.sub(r"\D", "", digits or "") or 0)


# -- limits ----------------------------------------------------------------------------------------
#
# A server that takes no more requests for now, and how long to wait.

_REDACTOR = Redactor()
_NUMBER, _UNIT = r"\d+(?:\.\d+)?", r"ms|s|m|h|milliseconds?|seconds?|minutes?|hours?|sec|min"
_WAIT = lazy_pattern(
    rf"(?:retry|try again|retryDelay|reset|wait)[^\d\n]{{0,25}}?((?:{_NUMBER}\s*(?:{_UNIT})(?![a-z])\s*)+)",
    re.IGNORECASE,
)
_SPANS = lazy_pattern(rf"({_NUMBER})\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_UNITS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_RATE = lazy_pattern(
    r"(?i)rate.?limit|too many (?:concurrent )?(?:requests|connections)|too many tokens|request limit|limit reached"
    r"|usage limit|quota|resource.?exhausted|throttl|overload|(?:over|at) capacity|capacity (?:limit|exceeded)|too_many"
    r"|(?:server|service|engine|is|too) busy|high (?:traffic|demand|concurrency)|queue(?: is full|_exceeded)"
    r"|slots are busy|service.?unavailable|temporarily unavailable|unable to process your request"
    r"|currently experiencing problems"
    r"|\b429\b|\b529\b|(?:error|status|code|http)\W{0,3}503\b"
)
"""Words and kinds of a server that takes no more requests for now. Sources: kaitranntt/ccs#402, openclaw#98101 (Z.ai),
elizaOS/eliza#4040 (Groq), continue#9800 (Cerebras), cline#4826 (xAI), continue#10579 (Ollama)."""
_LOADING = lazy_pattern(r"(?i)\bloading model|model (?:is |was )?(?:still |currently )?(?:un)?load(?:ing|ed)\b")
"""Words of a local server whose model is not in memory (llama.cpp with 503, LM Studio with 400)."""
_LIMITED = frozenset(("1300", "1302", "1303", "1305", "3505", "1002"))
"""Codes of limits that pass: Mistral's, Z.ai's and MiniMax's."""
_EXHAUSTED = lazy_pattern(
    r"(?i)insufficient.{0,3}(?:quota|balance|credit|fund)|usage limit|credit balance"
    r"|billing.{0,10}(?:limit|not.active)|spending limit|out of credits|recharge|payment.required"
)
"""Words and kinds of what waiting does not bring back: credit, or the quota of hours or days."""
_MAY_BE = lazy_pattern(r"(?i)check your plan and billing")
_PASSES = lazy_pattern(r"(?i)resource_exhausted")
"""Words of OpenAI's exhausted credit, and the kind of Google's limits per minute, which say them too."""
_MEDIA = lazy_pattern(r"(?i)\b(?:image|pdf|document|video|audio|attachment|media|file)s?\b")
_LOGIN = lazy_pattern(
    r"not logged in|please (?:run )?/?log.?in|invalid (?:x-)?api.?key|incorrect api key|authentication|unauthori[sz]ed"
    r"|api.?key (?:is )?(?:not|missing|required)|no api key|invalid auth|set an auth method|\b401\b|credentials",
    re.IGNORECASE,
)
_TIME = lazy_pattern(r"timed? ?out|deadline exceeded", re.IGNORECASE)

_UNPAID = 402
_BUSY = (429, 503, 529)
_FAILED = (400, 500, 502, 520, 521, 522, 523, 524, None)
"""HTTP statuses of a request that words may say to be one too many; None of an error within a stream."""
_LATE = (408, 504)


def seconds_to_wait(message: str) -> float | None:
    """How long a message says to wait, in seconds; None if it does not say."""
    match = _WAIT.search(message)
    if match is None:
        return None
    spans = _SPANS.findall(match[1])
    return sum(float(number) * _UNITS.get(unit.lower()[:3], _UNITS[unit.lower()[0]]) for number, unit in spans)


def refusal(
    runner: str,
    login: str,
    message: str,
    *,
    status: int | None = None,
    wait: float | None = None,
    facts: ErrorFacts | None = None,
    server: Server = OPENAI,
) -> RunnerError:
    """The error for a provider's refusal; a key that the provider quotes is masked. `login` is the advice for a missing
    key, `wait` the seconds from the response's headers, `facts` what its body says, `server` has further words of it.
    A success as `status` is ignored: errors within a stream have it."""
    facts = ErrorFacts() if facts is None else facts
    said, message = f"{message}\n{facts.words}", _REDACTOR.text(_with_words(message, facts.words))[0]
    kinds = " ".join(facts.kinds)
    status = None if status is not None and status < 300 else status
    status = facts.status if status is None else status
    sizes = sizes_if_too_long(said, facts, _patterns(server.too_long))
    if status not in (401, 403) and (sizes is not None or (status == 413 and not _MEDIA.search(said))):
        tokens, limit = sizes or (0, 0)
        return RequestTooLong(runner, message, tokens=tokens, limit=limit)
    if status in (401, 403) or (status is None and _LOGIN.search(said)):
        return NotLoggedIn(runner, login, message)
    if status == _UNPAID:
        return RateLimited(runner, message, exhausted=True)
    of_server = any(pattern.search(said) for pattern in _patterns((*server.rate_limited, *server.overloaded)))
    if status in _BUSY or of_server or (status in _FAILED and _is_one_too_many(said, kinds, status)):
        wait = facts.wait if wait is None else wait
        wait = seconds_to_wait(said) if wait is None else wait
        return RateLimited(runner, message, retry_after=wait, exhausted=_is_exhausted(said, facts.kinds, wait))
    if status in _LATE or (status is None and _TIME.search(said)):
        return RunnerTimedOut(runner, message=message)
    return RunnerFailed(runner, message, status=status)


@lru_cache(maxsize=64)
def _patterns(texts: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Patterns of a server's row."""
    return tuple(re.compile(text, re.IGNORECASE | re.DOTALL) for text in texts)


def _with_words(message: str, words: str) -> str:
    """A message of an SDK with the provider's own words, if it has not got them; without the tags of an HTML page."""
    message = page_text(message)
    return message if not words or words in message else f"{message}: {words}" if message else words


def _is_one_too_many(said: str, kinds: str, status: int | None) -> bool:
    """Whether words or kinds say that the server takes no more requests for now; of a request that is refused for what
    it holds (400), only that its model is not loaded."""
    if status == 400:
        return bool(_LOADING.search(said))
    limited = not _LIMITED.isdisjoint(kinds.split())
    return limited or any(pattern.search(text) for pattern in (_RATE, _LOADING) for text in (said, kinds))


def _is_exhausted(said: str, kinds: Sequence[str], wait: float | None) -> bool:
    """Whether credit or a quota of hours or days is used up."""
    if any(map(_EXHAUSTED.search, (*kinds, said))) or "1113" in kinds:  # Z.ai: insufficient balance
        return True
    return wait is None and bool(_MAY_BE.search(said)) and not any(map(_PASSES.search, kinds))
