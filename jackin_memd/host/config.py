"""memd.toml in jackin's config folder: every setting, its default and its bounds."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from jackin_memd.wire.errors import ErrorCode, MemdError

CONFIG_VARIABLE = "JACKIN_CONFIG_DIR"
FILE_NAME = "memd.toml"

Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class Durability(Enum):
    FULL = "full"
    NORMAL = "normal"


class DurabilitySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    runtime: Durability = Durability.NORMAL
    """What an acknowledged status, tag, link, usage or tool row survives: `normal`
    a killed process, `full` also a power cut. Memory, proposals, policy, accounts
    and the registry are always `full`."""


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    frame_bytes: Annotated[int, Meta(ge=2 * 1024 * 1024, le=256 * 1024 * 1024)] = 4 * 1024 * 1024
    """The longest frame, in both directions. A page of rows may take 1 MiB of it."""
    batch_calls: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    """Entries of one JSON-RPC batch."""
    connections: Annotated[int, Meta(ge=1, le=100_000)] = 1024
    """Open connections of each socket."""
    requests_in_flight: Annotated[int, Meta(ge=1, le=100_000)] = 256
    """Unanswered requests of one connection; more wait unread."""
    subscriptions: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Subscriptions of one connection."""
    open_databases: Annotated[int, Meta(ge=4, le=100_000)] = 128
    """Databases open at a time; the least used ones are closed above it."""


class TimeoutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hello_s: Seconds = 10.0
    """From a connection's start to its hello."""
    frame_s: Seconds = 10.0
    """From the first byte of a frame to its last."""
    send_s: Seconds = 30.0
    """How long a client may read nothing of what it is sent."""
    drain_s: Seconds = 10.0
    """For finishing accepted work when the daemon stops."""
    idle_close_s: Seconds = 60.0
    """After which an unused database is closed."""
    watch_s: Seconds = 2.0
    """Between two looks at the daemon's own lock, sockets and instance folders."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    durability: DurabilitySettings = DurabilitySettings()
    limits: LimitSettings = LimitSettings()
    timeouts: TimeoutSettings = TimeoutSettings()


def config_dir(environment: Mapping[str, str] | None = None) -> Path:
    """`$JACKIN_CONFIG_DIR` as given, else `~/.config/jackin`, as jackin has it."""
    environment = os.environ if environment is None else environment
    given = environment.get(CONFIG_VARIABLE)
    return Path(given) if given else Path.home() / ".config" / "jackin"


def read_settings(folder: Path) -> Settings:
    """The settings of `memd.toml`; the defaults where there is no file.

    Raises MemdError (CONFIG_INVALID).
    """
    path = folder / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(path, str(error)) from error
    try:
        return msgspec.convert(tomllib.loads(text), Settings)
    except (tomllib.TOMLDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise _invalid(path, str(error)) from error


def _invalid(path: Path, why: str) -> MemdError:
    return MemdError(
        ErrorCode.CONFIG_INVALID,
        f"{path} can't be used: {why}",
        hint="docs/operations.md lists every setting with its default",
    )
