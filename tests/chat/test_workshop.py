"""The tools of a chat, given what a hostile model would give them."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import turnlog
from turnlog.chat import workshop
from turnlog.chat.choice import Choice
from turnlog.chat.conversation import Chat
from turnlog.chat.workshop import TOOL_NAMES, Workshop
from turnlog.errors import InputError
from turnlog.log.messages import ToolCall, ToolResult, text_of
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.stores import MemoryStore

_ON = re.compile(r"\n\[.*read on with first=([0-9]+)(?:, skip=([0-9]+))?\]\Z")

ODD = (
    *("", ".", "..", "/", "~", "fifo", "socket", "loop", "dangling", "outside", "null", "folder", "up/up/up/a.txt"),
    *("binary", "latin", "utf16", "a.txt/b", "a\0b", "\0", "\ud800", "caf\udce9", "x" * 300, "d/" * 3_000),
    *(
        "../secret",
        "folder/../../secret",
        "/etc/passwd",
        "/dev/zero",
        "/proc/kmsg",
        ".git/config",
        "new\nline",
        "\x1b[2J",
    ),
)
"""Paths: what is no file, no path, no text, or elsewhere."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with everything in it that a tool may stumble over, and a secret beside it."""
    here = tmp_path / "in"
    (here / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("key")
    (here / "a.txt").write_text("one\ntwo\nthree\n")
    for name, where in (("loop", "loop"), ("dangling", "nowhere"), ("outside", "../secret"), ("null", "/dev/null")):
        (here / name).symlink_to(where)
    (here / "folder" / "inside").symlink_to("../a.txt")
    (here / "up").symlink_to(".")
    os.mkfifo(here / "fifo")
    (here / "binary").write_bytes(bytes(range(256)))
    (here / "latin").write_bytes(b"caf\xe9\n")
    (here / "utf16").write_text("two", "utf-16")
    (here / "crlf").write_bytes(b"a\r\nb\r\n")
    with socket.socket(socket.AF_UNIX) as one, pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)  # the path of a socket has at most 108 characters
        one.bind("socket")
        yield here


@pytest.fixture
def shop(folder: Path) -> Iterator[Workshop]:
    """The tools for that folder."""
    with turnlog.open("s", store=MemoryStore()) as session:
        made = Workshop(session, folder)
        yield made
        made.close()


def search(shop: Workshop, pattern: str, path: str = ".") -> str:
    return asyncio.run(shop.search(pattern, path))


def results(folder: Path, calls: list[ToolCall]) -> list[ToolResult]:
    """What a model is told that makes these calls, one after the other, with nobody to ask."""
    store = MemoryStore()
    start = partial(turnlog.open, store=store, settings=turnlog.Settings())
    target = turnlog.target("openai-chat", DEMO_MODEL)
    choice = Choice(target, ScriptedRunner([*calls, "Done."]))
    talk = Chat(store, start, start("s", target=target), choice, folder=folder, allowed={"all"})

    async def said() -> None:
        async for _ in talk.say("go"):
            pass

    asyncio.run(said())
    messages = (record.message for record in talk.session.history())
    return [part for one in messages if one for part in one.parts if isinstance(part, ToolResult)]


def told(result: ToolResult) -> str:
    return text_of(turnlog.Message("user", result.parts))


def test_tools_work_in_their_folder_alone(shop: Workshop, folder: Path) -> None:
    """A model that reads or writes what is beside the folder."""
    assert shop.read_file("a.txt", first=2) == "     2→two\n     3→three"
    assert search(shop, "t[wh]", "a.txt") == "a.txt:2: two\na.txt:3: three" and "a.txt" in shop.list_folder()
    assert shop.edit_file("a.txt", "two", "2") == "a.txt changed"
    assert (folder / "a.txt").read_text() == "one\n2\nthree\n"
    for path in ("../secret", "outside", str(folder.parent / "secret"), "null", "/proc/kmsg"):
        with pytest.raises(InputError, match="outside of the folder"):
            shop.read_file(path)
        with pytest.raises(InputError, match="outside of the folder"):
            shop.edit_file(path, "key", "x")
        with pytest.raises(InputError, match="outside of the folder"):
            search(shop, "key", path)
    assert "secret" not in search(shop, "key") and (folder.parent / "secret").read_text() == "key"
    for old, what in (("e", "occurs 3 times"), ("none", "occurs 0 times"), ("", "exists")):
        with pytest.raises(InputError, match=what):
            shop.edit_file("a.txt", old, "x")
    with pytest.raises(InputError, match="there is no tool 'fly' to allow"):
        shop.tools({"fly"})


