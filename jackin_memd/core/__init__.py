"""Decisions, without I/O: time, ids and everything read come in as arguments."""
