"""Forms of this provider: the words in their shapes.

absent, null                    content or a result that was absent, or null
string, object, list            content that was a string or a single content; a result that was an empty list, or a
                                list of one text
bare                            content among steps, without a step around it; arguments that were not an object
step                            the content that begins another step of the same answer
part                            a content that could not be read, recorded unchanged
json                            a result that was neither a string nor a list, recorded as JSON text
urlsafe, unpadded, literal=HASH how base64 was spelled; a spelling that no encoder produces is a blob
input=string, model=absent, ... how a body spelled its input, and that it named no model
"""

from __future__ import annotations

from ..spelling import Forms

NAME = "google-interactions"
"""The public name of this provider."""

FORMS = Forms(NAME)
