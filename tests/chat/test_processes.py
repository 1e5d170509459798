"""What commands print is kept up to a limit, and nothing that they start is left behind."""

from __future__ import annotations

import asyncio
import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.chat.processes import Kept, without_secrets
from turnlog.chat.workshop import Workshop
from turnlog.stores import MemoryStore

_CUT = re.compile(r"(.*)\n\[([0-9,]+) bytes are left out here; .*?\]\n(.*)", re.DOTALL)

_LEFT = {
    "in the background": "sleep 600 &",
    "holding the output": "(echo x; sleep 600) & :",
    "printing on": "(while :; do echo x; done) &",
    "silent": "nohup sleep 600 >/dev/null 2>&1 </dev/null &",
    "in a session of its own": "setsid sleep 600 >/dev/null 2>&1 &",
    "a daemon": "setsid sh -c 'setsid sleep 600 >/dev/null 2>&1 & exit 0' &",
    "deaf to signals": "(trap '' TERM INT HUP; sleep 600) &",
}


def run(folder: Path, command: str, seconds: int = 60) -> str:
    """What the model is told of a command."""
    with turnlog.open("s", store=MemoryStore()) as session:
        return asyncio.run(Workshop(session, folder).run_command(command, seconds))


def pipe_in(folder: Path) -> int:
    """The reading end of a new pipe, `pipe` in the folder: it ends when nobody has it open any more."""
    os.mkfifo(folder / "pipe")
    return os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)


def ended(pipe: int) -> bool:
    """Whether those who write to a pipe end soon; what they wrote is passed over."""
    while select.select([pipe], [], [], 30)[0]:
        if not os.read(pipe, 65_536):
            return True
    return False


@given(st.lists(st.text(max_size=30).map(str.encode), max_size=20), st.integers(2, 60))
def test_an_output_is_kept_up_to_its_limit_and_the_rest_is_counted(pieces: list[bytes], most: int) -> None:
    """Bytes that are held beyond the limit, that are shown twice or left out without being counted, and characters
    that are cut in two."""
    kept, whole = Kept(most), b"".join(pieces)
    for piece in pieces:
        kept.add(piece)
        assert kept.held <= most
    if len(whole) <= most // 2 * 2:
        assert kept.text() == whole.decode()
        return
    cut = _CUT.fullmatch(kept.text())
    assert cut is not None
    first, count, last = cut[1].encode(), int(cut[2].replace(",", "")), cut[3].encode()
    assert len(first) + count + len(last) == len(whole)
    assert whole.startswith(first) and whole.endswith(last) and len(first) + len(last) > most - 8


