"""The schema of a generateContent request, with both spellings of each key.

Source: the REST reference (https://ai.google.dev/api/generate-content, v1beta) and the reference of Vertex, as typed in
google-genai 3.4. An unknown key is refused: "Invalid JSON payload received. Unknown name"; so is a wrong value:
"Invalid value at 'generation_config.top_p' (TYPE_FLOAT)". Null is the same as a missing value.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..schema.shapes import (
    FLAG,
    INTEGER,
    OBJECT,
    STRING,
    TYPES,
    Each,
    Either,
    Many,
    NamedShape,
    ObjectShape,
    Read,
    Schema,
    Shape,
    Value,
    record,
)
from .keys import snake

_TYPES = {
    **TYPES,
    "enum": Either((STRING, INTEGER)),  # proto3 JSON: "Parsers accept both enum names and integer values."
    "enums": Many(Either((STRING, INTEGER))),
    "int": Value("integer", quoted=True),
    "num": Value("number", quoted=True),
}


def _message(keys: str = "", nested: Mapping[str, Shape] | None = None) -> ObjectShape:
    """An object of proto3 JSON, in which each key may be missing or null."""
    camel_shape = record(keys, nested, types=_TYPES)
    shapes = {spelled: shape for key, shape in camel_shape.keys.items() for spelled in (snake(key), key)}
    read = frozenset(spelled for key in camel_shape.read for spelled in (snake(key), key))
    return ObjectShape(shapes, nulls=frozenset(shapes), read=read)


def _some(shape: Shape) -> Either:
    """A list of values, or a single value."""
    return Either((Many(shape, vanishes=True), shape))


# -- schemas -------------------------------------------------------------------------------------
_INNER = NamedShape(lambda: SCHEMA)
SCHEMA: ObjectShape = _message(
    "description format pattern ref title type:enum nullable:flag maxItems:int maxLength:int maxProperties:int "
    "minItems:int minLength:int minProperties:int maximum:num minimum:num enum:texts propertyOrdering:texts "
    "required:texts default:any example:any",
    {
        "defs": Each(_INNER),
        "properties": Each(_INNER),
        "anyOf": Many(_INNER),
        "items": _INNER,
        "additionalProperties": Either((_INNER, FLAG)),
    },
)
"""The subset of JSON schema that a typed schema field (`parameters`, `responseSchema`) accepts."""

# -- contents ------------------------------------------------------------------------------------
_METADATA = "mediaProcessing:object documentMetadata:object spreadsheetMetadata:object audioMetadata:object"
_MEDIA: Mapping[str, Shape] = {
    "*inlineData": _message("*mimeType *data displayName"),
    "*fileData": _message("*fileUri *mimeType displayName"),
    "videoMetadata": _message("startOffset endOffset fps:num contentLayers:objects"),
}
_RESOLUTION = Either((STRING, INTEGER, _message("level:enum numTokens:int")))
_INSIDE = _message(_METADATA, {"mediaResolution": _RESOLUTION, **_MEDIA})
_PIECE = _message("*jsonPath *stringValue numberValue:num boolValue:flag nullValue:any willContinue:flag")
PART = _message(
    f"*text *thought:flag *thoughtSignature partMetadata:object audioTranscription:object speechMetadata:object "
    f"{_METADATA}",
    {
        **_MEDIA,
        "mediaResolution": _RESOLUTION,
        "*functionCall": _message("*id *name args:object willContinue:flag", {"*partialArgs": Many(_PIECE)}),
        "*functionResponse": _message(
            "*id *name response:object willContinue:flag scheduling:enum", {"*parts": Many(_INSIDE)}
        ),
        "executableCode": _message("id language:enum code"),
        "codeExecutionResult": _message("id outcome:enum output"),
        "toolCall": _message("id toolType:enum args:any"),
        "toolResponse": _message("id toolType:enum response:any"),
    },
)
"""A part of a content."""
_CONTENT = _message("*role", {"*parts": Either((Many(PART), PART))})
RESPONSE = _message(
    "*modelVersion *responseId",
    {"*candidates": Many(_message("*finishReason:enum *finishMessage", {"*content": _CONTENT}))},
)
"""A response, or a chunk of a streamed one: the keys that are read."""

# -- tools and settings --------------------------------------------------------------------------
_DECLARATION = _message(
    "*name *description behavior:enum parametersJsonSchema:any_schema responseJsonSchema:any_schema",
    {"*parameters": Schema(SCHEMA, "ref"), "response": Schema(SCHEMA, "ref")},
)
TOOL = _message(
    "parallelAiSearch:object mcpServers:objects exaAiSearch:object",
    {
        "codeExecution": _message(),
        "computerUse": _message(
            "environment:any excludedPredefinedFunctions:texts enablePromptInjectionDetection:any "
            "disabledSafetyPolicies:any"
        ),
        "enterpriseWebSearch": _message("blockingConfidence:any excludeDomains:texts"),
        "fileSearch": _message("fileSearchStoreNames:texts topK:num metadataFilter:any"),
        "googleMaps": _message("authConfig:any enableWidget:flag groundingTypes:any"),
        "googleSearch": _message("searchTypes:any blockingConfidence:any excludeDomains:texts timeRangeFilter:any"),
        "googleSearchRetrieval": _message("dynamicRetrievalConfig:any"),
        "retrieval": _message("disableAttribution:flag externalApi:any vertexAiSearch:any vertexRagStore:any"),
        "urlContext": _message(),
        "*functionDeclarations": _some(_DECLARATION),
    },
)
"""An element of `tools`: function declarations, or tools that Google runs."""
_CALLING = _message("mode:enum streamFunctionCallArguments:flag", {"allowedFunctionNames": Many(STRING, vanishes=True)})
_GENERATION = _message(
    "responseMimeType responseJsonSchema:any_schema _responseJsonSchema:any_schema responseModalities:enums "
    "responseFormat:any candidateCount:int maxOutputTokens:int topP:num topK:num seed:int presencePenalty:num "
    "frequencyPenalty:num "
    "responseLogprobs:flag logprobs:int enableEnhancedCivicAnswers:flag audioTimestamp:flag routingConfig:object "
    "modelSelectionConfig:object enableAffectiveDialog:flag translationConfig:object audioTranscriptionConfig:object "
    "imageConfig:object",
    {
        "responseSchema": Schema(SCHEMA, "ref"),
        "mediaResolution": Either((STRING, INTEGER, OBJECT)),
        "speechConfig": _message("voiceConfig:object multiSpeakerVoiceConfig:object languageCode"),
        # "at most 5 stop sequences are supported."
        "stopSequences": Many(STRING, 5),
        # "temperature must be in the range [0.0, 2.0]."
        "temperature": Value("number", 0, 2, quoted=True),
        "thinkingConfig": _message("includeThoughts:flag thinkingBudget:int thinkingLevel:enum"),
    },
)

BODY = _message(
    "*model cachedContent continuationToken generationOutputConfig:object modelArmorConfig:object serviceTier:enum "
    "store:flag",
    {
        "*contents": Either((Many(_CONTENT), _CONTENT)),
        "*systemInstruction": Read(_CONTENT, (STRING, Many(STRING))),
        "*tools": _some(TOOL),
        "toolConfig": _message(
            "includeServerSideToolInvocations:flag",
            {"functionCallingConfig": _CALLING, "retrievalConfig": _message("latLng:object languageCode")},
        ),
        "safetySettings": _some(_message("category:enum threshold:enum method:enum")),
        "generationConfig": _GENERATION,
        "labels": Each(STRING),
    },
)
"""A request body."""
