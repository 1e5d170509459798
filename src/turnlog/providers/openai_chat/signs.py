"""The words of Chat Completions requests, and those of servers that imitate it."""

from __future__ import annotations

from ..schema import Tagged
from ..signs import Signs
from .schema import MESSAGE, OPAQUE_FIELDS, PARTS, REASONING_FIELDS, TOOL

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

SIGNS = Signs(
    blocks=Tagged("type", PARTS),
    roles=frozenset(MESSAGE.shapes),
    call_keys=frozenset({"tool_calls", "tool_call_id", "function_call"}),
    message_keys=frozenset({"name", "refusal", "annotations", *REASONING_FIELDS, *OPAQUE_FIELDS}),
    tools=TOOL,
    settings=_SERVERS,
    models=r"gpt-|chatgpt-|o\d|[\w.-]+/",  # gateways name a model by a path
    urls=r"/chat/completions\b",
)
