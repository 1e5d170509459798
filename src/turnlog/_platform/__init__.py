"""The ground under everything: paths, text encodings, units, msgspec's types.

Knows nothing of conversations. Every room may import it; it imports only `errors`.
"""
