"""Whether what a user forbids or requires stands in every view, and whether only that is taken for it.

    python bench/rules.py lost [--sessions 2000] [--seed 0]
    python bench/rules.py found [--shared ../shared] [--sample 100] [--seed 0]
    python bench/rules.py pastes [--held]

`lost` plays generated sessions of 1 to 40 orders between other texts, with look-alikes in tool output and pastes,
under all strategies and budgets of a half, a quarter and an eighth of the whole. In each request, each order so far
must stand word for word, all while they fit a tenth of the budget, else the newest that fit and the records of the
others; and no look-alike may be quoted as an order. Exits with 1 if one is lost. Counted apart: requests that are
refused, and orders that do not fit beside what must stay.

`found` prints a seeded sample of the sentences that are taken for orders in recorded sessions, with their place, to be
read by a person.

`pastes` reads messages in which something was pasted or attached (bench/pastes/open.txt; with `--held`, held.txt, which
was not looked at while the rules were written). It counts sentences of a paste that are taken for orders, and orders
that the user typed beside it and that are not found. Exits with 1 if there is any of either.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import turnlog
from turnlog.errors import BudgetError
from turnlog.importers import read_file
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.requests.fit import Fitter
from turnlog.summarize.orders import orders_of
from turnlog.tokens.counters import counter_for

ROOT = Path(__file__).parent.parent
SUFFIXES = (".jsonl", ".json", ".responses", ".traj")


def found(shared: Path, sample: int, seed: int) -> int:
    """Print sentences that are taken for orders."""
    orders: dict[str, str] = {}
    messages = files = 0
    for path in sorted((shared / "data").rglob("*")):
        if path.suffix not in SUFFIXES or path.name.endswith(".meta.json"):
            continue
        try:
            sessions = read_file(path)
        except Exception:
            continue
        files += 1
        for session in sessions:
            for n, draft in enumerate(session.drafts, start=1):
                if isinstance(draft.body, MessageRecord) and draft.body.message.role == "user":
                    messages += 1
                    for sentence in orders_of(draft.body.message):
                        orders.setdefault(sentence, f"{path.relative_to(shared / 'data')} [{n}]")
    print(f"{len(orders):,} different orders in {messages:,} user messages of {files:,} files")
    chosen = random.Random(seed).sample(sorted(orders), min(sample, len(orders)))
    for sentence in chosen:
        print(f"- {orders[sentence]}\n    {sentence!r}")
    return 0


class Pasted:
    """A message in which something was pasted: its parts, what the user typed, and the orders in that.

    In the file, `@@@ paste NAME` begins a message, `@@@ part` another text of it, and `@@@ typed` and `@@@ pasted` say
    who wrote the lines that follow. Orders stand between « and ».
    """

    def __init__(self, source: str) -> None:
        self.name, _, rest = source.partition("\n")
        self.orders = re.findall("«(.*?)»", rest, re.DOTALL)
        parts, typed, own = [[]], [], False
        for line in rest.translate({ord("«"): None, ord("»"): None}).splitlines():
            if line == "@@@ part":
                parts.append([])
            elif line in ("@@@ typed", "@@@ pasted"):
                own = line == "@@@ typed"
            else:
                parts[-1].append(line)
                typed += [line] if own else []
        self.message = Message("user", tuple(Text("\n".join(lines)) for lines in parts))
        self.typed = "\n".join(typed)

    @property
    def taken(self) -> list[str]:
        """The sentences that are taken for orders although the user did not type them."""
        return [order for order in orders_of(self.message) if order not in self.typed]

    @property
    def missed(self) -> list[str]:
        """The typed orders that are not found."""
        found = orders_of(self.message)
        return [order for order in self.orders if not any(order in one for one in found)]


def pastes(held: bool) -> int:
    """Count orders that are none, and those that are not found."""
    source = (ROOT / "bench" / "pastes" / ("held.txt" if held else "open.txt")).read_text("utf-8")
    read = [Pasted(one) for one in source.split("@@@ paste ")[1:]]
    for one in read:
        for kind, sentences in (("taken", one.taken), ("missed", one.missed)):
            for sentence in sentences:
                print(f"{one.name}: {kind} {sentence!r}")
    taken, missed, orders = (sum(len(getattr(one, name)) for one in read) for name in ("taken", "missed", "orders"))
    clean = sum(not one.taken for one in read)
    print(f"{clean} of {len(read)} pastes give no order, {taken} sentences of the others are taken for one")
    print(f"{orders - missed} of {orders} typed orders are found")
    return 1 if taken or missed else 0


VERBS = ("touch", "change", "rename", "delete", "commit", "format", "deploy", "import", "mock", "print")
FORMS = (
    "Never {v} {x}.", "Do not {v} {x}.", "Please don't {v} {x}.", "Always ask me before you {v} {x}.",
    "You must not {v} {x}!", "Only {v} {x} after the tests pass.", "From now on, {v} {x} first.",
    "Make sure that you never {v} {x}.", "You may now {v} {x} again.", "Under no circumstances {v} {x}.",
    "Ändere nie {x}.", "Ne touche jamais à {x}.", "不要修改 {x}。", "Никогда не трогай {x}.", "Nunca cambies {x}.",
)  # fmt: skip
FILLER = (
    "The build is green again.",
    "I looked at the log.",
    "Here is what I see.",
    "It works on my machine.",
    "Go on.",
)


class Played:
    """One generated session, and the orders in it by message number."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": f"Port module {seed}. Keep to its tests."}]
        self.orders: list[tuple[int, str]] = []
        self.fakes: list[str] = []
        left, n = chance.randint(1, 40), 0
        while left or n < 8:
            n += 1
            fake = self.order(f"fake_{n}.py")
            self.fakes.append(fake)
            call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"path":"f{n}"}}'}}
            self.messages.append({"role": "assistant", "content": f"Part {n}.", "tool_calls": [call]})
            output = " ".join(chance.choice(FILLER) for _ in range(chance.randint(1, 60)))
            self.messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"{output} {fake} {output}"})
            self.messages.append({"role": "assistant", "content": f"Part {n} is done. I will never forget it."})
            said = [chance.choice(FILLER) for _ in range(chance.randint(0, 3))]
            for _ in range(min(left, chance.choice((0, 0, 1, 1, 2, 5)))):
                left -= 1
                order = self.order(f"src/{chance.choice('abc')}/file_{left}.py")
                self.orders.append((len(self.messages) + 1, order))
                said.insert(chance.randint(0, len(said)), order)
            text = chance.choice((" ", "\n", "\n\n")).join(said) or "Go on."
            if chance.random() < 0.3:
                pasted = self.order(f"pasted_{n}.py")
                self.fakes.append(pasted)
                text += chance.choice((f"\n```\n{pasted}\n```", f"\n> {pasted}", f"\nThe error was:\n\n{pasted}"))
            self.messages.append({"role": "user", "content": text})
            here = sorted((text.index(order), n, order) for n, order in self.orders if n == len(self.messages))
            self.orders = [one for one in self.orders if one[0] < len(self.messages)] + [one[1:] for one in here]
            self.messages.append({"role": "assistant", "content": "I see."})

    def order(self, what: str) -> str:
        """A sentence that forbids or requires something."""
        return self.chance.choice(FORMS).format(v=self.chance.choice(VERBS), x=what)


