"""The rules of the house that a machine can hold. CONTRIBUTING.md says why each is there."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import turnlog
from parsed import nodes, parsed
from turnlog import errors
from turnlog.errors import TurnlogError
from turnlog.models.makers import PROVIDER_ROWS, makers

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
FILE_LINES, FUNCTION_LINES = 600, 60
EXCUSE = "# Over 600 lines because "
Sources = dict[Path, ast.Module]
SAME_NAMES = {
    "Appender": "the same thing for SQLite and PostgreSQL",
    "Database": "the same thing for SQLite and PostgreSQL",
    "Reader": "the same thing for SQLite and PostgreSQL",
    "StreamAssembler": "the same thing for each provider",
    "Turn": "public in both rooms: a turn of a session; in `trajectory`, a step with an image",
}
"""Public classes that have the same name, and why."""
ALONE = {
    "_platform.pager": "how a pager runs, without what the command line prints",
    "agent.limits": "limits of a run: with the loop in `agent.running` over 600 lines",
    "agent.mcp_link": "connections by the SDK of MCP, apart from what runs see of servers",
    "agent.mcp_results": "what servers say as parts and questions, without connections",
    "requests.answers": "loaded only where an answer has a schema, or settings of another provider are read",
    "chat.commands": "the slash commands, one function each: with the terminal over 600 lines",
    "chat.processes": "how commands run and end; the tools that run them are in `chat.workshop`",
    "chat.rendering": "answers as text on the screen, without a terminal",
    "chat.workshop": "the tools that a chat gives to its model",
    "cli.talk": "what `show` prints unless it is asked for records, turns or tools",
    "cli.demo": "loaded only if the command runs",
    "cli.sessions": "one file for each noun of the command line; `scrub` asks with the line that `rm` asks with",
    "cli.show": "one file for each noun of the command line",
    "export.markdown": "one file for each format",
    "display.fates": "what became of each message: with the page of a request over 600 lines",
    "display.conversation": "what a record looks like, apart from pages and their windows",
    "importers.codex.events": "with the conversation over 600 lines",
    "importers.codex_exec": "one file for each format, which the catalog names; its words are the runner's too",
    "importers.gemini_stream": "one file for each format, which the catalog names; its words are the runner's too",
    "importers.sync.own_records": "with the session over 600 lines",
    "web.connections": "connections of whoever may connect, below all requests",
    "web.live": "events, which only the event loop sends, apart from the pages that threads make",
    "mcp.install": "what programs need, apart from what runs; loaded only where the command is",
    "memory.resolve": "with the fold over 600 lines",
    "redaction.scrub": "the room below: rewriting records",
    "runners.programs.claude": "one file for each program",
    "runners.programs.codex": "one file for each program",
    "runners.programs.gemini": "one file for each program",
    "session.resources": "services of a session and their closing, without anything of the session",
    "session.sections": "with the state over 600 lines",
    "transport.conversations": "which session a body belongs to, without clients and their answers",
    "stores.encrypted.cards": "the layout of a file, which docs/storage.md describes",
    "stores.jsonl.damaged": "part of a store: all together over 600 lines",
    "stores.jsonl.retention": "part of a store: all together over 600 lines",
    "stores.jsonl.verify": "part of a store: all together over 600 lines",
    "stores.postgres.append": "part of a store: all together over 600 lines",
    "stores.postgres.leases": "part of a store: all together over 600 lines",
    "stores.postgres.reading": "part of a store: all together over 600 lines",
    "stores.postgres.retention": "part of a store: all together over 600 lines",
    "stores.postgres.rewrite": "part of a store: all together over 600 lines",
    "stores.postgres.verify": "part of a store: all together over 600 lines",
    "stores.sqlite.reading": "part of a store: all together over 600 lines",
    "stores.sqlite.retention": "part of a store: all together over 600 lines",
    "stores.sqlite.rewrite": "part of a store: all together over 600 lines",
    "stores.sqlite.search": "part of a store: all together over 600 lines",
    "stores.sqlite.verify": "part of a store: all together over 600 lines",
    "summarize.pastes": "with the orders over 600 lines",
    "testing.promises": "the parts of `check_store`: all together over 600 lines",
    "text_history.layout": "which parts are shown and how long, decided without writing a prompt",
    "view.repair.alternate": "whole views for chat templates; with `view.repair.repair` over 600 lines",
    "view.repair.own_calls": "with the repair over 600 lines",
    "view.repair.sniff": "the room below: what media bytes are",
    "web.site": "pages as files, without a server and what it needs",
    "workspace.snapshot": "a folder at one moment, without watching",
}
"""Modules that only one other module imports, other than a facade, and why they are files of their own."""
CIRCLES = {
    (
        "providers.protocol",
        "providers.signs",
    ): "for type checkers: the field of a provider has a type made of providers",
    ("stores.places", "stores"): "stores are loaded by their names in the facade when one is opened",
}
"""Imports that close a circle, and why they stay."""
BAD_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
NAMES = {*PROVIDER_ROWS, *makers()}
NO_PROVIDERS = "config errors log memory requests session stores summarize telemetry tokens view".split()
EXTRAS_ROOMS = ("chat", "display", "mcp", "stores", "telemetry", "testing", "tokens", "trajectory", "web")


@pytest.fixture(scope="module")
def sources() -> Sources:
    """Every module of turnlog, parsed. Made once, and only where it is needed: it takes seconds and much memory."""
    return parsed(sorted(SRC.rglob("*.py")))


def _where(path: Path, node: ast.AST | None = None) -> str:
    line = getattr(node, "lineno", None)
    return f"{path.relative_to(ROOT)}" + (f":{line}" if line else "")


def _module(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(path: Path) -> str:
    return path.relative_to(SRC / "turnlog").parts[0].removesuffix(".py")


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module's top level, those under `if` and `try` included."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try)):
            yield from _statements([*statement.body, *statement.orelse])


def _public_names(tree: ast.Module) -> set[str]:
    """Names that a module defines for others: no underscore in front or behind."""
    names: set[str] = set()
    for statement in _statements(tree.body):
        if isinstance(statement, (*FUNCTION, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            targets = (node for target in statement.targets for node in ast.walk(target))
            names.update(node.id for node in targets if isinstance(node, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
    return {name for name in names if not name.startswith("_") and not name.endswith("_")}


def _declared(tree: ast.Module) -> list[str] | None:
    """What `__all__` lists, or None if there is none."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in statement.targets
        ):
            return list(ast.literal_eval(statement.value))
    return None


