"""Every setting as a typed value: its key, the values it accepts, its default.

This package contains only types; `session.settings` loads settings from files and the environment. `session` and `cli`
import it.
"""
