"""Container names: what may become a folder below the jackin home."""

from __future__ import annotations

import re

from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.vocab import Container, ShortId

#: RFC 1123 label, lower case: no dots, no slashes, so no path can be made of it.
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")

#: Folders below `data/` that are jackin's or ours and not an instance's.
RESERVED = frozenset(
    {"daemon", "workspaces", "usage-menu-bar", "usage-broker", "usage-shared", "deja-vu"}
    | {"universe-pending"}
)

#: Crockford's base 32 as jackin writes short ids (`crates/jackin-instance/src/naming.rs`).
_SHORT_ID = re.compile(r"[0-9abcdefghjkmnpqrstvwxyz]{8}\Z")


def parse_container(name: str, *, field: str = "container") -> Container:
    """Raises MemdError (INSTANCE_NAME_INVALID)."""
    if not _LABEL.match(name):
        raise MemdError(
            ErrorCode.INSTANCE_NAME_INVALID,
            "the name is not a container name",
            hint="a container name is 1 to 63 characters of a-z, 0-9 and inner dashes, "
            "like jk-k7p9m2xq-shop-builder",
            field=field,
        )
    if name in RESERVED:
        raise MemdError(
            ErrorCode.INSTANCE_NAME_INVALID,
            f"{name} is reserved for a folder of jackin's own",
            field=field,
        )
    return Container(name)


def is_short_id(text: str) -> bool:
    return _SHORT_ID.match(text) is not None


def short_id(container: Container) -> ShortId | None:
    """The text between `jk-` and the next dash, as jackin reads it."""
    head, _, rest = container.partition("-")
    id_, dash, _ = rest.partition("-")
    return ShortId(id_) if head == "jk" and dash and is_short_id(id_) else None
