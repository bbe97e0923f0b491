"""Every guarantee that the project gives, as data.

Each has a stable id. A test claims one with `@proves("id")`; what is not built
yet is deferred to the issue that brings it. tests/test_requirements.py checks
both ways, so a guarantee can be neither forgotten nor claimed for nothing.

The sources are the two seed documents ("jackin", "nuzo"), the design pages
("architecture", "interop") and this project's own pages ("docs").
"""

from __future__ import annotations

import msgspec


class Tested(msgspec.Struct, frozen=True):
    """At least one test must claim it."""


class Deferred(msgspec.Struct, frozen=True):
    """Not built yet: no test may claim it."""

    issue: int
    reason: str


class Requirement(msgspec.Struct, frozen=True):
    id: str
    source: str
    text: str
    status: Tested | Deferred


#: The first part of every id.
GROUPS = (
    "wire", "store", "instance", "status", "stream", "daemon", "client", "access", "memory",
    "accounts", "usage", "links", "tags", "tools", "agents", "ops", "layout",
)  # fmt: skip

USAGE = Deferred(3, "tags, links, usage samples and tool history arrive with the runtime tables")
POLICY = Deferred(4, "workflows, policies and config reload arrive with the channel policies")
MEMORY = Deferred(5, "workspace memory arrives with its own database")
ACCOUNTS = Deferred(6, "the account cache arrives with its own database")
AGENTS = Deferred(7, "the agents' surface arrives with the MCP adapter")
OPERATIONS = Deferred(8, "backup, doctor and the durability suite arrive with operations")

Row = tuple[str, str, str]


def _all(status: Tested | Deferred, *rows: Row) -> list[Requirement]:
    return [Requirement(id_, source, text, status) for id_, source, text in rows]


# fmt: off
_WIRE = _all(
    Tested(),
    ("wire-framing", "architecture: In one paragraph",
     "A message is JSON behind its length as 4 bytes, big-endian, the Capsule's own framing."),
    ("wire-frame-limit", "architecture: In one paragraph",
     "A frame of zero bytes or over the limit is refused by its prefix, before bytes are kept."),
    ("wire-frame-deadline", "docs: protocol",
     "One deadline holds for a whole frame; bytes that trickle in do not extend it."),
    ("wire-any-split", "docs: protocol",
     "How a stream is cut into pieces on its way makes no difference."),
    ("wire-no-exception", "architecture: Rules 6",
     "Whatever a peer sends becomes an event or an error reply, never an exception."),
    ("wire-json-rpc", "architecture: In one paragraph",
     "Messages are JSON-RPC 2.0 requests, notifications, batches and responses."),
    ("wire-ids", "docs: protocol",
     "An id is a short string or a 64-bit integer; a refusal quotes it where it can be read."),
    ("wire-batches", "docs: protocol",
     "The replies of a batch come in one frame, a bad entry beside the good ones."),
    ("wire-reply-limit", "docs: protocol",
     "A reply that fits no frame becomes REPLY_TOO_LARGE with the call's id; none is oversized."),
    ("wire-direction", "docs: protocol",
     "The daemon makes no calls and refuses responses."),
    ("wire-unknown-member", "architecture: Rules 6",
     "A member or parameter that is not known is refused by name."),
    ("wire-strict-json", "docs: protocol",
     "What is not strict JSON in UTF-8, or a number no type holds, is refused wherever it stands."),
    ("wire-duplicate-keys", "docs: protocol",
     "A key that stands twice in one object is refused by name, however it is spelled."),
    ("wire-deep-nesting", "docs: protocol",
     "JSON nested without end is refused like any bad JSON."),
    ("wire-linear-cost", "architecture: Rules 3",
     "No message costs more than a few passes over its bytes."),
    ("wire-error-shape", "architecture: Rules 6",
     "An error carries a JSON-RPC number, a stable word, the field and what would be right."),
    ("wire-precise-errors", "architecture: Rules 6",
     "Bad parameters of every method are refused with the field that is wrong."),
    ("wire-precise-errors-live", "architecture: Rules 6",
     "A daemon answers each bad input to each method with a precise error and goes on serving."),
    ("wire-no-traceback", "architecture: Rules 6",
     "An unexpected failure reaches the caller as INTERNAL_ERROR, never as a traceback."),
    ("wire-reply-before-close", "architecture: Rules 6",
     "A connection with a readable frame is never closed without a reply to it."),
    ("wire-hello-first", "docs: protocol",
     "Any method but those for every version is refused until hello was accepted."),
    ("wire-hello-version", "docs: protocol",
     "A protocol version other than the daemon's is refused with which side is older."),
    ("wire-hello-every-version", "docs: protocol",
     "hello, status and shutdown answer any version and ignore what they do not know."),
    ("wire-hello-deadline", "docs: protocol",
     "A connection without a hello within its deadline is told so and closed."),
    ("wire-discover", "docs: protocol",
     "rpc.discover answers a valid OpenRPC document that equals the method table."),
    ("wire-discover-live", "docs: protocol",
     "A running daemon serves every method that its OpenRPC document lists."),
    ("wire-documented", "docs: protocol",
     "The protocol page lists every method, error and type as the code has them."),
    ("wire-idempotency", "architecture: Rules 5",
     "The same call with the same key gives the first answer once more and changes nothing."),
    ("wire-idempotency-restart", "architecture: Rules 5",
     "A key holds across reconnects and restarts, because it commits with its call's rows."),
    ("wire-idempotency-conflict", "architecture: Rules 5",
     "A key that was used for another call is refused."),
    ("wire-back-pressure", "docs: protocol",
     "A peer that does not read, or has too much open, is not read from; memory stays bounded."),
    ("wire-connection-limit", "docs: protocol",
     "A connection over a socket's limit is told so and does not disturb the others."),
)

