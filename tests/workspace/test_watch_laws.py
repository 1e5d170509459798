"""A change may be told by a watch, by another inside of it, by both or by neither: what is net stays the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog.log.records import FileChange, Record
from turnlog.stores import MemoryStore
from turnlog.workspace.diff import NetChange, file_diff, net_changes
from turnlog.workspace.diff.hunks import apply_hunks
from turnlog.workspace.watch import FileRecorder

Tree = dict[str, bytes]

_Step = tuple[int, int, bytes]
"""What is done: which of the ways, to which file, with which content."""

_NAMES = ("a", "b", "c/d", "c/e", "f")
CONTENTS = st.sampled_from([b"", b"1\n", b"2\n", b"1\n2\n", b"3"])
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), CONTENTS), max_size=4)
SCENES = st.lists(st.lists(st.tuples(st.booleans(), STEPS), min_size=1, max_size=3), min_size=1, max_size=3)
"""Turns, each of which has runs of steps that a tool's own watch tells, or does not."""
TREES = st.dictionaries(st.sampled_from(_NAMES), CONTENTS, max_size=4)


def do(root: Path, step: _Step) -> None:
    """Create, change, rename to a free name, or delete a file."""
    way, which, content = step
    there = [name for name in _NAMES if (root / name).exists()]
    free = [name for name in _NAMES if name not in there]
    if way == 0 and free:
        place = root / free[which % len(free)]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
    elif way == 1 and there:
        (root / there[which % len(there)]).write_bytes(content)
    elif way == 2 and there and free:
        place = root / free[(which * 7) % len(free)]
        place.parent.mkdir(exist_ok=True)
        (root / there[which % len(there)]).rename(place)
    elif way == 3 and there:
        (root / there[which % len(there)]).unlink()


def tree_of(root: Path) -> Tree:
    """The files that are there."""
    return {name: (root / name).read_bytes() for name in _NAMES if (root / name).exists()}


def planted(root: Path, tree: Tree) -> Tree:
    """The files that are there first."""
    for name, content in tree.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)
    return tree_of(root)


def applied(tree: Tree, records: Iterable[Record], store: MemoryStore) -> Tree:
    """The tree after the net changes, as strictly as git applies them; all is known here, so all can be told."""
    net = net_changes(records)
    after = dict(tree)
    for change in net:
        if change.action != "created":
            del after[change.old_path or change.path]
    for change in net:
        diff = file_diff(change, store.get_blob)
        assert diff is not None
        content = apply_hunks(b"" if change.action == "created" else tree[change.old_path or change.path], diff.hunks)
        if change.action != "deleted":
            assert change.path not in after
            after[change.path] = content
        else:
            assert content == b""
    return after


def named(changes: Iterable[NetChange]) -> list[tuple[str, str, str]]:
    """Net changes without what says where they were told."""
    return [(change.action, change.path, change.old_path) for change in changes]


@given(TREES, SCENES)
def test_what_two_watches_see_is_told_once(tree: Tree, scene: list[list[tuple[bool, list[_Step]]]]) -> None:
    """A patch that does not lead from what was there to what is there, whichever of a turn's changes the watch of a
    tool told as well, fails here; so does a record of what is on record already."""
    store = MemoryStore()
    with tempfile.TemporaryDirectory() as folder, turnlog.open("s", store=store) as session:
        root = Path(folder)
        before = planted(root, tree)
        for turn in scene:
            by_tools: list[Record] = []
            with session.turn("do it", watch=root) as opened:
                for told, steps in turn:
                    with ExitStack() as stack:
                        watched = (
                            stack.enter_context(stack.enter_context(session.files(root)).watch()) if told else None
                        )
                        for step in steps:
                            do(root, step)
                    by_tools += watched.records if watched else ()
            if all(told for told, _ in turn):
                changes = (r for r in session.log.records(opened.info.first) if isinstance(r.body, FileChange))
                assert [record.n for record in changes] == [record.n for record in by_tools]
        assert applied(before, session.history(), store) == tree_of(root)


@pytest.mark.slow
@given(TREES, SCENES)
@settings(max_examples=examples(25, 1_000))
def test_what_was_told_twice_counts_once(tree: Tree, scene: list[list[tuple[bool, list[_Step]]]]) -> None:
    """Logs hold the changes of nested watches twice, from versions that told them so and from processes that do not
    know of each other. A second telling that makes another file, or that a file which never was went, fails here."""
    store = MemoryStore()
    with tempfile.TemporaryDirectory() as folder, turnlog.open("s", store=store) as session:
        root = Path(folder)
        before = planted(root, tree)
        for turn in scene:
            with FileRecorder(root, session._journal.append, store.put_blob) as outer, outer.watch(call_record=1):
                for _, steps in turn:
                    with (
                        FileRecorder(root, session._journal.append, store.put_blob) as inner,
                        inner.watch(call_record=2),
                    ):
                        for step in steps:
                            do(root, step)
        twice = [record for record in session.history() if isinstance(record.body, FileChange)]
        once = [record for record in twice if isinstance(record.body, FileChange) and record.body.call_record == 2]
        again = [record for record in twice if record not in once]
        for told in (twice, once, again):
            assert applied(before, told, store) == tree_of(root)
        assert named(net_changes(twice)) == named(net_changes(once))
