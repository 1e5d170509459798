"""Which files a call changes, by the name of its tool and its arguments, by a patch in it, or by a shell command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..content import ToolCall
from .reading import clip

__all__ = ["BY_SHELL", "changes_of"]

_ENDS = 1500  # characters of a command that are looked at
_PATH_KEY = re.compile(r"(?:^|_)(?:path|file|filename|filepath)$")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a word begins in `filePath`
# Words of a name, not letters of it: `get_credit` edits nothing, `dispatch` patches nothing.
_CHANGING = re.compile(
    r"(?<![a-z])(?:multi|file|over|re)?"
    r"(?:edit(?:or)?|write|patch|replace|create|delete|insert|move|rename|append|remove|save)(?:file|text)?s?(?![a-z])"
)
_DEEDS = ("command", "action", "operation", "mode")  # keys by which one tool does several things
_DEED = re.compile(r"[A-Za-z_-]{2,30}")
_LOOKING = re.compile(r"(?:view|read|open|list|find|search|get|show|print|cat|goto|scroll|r)(?:$|[_-])", re.IGNORECASE)
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete|Move)(?: File| to): (.+?)[ \t\r]*$", re.MULTILINE)
_SHELL = re.compile(
    r"(?<![a-z])(?:bash|shell|sh|zsh|terminal|console|cmd|command|exec|execute|run|powershell)(?![a-z])"
)
_OTHER = re.compile(r"sql|query|python|javascript|node|browser")  # languages in which `>` compares
_COMMAND_KEYS = ("command", "cmd", "commands", "script", "input", "keystrokes")
_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,40})\1(?![\w<])")  # of `cat <<'EOF' > path`
_QUOTED = re.compile(r"(\\.)|(>[ \t]*)?(\"(?:[^\"\\]|\\.)*\"|'[^']*')", re.DOTALL)
_INTO = re.compile(r"(?<![<>&\d=-])>{1,2}[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|([\w./~-]*\w))")
_NEXT = re.compile(r"[;&|\n()]+")
_PATH = re.compile(r"[\w./~@+-]*[\w/]")
_SETTING = re.compile(r"\w+=|sudo$|git$|time$|then$|do$|else$")  # what may stand ahead of the name of a command
_WRITTEN, _BY_SED, _REMOVED, _MOVED = "written", "edited by sed", "removed", "moved"
_PROGRAMS = ("tee ", "sed ", "rm ", "mv ", "cp ", "touch ")
_QUOTATION = "''"

BY_SHELL = frozenset({_WRITTEN, _BY_SED, _REMOVED, _MOVED})
"""What a shell command may have done to a file though it failed: another part of it may have."""


def changes_of(call: ToolCall, text: str) -> Iterator[tuple[str, str]]:
    """Paths that a call, which says `text`, changes, with the name of the tool, what it was told to do, or a word for
    what a shell command does."""
    if "*** " in text:
        for verb, path in _PATCHED.findall(text):
            yield path, f"{verb} by patch"
    name = _words_of(call.name)
    named = call.arguments if isinstance(call.arguments, dict) else {}
    patch = named.get("operation")
    if isinstance(patch, dict) and isinstance(patch.get("path"), str) and _is_name(patch["path"]):
        yield patch["path"], _named(str(patch.get("type", "")), call)  # as OpenAI's `apply_patch` has it
    if _CHANGING.search(name):
        deed = next((named[key] for key in _DEEDS if isinstance(named.get(key), str)), "")
        if not _LOOKING.match(deed):
            for key, value in named.items():
                if isinstance(value, str) and _PATH_KEY.search(_words_of(key)) and _is_name(value):
                    yield value, _named(deed, call)
    elif not _OTHER.search(name):
        yield from _by_shell(_command(call, named, shell=_SHELL.search(name) is not None))


def _words_of(name: str) -> str:
    return _HUMP.sub("_", name).lower()


def _named(deed: str, call: ToolCall) -> str:
    """What a tool was told to do, or the tool, on one line whatever it is called."""
    return deed if _DEED.fullmatch(deed) else clip(call.name, 60)


def _is_name(value: str) -> bool:
    return 0 < len(value) <= 200 and len(value.splitlines()) == 1


def _command(call: ToolCall, named: dict[str, object], *, shell: bool) -> str:
    """The command that a call has a shell run, if it does."""
    if not named:
        return call.raw_arguments if shell else ""
    for key in _COMMAND_KEYS[: None if shell else 1]:
        value = named.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:  # as `["bash", "-lc", "..."]`
            return str(value[-1]) if len(value) == 3 and str(value[1]).startswith("-") else "\n".join(map(str, value))
    return ""


def _by_shell(command: str) -> Iterator[tuple[str, str]]:
    """What a shell command does to files, as far as it can be told from its text. What it quotes, and the documents in
    it, are data: there `>` may be part of a program or of a page."""
    programs = any(name in command for name in _PROGRAMS)
    if ">" not in command and not programs:
        return
    if "<<" in command:
        command = "\n".join(_without_documents(command[: 20 * _ENDS].split("\n")))
    plain = _QUOTED.sub(lambda found: found[0] if found[2] else _QUOTATION if found[3] else "", command[:_ENDS])
    for match in _INTO.finditer(plain):
        path = match[1] or match[2] or match[3]
        if ("." in path or "/" in path) and not path.startswith("/dev/"):
            yield path, _WRITTEN
    for simple in _NEXT.split(plain) if programs else ():
        words = simple.partition(">")[0].split()
        while words and _SETTING.match(words[0]):
            words.pop(0)
        yield from _by_program(words)


def _without_documents(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a command that are none of a document in it."""
    end = ""
    for line in lines:
        if end:
            end = "" if line.strip() == end else end
            continue
        found = _DOCUMENT.search(line)
        end = found[2] if found else ""
        yield _DOCUMENT.sub("", line) if found else line


def _by_program(words: list[str]) -> Iterator[tuple[str, str]]:
    """What one program does to the files that are named to it."""
    program, given = (words[0], words[1:]) if words else ("", [])
    done = {"tee": _WRITTEN, "touch": _WRITTEN, "cp": _WRITTEN, "rm": _REMOVED, "mv": _MOVED}.get(program, "")
    given = given[-1:] if program == "cp" else given
    if program == "sed" and any(word.startswith(("-i", "--in-place")) for word in given):
        done = _BY_SED
        plain = [word for word in given if not word.startswith("-")]
        # Where no quoted program stands, the first word is the program.
        given = plain if _QUOTATION in plain else plain[1:]
    if done:
        for word in given:
            if _PATH.fullmatch(word) and not word.startswith(("-", "/dev/")):
                yield word, done
