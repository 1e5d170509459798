"""Forms of this provider: the words in their shapes.

list, null, empty, absent   content that was a list of one plain text, null, [], missing
developer, legacy, named    the role `developer`; a `function_call` or `function` message; a
                            tool message with a name
function                    a `function` message that answers no call, read as a user's text
object, null, absent        a call's arguments that were an object, null, missing
refusal, refusal-field      a text that was a refusal part, or the message's `refusal`
transcript                  the text of a spoken answer, sent only if its audio is not
reasoning                   reasoning with the key `reasoning`, not `reasoning_content`
plain, literal=HASH         an image_url that was a string; the wire text, stored as a blob
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Form
from ..spelling import Forms, spell

NAME = "openai-chat"
"""The public name of this provider."""

FORMS = Forms(NAME)


def spelled(default: dict[str, Any], form: Form | None) -> dict[str, Any]:
    """`default` in the spelling of this provider's form. No value of `default` is overridden: repair may have changed
    it since the form was made."""
    delta = FORMS.delta(form)
    return default if delta is None else spell(default, _additions(delta, default))


def _additions(delta: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """`delta` without values for keys that `default` has, at every depth, except `type`."""
    additions = dict(delta)
    if "+" in additions:
        additions["+"] = {key: value for key, value in additions["+"].items() if key not in default or key == "type"}
    if "~" in additions:
        additions["~"] = {
            key: _additions(inner, default[key])
            for key, inner in additions["~"].items()
            if isinstance(default.get(key), dict)
        }
    return additions
