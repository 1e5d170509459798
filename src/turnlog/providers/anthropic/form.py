"""Forms of this provider: the words in their shapes.

string, list, null, absent   how the content of a message or a result was spelled
mixed                        results that were not at the beginning of their message
inline                       a system message that was among the messages
search_result                a text that was the only text of a search result
redacted                     reasoning that was redacted, without data
bare                         a call whose input was not an object
base64, text, content, ...   the type of a medium's source
literal=HASH                 its base64 text, stored as a blob
container=ID, until=TIME     where the API ran code for an answer, and until when it stays
"""

from __future__ import annotations

from ..spelling import Forms

NAME = "anthropic"
"""The public name of this provider."""

FORMS = Forms(NAME)
