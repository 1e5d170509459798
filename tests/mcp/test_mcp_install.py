"""`turnlog mcp --install`: the entry, the Skill and the hook, and nothing else of the files that they go into."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import Command
from turnlog import open as opened
from turnlog.errors import InputError
from turnlog.mcp.install import PROGRAMS, changes
from turnlog.skills import load_skills

COMMAND = ["/usr/bin/python3", "-m", "turnlog", "mcp"]
KEYS = st.sampled_from(["mcpServers", "hooks", "SessionStart", "turnlog", "args", "theme", "\u00e4"])
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def applied(program: str, home: Path, hook: bool = False) -> dict[Path, tuple[str, str]]:
    """Write the changes; returns them."""
    made = changes(program, home, COMMAND, [*COMMAND, "--titles"] if hook else ())
    for path, (_, text) in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return made


@given(JSON, st.sampled_from([None, 2, 4, "\t"]), st.booleans(), st.sampled_from(["claude", "gemini"]))
def test_the_rest_of_settings_stays(
    tmp_path_factory: pytest.TempPathFactory, settings: Any, indent: Any, hook: bool, program: str
) -> None:
    """Settings that a user made are lost, or a second run writes again. A file of another form has to be refused by its
    name, and stay as it is."""
    home = tmp_path_factory.mktemp("home")
    path = home / PROGRAMS[program]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(settings, indent=indent, ensure_ascii=False), "utf-8")
    made, refused = {}, ""
    try:
        made = applied(program, home, hook)
    except InputError as error:
        refused = str(error)
    if refused:
        assert str(path) in refused and json.loads(path.read_text("utf-8")) == settings
        return
    after = json.loads(path.read_text("utf-8"))
    entry = after["mcpServers"]["turnlog"]
    assert (entry["command"], entry["args"]) == (COMMAND[0], COMMAND[1:])
    before = {**settings, "mcpServers": {**settings.get("mcpServers", {}), "turnlog": entry}}
    if hook and program == "gemini":
        [*groups, _] = after["hooks"]["SessionStart"]
        assert groups == settings.get("hooks", {}).get("SessionStart", [])
        before["hooks"] = {**settings.get("hooks", {}), "SessionStart": after["hooks"]["SessionStart"]}
    assert after == before and list(after)[: len(settings)] == list(settings)
    if path in made and "\n" in made[path][0].replace("{}", ""):
        assert made[path][1] == json.dumps(after, indent=indent, ensure_ascii=False) + "\n"
    assert changes(program, home, COMMAND, [*COMMAND, "--titles"] if hook else ()) == {}


TOML = (
    "",
    'model = "gpt-5" # mine\n',
    '[mcp_servers.other]\ncommand = "x"\n\n[profiles.a]\nmodel = "b"\n',
    '[mcp_servers.turnlog]\ncommand = "old"\nargs = []\n\n[mcp_servers.other]  # stays\ncommand = "x"\n',
    'a = """\n[mcp_servers.turnlog]\n"""\n',
)


@pytest.mark.parametrize("text", TOML)
def test_the_rest_of_codex_settings_stays(tmp_path: Path, text: str) -> None:
    """Comments, other servers or tables are lost, or the table stands there twice and Codex does not start."""
    path = tmp_path / PROGRAMS["codex"]
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    applied("codex", tmp_path)
    after, before = tomllib.loads(path.read_text("utf-8")), tomllib.loads(text)
    servers = {**before.get("mcp_servers", {}), "turnlog": {"command": COMMAND[0], "args": COMMAND[1:]}}
    assert after == {**before, "mcp_servers": servers}
    kept = [line for line in text.splitlines() if line and line not in ("[mcp_servers.turnlog]", 'command = "old"')]
    assert [line for line in kept if line not in path.read_text("utf-8") and line != "args = []"] == []
    assert changes("codex", tmp_path, COMMAND) == {}


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("claude", "{ // mine\n}"),
        ("claude", "[]"),
        ("claude", '{"mcpServers": []}'),
        ("gemini", '{"mcpServers": {"turnlog": 5}}'),
        ("gemini", "\xff"),
        ("codex", "a = "),
        ("codex", "mcp_servers = 5"),
        ("codex", "mcp_servers = {}\n"),
        ("codex", '[mcp_servers.turnlog]\ncommand = "x"\nenv = {A = "b"}\n'),
    ],
)
def test_a_file_that_cannot_be_changed_is_named(tmp_path: Path, program: str, text: str) -> None:
    """A file that a program reads in its own way is overwritten, or the user is not told which file it is."""
    path = tmp_path / PROGRAMS[program]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=str(path)):
        changes(program, tmp_path, COMMAND)


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_tells_asks_and_writes_once(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turnlog: Command
) -> None:
    """Something is written without having been shown, without a yes, or again and again."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    install = ("mcp", "--discover", "--label", "user=", "--install", program)
    shown = turnlog(*install, "--print")
    asked = turnlog(*install)
    assert shown.code == 0 and asked.code == 2 and "--yes" in asked.err and not (tmp_path / "home").exists()
    assert shown.out == asked.out and "+name: turnlog-recall" in shown.out
    written = turnlog(*install, "--yes")
    assert (written.code, written.out) == (0, shown.out)
    path = tmp_path / "home" / PROGRAMS[program]
    settings = (tomllib if program == "codex" else json).loads(path.read_text("utf-8"))
    entry = settings["mcp_servers" if program == "codex" else "mcpServers"]["turnlog"]
    store = ["--store", str(tmp_path / "log.db")]
    words = ["-m", "turnlog", *store, "mcp", "--discover", "~", "--label", "user="]
    assert (entry["command"], entry["args"]) == (sys.executable, words)
    loaded = load_skills(tmp_path / "home" / f".{program}" / "skills")
    assert [skill.name for skill in loaded] == ["turnlog-recall"] and loaded.problems == ()
    assert "nothing to write" in turnlog(*install, "--yes").err
    hook = turnlog(*install, "--hook", "--yes")
    assert (hook.code, "SessionStart" in hook.out) == ((2, False) if program == "codex" else (0, True))


