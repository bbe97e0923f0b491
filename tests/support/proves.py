"""`@proves("ack-durable")` ties a test to the guarantee that it stands for.

The ids are those of tests/requirements.py; tests/test_requirements.py reads
the claims out of the source, so they must be literal strings.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

MARKER: Final = "proves"


def proves(*requirements: str) -> pytest.MarkDecorator:
    marker: Any = getattr(pytest.mark, MARKER)
    decorator: pytest.MarkDecorator = marker(*requirements)
    return decorator
