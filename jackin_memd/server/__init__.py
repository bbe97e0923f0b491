"""Sockets, connections and dispatch: bytes to services and back."""
