"""The lowest package: checks of arguments, paths, text encodings, units, lazy imports, msgspec's types.

It knows nothing of conversations. Every package may import it; it imports only `errors`.
"""