def _docstrings(tree: ast.AST) -> set[int]:
    """The ids of the nodes that are docstrings, or strings standing alone."""
    return {id(node.value) for node in nodes(tree) if isinstance(node, ast.Expr)}


def test_files_stay_short(sources: Sources) -> None:
    """A file that outgrows its one job fails here, unless its first lines say why it is longer."""
    long = []
    for path in sources:
        lines = path.read_text("utf-8").splitlines()
        if len(lines) > FILE_LINES and not any(line.startswith(EXCUSE) for line in lines[:5]):
            long.append(f"{_where(path)}: {len(lines)} lines")
    assert long == []


def test_functions_stay_short(sources: Sources) -> None:
    """A function that does several things fails here."""
    long = []
    for path, tree in sources.items():
        for node in nodes(tree):
            if isinstance(node, FUNCTION) and (size := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES:
                long.append(f"{_where(path, node)}: {node.name} has {size} lines")
    assert long == []


def test_module_names_say_something(sources: Sources) -> None:
    """A drawer for leftovers (`utils`, `common`, ...) fails here."""
    assert [_where(path) for path in sources if {path.stem, path.parent.name} & BAD_NAMES] == []


def _imports(sources: Sources) -> set[tuple[str, str]]:
    """Each module with each module that it imports from, those under `if TYPE_CHECKING` included."""
    modules = set(map(_module, sources))
    imports = set()
    for path, tree in sources.items():
        package = _module(path) if path.name == "__init__.py" else _module(path).rpartition(".")[0]
        for node in nodes(tree):
            if isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                source = ".".join([*above, *([node.module] if node.module else [])])
                for alias in node.names:
                    inner = f"{source}.{alias.name}"
                    imports.add((_module(path), inner if inner in modules else source))
    return imports


def test_modules_import_each_other_in_one_direction(sources: Sources) -> None:
    """A part that imports the whole, be it for its type alone, can be neither read nor tested without it."""
    imports = {
        (importer.removeprefix("turnlog."), imported.removeprefix("turnlog."))
        for importer, imported in _imports(sources)
        if importer != imported
    }
    assert CIRCLES.keys() <= imports
    left = imports - CIRCLES.keys()
    size = 0
    while len(left) != size:  # a module that imports none of the others, or that none imports, is in no circle
        size, importers, needed = len(left), {importer for importer, _ in left}, {imported for _, imported in left}
        left = {(importer, imported) for importer, imported in left if importer in needed and imported in importers}
    assert sorted(left) == []


@pytest.mark.slow
def test_what_one_module_needs_is_in_it(sources: Sources) -> None:
    """A room of its own for each cupboard: whoever follows a request opens 70 files."""
    modules = set(map(_module, sources))
    needed: dict[str, set[str]] = {}
    for importer, imported in _imports(sources):
        needed.setdefault(imported, set()).add(importer)
    facades = {_module(path) for path in sources if path.name == "__init__.py"} | {"turnlog.importers.formats"}
    alone = {
        name.removeprefix("turnlog.")
        for name, users in needed.items()
        if name in modules and name not in facades and len(users - {name}) == 1 and not users & facades
    }
    assert alone == ALONE.keys()


def test_no_class_name_means_two_things(sources: Sources) -> None:
    """Whoever looks for a class finds another one of the same name, and reads the wrong file."""
    places: dict[str, list[str]] = {}
    for path, tree in sources.items():
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(_where(path))
    assert {name for name, found in places.items() if len(found) > 1} == SAME_NAMES.keys()


def test_own_modules_are_imported_at_the_top(sources: Sources) -> None:
    """An import of our own inside a function, which hides a cycle from import-linter, fails here."""
    hidden = []
    for path, tree in sources.items():
        for function in nodes(tree):
            if not isinstance(function, FUNCTION):
                continue
            for node in ast.walk(function):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    names = ["turnlog" if node.level else node.module or ""]
                if any(name.split(".")[0] == "turnlog" for name in names):
                    hidden.append(f"{_where(path, node)} in {function.name}")
    assert hidden == []


def _facades(sources: Sources) -> dict[str, list[str]]:
    """What each module lists in an `__all__`, by the name of the module."""
    listed = {_module(path): _declared(tree) for path, tree in sources.items() if path.name != "__main__.py"}
    return {name: names for name, names in listed.items() if names is not None}


def _on_pages() -> set[str]:
    """The full names that the pages of docs/ and README.md have in their texts or import in their examples."""
    pages = "\n".join(page.read_text("utf-8") for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
    imported = re.findall(r"from (turnlog[\w.]*) import ([\w, ]+)", pages)
    examples = {f"{module}.{name}" for module, names in imported for name in re.findall(r"\w+", names)}
    return examples | set(re.findall(r"(?<![\w./])turnlog(?:\.\w+)+", pages))


def test_facades_list_what_pages_explain(sources: Sources) -> None:
    """A name that only turnlog itself needs is offered to users, beside those that they look for, and bound to stay."""
    pages = _on_pages()
    unexplained = [
        f"{module}.{name}"
        for module, names in _facades(sources).items()
        for name in names
        if name not in turnlog.__all__ and f"{module}.{name}" not in pages
    ]
    assert unexplained == []


def test_facades_are_those_that_users_are_told_of(sources: Sources) -> None:
    """An `__all__` in a module of a room, or a package with one that docs/names.md leaves out, fails here."""
    told = (ROOT / "docs" / "names.md").read_text("utf-8").partition("\n## ")[0]
    named = set(re.findall(r"`(turnlog\.[a-z_.]+)`", told)) - {"turnlog.__version__"}
    no_facade = {"turnlog.log"}  # its modules are imported by name
    assert _facades(sources).keys() - {"turnlog"} == named - no_facade


def test_facades_list_what_they_define(sources: Sources) -> None:
    """A facade that leaves one of its own public names out fails here."""
    own = {"turnlog.providers.google.PROVIDER"}  # for turnlog, as in each provider's folder
    wrong = []
    for path, tree in sources.items():
        if (declared := _declared(tree)) is not None:
            wrong += [f"{_module(path)}.{name}" for name in _public_names(tree) - set(declared)]
    assert set(wrong) == own


def test_errors_lists_errors_only() -> None:
    """Whoever reads which errors to catch meets helpers of turnlog among them."""
    listed = [getattr(errors, name) for name in errors.__all__]
    assert [one for one in listed if not (isinstance(one, type) and issubclass(one, (TurnlogError, Warning)))] == []


def test_private_names_stay_in_their_module(sources: Sources) -> None:
    """An import of a name with a leading underscore, which its module may change at any time, fails here."""
    taken = [
        f"{_where(path, node)}: {alias.name}"
        for path, tree in sources.items()
        for node in nodes(tree)
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("turnlog"))
        for alias in node.names
        if alias.name.startswith("_") and alias.name not in ("__version__", "_platform")
    ]
    assert taken == []


def test_every_facade_offers_what_it_lists(sources: Sources) -> None:
    """A package whose `__all__` is unsorted or names what it does not have fails here."""
    wrong = []
    for path, tree in sources.items():
        declared = _declared(tree)
        if path.name != "__init__.py" or declared is None:
            continue
        module: ModuleType = importlib.import_module(_module(path))
        if missing := [name for name in declared if not hasattr(module, name)]:
            wrong.append(f"{_where(path)}: lacks {missing}")
        if declared != sorted(set(declared)):
            wrong.append(f"{_where(path)}: __all__ is not sorted")
    assert wrong == []


def test_lazy_facades_say_the_same_three_times(sources: Sources) -> None:
    """A facade that loads names late and offers others to type checkers, or lists others, fails here."""
    wrong = []
    for path, tree in sources.items():
        calls = [node for node in nodes(tree) if isinstance(node, ast.Call)]
        loader = next((call for call in calls if ast.unparse(call.func) == "lazy_names"), None)
        if loader is None:
            continue
        table = {module: set(names.split()) for module, names in ast.literal_eval(loader.args[1]).items()}
        typed: dict[str, set[str]] = {}
        for block in (node for node in tree.body if isinstance(node, ast.If)):
            for node in (each for each in block.body if isinstance(each, ast.ImportFrom)):
                typed.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
        listed = set(_declared(tree) or ()) - {"__version__"}
        offered = set().union(*(names for module, names in table.items() if module))
        if table != typed or offered != listed:
            wrong.append(f"{_where(path)}: {table} {typed} {listed}")
    assert wrong == []


def _documented_methods(sources: Sources) -> dict[str, set[str]]:
    """The methods of each class that have a docstring, its own or, as `help` shows it, that of a base class."""
    found: dict[str, set[str]] = {}
    bases: dict[str, list[str]] = {}
    for tree in sources.values():
        for holder in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            bases.setdefault(holder.name, []).extend(ast.unparse(base) for base in holder.bases)
            own = {node.name for node in holder.body if isinstance(node, FUNCTION) and ast.get_docstring(node)}
            found.setdefault(holder.name, set()).update(own)

    def inherited(name: str) -> set[str]:
        return found.get(name, set()).union(*map(inherited, bases.get(name, ())))

    return {name: inherited(name) for name in found}


def test_the_front_stays_small() -> None:
    """More names than a newcomer reads through, at the top or on a session, fail here."""
    session = turnlog.open(store=":memory:")
    members = [name for name in dir(session) if not name.startswith("_")]
    session.close()
    assert len(turnlog.__all__) <= 41  # 35, `load_skills`, `recall_tool`, `run`, `arun`, `aopen` and `warm`
    # 45, `exclude`, `cache`, `prompt`, `memory`, `skills`, `answer_recall`, labels, `arequest`, `acompact`; and for who
    # watches a session: `active_turn`, `follow`, `message_count`, `services`; for approvals `pending`, `approve`,
    # `deny`; for subagents `child`, `total_cost`; for programs that keep their history themselves `absorb`,
    # `receiving`, and for those that keep it here `messages`
    assert len(members) <= 66, members


def test_public_things_say_what_they_are(sources: Sources) -> None:
    """A public module, class, function or method without a docstring, own or inherited, fails here."""
    silent = []
    documented = _documented_methods(sources)
    for path, tree in sources.items():
        if _public_names(tree) and ast.get_docstring(tree) is None:
            silent.append(f"{_where(path)}: the module")
        for holder in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
            if isinstance(holder, ast.ClassDef) and holder.name.startswith("_"):
                continue
            for node in holder.body:
                if not isinstance(node, (*FUNCTION, ast.ClassDef)) or node.name.startswith("_"):
                    continue
                overload = any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)
                inherits = isinstance(holder, ast.ClassDef) and node.name in documented[holder.name]
                if ast.get_docstring(node) is None and not overload and not inherits:
                    silent.append(f"{_where(path, node)}: {node.name}")
    assert silent == []


