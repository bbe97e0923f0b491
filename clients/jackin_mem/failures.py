"""What goes wrong between a client and the daemon, as MemdError with a way out.

Pure: the drivers catch what the operating system raises and ask here for the
error that the caller sees.
"""

from __future__ import annotations

from pathlib import Path

from jackin_memd.wire.address import IN_CONTAINER_SOCKET
from jackin_memd.wire.errors import ErrorCode, MemdError

#: After these a subscriber tries again: the daemon may be stopping, starting or busy.
TRANSIENT = frozenset(
    {
        ErrorCode.CONNECTION_CLOSED,
        ErrorCode.DAEMON_STOPPING,
        ErrorCode.DAEMON_UNREACHABLE,
        ErrorCode.HELLO_TIMEOUT,
        ErrorCode.REQUEST_TIMEOUT,
        ErrorCode.TOO_MANY_CONNECTIONS,
    }
)


def unreachable(path: Path, error: OSError) -> MemdError:
    """DAEMON_UNREACHABLE for what `connect` raised."""
    return MemdError(
        ErrorCode.DAEMON_UNREACHABLE,
        _why_unreachable(path, error),
        hint=_how_to_reach(path, error),
        details={"socket": str(path)},
    )


def _why_unreachable(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"the daemon is not running: there is no socket {path}"
    if isinstance(error, ConnectionRefusedError):
        return f"nobody listens on {path}: its daemon has stopped, or it is no socket"
    if isinstance(error, PermissionError):
        return f"the socket {path} may not be opened by this user"
    if isinstance(error, BlockingIOError | TimeoutError):
        return f"the daemon does not take new connections on {path}: its queue is full"
    return f"the socket {path} can't be used: {error.strerror or error}"


def _how_to_reach(path: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "a daemon serves one user; run this as the user that the daemon runs as"
    if isinstance(error, BlockingIOError | TimeoutError):
        return "try again; if it stays so, restart the daemon: jackin-memd restart"
    if path == IN_CONTAINER_SOCKET:
        return (
            "on the host, start the daemon (jackin-memd start) and load this container "
            "(jackin-mem instance load CONTAINER)"
        )
    if path.parent.parent.name == "sockets":
        container = path.parent.name
        return f"start it with: jackin-memd start; then: jackin-mem instance load {container}"
    return "start it with: jackin-memd start; or name another place with --home or --socket"


def closed(path: Path) -> MemdError:
    """CONNECTION_CLOSED: a call that was sent may or may not have been done."""
    return MemdError(
        ErrorCode.CONNECTION_CLOSED,
        f"the daemon closed the connection on {path} before it answered",
        hint="the call may have been done: repeat it with the same idempotency key",
    )


def timed_out(method: str, timeout_s: float) -> MemdError:
    """REQUEST_TIMEOUT, with the method and the time that it was given."""
    return MemdError(
        ErrorCode.REQUEST_TIMEOUT,
        f"{method} was not answered within {timeout_s:g} s",
        hint="the call may still be done: repeat it with the same idempotency key, "
        "or give it more time",
        details={"timeout_s": timeout_s},
    )


def violation(path: Path, what: str) -> MemdError:
    """PROTOCOL_VIOLATION: the peer is not a jackin-memd, or not one that we know."""
    return MemdError(
        ErrorCode.PROTOCOL_VIOLATION,
        f"the peer on {path} does not keep to the protocol: {what}",
        hint="check that this is jackin-memd's socket, and that client and daemon "
        "are of the same release",
    )


def again(error: MemdError) -> MemdError:
    """A copy to raise: one error may end many calls, each with its own traceback."""
    return MemdError(
        error.code, error.message, hint=error.hint, field=error.field, details=error.details
    )
