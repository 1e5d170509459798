"""Hostile text through every command: none fails, and none hands it on to the terminal."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from draws import draws
from screens import at_terminal
from turnlog.cli.entry import build_parser
from turnlog.stores import open_store
from turnlog.testing.hostile import HOSTILE, NEEDLE, hostile_body, hostile_session

SIZE, DEPTH = draws(30_000, 3_000_000), 100_000
ALLOWED = "\n\t\u200c\u200d\u00ad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f"
FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
AS_STORED = {
    ("export", "jsonl"), ("export", "json"), ("diff", "hostile"), ("diff", "every"), ("handoff", "codex"),
    ("chat", HOSTILE[10]),
}  # fmt: skip
"""What a file or a pipe gets as it is: stored records, patches that git has to take, prompts and answers."""

CODES = {"undo": {0, 2}, "rewind": {0, 2}, "handoff": {0, 2}, "rekey": {2}, "serve": {2}}
"""How commands may end, where that is another way than 0, 1 or 7: there may be nothing to undo or to hand over, no key
to change; a server would not end."""

_EACH = (
    ("show",), ("show", "--last", "3"), ("show", "--json"), ("show", "--cost"),
    ("show", "--turns"), ("show", "--tools"), ("show", "--records"), ("show", "--full"), ("show", "--turn", "-1"),
    ("show", "--at", "5"),
    ("diff",), ("diff", "--stat"), ("diff", "--json"), ("diff", "--turn", "1", "--stat"),
    ("errors",), ("errors", "--json"),
    ("context",), ("why",), ("count",), ("cache",), ("cache", "--json"),
    ("verify",), ("doctor", "--strict"), ("doctor", "--fix"), ("scan",),
    ("compact", "--dry-run"), ("compact",), ("undo",), ("rewind", "--turns", "1"),
    ("fork", "{}-2"), ("rename", HOSTILE[0]),
    ("request", "--to", "anthropic", "--explain"), ("request", "--to", "google"),
    ("export", "--format", "html"), ("export", "--format", "markdown"),
    ("export", "--format", "markdown", "--records"), ("export", "--format", "markdown", "--messages"),
    ("export", "--format", "json"), ("export", "--format", "jsonl"), ("visualize",), ("handoff", "--to", "codex"),
    ("scrub", "--yes"),
)  # fmt: skip
"""Commands for a session, with the words after its id."""

COMMANDS: list[tuple[str, ...]] = [
    ("import", "body.json"),
    ("import", "body.json", "--json"),
    ("import", "--formats"),
    ("import", "--formats", "--json"),
    ("ls", "--cost"),
    ("ls", "--json"),
    ("search", NEEDLE),
    ("search", NEEDLE, "--json"),
    ("check", "request.json"),
    ("fit", "request.json", "--max-tokens", "20000"),
    ("count", "request.json"),
    ("models", "claude-opus-5-5"),
    ("models", "--json"),
    *(
        (name, session, *(w.format(session) for w in words))
        for session in ("hostile", "every")
        for name, *words in _EACH
    ),
    ("serve", "--port", "none"),
    ("site", "pages"),
    ("mcp", "--titles"),
    ("mcp", "--install", "claude", "--print"),
    ("keep", "every"),
    ("gc", "--max-sessions", "1", "--dry-run"),
    ("gc", "--compress-after", "1d", "--dry-run"),
    ("pack", "hostile", "every"),
    ("show", "every"),
    ("copy", "copy.db"),
    ("copy", "files:copy"),
    ("rekey", "--key", HOSTILE[4], "--new-key", "env:NOBODY"),
    ("rekey", "--new-key", "env:NOBODY"),
    (),
    ("config",),
    ("completion", "ids", "show", ""),
    ("help", "show"),
    ("rm", "hostile-2", "--yes"),
    ("salvage", "hostile", "hostile-3"),
    ("memory", "--help"),
    ("recall", NEEDLE),
    ("recall", NEEDLE, "--for-model"),
    ("chat", "--model", "scripted/demo", "-p", HOSTILE[10]),
]


def obeyed(output: str) -> set[str]:
    """What in an output a terminal or a reader's eye would obey."""
    return {char for char in set(output) if unicodedata.category(char) in FORBIDDEN and char not in ALLOWED}


@pytest.mark.slow
@pytest.mark.parametrize("watched", [False, True], ids=["pipe", "terminal"])
def test_no_command_fails_or_hands_it_on(
    turnlog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    """A command that ends in an error of ours, or writes a control, bidirectional or invisible character of a text,
    fails here: in what goes out byte by byte, and on standard error."""
    body = hostile_body(SIZE, depth=DEPTH)
    (tmp_path / "body.json").write_text(json.dumps(body), "ascii")
    (tmp_path / "request.json").write_text(json.dumps(body["request"]), "ascii")
    store = open_store(str(tmp_path / "log.db"))
    hostile_session(store, "every", SIZE)
    store.close()
    monkeypatch.setenv("NO_COLOR", "1")
    build_parser()  # opens every command's module
    if watched:
        for module in [name for name in sys.modules if name.startswith("turnlog.cli.")]:
            if hasattr(sys.modules[module], "is_terminal"):
                monkeypatch.setattr(f"{module}.is_terminal", lambda stream: True)
    wrong = []
    for words in COMMANDS:
        ended = turnlog(*words)
        is_page = words[-1:] == ("html",) or words[:1] == ("visualize",)  # a terminal gets none
        codes = {2} if watched and is_page else CODES.get(" ".join(words[:1]), {0, 1, 7})
        if ended.code not in codes or "Traceback" in ended.err:
            wrong.append(f"{words}: exit {ended.code}: {ended.err[-500:]}")
        raw = not watched and bool(words) and (words[0], words[-1]) in AS_STORED
        if found := obeyed(ended.err + ("" if raw else ended.out)):
            wrong.append(f"{words}: wrote {sorted(found)}")
        if words[-1:] == ("html",) and ("<script" in ended.out or "data-ran=" in ended.out):
            wrong.append(f"{words}: a script in the page")
    assert wrong == []


@pytest.mark.slow
def test_no_talk_is_obeyed_at_a_terminal_with_colours(tmp_path: Path) -> None:
    """With rich and colours, at a real terminal: only the styles of ours are left, no other sequence, and no character
    that moves, hides or turns around what is beside it."""
    with closing(open_store(str(tmp_path / "log.db"))) as store:
        hostile_session(store, "every", SIZE)
    for words in (("--full",), ()):
        with at_terminal(tmp_path, "--store", "log.db", "show", "every", *words, NO_COLOR="") as screen:
            code, text = screen.ends()
        styled = re.sub(r"\x1b\[[0-9;]*m", "", text)
        assert (code, obeyed(styled), styled == text) == (0, set(), False)


def test_every_command_is_tried() -> None:
    """A new command that nobody tried on hostile text fails here: add it above."""
    (commands,) = (action.choices for action in build_parser()._actions if isinstance(action.choices, dict))
    assert set(commands) - {words[0] for words in COMMANDS if words} == {"demo"}
