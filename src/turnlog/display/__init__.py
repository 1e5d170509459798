"""What people see of a session: its talk, its records described, figures in words, and the HTML pages of them.

Everything here reads; nothing is sent. `export` writes pages to files, `web` serves them, `cli` prints the talk.
"""