_STORE = _all(
    Tested(),
    ("store-ack-survives-kill", "architecture: Rules 1",
     "An acknowledged runtime row survives a killed process, always."),
    ("store-durability-setting", "architecture: Rules 1",
     "Whether runtime rows survive a power cut follows durability.runtime."),
    ("store-full-sync", "architecture: Rules 1",
     "What must survive a power cut commits with synchronous=FULL before its reply."),
    ("store-single-writer", "architecture: Rules 2",
     "One writer owns each database; nobody else opens it for writing."),
    ("store-group-commit", "architecture: Rules 2",
     "Requests that arrive while a commit is under way share the next one."),
    ("store-savepoints", "architecture: Rules 2",
     "A request that fails undoes itself alone, not those that share its commit."),
    ("store-atomic-call", "architecture: Rules 2",
     "The rows of one call are committed together or not at all."),
    ("store-readers-not-blocked", "architecture: Rules 3",
     "Readers never wait for the writer."),
    ("store-loop-not-blocked", "architecture: Rules 3",
     "No wait for a disk holds the event loop."),
    ("store-wal", "jackin: Concurrency model",
     "WAL is on from the creation of a database."),
    ("store-busy-timeout", "nuzo: Transaction Guarantees",
     "A short lock of another process makes a writer wait up to five seconds, not fail."),
    ("store-migrations", "jackin: Lifecycle",
     "A database of an older schema is migrated in code when it is loaded."),
    ("store-meta", "jackin: Tables (V1)",
     "_meta.schema_version says which schema a database has."),
    ("store-migration-atomic", "jackin: Scope (V1)",
     "A migration that fails leaves the file as it was and stops the load with a clear message."),
    ("store-too-new", "nuzo: SQLite Tables",
     "A database of a newer schema is refused and not a byte of it changed."),
    ("store-schema-compared", "architecture: Rules 8",
     "A database whose tables differ from its version is refused."),
    ("store-hard-error", "jackin: Scope (V1)",
     "A database that can't be created is an error of its instance's load, never a silent start."),
    ("store-others-go-on", "architecture: Rules 8",
     "A database that can't be served leaves the daemon and every other instance running."),
    ("store-replaced", "architecture: Rules 9",
     "A file removed or replaced is noticed before the next acknowledgement."),
    ("store-no-second-descriptor", "architecture: Rules 9",
     "The daemon's process opens its database files through SQLite alone."),
    ("store-permissions", "architecture: Files it owns",
     "Folders are 0700 and databases, WAL and SHM 0600 from the start, whatever the umask."),
    ("store-local-disk", "architecture: Rules 11",
     "A file system that can't hold WAL safely is refused before journal_mode is set."),
    ("store-disk-full", "architecture: Rules 8",
     "A full disk fails the write with DISK_FULL; writes succeed again once there is room."),
    ("store-lazy-open", "docs: operations",
     "A database is opened when it is first used and closed when it rests."),
    ("store-epoch", "architecture: Rules 4",
     "A database made anew is told from the one before it."),
    ("store-key-window", "architecture: Rules 5",
     "The kept idempotency keys are bounded; the newest 10,000 are there."),
)

