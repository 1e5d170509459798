"""Shortens the outputs of tools by what the tool is.

Import from the modules; `turnlog.curate` is for programs without a session.
"""
