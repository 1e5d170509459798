"""The server as programs start it, spoken to by the SDK's client: what it answers, reads before it, and prints."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from planted import SECRETS

from turnlog.importers.known_files import KnownFiles
from turnlog.importers.sync.programs import Sync
from turnlog.stores import MemoryStore, open_store

mcp = pytest.importorskip("mcp", reason="needs the extra mcp")
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

LONG_AGO = 1_700_000_000


def transcript(home: Path, name: str, *texts: str, folder: str = "/w/shop") -> Path:
    """Write a transcript of Claude Code, the user and the agent in turns, as if it had been written long ago."""
    path = home / ".claude/projects" / folder.replace("/", "-") / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for n, text in enumerate(texts):
        role = ("user", "assistant")[n % 2]
        content: Any = text if role == "user" else [{"type": "text", "text": text}]
        lines.append({
            "type": role, "uuid": f"{name}-{n}", "parentUuid": f"{name}-{n - 1}" if n else None, "sessionId": name,
            "cwd": folder, "version": "2.1.0", "userType": "external", "isSidechain": False,
            "timestamp": f"2026-01-01T00:00:{n % 60:02}.000Z", "message": {"role": role, "content": content},
        })  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    os.utime(path, (LONG_AGO + len(texts), LONG_AGO + len(texts)))
    return path


def started(folder: Path, *words: str, **env: str) -> Any:
    """A client of a server of its own, with a store, a home and a cache in `folder`."""
    told = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "PATH": os.environ["PATH"], **env}
    args = ["-m", "turnlog", "--store", str(folder / "log.db"), "mcp", *words]
    (folder / "work").mkdir(exist_ok=True)
    return mcp.Client(
        stdio_client(StdioServerParameters(command=sys.executable, args=args, env=told, cwd=folder / "work"))
    )


async def asked(client: Any, question: str, **more: Any) -> str:
    """The answer to a question."""
    result = await client.call_tool("recall_sessions", {"question": question, **more})
    assert not result.is_error, result
    return str(result.content[0].text)


async def until(client: Any, question: str, wanted: str) -> str:
    """The answer that has `wanted`: on a slow machine the transcripts of one question are read by the next."""
    for _ in range(50):
        if wanted in (text := await asked(client, question)):
            return text
    raise AssertionError(f"{wanted!r} is not in {text!r}")


@pytest.mark.slow
def test_a_client_finds_and_reads(tmp_path: Path) -> None:
    """What was said a moment ago in another program is not found, or a secret of it is; the record that an answer cites
    cannot be read, as a tool or as a resource."""
    text, secret = SECRETS["github classic"]
    transcript(tmp_path, "then", "Why the importer crash?", f"The importer crash is 2026-02-30. Log in: {text}.")

    async def talk() -> None:
        async with started(tmp_path, "--discover") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == ["recall_sessions", "read_session"]
            assert sum(len(json.dumps([tool.description, tool.input_schema])) for tool in tools.values()) < 1_600
            assert all(tool.annotations.read_only_hint and tool.output_schema is None for tool in tools.values())
            found = await until(client, "importer crash", "2026-02-30")
            assert secret not in found and "[redacted:" in found and "session then, record " in found
            n = int(found.partition("2026-02-30")[0].rpartition("record ")[2].split()[0])
            whole = await client.call_tool("read_session", {"session": "then", "record": n})
            resource = await client.read_resource(f"turnlog://session/then/record/{n}")
            assert "2026-02-30" in whole.content[0].text and secret not in whole.content[0].text
            assert resource.contents[0].text == whole.content[0].text
            transcript(tmp_path, "later", "Where is the zebra?", "In the cellar.")
            await until(client, "zebra cellar", "In the cellar.")
            for name, arguments in (
                ("recall_sessions", {"question": "?!"}),
                ("read_session", {"session": "nobody", "record": 1}),
                ("read_session", {"session": "then", "record": 999}),
            ):
                result = await client.call_tool(name, arguments)
                assert result.is_error and "Traceback" not in result.content[0].text

    asyncio.run(talk())


@pytest.mark.slow
def test_the_asking_session_is_neither_read_nor_found(tmp_path: Path) -> None:
    """The transcript of who asks is read at each question, whole, and found before what was said earlier."""
    id = "0a1b2c3d-0000-4000-8000-0123456789ab"
    transcript(tmp_path, "then", "The zebra is in the cellar.")
    transcript(tmp_path, id, "Where is the zebra?")

    async def talk() -> None:
        async with started(tmp_path, "--discover", CLAUDE_CODE_SESSION_ID=id) as client:
            assert id not in await until(client, "zebra", "session then")
            assert "Searched 1 earlier session" in await asked(client, "zebra")
        async with started(tmp_path, "--discover") as client:
            await until(client, "zebra", id)
            for key in ("threadId", "sessionId"):
                told = await client.session.call_tool("recall_sessions", {"question": "zebra"}, meta={key: id})
                assert id not in told.content[0].text and "session then" in told.content[0].text

    asyncio.run(talk())


@pytest.mark.slow
def test_labels_and_the_total_hold_for_the_server(tmp_path: Path) -> None:
    """A server for one owner answers with another's sessions, or one agent's questions fill its window."""
    import turnlog

    for owner in ("ann", "bob"):
        with turnlog.open(owner, store=tmp_path / "log.db", labels={"user": owner}) as session:
            session.user(f"I am {owner} and have a cough. " + "It is bad. " * 100)

    async def talk() -> None:
        async with started(tmp_path, "--label", "user=ann", "--tokens", "700") as client:
            text = await asked(client, "cough")
            assert "session ann" in text and "bob" not in text and "Searched 1 earlier" in text
            assert (await client.call_tool("read_session", {"session": "bob", "record": 2})).is_error
            for _ in range(6):
                last = await client.call_tool("recall_sessions", {"question": "cough"})
            assert last.is_error and "used up" in last.content[0].text

    asyncio.run(talk())


@pytest.mark.slow
def test_eight_clients_ask_while_two_sessions_grow(tmp_path: Path) -> None:
    """Servers that read the same transcripts into one store wait for each other for ever, lose records, or answer by an
    error; a session that grew is found as it was."""
    grown: dict[str, list[str]] = {name: [f"Talk {name} begins."] for name in ("left", "right")}

    def grow(n: int) -> None:
        for name, texts in grown.items():
            texts += [f"step {n} of {name}", f"done {n} of {name} word{n}{name}"]
            os.utime(transcript(tmp_path, name, *texts))  # now: what grows while it is read is read again

    async def client(number: int) -> None:
        async with started(tmp_path, "--discover") as one:
            for _ in range(6):
                await asked(one, f"step talk {number}")
                if (n := next(steps, None)) is not None:
                    grow(n)
            await until(one, "word19right", "done 19 of right")
            await until(one, "word19left", "done 19 of left")

    async def all_at_once() -> None:
        await asyncio.gather(*map(client, range(8)))

    steps = iter(range(20))
    grow(-1)
    asyncio.run(asyncio.wait_for(all_at_once(), 240))
    with closing(open_store(tmp_path / "log.db", read_only=True)) as store:
        assert {info.id for info in store.sessions()} == set(grown) and store.verify() == []
        for name, texts in grown.items():
            messages = [record.message for record in store.read(name) if record.message]
            assert [str(message.parts[0].text) for message in messages] == texts  # type: ignore[union-attr]


@pytest.mark.slow
def test_nothing_but_the_protocol_is_printed(tmp_path: Path) -> None:
    """A line of anything else on standard output ends the connection with many programs: damaged transcripts, damaged
    records and Python's warnings are told elsewhere."""
    (transcript(tmp_path, "bad", "x").parent / "worse.jsonl").write_text('{"type":"user"\n', "utf-8")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    calls = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *({"id": n, "method": "tools/call", "params": {"name": "recall_sessions", "arguments": {"question": "x"}}}
          for n in (2, 3)),
    ]  # fmt: skip
    words = [sys.executable, "-X", "dev", "-m", "turnlog", "--store", str(tmp_path / "log.db"), "mcp", "--discover"]
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True, cwd=tmp_path
    )
    assert process.stdin and process.stdout and process.stderr
    answers = []
    for call in calls:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **call}) + "\n")
        process.stdin.flush()
        answers += [json.loads(process.stdout.readline())] if "id" in call else []
    out, err = process.communicate(timeout=60)
    assert [answer["id"] for answer in answers] == [1, 2, 3] and out == "" and process.returncode == 0
    assert "Traceback" not in err and "turnlog: " not in err


