"""jackin.db: the runtime record of one instance.

Migration 1 is the seed's (`Persistent Storage and Workspace Memory Layer`,
Tables V1), names, columns and indexes as they stand there. What we add comes
in later migrations.
"""

from __future__ import annotations

from jackin_memd.storage.request_keys import CREATE_REQUEST_KEYS
from jackin_memd.storage.schema import Migration, Schema

_SEED_V1 = (
    """CREATE TABLE status_log (
        id INTEGER PRIMARY KEY,
        occurred_at INTEGER NOT NULL,
        new_status TEXT NOT NULL,
        metadata TEXT
    )""",
    """CREATE TABLE agent_tags (
        kind TEXT NOT NULL,
        value TEXT NOT NULL,
        first_seen INTEGER NOT NULL,
        last_seen INTEGER NOT NULL,
        PRIMARY KEY (kind, value)
    )""",
    """CREATE TABLE github_link_statuses (
        url TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        host TEXT NOT NULL,
        owner TEXT NOT NULL,
        repo TEXT NOT NULL,
        resource_number INTEGER NOT NULL,
        issue_state TEXT,
        pr_state TEXT,
        build_state TEXT,
        review_state TEXT,
        pr_is_draft INTEGER,
        fetched_at INTEGER NOT NULL,
        refresh_after INTEGER NOT NULL,
        last_error TEXT
    )""",
    """CREATE TABLE usage_samples (
        id INTEGER PRIMARY KEY,
        occurred_at INTEGER NOT NULL,
        session_id INTEGER,
        workspace TEXT,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        token_input INTEGER,
        token_output INTEGER,
        token_cache_read INTEGER,
        token_cache_write INTEGER,
        cost_usd_micros INTEGER,
        source_hash TEXT
    )""",
    "CREATE INDEX usage_samples_by_time ON usage_samples (occurred_at)",
    "CREATE INDEX usage_samples_by_session ON usage_samples (session_id, occurred_at)",
    "CREATE INDEX usage_samples_by_workspace ON usage_samples (workspace, occurred_at)",
    """CREATE UNIQUE INDEX usage_samples_by_source_hash
        ON usage_samples (source_hash)
        WHERE source_hash IS NOT NULL""",
    """CREATE TABLE tool_history (
        id INTEGER PRIMARY KEY,
        occurred_at INTEGER NOT NULL,
        tool_key TEXT NOT NULL,
        exit_code INTEGER,
        duration_ms INTEGER
    )""",
    "CREATE TABLE _meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
)

INSTANCE_SCHEMA = Schema(
    "instance",
    (
        Migration("the seed's tables", _SEED_V1),
        Migration("answers kept for retried calls", (CREATE_REQUEST_KEYS,)),
    ),
)
