"""Names of OpenTelemetry's semantic conventions for generative AI, in version `VERSION`.

Source: opentelemetry.io, "Semantic conventions for generative AI systems" (agent, client and tool spans), which are
still in development. The package opentelemetry-semantic-conventions has the same names, and a test compares them.
Names that begin with `turnlog.` are our own.
"""

from __future__ import annotations

VERSION = "1.44.0"
"""The version of the conventions."""

SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"
"""The URL by which spans name that version."""

OPERATION = "gen_ai.operation.name"
INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

CONVERSATION = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
PROVIDER = "gen_ai.provider.name"
"""Older versions of the conventions use `gen_ai.system`, which is not written any more."""

REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
"""All tokens that the model read, including cached ones."""
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"

TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
CALL_ID = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"

ERROR_TYPE = "error.type"
OTHER_ERROR = "_OTHER"
"""The type of an error without a known name."""

SETTINGS = {
    "gen_ai.request.frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
    "gen_ai.request.max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "gen_ai.request.presence_penalty": ("presence_penalty", "presencePenalty"),
    "gen_ai.request.seed": ("seed",),
    "gen_ai.request.temperature": ("temperature",),
    "gen_ai.request.top_k": ("top_k", "topK"),
    "gen_ai.request.top_p": ("top_p", "topP"),
}
"""Settings of requests, with their keys in the providers' requests."""

RECORD = "turnlog.record"
"""The number of the record in the log."""
TURN_ID = "turnlog.turn.id"
TURN_STATUS = "turnlog.turn.status"
OUTCOME = "turnlog.tool.outcome"
