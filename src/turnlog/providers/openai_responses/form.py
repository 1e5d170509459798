"""Forms of this provider: the words in their shapes.

instructions                    a system message that was `instructions`
list, empty, json               content that was a list of one plain text, []; a value stored as its JSON
refusal, part                   a text that was a refusal; a content part that was kept whole
item=N                          the first text of an output message of N parts
first=ID, after=ID              the reasoning item that an item directly followed, or that came before
content=N,N                     the lengths of the texts of reasoning
function_call_output, ...       the type of an item that is not the usual one
stdout, stderr                  the stream that a shell printed a text on
file, screenshot, bare          media that were a file part; a screenshot; base64 without a data URL
literal=HASH                    its text on the wire, stored as a blob
input=string, model=absent, ... how the input of a body was spelled; a body without a model
"""

from __future__ import annotations

from ..spelling import Forms

NAME = "openai-responses"
"""The public name of this provider."""

FORMS = Forms(NAME)
