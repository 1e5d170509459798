"""The SDKs without a framework: a loop that asks, runs the tool, and asks again. FORM is the API, with `-stream`, or
for Anthropic `-bound`: a model whose thinking is bound to the conversation before it."""

from __future__ import annotations

import json
from typing import Any

import given

STREAMED, IS_BOUND = given.FORM.endswith("-stream"), given.FORM.endswith("-bound")
API = given.FORM.removesuffix("-stream").removesuffix("-bound")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = {"name": "read_file", "description": "Read a file of the project."}


def openai_chat() -> Any:
    """Chat Completions."""
    import openai

    client = openai.OpenAI(max_retries=0, **given.client("http_client"))
    messages: list[Any] = [{"role": "system", "content": given.SYSTEM}]
    tools = [{"type": "function", "function": {**TOOL, "parameters": SCHEMA}}]

    def ask() -> Any:
        request: dict[str, Any] = {"model": "gpt-4o", "messages": messages, "tools": tools}
        if not STREAMED:
            return client.chat.completions.create(**request).choices[0].message
        with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
            return stream.get_final_completion().choices[0].message

    def say(task: str) -> str:
        messages.append({"role": "user", "content": task})
        while (message := ask()).tool_calls:
            functions = [
                {"name": call.function.name, "arguments": call.function.arguments} for call in message.tool_calls
            ]
            calls = [
                {"id": call.id, "type": "function", "function": function}
                for call, function in zip(message.tool_calls, functions, strict=True)
            ]
            messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
            for call in calls:
                text = given.read_file(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        messages.append({"role": "assistant", "content": message.content})
        return str(message.content)

    return say


def openai_responses() -> Any:
    """Responses, with the history in the request and reasoning sent back encrypted."""
    import openai

    client = openai.OpenAI(max_retries=0, **given.client("http_client"))
    items: list[Any] = []
    tools: list[Any] = [{"type": "function", **TOOL, "parameters": SCHEMA, "strict": False}]

    def ask() -> Any:
        request: dict[str, Any] = {
            "model": "gpt-5", "instructions": given.SYSTEM, "input": items, "tools": tools, "store": False,
            "include": ["reasoning.encrypted_content"],
        }  # fmt: skip
        if not STREAMED:
            return client.responses.create(**request)
        with client.responses.stream(**request) as stream:
            return stream.get_final_response()

    def say(task: str) -> str:
        items.append({"role": "user", "content": task})
        while True:
            response = ask()
            for item in response.output:
                items.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return str(response.output_text)
            for call in calls:
                text = given.read_file(**json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})

    return say


def anthropic() -> Any:
    """Messages, with thinking and cache marks as Anthropic's documentation shows them."""
    import anthropic as sdk

    client = sdk.Anthropic(max_retries=0, **given.client("http_client"))
    messages: list[Any] = []
    request: dict[str, Any] = {
        "model": "claude-sonnet-4-6", "max_tokens": 4_000, "system": given.SYSTEM,
        "tools": [{**TOOL, "input_schema": SCHEMA}], "thinking": {"type": "enabled", "budget_tokens": 2_000},
        "cache_control": {"type": "ephemeral"},
    }  # fmt: skip
    if IS_BOUND:
        request |= {"model": "claude-opus-5-5", "thinking": {"type": "adaptive"}}

    def ask() -> Any:
        if not STREAMED:
            return client.messages.create(messages=messages, **request)
        with client.messages.stream(messages=messages, **request) as stream:
            return stream.get_final_message()

    def say(task: str) -> str:
        messages.append({"role": "user", "content": task})
        while True:
            answer = ask()
            messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in answer.content if block.type == "text")
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": given.read_file(**call.input)}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})

    return say


def google() -> Any:
    """Gemini's generateContent."""
    from google import genai
    from google.genai import types

    client = genai.Client(http_options={"base_url": given.URL, **given.client("httpx_client")})
    contents: list[Any] = []
    declared = types.FunctionDeclaration(**TOOL, parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        system_instruction=given.SYSTEM,
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )

    def ask() -> list[Any]:
        request: dict[str, Any] = {"model": "gemini-2.5-flash", "contents": contents, "config": config}
        if not STREAMED:
            return client.models.generate_content(**request).candidates[0].content.parts
        chunks = client.models.generate_content_stream(**request)
        return [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]

    def say(task: str) -> str:
        contents.append(types.Content(role="user", parts=[types.Part(text=task)]))
        while True:
            parts = ask()
            contents.append(types.Content(role="model", parts=parts))
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return "".join(part.text or "" for part in parts if not part.thought)
            results = [
                types.Part(function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"result": given.read_file(**call.args)}
                ))
                for call in calls
            ]  # fmt: skip
            contents.append(types.Content(role="user", parts=results))

    return say


def google_interactions() -> Any:
    """Gemini Interactions with the history in the request."""
    from google import genai

    client = genai.Client(http_options={"base_url": given.URL, **given.client("httpx_client")})
    steps: list[Any] = []
    tools: Any = [{"type": "function", **TOOL, "parameters": SCHEMA}]

    def ask() -> list[Any]:
        request: dict[str, Any] = {
            "model": "gemini-3-pro", "input": steps, "tools": tools, "system_instruction": given.SYSTEM, "store": False,
        }  # fmt: skip
        return [step.model_dump(exclude_none=True) for step in client.interactions.create(**request).steps]

    def say(task: str) -> str:
        steps.append({"type": "user_input", "content": [{"type": "text", "text": task}]})
        while True:
            answer = ask()
            steps.extend(answer)
            calls = [step for step in answer if step["type"] == "function_call"]
            if not calls:
                return "".join(
                    part["text"] for step in answer if step["type"] == "model_output" for part in step["content"]
                )
            for call in calls:
                result = [{"type": "text", "text": given.read_file(**call["arguments"])}]
                steps.append({"type": "function_result", "call_id": call["id"], "name": call["name"], "result": result})

    return say


MAKERS = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "google": google,
    "google-interactions": google_interactions,
}

if __name__ == "__main__":
    given.talk(MAKERS[API]())
