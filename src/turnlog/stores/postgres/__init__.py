"""The PostgreSQL store: one database for many machines.

`store` contains the store itself; each other module has the statements for one purpose. Only `turnlog.stores` imports
this package. It needs the package psycopg.
"""
