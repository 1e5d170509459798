"""Adding a command, and argument types whose errors name what is allowed."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, HelpFormatter
from collections.abc import Callable
from typing import Any

from .._platform.stdlib import difflib

STORE, KEY = "TURNLOG_STORE", "TURNLOG_KEY"
"""The environment variables that name the store and the place of its key, if `--store` and `--key` are not given."""

AN_ID = "the session's id, its beginning, `latest`, or -2 for the last but one"
"""Help text of ID."""


COMMANDS = {
    "chat": ("chat", "talk with a model, which has tools for this folder"),
    "import": ("imports", "store transcripts of agents, and request bodies, as sessions"),
    "ls": ("sessions", "list the sessions, the last changed first"),
    "fork": ("sessions", "start a new session with the records of another one"),
    "rename": ("sessions", "give a session another title"),
    "rm": ("sessions", "delete sessions; forks of them keep all their records"),
    "show": ("show", "show what was said and done in a session"),
    "diff": ("diff", "show how a session changed files"),
    "serve": ("serve", "look at sessions in a browser, as they grow"),
    "site": ("site", "write the pages of all sessions into a folder"),
    "search": ("search", "find words in the messages and other records of one session, or of all"),
    "errors": ("errors", "list the calls of a session that failed, and whether that was mended"),
    "memory": (
        "memory",
        "list the files, commands, errors and other things of a session, and what became of them",
    ),
    "recall": ("recall", "find how something was done before, in all sessions of the store"),
    "mcp": ("mcp", "let agent programs look up past sessions by themselves: an MCP server over stdio"),
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
    "cache": ("cache", "list what requests read from the provider's prompt cache, and why they read less"),
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
    "completion": ("completion", "print a script by which a shell completes commands, options and sessions"),
    "demo": ("demo", "show what turnlog does, on a made-up conversation; takes a few seconds"),
    "help": ("start", "list the commands, or show how one is used"),
}
"""The commands in the order of the help: the module of each, and what it does, in a sentence. Only the module of the
given command is loaded."""

EXAMPLES = {
    "chat": ("chat --model anthropic/claude-sonnet-4-5", "chat -c"),
    "import": ("import --discover", "import session.jsonl"),
    "ls": ("ls --since yesterday --cost", "ls --agent claude --folder ."),
    "fork": ("fork latest another-try", "fork latest beginning --at 3"),
    "rename": ("rename latest 'the parser, rewritten'", "rename -2 'a title'"),
    "rm": ("rm latest", "rm trial --yes"),
    "show": ("show latest --turn 1 --full", "show --tools --all --since 7d"),
    "diff": ("diff latest", "diff latest --stat"),
    "serve": ("serve --open", "serve --discover"),
    "site": ("site pages --open", "site pages --redact"),
    "search": ("search timeout", "search 'connection ref*' --since yesterday"),
    "errors": ("errors latest", "errors latest --open"),
    "memory": ("memory latest", "memory latest --kind file"),
    "recall": ("recall how are the tests run", "recall fix of the flaky test --tokens 2000"),
    "mcp": ("mcp --discover --install claude --yes", "mcp --discover --install codex --print"),
    "handoff": ("handoff latest --to codex", "handoff latest --to claude --start"),
    "request": ("request latest --to anthropic", "request latest --to google --explain"),
    "context": ("context latest", "context request.json --to openai-chat"),
    "compact": ("compact latest --dry-run", "compact latest --keep 1"),
    "undo": ("undo latest", "undo latest --json"),
    "why": ("why latest", "why latest 3"),
    "rewind": ("rewind latest", "rewind latest --to 3 --dry-run"),
    "check": ("check request.json", "check request.json --as openai-chat"),
    "fit": ("fit request.json --max-tokens 8000", "fit request.json --max-tokens 8000 --strategy mask"),
    "count": ("count latest", "count request.json"),
    "cache": ("cache latest", "cache latest --json"),
    "models": ("models opus", "models claude-opus-4-5"),
    "export": ("export latest --format html --output talk.html", "export latest --format markdown"),
    "visualize": ("visualize latest -o run.html", "visualize latest --format html"),
    "gc": ("gc --older-than 90d --dry-run", "gc --max-disk 2GB"),
    "keep": ("keep latest", "keep latest --undo"),
    "verify": ("verify", "verify latest"),
    "doctor": ("doctor latest", "doctor latest --json"),
    "scan": ("scan", "scan latest"),
    "scrub": ("scrub latest", "scrub trial --yes"),
    "salvage": ("salvage trial whole", "salvage latest whole"),
    "pack": ("pack latest", "pack --older-than 30d"),
    "copy": ("copy backup.db", "copy sealed.db --new-key file:new.key"),
    "rekey": ("rekey --key ask --new-key ask", "rekey --key file:old.key --new-key file:new.key"),
    "config": ("config", "config --path"),
    "completion": ("completion bash > ~/.turnlog.bash", "completion fish > ~/.config/fish/completions/turnlog.fish"),
    "demo": ("demo", "demo --help"),
    "help": ("help", "help show"),
}
"""Two examples of each command, for its help."""

_MEANT = {
    "list": "ls", "sessions": "ls", "log": "ls show", "logs": "ls show", "history": "ls show", "last": "show",
    "cat": "show", "view": "show", "open": "show chat", "get": "show", "resume": "chat handoff",
    "continue": "chat handoff", "run": "chat", "ask": "chat", "talk": "chat", "grep": "search", "find": "search recall",
    "delete": "rm", "remove": "rm", "del": "rm", "clean": "gc", "prune": "gc", "mv": "rename", "title": "rename",
    "cp": "fork copy", "clone": "fork", "branch": "fork", "add": "import", "load": "import", "discover": "import",
    "convert": "request export", "html": "export serve", "save": "export", "cost": "ls show", "usage": "ls show",
    "web": "serve", "browse": "serve", "browser": "serve", "ui": "serve",
    "tokens": "count context", "window": "context", "status": "config", "path": "config", "settings": "config",
    "backup": "copy", "pin": "keep", "repair": "doctor salvage", "fsck": "verify", "secrets": "scan", "price": "models",
    "prices": "models", "revert": "rewind undo", "version": "help", "stats": "show context", "tools": "show",
    "turns": "show", "tail": "show chat", "info": "show", "fails": "errors",
}  # fmt: skip
"""Words that other programs have for what a command does here."""


class _Formatter(HelpFormatter):
    """Wraps what is one paragraph, and leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def no_command(word: str) -> str:
    """What to say of a word that is no command."""
    near = _MEANT.get(word.lower(), "").split() or [name for name in COMMANDS if name.startswith(word)]
    near = near or difflib.get_close_matches(word.lower(), COMMANDS, 2)
    hint = f"did you mean {' or '.join(near[:3])}?" if near else "`turnlog help` lists them"
    return f"there is no command {word!r}; {hint}"


def add_command(commands: Any, store: ArgumentParser | None, name: str) -> ArgumentParser:
    """Add a command, with what it does in the list of commands and in its own help; `store` has the options of commands
    that open the store."""
    does = COMMANDS[name][1]
    sentence = f"{does[0].upper()}{does[1:]}."
    told = "\n".join(["examples:", *(f"  turnlog {example}" for example in EXAMPLES[name])])
    if store is not None:
        told += "\n\n--store PATH, --key WHERE: another store, and its key (see `turnlog help`)"
    parents = [] if store is None else [store]
    parser: ArgumentParser = commands.add_parser(
        name, parents=parents, help=does, description=sentence, epilog=told, formatter_class=_Formatter
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


def filled(text: str) -> str:
    """An argument type: a text that is not empty, as that of a variable that is not set."""
    if not text.strip():
        raise ArgumentTypeError("it is empty")
    return text


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


def turn_number(text: str) -> int:
    """An argument type: the number of a turn, from the end if it is negative."""
    if not text.removeprefix("-").isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"{text!r} is not the number of a turn; 1 is the first turn, -1 the last")
    return int(text)
