"""Long conversations over all wire formats, through the real SDK clients, against a server with a small window.

    python bench/conversations.py [--turns 60] [--limit 16000] [--each 10] [--shared ../shared]

Each turn has a call and a result of a few hundred tokens; every second turn is streamed, the others are answered whole.
After each tenth turn the session goes over to another provider. The server judges each request as the provider would
and refuses any that has more tokens than its window. Once the session knows the window and has a budget; once it knows
nothing, so that the server refuses requests, and `RetryingRunner` has to mend them. Counted:

- requests that were refused for another reason than their size; requests that were too long and stayed so
- losses: what a request leaves out or moves because of its provider, although the switch to it did not tell of it
- answers that are not those of their turn

Prints the counts; ends with 1 if one of them is not 0.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "clients"), str(ROOT / "tests")]

import turnlog  # noqa: E402
from turnlog.errors import RequestTooLong  # noqa: E402
from turnlog.runners import RetryingRunner  # noqa: E402
from turnlog.stores import MemoryStore  # noqa: E402


class Seen(NamedTuple):
    """What became of a conversation."""

    switches: int
    told: list[turnlog.Loss]
    untold: list[turnlog.Loss]
    wrong: list[str]
    too_long: str


async def converse(session: turnlog.Session, runner: RetryingRunner, targets: list[Any], turns: int, each: int) -> Seen:
    """Live the turns; after every `each` of them comes the next target."""
    told, untold, wrong = list[turnlog.Loss](), list[turnlog.Loss](), list[str]()
    switches, known = 0, set[tuple[Any, ...]]()
    for number in range(turns):
        if number and number % each == 0:
            switches += 1
            losses = session.switch(targets[switches % len(targets)])
            told += losses
            known = {(loss.kind, loss.records) for loss in losses}
            untold += [loss for loss in session.request().losses if (loss.kind, loss.records) not in known]
        text = f'Turn {number}. {"words and more words, " * 30}\nCALL read_file {{"path": "{number}"}}'
        async with session.turn(text) as turn:
            for round_ in ("call", "answer"):
                request = turn.request()
                try:
                    if number % 2:
                        answer = turn.receive(await runner.ask(request), request)
                    else:
                        answer = await turn.areceive(runner.stream(request), request)
                except RequestTooLong as error:
                    return Seen(switches, told, untold, wrong, str(error))
                if round_ == "call":
                    if [call.arguments for call in answer.tool_calls] != [{"path": str(number)}]:
                        wrong.append(f"turn {number}: {answer}")
                    for call in answer.tool_calls:
                        with turn.tool(call) as run:
                            run.result(f"line of {number}\n" * 60)
                elif not answer.text.startswith("RESULTS: ") or f"line of {number}" not in answer.text:
                    wrong.append(f"turn {number}: {answer}")
    return Seen(switches, told, untold, wrong, "")


def main() -> int:
    """Live both conversations, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--limit", type=int, default=16_000)
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    options = parser.parse_args()
    shared = Path(options.shared)
    if not shared.is_dir():
        print("the fake server is absent")
        return 0
    sys.path.insert(0, str(shared / "oracle"))
    from asking import AGENTS, TOOLS
    from fake_server import FakeServer
    from sdk_runners import sdk_runner

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    found = 0
    for budget in (options.limit - 2_000, None):
        server = FakeServer(context_limit=options.limit, verify_signatures="all").start()
        session = turnlog.open("long", target=AGENTS[0], store=MemoryStore(), tools=TOOLS, budget=budget)
        runner = RetryingRunner(sdk_runner(server.url), session)
        seen = asyncio.run(converse(session, runner, list(AGENTS), options.turns, options.each))
        server.stop()
        refused = [one for one in server.requests if one.errors not in ([], ["context"])]
        too_long = sum(one.errors == ["context"] for one in server.requests)
        spoken = Counter(one.provider for one in server.requests)
        decisions = Counter(r.body.action for r in session.log.of_kinds("decision"))  # type: ignore[union-attr]
        asked = f"{options.turns} turns, {len(server.requests)} requests, limit {options.limit}"
        print(f"budget {budget or 'of the model'}: {asked}")
        print(f"  {dict(spoken)}; decisions: {dict(decisions)}")
        sizes = f"too long: {too_long}, not mended: {int(bool(seen.too_long))}"
        print(f"  refused: {len(refused)}; {sizes}; wrong: {len(seen.wrong)}")
        kinds = dict(Counter(loss.kind for loss in seen.told))
        print(f"  {seen.switches} switches told {len(seen.told)} losses {kinds or ''}; untold: {len(seen.untold)}")
        errors = [f"{one.provider}: {one.errors}" for one in refused]
        lines = [*errors, seen.too_long, *seen.wrong, *map(str, seen.untold)]
        for line in list(filter(None, lines))[:10]:
            print(f"    {line:.300}")
        found += len(refused) + len(seen.wrong) + len(seen.untold) + bool(seen.too_long)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
