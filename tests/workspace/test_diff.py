"""Differences: what git makes of them, and what is net."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import batches, examples
from turnlog.errors import InputError
from turnlog.log.messages import sha256_hex
from turnlog.log.records import FileChange, Record
from turnlog.testing.edits import File, edit_sequence, git_judges, has_git
from turnlog.workspace.diff import FileDiff, NetChange, file_diff, net_changes, patch_lines
from turnlog.workspace.diff.folding import compose, root_of
from turnlog.workspace.diff.hunks import apply_hunks, make_hunks, read_hunks, reverse_hunks, write_hunks
from turnlog.workspace.diff.patch import diff_contents
from turnlog.workspace.diff.paths import common_root, is_inside, place_of, relative_to

needs_git = pytest.mark.skipif(not has_git(), reason="git is not there to judge the patches")

LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"a\r\n", b"\n", b"\xff\n", b"\\ No\n", b"-\n", b"+++ x\n"]), max_size=14
)
CONTENTS = st.tuples(LINES, st.sampled_from([b"", b"end", b"a\r"])).map(lambda pair: b"".join(pair[0]) + pair[1])


def changed(*changes: FileChange) -> list[Record]:
    """Records of these changes, numbered from 1."""
    return [Record(n, "", change) for n, change in enumerate(changes, 1)]


def summary(*changes: FileChange) -> list[tuple[str, str, str]]:
    """The net of changes: action, path, old path."""
    return [(net.action, net.path, net.old_path) for net in net_changes(changed(*changes))]


@given(CONTENTS, CONTENTS, st.sampled_from([0, 1, 3]))
def test_hunks_lead_both_ways_and_can_be_read_again(before: bytes, after: bytes, context: int) -> None:
    """A line end that is made up, a lost carriage return, or a miscounted head fails here."""
    hunks = make_hunks(before, after, context=context)
    assert apply_hunks(before, hunks) == after
    assert apply_hunks(after, reverse_hunks(hunks)) == before
    if hunks:
        assert read_hunks(b"".join(write_hunks(hunks))) == hunks


@given(CONTENTS, CONTENTS, CONTENTS)
def test_patches_compose_without_the_file(first: bytes, second: bytes, third: bytes) -> None:
    """A sum of patches that does something else than they do one after the other fails here."""
    patches = [make_hunks(first, second), make_hunks(second, third)]
    assert apply_hunks(first, compose(patches)) == third


def test_patches_that_do_not_follow_each_other_are_refused() -> None:
    """Composed all the same, they would claim a change that nobody made."""
    with pytest.raises(InputError, match="patch 2 cannot be applied"):
        compose([make_hunks(b"a\n", b"b\n"), make_hunks(b"c\n", b"d\n")])
    with pytest.raises(InputError, match="or reach beyond"):
        compose([make_hunks(b"a\nb\n", b"A\nb\n", context=0) * 2])
    with pytest.raises(InputError, match="is not a text patch"):
        compose([make_hunks(b"\0a\n", b"b\n")])
    with pytest.raises(InputError, match="or reach beyond"):
        compose([read_hunks(b"@@ -99999999 +99999999 @@\n-a\n+b\n")])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"@@",
        b"@@ -%b +1 @@\n" % (b"1" * 5000),
        b"@@ -1,2 +1 @@\n-a\n",
        b"@@ -1 +1 @@\n-a\n+b\nwhat is this\n",
        b"@@ -1 +1 @@\n*a\n",
    ],
)
def test_what_is_no_diff_is_refused(text: bytes) -> None:
    """Read all the same, half a patch would pass for a whole one."""
    with pytest.raises(InputError):
        read_hunks(text)


def test_hostile_texts_are_compared_in_bounded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handed to difflib, lines that all repeat take hours; it must only see few pairs of equal lines."""
    given_pairs: list[int] = []

    class Counting:
        def __init__(self, _junk: object, left: list[bytes], right: list[bytes], autojunk: bool) -> None:
            given_pairs.append(sum(right.count(line) for line in left))

        def get_matching_blocks(self) -> list[tuple[int, int, int]]:
            return []

    monkeypatch.setattr("difflib.SequenceMatcher", Counting)
    before, after = b"x\ny\n" * 20_000, b"y\ny\nx\n" * 13_000
    assert apply_hunks(before, make_hunks(before, after)) == after
    before = b"".join(b"%d\n" % (n % 90) + (b"once %d\n" % n if n % 500 == 0 else b"") for n in range(50_000))
    after = before[::-1].replace(b"\n1", b"\n2")
    assert apply_hunks(before, make_hunks(before, after)) == after
    assert sum(given_pairs) <= 2_000_000
    assert max(given_pairs, default=0) <= 100_000


