"""Agent programs as models: each gets one prompt, and tells in JSON lines what it says and does.

One module for each program says how it is started and read; `process` runs it, `runner` makes it a Runner.
"""
