"""Names of OpenTelemetry's semantic conventions for generative AI.

Source: github.com/open-telemetry/semantic-conventions-genai, commit 024a4f94, docs/gen-ai: client-inference.md,
gen-ai-token-metrics.md, gen-ai-agent-spans.md, gen-ai-metrics.md. They left the general conventions in 2026, are still
in development, and have no release yet. Names that begin with `turnlog.` are our own.
"""

from __future__ import annotations

SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The URL by which spans and metrics name the conventions, as their manifest states it."""

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that says whether spans contain what was said."""
CAPTURED = {
    "": False, "false": False, "no_content": False, "event_only": False,
    "true": True, "span_only": True, "span_and_event": True,
}  # fmt: skip
"""Its values, in lower case. There are no events of contents here."""

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
CACHE_WRITE = "gen_ai.usage.cache_write.input_tokens"
"""`gen_ai.usage.cache_creation.input_tokens` in conventions before 2026-09."""
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
TOOL_DEFINITIONS = "gen_ai.tool.definitions"

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

WHOLE = ("gen_ai.request.max_tokens", "gen_ai.request.seed", "gen_ai.request.top_k")
"""Settings that are whole numbers; the others are fractions."""

CHAT_SECONDS = "gen_ai.client.inference.duration"
TOOL_SECONDS = "gen_ai.execute_tool.duration"
TURN_SECONDS = "gen_ai.invoke_agent.duration"
INPUT_SIZES = "gen_ai.client.inference.operation.input_tokens"
OUTPUT_SIZES = "gen_ai.client.inference.operation.output_tokens"
INPUT_SPENT = "gen_ai.client.inference.usage.input_tokens"
OUTPUT_SPENT = "gen_ai.client.inference.usage.output_tokens"
CACHE_READ_SPENT = "gen_ai.client.inference.usage.cache_read.input_tokens"
CACHE_WRITE_SPENT = "gen_ai.client.inference.usage.cache_write.input_tokens"
REASONING_SPENT = "gen_ai.client.inference.usage.reasoning.output_tokens"
MODALITY = "gen_ai.token.modality"

MEASURED = {
    CHAT: (OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL, ERROR_TYPE),
    EXECUTE_TOOL: (TOOL_NAME, TOOL_TYPE, AGENT_NAME, ERROR_TYPE),
    INVOKE_AGENT: (AGENT_NAME, ERROR_TYPE),
}
"""The attributes of metrics, by operation."""

RECORD = "turnlog.record"
"""The number of the record in the log."""
TURN_ID = "turnlog.turn.id"
TURN_STATUS = "turnlog.turn.status"
OUTCOME = "turnlog.tool.outcome"
