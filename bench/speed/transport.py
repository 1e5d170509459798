"""What turnlog's HTTP client costs: time to the first token, CPU, and prompt caches.

`transport.overhead`: a program keeps a conversation with OpenAI's SDK and sends it whole, streamed, to a server in a
process of its own that answers at once: without turnlog, over `turnlog.transport` without a budget, and recorded by
hand (plain client, `extend`, `request`, `receive`). Two conversations: one that begins and grows by 4 kB with each of
30 turns, and one that has 300 kB from the start. Bars: 3 ms more until the first token (median), and at most 2 times
the CPU of recording by hand, the SDK's included in both.

`transport.cache`: 30 turns with tools whose results have 4 kB, within 8,000 tokens, against the fake server of
../shared, which bills prompt caches. The share of the input that was read from the cache, over the client, and in
turnlog's own loop. Bar: at most 2 points less.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from harness import TESTS, Report, bench, module, shared

TTFT, CPU, POINTS = 3.0, 2.0, 2.0
WORDS = "the importer reads every row and skips those without a total "
PIECES = [" ".join([WORDS[:11], str(n)]) for n in range(40)]


class _Streaming(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Stream an answer of forty pieces."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        head = {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o", "object": "chat.completion.chunk"}
        deltas = [{"content": piece, "role": "assistant"} for piece in PIECES]
        choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        ends: list[Any] = [[{"index": 0, "delta": {}, "finish_reason": "stop"}]]
        usage = {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}
        events = [{**head, "choices": choice} for choice in [*choices, *ends]] + [
            {**head, "choices": [], "usage": usage}
        ]
        for event in [*map(json.dumps, events), "[DONE]"]:
            data = f"data: {event}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


def _serve(told: Any) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Streaming)
    told.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def _server() -> Iterator[str]:
    """A server in a process of its own: its work is not in our CPU, and does not wait for our lock."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.kill()
        process.join()


Chat = list[dict[str, Any]]


class _Way:
    """One way to send a conversation: `send(messages, came)` calls `came` at the first token, and reads all."""

    def __init__(self, send: Callable[[Chat, Callable[[], None]], object], close: Callable[[], object]) -> None:
        self.send, self.close = send, close
        self.first: list[float] = []
        self.first_cpu: list[float] = []
        self.cpu: list[float] = []

    def turn(self, messages: Chat) -> None:
        """Send, and note the figures, in milliseconds."""
        begun, cpu = time.perf_counter(), time.process_time()

        def came() -> None:
            self.first.append(1e3 * (time.perf_counter() - begun))
            self.first_cpu.append(1e3 * (time.process_time() - cpu))

        self.send(messages, came)
        self.cpu.append(1e3 * (time.process_time() - cpu))


def _noting(stream: Iterator[Any], came: Callable[[], None]) -> Iterator[Any]:
    first = next(stream)
    came()
    yield first
    yield from stream


def _ways(url: str, folder: Path) -> dict[str, _Way]:
    import openai

    import turnlog
    from turnlog import transport

    model: dict[str, Any] = {"model": "gpt-4o", "stream": True, "stream_options": {"include_usage": True}}

    def sending(client: Any) -> Callable[[Chat, Callable[[], None]], object]:
        return lambda messages, came: [*_noting(client.chat.completions.create(messages=messages, **model), came)]

    plain = openai.OpenAI(base_url=url, api_key="k")
    http = transport.client(folder / "transport.db")
    recorded = openai.OpenAI(base_url=url, api_key="k", http_client=http)
    by_hand = openai.OpenAI(base_url=url, api_key="k")
    target = turnlog.target("openai-chat", "gpt-4o")
    session = turnlog.open("hand", store=folder / "hand.db", target=target, settings=turnlog.Settings(budget=0))

    def hand(messages: Chat, came: Callable[[], None]) -> None:
        session.extend(messages if not session.message_count else messages[-1:])
        request = session.request()
        stream = by_hand.chat.completions.create(**{**request.body, **model})
        session.receive(_noting(stream, came), request)

    return {
        "plain": _Way(sending(plain), plain.close),
        "transport": _Way(sending(recorded), recorded.close),
        "by hand": _Way(hand, lambda: (session.close(), by_hand.close())),
    }


@bench(quick={"turns": 10})
def overhead(report: Report, *, turns: int = 30) -> None:
    """Time to the first token and CPU of turnlog's HTTP client without a budget, beside recording by hand."""
    with _server() as url:
        for name, already in (("growing by 4 kB", 0), ("with 300 kB", 300_000)):
            with tempfile.TemporaryDirectory() as folder:
                _conversation(report, name, _ways(url, Path(folder)), already, turns)


