"""The one error vocabulary of daemon and clients.

A code has a stable word (`data.code` on the wire), a JSON-RPC number and an
exit status for commands. Numbers below zero are JSON-RPC's own; ours are
positive, grouped by hundreds (100 session, 200 authority, 300 memory, 400
instances, 500 usage, 900 storage) and never reused once released.
Numbers 120-139 never travel: only clients and commands raise them.
"""

from __future__ import annotations

from enum import Enum
from typing import Any


class ErrorCode(Enum):
    """Every failure that a caller can see. Value: (number, exit status, meaning)."""

    PARSE_ERROR = (-32700, 3, "the frame is not one valid JSON text in UTF-8")
    INVALID_REQUEST = (-32600, 3, "the JSON is not a JSON-RPC 2.0 message")
    METHOD_NOT_FOUND = (-32601, 4, "no method has this name")
    INVALID_PARAMS = (-32602, 5, "a parameter is missing, unknown or of the wrong type")
    INTERNAL_ERROR = (-32603, 10, "a fault in the daemon; its log has the details")

    HELLO_REQUIRED = (100, 11, "the first call on a connection must be hello")
    PROTOCOL_MISMATCH = (101, 12, "client and daemon speak different protocol versions")
    FRAME_TOO_LARGE = (102, 3, "a frame announces more bytes than the limit")
    FRAME_EMPTY = (103, 3, "a frame announces zero bytes")
    FRAME_TIMEOUT = (104, 3, "a frame was not complete within its deadline")
    BATCH_TOO_LARGE = (105, 3, "a batch has more entries than the limit")
    REPLY_TOO_LARGE = (106, 13, "the reply does not fit one frame; ask for less")
    DAEMON_STOPPING = (107, 14, "the daemon is stopping and takes no new work")
    IDEMPOTENCY_CONFLICT = (108, 15, "the idempotency key was used for another request")
    CURSOR_INVALID = (109, 16, "the cursor does not belong to this table")
    SUBSCRIPTION_NOT_FOUND = (110, 17, "no such subscription on this connection")
    TOO_MANY_CONNECTIONS = (111, 18, "the socket has as many connections as it may have")
    TOO_MANY_SUBSCRIPTIONS = (112, 18, "the connection has as many subscriptions as it may have")
    HELLO_TIMEOUT = (113, 11, "no hello came within its deadline")

    DAEMON_UNREACHABLE = (120, 20, "nothing answers on the daemon's socket")
    REQUEST_TIMEOUT = (121, 21, "no answer came in time")
    CONNECTION_CLOSED = (122, 22, "the connection closed before the answer came")
    DAEMON_START_FAILED = (123, 23, "the daemon did not come up")
    DAEMON_RUNNING = (124, 24, "another daemon holds this home")
    HOME_UNUSABLE = (125, 25, "the jackin home can't be used")
    CONFIG_INVALID = (126, 26, "the configuration file can't be used")
    SOCKET_PATH_TOO_LONG = (127, 27, "the socket path is longer than the system allows")
    SOCKET_PATH_OCCUPIED = (128, 28, "something else is at the socket's path")
    PROTOCOL_VIOLATION = (129, 29, "the peer sent bytes that are not the protocol")
    DAEMON_STOP_FAILED = (130, 30, "the daemon did not stop in time")

    PERMISSION_DENIED = (200, 40, "this channel may not do that")

    INSTANCE_NOT_FOUND = (400, 50, "no such instance")
    INSTANCE_AMBIGUOUS = (401, 51, "the short id fits several instances")
    INSTANCE_NAME_INVALID = (402, 52, "not a container name")
    INSTANCE_IDENTITY_CONFLICT = (403, 53, "the given identity contradicts what is known")
    INSTANCE_IDENTITY_MISSING = (404, 54, "the instance has no manifest and no identity was given")
    INSTANCE_MANIFEST_INVALID = (405, 55, "the instance's manifest can't be read")
    INSTANCE_FOLDER_MISSING = (406, 56, "the instance's data folder does not exist")
    PATH_UNSAFE = (407, 57, "a path leads through a symlink or out of the home")
    INSTANCE_NOT_LOADED = (408, 58, "the instance is known, but not loaded")

    DATABASE_UNAVAILABLE = (900, 60, "the database can't be opened or created")
    DATABASE_TOO_NEW = (901, 61, "the database was written by a newer jackin-memd")
    DATABASE_SCHEMA_MISMATCH = (902, 62, "the database's tables differ from its version")
    MIGRATION_FAILED = (903, 63, "a migration failed; the file is as it was")
    DATABASE_REPLACED = (904, 64, "the database file was removed or replaced while open")
    DISK_FULL = (905, 65, "no space is left on the disk")
    FILESYSTEM_UNSUPPORTED = (906, 66, "the file system can't hold a database safely")
    DATABASE_CORRUPT = (907, 67, "the database file is damaged")
    STORAGE_FAILED = (908, 68, "the file system refused a read or write")

    def __init__(self, number: int, exit_status: int, meaning: str) -> None:
        self.number = number
        self.exit_status = exit_status
        self.meaning = meaning

    @property
    def word(self) -> str:
        """The stable string that travels in `data.code`."""
        return self.name


class MemdError(Exception):
    """The one exception that carries an error to a caller.

    `message` says what happened and to what; `hint` what to do about it;
    `field` names the offending parameter; `details` are further facts for
    programs, JSON types only. None of them may hold a stored value.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        hint: str | None = None,
        field: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.field = field
        self.details = details or {}

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def data(self) -> dict[str, Any]:
        """The `data` member of the JSON-RPC error object."""
        data: dict[str, Any] = {"code": self.code.word}
        if self.field is not None:
            data["field"] = self.field
        if self.hint is not None:
            data["hint"] = self.hint
        return data | self.details


def from_wire(number: int, message: str, data: dict[str, Any] | None) -> MemdError:
    """Rebuild the error of a reply; a word we don't know reads as INTERNAL_ERROR.

    The unknown word is kept in the details, so that a newer daemon's error
    still says what it is.
    """
    details = dict(data or {})
    word = details.pop("code", None)
    hint = _text(details, "hint")
    field = _text(details, "field")
    try:
        code = ErrorCode[str(word)]
    except KeyError:
        code = ErrorCode.INTERNAL_ERROR
        details |= {"unknown_code": word, "number": number}
    return MemdError(code, message, hint=hint, field=field, details=details)


def _text(details: dict[str, Any], name: str) -> str | None:
    """Take a text out of the details; anything else stays there as the peer sent it."""
    return details.pop(name) if isinstance(details.get(name), str) else None