_STORE_LATER = _all(
    OPERATIONS,
    ("store-crash-anywhere", "architecture: Rules 1",
     "A kill or a failing system call at any statement loses no acknowledged row."),
    ("store-power-cut", "architecture: Rules 1",
     "What is durable against a power cut survives a simulated one at any write."),
    ("store-turso-readable", "architecture: The SQLite binding",
     "Closed copies of jackin.db and accounts.db read the same with Turso, row by row."),
)

_INSTANCE = _all(
    Tested(),
    ("instance-created-on-load", "jackin: Lifecycle",
     "The first load of an instance creates its database."),
    ("instance-load-again", "architecture: Rules 5",
     "Loading a loaded instance changes nothing and answers the same."),
    ("instance-identity", "architecture: Who may do what",
     "Workspace, role and agent come from the instance's manifest."),
    ("instance-identity-conflict", "architecture: Who may do what",
     "An identity that contradicts what is known is refused."),
    ("instance-ad-hoc", "architecture: Who may do what",
     "An ad hoc instance has no workspace name; its workdir fingerprint stands for it."),
    ("instance-bad-manifest", "architecture: Files it owns",
     "A manifest that can't be read is an error that says so, not a guess."),
    ("instance-names", "interop: Names",
     "Only a container name can become a path; reserved folders are no instances."),
    ("instance-short-id", "interop: Names",
     "A short id names its instance; one that fits several asks for the full name."),
    ("instance-kept", "jackin: Lifecycle",
     "The database stays with the instance's data folder through unload and restart."),
    ("instance-restart", "architecture: Rules 8",
     "Instances that were loaded are served again after a restart, sockets included."),
    ("instance-unload", "docs: protocol",
     "Unloading closes socket and database and leaves the files."),
    ("instance-purge", "jackin: Lifecycle",
     "A purge deletes the instance's database and socket, and nothing else."),
    ("instance-removed-folder", "architecture: Rules 9",
     "An instance whose folder is removed from outside is noticed and no longer acknowledged."),
    ("instance-list", "architecture: Rules 4",
     "All known instances are listed in order, page by page, with word of more."),
    ("instance-problem", "architecture: Rules 8",
     "An instance that can't be served says what is wrong and what to do."),
    ("instance-socket-rebound", "architecture: Files it owns",
     "A socket that an agent removed is bound again."),
    ("instance-hostile-ground", "architecture: Files it owns",
     "In folders that agents can write to, no symlink is followed and no planted name written to."),
)

_STATUS = _all(
    Tested(),
    ("status-log", "jackin: Tables (V1)",
     "status_log has the seed's columns and keeps each transition in order."),
    ("status-any-word", "interop: Names",
     "A status is any word, kept as given."),
    ("status-metadata", "jackin: Tables (V1)",
     "Metadata is any JSON value up to its limit and comes back equal."),
    ("status-time", "jackin: Tables (V1)",
     "occurred_at is epoch seconds, the daemon's where the caller gives none."),
    ("status-trim", "jackin: Trimming",
     "The log keeps its newest 10,000 rows, trimmed on every Nth insert, overshoot 1 % at most."),
    ("status-dropped", "architecture: Rules 4",
     "A trimmed log says how many rows it has dropped."),
    ("status-pages", "architecture: Rules 4",
     "A page of rows says where the next one begins; pages neither repeat nor skip rows."),
    ("status-latest", "jackin: Problem",
     "The newest transition is answered at once, with the cursor after it."),
)

_STREAM = _all(
    Tested(),
    ("stream-once-in-order", "docs: protocol",
     "A subscriber gets each row once and in order."),
    ("stream-live", "jackin: Concurrency model",
     "A committed row reaches subscribers without being asked for."),
    ("stream-durable-first", "docs: protocol",
     "A row is sent only after it is durable."),
    ("stream-resume", "architecture: Rules 4",
     "After a reconnect, or a restart of the daemon, delivery goes on with the very next row."),
    ("stream-gap", "architecture: Rules 4",
     "A subscriber that fell behind the window is told how many rows it missed."),
    ("stream-gap-new-database", "architecture: Rules 4",
     "A cursor of a database that was made anew gives a gap, not other rows."),
    ("stream-bad-cursor", "architecture: Rules 6",
     "Text that is no cursor is refused."),
    ("stream-slow-subscriber", "docs: protocol",
     "Nobody waits for a slow subscriber, and it costs bounded memory."),
    ("stream-end", "docs: protocol",
     "A subscriber is told when an instance is unloaded or purged."),
    ("stream-later-instances", "docs: protocol",
     "A subscription to all instances takes in those that are loaded later."),
    ("stream-limits", "docs: protocol",
     "Subscriptions of a connection are limited and end with it or by cancel."),
)