@pytest.mark.slow
@needs_git
@pytest.mark.parametrize("patches", [False, True], ids=["contents", "patches"])
@pytest.mark.parametrize("some", batches(60, 1_010, 15), ids=lambda some: f"from {some.start}")
def test_git_takes_every_patch_both_ways(some: range, patches: bool, record_property: Any) -> None:
    """A patch that `git apply --check` refuses, or whose reverse does not restore the bytes, fails here."""
    untold = 0
    for seed in some:
        edits = edit_sequence(seed, patches=patches)
        found = [file_diff(change, edits.blobs.__getitem__) for change in net_changes(edits.records)]
        diffs = [diff for diff in found if diff is not None and not diff.is_nothing]
        if patches and None in found:
            untold += 1
            continue  # patches alone do not tell everything
        assert None not in found
        assert (
            git_judges(edits.before, edits.after, b"".join(line for diff in diffs for line in patch_lines(diff))) == ""
        )
    record_property("sequences", {"judged": len(some) - untold, "not judged": untold})


@needs_git
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("empty to full", b"", b"a\n"),
        ("full to empty", b"a\n", b""),
        ("line end added", b"a", b"a\n"),
        ("line end taken", b"a\n", b"a"),
        ("line ends changed", b"a\r\nb\r\n", b"a\nb\r\n"),
        ("binary", b"\0\1", bytes(range(256)) * 9),
        ("binary to text", b"\0", b"text\n"),
        ("no UTF-8", b"caf\xe9\n", b"caf\xe8\n"),
        ("form feeds and lone returns", b"a\rb\x0cc\x85\n", b"a\rb\x0cd\x85\n"),
    ],
)
def test_git_takes_odd_contents(name: str, before: bytes, after: bytes) -> None:
    """Each is a place where differences made by lines of text go wrong."""
    patch = b"".join(patch_lines(diff_contents("f", "modified", before, after)))
    assert git_judges({"f": File(before)}, {"f": File(after)}, patch) == "", name


@needs_git
@settings(max_examples=examples(25, 1_000))
@given(path=st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=30).filter(is_inside))
def test_git_takes_any_name(path: str) -> None:
    """A name with quotes, controls or blanks that git reads as another one fails here."""
    try:
        if len(path.encode()) > 200:
            return
    except UnicodeEncodeError:  # no file system here holds such a name
        return
    patch = b"".join(patch_lines(diff_contents(path, "created", b"", b"a\n")))
    assert git_judges({}, {path: File(b"a\n")}, patch) == ""


def test_a_patch_reads_as_git_writes_it() -> None:
    """The format is for other programs too; this is what `git diff` prints of the same change."""
    diff = diff_contents("new name", "renamed", b"a\nb\n", b"a\nc", old_path="old", old_mode="100644", mode="100755")
    assert b"".join(patch_lines(diff)).decode() == (
        "diff --git a/old b/new name\n"
        "old mode 100644\nnew mode 100755\n"
        "similarity index 50%\nrename from old\nrename to new name\n"
        "index 422c2b7ab3b3c668038da977e4e93a5fc623169c..817f660e4423f7df2dfc7d4bff0e01b2092a8ce9\n"
        "--- a/old\n+++ b/new name\t\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"
    )


def test_net_changes_say_what_became_of_each_file() -> None:
    """A file that came and went again, or a rename told as two files, fails here."""
    one, two, three = (sha256_hex(text) for text in (b"1", b"2", b"3"))
    create = FileChange("a", "created", after=one)
    modify = FileChange("a", "modified", before=one, after=two)
    back = FileChange("a", "modified", before=two, after=one)
    delete = FileChange("a", "deleted", before=two)
    move = FileChange("b", "renamed", old_path="a", before=two, after=two)
    move_back = FileChange("a", "renamed", old_path="b", before=two, after=two)
    assert summary(create, modify) == [("created", "a", "")]
    assert summary(create, modify, delete) == []
    assert summary(create, modify, move) == [("created", "b", "")]
    assert summary(modify, back) == []
    assert summary(modify, delete) == [("deleted", "a", "")]
    assert summary(modify, move) == [("renamed", "b", "a")]
    assert summary(modify, move, move_back) == [("modified", "a", "")]
    assert summary(modify, move, FileChange("b", "deleted", before=two)) == [("deleted", "a", "")]
    assert summary(delete, FileChange("a", "created", after=three)) == [("modified", "a", "")]
    assert summary(delete, FileChange("a", "created", after=two)) == []
    assert summary(move, create) == [("modified", "a", ""), ("created", "b", "")]
    assert net_changes(changed(modify, move, FileChange("b", "modified", before=two, after=three)))[0].records == (1, 3)
    assert summary(FileChange("./x/../a", "modified", before=one, after=two), back) == []


