"""The file format is the contract: another engine reads what the daemon wrote.

The storage design asks for databases that Turso can read. It is tried here on
closed copies, with every table filled.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import turso

from jackin_memd.core.identity import Identity
from jackin_memd.storage import registry
from jackin_memd.storage.instance_schema import INSTANCE_SCHEMA
from jackin_memd.storage.registry import REGISTRY_SCHEMA, Registered
from jackin_memd.storage.request_keys import Keyed, RequestKey
from jackin_memd.storage.schema import Schema
from jackin_memd.storage.status_log import Append
from jackin_memd.wire.codec import encode
from jackin_memd.wire.instances import IdentitySource
from jackin_memd.wire.vocab import Container
from tests.storage.files import EPOCH, contents, opened

OTHER_ROWS = """
INSERT INTO agent_tags VALUES ('pr', 'https://github.com/o/r/pull/1', 5, 6), ('repo', '', 0, 0);
INSERT INTO github_link_statuses VALUES ('https://github.com/o/r/pull/1', 'pr', 'github.com',
    'o', 'r', 1, NULL, 'open', 'pending', 'none', 1, 7, 8, 'rate limited');
INSERT INTO usage_samples VALUES
    (1, 9, 2, 'shop', 'claude', 'opus', 1, 2, 3, 4, 5, 'sha256:1'),
    (2, 9, NULL, NULL, 'codex', 'gpt', NULL, NULL, NULL, NULL, 9223372036854775807, NULL);
INSERT INTO tool_history VALUES (1, 10, 'bash', -1, 0), (2, 11, 'edit', NULL, NULL);
"""


def fill_instance(path: Path) -> None:
    with opened(path) as connection:
        for number in range(400):
            metadata = encode({"number": number, "text": "待機 🙂\0" * (number % 50)}).decode()
            rows = [(number, "busy", None), (2**63 - 1, f"word-{number}", metadata)]
            key = RequestKey(channel="capsule", key=str(number), request_hash="f00d", now=number)
            Keyed(key, Append(list(rows)).apply, 2).apply(connection)
        connection.execute(OTHER_ROWS)


def fill_registry(path: Path) -> None:
    with opened(path, REGISTRY_SCHEMA) as connection:
        for number in range(300):
            identity = Identity(
                source=IdentitySource.MANIFEST,
                workspace_name=None if number % 3 else "shop",
                role_key="team/builder",
            )
            entry = Registered(
                container=Container(f"jk-{number:08}-builder"),
                identity=identity,
                database_id=EPOCH if number % 2 else None,
                loaded=bool(number % 5),
                loaded_at=number,
            )
            registry.upsert(connection, entry)
        connection.execute("INSERT INTO request_keys VALUES (1, 'operator', 'k', 'h', '{}', 2)")


@pytest.mark.parametrize(
    ("fill", "schema"),
    [(fill_instance, INSTANCE_SCHEMA), (fill_registry, REGISTRY_SCHEMA)],
    ids=["jackin.db", "registry.db"],
)
def test_a_closed_copy_opens_with_turso_and_every_row_of_every_table_is_equal(
    tmp_path: Path, fill: Any, schema: Schema
) -> None:
    path, copy = tmp_path / "made.db", tmp_path / "copy.db"
    fill(path)
    shutil.copy(path, copy)
    expected = contents(path)
    assert all(expected.values()), "every table has a row to compare"

    with closing(turso.connect(str(copy))) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        tables = {str(name) for (name,) in cursor.fetchall()}
        assert tables == set(expected)
        for table in tables:
            cursor.execute(f"SELECT * FROM {table}")  # noqa: S608 - our own tables' names
            assert sorted(cursor.fetchall(), key=repr) == sorted(expected[table], key=repr)
