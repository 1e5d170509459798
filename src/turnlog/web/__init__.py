"""`turnlog serve`: the pages of `display` in a browser, growing as their sessions do; and the same pages as files.

Needs the extra `web`. Nothing here writes to a session. Imported by `cli`.
"""
