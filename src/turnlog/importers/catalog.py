"""Every format as data: what it is called, where its program keeps files, how they are recognised, and when the format
was last checked. Discovery, `import --formats` and docs/importing.md are made of it.

A format with a `module` is read by it; one without is recognised, and refused by its name.
"""

from __future__ import annotations

from .protocol import Importer

ROOTS: dict[str, tuple[str, ...]] = {
    "<editor>": (
        ".config/*/User",  # Linux: Code, Code - Insiders, Cursor, VSCodium, Windsurf, ...
        "Library/Application Support/*/User",  # macOS
        "AppData/Roaming/*/User",  # Windows
        ".*-server/data/User",  # remote: .vscode-server, .cursor-server
    ),
    "<data>": (
        ".local/share",  # the default of XDG_DATA_HOME
        "Library/Application Support",  # macOS
        "AppData/Local",  # Windows
        "AppData/Roaming",
    ),
}
"""Folders that differ between systems, by the word that stands for them in a pattern: where editors that are built like
VS Code keep their data, and where other programs do."""

_HISTORY = "tasks/*/api_conversation_history.json"

FORMATS: tuple[Importer, ...] = (
    Importer(
        name="turnlog",
        title="turnlog's own export, as `jsonl` or `json`",
        module="turnlog_export",
        checked="with each version: exports are read back by the tests",
    ),
    Importer(
        name="claude-code",
        title="a session of Claude Code or iFlow",
        module="claude_code",
        # A session's subagents are imported with it, from `<session>/subagents`.
        where=(".claude/projects/*/*.jsonl", ".config/claude/projects/*/*.jsonl"),
        also={"iflow": (".iflow/projects/*/session-*.jsonl",)},
        beside=("{stem}/subagents", "{stem}.meta.json"),
        checked="2026-11: 42 real sessions",
    ),
    Importer(
        name="codex",
        title="a session of Codex",
        module="codex",
        where=(".codex/sessions/**/rollout-*.jsonl*", ".codex/archived_sessions/**/rollout-*.jsonl*"),
        checked="2026-11: 10 real sessions",
    ),
    Importer(
        name="gemini-cli",
        title="a session of gemini-cli",
        module="gemini_cli",
        marks=(
            "projectHash sessionId",
            "projectHash sessionId id",
            "projectHash sessionId $set",
            "messages[].type=gemini",
            "type=gemini id",
            "$set",
            "$rewindTo id",
        ),
        # Not logs.json, which has only the user's prompts: the chats contain them too.
        where=(".gemini/tmp/*/chats/**/*.json*", ".gemini/tmp/*/checkpoint*.json"),
        beside=("{session}",),  # subagents
        checked="2026-11: 11 real sessions",
    ),
    Importer(
        name="gemini-responses",
        title="recorded answers of Google's API, as gemini-cli's tests have them",
        module="gemini_responses",
        marks=(
            "method=generateContent response",
            "method=generateContentStream response",
            "method=countTokens response",
            "method=embedContent response",
            "candidates[].content",
        ),
        checked="2026-11: 71 real recordings",
    ),
    Importer(
        name="pi",
        title="a session of pi",
        module="pi",
        marks=(
            "type=session version cwd",
            "type=session cwd timestamp",
            "type=message message.stopReason",
            "type=message message.toolCallId",
        ),
        where=(".pi/agent/sessions/**/*.jsonl",),
        checked="2026-11: 1 real session",
    ),
    Importer(
        name="cline",
        title="a session of cline, Roo Code or Kilo Code",
        module="cline",
        marks=("sessionId updated_at messages[]", "session_id messages_path", "session_id workspace_root started_at"),
        named=("api_conversation_history.json",),
        where=(
            ".cline/data/sessions/*/*.messages.json",
            f".cline/data/{_HISTORY}",
            f"<editor>/globalStorage/saoudrizwan.claude-dev/{_HISTORY}",
        ),
        also={
            "roo-code": (f"<editor>/globalStorage/rooveterinaryinc.roo-cline/{_HISTORY}",),
            "kilo-code": (f"<editor>/globalStorage/kilocode.kilo-code/{_HISTORY}",),
        },
        beside=("{first}.json",),  # the session's facts
        checked="2026-11: 4 real sessions",
    ),
    Importer(
        name="claude-stream-json",
        title="what `claude -p --output-format stream-json` printed, or the Claude Agent SDK recorded",
        module="claude_stream",
        checked="2026-11: 2 real recordings",
    ),
    Importer(
        name="gemini-stream-json",
        title="what `gemini --output-format stream-json` printed",
        module="gemini_stream",
        marks=("type=init session_id model", "type=tool_use tool_name tool_id", "type=message role content delta"),
        checked="2026-11: google-gemini/gemini-cli@04fbf507 (types, and the example of its documentation)",
    ),
    Importer(
        name="codex-exec",
        title="what `codex exec --json` printed",
        module="codex_exec",
        marks=(
            "type=thread.started thread_id",
            "type=item.completed item.type",
            "type=turn.completed usage",
            "type=turn.failed error.message",
        ),
        checked="2026-11: openai/codex@1ebb1bc7 (types), 3 captures",
    ),
    Importer(
        name="cursor",
        title="an agent transcript of Cursor",
        module="cursor",
        marks=("role message.content", "type=turn_ended status"),
        named=("agent-transcripts/*.txt", "agent-transcripts/*/*.txt"),
        where=(
            ".cursor/projects/*/agent-transcripts/*.jsonl",
            ".cursor/projects/*/agent-transcripts/*/*.jsonl",
            ".cursor/projects/*/agent-transcripts/*.txt",
        ),
        beside=("subagents",),
        checked="2026-11: no whole real file found; a reader of Cursor 2026.10.01, jazzyalex/agent-sessions@a18a2517",
    ),
    Importer(
        name="opencode",
        title="a session of opencode",
        near="request bodies, but messages are `info` with `parts`",
        marks=("info messages[].parts[]", "info.role parts[].type", "role sessionID modelID"),
        tables=("session message part",),
    ),
    Importer(
        name="copilot-cli",
        title="the events of a session of GitHub Copilot CLI",
        marks=(
            "type=session.start data.sessionId",
            "type=user.message data.content",
            "type=assistant.message data.content",
        ),
    ),
    Importer(
        name="vscode-chat",
        title="a chat of VS Code",
        marks=("requests[].message.text requests[].response[]",),
    ),
    Importer(
        name="qwen-code",
        title="a session of qwen-code",
        near="claude-code, but messages have `parts`",
        marks=("parentUuid message.parts[]",),
    ),
    Importer(
        name="zed",
        title="threads of Zed",
        near="none; export a thread in Zed as Markdown to read it",
        tables=("threads",),
    ),
    Importer(name="chatgpt", title="a data export of ChatGPT", marks=("mapping current_node",)),
    Importer(name="claude-ai", title="a data export of Claude.ai", marks=("chat_messages[].sender",)),
    Importer(
        name="goose",
        title="a session of goose",
        near="request bodies, but messages are in `conversation`, and calls are `toolRequest`",
        marks=("conversation[].content[]", "content[].type=toolRequest"),
        tables=("sessions messages usage_ledger",),
    ),
    Importer(
        name="kimi-code",
        title="a session of kimi-code",
        marks=("type=turn.prompt", "type=context.append_message"),
    ),
    Importer(name="otel-genai", title="OpenTelemetry spans", marks=("resourceSpans[]",)),
    Importer(
        name="langfuse",
        title="a trace of Langfuse",
        marks=("traceId type=GENERATION input output", "observations[].type=GENERATION observations[].input"),
    ),
    Importer(
        name="langsmith",
        title="runs of LangSmith",
        marks=("run_type inputs.messages[] outputs", "run_type=llm inputs outputs"),
    ),
    Importer(
        name="pydantic-ai",
        title="a message history of pydantic-ai",
        marks=("parts[].part_kind", "messages[].parts[].part_kind"),
    ),
    Importer(
        name="langchain",
        title="messages of LangChain",
        near="request bodies, but messages name their `type`, not their role",
        marks=(
            "type=human data.content",
            "type=human content",
            "type=ai content",
            "type=ai data.content",
            "messages[].type=human messages[].content",
        ),
    ),
    Importer(
        name="vercel-ui",
        title="messages of Vercel's AI SDK for a user interface",
        near="a request body, but messages have `parts`",
        marks=(
            "id role parts[].type=step-start",
            "messages[].parts[].type=step-start",
            "parts[].toolCallId parts[].state",
        ),
    ),
    Importer(
        name="adk",
        title="a session of ADK",
        near="request bodies of Google, but contents are in `events`",
        marks=("events[].content.parts[]",),
    ),
    Importer(
        name="bedrock-converse",
        title="messages of Bedrock Converse or Strands",
        near="a body of Anthropic's API, but blocks have no `type`",
        marks=(
            "role content[].toolUse",
            "role content[].toolResult",
            "messages[].content[].toolUse",
            "messages[].content[].toolResult",
        ),
    ),
    Importer(
        name="sharegpt",
        title="ShareGPT conversations",
        marks=("conversations[].from=human", "conversations[].from=gpt"),
    ),
    Importer(
        name="continue",
        title="a session of Continue",
        near="request bodies, but messages are in `history`",
        marks=("history[].message.role",),
    ),
    Importer(
        name="crush",
        title="sessions of crush",
        tables=("sessions messages files goose_db_version",),
    ),
    Importer(
        name="amp",
        title="a thread of Amp",
        near="a body of Anthropic's API, but results have `toolUseID` and `run`",
        marks=("messages[].content[].toolUseID", "v messages[].messageId messages[].content[].type"),
    ),
    Importer(
        name="kiro",
        title="a session of Kiro CLI",
        marks=("kind=Prompt data.content[]", "kind=AssistantMessage data.content[]"),
    ),
    Importer(
        name="droid",
        title="a session of Droid (Factory)",
        near="claude-code, but each message is in an entry of type `message`",
        marks=("type=session_start type=message message.content",),
    ),
    Importer(
        name="hermes",
        title="a session of Hermes Agent",
        near="messages of Chat Completions behind a line of role `session_meta`; without that line they are read",
        marks=("role=session_meta role content",),
    ),
    Importer(name="grok", title="a chat of Grok Build", marks=("type=assistant model_id content",)),
    Importer(
        name="managed-agents",
        title="the events of a session of Claude Managed Agents",
        near="a body of Anthropic's API, but each block is in an event of its own",
        marks=("type=agent.message content[]", "type=agent.tool_use name"),
    ),
    Importer(
        name="claude-web",
        title="a session of Claude Code on the web",
        near="claude-code; its lines are in `loglines`",
        marks=("loglines[]",),
    ),
    Importer(
        name="webvoyager",
        title="a run of WebVoyager: `interact_messages.json` and the `screenshotN.png` beside it",
        module="webvoyager",
        checked="2026-11: 3 real runs",
    ),
    Importer(
        name="tarko-events",
        title="an event stream of Tarko (UI-TARS, Agent TARS)",
        module="tarko",
        marks=(
            "type=agent_run_start id timestamp",
            "type=user_message id timestamp",
            "type=assistant_message id timestamp",
            "type=environment_input id timestamp",
        ),
        checked="2026-11: 1 real stream",
    ),
    Importer(
        name="trajectory",
        title="a trajectory of an agent that moves through images: `Trajectory.save`, gigapixel-goblin",
        module="trajectory",
        marks=(
            "wsi_path question",
            "turns[] question",
            "turns[] wsi_path",
            "turns[].image_base64",
            "turns[].step_index",
        ),
        checked="with each version: trajectories are read back by the tests",
    ),
    Importer(
        name="openhands",
        title="events of OpenHands: event lists, `output.jsonl` of evaluations, events of the SDK",
        module="openhands",
        marks=(
            "source action timestamp",
            "source observation timestamp",
            "trajectory[].source trajectory[].action",
            "source kind timestamp",
            "instance_id test_result",
            "instance_id metrics history[]",
        ),
        checked="2026-11: 6 real files",
    ),
    Importer(
        name="mini-swe-agent",
        title="a trajectory of mini-swe-agent",
        module="mini_swe",
        where=(".config/mini-swe-agent/*.traj.json",),
        checked="2026-11: 10 real runs",
    ),
    Importer(
        name="swe-agent",
        title="a trajectory of SWE-agent",
        module="swe_agent",
        marks=(
            "trajectory[].observation trajectory[].action",
            "history[].role history[].agent",
            "history[].role history[].message_type",
        ),
        checked="2026-11: 16 real runs",
    ),
    Importer(
        name="bodies",
        title="request bodies and message lists of the five APIs, one or many; tau-bench runs",
        module="bodies",
        checked="with each version: bodies of all five APIs are read back by the tests",
    ),
)
"""All formats. If two give a file the same score, the earlier one reads it."""

NAMED: dict[str, Importer] = {importer.name: importer for importer in FORMATS}
"""All formats by their names."""

IMPORTERS: tuple[Importer, ...] = tuple(importer for importer in FORMATS if importer.module)
"""The formats that are read."""
