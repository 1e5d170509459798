"""The most that any policy could reach on the shared trimmer bench, were it to know all requests beforehand.

Each request is given every view that is legal and within the budget: system text, task, the newest user message and
the newest step whole; older steps left out from the oldest on; of the results that are left, some masked. What a view
begins with of the one before it is added up along the best way through all of them. So these are bounds of every
strategy that masks the oldest results, or those of any steps, and then slides; what was masked or left out may even
come back. Nothing is touched before a view is over the budget: doing so earlier was found to add 0.007 at most.

Printed are the bounds with the line of the strategy `mask` in the place of a masked result and with the reference's
`[cleared]`; above them what `mask` and the reference reach, and how many of their views are over the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType

from harness import Report, bench
from quality.trimmers import Adapter, Neutral, loaded, row, to_chat, to_neutral
from turnlog.log.budget import Strategy
from turnlog.requests.fit import fit

Line = Callable[[Neutral], str]
"""What stands for a masked result."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A user's word or a step as a view has it: the characters that the bench counts, and its text."""

    size: int
    text: str


@dataclass
class Node:
    """Views that begin alike: the most that one of them has come to, and how they go on."""

    most: float = -1.0
    after: dict[Shown, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Walk:
    """A view as far as it is put together, beside those of the request before.

    `same` are those that begin as it does, if any; `rivals` what some of them have come to, each with the characters
    that it shares: the more it shares, the less it has come to, or another takes its place.
    """

    same: Node | None
    length: int = 0
    rivals: tuple[tuple[float, int], ...] = ()

    def then(self, shown: Shown) -> Walk:
        """With one more block."""
        length = self.length + len(shown.text) + 1
        if self.same is None:
            return Walk(None, length, self.rivals)
        found = [(node.most, self.length + shared(shown.text, other.text)) for other, node in self.same.after.items()]
        rivals: list[tuple[float, int]] = []
        for most, same in sorted((*self.rivals, *found), reverse=True):
            if not rivals or same > rivals[-1][1]:
                rivals.append((most, same))
        return Walk(self.same.after.get(shown), length, tuple(rivals))

    @property
    def total(self) -> float:
        """The most that the view can come to."""
        return max(most + same / (self.length - 1) for most, same in self.rivals)


@cache
def shared(one: str, other: str) -> int:
    """The characters that two texts begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class Bound:
    """All legal views within a budget, request by request."""

    def __init__(self, scenario: ModuleType, budget: int, line: Line, oldest_first: bool) -> None:
        self.room = 4 * budget + 3  # in characters; the bench rounds down
        self.oldest_first = oldest_first
        histories = list(scenario.conv())
        self.counts = [sum(message["role"] != "tool" for message in history) for history in histories]
        self.blocks: list[list[Shown]] = []  # whole, and masked where that is shorter
        self.words: list[int] = []
        starts = [i for i, message in enumerate(histories[-1]) if message["role"] != "tool"]
        for n, (start, end) in enumerate(zip(starts, [*starts[1:], None], strict=True)):
            block = histories[-1][start:end]
            masked = [{**m, "text": min(line(m), m["text"], key=len)} if m["role"] == "tool" else m for m in block]
            ways = [block] if masked == block else [block, masked]
            self.blocks.append([Shown(scenario.toks(way * 4), scenario.ser(way)) for way in ways])
            self.words += [n] * (block[0]["role"] == "user")

    def best(self) -> float:
        """The best mean share. What fits is left as it is until a view does not."""
        wholes = [sum(block[0].size for block in self.blocks[:count]) for count in self.counts]
        forced = next(i for i, whole in enumerate(wholes) if whole > self.room)
        counted = 0
        before = Node(0.0)
        at = before
        for block in self.blocks[: self.counts[forced - 1]]:
            at.after[block[0]] = at = Node(0.0)
        for count in self.counts[forced:]:
            views = self._views(count, before)
            if views.after:  # else the request is refused, and the next is held against the view before it
                before = views
                counted += 1
        return before.most / counted

    def _views(self, count: int, before: Node) -> Node:
        """All views of the first so many blocks."""
        newest, word = count - 1, max(n for n in self.words if n < count)
        least = [0] * (count + 1)
        for n in range(newest, 1, -1):
            least[n] = least[n + 1] + (self.blocks[n][0] if n == newest else self.blocks[n][-1]).size

        def grow(node: Node, n: int, walk: Walk, left: int, free: bool) -> None:
            """Add to a node what may stand from block `n` on; `free` says whether results may be masked there."""
            if n == count:
                node.most = max(node.most, walk.total)
                return
            for shown in self.blocks[n] if free and n < newest else self.blocks[n][:1]:
                if left - shown.size >= least[n + 1]:
                    whole = len(self.blocks[n]) > 1 and shown is self.blocks[n][0]
                    after = node.after.setdefault(shown, Node())
                    grow(after, n + 1, walk.then(shown), left - shown.size, free and not (self.oldest_first and whole))
                    node.most = max(node.most, after.most)

        root = Node()
        for cut in range(2, max(count, 3)):
            kept = [self.blocks[n][0] for n in (0, 1, *([word] if 1 < word < cut else []))]
            left = self.room - sum(shown.size for shown in kept)
            if left < least[cut]:
                continue
            path, walk = [root], Walk(before)
            for shown in kept:
                path.append(path[-1].after.setdefault(shown, Node()))
                walk = walk.then(shown)
            grow(path[-1], cut, walk, left, True)
            for node in path:
                node.most = max(node.most, path[-1].most)
        return root


def lines_of_mask(scenario: ModuleType, history: Sequence[Neutral]) -> Line:
    """What the strategy `mask` puts in the place of each result."""
    fitted = fit(
        {"messages": [to_chat(message) for message in history]},
        max_tokens=scenario.toks(history) - 1,
        model="gpt-4o",
        provider="openai-chat",
        strategy=Strategy(steps=("mask",), protect=0.0, goal=0.01),
        counter=lambda messages: int(scenario.toks([to_neutral(message) for message in messages])),
    )
    shown = [to_neutral(message) for message in fitted.body["messages"]]
    texts = {message["call_id"]: message["text"] for message in shown if message["role"] == "tool"}
    return lambda result: str(texts[result["call_id"]])


@bench(quick={"budgets": "1500"})
def trimmers_bound(report: Report, *, budgets: str = "1500,2000") -> None:
    """The most that any policy could reach on the shared trimmer bench. 2,000 takes minutes, more takes far longer."""
    scenario, reference = loaded()
    *_, history = scenario.conv()
    lines: dict[str, Line] = {"line of `mask`": lines_of_mask(scenario, history), "[cleared]": lambda _: "[cleared]"}
    for budget in map(int, budgets.split(",")):
        report.row(f"@{budget} reference clearing", row(scenario, reference.clear(budget, 0.5), budget))
        report.row(f"@{budget} turnlog mask", row(scenario, Adapter("mask", budget, scenario), budget))
        for name, line in lines.items():
            bounds = (Bound(scenario, budget, line, oldest_first).best() for oldest_first in (True, False))
            report.row(f"@{budget} at most, {name}", dict(zip(("oldest first", "any steps"), bounds, strict=True)))
