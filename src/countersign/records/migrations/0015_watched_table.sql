-- The connected tables whose changes by other applications are recorded, and when that was last seen.
CREATE TABLE watched_table (
    relation TEXT PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- The models with a table of an existing database when the service was last started.
CREATE TABLE connected_model (model TEXT PRIMARY KEY);
