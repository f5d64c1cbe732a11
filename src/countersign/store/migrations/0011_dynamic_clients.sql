-- OAuth clients that registered themselves (RFC 7591). They belong to no organisation. `used_at` is when a person first
-- let the client in; an unused one ends by itself.
CREATE TABLE dynamic_client (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    scopes TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX dynamic_client_unused ON dynamic_client (created_at, id) WHERE used_at IS NULL;
