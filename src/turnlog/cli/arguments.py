"""Adding a command, and argument types whose errors name what is allowed."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any

STORE, KEY = "TURNLOG_STORE", "TURNLOG_KEY"
"""The environment variables that name the store and the place of its key, if `--store` and `--key` are not given."""

ANY_ID = "the session's id; its beginning is enough"
"""Help text of ID for commands that only read."""

WHOLE_ID = "the whole id of the session"
"""Help text of ID for commands that change something."""


COMMANDS = {
    "chat": ("chat", "talk with a model, which has tools for this folder"),
    "import": ("imports", "store transcripts of agents, and request bodies, as sessions"),
    "ls": ("sessions", "list the sessions, the last changed first"),
    "fork": ("sessions", "start a new session with the records of another one"),
    "rename": ("sessions", "give a session another title"),
    "rm": ("sessions", "delete sessions; forks of them keep all their records"),
    "show": ("show", "show the records of a session"),
    "diff": ("diff", "show how a session changed files"),
    "search": ("search", "find words in the messages and other records of one session, or of all"),
    "memory": (
        "memory",
        "list the files, commands, errors and other things of a session, and what became of them",
    ),
    "recall": ("recall", "find how something was done before, in all sessions of the store"),
    "handoff": ("handoff", "go on with a session in another agent program: print a prompt for it, or start it"),
    "request": ("request", "print the request that would be sent to a model"),
    "context": ("context", "draw what fills the model's window"),
    "compact": ("compact", "make a session's requests smaller; its log keeps every record"),
    "undo": ("compact", "undo the last decision that made a session's requests smaller"),
    "why": ("why", "show which messages requests contain, and why others are left out"),
    "rewind": ("rewind", "go back in a conversation; its log keeps every record"),
    "check": ("check", "list what a provider would refuse in a request body"),
    "fit": ("fit", "make a request body fit a budget, without a store"),
    "count": ("count", "count the tokens of a request or a session"),
    "models": ("models", "show facts about models: limits, prices, abilities, and their sources"),
    "export": ("exports", "write a session in one of several formats"),
    "visualize": ("visualize", "show how an agent moved through images, step by step"),
    "gc": ("gc", "delete old sessions until the store is within its limits"),
    "keep": ("gc", "protect sessions from gc, or unprotect them"),
    "verify": ("verify", "look for damage in one session, or in the whole store"),
    "doctor": ("doctor", "list what a session left unfinished, and contradictions"),
    "scan": ("scrub", "look for keys, tokens and passwords in sessions"),
    "scrub": (
        "scrub",
        "replace secrets in a session by [redacted:...]; this rewrites its records and cannot be undone",
    ),
    "salvage": ("salvage", "make a new session of all records of a damaged one that can be read"),
    "pack": ("storage", "compress the records of sessions"),
    "copy": ("storage", "copy the store into another one, encrypted or not"),
    "rekey": ("storage", "change the key of an encrypted store"),
    "config": ("config", "show the settings and where each comes from"),
    "demo": ("demo", "show what turnlog does, on a made-up conversation; takes a few seconds"),
}
"""The commands in the order of the help: the module of each, and what it does, in a sentence. Only the module of the
given command is loaded."""


def add_command(commands: Any, store: ArgumentParser | None, name: str) -> ArgumentParser:
    """Add a command, with what it does in the list of commands and in its own help; `store` has the options of commands
    that open the store."""
    does = COMMANDS[name][1]
    sentence = f"{does[0].upper()}{does[1:]}."
    parser: ArgumentParser = commands.add_parser(
        name, parents=[] if store is None else [store], help=does, description=sentence
    )
    return parser


def checked(read: Callable[[str], Any], allowed: str) -> Callable[[str], Any]:
    """An argument type that uses `read`, which raises ValueError; `allowed` describes what it accepts."""

    def read_argument(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not {allowed}") from None

    return read_argument


def add_labels(parser: ArgumentParser) -> None:
    """Add the option `--label`, whose value is a list of names and values."""
    text = "only sessions with this label (NAME=: without it); give it again for further labels"
    parser.add_argument("--label", metavar="NAME=VALUE", action="append", default=[], type=_label, help=text)


def _label(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise ArgumentTypeError(f"{text!r} is not a label; write NAME=VALUE, such as user=ann")
    return name, value


def number(what: str, least: int = 0) -> Callable[[str], int]:
    """An argument type for a whole number of `what`, at least `least`; 1,000 and 1_000 are allowed."""

    def read_number(text: str) -> int:
        digits = text.replace(",", "").replace("_", "")
        if not digits.isdecimal() or int(digits) < least:
            from_ = f", at least {least}" if least else ""
            raise ArgumentTypeError(f"{text!r} is not a whole number of {what}{from_}")
        return int(digits)

    return read_number
