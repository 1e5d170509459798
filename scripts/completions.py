"""Writes the scripts of `turnlog completion` from the parser: src/turnlog/cli/data/turnlog.bash, .zsh and .fish.

python scripts/completions.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from turnlog.cli.arguments import COMMANDS
from turnlog.cli.completion import SHELLS
from turnlog.cli.entry import build_parser
from turnlog.providers import PROVIDERS

FOLDER = Path(__file__).parent.parent / "src/turnlog/cli/data"
KINDS = {
    "ID": "ids", "SOURCE": "ids files", "FILE": "files", "PATH": "files", "HOME": "files", "COMMAND": "commands",
}  # fmt: skip
"""What may stand for a word of the help."""

MADE = "# Made by scripts/completions.py from the parser of turnlog. Changes here are lost."

BASH = """\
_turnlog_ids() {
    local id told
    while IFS=$'\\t' read -r id told; do
        printf -v id %q "$id"
        COMPREPLY+=("$id")
    done < <("${COMP_WORDS[0]/#\\~/$HOME}" completion ids "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$cur" 2>/dev/null)
}
_turnlog_files() {
    local file
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        COMPREPLY+=("$file")
    done < <(compgen -f -- "$cur")
}
_turnlog_words() {
    local word
    for word; do
        if [[ $word == "$cur"* ]]; then COMPREPLY+=("$word"); fi
    done
}
_turnlog_commands() {
    _turnlog_words @COMMANDS@
}
_turnlog() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i
    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --store|--key) i=$((i + 1)) ;;
            -*|=) ;;
            *) command=${COMP_WORDS[i]}; break ;;
        esac
    done
@CASES@
}
complete -F _turnlog turnlog
"""

ZSH = """\
_turnlog_ids() {
    local id told
    local -a found
    while IFS=$'\\t' read -r id told; do
        found+=("${id//:/\\\\:}:$told")
    done < <("${words[1]/#\\~/$HOME}" completion ids "${(@)words[2,CURRENT-1]}" "$cur" 2>/dev/null)
    _describe -V session found
}
_turnlog_files() {
    _files
}
_turnlog_words() {
    compadd -- "$@"
}
_turnlog_commands() {
    local -a commands=(
@DESCRIBED@
    )
    _describe command commands
}
_turnlog() {
    local cur=$words[CURRENT] prev=$words[CURRENT-1] command= i
    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
            --store|--key) i=$((i + 1)) ;;
            -*) ;;
            *) command=$words[i]; break ;;
        esac
    done
@CASES@
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _turnlog "$@"; else compdef _turnlog turnlog; fi
"""

FISH = """\
function __turnlog_ids
    set -l words (commandline -opc)
    $words[1] completion ids $words[2..-1] (commandline -ct) 2>/dev/null
end
function __turnlog_command_is
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --store --key
                set -e words[1]
            case '-*'
            case '*'
                contains -- $words[1] $argv
                return
        end
        set -e words[1]
    end
    test -z "$argv"
end
complete -c turnlog -f
complete -c turnlog -l store -r -F -d 'the store'
complete -c turnlog -l key -x -d 'the place of its key'
complete -c turnlog -s h -l help -d 'show how it is used'
"""


class Word(NamedTuple):
    """An option or an argument: what may stand there (`ids`, `files`, `commands`), or which words."""

    action: argparse.Action
    kinds: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """How the option is spelled; empty for an argument."""
        return [*self.action.option_strings]

    @property
    def calls(self) -> str:
        """What offers the values, for bash and zsh."""
        named = [f"_turnlog_words {' '.join(map(quote, self.words))}"] if self.words else []
        return "; ".join([*named, *(f"_turnlog_{kind}" for kind in self.kinds)]) or ":"


def commands() -> dict[str, list[Word]]:
    """The options and arguments of each command, without those that its help does not have."""
    parser = build_parser()
    (choices,) = (action.choices for action in parser._actions if isinstance(action.choices, dict))
    return {
        name: [word(action) for action in choices[name]._actions if action.help != argparse.SUPPRESS]
        for name in COMMANDS
    }


def word(action: argparse.Action) -> Word:
    """An option or argument, and what may stand there."""
    words = SHELLS if action.metavar == "SHELL" else tuple(map(str, action.choices or ()))
    words = tuple(PROVIDERS) if action.metavar == "PROVIDER" else words
    return Word(action, tuple(KINDS.get(str(action.metavar), "").split()), words)


def cases() -> Iterator[str]:
    """What may stand after a command and an option, then after a command alone, for bash and zsh."""
    found = commands()
    yield '    case "$command $prev" in'
    yield "        *' --store') _turnlog_files; return ;;"
    yield "        *' --key') return ;;"
    for name, words in found.items():
        for each in words:
            if each.options and each.action.nargs != 0:
                places = "|".join(f"'{name} {option}'" for option in each.options)
                after = "" if each.action.nargs == "?" else "; return"
                yield f"        {places}) {each.calls}{after} ;;"
    yield "    esac"
    yield '    case "$command $cur" in'
    yield "        ' -'*) _turnlog_words --help --version --store --key ;;"
    yield "        ' '*) _turnlog_commands ;;"
    for name, words in found.items():
        options = [option for each in words for option in each.options if option.startswith("--")]
        shown = [option for each in words for option in each.options if len(each.options) == 1 and len(option) == 2]
        yield f"        '{name} -'*) _turnlog_words {' '.join([*options, *shown, '--store', '--key'])} ;;"
        places = dict.fromkeys(each.calls for each in words if not each.options and (each.kinds or each.words))
        if places:
            yield f"        '{name} '*) {'; '.join(places)} ;;"
    yield "    esac"


def fish() -> Iterator[str]:
    """The lines about commands, for fish."""
    for name, (_, does) in COMMANDS.items():
        yield f"complete -c turnlog -n __turnlog_command_is -a {name} -d {told(does)}"
    for name, words in commands().items():
        where = f"complete -c turnlog -n '__turnlog_command_is {name}'"
        for each in words:
            spelled = [f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}" for option in each.options]
            offered = [f"-a {told(' '.join(each.words))}"] if each.words else []
            offered += [{"ids": "-k -a '(__turnlog_ids)'", "files": "-F"}.get(kind, "") for kind in each.kinds]
            if "commands" in each.kinds:
                offered = [f"-a {told(' '.join(COMMANDS))}"]
            if spelled and each.action.dest != "help":
                takes = ["-r" if "files" in each.kinds else "-x"] if each.action.nargs != 0 else []
                yield " ".join([where, *spelled, *takes, *offered, f"-d {told(str(each.action.help))}"])
            elif offered:
                yield " ".join([where, *offered])


def told(text: str) -> str:
    """A text in quotes, for fish."""
    text = text.replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def scripts() -> dict[str, str]:
    """The script of each shell."""
    body = "\n".join(cases())
    described = "\n".join(f"        {quote(f'{name}:{does}')}" for name, (_, does) in COMMANDS.items())
    bash = BASH.replace("@COMMANDS@", " ".join(COMMANDS)).replace("@CASES@", body)
    zsh = ZSH.replace("@DESCRIBED@", described).replace("@CASES@", body)
    return {
        "bash": f"{MADE}\n{bash}",
        "zsh": f"#compdef turnlog\n{MADE}\n{zsh}",
        "fish": f"{MADE}\n{FISH}" + "\n".join(fish()) + "\n",
    }


if __name__ == "__main__":
    for shell, script in scripts().items():
        (FOLDER / f"turnlog.{shell}").write_text(script, "utf-8")
