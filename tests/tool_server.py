"""An MCP server with tools of every kind, written with the SDK. Run as a program: over stdio, with a port over HTTP,
with `older` over stdio by the protocol before 2026.

It is apart from the tests since other processes run it: `FOLDER` is where it notes what it did.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server import runner
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ElicitationResult, Resolve
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FOLDER = Path(os.environ.get("FOLDER", "."))
server = MCPServer("shop", version="1")


class Sizes(BaseModel):
    """What a customer is asked."""

    size: str
    count: int = 1


def noted(what: str) -> None:
    """Keep what was done for whoever looks later."""
    with (FOLDER / "done.txt").open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def pay(amount: int) -> str:
    """Pay a bill."""
    noted(f"paid {amount}")
    return f"paid {amount}"


@server.tool()
def die() -> str:
    """End the server in the middle of the call."""
    noted("died")
    os._exit(3)


@server.tool()
async def slow(ctx: Context) -> str:
    """Tell how far it is."""
    await ctx.report_progress(1, 3, "one third")
    await ctx.report_progress(2)
    return "done"


@server.tool()
async def wait() -> str:
    """Wait for ever, and note who ended it."""
    noted("waiting")
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        noted("cancelled")
        raise
    return ""


@server.tool()
def everything() -> CallToolResult:
    """Answer with content of each kind."""
    data = base64.b64encode(PNG).decode()
    return CallToolResult(
        content=[
            TextContent(text="text"),
            ImageContent(data=data, mime_type="image/png"),
            AudioContent(data=data, mime_type="audio/wav"),
            ImageContent(data="no base64", mime_type="image/png"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", text="inside")),
            EmbeddedResource(
                resource=BlobResourceContents(uri="file:///a.pdf", blob=data, mime_type="application/pdf")
            ),
            ResourceLink(name="a link", uri="file:///b.txt", mime_type="text/plain", description="more"),
        ],
        structured_content={"more": [1]},
    )


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("no such shelf")


def sizes(what: str) -> Elicit[Sizes]:
    """The question, which is asked before the tool runs."""
    return Elicit(f"Which size of {what}?", Sizes)


@server.tool()
async def order(what: str, answer: Annotated[ElicitationResult[Sizes], Resolve(sizes)]) -> str:
    """Order something, after asking for its size."""
    return f"{answer.action} {answer.data.size} {answer.data.count}" if answer.action == "accept" else answer.action


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool to the server."""
    server.add_tool(lambda: "grown", name="grown", description="A new tool.")
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "there is another tool"


@server.tool(name="list.files/\u00e4")
def odd(context: str = "", self: str = "") -> str:
    """A tool with a name and parameters that elsewhere mean something."""
    return f"{context} {self}"


if __name__ == "__main__":
    for number in range(int(os.environ.get("MANY", "0"))):
        server.add_tool(add, name=f"task_{number}", description=f"Do the task {number}, with two numbers.")
    if sys.argv[1:] == ["older"]:
        runner._has_modern_envelope = lambda params: False  # as if it were written before there was one
        server.run()
    elif len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
