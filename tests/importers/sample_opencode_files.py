"""The files in which opencode kept a session before 1.2."""

from __future__ import annotations

import json

from opencode_sessions import DIFF, MESSAGES, SESSION
from sample_opencode_export import COUNTING, WARNED
from samples import Sample

_OTHERS = {f"message/ses_fjords/{message['info']['id']}.json": message["info"] for message in MESSAGES}
_OTHERS |= {f"part/{part['messageID']}/{part['id']}.json": part for message in MESSAGES for part in message["parts"]}

SAMPLE = Sample(
    name="opencode",
    data=json.dumps({**SESSION, "projectID": "global"}).encode(),
    query="""map(select(.messageID)) as $parts
        | [.[] | select(.role) | . as $i | {info: ., parts: [$parts[] | select(.messageID == $i.id)]}] as $all"""
    + COUNTING,
    path=".local/share/opencode/storage/session/global/ses_fjords.json",
    warned=WARNED,
    silent=(DIFF,),
    grows=False,
    others={f"../../{name}": json.dumps(value).encode() for name, value in _OTHERS.items()},
)
