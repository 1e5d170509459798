"""Forms of this provider: the words that their shapes hold.

absent, null                    content or a result that was not there, or null
string, object, list            content that was a text or one content; a result that was a list of one text, or empty
bare                            content among steps, in no step; a call's arguments that were no object
step                            the content that begins another step of the same answer
part                            a content part that was kept whole
json                            a result that was no text and no list, kept as its JSON
urlsafe, unpadded, literal=HASH how base64 was spelled; a text of its own, kept as a blob
input=string, model=absent, ... how a body spelled its input, and that it named no model
"""

from __future__ import annotations

from ..spelling import Forms

NAME = "google-interactions"
"""The public name of this provider."""

FORMS = Forms(NAME)