@given(st.binary(max_size=200))
def test_an_output_that_is_no_text_is_told_all_the_same(data: bytes) -> None:
    """A picture on standard output ends the tool with an error of the decoder."""
    kept = Kept(50)
    kept.add(data)
    assert kept.text() == data.decode("utf-8", "replace") if len(data) <= 50 else "left out here" in kept.text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("asyncio.run(w.run_command('yes | head -c 400000000'))", "399,800,000 bytes are left out"),
        ("w.read_file('long')", "79,900,000 more bytes; read on with first=1, skip=100000"),
        ("w.read_file('long', skip=79_999_990)", "     1→xxxxxxxxxx"),
        ("asyncio.run(w.search('y', 'long'))", "[no match]"),
    ],
)
def test_no_output_takes_more_memory_than_is_kept(tmp_path: Path, call: str, shown: str) -> None:
    """`yes`, or a file of 80 MB on one line, takes hundreds of megabytes before it is cut."""
    with (tmp_path / "long").open("wb") as file:
        for _ in range(80):
            file.write(b"x" * 1_000_000)
    program = f"""
import asyncio, resource, turnlog
from pathlib import Path
from turnlog.chat.workshop import Workshop
w = Workshop(turnlog.open("s", store=":memory:"), Path("."))
asyncio.run(w.run_command("echo"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
text = {call}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
print({shown!r} in text)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    grown, told = done.stdout.split()
    assert int(grown) < 8_000, f"{grown} kB"
    assert told == "True"


def test_what_a_command_says_and_how_it_ends_is_told(tmp_path: Path) -> None:
    """An exit code that is lost, or a command that waits for what nobody types."""
    assert run(tmp_path, "echo a; echo b >&2; exit 3") == "a\nb\n\n[exit code 3]"
    assert run(tmp_path, "cat; read line; echo got $line") == "got\n\n[exit code 0]"
    assert run(tmp_path, "kill -9 $$") == "\n[exit code -9]"


def test_what_a_command_had_printed_is_kept_when_its_time_is_up(tmp_path: Path) -> None:
    """A test run of ten minutes of which nothing is known because of its last test."""
    with pytest.raises(subprocess.TimeoutExpired, match="timed out after 1 seconds") as raised:
        run(tmp_path, "echo before; echo and >&2; sleep 600", 1)
    assert raised.value.output == "before\nand\n"


@pytest.mark.slow
@pytest.mark.parametrize("way", _LEFT)
@pytest.mark.parametrize("end", ["ends", "is stopped"])
def test_nothing_that_a_command_started_is_left(tmp_path: Path, way: str, end: str) -> None:
    """Servers, loops and daemons that live on after the command, or that keep it from ending."""
    if "setsid" in _LEFT[way] and not Path("/proc/self/environ").exists():
        pytest.skip("this system does not show the environment of processes")
    pipe = pipe_in(tmp_path)
    command = f"exec 9>pipe; {_LEFT[way]}\necho said"
    if end == "ends":
        said = run(tmp_path, command)
        assert "said\n" in said and "[exit code 0; processes that it left running were ended: " in said
    else:
        with pytest.raises(subprocess.TimeoutExpired) as raised:
            run(tmp_path, f"{command}; sleep 600", 1)
        assert "said\n" in raised.value.output
    assert ended(pipe)
    os.close(pipe)


def test_a_command_that_is_cancelled_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """Ctrl-C in the chat stops the answer, and its command goes on changing files."""
    pipe = pipe_in(tmp_path)

    async def cancelled() -> None:
        up = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe, up.set)
        with turnlog.open("s", store=MemoryStore()) as session:
            command = "exec 9>pipe; (sleep 600 &) ; setsid sleep 600 & echo up >&9; sleep 600"
            running = asyncio.create_task(Workshop(session, tmp_path).run_command(command))
            await asyncio.wait_for(up.wait(), 30)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(cancelled())
    assert ended(pipe)
    os.close(pipe)


def test_a_command_ends_with_a_chat_that_is_killed(tmp_path: Path) -> None:
    """`kill -9` of a chat leaves what its model started running, with nobody to stop it."""
    pipe = pipe_in(tmp_path)
    command = "exec 9>pipe; sleep 600 & echo up >&9; sleep 600"
    program = (
        "import asyncio, turnlog; from pathlib import Path; from turnlog.chat.workshop import Workshop\n"
        f"asyncio.run(Workshop(turnlog.open('s', store=':memory:'), Path('.')).run_command({command!r}))"
    )
    chat = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    assert select.select([pipe], [], [], 30)[0] and os.read(pipe, 100) == b"up\n"
    chat.kill()
    chat.wait()
    assert ended(pipe)
    os.close(pipe)


KEYS = (
    *(
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "OPENAI_KEY",
        "apiKey",
        "MY_API_KEY_2",
    ),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "HF_TOKEN", "GITHUB_PAT"),
    *("PGPASSWORD", "MYSQL_PWD", "DB_PASS", "db_password", "SECRET_KEY_BASE", "CLIENT_SECRET", "NPM_CONFIG__AUTH"),
    *("SSH_KEY_PASSPHRASE", "SERVICE_CREDENTIALS", "TOKEN", "SECRET", "API_KEYS_2", "SIGNING_KEY_OLD", "VAULT_TOKENS"),
)
PLAIN = (
    *("PATH", "HOME", "PWD", "OLDPWD", "LANG", "LC_ALL", "TERM", "SHELL", "USER", "SSH_AUTH_SOCK", "SSH_ASKPASS"),
    *("PYTHONPATH", "VIRTUAL_ENV", "KEYBOARD", "TOKENIZERS_PARALLELISM", "XAUTHORITY", "EDITOR", "DATABASE", "PATTERN"),
)


def test_keys_and_tokens_of_the_environment_are_dropped() -> None:
    """A variable with a key that a command can print, or one that programs need and that is gone."""
    names = {name: name for name in (*KEYS, *PLAIN)}
    assert without_secrets(names) == {name: name for name in PLAIN}


def test_a_command_sees_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`env` in a transcript that holds the key of whoever talks to the model."""
    for name in KEYS:
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("PLAIN_VALUE", "shown")
    said = run(tmp_path, "env")
    assert "PLAIN_VALUE=shown" in said and "hidden-value" not in said
