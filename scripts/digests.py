"""Makes the digests of six recorded sessions with two versions of turnlog, and writes what they say in docs/digests.md.

    python scripts/digests.py [--before COMMIT] [--after COMMIT] [--keep FOLDER]

A version is a commit of this repository, or a folder with a checkout; without options, the version that docs/digests.md
compares with, and the files as they are. Each session is replayed as `python bench/run.py context.facts` does, at 20 %
of its tokens, up to the place where the questions of digests.json were written. `--keep` also puts the digests, whole,
into a folder. The recorded sessions lie beside the repository, in the folder of shared material.

In digests.json, a question has the key (`answer`), the records that hold it, and what a program looks for (`says`):
each entry must stand in the text within 400 characters, ` & ` between things that are all needed, ` | ` between
spellings. `before` and `after` are the lines that answered a reader of that digest and nothing else; none, if it did
not answer. If such a line is gone, the reading is out of date: the question counts as unanswered and is named.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
PAGE = ROOT / "docs/digests.md"
QUESTIONS = Path(__file__).with_suffix(".json")
BEFORE = "f152feb0"
SHARE = 0.2
BEGIN, END = "<!-- digests -->\n", "<!-- /digests -->"
FIRST, LAST, WIDTH = 2, 2, 150
"""How much of a digest the page shows: the first and last lines of each section, and characters of a line."""

_QUIET = [
    (re.compile(r"\[([^\]\n]+)\]\((?:https?://|/)[^)\s]*\)"), r"\1"),
    (re.compile(r"/(?:Users|home)/[\w.-]+"), "~"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}"), "(address)"),
    (re.compile(r"(?i)\b(f)uc?k\w*|\b(s)hit\w*"), lambda found: f"{found[1] or found[2]}…"),
]
"""What is shown otherwise: targets of links, home folders, addresses, coarse words."""

Sessions = dict[str, dict[str, Any]]


# -- making: runs under the version that is looked at ----------------------------------------------


def make(source: Path) -> Sessions:
    """For each session the digest, what stands beside it, and which questions each text answers by `says`."""
    modules = ("corpora", "common", "facts", "quality.context", "turnlog", "turnlog.summarize.digest")
    corpora, common, facts, context, turnlog, digests = map(importlib.import_module, modules)
    assert Path(turnlog.__file__).is_relative_to(source), f"{turnlog.__file__} is not of {source}"
    told: list[tuple[Any, Any, str]] = []
    summarize = digests.Digest.summarize

    def keep(digest: Any, material: Any) -> str:
        text: str = summarize(digest, material)
        told.append((digest, material, text))
        return text

    digests.Digest.summarize = keep
    sessions = {session.id: session for session in corpora.load_data("dev")}
    made: Sessions = {}
    for name, asked in json.loads(QUESTIONS.read_text("utf-8")).items():
        session = sessions[asked["session"]]
        told.clear()
        view = _replayed(context.make(session.budget(SHARE)), session, asked["messages"])
        digest, material, text = told[-1]
        shown = next(common.text_of(one) for one in view if text in common.text_of(one))
        everything = summarize(digest, _of_all(material, session.messages[: asked["messages"]]))
        texts = {"digest": facts.fold(shown), "request": facts.text_of_view(view), "everything": facts.fold(everything)}
        made[name] = {
            "tokens": common.ntext(shown),
            "all_tokens": common.ntext(everything),
            "request_tokens": common.total(view) - session.sys_tokens,
            "session_tokens": common.total(session.messages) - session.sys_tokens,
            "digest": shown,
            "everything": everything,
            "says": {
                kind: [all(_present(facts, group, text) for group in one["says"]) for one in asked["questions"]]
                for kind, text in texts.items()
            },
        }
    return made


def _replayed(view: Any, session: Any, messages: int) -> list[Any]:
    """The view at that message; requests before it may be refused, this one may not."""
    errors = importlib.import_module("turnlog.errors")
    for n in session.calls():
        if n < messages:
            try:
                view(session.messages[:n])
            except errors.BudgetError:
                continue
    shown: list[Any] = view(session.messages[:messages])
    return shown


def _of_all(material: Any, messages: list[Any]) -> Any:
    """The material for a digest of the whole history, as long as the one in the request."""
    providers, types, msgspec = map(importlib.import_module, ("turnlog.providers", "turnlog.view.types", "msgspec"))
    parsed = providers.provider("openai-chat").parse({"model": "gpt-4o", "messages": messages}).messages
    shown = tuple(types.Shown(one, (n,)) for n, one in enumerate(parsed, start=1) if one.role != "system")
    return msgspec.structs.replace(material, messages=shown, news=shown, previous="", kept=())


def _present(facts: Any, group: str, text: str) -> bool:
    needed = [[one.strip() for one in part.split(" | ")] for part in group.split(" & ")]
    return bool(facts.present({"any": needed, "within": 400}, text))


# -- comparing -------------------------------------------------------------------------------------


def made_by(version: str) -> Sessions:
    """What that version makes, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(version).resolve() if Path(version).is_dir() else _archived(version, Path(folder))
        paths = [source / "src", source / "bench", SHARED / "bench/context"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, __file__, "--make", str(source)]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    made: Sessions = json.loads(done.stdout)
    return made


