"""What is no database of the daemon's is refused, and keeps its bytes."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from jackin_memd.storage.faults import translate
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.storage.files import change_by_hand, fingerprint, make, prepare_at, set_meta
from tests.storage.test_schema_refusals import refused
from tests.support.proves import proves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jackin.db"


@pytest.mark.parametrize(
    "bytes_",
    [b"xx", b"SQLite format 3", b"not a database at all " * 400, b"SQLite format 3\0" + b"\0" * 84],
    ids=["two bytes", "part of the header", "text", "a header of zeros"],
)
@pytest.mark.parametrize("create", [False, True])
def test_bytes_that_are_no_database_are_refused_as_damaged(
    path: Path, bytes_: bytes, create: bool
) -> None:
    path.write_bytes(bytes_)
    assert refused(path, create=create).code is ErrorCode.DATABASE_CORRUPT


def test_a_database_with_a_damaged_page_of_its_schema_is_refused_as_damaged(path: Path) -> None:
    make(path)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 100)
    assert refused(path).code is ErrorCode.DATABASE_CORRUPT


def test_an_empty_file_is_no_database_to_go_on_with(path: Path) -> None:
    path.touch()
    error = refused(path)
    assert error.code is ErrorCode.DATABASE_SCHEMA_MISMATCH
    assert "empty" in error.message


def test_a_database_without_a_table_is_no_database_to_go_on_with(path: Path) -> None:
    change_by_hand(path, "PRAGMA user_version = 7")
    assert refused(path).code is ErrorCode.DATABASE_SCHEMA_MISMATCH


@proves("store-schema-compared")
@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    "tables",
    [
        ("CREATE TABLE memories (id TEXT)",),
        ("CREATE TABLE status_log (id INTEGER)",),
        ("CREATE TABLE _meta (name TEXT, version TEXT)", "INSERT INTO _meta VALUES ('v', '1')"),
        ("CREATE TABLE _meta (key TEXT)",),
        ("CREATE VIEW _meta AS SELECT 1 AS one",),
        ("CREATE TABLE t (_meta TEXT)", "CREATE INDEX _meta ON t (_meta)"),
    ],
)
def test_a_database_of_another_program_is_refused_as_such(
    path: Path, tables: tuple[str, ...], create: bool
) -> None:
    change_by_hand(path, *tables)
    error = refused(path, create=create)
    assert error.code is ErrorCode.DATABASE_SCHEMA_MISMATCH
    assert "_meta" in error.message


@proves("store-meta")
@pytest.mark.parametrize(
    "version",
    ["0", "-1", "1.0", "one", "", " 1", "1 ", "²", "٣", "1e0", "0x1", "9" * 5000, "00002"],
)
def test_a_version_that_is_no_number_is_refused(path: Path, version: str) -> None:
    make(path)
    set_meta(path, "schema_version", version)
    error = refused(path)
    assert error.code is ErrorCode.DATABASE_SCHEMA_MISMATCH
    assert error.message.endswith("_meta.schema_version is not a positive number")


@pytest.mark.parametrize("value", [2.5, b"2"])
def test_a_version_of_another_type_is_refused(path: Path, value: float | bytes) -> None:
    make(path)
    set_meta(path, "schema_version", value)
    assert "schema_version" in refused(path).message


def test_a_database_without_a_version_is_refused(path: Path) -> None:
    make(path)
    change_by_hand(path, "DELETE FROM _meta WHERE key = 'schema_version'")
    assert "schema_version" in refused(path).message


@pytest.mark.parametrize("epoch", ["None", "", "00112233445566FF", "00112233445566ff0", b"0"])
def test_an_epoch_that_the_daemon_never_made_is_refused(path: Path, epoch: str | bytes) -> None:
    make(path)
    set_meta(path, "database_id", epoch)
    error = refused(path)
    assert error.code is ErrorCode.DATABASE_SCHEMA_MISMATCH
    assert "database_id" in error.message


@pytest.mark.parametrize("create", [False, True])
def test_a_folder_at_the_path_can_not_be_opened(path: Path, create: bool) -> None:
    path.mkdir()
    with pytest.raises(apsw.CantOpenError) as caught:
        prepare_at(path, create=create)
    assert translate(caught.value, "jackin.db").code is ErrorCode.DATABASE_UNAVAILABLE
    assert list(path.iterdir()) == []


@pytest.mark.parametrize("create", [False, True])
def test_a_symlink_to_a_good_database_is_not_followed(tmp_path: Path, create: bool) -> None:
    elsewhere, path = tmp_path / "elsewhere.db", tmp_path / "jackin.db"
    make(elsewhere)
    before = fingerprint(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(apsw.CantOpenError):
        prepare_at(path, create=create)
    assert path.is_symlink()
    assert fingerprint(elsewhere) == before


def test_a_symlink_to_nothing_makes_no_file_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "jackin.db"
    path.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises((apsw.CantOpenError, MemdError)):
        prepare_at(path, create=True)
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_folder_reached_by_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    make(tmp_path / "real" / "jackin.db")
    (tmp_path / "way").symlink_to(tmp_path / "real")
    with pytest.raises(apsw.CantOpenError):
        prepare_at(tmp_path / "way" / "jackin.db")


def test_a_database_is_never_made_where_it_was_not_asked_for(path: Path) -> None:
    with pytest.raises(apsw.CantOpenError):
        prepare_at(path)
    assert not path.exists()
