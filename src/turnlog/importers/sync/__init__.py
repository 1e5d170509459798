"""Import a transcript into a store repeatedly: new records continue the session, and nothing is overwritten.

`session` does the import and determines whether the transcript only grew; `own_records` keeps the records that turnlog
added in between. Imported by `cli`.
"""
