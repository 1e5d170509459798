"""The log: messages, records, their bytes, the budgets that they contain, and the store protocol.

These are values with little behaviour. Every package may import this one; it imports only `_platform` and `errors`.
"""
