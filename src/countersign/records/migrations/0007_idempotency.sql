-- What calls with an Idempotency-Key came to, for a day. `body` is encrypted under the key, of which only a hash is here.
CREATE TABLE idempotency (
    key_hash BLOB PRIMARY KEY,
    request_hash BLOB NOT NULL,
    status BIGINT NOT NULL,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    sealed BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);