def _archived(commit: str, folder: Path) -> Path:
    command = ["git", "-C", str(ROOT), "archive", commit, "src", "bench"]
    with tarfile.open(fileobj=io.BytesIO(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder.resolve()


def read(asked: dict[str, Any], when: str, made: dict[str, Any]) -> list[bool]:
    """The questions that a reader answered from the digest, as far as its lines still stand there."""
    answered = []
    for number, one in enumerate(asked["questions"], start=1):
        gone = [line for line in one[when] if line not in made["digest"]]
        if gone:
            print(f"read again: {asked['session']} question {number}, {when}: {gone[0]!r} is gone")
        answered.append(bool(one[when]) and not gone)
    return answered


# -- the page --------------------------------------------------------------------------------------


def part(before: Sessions, after: Sessions) -> str:
    """What the page says of the digests."""
    questions = json.loads(QUESTIONS.read_text("utf-8"))
    rows, sections = [], []
    for name, asked in questions.items():
        pair = [("before", before[name]), ("after", after[name])]
        answers = [read(asked, when, made) for when, made in pair]
        rows.append(_row(asked, [made for _, made in pair], answers))
        sections.append("\n".join(_section(asked, [made for _, made in pair], answers)))
    return "\n".join([*_totals(rows), "", *sections])


_COUNTS = ("read", "found", "in the request", "of everything")


def _row(asked: dict[str, Any], pair: list[dict[str, Any]], answers: list[list[bool]]) -> list[Any]:
    kinds = ("digest", "request", "everything")
    counts = [[sum(one) for one in answers], *([sum(made["says"][kind]) for made in pair] for kind in kinds)]
    return [asked["about"], asked["messages"], [made["tokens"] for made in pair], *counts]


def _totals(rows: list[list[Any]]) -> Iterator[str]:
    yield "| session | messages | tokens of the digest | " + " | ".join(_COUNTS) + " |"
    yield "|---|--:" + "|--:" * (1 + len(_COUNTS)) + "|"
    for about, messages, tokens, *counts in rows:
        cells = [f"{old:,} → {new:,}" for old, new in (tokens, *counts)]
        yield f"| [{about}](#{_anchor(about)}) | {messages} | " + " | ".join(cells) + " |"
    sums = [[sum(row[at][side] for row in rows) for side in (0, 1)] for at in range(2, 3 + len(_COUNTS))]
    yield "| together | | " + " | ".join(f"{old:,} → {new:,}" for old, new in sums) + " |"


def _anchor(heading: str) -> str:
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


def _section(asked: dict[str, Any], pair: list[dict[str, Any]], answers: list[list[bool]]) -> Iterator[str]:
    old, new = (made["request_tokens"] for made in pair)
    yield f"## {asked['about']}\n"
    yield f"The first {asked['messages']} messages of a session of {pair[1]['session_tokens']:,} tokens. The request"
    yield f"had {old:,} tokens before and has {new:,} after.\n"
    yield "| question | before | after |"
    yield "|---|---|---|"
    for number, one in enumerate(asked["questions"]):
        cells = [_cell(answers[side][number], pair[side], number) for side in (0, 1)]
        yield f"| {shown(one['question'])} | {cells[0]} | {cells[1]} |"
    for title, made in zip(("Before", "After"), pair, strict=True):
        lines = [line for line in made["digest"].splitlines() if line]
        yield f"\n{title}: {len(lines)} lines, {made['tokens']:,} tokens\n"
        yield "```text"
        yield from shortened("\n".join(lines))
        yield "```"
    yield ""


def _cell(answered: bool, made: dict[str, Any], number: int) -> str:
    if answered:
        return "yes"
    return "beside it" if made["says"]["request"][number] and not made["says"]["digest"][number] else "no"


def shown(line: str) -> str:
    """A line as the page shows it."""
    for pattern, instead in _QUIET:
        line = pattern.sub(instead, line)
    return line if len(line) <= WIDTH else line[: WIDTH - 1].rstrip() + "…"


def shortened(digest: str) -> Iterator[str]:
    """The first and last lines of each section, with the number of those between."""
    section: list[str] = []
    for line in [*digest.splitlines(), ""]:
        if section and (not line or line.startswith(("## ", "[What the user"))):
            between = section[1 + FIRST : -LAST]
            if len(between) > 1:
                section[1 + FIRST : -LAST] = [f"(... {len(between)} lines)"]
            yield from map(shown, section)
            section = []
        section.append(line.replace("```", "` ` `"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT")
    parser.add_argument("--after", default=str(ROOT), metavar="COMMIT")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        print(json.dumps(make(given.make)))
        return
    versions = {"before": made_by(given.before), "after": made_by(given.after)}
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        for when, sessions in versions.items():
            for name, made in sessions.items():
                (given.keep / f"{name}.{when}.txt").write_text(made["digest"] + "\n", "utf-8")
                (given.keep / f"{name}.{when}.everything.txt").write_text(made["everything"] + "\n", "utf-8")
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    PAGE.write_text(head + BEGIN + part(**versions) + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
