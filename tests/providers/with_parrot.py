"""A program that adds the provider `parrot` as CONTRIBUTING.md says, by a row, and does with it what turnlog does with
every provider. It prints what came of it as JSON, for `test_sixth_provider.py`.

A process of its own: what is made of the table of providers when a module is imported has to know the row.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from parrot.sample import BODY, TRICK

from turnlog.models.makers import PROVIDER_ROWS, Maker, ProviderRow, Sdk

PROVIDER_ROWS["parrot"] = ProviderRow(
    module="parrot",
    maker=Maker(
        name="aviary",
        words=("bird",),
        otel_name="aviary.example",
        provider="parrot",
        sdk=Sdk(module="aviary_sdk", client="AsyncAviary", keys=("AVIARY_KEY",)),
        input_limit=50_000,
        output_limit=1_000,
        input_media=frozenset(),
        cheap_model="budgie",
    ),
    conversation="squawks",
    model="polly-1",
)

import turnlog  # noqa: E402  from here on the row is there, as in a checkout that has it
from turnlog.chat.choice import Choice, chosen  # noqa: E402
from turnlog.chat.conversation import Chat  # noqa: E402
from turnlog.cli import main  # noqa: E402
from turnlog.export import FORMATS  # noqa: E402
from turnlog.importers import read_file  # noqa: E402
from turnlog.log.records import MessageRecord  # noqa: E402
from turnlog.providers import PROVIDERS  # noqa: E402
from turnlog.providers.tool_declarations import read_tools  # noqa: E402
from turnlog.runners import BlockingRunner, RunnerSummarizer, ScriptedRunner, SdkRunner, events  # noqa: E402
from turnlog.stores import MemoryStore  # noqa: E402
from turnlog.testing import check_provider  # noqa: E402

ANSWER = [
    {"beak": [{"type": "words", "words": "Pretty "}], "model": "polly-1"},
    {"beak": [{"type": "words", "words": "Polly"}]},
    {"beak": [], "end": "done", "eaten": {"seeds": 9, "nuts": 2}},
]


def session(**settings: Any) -> turnlog.Session:
    """A session with a question to a parrot."""
    made = turnlog.open("s", store=MemoryStore(), target=turnlog.target("parrot", "polly-1", **settings))
    made.user("Who are you?")
    return made


class Cage:
    """The maker's SDK: a client that answers with `ANSWER`."""

    def __init__(self, **given: Any) -> None:
        self.cage, self.given, self.asked = self, given, []  # type: ignore[var-annotated]

    async def __aenter__(self) -> Cage:
        return self

    async def talk(self, **body: Any) -> Any:
        """Answer a request, chunk by chunk."""
        self.asked.append(body)

        async def chunks() -> Any:
            for chunk in ANSWER:
                yield Chunk(chunk)

        return chunks()


class Chunk(dict[str, Any]):
    """A chunk, with its keys as attributes too."""

    __getattr__ = dict.get


def by_sdk() -> dict[str, Any]:
    """A request through `SdkRunner`: what was sent, its events, and what is on record."""
    sdk = ModuleType("aviary_sdk")
    sdk.AsyncAviary = Cage  # type: ignore[attr-defined]
    sys.modules["aviary_sdk"] = sdk
    asking, cage = session(), Cage()

    async def told() -> list[list[str]]:
        return [[one.kind, one.text] async for one in events(SdkRunner(aviary=cage), asking.request())]

    got = asking.receive(BlockingRunner(SdkRunner()).stream(asking.request()))
    return {
        "events": asyncio.run(told()),
        "sent": cage.asked == [{**asking.request().body, "squawks": cage.asked[0]["squawks"], "bit_by_bit": True}],
        "kept": [got.text, got.complete, got.usage.input if got.usage else 0],
    }


