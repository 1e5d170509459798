"""`handoff`: go on with a session in another agent program."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from .._platform.files import write_whole
from .._platform.units import counted
from .._platform.visible import visible
from ..errors import InputError, RunnerNotFound
from ..handoff import Handoff, handoff, session_file
from ..handoff.handoff import MAX_TOKENS, MODELS
from ..redaction.redactor import counts_text
from ..runners.programs.runner import PROGRAMS
from .arguments import add_command, number
from .request import source_of
from .stores import settings_of
from .terminal import is_terminal, out, out_bytes, out_json, paged, say

_LONGEST = 120_000
"""The most bytes of a prompt on a command line; Linux allows 131,071 (`MAX_ARG_STRLEN`)."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "handoff")
    parser.add_argument("source", metavar="SOURCE", help="a session, or a file: any transcript; - is standard input")
    parser.add_argument("--to", metavar="PROGRAM", choices=tuple(MODELS), required=True, help=", ".join(MODELS))
    text = f"a prompt of at most N tokens (default: {MAX_TOKENS:,})"
    parser.add_argument("--budget", metavar="N", type=number("tokens", 1), default=MAX_TOKENS, help=text)
    text = "what to do now (default: to go on with what the user asked last)"
    parser.add_argument("--now", metavar="TEXT", default="", help=text)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--start", action="store_true", help="start the program with the prompt, in this folder")
    text = "write a session file for `gemini --session-file`, and print what to say in it"
    instead.add_argument("--session-file", metavar="FILE", default="", help=text)
    instead.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_handoff)


def _handoff(arguments: Namespace) -> int:
    redactor = settings_of(arguments).finding()
    with source_of(arguments) as (store, session_id):
        transfer = handoff(
            store,
            session_id,
            arguments.to,
            max_tokens=arguments.budget,
            instruction=arguments.now,
            redactor=redactor,
        )
    if arguments.json:
        out_json({**msgspec.to_builtins(transfer), "prompt": transfer.prompt})
    elif arguments.session_file:
        _save(transfer, Path(arguments.session_file))
        out(visible(transfer.now))
    elif not arguments.start:
        _print(transfer.prompt)
    replaced = f"; secrets replaced: {counts_text(transfer.redacted)}" if transfer.redacted else ""
    step = f".  --start begins {transfer.to} with it" if is_terminal(sys.stdout) and not arguments.start else ""
    say(f"{counted(transfer.records, 'record')} in {counted(transfer.tokens, 'token')}{replaced}{step}")
    return _start(transfer) if arguments.start else 0


def _print(prompt: str) -> None:
    """Print the prompt: escaped on a terminal, unchanged for a program that reads it."""
    if is_terminal(sys.stdout):
        with paged():
            out(visible(prompt))
    else:
        out_bytes([f"{prompt}\n".encode("utf-8", "replace")])


def _save(transfer: Handoff, place: Path) -> None:
    lines = session_file(transfer, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"))
    write_whole(place, [lines.encode()])


def _start(transfer: Handoff) -> int:
    """Run the program in this terminal until it ends; returns its exit code."""
    if shutil.which(transfer.to) is None:
        raise RunnerNotFound(transfer.to, PROGRAMS[transfer.to].install)
    with tempfile.TemporaryDirectory(prefix="turnlog-") as folder:
        if transfer.to == "gemini":
            place = Path(folder) / "session.jsonl"
            _save(transfer, place)
            return _run([transfer.to, "--session-file", str(place), "-i", transfer.now])
        prompt = transfer.prompt.encode("utf-8", "replace")
        if len(prompt) > _LONGEST:
            raise InputError(
                f"--budget: the prompt has {len(prompt):,} bytes, and a command line takes {_LONGEST:,}; give fewer "
                f"tokens, or pipe the prompt: turnlog handoff {shlex.quote(transfer.session)} --to {transfer.to} | ..."
            )
        return _run([transfer.to, prompt.decode()])


def _run(command: Sequence[str]) -> int:
    running = subprocess.Popen(command)
    while True:
        try:
            return running.wait()
        except KeyboardInterrupt:  # the program has it too, and decides
            continue
