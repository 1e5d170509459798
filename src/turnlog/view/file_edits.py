"""Find the files that a call changes, by its tool's name and arguments, a patch, or a shell command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolCall

_ENDS = 1500  # characters of a command that are examined
_PATH_KEY = lazy_pattern(r"(?:^|_)(?:path|file|filename|filepath)$")
_HUMP = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")  # where a word begins in `filePath`
# Matches whole words of a name only: `get_credit` edits nothing, `dispatch` patches nothing.
_CHANGING = lazy_pattern(
    r"(?<![a-z])(?:multi|file|over|re)?"
    r"(?:edit(?:or)?|write|patch|replace|create|delete|insert|move|rename|append|remove|save|update|modify|apply_diff)"
    r"(?:file|text)?s?(?![a-z])"
)
_MOVING = lazy_pattern(r"(?:move|rename)_(?:file|path)s?$")
_ENDS_OF_MOVE = ("source", "destination", "src", "dst", "from", "to")  # keys
_DEEDS = ("command", "action", "operation", "mode")  # keys that name the action of a tool with several actions
_DEED = lazy_pattern(r"[A-Za-z_-]{2,30}")
_LOOKING = lazy_pattern(
    r"(?:view|read|open|list|find|search|get|show|print|cat|goto|scroll|r)(?:$|[_-])", re.IGNORECASE
)
_BEGIN_PATCH = "*** Begin Patch"
_PATCHED = lazy_pattern(r"^\*\*\* (Add|Update|Delete|Move)(?: File| to): (.+?)[ \t\r]*$", re.MULTILINE)
_SHELL = lazy_pattern(
    r"(?<![a-z])(?:bash|shell|sh|zsh|terminal|console|cmd|command|exec|execute|run|powershell)(?![a-z])"
)
_OTHER = lazy_pattern(r"sql|query|python|javascript|node|browser")  # languages in which `>` compares
_COMMAND_KEYS = ("command", "cmd", "commands", "script", "input", "keystrokes")
_DOCUMENT = lazy_pattern(r"<<-?[ \t]*(['\"]?)(\w{1,40})\1(?![\w<])")  # of `cat <<'EOF' > path`
_QUOTED = lazy_pattern(
    r"(\\.)|(?<!\S)#[^\n]*|(>[ \t]*)?(\"(?:[^\"\\]|\\.)*\"|'[^']*')", re.DOTALL
)  # escapes, comments, quotations
_QUOTED_NAME = lazy_pattern(r"['\"]((?:[A-Za-z]:)?[\w./\\~@+-]*\w\.\w{1,10})['\"]")  # no program of `sed` ends so
_REDIRECTED = lazy_pattern(r"(?<!\S)\d+[<>]|[<>]")
_REDIRECTION = lazy_pattern(r"\d?>&\d|&?>{1,2}\s*\S+")
_INTO = lazy_pattern(
    r"(?<![<>&\d=-])>{1,2}[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|((?>(?:[A-Za-z]:)?[\w./\\~-]*\w)(?!\0)))"
)
_NEXT = lazy_pattern(r"[;&|\n()]+")
_SIMPLE = lazy_pattern(r"[^;&|\n()]+")  # a command between these
_SEQUENCE = lazy_pattern(r"(?:[;&\n()]|\|\|)+")
_PATH = lazy_pattern(r"(?:[A-Za-z]:)?[\w./\\~@+-]*[\w/]")
_SETTING = lazy_pattern(r"\w+=|sudo$|git$|time$|then$|do$|else$")  # may come before the name of a command
_WRITTEN, _BY_SED, _BY_PERL, _REMOVED, _MOVED = "written", "edited by sed", "edited by perl", "removed", "moved"
_UNDONE, _PATCHED_BY, _SCRIPTED = "undone by git", "patched", "written by a script"
_PROGRAMS = (
    *("tee ", "sed ", "perl ", "rm ", "mv ", "cp ", "touch ", "checkout ", "restore "),
    *("-Content", "-Item", "Out-File"),
)
_CMDLETS = {  # of PowerShell, and how many of the words without a parameter name are files; 0: all
    **dict.fromkeys(("set-content", "add-content", "clear-content", "out-file", "new-item"), (_WRITTEN, 1)),
    **dict.fromkeys(("move-item", "rename-item"), (_MOVED, 2)),
    "copy-item": (_WRITTEN, 2),
    "remove-item": (_REMOVED, 0),
}
_NAMING = lazy_pattern(r"-(?:path|literalpath|filepath|destination|newname)$", re.IGNORECASE)
_SWITCH = lazy_pattern(r"-(?:force|recurse|append|nonewline|passthru|whatif|confirm.*)$", re.IGNORECASE)
# A program whose code is in the command itself, and the file that it writes to: a name, or a variable.
_SCRIPT = lazy_pattern(r"\b(?:python[\d.]*|node)\b[^\n|;&]{0,300}?(?:<<|\s-[ce]\b)")
_NAME = r"""(?:(['"])([^'"\n]+)\1|\b(\w+))"""  # from the beginning of a word, so that each is matched once
_SCRIPT_WRITES = (
    lazy_pattern(rf"""\bopen\(\s*{_NAME}\s*,\s*(?:mode\s*=\s*)?['"][wax]"""),
    lazy_pattern(rf"""(?:\bPath\(\s*(?=['"]))?{_NAME}\)?\.write_(?:text|bytes)\("""),
    lazy_pattern(rf"""\bwriteFile(?:Sync)?\(\s*{_NAME}"""),
)
_APPLIED = lazy_pattern(r"\b(?:git apply|patch)\b(?![^\n]{0,300} --(?:check|dry-run|stat|numstat)\b)[^\n]{0,300}<<")
_TO_FILE = lazy_pattern(r"^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_IN_PLACE = lazy_pattern(r"-[pnlaw0Ersuz]*i|--in-place")
_QUOTATION = "''"
_ENDED = lazy_pattern(r"\w\.[A-Za-z]\w{0,5}$")  # a name with an ending, as branches and tags seldom have

BY_SHELL = frozenset({_WRITTEN, _BY_SED, _BY_PERL, _REMOVED, _MOVED, _UNDONE, _PATCHED_BY, _SCRIPTED})
"""Changes that a failed shell command may still have made: another part of it may have succeeded."""


def changes_of(call: ToolCall, text: str) -> Iterator[tuple[str, str]]:
    """The paths of files that a call changes, each with what changes it: the tool's name, the action in its arguments,
    or a word for the shell command. `text` is the text of the call."""
    name = words_of(call.name)
    named = call.arguments if isinstance(call.arguments, dict) else {}
    changes = list(_by_keys(call, name, named)) if _CHANGING.search(name) else []
    yield from changes
    if not changes and (_BEGIN_PATCH in text or ("*** " in text and "patch" in name)):  # else it is content
        for verb, path in _PATCHED.findall(text):
            yield path, f"{verb} by patch"
    patch = named.get("operation")
    if isinstance(patch, dict) and isinstance(patch.get("path"), str) and _is_name(patch["path"]):
        yield patch["path"], _named(str(patch.get("type", "")), call)  # as OpenAI's `apply_patch` has it
    if not _CHANGING.search(name) and not _OTHER.search(name):
        yield from _by_shell(_command(call, named, shell=_SHELL.search(name) is not None))


def _by_keys(call: ToolCall, name: str, named: dict[str, object]) -> Iterator[tuple[str, str]]:
    """The files that a tool with this name is told to change by its arguments, or by objects in a list among them."""
    deed = next((value for key in _DEEDS if isinstance(value := named.get(key), str)), "")
    if _LOOKING.match(deed):
        return
    listed = (item for value in named.values() if isinstance(value, list) for item in value)
    ends = _ENDS_OF_MOVE if _MOVING.search(name) else ()
    for arguments in (named, *(item for item in listed if isinstance(item, dict))):
        for key, value in arguments.items():
            if isinstance(value, str) and (_PATH_KEY.search(words_of(key)) or key in ends) and _is_name(value):
                yield value, _named(deed, call)


@lru_cache(maxsize=1024)
def words_of(name: str) -> str:
    """A name in lower case, with `_` between its words."""
    return _HUMP.sub("_", name).lower()


def _named(deed: str, call: ToolCall) -> str:
    """The action in a tool's arguments, or else the tool's name, on one line."""
    return deed if _DEED.fullmatch(deed) else clip(call.name, 60)


def _is_name(value: str) -> bool:
    return 0 < len(value) <= 200 and len(value.splitlines()) == 1


def _command(call: ToolCall, named: dict[str, object], *, shell: bool) -> str:
    """The shell command in a call; "" if there is none."""
    if not named:
        return call.raw_arguments if shell else ""
    for key in _COMMAND_KEYS[: None if shell else 1]:
        value = named.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:  # as `["bash", "-lc", "..."]`
            return str(value[-1]) if len(value) == 3 and str(value[1]).startswith("-") else "\n".join(map(str, value))
    return ""


def last_program(call: ToolCall) -> str:
    """The last shell command in a call, whose status is that of the call; "" if there is none."""
    plain = _without_redirections(shell_text(call)[-_ENDS:])
    commands = [command.strip() for command in _NEXT.split(plain) if command.strip()]
    return commands[-1] if commands else ""


def commands_in(call: ToolCall) -> list[list[str]]:
    """The shell commands in a call, as lists of commands piped into each other. Redirections are left out, quotations
    become marks."""
    command = shell_text(call)[: 20 * _ENDS]
    if "<<" in command:
        command = "\n".join(_without_documents(command.split("\n")))
    plain = _without_redirections(command[:_ENDS])
    pipes = ([piece.strip() for piece in pipe.split("|") if piece.strip()] for pipe in _SEQUENCE.split(plain))
    return [pipe for pipe in pipes if pipe]


def shell_text(call: ToolCall) -> str:
    """The text of the shell command in a call; "" if there is none."""
    name = words_of(call.name)
    named = call.arguments if isinstance(call.arguments, dict) else {}
    return _command(call, named, shell=_SHELL.search(name) is not None) if not _OTHER.search(name) else ""


def _without_redirections(command: str) -> str:
    return _REDIRECTION.sub(" ", _QUOTED.sub(_unquoted, command))


def _by_shell(command: str) -> Iterator[tuple[str, str]]:
    """The changes that a shell command makes to files, as far as its text shows them. Quotations and documents in it
    are data: a `>` in them may be part of a program or of a page."""
    yield from _by_document(command[: 20 * _ENDS])
    programs = any(name in command for name in _PROGRAMS)
    if ">" not in command and not programs:
        return
    changes: list[tuple[int, str, str]] = []
    plain = _plain(command)
    for match in _INTO.finditer(plain):
        path = match[1] or match[2] or match[3]
        if ("." in path or "/" in path) and not path.startswith("/dev/") and not path.replace(".", "").isdigit():
            changes.append((match.start(), path, _WRITTEN))
    for simple in _SIMPLE.finditer(plain) if programs else ():
        changes += [(simple.start(), path, done) for path, done in _by_program(_words_in(simple[0]))]
    changes.sort(key=lambda change: change[0])  # what is removed first and then written is there
    yield from ((path, done) for _, path, done in changes)


def _plain(command: str) -> str:
    """The beginning of a command without the documents in it, and with marks for quotations."""
    if "<<" in command:
        command = "\n".join(_without_documents(command[: 20 * _ENDS].split("\n")))
    return _QUOTED.sub(_unquoted, command[:_ENDS])


def _words_in(simple: str) -> list[str]:
    """The words of a simple command, from its program on."""
    words = _REDIRECTED.split(simple, maxsplit=1)[0].split()
    while words and _SETTING.match(words[0]):
        words.pop(0)
    return words


def changed_before_last(call: ToolCall) -> set[str]:
    """The paths that the shell commands of a call change, all but the last: these may have run if the call failed."""
    commands = [simple[0] for simple in _SIMPLE.finditer(_plain(shell_text(call))) if simple[0].strip()]
    paths: set[str] = set()
    for simple in commands[:-1]:
        paths.update(match[1] or match[2] or match[3] for match in _INTO.finditer(simple))
        paths.update(path for path, _ in _by_program(_words_in(simple)))
    return paths


def _unquoted(found: re.Match[str]) -> str:
    """The replacement for a quotation in a command: the quotation itself if it is written to, the name of a file in it,
    or a mark."""
    if found[1]:  # an escaped character: a sign, a space in a name, or a folder of Windows
        return found[1] if found[1][1].isalnum() else {" ": "\0", "\n": " "}.get(found[1][1], "")
    if found[2] or not found[3]:
        return found[0] if found[2] else ""
    name = _QUOTED_NAME.fullmatch(found[3])
    return name[1] if name else _QUOTATION


def _without_documents(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a command that are not part of a document in it."""
    end = ""
    for line in lines:
        if end:
            end = "" if line.strip() == end else end
            continue
        document = _DOCUMENT.search(line)
        end = document[2] if document else ""
        yield _DOCUMENT.sub("", line) if document else line


def _by_document(command: str) -> Iterator[tuple[str, str]]:
    """The changes that a patch or a program inside a command makes to files."""
    if "+++ " in command and _APPLIED.search(command):
        for path in _TO_FILE.findall(command):
            if path.strip() != "/dev/null" and _is_name(path):
                yield path.strip(), _PATCHED_BY
    if "open(" not in command and "write" not in command:
        return
    ahead = command.partition("<<")[0]  # a document runs nothing
    script = _SCRIPT.search(command, 0, len(ahead) + 2)
    if script is not None:
        for sign in _SCRIPT_WRITES:
            for match in sign.finditer(command, script.start()):
                path = match[2] or _assigned(match[3], command[script.start() : match.start()])
                if path and not path.startswith("/dev/"):
                    yield path, _SCRIPTED


def _assigned(name: str, program: str) -> str:
    """The name of the file that a program assigned to a variable; "" if it assigned none."""
    value = r"""\s*=\s*(?:[\w.]*Path\(\s*)?['"]([^'"\n]+)['"]\)?\s*(?:$|[;\n])"""
    given = re.findall(rf"\b{re.escape(name)}{value}", program)
    return str(given[-1]) if given else ""


def _by_cmdlet(words: list[str]) -> Iterator[tuple[str, str]]:
    """The changes that a command of PowerShell makes to the files in its arguments."""
    done, most = _CMDLETS[words[0].lower()]
    if "directory" in map(str.lower, words):  # `New-Item -ItemType Directory`
        return
    files: list[str] = []
    before = ""
    for word in words[1:]:
        if word.startswith("-"):
            before = "" if _SWITCH.match(word) else word
            continue
        if _NAMING.match(before) or (not before and (not most or len(files) < most)):
            files.append(word.strip(","))
        before = ""
    for word in files[-1:] if words[0].lower() == "copy-item" else files:
        if _PATH.fullmatch(word):
            yield word, done


def _by_program(words: list[str]) -> Iterator[tuple[str, str]]:
    """The changes that one program makes to the files in its arguments."""
    program, given = (words[0], words[1:]) if words else ("", [])
    if program.lower() in _CMDLETS:
        yield from _by_cmdlet(words)
        return
    done = {"tee": _WRITTEN, "touch": _WRITTEN, "cp": _WRITTEN, "rm": _REMOVED, "mv": _MOVED}.get(program, "")
    given = given[-1:] if program == "cp" else given
    if program in ("sed", "perl") and any(map(_IN_PLACE.match, given)):
        done = _BY_SED if program == "sed" else _BY_PERL
        plain = [word for word in given if not word.startswith("-")]
        # Without a quoted program, the first word is the program.
        given = plain if _QUOTATION in plain else plain[1:]
    elif program in ("restore", "checkout"):
        done, given = _UNDONE, _restored(program, given)
    if done:
        for word in given:
            if _PATH.fullmatch(word) and not word.startswith(("-", "/dev/")):
                yield word, done


def _restored(program: str, given: list[str]) -> list[str]:
    """The files that `git restore` or `git checkout` puts back. Without `--`, `git checkout` names a branch, or files
    by names with an ending."""
    if "--" in given:
        return given[given.index("--") + 1 :]
    if program == "restore":
        return [] if {"--staged", "-S"} & {*given} and not {"--worktree", "-W"} & {*given} else given
    switches = {"-b", "-B", "-t", "--track", "--orphan", "--detach"} & {*given}
    return [] if switches else [word for word in given if _ENDED.search(word)]


TreeChange = Literal["commit", "undo", "stash", "unstash", "clean"]
"""What a command of git does to all files at once: it commits the changes, throws those away that are not committed,
puts them away or brings them back, or removes files that git does not know."""

_GIT = lazy_pattern(
    r"(?:^|[;&|\n(])\s*(?:\w+=\S*\s+)*git\s+(?:-[cC]\s+\S+\s+|--no-pager\s+)*(commit|reset|checkout|restore|stash|clean)\b"
    r"([^;&|\n()]*)"
)
_KEPT_STASH = lazy_pattern(r"\s*(?:list|show|drop|clear|branch|create|store)\b")


def tree_changes(call: ToolCall) -> list[TreeChange]:
    """What the commands of git in a call do to all files at once, in order."""
    command = shell_text(call)
    if "git " not in command:
        return []
    found = (_tree_change(*match.groups()) for match in _GIT.finditer(_plain(command)))
    return [change for change in found if change is not None]


def _tree_change(verb: str, rest: str) -> TreeChange | None:
    words = rest.split()
    if verb == "commit":
        return "commit" if "--dry-run" not in words else None
    if verb == "reset":
        return "undo" if "--hard" in words else None
    if verb == "clean":
        return "clean" if any(word.startswith("-") and "f" in word for word in words) else None
    if verb == "stash":
        named = "--" in words or (words[:1] == ["push"] and any(not word.startswith("-") for word in words[1:]))
        if _KEPT_STASH.match(rest) or named:
            return None
        return "unstash" if words[:1] in (["pop"], ["apply"]) else "stash"
    whole = "." in words or ":/" in words or (verb == "checkout" and words in (["-f"], ["--force"]))
    return "undo" if whole and not {"--staged", "-S"} & {*words} else None


FOLDER = lazy_pattern(r"cd (?:\"([^\"\n]*)\"|'([^'\n]*)'|(\S+))\s*(?:&&|;)\s*")
"""A change of folder before a command: it says where the command runs, not which command it is."""


def without_folder(command: str) -> str:
    """A shell command without a change of folder before it."""
    command = command.lstrip()
    return command[match.end() :] if (match := FOLDER.match(command)) is not None else command


_PATHS = ("file_path", "path", "filename", "file", "absolute_path", "notebook_path", "target_file", "dir_path")
_SUBJECTS = ("pattern", "query", "url", "description", "prompt", "name", "title")
"""The arguments that tell best what a call is about, in this order."""


def about_call(call: ToolCall) -> tuple[str, bool]:
    """What a call is about: its command, its file, or the argument that tells most; and whether it is a path."""
    if command := shell_text(call):
        return command, False
    named = call.arguments if isinstance(call.arguments, dict) else {}
    for key in (*_PATHS, *_SUBJECTS):
        if isinstance(value := named.get(key), str) and value:
            return value, key in _PATHS
    if paths := dict.fromkeys(path for path, _ in changes_of(call, call.raw_arguments if call.raw else "")):
        return ", ".join(paths), len(paths) == 1
    words = [value for value in named.values() if isinstance(value, str) and value]
    return (words[0] if words else "" if call.arguments == {} else call.raw_arguments), False
