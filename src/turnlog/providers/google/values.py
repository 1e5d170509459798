"""What values Google takes, by the name of their key, as types that msgspec checks.

A wrong one is refused: "Invalid value at 'generation_config.top_p' (TYPE_FLOAT)". Keys of the same
name are of the same type wherever they stand; null is the same as nothing. Source: google-genai 3.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import unchanged
from ...view.types import Edit
from ..values import misfit
from .keys import FREE, camel

_OBJECT = dict[str, Any]


def _of(kind: Any, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), kind)


_TYPES: Mapping[str, Any] = {
    **_of(
        str,
        "behavior cachedContent category code description displayName endOffset fileUri id language languageCode level "
        "method mimeType mode name outcome output responseMimeType scheduling serviceTier startOffset thinkingLevel "
        "threshold toolType",
    ),
    **_of(
        bool,
        "audioTimestamp disableAttribution enableAffectiveDialog enableEnhancedCivicAnswers enableWidget "
        "includeServerSideToolInvocations includeThoughts responseLogprobs store streamFunctionCallArguments "
        "willContinue",
    ),
    **_of(int, "candidateCount logprobs maxOutputTokens numTokens seed thinkingBudget"),
    **_of(float, "fps frequencyPenalty presencePenalty temperature topK topP"),
    **_of(
        list[str],
        "allowedFunctionNames excludeDomains excludedPredefinedFunctions fileSearchStoreNames responseModalities "
        "stopSequences",
    ),
    **_of(list[_OBJECT], "contentLayers mcpServers partialArgs"),
    **_of(list[_OBJECT] | _OBJECT, "functionDeclarations safetySettings"),
    **_of(
        _OBJECT,
        "audioMetadata audioTranscription audioTranscriptionConfig codeExecution codeExecutionResult computerUse "
        "documentMetadata enterpriseWebSearch exaAiSearch executableCode fileData fileSearch functionCallingConfig "
        "generationConfig googleMaps googleSearch googleSearchRetrieval imageConfig inlineData latLng mediaProcessing "
        "modelArmorConfig modelSelectionConfig multiSpeakerVoiceConfig parallelAiSearch partMetadata "
        "responseSchema retrieval retrievalConfig routingConfig speechConfig speechMetadata spreadsheetMetadata "
        "thinkingConfig toolCall toolConfig toolResponse translationConfig urlContext videoMetadata voiceConfig",
    ),
    "labels": dict[str, str],
    "mediaResolution": str | _OBJECT,
}

SCHEMA: Mapping[str, Any] = {
    **_of(str, "description format pattern ref title type"),
    **_of(bool, "nullable"),
    **_of(int, "maxItems maxLength maxProperties minItems minLength minProperties"),
    **_of(float, "maximum minimum"),
    **_of(list[str], "enum propertyOrdering required"),
    **_of(_OBJECT, "defs properties"),
    **_of(list[_OBJECT], "anyOf"),
    **_of(_OBJECT | bool, "additionalProperties items"),
    **_of(Any, "default example"),
}
"""Keys of a typed schema."""


def drop_misfits(value: Any, path: str, edits: list[Edit]) -> Any:
    """`value` without keys whose values are of the wrong type, at every depth but inside the user's own
    JSON; itself if there are none."""
    if isinstance(value, list):
        items = [drop_misfits(item, f"{path}[{i}]", edits) for i, item in enumerate(value)]
        return value if unchanged(items, value) else items
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for key, item in value.items():
        name, where = camel(key), f"{path}.{key}" if path else key
        typed = item is not None and name in _TYPES
        why = misfit(item, _TYPES[name], strict=False) if typed else ""  # numbers may be written as strings
        if why:
            edits.append(Edit("unknown_value", f"dropped: {why}", rule="Invalid value", path=where))
        else:
            kept[key] = item if name in FREE else drop_misfits(item, where, edits)
    same = len(kept) == len(value) and all(kept[key] is item for key, item in value.items())
    return value if same else kept