_DAEMON = _all(
    Tested(),
    ("daemon-singleton", "jackin: Daemon-global account cache",
     "One daemon runs for each operator and home; a second one says who is there."),
    ("daemon-parallel-starts", "architecture: Rules 12",
     "Starts at the same time end with one daemon and no error."),
    ("daemon-liveness", "architecture: Rules 12",
     "Liveness is the lock and hello, never a pid."),
    ("daemon-lock-kept", "architecture: Rules 9",
     "The lock is held for life and not dropped by any other close."),
    ("daemon-dispossessed", "architecture: Rules 9",
     "A daemon that no longer owns its lock or its operator socket stops."),
    ("daemon-stale-socket", "architecture: Files it owns",
     "A dead daemon's socket is replaced; anything else at its path is left alone and reported."),
    ("daemon-socket-path", "architecture: Files it owns",
     "A socket path over the system's limit is refused at start with what to do."),
    ("daemon-one-path-function", "architecture: Rules 12",
     "Daemon and clients find the socket by the same function."),
    ("daemon-drain", "docs: protocol",
     "On shutdown or SIGTERM what was accepted is finished, then the daemon exits."),
    ("daemon-stops-cleanly", "docs: operations",
     "A stopped daemon leaves no socket, no lock and no half-written file."),
    ("daemon-shutdown-any-version", "docs: protocol",
     "A client of any version can ask a daemon who it is, stop it and replace it."),
    ("daemon-status", "docs: protocol",
     "status says what the daemon is, holds and has done."),
    ("daemon-secrets-not-logged", "architecture: Rules 7",
     "Neither message bodies nor stored values reach the log."),
    ("daemon-permissions", "architecture: Files it owns",
     "run/ and sockets/ are 0700 and sockets 0600 from the moment they exist."),
    ("daemon-leaves-jackins-files", "interop: Places",
     "jackin's own daemon socket, pid file and locks are left alone."),
    ("daemon-bad-config", "docs: operations",
     "A configuration that can't be used stops the start with the setting's name."),
    ("client-no-second-way", "architecture: Rules 12",
     "A client that can't reach the daemon says so and writes no file."),
    ("client-reconnect", "architecture: Rules 5",
     "A client that lost its connection repeats a keyed call safely and resumes its streams."),
    ("client-commands", "architecture: Shape of the code",
     "Commands answer for people or as JSON, and each failure has its own exit status."),
)

_ACCESS = _all(
    Tested(),
    ("access-by-listener", "architecture: Who may do what",
     "Who a caller is follows from the socket it came in on, never from its word."),
    ("access-capsule-bound", "architecture: Who may do what",
     "A capsule reads and writes its own instance alone, whatever it names."),
    ("access-observer", "architecture: Who may do what",
     "An observer may read and subscribe only."),
    ("access-table", "architecture: Who may do what",
     "Every method is refused on every channel that its table entry does not name."),
    ("access-peer-uid", "architecture: Who may do what",
     "A peer of the operator's socket with another uid is refused."),
)

_ACCESS_LATER = _all(
    POLICY,
    ("access-workflow", "architecture: Who may do what",
     "A workflow may do what the operator's write policy grants it, named in hello with its run."),
    ("access-claimed-and-stamped", "architecture: Who may do what",
     "What a capsule claims of session, run and agent is kept beside what was stamped."),
    ("access-boot-id", "architecture: Who may do what",
     "Session ids that start again at 1 are kept apart by a boot id."),
    ("access-relay", "architecture: Files it owns",
     "A relayed container has the same identity as over its mounted socket."),
    ("access-config-reload", "docs: operations",
     "A changed configuration is taken up on SIGHUP, whole or not at all."),
)

