"""Which keys a generateContent body may have, both spellings of each.

From the REST reference (https://ai.google.dev/api/generate-content, v1beta) and the Vertex one, as
google-genai 3.4 types them. An unknown key is refused: "Invalid JSON payload received. Unknown name".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shapes import ANY, Keys, Many, Shape
from ..values import misfit
from .keys import camel, snake
from .values import SCHEMA


def _keys(plain: str, **nested: Shape) -> Keys:
    """An object with the `plain` keys (camelCase, anything inside) and the `nested` ones."""
    shapes: dict[str, Shape] = {**{key: ANY for key in plain.split()}, **nested}
    return Keys({**{snake(key): shape for key, shape in shapes.items()}, **shapes})


_BLOB = _keys("mimeType data displayName")
_FILE = _keys("fileUri mimeType displayName")
_VIDEO = _keys("startOffset endOffset fps contentLayers")
_METADATA = "mediaProcessing documentMetadata spreadsheetMetadata audioMetadata"

_RESPONSE_PART = _keys(f"{_METADATA} mediaResolution", inlineData=_BLOB, fileData=_FILE, videoMetadata=_VIDEO)
_PART = _keys(
    f"text thought thoughtSignature partMetadata audioTranscription speechMetadata {_METADATA}",
    inlineData=_BLOB,
    fileData=_FILE,
    videoMetadata=_VIDEO,
    mediaResolution=_keys("level numTokens"),
    functionCall=_keys("id name args partialArgs willContinue"),
    functionResponse=_keys("id name response willContinue scheduling", parts=Many(_RESPONSE_PART)),
    executableCode=_keys("id language code"),
    codeExecutionResult=_keys("id outcome output"),
    toolCall=_keys("id toolType args"),
    toolResponse=_keys("id toolType response"),
)
_CONTENT = _keys("role", parts=Many(_PART))

_DECLARATION = _keys("name description behavior parameters parametersJsonSchema response responseJsonSchema")
TOOL = _keys(
    "parallelAiSearch mcpServers exaAiSearch",
    codeExecution=_keys(""),
    computerUse=_keys("environment excludedPredefinedFunctions enablePromptInjectionDetection disabledSafetyPolicies"),
    enterpriseWebSearch=_keys("blockingConfidence excludeDomains"),
    fileSearch=_keys("fileSearchStoreNames topK metadataFilter"),
    googleMaps=_keys("authConfig enableWidget groundingTypes"),
    googleSearch=_keys("searchTypes blockingConfidence excludeDomains timeRangeFilter"),
    googleSearchRetrieval=_keys("dynamicRetrievalConfig"),
    retrieval=_keys("disableAttribution externalApi vertexAiSearch vertexRagStore"),
    urlContext=_keys(""),
    functionDeclarations=Many(_DECLARATION),
)
"""An element of `tools`: function declarations, or tools that Google runs."""
_TOOL_CONFIG = _keys(
    "includeServerSideToolInvocations",
    functionCallingConfig=_keys("mode allowedFunctionNames streamFunctionCallArguments"),
    retrievalConfig=_keys("latLng languageCode"),
)
_GENERATION = _keys(
    "stopSequences responseMimeType responseSchema responseJsonSchema _responseJsonSchema "
    "responseModalities responseFormat candidateCount maxOutputTokens temperature topP topK seed "
    "presencePenalty frequencyPenalty responseLogprobs logprobs enableEnhancedCivicAnswers "
    "mediaResolution audioTimestamp routingConfig modelSelectionConfig enableAffectiveDialog "
    "translationConfig audioTranscriptionConfig imageConfig",
    speechConfig=_keys("voiceConfig multiSpeakerVoiceConfig languageCode"),
    thinkingConfig=_keys("includeThoughts thinkingBudget thinkingLevel"),
)

BODY = _keys(
    "model cachedContent labels modelArmorConfig serviceTier store",
    contents=Many(_CONTENT),
    systemInstruction=_CONTENT,
    tools=Many(TOOL),
    toolConfig=_TOOL_CONFIG,
    safetySettings=Many(_keys("category threshold method")),
    generationConfig=_GENERATION,
)
"""The whole body, every repeated field as a list."""

_MAPS = ("properties", "defs")


def is_google_schema(schema: Any) -> bool:
    """Whether a typed schema field (`parameters`, `responseSchema`) takes `schema`."""
    if not isinstance(schema, Mapping):
        return isinstance(schema, bool)
    for key, value in schema.items():
        name = camel(key)
        if name not in SCHEMA or (value is not None and misfit(value, SCHEMA[name], strict=False)):
            return False
        inner: list[Any] = []
        if name in _MAPS and isinstance(value, Mapping):
            inner = list(value.values())
        elif name == "anyOf" and isinstance(value, list):
            inner = value
        elif name in ("items", "additionalProperties") and value is not None:
            inner = [value]
        if not all(map(is_google_schema, inner)):
            return False
    return True
