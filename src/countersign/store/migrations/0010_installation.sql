-- The id of the installation, which its data directory and its blob store have too; when the collector last ran.
CREATE TABLE installation (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    collected_at BIGINT NOT NULL
);

-- Files that the database knows and that nothing refers to, and since when: noted before they are stored, or once the
-- collector finds them so. A file that is neither here nor in `blob` was never known here, and is never removed.
CREATE TABLE idle_blob (sha256 TEXT PRIMARY KEY, since BIGINT NOT NULL);

-- What the collector found when it last ran. `stopped` says why it removed nothing; empty: it was not stopped.
CREATE TABLE collection (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    ran_at BIGINT NOT NULL,
    files BIGINT NOT NULL,
    due BIGINT NOT NULL,
    unknown BIGINT NOT NULL,
    unknown_bytes BIGINT NOT NULL,
    stopped TEXT NOT NULL
);