def _conversation(report: Report, name: str, ways: dict[str, _Way], already: int, turns: int) -> None:
    messages: Chat = [{"role": "system", "content": "Be brief."}]
    for n in range(already // 4_000):
        messages.append({"role": "user", "content": f"Part {n}: " + WORDS * 64})
        messages.append({"role": "assistant", "content": f"Noted {n}."})
    for n in range(turns):
        messages.append({"role": "user", "content": f"Turn {n}: " + WORDS * 64})
        for way in (list(ways.values()) * 2)[n % 3 : n % 3 + 3]:  # in turns, none always after the same
            way.turn(messages)
        messages.append({"role": "assistant", "content": "".join(PIECES)})
    for way in ways.values():
        way.close()
    plain, recorded, by_hand = (ways[each] for each in ("plain", "transport", "by hand"))
    later = slice(1, None)  # the first of all connects, and imports

    def more(way: _Way, kind: str) -> float:
        pairs = zip(getattr(plain, kind)[later], getattr(way, kind)[later], strict=True)
        return median(b - a for a, b in pairs)

    report.row(
        name,
        {
            "ms more until the first token": more(recorded, "first"),
            "ms of CPU more until then": more(recorded, "first_cpu"),
            "ms of CPU more by hand": more(by_hand, "first_cpu"),
            "ms without": median(plain.first[later]),
            "ms more in the first turn": recorded.first[0] - plain.first[0],
            "times the CPU by hand": sum(recorded.cpu[later]) / sum(by_hand.cpu[later]),
            "times the CPU without turnlog": sum(recorded.cpu[later]) / sum(plain.cpu[later]),
        },
        at_most={"ms more until the first token": TTFT, "times the CPU by hand": CPU},
    )


@bench()
def cache(report: Report, *, turns: int = 30) -> None:
    """What is read from prompt caches over turnlog's HTTP client with a budget, beside turnlog's own loop."""
    fake = module("fake_server", shared("oracle"))
    runs = module("framework_runs", TESTS, TESTS / "frameworks")
    for api in ("openai-chat", "openai-responses", "anthropic", "google"):
        shares = {}
        for name in ("transport", "own loop"):
            made = runs.Bench(lambda **options: fake.FakeServer(**options).start())
            made.serve(context_limit=runs.WINDOW)
            with tempfile.TemporaryDirectory() as folder:
                if name == "transport":
                    python, store = Path(sys.executable), Path(folder) / "t.db"
                    run = made.run(python, "plain_sdks", api, store, mode="budget", turns=turns)
                else:
                    _own_loop(api, made.server.url, Path(folder) / "own.db", turns)
                    run = runs.Run({}, made.server.requests)
            made.server.stop()
            made.close()
            bill = runs.bill(run)
            shares[name] = 100 * bill.cached / bill.input
            report.say(f"  {api}, {name}: {len(run.answered)} answers, {bill.input:,} tokens read")
        report.row(
            api,
            {"% over the client": shares["transport"], "% in turnlog's loop": shares["own loop"],
             "points less": shares["own loop"] - shares["transport"]},
            at_most={"points less": POINTS},
        )  # fmt: skip


def _own_loop(api: str, url: str, store: Path, turns: int) -> None:
    import anthropic
    import openai
    from google import genai

    import turnlog
    from turnlog.runners import SdkRunner

    files = module("file_tasks", TESTS / "frameworks" / "programs")

    def read_file(path: str) -> str:
        """Read a file of the project."""
        return str(files.contents(path, 4_000))

    models: dict[str, Any] = {
        "openai-chat": ("gpt-4o", {}),
        "openai-responses": ("gpt-5", {"store": False, "include": ["reasoning.encrypted_content"]}),
        "anthropic": (
            "claude-sonnet-4-6",
            {"max_tokens": 4_000, "thinking": {"type": "enabled", "budget_tokens": 2_000}},
        ),
        "google": ("gemini-2.5-flash", {}),
    }
    model, settings = models[api]
    runner = SdkRunner(
        openai=openai.AsyncOpenAI(base_url=url + "/v1", api_key="k"),
        anthropic=anthropic.AsyncAnthropic(base_url=url, api_key="k"),
        google=genai.Client(api_key="k", http_options={"base_url": url}),
    )
    target = turnlog.target(api, model, **settings)
    with turnlog.open("own", store=store, target=target, budget=8_000, system=files.SYSTEM) as session:
        for task in files.tasks(turns):
            turnlog.run(session, task, runner, tools=[read_file])
