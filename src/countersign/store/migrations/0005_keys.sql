-- Keys that anybody takes without asking: `key_hash` is SHA-256 of the key. One that is not used for long is removed.
CREATE TABLE api_key (
    key_hash BLOB PRIMARY KEY,
    tier TEXT NOT NULL CHECK (tier IN ('community', 'sandbox', 'agent')),
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);
CREATE INDEX api_key_by_use ON api_key (used_at);
