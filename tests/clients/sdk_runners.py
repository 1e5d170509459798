"""The runner of the SDKs, with clients that talk to a server on this machine."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
from google import genai

import turnlog
from turnlog.runners import RetryingRunner, SdkRunner
from turnlog.session import Answer

__all__ = ["answered", "converse", "sdk_runner"]


def sdk_runner(url: str, **options: Any) -> SdkRunner:
    """A runner whose clients talk to `url` and never try twice."""
    settings = {"api_key": "k", "max_retries": 0, **options}
    return SdkRunner(
        openai=openai.AsyncOpenAI(base_url=url + "/v1", **settings),
        anthropic=anthropic.AsyncAnthropic(base_url=url, **settings),
        google=genai.Client(api_key="k", http_options={"base_url": url}),
    )


async def answered(session: turnlog.Session, runner: SdkRunner, *, whole: bool = False) -> Answer:
    """The next answer, recorded. A request that is too long is made smaller, once, and sent again."""
    retrying, request = RetryingRunner(runner, session), session.request()
    if whole:
        return session.receive(await retrying.ask(request), request)
    return await session.areceive(retrying.stream(request), request)


async def converse(
    session: turnlog.Session, runner: SdkRunner, targets: list[turnlog.Target], *, turns: int, each: int
) -> list[turnlog.Loss]:
    """Turns with calls and large results, every second one streamed, another target after `each` turns. Returns what
    the switches said was lost."""
    losses: list[turnlog.Loss] = []
    for number in range(turns):
        if number and number % each == 0:
            told = session.switch(targets[number // each % len(targets)])
            assert {(one.kind, one.records) for one in session.request().losses} <= {(o.kind, o.records) for o in told}
            losses += told
        session.user(f'Turn {number}: {"words and more words, " * 30}\nCALL read_file {{"path": "{number}.py"}}')
        whole = bool(number % 2)
        answer = await answered(session, runner, whole=whole)
        assert answer.tool_calls, answer
        for call in answer.tool_calls:
            session.tool_result(call, f"line of {number}\n" * 60)
        assert (await answered(session, runner, whole=whole)).text.startswith("RESULTS: ")
    return losses
