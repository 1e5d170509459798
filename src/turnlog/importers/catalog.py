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
        name="cursor-stream-json",
        title="what `cursor-agent --output-format stream-json` printed",
        near="claude-stream-json, but calls are events of type `tool_call`; give a transcript of ~/.cursor/projects",
        marks=("type=tool_call subtype tool_call", "type=thinking subtype session_id"),
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
        title="sessions of opencode or Kilo CLI: the database, the files of before 1.2, an export",
        module="opencode",
        marks=(
            "info messages[].parts[]",
            "info.id messages[].type",
            "data.info data.messages[]",
            "projectID directory",
        ),
        tables=(
            "session.project_id message.data part.message_id part.data",
            "session_v2 session_message.data",
            "session session_message.data session_message.type",
        ),
        where=(".local/share/opencode/opencode*.db", ".local/share/opencode/storage/session/*/ses_*.json"),
        also={"kilo-cli": (".local/share/kilo/kilo*.db",)},
        beside=("{name}-wal",),
        checked="2026-11: anomalyco/opencode@063e8306, @02ce4a33 (schemas); gisfun/fastmcp-map-app@f500581b, in part",
    ),
    Importer(
        name="opencode-run",
        title="what `opencode run --format json` printed",
        module="opencode_run",
        marks=(
            "type=step_start sessionID part.type",
            "type=step_finish sessionID part.type",
            "type=tool_use sessionID part.callID",
            "type=text sessionID part.text",
        ),
        checked="2026-11: lines in tests of programs that read it (1.1 and 1.18)",
    ),
    Importer(
        name="copilot-cli",
        title="the events of a session of GitHub Copilot CLI",
        module="copilot_cli",
        marks=("type=session.start data", "type=user.message data", "type=assistant.message data"),
        where=(".copilot/session-state/*/events.jsonl", ".copilot/session-state/*.jsonl"),
        beside=("workspace.yaml",),
        checked="2026-11: no whole real file found; github/copilot-sdk@0341812 (documentation), parts of 3 captures",
    ),
    Importer(
        name="vscode-chat",
        title="a chat of VS Code, or of an editor built like it",
        module="vscode_chat",
        marks=(
            "requests[].message.text requests[].response[]",
            "requests[].message responderUsername",
            "requests[] sessionId creationDate",
            "kind v.sessionId v.requests",
            "kind k v",
        ),
        where=(
            "<editor>/workspaceStorage/*/chatSessions/*.json*",
            "<editor>/globalStorage/emptyWindowChatSessions/*.json*",
            "<editor>/globalStorage/transferredChatSessions/*.json*",
        ),
        checked="2026-11: no whole real file found; microsoft/vscode@03d43368 (the log), 2 fixtures",
    ),
    Importer(
        name="qwen-code",
        title="a session of qwen-code",
        module="qwen_code",
        marks=("parentUuid message.parts[]", "parentUuid type=system systemPayload"),
        where=(".qwen/projects/*/chats/*.jsonl",),
        checked="2026-11: no whole real file found; QwenLM/qwen-code@015346f1 (types), 2 fixtures",
    ),
    Importer(
        name="zed",
        title="threads of Zed",
        near="none; export a thread in Zed as Markdown to read it",
        tables=("threads.data_type",),
        where=("<data>/[zZ]ed/threads/threads.db",),
    ),
    Importer(
        name="chatgpt",
        title="a data export of ChatGPT",
        module="chatgpt",
        marks=("mapping title create_time", "mapping current_node"),
        checked="2026-11: no whole real file; keys of a real conversation of 2025-11, a reader: "
        "kenn-io/agentsview@2389bb1c",
    ),
    Importer(
        name="claude-ai",
        title="a data export of Claude.ai",
        module="claude_ai",
        marks=("chat_messages[].sender", "uuid chat_messages"),
        checked="2026-11: no whole real file; blocks of real exports of 2026-01 to 2026-07, a reader: "
        "kenn-io/agentsview@0377796e",
    ),
    Importer(
        name="goose",
        title="sessions of goose: the database, an export, the files of before 1.10, what a run printed",
        module="goose",
        marks=(
            "conversation[].content[]",
            "conversation[].role working_dir",
            "content[].type=toolRequest",
            "working_dir message_count role content[]",
            "type=message message.content[].type=toolRequest",
            "type=message type=complete message.content[].type",
        ),
        tables=("sessions messages.content_json",),
        where=(
            "<data>/goose/sessions/sessions.db",
            "<data>/Block/goose/data/sessions/sessions.db",
            ".local/share/goose/sessions/*.jsonl",
        ),
        beside=("{name}-wal",),
        checked="2026-11: block/goose@01643004, aaif-goose/goose@893b3e5f (code); rows in tests of four readers",
    ),
    Importer(
        name="kimi-code",
        title="a session of Kimi Code, or of kimi-cli before it",
        module="kimi",
        marks=(
            "type=metadata protocol_version time",
            "type=metadata protocol_version message.payload",
            "type=turn.prompt input",
            "type=context.append_message message.role",
            "type=context.append_loop_event event.type",
            "message.type=TurnBegin message.payload",
        ),
        # Not `agents/agent-N`, which are imported with `main`.
        where=(".kimi-code/sessions/*/*/agents/main/wire.jsonl",),
        also={"kimi-cli": (".kimi/sessions/*/*/wire.jsonl",)},
        beside=("../../agents",),  # a subagent has a folder there
        checked="2026-11: 2 real sessions of Kimi Code 1.4, a fixture of kimi-cli",
    ),
    Importer(
        name="otel-genai",
        title="OpenTelemetry spans of calls of models, as OTLP JSON or as the SDKs print them",
        module="otel",
        marks=("resourceSpans[]", "resource_spans[]", "context.trace_id context.span_id attributes"),
        checked="2026-11: pydantic-ai 2.68 (formats 2 to 5) by OpenTelemetry's exporter; older ones: no file found",
    ),
    Importer(
        name="langfuse",
        title="a trace of Langfuse, or its observations",
        module="langfuse",
        marks=(
            "traceId type input output",
            "trace_id type input output parent_observation_id",
            "observations[].type observations[].traceId",
            "data[].type data[].traceId",
            "batch[].body.traceId batch[].type",
        ),
        checked="2026-11: no real file was found; keys of its API",
    ),
    Importer(
        name="langsmith",
        title="runs of LangSmith",
        module="langsmith",
        marks=("run_type trace_id inputs", "runs[].run_type runs[].inputs"),
        checked="2026-11: runs of langchain-core 1.8.3 and langsmith 0.15.1; no export of the web page was found",
    ),
    Importer(
        name="pydantic-ai",
        title="a message history of pydantic-ai",
        module="pydantic_ai",
        marks=("parts[].part_kind", "messages[].parts[].part_kind"),
        checked="2026-11: histories written by pydantic-ai-slim 0.2.20, 1.107.10 and 2.68.0",
    ),
    Importer(
        name="langchain",
        title="messages of LangChain or LangGraph",
        module="langchain",
        marks=(
            "type=human data.content",
            "type=human content",
            "type=ai content",
            "type=ai data.content",
            "messages[].type=human messages[].content",
            "lc kwargs.content kwargs.type",
            "messages[].lc messages[].kwargs.content",
            "messages[].data.content messages[].type",
        ),
        checked="2026-11: messages written by langchain-core 1.8.3 in three forms",
    ),
    Importer(
        name="vercel-ui",
        title="messages of Vercel's AI SDK, for a user interface or for a model",
        module="vercel",
        marks=(
            "id role parts[].type=step-start",
            "messages[].parts[].type=step-start",
            "parts[].toolCallId parts[].state",
            "messages[].parts[].toolCallId",
            "role content[].type=tool-call content[].toolCallId",
            "messages[].content[].type=tool-call",
            "id role parts[].type=text parts[].text",
            "messages[].id messages[].parts[].type=text messages[].parts[].text",
        ),
        checked="2026-11: messages of npm's ai 6.0.326 and 4.3.19; no app's data was found",
    ),
    Importer(
        name="adk",
        title="a session of Google's ADK, or its database of sessions",
        module="adk",
        marks=(
            "events[].author events[].content.parts[]",
            "invocationId author content.parts[]",
            "invocation_id author content.parts[]",
        ),
        tables=("sessions events app_states user_states",),
        checked="2026-11: sessions and databases of google-adk 2.13.0, 1.39.1 and 1.15.1",
    ),
    Importer(
        name="bedrock-converse",
        title="messages of Bedrock Converse, or a session of Strands",
        module="bedrock",
        marks=(
            "role content[].toolUse",
            "role content[].toolResult",
            "messages[].content[].toolUse",
            "messages[].content[].toolResult",
            "message.content[] message_id redact_message",
        ),
        named=("session_*/session.json", "agents/agent_*/agent.json", "strands/sessions/session_*"),
        checked="2026-11: a session folder and messages of strands-agents 1.62.0",
    ),
    Importer(
        name="sharegpt",
        title="ShareGPT conversations",
        module="sharegpt",
        marks=("conversations[].from conversations[].value", "conversations[].role conversations[].value"),
        checked="2026-11: the beginning of a real data set, hiyouga/LLaMA-Factory@e8e6af26 "
        "(data/glaive_toolcall_en_demo.json); documentation of FastChat and Hermes",
    ),
    Importer(
        name="continue",
        title="a session of Continue",
        module="continue_dev",
        marks=("history[].message.role", "history[] sessionId workspaceDirectory"),
        where=(".continue/sessions/*-*.json",),  # not sessions.json, the list of them
        checked="2026-11: no real file found; fixtures of 6 readers",
    ),
    Importer(
        name="crush",
        title="the database of crush in a project, `.crush/crush.db`",
        module="crush",
        tables=("sessions messages files goose_db_version",),
        where=(".crush/crush.db", "*/.crush/crush.db", "*/*/.crush/crush.db"),
        beside=("{name}-wal",),
        checked="2026-11: charmbracelet/crush@b86336ac (tables), @0373c96a (parts); rows in tests of five readers",
    ),
    Importer(
        name="amp",
        title="a thread of Amp",
        near="a body of Anthropic's API, but results have `toolUseID` and `run`",
        marks=("messages[].content[].toolUseID", "v messages[].messageId messages[].content[].type"),
        where=(".local/share/amp/threads/T-*.json",),
    ),
    Importer(
        name="kiro",
        title="a session of Kiro CLI",
        marks=("kind=Prompt data.content[]", "kind=AssistantMessage data.content[]"),
        tables=("conversations_v2",),
        where=(".kiro/sessions/cli/*.jsonl", "<data>/kiro-cli/data.sqlite3"),
    ),
    Importer(
        name="droid",
        title="a session of Droid (Factory)",
        near="claude-code, but each message is in an entry of type `message`",
        marks=("type=session_start type=message message.content",),
        where=(".factory/sessions/*.jsonl", ".factory/sessions/*/*.jsonl"),
    ),
    Importer(
        name="hermes",
        title="a session of Hermes Agent",
        near="messages of Chat Completions, which are read if they are given alone, as a JSON list or as lines",
        marks=("role=session_meta role content", "session_id session_start system_prompt"),
        tables=("sessions.system_prompt messages.tool_calls",),
        where=(".hermes/state.db", ".hermes/sessions/*.jsonl", ".hermes/sessions/session_*.json"),
    ),
    Importer(
        name="grok",
        title="a chat of Grok Build",
        marks=("type=assistant model_id content",),
        where=(".grok/sessions/*/*/chat_history.jsonl",),
    ),
    Importer(
        name="managed-agents",
        title="the events of a session of Claude Managed Agents",
        near="a body of Anthropic's API, but each block is in an event of its own",
        marks=("type=agent.message content[]", "type=agent.tool_use name"),
    ),
    Importer(
        name="claude-web",
        title="a session of Claude Code on the web",
        module="claude_code",
        marks=("loglines[]",),
        checked="2026-11: no real file was found; clients that save it, simonw/claude-code-transcripts",
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