def test_what_is_not_on_record_is_not_made_up() -> None:
    """A change without contents that shows as an empty or a whole new file would be a lie."""
    (change,) = net_changes(changed(FileChange("a", "modified")))
    assert file_diff(change, {}.__getitem__) is None
    (change,) = net_changes(changed(FileChange("a", "deleted")))
    assert file_diff(change, {}.__getitem__) is None
    (moved,) = net_changes(changed(FileChange("b", "renamed", old_path="a")))
    assert file_diff(moved, {}.__getitem__) == FileDiff("b", "renamed", old_path="a")


def test_paths_are_relative_to_where_work_was_done() -> None:
    """One file under two spellings would be two files; a patch with absolute paths is refused by git."""
    inside = FileChange("/p/src/a", "modified", before="1", after="2", root="/p")
    again = FileChange("src/a", "modified", before="2", after="3", root="/p/")
    outside = FileChange("/etc/x", "modified", before="1", after="2", root="/p")
    found = net_changes(changed(inside, again, outside))
    assert [(net.path, net.applies) for net in found] == [("/etc/x", False), ("src/a", True)]
    assert [net.path for net in net_changes(changed(inside), root="/p/src")] == ["a"]
    assert root_of([FileChange("/q/x/a", "created"), FileChange("/q/y/b", "created")]) == "/q"
    assert place_of("C:\\work\\a.py", "C:\\work") == "C:/work/a.py"
    assert relative_to("/a", "/") == "a"


def test_two_folders_are_shown_from_the_one_that_holds_both() -> None:
    """Files of one name in two folders made one; or one of the two left out of every patch."""
    api = FileChange("README", "modified", before="1", after="2", root="/p/api")
    web = FileChange("README", "modified", before="3", after="1", root="/p/web")
    assert summary(api, web) == [("modified", "api/README", ""), ("modified", "web/README", "")]
    far = FileChange("x", "created", after="1", root="/q")
    assert [(net.path, net.applies) for net in net_changes(changed(api, far))] == [("/q/x", False), ("README", True)]
    assert [net.path for net in net_changes(changed(api, web), root="web")] == ["/p/api/README", "README"]
    assert common_root(["C:\\p\\api", "C:/p/web"]) == "C:/p"
    assert common_root(["C:/p", "D:/p"]) == common_root(["C:/p", "C:/q"]) == "C:/p"
    assert common_root(["p", "/p"]) == "p"
    assert common_root([]) == ""


def test_a_log_without_roots_reads_on() -> None:
    """Logs of before name no root: they are read as they were, and gone on with they tell of the same files."""
    old = FileChange("a", "modified", before="1", after="2")
    assert summary(old) == [("modified", "a", "")]
    new = FileChange("a", "modified", before="2", after="1", root="/p")
    assert summary(old, new) == []
    assert summary(old, FileChange("b", "renamed", old_path="a", root="/p")) == [("renamed", "b", "a")]


def test_a_second_telling_changes_nothing() -> None:
    """A rename told again was a second file; a deletion told again the end of one that never was."""
    one, two = sha256_hex(b"1"), sha256_hex(b"2")
    there = FileChange("b", "renamed", old_path="a", before=one, after=one)
    back = FileChange("a", "renamed", old_path="b", before=one, after=one)
    gone = FileChange("b", "deleted", before=one)
    assert summary(there, there) == [("renamed", "b", "a")]
    assert summary(there, there, gone, gone) == [("deleted", "a", "")]
    assert summary(there, there, back, back) == []
    deleted, made = FileChange("a", "deleted", before=one), FileChange("b", "created", after=one)
    assert summary(deleted, there) == [("renamed", "b", "a")]
    assert summary(deleted, made, there) == [("deleted", "a", ""), ("created", "b", "")]
    assert summary(made, gone, gone) == []
    assert summary(made, gone, FileChange("b", "modified", before=one, after=two)) == [("created", "b", "")]


def test_a_windows_path_is_one_where_the_root_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backslash in a name made part of a path; or, where a system separates by it, a patch that writes elsewhere."""
    assert place_of("C:\\win", "/p") == "/p/C:\\win"
    assert place_of("C:\\win", "D:\\p") == place_of("C:\\win") == "C:/win"
    assert is_inside("C:\\win")
    monkeypatch.setattr("turnlog.workspace.diff.paths._PARTS_AT_BACKSLASH", True)
    assert not is_inside("C:\\win")
    assert not is_inside("..\\a")


@pytest.mark.parametrize(
    "path", ["", "/a", "../a", "a/../../b", "a//b", ".git/hooks/x", "a/.GIT/x", "C:/a", "git~1/x", "a\0"]
)
def test_no_patch_names_what_is_outside(path: str) -> None:
    """A transcript could have a hook or a file elsewhere written by whoever applies its patch."""
    assert not is_inside(path)
    assert not NetChange(path, "created").applies
