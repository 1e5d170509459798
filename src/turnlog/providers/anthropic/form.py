"""Forms of this provider: the words that their shapes hold.

string, list, null, absent   how a message or a result spelled its content
mixed                        results that did not lead their message
inline                       a system message that stood among the messages
search_result                a text that was a search result's only one
redacted                     reasoning that was redacted, without data
bare                         a call whose input was no object
base64, text, content, ...   the type of a medium's source
literal=HASH                 its base64 text, kept as a blob
"""

from __future__ import annotations

from ..spelling import Forms

NAME = "anthropic"
"""The public name of this provider."""

FORMS = Forms(NAME)
