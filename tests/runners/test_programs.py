"""The runners of agent programs, against small scripts that stand in for them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from fake_programs import FakeProgram, lines, saying

import turnlog
from answering import heard, received
from turnlog.errors import (
    InputError,
    NotLoggedIn,
    RateLimited,
    RequestTooLong,
    RunnerFailed,
    RunnerNotFound,
    RunnerTimedOut,
)
from turnlog.log.messages import ToolCall
from turnlog.log.records import PartialAnswer
from turnlog.log.usage import Usage
from turnlog.models.target import target
from turnlog.runners import ProgramRunner, RunnerEvent, events
from turnlog.runners.programs.runner import PROGRAMS
from turnlog.stores import MemoryStore

TARGETS = {
    "claude": target("anthropic", "claude-sonnet-4-5"),
    "gemini": target("google", "gemini-2.5-flash"),
    "codex": target("openai-responses", "gpt-5"),
}
every = pytest.mark.parametrize("name", TARGETS)


def opened(name: str) -> turnlog.Session:
    """A session with a question."""
    session = turnlog.open("s", store=MemoryStore(), target=TARGETS[name])
    session.user("What is there?")
    return session


def runner_of(name: str, program: FakeProgram, **more: Any) -> ProgramRunner:
    """A runner of a stand-in."""
    return ProgramRunner(name, command=program.path, **more)


def gone(pid: int) -> bool:
    """Whether a process has ended and was waited for: a zombie still has its number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@every
def test_an_answer_is_streamed_recorded_and_billed(name: str, tmp_path: Path) -> None:
    """Text that comes twice, a subagent's words, a lost bill, or a tool that looks like a call to run fails here."""
    program = FakeProgram(tmp_path, f"say('Loaded cached credentials.')\nsay('{{no json')\n{saying(name, 'a doo|r')}")
    runner, session = runner_of(name, program), opened(name)
    text = "a door" if name == "gemini" else "a doo|r"
    answer = received(session, runner)
    assert (answer.text, answer.complete, answer.tool_calls) == (text, True, [])
    assert answer.usage == Usage(input=100, output=5, cached=60)
    found = heard(opened(name), runner)
    assert [event.call for event in found if event.kind == "ran_tool"] == [
        ToolCall("", "Bash" if name != "codex" else "shell", {"command": "ls"})
    ]
    assert "".join(event.text for event in found if event.kind == "text") == text
    assert [event.kind for event in found][-2:] == ["usage", "done"]
    assert [call["prompt"] for call in program.calls] == ["What is there?"] * 2


