"""`turnlog chat`: talk with a model in a terminal or a pipe. The library does the work.

Needs the extra `chat`. `conversation` holds one conversation, `terminal` and `plain` show it.
"""
