"""Who is at the other end of a Unix socket."""

from __future__ import annotations

import socket
import struct

#: `struct ucred` of Linux: pid signed, uid and gid unsigned.
_UCRED = struct.Struct("=iII")

#: `struct xucred` of macOS begins with a version and the uid (sys/ucred.h).
_XUCRED_HEAD = struct.Struct("=II")
_XUCRED_BYTES = 76
_SOL_LOCAL = 0


def peer_uid(connection: socket.socket) -> int | None:
    """The effective uid of the peer when it connected; None where the system can't say."""
    linux: int | None = getattr(socket, "SO_PEERCRED", None)
    if linux is not None:
        raw = connection.getsockopt(socket.SOL_SOCKET, linux, _UCRED.size)
        _, uid, _ = _UCRED.unpack(raw)
        return int(uid)
    macos: int | None = getattr(socket, "LOCAL_PEERCRED", None)
    if macos is None:
        return None
    raw = connection.getsockopt(_SOL_LOCAL, macos, _XUCRED_BYTES)
    _, uid = _XUCRED_HEAD.unpack_from(raw)
    return int(uid)
