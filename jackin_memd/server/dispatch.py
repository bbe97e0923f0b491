"""From a call to its service: method, version, access, parameters, in this order."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping

import msgspec

from jackin_memd.core.access import refusal
from jackin_memd.services.context import Answer, Handler, Session
from jackin_memd.wire.codec import decode_params
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.methods import METHODS, Method
from jackin_memd.wire.peer import Call

log = logging.getLogger(__name__)


class Dispatcher:
    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._routes = {
            name: (method, msgspec.json.Decoder(method.params), handlers[name])
            for name, method in METHODS.items()
        }

    def start(self, call: Call, session: Session, *, greeted: bool) -> Answer:
        """Begin a call: its result, or what will become it. Raises MemdError."""
        route = self._routes.get(call.method)
        if route is None:
            raise _unknown(call.method)
        method, decoder, handler = route
        if not (greeted or method.any_version):
            raise _hello_required(method)
        refused = refusal(method, session.principal)
        if refused is not None:
            raise refused
        return handler(decode_params(call.params, decoder), session)


def as_memd_error(error: BaseException, method: str) -> MemdError:
    """The one place where an unexpected exception becomes a reply. It goes to the
    log with its traceback, and to the caller as a fault of ours without details."""
    if isinstance(error, MemdError):
        return error
    if isinstance(error, OSError) and error.filename:
        return MemdError(
            ErrorCode.STORAGE_FAILED,
            f"{method} could not use {error.filename}: {error.strerror}",
            hint="look at the path's owner and mode, and at the disk",
        )
    log.error("%s failed", method, exc_info=error)
    return MemdError(
        ErrorCode.INTERNAL_ERROR,
        f"{method} failed inside the daemon",
        hint="the daemon's log has the traceback; please report it",
    )


def _unknown(name: str) -> MemdError:
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return MemdError(
        ErrorCode.METHOD_NOT_FOUND,
        f"there is no method {name!r}",
        hint=f"{hint}rpc.discover lists all",
    )


def _hello_required(method: Method) -> MemdError:
    return MemdError(
        ErrorCode.HELLO_REQUIRED,
        f"{method.name} came before hello",
        hint='call hello first, with {"protocol_version": …, "build": …}',
    )
