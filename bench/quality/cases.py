"""Sessions with rules, decisions and facts, played through many compactions: what views still say of them.

A session says its rules, decisions and facts before the first compaction, most of them at once; some are amended,
withdrawn or reversed after later ones. The rest is work without any matter. How much is said in a turn follows the
budget, so that a small one is compacted as often as a large one.

Judged by the exact text of a request, after so many compactions:

- A rule is said if its words are there. Rules that fit in a tenth of the budget, the newest first, have to be there; of
  others, a note has to name the record. Rules that no longer hold and the user's decisions share this room. Rules that
  the user tells as something that is so ("Ann eats no fish") are counted by themselves.
- A decision is said if a line has both its subject and what was chosen; a fact if a line has both owner and value.
- Wrong: a rule that was amended or withdrawn without the words that did it; a decision that was reversed in a view that
  does not say the new one, or under "## Decided".
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

import turnlog
from quality.case_kinds import KINDS, NAMES, WORDS, Choice
from turnlog.errors import BudgetError
from turnlog.log.actions import ACTIONS
from turnlog.log.records import Decision
from turnlog.tokens.counters import counter_for

TIMES = (2, 4, 8)
TARGET = turnlog.target("openai-chat", "gpt-4o")
COUNTER = counter_for("openai-chat", "gpt-4o")
SHARE = 10  # a tenth of the budget is for rules
SMALL, LARGE = 40, 9  # of the budget: the work of a turn before the first compaction, and after it
MOST_TURNS = 250
SENTENCES = 3  # of an answer without any matter

SAID_OF_CHOICES = (
    "I decided to use {choice} for the {subject}, because {reason}.",
    "For the {subject} I'm going with {choice}: {reason}.",
    "Decision on the {subject}: {choice}, since {reason}.",
    "We'll use {choice} for the {subject} because {reason}.",
    "I chose {choice} for the {subject}; {reason}.",
)
SAID_OF_REVERSALS = (
    "I decided to change the {subject} to {choice} instead of {old}, because {reason}.",
    "For the {subject} I'm now going with {choice}, not {old}: {reason}.",
    "We'll use {choice} for the {subject} after all and drop {old}, because {reason}.",
)
USER_CHOOSES = (
    "Let's go with {choice} for the {subject}, because {reason}.",
    "For the {subject}, take {choice}: {reason}.",
    "My decision on the {subject} is {choice}, as {reason}.",
)
USER_REVERSES = (
    "Actually, let's go with {choice} for the {subject} instead of {old}, because {reason}.",
    "I changed my mind about the {subject}: {choice}, not {old}, because {reason}.",
    "Final answer on the {subject}: {choice}. Forget {old}.",
)
PROSE = (
    "I talked to {name} yesterday and we went through all of this again.",
    "There is a lot going on at the moment and I will be away on some days.",
    "The meeting about the {word} part was long, and most of it was about other things.",
    "By the way, lunch was moved to half past twelve and the room is a different one.",
    "{name} sent greetings and asked how the {word} part is coming along.",
)
PASTES = ("The log says:\n\n", "Here is the output:\n\n", "The list I got:\n\n")


class Rule(Struct):
    """A rule, the tokens of the words with which it was said, its record, and the rule that took its place.
    `states`: it has no words of an order. Not `judged`: a decision of the user, which shares the room of rules."""

    text: str
    tokens: int
    record: int
    replaced_by: str = ""
    states: bool = False
    judged: bool = True


class Held(Struct):
    """A decision in force, or a fact: `subject` and `choice` have to stand in one line. `old` no longer holds."""

    subject: str
    choice: str
    old: str = ""


class Told(Struct):
    """What one view says: so many of so many."""

    due: int = 0
    due_said: int = 0
    rules: int = 0
    rules_said: int = 0
    rules_named: int = 0
    lost: int = 0
    decisions: int = 0
    decisions_said: int = 0
    facts: int = 0
    facts_said: int = 0
    statements: int = 0
    statements_said: int = 0
    wrong: int = 0
    missing: tuple[str, ...] = ()


class Case:
    """One session of a kind, from a seed, under a budget."""

    def __init__(self, kind: str, seed: int, budget: int) -> None:
        self.kind, self.budget, self.name = KINDS[kind], budget, f"{kind} {seed} {budget}"
        self.chance = random.Random(f"{kind} {seed}")
        settings = turnlog.Settings(strategy="auto")
        self.session = turnlog.open(self.name, store=":memory:", target=TARGET, budget=budget, settings=settings)
        self.rules: list[Rule] = []
        self.statements: list[str] = []
        self.decisions: list[Held] = []
        self.facts: list[Held] = []
        self.later = [self._draw(*change) for change in self.chance.sample(self.kind.changes, len(self.kind.changes))]
        self.reversals: list[tuple[Choice, bool]] = []
        self.refused = self.calls = self.compactions = 0

    # -- what is said --------------------------------------------------------------------------------

    def _draw(self, *texts: str) -> list[str]:
        """The texts with each mark replaced by a value, the same in all."""
        chance = self.chance
        values = {
            "n": str(chance.randint(11, 97)),
            "word": chance.choice(WORDS),
            "name": chance.choice(NAMES),
            "id": f"{chance.randrange(16**7):07x}",
        }
        return [text.format_map(values) for text in texts]

    def _filler(self, lines: tuple[str, ...], tokens: float) -> list[str]:
        """Lines without any matter, about so many tokens."""
        drawn: list[str] = []
        left = 3.5 * tokens  # characters
        while left > 0:
            drawn += self._draw(self.chance.choice(lines))
            left -= len(drawn[-1])
        return drawn

    def rule_messages(self) -> Iterator[tuple[list[str], str]]:
        """Rules, and the message that says them: some alone, some in lists, some in the middle of long messages."""
        texts = [self._draw(rule)[0] for rule in self.chance.sample(self.kind.rules, 5)]
        self.statements = [self._draw(rule)[0] for rule in self.kind.statements][:2]
        texts += [*self.statements, *(before for before, _ in self.later)]
        self.chance.shuffle(texts)
        request = self._draw(self.chance.choice(self.kind.requests))[0]
        yield texts[:2], "Two rules for this work:\n" + "\n".join(f"- {text}" for text in texts[:2])
        yield texts[2:4], f"{request}\nRule one: {texts[2]}\nRule two: {texts[3]}"
        yield texts[4:5], f"{texts[4]} {request}"
        yield texts[5:6], f"{request} {texts[5]}"
        prose = self._filler(PROSE, self.budget / SMALL)
        yield texts[6:7], " ".join([*prose, texts[6], *reversed(prose), request])
        pasted = "\n".join(self._filler(self.kind.lines, self.budget / SMALL))
        yield texts[7:8], f"{texts[7]} {self.chance.choice(PASTES)}{pasted}"
        yield texts[8:9], f"Oh right, key rule: {texts[8]} Non-negotiable."
        yield texts[9:], "\n\n".join([request, *texts[9:]])

    def begin(self) -> Iterator[None]:
        """Say the task, and the rules, decisions and facts, turn by turn."""
        chance = self.chance
        self.user(self._draw(self.kind.task)[0])
        self.work(SMALL)
        choices = chance.sample(self.kind.choices, len(self.kind.choices))
        choices = [Choice(*self._draw(*msgspec.structs.astuple(one))) for one in choices]
        facts = [self._draw(fact.owner, fact.value, fact.sentence) for fact in self.kind.facts]
        chance.shuffle(facts)
        for place, (rules, text) in enumerate(self.rule_messages()):
            if place < len(facts) and place % 3 == 0:
                text = f"{facts[place][2]} {text}"
            record = self.user(text)
            self.rules += [Rule(rule, _tokens(rule, text), record, states=rule in self.statements) for rule in rules]
            extra = output = ""
            if place < len(choices):
                extra = self.choose(choices[place], by_user=place % 2 == 1)
            if place < len(facts):
                self.facts.append(Held(*facts[place][:2]))
                if place % 3 == 1:
                    extra = f"{extra} {facts[place][2]}"
                elif place % 3 == 2:
                    output = facts[place][2]
            self.work(SMALL, extra.strip(), output)
            yield

    def choose(self, choice: Choice, *, by_user: bool) -> str:
        """State a decision, as the user or for the agent's next answer. Two of three are reversed later."""
        forms = USER_CHOOSES if by_user else SAID_OF_CHOICES
        said = self.chance.choice(forms).format(choice=choice.first, subject=choice.subject, reason=choice.reason)
        self.decisions.append(Held(choice.subject, choice.first))
        if len(self.reversals) < 2:
            self.reversals.append((choice, by_user))
        if not by_user:
            return said
        self.rules.append(Rule(said, COUNTER.text(said), self.user(said), judged=False))
        return ""

    def change(self) -> None:
        """Amend or withdraw a rule, or reverse a decision."""
        if self.later and (self.chance.random() < 0.6 or not self.reversals):
            before, after = self.later.pop()
            record = self.user(after)
            next(rule for rule in self.rules if rule.text == before).replaced_by = after
            self.rules.append(Rule(after, COUNTER.text(after), record))
            self.work(SMALL)
        elif self.reversals:
            choice, by_user = self.reversals.pop()
            said = self.chance.choice(USER_REVERSES if by_user else SAID_OF_REVERSALS).format(
                choice=choice.second, subject=choice.subject, old=choice.first, reason=choice.second_reason
            )
            held = next(held for held in self.decisions if held.subject == choice.subject)
            held.choice, held.old = choice.second, choice.first
            if by_user:
                self.rules.append(Rule(said, COUNTER.text(said), self.user(said), judged=False))
            self.work(SMALL, "" if by_user else said)

    # -- how it is played ----------------------------------------------------------------------------

    def user(self, text: str) -> int:
        """A message of the user; returns its record."""
        return self.session.user(text).n

    def work(self, share: int, said: str = "", output: str = "") -> None:
        """A call with its result and the agent's answer, about this share of the budget, each with a sentence."""
        self.ask()
        self.calls += 1
        (argument,) = self._draw(self.kind.argument)
        call = turnlog.ToolCall(f"call_{self.calls}", self.kind.tool, {"what": argument})
        self.session.add(turnlog.Message("assistant", (call,)))
        lines = self._filler(self.kind.lines, 0.8 * self.budget / share)
        lines.insert(self.chance.randint(0, len(lines)), output)
        self.session.tool_result(call, "\n".join(filter(None, lines)))
        self.ask()
        report = self._filler(self.kind.reports, 0.2 * self.budget / share)[:SENTENCES]
        report.insert(self.chance.randint(0, len(report)), said)
        self.session.assistant(" ".join(filter(None, report)))

    def ask(self) -> None:
        """Make the next request."""
        before = next(self.session.log.newest()).n
        try:
            self.session.request()
        except BudgetError:
            self.refused += 1
        for record in self.session.log.records(before + 1):
            action = ACTIONS.get(record.body.action) if isinstance(record.body, Decision) else None
            self.compactions += action is not None and action.shrinks and action.hides

    def turns(self) -> Iterator[None]:
        """The session, turn by turn."""
        yield from self.begin()
        changed = 0
        for _ in range(MOST_TURNS):
            if changed != self.compactions:
                changed = self.compactions
                self.change()
            self.user(self._draw(self.chance.choice(self.kind.requests))[0])
            self.work(LARGE)
            yield

    def play(self) -> Iterator[tuple[int, Told]]:
        """What views say after so many compactions."""
        due = [*TIMES]
        with self.session:
            for _ in self.turns():
                while due and self.compactions >= due[0]:
                    yield due.pop(0), self.judge()
                if not due:
                    return

    # -- what a view says ----------------------------------------------------------------------------

    def judge(self) -> Told:
        """What the next request says."""
        self.user("Go on.")
        told = Told()
        try:
            body = self.session.request().body
        except BudgetError:
            self.refused += 1
            return told
        texts = [_text(message) for message in body["messages"]]
        lines = [line for text in texts for line in text.splitlines()]
        view = _plain("\n".join(texts))
        self._judge_rules(told, view, _named(lines))
        told.decisions, told.facts = len(self.decisions), len(self.facts)
        lower = [line.lower() for line in lines]
        missing = list(told.missing)
        for held in self.decisions:
            is_said = any(_has(line, held.subject, held.choice) for line in lower)
            told.decisions_said += is_said
            missing += [] if is_said else [f"decision: {held.subject}: {held.choice}"]
            if held.old and self._holds_old(lines, held, is_said):
                told.wrong += 1
                missing.append(f"wrong: {held.subject}: {held.old}, now {held.choice}")
        for held in self.facts:
            is_said = any(_has(line, held.subject, held.choice) for line in lower)
            told.facts_said += is_said
            missing += [] if is_said else [f"fact: {held.subject}: {held.choice}"]
        told.missing = tuple(missing)
        return told

    def _judge_rules(self, told: Told, view: str, named: set[int]) -> None:
        left, missing = self.budget // SHARE, []
        for rule in reversed(self.rules):
            left -= rule.tokens
            if not rule.judged:
                continue
            is_said = _plain(rule.text) in view
            if rule.replaced_by:
                if is_said and _plain(rule.replaced_by) not in view:
                    told.wrong += 1
                    missing.append(f"wrong: {rule.text}")
                continue
            if rule.states:
                told.statements += 1
                told.statements_said += is_said
                continue
            told.rules += 1
            told.rules_said += is_said
            told.rules_named += not is_said and rule.record in named
            told.due += left >= 0
            told.due_said += left >= 0 and is_said
            if not is_said:
                kind = "due" if left >= 0 else "named" if rule.record in named else "lost"
                missing.append(f"{kind}: [{rule.record}] {rule.text}")
            told.lost += not is_said and rule.record not in named
        told.missing = tuple(missing)

    def _holds_old(self, lines: list[str], held: Held, is_said: bool) -> bool:
        """Whether a view says a choice that no longer holds as if it did."""
        section = ""
        for line in lines:
            section = line if line.startswith("## ") else section
            if _has(line.lower(), held.subject, held.old) and held.choice.lower() not in line.lower():
                if not is_said or section == "## Decided":
                    return True
        return False


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _tokens(rule: str, text: str) -> int:
    """The tokens of a rule with the words before it that belong to its sentence: "Rule one:", a bullet."""
    before = re.split(r"[.!?] |(?<=[.!?])\n|\n\n", text[: text.index(rule)])[-1]
    return COUNTER.text(f"{before}{rule}")


