"""The schema language of all wire formats, and the walker that applies a schema to a value.

Each provider states each object once, in its own `schema.py`: parsers check the JSON types that they rely on,
sanitizers remove what would be refused, and both report the path. `shapes` defines the language, `walk` applies it.
Imported by the provider folders beside it.
"""
