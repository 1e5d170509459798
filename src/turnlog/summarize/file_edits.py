"""Which files a call changes, by the name of its tool and its arguments, by a patch in it, or by a shell command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..log.messages import ToolCall
from .reading import clip

_ENDS = 1500  # characters of a command that are looked at
_PATH_KEY = re.compile(r"(?:^|_)(?:path|file|filename|filepath)$")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a word begins in `filePath`
# Words of a name, not letters of it: `get_credit` edits nothing, `dispatch` patches nothing.
_CHANGING = re.compile(
    r"(?<![a-z])(?:multi|file|over|re)?"
    r"(?:edit(?:or)?|write|patch|replace|create|delete|insert|move|rename|append|remove|save|update|modify|apply_diff)"
    r"(?:file|text)?s?(?![a-z])"
)
_MOVING = re.compile(r"(?:move|rename)_(?:file|path)s?$")
_ENDS_OF_MOVE = ("source", "destination", "src", "dst", "from", "to")  # keys
_DEEDS = ("command", "action", "operation", "mode")  # keys by which one tool does several things
_DEED = re.compile(r"[A-Za-z_-]{2,30}")
_LOOKING = re.compile(r"(?:view|read|open|list|find|search|get|show|print|cat|goto|scroll|r)(?:$|[_-])", re.IGNORECASE)
_BEGIN_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete|Move)(?: File| to): (.+?)[ \t\r]*$", re.MULTILINE)
_SHELL = re.compile(
    r"(?<![a-z])(?:bash|shell|sh|zsh|terminal|console|cmd|command|exec|execute|run|powershell)(?![a-z])"
)
_OTHER = re.compile(r"sql|query|python|javascript|node|browser")  # languages in which `>` compares
_COMMAND_KEYS = ("command", "cmd", "commands", "script", "input", "keystrokes")
_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,40})\1(?![\w<])")  # of `cat <<'EOF' > path`
_QUOTED = re.compile(
    r"(\\.)|(?<!\S)#[^\n]*|(>[ \t]*)?(\"(?:[^\"\\]|\\.)*\"|'[^']*')", re.DOTALL
)  # and what is remarked
_QUOTED_NAME = re.compile(r"['\"]((?:[A-Za-z]:)?[\w./\\~@+-]*\w\.\w{1,10})['\"]")  # ends as no program of `sed` does
_REDIRECTED = re.compile(r"(?<!\S)\d+[<>]|[<>]")
_REDIRECTION = re.compile(r"\d?>&\d|&?>{1,2}\s*\S+")
_INTO = re.compile(r"(?<![<>&\d=-])>{1,2}[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|((?>(?:[A-Za-z]:)?[\w./\\~-]*\w)(?!\0)))")
_NEXT = re.compile(r"[;&|\n()]+")
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w./\\~@+-]*[\w/]")
_SETTING = re.compile(r"\w+=|sudo$|git$|time$|then$|do$|else$")  # what may stand ahead of the name of a command
_WRITTEN, _BY_SED, _BY_PERL, _REMOVED, _MOVED = "written", "edited by sed", "edited by perl", "removed", "moved"
_RESTORED, _PATCHED_BY, _SCRIPTED = "restored by git", "patched", "written by a script"
_PROGRAMS = (
    *("tee ", "sed ", "perl ", "rm ", "mv ", "cp ", "touch ", "checkout ", "restore "),
    *("-Content", "-Item", "Out-File"),
)
_CMDLETS = {  # of PowerShell, and how many of the words that no parameter is named for are files; 0: all
    **dict.fromkeys(("set-content", "add-content", "clear-content", "out-file", "new-item"), (_WRITTEN, 1)),
    **dict.fromkeys(("move-item", "rename-item"), (_MOVED, 2)),
    "copy-item": (_WRITTEN, 2),
    "remove-item": (_REMOVED, 0),
}
_NAMING = re.compile(r"-(?:path|literalpath|filepath|destination|newname)$", re.IGNORECASE)
_SWITCH = re.compile(r"-(?:force|recurse|append|nonewline|passthru|whatif|confirm.*)$", re.IGNORECASE)
# A program that is told in the command itself, and what it writes to: a name, or what stands for one.
_SCRIPT = re.compile(r"\b(?:python[\d.]*|node)\b[^\n|;&]{0,300}?(?:<<|\s-[ce]\b)")
_NAME = r"""(?:(['"])([^'"\n]+)\1|\b(\w+))"""  # from where the word begins: each is looked at once
_SCRIPT_WRITES = (
    re.compile(rf"""\bopen\(\s*{_NAME}\s*,\s*(?:mode\s*=\s*)?['"][wax]"""),
    re.compile(rf"""(?:\bPath\(\s*(?=['"]))?{_NAME}\)?\.write_(?:text|bytes)\("""),
    re.compile(rf"""\bwriteFile(?:Sync)?\(\s*{_NAME}"""),
)
_APPLIED = re.compile(r"\b(?:git apply|patch)\b(?![^\n]{0,300} --(?:check|dry-run|stat|numstat)\b)[^\n]{0,300}<<")
_TO_FILE = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_IN_PLACE = re.compile(r"-[pnlaw0]*i|--in-place")
_QUOTATION = "''"

BY_SHELL = frozenset({_WRITTEN, _BY_SED, _BY_PERL, _REMOVED, _MOVED, _RESTORED, _PATCHED_BY, _SCRIPTED})
"""What a shell command may have done to a file though it failed: another part of it may have."""


def changes_of(call: ToolCall, text: str) -> Iterator[tuple[str, str]]:
    """Paths that a call, which says `text`, changes, with the name of the tool, what it was told to do, or a word for
    what a shell command does."""
    name = words_of(call.name)
    named = call.arguments if isinstance(call.arguments, dict) else {}
    own = list(_by_keys(call, name, named)) if _CHANGING.search(name) else []
    yield from own
    if not own and (_BEGIN_PATCH in text or ("*** " in text and "patch" in name)):  # else it is of what is written
        for verb, path in _PATCHED.findall(text):
            yield path, f"{verb} by patch"
    patch = named.get("operation")
    if isinstance(patch, dict) and isinstance(patch.get("path"), str) and _is_name(patch["path"]):
        yield patch["path"], _named(str(patch.get("type", "")), call)  # as OpenAI's `apply_patch` has it
    if not _CHANGING.search(name) and not _OTHER.search(name):
        yield from _by_shell(_command(call, named, shell=_SHELL.search(name) is not None))


def _by_keys(call: ToolCall, name: str, named: dict[str, object]) -> Iterator[tuple[str, str]]:
    """The files that a tool of such a name is told to change: by its arguments, or by those of a list in them."""
    deed = next((value for key in _DEEDS if isinstance(value := named.get(key), str)), "")
    if _LOOKING.match(deed):
        return
    listed = (item for value in named.values() if isinstance(value, list) for item in value)
    ends = _ENDS_OF_MOVE if _MOVING.search(name) else ()
    for arguments in (named, *(item for item in listed if isinstance(item, dict))):
        for key, value in arguments.items():
            if isinstance(value, str) and (_PATH_KEY.search(words_of(key)) or key in ends) and _is_name(value):
                yield value, _named(deed, call)


def words_of(name: str) -> str:
    """A name in small letters, with `_` between its words."""
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


def last_program(call: ToolCall) -> str:
    """The last command of those that a call has a shell run, whose status is the call's; "" if it has none run."""
    name = words_of(call.name)
    named = call.arguments if isinstance(call.arguments, dict) else {}
    command = _command(call, named, shell=_SHELL.search(name) is not None) if not _OTHER.search(name) else ""
    plain = _REDIRECTION.sub(" ", _QUOTED.sub(_unquoted, command[-_ENDS:]))
    commands = [one.strip() for one in _NEXT.split(plain) if one.strip()]
    return commands[-1] if commands else ""


def _by_shell(command: str) -> Iterator[tuple[str, str]]:
    """What a shell command does to files, as far as it can be told from its text. What it quotes, and the documents in
    it, are data: there `>` may be part of a program or of a page."""
    yield from _by_document(command[: 20 * _ENDS])
    programs = any(name in command for name in _PROGRAMS)
    if ">" not in command and not programs:
        return
    if "<<" in command:
        command = "\n".join(_without_documents(command[: 20 * _ENDS].split("\n")))
    plain = _QUOTED.sub(_unquoted, command[:_ENDS])
    for match in _INTO.finditer(plain):
        path = match[1] or match[2] or match[3]
        if ("." in path or "/" in path) and not path.startswith("/dev/") and not path.replace(".", "").isdigit():
            yield path, _WRITTEN
    for simple in _NEXT.split(plain) if programs else ():
        words = _REDIRECTED.split(simple, maxsplit=1)[0].split()
        while words and _SETTING.match(words[0]):
            words.pop(0)
        yield from _by_program(words)


def _unquoted(found: re.Match[str]) -> str:
    """What stands for a quotation in a command: itself where it is written to, the name of a file, or a mark."""
    if found[1]:  # a sign that is none, a space in a name, or a folder of Windows
        return found[1] if found[1][1].isalnum() else {" ": "\0", "\n": " "}.get(found[1][1], "")
    if found[2] or not found[3]:
        return found[0] if found[2] else ""
    name = _QUOTED_NAME.fullmatch(found[3])
    return name[1] if name else _QUOTATION


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


def _by_document(command: str) -> Iterator[tuple[str, str]]:
    """What a patch or a program that stands in a command does to files."""
    if "+++ " in command and _APPLIED.search(command):
        for path in _TO_FILE.findall(command):
            if path.strip() != "/dev/null" and _is_name(path):
                yield path.strip(), _PATCHED_BY
    if "open(" not in command and "write" not in command:
        return
    ahead = command.partition("<<")[0]  # what stands in a document runs nothing
    script = _SCRIPT.search(command, 0, len(ahead) + 2)
    if script is not None:
        for sign in _SCRIPT_WRITES:
            for found in sign.finditer(command, script.start()):
                path = found[2] or _assigned(found[3], command[script.start() : found.start()])
                if path and not path.startswith("/dev/"):
                    yield path, _SCRIPTED


def _assigned(name: str, program: str) -> str:
    """The name of a file that a program gave to a variable."""
    value = r"""\s*=\s*(?:[\w.]*Path\(\s*)?['"]([^'"\n]+)['"]\)?\s*(?:$|[;\n])"""
    given = re.findall(rf"\b{re.escape(name)}{value}", program)
    return str(given[-1]) if given else ""


def _by_cmdlet(words: list[str]) -> Iterator[tuple[str, str]]:
    """What a command of PowerShell does to the files that are named to it."""
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
    """What one program does to the files that are named to it."""
    program, given = (words[0], words[1:]) if words else ("", [])
    if program.lower() in _CMDLETS:
        yield from _by_cmdlet(words)
        return
    done = {"tee": _WRITTEN, "touch": _WRITTEN, "cp": _WRITTEN, "rm": _REMOVED, "mv": _MOVED}.get(program, "")
    given = given[-1:] if program == "cp" else given
    if program in ("sed", "perl") and any(map(_IN_PLACE.match, given)):
        done = _BY_SED if program == "sed" else _BY_PERL
        plain = [word for word in given if not word.startswith("-")]
        # Where no quoted program stands, the first word is the program.
        given = plain if _QUOTATION in plain else plain[1:]
    elif (program == "restore" and "--staged" not in given) or (program == "checkout" and "--" in given):
        done, given = _RESTORED, given[given.index("--") + 1 :] if "--" in given else given
    if done:
        for word in given:
            if _PATH.fullmatch(word) and not word.startswith(("-", "/dev/")):
                yield word, done