def _plain(text: str) -> str:
    return " ".join(text.split())


def _has(line: str, *words: str) -> bool:
    return all(word.lower() in line for word in words)


def _named(lines: list[str]) -> set[int]:
    """The records that notes of rules name."""
    found: set[int] = set()
    for line in lines:
        if line.startswith(("[More of this in record", "[The user's rules: record")):
            if "others before" in line:
                found |= set(range(10_000))
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", line):
                found |= set(range(int(first), int(last or first) + 1))
    return found


def shares(views: list[Told]) -> dict[str, float]:
    """What these views say together, in percent, and how often they say what no longer holds. `rules due` are those
    that fit in a tenth of the budget; a rule that is neither said nor named is lost."""

    def percent(said: str, of: str) -> float:
        whole = sum(getattr(told, of) for told in views)
        return round(100 * sum(getattr(told, said) for told in views) / whole, 1) if whole else 100.0

    return {
        "views": len(views),
        "% of rules due": percent("due_said", "due"),
        "% of all rules": percent("rules_said", "rules"),
        "rules lost": sum(told.lost for told in views),
        "% of rules without words of an order": percent("statements_said", "statements"),
        "% of decisions": percent("decisions_said", "decisions"),
        "% of facts": percent("facts_said", "facts"),
        "wrong": sum(told.wrong for told in views),
    }
