"""The daemon's log: structured lines on stderr, which journald or a file takes.

A line names events, ids, sizes and codes. It never holds a parameter's value.
"""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from enum import Enum

import msgspec


class LogFormat(Enum):
    HUMAN = "human"
    JSON = "json"


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname.lower():7} {record.getMessage()}"
        return line + _trace(record, "\n")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        trace = _trace(record, "")
        return msgspec.json.encode(line | ({"traceback": trace} if trace else {})).decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(record: logging.LogRecord, before: str) -> str:
    """Where it happened. The exception's own text stays out of the JSON and the
    human line alike when it is SQLite's or msgspec's, which may quote a value."""
    if record.exc_info is None or record.exc_info[1] is None:
        return ""
    error = record.exc_info[1]
    frames = "".join(traceback.format_tb(error.__traceback__))
    return f"{before}{frames}{type(error).__module__}.{type(error).__qualname__}"


def configure(level: str, log_format: LogFormat) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format is LogFormat.JSON else _Human())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
