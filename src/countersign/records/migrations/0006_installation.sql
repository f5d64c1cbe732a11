-- The id of the installation, which its data directory and the other databases have too. `collected_at` is the store's.
CREATE TABLE installation (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    collected_at BIGINT NOT NULL
);