@pytest.mark.slow
@pytest.mark.parametrize("tool", [name for name in TOOL_NAMES if name != "run_command"])
def test_whatever_a_path_is_the_model_is_told_in_words(folder: Path, tool: str) -> None:
    """A pipe that is waited for forever, and errors of Python that no model (and no user) can do anything with."""
    more = {"edit_file": {"old": "one", "new": "1"}, "search": {"pattern": "one"}}.get(tool, {})
    calls = [ToolCall(f"c{n}", tool, {"path": path, **more}) for n, path in enumerate(ODD)]
    found = results(folder, calls)
    assert len(found) == len(ODD)
    for path, result in zip(ODD, found, strict=True):
        good = {".": ("list_folder", "search"), "": ("list_folder", "search"), "folder": ("list_folder", "search")}
        good |= {"up/up/up/a.txt": ("read_file", "edit_file", "search")}
        good |= {name: ("search",) for name in ("binary", "latin", "utf16")}
        if tool in good.get(path, ()):
            assert result.outcome == "ok", (path, told(result))
        else:
            assert result.outcome == "failed", (path, told(result))
            assert told(result).startswith("The tool failed: InputError: ") and len(told(result)) < 500, path
    assert (folder.parent / "secret").read_text() == "key" and not (folder / ".git").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("run_command", {"command": "echo \0"}, "command: embedded null byte"),
        ("run_command", {"command": "echo \ud800"}, "command: 'utf-8' codec"),
        ("run_command", {"command": "x" * 200_000}, "command: Argument list too long"),
        ("run_command", {"command": "echo", "seconds": 0}, "seconds must be from 1 to 86,400"),
        ("run_command", {"command": "echo", "seconds": 10**15}, "seconds must be from 1 to 86,400"),
        ("run_command", {"command": "echo", "seconds": "\ud800"}, "The tool was not run, as its arguments do not fit"),
        ("search", {"pattern": "("}, "pattern: missing ), unterminated subpattern"),
        ("search", {"pattern": "(" * 5_000}, "pattern: maximum recursion depth"),
        ("search", {"pattern": "a{99999999999}"}, "pattern: the repetition number is too large"),
        ("search", {"pattern": "x" * 200_000}, "pattern: Argument list too long"),
        ("read_file", {"path": "a.txt", "first": 3, "last": 2}, "last must be 0, or 3 or more"),
        ("read_file", {"path": "a.txt", "skip": -1}, "skip must be 0 or more"),
        ("edit_file", {"path": "new", "old": "", "new": "\ud800"}, "new cannot be written as text"),
        ("edit_file", {"path": ".", "old": "", "new": ""}, ".: it is a folder, not a file"),
        ("edit_file", {"path": "crlf", "old": "a\nb", "new": ""}, r"occurs 0 times; its lines end with \r\n"),
        ("edit_file", {"path": "none", "old": "a", "new": ""}, "there is no such file; leave old empty to make it"),
    ],
)
def test_what_cannot_be_done_is_told_in_words(folder: Path, tool: str, arguments: dict[str, str], reason: str) -> None:
    """An argument that ends in an error of Python, or in nothing at all."""
    [result] = results(folder, [ToolCall("c", tool, arguments)])
    assert result.outcome == "failed" and reason in told(result)


def test_a_command_whose_time_is_up_is_a_timeout_with_its_output(folder: Path) -> None:
    """A model that is told neither what its command printed nor that it was stopped."""
    [result] = results(folder, [ToolCall("c", "run_command", {"command": "echo before; sleep 600", "seconds": 1})])
    assert result.outcome == "timeout" and told(result).startswith("before\n")
    assert "The tool ran out of time. It may have run, wholly or in part." in told(result)
    assert "timed out after 1 seconds" in told(result)


def test_a_command_after_the_folder_is_gone_says_so(folder: Path) -> None:
    """The error of a system that names a file that nobody asked for."""
    command = {"command": f"rm -r {folder}"}
    first, second = results(folder, [ToolCall("c", "run_command", command), ToolCall("d", "run_command", command)])
    assert first.outcome == "ok" and second.outcome == "failed" and "there is no folder" in told(second)


