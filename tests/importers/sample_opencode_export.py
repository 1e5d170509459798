"""What `opencode export` prints of a session of 1.x."""

from __future__ import annotations

import json

from opencode_sessions import DIFF, MESSAGES, REVERTED, SESSION
from samples import Sample

COUNTING = """
    | [$all[] | .info as $i | .parts[] | {role: $i.role, error: $i.error.data.message, m: $i.id, part: .}] as $p
    | {messages: ((
         [$p[] | select(.role == "user" and .part.ignored == null and (.part.type == "text" or .part.type == "subtask"
           or ((.part.url // "") | startswith("data:")))) | {m, s: .part.synthetic}]
         | reduce .[] as $x ([]; if (.[-1] == $x) then . else . + [$x] end) | length)
       + ([$all[] | select(.info.role == "assistant" and .info.error.data.message != "the line broke") | .parts
           | [.[] | select(.type == "step-start")] | [length, 1] | max] | add)
       + ([$all[] | select(any(.parts[]; .state.status == "completed" or .state.status == "error")) | .parts
           | [.[] | select(.type == "step-start")] | [length, 1] | max] | add)),
       calls: [$p[] | select(.part.type == "tool")] | length,
       results: [$p[] | select(.part.state.status == "completed" or .part.state.status == "error")] | length,
       input: ([$all[] | select(.info.tokens) | . as $m
         | ([$m.parts[] | select(.type == "step-finish" and .tokens.output)] | [length, 1] | max)
           * ($m.info.tokens | .input + .cache.read + .cache.write)] | add),
       output: ([$all[] | select(.info.tokens) | . as $m
         | ([$m.parts[] | select(.type == "step-finish" and .tokens.output)] | [length, 1] | max)
           * ($m.info.tokens | .output + .reasoning)] | add)}"""

WARNED = ("a file that is not in the transcript", "a file of an answer", "'later-part'")

SAMPLE = Sample(
    name="opencode",
    data=json.dumps({"info": {**SESSION, "revert": {"messageID": REVERTED}}, "messages": MESSAGES}).encode(),
    query="map(.messages[]) as $all" + COUNTING,
    warned=WARNED,
    silent=(DIFF,),
    grows=False,
    is_export=True,
)
