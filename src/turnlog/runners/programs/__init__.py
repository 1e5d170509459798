"""Agent programs as models: each gets one prompt, and prints in JSON lines what it says and does.

One module for each program says how it is started and read; `runner` runs it and makes it a Runner.
"""
