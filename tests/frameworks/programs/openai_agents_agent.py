"""openai-agents. FORM: `chat` or `responses`, with `-stream`, `-handoffs` or `-guardrail`."""

from __future__ import annotations

from typing import Any

import given
from openai import AsyncOpenAI
from pydantic import BaseModel

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    function_tool,
)

API, _, VARIANT = given.FORM.partition("-")


class Verdict(BaseModel):
    """What the guardrail is told."""

    about_files: bool


def made() -> Agent[Any]:
    """The agent of this form."""
    client = AsyncOpenAI(max_retries=0, **given.async_client("http_client"))
    model = OpenAIChatCompletionsModel("gpt-4o", client) if API == "chat" else OpenAIResponsesModel("gpt-5", client)
    reader: Agent[Any] = Agent(
        name="reader", instructions=given.SYSTEM, model=model, tools=[function_tool(given.read_file)],
        model_settings=ModelSettings(include_usage=True),  # a stream of Chat Completions tells no usage unless asked
    )  # fmt: skip
    if VARIANT == "handoffs":
        return Agent(name="desk", instructions="Hand over what is about files.", model=model, handoffs=[reader])
    if VARIANT == "guardrail":
        judge: Agent[Any] = Agent(name="judge", instructions="Is it about files?", model=model, output_type=Verdict)

        async def look(context: RunContextWrapper[Any], agent: Agent[Any], said: Any) -> GuardrailFunctionOutput:
            verdict = await Runner.run(judge, said, context=context.context)
            return GuardrailFunctionOutput(
                verdict.final_output, tripwire_triggered=not verdict.final_output.about_files
            )

        reader.input_guardrails = [InputGuardrail(look)]
    return reader


AGENT, SESSION = made(), SQLiteSession("files")


async def say(task: str) -> str:
    """One turn."""
    if VARIANT == "stream":
        streamed = Runner.run_streamed(AGENT, task, session=SESSION)
        async for _ in streamed.stream_events():
            pass
        return str(streamed.final_output)
    return str((await Runner.run(AGENT, task, session=SESSION)).final_output)


given.talk(say)