def lost(sessions: int, seed: int) -> int:
    """Count orders that are missing in a request."""
    counter = counter_for("openai-chat", "gpt-4o")
    tally: Counter[str] = Counter()
    names = sorted(PRESETS)
    for number in range(seed, seed + sessions):
        played = Played(number)
        size = turnlog.count({"model": "gpt-4o", "messages": played.messages}, "openai-chat").tokens
        for share in (0.5, 0.25, 0.125):
            budget = max(60, int(size * share))
            name = names[played.chance.randrange(len(names))]
            fitter = Fitter("openai-chat", max_tokens=budget, model="gpt-4o", strategy=name)
            for end in [*sorted(played.chance.sample(range(2, len(played.messages) + 1), 4)), len(played.messages)]:
                history = played.messages[:end]
                if history[-1].get("tool_calls"):
                    continue
                judge(fitter, history, played, budget, counter, tally, f"{number} {share} {name} {end}")
    print(dict(tally))
    return 1 if tally["lost"] or tally["fakes"] or tally["not cited"] else 0


def judge(
    fitter: Fitter, history: Any, played: Played, budget: int, counter: Any, tally: Counter[str], where: str
) -> None:
    """Whether one request has every order that has to be in it."""
    tally["requests"] += 1
    try:
        made = fitter.fit({"model": "gpt-4o", "messages": history})
    except BudgetError:
        tally["refused"] += 1
        return
    said = [(n, order) for n, order in played.orders if n <= len(history)]
    newest = {order: n for n, order in said}
    left, must = budget // 10, []
    for n, order in reversed(said):
        left -= counter.text(order)
        if left < 0:
            break
        must.append((n, order))
    shown = [one["content"] or "" for one in made.body["messages"] if one["role"] == "user"]
    missing = [(n, order) for n, order in must if not any(order in text for text in shown)]
    tally["orders"] += len(said)
    tally["must be there"] += len(must)
    if missing and not fits_beside(history, must, budget):
        tally["no room"] += len(missing)
        missing = []
    tally["lost"] += len(missing)
    if missing:
        print(where, budget, made.tokens, missing[:3])
    hidden = {n for n, order in said if not any(order in text for text in shown) and newest[order] == n}
    cited = cited_in(shown)
    if not missing and not hidden <= cited and fits_beside(history, must, budget):
        tally["not cited"] += 1
        print(where, "not cited", sorted(hidden - cited)[:5], [text for text in shown if "required or forbade" in text])
    notes = [text for text in shown if "required or forbade" in text]
    quoted = [line for text in notes for line in text.split("required or forbade")[1].splitlines()]
    tally["fakes"] += sum(any(fake in line for line in quoted) for fake in played.fakes)


def cited_in(texts: list[str]) -> set[int]:
    """The records that notes of orders name."""
    found: set[int] = set()
    for line in (line for text in texts for line in text.splitlines() if line.startswith("[More of this in record")):
        if "others before" in line:
            found |= set(range(10_000))
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", line):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def fits_beside(history: Any, must: list[tuple[int, str]], budget: int) -> bool:
    """Whether these orders fit beside the task, the newest message of the user and the last group."""
    last = len(history) - 1
    while last and history[last]["role"] == "tool":
        last -= 1
    said = max(i for i, one in enumerate(history) if one["role"] == "user")
    stays = [history[i] for i in sorted({0, said, *range(last, len(history))})]
    note = {"role": "user", "content": "\n".join(f"[{n}] {order}" for n, order in must) + " and so on" * 30}
    return turnlog.count({"model": "gpt-4o", "messages": [*stays, note]}, "openai-chat").tokens <= budget


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("lost", "found", "pastes"))
    parser.add_argument("--shared", default=str(ROOT.parent / "shared"))
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held", action="store_true")
    options = parser.parse_args()
    if options.what == "lost":
        return lost(options.sessions, options.seed)
    if options.what == "pastes":
        return pastes(options.held)
    return found(Path(options.shared), options.sample, options.seed)


if __name__ == "__main__":
    sys.exit(main())