def test_the_skill_is_short(tmp_path: Path) -> None:
    """A Skill that costs more than it saves is switched off."""
    [skill] = [after for path, (_, after) in changes("claude", tmp_path, COMMAND).items() if path.name == "SKILL.md"]
    assert len(skill.splitlines()) <= 18


def test_what_is_asked_in_vain_is_told(turnlog: Command) -> None:
    """Options that do nothing where they stand leave a user waiting."""
    for words in (("--hook",), ("--print",), ("--discover", "--label", "user=ann")):
        ended = turnlog("mcp", *words)
        assert (ended.code, ended.out) == (2, "") and "mcp: " in ended.err
    assert turnlog("mcp", "--titles").out == ""
    missing = turnlog("mcp")
    assert missing.code != 0 and "log.db" in missing.err and missing.out == ""


def test_the_hook_tells_titles_as_programs_read_them(tmp_path: Path, turnlog: Command) -> None:
    """A start hook that prints anything else fails each session's start, or tells the session its own title."""
    for name in ("a", "b"):
        with opened(name, store=tmp_path / "log.db", labels={"folder": str(tmp_path)}) as session:
            session.user(f"Mend the parser of {name}.")
    for stdin, told in ((b"", "ab"), (b'{"session_id": "b"}', "a"), (b"[]", "ab"), (b'{"session_id": 5}', "ab")):
        [row] = turnlog("mcp", "--titles", stdin=stdin).rows
        output = row["hookSpecificOutput"]
        assert output["hookEventName"] == "SessionStart"
        assert [name for name in "ab" if f"Mend the parser of {name}." in output["additionalContext"]] == [*told]
