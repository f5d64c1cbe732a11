-- The values of existing databases that callers have seen as tokens: a keyed hash, never the value.
CREATE TABLE seen_value (
    id BIGINT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    label TEXT NOT NULL,
    seen_at BIGINT NOT NULL
);
