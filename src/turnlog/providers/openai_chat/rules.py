"""What Chat Completions accepts, by model.

Sources: the API's own error messages, recorded live or quoted in public issues (the 400s are quoted at the values), and
the request types of the openai SDK 3.54.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...models.target import Target
from ...view.rules import Rules
from ..openai_breakpoints import Format, marker
from ..schema.shapes import Tagged
from ..signs import Signs
from ..tool_declarations import is_json_mode
from .form import NAME
from .schema import MESSAGE, OPAQUE_FIELDS, PARTS, REASONING_FIELDS, TOOL, TOOLS_MAX
from .servers import JSON_WORD, server_rules

# -- breakpoints -----------------------------------------------------------------------------------
#
# Which content of Chat Completions can have a prompt-cache breakpoint.

_ROLES = frozenset({"system", "developer", "user", "tool"})


def _holds(message: Mapping[str, Any]) -> str:
    return "content" if message.get("role") in _ROLES else ""


mark_cache = marker(Format("messages", "text", frozenset({"text", "image_url", "input_audio", "file"}), _holds))
"""Adds the cache's key and the breakpoints to a request. See `Provider.mark_cache`."""


# -- signs -----------------------------------------------------------------------------------------
#
# The words of Chat Completions requests, and those of servers that imitate it.

_SERVERS = frozenset(
    """
    add_generation_prompt best_of cache_control chat_template chat_template_kwargs continue_final_message documents
    dry_multiplier enable_thinking extra_body frequency_penalty_range guided_choice guided_grammar guided_json
    guided_regex ignore_eos include_reasoning include_stop_str_in_output keep_alive length_penalty min_p min_tokens
    mirostat mirostat_eta mirostat_tau models num_ctx options plugins preset prompt_mode prompt_truncate_len provider
    random_seed reasoning reasoning_budget reasoning_format repeat_penalty repetition_penalty route safe_prompt
    search_parameters session_id skip_special_tokens stop_token_ids structured_outputs thinking thinking_budget
    thinking_config top_a top_k transforms typical_p usage use_beam_search web_search_options
    """.split()
)
"""Settings of vLLM, SGLang, llama.cpp, Ollama, OpenRouter, LiteLLM, Mistral, DeepSeek, Moonshot, Z.ai, Qwen and xAI, as
their API references list them."""

_SERVER_BLOCKS = frozenset(
    """
    audio_url document document_url file_url image input_image redacted_thinking reference thinking video video_url
    """.split()
)
"""Types of contents that vLLM, Mistral, OpenRouter, Cohere, Qwen and gateways to Anthropic use."""

SIGNS = Signs(
    blocks=Tagged("type", PARTS),
    server_blocks=_SERVER_BLOCKS | {*OPAQUE_FIELDS},
    roles=frozenset(MESSAGE.shapes),
    call_keys=frozenset({"tool_calls", "tool_call_id", "function_call"}),
    message_keys=frozenset({"name", "refusal", "annotations", *REASONING_FIELDS, *OPAQUE_FIELDS}),
    tools=TOOL,
    settings=_SERVERS,
    models=r"gpt-|chatgpt-|o\d|[\w.-]+/",  # gateways name a model by a path
    urls=r"/chat/completions\b",
)


_MIMES = frozenset(
    """image/png image/jpeg image/jpg image/gif image/webp application/pdf
    audio/wav audio/x-wav audio/wave audio/mpeg audio/mp3""".split()
)
# The documented limit for images and files together is 50 MB a request, in base64.
_MEDIA_MAX_BASE64 = 50_000_000

_OWN_KINDS = frozenset({*OPAQUE_FIELDS, "file"})
"""Kinds of opaque parts that OpenAI's own models accept; compatible servers have more."""


def rules(target: Target, settings: Mapping[str, Any]) -> Rules:
    """What `target` accepts, given the request's settings."""
    abilities = target.abilities
    # "Content blocks are expected to be either text or image_url type." (audio sent to a model that does not accept it)
    media = (target.input_media & {"image", "document", "audio"}) | set(abilities.chat_media)
    own = Rules(
        provider=NAME,
        # "An assistant message with 'tool_calls' must be followed by tool messages responding to each
        # 'tool_call_id'."
        results="adjacent",
        merge_calls=True,
        results_apart=True,
        # There is no rule of alternation and no rule for the first or last role (recorded: assistant first, system
        # last).
        first="any",
        last="any",
        strip_last=False,
        system="inline",
        system_only=True,
        # "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40"
        call_id_max=40,
        call_id_unique="turn",
        # "Invalid 'messages[8].tool_calls[0].function.name': string does not match pattern."
        name_pattern=r"^[a-zA-Z0-9_-]+$",
        name_max=64,
        arguments="text",
        call_kinds=frozenset({"function", "custom"} if abilities.custom_tools else {"function"}),
        empty_text=True,
        # The same models as in the schema, which has no other types of content parts for them.
        own_kinds=None if abilities.replays_reasoning else _OWN_KINDS,
        reasoning="own" if abilities.replays_reasoning else "none",
        user_media=media,
        # A tool message accepts only text; rendering puts media of results into the user message after it.
        result_media=media,
        media_mimes=_MIMES,
        media_max_base64=_MEDIA_MAX_BASE64,
        media_max_total=_MEDIA_MAX_BASE64,
        tools_max=TOOLS_MAX,
        word=JSON_WORD if is_json_mode(settings.get("response_format")) else None,
    )
    return server_rules(own, target, settings) if target.server else own