_MEMORY = _all(
    MEMORY,
    ("memory-own-database", "architecture: Files it owns",
     "Memory of every scope is in one database that survives the purge of any instance."),
    ("memory-brief-order", "architecture: Memory semantics",
     "A brief goes from the most specific scope, then by confidence, kind and newest."),
    ("memory-brief-excludes", "architecture: Memory semantics",
     "Hidden, expired, superseded and pending items never appear in a brief."),
    ("memory-brief-omissions", "architecture: Rules 4",
     "A brief that leaves items out says which."),
    ("memory-brief-provenance", "jackin: Cross-agent memory model",
     "A brief shows content and provenance, never a database path."),
    ("memory-read-policy", "architecture: Memory semantics",
     "always, workflow, agent and manual decide who is served an item, and how."),
    ("memory-write-policy", "architecture: Memory semantics",
     "operator_only, agent_append and workflow_append decide who may supersede an item."),
    ("memory-default-policy", "architecture: Memory semantics",
     "A new item's write policy is operator_only, in a run workflow_append."),
    ("memory-proposals", "jackin: Cross-agent memory model",
     "Agents propose; only an operator or a workflow's policy makes an item of a proposal."),
    ("memory-accepted", "architecture: Memory semantics",
     "An accepted proposal becomes an item with source agent and confidence verified."),
    ("memory-run-summary", "jackin: Memory delivery and external backends",
     "Run summaries are appended where policy allows."),
    ("memory-supersede", "jackin: Cross-agent memory model",
     "A contradiction makes a new item that supersedes the old one; history is never edited."),
    ("memory-hide", "architecture: Memory semantics",
     "Hiding is reversible and audited."),
    ("memory-revision", "nuzo: Transaction Guarantees",
     "A mutation that names a stale revision gets MEMORY_REVISION_CONFLICT with the current one."),
    ("memory-capture-key", "nuzo: SQLite Tables",
     "An exact repeat in a scope returns the item that is there, however many items it has."),
    ("memory-duplicates-bounded", "nuzo: SQLite Tables",
     "The search for related items is exhaustive up to 100, above it says that it is not."),
    ("memory-atomic", "nuzo: Transaction Guarantees",
     "Rows, full-text index and audit event of one mutation commit together."),
    ("memory-import-atomic", "nuzo: Transaction Guarantees",
     "An import is one transaction, duplicates planned inside it."),
    ("memory-dry-run", "nuzo: Transaction Guarantees",
     "A dry run opens no write transaction."),
    ("memory-full-sync", "architecture: Rules 1",
     "Memory and proposals survive a power cut once acknowledged."),
    ("memory-audit", "jackin: Tables (V1)",
     "memory_events has an entry for every create, read, serve, update, supersede, hide and more."),
    ("memory-audit-rolls", "architecture: Memory semantics",
     "Reads and serves keep the newest 100,000; what changed memory is never trimmed."),
    ("memory-query-private", "nuzo: Audit Log",
     "A recorded search keeps a hash of the query, never its text, and only on request."),
    ("memory-scope-allowlist", "nuzo: Scope Boundary",
     "A restricted session can't read, write, export or destroy across its scopes."),
    ("memory-scope-named", "nuzo: Scope Resolution",
     "Every result says which scope it comes from."),
    ("memory-rehome", "architecture: Files it owns",
     "Re-homing an item to another scope is one transaction and audited."),
    ("memory-relations", "nuzo: SQLite Tables",
     "Relations between items are unique, audited and go with their items."),
    ("memory-ids", "architecture: Memory semantics",
     "Ids are UUIDv7, and rows carry origin host, provenance and supersession for a later sync."),
    ("memory-secrets", "nuzo: Secrets And Sensitive Data",
     "A secret-like value is refused with the rule's name and its place, never the value."),
    ("memory-search", "nuzo: SQLite Tables",
     "Full-text search finds active items only, whatever characters a query has."),
    ("memory-fts-report", "nuzo: SQLite Tables",
     "The index is compared with its items: missing, orphaned, duplicate and mismatched entries."),
    ("memory-expiry", "jackin: Tables (V1)",
     "An item past its expiry is no longer served."),
)

_USAGE = _all(
    USAGE,
    ("tags-idempotent", "jackin: Tables (V1)",
     "A tag is one row for its kind and value, with first and last seen."),
    ("tags-operator-first", "interop: Agent tags",
     "An operator's own tag takes precedence over an agent's."),
    ("links-cache", "jackin: Tables (V1)",
     "A link's state, refresh time and last error are cached by URL."),
    ("links-cadence", "interop: GitHub link cache",
     "A link is due again by its state: 1 to 60 minutes."),
    ("usage-source-hash", "architecture: Rules 10",
     "A sample repeated with a larger count replaces the earlier one, never the other way."),
    ("usage-trim", "jackin: Tables (V1)",
     "Samples keep their newest 86,400 rows, trimmed on every Nth insert."),
    ("usage-integer-cost", "jackin: Tables (V1)",
     "Costs are whole millionths of a dollar."),
    ("usage-no-prompt", "jackin: Tables (V1)",
     "A source hash is never raw prompt text."),
    ("tools-trim", "jackin: Tables (V1)",
     "Tool history keeps its newest 1,000 rows, trimmed on every Nth insert."),
)