@pytest.mark.slow
@every
def test_a_conversation_is_resumed_as_long_as_it_is_the_same(name: str, tmp_path: Path) -> None:
    """A program that is told everything again, or that goes on with what was taken back, fails here."""
    program = FakeProgram(tmp_path, f"say({lines(name, 'x')[0]!r})\n" + saying(name, "fine", usage=(100, 5)))
    runner, session = runner_of(name, program), opened(name)
    received(session, runner)
    session.user("And behind it?")
    answer = received(session, runner)
    first, second = program.calls
    assert "s1" not in first["arguments"] and second["arguments"].count("s1") == 1
    assert second["prompt"] == "And behind it?"
    assert answer.usage == (
        Usage() if name == "codex" else Usage(input=100, output=5, cached=60)
    )  # its sum is the same
    session.rewind(turns=1)
    session.user("Who is there?")
    received(session, runner)
    # the program's conversation has gone on beyond this: it would answer to what was taken back
    assert "s1" not in program.calls[-1]["arguments"] and "> Fine." not in program.calls[-1]["prompt"]
    session.assistant("Somebody else said this.")
    session.user("Go on.")
    received(session, runner)
    assert "s1" not in program.calls[-1]["arguments"]
    assert "> Somebody else said this." in program.calls[-1]["prompt"]
    afresh = runner_of(name, program)
    session.user("After a restart.")
    received(session, afresh)
    assert "s1" not in program.calls[-1]["arguments"] and "> Who is there?" in program.calls[-1]["prompt"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_conversations_that_begin_alike_stay_two(name: str, tmp_path: Path) -> None:
    """One user's program goes on with what another user said, as both had said the same until then."""
    program = FakeProgram(tmp_path, saying(name, "ok"))
    runner, ann, bob = runner_of(name, program), opened(name), opened(name)
    received(ann, runner)
    received(bob, runner)
    ann.user("My name is Ann.")
    received(ann, runner)
    bob.user("Who am I?")
    received(bob, runner)
    assert "s1" in program.calls[2]["arguments"] and "s1" not in program.calls[3]["arguments"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_line_that_is_no_utf8_ends_nothing(name: str, tmp_path: Path) -> None:
    """One byte of a file that a program quotes, and its answer is lost in a traceback."""
    odd = 'sys.stdout.buffer.write(b\'{"type": "odd", "x": "\\xff"}\\n\'); sys.stdout.flush()\n'
    session = opened(name)
    answer = received(session, runner_of(name, FakeProgram(tmp_path, odd + saying(name, "fine"))))
    assert answer.text == "fine"


OLD_GEMINI = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--output-format"), parser.add_argument("--model")
known, unknown = parser.parse_known_args()
if unknown:
    names = [word[2:] for word in unknown if word.startswith("--")]
    sys.exit(f"Unknown argument: {', '.join(names)}\\nUsage: gemini [options]")
"""
"""Ends, as gemini-cli 0.11 does, at an option that it does not know."""


def test_an_old_gemini_answers_and_is_asked_once_whether_it_resumes(tmp_path: Path) -> None:
    """It ends at an option that it does not know: with `--skip-trust` it never answered, and each turn would start it
    twice if the runner did not keep in mind that it resumes nothing."""
    program = FakeProgram(tmp_path, OLD_GEMINI + saying("gemini", "fine"))
    runner, session = runner_of("gemini", program), opened("gemini")
    for text in ("One.", "Two.", "Three."):
        assert received(session, runner).text == "fine"
        session.user(text)
    assert [call["arguments"].count("--resume") for call in program.calls] == [0, 1, 0, 0]
    assert all("> What is there?" in call["prompt"] for call in program.calls[2:])


def test_gemini_is_told_to_trust_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 0.39.1 on it answers nobody in a folder that it was not told to trust; what the user says wins."""
    body = 'answer = os.environ.get("GEMINI_CLI_TRUST_WORKSPACE", "-")\n'
    body += "\n".join(
        f"say(json.loads({json.dumps(line)!r}.replace('TRUST', answer)))" for line in lines("gemini", "TRUST")
    )
    program = FakeProgram(tmp_path, body)
    assert received(opened("gemini"), runner_of("gemini", program)).text == "true"
    untrusting = runner_of("gemini", program, env={"GEMINI_CLI_TRUST_WORKSPACE": "false"})
    assert received(opened("gemini"), untrusting).text == "false"
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "maybe")
    assert received(opened("gemini"), runner_of("gemini", program)).text == "maybe"


@every
def test_a_command_may_be_relative(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is meant from where the runner is made; from `cwd` there is nothing of that name."""
    program = FakeProgram(tmp_path / "tools", saying(name, "fine"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    runner = ProgramRunner(name, command=program.path.relative_to(tmp_path), cwd=tmp_path / "work")
    assert received(opened(name), runner).text == "fine"


@every
def test_a_runner_adds_little_to_the_time_of_a_program(name: str, tmp_path: Path) -> None:
    """An answer is given when it is there: waiting for the end of the program, or asking it for its version first,
    would cost seconds for each one."""
    program = FakeProgram(tmp_path, f"{saying(name, 'fine')}\nimport time\ntime.sleep(60)")
    took: list[float] = []

    async def ask() -> None:
        begun = time.perf_counter()
        stream: Any = runner_of(name, program).stream(opened(name).request())
        async with aclosing(stream) as told:
            async for event in told:
                if event.kind == "done":
                    took.append(time.perf_counter() - begun)
                    break

    asyncio.run(ask())
    assert took[0] < 1.0 and len(program.calls) == 1


@every
def test_without_resume_the_whole_conversation_is_one_prompt(name: str, tmp_path: Path) -> None:
    """A stateless program that is not told what was said before fails here."""
    program = FakeProgram(tmp_path, saying(name, "fine"))
    runner, session = runner_of(name, program, resume=False), opened(name)
    for text in ("One.", "Two."):
        received(session, runner)
        session.user(text)
    received(session, runner)
    assert "s1" not in str([call["arguments"] for call in program.calls])
    assert program.calls[-1]["prompt"].endswith("#6 assistant:\n> fine\n\n## Current Message\n\n> Two.")


@every
def test_a_conversation_that_the_program_has_lost_begins_anew(name: str, tmp_path: Path) -> None:
    """A program that has deleted its session must not end the user's one."""
    said = {
        "claude": "No conversation found with session ID: s1",
        "gemini": 'Error resuming session: Invalid session identifier "s1".',
        "codex": "Error: thread/resume: thread/resume failed: no rollout found for thread id s1 (code -32600)",
    }[name]
    lost = f"if 's1' in sys.argv:\n    print({said!r}, file=sys.stderr)\n    sys.exit(1)\n"
    program = FakeProgram(tmp_path, lost + saying(name, "fine"))
    runner, session = runner_of(name, program), opened(name)
    received(session, runner)
    session.user("Go on.")
    assert received(session, runner).text == "fine"
    assert ["s1" in call["arguments"] for call in program.calls] == [False, True, False]
    assert "> What is there?" in program.calls[-1]["prompt"]


NO_LOGIN: dict[str, Any] = {
    "claude": {"type": "result", "subtype": "success", "is_error": True, "result": "Not logged in · Please run /login"},
    "gemini": "Please set an Auth method in your settings.json",
    "codex": {"type": "turn.failed", "error": {"message": "Missing environment variable: `OPENAI_API_KEY`."}},
}
FAILURES: dict[str, list[tuple[Any, type[Exception], dict[str, Any]]]] = {
    "claude": [
        ({"type": "result", "is_error": True, "result": "Prompt is too long"}, RequestTooLong, {"tokens": 0}),
        (
            {"type": "result", "is_error": True, "result": "prompt is too long: 210000 tokens > 200000 maximum"},
            RequestTooLong,
            {"tokens": 210_000, "limit": 200_000},
        ),
        ({"type": "result", "is_error": True, "api_error_status": 401, "result": "API Error: 401"}, NotLoggedIn, {}),
        (
            {"type": "result", "is_error": True, "result": "Claude AI usage limit reached|4102444800"},
            RateLimited,
            {"runner": "claude"},
        ),
        ({"type": "result", "subtype": "error_max_turns"}, RunnerFailed, {"message": "error max turns", "status": 1}),
    ],
    "gemini": [
        (
            {"type": "result", "status": "error", "error": {"message": "API Error: quota exhausted, retry in 3600s"}},
            RateLimited,
            {"retry_after": 3600.0},
        ),
        (
            {
                "type": "result",
                "status": "error",
                "error": {
                    "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
                },
            },
            RequestTooLong,
            {"tokens": 1_200_000, "limit": 1_048_576},
        ),
        ({"error": {"type": "Error", "message": "boom", "code": 500}}, RunnerFailed, {"message": "boom"}),
    ],
    "codex": [
        (
            {"type": "turn.failed", "error": {"message": "Codex ran out of room in the model's context window."}},
            RequestTooLong,
            {},
        ),
        (
            {"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}},
            RateLimited,
            {"retry_after": None},
        ),
        ({"id": "0", "msg": {"type": "error", "message": "boom"}}, RunnerFailed, {"message": "boom"}),
    ],
}


@pytest.mark.slow
@every
def test_each_failure_is_its_own_error_and_the_session_goes_on(name: str, tmp_path: Path) -> None:
    """A user who cannot tell what to do from an error, or a session that is broken after one, fails here."""
    session = opened(name)
    good = runner_of(name, FakeProgram(tmp_path / "good", saying(name, "fine")))
    failures = [(NO_LOGIN[name], NotLoggedIn, {"login": PROGRAMS[name].login}), *FAILURES[name]]
    for number, (line, kind, fields) in enumerate(failures):
        program = FakeProgram(tmp_path / str(number), f"say({line!r})\nsys.exit(1)")
        with pytest.raises(kind) as caught:
            received(session, runner_of(name, program))
        assert {field: getattr(caught.value, field) for field in fields} == fields, line
    session.user("Go on.")
    assert received(session, good).text == "fine"


def test_a_program_that_is_not_there_says_how_to_install_it() -> None:
    """A traceback about a file that is not found fails here."""
    with pytest.raises(RunnerNotFound) as caught:
        received(opened("claude"), ProgramRunner("claude", command="/nowhere/claude"))
    assert caught.value.install == "npm install -g @anthropic-ai/claude-code"
    assert str(caught.value) == (
        "claude (/nowhere/claude) is not installed; install it with: npm install -g @anthropic-ai/claude-code"
    )


def test_what_prints_garbage_or_dies_says_so(tmp_path: Path) -> None:
    """A program that ends without an answer, whatever it printed, must not look as if it had answered."""
    bodies = {
        "say('hello')\nsay('[1]')\nsay('{')": ("hello", 0),
        "": ("none of its JSON events", 0),
        "print('at line 3\\nsegfault', file=sys.stderr)\nsys.exit(139)": ("segfault", 139),
        "say({'type': 'system', 'subtype': 'init'})": ("in the middle of its answer", 0),
        "os.kill(os.getpid(), 9)": ("no reason was given", -9),
        "say({'type': 7, 'message': 3})\nsay({'type': 'assistant', 'message': {'content': [None, 4]}})": ("middle", 0),
    }
    for number, (body, (said, code)) in enumerate(bodies.items()):
        program = FakeProgram(tmp_path / str(number), body)
        with pytest.raises(RunnerFailed) as caught:
            received(opened("claude"), runner_of("claude", program))
        assert said in str(caught.value) and (caught.value.status or 0) == code, body


def test_half_an_answer_is_kept(tmp_path: Path) -> None:
    """Words that somebody has read, and that the log does not have, fail here."""
    body = "\n".join(f"say({line!r})" for line in lines("claude", "one two three")[:5]) + "\nsys.exit(3)"
    session = opened("claude")
    with pytest.raises(RunnerFailed, match="middle of its answer"):
        received(session, runner_of("claude", FakeProgram(tmp_path, body)))
    [kept] = [record.body for record in session.history() if isinstance(record.body, PartialAnswer)]
    assert kept.message.parts[0].text == "one two three"  # type: ignore[union-attr]


def test_a_program_that_is_late_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """A program that goes on after its time, or that leaves children or a zombie behind, fails here."""
    body = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '100'])\n"
        "open(os.path.join(HERE, 'child'), 'w').write(str(child.pid))\n"
        "say('not yet')\ntime.sleep(100)"
    )
    program = FakeProgram(tmp_path, body)
    with pytest.raises(RunnerTimedOut) as caught:
        received(opened("codex"), runner_of("codex", program, timeout=0.6))
    assert (caught.value.seconds, caught.value.message) == (0.6, "not yet")
    assert gone(program.calls[0]["pid"])
    assert _dead(int((tmp_path / "child").read_text()))