def test_a_search_that_would_never_end_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that freezes the chat for ever, as nothing can interrupt it; and the loss of what had been found."""
    monkeypatch.setattr(workshop, "_PATIENCE", 1)
    (folder / "b.txt").write_text("aaaa\n" + "a" * 60 + "!\n")
    [result] = results(folder, [ToolCall("c", "search", {"pattern": "^(a+)+$"})])
    assert result.outcome == "timeout" and told(result).startswith("b.txt:1: aaaa\n[not everything was searched; ")


def test_a_search_tells_what_it_left_out(shop: Workshop, folder: Path) -> None:
    """Files that were not looked at, and a model that takes them for searched; one bad file that ends the search."""
    (folder / "long").write_text("x" * 1_500_000 + "needle" + "x" * 1_000 + "\nneedle\n")
    (folder / "caf\udce9\n").write_text("needle\n")
    try:
        for name in ("deep", *("d" * 1_200)):  # deeper than Python recurses
            os.mkdir(name)
            os.chdir(name)
        Path("end").write_text("needle\n")
        found = search(shop, "needle").splitlines()
    finally:
        subprocess.run(["rm", "-r", folder / "deep"], check=True)  # pytest cannot
    assert found[0] == r"caf\xe9\n:1: needle"
    assert re.fullmatch(r"long:1: \[1,499,900 characters\] x{100}needlex+ \[[0-9]+ characters or more\]", found[1])
    assert found[2:] == [
        "long:2: needle",
        f"deep/{'d/' * 1_200}end:1: needle",
        "[left out: binary files: 2; files that cannot be read: 2; pipes, sockets and devices: 2; places between "
        "pieces of 1,000,000 bytes in long lines: 1; links that lead out of the folder: 2; links to folders: 1]",
    ]


def test_many_files_and_matches_are_cut_with_a_mark(shop: Workshop, folder: Path) -> None:
    """A folder of a hundred thousand files that fills the window of the model."""
    (folder / "many").mkdir()
    for number in range(600):
        (folder / "many" / str(number)).write_text("hit\n")
    assert shop.list_folder("many").splitlines()[500:] == ["[more than 500 files; list a smaller folder]"]
    assert search(shop, "hit", "many").splitlines()[200:] == [
        "[more than 200 matches; a narrower pattern or path shows the others]"
    ]


@given(
    st.lists(st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=("Cs",)), max_size=12), max_size=9),
    st.booleans(),
    st.integers(1, 9),
    st.integers(1, 4),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whoever_reads_on_reads_every_character_once(
    folder: Path, lines: list[str], ends: bool, room: int, most: int
) -> None:
    """A piece of a file that is cut off without a mark, or a mark that leads somewhere else."""
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    (folder / "text").write_bytes(text.encode())
    with turnlog.open("s", store=MemoryStore()) as session, pytest.MonkeyPatch.context() as patch:
        patch.setattr(workshop, "_READ", room)
        patch.setattr(workshop, "_LINES", most)
        patch.setattr(workshop, "_PIECE", 3)
        shop = Workshop(session, folder)
        found, place = {}, {"first": 1, "skip": 0}
        while True:
            said = shop.read_file("text", **place)
            on = _ON.search(said)
            for row in said[: on.start() if on else None].split("\n"):
                if "→" in row[:8]:
                    number = int(row[:6])
                    found[number] = found.get(number, "") + row[7:]
            if on is None:
                break
            place = {"first": int(on[1]), "skip": int(on[2] or 0)}
    whole = text.removesuffix("\n").split("\n") if text else []
    assert {number: line for number, line in found.items() if line} == {
        number: line for number, line in enumerate(whole, 1) if line
    }


def test_an_edit_that_fails_changes_nothing(shop: Workshop, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk that leaves half of a file, and a change that is refused when it has been made."""
    write, failed = Path.write_bytes, []

    def full(place: Path, data: bytes) -> int:
        if not failed:
            failed.append(place)
            write(place, data[:2])
            raise OSError(28, "No space left on device")
        return write(place, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"a\.txt: No space left on device"):
        shop.edit_file("a.txt", "two", "2")
    assert (folder / "a.txt").read_text() == "one\ntwo\nthree\n"
    failed.clear()
    with pytest.raises(InputError, match="No space left"):
        shop.edit_file("b.txt", "", "content")
    assert not (folder / "b.txt").exists()
    with suppress(InputError):
        shop.edit_file(".git/hooks/pre-commit", "", "#!/bin/sh\n")
    assert not (folder / ".git").exists()
    os.truncate(folder / "a.txt", 30_000_000)
    with pytest.raises(InputError, match="more than 20,000,000 bytes"):
        shop.edit_file("a.txt", "two", "2")


def test_output_of_a_command_that_a_tool_runs_is_told_with_its_failure() -> None:
    """`subprocess.run(check=True)` in a tool: the model is told of an exit code, and not of what the command said."""

    def build() -> str:
        """Build it."""
        command = "echo made; echo broken >&2; exit 2"
        return subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True, text=True).stdout

    with turnlog.open("s", store=MemoryStore(), target=turnlog.target("openai-chat", DEMO_MODEL)) as session:
        turnlog.agent.run(session, "go", ScriptedRunner([ToolCall("c", "build", {}), "Done."]), tools=[build])
        messages = [record.message for record in session.history() if record.message]
    [result] = [part for one in messages for part in one.parts if isinstance(part, ToolResult)]
    assert result.outcome == "failed" and told(result).startswith("made\n\nbroken\n")
    assert "exit status 2" in told(result)
