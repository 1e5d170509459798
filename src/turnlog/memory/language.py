"""The words by which a text refers to something that was named before, as data. To add a language, make a `Language`.

All words are in lower case. Expressions are searched in lower-case text.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .entities import Kind

Groups = tuple[tuple[Kind, ...], ...]
"""Groups of kinds of which a word may speak, the likelier first; within a group none is likelier than another."""


class Thing(Struct, frozen=True):
    """What a noun can stand for: these kinds, the likelier first. With `within`, an expression, only what it is found
    in."""

    kinds: tuple[Kind, ...]
    within: str = ""


class Language(Struct, frozen=True):
    """The words of one language.

    - `things`: nouns. `pronouns`: words for a single thing without a noun; the `vague` ones stand for an idea unless a
      verb says otherwise. `plurals`: words for several things.
    - `pointers`: words before a noun that say that the thing is known.
    - `ordinals`: words for a place in a list, counted from 0, or from the end (-1). `others`: the one that is not the
      last.
    - `verbs`: verbs before a pronoun, with the kinds of thing that they are done to.
    - `empty_before`, `empty_after`: what stands before or after a pronoun that stands for nothing ("it seems").
    - `generic`: what stands after a noun that names no thing ("this type of"). `generic_nouns`: nouns that do so.
    - `compounds`: nouns after a noun that mean another thing ("the commit message").
    - `breaks`: what stands between two clauses of a sentence. `unnamed`: what brings in something without a name.
    - `named_after`: what stands between a reference and a name that says what it is ("the URL below: ...").
    - `joined`: what stands between two names of which both are meant.
    - `indefinite`: words before a noun that bring in something unnamed ("a file"): a later reference means that.
    - `starts`: words at the beginning of a sentence before its subject.
    - `common`: words that say nothing of what a question is about.
    - `deeds`: verbs and question words before the pronoun of a whole sentence, alone ("run") or with another word of it
      ("run again"), with what they are done to. `traits`: the same for what stands after the pronoun ("used" in "where
      is it used"). What has several groups of kinds is done to the first of which something is at hand.
    - `undoing`: deeds that take back a change. `repeating`: deeds that do again what was done.
    - `between`: words that may stand between the pronoun and its trait.
    """

    things: Mapping[str, Thing]
    pronouns: frozenset[str]
    vague: frozenset[str]
    plurals: frozenset[str]
    pointers: frozenset[str]
    ordinals: Mapping[str, int]
    others: frozenset[str]
    verbs: Mapping[str, tuple[Kind, ...]]
    empty_before: str
    empty_after: str
    generic: str
    generic_nouns: frozenset[str]
    compounds: frozenset[str]
    breaks: str
    unnamed: str
    named_after: str
    joined: str
    indefinite: str
    starts: str
    common: frozenset[str] = frozenset()
    deeds: Mapping[str, Groups] = {}
    traits: Mapping[str, Groups] = {}
    undoing: frozenset[str] = frozenset()
    repeating: frozenset[str] = frozenset()
    between: frozenset[str] = frozenset()


_FILE, _SYMBOL, _COMMAND = Thing(("file",)), Thing(("symbol",)), Thing(("command",))
_ERROR, _ID = Thing(("error",)), Thing(("id",))
_CODE: Groups = (("symbol",), ("file",))
_OTHERS: tuple[Kind, ...] = ("file", "url", "command", "branch", "id")
_UNDOING = ("undo", "revert", "restore", "change back", "rename back", "move back", "put back", "roll back")
_REPEATING = ("rerun", "repeat", "retry", "redo", "run again", "run more", "do again", "do more", "try again")


def _each(groups: Groups, words: str) -> dict[str, Groups]:
    """The same groups for each of these, between commas."""
    return dict.fromkeys(words.split(", "), groups)


ENGLISH = Language(
    things={
        **dict.fromkeys(("file", "module", "document", "doc", "config", "configuration", "readme", "source"), _FILE),
        "script": Thing(("file", "command")),
        "folder": _FILE,
        "directory": _FILE,
        "test": Thing(("file", "symbol", "command"), "test"),
        **dict.fromkeys(
            (
                *("function", "method", "class", "struct", "variable", "constant", "parameter", "argument", "field"),
                *("property", "attribute", "interface", "helper", "symbol", "flag", "key", "type", "decorator"),
            ),
            _SYMBOL,
        ),
        **dict.fromkeys(("command", "call", "invocation"), _COMMAND),
        **dict.fromkeys(("error", "exception", "failure", "traceback", "problem", "warning"), _ERROR),
        **dict.fromkeys(("url", "link", "site", "website", "address"), Thing(("url",))),
        "page": Thing(("url", "file")),
        **dict.fromkeys(("issue", "ticket", "pr"), Thing(("id", "url"), r"#\d|[a-z]-\d+$|issue|pull")),
        "commit": Thing(("id",), r"^[0-9a-f]{7,40}$"),
        **dict.fromkeys(("order", "reservation", "flight", "booking", "payment", "product", "item"), _ID),
        **dict.fromkeys(("id", "number", "hash", "code", "option"), _ID),
        "branch": Thing(("branch",)),
        **dict.fromkeys(("person", "author", "reviewer", "user", "colleague", "customer"), Thing(("person",))),
    },
    pronouns=frozenset({"it", "that", "this", "that one", "this one", "one", "the thing"}),
    vague=frozenset({"that", "this", "one"}),
    plurals=frozenset({"they", "them", "these", "those", "both", "all"}),
    pointers=frozenset({"that", "this", "the", "same", "said", "above", "such", "latter", "new", "old", "current"}),
    ordinals={
        "first": 0,
        "former": 0,
        "second": 1,
        "third": 2,
        "fourth": 3,
        "fifth": 4,
        "last": -1,
        "latter": -1,
        "latest": -1,
        "newest": -1,
        "previous": -1,
    },
    others=frozenset({"other", "another"}),
    verbs={
        **dict.fromkeys(("run", "running", "rerun", "execute", "executing", "ran", "repeat"), ("command", "file")),
        **dict.fromkeys(("opening", "reading", "editing", "updating", "deleting", "saving"), ("file",)),
        **dict.fromkeys(("open", "read", "view", "edit", "update", "rewrite", "write", "save", "delete"), ("file",)),
        **dict.fromkeys(("rename", "move", "commit", "lint", "format", "overwrite", "revert", "restore"), ("file",)),
        **dict.fromkeys(("fix", "reproduce", "debug", "solve", "handle", "catch"), ("error",)),
        **dict.fromkeys(("call", "refactor", "define", "implement", "import", "inline"), ("symbol", "file")),
        **dict.fromkeys(("visit", "fetch", "download", "browse"), ("url",)),
        **dict.fromkeys(("merge", "rebase", "push"), ("branch", "file")),
        **dict.fromkeys(("cancel", "book", "exchange", "return"), ("id",)),
    },
    empty_before=r"\b(?:make|makes|making|made|find|finds|consider|feel like|as|get|worth|confirms?|confirmed|believe"
    r"|take|let'?s do|do|did|does|doing|leave|got|keep|call)$",
    empty_after=r"^(?:(?:'s|’s| is| was| will be| would be| might be| may be| could be| can be| should be)"
    r"(?: not| also| still| just| only| more| even| very| really| now| already)?"
    r" (?:obvious|clear|possible|impossible|important|necessary|likely|unlikely|best|better|good|worth|true|safe|easy"
    r"|hard|time|useful|common|fine|ok|okay|because|due|about|that|to|up|enough|difficult|strange|interesting|expected)\b"
    r"| (?:seems?|appears?|looks? like|turns? out|makes? sense|depends|means|happens|takes|would be|follows)\b"
    r"|:)",
    generic=r"^s?(?: of\b|-level|-specific)",
    generic_nouns=frozenset({"type", "user", "customer", "person", "problem", "key", "option", "code"}),
    compounds=frozenset(
        (
            "sha hash message messages view description name names title body text history log logs list tree"
            " output code content contents data size system handling handler path paths object objects itself"
            " tracker edits changes page"
        ).split()
    ),
    breaks=r"(?:[,;:]|\b(?:so|and|but|because|since|as|then|whether|where|when|while|if))\s+",
    unnamed=r"\b(?:create|make|write|add|build|start)\b[^.\n`]*\b(?:an?|another|some)\s+[a-z]|\ba new\b",
    named_after=r"^(?: id| number| name| file)?\s*(?:,|:|is|was|\(|—|–|-|named|called|below[^.\n]{0,80}?:|is:|at)\s*"
    r"[*_`\"'(\[]*",
    joined=r"[^,;.]*(?:&|\band)\W*$",
    indefinite=r"\b(?:an?|some|any|each|every|another) (?:[\w-]+ ){0,2}",
    starts=r"^\W*(?:(?:then|and|so|now|but|also|next|finally|first|after that|if|when|since|because|wait|thus)\b"
    r",?\s*){0,3}",
    common=frozenset(
        (
            "a an the this that these those it its i we you he she they me us him her them my our your his "
            "their is are was were be been being am do does did done doing have has had having can could "
            "will would shall should may might must of in on at to for from by with without about into over "
            "under after before and or but if so as than then not no nor how what which who whom whose when "
            "where why there here any some all each every both more most other such only own same very just "
            "also too again ever get got let us please instead between"
        ).split()
    ),
    deeds={
        **_each(_CODE, "change, modify, refactor, simplify, improve, optimize, extend, convert, replace, where"),
        **_each(_CODE, "use, uses, import, imports, wrote, inline, clean"),
        **_each(_CODE, "make faster, make simpler, make shorter, make async, make private, make optional"),
        **_each((("symbol",),), "call, calls, define, implement"),
        **_each((("symbol", "file", "branch"),), "rename, delete, remove, drop"),
        **_each((("file",), ("symbol",)), "move, put, copy"),
        **_each((("file",),), "edit, update, rewrite, write, save, commit, format, lint"),
        **_each((("file", "url"),), "open, reopen, read, view, close"),
        **_each((("url", "file"), ("id",)), "summarize, summarise"),
        **_each((("error",), *_CODE), "fix, debug, repair, correct"),
        **_each((("error",),), "why, get why, see why, cause, causes, caused, solve, handle, catch, reproduce"),
        **_each((("error",), ("symbol",), _OTHERS), "what, explain, describe, show"),
        **_each((("file", "url"), ("error",), ("symbol",)), "look"),
        **_each((("url",),), "visit, fetch, download, browse, bookmark"),
        **_each((("branch",), ("id",)), "merge, rebase, push, pull, squash, switch, checkout"),
        **_each((("command",), ("file",)), "run, execute, start, launch"),
        **_each((("command",), ("file", "url", "branch")), "try"),
        **_each((("symbol",), ("file", "command")), "test"),
        **dict.fromkeys(_REPEATING, (("command",),)),
        **dict.fromkeys(_UNDOING, (("file",),)),
    },
    traits={
        **_each(_CODE, "used, imported, tested, need what, needs what, use what, uses what"),
        **_each((("symbol",),), "called, defined, declared, implemented, return, returns, raise, raises"),
        **_each((("symbol",),), "accept, expect, take what, takes what"),
        **_each((("symbol",), ("command",), ("file",)), "do what, does what, work how, works how, slow why"),
        **_each((("url", "file"), ("error",)), "say what, says what, contain what, contains what"),
        **_each((("error",), ("symbol",), ("command",)), "mean what, means what"),
        **_each((("error",),), "happen why, happens why, happen when, happens when, happened why"),
        **_each((("error",),), "fail why, fails why, crash why, crashes why, come where, go wrong"),
        **_each((("command",),), "take long, pass did, succeed did, finish did, finished has"),
    },
    undoing=frozenset(_UNDOING),
    repeating=frozenset(_REPEATING),
    between=frozenset(
        "is are was were be been being not now once still also just only ever never has have had really".split()
    ),
)
"""The words of English."""