@pytest.mark.slow
def test_every_test_says_what_would_break() -> None:
    """A test function without a docstring fails here."""
    silent = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, FUNCTION) and node.name.startswith("test_") and ast.get_docstring(node) is None:
                silent.append(f"{_where(path, node)}: {node.name}")
    assert silent == []


def test_test_files_have_names_of_their_own() -> None:
    """Two test files of one name, in whatever folders, cannot be collected together: nobody could run all tests."""
    names = [path.name for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    assert [name for name in names if names.count(name) > 1] == []


def test_the_product_knows_no_machine() -> None:
    """A path of somebody's machine, or of the shared material, in what is shipped fails here."""
    machine = re.compile(r"\.\./shared|/work/|/root/|C:\\\\Users")
    found = [
        f"{_where(path)}:{number}: {line.strip()[:80]}"
        for path in sorted(SRC.rglob("*"))
        if path.suffix in {".py", ".json", ".html", ".css", ".js", ".md", ".sql", ".toml"}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if machine.search(line)
    ]
    assert found == []


def test_rooms_without_providers_name_none(sources: Sources) -> None:
    """A branch on a provider's name where rules are data (views, stores, ground floor) fails here."""
    named = []
    for path, tree in sources.items():
        if _room(path) not in NO_PROVIDERS:
            continue
        prose = _docstrings(tree)
        for node in nodes(tree):
            if isinstance(node, ast.Constant) and node.value in NAMES and id(node) not in prose:
                named.append(f"{_where(path, node)}: {node.value}")
    assert named == []


def test_only_msgspec_is_needed(sources: Sources) -> None:
    """An import of another package at a module's top fails here, save in rooms that extras serve. What only type
    checkers read (they bring `typing_extensions` themselves) imports nothing."""
    known = {*sys.stdlib_module_names, "msgspec", "turnlog"}
    foreign = []
    for path, tree in sources.items():
        if _room(path) in EXTRAS_ROOMS:
            continue
        tests = [node for node in nodes(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        typing = {inner for node in tests for one in node.body for inner in ast.walk(one)}
        for node in nodes(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            if names == ["typing_extensions"] and node in typing:
                continue
            foreign += [f"{_where(path, node)}: {name}" for name in names if name.split(".")[0] not in known]
    assert foreign == []


def test_importing_turnlog_does_nothing_heavy() -> None:
    """`import turnlog` that prints, or pulls an extra, an event loop or a network stack, fails here."""
    script = "import sys; before = set(sys.modules); import turnlog; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    light = {*sys.stdlib_module_names, "turnlog", "msgspec"} | {"typing_extensions"}  # msgspec takes it if it is there
    heavy = {"asyncio", "concurrent", "http", "multiprocessing", "ssl", "unittest", "xml"}
    assert (loaded - light, loaded & heavy, run.stderr) == (set(), set(), "")


def test_a_name_of_a_module_has_one_value(sources: Sources) -> None:
    """A constant that a later line of the same module defines again changes what the code before it means."""
    again = []
    for path, tree in sources.items():
        seen: set[str] = set()
        for statement in tree.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
            for target in targets:
                stored = (node for node in ast.walk(target) if isinstance(node, ast.Name))
                names = {node.id for node in stored if isinstance(node.ctx, ast.Store)}
                again += [_where(path, statement) for _ in names & seen]
                seen |= names
    assert again == []
