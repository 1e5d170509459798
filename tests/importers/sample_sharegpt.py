"""ShareGPT conversations, one a line: with calls as turns, and with calls and results in texts."""

from __future__ import annotations

from samples import Sample
from transcripts import jsonl


def _turn(speaker: str, value: str, **more: object) -> dict[str, object]:
    return {"from": speaker, "value": value, **more}


_LINES = [
    {
        "conversations": [
            _turn("human", "Name the fjords of Norway"),
            _turn("function_call", '{"name":"look","arguments":{"what":"fjords"}}'),
            _turn("observation", "Hardanger and Sogne"),
            _turn("function_call", '[{"name":"write_file","arguments":{"path":"a","content":"x"}},{"name":"count"}]'),
            _turn("observation", "it was written"),
            _turn("observation", "there are two"),
            _turn("function_call", "this is no call"),
            _turn("gpt", "<think>hm</think>Hardanger.", weight=1),
        ],
        "system": "Be brief and kind.",
        "tools": '[{"name":"look"}]',
        "id": "identity_0",
        "images": ["a/map.png"],
    },
    {
        "conversations": [
            _turn("system", "You call functions in tags"),
            _turn("human", "Count the fjords of Norway", loss=True),
            _turn(
                "gpt", '<tool_call>{"name":"count","arguments":{}}</tool_call><tool_call>{"name":"look"}</tool_call>'
            ),
            _turn(
                "tool",
                '<tool_response>{"name":"look","content":"here"}</tool_response><tool_response>2</tool_response>',
            ),
            {"role": "assistant", "content": "There are two of them."},
            _turn("critic", "something that nobody knows"),
        ],
        "chosen": _turn("gpt", "an answer that was chosen"),
        "timestamp": "2026-10-07T10:00:00",
        "model": "hermes-4",
        "completed": True,
    },
    {"conversations": []},
]

SAMPLE = Sample(
    name="sharegpt",
    data=jsonl(_LINES),
    # Results in a row are one message.
    query=r"""
        [.[] | (.system // empty | {from: "system"}), .conversations[], {}] as $turns
        | [$turns[] | .from as $from | if $from == null and .role == null then ""
            elif $from == "observation" or $from == "tool" then "result" elif $from == "critic" then empty
            else "other" end] as $speakers
        | [$turns[] | .value // "" | [scan("\"name\":\"(?:look|count|write_file)\"")] | length] as $named
        | [$turns[] | select(.from == "tool") | .value | [scan("<tool_response>")] | length] as $inside
        | {messages: [range($speakers | length) | select($speakers[.] != ""
              and ($speakers[.] == "other" or . == 0 or $speakers[. - 1] != "result"))] | length,
           calls: ($named | add - 1),
           results: ($turns | map(select(.from == "observation")) | length + ($inside | add)), input: 0, output: 0}""",
    warned=("`images`", "`chosen`", "'critic'", "without a message"),
)
