"""WebVoyager runs, one habit of theirs a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transcripts import messages_of

from turnlog.importers import Imported, detect, read_file
from turnlog.log.messages import Media, Text, media_parts, sha256_hex

PNG = b"\x89PNG\r\n\x1a\n"
OMITTED = "Observation: A screenshot and some texts. (Omitted in context.)"


def picture(url: str) -> dict[str, Any]:
    """An image part."""
    return {"type": "image_url", "image_url": {"url": url}}


RUN = [
    {"role": "system", "content": "Imagine you are a robot browsing the web"},
    {"role": "user", "content": f"Now given a task: Find it. {OMITTED}"},
    {"role": "assistant", "content": "Action: Click [1]"},
    {"role": "user", "content": "The action failed."},
    {"role": "assistant", "content": "Action: Click [2]"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "Observation: ..."}, picture("data:image/png;base64,{b64_img}")],
    },
]


def run(folder: Path, messages: Any = RUN, rounds: tuple[int, ...] = (1, 3)) -> Imported:
    """A run in its folder, with a screenshot for these rounds."""
    path = folder / "taskX--1/interact_messages.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(messages))
    for number in rounds:
        (path.parent / f"screenshot{number}.png").write_bytes(PNG + bytes([number]))
    assert detect(path).name == "webvoyager"
    (session,) = read_file(path)
    return session


def images(session: Imported) -> list[list[int]]:
    """The round of each image, by message."""
    return [[session.blobs[item.sha256][-1] for item in media_parts(message)] for message in messages_of(session)]


def test_each_round_has_its_screenshot(tmp_path: Path) -> None:
    """An image at the wrong message shows the model a page that it was not on."""
    session = run(tmp_path)
    assert images(session) == [[], [1], [], [], [], [3]]
    assert session.blobs == {sha256_hex(PNG + bytes([n])): PNG + bytes([n]) for n in (1, 3)}
    assert [Path(file).name for file in session.files] == [
        "interact_messages.json", "screenshot1.png", "screenshot3.png",
    ]  # fmt: skip
    assert (session.session_id, session.title, session.warnings) == ("taskX--1", f"Find it. {OMITTED}", ())


def test_a_screenshot_named_by_its_file_is_read_from_the_folder_only(tmp_path: Path) -> None:
    """A reference into another folder would read files that are none of the run's."""
    (tmp_path / "screenshot9.png").write_bytes(PNG + b"\x09")
    content = [picture("screenshot3.png"), picture("../screenshot9.png"), picture("data:image/png;base64,iVBORw==")]
    session = run(tmp_path, [{"role": "user", "content": content}])
    (message,) = messages_of(session)
    assert [session.blobs[part.sha256] for part in message.parts if isinstance(part, Media)] == [
        PNG + b"\x03",
        b"\x89PNG",
    ]
    assert "screenshot9.png" in session.warnings[0].message


def test_an_image_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Bytes alone have no folder; the placeholder must not go to a model as a URL."""
    (session,) = read_file(json.dumps(RUN).encode())
    assert images(session) == [[], [], [], [], [], []]
    assert messages_of(session)[-1].parts == (Text("Observation: ..."),)
    assert len(session.warnings) == 1 and "screenshot3.png" in session.warnings[0].message
    assert len(run(tmp_path, rounds=()).warnings) == 1
