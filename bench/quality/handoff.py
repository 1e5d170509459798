"""Hand real sessions to the agent programs: what the prompts tell, that no secret is in them, that they are accepted.

Ten shared transcripts, each with 25 planted secrets. A judge that does not know how prompts are made asks each for ten
facts of the session: files changed and used, the task, the last request, what the user forbade, the last words.
`--programs` is a folder in which `npm install @anthropic-ai/claude-code @openai/codex @google/gemini-cli` was run: the
real programs then get every prompt, and talk to the shared fake server.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness import TESTS, Report, bench, module, shared, transcripts
from quality.memory import changed
from turnlog.handoff import Handoff, session_file
from turnlog.handoff import handoff as handed_over
from turnlog.handoff.handoff import MODELS, Program
from turnlog.importers import Imported
from turnlog.log.messages import Message, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import MessageRecord, Record
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore
from turnlog.view.program_prefaces import is_inserted, is_of_program

FORMATS = (
    "claude-code-entire",
    "codex-entire",
    "gemini-entire",
    "swe-agent",
    "mini-swe-agent",
    "pi",
    "cline",
    "openhands",
)
SESSIONS, EACH, LEAST = 10, 5, 25
FACTS, RIGHT, KINDS = 10, 8, 25
TIME = "2026-11-01T10:00:00.000Z"
_ORDER = re.compile(
    r"(?:(?<=[.!?] )|(?m:^))[A-Z][a-z, ']+\b(?:never|do not|don't|always|must|only)\b[^.!?\n]*[.!?\n]", re.IGNORECASE
)


def chosen() -> Iterator[tuple[str, Imported]]:
    """Ten sessions of at least 25 records with ten facts, at most five of a format."""
    number = 0
    for folder in FORMATS:
        taken = 0
        for path, session in transcripts(folder):
            if taken < EACH and number < SESSIONS and len(session.drafts) >= LEAST and len(known(session)) == FACTS:
                taken, number = taken + 1, number + 1
                yield path.relative_to(shared("data")).as_posix(), session


def secrets() -> list[tuple[str, str]]:
    """Texts with a secret in each, and the secret."""
    return [*module("planted", TESTS / "redaction").SECRETS.values()][:KINDS]


def planted(session: Imported) -> list[Draft]:
    """The drafts of a session with secrets of 25 kinds in texts of the user, of results and of answers."""
    drafts = [*session.drafts]
    places = [at for at, one in enumerate(drafts) if isinstance(one.body, MessageRecord) and _texts(one.body.message)]
    for n, (text, _) in enumerate(secrets()):
        at = places[-1 - n * (len(places) - 1) // KINDS]
        body = drafts[at].body
        assert isinstance(body, MessageRecord)
        drafts[at] = Draft(msgspec.structs.replace(body, message=_with(body.message, text)), drafts[at].time)
    return drafts


def _texts(message: Message) -> list[Text]:
    return [part for part in message.parts if isinstance(part, Text)]


def _with(message: Message, secret: str) -> Message:
    parts = [*message.parts]
    at = next(at for at, part in enumerate(parts) if isinstance(part, Text))
    first = parts[at]
    assert isinstance(first, Text)
    parts[at] = Text(f"{first.text}\n{secret}\n")
    return msgspec.structs.replace(message, parts=tuple(parts))


def known(session: Imported) -> list[tuple[str, str]]:
    """The facts of a session as it was, without secrets."""
    return facts([Record(n, draft.time, draft.body) for n, draft in enumerate(session.drafts, 1)])


def facts(records: list[Record]) -> list[tuple[str, str]]:
    """Up to ten facts that whoever goes on should know, each with its kind; texts are without their spaces."""
    files = sorted(changed(records).items(), key=lambda one: -one[1][1])
    said = [(record.n, record.message) for record in records if record.message is not None]
    people = [text_of(message) for _, message in said if message.role == "user" and _is_human(message)]
    answers = [text_of(message) for _, message in said if message.role == "assistant" and text_of(message).strip()]
    used = _used(records)
    orders = [one.strip() for text in people for one in _ORDER.findall(text) if 20 < len(one.strip()) < 160]
    found = [("file changed", Path(path).name) for path, _ in files[:4]]
    found += [("task", _beginning(people[0]))] if people else []
    found += [("last request", _beginning(people[-1]))] if len(people) > 1 else []
    found += [("last words", _beginning(answers[-1]))] if answers else []
    found += [("decision", _beginning(answers[-2]))] if len(answers) > 1 else []
    found += [("order", _beginning(order)) for order in orders[-1:]]
    found += [("last used", name) for name in used if ("file changed", name) not in found]
    return [(kind, "".join(text.split())) for kind, text in found][:FACTS]


def _is_human(message: Message) -> bool:
    text = text_of(message)
    return (
        bool(text.strip())
        and not any(isinstance(part, ToolResult) for part in message.parts)
        and not (is_of_program(text) or is_inserted(text))
    )


def _beginning(text: str) -> str:
    """The first words of a text."""
    return " ".join(text.split())[:60].rsplit(" ", 1)[0]


def _used(records: list[Record]) -> list[str]:
    """The names of files in the last calls, and the beginnings of the last commands, the newest first."""
    names: list[str] = []
    for record in reversed(records):
        for part in record.message.parts if record.message else ():
            if isinstance(part, ToolCall):
                named = re.findall(r"[\w-]+\.(?:py|go|rs|ts|js|md|json|toml|c|h|java|pony)\b", part.raw_arguments)
                names += named if len(named) <= 2 else []
                command = part.arguments.get("command") if isinstance(part.arguments, dict) else ""
                names += [command[:30]] if isinstance(command, str) and len(command) >= 10 else []
    return list(dict.fromkeys(names))


def told(prompt: str) -> str:
    """A prompt without marks of quotation and spaces."""
    return "".join(re.sub(r"(?m)^> ", "", prompt).split())


class Real:
    """The real programs, in a home of their own, pointed at the fake server."""

    def __init__(self, programs: Path, home: Path) -> None:
        self.server = module("fake_server", shared("oracle")).FakeServer().start()
        self.bin, self.home = programs / "node_modules" / ".bin", home
        url = self.server.url
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
        }
        config = (
            f'model = "gpt-5"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\nbase_url = "{url}/v1"\n'
            'env_key = "FAKE_KEY"\nwire_api = "responses"\n'
        )
        for place, text in ((".gemini/settings.json", json.dumps(settings)), (".codex/config.toml", config)):
            (home / place).parent.mkdir(parents=True)
            (home / place).write_text(text)
        self.environment = {
            **os.environ,
            "HOME": str(home),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "k",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "k",
            "FAKE_KEY": "k",
        }

    def command(self, made: Handoff) -> tuple[list[str], str]:
        """A command that hands a session over without a terminal, and its standard input."""
        if made.to == "claude":
            return ["-p", "--model", "claude-sonnet-4-5"], made.prompt
        if made.to == "codex":
            return ["exec", "--skip-git-repo-check", "-"], made.prompt
        place = self.home / "session.jsonl"
        place.write_text(session_file(made, TIME))
        return ["-m", "gemini-2.5-flash", "--skip-trust", "--session-file", str(place), "-p", made.now], ""

    def accepts(self, made: Handoff) -> str:
        """Why a program did not take a prompt; "" if it did."""
        arguments, given = self.command(made)
        before = len(self.server.requests)
        done = subprocess.run(
            [str(self.bin / made.to), *arguments],
            input=given,
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        new = self.server.requests[before:]
        sent = "".join(_strings(one.body) for one in new)
        if done.returncode or not done.stdout.strip():
            return f"exit {done.returncode}: {done.stderr[-200:]!r}"
        if any(one.errors or one.status >= 400 for one in new):
            return f"refused: {[one.errors for one in new if one.errors][:1]}"
        return "" if made.past in sent and made.now in sent else "the model was not sent the whole prompt"


def _strings(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(map(_strings, value.values()))
    return "\n".join(map(_strings, value)) if isinstance(value, list) else str(value)


def judged(
    report: Report, name: str, session: Imported, to: Program, budget: int, real: Real | None
) -> tuple[list[str], int, int]:
    """What is wrong with one prompt, and how many facts of how many it has."""
    store = MemoryStore()
    store.create("s")
    for data in session.blobs.values():
        store.put_blob(data)
    store.append("s", planted(session))
    made = handed_over(store, "s", to, max_tokens=budget)
    wrong = [f"{name}, {to}: a secret {s[:6]!r}" for _, s in secrets() if max(s.split("\n"), key=len) in made.prompt]
    wrong += [f"{name}, {to}: {made.tokens} tokens"] if made.tokens > budget else []
    asked = known(session)
    said = told(made.prompt)
    missing = [f"{kind} {text[:40]!r}" for kind, text in asked if text not in said]
    if missing:
        report.say(f"  {name}, {to}: not told: {', '.join(missing)}")
    if len(asked) - len(missing) < RIGHT * len(asked) / FACTS:
        wrong.append(f"{name}, {to}: {len(asked) - len(missing)} of {len(asked)} facts")
    if real is not None and (refused := real.accepts(made)):
        wrong.append(f"{name}, {to}: {refused}")
    return wrong, len(asked) - len(missing), len(asked)


@bench()
def handoff(report: Report, *, budget: int = 8_000, programs: str = "") -> None:
    """Real sessions handed to the agent programs: facts told, no secret, accepted by the real programs if given."""
    wrong: list[str] = []
    right = asked = prompts = 0
    with tempfile.TemporaryDirectory() as home:
        real = Real(Path(programs), Path(home)) if programs else None
        for name, session in chosen():
            for to in MODELS:
                found, has, of = judged(report, name, session, to, budget, real)
                wrong, right, asked, prompts = wrong + found, right + has, asked + of, prompts + 1
    figures = {"prompts": prompts, "facts": asked, "told": right, "sent by real programs": prompts if real else 0}
    report.row("handoff", figures, at_least={"prompts": 1})
    report.findings("wrong", wrong)
