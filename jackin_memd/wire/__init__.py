"""The contract: what crosses a socket, as types and byte codecs.

Everything here is pure. It knows no sockets, no clocks and no files, and it
imports the standard library and msgspec only, because short client commands
pay for its import.
"""
