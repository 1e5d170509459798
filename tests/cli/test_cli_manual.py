"""docs/cli.md is whole: no command, option or exit code is left out of it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from turnlog.cli.entry import EXIT_CODES, build_parser

MANUAL = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text("utf-8")


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of all commands, by name."""
    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("no commands")


def sections() -> dict[str, str]:
    """The manual's sections about commands, by command."""
    pieces = re.split(r"(?m)^## (.*)$", MANUAL)
    return {title.split()[-1].strip("`"): text for title, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def words(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options and arguments of a parser as a user types them, help and the store apart."""
    for action in parser._actions:
        if action.dest in ("help", "store", "key") or isinstance(action, argparse._SubParsersAction):
            continue
        yield from action.option_strings or [str(action.metavar)]


def test_every_command_and_option_is_described() -> None:
    """A command without a section, or an option that its section does not name, fails here."""
    described = sections()
    missing = [
        (name, word)
        for name, parser in commands().items()
        for word in ["", *words(parser)]
        if name not in described or (word and not re.search(rf"`[^`\n]*{re.escape(word)}\b", described[name]))
    ]
    assert missing == []
    assert [
        word for word in ("--store", "--key", "--version", "TURNLOG_STORE", "TURNLOG_KEY") if f"`{word}" not in MANUAL
    ] == []


def test_no_option_is_made_up() -> None:
    """An option in the manual that no parser knows fails here."""
    known = {word for parser in [build_parser(), *commands().values()] for word in words(parser)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", MANUAL)) - known - {"--store", "--key", "--help"} == set()


def test_every_exit_code_is_described() -> None:
    """The table of exit codes is that of the command."""
    rows = re.findall(r"(?m)^\| (\d+) \| (.*?) \|", MANUAL)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES
