"""Trajectories as JSON and as sessions, there and back."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from draws import examples
from navigating import CROP, THUMBNAIL, navigation, png, session_of, trajectories
from turnlog.errors import InputError
from turnlog.importers import read_file
from turnlog.importers.sync.session import sync_session
from turnlog.log.messages import Media, Message, Text
from turnlog.log.records import Decision, MessageRecord
from turnlog.log.store import Draft
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.trajectory import Region, StepResponse, Trajectory, Turn, walk


def base64_of(image: bytes) -> str:
    """An image as the reference program writes it."""
    return base64.b64encode(image).decode()


def reference(**changes: Any) -> dict[str, Any]:
    """A trajectory with every field that the reference program writes."""
    turns = [
        {
            "step_index": 0,
            "image_base64": base64_of(png(1)),
            "response": {"reasoning": "The left looks dense.", "action": CROP},
            "region": {"x": 1, "y": 2, "width": 30, "height": 40},
            "conch_scores": None,
        },
        {
            "step_index": 1,
            "image_base64": base64_of(png(1)),
            "response": {"reasoning": "Clear.", "action": {"action_type": "answer", "answer_text": "Tumor"}},
            "region": None,
            "conch_scores": [0.25, 0.5],
        },
    ]
    whole = {"wsi_path": "/slides/a.svs", "question": "What is it?", "turns": turns, "final_answer": "Tumor"}
    return {**whole, "slide_width": 1000, "slide_height": 800, "thumbnail_base64": base64_of(THUMBNAIL), **changes}


def imported(data: bytes) -> Session:
    """The session that an import makes of a trajectory."""
    store = MemoryStore()
    kept = sync_session(store, read_file(data)[0])
    return Session(store, store.info(kept.session))


def test_a_file_of_the_reference_program() -> None:
    """Its fields are read, those that turnlog has no name for are kept, and what is written is what was read."""
    found = Trajectory.from_json(json.dumps(reference()))
    assert found.slide_width == 1000 and found.thumbnail == THUMBNAIL and found.final_answer == "Tumor"
    said = StepResponse("The left looks dense.", CROP)
    assert found.turns[0] == Turn(0, png(1), said, Region(1, 2, 30, 40), {"conch_scores": None})
    assert found.turns[1].extra == {"conch_scores": [0.25, 0.5]}
    assert json.loads(found.to_json()) == reference()


@pytest.mark.slow
@settings(max_examples=examples(40, 1_000))
@given(trajectories)
def test_json_loads_back_equal(trajectory: Trajectory) -> None:
    """Whatever a trajectory holds, its JSON gives the same trajectory; else a saved run would differ from the run."""
    assert Trajectory.from_json(trajectory.to_json()) == trajectory


@pytest.mark.slow
@settings(max_examples=examples(40, 1_000))
@given(trajectories)
def test_an_import_keeps_everything(trajectory: Trajectory) -> None:
    """A trajectory that is imported into a store is the same trajectory when it is read from the session; a second
    import adds nothing."""
    session = imported(trajectory.to_json())
    found = Trajectory.from_session(session)
    assert found == trajectory
    assert walk(session.log.records()).final_answer == trajectory.final_answer


def test_images_are_kept_once() -> None:
    """An image that several steps show is one blob."""
    session = imported(json.dumps(reference()).encode())
    turns = Trajectory.from_session(session).turns
    assert turns[0].image == turns[1].image == png(1)
    messages = [record.message for record in session.history() if record.message]
    shown = [part.sha256 for message in messages for part in message.parts if isinstance(part, Media)]
    assert len(shown) == len(set(shown)) == 2  # the answer repeats the image that it is about


def test_a_navigation_is_saved_and_loaded(tmp_path: Path) -> None:
    """The trajectory of a live session and that of its file are equal."""
    made = navigation(3)
    made.answer("At the left.")
    made.trajectory.save(tmp_path / "run.json")
    assert Trajectory.load(tmp_path / "run.json") == made.trajectory
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": None}, "question: must be a string, not None"),
        ({"turns": {}}, "turns: must be a list"),
        ({"turns": [7]}, r"turns\[0\]: must be an object, not 7"),
        ({"slide_width": "wide"}, "slide_width: must be a whole number, not 'wide'"),
        ({"thumbnail_base64": "%%%"}, "thumbnail_base64: not base64"),
        ({"thumbnail_base64": base64_of(b"plain text")}, "thumbnail_base64: not an image"),
        ({"final_answer": 3}, "final_answer: must be a string"),
        ({"turns": [{**reference()["turns"][0], "region": {"x": 1}}]}, r"turns\[0\].region.y: missing"),
        ({"turns": [{**reference()["turns"][0], "region": {"x": 999, "y": 0, "width": 9, "height": 9}}]}, "not inside"),
        ({"turns": [{**reference()["turns"][0], "response": "crop"}]}, r"turns\[0\].response: must be an object"),
        ({"turns": [{**reference()["turns"][0], "step_index": -1}]}, r"turns\[0\].step_index: must be a whole number"),
    ],
)
def test_errors_name_the_field(changes: dict[str, Any], message: str) -> None:
    """A user with a damaged file must learn which field is wrong; an import reads the rest of the file, and says so."""
    data = json.dumps(reference(**changes)).encode()
    with pytest.raises(InputError, match=message):
        Trajectory.from_json(data)
    read = read_file(data)[0]
    assert read.format == "trajectory" and any("left out: " in damage.message for damage in read.warnings)


@pytest.mark.parametrize("data", [b"", b"[]", b"nothing", b'{"turns": [', b"\xff\xfe", b'"text"', b"[" * 100_000])
def test_what_is_no_trajectory(data: bytes) -> None:
    """Bytes that are no JSON object are a clear error."""
    with pytest.raises(InputError, match="the trajectory: "):
        Trajectory.from_json(data)


def test_a_file_that_is_cut_off() -> None:
    """A run that was killed while it wrote: the turns before the end are read, and the loss is declared."""
    whole = json.dumps(reference())
    read = read_file(whole[: whole.index('"step_index": 1')].encode())[0]
    session = imported(whole[: whole.index('"step_index": 1')].encode())
    found = Trajectory.from_session(session)
    assert found.question == "What is it?" and found.wsi_path == "/slides/a.svs"
    assert [turn.image for turn in found.turns] == [png(1)]
    assert "the JSON is damaged" in read.warnings[0].message


def test_a_file_of_python_s_own_writer() -> None:
    """NaN in scores, which `json.dump` writes, must not cost the whole file."""
    address = f"data:image/png;base64,{base64_of(png(1))}"
    turn = {**reference()["turns"][0], "conch_scores": [float("nan")], "image_base64": address}
    found = Trajectory.from_json(json.dumps(reference(turns=[turn])))
    assert found.turns[0].extra["conch_scores"][0] != found.turns[0].extra["conch_scores"][0]
    assert found.turns[0].image == png(1)


def test_a_session_without_notes() -> None:
    """Any session with images is a trajectory: answers are steps, images after them their results, text of the user is
    the question; what was taken back is gone."""
    session = session_of()

    def show(role: Any, *parts: Any) -> None:
        session.add(Message(role, tuple(parts)))

    first, second, third = (session.media(png(n), "image/png") for n in (1, 2, 3))
    show("system", Text("You browse."))
    show("user", Text("Find it."), first)
    show("assistant", Text("Thought: the box.\nAction: Click [5]"))
    show("user", Text("Observation"), second, third)
    show("assistant", Text("Thought: wrong.\nAction: Click [6]"))
    session.rewind(to=session.history()[-1].n - 1)
    show("assistant", Text("Thought: done.\nAction: ANSWER; here"))
    found = walk(session.log.records())
    assert found.question == "Find it." and found.thumbnail == first and found.system == "You browse."
    assert [step.response.action for step in found.steps] == ["Click [5]", None, "ANSWER; here"]
    assert [step.image for step in found.steps] == [second, third, None]
    assert found.final_answer == "here" and found.steps[0].heard == "Observation"
    session.clear()
    show("user", Text("Anew."))
    assert walk(session.log.records()).question == "Anew."
    assert walk(session.log.records()).steps == ()


def test_what_decisions_removed_was_not_seen() -> None:
    """An image that the session's strategy took out of requests was not seen at later steps, whatever came before."""
    made = navigation(4)
    session = made.session
    images = [record.n for record in session.history() if isinstance(record.body, MessageRecord) and record.body.step]
    session._store.append("s", [_images_gone(images[:2])])
    made.add_turn(png(7), "so")
    made.add_turn(png(8), "so")
    saw = [step.saw for step in walk(session.log.records()).steps]
    assert saw == [(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 3, 4), (0, 3, 4, 5)]


def _images_gone(records: list[int]) -> Any:
    texts = [[n, [1], "[Image removed]"] for n in records]
    return Draft(Decision("images", records[0], records[-1], "", {"texts": texts}))


def test_an_image_that_is_none_is_named() -> None:
    """Bytes that an agent recorded as an image although they are none leave a note in the trajectory."""
    session = session_of()
    session.user("Find it.")
    session.assistant("I look.")
    session.user([session.media(b"not a picture", "image/png")])
    turn = Trajectory.from_session(session).turns[0]
    assert turn.image is None and "not an image" in turn.extra["image_left_out"]
