"""Every setting as a typed value: its key, what it accepts, its default.

Types only; `session.settings` loads them from files and the environment. Imported by `session` and `cli`.
"""
