"""Forms of this provider: the words in their shapes.

string, strings, object      a system instruction that was a text or several texts; a single part, not a list
absent, null, empty          parts, or a response, that were missing, null, [] or {}
content, apart               system text among the contents; results in a separate content
bare                         a call's arguments that were not an object
nested                       a result with media inside it
json, value, result, ...     a response that was another object, or not an object; the key of its text
urlsafe, unpadded, literal=HASH  how base64 was spelled; another base64 text, stored as a blob
models/, model, tools-object how the model and the tools of a body were spelled
apart, joined, snake, schema how a tool was declared, see `tools`
"""

from __future__ import annotations

from typing import Any

from ...log.messages import Form
from ..spelling import Forms, spell

NAME = "google"
"""The public name of this provider."""

FORMS = Forms(NAME, two_spellings=True)

_SIGNATURE = ("thoughtSignature", "thought_signature")


def spelled(default: dict[str, Any], form: Form | None) -> dict[str, Any]:
    """`default` in the spelling of this provider's form.

    Ids are optional here. An id that was not on the wire was made by turnlog and is not sent, while a signature that
    was not on the wire was added by repair and is sent.
    """
    delta = FORMS.delta(form)
    if delta is None:
        return default
    for key, inner in delta.get("~", {}).items():
        if "id" in inner.get("-", ()) or "id" in inner.get("+", {}):
            default = {**default, key: {name: item for name, item in default[key].items() if name != "id"}}
    added = delta.get("+", {})
    if "thoughtSignature" not in default or any(added.get(key) for key in _SIGNATURE):
        return spell(default, delta)
    shown = {
        "+": {key: value for key, value in added.items() if key not in _SIGNATURE},
        "-": [key for key in delta.get("-", ()) if key != "thoughtSignature"],
    }
    return spell(default, {**delta, **shown})
