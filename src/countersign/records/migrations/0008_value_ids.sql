-- The id of a linked value is made from its hash, so the primary key already keeps one row for each value. A second
-- unique index would make two writers fail who add the same value at the same time.
CREATE TABLE pii_value_new (
    id BIGINT PRIMARY KEY,
    label TEXT NOT NULL,
    hash BLOB,
    key BLOB NOT NULL,
    refs BIGINT NOT NULL,
    domain_id TEXT
);
INSERT INTO pii_value_new (id, label, hash, key, refs, domain_id)
SELECT id, label, hash, key, refs, domain_id FROM pii_value;
DROP TABLE pii_value;
ALTER TABLE pii_value_new RENAME TO pii_value;
CREATE INDEX pii_value_by_hash ON pii_value (hash);