def in_chat(folder: Path) -> dict[str, Any]:
    """Who is chosen, and what a scripted chat leaves."""
    store = MemoryStore()
    choice = chosen("bird/polly-1")
    talking = turnlog.open("s", store=store, target=choice.target)
    talk = Chat(
        store, turnlog.open, talking, Choice(choice.target, ScriptedRunner(["Polly."])), folder=folder, allowed=()
    )

    async def said() -> str:
        return "".join([event.text async for event in talk.say("Name?") if event.kind == "text"])

    by_key = chosen(environment={"AVIARY_KEY": "k"}).target
    return {"said": asyncio.run(said()), "by_key": str(by_key), "by_name": str(choice.target)}


def summaries() -> dict[str, Any]:
    """The last element of the request that rides on the session's own, and the model of one beside it."""
    runners = {rides: ScriptedRunner(["Notes."] * 9) for rides in (True, False)}
    for rides, runner in runners.items():
        settings = turnlog.Settings(summarizer=RunnerSummarizer(runner, rides=rides))
        long = turnlog.open(
            "s", store=MemoryStore(), target=turnlog.target("parrot", "polly-1"), budget=6_000, settings=settings
        )
        for turn in range(30):
            long.user(f"Turn {turn}. " + f"More words of turn {turn}. " * 40)
            long.request().json()
            long.assistant(f"{turn} rows.")
            for thread in threading.enumerate():  # a summary that no request waits for comes between two turns
                if thread.name == "turnlog-summary":
                    thread.join()
        long.close()
    last = runners[True].requests[0].body["squawks"][-1]
    return {
        "asked": [last["role"], [block["type"] for block in last["beak"]]],
        "models": sorted({one.target.model for one in runners[False].requests}),
    }


def spans() -> dict[str, Any]:
    """The attributes of the span of an answer that say who answered, and how much it might say."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from turnlog.telemetry import attach

    seen, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(seen))
    watched = turnlog.open(
        "s", store=MemoryStore(), target=turnlog.target("parrot", "polly-1", manner={"max_tokens": 99})
    )
    attach(watched, tracer_provider=provider)
    watched.user("hi")
    watched.receive({"beak": [{"type": "words", "words": "Hello."}], "end": "done"})
    keys = ("gen_ai.provider.name", "gen_ai.request.model", "gen_ai.request.max_tokens")
    return {key: span.attributes.get(key) for span in seen.get_finished_spans() for key in keys if span.attributes}


def all_of_it(folder: Path) -> dict[str, Any]:
    """What came of each."""
    check_provider(PROVIDERS["parrot"], turnlog.target("parrot", "polly-1"), histories=20)
    [read] = read_file(json.dumps(BODY).encode())
    counted = turnlog.count(BODY)
    nest = MemoryStore()
    roles = [draft.body.message.role for draft in read.drafts if isinstance(draft.body, MessageRecord)]
    path = folder / "body.json"
    path.write_text(json.dumps(BODY), "utf-8")
    codes = [main([*words]) for words in (["import", str(path)], ["request", str(path), "--to", "parrot"])]
    kept = turnlog.open("e", store=nest, target=turnlog.target("parrot", "polly-1"))
    kept.user("hi")
    return {
        "check": [str(one) for one in turnlog.check(BODY)],
        "convert": turnlog.convert(turnlog.convert(BODY, to="anthropic").body, to="parrot").body["squawks"][-1],
        "again": turnlog.convert(BODY, to="parrot").body,
        "import": [read.format, roles],
        "count": [counted.tokens > 20, counted.certainty, counted.counter],
        "export": json.loads(b"".join(FORMATS["parrot"](nest, "e", []))),
        "commands": codes,
        "sdk": by_sdk(),
        "chat": in_chat(folder),
        "summaries": summaries(),
        "spans": spans(),
        "tools": [[tool.name, tool.description] for tool in read_tools([TRICK])],
    }


if __name__ == "__main__":
    home = Path(sys.argv[1])
    os.chdir(home)
    came = all_of_it(home)
    (home / "came.json").write_text(json.dumps(came), "utf-8")
