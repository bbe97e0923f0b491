"""Whether two builds may talk."""

from __future__ import annotations

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.session import HelloParams
from jackin_memd.wire.vocab import PROTOCOL_VERSION


def version_refusal(hello: HelloParams, build: str) -> MemdError | None:
    """Why the caller's protocol version is refused; None where it is ours.

    `build` is the daemon's.
    """
    theirs, ours = hello.protocol_version, PROTOCOL_VERSION
    if theirs == ours:
        return None
    older = "client" if theirs < ours else "daemon"
    hint = {
        "client": "update the client",
        "daemon": "restart the daemon with the newer build: jackin-memd restart",
    }[older]
    return MemdError(
        ErrorCode.PROTOCOL_MISMATCH,
        f"the client speaks protocol {theirs}, the daemon ({build}) speaks {ours}: "
        f"the {older} is older",
        hint=f"{hint}; status and shutdown answer whatever the version",
        details={
            "older": older,
            "client_protocol": theirs,
            "daemon_protocol": ours,
            "daemon_build": build,
        },
    )
