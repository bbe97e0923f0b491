"""memd.toml: every setting with its default and its bounds, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from jackin_memd.host.config import Settings, config_dir, read_settings
from jackin_memd.wire.errors import ErrorCode, MemdError
from tests.support.proves import proves

#: section.setting: default, lowest, highest, one below, one above.
NUMBERS: dict[str, tuple[float, float, float, float, float]] = {
    "limits.frame_bytes": (4_194_304, 2_097_152, 268_435_456, 2_097_151, 268_435_457),
    "limits.batch_calls": (1000, 1, 100_000, 0, 100_001),
    "limits.connections": (1024, 1, 100_000, 0, 100_001),
    "limits.requests_in_flight": (256, 1, 100_000, 0, 100_001),
    "limits.subscriptions": (64, 1, 10_000, 0, 10_001),
    "limits.open_databases": (128, 4, 100_000, 3, 100_001),
    "timeouts.hello_s": (10.0, 0.001, 86_400, 0, 86_400.5),
    "timeouts.frame_s": (10.0, 0.001, 86_400, 0, 86_400.5),
    "timeouts.send_s": (30.0, 0.001, 86_400, 0, 86_400.5),
    "timeouts.drain_s": (10.0, 0.001, 86_400, 0, 86_400.5),
    "timeouts.idle_close_s": (60.0, 0.001, 86_400, 0, 86_400.5),
    "timeouts.watch_s": (2.0, 0.001, 86_400, 0, 86_400.5),
}
EVERY_NUMBER = pytest.mark.parametrize("name", NUMBERS)


def read(folder: Path, text: str) -> Settings:
    (folder / "memd.toml").write_text(text, encoding="utf-8")
    return read_settings(folder)


def with_value(folder: Path, name: str, value: object) -> Any:
    """The setting's value in what is read when the file says so."""
    section, setting = name.split(".")
    written = f'"{value}"' if isinstance(value, str) else str(value).lower()
    settings = read(folder, f"[{section}]\n{setting} = {written}\n")
    return getattr(getattr(settings, section), setting)


def refusal(folder: Path, text: str | bytes) -> MemdError:
    path = folder / "memd.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(MemdError) as refused:
        read_settings(folder)
    assert refused.value.code is ErrorCode.CONFIG_INVALID
    assert str(path) in refused.value.message
    assert "docs/operations.md" in (refused.value.hint or "")
    return refused.value


def test_every_setting_is_in_this_table() -> None:
    defaults: dict[str, dict[str, Any]] = msgspec.to_builtins(Settings())
    known = {f"{section}.{name}" for section, values in defaults.items() for name in values}
    assert known == {*NUMBERS, "durability.runtime"}


@pytest.mark.parametrize("text", [None, "", "# nothing set\n", "[limits]\n"])
def test_what_is_not_set_has_its_default(tmp_path: Path, text: str | None) -> None:
    settings = read_settings(tmp_path) if text is None else read(tmp_path, text)
    assert settings == Settings()
    found = msgspec.to_builtins(settings)
    for name, (default, *_) in NUMBERS.items():
        section, setting = name.split(".")
        assert found[section][setting] == default
    assert found["durability"] == {"runtime": "normal"}


@proves("ops-strict-config")
@EVERY_NUMBER
def test_a_number_at_its_bounds_is_taken_and_one_beyond_is_refused_by_name(
    tmp_path: Path, name: str
) -> None:
    _, lowest, highest, *beyond = NUMBERS[name]
    for value in (lowest, highest):
        assert with_value(tmp_path, name, value) == value
    section, setting = name.split(".")
    for value in (*beyond, -1):
        assert f"$.{name}" in refusal(tmp_path, f"[{section}]\n{setting} = {value}\n").message


@EVERY_NUMBER
@pytest.mark.parametrize("value", ['"10"', "true", "[1]", "1979-05-27", "nan", "inf", "{}"])
def test_what_is_no_such_number_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    section, setting = name.split(".")
    assert f"$.{name}" in refusal(tmp_path, f"[{section}]\n{setting} = {value}\n").message


@pytest.mark.parametrize("word", ["full", "normal"])
def test_the_durability_is_one_of_two_words(tmp_path: Path, word: str) -> None:
    assert with_value(tmp_path, "durability.runtime", word).value == word


@pytest.mark.parametrize("word", ["off", "FULL", ""])
def test_another_durability_is_refused_by_name(tmp_path: Path, word: str) -> None:
    message = refusal(tmp_path, f'[durability]\nruntime = "{word}"\n').message
    assert "$.durability.runtime" in message


@proves("ops-strict-config")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[limits]\nframe_byte = 1\n", "`frame_byte` - at `$.limits`"),
        ("[timeout]\nhello_s = 1\n", "`timeout`"),
        ("frame_bytes = 4096\n", "`frame_bytes`"),
        ("[durability]\nmemory = 'full'\n", "`memory` - at `$.durability`"),
    ],
)
def test_an_unknown_setting_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    assert named in refusal(tmp_path, text).message


@pytest.mark.parametrize("text", ["limits = 1", "[[limits]]\n", "durability = 'full'"])
def test_a_section_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    assert "Expected `object`" in refusal(tmp_path, text).message


@proves("daemon-bad-config")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[limits\nframe_bytes = 2048\n", "line 1"),
        ("[limits]\nframe_bytes = \n", "line 2"),
        ("[limits]\nframe_bytes = 2048\nframe_bytes = 2048\n", "line 3"),
        ("\0", "line 1"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_line(tmp_path: Path, text: str, where: str) -> None:
    assert where in refusal(tmp_path, text).message


def test_toml_nested_without_end_is_refused(tmp_path: Path) -> None:
    refusal(tmp_path, "a = " + "[" * 20_000)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    assert "utf-8" in refusal(tmp_path, b"# caf\xe9\n").message


def test_a_folder_in_the_files_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memd.toml").mkdir()
    with pytest.raises(MemdError) as refused:
        read_settings(tmp_path)
    assert refused.value.code is ErrorCode.CONFIG_INVALID


def test_a_file_that_may_not_be_read_is_refused_and_not_taken_for_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as faulty, pytest.raises(MemdError) as refused:
        faulty.setattr(Path, "read_text", refuse)
        read_settings(tmp_path)
    assert "Permission denied" in refused.value.message


def test_a_folder_that_is_not_there_has_no_settings(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "gone") == Settings()


def test_the_folder_is_the_variables_or_the_one_that_jackin_has(tmp_path: Path) -> None:
    assert config_dir({"JACKIN_CONFIG_DIR": "/x/y"}) == Path("/x/y")
    default = Path.home() / ".config" / "jackin"
    assert config_dir({}) == config_dir({"JACKIN_CONFIG_DIR": ""}) == default
