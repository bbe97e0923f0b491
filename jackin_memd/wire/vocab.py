"""Words and identifiers that cross the wire."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, NewType

from msgspec import Meta

#: Raised by one whenever a peer of the version before could misread a message.
PROTOCOL_VERSION = 1

Container = NewType("Container", str)
"""A container name that has been validated (`jk-k7p9m2xq-shop-builder`)."""

ShortId = NewType("ShortId", str)
"""The 8 characters between `jk-` and the next dash."""

Cursor = NewType("Cursor", str)
"""An opaque place in one table of one database."""


class Channel(Enum):
    """How a call came in; it alone decides what the caller may do."""

    OPERATOR = "operator"
    OBSERVER = "observer"
    CAPSULE = "capsule"


class Role(Enum):
    """What `hello` may ask for. A capsule's role is its socket's, whatever it says."""

    OPERATOR = "operator"
    OBSERVER = "observer"


#: A word or label: one line of text, so no control characters and no NUL.
ONE_LINE = r"^[^\x00-\x1f\x7f\u2028\u2029]+\Z"

ONE_LINE_OR_NONE = r"^[^\x00-\x1f\x7f\u2028\u2029]*\Z"

InstanceRef = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=ONE_LINE,
        description="a container name, or the 8-character short id where it is unambiguous",
    ),
]
IdempotencyKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern=ONE_LINE,
        description="repeat the call with the same key to get the first answer again",
    ),
]
Label = Annotated[str, Meta(min_length=1, max_length=1024, pattern=ONE_LINE)]
