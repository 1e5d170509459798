"""An MCP server over stdio, the same for every library: it looks up bills and pays them.

Its argument is a folder, in which it writes what was paid. Where a file `crash` is there, the next payment is made, and
then the agent and this server are killed before the tool returns.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

FOLDER = Path(sys.argv[1])

server = MCPServer("bills")


@server.tool()
def bill(number: int) -> str:
    """The amount of a bill, in euros."""
    return "120"


@server.tool()
def pay(number: int) -> str:
    """Pay a bill."""
    with open(FOLDER / "paid", "a", encoding="utf-8") as file:
        file.write(f"{number}\n")
    crash = FOLDER / "crash"
    if crash.exists():
        crash.unlink()
        os.kill(os.getppid(), signal.SIGKILL)  # the power goes off, in the middle of the call
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


if __name__ == "__main__":
    server.run()