def test_reading_is_bounded_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question on a machine with years of transcripts waits for all of them; or the next question begins
    again, or never reads the rest. A file that cannot be read is not tried again until it changes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for n in range(6):
        transcript(tmp_path, f"s{n}", *(f"text {n}" for _ in range(n + 1)))
    bad = transcript(tmp_path, "bad", "x")
    bad.write_text('{"type":"user"\n', "utf-8")
    store, read = MemoryStore(), list[str]()
    from turnlog import importers

    real = importers.read_sessions
    monkeypatch.setattr(importers, "read_sessions", lambda path: (read.append(path.stem), real(path))[1])
    sync = Sync(store, None, tmp_path, lambda: KnownFiles(store, "here", ()))
    monkeypatch.setattr("turnlog.importers.sync.programs.SECONDS", -1.0)  # no time at all
    sync.wait(())
    sync.close()
    assert (read, sync.unread) == ([], 7)
    monkeypatch.setattr("turnlog.importers.sync.programs.SECONDS", 60.0)
    sync.wait(["s3"])
    assert (read, sync.unread) == (["bad", "s5", "s4", "s2", "s1", "s0"], 0)
    sync.wait(["s3"])
    assert len(read) == 6
    sync.wait(())
    assert read[6:] == ["s3"] and {info.id for info in store.sessions()} == {f"s{n}" for n in range(6)}
