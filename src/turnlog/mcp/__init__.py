"""`turnlog mcp`: past sessions for any agent program that speaks MCP, over stdio.

Needs the extra `mcp`. `past` finds and quotes, `server` is the protocol, and `install`
writes what a program needs to start it.
"""
