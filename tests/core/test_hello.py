"""Whether two builds may talk, and which one is to be updated."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.core.hello import version_refusal
from jackin_memd.wire.codec import INT64_MAX, INT64_MIN
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.session import HelloParams
from jackin_memd.wire.vocab import PROTOCOL_VERSION
from tests.support.proves import proves

BUILD = "jackin-memd/9.8.7"


def refused(version: int) -> MemdError:
    error = version_refusal(HelloParams(protocol_version=version), BUILD)
    assert error is not None
    return error


def test_the_same_version_may_talk() -> None:
    assert version_refusal(HelloParams(protocol_version=PROTOCOL_VERSION), BUILD) is None


@proves("wire-hello-version")
@given(st.integers(INT64_MIN, INT64_MAX).filter(lambda version: version != PROTOCOL_VERSION))
def test_any_other_version_is_refused_with_both_versions_and_which_is_older(version: int) -> None:
    error = refused(version)
    older = "client" if version < PROTOCOL_VERSION else "daemon"
    assert error.code is ErrorCode.PROTOCOL_MISMATCH
    assert error.details == {
        "older": older,
        "client_protocol": version,
        "daemon_protocol": PROTOCOL_VERSION,
        "daemon_build": BUILD,
    }
    assert f"the {older} is older" in error.message


def test_the_older_side_is_told_how_to_become_the_newer() -> None:
    assert "update the client" in (refused(PROTOCOL_VERSION - 1).hint or "")
    assert "jackin-memd restart" in (refused(PROTOCOL_VERSION + 1).hint or "")


def test_the_refusal_says_what_still_answers() -> None:
    for version in (PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1):
        assert "status and shutdown answer" in (refused(version).hint or "")
