"""Import a transcript into a store again and again: what is new continues the session, nothing is overwritten.

`store` decides, `growth` compares, `asides` keeps what turnlog itself recorded in between. Imported by `cli`.
"""