_ACCOUNTS = _all(
    ACCOUNTS,
    ("accounts-own-database", "jackin: Daemon-global account cache",
     "Account snapshots are in data/daemon/accounts.db and survive the purge of instances."),
    ("accounts-only-writer", "jackin: Daemon-global account cache",
     "The daemon alone writes the cache; everyone else reads it read-only."),
    ("accounts-upsert", "architecture: Rules 10",
     "A snapshot replaces the one of its quota key only when it is newer."),
    ("accounts-key-hash", "interop: An account row",
     "account_key_hash is the published hash of provider and label."),
    ("accounts-compatible", "interop: An account row",
     "The columns and _meta that today's readers query keep their names and meaning."),
    ("accounts-verify", "interop: jackin usage",
     "verify answers ok, missing or untrusted for each provider, by the published rule."),
    ("accounts-read-creates-nothing", "interop: jackin usage",
     "Reading a cache that is not there creates no file and reads as empty."),
    ("accounts-hostile-import", "architecture: Files it owns",
     "A container's own store is read as untrusted input, from a copy, within limits."),
)

_AGENTS = _all(
    AGENTS,
    ("agents-mcp-same-rules", "jackin: Memory delivery and external backends",
     "The MCP server enforces the same scope, policies and audit as every other way in."),
    ("agents-no-file-access", "jackin: Memory delivery and external backends",
     "The MCP server gives no access to files."),
    ("agents-brief-delivery", "jackin: Cross-agent memory model",
     "A brief reaches each runtime by its adapter: native folder, preamble or MCP."),
)

_OPS = _all(
    Tested(),
    ("ops-settings-documented", "docs: operations",
     "Every setting stands in the operations page."),
    ("ops-commands-documented", "docs: operations",
     "Every command of both programs stands in a document."),
    ("ops-strict-config", "docs: operations",
     "An unknown setting, or one out of bounds, is refused by name."),
)

_OPS_LATER = _all(
    OPERATIONS,
    ("ops-backup-consistent", "nuzo: SQLite Tables",
     "A backup is consistent while the daemon writes, owner-only, and replaces no file."),
    ("ops-export-private", "nuzo: Local Permissions",
     "Exports and logs are 0600 in folders of 0700."),
    ("ops-export-tracked", "nuzo: Secrets And Sensitive Data",
     "doctor reports a database or export that Git tracks."),
    ("ops-repair-backup-first", "nuzo: SQLite Tables",
     "A repair changes derived rows only, after a validated backup was published."),
    ("ops-repair-refuses", "nuzo: SQLite Tables",
     "A repair refuses altered schemas, symlinks, overlapping files and existing targets."),
    ("ops-repair-operator-only", "nuzo: SQLite Tables",
     "A repair asks for confirmation and is not on the agents' surface."),
    ("ops-sidecar-disposable", "nuzo: Optional Semantic Sidecar",
     "Derived indexes outside the database can be deleted at any time and are never exported."),
    ("ops-doctor", "architecture: Rules 12",
     "doctor finds the daemon by the same path and names each problem with its remedy."),
    ("ops-units", "architecture: Files it owns",
     "systemd and launchd units are valid and start the daemon at the same paths."),
    ("ops-metrics", "architecture: Rules 4",
     "Counters say what was written, dropped, refused and waited for."),
)

_LAYOUT = _all(
    Tested(),
    ("layout-one-way", "architecture: Shape of the code",
     "Dependencies point one way, from the wire up, and a breach fails a test."),
    ("layout-light-wire", "architecture: Shape of the code",
     "The wire loads no sockets, threads, event loop or database."),
    ("layout-clients-wire-only", "architecture: Shape of the code",
     "Clients import the wire and nothing else of the daemon."),
    ("layout-two-programs", "architecture: Shape of the code",
     "The package installs the commands jackin-memd and jackin-mem."),
)
# fmt: on

ALL: list[Requirement] = [
    *_WIRE, *_STORE, *_STORE_LATER, *_INSTANCE, *_STATUS, *_STREAM, *_DAEMON, *_ACCESS,
    *_ACCESS_LATER, *_MEMORY, *_USAGE, *_ACCOUNTS, *_AGENTS, *_OPS, *_OPS_LATER, *_LAYOUT,
]  # fmt: skip

REQUIREMENTS: dict[str, Requirement] = {requirement.id: requirement for requirement in ALL}