def _dead(pid: int) -> bool:
    """Whether a process that is not ours has ended; somebody else may still have to wait for it."""
    stat = Path(f"/proc/{pid}/stat")
    return gone(pid) or (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def test_a_program_that_ignores_the_request_to_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that handles SIGTERM by doing nothing must not live on."""
    monkeypatch.setattr("turnlog.runners.programs.runner._GRACE", 0.1)
    body = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nsay('here')\ntime.sleep(100)"
    program = FakeProgram(tmp_path, body)
    with pytest.raises(RunnerTimedOut):
        received(opened("codex"), runner_of("codex", program, timeout=0.5))
    assert gone(program.calls[0]["pid"])


def test_a_stream_that_is_left_ends_its_program(tmp_path: Path) -> None:
    """A program that works on for nobody fails here: when a task is cancelled, and when an iterator is closed."""
    body = "import time\n" + "\n".join(f"say({line!r})" for line in lines("claude", "ab")[:4]) + "\ntime.sleep(100)"
    program = FakeProgram(tmp_path, body)

    async def left() -> None:
        stream: Any = runner_of("claude", program).stream(opened("claude").request())
        assert await anext(stream)
        await stream.aclose()
        assert gone(program.calls[-1]["pid"])
        found: AsyncIterator[RunnerEvent] = events(runner_of("claude", program), opened("claude").request())
        task = asyncio.create_task(_all(found))
        while len(program.calls) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert gone(program.calls[-1]["pid"])

    asyncio.run(left())


async def _all(found: AsyncIterator[RunnerEvent]) -> list[RunnerEvent]:
    return [event async for event in found]


@pytest.mark.slow
def test_ctrl_c_ends_the_program_and_keeps_the_session(tmp_path: Path) -> None:
    """Ctrl-C that leaves a program running, or loses what it has said, fails here."""
    body = "\n".join(f"say({line!r})" for line in lines("claude", "ab")[:5])
    wait = f"while not os.path.exists({str(tmp_path / 'read')!r}): time.sleep(0.01)"
    program = FakeProgram(tmp_path, f"import time\n{body}\n{wait}\nos.kill(os.getppid(), 2)\ntime.sleep(100)")
    script = f"""
import turnlog
from turnlog.runners import BlockingRunner, ProgramRunner
def read(chunks):
    for chunk in chunks:
        yield chunk
        if chunk.text == "b":
            open({str(tmp_path / "read")!r}, "w").close()
session = turnlog.open("s", store={str(tmp_path / "s.db")!r}, target=turnlog.target("anthropic", "claude-sonnet-4-5"))
session.user("Hi")
with BlockingRunner(ProgramRunner("claude", command={str(program.path)!r})) as runner:
    try:
        session.receive(read(runner.stream(session.request())))
    except KeyboardInterrupt:
        print("interrupted", session.history()[-1].body.message.parts[0].text)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout == "interrupted ab\n", run.stderr
    assert _dead(program.calls[0]["pid"])


def test_full_pipes_do_not_stop_a_program(tmp_path: Path) -> None:
    """A program that fills standard error before it reads its prompt, or prints one giant line, fails here."""
    text = "x" * 300_000
    body = (
        "sys.stderr.write('e' * 1_000_000)\nsys.stderr.flush()\nprint('no json ' * 100_000)\n"
        "prompt = sys.stdin.read()\nassert len(prompt) > 400_000\n" + saying("claude", text)
    )
    session = turnlog.open("s", store=MemoryStore(), target=TARGETS["claude"])
    session.user("word " * 100_000)
    runner = runner_of("claude", FakeProgram(tmp_path, body, reads=False), history=_large())
    assert received(session, runner).text == text


def _large() -> Any:
    from turnlog.text_history import HistoryPrompt

    with pytest.warns(UserWarning, match="40,000"):
        return HistoryPrompt(1_000_000, allow_large=True)


def test_a_program_that_does_not_read_its_prompt_may_answer(tmp_path: Path) -> None:
    """A pipe that breaks while the prompt is written is no failure of the answer."""
    session = turnlog.open("s", store=MemoryStore(), target=TARGETS["claude"])
    session.user("word " * 30_000)
    program = FakeProgram(tmp_path, "os.close(0)\n" + saying("claude", "fine"), reads=False)
    assert received(session, runner_of("claude", program)).text == "fine"


def test_what_a_program_leaves_running_does_not_hold_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that a program has started holds its pipes open: the answer must end all the same."""
    monkeypatch.setattr("turnlog.runners.programs.runner._LINGER", 0.05)
    body = "import subprocess\n" + saying("claude", "fine") + "\nsubprocess.Popen(['sleep', '100'])"
    program = FakeProgram(tmp_path, body)
    assert received(opened("claude"), runner_of("claude", program)).text == "fine"


def test_a_rate_limit_is_waited_for_as_told(tmp_path: Path) -> None:
    """A limit that ends in a moment, and that a caller has to wait for himself, fails here; so does one of an hour
    that a program sleeps through."""
    limited = {"type": "result", "is_error": True, "result": "rate limit: try again in 5ms"}
    program = FakeProgram(tmp_path, f"if run == 1:\n    say({limited!r})\n    sys.exit(1)\n" + saying("claude", "fine"))
    assert received(opened("claude"), runner_of("claude", program)).text == "fine"
    assert len(program.calls) == 2
    hourly = FakeProgram(
        tmp_path / "hourly", "say({'type': 'result', 'is_error': True, 'result': 'try again in 1h, quota'})"
    )
    with pytest.raises(RateLimited) as caught:
        received(opened("claude"), runner_of("claude", hourly))
    assert caught.value.retry_after == 3_600 and len(hourly.calls) == 1


def test_models_are_named_shortly_or_taken_from_the_target(tmp_path: Path) -> None:
    """A short name that a program does not know, or a model of another maker, fails here."""
    program = FakeProgram(tmp_path, saying("claude", "fine"))
    for runner, session in (
        (runner_of("claude", program, model="haiku"), opened("claude")),
        (runner_of("claude", program, model="own-model"), opened("claude")),
        (runner_of("claude", program, arguments=["--permission-mode", "plan"]), opened("claude")),
        (runner_of("claude", program), opened("codex")),
    ):
        received(session, runner)
    asked = [" ".join(call["arguments"]) for call in program.calls]
    assert [" --model " in line for line in asked] == [True, True, True, False]
    assert asked[0].endswith("--model claude-haiku-5-5") and asked[1].endswith("--model own-model")
    assert asked[2].endswith("--model claude-sonnet-4-5 --permission-mode plan")
    codex = FakeProgram(tmp_path / "codex", saying("codex", "fine"))
    received(opened("codex"), runner_of("codex", codex, arguments=["-s", "read-only"]))
    assert codex.calls[0]["arguments"][-3:] == ["-s", "read-only", "-"]
    for name, program_ in PROGRAMS.items():
        for model in program_.models.values():
            assert target(TARGETS[name].provider, model).known, model


def test_a_runner_is_checked_when_it_is_made() -> None:
    """A slip in an argument that shows in the middle of a conversation fails here."""
    for wrong in ({"program": "cluade"}, {"arguments": "-x"}, {"timeout": 0}):
        with pytest.raises(InputError):
            ProgramRunner(**{"program": "claude", **wrong})  # type: ignore[arg-type]


OLDER: dict[str, list[Any]] = {
    "claude": [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "hm"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "one"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "two"}]}},
        {"type": "result", "subtype": "success", "result": "two"},
    ],
    "gemini": [{"session_id": "s", "response": "one\n\ntwo", "stats": {"models": {"m": {"tokens": {"prompt": 3}}}}}],
    "codex": [
        {"model": "gpt-5", "provider": "openai"},
        {"prompt": "What is there?"},
        {"id": "0", "msg": {"type": "session_configured", "session_id": "s"}},
        {"id": "0", "msg": {"type": "task_started"}},
        {"id": "0", "msg": {"type": "agent_reasoning", "text": "hm"}},
        {"id": "0", "msg": {"type": "agent_message_delta", "delta": "o"}},
        {"id": "0", "msg": {"type": "agent_message_delta", "delta": "ne"}},
        {"id": "0", "msg": {"type": "agent_message", "message": "one"}},
        {"id": "0", "msg": {"type": "agent_message", "message": "two"}},
        {"id": "0", "msg": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 9}}}},
        {"id": "0", "msg": {"type": "task_complete", "last_agent_message": "two"}},
    ],
}


@every
def test_older_versions_are_read_too(name: str, tmp_path: Path) -> None:
    """A user who has not updated for a year must not be told that the program prints garbage."""
    program = FakeProgram(tmp_path, "\n".join(f"say({line!r})" for line in OLDER[name]))
    runner = runner_of(name, program)
    assert received(opened(name), runner).text == "one\n\ntwo"


def test_recorded_runs_of_older_versions_are_read(shared: Path) -> None:
    """What real programs printed a year ago: texts that are not read, or read twice, fail here."""
    recording = json.loads((shared / "data/claude-agent-sdk/tool_use_conversation.json").read_text("utf-8"))
    printed = [one["message"] for one in recording["messages"] if one["direction"] == "recv"]
    reader = PROGRAMS["claude"].reader()
    found = [told for event in printed for told in reader.read(event)]
    whole = [
        block["text"]
        for event in printed
        if event["type"] == "assistant" and not event.get("parent_tool_use_id")
        for block in event["message"]["content"]
        if block["type"] == "text"
    ]
    assert "".join(told.text for told in found if told.kind == "text") == "\n\n".join(whole) != ""
    assert any(told.kind == "ran_tool" for told in found) and found[-1].kind == "done"
    for path in sorted((shared / "data/agentcmd/codex").glob("*.jsonl")):
        events_ = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        reader = PROGRAMS["codex"].reader()
        text = "".join(told.text for event in events_ for told in reader.read(event) if told.kind == "text")
        said = [one["payload"]["message"] for one in events_ if one.get("payload", {}).get("type") == "agent_message"]
        assert text == "\n\n".join(said) != ""
