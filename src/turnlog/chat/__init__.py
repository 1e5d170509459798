"""`turnlog chat`: talk with a model in a terminal or a pipe. All that it can do, the library does.

Needs the extra `chat`. `conversation` holds one conversation, `terminal` and `plain` show it.
"""
