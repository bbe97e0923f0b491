"""Where the sockets are: the one function for daemon, clients, doctor and units.

Paths only; nothing is created or looked at here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from jackin_memd.wire.errors import ErrorCode, MemdError

HOME_VARIABLE = "JACKIN_HOME_DIR"
SOCKET_VARIABLE = "JACKIN_MEMD_SOCKET"
SOCKET_NAME = "memd.sock"

#: Where jackin mounts an instance's socket folder inside its container.
IN_CONTAINER_SOCKET = Path("/jackin/run") / SOCKET_NAME

#: `sun_path` is 108 bytes on Linux and 104 on macOS, with the closing NUL.
MAX_SOCKET_PATH_BYTES = 103 if sys.platform == "darwin" else 107


def home_dir(environment: Mapping[str, str] | None = None) -> Path:
    """The jackin home: `$JACKIN_HOME_DIR` as given, else `~/.jackin`."""
    environment = os.environ if environment is None else environment
    given = environment.get(HOME_VARIABLE)
    return Path(given) if given else Path.home() / ".jackin"


def operator_socket(home: Path) -> Path:
    return home / "run" / SOCKET_NAME


def instance_socket_dir(home: Path, container: str) -> Path:
    return home / "sockets" / container


def instance_socket(home: Path, container: str) -> Path:
    return instance_socket_dir(home, container) / SOCKET_NAME


def find_socket(environment: Mapping[str, str] | None = None) -> Path:
    """The socket a client should use, in this order: `$JACKIN_MEMD_SOCKET`, the
    in-container mount where it exists, the operator's."""
    environment = os.environ if environment is None else environment
    given = environment.get(SOCKET_VARIABLE)
    if given:
        return Path(given)
    if HOME_VARIABLE not in environment and IN_CONTAINER_SOCKET.parent.is_dir():
        return IN_CONTAINER_SOCKET
    return operator_socket(home_dir(environment))


def check_length(path: Path) -> None:
    """Raises MemdError (SOCKET_PATH_TOO_LONG) for a path that bind would refuse."""
    size = len(os.fsencode(path))
    if size > MAX_SOCKET_PATH_BYTES:
        raise MemdError(
            ErrorCode.SOCKET_PATH_TOO_LONG,
            f"the socket path {path} has {size} bytes; the system allows {MAX_SOCKET_PATH_BYTES}",
            hint=f"set {HOME_VARIABLE} to a shorter path for every program that uses this home",
            details={"bytes": size, "limit_bytes": MAX_SOCKET_PATH_BYTES},
        )
