"""Makes the outputs of tools shorter by what the tool is.

Imported from its modules; `turnlog.curate` is for programs that have no session.
"""
