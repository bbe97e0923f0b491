"""All SQL and all of APSW. Synchronous; a connection is passed in.

Nothing here opens a database that exists except through SQLite: closing any other
descriptor of the file would drop every lock that SQLite holds on it.
"""
